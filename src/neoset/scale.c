/* SPDX-License-Identifier: Apache-2.0
 *
 * Pods outside the range go: highest first, one at a time under OrderedReady. Claims stay. */
#include "neoset/plan_model.h"

static void delete_pod(struct plan *plan, const struct slot *slot)
{
    const struct pod_fact *pod = slot->pod;
    struct step_request *request =
        plan_request(plan, STEP_DELETE, KUBE_POD, pod->name, pod->uid, pod->version, "scale");
    request->fingerprint = xstrdup("scale");
    request->reason = xasprintf("%s is outside of %d replicas", pod->name, plan->spec->replicas);
    plan_emit(plan, request);
    plan_say(plan, SAY_CREATING, "%s is scaled away.", pod->name);
}

/* Under OrderedReady a pod goes when none is going and every lower one is available. */
static bool is_its_turn(struct plan *plan, const struct slot *victim)
{
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (slot->ours && slot->pod->deleting) {
            plan_say(plan, SAY_CREATING, "%s is scaled away once %s is gone.", victim->pod->name,
                     slot->pod->name);
            return false;
        }
        /* Those that are to go themselves do not count: two broken ones would wait for each other. */
        if (slot < victim && !slot->available && slot->in_range) {
            CLEANUP_FREE char *name = slot_name(plan, slot);
            plan_say(plan, SAY_CREATING, "%s is scaled away once %s is available.", victim->pod->name, name);
            return false;
        }
    }
    return true;
}

void plan_scale(struct plan *plan)
{
    bool ordered = plan->spec->management == NEOSET_ORDERED_READY;
    for (size_t i = plan->slot_count; i-- > 0;) {
        const struct slot *slot = &plan->slots[i];
        if (slot->in_range || !slot->ours || slot->pod->deleting)
            continue;
        if (ordered && !is_its_turn(plan, slot))
            return;
        if (plan_retain_claims(plan, slot))
            delete_pod(plan, slot);
        if (ordered)
            return;
    }
}
