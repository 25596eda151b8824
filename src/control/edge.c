/* SPDX-License-Identifier: Apache-2.0
 *
 * Edges of a step (control/crash.h) at which more has to be done than to ask whether the process ends there.
 */
#include "control/gateway_parts.h"

#ifdef NEOSET_CRASH_POINTS

#include <utlist.h>

/* --- "answer" ------------------------------------------------------------------------------------------- */

static void crash_without_answer(void *context)
{
    struct flight *flight = context;
    flight->timer = NULL;
    crash_now();
}

/* The bytes are written right after this hook returns: the end comes one turn of the loop later. */
void flight_pass_answer_edge(struct flight *flight)
{
    struct env *env = flight->gateway->options.env;
    if (!crash_is_due(env, "answer", step_kind_info(flight->kind)->text, flight->name))
        return;
    flight->last_http = -1;
    env_timer_cancel(env, &flight->timer);
    flight->timer = env_timer_start(env, 20 * US_PER_MS, crash_without_answer, flight);
}

void flight_end_at_answer_edge(const struct flight *flight)
{
    if (flight->last_http == -1)
        crash_now();
}

/* --- "done" --------------------------------------------------------------------------------------------- */

/* The flight is gone when its outcome is durable. */
struct done_edge {
    struct gateway *gateway;
    const char *kind_text;
    char *name;
    struct done_edge *prev;
    struct done_edge *next;
};

static void free_done_edge(struct done_edge *edge)
{
    DL_DELETE(edge->gateway->done_edges, edge);
    free(edge->name);
    free(edge);
}

static void outcome_is_durable(void *context)
{
    struct done_edge *edge = context;
    crash_point(edge->gateway->options.env, "done", edge->kind_text, edge->name);
    free_done_edge(edge);
}

void flight_watch_done_edge(struct flight *flight, int64_t seq)
{
    struct done_edge *edge = xcalloc(1, sizeof(*edge));
    edge->gateway = flight->gateway;
    edge->kind_text = step_kind_info(flight->kind)->text;
    edge->name = xstrdup(flight->name);
    DL_APPEND(edge->gateway->done_edges, edge);
    journal_when_durable(edge->gateway->options.journal, seq, outcome_is_durable, edge);
}

void gateway_forget_done_edges(struct gateway *gateway)
{
    while (gateway->done_edges) {
        journal_forget(gateway->options.journal, gateway->done_edges);
        free_done_edge(gateway->done_edges);
    }
}

#endif
