/* SPDX-License-Identifier: Apache-2.0
 *
 * What people and autoscalers read: counts, phase, and one sentence that says why the set stands where it
 * stands and what unblocks it. */
#include "neoset/plan_model.h"

#include "base/plant.h"
#include "base/time_text.h"

/* How often a set with an open step is looked at though nothing happens. */
#define DOUBT_AGAIN_US (15 * US_PER_S)

struct counts {
    int replicas;
    int ready;
    int updated;
    int updated_ready;
    int updated_available;
};

/* The template is new, and its revision is not made yet. The status is of its generation already: whoever
 * waits for that and for updatedReplicas must not take the old version's pods for the new one's. */
static bool is_template_new(const struct plan *plan)
{
    return plan->next.present && !plan->wanted && !plan->wanted_is_free && !plan->set->problem &&
           !plan->set->deleting;
}

static struct counts count(const struct plan *plan)
{
    struct counts counts = {0};
    bool is_new = is_template_new(plan);
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (!slot->ours)
            continue;
        bool ready = (slot->pod->ready == IS_TRUE || PLANT("status-ahead")) && !slot->pod->deleting;
        bool updated = slot->on_target && slot->proven && !is_new;
        counts.replicas++;
        counts.ready += ready;
        counts.updated += updated;
        counts.updated_ready += updated && ready;
        counts.updated_available += updated && slot->available;
    }
    return counts;
}

/* --- phase and message ---------------------------------------------------------------------------------- */

/* Nothing is done yet, or the fence holds the stage where it started. */
static bool is_canary(const struct plan *plan)
{
    const struct neoset_deciding *next = &plan->next;
    if (!next->stable_proven || str_equal(next->stable, next->target))
        return false;
    int fence = plan_fence(plan);
    return next->done.count == 0 || (fence > 0 && fence >= plan->spec->replicas - 1);
}

static const char *phase_of(const struct plan *plan)
{
    if (plan->set->problem)
        return "Failed";
    if (plan->spec->pause)
        return "Paused";
    if (plan->failed)
        return "Failed";
    /* The newest template has no revision yet: what is complete is the one before, and its rollout is about
     * to begin. */
    if (plan->next.present && !plan->wanted)
        return "Canary";
    if (plan->active)
        return is_canary(plan) ? "Canary" : "RollingOut";
    /* The first revision is no rollout. */
    return plan->next.stable_proven && plan->target && plan->target->number > 1 ? "Completed" : "Idle";
}

/* A pod that worked, and broke. */
static void tell_broken(struct plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        bool settled = !plan->active || ordinals_has(&plan->next.done, slot->ordinal);
        const char *told = NULL;
        if (!slot->in_range || !slot->live || !settled ||
            (!slot->broken && !neoset_memory_crash(plan->at->memory, slot->pod, &told)))
            continue;
        CLEANUP_FREE char *trouble = slot_trouble(plan, slot);
        if (!slot->broken && !*trouble)
            continue;
        /* Between two crashes it is even ready, and the words stay the same. */
        const struct container_fact *by = slot->broken_by;
        bool crashes = *trouble && (!by || str_equal(by->reason, "CrashLoopBackOff"));
        plan_say(plan, SAY_BLOCKED, "%s %s%s%s: kubectl describe pod %s -n %s tells more.", slot->pod->name,
                 crashes ? "does not stay up" : "is not ready", *trouble ? ": " : "", trouble,
                 slot->pod->name, plan->set->namespace);
    }
}

/* Only the API server can tell, and it does not answer; or a person knows. */
static void tell_in_doubt(struct plan *plan)
{
    const struct neoset_snapshot *at = plan->at;
    struct neoset_open_step open = {0};
    if (at->parked)
        plan_say(plan, SAY_IN_DOUBT, "%s; neoset-audit in-doubt tells more.", at->parked);
    else if (plan->pod_write_open ||
             at->open_step(at->context, KUBE_NEOSET, plan->set->name, &open)) /* it may be parked one day */
        plan_wake(plan, at->boot_us + DOUBT_AGAIN_US);
}

static void tell_rest(struct plan *plan)
{
    tell_in_doubt(plan);
    tell_broken(plan);
    if (plan->set->problem)
        plan_say(plan, SAY_INVALID, "nothing is done with this spec: %s", plan->set->problem);
    if (plan->set->deleting)
        plan_say(plan, SAY_INVALID, "the set is being deleted.");
    if (plan->spec->pause && !plan->set->waits_for_pods)
        plan_say(plan, SAY_PAUSED, "paused: set spec.updateStrategy.pause to false to let updates begin.");
    CLEANUP_FREE char *version = plan_version_text(plan, plan->target, plan->stable);
    if (plan->spec->replicas == 0)
        plan_say(plan, SAY_STEADY, "no pod is asked for (replicas is 0).");
    else if (is_template_new(plan))
        plan_say(plan, SAY_STEADY, "the template is new: its revision is being made.");
    else if (plan->complete && !plan->active)
        plan_say(plan, SAY_STEADY, "all %d pods run %s.", plan->spec->replicas, version);
    else
        plan_say(plan, SAY_STEADY, "%d of %d pods are available.", plan->available, plan->spec->replicas);
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* The last accepted write that moved a pod, as text; "" when there was none. */
static void last_update(const struct plan *plan, char text[static TIME_TEXT_SIZE])
{
    int64_t at_us = 0;
    if (plan->set->last_update && time_parse_rfc3339(plan->set->last_update, &at_us, NULL) < 0)
        at_us = 0;
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct slot *slot = &plan->slots[i];
        if (!slot->ours)
            continue;
        if (slot->pod->state)
            at_us = MAX(at_us, slot->pod->state->at_us);
        else if (slot->moved && slot->on_target)
            at_us = MAX(at_us, slot->pod->created_us);
    }
    text[0] = '\0';
    if (at_us > 0)
        time_format_seconds(at_us, text);
}

static int by_newest(const void *a, const void *b)
{
    const struct revision_fact *const *left = a, *const *right = b;
    if ((*left)->number != (*right)->number)
        return (*left)->number > (*right)->number ? -1 : 1;
    return strcmp((*left)->name, (*right)->name);
}

/* What an undo may go back to: of the revisions that are kept, those that every pod ran once, the newest
 * first. It goes with a status that is written anyway and is never itself the news: a server whose definition
 * drops the field is not asked again and again. Nothing is lost by it: the stable revision is in the next
 * status that is written, and before another one becomes stable there is one, with the generation it is of.
 */
static void add_proven(const struct plan *plan, cJSON *status)
{
    const struct neoset_snapshot *at = plan->at;
    CLEANUP_JSON cJSON *old = NULL;
    if (plan->set->proven)
        ENSURE(json_parse(plan->set->proven, strlen(plan->set->proven), &old, NULL) == 0);
    CLEANUP_FREE const struct revision_fact **proven = xcalloc(at->revision_count + 1, sizeof(*proven));
    size_t count = 0;
    for (size_t i = 0; i < at->revision_count; i++) {
        const struct revision_fact *revision = at->revisions[i];
        bool is_stable = plan->now.stable_proven && str_equal(revision->name, plan->now.stable);
        is_stable = (is_stable && !PLANT("stable-is-not-named")) ||
                    (PLANT("target-is-named") && str_equal(revision->name, plan->now.target));
        if (!revision->deleting && (is_stable || json_has_str(old, revision->name)))
            proven[count++] = revision;
    }
    qsort(proven, count, sizeof(*proven), by_newest);
    cJSON *array = json_add_array(status, "provenRevisionNames");
    for (size_t i = 0; i < MIN(count, (size_t)NEOSET_PROVEN_MAX); i++)
        json_append_str(array, proven[i]->name);
}

static void add_descriptive(struct plan *plan, cJSON *status)
{
    struct counts counts = count(plan);
    json_add_int64(status, "observedGeneration", plan->set->generation);
    json_add_int64(status, "replicas", counts.replicas);
    json_add_int64(status, "readyReplicas", counts.ready);
    json_add_int64(status, "availableReplicas", plan->available);
    json_add_int64(status, "updatedReplicas", counts.updated);
    json_add_int64(status, "updatedReadyReplicas", counts.updated_ready);
    json_add_int64(status, "updatedAvailableReplicas", counts.updated_available);
    json_add_int64(status, "expectedUpdatedReplicas", MAX(plan->spec->replicas - plan_fence(plan), 0));
    json_add_int64(status, "effectiveMaxUnavailable", plan->spec->budget);
    json_add_str(status, "phase", plan->phase);
    json_add_int64(status, "currentRevision", plan->target ? plan->target->number : 0);
    json_add_str(status, "currentUpdatePod", plan->waited_for ? plan->waited_for->pod->name : "");
    char at[TIME_TEXT_SIZE];
    last_update(plan, at);
    if (*at)
        json_add_str(status, "lastUpdateTime", at);
    json_add_str(status, "labelSelector", plan->set->selector_text ? plan->set->selector_text : "");
    json_add_str(status, "message", plan->message ? plan->message : "");
    json_add_item(status, "conditions", plan_conditions(plan));
}

void plan_status(struct plan *plan)
{
    plan->phase = phase_of(plan);
    tell_rest(plan);
    CLEANUP_JSON cJSON *described = json_new_object();
    add_descriptive(plan, described);
    CLEANUP_FREE char *text = neoset_described_text(described);
    /* Beside an `advance` it would only collide; the next turn writes it. */
    bool is_news = !str_equal(text, plan->set->described) || PLANT("status-written-each-turn");
    if (is_news && !plan->advancing) {
        plan->out->status_patch = json_new_object();
        cJSON *status = json_copy(described);
        add_proven(plan, status);
        json_add_item(plan->out->status_patch, "status", status);
        plan->out->described = STEAL(text);
    }
    json_add_str(described, "currentImage", plan->next.current_image ? plan->next.current_image : "");
    json_add_str(described, "targetImage", plan->next.target_image ? plan->next.target_image : "");
    json_add_int64(described, "currentPartition", plan->next.stage);
    plan->out->status = STEAL(described);
}
