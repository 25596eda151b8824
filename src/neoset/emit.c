/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/plan_model.h"

/* What one turn may ask for: more waits for the next one. */
enum { STEPS_MAX = 500, EVENTS_MAX = 64 };

/* What the newest template is rolled out over: stable; or, when it is stable itself, the newest one beside
 * it, which was left half way. The same from the first step of a rollout to its last. */
static const struct revision_fact *rolled_over(const struct plan *plan)
{
    const struct neoset_snapshot *at = plan->at;
    if (!plan->wanted || !str_equal(plan->wanted->name, plan->now.stable))
        return revision_find(at->revisions, at->revision_count, plan->now.stable);
    const struct revision_fact *newest = NULL;
    for (size_t i = 0; i < at->revision_count; i++)
        if (at->revisions[i] != plan->wanted && (!newest || at->revisions[i]->number > newest->number))
            newest = at->revisions[i];
    return newest;
}

/* The words that an operation is known by: others in mid-way, and it would fall into several. */
static void name_rollout(const struct plan *plan, struct step_request *request)
{
    const struct revision_fact *from = rolled_over(plan);
    bool same_image = from && str_equal(from->first_image, plan->set->first_image);
    request->come_from = xstrdup(!from                              ? ""
                                 : same_image || !from->first_image ? from->name
                                                                    : from->first_image);
    if (!same_image)
        request->go_to = xstrdup(plan->set->first_image);
    else if (plan->wanted)
        request->go_to = xstrdup(plan->wanted->name);
    else
        request->go_to =
            revision_name(plan->set->name, plan->set->template_digest, plan->next.collision_count);
}

/* Why what is stored as the target has not come up, when status says so; else NULL. A rollout that takes its
 * place does not make it forgotten: who looks for failures in history finds it. */
static const char *failure_of_target(const struct plan *plan)
{
    const struct revision_fact *target =
        revision_find(plan->at->revisions, plan->at->revision_count, plan->now.target);
    return target && target->number == plan->set->failed_revision ? plan->set->failure : NULL;
}

struct step_request *plan_request(const struct plan *plan, enum step_kind kind, enum kube_resource resource,
                                  const char *name, const char *uid, const char *version,
                                  const char *operation)
{
    struct step_request *request = step_request_make(kind, resource, plan->set->namespace, name);
    request->uid = xstrdup_or_null(uid);
    request->version = xstrdup_or_null(version);
    request->operation_kind = xstrdup(operation);
    request->operation_resource = KUBE_NEOSET;
    request->operation_namespace = xstrdup(plan->set->namespace);
    request->operation_name = xstrdup(plan->set->name);
    if (str_equal(operation, "rollout")) {
        name_rollout(plan, request);
        request->failed_before = xstrdup_or_null(failure_of_target(plan));
    } else if (str_equal(operation, "scale")) {
        request->come_from = xasprintf("%zu", plan->at->pod_count);
        request->go_to = xasprintf("%d", plan->spec->replicas);
    }
    return request;
}

/* The server refused this very write not long ago. */
static bool is_refused_for_now(struct plan *plan, const struct step_request *request)
{
    const struct refusal *refusal =
        neoset_memory_refusal(plan->at->memory, request->resource, request->name, request->kind);
    if (!refusal || !str_equal(refusal->fingerprint, request->fingerprint))
        return false;
    bool not_kept = str_equal(refusal->reason, REFUSAL_NOT_KEPT);
    plan_say(plan, SAY_REFUSED,
             not_kept ? "the API server was asked to %s %s %s: %s (a webhook may take it back)."
                      : "the API server refuses to %s %s %s: %s.",
             step_kind_info(request->kind)->text, kube_resource_info(request->resource)->kind, request->name,
             *refusal->words ? refusal->words : "no reason given");
    if (refusal->again_boot_us <= plan->at->boot_us)
        return false;
    plan_wake(plan, refusal->again_boot_us);
    return true;
}

/* Whatever the reason: nothing is written at the speed of the network. */
static bool is_flooded(struct plan *plan, const struct step_request *request)
{
    int64_t until_us = 0;
    if (!neoset_memory_is_flooded(plan->at->memory, request->resource, request->name, plan->at->boot_us,
                                  &until_us))
        return false;
    plan_say(plan, SAY_REFUSED,
             "too many writes to %s %s came to nothing within a minute; the next one (%s) waits. Somebody "
             "changes it "
             "back, or the API server answers otherwise than it does: kubectl describe it.",
             kube_resource_info(request->resource)->kind, request->name, step_kind_info(request->kind)->text);
    plan_wake(plan, until_us);
    return true;
}

/* A second write to one object in one turn could only collide with the first. */
static bool is_written_already(const struct plan *plan, const struct step_request *request)
{
    for (size_t i = 0; i < plan->out->step_count; i++) {
        const struct step_request *other = plan->out->steps[i];
        if (other->resource == request->resource && strcmp(other->name, request->name) == 0)
            return true;
    }
    return false;
}

int plan_emit(struct plan *plan, struct step_request *request)
{
    PRE(request->fingerprint && request->reason);
    struct neoset_open_step open = {0};
    bool is_open = plan->at->open_step(plan->at->context, request->resource, request->name, &open);
    bool precondition = request->uid && request->version && *request->uid && *request->version;
    if ((is_open && !open.in_doubt) || is_refused_for_now(plan, request) || is_flooded(plan, request) ||
        !(step_creates(request->kind) || precondition) || plan->out->step_count == STEPS_MAX ||
        is_written_already(plan, request)) {
        step_request_free(request);
        return -1;
    }
    struct neoset_decision *out = plan->out;
    out->steps = xreallocarray(out->steps, out->step_count + 1, sizeof(struct step_request *));
    out->steps[out->step_count] = request;
    return (int)out->step_count++;
}

void plan_event(struct plan *plan, int after_step, bool warning, const char *reason, const struct slot *slot,
                const char *format, ...)
{
    struct neoset_decision *out = plan->out;
    if (out->event_count == EVENTS_MAX)
        return;
    out->events = xreallocarray(out->events, out->event_count + 1, sizeof(*out->events));
    struct neoset_event *event = &out->events[out->event_count++];
    *event = (struct neoset_event){.after_step = after_step, .warning = warning, .reason = reason};
    va_list args;
    va_start(args, format);
    event->note = xvasprintf(format, args);
    va_end(args);
    bool about_pod = slot && slot->pod;
    event->resource = about_pod ? KUBE_POD : KUBE_NEOSET;
    event->name = xstrdup(about_pod ? slot->pod->name : plan->set->name);
    event->uid = xstrdup_or_null(about_pod ? slot->pod->uid : plan->set->uid);
}

void plan_wake(struct plan *plan, int64_t boot_us)
{
    if (boot_us > plan->at->boot_us)
        plan->out->wake_boot_us = MIN(plan->out->wake_boot_us, boot_us);
}

void plan_say(struct plan *plan, enum plan_weight weight, const char *format, ...)
{
    if (weight <= plan->weight)
        return;
    va_list args;
    va_start(args, format);
    free(plan->message);
    plan->message = xvasprintf(format, args);
    va_end(args);
    plan->weight = weight;
}
