/* SPDX-License-Identifier: Apache-2.0 */
#include "control/gateway_parts.h"
#include "control/preconditions.h"
#include "kube/object.h"

#include <ctype.h>
#include <utlist.h>

/* --- the life of a flight ----------------------------------------------------------------------------------
 */

struct flight *flight_make(struct gateway *gateway, enum step_kind kind, enum kube_resource resource,
                           const char *namespace, const char *name)
{
    struct flight *flight = xcalloc(1, sizeof(*flight));
    flight->gateway = gateway;
    flight->kind = kind;
    flight->resource = resource;
    flight->namespace = xstrdup_or_null(namespace);
    flight->name = xstrdup(name);
    flight->object_key = gateway_object_key(resource, namespace, name);
    DL_APPEND(gateway->flights, flight);
    if (kind != STEP_BLOCK) {
        PRE(gateway_find_flight(gateway, resource, namespace, name) == NULL);
        HASH_ADD_KEYPTR(hh, gateway->by_object, flight->object_key, strlen(flight->object_key), flight);
    }
    return flight;
}

static void flight_unlink(struct flight *flight)
{
    struct gateway *gateway = flight->gateway;
    DL_DELETE(gateway->flights, flight);
    if (flight->kind != STEP_BLOCK)
        HASH_DELETE(hh, gateway->by_object, flight);
    flight_set_under_way(flight, false);
    flight_leave_workload(flight);
}

static void flight_release(struct flight *flight)
{
    struct gateway *gateway = flight->gateway;
    env_timer_cancel(gateway->options.env, &flight->timer);
    journal_forget(gateway->options.journal, flight);
    if (flight->call)
        kube_call_cancel(gateway->options.client, &flight->call);
    char *const texts[] = {
        flight->object_key,
        flight->key,
        flight->namespace,
        flight->name,
        flight->subresource,
        flight->uid,
        flight->version,
        flight->fingerprint,
        flight->owner,
        flight->body,
        flight->operation_namespace,
        flight->operation_name,
        flight->last_reason,
        flight->last_summary,
        flight->field_manager,
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free(texts[i]);
    free(flight);
}

void flight_set_under_way(struct flight *flight, bool under_way)
{
    flight->gateway->under_way += (int)under_way - (int)flight->under_way;
    flight->under_way = under_way;
}

bool gateway_is_busy(const struct gateway *gateway)
{
    return gateway->under_way >= UNDER_WAY_MAX;
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void resume(struct gateway *gateway)
{
    if (gateway->options.resume && !gateway->stopping)
        gateway->options.resume(gateway->options.context);
}

void gateway_health_changed(struct gateway *gateway)
{
    if (journal_health(gateway->options.journal) == JOURNAL_WELL)
        resume(gateway);
}

struct gateway *gateway_make(const struct gateway_options *options)
{
    PRE(options->env && options->client && options->journal && options->field_manager);
    struct gateway *gateway = xcalloc(1, sizeof(*gateway));
    gateway->options = *options;
    gateway->made_boot_us = env_boot_us(options->env);
    return gateway;
}

void gateway_free(struct gateway *gateway)
{
    if (!gateway)
        return;
    env_timer_cancel(gateway->options.env, &gateway->hold_timer);
    env_timer_cancel(gateway->options.env, &gateway->stop_timer);
    env_timer_cancel(gateway->options.env, &gateway->recover_timer);
    while (gateway->pending_ends)
        gateway_drop_pending_end(gateway, gateway->pending_ends);
    struct flight *flight = NULL, *next = NULL;
    DL_FOREACH_SAFE (gateway->flights, flight, next) {
        flight_unlink(flight);
        flight_release(flight);
    }
    gateway_forget_closed(gateway);
    gateway_forget_done_edges(gateway);
    free(gateway);
}

/* --- when nothing new may be sent ----------------------------------------------------------------------- */

bool gateway_may_send(const struct gateway *gateway)
{
    const struct gateway_options *options = &gateway->options;
    if (gateway->stopping || journal_health(options->journal) != JOURNAL_WELL)
        return false;
    if (env_boot_us(options->env) < gateway->hold_until_boot_us)
        return false;
    return !options->may_write || options->may_write(options->context);
}

bool gateway_has_room(const struct gateway *gateway)
{
    return gateway_may_send(gateway) && !gateway_is_busy(gateway);
}

static void hold_is_over(void *context)
{
    struct gateway *gateway = context;
    gateway->hold_timer = NULL;
    resume(gateway);
}

void gateway_hold_until(struct gateway *gateway, int64_t until_boot_us)
{
    struct env *env = gateway->options.env;
    if (until_boot_us <= gateway->hold_until_boot_us)
        return;
    gateway->hold_until_boot_us = until_boot_us;
    env_timer_cancel(env, &gateway->hold_timer);
    gateway->hold_timer = env_timer_start(env, until_boot_us - env_boot_us(env), hold_is_over, gateway);
}

void gateway_hold_horizon(struct gateway *gateway)
{
    gateway_hold_until(gateway, env_boot_us(gateway->options.env) + HORIZON_US);
}

/* --- taking a step in ----------------------------------------------------------------------------------- */

/* What recovery needs and no column holds. The caller's. */
static char *intent_detail(const struct flight *flight)
{
    CLEANUP_JSON cJSON *detail = json_new_object();
    if (flight->fingerprint)
        json_add_str(detail, "fingerprint", flight->fingerprint);
    if (flight->subresource)
        json_add_str(detail, "subresource", flight->subresource);
    if (flight->owner)
        json_add_str(detail, "owner", flight->owner);
    if (flight->lowers_availability)
        json_add_bool(detail, "lowers_availability", true);
    if (flight->blocks)
        json_add_int64(detail, "blocks", flight->blocks->step);
    if ((size_t)flight->resource >= KUBE_RESOURCE_COUNT) {
        CLEANUP_FREE char *resource = kube_resource_text(flight->resource);
        json_add_str(detail, "resource", resource);
    }
    return json_print(detail);
}

void flight_append_intent(struct flight *flight, const struct step_request *request)
{
    struct journal *journal = flight->gateway->options.journal;
    const struct step_kind_info *info = step_kind_info(flight->kind);
    int64_t seq = journal_next_seq(journal);
    flight->key = xasprintf("%s-%lld", journal_nonce(journal), (long long)seq);
    flight->body = preconditions_make_bytes(request, flight->key);
    /* Not even a digest of it: uid and version name the content (journal.md, "Secrets"). */
    bool is_secret = str_equal(kube_resource_info(flight->resource)->kind, "Secret");
    CLEANUP_FREE char *audit_id = xasprintf("neo-%s-1", flight->key);
    CLEANUP_FREE char *detail = intent_detail(flight);
    flight->step = journal_append_intent(
        journal,
        &(struct journal_entry){.kind = JOURNAL_INTENT,
                                .operation = flight->operation,
                                .attempt = 1,
                                .action = info->text,
                                .object = kube_resource_info(flight->resource)->kind,
                                .namespace = flight->namespace,
                                .name = flight->name,
                                .uid = flight->uid,
                                .version = flight->version,
                                .audit_id = audit_id,
                                .reason = request->reason,
                                .detail = detail},
        is_secret ? NULL : flight->body, is_secret ? 0 : strlen(flight->body), info->keep_body && !is_secret);
    ENSURE(flight->step == seq);
    flight->newest_seq = seq;
    flight->state = FLIGHT_INTENT;
    flight->gateway->metrics.submitted++;
    CRASH_POINT(flight->gateway->options.env, "intent-commit", info->text, flight->name);
    flight_send_when_durable(flight, flight->step);
}

static struct flight *flight_of_request(struct gateway *gateway, const struct step_request *request)
{
    struct flight *flight =
        flight_make(gateway, request->kind, request->resource, request->namespace, request->name);
    flight->subresource = xstrdup_or_null(request->subresource);
    flight->uid = xstrdup_or_null(request->uid);
    flight->version = xstrdup_or_null(request->version);
    flight->fingerprint = xstrdup_or_null(request->fingerprint);
    if (!request->uid && request->body)
        flight->owner = xstrdup_or_null(kube_object_controller_uid(request->body));
    flight_join_workload(flight, request->operation_resource, request->operation_namespace,
                         request->operation_name);
    flight->lowers_availability = request->lowers_availability;
    flight->field_manager = xstrdup_or_null(request->field_manager);
    flight->is_forced = request->is_forced;
    return flight;
}

/* A step of an operation's object is in doubt: nothing else may take capacity away from it (journal.md, rule
 * 7). What is open and not in doubt is the plan's to weigh: it knows which steps may go side by side. */
static bool something_is_in_doubt(const struct gateway *gateway, const struct step_request *request)
{
    const struct workload *workload = gateway_find_workload(
        gateway, request->operation_resource, request->operation_namespace, request->operation_name);
    for (const struct flight *flight = workload ? workload->flights : NULL; flight;
         flight = flight->workload_next)
        if (flight->in_doubt)
            return true;
    return false;
}

static bool is_same_step(const struct flight *flight, const struct step_request *request)
{
    return flight->kind == request->kind && str_equal(flight->fingerprint, request->fingerprint) &&
           str_equal(flight->uid, request->uid) && str_equal(flight->version, request->version) &&
           str_equal(flight->subresource, request->subresource);
}

/* No version guards a create: with other bytes it is another step, whatever it is called. After a restart the
 * bytes are gone; made again with the step's key they must have the digest that the journal has. */
static bool has_same_bytes(struct flight *flight, const struct step_request *request)
{
    if (flight->body && !step_creates(flight->kind))
        return true;
    CLEANUP_FREE char *bytes = preconditions_make_bytes(request, flight->key);
    if (flight->body)
        return str_equal(bytes, flight->body);
    if (!journal_step_has_body(flight->gateway->options.journal, flight->step, bytes, strlen(bytes)))
        return false;
    flight->body = STEAL(bytes);
    return true;
}

/* An open step is asked for again: the same bytes leave once more. One that wants others ends at its horizon.
 */
static int submit_again(struct flight *flight, const struct step_request *request, step_done *done,
                        void *context)
{
    if (flight->state != FLIGHT_OPEN || !is_same_step(flight, request))
        return -ERROR_CONFLICT;
    if (!gateway_has_room(flight->gateway))
        return -ERROR_REFUSED;
    if (!has_same_bytes(flight, request))
        return -ERROR_CONFLICT;
    /* What no column holds of an apply that an ended run began. */
    str_replace(&flight->field_manager, request->field_manager);
    flight->is_forced = request->is_forced;
    flight->done = done;
    flight->context = context;
    flight_send_again(flight);
    return 0;
}

static void check_request(const struct step_request *request)
{
    bool creates = step_creates(request->kind);
    PRE(request->kind != STEP_BLOCK);
    PRE(step_is_operation_kind(request->operation_kind) && request->operation_name);
    PRE(creates == (request->uid == NULL) && creates == (request->version == NULL));
    PRE(creates || (*request->uid && preconditions_version_is_real(request->version)));
}

static int submit(struct gateway *gateway, const struct step_request *request, step_done *done, void *context)
{
    struct flight *open = gateway_find_flight(gateway, request->resource, request->namespace, request->name);
    if (open)
        return submit_again(open, request, done, context);
    if (!gateway_has_room(gateway))
        return -ERROR_REFUSED;
    /* Open in the journal and not taken up: recovery has not been here yet, or could not read it. */
    if (journal_open_step_on(gateway->options.journal, kube_resource_info(request->resource)->kind,
                             request->namespace, request->name))
        return -ERROR_CONFLICT;
    if (request->lowers_availability && something_is_in_doubt(gateway, request))
        return -ERROR_CONFLICT;
    int64_t operation = gateway_take_operation(gateway, request);
    if (operation == 0)
        return -ERROR_REFUSED;
    struct flight *flight = flight_of_request(gateway, request);
    flight->operation = operation;
    flight->done = done;
    flight->context = context;
    flight_append_intent(flight, request);
    return 0;
}

int gateway_submit(struct gateway *gateway, struct step_request *request, step_done *done, void *context)
{
    check_request(request);
    PRE(done != NULL);
    int result = submit(gateway, request, done, context);
    step_request_free(request);
    return result;
}

void gateway_forget(struct gateway *gateway, const void *context)
{
    struct flight *flight = NULL;
    DL_FOREACH (gateway->flights, flight) {
        if (flight->done && flight->context == context)
            flight->done = NULL;
    }
}

/* --- handing over: the only place where a step's request is made ------------------------------------------
 */

static char *write_path(const struct flight *flight)
{
    const struct step_kind_info *info = step_kind_info(flight->kind);
    char *path = kube_path(flight->resource, flight->namespace,
                           step_posts(flight->kind) ? NULL : flight->name, flight->subresource);
    kube_path_add_query(&path, "timeout", "10s");
    if (strcmp(info->method, "DELETE") != 0)
        kube_path_add_query(&path, "fieldManager",
                            flight->field_manager ? flight->field_manager
                                                  : flight->gateway->options.field_manager);
    if (flight->is_forced)
        kube_path_add_query(&path, "force", "true");
    return path;
}

static int64_t write_timeout_us(const struct gateway_options *options)
{
    int64_t left_us = options->lease_left_us ? options->lease_left_us(options->context) : WRITE_TIMEOUT_US;
    return MAX(1, MIN(WRITE_TIMEOUT_US, left_us));
}

void flight_hand_over(struct flight *flight, bool (*before_send)(void *context), kube_done *done)
{
    const struct gateway_options *options = &flight->gateway->options;
    const struct step_kind_info *info = step_kind_info(flight->kind);
    CLEANUP_ERROR struct error *err = NULL;
    if (preconditions_check(flight->kind, flight->name, flight->body, strlen(flight->body), &err) < 0)
        die_invariant(error_text(err), __FILE__, __LINE__);
    CRASH_POINT(options->env, "send", info->text, flight->name);
    CLEANUP_FREE char *path = write_path(flight);
    CLEANUP_FREE char *audit_id = xasprintf("neo-%s-%d", flight->key, flight->unknowns + 1);
    flight->state = FLIGHT_SENT;
    flight->left = false;
    flight->call = kube_write(options->client, kube_permit_issue(options->client),
                              &(struct kube_write){.method = info->method,
                                                   .path = path,
                                                   .content_type = info->content_type,
                                                   .body = flight->body,
                                                   .body_length = strlen(flight->body),
                                                   .audit_id = audit_id,
                                                   .pool = HTTP_POOL_REQUEST,
                                                   .timeout_us = write_timeout_us(options),
                                                   .before_send = before_send},
                              done, flight);
}

/* --- closing a step ------------------------------------------------------------------------------------- */

void flight_wake_operation(const struct flight *flight)
{
    const struct gateway_options *options = &flight->gateway->options;
    if (options->wake && flight->operation_name)
        options->wake(options->context, flight->operation_resource, flight->operation_namespace,
                      flight->operation_name);
}

void flight_tell(struct flight *flight, enum journal_kind kind, int http, const cJSON *object)
{
    if (!flight->done)
        return;
    struct step_outcome outcome = {
        .step = flight->step,
        .step_kind = flight->kind,
        .target = {flight->resource, flight->namespace, flight->name},
        .operation_object = {flight->operation_resource, flight->operation_namespace, flight->operation_name},
        .fingerprint = flight->fingerprint,
        .kind = kind,
        .http = http,
        .object = object,
        .summary = flight->last_summary ? flight->last_summary : "",
        .reason = flight->last_reason ? flight->last_reason : "",
    };
    flight->done(flight->context, &outcome);
}

static void count_outcome(struct gateway_metrics *metrics, enum journal_kind kind)
{
    if (kind == JOURNAL_APPLIED)
        metrics->applied++;
    else if (kind == JOURNAL_REJECTED)
        metrics->rejected++;
    else if (kind == JOURNAL_NOT_SENT)
        metrics->not_sent++;
}

static void append_outcome(struct flight *flight, enum journal_kind kind, int http, const cJSON *object,
                           const char *reason)
{
    struct journal *journal = flight->gateway->options.journal;
    const char *version = json_path_str(object, "metadata", "resourceVersion", NULL);
    int attempt = flight_newest_attempt(flight);
    CLEANUP_FREE char *audit_id = xasprintf("neo-%s-%d", flight->key, attempt);
    int64_t seq = journal_append(
        journal, &(struct journal_entry){.kind = kind,
                                         .operation = flight->operation,
                                         .step = flight->step,
                                         .attempt = attempt,
                                         .uid = json_path_str(object, "metadata", "uid", NULL),
                                         .version = preconditions_version_is_real(version) ? version : NULL,
                                         .http = http,
                                         .audit_id = audit_id,
                                         .reason = reason && *reason ? reason : NULL});
    flight_watch_done_edge(flight, seq);
    journal_commit_soon(journal);
}

void flight_close(struct flight *flight, enum journal_kind kind, int http, const cJSON *object,
                  const char *reason)
{
    struct gateway *gateway = flight->gateway;
    PRE(journal_kind_is_outcome(kind));
    PRE(flight->state != FLIGHT_INTENT || kind == JOURNAL_NOT_SENT);
    append_outcome(flight, kind, http, object, reason);
    count_outcome(&gateway->metrics, kind);
    if (kind != JOURNAL_APPLIED)
        gateway_remember_closed(gateway, flight);
    /* Out of the table first: who is told may submit the next step for this object at once. */
    flight_unlink(flight);
    gateway_note_decided(gateway, flight);
    struct flight *blocked = flight->blocks;
    if (blocked)
        blocked->block = NULL;
    if (flight->block)
        flight->block->blocks = NULL;
    if (blocked)
        flight_block_ended(blocked, kind);
    else if (flight->done)
        flight_tell(flight, kind, http, object);
    else
        flight_wake_operation(flight);
    flight_release(flight);
    gateway_check_stopped(gateway);
}

/* --- questions ------------------------------------------------------------------------------------------ */

bool gateway_is_open(const struct gateway *gateway, enum kube_resource resource, const char *namespace,
                     const char *name)
{
    return gateway_find_flight(gateway, resource, namespace, name) ||
           journal_open_step_on(gateway->options.journal, kube_resource_info(resource)->kind, namespace,
                                name);
}

bool gateway_find_open(const struct gateway *gateway, enum kube_resource resource, const char *namespace,
                       const char *name, bool *ret_in_doubt, bool *ret_lowers_availability)
{
    const struct flight *flight = gateway_find_flight(gateway, resource, namespace, name);
    if (flight) {
        *ret_in_doubt = flight->state != FLIGHT_INTENT && flight->state != FLIGHT_SENT;
        *ret_lowers_availability = flight->lowers_availability;
        return true;
    }
    *ret_in_doubt = true;
    *ret_lowers_availability = true;
    return gateway_is_open(gateway, resource, namespace, name);
}

bool gateway_lowers_availability(const struct gateway *gateway, enum kube_resource operation_resource,
                                 const char *namespace, const char *name)
{
    const struct workload *workload = gateway_find_workload(gateway, operation_resource, namespace, name);
    for (const struct flight *flight = workload ? workload->flights : NULL; flight;
         flight = flight->workload_next)
        if (flight->lowers_availability)
            return true;
    return false;
}

/* What only a person can know is asked with the command that says it. */
static char *parked_text(const struct flight *flight)
{
    const char *kind = kube_resource_info(flight->resource)->kind;
    const char *words = flight->last_summary ? flight->last_summary : "";
    CLEANUP_FREE char *lower = xstrdup(kind);
    for (char *at = lower; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return xasprintf("it is not known whether %s of %s %s was done (step %s%s%s); who knows can say it with: "
                     "neosetctl settle %s/%s%s%s --step %s --as applied|absent --reason WHY",
                     step_kind_info(flight->kind)->text, kind, flight->name, flight->key, *words ? ": " : "",
                     words, lower, flight->name, flight->namespace ? " -n " : "",
                     flight->namespace ? flight->namespace : "", flight->key);
}

char *gateway_parked_text(const struct gateway *gateway, enum kube_resource operation_resource,
                          const char *namespace, const char *name)
{
    const struct workload *workload = gateway_find_workload(gateway, operation_resource, namespace, name);
    for (const struct flight *flight = workload ? workload->flights : NULL; flight;
         flight = flight->workload_next) {
        if (flight->parked)
            return parked_text(flight);
    }
    return NULL;
}

void gateway_settle_unwanted(struct gateway *gateway, enum kube_resource operation_resource,
                             const char *namespace, const char *name)
{
    const struct workload *workload = gateway_find_workload(gateway, operation_resource, namespace, name);
    /* Without room the turn's own submits may have been refused: what it did not submit may be wanted. */
    if (!workload || !gateway_has_room(gateway))
        return;
    struct flight *next = NULL;
    /* The workload is gone with its last flight: what comes next is looked at before. */
    for (struct flight *flight = workload->flights; flight; flight = next) {
        next = flight->workload_next;
        if (flight->state == FLIGHT_OPEN && flight->kind != STEP_BLOCK)
            flight_give_up(flight);
    }
}

void gateway_metrics_get(const struct gateway *gateway, struct gateway_metrics *ret)
{
    *ret = gateway->metrics;
    ret->open = 0;
    ret->parked = 0;
    const struct flight *flight = NULL;
    DL_FOREACH (gateway->flights, flight) {
        ret->open++;
        ret->parked += flight->parked;
    }
}

/* --- stopping ------------------------------------------------------------------------------------------- */

/* What still waits for an answer, or for its intent to be durable so that it can be closed not_sent. */
static bool is_under_way(const struct flight *flight)
{
    return flight->state == FLIGHT_INTENT || flight->state == FLIGHT_SENT || flight->state == FLIGHT_UNKNOWN;
}

static void stop_now(void *context)
{
    struct gateway *gateway = context;
    gateway->stop_timer = NULL;
    env_callback *stopped = STEAL(gateway->stopped);
    if (stopped)
        stopped(gateway->stopped_context);
}

void gateway_check_stopped(struct gateway *gateway)
{
    if (!gateway->stopping || !gateway->stopped)
        return;
    const struct flight *flight = NULL;
    DL_FOREACH (gateway->flights, flight) {
        if (is_under_way(flight))
            return;
    }
    /* From the loop, not from inside the call that closed the last one. */
    env_timer_cancel(gateway->options.env, &gateway->stop_timer);
    gateway->stop_timer = env_timer_start(gateway->options.env, 0, stop_now, gateway);
}

void gateway_stop(struct gateway *gateway, int64_t timeout_us, env_callback *done, void *context)
{
    PRE(!gateway->stopping);
    gateway->stopping = true;
    gateway->stopped = done;
    gateway->stopped_context = context;
    gateway->stop_timer = env_timer_start(gateway->options.env, timeout_us, stop_now, gateway);
    gateway_check_stopped(gateway);
}
