/* SPDX-License-Identifier: Apache-2.0
 *
 * Missing pods with their claims, and pods that ended. */
#include "neoset/plan_model.h"

#include "base/plant.h"
#include "base/time_text.h"
#include "neoset/selector.h"

#define TERMINATING_PATIENCE_US (60 * US_PER_S)
enum { BATCH_MAX = 500 };

/* --- claims --------------------------------------------------------------------------------------------- */

bool plan_claim_is_going(const struct plan *plan, int ordinal, char **ret_name)
{
    for (size_t i = 0; i < plan->set->claim_template_count; i++) {
        CLEANUP_FREE char *name = body_claim_name(plan->set, &plan->set->claim_templates[i], ordinal);
        const struct claim_fact *claim = plan->at->claim(plan->at->context, name);
        if (!claim || !claim->deleting)
            continue;
        *ret_name = STEAL(name);
        return true;
    }
    return false;
}

/* True when every claim of the ordinal is there and stays. */
static bool ensure_claims(struct plan *plan, const struct slot *slot, const char *operation)
{
    bool whole = true;
    CLEANUP_FREE char *pod = slot_name(plan, slot);
    for (size_t i = 0; i < plan->set->claim_template_count; i++) {
        const struct claim_template *template = &plan->set->claim_templates[i];
        CLEANUP_FREE char *name = body_claim_name(plan->set, template, slot->ordinal);
        const struct claim_fact *claim = plan->at->claim(plan->at->context, name);
        if (claim && claim->deleting) {
            plan_say(plan, SAY_BLOCKED, "%s waits until the old claim %s is gone: it is being deleted.", pod,
                     name);
            whole = false;
        }
        if (claim)
            continue;
        whole = false;
        struct step_request *request =
            plan_request(plan, STEP_CREATE_CLAIM, KUBE_CLAIM, name, NULL, NULL, operation);
        request->body = body_claim(plan->set, template, slot->ordinal);
        request->fingerprint = xstrdup("create");
        request->reason = xasprintf("claim %s for %s", name, pod);
        plan_emit(plan, request);
    }
    return whole;
}

/* --- which revision ------------------------------------------------------------------------------------- */

/* Below the fence: stable. At or above: the target when we had moved the ordinal, or when stable never proved
 * itself. */
static const struct revision_fact *revision_for(const struct plan *plan, const struct slot *slot)
{
    if (slot->index < plan_fence(plan) && !PLANT("created-on-target-below-fence"))
        return plan->stable;
    bool target = !plan->now.stable_proven || PLANT("created-on-unproven-target") ||
                  ordinals_has(&plan->now.left, slot->ordinal);
    return target ? plan->target : plan->stable;
}

/* What a create goes by is stored. */
static bool is_settled(const struct plan *plan)
{
    return plan->now.present && str_equal(plan->now.target, plan->next.target) &&
           str_equal(plan->now.stable, plan->next.stable) && plan->target && plan->stable &&
           plan->wanted == plan->target;
}

/* --- creating ------------------------------------------------------------------------------------------- */

/* It was there before: we had moved it, or a higher one is there still. */
static bool is_lost(const struct plan *plan, const struct slot *slot)
{
    if (ordinals_has(&plan->now.left, slot->ordinal) || ordinals_has(&plan->now.done, slot->ordinal))
        return true;
    for (const struct slot *above = slot + 1; above < plan->slots + plan->slot_count; above++)
        if (above->in_range && above->live)
            return true;
    return false;
}

/* We took it down for its update. */
static bool is_taken_down(const struct plan *plan, const struct slot *slot)
{
    return plan->active && ordinals_has(&plan->now.left, slot->ordinal);
}

/* A pod that we had moved, a lost one that comes back, or a matter of scale. */
const char *plan_operation_of(const struct plan *plan, const struct slot *slot)
{
    if (is_taken_down(plan, slot))
        return "rollout";
    return plan->now.stable_proven && is_lost(plan, slot) ? "repair" : "scale";
}

static void create_pod(struct plan *plan, const struct slot *slot)
{
    const char *operation = plan_operation_of(plan, slot);
    const struct revision_fact *revision = revision_for(plan, slot);
    if (!ensure_claims(plan, slot, operation) || !revision || !revision->template_text)
        return;
    CLEANUP_FREE char *name =
        PLANT("second-name") ? xasprintf("%s-x%d", plan->set->name, slot->ordinal) : slot_name(plan, slot);
    struct step_request *request = plan_request(plan, STEP_CREATE_POD, KUBE_POD, name, NULL, NULL, operation);
    request->body = body_pod(plan->set, revision->template_text, revision->name, slot->ordinal,
                             PLANT("second-name") ? name : NULL);
    request->fingerprint = xasprintf("create/%s", revision->name);
    request->reason =
        xasprintf("create %s with %s", name, revision->first_image ? revision->first_image : "its image");
    plan_emit(plan, request);
    plan_say(plan, SAY_CREATING, "%s is being created.", name);
}

/* Every lower ordinal is available. A lost pod does not wait for one that is down only because we update it;
 * and one that we took down ourselves does not wait for a broken one, which is mended only when this one is
 * up, nor for a missing one, which waits for the broken one itself. */
static bool is_its_turn(struct plan *plan, const struct slot *slot)
{
    bool lost = is_lost(plan, slot);
    bool taken_down = is_taken_down(plan, slot);
    bool is_held = false;
    for (const struct slot *below = plan->slots; below < slot; below++) {
        if (!below->in_range || below->available)
            continue;
        is_held = is_held || below->broken;
        if (lost && is_taken_down(plan, below))
            continue;
        if (taken_down && (below->broken || (is_held && !below->pod)))
            continue;
        CLEANUP_FREE char *name = slot_name(plan, slot), *waited = slot_name(plan, below);
        plan_say(plan, SAY_CREATING, "%s is created once %s is available.", name, waited);
        return false;
    }
    return true;
}

/* Doubling: as many at once as are there already. */
static int batch(const struct plan *plan)
{
    int there = 0, under_way = 0;
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        there += slot->in_range && slot->live;
        under_way += slot->in_range && !slot->pod && slot->is_open;
    }
    return MIN(MAX(there, 1), BATCH_MAX) - under_way;
}

static void create_missing(struct plan *plan)
{
    bool ordered = plan->spec->management == NEOSET_ORDERED_READY;
    bool is_halted = false;
    int left = batch(plan);
    for (size_t i = 0; i < plan->slot_count; i++) {
        struct slot *slot = &plan->slots[i];
        if (!slot->in_range || slot->pod)
            continue;
        /* In order, and one waits: above it only what may overtake. */
        if (ordered && ((is_halted && !is_taken_down(plan, slot)) || !is_its_turn(plan, slot))) {
            is_halted = true;
            continue;
        }
        bool under_way = slot->is_open && !slot->open.in_doubt;
        if (!under_way && !slot->is_open && left-- <= 0)
            return;
        if (!under_way)
            create_pod(plan, slot);
        /* In order, the next one waits for this one, lost pods apart. */
    }
}

/* --- mending -------------------------------------------------------------------------------------------- */

/* A pod that ended (evicted, its node rebooted) comes back under its name, with patience. */
static void replace_failed(struct plan *plan, struct slot *slot)
{
    const struct pod_fact *pod = slot->pod;
    int64_t after_us = neoset_memory_repair_after(plan->at->memory, slot->ordinal);
    plan_say(plan, SAY_CREATING, "%s ended (%s) and is made anew.", pod->name,
             pod->reason                ? pod->reason
             : pod->phase == POD_FAILED ? "Failed"
                                        : "Succeeded");
    if (after_us > plan->at->boot_us) {
        plan_wake(plan, after_us);
        return;
    }
    char *claim = NULL;
    if (plan_claim_is_going(plan, slot->ordinal, &claim)) {
        plan_say(plan, SAY_BLOCKED, "%s ended, and is not deleted while its claim %s is being deleted.",
                 pod->name, claim);
        free(claim);
        return;
    }
    struct step_request *request =
        plan_request(plan, STEP_DELETE, KUBE_POD, pod->name, pod->uid, pod->version, "repair");
    request->fingerprint = xstrdup("repair");
    request->reason =
        xasprintf("%s ended (%s): make it anew", pod->name, pod->reason ? pod->reason : "no reason given");
    int step = plan_emit(plan, request);
    if (step >= 0)
        plan_event(plan, step, true, "PodEnded", slot, "%s ended (%s) and is made anew.", pod->name,
                   pod->reason ? pod->reason : "no reason given");
}

static void tell_foreign(struct plan *plan, const struct slot *slot)
{
    if (slot->pod->owner_uid && plan->set->waits_for_pods) {
        plan_say(plan, SAY_BLOCKED,
                 "%s belongs to %s, which is being adopted: `neosetctl adopt` goes on with it.",
                 slot->pod->name, slot->pod->owner);
        return;
    }
    if (slot->pod->owner_uid)
        plan_say(plan, SAY_BLOCKED,
                 "the pod %s belongs to %s: delete it there, or choose another name for the set.",
                 slot->pod->name, slot->pod->owner);
    else if (!selector_matches_text(plan->set->selector, slot->pod->labels))
        plan_say(
            plan, SAY_BLOCKED,
            "the pod %s belongs to nobody, and its labels do not match the selector: give it the labels, so "
            "that it is adopted, or delete it, so that it is made anew.",
            slot->pod->name);
}

/* A pod of a lost node terminates for ever: its name is taken until a person says that it is really gone. */
static void tell_terminating(struct plan *plan, const struct slot *slot)
{
    const struct pod_fact *pod = slot->pod;
    int64_t overdue_us = plan->at->wall_us - pod->deletion_us;
    if (pod->deletion_us > 0 && overdue_us > TERMINATING_PATIENCE_US)
        plan_say(
            plan, SAY_BLOCKED,
            "%s should be gone by now; if its node %s is lost for good: kubectl delete pod %s -n %s --force.",
            pod->name, pod->node ? pod->node : "", pod->name, plan->set->namespace);
    else
        plan_say(plan, SAY_CREATING, "%s is terminating; it comes back when it is gone.", pod->name);
}

void plan_create(struct plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++) {
        struct slot *slot = &plan->slots[i];
        if (!slot->in_range || !slot->pod)
            continue;
        if (!slot->ours)
            tell_foreign(plan, slot);
        else if (slot->pod->deleting)
            tell_terminating(plan, slot);
        else if (slot->failed)
            replace_failed(plan, slot);
        else if (PLANT("unready-pods-replaced") && slot->broken)
            replace_failed(plan, slot);
        else if (slot->pod->phase == POD_PENDING)
            ensure_claims(plan, slot, "repair");
    }
    if (is_settled(plan) && !plan->set->waits_for_pods)
        create_missing(plan);
}
