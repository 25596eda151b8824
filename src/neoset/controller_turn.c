/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/controller_parts.h"

#include "kube/object.h"

#include <utlist.h>

/* --- what the plan may look up -------------------------------------------------------------------------- */

struct view {
    struct controller *controller;
    const struct set_group *group;
};

static const struct claim_fact *view_claim(void *context, const char *name)
{
    const struct view *view = context;
    return fact_store_find_claim(view->controller->store, view->group->namespace, name);
}

static bool view_open_step(void *context, enum kube_resource resource, const char *name,
                           struct neoset_open_step *ret)
{
    const struct view *view = context;
    return gateway_find_open(view->controller->gateway, resource, view->group->namespace, name,
                             &ret->in_doubt, &ret->lowers_availability);
}

static bool view_availability_in_doubt(void *context)
{
    const struct view *view = context;
    return gateway_lowers_availability(view->controller->gateway, KUBE_NEOSET, view->group->namespace,
                                       view->group->name);
}

static bool view_wait(void *context, const char *action, enum kube_resource resource, const char *name,
                      int64_t budget_us, struct neoset_wait_view *ret)
{
    const struct view *view = context;
    const struct journal *journal = view->controller->journal;
    int64_t wait =
        journal_wait_find(journal, action, kube_resource_info(resource)->kind, view->group->namespace, name);
    if (!wait)
        return false;
    ret->spent_us = journal_wait_spent_us(journal, wait);
    ret->held = journal_wait_is_held(journal, wait);
    ret->expired = journal_wait_has_spent(journal, wait, budget_us, view->controller->first_boot_us);
    return true;
}

static const struct pod_fact **facts_of(const struct pod_slot *slots, size_t count)
{
    const struct pod_fact **pods = xcalloc(count + 1, sizeof(*pods));
    for (size_t i = 0; i < count; i++)
        pods[i] = slots[i].fact;
    return pods;
}

static const struct revision_fact **revisions_of(const struct fact_store *store,
                                                 const struct set_group *group, size_t *ret_count)
{
    const struct owner_slot *owner = fact_store_find_revisions(store, group->set->uid);
    size_t count = owner ? owner->count : 0;
    const struct revision_fact **revisions = xcalloc(count + 1, sizeof(*revisions));
    for (size_t i = 0; i < count; i++)
        revisions[i] = owner->items[i]->fact;
    *ret_count = count;
    return revisions;
}

/* The claims of a set with claim templates, and the other sets that may have named one of them. */
struct claims_view {
    const struct claim_fact **claims;
    size_t claim_count;
    const struct neoset_fact **rivals;
    size_t rival_count;
};

static void add_rival(struct claims_view *view, const struct neoset_fact *rival)
{
    for (size_t i = 0; i < view->rival_count; i++)
        if (view->rivals[i] == rival)
            return;
    view->rivals = xreallocarray(view->rivals, view->rival_count + 1, sizeof(*view->rivals));
    view->rivals[view->rival_count++] = rival;
}

static void add_rivals(const struct fact_store *store, const struct set_group *group, const char *claim,
                       struct claims_view *view)
{
    size_t position = 0;
    char *name = NULL;
    while ((name = neoset_claim_next_set(claim, &position)) != NULL) {
        const struct set_group *other =
            strcmp(name, group->name) == 0 ? NULL : fact_store_find_group(store, group->namespace, name);
        if (other && other->set)
            add_rival(view, other->set);
        free(name);
    }
}

static struct claims_view claims_of(const struct fact_store *store, const struct set_group *group)
{
    struct claims_view view = {0};
    const struct claimant_slot *claimant = group->set->claim_template_count > 0
                                               ? fact_store_find_claims(store, group->namespace, group->name)
                                               : NULL;
    size_t count = claimant ? claimant->count : 0;
    view.claims = xcalloc(count + 1, sizeof(*view.claims));
    for (; view.claim_count < count; view.claim_count++) {
        view.claims[view.claim_count] = claimant->items[view.claim_count]->fact;
        add_rivals(store, group, view.claims[view.claim_count]->name, &view);
    }
    return view;
}

static void plan(struct controller *controller, struct set_group *group, struct neoset_decision *ret)
{
    struct view view = {.controller = controller, .group = group};
    struct neoset_snapshot snapshot = {
        .wall_us = env_wall_us(controller->env),
        .boot_us = env_boot_us(controller->env),
        .can_probe = true,
        .status_write_open = controller_turn_of(group)->status_ask != 0,
        .set = group->set,
        .pod_count = group->pod_count,
        .memory = group->memory,
        .claim = view_claim,
        .open_step = view_open_step,
        .availability_in_doubt = view_availability_in_doubt,
        .set_was_read = controller_turn_of(group)->set_was_read,
        .has_waits = follow_has_waits(controller, group),
        .wait = view_wait,
        .context = &view,
    };
    const char *why = NULL;
    CLEANUP_FREE char *parked =
        gateway_parked_text(controller->gateway, KUBE_NEOSET, group->namespace, group->name);
    snapshot.parked = parked;
    snapshot.same_selector = fact_store_find_same_selector(controller->store, group);
    snapshot.journal_went_back = controller->went_back;
    snapshot.fresh = controller_is_fresh(controller, &why);
    snapshot.not_fresh = why;
    const struct pod_fact **pods = facts_of(group->pods, group->pod_count);
    const struct pod_fact **prefetches = facts_of(group->prefetches, group->prefetch_count);
    const struct revision_fact **revisions = revisions_of(controller->store, group, &snapshot.revision_count);
    const struct owner_slot *orphans = fact_store_find_orphans(controller->store, group->namespace);
    CLEANUP_FREE const struct revision_fact **orphan_facts =
        xcalloc(orphans ? orphans->count + 1 : 1, sizeof(const struct revision_fact *));
    for (size_t i = 0; orphans && i < orphans->count; i++)
        orphan_facts[i] = orphans->items[i]->fact;
    snapshot.lost = (const struct revision_fact *const *)group->lost;
    snapshot.lost_count = LOST_REVISIONS;
    snapshot.orphans = orphan_facts;
    snapshot.orphan_count = orphans ? orphans->count : 0;
    struct claims_view claims = claims_of(controller->store, group);
    snapshot.claims = claims.claims;
    snapshot.claim_count = claims.claim_count;
    snapshot.rivals = claims.rivals;
    snapshot.rival_count = claims.rival_count;
    snapshot.pods = pods;
    snapshot.prefetches = prefetches;
    snapshot.prefetch_count = group->prefetch_count;
    snapshot.revisions = revisions;
    neoset_observe_time(group->memory, pods, group->pod_count, snapshot.wall_us, snapshot.boot_us);
    neoset_plan(&snapshot, ret);
    free(pods);
    free(prefetches);
    free(revisions);
    free(claims.claims);
    free(claims.rivals);
    controller->turns++;
}

/* --- submitting ----------------------------------------------------------------------------------------- */

/* The events that wait for this step; it is gone by now: its name and fingerprint were kept. */
static void keep_events(struct controller *controller, struct set_group *group,
                        const struct neoset_decision *decision, size_t index, const struct step_request *step)
{
    for (size_t i = 0; i < decision->event_count; i++)
        if (decision->events[i].after_step == (int)index)
            follow_step_event(controller, group, &decision->events[i], step);
}

static void submit_step(struct controller *controller, struct set_group *group,
                        struct neoset_decision *decision, size_t index)
{
    struct step_request *step = STEAL(decision->steps[index]);
    ENSURE(step->operation_resource == KUBE_NEOSET && str_equal(step->operation_name, group->name));
    /* The gateway takes the request over; these are needed afterwards. */
    CLEANUP_FREE char *name = xstrdup(step->name);
    CLEANUP_FREE char *fingerprint = xstrdup_or_null(step->fingerprint);
    CLEANUP_FREE char *reason = xstrdup(step->reason ? step->reason : step->name);
    struct step_request kept = {.resource = step->resource, .name = name, .fingerprint = fingerprint};
    bool is_busy = gateway_is_busy(controller->gateway);
    int result = gateway_submit(controller->gateway, step, controller_step_done, controller);
    if (result == -ERROR_REFUSED && is_busy)
        loop_wake(controller->loop, group->key); /* planned anew when there is room */
    if (result < 0)
        return; /* asked again when something changed */
    CLEANUP_FREE char *object = kube_object_ref_text(KUBE_NEOSET, group->namespace, group->name);
    controller_report(controller, REPORT_INFO, object, "%s", reason);
    keep_events(controller, group, decision, index, &kept);
}

/* --- one turn of one set -------------------------------------------------------------------------------- */

static bool is_settled_phase(const char *phase)
{
    return str_equal(phase, "Paused") || str_equal(phase, "Failed");
}

/* Nothing to do, nothing to wait for: for --once, and for tests. */
static void judge_quiet(struct controller *controller, struct set_group *group,
                        const struct neoset_decision *decision, size_t step_count)
{
    struct turn *turn = group->turn;
    const char *phase = json_str(decision->status, "phase");
    int64_t ready = json_int64_or(decision->status, "readyReplicas", 0);
    bool as_wanted = ready >= group->set->spec.replicas && !is_settled_phase(phase);
    turn->stuck = !as_wanted;
    str_replace(&turn->phase, phase);
    str_replace(&turn->message, json_str(decision->status, "message"));
    turn->quiet = step_count == 0 && !decision->status_patch && !decision->probe_pod &&
                  decision->wait_count == 0 && decision->wake_boot_us == INT64_MAX &&
                  (as_wanted || is_settled_phase(phase));
    controller_check_once(controller);
}

static void handle_set(struct controller *controller, struct set_group *group)
{
    struct turn *turn = controller_turn_of(group);
    if (turn->refreshing > 0)
        return; /* its answer wakes us */
    if (!str_equal(turn->set_uid, group->set->uid)) {
        /* Another set of the name: what was written to the one before does not count. */
        str_replace(&turn->set_uid, group->set->uid);
        str_replace(&turn->status_sent, NULL);
        str_replace(&turn->status_phase, NULL);
        turn->status_ask = 0;
        turn->probe_ask = 0;
    }
    const char *not_fresh = NULL;
    if (!controller_is_fresh(controller, &not_fresh)) {
        follow_stand_still(controller, group, "no watch that tells what becomes of it");
        return; /* woken when the watches stream again */
    }
    struct neoset_decision decision = {0};
    plan(controller, group, &decision);
    turn->set_was_read = false;
    size_t step_count = decision.step_count;
    follow_ends(controller, group, &decision, true);
    for (size_t i = 0; i < step_count; i++)
        submit_step(controller, group, &decision, i);
    gateway_settle_unwanted(controller->gateway, KUBE_NEOSET, group->namespace, group->name);
    follow_waits(controller, group, &decision);
    follow_ends(controller, group, &decision, false);
    follow_events(controller, group, &decision);
    follow_status(controller, group, &decision);
    follow_probe(controller, group, decision.probe_pod, decision.probe_revision);
    follow_reads(controller, group, &decision);
    if (decision.wake_boot_us != INT64_MAX)
        loop_wake_at(controller->loop, group->key, decision.wake_boot_us);
    judge_quiet(controller, group, &decision, step_count);
    neoset_decision_done(&decision);
}

void controller_handle(void *context, const char *key)
{
    struct controller *controller = context;
    struct set_group *group = fact_store_find_key(controller->store, key);
    if (!group || !controller_may_plan(controller))
        return; /* everything is woken when we may */
    if (group->set)
        handle_set(controller, group);
    else
        follow_set_gone(controller, group);
}

/* --- after a step --------------------------------------------------------------------------------------- */

static void report_outcome(struct controller *controller, const struct step_outcome *outcome)
{
    CLEANUP_FREE char *object =
        kube_object_ref_text(outcome->target.resource, outcome->target.namespace, outcome->target.name);
    enum report_level level = REPORT_INFO;
    bool is_conflict = str_equal(outcome->reason, "Conflict"); /* somebody was faster: nothing is wrong */
    if (outcome->kind == JOURNAL_APPLIED || is_conflict)
        level = REPORT_DEBUG;
    else if (outcome->kind == JOURNAL_REJECTED || outcome->kind == JOURNAL_UNKNOWN)
        level = REPORT_WARNING;
    const char *how = outcome->kind == JOURNAL_UNKNOWN ? "in doubt" : journal_kind_text(outcome->kind);
    controller_report(controller, level, object, "%s, step %lld: %s%s%s",
                      step_kind_info(outcome->step_kind)->text, (long long)outcome->step, how,
                      *outcome->summary ? ": " : "", outcome->summary);
}

/* A delete that did not leave the object terminating has removed it, and shows what it was. */
static bool is_gone_at_once(const struct step_outcome *outcome)
{
    return outcome->step_kind == STEP_DELETE && outcome->kind == JOURNAL_APPLIED &&
           !json_path_str(outcome->object, "metadata", "deletionTimestamp", NULL);
}

/* The newest state that the answer or the reading brought replaces our fact at once. */
static void take_outcome_object(struct controller *controller, struct set_group *group,
                                const struct step_outcome *outcome)
{
    const struct kube_ref *target = &outcome->target;
    if (outcome->object && is_gone_at_once(outcome)) {
        fact_store_drop(controller->store, target->resource, outcome->object);
        return;
    }
    if (outcome->object) {
        controller_take_answer(controller, target->resource, outcome->object);
        return;
    }
    bool unclear = outcome->kind == JOURNAL_APPLIED || outcome->kind == JOURNAL_OVERTAKEN ||
                   outcome->kind == JOURNAL_ABSENT;
    if (unclear && group)
        controller_refresh(controller, target->resource, target->namespace, target->name, group);
}

void controller_step_done(void *context, const struct step_outcome *outcome)
{
    struct controller *controller = context;
    const struct kube_ref *of = &outcome->operation_object;
    report_outcome(controller, outcome);
    struct set_group *group =
        of->name ? fact_store_find_group(controller->store, of->namespace, of->name) : NULL;
    if (group && group->memory)
        neoset_note_outcome(group->memory, outcome, env_boot_us(controller->env));
    take_outcome_object(controller, group, outcome);
    loop_go_on(controller->loop);
    group = of->name ? fact_store_find_group(controller->store, of->namespace, of->name) : NULL;
    if (!group)
        return;
    follow_step_outcome(controller, group, outcome);
    loop_wake(controller->loop, group->key);
}

/* --- what turns remember -------------------------------------------------------------------------------- */

void turn_free(struct turn *turn)
{
    if (!turn)
        return;
    follow_forget_events(turn);
    follow_forget_waits(turn);
    free(turn->set_uid);
    free(turn->status_sent);
    free(turn->status_phase);
    free(turn->message);
    free(turn->phase);
    free(turn);
}
