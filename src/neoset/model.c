/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/plan_model.h"

#include "base/plant.h"
#include "base/time_text.h"
#include "neoset/kubelet_reason.h"

int plan_fence(const struct plan *plan)
{
    return plan->spec->partition;
}

int plan_stage(const struct plan *plan, int stage)
{
    return MAX(plan_fence(plan), stage);
}

char *slot_name(const struct plan *plan, const struct slot *slot)
{
    return body_pod_name(plan->set, slot->ordinal);
}

/* --- ready and available -------------------------------------------------------------------------------- */

/* Probe: every container is ready, and the kubelet has drawn the conclusion, unless a gate of someone else
 * keeps it from doing so. (The pod gets traffic only then, and a lost node's containers stay ready for ever.)
 */
static bool is_ready(const struct plan *plan, const struct pod_fact *pod)
{
    if (plan->spec->readiness == NEOSET_READY)
        return pod->ready == IS_TRUE;
    return pod_fact_probes_ready(pod) && (pod->ready == IS_TRUE || pod->foreign_gate_down);
}

/* Restarts that nobody asked for since the update, or in its whole life when there was none. */
static int own_restarts(const struct pod_fact *pod)
{
    int restarts = pod_fact_restarts(pod);
    if (!pod->state)
        return restarts;
    restarts -= pod->state->restarts;
    for (size_t i = 0; i < pod->state->container_count; i++) {
        const struct container_baseline *baseline = &pod->state->containers[i];
        const struct container_fact *container = pod_fact_container(pod, baseline->name);
        if (container && !str_equal(container->container_id, baseline->container_id))
            restarts--;
    }
    return MAX(restarts, 0);
}

static int64_t window_us(const struct plan *plan, const struct slot *slot)
{
    int64_t seconds = PLANT("window-forgets-min-ready") ? 0 : plan->spec->min_ready_seconds;
    const struct neoset_deciding *now = &plan->now;
    bool canary = now->present && now->stable_proven && !str_equal(now->stable, now->target) &&
                  now->done.count == 0 && str_equal(slot->carries, now->target);
    if (canary)
        seconds = MAX(seconds, CANARY_WINDOW_S);
    int restarts = own_restarts(slot->pod);
    int64_t patience = RESTART_WINDOW_S;
    for (int i = 0; i < restarts && patience < RESTART_WINDOW_MOST_S; i++)
        patience *= 2;
    if (restarts > 0)
        seconds = MAX(seconds, MIN(patience, (int64_t)RESTART_WINDOW_MOST_S));
    return seconds * US_PER_S;
}

/* Since when it is ready and proven, by our clock. */
static int64_t good_since(const struct plan *plan, const struct slot *slot)
{
    const struct pod_observation *seen = slot->seen;
    if (!seen)
        return plan->at->boot_us;
    int64_t since = seen->ready_boot_us;
    if (plan->spec->readiness == NEOSET_PROBE)
        since = slot->pod->ready == IS_TRUE ? MAX(seen->probes_boot_us, seen->ready_boot_us)
                                            : seen->probes_boot_us;
    const struct in_place_state *state = slot->pod->state;
    /* What status says was done is not proven anew by a run that sees it for the first time. */
    if (!slot->was_done && state && state->step && seen->proven_step == text_hash64(state->step))
        since = MAX(since, seen->proven_boot_us);
    return since == NEOSET_NEVER ? plan->at->boot_us : since;
}

/* Available: its update proven done, our gate True where the pod has it, ready, and its window passed. From
 * the moment when a write that lowers availability is sent it is not. */
static void set_available(const struct plan *plan, struct slot *slot)
{
    slot->available_boot_us = INT64_MAX;
    if (!slot->live || !slot->proven || !slot->ready ||
        (slot->pod->has_gate && slot->pod->gate != IS_TRUE && !PLANT("drained-counts-as-available")) ||
        (slot->is_open && slot->open.lowers_availability))
        return;
    slot->available_boot_us = good_since(plan, slot) + window_us(plan, slot);
    /* Ready when this run first saw it, by a clock that does not agree with ours: its window was over before.
     */
    if (slot->was_done && slot->seen && slot->seen->ready_boot_us == slot->seen->seen_boot_us)
        slot->available_boot_us = plan->at->boot_us;
    slot->available = plan->at->boot_us >= slot->available_boot_us;
}

/* --- broken --------------------------------------------------------------------------------------------- */

/* We made it anew for a target that was given up, and it never ran: nothing is lost with it. */
static bool is_abandoned(const struct plan *plan, const struct slot *slot)
{
    const struct neoset_deciding *now = &plan->now;
    if (!now->present || !ordinals_has(&now->left, slot->ordinal) || str_equal(slot->carries, now->target) ||
        str_equal(slot->carries, now->stable))
        return false;
    for (size_t i = 0; i < slot->pod->container_count; i++)
        if (slot->pod->containers[i].container_id)
            return false;
    return true;
}

/* Broken: not Ready, not terminating, and a container waits with an error, or our own update of it is
 * unfinished, or it was not Ready for the readiness timeout. Merely starting is not broken. */
static void set_broken(struct plan *plan, struct slot *slot)
{
    if (!slot->live || slot->pod->ready == IS_TRUE)
        return;
    for (size_t i = 0; i < slot->pod->container_count; i++) {
        const struct container_fact *container = &slot->pod->containers[i];
        if (container->state == CONTAINER_WAITING && kubelet_reason_is_error(container->reason))
            slot->broken_by = container;
    }
    slot->broken = slot->broken_by || !slot->proven || is_abandoned(plan, slot);
    if (slot->broken || !slot->seen || slot->seen->not_ready_boot_us == NEOSET_NEVER)
        return;
    int64_t at_us = slot->seen->not_ready_boot_us + plan->spec->readiness_timeout_seconds * US_PER_S;
    slot->broken = plan->at->boot_us >= at_us;
    plan_wake(plan, at_us);
}

/* --- slots ---------------------------------------------------------------------------------------------- */

/* A pod that was made from another revision of the same template is where it should be: only its label is to
 * be put right. */
static const char *meant_revision(const struct plan *plan, const struct slot *slot)
{
    const struct neoset_snapshot *at = plan->at;
    const char *name = slot->pod->revision;
    const char *const meant[] = {plan->now.target, plan->now.stable};
    if (!slot->revision || str_equal(name, meant[0]) || str_equal(name, meant[1]))
        return name;
    for (size_t i = 0; i < ARRAY_SIZE(meant); i++) {
        const struct revision_fact *other = revision_find(at->revisions, at->revision_count, meant[i]);
        if (other && str_equal(other->template_digest, slot->revision->template_digest))
            return other->name;
    }
    return name;
}

static void fill_slot(struct plan *plan, struct slot *slot)
{
    const struct neoset_snapshot *at = plan->at;
    CLEANUP_FREE char *missing = slot->pod ? NULL : slot_name(plan, slot);
    const char *name = slot->pod ? slot->pod->name : missing;
    slot->is_open = at->open_step(at->context, KUBE_POD, name, &slot->open);
    plan->pod_write_open = plan->pod_write_open || slot->is_open;
    const struct pod_fact *pod = slot->pod;
    if (!pod)
        return;
    slot->ours = str_equal(pod->owner_uid, plan->set->uid);
    slot->failed = pod->phase == POD_FAILED || pod->phase == POD_SUCCEEDED;
    slot->live = slot->ours && (!pod->deleting || PLANT("terminating-is-deleted-again")) && !slot->failed;
    slot->seen = neoset_memory_pod(at->memory, pod->ordinal, pod->uid);
    slot->revision = revision_find(at->revisions, at->revision_count, pod->revision);
    if (!slot->revision) /* one that is not adopted yet, or cannot be */
        slot->revision = revision_find(at->orphans, at->orphan_count, pod->revision);
    slot->carries = meant_revision(plan, slot);
    completion_judge(pod, slot->seen, at->boot_us, &slot->completion);
    if (slot->completion.again_boot_us != INT64_MAX)
        plan_wake(plan, slot->completion.again_boot_us);
    bool was_proven = slot->seen && pod->state && pod->state->step &&
                      slot->seen->proven_step == text_hash64(pod->state->step);
    /* Done on the target; or never moved away from stable, which every pod of the range ran and was available
     * with: one that is scaled away is on no list, and what it was made to run may have become stable since.
     */
    const struct neoset_deciding *now = &plan->now;
    slot->was_done = (str_equal(slot->carries, now->target) && ordinals_has(&now->done, pod->ordinal)) ||
                     (now->stable_proven && str_equal(slot->carries, now->stable) && slot->in_range &&
                      !ordinals_has(&now->left, pod->ordinal));
    slot->proven = slot->live && (slot->completion.done || was_proven || slot->was_done);
    slot->ready = slot->live && is_ready(plan, pod);
    set_available(plan, slot);
    if (!slot->available && slot->available_boot_us != INT64_MAX)
        plan_wake(plan, slot->available_boot_us);
    set_broken(plan, slot);
}

static int by_ordinal(const void *a, const void *b)
{
    const struct pod_fact *left = *(const struct pod_fact *const *)a;
    const struct pod_fact *right = *(const struct pod_fact *const *)b;
    return (left->ordinal > right->ordinal) - (left->ordinal < right->ordinal);
}

/* They mostly come in order. */
static void sort_pods(const struct pod_fact **pods, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (pods[i - 1]->ordinal <= pods[i]->ordinal)
            continue;
        qsort(pods, count, sizeof(pods[0]), by_ordinal);
        return;
    }
}

static struct slot *add_slot(struct plan *plan, int ordinal, const struct pod_fact *pod)
{
    int start = plan->spec->start;
    struct slot *slot = &plan->slots[plan->slot_count++];
    *slot = (struct slot){
        .ordinal = ordinal,
        .index = ordinal - start,
        .in_range = ordinal >= start && ordinal - start < plan->spec->replicas,
        .pod = pod,
    };
    return slot;
}

void plan_model_build(struct plan *plan)
{
    const struct neoset_snapshot *at = plan->at;
    size_t room = at->pod_count + (size_t)plan->spec->replicas;
    plan->slots = xcalloc(room + 1, sizeof(*plan->slots));
    CLEANUP_FREE const struct pod_fact **pods = xcalloc(at->pod_count + 1, sizeof(const struct pod_fact *));
    size_t count = 0;
    for (size_t i = 0; i < at->pod_count; i++)
        if (at->pods[i]->ordinal >= 0)
            pods[count++] = at->pods[i];
    sort_pods(pods, count);
    int next = plan->spec->start, end = plan->spec->start + plan->spec->replicas;
    for (size_t i = 0; i < count; i++) {
        for (; next < end && next < pods[i]->ordinal; next++)
            add_slot(plan, next, NULL);
        add_slot(plan, pods[i]->ordinal, pods[i]);
        if (next == pods[i]->ordinal)
            next++;
    }
    for (; next < end; next++)
        add_slot(plan, next, NULL);
    plan->pod_write_open = at->availability_in_doubt(at->context);
    for (size_t i = 0; i < plan->slot_count; i++)
        fill_slot(plan, &plan->slots[i]);
}

/* Moved: on the target because we patched or deleted it for that, or on its way there. */
static bool is_moved(const struct plan *plan, const struct slot *slot)
{
    if (!ordinals_has(&plan->next.left, slot->ordinal) || !plan->active)
        return false;
    if (!slot->pod || slot->pod->deleting)
        return true;
    bool draining = slot->live && !slot->on_target &&
                    ((slot->pod->has_gate && slot->pod->gate == IS_FALSE) ||
                     (slot->is_open && slot->open.lowers_availability));
    return slot->on_target || draining;
}

/* It serves, and what would prove its last update did not come in time: a container without our gate that
 * died by itself meanwhile leaves nothing that could. */
static bool is_unprovable(struct plan *plan, const struct slot *slot)
{
    if (!slot->live || slot->proven || !slot->ready || slot->pod->ready != IS_TRUE || !slot->seen ||
        slot->seen->ready_boot_us == NEOSET_NEVER || !slot->seen->update ||
        slot->completion.waiting == COMPLETION_STARTUP)
        return false;
    int64_t since_us = MAX(slot->seen->ready_boot_us, slot->seen->update->since_boot_us);
    int64_t at_us = since_us + plan->spec->readiness_timeout_seconds * US_PER_S;
    if (plan->at->boot_us >= at_us)
        return true;
    plan_wake(plan, at_us);
    return false;
}

void plan_model_count(struct plan *plan)
{
    plan->available = plan->unavailable = plan->moved_unavailable = plan->moved_count = 0;
    for (size_t i = 0; i < plan->slot_count; i++) {
        struct slot *slot = &plan->slots[i];
        slot->on_target = slot->ours && plan->next.target && str_equal(slot->carries, plan->next.target);
        slot->moved = is_moved(plan, slot);
        if (!slot->in_range)
            continue;
        plan->available += slot->available;
        plan->unavailable += !slot->available && !(PLANT("budget-forgets-terminating") && !slot->live);
        plan->moved_unavailable += slot->moved && !slot->available;
        plan->moved_count += slot->moved && !ordinals_has(&plan->next.done, slot->ordinal);
    }
    /* Its next update need not wait for ever; its place in the budget it has already. */
    for (size_t i = 0; i < plan->slot_count; i++) {
        struct slot *slot = &plan->slots[i];
        slot->unprovable = is_unprovable(plan, slot);
        slot->past_proof = slot->unprovable && plan->unavailable <= plan->spec->budget;
    }
}

void plan_model_done(struct plan *plan)
{
    free(plan->slots);
    free(plan->message);
    free(plan->volumes_text);
    neoset_deciding_done(&plan->now);
    neoset_deciding_done(&plan->next);
}
