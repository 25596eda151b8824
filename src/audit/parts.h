/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands share: ids, and the sheets of entries, operations, steps, waits and runs. Only src/audit
 * includes this. */
#pragma once

#include "audit/records.h"

/* "a1b2:17" */
struct id_text {
    char text[56];
};
void audit_id_text(const struct audit *audit, const struct audit_journal *journal, int64_t seq,
                   struct id_text *ret);
/* A number with one journal, text in memory with several; null for 0. */
struct sheet_cell audit_id_cell(const struct audit *audit, const struct audit_journal *journal, int64_t seq,
                                struct id_text *memory);

enum { AUDIT_COLUMNS_MAX = 32, AUDIT_ROW_IDS = 4 };

/* One row's cells and the memory that they point into. */
struct audit_row {
    struct sheet_cell cells[AUDIT_COLUMNS_MAX];
    struct id_text ids[AUDIT_ROW_IDS];
    char *object; /* "NeoSet/mysql" */
};
void audit_row_done(struct audit_row *row);

/* A declared sheet: its columns, and how to make a row of a record. */
struct audit_sheet {
    const struct sheet_column *columns;
    size_t count;
};
extern const struct audit_sheet audit_entry_sheet;
extern const struct audit_sheet audit_operation_sheet;
extern const struct audit_sheet audit_step_sheet;
/* The same for steps without an outcome: other columns are shown to people. */
struct audit_sheet audit_open_step_sheet(struct sheet_column memory[static AUDIT_COLUMNS_MAX]);
extern const struct audit_sheet audit_wait_sheet;
extern const struct audit_sheet audit_run_sheet;

/* Each fills a row that began as {0}; what it points to must live as long as the row. */
void audit_row_of_entry(const struct audit *audit, const struct audit_journal *journal,
                        const struct journal_entry *entry, struct audit_row *row);
void audit_row_of_operation(const struct audit *audit, const struct audit_journal *journal,
                            const struct journal_operation_record *operation, struct audit_row *row);
void audit_row_of_step(const struct audit *audit, const struct audit_journal *journal,
                       const struct journal_step_record *step, struct audit_row *row);
void audit_row_of_wait(const struct audit *audit, const struct audit_journal *journal,
                       const struct journal_wait_record *wait, struct audit_row *row);
void audit_row_of_run(const struct audit *audit, const struct audit_journal *journal,
                      const struct journal_run_record *run, struct audit_row *row);

/* "completed", "applied" are good, "failed", "rejected" bad, "open", "overtaken" ... in between. */
enum sheet_tone audit_tone_of(const char *outcome);
/* "in_flight", "in_doubt", "closed" */
const char *audit_step_state(const struct journal_step_record *step);
