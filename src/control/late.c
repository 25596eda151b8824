/* SPDX-License-Identifier: Apache-2.0
 *
 * Rule 6 of "In doubt": the keys of steps that this run closed as anything but applied. One that turns up on
 * an object after all gets a `late` entry, once. Bounded: the oldest are forgotten. */
#include "control/gateway_parts.h"

static void forget(struct gateway *gateway, struct closed_key *closed)
{
    HASH_DEL(gateway->closed_keys, closed);
    free(closed->key);
    free(closed);
}

void gateway_remember_closed(struct gateway *gateway, const struct flight *flight)
{
    if (HASH_COUNT(gateway->closed_keys) >= CLOSED_KEYS_MAX)
        forget(gateway, gateway->closed_keys); /* uthash keeps the order of insertion */
    struct closed_key *closed = xcalloc(1, sizeof(*closed));
    closed->key = xstrdup(flight->key);
    closed->step = flight->step;
    closed->operation = flight->operation;
    HASH_ADD_KEYPTR(hh, gateway->closed_keys, closed->key, strlen(closed->key), closed);
}

void gateway_observe_key(struct gateway *gateway, const char *key)
{
    struct closed_key *closed = NULL;
    HASH_FIND_STR(gateway->closed_keys, key, closed);
    if (!closed)
        return;
    journal_append(
        gateway->options.journal,
        &(struct journal_entry){.kind = JOURNAL_LATE,
                                .operation = closed->operation,
                                .step = closed->step,
                                .reason = "its key turned up on the object after the step was closed"});
    journal_commit_soon(gateway->options.journal);
    gateway->metrics.late++;
    forget(gateway, closed);
}

void gateway_forget_closed(struct gateway *gateway)
{
    struct closed_key *closed = gateway->closed_keys, *next = NULL;
    HASH_CLEAR(hh, gateway->closed_keys);
    for (; closed; closed = next) {
        next = closed->hh.next;
        free(closed->key);
        free(closed);
    }
}
