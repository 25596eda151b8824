/* SPDX-License-Identifier: Apache-2.0
 *
 * What kube-controller-manager does with StatefulSets, as far as handing one over depends on it: its
 * revisions (the newest whose data is the template's is the one that all pods must run, whoever made it),
 * orphans that it adopts, pods that it makes, pods on another revision that it makes anew, one at a time, and
 * status. Writes as a client does, never hit by a fault. Not modelled: partitions and OnDelete (such a set is
 * left alone and its status says so), claims' retention, history limits. */
#include "kubesim/kinds.h"

#include "base/sha256.h"
#include "base/time_text.h"

#define LOOK_AFTER_US (20 * US_PER_MS)
enum { HASH_LENGTH = 10, REPLICAS_MAX = 1000 };

struct set {
    struct kubesim *sim;
    cJSON *object; /* a copy */
    const char *namespace;
    const char *name;
    const char *uid;
    const cJSON *spec;
    struct selector *selector;
    char *revision; /* that its pods must run */
    int64_t replicas, start;
    int64_t there, ready, updated;
};

void statefulsets_look_soon(struct kubesim *sim)
{
    if (sim->options.statefulsets)
        sim->sets_due_us = MIN(sim->sets_due_us, sim_now_us(sim) + LOOK_AFTER_US);
}

void kubesim_run_statefulsets(struct kubesim *sim)
{
    sim->options.statefulsets = true;
    statefulsets_look_soon(sim);
}

static int ask(struct kubesim *sim, const char *method, const char *type, cJSON *body, const char *format,
               ...) __attribute__((format(printf, 5, 6)));
static int ask(struct kubesim *sim, const char *method, const char *type, cJSON *body, const char *format,
               ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *path = xvasprintf(format, args);
    va_end(args);
    CLEANUP_FREE char *text = body ? json_print(body) : NULL;
    json_delete(body);
    struct kubesim_response response;
    kubesim_handle(
        sim,
        &(struct kubesim_request){.method = method,
                                  .path = path,
                                  .content_type = type,
                                  .user = "system:serviceaccount:kube-system:statefulset-controller",
                                  .body = text,
                                  .body_length = text ? strlen(text) : 0,
                                  .no_faults = true},
        &response);
    int status = response.status;
    kubesim_response_done(&response);
    return status;
}

#define JSON_TYPE "application/json"
#define MERGE_TYPE "application/merge-patch+json"

/* --- owners --------------------------------------------------------------------------------------------- */

static const cJSON *controller_of(const cJSON *object)
{
    const cJSON *owner = NULL;
    cJSON_ArrayForEach (owner, json_path(object, "metadata", "ownerReferences", NULL))
        if (json_bool_or(owner, "controller", false))
            return owner;
    return NULL;
}

static bool is_mine(const struct set *set, const cJSON *object)
{
    return str_equal(json_str(controller_of(object), "uid"), set->uid);
}

static cJSON *owner_reference(const struct set *set)
{
    cJSON *owner = json_new_object();
    json_add_str(owner, "apiVersion", "apps/v1");
    json_add_str(owner, "kind", "StatefulSet");
    json_add_str(owner, "name", set->name);
    json_add_str(owner, "uid", set->uid);
    json_add_bool(owner, "controller", true);
    json_add_bool(owner, "blockOwnerDeletion", true);
    return owner;
}

static void adopt(const struct set *set, const char *root, const char *plural, const cJSON *object)
{
    cJSON *patch = json_new_object();
    cJSON *metadata = json_add_object(patch, "metadata");
    json_add_str(metadata, "uid", meta_str(object, "uid"));
    cJSON *owners = json_add_array(metadata, "ownerReferences");
    const cJSON *owner = NULL;
    cJSON_ArrayForEach (owner, json_path(object, "metadata", "ownerReferences", NULL))
        json_append_item(owners, json_copy(owner));
    json_append_item(owners, owner_reference(set));
    (void)ask(set->sim, "PATCH", MERGE_TYPE, patch, "%s/namespaces/%s/%s/%s", root, set->namespace, plural,
              meta_str(object, "name"));
}

/* --- revisions ------------------------------------------------------------------------------------------ */

static cJSON *template_data(const struct set *set)
{
    cJSON *data = json_new_object();
    cJSON *template = json_copy(json_get(set->spec, "template"));
    json_set_str(template, "$patch", "replace");
    json_add_item(json_add_object(data, "spec"), "template", template);
    return data;
}

/* As Go's encoder spells it: see revisions.c for what happens to data that is spelt otherwise. */
static char *as_go_spells(const cJSON *data)
{
    CLEANUP_FREE char *text = json_print_sorted(data);
    struct buf spelt = BUF_INIT(16 << 20);
    for (const char *at = text; *at; at++) {
        if (strchr("<>&", *at))
            buf_addf(&spelt, "\\u%04x", (unsigned)*at);
        else
            buf_add_char(&spelt, *at);
    }
    return buf_take(&spelt);
}

static void create_revision(struct set *set, cJSON *data, int64_t number)
{
    CLEANUP_FREE char *text = as_go_spells(data);
    uint8_t digest[SHA256_SIZE];
    sha256_once(text, strlen(text), digest);
    char hash[HASH_LENGTH + 1];
    for (size_t i = 0; i < HASH_LENGTH; i++)
        hash[i] = "bcdfghjklm2456789"[digest[i] % 17];
    hash[HASH_LENGTH] = '\0';
    set->revision = xasprintf("%s-%s", set->name, hash);
    cJSON *object = json_new_object();
    cJSON *metadata = json_add_object(object, "metadata");
    json_add_str(metadata, "name", set->revision);
    cJSON *labels = json_path(set->spec, "template", "metadata", "labels", NULL);
    json_add_item(metadata, "labels", labels ? json_copy(labels) : json_new_object());
    json_add_str(json_get(metadata, "labels"), "controller.kubernetes.io/hash", hash);
    json_append_item(json_add_array(metadata, "ownerReferences"), owner_reference(set));
    json_add_item(object, "data", json_new_raw(text));
    json_add_int64(object, "revision", number);
    (void)ask(set->sim, "POST", JSON_TYPE, object, "/apis/apps/v1/namespaces/%s/controllerrevisions",
              set->namespace);
}

/* Own ones and orphans count alike; of those that say the same the highest number wins, then the youngest. */
static void find_revision(struct set *set)
{
    const struct kind *kind = kind_find(set->sim, "apps", "controllerrevisions");
    CLEANUP_JSON cJSON *data = template_data(set);
    CLEANUP_JSON cJSON *found = NULL;
    int64_t highest = 0, best = -1;
    for (size_t i = 0; i < kind->object_count; i++) {
        const cJSON *tree = object_tree(kind->objects[i]);
        const cJSON *controller = controller_of(tree);
        if (!str_equal(meta_str(tree, "namespace"), set->namespace) || meta_is_deleting(tree) ||
            (controller && !is_mine(set, tree)) ||
            !selector_match_labels(set->selector, json_path(tree, "metadata", "labels", NULL)))
            continue;
        int64_t number = json_int64_or(tree, "revision", 0);
        highest = MAX(highest, number);
        if (!json_equal(json_get(tree, "data"), data) || number < best)
            continue;
        best = number;
        json_delete(found);
        found = json_copy(tree);
    }
    if (!found) {
        create_revision(set, data, highest + 1);
        return;
    }
    set->revision = xstrdup(meta_str(found, "name"));
    if (!controller_of(found))
        adopt(set, "/apis/apps/v1", "controllerrevisions", found);
}

/* --- pods ----------------------------------------------------------------------------------------------- */

static int64_t ordinal_of(const struct set *set, const char *pod)
{
    size_t length = strlen(set->name);
    if (strncmp(pod, set->name, length) != 0 || pod[length] != '-')
        return -1;
    const char *digits = pod + length + 1;
    bool is_number =
        *digits && digits[strspn(digits, "0123456789")] == '\0' && (*digits != '0' || !digits[1]);
    return is_number ? strtoll(digits, NULL, 10) : -1;
}

static bool is_ready(const cJSON *pod)
{
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, json_path(pod, "status", "conditions", NULL))
        if (str_equal(json_str(condition, "type"), "Ready"))
            return str_equal(json_str(condition, "status"), "True");
    return false;
}

static const char *revision_of(const cJSON *pod)
{
    return json_path_str(pod, "metadata", "labels", "controller-revision-hash", NULL);
}

static void create_claims(const struct set *set, cJSON *pod_spec, int64_t ordinal)
{
    const cJSON *template = NULL;
    cJSON_ArrayForEach (template, json_get(set->spec, "volumeClaimTemplates")) {
        const char *volume = json_path_str(template, "metadata", "name", NULL);
        CLEANUP_FREE char *name = xasprintf("%s-%s-%lld", volume, set->name, (long long)ordinal);
        cJSON *claim = json_new_object();
        json_add_str(json_add_object(claim, "metadata"), "name", name);
        json_add_item(claim, "spec", json_copy(json_get(template, "spec")));
        (void)ask(set->sim, "POST", JSON_TYPE, claim, "/api/v1/namespaces/%s/persistentvolumeclaims",
                  set->namespace);
        cJSON *volumes = json_get(pod_spec, "volumes");
        cJSON *one = json_new_object();
        json_add_str(one, "name", volume);
        json_add_str(json_add_object(one, "persistentVolumeClaim"), "claimName", name);
        json_append_item(volumes ? volumes : json_add_array(pod_spec, "volumes"), one);
    }
}

static void create_pod(const struct set *set, int64_t ordinal)
{
    CLEANUP_FREE char *name = xasprintf("%s-%lld", set->name, (long long)ordinal);
    CLEANUP_FREE char *index = xasprintf("%lld", (long long)ordinal);
    cJSON *pod = json_copy(json_get(set->spec, "template"));
    cJSON *metadata = json_ensure_object(pod, "metadata");
    json_set_str(metadata, "name", name);
    cJSON *labels = json_ensure_object(metadata, "labels");
    json_set_str(labels, "controller-revision-hash", set->revision);
    json_set_str(labels, "statefulset.kubernetes.io/pod-name", name);
    json_set_str(labels, "apps.kubernetes.io/pod-index", index);
    json_append_item(json_add_array(metadata, "ownerReferences"), owner_reference(set));
    cJSON *spec = json_ensure_object(pod, "spec");
    json_set_str(spec, "hostname", name);
    if (json_str(set->spec, "serviceName"))
        json_set_str(spec, "subdomain", json_str(set->spec, "serviceName"));
    create_claims(set, spec, ordinal);
    (void)ask(set->sim, "POST", JSON_TYPE, pod, "/api/v1/namespaces/%s/pods", set->namespace);
}

static void delete_pod(const struct set *set, const cJSON *pod)
{
    (void)ask(set->sim, "DELETE", NULL, NULL, "/api/v1/namespaces/%s/pods/%s", set->namespace,
              meta_str(pod, "name"));
}

/* The pods of the set as copies, by index; those that are too many are deleted. */
static void collect(struct set *set, cJSON **pods)
{
    const struct kind *kind = kind_find(set->sim, "", "pods");
    CLEANUP_JSON cJSON *orphans = json_new_array();
    CLEANUP_JSON cJSON *surplus = json_new_array();
    for (size_t i = 0; i < kind->object_count; i++) {
        const cJSON *tree = object_tree(kind->objects[i]);
        int64_t ordinal = ordinal_of(set, meta_str(tree, "name"));
        bool fits = str_equal(meta_str(tree, "namespace"), set->namespace) && ordinal >= 0 &&
                    selector_match_labels(set->selector, json_path(tree, "metadata", "labels", NULL));
        if (!fits || (controller_of(tree) && !is_mine(set, tree)))
            continue;
        if (!controller_of(tree) && !meta_is_deleting(tree))
            json_append_item(orphans, json_copy(tree));
        if (ordinal >= set->start && ordinal < set->start + set->replicas)
            pods[ordinal - set->start] = json_copy(tree);
        else if (!meta_is_deleting(tree))
            json_append_item(surplus, json_copy(tree));
    }
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, orphans)
        adopt(set, "/api/v1", "pods", pod);
    cJSON_ArrayForEach (pod, surplus)
        delete_pod(set, pod);
}

static void count(struct set *set, cJSON *const *pods)
{
    for (int64_t i = 0; i < set->replicas; i++) {
        if (!pods[i] || meta_is_deleting(pods[i]))
            continue;
        set->there++;
        set->ready += is_ready(pods[i]);
        set->updated += str_equal(revision_of(pods[i]), set->revision);
    }
}

static void work(struct set *set, cJSON *const *pods)
{
    bool ordered = !str_equal(json_str(set->spec, "podManagementPolicy"), "Parallel");
    for (int64_t i = 0; i < set->replicas; i++) {
        if (!pods[i])
            create_pod(set, set->start + i);
        if (ordered && (!pods[i] || !is_ready(pods[i])))
            return;
    }
    if (set->there < set->replicas || set->ready < set->replicas)
        return;
    for (int64_t i = set->replicas - 1; i >= 0; i--) {
        if (str_equal(revision_of(pods[i]), set->revision))
            continue;
        delete_pod(set, pods[i]);
        return;
    }
}

/* --- the set -------------------------------------------------------------------------------------------- */

static void write_status(const struct set *set)
{
    cJSON *status = json_new_object();
    json_add_int64(status, "observedGeneration",
                   json_int64_or(json_get(set->object, "metadata"), "generation", 0));
    json_add_int64(status, "replicas", set->there);
    json_add_int64(status, "readyReplicas", set->ready);
    json_add_int64(status, "availableReplicas", set->ready);
    json_add_int64(status, "currentReplicas", set->updated);
    json_add_int64(status, "updatedReplicas", set->updated);
    json_add_str(status, "updateRevision", set->revision);
    const char *current = json_path_str(set->object, "status", "currentRevision", NULL);
    json_add_str(status, "currentRevision", current && set->updated < set->there ? current : set->revision);
    if (json_equal(status, json_get(set->object, "status"))) {
        json_delete(status);
        return;
    }
    cJSON *patch = json_new_object();
    json_add_item(patch, "status", status);
    (void)ask(set->sim, "PATCH", MERGE_TYPE, patch, "/apis/apps/v1/namespaces/%s/statefulsets/%s/status",
              set->namespace, set->name);
}

static bool is_modelled(const struct set *set)
{
    const cJSON *strategy = json_get(set->spec, "updateStrategy");
    return str_equal(json_str(strategy, "type"), "RollingUpdate") &&
           json_int64_or(json_get(strategy, "rollingUpdate"), "partition", 0) == 0 &&
           set->replicas <= REPLICAS_MAX;
}

static void say_not_modelled(const struct set *set)
{
    if (json_path(set->object, "status", "conditions", NULL))
        return;
    cJSON *patch = json_new_object();
    cJSON *condition = json_new_object();
    json_add_str(condition, "type", "KubesimModels");
    json_add_str(condition, "status", "False");
    json_add_str(condition, "message",
                 "kubesim runs StatefulSets with RollingUpdate and without partition only");
    json_append_item(json_add_array(json_add_object(patch, "status"), "conditions"), condition);
    (void)ask(set->sim, "PATCH", MERGE_TYPE, patch, "/apis/apps/v1/namespaces/%s/statefulsets/%s/status",
              set->namespace, set->name);
}

static void sync(struct kubesim *sim, cJSON *object)
{
    struct set set = {.sim = sim,
                      .object = object,
                      .namespace = meta_str(object, "namespace"),
                      .name = meta_str(object, "name"),
                      .uid = meta_str(object, "uid"),
                      .spec = json_get(object, "spec")};
    set.replicas = json_int64_or(set.spec, "replicas", 1);
    set.start = json_int64_or(json_get(set.spec, "ordinals"), "start", 0);
    if (meta_is_deleting(object) ||
        selector_from_tree(json_get(set.spec, "selector"), &set.selector, NULL) < 0)
        return;
    if (is_modelled(&set)) {
        cJSON **pods = xcalloc((size_t)set.replicas + 1, sizeof(*pods));
        find_revision(&set);
        collect(&set, pods);
        count(&set, pods);
        work(&set, pods);
        write_status(&set);
        for (int64_t i = 0; i < set.replicas; i++)
            json_delete(pods[i]);
        free(pods);
    } else {
        say_not_modelled(&set);
    }
    selector_free(set.selector);
    free(set.revision);
}

void statefulsets_tick(struct kubesim *sim)
{
    if (sim->sets_due_us > sim_now_us(sim))
        return;
    sim->sets_due_us = INT64_MAX;
    const struct kind *kind = kind_find(sim, "apps", "statefulsets");
    CLEANUP_JSON cJSON *copies = json_new_array();
    for (size_t i = 0; i < kind->object_count; i++)
        json_append_item(copies, json_copy(object_tree(kind->objects[i])));
    cJSON *object = NULL;
    cJSON_ArrayForEach (object, copies)
        sync(sim, object);
}
