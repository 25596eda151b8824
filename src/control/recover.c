/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes over what ended runs left open: each such step becomes a flight again, made from its intent, and is
 * resolved by reading the API server. */
#include "control/gateway_parts.h"

#include "base/plant.h"

#include <utlist.h>

/* Copies of what is open, since closing a step changes the journal's list. */
struct open_copy {
    int64_t seq;
    int64_t operation;
    char *nonce;
    char *action;
    char *object;
    char *namespace;
    char *name;
    char *uid;
    char *version;
    char *detail;
    int unknowns;
};
struct open_list {
    struct gateway *gateway;
    struct open_copy *items;
    size_t count;
};

static void collect(void *context, const struct journal_open_step *step)
{
    struct open_list *list = context;
    if (step->run == journal_run(list->gateway->options.journal))
        return;
    list->items = xreallocarray(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = (struct open_copy){
        .seq = step->seq,
        .operation = step->operation,
        .nonce = xstrdup(step->nonce),
        .action = xstrdup(step->action),
        .object = xstrdup(step->object),
        .namespace = step->namespace && *step->namespace ? xstrdup(step->namespace) : NULL,
        .name = xstrdup(step->name),
        .uid = xstrdup_or_null(step->uid),
        .version = xstrdup_or_null(step->version),
        .detail = xstrdup_or_null(step->detail),
        .unknowns = step->unknowns,
    };
}

static void open_copy_done(struct open_copy *copy)
{
    char *const texts[] = {copy->nonce, copy->action, copy->object,  copy->namespace,
                           copy->name,  copy->uid,    copy->version, copy->detail};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free(texts[i]);
}

/* --- from an intent back to a flight -------------------------------------------------------------------- */

struct operation_search {
    int64_t seq;
    struct flight *flight;
};
static void take_operation_object(void *context, const struct journal_open_operation *operation)
{
    struct operation_search *search = context;
    enum kube_resource resource;
    if (operation->seq != search->seq || kube_resource_by_name(operation->object, &resource) < 0)
        return;
    const char *namespace = operation->namespace && *operation->namespace ? operation->namespace : NULL;
    flight_join_workload(search->flight, resource, namespace, operation->name);
}

static void take_detail(struct flight *flight, const char *text)
{
    CLEANUP_JSON cJSON *detail = NULL;
    if (!text || json_parse(text, strlen(text), &detail, NULL) < 0)
        return;
    flight->fingerprint = xstrdup_or_null(json_str(detail, "fingerprint"));
    flight->subresource = xstrdup_or_null(json_str(detail, "subresource"));
    flight->owner = xstrdup_or_null(json_str(detail, "owner"));
    flight->lowers_availability = json_bool_or(detail, "lowers_availability", false);
}

static struct flight *flight_of_copy(struct gateway *gateway, const struct open_copy *copy,
                                     enum step_kind kind, enum kube_resource resource)
{
    struct flight *flight = flight_make(gateway, kind, resource, copy->namespace, copy->name);
    flight->step = copy->seq;
    flight->operation = copy->operation;
    flight->key = xasprintf("%s-%lld", copy->nonce, (long long)copy->seq);
    flight->uid = xstrdup_or_null(copy->uid);
    flight->version = xstrdup_or_null(copy->version);
    flight->unknowns = copy->unknowns;
    flight->attempt_is_open = true;
    flight->newest_seq = copy->seq;
    flight->recovered = true;
    flight->unanswered = true;
    flight->in_doubt = true;
    flight->undecided = true;
    flight->state = FLIGHT_PAUSE;
    take_detail(flight, copy->detail);
    struct operation_search search = {.seq = copy->operation, .flight = flight};
    journal_open_operations_each(gateway->options.journal, take_operation_object, &search);
    size_t length = 0;
    if (step_kind_info(kind)->keep_body)
        flight->body = journal_step_body(gateway->options.journal, copy->seq, &length);
    return flight;
}

/* A block finds the flight that it makes impossible: it names its seq. */
static void link_blocks(struct gateway *gateway, struct flight *block, const char *detail_text)
{
    CLEANUP_JSON cJSON *detail = NULL;
    int64_t seq = 0;
    if (!detail_text || json_parse(detail_text, strlen(detail_text), &detail, NULL) < 0 ||
        !json_int64(detail, "blocks", &seq))
        return;
    struct flight *flight = NULL;
    DL_FOREACH (gateway->flights, flight) {
        if (flight->step == seq) {
            flight->block = block;
            block->blocks = flight;
            return;
        }
    }
}

/* Went back or forked: the cluster is right, whatever this journal believes. */
static void close_overtaken(struct gateway *gateway, const struct open_copy *copy)
{
    journal_append(gateway->options.journal,
                   &(struct journal_entry){.kind = JOURNAL_OVERTAKEN,
                                           .operation = copy->operation,
                                           .step = copy->seq,
                                           .attempt = copy->unknowns + 1,
                                           .reason = "the journal went back or forked"});
    journal_commit_soon(gateway->options.journal);
}

/* The object of an apply may be of any kind: the intent says where it is then. */
static bool find_resource(const struct open_copy *copy, enum kube_resource *ret)
{
    CLEANUP_JSON cJSON *detail = NULL;
    if (copy->detail && json_parse(copy->detail, strlen(copy->detail), &detail, NULL) == 0) {
        const char *text = json_str(detail, "resource");
        if (text)
            return kube_resource_of_text(text, copy->object, ret) == 0;
    }
    return kube_resource_by_name(copy->object, ret) == 0;
}

static void take_over(struct gateway *gateway, const struct open_copy *copy)
{
    if (PLANT("open-steps-forgotten"))
        return;
    int kind = step_kind_of_text(copy->action);
    enum kube_resource resource;
    if (kind < 0 || !find_resource(copy, &resource)) {
        /* Written by a newer program: only that one can resolve it. It stays open and is shown. */
        gateway->metrics.unreadable++;
        return;
    }
    struct flight *flight = flight_of_copy(gateway, copy, (enum step_kind)kind, resource);
    if (kind == STEP_BLOCK)
        link_blocks(gateway, flight, copy->detail);
    CRASH_POINT(gateway->options.env, "recover", copy->action, copy->name);
    gateway->metrics.recovered++;
}

static void take_over_all(struct gateway *gateway, const struct open_list *list)
{
    /* A block names the step that it blocks: blocks come last. */
    for (int blocks = 0; blocks <= 1; blocks++)
        for (size_t i = 0; i < list->count; i++)
            if ((step_kind_of_text(list->items[i].action) == STEP_BLOCK) == (blocks == 1))
                take_over(gateway, &list->items[i]);
}

/* --- until all are decided ------------------------------------------------------------------------------ */

static void tell_recovered(void *context)
{
    struct gateway *gateway = context;
    gateway->recover_timer = NULL;
    env_callback *recovered = STEAL(gateway->recovered);
    recovered(gateway->recovered_context);
}

void gateway_note_decided(struct gateway *gateway, struct flight *decided)
{
    if (decided)
        decided->undecided = false;
    if (!gateway->recovered || gateway->recover_timer)
        return;
    const struct flight *flight = NULL;
    DL_FOREACH (gateway->flights, flight) {
        if (flight->undecided)
            return;
    }
    gateway->recover_timer = env_timer_start(gateway->options.env, 0, tell_recovered, gateway);
}

/* One turn after they were taken over: nothing is called back inside gateway_recover(). */
static void start_reading(void *context)
{
    struct gateway *gateway = context;
    gateway->recover_timer = NULL;
    struct flight *flight = NULL, *next = NULL;
    DL_FOREACH_SAFE (gateway->flights, flight, next) {
        if (flight->undecided)
            flight_read(flight, 0);
    }
    gateway_note_decided(gateway, NULL);
}

void gateway_recover(struct gateway *gateway, bool went_back, env_callback *done, void *context)
{
    PRE(!gateway->recovered && done);
    gateway->recovered = done;
    gateway->recovered_context = context;
    struct open_list list = {.gateway = gateway};
    journal_open_steps_each(gateway->options.journal, collect, &list);
    if (went_back)
        for (size_t i = 0; i < list.count; i++)
            close_overtaken(gateway, &list.items[i]);
    else
        take_over_all(gateway, &list);
    for (size_t i = 0; i < list.count; i++)
        open_copy_done(&list.items[i]);
    free(list.items);
    gateway->recover_timer = env_timer_start(gateway->options.env, 0, start_reading, gateway);
}
