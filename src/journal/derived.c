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

static int begin_operation(struct store *store, const struct batch_row *row)
{
    sqlite3_stmt *statement = store->statements[STORE_OPERATION_BEGIN];
    const struct journal_entry *entry = &row->entry;
    sqlite3_bind_int64(statement, 1, entry->seq);
    bind_text(statement, 2, entry->action);
    bind_text(statement, 3, entry->object);
    bind_text(statement, 4, entry->namespace);
    bind_text(statement, 5, entry->name);
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
    bind_text(statement, 2, entry->object);
    bind_text(statement, 3, entry->namespace);
    bind_text(statement, 4, entry->name);
    sqlite3_bind_int(statement, 5, str_equal(entry->action, JOURNAL_ACTION_BLOCK));
    sqlite3_bind_int64(statement, 6, entry->at_us);
    if (row->has_salt && !row->keep_body)
        sqlite3_bind_blob(statement, 7, row->salt, CHAIN_SALT_SIZE, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, 7);
    return store_run(store, STORE_STEP_OPEN, 1);
}

static int note_unknown(struct store *store, const struct journal_entry *entry)
{
    sqlite3_stmt *statement = store->statements[STORE_STEP_UNKNOWN];
    sqlite3_bind_int64(statement, 1, entry->step);
    sqlite3_bind_int64(statement, 2, entry->at_us);
    return store_run(store, STORE_STEP_UNKNOWN, 1);
}

static int close_row(struct store *store, enum store_statement close, int64_t seq)
{
    sqlite3_bind_int64(store->statements[close], 1, seq);
    return store_run(store, close, 1);
}

static int open_wait(struct store *store, const struct batch_row *row)
{
    sqlite3_stmt *statement = store->statements[STORE_WAIT_OPEN];
    const struct journal_entry *entry = &row->entry;
    sqlite3_bind_int64(statement, 1, entry->seq);
    bind_text(statement, 2, entry->action);
    bind_text(statement, 3, entry->object);
    bind_text(statement, 4, entry->namespace);
    bind_text(statement, 5, entry->name);
    sqlite3_bind_int64(statement, 6, row->effect.budget_us);
    sqlite3_bind_int64(statement, 7, entry->mono_us);
    return store_run(store, STORE_WAIT_OPEN, 1);
}

static int hold_wait(struct store *store, const struct batch_row *row)
{
    sqlite3_stmt *statement = store->statements[STORE_WAIT_HOLD];
    sqlite3_bind_int64(statement, 1, row->effect.wait);
    sqlite3_bind_int64(statement, 2, row->effect.spent_us);
    return store_run(store, STORE_WAIT_HOLD, 1);
}

static int go_wait(struct store *store, const struct batch_row *row)
{
    sqlite3_stmt *statement = store->statements[STORE_WAIT_GO];
    sqlite3_bind_int64(statement, 1, row->effect.wait);
    sqlite3_bind_int64(statement, 2, row->entry.mono_us);
    return store_run(store, STORE_WAIT_GO, 1);
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
        return note_unknown(store, entry);
    case JOURNAL_WAIT_BEGIN:
        return open_wait(store, row);
    case JOURNAL_WAIT_HOLD:
        return hold_wait(store, row);
    case JOURNAL_WAIT_GO:
        return go_wait(store, row);
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
