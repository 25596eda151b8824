/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/owners.h"

#include "kube/object.h"

struct kube_owners {
    struct kube_client *client;
    char *namespace;
    cJSON *owners;
    const cJSON *owner; /* that is asked about */
    int64_t timeout_us;
    struct kube_call *call;
    cJSON *gone;
    kube_owners_done *done;
    void *context;
};

static void owners_free(struct kube_owners *owners)
{
    json_delete(owners->owners);
    json_delete(owners->gone);
    free(owners->namespace);
    free(owners);
}

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

/* Where the owner is read; the caller's. */
static char *path_of(const struct kube_owners *owners, const cJSON *resource)
{
    CLEANUP_FREE char *root = root_of(json_str(owners->owner, "apiVersion"));
    CLEANUP_FREE char *plural = kube_percent_encode(json_str(resource, "name"));
    CLEANUP_FREE char *in = kube_percent_encode(owners->namespace);
    CLEANUP_FREE char *own = kube_percent_encode(json_str(owners->owner, "name"));
    return json_bool_or(resource, "namespaced", false)
               ? xasprintf("%s/namespaces/%s/%s/%s", root, in, plural, own)
               : xasprintf("%s/%s/%s", root, plural, own);
}

static void ask_next(struct kube_owners *owners);

/* The API server itself says that there is no object of this name. */
static bool says_absent(const struct kube_answer *answer)
{
    const char *name = json_path_str(answer->body, "details", "name", NULL);
    return !answer->stranger && answer->http == 404 && name && *name;
}

static void found(void *context, const struct kube_answer *answer)
{
    struct kube_owners *owners = context;
    owners->call = NULL;
    const char *uid = json_str(owners->owner, "uid");
    if (says_absent(answer) || (answer->outcome == KUBE_OK && !str_equal(kube_object_uid(answer->body), uid)))
        json_append_str(owners->gone, uid);
    ask_next(owners);
}

static void discovered(void *context, const struct kube_answer *answer)
{
    struct kube_owners *owners = context;
    owners->call = NULL;
    const cJSON *resource =
        answer->outcome == KUBE_OK ? find_resource(answer->body, json_str(owners->owner, "kind")) : NULL;
    if (!resource) {
        ask_next(owners);
        return;
    }
    CLEANUP_FREE char *path = path_of(owners, resource);
    owners->call = kube_get(owners->client, path, owners->timeout_us, found, owners);
}

static bool can_be_asked_about(const cJSON *owner)
{
    const char *name = json_str(owner, "name");
    return json_str(owner, "uid") && json_str(owner, "apiVersion") && name && *name;
}

static const cJSON *first_from(const cJSON *owner)
{
    while (owner && !can_be_asked_about(owner))
        owner = owner->next;
    return owner;
}

static void ask(struct kube_owners *owners)
{
    CLEANUP_FREE char *root = root_of(json_str(owners->owner, "apiVersion"));
    owners->call = kube_get(owners->client, root, owners->timeout_us, discovered, owners);
}

static void ask_next(struct kube_owners *owners)
{
    owners->owner = first_from(owners->owner->next);
    if (owners->owner) {
        ask(owners);
        return;
    }
    owners->done(owners->context, STEAL(owners->gone));
    owners_free(owners);
}

struct kube_owners *kube_owners_ask(struct kube_client *client, const cJSON *object, int64_t timeout_us,
                                    kube_owners_done *done, void *context)
{
    const cJSON *references = json_path(object, "metadata", "ownerReferences", NULL);
    if (!references || !first_from(references->child) || !kube_object_namespace(object))
        return NULL;
    struct kube_owners *owners = xcalloc(1, sizeof(*owners));
    *owners = (struct kube_owners){.client = client,
                                   .namespace = xstrdup(kube_object_namespace(object)),
                                   .owners = json_copy(references),
                                   .timeout_us = timeout_us,
                                   .gone = json_new_array(),
                                   .done = done,
                                   .context = context};
    owners->owner = first_from(owners->owners->child);
    ask(owners);
    return owners;
}

void kube_owners_cancel(struct kube_owners **owners)
{
    if (!*owners)
        return;
    kube_call_cancel((*owners)->client, &(*owners)->call);
    owners_free(STEAL(*owners));
}
