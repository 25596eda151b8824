/* SPDX-License-Identifier: Apache-2.0 */
#include "strangers.h"

#define PODS_PATH "/api/v1/namespaces/default/pods"
#define MAPS_PATH "/api/v1/namespaces/default/configmaps"
#define REVISIONS_PATH "/apis/apps/v1/namespaces/default/controllerrevisions"
#define STRANGER "stranger"
#define CACHE "cache/"
#define INJECTED "mesh"

static void post(struct world *world, const char *path, const cJSON *object)
{
    CLEANUP_FREE char *text = json_print_sorted(object);
    (void)sim_server_ask(world->server, "POST", path, "application/json", text, NULL);
}

static cJSON *new_object(const char *version, const char *kind, const char *name)
{
    cJSON *object = json_new_object();
    json_add_str(object, "apiVersion", version);
    json_add_str(object, "kind", kind);
    json_add_str(json_add_object(object, "metadata"), "name", name);
    return object;
}

/* --- pods of others ------------------------------------------------------------------------------------- */

/* Somebody who is there: the collector takes what has an owner that is not. */
static void add_other_owner(struct world *world, cJSON *metadata)
{
    CLEANUP_JSON cJSON *map = new_object("v1", "ConfigMap", "other");
    post(world, MAPS_PATH, map);
    CLEANUP_JSON cJSON *there = sim_server_get(world->server, MAPS_PATH "/other");
    cJSON *owner = json_new_object();
    json_add_str(owner, "apiVersion", "v1");
    json_add_str(owner, "kind", "ConfigMap");
    json_add_str(owner, "name", "other");
    json_add_str(owner, "uid", json_path_str(there, "metadata", "uid", NULL));
    json_add_bool(owner, "controller", true);
    json_append_item(json_add_array(metadata, "ownerReferences"), owner);
}

static void add_container(cJSON *spec, const char *name, const char *image)
{
    cJSON *container = json_new_object();
    json_add_str(container, "name", name);
    json_add_str(container, "image", image);
    cJSON *containers = json_get(spec, "containers");
    json_append_item(containers ? containers : json_add_array(spec, "containers"), container);
}

void strangers_come(struct world *world, int set, int ordinal, enum stranger_kind kind)
{
    const struct set_draw *draw = &world->draw->sets[set];
    CLEANUP_FREE char *name = kind == STRANGER_ELSEWHERE
                                  ? xasprintf("%s-0%d", set_name(set), ordinal)
                                  : xasprintf("%s-%d", set_name(set), draw->start + ordinal);
    CLEANUP_JSON cJSON *pod = new_object("v1", "Pod", name);
    cJSON *metadata = json_get(pod, "metadata");
    cJSON *labels = json_add_object(metadata, "labels");
    json_add_str(labels, "app", kind == STRANGER_UNLABELLED ? STRANGER : world_label(world, set));
    json_add_str(json_add_object(metadata, "annotations"), STRANGER, "1");
    if (kind == STRANGER_OWNED)
        add_other_owner(world, metadata);
    cJSON *spec = json_add_object(pod, "spec");
    json_add_int64(spec, "terminationGracePeriodSeconds", 2);
    add_container(spec, "db", "db:v1");
    post(world, PODS_PATH, pod);
}

static bool is_taken(const cJSON *pod)
{
    const cJSON *owner = NULL;
    cJSON_ArrayForEach (owner, json_path(pod, "metadata", "ownerReferences", NULL)) {
        if (str_equal(json_str(owner, "kind"), "NeoSet"))
            return true;
    }
    return false;
}

void strangers_go(struct world *world)
{
    CLEANUP_JSON cJSON *list = sim_server_get(world->server, PODS_PATH);
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, json_get(list, "items")) {
        if (!json_path_str(pod, "metadata", "annotations", STRANGER, NULL) || is_taken(pod))
            continue;
        CLEANUP_FREE char *path = xasprintf(PODS_PATH "/%s", json_path_str(pod, "metadata", "name", NULL));
        (void)sim_server_ask(world->server, "DELETE", path, "application/json", "{}", NULL);
    }
}

/* --- a StatefulSet was here ----------------------------------------------------------------------------- */

static void leave_revision(struct world *world, int set, const char *name, int number, const cJSON *template)
{
    CLEANUP_JSON cJSON *revision = new_object("apps/v1", "ControllerRevision", name);
    json_add_str(json_add_object(json_get(revision, "metadata"), "labels"), "app", world_label(world, set));
    json_add_int64(revision, "revision", number);
    cJSON *copy = json_copy(template);
    json_add_str(copy, "$patch", "replace");
    json_add_item(json_add_object(json_add_object(revision, "data"), "spec"), "template", copy);
    post(world, REVISIONS_PATH, revision);
}

static void leave_pod(struct world *world, int set, int ordinal, const char *revision, const cJSON *template)
{
    CLEANUP_FREE char *name = xasprintf("%s-%d", set_name(set), ordinal);
    CLEANUP_FREE char *index = xasprintf("%d", ordinal);
    CLEANUP_JSON cJSON *pod = new_object("v1", "Pod", name);
    cJSON *labels = json_copy(json_path(template, "metadata", "labels", NULL));
    json_add_str(labels, "controller-revision-hash", revision);
    json_add_str(labels, "statefulset.kubernetes.io/pod-name", name);
    json_add_str(labels, "apps.kubernetes.io/pod-index", index);
    json_add_item(json_get(pod, "metadata"), "labels", labels);
    cJSON *spec = json_copy(json_get(template, "spec"));
    json_add_str(spec, "hostname", name);
    json_add_str(spec, "subdomain", set_name(set));
    json_add_item(pod, "spec", spec);
    post(world, PODS_PATH, pod);
}

void strangers_leave_pods(struct world *world, int set)
{
    const struct set_draw *draw = &world->draw->sets[set];
    CLEANUP_JSON cJSON *template = world_template(world, set);
    CLEANUP_JSON cJSON *older = json_copy(template);
    json_set_str(json_path(older, "spec", "containers", NULL)->child, "image", "db:v0");
    CLEANUP_FREE char *name = xasprintf("%s-6c5bd9f4b7", set_name(set));
    CLEANUP_FREE char *older_name = xasprintf("%s-7d9c8f6f5c", set_name(set));
    leave_revision(world, set, older_name, 1, older);
    leave_revision(world, set, name, 2, template);
    /* Every other world was left in the middle of a rollout. */
    int moved_from = world->draw->seed & 1 ? draw->replicas / 2 : 0;
    for (int i = 0; i < draw->replicas; i++)
        leave_pod(world, set, draw->start + i, i >= moved_from ? name : older_name,
                  i >= moved_from ? template : older);
}

/* --- the webhook ---------------------------------------------------------------------------------------- */

const char *webhook_original_image(const char *image)
{
    return image && str_starts_with(image, CACHE) ? image + strlen(CACHE) : image;
}

bool webhook_is_injected(const char *container)
{
    return str_equal(container, INJECTED);
}

static void rewrite_images(cJSON *containers)
{
    cJSON *container = NULL;
    cJSON_ArrayForEach (container, containers) {
        const char *image = json_str(container, "image");
        if (!image || str_starts_with(image, CACHE))
            continue;
        CLEANUP_FREE char *cached = xasprintf(CACHE "%s", image);
        json_set_str(container, "image", cached);
    }
}

void webhook_mutate(cJSON *pod, bool create)
{
    cJSON *spec = json_get(pod, "spec");
    rewrite_images(json_get(spec, "initContainers"));
    rewrite_images(json_get(spec, "containers"));
    if (!create || json_path(pod, "metadata", "annotations", INJECTED, NULL))
        return;
    json_set_str(json_ensure_object(json_get(pod, "metadata"), "annotations"), INJECTED, "injected");
    add_container(spec, INJECTED, CACHE INJECTED ":v1");
    json_set_str(spec, "schedulerName", "cached");
}
