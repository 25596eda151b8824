/* SPDX-License-Identifier: Apache-2.0
 *
 * What time and the end of a run show: states that were reached, and whether everything came home (6, 7, 8).
 */
#include "judge_parts.h"

#include <stdio.h>

/* --- states --------------------------------------------------------------------------------------------- */

static uint64_t hash_pod(uint64_t hash, const struct seen_pod *pod, const struct seen_status *status)
{
    uint8_t bits[4] = {
        (uint8_t)(pod->there | pod->ours << 1 | pod->deleting << 2 | pod->ended << 3 | pod->ready << 4 |
                  pod->serving << 5 | pod->error_now << 6),
        (uint8_t)(pod->gate + 1),
        (uint8_t)((status && strcmp(pod->revision, status->target) == 0) |
                  (status && strcmp(pod->revision, status->stable) == 0) << 1),
        (uint8_t)(pod->observed < pod->generation),
    };
    return hash_bytes(hash, bits, sizeof(bits));
}

static uint64_t hash_set(uint64_t hash, const struct seen_set *set)
{
    const struct seen_spec *spec = seen_spec_now(set);
    const struct seen_status *status = seen_status_now(set);
    if (!spec)
        return hash;
    int numbers[] = {spec->there,
                     spec->replicas,
                     spec->budget,
                     spec->fence,
                     spec->pause,
                     status ? status->stage : -1,
                     status ? (int)status->done : -1,
                     status ? (int)status->left : -1};
    hash = hash_bytes(hash, numbers, sizeof(numbers));
    hash = hash_bytes(hash, set->phase_text, strlen(set->phase_text));
    for (int i = 0; i < POD_ORDINALS_MAX; i++)
        hash = hash_pod(hash, &set->pods[i], status);
    return hash;
}

/* As people tell states apart; the parent adds them up over runs. */
static void note_state(struct judge *judge)
{
    uint64_t hash = 0xCBF29CE484222325ULL;
    for (int i = 0; i < judge->world->draw->set_count; i++)
        hash = hash_set(hash, &judge->sets[i]);
    if (hash == judge->state_hash || judge->report->state_count == STATES_MAX)
        return;
    judge->state_hash = hash;
    judge->report->states[judge->report->state_count++] = hash;
}

/* --- gates (12) ----------------------------------------------------------------------------------------- */

/* So long a healthy controller may take for anything that it owes: its longest pause between two looks at
 * what is open, and a back-off. */
#define OWED_WITHIN_US (100 * US_PER_S)
/* A deadline may be noticed so much later, and not within so long after a start. */
#define EXPIRES_WITHIN_US (15 * US_PER_S)
#define START_GRACE_US (75 * US_PER_S)
/* So long a lease holds that somebody took, and until it is tried for again. */
#define LEASE_TERM_US (45 * US_PER_S)

/* Nothing was done to the controllers and the network since then: whoever is owed something has it. */
static bool is_owed(const struct judge *judge, int64_t since_us, int64_t within_us)
{
    int64_t now_us = judge_now_us(judge);
    return since_us != NEVER_US && now_us - MAX(since_us, judge->disturbed_us) > within_us &&
           judge->blind_until_us < now_us && !judge->fault_pending;
}

/* All its containers run, and have run since they were started first. */
static bool has_run(const struct judge *judge, const struct seen_pod *pod)
{
    struct kubelet_truth truths[TRUTHS_MAX];
    size_t count = kubelet_see_truth(sim_server_kubelet(judge->world->server), pod->uid, truths, TRUTHS_MAX);
    for (size_t i = 0; i < count; i++)
        if (!truths[i].running || truths[i].restarts > 0)
            return false;
    return count > 0 && judge_now_us(judge) - pod->created_us > 2 * OWED_WITHIN_US;
}

static void look_at_gate(struct judge *judge, const struct seen_set *set, const struct seen_pod *pod)
{
    const struct seen_spec *spec = seen_spec_now(set);
    if (!pod->there || !pod->ours || pod->deleting || pod->ended || !pod->has_gate || pod->gate == 1)
        return;
    if (pod->is_old && pod->unfinished)
        return; /* only its containers say what such a kubelet has seen */
    if (pod->gate == 0 && !has_run(judge, pod))
        return;
    int64_t since_us = MAX(pod->gate_false_since_us, pod->seen_since_us);
    since_us = pod->seen_since_us == NEVER_US ? NEVER_US : MAX(since_us, spec->at_us);
    if (is_owed(judge, since_us, OWED_WITHIN_US))
        judge_break(judge, 12,
                    "the gate of %s is not open for %lld s, its kubelet has seen everything for %lld s, and "
                    "nobody opens it",
                    pod->name, (long long)((judge_now_us(judge) - pod->gate_false_since_us) / US_PER_S),
                    (long long)((judge_now_us(judge) - pod->seen_since_us) / US_PER_S));
}

/* --- deadlines (9) -------------------------------------------------------------------------------------- */

/* Time runs for a moved pod from when it has a node until it is done, unless the set is paused. */
static void run_clock(const struct judge *judge, const struct seen_set *set, struct seen_pod *pod,
                      int ordinal, int64_t passed_us)
{
    const struct seen_status *status = seen_status_now(set);
    /* Where somebody removed the status, whoever waits waits on. */
    bool waits = status && !*status->target
                     ? pod->waits
                     : status && strcmp(pod->revision, status->target) == 0 &&
                           (status->left & (1U << ordinal)) && !(status->done & (1U << ordinal));
    pod->waits = waits && pod->there && pod->ours && !pod->deleting;
    if (!pod->waits)
        pod->waited_us = 0;
    else if (!seen_spec_now(set)->pause && pod->scheduled)
        pod->waited_us += passed_us;
    bool is_gone = !pod->there || !pod->ours || pod->deleting;
    bool is_blind = is_gone && pod->believed_us > 0 && judge_now_us(judge) <= judge->blind_until_us;
    if (!is_blind)
        pod->believed_us = pod->waited_us;
    else if (!seen_spec_now(set)->pause)
        pod->believed_us += passed_us;
}

/* Whoever waited so long is given up; it may be made anew before its server shows the set as Failed. */
static void note_given_up(struct seen_set *set, const struct seen_pod *pod, int timeout_s)
{
    if (pod->waited_us >= timeout_s * US_PER_S)
        set->given_up_epoch = set->epoch;
}

static bool is_in_reach(const struct seen_spec *spec, int ordinal)
{
    int index = ordinal - spec->start;
    return index >= 0 && index < spec->replicas;
}

static void look_at_deadlines(struct judge *judge, struct seen_set *set, int64_t passed_us)
{
    const struct seen_spec *spec = seen_spec_now(set);
    int least_timeout_s = judge_least_timeout_s(set);
    if (set->prefetches == 0)
        set->fetching_us = 0;
    else if (!spec->pause)
        set->fetching_us += passed_us;
    for (int i = 0; i < POD_ORDINALS_MAX; i++) {
        struct seen_pod *pod = &set->pods[i];
        run_clock(judge, set, pod, i, passed_us);
        note_given_up(set, pod, least_timeout_s);
        int64_t due_us =
            (spec->timeout_s + 2 * TRUTHS_MAX) * US_PER_S + EXPIRES_WITHIN_US + judge->thefts * LEASE_TERM_US;
        bool failed = strcmp(set->phase_text, "Failed") == 0;
        int64_t out_us = judge_now_us(judge) - pod->served_us;
        if (!pod->waits || pod->serving || out_us < EXPIRES_WITHIN_US || pod->waited_us < due_us || failed ||
            spec->pause || !is_in_reach(spec, i) || !pod->scheduled ||
            !is_owed(judge, MAX(spec->at_us, 0), START_GRACE_US) || judge->journal_lost ||
            judge->world->draw->standby || judge->clock_jumped)
            continue;
        judge_tell_open(judge);
        judge_break(judge, 9,
                    "%s was moved %lld s ago and is not in service (deadline %d s), and the set is %s",
                    pod->name, (long long)(pod->waited_us / US_PER_S), spec->timeout_s, set->phase_text);
    }
}

static void look_at_sets(struct judge *judge, int64_t passed_us)
{
    for (int i = 0; i < judge->world->draw->set_count; i++) {
        struct seen_set *set = &judge->sets[i];
        if (!set->there || !seen_spec_now(set) || !seen_spec_now(set)->there)
            continue;
        look_at_deadlines(judge, set, passed_us);
        for (int k = 0; k < POD_ORDINALS_MAX; k++)
            look_at_gate(judge, set, &set->pods[k]);
    }
}

void judge_pass_time(struct judge *judge)
{
    int64_t now_us = judge_now_us(judge);
    if (now_us > judge->looked_us)
        look_at_sets(judge, judge->looked_us ? now_us - judge->looked_us : 0);
    judge->looked_us = now_us;
}

void judge_look_at_time(struct judge *judge)
{
    if (judge->changed || judge_now_us(judge) - judge->looked_us >= US_PER_S)
        judge_pass_time(judge);
    if (!judge->changed)
        return;
    judge->changed = false;
    note_state(judge);
}

/* --- home ----------------------------------------------------------------------------------------------- */

static const cJSON *set_tree(struct judge *judge, const struct seen_set *set)
{
    return judge_find(judge, "apps.neo.io", "neosets", set_name(set->index));
}

static bool is_pod_home(struct judge *judge, const struct seen_set *set, int ordinal, char *why, size_t size)
{
    const struct seen_pod *pod = &set->pods[ordinal];
    const struct seen_status *status = seen_status_now(set);
    const cJSON *tree = pod->there ? judge_pod_tree(judge, pod->name) : NULL;
    const char *problem = !pod->there                                        ? "is missing"
                          : !pod->ours                                       ? "is not its pod"
                          : pod->deleting                                    ? "is terminating"
                          : !status || strcmp(pod->revision, status->target) ? "is not on the target"
                          : !pod->serving                                    ? "is not in service"
                          : !judge_runs_its_spec(judge, pod, tree)           ? "does not run its spec"
                                                                             : NULL;
    if (problem) {
        const char *says = json_path_str(set_tree(judge, set), "status", "message", NULL);
        snprintf(why, size, "%s-%d %s; the set is %s: %s", set_name(set->index), ordinal, problem,
                 set->phase_text, says ? says : "");
    }
    return !problem;
}

static bool is_set_home(struct judge *judge, const struct seen_set *set, char *why, size_t size)
{
    const struct seen_spec *spec = seen_spec_now(set);
    const struct seen_status *status = seen_status_now(set);
    if (!set->there || !spec || !spec->there || !status) {
        snprintf(why, size, "%s is not there", set_name(set->index));
        return false;
    }
    for (int i = 0; i < POD_ORDINALS_MAX; i++) {
        bool in_range = i >= spec->start && i < spec->start + spec->replicas;
        if (in_range && !is_pod_home(judge, set, i, why, size))
            return false;
        if (!in_range && set->pods[i].there && set->pods[i].ours) {
            snprintf(why, size, "%s-%d is too many", set_name(set->index), i);
            return false;
        }
    }
    const cJSON *told = json_get(set_tree(judge, set), "status");
    /* A first revision counts as stable from the beginning, and is proven when all its pods count as
     * available: of one that it took over as it was, the controller may wait for probes that are long over.
     */
    bool says_so = strcmp(status->stable, status->target) == 0 &&
                   (strcmp(set->phase_text, "Completed") == 0 || strcmp(set->phase_text, "Idle") == 0) &&
                   json_int64_or(told, "observedGeneration", 0) == spec->generation &&
                   json_int64_or(told, "updatedReplicas", 0) == spec->replicas &&
                   (status->proven || spec->replicas == 0);
    if (!says_so)
        snprintf(why, size, "the pods of %s are home, and its status says %s: %s", set_name(set->index),
                 set->phase_text, json_str(told, "message") ? json_str(told, "message") : "");
    return says_so;
}

bool judge_is_home(struct judge *judge, char *why, size_t why_size)
{
    /* Who does not see something yet has something to do yet. */
    if (judge->blind_until_us >= judge_now_us(judge)) {
        snprintf(why, why_size, "a watch may hide something");
        return false;
    }
    for (int i = 0; i < judge->world->draw->set_count; i++)
        if (!is_set_home(judge, &judge->sets[i], why, why_size))
            return false;
    return true;
}

/* --- the end -------------------------------------------------------------------------------------------- */

static int count_unused(struct judge *judge, const struct seen_set *set)
{
    const struct seen_status *status = seen_status_now(set);
    CLEANUP_JSON cJSON *list =
        sim_server_get(judge->world->server, "/apis/apps/v1/namespaces/default/controllerrevisions");
    const cJSON *item = NULL;
    int unused = 0;
    cJSON_ArrayForEach (item, json_get(list, "items")) {
        const char *name = json_path_str(item, "metadata", "name", NULL);
        const cJSON *owner = json_path(item, "metadata", "ownerReferences", NULL);
        bool ours = owner && owner->child && str_equal(json_str(owner->child, "uid"), set->uid);
        bool used = strcmp(status->stable, name) == 0 || strcmp(status->target, name) == 0;
        for (int i = 0; i < POD_ORDINALS_MAX; i++)
            used = used || (set->pods[i].there && strcmp(set->pods[i].revision, name) == 0);
        unused += ours && !used;
    }
    return unused;
}

static void check_history(struct judge *judge, const struct seen_set *set)
{
    const struct seen_spec *spec = seen_spec_now(set);
    int unused = count_unused(judge, set);
    if (unused > spec->history)
        judge_break(judge, 8, "%s keeps %d unused revisions, and its limit is %d", set_name(set->index),
                    unused, spec->history);
}

void judge_look_at_end(struct judge *judge)
{
    for (int i = 0; i < judge->world->draw->set_count; i++)
        check_history(judge, &judge->sets[i]);
}
