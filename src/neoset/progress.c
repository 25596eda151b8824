/* SPDX-License-Identifier: Apache-2.0
 *
 * Pods that were moved and are waited for: for how long, and whether one ran out of time. And which
 * operations are over. */
#include "neoset/plan_model.h"

#include "base/time_text.h"

static const char wait_ready[] = "ready";

/* readinessTimeoutSeconds, and for each changed container the time that its predecessor may take to stop. */
static int64_t budget_us(const struct plan *plan, const struct slot *slot)
{
    int64_t seconds = plan->spec->readiness_timeout_seconds;
    if (slot->pod->state)
        seconds += (int64_t)slot->pod->state->container_count * slot->pod->grace_seconds;
    return seconds * US_PER_S;
}

/* What keeps a moved pod from being available, in words; the caller's. */
static char *waiting_text(const struct slot *slot)
{
    const char *name = slot->pod->name;
    const struct container_fact *container =
        slot->completion.container ? pod_fact_container(slot->pod, slot->completion.container) : NULL;
    if (slot->broken_by)
        return xasprintf("%s is updated, and does not come up: %s", name, slot->broken_by);
    if (!slot->proven && slot->completion.waiting == COMPLETION_KUBELET)
        return xasprintf("%s is patched; its kubelet has not seen it yet", name);
    if (!slot->proven && slot->completion.waiting == COMPLETION_CONTAINER)
        return xasprintf("%s is patched; its container %s is restarting%s%s", name,
                         slot->completion.container, container && container->reason ? ": " : "",
                         container && container->reason ? container->reason : "");
    if (!slot->proven)
        return xasprintf("%s is patched; waiting for the proof that its container %s is the last one", name,
                         slot->completion.container);
    if (!slot->ready)
        return xasprintf("%s is updated, and not ready yet", name);
    if (slot->available_boot_us == INT64_MAX)
        return xasprintf("%s is updated, and not in service yet", name);
    return xasprintf("%s is ready; it counts as available when it stays so for its window", name);
}

static void add_wait(struct neoset_wait **list, size_t *count, const char *name, int64_t budget,
                     const char *reason, bool held)
{
    *list = xreallocarray(*list, *count + 1, sizeof(**list));
    (*list)[(*count)++] = (struct neoset_wait){
        .action = wait_ready,
        .resource = KUBE_POD,
        .name = xstrdup(name),
        .budget_us = budget,
        .reason = xstrdup(reason),
        .held = held,
    };
}

static bool is_expired(const struct plan *plan, const struct slot *slot)
{
    struct neoset_wait_view view = {0};
    if (!plan->at->wait || (slot->proven && slot->ready))
        return false;
    return plan->at->wait(plan->at->context, wait_ready, KUBE_POD, slot->pod->name, &view) && view.expired;
}

static int64_t moved_at(const struct slot *slot)
{
    return slot->pod->state ? slot->pod->state->at_us : slot->pod->created_us;
}

static void wait_for(struct plan *plan, struct slot *slot)
{
    struct neoset_decision *out = plan->out;
    if (!plan->waited_for || moved_at(slot) < moved_at(plan->waited_for))
        plan->waited_for = slot;
    CLEANUP_FREE char *text = waiting_text(slot);
    bool scheduled = slot->pod->node || slot->pod->scheduled == IS_TRUE;
    if (scheduled)
        add_wait(&out->waits, &out->wait_count, slot->pod->name, budget_us(plan, slot),
                 "until it is available", plan->spec->pause);
    plan_say(plan, SAY_UPDATING, "%s.", text);
    if (!scheduled || !is_expired(plan, slot))
        return;
    plan->failed = true;
    plan_say(plan, SAY_FAILED,
             "%s. It had %lld s; no other pod is updated until it comes up, or a new template is applied.",
             text, (long long)(budget_us(plan, slot) / US_PER_S));
    plan_event(plan, -1, true, "RolloutFailed", slot, "%s.", text);
}

void plan_progress(struct plan *plan)
{
    struct neoset_decision *out = plan->out;
    for (size_t i = 0; i < plan->slot_count; i++) {
        struct slot *slot = &plan->slots[i];
        if (!slot->in_range || !slot->moved || !slot->live || !slot->on_target)
            continue;
        bool done = ordinals_has(&plan->next.done, slot->ordinal);
        if (!done)
            wait_for(plan, slot);
        else if (!ordinals_has(&plan->now.done, slot->ordinal))
            add_wait(&out->waits_done, &out->wait_done_count, slot->pod->name, 0, "available", false);
    }
}

/* --- ends of operations --------------------------------------------------------------------------------- */

static void end_operation(struct plan *plan, const char *kind, const char *outcome, const char *reason)
{
    struct neoset_decision *out = plan->out;
    for (size_t i = 0; i < out->step_count; i++)
        if (str_equal(out->steps[i]->operation_kind, kind) && !str_equal(outcome, "superseded"))
            return;
    out->ends = xreallocarray(out->ends, out->end_count + 1, sizeof(*out->ends));
    out->ends[out->end_count++] =
        (struct neoset_operation_end){.kind = kind, .outcome = outcome, .reason = xstrdup(reason)};
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
        bool completed = str_equal(next->stable, now->target) && next->stable_proven;
        end_operation(plan, "rollout", completed ? "completed" : "superseded",
                      completed ? "every pod runs it" : "another template was applied");
        return;
    }
    if (!neoset_deciding_equal(now, next) || plan->pod_write_open)
        return;
    bool whole = (plan->complete || plan->spec->replicas == 0) && !has_extra_pods(plan);
    if (!plan->active && plan->complete)
        end_operation(plan, "rollout", "completed", "every pod runs the target and is available");
    if (whole) {
        end_operation(plan, "scale", "completed", "as many pods as asked for are available");
        end_operation(plan, "repair", "completed", "every pod is available");
    }
    end_operation(plan, "cleanup", "completed", "nothing is left to clean up");
}
