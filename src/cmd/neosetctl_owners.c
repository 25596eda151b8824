/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl_owners.h"

#include "kube/object.h"

/* "/apis/apps/v1" of "apps/v1", "/api/v1" of "v1"; the caller's. */
static char *root_of(const char *api_version)
{
    const char *slash = strchr(api_version, '/');
    if (!slash) {
        CLEANUP_FREE char *version = kube_percent_encode(api_version);
        return xasprintf("/api/%s", version);
    }
    CLEANUP_FREE char *group_name = xstrndup(api_version, (size_t)(slash - api_version));
    CLEANUP_FREE char *group = kube_percent_encode(group_name);
    CLEANUP_FREE char *version = kube_percent_encode(slash + 1);
    return xasprintf("/apis/%s/%s", group, version);
}

/* What the server calls the collection of this kind; NULL: it does not tell. */
static const cJSON *find_resource(const cJSON *list, const char *kind)
{
    const cJSON *resource = NULL;
    cJSON_ArrayForEach (resource, json_get(list, "resources"))
        if (str_equal(json_str(resource, "kind"), kind) && json_str(resource, "name") &&
            !strchr(json_str(resource, "name"), '/'))
            return resource;
    return NULL;
}

/* Where the owner is read; the caller's. NULL: nobody knows. */
static char *path_of(struct ctl_server *server, const cJSON *owner, const char *namespace)
{
    const char *api_version = json_str(owner, "apiVersion");
    const char *name = json_str(owner, "name");
    if (!api_version || !name || !*name)
        return NULL;
    CLEANUP_JSON cJSON *list = NULL;
    CLEANUP_FREE char *root = root_of(api_version);
    if (ctl_get(server, root, api_version, &list, NULL) < 0)
        return NULL;
    const cJSON *resource = find_resource(list, json_str(owner, "kind"));
    if (!resource)
        return NULL;
    CLEANUP_FREE char *plural = kube_percent_encode(json_str(resource, "name"));
    CLEANUP_FREE char *in = kube_percent_encode(namespace);
    CLEANUP_FREE char *own = kube_percent_encode(name);
    return json_bool_or(resource, "namespaced", false)
               ? xasprintf("%s/namespaces/%s/%s/%s", root, in, plural, own)
               : xasprintf("%s/%s/%s", root, plural, own);
}

static bool is_gone(struct ctl_server *server, const cJSON *owner, const char *namespace)
{
    CLEANUP_FREE char *path = path_of(server, owner, namespace);
    CLEANUP_JSON cJSON *object = NULL;
    if (!path)
        return false;
    int r = ctl_get(server, path, json_str(owner, "name"), &object, NULL);
    return r == -ERROR_NOT_FOUND || (r == 0 && !str_equal(kube_object_uid(object), json_str(owner, "uid")));
}

cJSON *ctl_find_gone_owners(struct ctl_server *server, const cJSON *object)
{
    cJSON *gone = json_new_array();
    const cJSON *owner = NULL;
    cJSON_ArrayForEach (owner, json_path(object, "metadata", "ownerReferences", NULL))
        if (json_str(owner, "uid") && is_gone(server, owner, kube_object_namespace(object)))
            json_append_str(gone, json_str(owner, "uid"));
    return gone;
}
