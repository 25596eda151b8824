/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/apply_parts.h"
#include "kube/object.h"

enum {
    UNDER_WAY_MAX = 48, /* a connection takes about a hundred, and the server has other users */
    LOOKS_MAX = 5,
};

/* Many trials at a time: of each object what is there, then what an apply would make of it. */
struct trials {
    struct apply *apply;
    size_t next; /* the next item to be looked at */
    size_t under_way;
    bool is_over; /* nothing new is begun */
    int result;
    struct error *err;
};

struct trial {
    struct trials *trials;
    struct apply_item *item;
    cJSON *live; /* or NULL */
    int looks;
};

static void begin_more(struct trials *trials);
static void look(struct trial *trial);

/* Takes trial. */
static void end(struct trial *trial)
{
    struct trials *trials = trial->trials;
    json_delete(trial->live);
    free(trial);
    trials->under_way--;
    begin_more(trials);
    if (trials->under_way == 0)
        env_stop(trials->apply->wanted->server->env);
}

/* Not about the object, but about the server or our rights at large: everything ends. Takes trial. */
static void give_up(struct trial *trial, const struct kube_answer *answer)
{
    struct trials *trials = trial->trials;
    CLEANUP_FREE char *what = manifest_text(trial->item->manifest);
    CLEANUP_FREE char *sentence = kube_answer_sentence(answer, what);
    if (trials->result == 0)
        trials->result =
            error_set(&trials->err, answer->code != ERROR_NONE ? answer->code : ERROR_FAILED, "%s", sentence);
    trials->is_over = true;
    end(trial);
}

/* --- what a refusal says -------------------------------------------------------------------------------- */

static bool has_cause(const struct kube_answer *answer, const char *reason, const char *field)
{
    for (size_t i = 0; i < answer->cause_count; i++)
        if (str_equal(answer->causes[i].reason, reason) &&
            (!field || str_equal(answer->causes[i].field, field)))
            return true;
    return false;
}

/* The two generations of the refusal of another volumeClaimTemplate (volume.md, Converge 2). Which field it
 * is the older one does not tell: converging finds out. */
static bool says_immutable(const struct apply_item *item, const struct kube_answer *answer)
{
    return item->resource == KUBE_STATEFULSET && answer->http == 422 &&
           (has_cause(answer, "FieldValueForbidden", "spec") ||
            has_cause(answer, "FieldValueInvalid", "spec.volumeClaimTemplates"));
}

/* The server's own words, for the terminal of the user whose manifest it is. */
static char *refusal_text(const struct apply_item *item, const struct kube_answer *answer)
{
    CLEANUP_FREE char *words = kube_answer_words(answer);
    if (answer->http == 409 && has_cause(answer, "FieldManagerConflict", NULL))
        return xasprintf("%s; leave these fields out, or take them over with --force-conflicts", words);
    if (answer->http == 404 && item->namespace)
        return xasprintf("%s: create the namespace first, or put it into -f", words);
    if (answer->http == 403 && has_cause(answer, "NamespaceTerminating", NULL))
        return xasprintf("%s: once it is gone, create it anew (put it into -f), and run this again", words);
    if (answer->http == 403)
        return xasprintf("%s: you need the permission; `kubectl auth can-i patch %s%s%s` tells", words,
                         kube_resource_info(item->resource)->plural, item->namespace ? " -n " : "",
                         item->namespace ? item->namespace : "");
    return STEAL(words);
}

static bool is_about_the_object(const struct kube_answer *answer)
{
    return answer->outcome == KUBE_REFUSED && !answer->stranger &&
           (answer->http == 400 || answer->http == 403 || answer->http == 404 || answer->http == 405 ||
            answer->http == 409 || answer->http == 413 || answer->http == 415 || answer->http == 422 ||
            kube_answer_is_unreadable(answer));
}

/* --- the two questions ---------------------------------------------------------------------------------- */

static void refuse(struct apply_item *item, char *problem)
{
    free(item->problem);
    item->problem = problem;
    item->result = APPLY_REFUSED;
}

/* An apply to it answers 200, and is lost with it. */
static void refuse_leaving(struct apply_item *item)
{
    refuse(item, xstrdup("it is being deleted: wait until it is gone"));
}

/* It moved between the look and the trial: their difference is not what the apply would make. A dry run
 * answers with the version that it was about. */
static bool has_moved(const struct trial *trial, const struct kube_answer *answer)
{
    if (answer->outcome != KUBE_OK || trial->looks >= LOOKS_MAX)
        return false;
    const char *now = kube_object_version(answer->body);
    const char *then = trial->live ? kube_object_version(trial->live) : NULL;
    return strcmp(now ? now : "", then ? then : "") != 0;
}

static void tried(void *context, const struct kube_answer *answer)
{
    struct trial *trial = context;
    struct apply_item *item = trial->item;
    if (has_moved(trial, answer)) {
        look(trial);
        return;
    }
    if (answer->outcome == KUBE_OK && answer->body) {
        item->result = !trial->live                            ? APPLY_CREATED
                       : json_equal(trial->live, answer->body) ? APPLY_UNCHANGED
                                                               : APPLY_CHANGED;
    } else if (says_immutable(item, answer)) {
        item->result = APPLY_GROWS;
    } else if (is_about_the_object(answer)) {
        refuse(item, refusal_text(item, answer));
    } else {
        give_up(trial, answer);
        return;
    }
    end(trial);
}

static void try_apply(struct trial *trial)
{
    struct apply *apply = trial->trials->apply;
    struct apply_item *item = trial->item;
    struct exempt_request request = {.kind = EXEMPT_DRY_RUN,
                                     .method = "PATCH",
                                     .resource = item->resource,
                                     .namespace = item->namespace,
                                     .name = item->name,
                                     .content_type = KUBE_APPLY,
                                     .field_manager = apply->field_manager,
                                     .is_forced = apply->is_forced,
                                     .body = item->manifest->object,
                                     .timeout_us = apply->wanted->server->timeout_us};
    exempt_write(apply->session.exempt, &request, tried, trial);
}

/* The API server itself says that there is no such object. */
static bool says_absent(const struct kube_answer *answer)
{
    return answer->outcome == KUBE_REFUSED && answer->http == 404 && !answer->stranger;
}

/* NULL: there is none. Takes live. */
static void take_live(struct trial *trial, cJSON *live)
{
    json_delete(trial->live);
    trial->live = live;
    str_replace(&trial->item->uid, live ? kube_object_uid(live) : NULL);
    str_replace(&trial->item->version, live ? kube_object_version(live) : NULL);
}

static void looked(void *context, const struct kube_answer *answer)
{
    struct trial *trial = context;
    struct apply_item *item = trial->item;
    take_live(trial, answer->outcome == KUBE_OK ? json_copy(answer->body) : NULL);
    if (trial->live && kube_object_is_deleting(trial->live)) {
        refuse_leaving(item);
        end(trial);
    } else if (answer->outcome == KUBE_OK || says_absent(answer)) {
        try_apply(trial);
    } else if (is_about_the_object(answer)) {
        CLEANUP_FREE char *what = manifest_text(item->manifest);
        refuse(item, kube_answer_sentence(answer, what));
        end(trial);
    } else {
        give_up(trial, answer);
    }
}

static void look(struct trial *trial)
{
    struct ctl_server *server = trial->trials->apply->wanted->server;
    const struct apply_item *item = trial->item;
    CLEANUP_FREE char *path = kube_path(item->resource, item->namespace, item->name, NULL);
    trial->looks++;
    kube_get(server->client, path, server->timeout_us, looked, trial);
}

static void begin(struct trials *trials, struct apply_item *item)
{
    if (item->is_looked_at && item->live && kube_object_is_deleting(item->live)) {
        refuse_leaving(item);
        return;
    }
    struct trial *trial = xcalloc(1, sizeof *trial);
    trial->trials = trials;
    trial->item = item;
    trials->under_way++;
    if (item->is_looked_at) {
        item->is_looked_at = false;
        take_live(trial, STEAL(item->live));
        try_apply(trial);
    } else {
        look(trial);
    }
}

bool apply_can_be_tried(const struct apply_item *item)
{
    return item->result == APPLY_WAITING && item->is_known && !item->is_untried;
}

static void begin_more(struct trials *trials)
{
    struct apply *apply = trials->apply;
    while (!trials->is_over && trials->under_way < UNDER_WAY_MAX && trials->next < apply->count) {
        struct apply_item *item = &apply->items[trials->next++];
        if (apply_can_be_tried(item))
            begin(trials, item);
    }
}

static int run(struct trials *trials, struct error **err)
{
    struct env *env = trials->apply->wanted->server->env;
    while (trials->under_way > 0)
        env_run(env);
    if (trials->result < 0 && err)
        *err = STEAL(trials->err);
    error_free(trials->err);
    return trials->result;
}

int apply_try(struct apply *apply, struct error **err)
{
    struct trials trials = {.apply = apply};
    int r = apply_read_lists(apply, err);
    if (r < 0)
        return r;
    begin_more(&trials);
    return run(&trials, err);
}

int apply_try_one(struct apply *apply, struct apply_item *item, struct error **err)
{
    struct trials trials = {.apply = apply, .is_over = true};
    item->result = APPLY_WAITING;
    begin(&trials, item);
    return run(&trials, err);
}
