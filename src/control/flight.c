/* SPDX-License-Identifier: Apache-2.0 */
#include "control/gateway_parts.h"

#include "base/plant.h"

/* --- the last moment ------------------------------------------------------------------------------------ */

/* After the connection stands and before the first byte: do we still lead? From here on it may have left. */
static bool may_leave(void *context)
{
    struct flight *flight = context;
    const struct gateway_options *options = &flight->gateway->options;
    if (flight->gateway->stopping || (options->may_write && !options->may_write(options->context)))
        return false;
    ENSURE(flight->state == FLIGHT_SENT && !flight->left);
    flight->left = true;
    flight->attempt_is_open = true;
    flight->left_boot_us = env_boot_us(options->env);
    flight->gateway->metrics.sent++;
    flight_pass_answer_edge(flight);
    return true;
}

/* --- the answer ----------------------------------------------------------------------------------------- */

static void remember_answer(struct flight *flight, const struct kube_answer *answer)
{
    flight->last_http = answer->http;
    str_replace(&flight->last_reason, answer->reason ? answer->reason : "");
    str_replace(&flight->last_summary, answer->summary);
}

static void fall_in_doubt(struct flight *flight, int64_t read_after_us)
{
    flight->in_doubt = true;
    flight->gateway->metrics.in_doubt++;
    flight_tell(flight, JOURNAL_UNKNOWN, flight->last_http, NULL);
    flight_read(flight, read_after_us);
}

static int64_t backoff_us(const struct flight *flight, int64_t retry_after_us)
{
    return kube_backoff_us(flight->gateway->options.env, (unsigned)flight->unknowns, retry_after_us);
}

static void pause_is_over(void *context)
{
    struct flight *flight = context;
    flight->timer = NULL;
    flight_set_open(flight);
}

/* 401, 429: it was not executed. After a pause the plans say whether it is still wanted. */
static void take_again(struct flight *flight, const struct kube_answer *answer)
{
    const struct gateway_options *options = &flight->gateway->options;
    if (answer->http == 401)
        kube_client_refresh_credentials(options->client);
    flight->state = FLIGHT_PAUSE;
    flight->timer =
        env_timer_start(options->env, backoff_us(flight, answer->retry_after_us), pause_is_over, flight);
    flight_tell(flight, JOURNAL_UNKNOWN, flight->last_http, NULL);
}

/* It never left. The first attempt closes the step; after earlier ones it is as undecided as before. A server
 * that cannot be reached is not asked for every step anew. */
static void take_not_sent(struct flight *flight)
{
    struct gateway *gateway = flight->gateway;
    struct env *env = gateway->options.env;
    if (gateway->options.may_write == NULL || gateway->options.may_write(gateway->options.context))
        gateway_hold_until(gateway,
                           env_boot_us(env) + kube_backoff_us(env, gateway->not_sent_in_a_row++, -1));
    if (flight->unknowns == 0)
        flight_close(flight, JOURNAL_NOT_SENT, 0, NULL, flight->last_summary);
    else
        flight_read(flight, backoff_us(flight, -1));
}

/* The object in a 2xx answer; a Status (of a finished delete) and a cut body are none. */
static const cJSON *answered_object(const struct kube_answer *answer)
{
    if (answer->body_cut || str_equal(json_str(answer->body, "kind"), "Status"))
        return NULL;
    return answer->body;
}

/* Said of a 2xx in the journal, by whoever looks why the step is in doubt. */
static void note_foreign(struct flight *flight, const struct kube_answer *answer,
                         const struct answer_target *target)
{
    if (!answer_is_foreign(answer, target))
        return;
    CLEANUP_FREE char *sentence = answer_foreign_sentence(answer, target);
    str_replace(&flight->last_summary, sentence);
}

static void take_answer(struct flight *flight, const struct kube_answer *answer)
{
    struct answer_target target = flight_target(flight);
    target.uid = flight->uid;
    target.subresource = flight->subresource;
    target.deleted = flight->kind == STEP_DELETE;
    note_foreign(flight, answer, &target);
    switch (answer_classify(flight->kind, &target, answer)) {
    case ANSWER_APPLIED:
        flight_close(flight, JOURNAL_APPLIED, answer->http, answered_object(answer), NULL);
        return;
    case ANSWER_REJECTED:
        /* An earlier attempt that nobody answered may have been applied, or still be: this answer is not its.
         */
        flight->refused = true;
        if (flight->unanswered)
            fall_in_doubt(flight, backoff_us(flight, -1));
        else
            flight_close(flight, JOURNAL_REJECTED, answer->http, NULL, answer->summary);
        return;
    case ANSWER_AGAIN:
        take_again(flight, answer);
        return;
    case ANSWER_ECHO:
        fall_in_doubt(flight, flight->unknowns == 0 ? 0 : backoff_us(flight, -1));
        return;
    case ANSWER_UNKNOWN:
        flight->unanswered = true;
        flight->unanswered_boot_us = flight->left_boot_us;
        if (PLANT("resent-without-resolving")) {
            take_again(flight, answer);
            return;
        }
        fall_in_doubt(flight, flight->unknowns == 0 && answer->retry_after_us < 0
                                  ? 0
                                  : backoff_us(flight, answer->retry_after_us));
        return;
    case ANSWER_NOT_SENT:
        take_not_sent(flight);
        return;
    }
    UNREACHABLE();
}

static void write_done(void *context, const struct kube_answer *answer)
{
    struct flight *flight = context;
    struct gateway *gateway = flight->gateway;
    flight->call = NULL;
    flight_set_under_way(flight, false);
    flight_end_at_answer_edge(flight);
    if (answer->outcome != KUBE_NOT_SENT)
        CRASH_POINT(gateway->options.env, "outcome", step_kind_info(flight->kind)->text, flight->name);
    ENSURE(ERGO(answer->outcome == KUBE_OK || answer->outcome == KUBE_REFUSED, flight->left));
    remember_answer(flight, answer);
    if (answer->http != 0)
        gateway->not_sent_in_a_row = 0;
    take_answer(flight, answer);
    gateway_check_stopped(gateway);
}

/* --- sending -------------------------------------------------------------------------------------------- */

/* Why it does not leave although it is durable; NULL: it does. */
static const char *why_not_now(const struct flight *flight)
{
    const struct gateway_options *options = &flight->gateway->options;
    if (options->may_write && !options->may_write(options->context))
        return "the lease was lost before it was sent";
    if (flight->gateway->stopping)
        return "stopped before it was sent";
    /* The disk was full or stuck meanwhile. A create has no precondition that would know it. */
    if (env_boot_us(options->env) - flight->decided_boot_us >= HORIZON_US)
        return "decided too long ago";
    return NULL;
}

static void is_durable(void *context)
{
    struct flight *flight = context;
    struct gateway *gateway = flight->gateway;
    ENSURE(flight->state == FLIGHT_INTENT || flight->state == FLIGHT_UNKNOWN);
    const char *reason = why_not_now(flight);
    if (!reason) {
        flight_hand_over(flight, may_leave, write_done);
        return;
    }
    str_replace(&flight->last_summary, reason);
    flight_set_under_way(flight, false);
    if (flight->unknowns == 0) {
        flight_close(flight, JOURNAL_NOT_SENT, 0, NULL, flight->last_summary);
    } else {
        flight_set_open(flight);
        gateway_check_stopped(gateway);
    }
}

void flight_send_when_durable(struct flight *flight, int64_t seq)
{
    PRE(flight->state == FLIGHT_INTENT || flight->state == FLIGHT_UNKNOWN);
    flight_set_under_way(flight, true);
    flight->decided_boot_us = env_boot_us(flight->gateway->options.env);
    if (PLANT("sent-before-durable"))
        is_durable(flight);
    else
        journal_when_durable(flight->gateway->options.journal, seq, is_durable, flight);
}

int flight_newest_attempt(const struct flight *flight)
{
    return flight->attempt_is_open ? flight->unknowns + 1 : MAX(flight->unknowns, 1);
}

void flight_close_attempt(struct flight *flight)
{
    if (!flight->attempt_is_open)
        return;
    if (PLANT("attempts-not-closed")) {
        flight->unknowns++;
        flight->attempt_is_open = false;
        return;
    }
    struct journal *journal = flight->gateway->options.journal;
    const char *summary = flight->last_summary;
    CLEANUP_FREE char *audit_id = xasprintf("neo-%s-%d", flight->key, flight->unknowns + 1);
    flight->newest_seq =
        journal_append(journal, &(struct journal_entry){.kind = JOURNAL_UNKNOWN,
                                                        .operation = flight->operation,
                                                        .step = flight->step,
                                                        .attempt = flight->unknowns + 1,
                                                        .http = flight->last_http,
                                                        .audit_id = audit_id,
                                                        .reason = summary && *summary ? summary : NULL});
    flight->unknowns++;
    flight->attempt_is_open = false;
    journal_commit_soon(journal);
}

void flight_park(struct flight *flight)
{
    flight->parked = true;
    flight_close_attempt(flight);
}

void flight_send_again(struct flight *flight)
{
    struct gateway *gateway = flight->gateway;
    PRE(flight->state == FLIGHT_OPEN && flight->body);
    env_timer_cancel(gateway->options.env, &flight->timer);
    flight_close_attempt(flight);
    flight->block_wanted = false;
    flight->parked = false;
    flight->refused = false;
    flight->state = FLIGHT_UNKNOWN;
    gateway->metrics.resent++;
    flight_send_when_durable(flight, flight->newest_seq);
    journal_commit(gateway->options.journal);
}
