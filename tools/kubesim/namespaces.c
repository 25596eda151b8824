/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kinds.h"

static void prepare_create(struct call *call, cJSON *object)
{
    (void)call;
    cJSON *finalizers = json_new_array();
    json_append_str(finalizers, "kubernetes");
    json_set_item(json_ensure_object(object, "spec"), "finalizers", finalizers);
    json_set_str(json_ensure_object(object, "status"), "phase", "Active");
}

static void set_defaults(struct call *call, cJSON *object)
{
    (void)call;
    const char *name = meta_str(object, "name");
    if (name)
        json_set_str(json_ensure_object(meta_of(object), "labels"), "kubernetes.io/metadata.name", name);
}

const struct kind_hooks namespace_hooks = {.set_defaults = set_defaults, .prepare_create = prepare_create};

void namespaces_make_initial(struct kubesim *sim)
{
    static const char *const names[] = {"default", "kube-node-lease", "kube-public", "kube-system"};
    const struct kubesim_request request = {.method = "POST", .path = "/api/v1/namespaces"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct kubesim_response response = {0};
        struct call call = {
            .sim = sim, .request = &request, .response = &response, .field_manager = "kubesim"};
        cJSON *object = json_new_object();
        json_add_str(json_add_object(object, "metadata"), "name", names[i]);
        struct version *version = NULL;
        ENSURE(create_object(&call, kind_find(sim, "", "namespaces"), object, &version) == 0);
        version_unref(version);
    }
}

/* Deletes what is in a namespace; true while something is left. */
static bool empty(struct kubesim *sim, const char *namespace)
{
    CLEANUP_FREE char *prefix = xasprintf("%s/", namespace);
    bool left = false;
    for (size_t k = 0; k < sim->kind_count; k++) {
        struct kind *kind = sim->kinds[k];
        if (!(kind->flags & KIND_NAMESPACED))
            continue;
        for (size_t i = store_lower_bound(kind, prefix); i < kind->object_count;) {
            struct object *object = kind->objects[i];
            if (!str_starts_with(object->key, prefix))
                break;
            bool gone =
                meta_is_deleting(object_tree(object)) ? false : delete_quietly(sim, kind, object, NULL);
            left = left || !gone;
            i += !gone;
        }
    }
    return left;
}

bool namespaces_tick(struct kubesim *sim)
{
    struct kind *kind = kind_find(sim, "", "namespaces");
    bool left = false;
    for (size_t i = 0; i < kind->object_count;) {
        struct object *object = kind->objects[i];
        bool going = meta_is_deleting(object_tree(object));
        if (going && !empty(sim, meta_str(object_tree(object), "name")) &&
            meta_finalizer_count(object_tree(object)) == 0) {
            store_remove(sim, kind, object, json_copy(object_tree(object)));
            continue;
        }
        left = left || going;
        i++;
    }
    return left;
}
