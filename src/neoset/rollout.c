/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pod next. First those whose update has begun; then one more: a pod that is not on the target and is
 * broken, or whose last update nothing can prove any more, at or above the fence - the stage does not matter,
 * it costs no budget and needs no canary -, else the highest available pod at or above the stage while the
 * budget lasts. At most `budget` pods that were moved to the target may be unavailable, so a bad version
 * cannot spread. */
#include "neoset/plan_model.h"

#include "base/plant.h"

/* Its next update does not wait for its own health, nor for the stage. (A broken one does not wait for the
 * canary either; one that serves does.) */
static bool slot_is_sick(const struct slot *slot)
{
    return slot->broken || slot->past_proof;
}

static int stage_now(const struct plan *plan)
{
    return plan_stage(plan, plan->next.stage);
}

/* Drained, or being drained, and not patched yet. */
static bool has_begun(const struct slot *slot)
{
    bool again = PLANT("patched-until-proven") && slot->on_target && !slot->proven;
    if (!slot->live || (slot->on_target && !again) || !slot->moved)
        return false;
    bool closed = slot->pod->has_gate && slot->pod->gate == IS_FALSE;
    return closed || (slot->is_open && slot->open.lowers_availability);
}

/* What is stored still waits for the canary, and another pod is it: that it is done is in status before the
 * next one is moved. */
static bool is_behind_canary(const struct plan *plan, const struct slot *slot)
{
    const struct neoset_deciding *now = &plan->now;
    if (slot->broken || !now->stable_proven || str_equal(now->stable, now->target) || now->done.count > 0 ||
        PLANT("no-canary"))
        return false;
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *other = &plan->slots[i];
        if (other != slot && other->in_range && other->moved)
            return true;
    }
    return false;
}

/* What is stored allows a write that moves this pod. */
static bool is_allowed(const struct plan *plan, const struct slot *slot)
{
    const struct neoset_deciding *now = &plan->now;
    if (PLANT("write-before-decision"))
        return true;
    return now->present && str_equal(now->target, plan->next.target) &&
           ordinals_has(&now->left, slot->ordinal) && !is_behind_canary(plan, slot) &&
           (slot_is_sick(slot) || slot->index >= plan_stage(plan, now->stage));
}

/* The server refused a write of this very update lately: until its back-off is over the pod goes on serving.
 * (A patch that it calls invalid is made up for by a re-creation at once.) */
static bool is_put_off(struct plan *plan, const struct slot *slot)
{
    static const enum step_kind kinds[] = {STEP_UPDATE_IN_PLACE, STEP_GATE, STEP_DELETE};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct refusal *refusal =
            neoset_memory_refusal(plan->at->memory, KUBE_POD, slot->pod->name, kinds[i]);
        if (!refusal || refusal->again_boot_us <= plan->at->boot_us || !refusal->fingerprint ||
            (refusal->kind == STEP_UPDATE_IN_PLACE && refusal->http == 422))
            continue;
        const char *of = strchr(refusal->fingerprint, '/');
        if (!of || !str_equal(of + 1, plan->target->name))
            continue;
        plan_wake(plan, refusal->again_boot_us);
        plan_say(plan, SAY_REFUSED, "the API server refuses to %s Pod %s: %s.",
                 step_kind_info(refusal->kind)->text, refusal->name,
                 *refusal->words ? refusal->words : "no reason given");
        return true;
    }
    return false;
}

/* It was taken out of service for another target, whose images may not be to be had: it serves again until
 * they are. */
static bool is_to_serve_again(struct plan *plan, const struct slot *slot)
{
    return !slot->broken && !str_equal(slot->pod->drained_for, plan->target->name) &&
           !plan_fetch(plan, slot, false);
}

static void go_on(struct plan *plan)
{
    int used = 0;
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        used += slot->in_range && slot->moved && !slot->available && !has_begun(slot);
    }
    for (size_t i = plan->slot_count; i-- > 0;) {
        struct slot *slot = &plan->slots[i];
        bool in_reach =
            slot->index >= stage_now(plan) || (slot_is_sick(slot) && slot->index >= plan_fence(plan));
        int limit = plan->canary_due && !slot->broken ? 1 : plan->spec->budget;
        if (!slot->in_range || !has_begun(slot) || !in_reach || used >= limit || is_put_off(plan, slot) ||
            is_to_serve_again(plan, slot))
            continue;
        used++;
        slot->chosen = true;
        if (is_allowed(plan, slot))
            plan_update_pod(plan, slot);
    }
}

/* --- the next one
 * ------------------------------------------------------------------------------------------- */

static struct slot *find_sick(struct plan *plan)
{
    if (plan->moved_unavailable >= plan->spec->budget && !PLANT("healing-without-bound"))
        return NULL;
    bool is_canary_out = plan->canary_due && plan->moved_count > 0;
    for (size_t i = plan->slot_count; i-- > 0;) {
        struct slot *slot = &plan->slots[i];
        if (slot->in_range && !slot->on_target && !slot->chosen &&
            (is_canary_out ? slot->broken : slot_is_sick(slot)) &&
            slot->index >= (PLANT("healing-crosses-fence") ? 0 : plan_fence(plan)) &&
            (slot->index >= stage_now(plan) || !PLANT("healing-held-to-stage")) && !is_put_off(plan, slot))
            return slot;
    }
    return NULL;
}

static struct slot *find_available(struct plan *plan)
{
    /* Until the canary is done, no second one is moved. */
    if (plan->canary_due && plan->moved_count > 0)
        return NULL;
    bool room = plan->unavailable < plan->spec->budget && plan->moved_unavailable < plan->spec->budget;
    for (size_t i = plan->slot_count; i-- > 0;) {
        struct slot *slot = &plan->slots[i];
        if (!slot->in_range || !slot->live || (slot->on_target && !PLANT("done-pods-moved-again")) ||
            slot->chosen || slot->index < stage_now(plan))
            continue;
        if (slot->available && !is_put_off(plan, slot) && (room || plan_is_metadata_update(plan, slot)))
            return slot;
        /* The highest: a canary is not any pod. */
        if (plan->canary_due && slot->available)
            return NULL;
    }
    return NULL;
}

/* A template that the server refuses fails before anything is drained. */
static bool is_tried(struct plan *plan, const struct slot *slot)
{
    for (size_t i = 0; i < plan->slot_count; i++)
        if (plan->slots[i].live && plan->slots[i].on_target)
            return true;
    const char *words = NULL;
    int64_t again_us = 0;
    enum probe_state state = neoset_memory_probe(plan->at->memory, plan->target->name, &words, &again_us);
    if (!plan->at->can_probe || state == PROBE_ACCEPTED)
        return true;
    if (state == PROBE_REFUSED) {
        plan_say(plan, SAY_REFUSED,
                 "the API server refuses a pod of the new template: %s. Nothing was touched.",
                 words && *words ? words : "no reason given");
        plan_event(plan, -1, true, "TemplateRefused", NULL, "The API server refuses a pod of %s: %s.",
                   plan->target->name, words && *words ? words : "no reason given");
    }
    if (state == PROBE_REFUSED && again_us > plan->at->boot_us) {
        plan_wake(plan, again_us);
        return false;
    }
    CLEANUP_FREE char *name = xasprintf("%s-try", plan->set->name);
    plan->out->probe_pod =
        body_pod(plan->set, plan->target->template_text, plan->target->name, slot->ordinal, name);
    plan->out->probe_revision = xstrdup(plan->target->name);
    return false;
}

/* A write to a pod of the set goes out with this turn. */
static bool writes_pod(const struct plan *plan)
{
    for (size_t i = 0; i < plan->out->step_count; i++)
        if (plan->out->steps[i]->resource == KUBE_POD &&
            !str_starts_with(plan->out->steps[i]->fingerprint, "prefetch/"))
            return true;
    return false;
}

static void begin_next(struct plan *plan)
{
    if (plan->pod_write_open || writes_pod(plan))
        return;
    struct slot *slot = find_sick(plan);
    if (!slot && !plan->failed)
        slot = find_available(plan);
    if (!slot || !is_tried(plan, slot) || (!slot->broken && !plan_fetch(plan, slot, true)))
        return;
    slot->chosen = true;
    /* The decision is in status before the write that it allows. */
    ordinals_add(&plan->next.left, slot->ordinal);
    if (is_allowed(plan, slot))
        plan_update_pod(plan, slot);
}

/* --- for people
 * --------------------------------------------------------------------------------------------- */

/* " (db-3 runs db:2)": the first pod below the fence that runs something other than stable, and how many
 * more; "" when there is none; the caller's. */
static char *odd_below_fence(const struct plan *plan)
{
    const struct slot *first = NULL;
    int others = 0;
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (!slot->in_range || !slot->ours || slot->index >= plan_fence(plan) ||
            str_equal(slot->carries, plan->next.stable))
            continue;
        others += first != NULL;
        first = first ? first : slot;
    }
    if (!first)
        return xstrdup("");
    CLEANUP_FREE char *version = plan_version_text(plan, first->revision, plan->stable);
    CLEANUP_FREE char *more =
        others > 0 ? xasprintf(", and %d more are not on the stable revision", others) : xstrdup("");
    return xasprintf(" (%s runs %s%s)", first->pod->name, *version ? version : "an unknown revision", more);
}

static void tell_held(struct plan *plan)
{
    int held = 0;
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        held += slot->in_range && slot->ours && !slot->on_target && slot->index < plan_fence(plan);
    }
    CLEANUP_FREE char *odd = odd_below_fence(plan);
    if (held > 0)
        plan_say(plan, SAY_HELD,
                 "%d pod%s held back by partition %d%s: lower spec.updateStrategy.partition to go on.", held,
                 held == 1 ? " is" : "s are", plan_fence(plan), odd);
}

static void tell_waiting(struct plan *plan)
{
    for (size_t i = plan->slot_count; i-- > 0;) {
        const struct slot *slot = &plan->slots[i];
        if (!slot->in_range || slot->available || slot->on_target || !slot->live)
            continue;
        CLEANUP_FREE char *trouble = slot_trouble(plan, slot);
        if (slot->unprovable && !slot->past_proof && !*trouble) {
            plan_say(plan, SAY_BLOCKED,
                     "nothing can prove the last update of %s any more, and more pods are unavailable than "
                     "maxUnavailable lets be: raise it, or kubectl delete pod %s -n %s makes it anew.",
                     slot->pod->name, slot->pod->name, plan->set->namespace);
            continue;
        }
        const char *why = *trouble ? trouble : slot->proven ? "" : "its last update is not proven yet";
        plan_say(plan, SAY_UPDATING, "waiting for %s to be available%s%s.", slot->pod->name, *why ? ": " : "",
                 why);
    }
}

void plan_rollout(struct plan *plan)
{
    if (!plan->active || !plan->target || plan->wanted != plan->target)
        return;
    tell_held(plan);
    if (plan->restoring)
        return;
    if (plan->spec->pause && !PLANT("pause-ignored")) {
        plan_say(plan, SAY_PAUSED, "paused: set spec.updateStrategy.pause to false to go on.");
        return;
    }
    go_on(plan);
    begin_next(plan);
    tell_waiting(plan);
}
