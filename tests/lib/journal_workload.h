/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows that the journal's benches write: operations of 40 entries each, as a rollout of a set makes them
 * - begin, 12 steps (intent and outcome, 450 bytes of body), 7 waits, end - on as many sets as it takes. The
 * same rows for the journal and for plain SQLite. */
#pragma once

#include "journal/entry.h"

enum { WORKLOAD_ENTRIES = 40, WORKLOAD_BODY_BYTES = 450 };

struct workload {
    int64_t number; /* of the next row, from 0 */
    char name[64];
    char pod[80];
    char version[24];
    char audit_id[64];
    char detail[160];
    char body[WORKLOAD_BODY_BYTES + 1];
};

/* Fills the next row: kind and what its kind has; *ret_body is NULL but for intents. `operation` is the index
 * of the operation's begin row (from 0), `step` that of the intent's; -1: none. */
void workload_next(struct workload *workload, struct journal_entry *ret, const char **ret_body,
                   int64_t *ret_operation, int64_t *ret_step);
