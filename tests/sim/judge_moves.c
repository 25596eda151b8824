/* SPDX-License-Identifier: Apache-2.0
 *
 * Our writes to pods: may this one be moved now (1, 2, 4, 9), only once (3, 15), after its decision (10), and
 * does it become what its revision says (13)? */
#include "judge_parts.h"

#include <limits.h>

enum move_kind { MOVE_CREATE, MOVE_DRAIN, MOVE_PATCH, MOVE_METADATA, MOVE_DELETE, MOVE_NONE };

struct move {
    struct judge *judge;
    struct seen_set *set;
    struct seen_pod *pod; /* as it was before the write */
    int ordinal;
    enum move_kind kind;
    const struct kubesim_change *change;
    const struct seen_key *key;
    int64_t since_us;             /* the controller knew what was so at some moment since then */
    const struct seen_status *at; /* the decision in force when this was decided; NULL: unknown */
    const char *revision;         /* of the pod after the write */
};

/* --- what was so, in all the time that counts ----------------------------------------------------------- */

struct bounds {
    int budget_most, needed_least, fence_least, fence_most;
    bool always_paused, always_in_range, ever_recreate;
    int index_most, index_least, timeout_least_s, min_ready_least_s;
};

static struct bounds bounds_of(const struct seen_set *set, int ordinal, int64_t since_us)
{
    struct bounds bounds = {.needed_least = INT_MAX,
                            .fence_least = INT_MAX,
                            .index_least = INT_MAX,
                            .index_most = INT_MIN,
                            .timeout_least_s = INT_MAX,
                            .min_ready_least_s = INT_MAX,
                            .always_paused = true,
                            .always_in_range = true};
    unsigned at = 0;
    for (const struct seen_spec *spec; (spec = seen_spec_since(set, since_us, &at)) != NULL;) {
        int index = ordinal - spec->start;
        bounds.budget_most = MAX(bounds.budget_most, spec->budget);
        bounds.needed_least = MIN(bounds.needed_least, spec->replicas - spec->budget);
        bounds.fence_least = MIN(bounds.fence_least, spec->fence);
        bounds.fence_most = MAX(bounds.fence_most, spec->fence);
        bounds.index_most = MAX(bounds.index_most, index);
        bounds.index_least = MIN(bounds.index_least, index);
        bounds.timeout_least_s = MIN(bounds.timeout_least_s, spec->timeout_s);
        bounds.min_ready_least_s = MIN(bounds.min_ready_least_s, spec->min_ready_s);
        bounds.always_paused = bounds.always_paused && spec->pause;
        bounds.always_in_range = bounds.always_in_range && index >= 0 && index < spec->replicas;
        bounds.ever_recreate = bounds.ever_recreate || spec->recreate;
    }
    return bounds;
}

/* It may have been available, as far as the controller could know. */
static bool may_be_available(const struct move *move, int ordinal)
{
    struct seen_pod *pod = &move->set->pods[ordinal];
    struct judge *judge = move->judge;
    if (pod->uid[0] && pod->good_until_us > move->since_us)
        return true;
    if (pod->scaled_away_us > move->key->decided_us)
        return true; /* this one arrives after what was decided later */
    if (!pod->serving)
        return false;
    struct bounds bounds = bounds_of(move->set, ordinal, move->since_us);
    /* Services go by Ready, also of one whose gate was opened again before its kubelet had seen it closed. */
    int64_t served_us = judge_now_us(judge) - pod->ready_since_us + US_PER_S;
    if (served_us < bounds.min_ready_least_s * US_PER_S && !judge->clock_jumped && move->since_us != NEVER_US)
        return false;
    return judge_runs_its_spec(judge, pod, judge_pod_tree(judge, pod->name));
}

#define PROVEN_AGAIN_US (25 * US_PER_S)

/* The set that has it now was made after it, a moment ago: what an earlier set had proven of it is lost. */
static bool is_taken_over(const struct move *move)
{
    unsigned at = 0;
    int64_t made_us = NEVER_US;
    for (const struct seen_spec *spec;
         (spec = seen_spec_since(move->set, NEVER_US, &at)) != NULL && spec->there;)
        made_us = spec->at_us;
    return move->pod->created_us < made_us && judge_now_us(move->judge) - made_us < PROVEN_AGAIN_US;
}

/* It may have been broken: a container waits with an error, our update of it is unfinished, or it was not
 * Ready for the readiness timeout. */
static bool may_be_broken(const struct move *move)
{
    const struct seen_pod *pod = move->pod;
    struct judge *judge = move->judge;
    if (pod->ready && pod->ready_since_us < move->since_us)
        return false;
    if (pod->error_now || pod->error_us > move->since_us || pod->unfinished || judge->clock_jumped)
        return true;
    /* What an earlier run had proven of a target that was given up since is not in status: a new run has to
     * prove it again, and a startup probe holds that up; of one that is down all the time nothing can be
     * proven. */
    bool is_down_since = !pod->ready && pod->unready_since_us <= judge->started_us;
    if (judge_now_us(judge) - judge->started_us < PROVEN_AGAIN_US || is_down_since || is_taken_over(move))
        return true;
    /* Made for a target that was given up, and it never ran. */
    if (move->at && pod->up_us < pod->created_us && strcmp(pod->revision, move->at->stable) != 0)
        return true;
    struct bounds bounds = bounds_of(move->set, move->ordinal, move->since_us);
    int64_t unready_us = judge_now_us(judge) - MIN(pod->unready_since_us, judge_now_us(judge));
    return unready_us + 2 * US_PER_S >= bounds.timeout_least_s * US_PER_S;
}

/* It serves, and its last update was not proven in time: as with a broken one the stage does not matter. */
static bool may_be_past_proof(const struct move *move)
{
    const struct seen_pod *pod = move->pod;
    struct bounds bounds = bounds_of(move->set, move->ordinal, move->since_us);
    int64_t ready_us = judge_now_us(move->judge) - pod->ready_since_us + 2 * US_PER_S;
    return pod->unfinished && (move->judge->clock_jumped || ready_us >= bounds.timeout_least_s * US_PER_S);
}

static const char *name_of(const struct move *move)
{
    return move->change->name;
}

/* --- 1: availability ------------------------------------------------------------------------------------ */

static void check_availability(const struct move *move)
{
    /* What was drained before goes on; the drain was its start. */
    bool goes_on = move->pod->gate == -1 && !move->pod->serving && move->pod->lost_by_us;
    if (move->kind == MOVE_METADATA || goes_on || may_be_broken(move))
        return;
    int others = 0;
    struct bounds bounds = bounds_of(move->set, move->ordinal, move->since_us);
    for (int i = 0; i < POD_ORDINALS_MAX; i++)
        others += i != move->ordinal && may_be_available(move, i);
    if (others < bounds.needed_least)
        judge_break(move->judge, 1,
                    "%s is taken out of service (%s) while only %d others are available, and %d must be",
                    name_of(move), move->key->action, others, bounds.needed_least);
}

/* --- 2: how many are moved ------------------------------------------------------------------------------ */

/* It was moved for this target, and is still on its way or there. One that is missing or going and was scaled
 * away meanwhile is none: it comes back as a new one. */
static bool is_moved(const struct move *move, int ordinal)
{
    const struct seen_pod *pod = &move->set->pods[ordinal];
    if (!move->at || pod->moved_epoch != move->at->epoch)
        return false;
    if (!pod->there || pod->deleting)
        return (move->at->left | move->at->done) & (1U << ordinal);
    return pod->gate == -1 || strcmp(pod->revision, move->at->target) == 0;
}

static void check_spread(const struct move *move)
{
    struct bounds bounds = bounds_of(move->set, move->ordinal, move->since_us);
    int down = 1, canaries = 0;
    for (int i = 0; i < POD_ORDINALS_MAX; i++) {
        const struct seen_pod *other = &move->set->pods[i];
        if (i == move->ordinal || !is_moved(move, i) ||
            !bounds_of(move->set, i, move->since_us).always_in_range)
            continue;
        down += !may_be_available(move, i);
        canaries += other->moved_available;
    }
    if (move->kind != MOVE_METADATA && down > bounds.budget_most)
        judge_break(move->judge, 2,
                    "%s is moved (%s) while %d pods that were moved are unavailable, at a budget of %d",
                    name_of(move), move->key->action, down - 1, bounds.budget_most);
    bool due = move->at && move->set->proven_at_epoch && move->set->epoch == move->at->epoch &&
               move->set->done_ever == 0 && strcmp(move->at->stable, move->at->target) != 0;
    if (due && canaries > 0 && move->pod->serving)
        judge_break(move->judge, 2, "%s is moved (%s) while the canary is not done yet", name_of(move),
                    move->key->action);
}

/* --- 3, 15: once ---------------------------------------------------------------------------------------- */

static void check_once(const struct move *move)
{
    struct seen_pod *pod = move->pod;
    int *epoch = move->kind == MOVE_DELETE ? &pod->deleted_epoch : &pod->patched_epoch;
    if (!move->at || move->kind == MOVE_DRAIN)
        return;
    if (*epoch == move->at->epoch)
        judge_break(move->judge, 3, "%s (uid %s) is %s twice for one change of target", name_of(move),
                    pod->uid, move->kind == MOVE_DELETE ? "deleted" : "patched");
    *epoch = move->at->epoch;
}

static void check_retry(const struct move *move)
{
    const struct seen_pod *pod = move->pod;
    if (!move->at || strcmp(pod->revision, move->at->target) != 0)
        return;
    if (move->at->done & (1U << move->ordinal))
        judge_break(move->judge, 15, "%s is deleted for a target on which it is done", name_of(move));
    /* Of which of two updates its container is may be told by nothing that its kubelet reports. */
    if (pod->serving && pod->served_us < move->since_us && !pod->stacked &&
        judge_runs_its_spec(move->judge, pod, move->change->before) &&
        !judge_is_beyond_proof(pod, move->change->before))
        judge_break(move->judge, 15, "%s runs the target and is in service, and is deleted", name_of(move));
}

/* --- 4, 9, 10: fence, pause, decisions -------------------------------------------------------------------
 */

static void check_fence(const struct move *move)
{
    struct bounds bounds = bounds_of(move->set, move->ordinal, move->since_us);
    if (bounds.index_most < bounds.fence_least)
        judge_break(move->judge, 4, "%s is touched (%s) below the fence, which is %d", name_of(move),
                    move->key->action, bounds.fence_least);
    if (bounds.always_paused)
        judge_break(move->judge, 9, "an update of %s is started (%s) while the set is paused", name_of(move),
                    move->key->action);
}

/* It was on its way when the storage was restored, and arrived: what allowed it is taken back. */
static bool is_of_lost_history(const struct move *move)
{
    const struct judge *judge = move->judge;
    return judge->rewound_us > 0 && move->key->decided_us <= judge->rewound_us;
}

static void check_decision(const struct move *move)
{
    const struct seen_status *at = move->at;
    if (!at || is_of_lost_history(move))
        return;
    if (move->kind == MOVE_PATCH && strcmp(at->target, move->revision) != 0)
        judge_break(move->judge, 10, "%s is patched to %s, and the target in status is %s", name_of(move),
                    move->revision, at->target);
    if (!(at->left & (1U << move->ordinal)))
        judge_break(move->judge, 10, "%s is moved (%s), and status did not say that it may leave stable",
                    name_of(move), move->key->action);
    struct bounds bounds = bounds_of(move->set, move->ordinal, move->since_us);
    if (bounds.index_most < at->stage && !may_be_broken(move) && !may_be_past_proof(move))
        judge_break(move->judge, 10, "%s is moved (%s) below the stage, which is %d", name_of(move),
                    move->key->action, at->stage);
}

/* --- the writes ----------------------------------------------------------------------------------------- */

static void judge_update(const struct move *move)
{
    check_fence(move);
    check_decision(move);
    check_once(move);
    check_availability(move);
    check_spread(move);
    if (move->at && move->kind != MOVE_METADATA && move->pod->moved_epoch != move->at->epoch) {
        move->pod->moved_epoch = move->at->epoch;
        move->pod->moved_available = move->pod->serving;
    }
    if (move->kind == MOVE_PATCH) {
        move->pod->stacked = move->pod->unfinished;
        move->pod->unfinished = true;
    }
    if (move->kind == MOVE_PATCH || move->kind == MOVE_METADATA)
        judge_equals_template(move->judge, move->set, move->change->after, move->revision);
}

/* The server lets go of a pod without a node at once. Of one that runs it is without only in a storage that
 * was restored from before its binding: nobody but its kubelet can know. */
static bool had_node(const struct move *move)
{
    return json_path_str(move->change->before, "spec", "nodeName", NULL) != NULL;
}

static void judge_delete(const struct move *move)
{
    struct bounds bounds = bounds_of(move->set, move->ordinal, move->since_us);
    struct kubelet_truth truths[TRUTHS_MAX];
    size_t count =
        kubelet_see_truth(sim_server_kubelet(move->judge->world->server), move->pod->uid, truths, TRUTHS_MAX);
    for (size_t i = 0; i < count && !move->change->after; i++)
        if (truths[i].running && !move->pod->deleting && had_node(move))
            judge_break(move->judge, 5, "%s is removed while its container %s runs", name_of(move),
                        truths[i].name);
    if (!bounds.always_in_range && move->pod->serving)
        move->pod->scaled_away_us = move->key->decided_us;
    if (!bounds.always_in_range || move->pod->ended)
        return;
    if (move->at && strcmp(move->pod->revision, move->at->target) == 0)
        check_retry(move);
    else
        judge_update(move);
}

/* A fresh pod has our gate; one that was adopted need not. */
static void check_has_gate(const struct move *move)
{
    const cJSON *gate = NULL;
    cJSON_ArrayForEach (gate, json_path(move->change->after, "spec", "readinessGates", NULL)) {
        if (str_equal(json_str(gate, "conditionType"), "apps.neo.io/in-place-ready"))
            return;
    }
    judge_break(move->judge, 13, "%s is created without our gate", name_of(move));
}

static void judge_create(const struct move *move)
{
    struct bounds bounds = bounds_of(move->set, move->ordinal, move->since_us);
    check_has_gate(move);
    judge_equals_template(move->judge, move->set, move->change->after, move->revision);
    const struct seen_status *at = move->at;
    if (!at || strcmp(move->revision, at->stable) == 0)
        return;
    if (bounds.index_most < bounds.fence_least)
        judge_break(move->judge, 4, "%s is created on %s below the fence (%d), and stable is %s",
                    name_of(move), move->revision, bounds.fence_least, at->stable);
    if (strcmp(move->revision, at->target) != 0)
        judge_break(move->judge, 10, "%s is created on %s, which is neither stable nor target", name_of(move),
                    move->revision);
    if (at->proven && !(at->left & (1U << move->ordinal)))
        judge_break(move->judge, 4, "%s is created on the unproven target %s, and never left stable",
                    name_of(move), move->revision);
}

void judge_note_delete(struct judge *judge, const struct seen_key *key)
{
    for (int i = 0; i < judge->world->draw->set_count; i++) {
        struct seen_set *set = &judge->sets[i];
        for (int k = 0; k < POD_ORDINALS_MAX; k++) {
            struct seen_pod *pod = &set->pods[k];
            if (strcmp(pod->name, key->name) != 0 || strcmp(key->action, "delete") != 0)
                continue;
            if (strcmp(pod->uid, pod->deleted_uid) == 0)
                judge_break(judge, 3, "%s (uid %s) is deleted twice", pod->name, pod->uid);
            memcpy(pod->deleted_uid, pod->uid, sizeof(pod->uid));
        }
    }
}

/* --- what it is ----------------------------------------------------------------------------------------- */

static bool same_images(const cJSON *a, const cJSON *b)
{
    const cJSON *left = json_path(a, "spec", "containers", NULL),
                *right = json_path(b, "spec", "containers", NULL);
    const cJSON *one = left ? left->child : NULL, *two = right ? right->child : NULL;
    for (; one && two; one = one->next, two = two->next)
        if (!str_equal(json_str(one, "image"), json_str(two, "image")))
            return false;
    return !one && !two;
}

static int gate_of(const cJSON *pod)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_path(pod, "status", "conditions", NULL)) {
        if (str_equal(json_str(item, "type"), "apps.neo.io/in-place-ready"))
            return str_equal(json_str(item, "status"), "True") ? 1 : -1;
    }
    return 0;
}

static const char *revision_of(const cJSON *pod)
{
    const char *revision = json_path_str(pod, "metadata", "labels", "controller-revision-hash", NULL);
    return revision ? revision : "";
}

static const char *state_of(const cJSON *pod)
{
    return json_path_str(pod, "metadata", "annotations", "apps.neo.io/in-place-state", NULL);
}

static enum move_kind kind_of(const struct kubesim_change *change)
{
    const cJSON *before = change->before, *after = change->after;
    if (!before)
        return MOVE_CREATE;
    bool goes = !after || json_path_str(after, "metadata", "deletionTimestamp", NULL);
    if (goes)
        return json_path_str(before, "metadata", "deletionTimestamp", NULL) ? MOVE_NONE : MOVE_DELETE;
    if (!same_images(before, after))
        return MOVE_PATCH;
    if (strcmp(revision_of(before), revision_of(after)) != 0)
        return MOVE_METADATA;
    if (!str_equal(state_of(before), state_of(after)))
        return MOVE_PATCH;
    return gate_of(after) == -1 && gate_of(before) != -1 ? MOVE_DRAIN : MOVE_NONE;
}

/* An adopted pod gets the name under which we know what it runs. */
static bool is_relabelled(struct judge *judge, const struct kubesim_change *change)
{
    return judge_same_template(judge_find(judge, "apps", "controllerrevisions", revision_of(change->before)),
                               judge_find(judge, "apps", "controllerrevisions", revision_of(change->after)));
}

static void check_drain(const struct move *move)
{
    if (move->at && strcmp(move->pod->revision, move->at->target) == 0)
        judge_break(move->judge, 12, "the gate of %s is closed, and it is on the target already",
                    name_of(move));
}

void judge_move(struct judge *judge, struct seen_set *set, int ordinal, const struct kubesim_change *change,
                const struct seen_key *key)
{
    struct move move = {
        .judge = judge,
        .set = set,
        .pod = &set->pods[ordinal],
        .ordinal = ordinal,
        .kind = kind_of(change),
        .change = change,
        .key = key,
        .since_us = key->decided_us == NEVER_US ? NEVER_US : judge_since_us(judge, key->decided_us),
        .at = key->decided_us == NEVER_US
                  ? NULL
                  : seen_status_at(set, key->decided_us, judge_since_us(judge, key->decided_us)),
        .revision = change->after ? revision_of(change->after) : "",
    };
    if (move.kind == MOVE_METADATA && is_relabelled(judge, change))
        return;
    switch (move.kind) {
    case MOVE_CREATE:
        judge_create(&move);
        break;
    case MOVE_DELETE:
        judge_delete(&move);
        break;
    case MOVE_DRAIN:
        check_drain(&move);
        judge_update(&move);
        break;
    case MOVE_PATCH:
    case MOVE_METADATA:
        judge_update(&move);
        break;
    case MOVE_NONE:
        break;
    }
}
