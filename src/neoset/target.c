/* SPDX-License-Identifier: Apache-2.0
 *
 * The revision of the set's template: found by meaning, made, numbered; and history cut to its limit. */
#include "neoset/plan_model.h"

#include "base/plant.h"

static const char *operation_of(const struct plan *plan)
{
    return plan->now.present && plan->now.stable_proven ? "rollout" : "scale";
}

enum { UNSEEN_MOST = 5 };

/* The name is taken by another template: of ours, or by an object that is not. */
static bool is_taken(const struct plan *plan, const char *name)
{
    const struct neoset_snapshot *at = plan->at;
    if (revision_find(at->revisions, at->revision_count, name))
        return true;
    const struct refusal *refusal =
        neoset_memory_refusal(at->memory, KUBE_REVISION, name, STEP_CREATE_REVISION);
    /* 0: the answer was no word on it, and a look at the name found another object there. */
    if (!refusal || (refusal->http != 409 && refusal->http != 0))
        return false;
    /* One that means the same and is not seen yet is no collision; one that is never seen is. */
    return !str_equal(refusal->reason, REFUSAL_OVERTAKEN) || refusal->count >= UNSEEN_MOST;
}

static void make_revision(struct plan *plan)
{
    CLEANUP_FREE char *name =
        revision_name(plan->set->name, plan->set->template_digest, plan->now.collision_count);
    if (is_taken(plan, name)) {
        plan->next.collision_count = plan->now.collision_count + 1;
        return;
    }
    const struct neoset_snapshot *at = plan->at;
    int64_t number = revision_highest(at->revisions, at->revision_count) + 1;
    struct step_request *request =
        plan_request(plan, STEP_CREATE_REVISION, KUBE_REVISION, name, NULL, NULL, operation_of(plan));
    request->body = revision_object(plan->set, name, number);
    request->fingerprint = xasprintf("revision/%s/%lld", plan->set->template_digest, (long long)number);
    request->reason =
        xasprintf("the template of %s became revision %lld", plan->set->name, (long long)number);
    plan_emit(plan, request);
}

/* Stable, the target, or what a pod runs. */
static bool is_needed(const struct plan *plan, const char *name)
{
    if (str_equal(name, plan->now.stable) || str_equal(name, plan->now.target))
        return true;
    for (size_t i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].ours && str_equal(plan->slots[i].pod->revision, name))
            return true;
    return false;
}

/* Without it the canary would lose its fence, and pods would be made anew that could be updated in place. */
void plan_restore(struct plan *plan)
{
    const struct neoset_snapshot *at = plan->at;
    for (size_t i = 0; i < at->lost_count; i++) {
        const struct revision_fact *lost = at->lost[i];
        if (!lost || !lost->template_text || !str_equal(lost->owner_uid, plan->set->uid) ||
            revision_find(at->revisions, at->revision_count, lost->name) || !is_needed(plan, lost->name))
            continue;
        plan->restoring = true;
        plan->wanted_is_free |= str_equal(lost->template_digest, plan->set->template_digest);
        struct step_request *request = plan_request(plan, STEP_CREATE_REVISION, KUBE_REVISION, lost->name,
                                                    NULL, NULL, operation_of(plan));
        request->body = revision_object_of(plan->set, lost->template_text, lost->name, lost->number);
        request->fingerprint = xasprintf("restore/%s", lost->name);
        request->reason = xasprintf("revision %s was deleted while it is in use: make it again", lost->name);
        int step = plan_emit(plan, request);
        plan_say(plan, SAY_CREATING, "revision %s was deleted while it is in use, and is made again.",
                 lost->name);
        if (step >= 0)
            plan_event(plan, step, true, "RevisionRestored", NULL,
                       "Revision %s was deleted while it is in use; it was made again.", lost->name);
    }
}

/* A template that was there before is the newest again: its object gets the highest number. */
static void renumber(struct plan *plan)
{
    const struct neoset_snapshot *at = plan->at;
    int64_t highest = 0;
    for (size_t i = 0; i < at->revision_count; i++)
        if (at->revisions[i] != plan->wanted)
            highest = MAX(highest, at->revisions[i]->number);
    if (plan->wanted->number > highest && !PLANT("renumbered-each-turn"))
        return;
    struct step_request *request = plan_request(plan, STEP_PATCH, KUBE_REVISION, plan->wanted->name,
                                                plan->wanted->uid, plan->wanted->version, operation_of(plan));
    request->body = json_new_object();
    json_add_int64(request->body, "revision", highest + 1);
    request->fingerprint = xasprintf("renumber/%lld", (long long)highest + 1);
    request->reason = xasprintf("%s is the newest again: number %lld -> %lld", plan->wanted->name,
                                (long long)plan->wanted->number, (long long)highest + 1);
    plan_emit(plan, request);
}

void plan_target(struct plan *plan)
{
    const struct neoset_snapshot *at = plan->at;
    /* An adopted revision of the same meaning moves nothing. */
    const struct revision_fact *stored = revision_find(at->revisions, at->revision_count, plan->now.target);
    bool is_meant = stored && !stored->deleting && stored->template_text &&
                    str_equal(stored->template_digest, plan->set->template_digest);
    plan->wanted = is_meant
                       ? stored
                       : revision_find_equal(at->revisions, at->revision_count, plan->set->template_digest);
    if (plan->wanted)
        renumber(plan);
    else if (!plan->wanted_is_free)
        make_revision(plan);
}

/* --- history -------------------------------------------------------------------------------------------- */

static bool is_used(void *context, const char *name)
{
    const struct plan *plan = context;
    if (str_equal(name, plan->now.stable) || str_equal(name, plan->now.target) ||
        str_equal(name, plan->next.stable) || str_equal(name, plan->next.target) ||
        (plan->wanted && str_equal(name, plan->wanted->name)))
        return true;
    for (size_t i = 0; i < plan->slot_count && !PLANT("history-cuts-used"); i++)
        /* Whoever owns the pod: it may be adopted in this very turn. */
        if (plan->slots[i].pod && str_equal(plan->slots[i].pod->revision, name))
            return true;
    return false;
}

void plan_history(struct plan *plan)
{
    const struct neoset_snapshot *at = plan->at;
    /* Until the set's status says what is stable, nothing is known to be unused. */
    if (!plan->now.present || PLANT("history-never-cut"))
        return;
    const struct revision_fact *oldest =
        revision_to_cut(at->revisions, at->revision_count, plan->spec->history_limit, is_used, plan);
    if (!oldest)
        return;
    struct step_request *request =
        plan_request(plan, STEP_DELETE, KUBE_REVISION, oldest->name, oldest->uid, oldest->version, "cleanup");
    request->fingerprint = xstrdup("history");
    request->reason = xasprintf("history keeps %d: revision %lld goes", plan->spec->history_limit,
                                (long long)oldest->number);
    plan_emit(plan, request);
}
