/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries, operations or steps of all journals as one stream, filtered. One journal is passed through as it
 * is read; several are merged by time, never re-ordered inside a file. */
#pragma once

#include "audit/audit.h"

enum record_kind { RECORD_ENTRY, RECORD_OPERATION, RECORD_STEP };

/* One of the three, borrowed for the callback. */
struct record {
    enum record_kind kind;
    const struct audit_journal *journal;
    int64_t seq;   /* of the entry, the begin entry, the intent */
    int64_t at_us; /* of the same */
    const struct journal_entry *entry;
    const struct journal_operation_record *operation;
    const struct journal_step_record *step;
};
/* True to go on. */
typedef bool record_each(void *context, const struct record *record);

/* filter->object with name finds an operation's own object, with all that belongs to the operation, and the
 * targets of steps and waits. filter->kind and outcome are those of the kind of record. newest_first:
 * operations only. -ERROR_USAGE for a filter that this kind of record has not. */
int records_read(struct audit *audit, enum record_kind kind, const struct audit_filter *filter,
                 bool newest_first, record_each *each, void *context, struct error **err);

/* Entries behind a seq of each journal (after_seqs[audit->count]), up to the snapshots' heads. */
int records_read_after(struct audit *audit, const int64_t *after_seqs, const struct audit_filter *filter,
                       record_each *each, void *context, struct error **err);
/* "intent,applied" into JOURNAL_KIND_BIT()s; NULL is JOURNAL_KIND_ALL. -ERROR_USAGE names the kinds. */
int record_entry_kinds(const char *text, unsigned *ret, struct error **err);

/* Deep copies, each one piece of memory (free). */
struct journal_entry *record_copy_entry(const struct journal_entry *entry);
struct journal_operation_record *record_copy_operation(const struct journal_operation_record *operation);
struct journal_step_record *record_copy_step(const struct journal_step_record *step);
struct journal_wait_record *record_copy_wait(const struct journal_wait_record *wait);
struct journal_run_record *record_copy_run(const struct journal_run_record *run);
