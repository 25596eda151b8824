/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/store.h"

#include "journal/ballast.h"
#include "journal/failure.h"
#include "journal/row.h"
#include "journal/settings.h"

#include <unistd.h>

enum { CHECKPOINT_PAGES = 2000, OPEN_BUSY_MS = 10000 };

static const char *const statement_texts[STORE_STATEMENT_COUNT] = {
#define X(name, sql) [STORE_##name] = sql,
    STORE_STATEMENTS(X)
#undef X
};

/* --- open ------------------------------------------------------------------------------------- */

static int on_wal(void *context, sqlite3 *db, const char *database, int frames)
{
    (void)db;
    (void)database;
    struct store *store = context;
    store->wal_frames = frames;
    return SQLITE_OK;
}

static int prepare(struct store *store, struct error **err)
{
    for (int i = 0; i < STORE_STATEMENT_COUNT; i++) {
        int code = sqlite3_prepare_v3(store->db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &store->statements[i], NULL);
        if (code != SQLITE_OK)
            return failure_set(err, store->db, code, "journal %s: prepare \"%.40s\"", store->place->path,
                               statement_texts[i]);
    }
    return 0;
}

/* The header said that it is ours; this is for a file whose header could not tell (an interrupted creation).
 */
static int check_application(struct store *store, struct error **err)
{
    int64_t id = 0;
    int64_t version = 0;
    int result = settings_query_int64(store->db, "PRAGMA application_id", &id, err);
    if (result == 0)
        result = settings_query_int64(store->db, "PRAGMA user_version", &version, err);
    if (result < 0)
        return error_wrap(err, result, "journal %s", store->place->path);
    if (id == PLACE_APPLICATION_ID)
        return 0;
    int64_t tables = 0;
    result = settings_query_int64(store->db, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (result < 0)
        return error_wrap(err, result, "journal %s", store->place->path);
    if (id != 0 || version != 0 || tables != 0)
        return error_set(err, ERROR_UNSUPPORTED,
                         "%s is another application's SQLite file: choose another journal file",
                         store->place->path);
    return migrate_mark_new(store->db, store->place->path, err);
}

/* Before the library's first use in the process; later it has no effect, which is no harm: without its
 * counters a third of the locks of each append is gone. */
static void prepare_library(void)
{
    ENSURE(sqlite3_threadsafe()); /* the connection goes from thread to thread */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static int open_database(struct store *store, const char *vfs, struct error **err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW |
                SQLITE_OPEN_NOMUTEX;
    prepare_library();
    int code = sqlite3_open_v2(store->place->path, &store->db, flags, vfs);
    if (code != SQLITE_OK)
        return failure_set(err, store->db, code, "journal %s: open", store->place->path);
    /* After a kill whoever comes first recovers the write-ahead log, and that may be a reader: it is waited
     * for. The settings of the writer end that: later it would sleep in the caller. */
    sqlite3_busy_timeout(store->db, OPEN_BUSY_MS);
    /* Never by itself: only a clean end does it, see store_close(). */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return 0;
}

static int set_up(struct store *store, const struct store_options *options, struct error **err)
{
    const char *path = store->place->path;
    int result = open_database(store, options->vfs, err);
    if (result == 0)
        result = check_application(store, err);
    if (result == 0)
        result = settings_apply_writer(store->db, path, err);
    if (result == 0)
        result = migrate(store->db, path, options->migrations, &options->identity, err);
    if (result == 0)
        result = prepare(store, err);
    if (result == 0)
        sqlite3_wal_hook(store->db, on_wal, store);
    return result;
}

static int open_once(const struct store_options *options, struct store **ret, struct error **err)
{
    struct store *store = xcalloc(1, sizeof(*store));
    store->place = options->place;
    store->chain = chain_make();
    store->checkpoint_at = CHECKPOINT_PAGES;
    int result = set_up(store, options, err);
    if (result < 0) {
        store_close(store, false);
        return result;
    }
    *ret = store;
    return 0;
}

int store_open(const struct store_options *options, struct store **ret, struct error **err)
{
    CLEANUP_ERROR struct error *failure = NULL;
    int result = open_once(options, ret, &failure);
    if (result == -ERROR_NO_SPACE && ballast_give_up(options->place->ballast_path)) {
        error_free(STEAL(failure));
        result = open_once(options, ret, &failure);
    }
    if (result < 0 && err)
        *err = STEAL(failure);
    return result;
}

void store_close(struct store *store, bool checkpoint)
{
    if (!store)
        return;
    for (int i = 0; i < STORE_STATEMENT_COUNT; i++)
        sqlite3_finalize(store->statements[i]);
    if (store->db && checkpoint)
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    ENSURE(sqlite3_close(store->db) == SQLITE_OK);
    chain_free(store->chain);
    free(store);
}

/* --- commit ----------------------------------------------------------------------------------- */

int store_run(struct store *store, enum store_statement statement, int expect_changes)
{
    sqlite3_stmt *prepared = store->statements[statement];
    int code = sqlite3_step(prepared);
    /* Step has said all; reset repeats it. */
    sqlite3_reset(prepared);
    if (code != SQLITE_DONE)
        return code == SQLITE_ROW ? SQLITE_INTERNAL : code;
    if (expect_changes >= 0 && sqlite3_changes(store->db) != expect_changes)
        return SQLITE_CORRUPT;
    return SQLITE_OK;
}

static int insert_body(struct store *store, const struct batch_row *row)
{
    sqlite3_stmt *statement = store->statements[STORE_BODY];
    sqlite3_bind_int64(statement, 1, row->entry.seq);
    sqlite3_bind_blob(statement, 2, row->salt, CHAIN_SALT_SIZE, SQLITE_STATIC);
    sqlite3_bind_blob64(statement, 3, row->body, row->body_length, SQLITE_STATIC);
    return store_run(store, STORE_BODY, 1);
}

static int insert_row(struct store *store, struct batch_row *row, const uint8_t before[static SHA256_SIZE])
{
    struct journal_entry *entry = &row->entry;
    if (row->has_salt) {
        chain_digest(store->chain, row->salt, row->body, row->body_length, row->digest);
        entry->digest = row->digest;
    }
    ENSURE(chain_hash(store->chain, entry, before, row->hash));
    entry->hash = row->hash;
    row_bind(store->statements[STORE_ENTRY], entry);
    int code = store_run(store, STORE_ENTRY, 1);
    if (code == SQLITE_OK && row->keep_body)
        code = insert_body(store, row);
    if (code == SQLITE_OK)
        code = store_apply_derived(store, row);
    return code;
}

static int insert_all(struct store *store, struct batch *batch)
{
    const uint8_t *before = store->tip_hash;
    for (size_t i = 0; i < batch_count(batch); i++) {
        struct batch_row *row = batch_row(batch, i);
        PRE(row->entry.seq == store->tip_seq + 1 + (int64_t)i);
        int code = insert_row(store, row, before);
        if (code != SQLITE_OK)
            return code;
        before = row->hash;
    }
    return SQLITE_OK;
}

/* In a transaction of its own; a failure is rolled back before it is told. */
static int fail(struct store *store, int code, const char *what, struct error **err)
{
    int result = failure_set(err, store->db, code, "journal %s: %s", store->place->path, what);
    if (!sqlite3_get_autocommit(store->db))
        (void)store_run(store, STORE_ROLLBACK, -1);
    return result;
}

/* What is written to a file that has lost its name is lost with it. */
static int check_files(const struct store *store, struct error **err)
{
    const char *changed = store->has_files ? place_changed(store->place, &store->files) : NULL;
    if (!changed)
        return 0;
    return error_set(err, ERROR_GONE, "journal %s: %s was moved, removed or replaced while it was in use",
                     store->place->path, changed);
}

int store_commit(struct store *store, struct batch *batch, struct error **err)
{
    PRE(batch_count(batch) > 0);
    int result = check_files(store, err);
    if (result < 0)
        return result;
    int code = store_run(store, STORE_BEGIN, -1);
    if (code != SQLITE_OK)
        return fail(store, code, "begin", err);
    code = insert_all(store, batch);
    if (code != SQLITE_OK)
        return fail(store, code, "append", err);
    code = store_run(store, STORE_COMMIT, -1);
    if (code != SQLITE_OK)
        return fail(store, code, "commit", err);
    const struct batch_row *last = batch_row(batch, batch_count(batch) - 1);
    store->tip_seq = last->entry.seq;
    memcpy(store->tip_hash, last->hash, SHA256_SIZE);
    if (!store->has_files)
        store->files = place_look(store->place);
    store->has_files = true;
    return 0;
}

/* --- checkpoint, prune ------------------------------------------------------------------------ */

bool store_checkpoint_is_due(const struct store *store)
{
    return store->wal_frames >= store->checkpoint_at;
}

int store_checkpoint(struct store *store, struct error **err)
{
    int frames = 0;
    int done = 0;
    int code = sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &done);
    /* All copied: the next commit begins the WAL anew. A reader in the way: not before it grew by as much
     * again. */
    bool complete = code == SQLITE_OK && done >= frames;
    store->checkpoint_at = (complete ? 0 : store->wal_frames) + CHECKPOINT_PAGES;
    if (complete)
        store->wal_frames = 0;
    if (code != SQLITE_OK)
        return failure_set(err, store->db, code, "journal %s: checkpoint", store->place->path);
    return 0;
}

static int prune_table(struct store *store, enum store_statement statement, int64_t through_seq, int limit,
                       int64_t *rows)
{
    sqlite3_bind_int64(store->statements[statement], 1, through_seq);
    sqlite3_bind_int64(store->statements[statement], 2, limit);
    int code = store_run(store, statement, -1);
    if (code == SQLITE_OK)
        *rows += sqlite3_changes(store->db);
    return code;
}

int store_prune(struct store *store, int64_t through_seq, int limit, bool bodies_only, int64_t *ret_rows,
                struct error **err)
{
    int64_t rows = 0;
    int code = store_run(store, STORE_BEGIN, -1);
    if (code == SQLITE_OK)
        code = prune_table(store, STORE_PRUNE_BODIES, through_seq, limit, &rows);
    if (code == SQLITE_OK && !bodies_only)
        code = prune_table(store, STORE_PRUNE_OPERATIONS, through_seq, limit, &rows);
    if (code == SQLITE_OK && !bodies_only)
        code = prune_table(store, STORE_PRUNE_ENTRIES, through_seq, limit, &rows);
    if (code == SQLITE_OK)
        code = store_run(store, STORE_COMMIT, -1);
    if (code != SQLITE_OK)
        return fail(store, code, "prune", err);
    *ret_rows = rows;
    return 0;
}

int store_used_bytes(struct store *store, int64_t *ret, struct error **err)
{
    int64_t pages = 0;
    int64_t unused = 0;
    int64_t page_bytes = 0;
    int result = settings_query_int64(store->db, "PRAGMA page_count", &pages, err);
    if (result == 0)
        result = settings_query_int64(store->db, "PRAGMA freelist_count", &unused, err);
    if (result == 0)
        result = settings_query_int64(store->db, "PRAGMA page_size", &page_bytes, err);
    if (result == 0)
        *ret = (pages - unused) * page_bytes;
    return result;
}
