/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of `entry` as a struct, and back. Only src/journal includes this. */
#pragma once

#include "journal/entry.h"

#include <sqlite3.h>

/* In the order of row_read(). */
#define ROW_COLUMNS(P)                                                                                       \
    P "seq," P "form," P "kind," P "run," P "epoch," P "at_us," P "mono_us," P "operation," P "step," P      \
      "attempt," P "action," P "object," P "namespace," P "name," P "uid," P "version," P "http," P          \
      "audit_id," P "digest," P "reason," P "detail," P "hash"
enum { ROW_COLUMN_COUNT = 22 };

/* Reads columns first.. of the current row. Strings are the statement's: valid until it moves. false: the row
 * is none that this program knows (a kind, or a digest or hash of a wrong size). */
bool row_read(sqlite3_stmt *statement, int first, struct journal_entry *ret);
/* Binds parameters ?1..?22. The entry must outlive the step. */
void row_bind(sqlite3_stmt *statement, const struct journal_entry *entry);
