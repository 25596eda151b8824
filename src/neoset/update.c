/* SPDX-License-Identifier: Apache-2.0
 *
 * How a chosen pod is moved to the target: in place where only images or metadata differ - gate closed, Ready
 * seen False, grace, one patch -, else deleted, so that it comes back on the target. */
#include "neoset/plan_model.h"

#include "base/plant.h"
#include "base/time_text.h"

/* A pod that we did not make has no gate of ours, and a gate cannot be added to a pod. */
static const char in_service[] =
    "%s is being updated in service: it has not the readiness gate " NEOSET_GATE ".";

/* For the step's key, which the gateway adds. */
enum { STATE_KEY_ROOM = 256 };

/* A Ready that does not follow the gate must not hold the update up for ever. */
#define DRAIN_MOST_US (10 * US_PER_S)

/* --- re-creation
 * -------------------------------------------------------------------------------------------- */

static void recreate(struct plan *plan, const struct slot *slot, const char *why)
{
    const struct pod_fact *pod = slot->pod;
    char *claim = NULL;
    if (plan_claim_is_going(plan, slot->ordinal, &claim)) {
        plan_say(plan, SAY_BLOCKED,
                 "%s is not re-created: its claim %s is being deleted, and the data would go.", pod->name,
                 claim);
        free(claim);
        return;
    }
    struct step_request *request =
        plan_request(plan, STEP_DELETE, KUBE_POD, pod->name, pod->uid, pod->version, "rollout");
    request->fingerprint = xasprintf("recreate/%s", plan->target->name);
    request->reason = xasprintf("%s: re-create it (%s)", pod->name, why);
    request->lowers_availability = true;
    int step = plan_emit(plan, request);
    if (step >= 0)
        plan_event(plan, step, false, "Recreating", slot, "%s is re-created: %s.", pod->name, why);
}

/* What a kubelet that does not report observedGeneration shows afterwards proves nothing for a container that
 * has not run before. */
static bool has_unknown_container(const struct pod_fact *pod)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (!pod->containers[i].container_id || !pod->containers[i].image_id)
            return true;
    return false;
}

/* Why this pod cannot be patched, or NULL; the caller's. diff is made only when it can. */
static char *why_recreate(const struct plan *plan, const struct slot *slot, struct template_diff *diff)
{
    if (plan->spec->strategy == NEOSET_RECREATE)
        return xstrdup("the update strategy is Recreate");
    if (!slot->revision || !slot->revision->template_text)
        return xasprintf("its revision %s is not known",
                         slot->pod->revision ? slot->pod->revision : "(none)");
    if (!slot->proven && completion_is_old_kubelet(slot->pod))
        return xstrdup("its kubelet does not say which update it has seen, and one is unfinished");
    if (completion_is_old_kubelet(slot->pod) && has_unknown_container(slot->pod))
        return xstrdup("its kubelet does not say which update it has seen, and a container has not run yet");
    const struct refusal *refusal =
        neoset_memory_refusal(plan->at->memory, KUBE_POD, slot->pod->name, STEP_UPDATE_IN_PLACE);
    CLEANUP_FREE char *patch_of_target = xasprintf("update/%s", plan->target->name);
    if (refusal && refusal->http == 422 && str_equal(refusal->fingerprint, patch_of_target))
        return xasprintf("the API server refused the patch: %s", refusal->words);
    const char *from = slot->revision->template_text;
    if (PLANT("eligibility-from-stable") && plan->stable && plan->stable->template_text)
        from = plan->stable->template_text;
    template_diff_make(from, plan->target->template_text, diff);
    if (!diff->recreate)
        return NULL;
    return xasprintf("%s changes", diff->recreate);
}

bool plan_is_metadata_update(const struct plan *plan, const struct slot *slot)
{
    struct template_diff diff = {0};
    CLEANUP_FREE char *why = slot->proven ? why_recreate(plan, slot, &diff) : xstrdup("unfinished");
    bool metadata = !why && template_diff_is_metadata(&diff);
    template_diff_done(&diff);
    return metadata;
}

bool plan_image_changes(const struct plan *plan, const struct slot *slot, struct template_diff *ret)
{
    *ret = (struct template_diff){0};
    CLEANUP_FREE char *why = why_recreate(plan, slot, ret);
    return !why && ret->image_count > 0;
}

/* --- in place
 * ----------------------------------------------------------------------------------------------- */

static void close_gate(struct plan *plan, const struct slot *slot)
{
    const struct pod_fact *pod = slot->pod;
    struct step_request *request =
        plan_request(plan, STEP_GATE, KUBE_POD, pod->name, pod->uid, pod->version, "rollout");
    request->subresource = xstrdup("status");
    request->body = body_close_gate(pod, plan->target->name, plan->at->wall_us);
    request->fingerprint = xasprintf("drain/%s", plan->target->name);
    request->reason = xasprintf("%s: take it out of service before its update", pod->name);
    request->lowers_availability = true;
    plan_emit(plan, request);
    plan_say(plan, SAY_UPDATING, "%s is being updated.", pod->name);
}

/* Ready was seen False, and the grace period after it is over. */
static bool is_drained(struct plan *plan, const struct slot *slot)
{
    const struct pod_observation *seen = slot->seen;
    if (!seen || seen->gate_false_boot_us == NEOSET_NEVER)
        return false;
    int64_t until_us = seen->gate_false_boot_us + DRAIN_MOST_US;
    if (slot->pod->ready != IS_TRUE) {
        /* A pod that was out of service already has nobody to say goodbye to. */
        bool served = seen->not_ready_boot_us >= seen->gate_false_boot_us;
        until_us = served ? MAX(seen->drained_boot_us, seen->gate_false_boot_us) +
                                plan->spec->grace_period_seconds * US_PER_S
                          : plan->at->boot_us;
    }
    if (plan->at->boot_us >= until_us)
        return true;
    plan_wake(plan, until_us);
    plan_say(plan, SAY_UPDATING, "%s is being updated.", slot->pod->name);
    return false;
}

static void patch(struct plan *plan, const struct slot *slot, const struct template_diff *diff)
{
    const struct pod_fact *pod = slot->pod;
    struct image_change changes[UINT8_MAX];
    size_t count = 0;
    for (size_t i = 0; i < diff->image_count && count < ARRAY_SIZE(changes); i++)
        changes[count++] = (struct image_change){diff->images[i].container, diff->images[i].to};
    struct in_place_state *state =
        completion_baselines(pod, slot->proven, slot->seen, plan->at->boot_us, plan->target->name, changes,
                             count, plan->at->wall_us);
    CLEANUP_FREE char *state_text = in_place_state_print(state);
    if (strlen(state_text) + STATE_KEY_ROOM > STATE_TEXT_MAX) {
        /* It would be read as none, and an update without it as done. */
        in_place_state_free(state);
        recreate(plan, slot, "what must be remembered of its unfinished updates does not fit on the pod");
        return;
    }
    CLEANUP_FREE char *text = template_diff_text(diff);
    struct step_request *request =
        plan_request(plan, STEP_UPDATE_IN_PLACE, KUBE_POD, pod->name, pod->uid, pod->version, "rollout");
    request->body = body_update(diff, plan->target->name, state);
    request->fingerprint = xasprintf("update/%s", plan->target->name);
    request->reason = xasprintf("%s: %s", pod->name, text);
    request->lowers_availability = diff->image_count > 0;
    in_place_state_free(state);
    plan_emit(plan, request);
    plan_say(plan, SAY_UPDATING, pod->has_gate ? "%s is being updated." : in_service, pod->name);
}

void plan_update_pod(struct plan *plan, struct slot *slot)
{
    struct template_diff diff = {0};
    CLEANUP_FREE char *why = why_recreate(plan, slot, &diff);
    const struct pod_fact *pod = slot->pod;
    if (why)
        recreate(plan, slot, why);
    else if (!pod->has_gate || (template_diff_is_metadata(&diff) && slot->proven))
        patch(plan, slot, &diff);
    else if (pod->gate != IS_FALSE)
        close_gate(plan, slot);
    else if (is_drained(plan, slot))
        patch(plan, slot, &diff);
    template_diff_done(&diff);
}
