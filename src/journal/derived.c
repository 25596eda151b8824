/* SPDX-License-Identifier: Apache-2.0
 *
 * The derived tables, kept in the transaction that appends the entries. verify_derived.c says the same from
 * the rows alone. */
#include "journal/store.h"

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void bind_text(sqlite3_stmt *statement, int parameter, const char *text)
{
    ENSURE(sqlite3_bind_text(statement, parameter, or_empty(text), -1, SQLITE_STATIC) == SQLITE_OK);
}

/* Three parameters, beginning with first: what the entry is about. */
static void bind_object(sqlite3_stmt *statement, int first, const struct journal_entry *entry)
{
    bind_text(statement, first, entry->object);
    bind_text(statement, first + 1, entry->namespace);
    bind_text(statement, first + 2, entry->name);
}

/* One row, found by its id, takes a number. */
static int set_number(struct store *store, enum store_statement set, int64_t id, int64_t number)
{
    sqlite3_bind_int64(store->statements[set], 1, id);
    sqlite3_bind_int64(store->statements[set], 2, number);
    return store_run(store, set, 1);
}

static int close_row(struct store *store, enum store_statement close, int64_t id)
{
    sqlite3_bind_int64(store->statements[close], 1, id);
    return store_run(store, close, 1);
}

static int begin_operation(struct store *store, const struct batch_row *row)
{
    sqlite3_stmt *statement = store->statements[STORE_OPERATION_BEGIN];
    const struct journal_entry *entry = &row->entry;
    sqlite3_bind_int64(statement, 1, entry->seq);
    bind_text(statement, 2, entry->action);
    bind_object(statement, 3, entry);
    bind_text(statement, 6, row->effect.come_from);
    bind_text(statement, 7, row->effect.go_to);
    sqlite3_bind_int64(statement, 8, entry->at_us);
    return store_run(store, STORE_OPERATION_BEGIN, 1);
}

static int end_operation(struct store *store, const struct journal_entry *entry)
{
    sqlite3_stmt *statement = store->statements[STORE_OPERATION_END];
    sqlite3_bind_int64(statement, 1, entry->operation);
    sqlite3_bind_int64(statement, 2, entry->at_us);
    bind_text(statement, 3, entry->action);
    return store_run(store, STORE_OPERATION_END, 1);
}

static int open_step(struct store *store, const struct batch_row *row)
{
    sqlite3_stmt *statement = store->statements[STORE_STEP_OPEN];
    const struct journal_entry *entry = &row->entry;
    sqlite3_bind_int64(statement, 1, entry->seq);
    bind_object(statement, 2, entry);
    sqlite3_bind_int(statement, 5, str_equal(entry->action, JOURNAL_ACTION_BLOCK));
    sqlite3_bind_int64(statement, 6, entry->at_us);
    if (row->has_salt && !row->keep_body)
        sqlite3_bind_blob(statement, 7, row->salt, CHAIN_SALT_SIZE, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, 7);
    return store_run(store, STORE_STEP_OPEN, 1);
}

static int open_wait(struct store *store, const struct batch_row *row)
{
    sqlite3_stmt *statement = store->statements[STORE_WAIT_OPEN];
    const struct journal_entry *entry = &row->entry;
    sqlite3_bind_int64(statement, 1, entry->seq);
    bind_text(statement, 2, entry->action);
    bind_object(statement, 3, entry);
    sqlite3_bind_int64(statement, 6, row->effect.budget_us);
    sqlite3_bind_int64(statement, 7, entry->mono_us);
    return store_run(store, STORE_WAIT_OPEN, 1);
}

/* A new run: what was spent until the last row of the run before, and the gap between the runs on the wall
 * clock. */
static int begin_run(struct store *store, const struct batch_row *row)
{
    sqlite3_stmt *statement = store->statements[STORE_WAITS_NEW_RUN];
    sqlite3_bind_int64(statement, 1, row->effect.last_mono_us);
    sqlite3_bind_int64(statement, 2, row->effect.gap_us);
    return store_run(store, STORE_WAITS_NEW_RUN, -1);
}

static int note_pruned(struct store *store, const struct batch_row *row)
{
    sqlite3_stmt *statement = store->statements[STORE_META_PRUNED];
    sqlite3_bind_int64(statement, 1, row->effect.pruned_seq);
    sqlite3_bind_blob(statement, 2, row->effect.pruned_hash, SHA256_SIZE, SQLITE_STATIC);
    return store_run(store, STORE_META_PRUNED, 1);
}

int store_apply_derived(struct store *store, const struct batch_row *row)
{
    const struct journal_entry *entry = &row->entry;
    switch (entry->kind) {
    case JOURNAL_START:
        return begin_run(store, row);
    case JOURNAL_BEGIN:
        return begin_operation(store, row);
    case JOURNAL_END:
        return end_operation(store, entry);
    case JOURNAL_INTENT:
        return open_step(store, row);
    case JOURNAL_APPLIED:
    case JOURNAL_REJECTED:
    case JOURNAL_OVERTAKEN:
    case JOURNAL_NOT_SENT:
    case JOURNAL_ABSENT:
        return close_row(store, STORE_STEP_CLOSE, entry->step);
    case JOURNAL_UNKNOWN:
        return set_number(store, STORE_STEP_UNKNOWN, entry->step, entry->at_us);
    case JOURNAL_WAIT_BEGIN:
        return open_wait(store, row);
    case JOURNAL_WAIT_HOLD:
        return set_number(store, STORE_WAIT_HOLD, row->effect.wait, row->effect.spent_us);
    case JOURNAL_WAIT_GO:
        return set_number(store, STORE_WAIT_GO, row->effect.wait, entry->mono_us);
    case JOURNAL_WAIT_END:
        return close_row(store, STORE_WAIT_CLOSE, row->effect.wait);
    case JOURNAL_PRUNED:
        return note_pruned(store, row);
    case JOURNAL_EPOCH:
    case JOURNAL_STOP:
    case JOURNAL_LATE:
    case JOURNAL_NOTE:
    case JOURNAL_CHECKPOINT:
        return SQLITE_OK;
    case JOURNAL_KIND_COUNT:
        break;
    }
    UNREACHABLE();
}
