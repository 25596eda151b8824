/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose the pods and revisions are. Orphans that match the selector are adopted, after the set itself was
 * read from the API server: a watch may not know yet that it is gone. Pods whose labels stop matching are
 * released, not deleted. Nobody's claim to an object is fought over: what another controller owns is left
 * alone. */
#include "neoset/plan_model.h"

#include "base/time_text.h"
#include "neoset/selector.h"

/* How long a revision that somebody else still controls may take to become an orphan (a StatefulSet that was
 * deleted with its pods left behind), before its pods count as old. */
#define FOREIGN_PATIENCE_US (60 * US_PER_S)
#define FOREIGN_AGAIN_US (5 * US_PER_S)

/* The answer for one set of labels; all pods of a set have the same, mostly. */
struct match {
    const char *labels; /* pool: equal texts are equal pointers */
    bool known;
    bool matches;
};

static bool is_matched(const struct plan *plan, struct match *last, const char *labels)
{
    if (!last->known || last->labels != labels)
        *last = (struct match){labels, true, selector_matches_text(plan->set->selector, labels)};
    return last->matches;
}

static void emit_owner(struct plan *plan, enum step_kind kind, enum kube_resource resource, const char *name,
                       const char *uid, const char *version, char *reason)
{
    struct step_request *request = plan_request(plan, kind, resource, name, uid, version, "adopt");
    bool adopts = kind == STEP_ADOPT;
    request->body =
        body_owners(adopts ? body_owner_set(plan->set, true) : NULL, adopts ? NULL : plan->set->uid);
    request->fingerprint = xasprintf("%s/%s", adopts ? "adopt" : "release", plan->set->uid);
    request->reason = reason;
    plan_emit(plan, request);
}

/* --- revisions ------------------------------------------------------------------------------------------ */

/* Named as its revisions are, or what one of its pods carries: another set may have the same selector, and
 * its history is not ours to cut. */
static bool is_of_its_name(const struct plan *plan, const struct revision_fact *orphan)
{
    size_t length = strlen(plan->set->name);
    if (str_starts_with(orphan->name, plan->set->name) && orphan->name[length] == '-' &&
        !strchr(orphan->name + length + 1, '-'))
        return true;
    for (size_t i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].pod && str_equal(plan->slots[i].pod->revision, orphan->name))
            return true;
    return false;
}

static bool is_wanted_orphan(const struct plan *plan, struct match *last, const struct revision_fact *orphan)
{
    return !orphan->deleting && orphan->template_text && is_matched(plan, last, orphan->labels) &&
           is_of_its_name(plan, orphan);
}

/* The server can not update every revision (422 for data that is not spelt as its encoder does): it goes on
 * without that one, which still says what a pod runs. */
static bool is_refused(const struct plan *plan, const struct revision_fact *orphan)
{
    const struct refusal *refusal =
        neoset_memory_refusal(plan->at->memory, KUBE_REVISION, orphan->name, STEP_ADOPT);
    return refusal && refusal->http == 422;
}

/* True when there is none to be adopted first. */
static bool adopt_revisions(struct plan *plan, struct match *last)
{
    bool none = true;
    for (size_t i = 0; i < plan->at->orphan_count; i++) {
        const struct revision_fact *orphan = plan->at->orphans[i];
        if (!is_wanted_orphan(plan, last, orphan))
            continue;
        bool refused = is_refused(plan, orphan);
        none = none && refused;
        if (!refused && str_equal(orphan->template_digest, plan->set->template_digest))
            plan->wanted_is_free = true;
        plan->out->read_set = !plan->at->set_was_read;
        if (plan->at->set_was_read)
            emit_owner(plan, STEP_ADOPT, KUBE_REVISION, orphan->name, orphan->uid, orphan->version,
                       xasprintf("%s matches the selector and belongs to nobody", orphan->name));
    }
    return none;
}

/* --- pods ----------------------------------------------------------------------------------------------- */

/* What the pod runs is known: its revision is ours, or there is none to wait for. */
static bool is_revision_known(struct plan *plan, const struct slot *slot)
{
    const struct neoset_snapshot *at = plan->at;
    const char *name = slot->pod->revision;
    int64_t since_us = 0, asked_us = 0;
    if (!name || slot->revision)
        return true;
    switch (neoset_memory_lookup(at->memory, name, &since_us, &asked_us)) {
    case LOOKUP_ABSENT:
    case LOOKUP_ORPHAN: /* it does not match, or it would be adopted first */
        return true;
    case LOOKUP_FOREIGN:
        if (at->boot_us >= since_us + FOREIGN_PATIENCE_US)
            return true;
        plan_say(plan, SAY_CREATING, "%s is adopted once its revision %s is free.", slot->pod->name, name);
        plan_wake(plan, asked_us + FOREIGN_AGAIN_US);
        if (at->boot_us < asked_us + FOREIGN_AGAIN_US)
            return false;
        break;
    case LOOKUP_UNKNOWN:
        break;
    }
    if (!plan->out->read_revision)
        plan->out->read_revision = xstrdup(name);
    return false;
}

static void adopt_pod(struct plan *plan, const struct slot *slot)
{
    if (!is_revision_known(plan, slot))
        return;
    if (!plan->at->set_was_read) {
        plan->out->read_set = true;
        return;
    }
    const struct pod_fact *pod = slot->pod;
    emit_owner(plan, STEP_ADOPT, KUBE_POD, pod->name, pod->uid, pod->version,
               xasprintf("%s matches the selector and belongs to nobody", pod->name));
    plan_say(plan, SAY_CREATING, "%s is being adopted.", pod->name);
}

static void release_pod(struct plan *plan, const struct slot *slot)
{
    const struct pod_fact *pod = slot->pod;
    emit_owner(plan, STEP_RELEASE, KUBE_POD, pod->name, pod->uid, pod->version,
               xasprintf("%s does not match the selector any more", pod->name));
    plan_event(plan, (int)plan->out->step_count - 1, true, "PodReleased", slot,
               "%s does not match the selector any more and is left to itself.", pod->name);
}

static void relabel_pod(struct plan *plan, const struct slot *slot)
{
    const struct pod_fact *pod = slot->pod;
    struct step_request *request =
        plan_request(plan, STEP_PATCH, KUBE_POD, pod->name, pod->uid, pod->version, "adopt");
    request->body = json_new_object();
    cJSON *labels = json_add_object(json_add_object(request->body, "metadata"), "labels");
    json_add_str(labels, NEOSET_REVISION_LABEL, slot->carries);
    request->fingerprint = xasprintf("relabel/%s", slot->carries);
    request->reason = xasprintf("%s runs what %s means: label it so", pod->name, slot->carries);
    plan_emit(plan, request);
}

void plan_ownership(struct plan *plan)
{
    struct match last = {0};
    bool revisions_are_ours = adopt_revisions(plan, &last);
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (!slot->pod || slot->pod->deleting || (slot->pod->owner_uid && !slot->ours))
            continue;
        bool matches = is_matched(plan, &last, slot->pod->labels);
        if (slot->ours && !matches)
            release_pod(plan, slot);
        else if (slot->ours && !str_equal(slot->carries, slot->pod->revision))
            relabel_pod(plan, slot);
        else if (!slot->ours && matches && revisions_are_ours)
            adopt_pod(plan, slot);
    }
}
