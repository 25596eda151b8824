/* SPDX-License-Identifier: Apache-2.0
 *
 * The Events of a set: at once, or when the step that they tell of was applied; none is told twice. */
#include "neoset/controller_parts.h"

#include "kube/object.h"

#include <utlist.h>

/* A warning is in the log too: who reads that at night does not read Events. */
static void emit(struct controller *controller, const struct set_group *group, bool warning,
                 const char *reason, const char *note, enum kube_resource resource, const char *name,
                 const char *uid)
{
    if (warning) {
        CLEANUP_FREE char *object = kube_object_ref_text(resource, group->namespace, name);
        controller_report(controller, REPORT_WARNING, object, "%s: %s", reason, note);
    }
    event_record(controller->recorder,
                 &(struct event_subject){
                     .resource = resource, .namespace = group->namespace, .name = name, .uid = uid},
                 warning, reason, note);
}

static bool was_said(const struct turn *turn, const char *text)
{
    for (size_t i = 0; i < turn->said_count; i++)
        if (strcmp(turn->said[i], text) == 0)
            return true;
    return false;
}

/* What the turn before said already is not said again. */
void follow_events(struct controller *controller, struct set_group *group,
                   const struct neoset_decision *decision)
{
    struct turn *turn = group->turn;
    char **said = xcalloc(decision->event_count + 1, sizeof(*said));
    size_t count = 0;
    for (size_t i = 0; i < decision->event_count; i++) {
        const struct neoset_event *event = &decision->events[i];
        if (event->after_step >= 0)
            continue;
        char *text = xasprintf("%s %s %s", event->reason, event->name, event->note);
        if (!was_said(turn, text))
            emit(controller, group, event->warning, event->reason, event->note, event->resource, event->name,
                 event->uid);
        said[count++] = text;
    }
    for (size_t i = 0; i < turn->said_count; i++)
        free(turn->said[i]);
    free(turn->said);
    turn->said = said;
    turn->said_count = count;
    if (controller->went_back && !turn->told_went_back) {
        turn->told_went_back = true;
        emit(controller, group, true, "JournalWentBack",
             "the controller's journal went back or forked: its open steps were closed, the cluster alone is "
             "believed",
             KUBE_NEOSET, group->name, group->set->uid);
    }
}

static void after_event_free(struct turn *turn, struct after_event *after)
{
    DL_DELETE(turn->after, after);
    char *const texts[] = {after->step_name, after->fingerprint, after->reason,
                           after->note,      after->name,        after->uid};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free(texts[i]);
    free(after);
}

static bool is_after(const struct after_event *after, enum kube_resource resource, const char *name,
                     const char *fingerprint)
{
    return after->step_resource == resource && strcmp(after->step_name, name) == 0 &&
           str_equal(after->fingerprint, fingerprint);
}

void follow_step_event(struct controller *controller, struct set_group *group,
                       const struct neoset_event *event, const struct step_request *step)
{
    (void)controller;
    struct turn *turn = group->turn;
    struct after_event *after = NULL;
    DL_FOREACH (turn->after, after) {
        if (is_after(after, step->resource, step->name, step->fingerprint) &&
            strcmp(after->note, event->note) == 0)
            return; /* the step is sent again */
    }
    after = xcalloc(1, sizeof(*after));
    after->step_resource = step->resource;
    after->step_name = xstrdup(step->name);
    after->fingerprint = xstrdup_or_null(step->fingerprint);
    after->warning = event->warning;
    after->reason = xstrdup(event->reason);
    after->note = xstrdup(event->note);
    after->resource = event->resource;
    after->name = xstrdup(event->name);
    after->uid = xstrdup_or_null(event->uid);
    DL_APPEND(turn->after, after);
}

void follow_step_outcome(struct controller *controller, struct set_group *group,
                         const struct step_outcome *outcome)
{
    struct turn *turn = group->turn;
    if (!turn || outcome->kind == JOURNAL_UNKNOWN)
        return;
    struct after_event *after = NULL, *next = NULL;
    DL_FOREACH_SAFE (turn->after, after, next) {
        if (!is_after(after, outcome->target.resource, outcome->target.name, outcome->fingerprint))
            continue;
        if (outcome->kind == JOURNAL_APPLIED)
            emit(controller, group, after->warning, after->reason, after->note, after->resource, after->name,
                 after->uid);
        after_event_free(turn, after);
    }
}

void follow_forget_events(struct turn *turn)
{
    struct after_event *after = NULL, *next = NULL;
    DL_FOREACH_SAFE (turn->after, after, next) {
        after_event_free(turn, after);
    }
    for (size_t i = 0; i < turn->said_count; i++)
        free(turn->said[i]);
    free(turn->said);
}
