/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/plan_model.h"

/* The order of a turn: status from what is there, create and repair, scale down, update, gates. A wait in one
 * part ends that part only. */
static void plan_writes(struct plan *plan)
{
    plan_ownership(plan);
    plan_restore(plan);
    plan_target(plan);
    plan_decide(plan);
    plan_model_count(plan);
    plan_progress(plan);
    plan_retention(plan);
    plan_volumes(plan);
    plan_create(plan);
    plan_scale(plan);
    plan_prefetch(plan);
    plan_rollout(plan);
    plan_gates(plan);
    plan_history(plan);
    plan_advance(plan);
    plan_ends(plan);
}

/* A set that is being deleted, or whose spec cannot be used: its pods must not stay out of service for that.
 */
static void plan_upkeep(struct plan *plan)
{
    plan->target = revision_find(plan->at->revisions, plan->at->revision_count, plan->next.target);
    plan->stable = revision_find(plan->at->revisions, plan->at->revision_count, plan->next.stable);
    plan_model_count(plan);
    plan_prefetch(plan);
    plan_gates(plan);
}

void neoset_plan(const struct neoset_snapshot *snapshot, struct neoset_decision *ret)
{
    PRE(snapshot->set && snapshot->memory && snapshot->claim && snapshot->open_step &&
        snapshot->availability_in_doubt);
    *ret = (struct neoset_decision){.wake_boot_us = INT64_MAX};
    if (!snapshot->fresh || !snapshot->set->uid || !snapshot->set->version)
        return;
    struct plan plan = {
        .at = snapshot,
        .set = snapshot->set,
        .spec = &snapshot->set->spec,
        .out = ret,
    };
    neoset_deciding_copy(&plan.now, &snapshot->set->deciding);
    neoset_deciding_copy(&plan.next, &snapshot->set->deciding);
    plan_model_build(&plan);
    if (snapshot->set->deleting || snapshot->set->problem)
        plan_upkeep(&plan);
    else
        plan_writes(&plan);
    plan_status(&plan);
    plan_model_done(&plan);
}

static void free_waits(struct neoset_wait *waits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(waits[i].name);
        free(waits[i].reason);
    }
    free(waits);
}

void neoset_decision_done(struct neoset_decision *decision)
{
    for (size_t i = 0; i < decision->step_count; i++)
        step_request_free(decision->steps[i]);
    free(decision->steps);
    json_delete(decision->status);
    json_delete(decision->status_patch);
    free(decision->described);
    for (size_t i = 0; i < decision->event_count; i++) {
        free(decision->events[i].note);
        free(decision->events[i].name);
        free(decision->events[i].uid);
    }
    free(decision->events);
    free_waits(decision->waits, decision->wait_count);
    free_waits(decision->waits_done, decision->wait_done_count);
    for (size_t i = 0; i < decision->end_count; i++)
        free(decision->ends[i].reason);
    free(decision->ends);
    json_delete(decision->probe_pod);
    free(decision->probe_revision);
    free(decision->read_revision);
    *decision = (struct neoset_decision){0};
}
