/* SPDX-License-Identifier: Apache-2.0
 *
 * Pods that were moved and are waited for: for how long, and whether one ran out of time. And which
 * operations are over. */
#include "neoset/plan_model.h"

#include "base/plant.h"
#include "base/time_text.h"

static const char wait_ready[] = "ready";
#define UNTOLD_US (30 * US_PER_S)
/* Its time is up, but the journal still grants some (shortly after a start). */
#define EXPIRY_AGAIN_US (5 * US_PER_S)

/* readinessTimeoutSeconds, and for each changed container the time that its predecessor may take to stop. */
static int64_t budget_us(const struct plan *plan, const struct slot *slot)
{
    int64_t seconds = plan->spec->readiness_timeout_seconds;
    if (slot->pod->state)
        seconds += (int64_t)slot->pod->state->container_count * slot->pod->grace_seconds;
    return seconds * US_PER_S;
}

static int64_t moved_at(const struct slot *slot)
{
    return slot->pod->state ? slot->pod->state->at_us : slot->pod->created_us;
}

/* What keeps a moved pod from being available, in words; the caller's. While all goes well it says the same
 * from the drain to the end: each other sentence is a write. */
static char *waiting_text(struct plan *plan, const struct slot *slot)
{
    const char *name = slot->pod->name;
    CLEANUP_FREE char *trouble = slot_trouble(plan, slot);
    if (*trouble)
        return xasprintf("%s is updated, and does not come up: %s", name, trouble);
    int64_t patient_us = moved_at(slot) + UNTOLD_US;
    if (plan->at->wall_us < patient_us) {
        plan_wake(plan, plan->at->boot_us + patient_us - plan->at->wall_us);
        return xasprintf(slot->pod->has_gate
                             ? "%s is being updated"
                             : "%s is being updated in service: it has not the readiness gate " NEOSET_GATE,
                         name);
    }
    if (!slot->proven && slot->completion.waiting == COMPLETION_KUBELET)
        return xasprintf("%s is patched; its kubelet has not seen it yet", name);
    if (!slot->proven && slot->completion.waiting == COMPLETION_CONTAINER)
        return xasprintf("%s is patched; its container %s is not up yet", name, slot->completion.container);
    if (!slot->proven)
        return xasprintf("%s is patched; the proof that its container %s is the last one is missing", name,
                         slot->completion.container);
    if (!slot->ready)
        return xasprintf("%s is updated, and not ready", name);
    return xasprintf("%s is ready; it counts as available when it stays so for its window", name);
}

void plan_add_wait(struct neoset_wait **list, size_t *count, struct neoset_wait wait)
{
    for (size_t i = 0; i < *count; i++)
        if (str_equal((*list)[i].action, wait.action) && str_equal((*list)[i].name, wait.name)) {
            free(wait.reason);
            return;
        }
    wait.name = xstrdup(wait.name);
    *list = xreallocarray(*list, *count + 1, sizeof(**list));
    (*list)[(*count)++] = wait;
}

void plan_want_wait(struct plan *plan, const char *action, const char *pod, int64_t budget,
                    const char *reason)
{
    plan_add_wait(&plan->out->waits, &plan->out->wait_count,
                  (struct neoset_wait){.action = action,
                                       .resource = KUBE_POD,
                                       .name = (char *)pod,
                                       .budget_us = budget,
                                       .reason = xstrdup(reason)});
}

/* Only a window, or the hold of a startup probe, is left: not a matter of the deadline. */
static bool is_nearly_done(const struct slot *slot)
{
    return (slot->proven && slot->ready) || (!slot->proven && slot->completion.waiting == COMPLETION_STARTUP);
}

/* The wait for it is open and its time is over. */
static bool is_expired(struct plan *plan, const struct slot *slot)
{
    struct neoset_wait_view view = {0};
    int64_t budget = budget_us(plan, slot);
    if (!plan->at->wait ||
        !plan->at->wait(plan->at->context, wait_ready, KUBE_POD, slot->pod->name, budget, &view))
        return false;
    if (view.expired)
        return !is_nearly_done(slot);
    /* A hold that only a missing view or an ended run had set is let go after this turn. */
    if (!view.held || !plan->spec->pause)
        plan_wake(plan, plan->at->boot_us + MAX(budget - view.spent_us, EXPIRY_AGAIN_US));
    return false;
}

static bool is_waited_for(const struct plan *plan, const struct slot *slot)
{
    struct neoset_wait_view view;
    return plan->at->has_waits && plan->at->wait &&
           plan->at->wait(plan->at->context, wait_ready, KUBE_POD, slot->pod->name, 0, &view);
}

static void want_ready(struct plan *plan, const struct slot *slot)
{
    plan_add_wait(&plan->out->waits, &plan->out->wait_count,
                  (struct neoset_wait){.action = wait_ready,
                                       .resource = KUBE_POD,
                                       .name = (char *)slot->pod->name,
                                       .budget_us = budget_us(plan, slot),
                                       .reason = xstrdup("until it is available"),
                                       .held = plan->spec->pause && !PLANT("deadline-runs-in-pause")});
}

static void wait_for(struct plan *plan, struct slot *slot)
{
    if (!plan->waited_for || moved_at(slot) < moved_at(plan->waited_for))
        plan->waited_for = slot;
    CLEANUP_FREE char *text = waiting_text(plan, slot);
    plan_say(plan, SAY_UPDATING, "%s.", text);
    /* Its time begins when it is scheduled. */
    bool scheduled = slot->pod->node || slot->pod->scheduled == IS_TRUE;
    bool expired = scheduled && is_expired(plan, slot);
    if (expired && plan->spec->pause)
        return; /* a person has seen it: with the end of the pause everything is tried from the start */
    if (scheduled)
        want_ready(plan, slot);
    bool retried = plan_keep_retries(plan, slot);
    if (!expired && !retried)
        return;
    plan->failed = true;
    if (!expired) {
        plan_say(plan, SAY_FAILED, "%s; it was made anew, and no other pod is updated until it comes up.",
                 text);
        return;
    }
    plan_retry(plan, slot, text);
    plan_event(plan, -1, true, "RolloutFailed", NULL, "%s, for %lld s.", text,
               (long long)(budget_us(plan, slot) / US_PER_S));
}

void plan_progress(struct plan *plan)
{
    struct neoset_decision *out = plan->out;
    for (size_t i = 0; i < plan->slot_count; i++) {
        struct slot *slot = &plan->slots[i];
        bool done = ordinals_has(&plan->next.done, slot->ordinal);
        if (!slot->in_range || (!done && !slot->moved))
            continue;
        if (done && slot->live && slot->on_target && is_waited_for(plan, slot))
            plan_add_wait(&out->waits_done, &out->wait_done_count,
                          (struct neoset_wait){
                              .action = wait_ready, .resource = KUBE_POD, .name = (char *)slot->pod->name});
        else if (!done && slot->live && slot->on_target)
            wait_for(plan, slot);
        else if (!done && !slot->live && plan_keep_retries(plan, slot))
            plan->failed = true;
    }
}

/* --- ends of operations --------------------------------------------------------------------------------- */

static void end_operation(struct plan *plan, const char *kind, const char *outcome, bool before_steps,
                          const char *reason)
{
    struct neoset_decision *out = plan->out;
    for (size_t i = 0; i < out->step_count; i++)
        if (str_equal(out->steps[i]->operation_kind, kind) && !before_steps)
            return;
    out->ends = xreallocarray(out->ends, out->end_count + 1, sizeof(*out->ends));
    out->ends[out->end_count++] = (struct neoset_operation_end){
        .kind = kind, .outcome = outcome, .reason = xstrdup(reason), .before_steps = before_steps};
}

static bool has_extra_pods(const struct plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++)
        if (!plan->slots[i].in_range && plan->slots[i].ours)
            return true;
    return false;
}

void plan_ends(struct plan *plan)
{
    const struct neoset_deciding *now = &plan->now, *next = &plan->next;
    if (now->present && !str_equal(now->target, next->target)) {
        /* The first step of the next ends a rollout that did not complete (step_request.failed_before says as
         * what). */
        if (str_equal(next->stable, now->target) && !str_equal(now->stable, now->target))
            end_operation(plan, "rollout", "completed", true, "every pod runs the target");
        return;
    }
    if (!neoset_deciding_equal(now, next) || plan->pod_write_open)
        return;
    bool whole = (plan->complete || plan->spec->replicas == 0) && !has_extra_pods(plan);
    /* While the template's revision is being made, the rollout that its step has opened is only beginning. */
    if (!plan->active && plan->complete && plan->wanted)
        end_operation(plan, "rollout", "completed", false, "every pod runs the target and is available");
    /* If it comes up after all, what follows is a rollout of its own in history. */
    if (plan->gave_up && plan->wanted == plan->target)
        end_operation(plan, "rollout", "failed", false, plan->message ? plan->message : "it did not come up");
    if (whole) {
        end_operation(plan, "scale", "completed", false, "as many pods as asked for are available");
        end_operation(plan, "repair", "completed", false, "every pod is available");
    }
    end_operation(plan, "cleanup", "completed", false, "nothing is left to clean up");
    end_operation(plan, "adopt", "completed", false, "every pod and revision that matches is the set's");
    if (str_equal(plan->volumes, VOLUMES_CONVERGED))
        end_operation(plan, "resize", "completed", false, "every claim is as large as its template says");
    end_operation(plan, "settings", "completed", false, "the claims belong to whom they should");
}
