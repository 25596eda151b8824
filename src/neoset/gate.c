/* SPDX-License-Identifier: Apache-2.0
 *
 * The gate's upkeep, every turn, also while paused, failed or being deleted: a live pod whose gate is not
 * True, and that is neither chosen in this turn nor waiting for its kubelet, gets True. And the first write
 * after the kubelet saw an update names the containers of that moment: the witness. */
#include "neoset/plan_model.h"

#include "base/plant.h"

/* An old kubelet does not say what it has seen: the restart itself is the sign. */
static bool has_restarted(const struct pod_fact *pod)
{
    for (size_t i = 0; i < pod->state->container_count; i++) {
        const struct container_baseline *baseline = &pod->state->containers[i];
        const struct container_fact *container = pod_fact_container(pod, baseline->name);
        if (!container || !container->ready ||
            (baseline->container_id && str_equal(baseline->container_id, container->container_id)))
            return false;
    }
    return true;
}

static bool waits_for_kubelet(const struct slot *slot)
{
    if (slot->proven || !slot->pod->state)
        return false;
    if (completion_is_old_kubelet(slot->pod))
        return !has_restarted(slot->pod);
    return !slot->completion.seen;
}

/* A new pod's status is being written by others until its containers run; before that our write would only
 * collide, and nothing could be ready anyway. */
static bool is_starting(const struct pod_fact *pod)
{
    if (pod->gate != IS_UNKNOWN)
        return false;
    for (size_t i = 0; i < pod->container_count; i++)
        if (pod->containers[i].state != CONTAINER_RUNNING)
            return true;
    return false;
}

static void open_gate(struct plan *plan, const struct slot *slot, const char *update)
{
    const struct pod_fact *pod = slot->pod;
    struct step_request *request = plan_request(plan, STEP_GATE, KUBE_POD, pod->name, pod->uid, pod->version,
                                                update ? "rollout" : plan_operation_of(plan, slot));
    request->subresource = xstrdup("status");
    const struct pod_observation *seen = slot->seen;
    const cJSON *noted = update && seen && seen->update && seen->update->step == text_hash64(update)
                             ? seen->update->witness
                             : NULL;
    CLEANUP_JSON cJSON *now = noted ? NULL : completion_witness(pod);
    request->body = body_open_gate(pod, update, noted ? noted : now, plan->at->wall_us);
    request->fingerprint = xasprintf("open/%s", update ? update : "");
    request->reason =
        update ? xasprintf("%s: the kubelet has seen the update; let it back into service", pod->name)
               : xasprintf("%s: let it into service", pod->name);
    plan_emit(plan, request);
}

void plan_gates(struct plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (!slot->live || slot->chosen || waits_for_kubelet(slot) ||
            (PLANT("no-upkeep-in-pause") && plan->spec->pause))
            continue;
        const struct pod_fact *pod = slot->pod;
        bool unfinished = pod->state && pod->state->step && !slot->proven;
        bool needs_witness = unfinished && !pod->witnessed;
        bool is_shut = pod->has_gate && pod->gate != IS_TRUE && !is_starting(pod);
        is_shut = is_shut && !(PLANT("no-gate-on-new-pod") && pod->gate == IS_UNKNOWN);
        is_shut = is_shut && !(PLANT("abandoned-drain-stays") && pod->gate == IS_FALSE && !unfinished);
        is_shut = is_shut || (PLANT("gate-written-again") && pod->has_gate && pod->ready == IS_TRUE);
        if (needs_witness || is_shut)
            open_gate(plan, slot, unfinished ? pod->state->step : NULL);
    }
}
