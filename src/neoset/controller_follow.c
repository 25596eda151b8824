/* SPDX-License-Identifier: Apache-2.0
 *
 * What a decision asks the API server for beside its steps: descriptive status, the dry-run probe, reads. */
#include "neoset/controller_parts.h"

#include "kube/object.h"

#include <utlist.h>

#define EXEMPT_TIMEOUT_US (10 * US_PER_S)
/* The same status again, though the server took it: it does not keep what we write. */
#define SAME_STATUS_US (30 * US_PER_S)
/* Between writes that only bring counts and words up to date. A new phase, or a new generation seen, does not
 * wait. */
#define STATUS_EVERY_US (2 * US_PER_S)
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

/* Whether the server shows what we wrote. The fact knows that already, when it was made of this answer. */
static void note_kept(const struct asked *asked, const cJSON *object)
{
    struct set_group *group = asked_group(asked);
    if (!group || !group->set)
        return;
    struct turn *turn = group->turn;
    bool is_fact = str_equal(kube_object_version(object), group->set->version);
    CLEANUP_FREE char *read = is_fact ? NULL : neoset_described_text(json_get(object, "status"));
    turn->status_kept = str_equal(is_fact ? group->set->described : read, turn->status_sent);
}

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
            turn->status_failures = 0;
            controller_take_answer(controller, KUBE_NEOSET, answer->body);
            note_kept(asked, answer->body);
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

void follow_status(struct controller *controller, struct set_group *group, struct neoset_decision *decision)
{
    struct turn *turn = group->turn;
    const cJSON *status_patch = decision->status_patch;
    if (!status_patch || turn->status_ask)
        return; /* the answer wakes us */
    if (gateway_is_open(controller->gateway, KUBE_NEOSET, group->namespace, group->name))
        return; /* it would move the version that an open step of the set needs; its outcome wakes us */
    int64_t now_us = env_boot_us(controller->env);
    bool again = str_equal(decision->described, turn->status_sent) && !turn->status_kept;
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
    turn->status_sent = xstrdup(decision->described);
    turn->status_sent_boot_us = now_us;
    turn->status_kept = false;
    struct asked *asked = asked_make(controller, group, NULL);
    turn->status_ask = asked->number;
    /* One that is held up on its way must not land on a newer status, or on another set of the name. */
    json_set_str(json_ensure_object(decision->status_patch, "metadata"), "resourceVersion",
                 group->set->version);
    exempt_write(controller->exempt,
                 &(struct exempt_request){.kind = EXEMPT_STATUS,
                                          .method = "PATCH",
                                          .resource = KUBE_NEOSET,
                                          .namespace = group->namespace,
                                          .name = group->name,
                                          .subresource = "status",
                                          .content_type = KUBE_MERGE,
                                          .body = decision->status_patch,
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
