/* SPDX-License-Identifier: Apache-2.0
 *
 * Pods as the server has them, one an ordinal, and what their kubelet really runs. */
#include "judge_parts.h"

#include "kubesim/model.h"
#include "neoset/fact.h"

#include <stdio.h>

/* A kubelet that was shown an older spec is through with its sync. */
#define SYNC_US (5 * US_PER_S)

static const cJSON *condition(const cJSON *object, const char *type)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_path(object, "status", "conditions", NULL)) {
        if (str_equal(json_str(item, "type"), type))
            return item;
    }
    return NULL;
}

static int status_of(const cJSON *object, const char *type)
{
    const char *status = json_str(condition(object, type), "status");
    return str_equal(status, "True") ? 1 : status ? -1 : 0;
}

static bool has_gate(const cJSON *pod)
{
    const cJSON *gate = NULL;
    cJSON_ArrayForEach (gate, json_path(pod, "spec", "readinessGates", NULL)) {
        if (str_equal(json_str(gate, "conditionType"), "apps.neo.io/in-place-ready"))
            return true;
    }
    return false;
}

static bool is_owned_by(const cJSON *object, const char *uid)
{
    const cJSON *owner = NULL;
    cJSON_ArrayForEach (owner, json_path(object, "metadata", "ownerReferences", NULL)) {
        if (json_bool_or(owner, "controller", false) && str_equal(json_str(owner, "uid"), uid))
            return true;
    }
    return false;
}

static bool waits_with_error(const cJSON *pod)
{
    const cJSON *container = NULL;
    cJSON_ArrayForEach (container, json_path(pod, "status", "containerStatuses", NULL)) {
        const char *reason = json_path_str(container, "state", "waiting", "reason", NULL);
        if (reason && strcmp(reason, "ContainerCreating") != 0 && strcmp(reason, "PodInitializing") != 0)
            return true;
    }
    return false;
}

bool seen_pod_is_serving(const struct seen_pod *pod)
{
    return pod->there && pod->ours && !pod->deleting && !pod->ended && pod->ready &&
           (!pod->has_gate || pod->gate == 1);
}

/* --- taking in ------------------------------------------------------------------------------------------ */

static void copy_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text ? text : "");
}

static void read_pod(const struct seen_set *set, const cJSON *tree, struct seen_pod *pod)
{
    const cJSON *metadata = json_get(tree, "metadata"), *status = json_get(tree, "status");
    pod->there = true;
    copy_text(pod->uid, sizeof(pod->uid), json_str(metadata, "uid"));
    copy_text(pod->name, sizeof(pod->name), json_str(metadata, "name"));
    copy_text(pod->revision, sizeof(pod->revision),
              json_path_str(metadata, "labels", "controller-revision-hash", NULL));
    pod->ours = is_owned_by(tree, set->uid);
    pod->deleting = json_str(metadata, "deletionTimestamp") != NULL;
    const char *phase = json_str(status, "phase");
    pod->ended = str_equal(phase, "Failed") || str_equal(phase, "Succeeded");
    pod->has_gate = has_gate(tree);
    pod->gate = status_of(tree, "apps.neo.io/in-place-ready");
    pod->ready = status_of(tree, "Ready") == 1;
    pod->scheduled = json_path_str(tree, "spec", "nodeName", NULL) != NULL;
    pod->generation = json_int64_or(metadata, "generation", 0);
    pod->observed = json_int64_or(status, "observedGeneration", 0);
    pod->is_old = pod->observed == 0 && status_of(tree, "Ready") != 0;
    pod->error_now = waits_with_error(tree);
}

/* A pod of another uid begins anew; what was done to the ordinal stays. */
static void begin_pod(struct judge *judge, struct seen_pod *pod)
{
    int64_t now_us = judge_now_us(judge);
    pod->created_us = pod->unready_since_us = pod->moved_us = now_us;
    pod->error_us = pod->gate_false_since_us = pod->seen_since_us = pod->scaled_away_us = NEVER_US;
    pod->unfinished = pod->stacked = pod->up = false;
    pod->patched_epoch = pod->deleted_epoch = -1;
    pod->done_generation = 0;
    pod->waited_us = 0;
}

static void note_times(struct judge *judge, struct seen_pod *pod, const struct seen_pod *before, bool by_us)
{
    int64_t now_us = judge_now_us(judge);
    bool serves = seen_pod_is_serving(pod);
    if (serves != before->serving) {
        pod->served_us = now_us;
        pod->lost_by_us = !serves && by_us;
        if (!serves)
            pod->good_until_us = by_us ? NEVER_US : now_us;
    }
    pod->serving = serves;
    if (pod->there || before->there)
        pod->there_us = now_us;
    bool up = pod->there && !pod->deleting && !pod->ended && pod->ready && (!pod->has_gate || pod->gate == 1);
    if (up && !pod->up)
        pod->up_us = now_us;
    pod->up = up;
    if (pod->ready || before->ready)
        pod->ready_us = now_us;
    if (!pod->ready)
        pod->ready_since_us = ALWAYS_US;
    else if (!before->ready || pod->ready_since_us == ALWAYS_US)
        pod->ready_since_us = now_us;
    if (pod->ready)
        pod->unready_since_us = ALWAYS_US;
    else if (pod->unready_since_us == ALWAYS_US)
        pod->unready_since_us = now_us;
    if (pod->error_now || before->error_now)
        pod->error_us = now_us;
    if (pod->gate == 1)
        pod->gate_false_since_us = NEVER_US;
    else if (pod->gate_false_since_us == NEVER_US)
        pod->gate_false_since_us = now_us;
    bool seen = pod->is_old || (pod->observed > 0 && pod->observed >= pod->generation);
    if (!seen)
        pod->seen_since_us = NEVER_US;
    else if (pod->seen_since_us == NEVER_US)
        pod->seen_since_us = now_us;
}

/* "<set>-<ordinal>"; -1: of none of the sets. */
static int ordinal_of(struct judge *judge, const char *name, struct seen_set **ret_set)
{
    const char *dash = strrchr(name, '-');
    if (!dash)
        return -1;
    CLEANUP_FREE char *set = xstrndup(name, (size_t)(dash - name));
    *ret_set = judge_set_of(judge, set);
    char *end = NULL;
    long ordinal = strtol(dash + 1, &end, 10);
    bool canonical =
        end != dash + 1 && !*end && (dash[1] != '0' || !dash[2]); /* "db-02" is none of its names */
    return *ret_set && canonical && ordinal < POD_ORDINALS_MAX ? (int)ordinal : -1;
}

static void tell_pod(struct judge *judge, const struct seen_pod *before, const struct seen_pod *pod)
{
    if (pod->serving != before->serving)
        report_tell(judge->report, "    %s is %s service", pod->name, pod->serving ? "in" : "out of");
}

/* A pod that fetches images serves nobody. */
static bool is_prefetch(struct judge *judge, const struct kubesim_change *change)
{
    size_t length = 0;
    if (!neoset_split_prefetch_name(change->name, &length))
        return false;
    CLEANUP_FREE char *name = xstrndup(change->name, length);
    struct seen_set *set = judge_set_of(judge, name);
    if (set)
        set->prefetches = MAX(set->prefetches + (change->after != NULL) - (change->before != NULL), 0);
    return true;
}

static void check_name(struct judge *judge, const struct kubesim_change *change)
{
    if (is_prefetch(judge, change))
        return;
    for (int i = 0; i < judge->world->draw->set_count; i++)
        if (change->after && is_owned_by(change->after, judge->sets[i].uid))
            judge_break(judge, 5, "pod %s belongs to %s, and its name is none of its names", change->name,
                        set_name(i));
}

/* What was called done is not replaced any more, unless it is changed anew. */
static void check_stays_done(struct judge *judge, const struct seen_pod *pod)
{
    struct kubelet_truth truths[TRUTHS_MAX];
    if (!pod->there || pod->done_generation == 0 || pod->done_generation != pod->generation)
        return;
    size_t count = kubelet_see_truth(sim_server_kubelet(judge->world->server), pod->uid, truths, TRUTHS_MAX);
    for (size_t i = 0; i < count; i++)
        if (truths[i].replaced > pod->replaced_when_done[i])
            judge_break(judge, 14, "%s was called done, and its kubelet has replaced %s since", pod->name,
                        truths[i].name);
}

void judge_take_pod(struct judge *judge, const struct kubesim_change *change)
{
    struct seen_set *set = NULL;
    int ordinal = ordinal_of(judge, change->name, &set);
    if (ordinal < 0) {
        check_name(judge, change);
        return;
    }
    struct seen_pod *pod = &set->pods[ordinal];
    struct seen_pod before = *pod;
    const struct seen_key *key = judge_key_of(judge, change->audit_id);
    if (key)
        judge_move(judge, set, ordinal, change, key);
    if (change->after) {
        read_pod(set, change->after, pod);
        if (strcmp(pod->uid, before.uid) != 0) {
            begin_pod(judge, pod);
            before.serving = before.ready = before.error_now = false;
        }
    } else {
        pod->there = false;
    }
    if (!change->user)
        pod->restored = true;
    else if (str_starts_with(change->user, "system:node:") &&
             judge_now_us(judge) - judge->rewound_us >= SYNC_US)
        pod->restored = false;
    if (change->user) /* a storage that is restored is no kubelet's doing */
        check_stays_done(judge, pod);
    note_times(judge, pod, &before, key != NULL);
    tell_pod(judge, &before, pod);
}

/* --- the kubelet's own books ---------------------------------------------------------------------------- */

const cJSON *judge_find(struct judge *judge, const char *group, const char *plural, const char *name)
{
    const struct kind *kind = kind_find(sim_server_kubesim(judge->world->server), group, plural);
    const struct object *object = kind ? store_find(kind, "default", name) : NULL;
    return object ? object_tree(object) : NULL;
}

const cJSON *judge_pod_tree(struct judge *judge, const char *name)
{
    return judge_find(judge, "", "pods", name);
}

static const char *image_of(const cJSON *tree, const char *container)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_path(tree, "spec", "containers", NULL)) {
        if (str_equal(json_str(item, "name"), container))
            return json_str(item, "image");
    }
    return NULL;
}

/* What our gate says that ran when the kubelet had seen the update: what came later would be the last. */
static bool is_in_witness(const cJSON *tree, const char *container_id)
{
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, json_path(tree, "status", "conditions", NULL)) {
        const char *message = json_str(condition, "message");
        if (str_equal(json_str(condition, "type"), STEP_GATE_CONDITION) && message && container_id)
            return strstr(message, container_id) != NULL;
    }
    return false;
}

/* The update's own record of what ran before it names the digest that runs now. */
static bool has_digest_of_before(const cJSON *tree, const cJSON *container)
{
    const char *state = kube_object_annotation(tree, STEP_STATE_ANNOTATION);
    const char *digest = json_str(container, "imageID");
    return state && digest && *digest && strstr(state, digest);
}

bool judge_is_beyond_proof(const struct seen_pod *pod, const cJSON *tree)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_path(tree, "status", "containerStatuses", NULL)) {
        const char *spec = image_of(tree, json_str(item, "name"));
        const char *told = json_str(item, "image");
        bool is_renamed = spec && told && !strchr(spec, '@') && !str_ends_with(told, spec);
        if (is_renamed && (pod->is_old || is_in_witness(tree, json_str(item, "containerID"))))
            return true;
        if (pod->is_old && has_digest_of_before(tree, item))
            return true;
    }
    return false;
}

bool judge_runs_another(struct judge *judge, const struct seen_pod *pod, const cJSON *tree)
{
    struct kubelet_truth truths[TRUTHS_MAX];
    size_t count = kubelet_see_truth(sim_server_kubelet(judge->world->server), pod->uid, truths, TRUTHS_MAX);
    for (size_t i = 0; i < count; i++)
        if (truths[i].image && !str_equal(truths[i].image, image_of(tree, truths[i].name)))
            return true;
    return false;
}

bool judge_runs_its_spec(struct judge *judge, const struct seen_pod *pod, const cJSON *tree)
{
    struct kubelet_truth truths[TRUTHS_MAX];
    size_t count = kubelet_see_truth(sim_server_kubelet(judge->world->server), pod->uid, truths, TRUTHS_MAX);
    for (size_t i = 0; i < count; i++)
        if (!str_equal(truths[i].image, image_of(tree, truths[i].name)))
            return false;
    return count > 0;
}
