/* SPDX-License-Identifier: Apache-2.0
 *
 * What a decision asks for beside its steps: descriptive status, the dry-run probe, waits, ends of
 * operations, Events. */
#include "neoset/controller_parts.h"

#include "kube/object.h"

#include <utlist.h>

#define EXEMPT_TIMEOUT_US (10 * US_PER_S)
/* The same status again, though the server took it: it does not keep what we write. */
#define SAME_STATUS_US (30 * US_PER_S)
/* Between writes that only bring counts and words up to date. A new phase, or a new generation seen, does not
 * wait. */
#define STATUS_EVERY_US (1 * US_PER_S)
/* After a conflict: until the watch has told of the newer version. */
#define STATUS_CONFLICT_US (100 * US_PER_MS)
enum { CONFLICTS_IN_SILENCE = 5 };

/* Who an exempt answer belongs to; groups may be gone by then. */
struct asked {
    struct controller *controller;
    char *key;
    uint64_t number;
    char *revision;            /* of a probe */
    struct asked *prev, *next; /* in controller.asked */
};

static struct asked *asked_make(struct controller *controller, const struct set_group *group,
                                const char *revision)
{
    struct asked *asked = xcalloc(1, sizeof(*asked));
    asked->controller = controller;
    asked->key = xstrdup(group->key);
    asked->number = ++controller->asks;
    asked->revision = xstrdup_or_null(revision);
    DL_APPEND(controller->asked, asked);
    return asked;
}

static void asked_free(struct asked *asked)
{
    DL_DELETE(asked->controller->asked, asked);
    free(asked->key);
    free(asked->revision);
    free(asked);
}

void follow_forget_asked(struct controller *controller)
{
    struct asked *asked = NULL, *next = NULL;
    DL_FOREACH_SAFE (controller->asked, asked, next) {
        asked_free(asked);
    }
}

/* The group, when it and its turn are still there; else NULL. Its set may be gone, or another one by now. */
static struct set_group *asked_group(const struct asked *asked)
{
    struct set_group *group = fact_store_find_key(asked->controller->store, asked->key);
    return group && group->turn ? group : NULL;
}

static void report_refusal(struct controller *controller, const struct set_group *group, const char *what,
                           const struct kube_answer *answer)
{
    CLEANUP_FREE char *object = xasprintf("NeoSet/%s", group->key);
    CLEANUP_FREE char *sentence = kube_answer_sentence(answer, what);
    controller_report(controller, REPORT_WARNING, object, "%s", sentence);
}

/* --- status --------------------------------------------------------------------------------------------- */

static void status_answered(void *context, const struct kube_answer *answer)
{
    struct asked *asked = context;
    struct controller *controller = asked->controller;
    struct set_group *group = asked_group(asked);
    struct turn *turn = group ? group->turn : NULL;
    if (turn && turn->status_ask == asked->number) {
        int64_t now_us = env_boot_us(controller->env);
        turn->status_ask = 0;
        loop_wake(controller->loop, group->key);
        if (answer->outcome == KUBE_OK && cJSON_IsObject(answer->body)) {
            CLEANUP_FREE char *stored = neoset_described_text(json_get(answer->body, "status"));
            turn->status_failures = 0;
            turn->status_kept = str_equal(stored, turn->status_sent);
            controller_take_answer(controller, KUBE_NEOSET, answer->body);
        } else {
            /* After a conflict the set has moved on, and is described anew with its new version. */
            bool is_conflict = answer->http == 409 && turn->status_failures < CONFLICTS_IN_SILENCE;
            if (answer->outcome == KUBE_REFUSED && answer->http != 404 && !is_conflict)
                report_refusal(controller, group, "cannot write the status", answer);
            str_replace(&turn->status_sent, NULL);
            int64_t pause_us =
                kube_backoff_us(controller->env, turn->status_failures++, answer->retry_after_us);
            turn->status_not_before_boot_us = now_us + MAX(pause_us, STATUS_CONFLICT_US);
        }
    }
    asked_free(asked);
}

/* A new phase, or a new generation seen. */
static bool says_something_new(const struct turn *turn, const cJSON *status)
{
    return !str_equal(json_str(status, "phase"), turn->status_phase) ||
           json_int64_or(status, "observedGeneration", 0) != turn->status_generation;
}

void follow_status(struct controller *controller, struct set_group *group, const cJSON *status_patch)
{
    struct turn *turn = group->turn;
    if (!status_patch || turn->status_ask)
        return; /* the answer wakes us */
    if (gateway_is_open(controller->gateway, KUBE_NEOSET, group->namespace, group->name))
        return; /* it would move the version that an open step of the set needs; its outcome wakes us */
    int64_t now_us = env_boot_us(controller->env);
    CLEANUP_FREE char *text = neoset_described_text(json_get(status_patch, "status"));
    bool again = str_equal(text, turn->status_sent) && !turn->status_kept;
    int64_t pause_us = again ? SAME_STATUS_US : STATUS_EVERY_US;
    if (says_something_new(turn, json_get(status_patch, "status")))
        pause_us = 0;
    int64_t due_us = turn->status_not_before_boot_us;
    if (turn->status_sent)
        due_us = MAX(due_us, turn->status_sent_boot_us + pause_us);
    if (now_us < due_us) {
        loop_wake_at(controller->loop, group->key, due_us);
        return;
    }
    str_replace(&turn->status_phase, json_path_str(status_patch, "status", "phase", NULL));
    turn->status_generation = json_int64_or(json_get(status_patch, "status"), "observedGeneration", 0);
    free(turn->status_sent);
    turn->status_sent = STEAL(text);
    turn->status_sent_boot_us = now_us;
    turn->status_kept = false;
    struct asked *asked = asked_make(controller, group, NULL);
    turn->status_ask = asked->number;
    /* One that is held up on its way must not land on a newer status, or on another set of the name. */
    CLEANUP_JSON cJSON *body = json_copy(status_patch);
    json_set_str(json_ensure_object(body, "metadata"), "resourceVersion", group->set->version);
    exempt_write(controller->exempt,
                 &(struct exempt_request){.kind = EXEMPT_STATUS,
                                          .method = "PATCH",
                                          .resource = KUBE_NEOSET,
                                          .namespace = group->namespace,
                                          .name = group->name,
                                          .subresource = "status",
                                          .content_type = KUBE_MERGE,
                                          .body = body,
                                          .timeout_us = EXEMPT_TIMEOUT_US},
                 status_answered, asked);
}

/* --- the probe of a template ---------------------------------------------------------------------------- */

/* Only these say something of the template; anything else is asked again. */
static bool judges_template(const struct kube_answer *answer)
{
    return answer->outcome == KUBE_REFUSED &&
           (answer->http == 400 || answer->http == 403 || answer->http == 422);
}

/* A name that is taken was looked at after the template was found good; so was a quota: an update in place
 * makes no pod more. */
static bool accepts_template(const struct kube_answer *answer)
{
    return answer->outcome == KUBE_OK || answer->http == 409 ||
           (answer->http == 403 && strstr(answer->message, "exceeded quota"));
}

static void probe_answered(void *context, const struct kube_answer *answer)
{
    struct asked *asked = context;
    struct controller *controller = asked->controller;
    struct set_group *group = asked_group(asked);
    struct turn *turn = group ? group->turn : NULL;
    if (turn && turn->probe_ask == asked->number) {
        int64_t now_us = env_boot_us(controller->env);
        turn->probe_ask = 0;
        bool accepted = accepts_template(answer);
        if (group->memory && (accepted || judges_template(answer))) {
            turn->probe_failures = 0;
            neoset_note_probe(group->memory, asked->revision, accepted, accepted ? NULL : answer->summary,
                              now_us);
        } else {
            turn->probe_not_before_boot_us =
                now_us + kube_backoff_us(controller->env, turn->probe_failures++, answer->retry_after_us);
        }
        loop_wake(controller->loop, group->key);
    }
    asked_free(asked);
}

void follow_probe(struct controller *controller, struct set_group *group, const cJSON *pod,
                  const char *revision)
{
    struct turn *turn = group->turn;
    if (!pod || turn->probe_ask)
        return;
    if (env_boot_us(controller->env) < turn->probe_not_before_boot_us) {
        loop_wake_at(controller->loop, group->key, turn->probe_not_before_boot_us);
        return;
    }
    struct asked *asked = asked_make(controller, group, revision);
    turn->probe_ask = asked->number;
    exempt_write(controller->exempt,
                 &(struct exempt_request){.kind = EXEMPT_DRY_RUN,
                                          .method = "POST",
                                          .resource = KUBE_POD,
                                          .namespace = group->namespace,
                                          .content_type = KUBE_JSON,
                                          .body = pod,
                                          .timeout_us = EXEMPT_TIMEOUT_US},
                 probe_answered, asked);
}

/* --- reads ---------------------------------------------------------------------------------------------- */

void follow_reads(struct controller *controller, struct set_group *group,
                  const struct neoset_decision *decision)
{
    if (decision->retention_settled)
        neoset_note_retention(group->memory, group->set->generation);
    if (decision->read_set)
        controller_refresh(controller, KUBE_NEOSET, group->namespace, group->name, group);
    if (decision->read_revision)
        controller_refresh(controller, KUBE_REVISION, group->namespace, decision->read_revision, group);
}

/* --- waits ---------------------------------------------------------------------------------------------- */

static void known_wait_free(struct turn *turn, struct known_wait *wait)
{
    DL_DELETE(turn->waits, wait);
    free(wait->action);
    free(wait->name);
    free(wait);
}

static struct known_wait *know_wait(struct turn *turn, const char *action, enum kube_resource resource,
                                    const char *name)
{
    struct known_wait *wait = NULL;
    DL_FOREACH (turn->waits, wait) {
        if (wait->resource == resource && strcmp(wait->action, action) == 0 && strcmp(wait->name, name) == 0)
            return wait;
    }
    wait = xcalloc(1, sizeof(*wait));
    wait->action = xstrdup(action);
    wait->resource = resource;
    wait->name = xstrdup(name);
    DL_APPEND(turn->waits, wait);
    return wait;
}

struct wait_search {
    struct set_group *group;
};

/* Waits of earlier runs: those of the set itself, and of pods that are named after it. */
static void take_open_wait(void *context, int64_t seq, const char *action, const char *object,
                           const char *namespace, const char *name)
{
    const struct wait_search *search = context;
    struct set_group *group = search->group;
    enum kube_resource resource;
    (void)seq;
    if (!str_equal(namespace ? namespace : "", group->namespace) ||
        kube_resource_by_name(object, &resource) < 0)
        return;
    size_t length = 0;
    int ordinal = -1;
    bool of_set = resource == KUBE_NEOSET && strcmp(name, group->name) == 0;
    bool of_pod = resource == KUBE_POD && neoset_split_pod_name(name, &length, &ordinal) &&
                  length == strlen(group->name) && strncmp(name, group->name, length) == 0;
    bool of_prefetch = resource == KUBE_POD && neoset_split_prefetch_name(name, &length) &&
                       length == strlen(group->name) && strncmp(name, group->name, length) == 0;
    if (of_set || of_pod || of_prefetch)
        know_wait(group->turn, action, resource, name);
}

static int64_t find_wait(const struct controller *controller, const struct set_group *group,
                         const char *action, enum kube_resource resource, const char *name)
{
    return journal_wait_find(controller->journal, action, kube_resource_info(resource)->kind,
                             group->namespace, name);
}

static void keep_wait(struct controller *controller, struct set_group *group,
                      const struct neoset_wait *wanted)
{
    struct journal *journal = controller->journal;
    const char *kind = kube_resource_info(wanted->resource)->kind;
    int64_t wait = find_wait(controller, group, wanted->action, wanted->resource, wanted->name);
    if (!wait) {
        const struct journal_open_operation *operation =
            journal_open_operation_find(journal, "rollout", "NeoSet", group->namespace, group->name);
        wait = journal_wait_begin(journal, operation ? operation->seq : 0, wanted->action, kind,
                                  group->namespace, wanted->name, wanted->budget_us, wanted->reason);
    }
    if (wanted->held && !journal_wait_is_held(journal, wait))
        journal_wait_hold(journal, wait, wanted->reason);
    else if (!wanted->held && journal_wait_is_held(journal, wait))
        journal_wait_go(journal, wait);
    know_wait(group->turn, wanted->action, wanted->resource, wanted->name)->wanted = true;
}

static void end_wait(struct controller *controller, struct set_group *group, struct known_wait *known,
                     const char *outcome)
{
    int64_t wait = find_wait(controller, group, known->action, known->resource, known->name);
    if (wait)
        journal_wait_end(controller->journal, wait, outcome);
    known_wait_free(group->turn, known);
}

static bool is_done(const struct neoset_decision *decision, const struct known_wait *known)
{
    for (size_t i = 0; i < decision->wait_done_count; i++) {
        const struct neoset_wait *done = &decision->waits_done[i];
        if (done->resource == known->resource && strcmp(done->action, known->action) == 0 &&
            strcmp(done->name, known->name) == 0)
            return true;
    }
    return false;
}

static void look_for_waits(struct controller *controller, struct set_group *group)
{
    struct turn *turn = group->turn;
    if (turn->looked_for_waits)
        return;
    turn->looked_for_waits = true;
    struct wait_search search = {.group = group};
    journal_open_waits_each(controller->journal, take_open_wait, &search);
}

void follow_no_view(struct controller *controller, struct set_group *group)
{
    look_for_waits(controller, group);
    const struct known_wait *known = NULL;
    DL_FOREACH (controller_turn_of(group)->waits, known) {
        int64_t wait = find_wait(controller, group, known->action, known->resource, known->name);
        if (wait && !journal_wait_is_held(controller->journal, wait))
            journal_wait_hold(controller->journal, wait, "no watch that tells what becomes of it");
    }
}

bool follow_has_waits(struct controller *controller, struct set_group *group)
{
    look_for_waits(controller, group);
    return controller_turn_of(group)->waits != NULL;
}

void follow_waits(struct controller *controller, struct set_group *group,
                  const struct neoset_decision *decision)
{
    struct turn *turn = group->turn;
    look_for_waits(controller, group);
    struct known_wait *known = NULL, *next = NULL;
    DL_FOREACH (turn->waits, known) {
        known->wanted = false;
    }
    for (size_t i = 0; i < decision->wait_count; i++)
        keep_wait(controller, group, &decision->waits[i]);
    DL_FOREACH_SAFE (turn->waits, known, next) {
        if (!known->wanted)
            end_wait(controller, group, known, is_done(decision, known) ? "done" : "dropped");
    }
}

/* --- operations ----------------------------------------------------------------------------------------- */

void follow_ends(struct controller *controller, struct set_group *group,
                 const struct neoset_decision *decision, bool before_steps)
{
    for (size_t i = 0; i < decision->end_count; i++) {
        const struct neoset_operation_end *operation_end = &decision->ends[i];
        if (operation_end->before_steps != before_steps)
            continue;
        gateway_end_operation(controller->gateway, operation_end->kind, KUBE_NEOSET, group->namespace,
                              group->name, operation_end->outcome, operation_end->reason);
    }
}

struct end_search {
    const struct set_group *group;
    char **kinds;
    size_t count;
};

static void take_open_operation(void *context, const struct journal_open_operation *operation)
{
    struct end_search *search = context;
    if (!str_equal(operation->object, "NeoSet") || !str_equal(operation->name, search->group->name) ||
        !str_equal(operation->namespace ? operation->namespace : "", search->group->namespace))
        return;
    search->kinds = xreallocarray(search->kinds, search->count + 1, sizeof(char *));
    search->kinds[search->count++] = xstrdup(operation->action);
}

static void done_search(struct end_search *search)
{
    for (size_t i = 0; i < search->count; i++)
        free(search->kinds[i]);
    free(search->kinds);
    *search = (struct end_search){.group = search->group};
}

static bool has_orphaned_prefetches(const struct set_group *group)
{
    for (size_t i = 0; i < group->prefetch_count; i++)
        if (!group->prefetches[i].fact->owner_uid && !group->prefetches[i].fact->deleting)
            return true;
    return false;
}

/* The set was deleted and what it owned was not: pods that fetched for it are of no use to anyone. */
static void drop_orphaned_prefetches(struct controller *controller, const struct set_group *group)
{
    const char *why = NULL;
    struct turn *turn = group->turn;
    int64_t now_us = env_boot_us(controller->env);
    if (!has_orphaned_prefetches(group) || !controller_is_fresh(controller, &why))
        return;
    if (now_us < turn->orphans_not_before_boot_us) {
        loop_wake_at(controller->loop, group->key, turn->orphans_not_before_boot_us);
        return;
    }
    /* One that the server refuses is asked again, but not at once. */
    turn->orphans_not_before_boot_us = now_us + kube_backoff_us(controller->env, turn->orphans_tried++, -1);
    for (size_t i = 0; i < group->prefetch_count; i++) {
        const struct pod_fact *pod = group->prefetches[i].fact;
        if (pod->owner_uid || pod->deleting || !pod->uid || !pod->version)
            continue;
        struct step_request *step = step_request_make(STEP_DELETE, KUBE_POD, group->namespace, pod->name);
        step->uid = xstrdup(pod->uid);
        step->version = xstrdup(pod->version);
        step->fingerprint = xstrdup("prefetch/done");
        step->reason = xasprintf("%s: its NeoSet is gone", pod->name);
        step->operation_kind = xstrdup("cleanup");
        step->operation_resource = KUBE_NEOSET;
        step->operation_namespace = xstrdup(group->namespace);
        step->operation_name = xstrdup(group->name);
        (void)gateway_submit(controller->gateway, step, controller_step_done, controller);
    }
}

/* The set was deleted: nothing of it is wanted any more. Its operations end when their open steps are closed.
 */
void follow_set_gone(struct controller *controller, struct set_group *group)
{
    struct turn *turn = controller_turn_of(group);
    drop_orphaned_prefetches(controller, group);
    gateway_settle_unwanted(controller->gateway, KUBE_NEOSET, group->namespace, group->name);
    look_for_waits(controller, group);
    struct known_wait *known = NULL, *next = NULL;
    DL_FOREACH_SAFE (turn->waits, known, next) {
        end_wait(controller, group, known, "dropped");
    }
    struct end_search search = {.group = group};
    journal_open_operations_each(controller->journal, take_open_operation, &search);
    for (size_t i = 0; i < search.count; i++)
        gateway_end_operation(controller->gateway, search.kinds[i], KUBE_NEOSET, group->namespace,
                              group->name, "cancelled", "the NeoSet was deleted");
    done_search(&search);
    journal_open_operations_each(controller->journal, take_open_operation, &search);
    bool is_over = search.count == 0 && !has_orphaned_prefetches(group);
    done_search(&search);
    if (!is_over)
        return;
    controller_forget_refreshes(controller, group);
    turn_free(turn);
    group->turn = NULL;
    fact_store_drop_if_empty(controller->store, group);
}

/* --- Events --------------------------------------------------------------------------------------------- */

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

void turn_free(struct turn *turn)
{
    if (!turn)
        return;
    struct after_event *after = NULL, *next_after = NULL;
    DL_FOREACH_SAFE (turn->after, after, next_after) {
        after_event_free(turn, after);
    }
    struct known_wait *known = NULL, *next_known = NULL;
    DL_FOREACH_SAFE (turn->waits, known, next_known) {
        known_wait_free(turn, known);
    }
    for (size_t i = 0; i < turn->said_count; i++)
        free(turn->said[i]);
    free(turn->said);
    free(turn->set_uid);
    free(turn->status_sent);
    free(turn->status_phase);
    free(turn->message);
    free(turn->phase);
    free(turn);
}
