/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kubelet_write.h"

#include "kube/resource.h"

void kubelet_write_status(struct kubelet_write *write, const char *namespace, const char *name,
                          const char *uid, const cJSON *status)
{
    CLEANUP_JSON cJSON *tree = json_new_object();
    json_add_str(json_add_object(tree, "metadata"), "uid", uid);
    json_add_item(tree, "status", json_copy(status));
    *write = (struct kubelet_write){.method = "PATCH",
                                    .content_type = "application/strategic-merge-patch+json",
                                    .path = kube_path(KUBE_POD, namespace, name, "status"),
                                    .body = json_print(tree)};
}

void kubelet_write_delete(struct kubelet_write *write, const char *namespace, const char *name,
                          const char *uid)
{
    CLEANUP_JSON cJSON *tree = json_new_object();
    json_add_str(tree, "apiVersion", "v1");
    json_add_str(tree, "kind", "DeleteOptions");
    json_add_int64(tree, "gracePeriodSeconds", 0);
    json_add_str(json_add_object(tree, "preconditions"), "uid", uid);
    *write = (struct kubelet_write){.method = "DELETE",
                                    .content_type = "application/json",
                                    .path = kube_path(KUBE_POD, namespace, name, NULL),
                                    .body = json_print(tree)};
}

void kubelet_write_bind(struct kubelet_write *write, const char *namespace, const char *name, const char *uid,
                        const char *node)
{
    CLEANUP_JSON cJSON *tree = json_new_object();
    json_add_str(tree, "apiVersion", "v1");
    json_add_str(tree, "kind", "Binding");
    cJSON *meta = json_add_object(tree, "metadata");
    json_add_str(meta, "name", name);
    json_add_str(meta, "namespace", namespace);
    json_add_str(meta, "uid", uid);
    cJSON *target = json_add_object(tree, "target");
    json_add_str(target, "apiVersion", "v1");
    json_add_str(target, "kind", "Node");
    json_add_str(target, "name", node);
    *write = (struct kubelet_write){.method = "POST",
                                    .content_type = "application/json",
                                    .path = kube_path(KUBE_POD, namespace, name, "binding"),
                                    .body = json_print(tree)};
}

void kubelet_write_node(struct kubelet_write *write, const cJSON *node)
{
    *write = (struct kubelet_write){.method = "POST",
                                    .content_type = "application/json",
                                    .path = xstrdup("/api/v1/nodes"),
                                    .body = json_print(node)};
}

void kubelet_write_done(struct kubelet_write *write)
{
    free(write->path);
    free(write->body);
}
