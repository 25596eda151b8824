/* SPDX-License-Identifier: Apache-2.0
 *
 * Rule 5 of "In doubt": a step that is open and no longer wanted is first made impossible, then closed. */
#include "control/gateway_parts.h"

#include <utlist.h>

/* Every attempt was answered 401 or 429: the server never executed it. */
static bool was_never_executed(const struct flight *flight)
{
    return !flight->unanswered && !flight->in_doubt && !flight->recovered;
}

static void horizon_is_over(void *context)
{
    struct flight *flight = context;
    flight->timer = NULL;
    flight_read(flight, 0);
}

/* A create has no precondition that could be used up: after the horizon nothing of it is under way any more.
 */
static void wait_for_horizon(struct flight *flight)
{
    struct env *env = flight->gateway->options.env;
    int64_t left_us = flight_horizon_boot_us(flight) - env_boot_us(env);
    env_timer_cancel(env, &flight->timer);
    flight->timer = env_timer_start(env, MAX(0, left_us), horizon_is_over, flight);
}

/* A server that refuses a block (a policy against our patches) refuses the next one too. */
static int64_t block_pause_us(unsigned refused)
{
    enum { FIRST_S = 10, LAST_S = 300, DOUBLINGS = 5 };
    int64_t pause_s = (int64_t)FIRST_S << MIN(refused - 1, (unsigned)DOUBLINGS);
    return MIN(pause_s, (int64_t)LAST_S) * US_PER_S;
}

static struct step_request *block_request(const struct flight *blocked)
{
    struct step_request *request =
        step_request_make(STEP_BLOCK, blocked->resource, blocked->namespace, blocked->name);
    request->uid = xstrdup(blocked->uid);
    request->version = xstrdup(blocked->version);
    request->body = json_new_object();
    request->reason = xasprintf("makes step %s impossible: it is no longer wanted", blocked->key);
    return request;
}

/* An open block of the same object that is not ours. */
static struct flight *find_block(const struct flight *blocked)
{
    struct flight *flight = NULL;
    DL_FOREACH (blocked->gateway->flights, flight) {
        if (flight->kind == STEP_BLOCK && strcmp(flight->object_key, blocked->object_key) == 0)
            return flight;
    }
    return NULL;
}

static void send_block(struct flight *blocked)
{
    struct gateway *gateway = blocked->gateway;
    PRE(blocked->state == FLIGHT_OPEN && blocked->block == NULL);
    struct step_request *request = block_request(blocked);
    struct flight *block =
        flight_make(gateway, STEP_BLOCK, blocked->resource, blocked->namespace, blocked->name);
    block->operation = blocked->operation;
    block->uid = xstrdup(blocked->uid);
    block->version = xstrdup(blocked->version);
    if (blocked->operation_name)
        flight_join_workload(block, blocked->operation_resource, blocked->operation_namespace,
                             blocked->operation_name);
    block->blocks = blocked;
    blocked->block = block;
    blocked->state = FLIGHT_BLOCKING;
    env_timer_cancel(gateway->options.env, &blocked->timer);
    flight_append_intent(block, request);
    step_request_free(request);
    journal_commit(gateway->options.journal);
}

void flight_give_up(struct flight *flight)
{
    PRE(flight->state == FLIGHT_OPEN);
    if (was_never_executed(flight)) {
        flight_close(flight, JOURNAL_REJECTED, flight->last_http, NULL, flight->last_summary);
        return;
    }
    if (!flight->uid) {
        wait_for_horizon(flight);
        return;
    }
    if (env_boot_us(flight->gateway->options.env) < flight->block_after_boot_us)
        return; /* it is read again from time to time, and the plans are asked again */
    if (!flight->block_wanted) {
        /* It may have been decided since it was read last. */
        flight->block_wanted = true;
        flight_read(flight, 0);
        return;
    }
    if (!gateway_has_room(flight->gateway)) {
        flight->block_wanted = false; /* the plans are asked again */
        return;
    }
    struct flight *block = flight->block ? flight->block : find_block(flight);
    if (!block) {
        send_block(flight);
        return;
    }
    /* Of an ended run, or of a step before: it is resolved first, and then this one is read again. */
    block->blocks = flight;
    flight->block = block;
    flight->state = FLIGHT_BLOCKING;
    env_timer_cancel(flight->gateway->options.env, &flight->timer);
    if (block->state == FLIGHT_OPEN)
        flight_read(block, 0);
}

void flight_block_ended(struct flight *blocked, enum journal_kind kind)
{
    if (blocked->state != FLIGHT_BLOCKING)
        return; /* it was sent again, or is being read: it finds out by itself */
    blocked->state = FLIGHT_OPEN;
    if (kind == JOURNAL_APPLIED) {
        /* The block moved the object from the version that the step needs; read, since it may be another's
         * block. */
        str_replace(&blocked->last_summary, "no longer wanted, and made impossible");
        flight_read(blocked, 0);
        return;
    }
    /* absent, overtaken: something else moved the object, perhaps the step itself. rejected, not_sent:
     * nothing moved; the plans are asked again. */
    if (kind == JOURNAL_REJECTED) {
        flight_park(blocked);
        blocked->block_after_boot_us =
            env_boot_us(blocked->gateway->options.env) + block_pause_us(++blocked->blocks_refused);
    }
    blocked->block_wanted = false;
    flight_read(blocked, kube_backoff_us(blocked->gateway->options.env, (unsigned)blocked->unknowns, -1));
}
