/* SPDX-License-Identifier: Apache-2.0
 *
 * NeoSets as the server has them: specs, and statuses, which must not run ahead of the server (10) and call
 * done only what is done (14). */
#include "judge_parts.h"

#include "kube/object.h"
#include "kubesim/model.h"

#include <limits.h>
#include <stdio.h>

static void copy_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text ? text : "");
}

/* --- spec ----------------------------------------------------------------------------------------------- */

static int budget_of(const cJSON *strategy, int replicas)
{
    const char *text = json_str(strategy, "maxUnavailable");
    int64_t number =
        text ? strtoll(text, NULL, 10) * replicas / 100 : json_int64_or(strategy, "maxUnavailable", 1);
    return (int)MAX(number, 1);
}

static void take_spec(struct judge *judge, struct seen_set *set, const cJSON *object)
{
    const cJSON *spec = json_get(object, "spec"), *strategy = json_get(spec, "updateStrategy");
    const cJSON *in_place = json_get(strategy, "inPlaceUpdateStrategy");
    const cJSON *metadata = json_get(object, "metadata");
    int replicas = (int)json_int64_or(spec, "replicas", 1);
    struct seen_spec now = {
        .at_us = judge_now_us(judge),
        .there = object && !json_str(metadata, "deletionTimestamp"),
        .replicas = replicas,
        .start = (int)json_int64_or(json_get(spec, "ordinals"), "start", 0),
        .budget = budget_of(strategy, replicas),
        .fence = (int)json_int64_or(strategy, "partition", 0),
        .min_ready_s = (int)json_int64_or(spec, "minReadySeconds", 0),
        .timeout_s = (int)json_int64_or(in_place, "readinessTimeoutSeconds", 300),
        .grace_s = (int)json_int64_or(in_place, "gracePeriodSeconds", 0),
        .history = (int)json_int64_or(spec, "revisionHistoryLimit", 10),
        .pause = json_bool_or(strategy, "pause", false),
        .recreate = str_equal(json_str(strategy, "type"), "Recreate"),
        .generation = json_int64_or(metadata, "generation", 0),
    };
    const struct seen_spec *last = seen_spec_now(set);
    if (last && last->generation == now.generation && last->there == now.there)
        return;
    set->specs[set->spec_count++ % SPECS_MAX] = now;
}

/* --- status --------------------------------------------------------------------------------------------- */

static uint32_t bits_of(const cJSON *list)
{
    uint32_t bits = 0;
    const cJSON *item = NULL;
    int64_t ordinal = 0;
    cJSON_ArrayForEach (item, list) {
        if (json_node_int64(item, &ordinal) && ordinal >= 0 && ordinal < 32)
            bits |= 1U << ordinal;
    }
    return bits;
}

static void read_status(const cJSON *status, struct seen_status *ret)
{
    const char *target = json_str(status, "updateRevisionName");
    ret->present = target != NULL;
    copy_text(ret->target, sizeof(ret->target), target);
    copy_text(ret->stable, sizeof(ret->stable), json_str(status, "currentRevisionName"));
    ret->proven = json_bool_or(status, "currentRevisionProven", false);
    ret->stage = (int)json_int64_or(status, "currentPartition", 0);
    ret->done = bits_of(json_get(status, "doneOrdinals"));
    ret->left = bits_of(json_get(status, "leftStableOrdinals"));
}

static bool same_decision(const struct seen_status *a, const struct seen_status *b)
{
    return a->present == b->present && strcmp(a->target, b->target) == 0 &&
           strcmp(a->stable, b->stable) == 0 && a->proven == b->proven && a->stage == b->stage &&
           a->done == b->done && a->left == b->left;
}

/* Called done: what runs is what the spec asks for, and the kubelet will not restart it. */
static void check_done(struct judge *judge, struct seen_set *set, int ordinal, const struct seen_status *now)
{
    struct seen_pod *pod = &set->pods[ordinal];
    if (!pod->there || pod->deleting || strcmp(pod->revision, now->target) != 0)
        return; /* it was, when this was decided */
    if (pod->restored)
        return; /* nobody but its kubelet can know what runs there */
    const cJSON *tree = judge_pod_tree(judge, pod->name);
    struct kubelet_truth truths[TRUTHS_MAX];
    size_t count = kubelet_see_truth(sim_server_kubelet(judge->world->server), pod->uid, truths, TRUTHS_MAX);
    if (count == 0)
        return; /* its kubelet has forgotten it: it is going */
    if (!judge_runs_its_spec(judge, pod, tree))
        judge_break(judge, 14, "%s is called done on %s, and its kubelet still has to replace a container",
                    pod->name, now->target);
    pod->done_generation = pod->generation;
    pod->unfinished = pod->stacked = false;
    for (size_t i = 0; i < count; i++)
        pod->replaced_when_done[i] = truths[i].replaced;
}

static void check_decision(struct judge *judge, struct seen_set *set, const struct seen_status *old,
                           const struct seen_status *now)
{
    uint32_t fresh = now->done & ~(old && now->epoch == old->epoch ? old->done : 0);
    for (int i = 0; i < POD_ORDINALS_MAX; i++)
        if (fresh & (1U << i))
            check_done(judge, set, i, now);
    if (old && now->epoch == old->epoch && old->present && now->stage > old->stage)
        judge_break(judge, 10, "the stage of %s rises from %d to %d for one target", set_name(set->index),
                    old->stage, now->stage);
    if (old && old->proven && !now->proven)
        judge_break(judge, 10, "the stable revision of %s was proven and is not any more",
                    set_name(set->index));
}

/* The first of the pods first..last that is not there and good on the target, or -1. */
static int find_missing(const struct seen_set *set, const struct seen_status *now, int first, int last,
                        int64_t since_us)
{
    for (int ordinal = first; ordinal <= last; ordinal++) {
        const struct seen_pod *pod = &set->pods[ordinal];
        bool was_there = pod->there || pod->served_us > since_us;
        bool was_good = pod->serving || (pod->served_us > since_us && !pod->lost_by_us);
        if (!was_there || !was_good || strcmp(pod->revision, now->target) != 0)
            return ordinal;
    }
    return -1;
}

/* The stage fell: down to what the last fall began at, every pod is on the target and was available. It may
 * have been decided by any spec since then: where their ordinals start differently, one has to fit. */
static void check_fall(struct judge *judge, struct seen_set *set, const struct seen_status *old,
                       const struct seen_status *now, const struct seen_key *key)
{
    int64_t since_us = key ? judge_since_us(judge, key->decided_us) : NEVER_US;
    if (!old || !old->present || now->epoch != old->epoch || now->stage >= old->stage || !now->proven ||
        since_us == NEVER_US)
        return;
    int budget = 0, replicas_least = INT_MAX, replicas_most = 0, fence = 0;
    unsigned at = 0;
    for (const struct seen_spec *spec; (spec = seen_spec_since(set, since_us, &at)) != NULL;) {
        budget = MAX(budget, spec->budget);
        fence = MAX(fence, spec->fence);
        replicas_least = MIN(replicas_least, spec->replicas);
        replicas_most = MAX(replicas_most, spec->replicas);
    }
    if (now->stage >= replicas_least - 1 || replicas_most == 0)
        return; /* cut to what there is */
    if (!now->done)
        judge_break(judge, 10, "the stage of %s falls from %d to %d, and nothing is done",
                    set_name(set->index), old->stage, now->stage);
    int missing = -1;
    at = 0;
    for (const struct seen_spec *spec; (spec = seen_spec_since(set, since_us, &at)) != NULL;) {
        missing = find_missing(set, now, spec->start + MAX(now->stage + budget, fence),
                               spec->start + replicas_least - 1, since_us);
        if (missing < 0)
            return;
    }
    judge_break(judge, 10,
                "the stage of %s falls from %d to %d, and %s-%d is not there, or not on the target",
                set_name(set->index), old->stage, now->stage, set_name(set->index), missing);
}

static bool was_stable(const struct seen_set *set, const char *name)
{
    for (int i = 0; i < set->stable_name_count; i++)
        if (strcmp(set->stable_names[i], name) == 0)
            return true;
    return false;
}

static void note_stable_name(struct seen_set *set, const char *name)
{
    if (*name && !was_stable(set, name) && set->stable_name_count < STABLE_NAMES_MAX)
        copy_text(set->stable_names[set->stable_name_count++], NAME_MAX_HERE, name);
}

static void note_stable(struct seen_set *set, const struct seen_status *now)
{
    if (now->proven)
        note_stable_name(set, now->stable);
}

/* A set of before is there again with a restored storage: what it says was judged in its own time. */
static void note_restored(struct seen_set *set, const cJSON *status)
{
    const cJSON *name = NULL;
    cJSON_ArrayForEach (name, json_get(status, "provenRevisionNames"))
        note_stable_name(set, name->valuestring);
}

/* What an undo may go back to was the stable revision once, and complete. */
static void check_stable_names(struct judge *judge, const struct seen_set *set, const cJSON *status)
{
    const cJSON *names = json_get(status, "provenRevisionNames"), *name = NULL;
    if (set->stable_name_count == STABLE_NAMES_MAX)
        return; /* not all of them are known any more */
    cJSON_ArrayForEach (name, names) {
        if (!cJSON_IsString(name) || !was_stable(set, name->valuestring))
            judge_break(judge, 10, "the status of %s calls %s proven, and it was never the stable revision",
                        set_name(set->index), cJSON_IsString(name) ? name->valuestring : "something");
    }
}

static void take_status(struct judge *judge, struct seen_set *set, const cJSON *object, bool by_us,
                        bool exempt, const char *audit_id)
{
    struct seen_status now = {.at_us = judge_now_us(judge)};
    read_status(json_get(object, "status"), &now);
    const struct seen_status *old = seen_status_now(set);
    note_stable(set, &now);
    if (by_us)
        check_stable_names(judge, set, json_get(object, "status"));
    if (old && same_decision(old, &now))
        return;
    bool new_target = !old || strcmp(old->target, now.target) != 0;
    if (new_target) {
        set->epoch++;
        set->done_ever = 0;
        set->proven_at_epoch = set->was_proven;
        judge->report->rollouts += old && old->present && now.present && old->proven;
    }
    now.epoch = set->epoch;
    now.by_us = by_us;
    set->done_ever |= now.done;
    /* Who removes the status makes the set a new one; pods that are there prove it again. */
    set->was_proven = (set->was_proven && by_us) || now.proven;
    report_tell(judge->report, "    status of %s: stable %s, target %s, stage %d, done %x, left %x",
                set_name(set->index), now.stable, now.target, now.stage, now.done, now.left);
    if (by_us)
        check_decision(judge, set, old, &now);
    if (by_us)
        check_fall(judge, set, old, &now, judge_key_of(judge, audit_id));
    if (exempt)
        judge_break(judge, 10, "a write that only describes changes what %s has decided",
                    set_name(set->index));
    set->statuses[set->status_count++ % STATUSES_MAX] = now;
}

/* --- numbers that people read --------------------------------------------------------------------------- */

struct most {
    int ready, serving, updated, proven;
};

/* A patched pod is proven only when nothing runs that it does not ask for any more; one that its kubelet has
 * forgotten is going. */
static bool may_be_proven(struct judge *judge, const struct seen_pod *pod)
{
    struct kubelet_truth truth;
    const struct kubelet *kubelet = sim_server_kubelet(judge->world->server);
    return !pod->unfinished || kubelet_see_truth(kubelet, pod->uid, &truth, 1) == 0 ||
           !judge_runs_another(judge, pod, judge_pod_tree(judge, pod->name));
}

/* On the revision of this number: what a status counts before it may take that one as its target. */
static bool is_on_number(struct judge *judge, const struct seen_pod *pod, int64_t number)
{
    const cJSON *revision = judge_find(judge, "apps", "controllerrevisions", pod->revision);
    return revision && json_int64_or(revision, "revision", -1) == number;
}

static bool any_is_on_number(struct judge *judge, const struct seen_set *set, int64_t number)
{
    for (int i = 0; i < POD_ORDINALS_MAX; i++)
        if (set->pods[i].there && is_on_number(judge, &set->pods[i], number))
            return true;
    return false;
}

/* How many pods were so at some moment since then: no status may claim more. number: of the revision that it
 * speaks of; where no pod is on that, what it calls its target is meant. */
static struct most most_since(struct judge *judge, const struct seen_set *set,
                              const struct seen_status *status, int64_t number, int64_t since_us)
{
    struct most most = {0};
    bool by_number = any_is_on_number(judge, set, number);
    for (int i = 0; i < POD_ORDINALS_MAX; i++) {
        const struct seen_pod *pod = &set->pods[i];
        bool serving = pod->serving || pod->served_us > since_us;
        /* Somebody removed what names the target: it will be what it was. */
        bool updated = status && (pod->there || pod->there_us > since_us) &&
                       (!*status->target || (by_number ? is_on_number(judge, pod, number)
                                                       : strcmp(pod->revision, status->target) == 0));
        most.ready += pod->ready || pod->ready_us > since_us;
        most.serving += serving;
        most.updated += updated;
        most.proven += updated && may_be_proven(judge, pod);
    }
    return most;
}

static void check_number(struct judge *judge, int invariant, const struct seen_set *set,
                         const struct kubesim_change *change, const char *field, int most)
{
    int64_t before = json_int64_or(json_get(change->before, "status"), field, 0);
    int64_t after = json_int64_or(json_get(change->after, "status"), field, 0);
    if (after != before && after > most)
        judge_break(judge, invariant,
                    "the status of %s claims %s %lld, and the server never showed more than %d",
                    set_name(set->index), field, (long long)after, most);
}

/* The stable revision is among those that an undo may go back to, as soon as it is proven. */
static void check_stable_is_named(struct judge *judge, const struct seen_set *set, const cJSON *status,
                                  int64_t since_us)
{
    const struct seen_status *now = seen_status_now(set);
    const cJSON *revision = now ? judge_find(judge, "apps", "controllerrevisions", now->stable) : NULL;
    int64_t server_us = kubesim_now_us(sim_server_kubesim(judge->world->server));
    int64_t seen_for_us = judge_now_us(judge) - since_us + US_PER_S;
    if (!revision || server_us - kube_object_created_us(revision) < seen_for_us)
        return; /* made again a moment ago: it may not be known yet */
    unsigned at = 0;
    for (const struct seen_status *old; (old = seen_status_since(set, since_us, &at)) != NULL;)
        if (!old->proven || strcmp(old->stable, now->stable) != 0)
            return;
    if (!json_has_str(json_get(status, "provenRevisionNames"), now->stable))
        judge_break(judge, 10, "the status of %s does not call %s proven, and it is the stable revision",
                    set_name(set->index), now->stable);
}

static void check_numbers(struct judge *judge, struct seen_set *set, const struct kubesim_change *change)
{
    int64_t since_us = judge_since_us(judge, judge_sent_us(judge, change->audit_id));
    if (since_us == NEVER_US || !str_starts_with(change->audit_id, "neo-x-"))
        return;
    int64_t number = json_int64_or(json_get(change->after, "status"), "currentRevision", 0);
    struct most most = most_since(judge, set, seen_status_now(set), number, since_us);
    check_number(judge, 10, set, change, "readyReplicas", most.ready);
    check_number(judge, 10, set, change, "availableReplicas", most.serving);
    check_number(judge, 10, set, change, "updatedReplicas", most.updated);
    /* It counts proven ones. */
    check_number(judge, 14, set, change, "updatedReplicas", most.proven);
    check_stable_is_named(judge, set, json_get(change->after, "status"), since_us);
    check_number(judge, 10, set, change, "observedGeneration",
                 (int)json_int64_or(json_get(change->after, "metadata"), "generation", 0));
}

int judge_least_timeout_s(const struct seen_set *set)
{
    int timeout_s = INT_MAX;
    unsigned at = 0;
    for (const struct seen_spec *spec; (spec = seen_spec_since(set, NEVER_US, &at)) != NULL;)
        timeout_s = MIN(timeout_s, spec->timeout_s);
    return timeout_s;
}

/* Failed before its time: a deadline ran while the set was paused, or was forgotten. */
static void check_failed(struct judge *judge, const struct seen_set *set)
{
    int64_t longest_us = set->fetching_us;
    int timeout_s = judge_least_timeout_s(set);
    for (int i = 0; i < POD_ORDINALS_MAX; i++)
        longest_us = MAX(longest_us, set->pods[i].believed_us);
    /* What is decided may take long to arrive: the clock began with the decision. */
    const struct world *world = judge->world;
    longest_us += 5 * US_PER_S + 3 * world->disk_us + (judge->fault_pending ? 15 * US_PER_S : 0);
    if (longest_us < timeout_s * US_PER_S && !judge->clock_jumped && !judge->journal_lost &&
        judge->rewound_us == 0)
        judge_break(
            judge, 9,
            "%s is Failed, and no pod has waited longer than %lld s outside of pauses (deadline %d s)",
            set_name(set->index), (long long)(longest_us / US_PER_S), timeout_s);
}

/* A phase that a restored storage shows again was judged in its own time. */
static void take_phase(struct judge *judge, struct seen_set *set, const cJSON *object, bool by_us)
{
    const char *phase = json_path_str(object, "status", "phase", NULL);
    if (!phase || strcmp(set->phase_text, phase) == 0)
        return;
    report_tell(judge->report, "    %s is %s: %s", set_name(set->index), phase,
                json_path_str(object, "status", "message", NULL));
    copy_text(set->phase_text, sizeof(set->phase_text), phase);
    if (strcmp(phase, "Failed") == 0 && set->given_up_epoch != set->epoch) {
        if (by_us)
            check_failed(judge, set);
        set->given_up_epoch = set->epoch; /* a retry keeps it Failed, and a pause in between hides that */
    }
    set->failed_since_us = strcmp(phase, "Failed") == 0 ? judge_now_us(judge) : NEVER_US;
}

void judge_begin_epoch(struct seen_set *set)
{
    set->epoch++;
    set->done_ever = 0;
    if (set->status_count) {
        /* What was decided since then never was; what stands there now is what our own writes had made. */
        set->statuses[0] = *seen_status_now(set);
        set->statuses[0].epoch = set->epoch;
        set->statuses[0].by_us = true;
        set->status_count = 1;
    }
    for (int i = 0; i < POD_ORDINALS_MAX; i++) {
        struct seen_pod *pod = &set->pods[i];
        pod->moved_epoch = pod->patched_epoch = pod->deleted_epoch = -1;
        pod->deleted_uid[0] = '\0';
        pod->done_generation = 0;
    }
}

/* Another set of the name; the pods that are there may become its own. */
static void begin_set(struct seen_set *set)
{
    CLEANUP_FREE struct seen_pod *pods = xcalloc(POD_ORDINALS_MAX, sizeof(*pods));
    int index = set->index;
    memcpy(pods, set->pods, sizeof(set->pods));
    *set = (struct seen_set){.index = index, .failed_since_us = NEVER_US};
    memcpy(set->pods, pods, sizeof(set->pods));
    for (int i = 0; i < POD_ORDINALS_MAX; i++) {
        struct seen_pod *pod = &set->pods[i];
        pod->moved_epoch = 0;
        pod->patched_epoch = pod->deleted_epoch = -1;
    }
}

void judge_take_set(struct judge *judge, const struct kubesim_change *change)
{
    struct seen_set *set = judge_set_of(judge, change->name);
    if (!set)
        return;
    const char *uid = json_path_str(change->after, "metadata", "uid", NULL);
    if (uid && strcmp(uid, set->uid) != 0) {
        begin_set(set);
        set->born_us = judge_now_us(judge);
        copy_text(set->uid, sizeof(set->uid), uid);
        if (!change->user)
            note_restored(set, json_get(change->after, "status"));
    }
    set->there = change->after != NULL;
    bool by_us = str_starts_with(change->audit_id ? change->audit_id : "", "neo-");
    take_spec(judge, set, change->after);
    if (!change->after)
        return;
    take_status(judge, set, change->after, by_us, by_us && str_starts_with(change->audit_id, "neo-x-"),
                change->audit_id);
    if (by_us)
        check_numbers(judge, set, change);
    take_phase(judge, set, change->after, by_us);
}

/* --- revisions ------------------------------------------------------------------------------------------ */

static bool is_controlled_by(const cJSON *object, const char *uid)
{
    const cJSON *owners = json_path(object, "metadata", "ownerReferences", NULL);
    return owners && owners->child && str_equal(json_str(owners->child, "uid"), uid);
}

/* Another spelling of the same template is no new version. */
static void check_made(struct judge *judge, const struct kubesim_change *change)
{
    const cJSON *owners = json_path(change->after, "metadata", "ownerReferences", NULL);
    const char *uid = owners ? json_str(owners->child, "uid") : NULL;
    const struct kind *kind =
        kind_find(sim_server_kubesim(judge->world->server), "apps", "controllerrevisions");
    for (size_t i = 0; uid && i < kind->object_count; i++) {
        const cJSON *other = object_tree(kind->objects[i]);
        const char *name = json_path_str(other, "metadata", "name", NULL);
        if (strcmp(name, change->name) != 0 && is_controlled_by(other, uid) &&
            judge_same_template(other, change->after))
            judge_break(judge, 6, "revision %s is made, and %s says the same", change->name, name);
    }
}

void judge_take_revision(struct judge *judge, const struct kubesim_change *change)
{
    if (!change->before && change->audit_id && str_starts_with(change->audit_id, "neo-"))
        check_made(judge, change);
    if (change->after || !str_starts_with(change->audit_id ? change->audit_id : "", "neo-"))
        return;
    /* It was on its way when the storage was restored: what named nothing then names it again. */
    const struct seen_key *key = judge_key_of(judge, change->audit_id);
    if (judge->rewound_us > 0 && key && key->decided_us <= judge->rewound_us)
        return;
    for (int i = 0; i < judge->world->draw->set_count; i++) {
        const struct seen_set *set = &judge->sets[i];
        const struct seen_status *status = seen_status_now(set);
        if (status &&
            (strcmp(status->stable, change->name) == 0 || strcmp(status->target, change->name) == 0))
            judge_break(judge, 8, "revision %s of %s is deleted, and its status names it", change->name,
                        set_name(i));
        for (int k = 0; k < POD_ORDINALS_MAX; k++)
            if (set->pods[k].there && set->pods[k].ours && strcmp(set->pods[k].revision, change->name) == 0)
                judge_break(judge, 8, "revision %s is deleted, and %s runs it", change->name,
                            set->pods[k].name);
    }
}
