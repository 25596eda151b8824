/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/manifest.h"

void kube_add_type(cJSON *object, enum kube_resource resource)
{
    CLEANUP_FREE char *api_version = kube_resource_api_version(resource);
    json_add_str(object, "apiVersion", api_version);
    json_add_str(object, "kind", kube_resource_info(resource)->kind);
}

cJSON *kube_manifest(enum kube_resource resource, const char *namespace, const char *name)
{
    cJSON *object = json_new_object();
    kube_add_type(object, resource);
    cJSON *metadata = json_add_object(object, "metadata");
    json_add_str(metadata, "name", name);
    if (namespace)
        json_add_str(metadata, "namespace", namespace);
    return object;
}

cJSON *kube_owner_reference(enum kube_resource resource, const char *name, const char *uid,
                            bool is_controller)
{
    cJSON *owner = json_new_object();
    kube_add_type(owner, resource);
    json_add_str(owner, "name", name);
    json_add_str(owner, "uid", uid);
    if (is_controller) {
        json_add_bool(owner, "controller", true);
        json_add_bool(owner, "blockOwnerDeletion", true);
    }
    return owner;
}
