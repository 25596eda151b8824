/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/statefulset_parts.h"

#define RETRY_US US_PER_S

/* --- what pods are there -------------------------------------------------------------------------------- */

static int64_t ordinal_of(const struct set *set, const char *pod)
{
    size_t length = strlen(set->name);
    if (strncmp(pod, set->name, length) != 0 || pod[length] != '-')
        return -1;
    const char *digits = pod + length + 1;
    size_t count = strspn(digits, "0123456789");
    bool is_number = count > 0 && count < 10 && digits[count] == '\0' && (*digits != '0' || !digits[1]);
    return is_number ? strtoll(digits, NULL, 10) : -1;
}

static const cJSON *ready_condition(const cJSON *pod)
{
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, json_path(pod, "status", "conditions", NULL))
        if (str_equal(json_str(condition, "type"), "Ready"))
            return condition;
    return NULL;
}

static bool is_ready(const cJSON *pod)
{
    return str_equal(json_path_str(pod, "status", "phase", NULL), "Running") &&
           str_equal(json_str(ready_condition(pod), "status"), "True");
}

/* Ready for minReadySeconds; else notes when it will have been. */
static bool is_available(struct set *set, const cJSON *pod)
{
    int64_t minimum_s = json_int64_or(set->spec, "minReadySeconds", 0);
    const char *since = json_str(ready_condition(pod), "lastTransitionTime");
    int64_t since_us = 0;
    if (!is_ready(pod))
        return false;
    if (minimum_s == 0 || !since || time_parse_rfc3339(since, &since_us, NULL) < 0)
        return true;
    int64_t due_us = since_us + minimum_s * US_PER_S;
    if (due_us > sim_now_us(set->sim))
        set->retry_us = MIN(set->retry_us, due_us);
    return due_us <= sim_now_us(set->sim);
}

static const char *revision_of(const cJSON *pod)
{
    const char *name = json_path_str(pod, "metadata", "labels", "controller-revision-hash", NULL);
    return name ? name : "";
}

static void add_condemned(struct set *set, const cJSON *pod)
{
    int64_t ordinal = ordinal_of(set, meta_str(pod, "name"));
    int at = 0;
    const cJSON *other = NULL;
    cJSON_ArrayForEach (other, set->condemned)
        at += ordinal_of(set, meta_str(other, "name")) < ordinal;
    tree_insert(set->condemned, at, json_copy(pod));
}

void set_collect_pods(struct set *set)
{
    const struct kind *kind = kind_find(set->sim, "", "pods");
    CLEANUP_JSON cJSON *orphans = json_new_array();
    CLEANUP_FREE char *prefix = xasprintf("%s/%s-", set->namespace, set->name);
    set->pods = xcalloc((size_t)set->replicas + 1, sizeof(set->pods[0]));
    set->condemned = json_new_array();
    for (size_t i = store_lower_bound(kind, prefix); i < kind->object_count; i++) {
        const cJSON *tree = object_tree(kind->objects[i]);
        int64_t ordinal = ordinal_of(set, meta_str(tree, "name"));
        if (!str_starts_with(kind->objects[i]->key, prefix))
            break;
        bool orphan = !set_controller_of(tree);
        bool fits =
            ordinal >= 0 && selector_match_labels(set->selector, json_path(tree, "metadata", "labels", NULL));
        /* One that is being deleted is not adopted, and one that is not adopted is none of the set's. */
        if (!fits || (orphan && (set->dying || meta_is_deleting(tree))) || (!orphan && !set_owns(set, tree)))
            continue;
        if (orphan)
            json_append_item(orphans, json_copy(tree));
        if (ordinal >= set->start && ordinal < set->start + set->replicas)
            set->pods[ordinal - set->start] = version_hold(kind->objects[i]->version);
        else
            add_condemned(set, tree);
    }
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, orphans)
        set_adopt(set, "/api/v1", "pods", pod);
}

static void count_one(struct set *set, const cJSON *pod)
{
    set->there++;
    set->ready += is_ready(pod);
    set->available += is_available(set, pod);
    if (meta_is_deleting(pod))
        return;
    set->on_current += strcmp(revision_of(pod), meta_str(set->current, "name")) == 0;
    set->updated += strcmp(revision_of(pod), meta_str(set->update, "name")) == 0;
}

void set_count_pods(struct set *set)
{
    for (int64_t i = 0; i < set->replicas; i++)
        if (set->pods[i])
            count_one(set, set_pod(set, i));
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, set->condemned)
        count_one(set, pod);
}

/* --- claims --------------------------------------------------------------------------------------------- */

static bool deletes_when(const struct set *set, const char *when)
{
    return str_equal(json_path_str(set->spec, "persistentVolumeClaimRetentionPolicy", when, NULL), "Delete");
}

static cJSON *pod_reference(const cJSON *pod)
{
    cJSON *owner = json_new_object();
    json_add_str(owner, "apiVersion", "v1");
    json_add_str(owner, "kind", "Pod");
    json_add_str(owner, "name", meta_str(pod, "name"));
    json_add_str(owner, "uid", meta_str(pod, "uid"));
    json_add_bool(owner, "controller", true);
    json_add_bool(owner, "blockOwnerDeletion", true);
    return owner;
}

/* Whom a claim goes with: its pod when that is scaled away, its set, or nobody (NULL). The caller's. */
static cJSON *claim_owner(const struct set *set, const cJSON *pod, bool condemned)
{
    if (condemned && deletes_when(set, "whenScaled"))
        return pod_reference(pod);
    return deletes_when(set, "whenDeleted") ? set_owner_reference(set) : NULL;
}

/* The owners that a claim has but for sets of this name and its pod, and the wanted one. The caller's. */
static cJSON *claim_owners(const struct set *set, const cJSON *claim, const cJSON *pod, cJSON *wanted)
{
    cJSON *owners = json_new_array();
    const cJSON *owner = NULL;
    cJSON_ArrayForEach (owner, json_path(claim, "metadata", "ownerReferences", NULL)) {
        const char *uid = json_str(owner, "uid");
        if (!str_equal(uid, set->uid) && !str_equal(uid, meta_str(pod, "uid")))
            json_append_item(owners, json_copy(owner));
    }
    if (wanted)
        json_append_item(owners, wanted);
    return owners;
}

static void own_claims(const struct set *set, const cJSON *pod, bool condemned)
{
    const cJSON *template = NULL;
    cJSON_ArrayForEach (template, json_get(set->spec, "volumeClaimTemplates")) {
        CLEANUP_FREE char *name =
            xasprintf("%s-%s", json_path_str(template, "metadata", "name", NULL), meta_str(pod, "name"));
        const struct object *object =
            store_find(kind_find(set->sim, "", "persistentvolumeclaims"), set->namespace, name);
        if (!object)
            continue;
        const cJSON *claim = object_tree(object);
        const cJSON *present = json_path(claim, "metadata", "ownerReferences", NULL);
        cJSON *owners = claim_owners(set, claim, pod, claim_owner(set, pod, condemned));
        if (json_equal(owners, present) || (!present && !owners->child)) {
            json_delete(owners);
            continue;
        }
        cJSON *patch = json_new_object();
        json_add_item(json_add_object(patch, "metadata"), "ownerReferences", owners);
        (void)actor_ask(set->sim, &statefulset_actor, "PATCH", MERGE_TYPE, patch,
                        "/api/v1/namespaces/%s/persistentvolumeclaims/%s", set->namespace, name);
    }
}

static void create_claim(struct set *set, const cJSON *template, const char *name)
{
    if (store_find(kind_find(set->sim, "", "persistentvolumeclaims"), set->namespace, name))
        return;
    cJSON *claim = json_new_object();
    const cJSON *meta = json_get(template, "metadata");
    cJSON *metadata = json_add_object(claim, "metadata");
    json_add_str(metadata, "name", name);
    tree_copy_member(metadata, meta, "annotations");
    tree_copy_member(metadata, meta, "labels");
    cJSON *labels = json_ensure_object(metadata, "labels");
    const cJSON *label = NULL;
    cJSON_ArrayForEach (label, json_path(set->spec, "selector", "matchLabels", NULL))
        json_set_item(labels, label->string, json_copy(label));
    json_add_item(claim, "spec", json_copy(json_get(template, "spec")));
    if (actor_ask(set->sim, &statefulset_actor, "POST", JSON_TYPE, claim,
                  "/api/v1/namespaces/%s/persistentvolumeclaims", set->namespace) != 201)
        set->retry_us = MIN(set->retry_us, sim_now_us(set->sim) + RETRY_US);
}

/* --- pods ----------------------------------------------------------------------------------------------- */

/* The claims' volumes come first, and instead of those of the template that have their names. */
static void add_volumes(const struct set *set, cJSON *pod_spec, const char *pod)
{
    cJSON *volumes = json_new_array();
    const cJSON *template = NULL;
    cJSON_ArrayForEach (template, json_get(set->spec, "volumeClaimTemplates")) {
        const char *name = json_path_str(template, "metadata", "name", NULL);
        CLEANUP_FREE char *claim = xasprintf("%s-%s", name, pod);
        cJSON *volume = json_new_object();
        json_add_str(volume, "name", name);
        json_add_str(json_add_object(volume, "persistentVolumeClaim"), "claimName", claim);
        json_append_item(volumes, volume);
    }
    const cJSON *given = NULL;
    cJSON_ArrayForEach (given, json_get(pod_spec, "volumes")) {
        bool replaced = false;
        cJSON_ArrayForEach (template, json_get(set->spec, "volumeClaimTemplates"))
            replaced = replaced ||
                       str_equal(json_str(given, "name"), json_path_str(template, "metadata", "name", NULL));
        if (!replaced)
            json_append_item(volumes, json_copy(given));
    }
    if (volumes->child)
        json_set_item(pod_spec, "volumes", volumes);
    else
        json_delete(volumes);
}

/* Below the partition a new pod runs the current revision; with OnDelete, and else, the updated one. */
static const cJSON *revision_for(const struct set *set, int64_t index)
{
    return !set->on_delete && index < set->partition ? set->current : set->update;
}

static cJSON *new_pod(const struct set *set, int64_t index)
{
    int64_t ordinal = set->start + index;
    const cJSON *revision = revision_for(set, index);
    CLEANUP_FREE char *name = xasprintf("%s-%lld", set->name, (long long)ordinal);
    CLEANUP_FREE char *number = xasprintf("%lld", (long long)ordinal);
    cJSON *pod = json_copy(set_template_of(revision));
    json_remove(pod, "$patch");
    cJSON *metadata = json_ensure_object(pod, "metadata");
    json_set_str(metadata, "name", name);
    cJSON *labels = json_ensure_object(metadata, "labels");
    json_set_str(labels, "controller-revision-hash", meta_str(revision, "name"));
    json_set_str(labels, "statefulset.kubernetes.io/pod-name", name);
    json_set_str(labels, "apps.kubernetes.io/pod-index", number);
    json_append_item(json_add_array(metadata, "ownerReferences"), set_owner_reference(set));
    cJSON *spec = json_ensure_object(pod, "spec");
    json_set_str(spec, "hostname", name);
    if (json_str(set->spec, "serviceName"))
        json_set_str(spec, "subdomain", json_str(set->spec, "serviceName"));
    add_volumes(set, spec, name);
    return pod;
}

static void create_pod(struct set *set, int64_t index)
{
    cJSON *pod = new_pod(set, index);
    const cJSON *template = NULL;
    cJSON_ArrayForEach (template, json_get(set->spec, "volumeClaimTemplates")) {
        CLEANUP_FREE char *name = xasprintf("%s-%s", json_path_str(template, "metadata", "name", NULL),
                                            json_path_str(pod, "metadata", "name", NULL));
        create_claim(set, template, name);
    }
    CLEANUP_JSON cJSON *named = json_copy(pod);
    if (actor_ask(set->sim, &statefulset_actor, "POST", JSON_TYPE, pod, "/api/v1/namespaces/%s/pods",
                  set->namespace) == 201)
        own_claims(set, named, false);
    else
        set->retry_us = MIN(set->retry_us, sim_now_us(set->sim) + RETRY_US);
}

static void delete_pod(const struct set *set, const cJSON *pod)
{
    cJSON *options = json_new_object();
    json_add_str(json_add_object(options, "preconditions"), "uid", meta_str(pod, "uid"));
    (void)actor_ask(set->sim, &statefulset_actor, "DELETE", JSON_TYPE, options,
                    "/api/v1/namespaces/%s/pods/%s", set->namespace, meta_str(pod, "name"));
}

static bool has_ended(const cJSON *pod)
{
    const char *phase = json_path_str(pod, "status", "phase", NULL);
    return str_equal(phase, "Failed") || str_equal(phase, "Succeeded");
}

/* False: the others have to wait for this one. */
static bool work_on_replica(struct set *set, int64_t index)
{
    const cJSON *pod = set_pod(set, index);
    if (!pod) {
        create_pod(set, index);
        return !set->ordered;
    }
    if (has_ended(pod) && !meta_is_deleting(pod))
        delete_pod(set, pod);
    if (!meta_is_deleting(pod))
        own_claims(set, pod, false);
    return !set->ordered || (!meta_is_deleting(pod) && is_available(set, pod));
}

/* From the highest ordinal down. False: the rest has to wait. */
static bool work_on_condemned(struct set *set)
{
    for (int i = cJSON_GetArraySize(set->condemned) - 1; i >= 0; i--) {
        const cJSON *pod = cJSON_GetArrayItem(set->condemned, i);
        if (!meta_is_deleting(pod)) {
            own_claims(set, pod, true);
            delete_pod(set, pod);
        }
        if (set->ordered)
            return false;
    }
    return true;
}

static void update_pods(struct set *set)
{
    for (int64_t i = set->replicas - 1; i >= MAX(set->partition, 0); i--) {
        const cJSON *pod = set_pod(set, i);
        if (!pod)
            return;
        if (strcmp(revision_of(pod), meta_str(set->update, "name")) != 0 && !meta_is_deleting(pod)) {
            set->on_current -= strcmp(revision_of(pod), meta_str(set->current, "name")) == 0;
            delete_pod(set, pod);
            return;
        }
        if (meta_is_deleting(pod) || !is_ready(pod))
            return;
    }
}

void set_work_on_pods(struct set *set)
{
    for (int64_t i = 0; i < set->replicas; i++)
        if (!work_on_replica(set, i))
            return;
    if (work_on_condemned(set) && !set->on_delete)
        update_pods(set);
}
