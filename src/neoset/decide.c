/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of status that decide: stable, target, stage, done and left-stable ordinals. */
#include "neoset/plan_model.h"

#include "base/plant.h"
#include "base/sha256.h"

/* With no pod to begin with, nothing is open yet; it is cut to replicas - 1 as soon as there are some. */
enum { STAGE_CLOSED = INT32_MAX };

static const struct revision_fact *find(const struct plan *plan, const char *name)
{
    return revision_find(plan->at->revisions, plan->at->revision_count, name);
}

char *plan_version_text(const struct plan *plan, const struct revision_fact *revision,
                        const struct revision_fact *other)
{
    (void)plan;
    if (!revision)
        return xstrdup("");
    bool same = other && other != revision && str_equal(revision->first_image, other->first_image);
    return xstrdup(revision->first_image && !same ? revision->first_image : revision->name);
}

/* --- stable --------------------------------------------------------------------------------------------- */

/* Status is lost, or was never written: stable is the revision of the lowest ordinal whose object exists. */
static const struct revision_fact *guess_stable(const struct plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].ours && plan->slots[i].revision)
            return plan->slots[i].revision;
    return plan->wanted;
}

static bool has_pods(const struct plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].ours)
            return true;
    return false;
}

/* Pods that tell themselves of an update which is not done have left what they were proven on, whatever they
 * are said to be on now. */
static void leave_unfinished(struct plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (slot->ours && slot->pod->state && slot->pod->state->step && !slot->completion.done)
            ordinals_add(&plan->next.left, slot->ordinal);
    }
}

static void settle_stable(struct plan *plan)
{
    struct neoset_deciding *next = &plan->next;
    if ((next->stable && find(plan, next->stable)) || plan->restoring)
        return;
    bool lost = next->stable != NULL;
    const struct revision_fact *stable = lost ? find(plan, next->target) : guess_stable(plan);
    if (!stable)
        stable = plan->wanted;
    if (!stable)
        return;
    if (lost) {
        plan_event(plan, -1, true, "StableRevisionLost", NULL,
                   "The stable revision %s was deleted: %s takes its place.", next->stable, stable->name);
    } else {
        next->stable_proven = has_pods(plan);
        leave_unfinished(plan);
    }
    str_replace(&next->stable, stable->name);
}

/* --- the target ----------------------------------------------------------------------------------------- */

/* Where the stage of a new target starts. */
static int first_stage(const struct plan *plan, const char *target)
{
    int replicas = plan->spec->replicas;
    if (!plan->next.stable_proven || PLANT("no-canary"))
        return plan_fence(plan);
    if (str_equal(target, plan->next.stable))
        return MAX(plan_fence(plan), MAX(replicas - plan->spec->budget, 0));
    return replicas > 0 ? replicas - 1 : STAGE_CLOSED;
}

static bool is_on(const struct slot *slot, const char *revision)
{
    return slot->ours && revision && str_equal(slot->carries, revision);
}

/* Every pod of the range is on that revision and available. */
static bool is_complete(const struct plan *plan, const char *revision)
{
    if (plan->spec->replicas == 0)
        return false;
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (slot->in_range && !(slot->available && is_on(slot, revision)))
            return false;
    }
    return true;
}

static void complete(struct plan *plan)
{
    struct neoset_deciding *next = &plan->next;
    if (!next->target || !find(plan, next->target) || !is_complete(plan, next->target))
        return;
    str_replace(&next->stable, next->target);
    next->stable_proven = true;
    ordinals_done(&next->left);
}

static void take_target(struct plan *plan)
{
    struct neoset_deciding *next = &plan->next;
    if (!plan->wanted || str_equal(next->target, plan->wanted->name))
        return;
    next->stage = first_stage(plan, plan->wanted->name);
    ordinals_done(&next->done);
    str_replace(&next->target, plan->wanted->name);
    next->present = true;
}

/* --- ordinals and stage --------------------------------------------------------------------------------- */

/* An ordinal that is scaled away leaves both lists. */
static void drop_outside(const struct plan *plan, struct ordinals *list)
{
    int start = plan->spec->start;
    for (size_t i = list->count; i-- > 0;) {
        int ordinal = list->items[i];
        if (ordinal < start || ordinal - start >= plan->spec->replicas)
            ordinals_remove(list, ordinal);
    }
}

/* An ordinal whose pod came back on something else (its fence was raised meanwhile) is to be done again. */
static void note_done(struct plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (!slot->in_range || !slot->ours)
            continue;
        if (!is_on(slot, plan->next.target))
            ordinals_remove(&plan->next.done, slot->ordinal);
        else if (slot->available)
            ordinals_add(&plan->next.done, slot->ordinal);
    }
}

/* At least one pod was done on this target, and every pod at or above the stage is on it and available. */
static bool may_fall(const struct plan *plan, int stage)
{
    if (plan->spec->replicas == 0 || plan->next.done.count == 0)
        return PLANT("stage-falls-over-nothing") && plan->spec->replicas > 0;
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (slot->in_range && slot->index >= stage && !(slot->available && is_on(slot, plan->next.target)) &&
            !(PLANT("stage-falls-over-missing") && !slot->pod))
            return false;
    }
    return true;
}

static void move_stage(struct plan *plan)
{
    struct neoset_deciding *next = &plan->next;
    int replicas = plan->spec->replicas;
    if (!next->stable_proven)
        next->stage = MIN(next->stage, plan_fence(plan));
    if (replicas > 0)
        next->stage = MIN(next->stage, replicas - 1);
    /* It only falls, and ends at the fence. */
    for (int stage = plan_stage(plan, next->stage); may_fall(plan, stage);) {
        int lower = MAX(plan_fence(plan), stage - plan->spec->budget);
        if (lower >= stage)
            break;
        stage = lower;
        next->stage = MIN(next->stage, stage);
    }
}

/* Where every pod runs what is stable there is nothing to open: a fence that moves is no step. */
static void rest_stage(struct plan *plan)
{
    const struct neoset_deciding *now = &plan->now;
    struct neoset_deciding *next = &plan->next;
    if (now->present && now->stable_proven && str_equal(now->target, next->target) &&
        str_equal(now->stable, next->target) && now->left.count == 0 && is_complete(plan, next->target))
        next->stage = now->stage;
}

static void name_images(struct plan *plan)
{
    struct neoset_deciding *next = &plan->next;
    plan->stable = find(plan, next->stable);
    plan->target = find(plan, next->target);
    /* "" is how an empty image is stored, and read as none. */
    if (plan->stable && plan->stable->first_image)
        str_replace(&next->current_image, *plan->stable->first_image ? plan->stable->first_image : NULL);
    if (plan->target && plan->target->first_image)
        str_replace(&next->target_image, *plan->target->first_image ? plan->target->first_image : NULL);
}

static bool has_strays(const struct plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].in_range && plan->slots[i].ours && !is_on(&plan->slots[i], plan->next.target))
            return true;
    return false;
}

void plan_decide(struct plan *plan)
{
    struct neoset_deciding *next = &plan->next;
    settle_stable(plan);
    /* The old target is judged by this turn's facts before a new one is taken. */
    complete(plan);
    take_target(plan);
    drop_outside(plan, &next->done);
    drop_outside(plan, &next->left);
    if (next->present) {
        note_done(plan);
        move_stage(plan);
        complete(plan);
        rest_stage(plan);
    }
    name_images(plan);
    plan->complete = next->present && is_complete(plan, next->target);
    /* Going back to stable is over when every pod that had left it is proven to be back. */
    bool elsewhere = next->stable_proven && (!str_equal(next->stable, next->target) || next->left.count > 0);
    /* A set that took over pods of another version has not proven itself before these are done. */
    bool taken_over = !next->stable_proven && next->left.count > 0 && !plan->complete;
    plan->active = next->present && (has_strays(plan) || elsewhere || taken_over);
    plan->canary_due = next->present && next->stable_proven && !str_equal(next->stable, next->target) &&
                       next->done.count == 0 && !PLANT("no-canary");
}

/* --- the step ------------------------------------------------------------------------------------------- */

static char *describe(const struct plan *plan)
{
    const struct neoset_deciding *now = &plan->now, *next = &plan->next;
    CLEANUP_FREE char *from = plan_version_text(plan, plan->stable, plan->target);
    CLEANUP_FREE char *to = plan_version_text(plan, plan->target, plan->stable);
    if (!str_equal(now->target, next->target) && now->present)
        return xasprintf("roll %s from %s to %s: the stage starts at %d", plan->set->name, from, to,
                         next->stage);
    if (!now->present)
        return xasprintf("begin with %s", to);
    if (!str_equal(now->stable, next->stable) || now->stable_proven != next->stable_proven)
        return xasprintf("every pod runs %s: it is stable now", to);
    if (now->stage != next->stage)
        return xasprintf("stage %d -> %d", now->stage, next->stage);
    if (!ordinals_equal(&now->done, &next->done))
        return xasprintf("%zu of %d pods are done", next->done.count, plan->spec->replicas);
    for (size_t i = 0; i < next->left.count; i++)
        if (!ordinals_has(&now->left, next->left.items[i]))
            return xasprintf("%s-%d may leave %s", plan->set->name, next->left.items[i], from);
    if (!ordinals_equal(&now->left, &next->left))
        return xasprintf("%zu pods have left %s", next->left.count, from);
    return xasprintf("collision count %d -> %d", now->collision_count, next->collision_count);
}

static void announce(struct plan *plan, int step)
{
    const struct neoset_deciding *now = &plan->now, *next = &plan->next;
    CLEANUP_FREE char *from = plan_version_text(plan, plan->stable, plan->target);
    CLEANUP_FREE char *to = plan_version_text(plan, plan->target, plan->stable);
    if (now->present && !str_equal(now->target, next->target)) {
        /* A way back to stable comes from what was left half way. */
        bool goes_back = str_equal(next->target, next->stable);
        const struct revision_fact *left = goes_back ? find(plan, now->target) : plan->stable;
        CLEANUP_FREE char *come_from = plan_version_text(plan, left, plan->target);
        CLEANUP_FREE char *go_to = plan_version_text(plan, plan->target, left);
        plan_event(plan, step, false, "RolloutStarted", NULL, "Rolling from %s to %s, at most %d at a time.",
                   come_from, go_to, plan->spec->budget);
    } else if (now->present && next->stable_proven &&
               (!now->stable_proven || !str_equal(now->stable, next->stable)))
        plan_event(plan, step, false, now->stable_proven ? "RolloutCompleted" : "Created", NULL,
                   "All %d pods run %s.", plan->spec->replicas, to);
    else if (now->present && now->stage != next->stage && plan->active)
        plan_event(plan, step, false, "StageOpened", NULL, "The stage went from %d to %d.", now->stage,
                   next->stage);
}

/* The first field of status that differs; static. */
static const char *first_difference(const struct neoset_deciding *now, const struct neoset_deciding *next)
{
    const struct {
        const char *field;
        bool same;
    } fields[] = {
        {"currentRevisionName", str_equal(now->stable, next->stable)},
        {"currentRevisionProven", now->stable_proven == next->stable_proven},
        {"updateRevisionName", str_equal(now->target, next->target)},
        {"currentPartition", now->stage == next->stage},
        {"collisionCount", now->collision_count == next->collision_count},
        {"doneOrdinals", ordinals_equal(&now->done, &next->done)},
        {"leftStableOrdinals", ordinals_equal(&now->left, &next->left)},
        {"currentImage", str_equal(now->current_image, next->current_image)},
        {"targetImage", str_equal(now->target_image, next->target_image)},
    };
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (!fields[i].same)
            return fields[i].field;
    return "updateRevisionName";
}

/* The step was applied, and what it wrote is not there. */
static void tell_not_kept(struct plan *plan, const struct step_request *request)
{
    const struct refusal *refusal =
        neoset_memory_refusal(plan->at->memory, request->resource, request->name, STEP_ADVANCE);
    if (!refusal || !str_equal(refusal->reason, REFUSAL_NOT_KEPT) ||
        !str_equal(refusal->fingerprint, request->fingerprint))
        return;
    const char *field = first_difference(&plan->now, &plan->next);
    plan_say(plan, SAY_REFUSED,
             "the API server takes the status of this set and does not keep status.%s: its definition of "
             "NeoSet is older than this controller. Apply deploy/crd.yaml of this version.",
             field);
    plan_event(plan, -1, true, "StatusNotKept", NULL,
               "The API server does not keep status.%s: apply deploy/crd.yaml of this version.", field);
}

void plan_advance(struct plan *plan)
{
    if (neoset_deciding_equal(&plan->now, &plan->next) || plan->at->status_write_open)
        return;
    const struct neoset_deciding *now = &plan->now;
    bool ends_rollout = now->present && (!str_equal(now->stable, plan->next.stable) || now->left.count > 0);
    bool rollout = plan->active || ends_rollout;
    struct step_request *request =
        plan_request(plan, STEP_ADVANCE, KUBE_NEOSET, plan->set->name, plan->set->uid, plan->set->version,
                     rollout ? "rollout" : "scale");
    request->subresource = xstrdup("status");
    request->body = json_new_object();
    cJSON *status = neoset_deciding_json(&plan->next);
    json_add_item(request->body, "status", status);
    CLEANUP_FREE char *text = json_print_sorted(status);
    uint8_t digest[SHA256_SIZE];
    sha256_once(text, strlen(text), digest);
    CLEANUP_FREE char *hex = hex_encode(digest, 16);
    request->fingerprint = xasprintf("advance/%s", hex);
    request->reason = describe(plan);
    tell_not_kept(plan, request);
    int step = plan_emit(plan, request);
    plan->advancing = step >= 0;
    if (step >= 0)
        announce(plan, step);
}
