/* SPDX-License-Identifier: Apache-2.0
 *
 * persistentVolumeClaimRetentionPolicy, by owner references only, as StatefulSet does it: with whenDeleted
 * Delete a claim belongs to the set, with whenScaled Delete to the pod that is about to be scaled away; the
 * server's garbage collector does the rest. We never delete a claim, and never touch one that someone else
 * owns. */
#include "neoset/plan_model.h"

struct owners {
    bool set;
    bool pod;
};

static struct owners wanted_owners(const struct plan *plan, const struct slot *slot)
{
    bool condemned = plan->spec->delete_claims_scaled && !slot->in_range;
    return (struct owners){.set = plan->spec->delete_claims_with_set && !condemned, .pod = condemned};
}

static bool is_foreign(const struct plan *plan, const struct slot *slot, const struct claim_fact *claim)
{
    return claim->controller_uid ||
           (claim->set_owner_uid && !str_equal(claim->set_owner_uid, plan->set->uid)) ||
           (claim->pod_owner_uid && !str_equal(claim->pod_owner_uid, slot->pod->uid));
}

/* One patch: what is added, what is taken away. */
static void patch_owners(struct plan *plan, const struct slot *slot, const struct claim_fact *claim,
                         struct owners wanted)
{
    bool has_set = claim->set_owner_uid, has_pod = claim->pod_owner_uid;
    cJSON *adopt = wanted.set && !has_set   ? body_owner_set(plan->set, false)
                   : wanted.pod && !has_pod ? body_owner_pod(slot->pod)
                                            : NULL;
    const char *release = has_set && !wanted.set   ? plan->set->uid
                          : has_pod && !wanted.pod ? slot->pod->uid
                                                   : NULL;
    struct step_request *request = plan_request(plan, adopt ? STEP_ADOPT : STEP_RELEASE, KUBE_CLAIM,
                                                claim->name, claim->uid, claim->version, "settings");
    request->body = body_owners(adopt, release);
    request->fingerprint = xasprintf("owners/%d%d/%s", wanted.set, wanted.pod, slot->pod->uid);
    request->reason = xasprintf("%s %s, as persistentVolumeClaimRetentionPolicy says", claim->name,
                                wanted.set   ? "goes with the set"
                                : wanted.pod ? "goes with its pod"
                                             : "stays");
    plan_emit(plan, request);
}

bool plan_retain_claims(struct plan *plan, const struct slot *slot)
{
    struct owners wanted = wanted_owners(plan, slot);
    bool settled = true;
    for (size_t i = 0; i < plan->set->claim_template_count; i++) {
        CLEANUP_FREE char *name = body_claim_name(plan->set, &plan->set->claim_templates[i], slot->ordinal);
        const struct claim_fact *claim = plan->at->claim(plan->at->context, name);
        /* What is under way was asked for by an older policy, perhaps: when it is there, it is looked at
         * again. */
        struct neoset_open_step open;
        bool is_open = plan->at->open_step(plan->at->context, KUBE_CLAIM, name, &open);
        settled = settled && !is_open;
        if ((is_open && !open.in_doubt) || !claim || claim->deleting || is_foreign(plan, slot, claim))
            continue;
        if (wanted.set == (claim->set_owner_uid != NULL) && wanted.pod == (claim->pod_owner_uid != NULL))
            continue;
        settled = false;
        patch_owners(plan, slot, claim, wanted);
    }
    return settled;
}

/* Once for each generation of the spec; pods that are scaled away are looked at before they go. */
void plan_retention(struct plan *plan)
{
    if (plan->set->claim_template_count == 0 ||
        neoset_memory_retention(plan->at->memory) == plan->set->generation)
        return;
    bool settled = true;
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (slot->ours && !slot->pod->deleting)
            settled = plan_retain_claims(plan, slot) && settled;
        else if (slot->in_range)
            settled = false; /* its claims may be older than the policy */
    }
    plan->out->retention_settled = settled;
}
