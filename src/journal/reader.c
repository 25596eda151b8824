/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/reader.h"

#include "journal/failure.h"
#include "journal/lock.h"
#include "journal/reader_parts.h"
#include "journal/settings.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* --- sentences -------------------------------------------------------------------------------- */

static bool is_there(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

static bool disk_is_full(const char *folder)
{
    struct statvfs space;
    return statvfs(folder, &space) == 0 && space.f_bavail * space.f_frsize < 32768;
}

/* The -shm could not be made or read: why, as far as stat() tells. */
static int explain_neighbours(const struct journal_reader *reader, int code, struct error **err)
{
    const struct place *place = &reader->place;
    bool has_shm = is_there(place->shm_path);
    if (failure_code(code) == ERROR_NO_SPACE || (!has_shm && disk_is_full(place->folder)))
        return error_set(
            err, ERROR_NO_SPACE,
            "journal %s: its -shm is missing and the disk is full, so that it can be made by nobody: make "
            "a little room, or copy %s and its -wal to another disk and read them there",
            place->path, place->path);
    if (is_there(place->wal_path) && access(place->wal_path, R_OK) != 0)
        return error_set(
            err, ERROR_FORBIDDEN,
            "journal %s: its -wal cannot be read: run as the owner of the file; without it newest rows "
            "would be missing",
            place->path);
    if (has_shm && access(place->shm_path, R_OK) != 0)
        return error_set(err, ERROR_FORBIDDEN,
                         "journal %s: its -shm cannot be read: run as the owner of the file", place->path);
    if (!has_shm)
        return error_set(
            err, ERROR_FORBIDDEN,
            "journal %s: its -shm is missing and cannot be made in this folder: copy %s and its -wal to a "
            "writable folder, or read a copy made by `neoset-audit backup`",
            place->path, place->path);
    return failure_set(err, reader->db, code, "journal %s: cannot be read", place->path);
}

int reader_fail(struct journal_reader *reader, int code, struct error **err)
{
    const char *path = reader->place.path;
    int kind = code & 0xff;
    if (kind == SQLITE_NOTADB)
        return error_set(err, ERROR_INVALID, "%s is not a journal (not even a SQLite file)", path);
    if (kind == SQLITE_CORRUPT)
        return error_set(
            err, ERROR_CORRUPT,
            "journal %s is damaged (%s): restore a backup; what can be read is lost by no attempt: nothing "
            "was changed",
            path, sqlite3_errmsg(reader->db));
    if (kind == SQLITE_BUSY)
        return error_set(err, ERROR_LOCKED, "journal %s is busy (somebody repairs or vacuums it?): try again",
                         path);
    if (kind == SQLITE_CANTOPEN || kind == SQLITE_READONLY || code == SQLITE_IOERR_SHMSIZE ||
        code == SQLITE_IOERR_SHMOPEN || code == SQLITE_IOERR_SHMMAP || kind == SQLITE_FULL)
        return explain_neighbours(reader, code, err);
    return failure_set(err, reader->db, code, "journal %s: cannot be read", path);
}

/* --- snapshot --------------------------------------------------------------------------------- */

static int number(struct journal_reader *reader, const char *sql, int64_t *ret, struct error **err)
{
    CLEANUP_ERROR struct error *inner = NULL;
    if (settings_query_int64(reader->db, sql, ret, &inner) == 0)
        return 0;
    return reader_fail(reader, sqlite3_extended_errcode(reader->db), err);
}

static bool is_wal_mode(const struct journal_reader *reader)
{
    sqlite3_stmt *mode = NULL;
    bool is_wal = sqlite3_prepare_v2(reader->db, "PRAGMA journal_mode", -1, &mode, NULL) == SQLITE_OK &&
                  sqlite3_step(mode) == SQLITE_ROW &&
                  str_equal((const char *)sqlite3_column_text(mode, 0), "wal");
    sqlite3_finalize(mode);
    return is_wal;
}

static int refuse_unbegun(const char *path, struct error **err)
{
    return error_set(
        err, ERROR_NOT_FOUND,
        "journal %s holds nothing yet: its first opening was interrupted (a full disk?), so that "
        "nothing was ever written with it: whatever writes next begins it; make room first if "
        "the disk is full",
        path);
}

/* Ours, without a schema. Of a journal's first run everything else is in its -wal: where that is there, with
 * something in it or in the journal's own place, it says that there is nothing. */
static int refuse_without_schema(const struct journal_reader *reader, struct error **err)
{
    bool is_in_place = is_there(reader->place.lock_path);
    if (!is_wal_mode(reader) || reader->had_wal || (reader->had_wal_file && is_in_place))
        return refuse_unbegun(reader->place.path, err);
    return error_set(
        err, ERROR_UNSUPPORTED,
        "%s holds nothing yet: it is a copy without its -wal, made while the journal was in use; "
        "`neoset-audit backup` makes a whole one",
        reader->place.path);
}

static int refuse_foreign(const struct journal_reader *reader, int64_t application, struct error **err)
{
    if (application == PLACE_APPLICATION_ID)
        return refuse_without_schema(reader, err);
    return error_set(err, ERROR_UNSUPPORTED, "%s is no journal but another application's SQLite file",
                     reader->place.path);
}

static int check_header(struct journal_reader *reader, struct error **err)
{
    int64_t application = 0;
    int64_t version = 0;
    int result = number(reader, "PRAGMA application_id", &application, err);
    if (result == 0)
        result = number(reader, "PRAGMA user_version", &version, err);
    if (result < 0)
        return result;
    if (application != PLACE_APPLICATION_ID || version < 1)
        return refuse_foreign(reader, application, err);
    reader->meta.user_version = (int)version;
    int64_t min_reader = 0;
    result = number(reader, "SELECT min_reader FROM meta", &min_reader, err);
    if (result < 0 || min_reader <= READER_SCHEMA_NEWEST)
        return result;
    return error_set(
        err, ERROR_UNSUPPORTED,
        "journal %s was written by a newer neoset (it needs a reader that knows schema %lld, this one knows "
        "%d): use that version's programs",
        reader->place.path, (long long)min_reader, READER_SCHEMA_NEWEST);
}

struct snapshot {
    struct journal_reader *reader;
    bool has_meta;
    bool unsound;
    bool ends_with_stop;
};

static bool take_hash(sqlite3_stmt *statement, int column, uint8_t ret_hash[static SHA256_SIZE])
{
    const void *hash = sqlite3_column_blob(statement, column);
    if (!hash || sqlite3_column_bytes(statement, column) != SHA256_SIZE)
        return false;
    memcpy(ret_hash, hash, SHA256_SIZE);
    return true;
}

static void visit_meta(void *context, sqlite3_stmt *statement)
{
    struct snapshot *snapshot = context;
    struct journal_reader *reader = snapshot->reader;
    struct journal_meta *meta = &reader->meta;
    snapshot->has_meta = true;
    str_replace(&reader->journal_id, (const char *)sqlite3_column_text(statement, 0));
    meta->created_us = sqlite3_column_int64(statement, 1);
    meta->pruned_seq = sqlite3_column_int64(statement, 2);
    snapshot->unsound = !reader->journal_id || !take_hash(statement, 3, meta->pruned_hash);
    /* No entry: the head is what the chain begins with. */
    meta->head_seq = meta->pruned_seq;
    memcpy(meta->head_hash, meta->pruned_hash, SHA256_SIZE);
}

static void visit_head(void *context, sqlite3_stmt *statement)
{
    struct snapshot *snapshot = context;
    struct journal_reader *reader = snapshot->reader;
    struct journal_meta *meta = &reader->meta;
    meta->head_seq = sqlite3_column_int64(statement, 0);
    meta->head_at_us = sqlite3_column_int64(statement, 1);
    meta->newest_run = sqlite3_column_int64(statement, 2);
    reader->head_mono_us = sqlite3_column_int64(statement, 3);
    snapshot->unsound = snapshot->unsound || !take_hash(statement, 4, meta->head_hash);
    snapshot->ends_with_stop = str_equal((const char *)sqlite3_column_text(statement, 5), "stop");
}

static int read_snapshot(struct snapshot *snapshot, struct error **err)
{
    struct journal_reader *reader = snapshot->reader;
    struct query meta = QUERY_INIT;
    query_add(&meta, "SELECT journal_id, created_us, pruned_seq, pruned_hash FROM meta");
    int result = query_run(reader, &meta, visit_meta, snapshot, err);
    query_done(&meta);
    struct query head = QUERY_INIT;
    query_add(&head, "SELECT seq, at_us, run, mono_us, hash, kind FROM entry ORDER BY seq DESC LIMIT 1");
    if (result == 0)
        result = query_run(reader, &head, visit_head, snapshot, err);
    query_done(&head);
    if (result == 0 && (!snapshot->has_meta || snapshot->unsound))
        return error_set(err, ERROR_CORRUPT, "journal %s: its identity cannot be read: restore a backup",
                         reader->place.path);
    return result;
}

int reader_read_meta(struct journal_reader *reader, struct error **err)
{
    struct snapshot snapshot = {.reader = reader};
    int result = read_snapshot(&snapshot, err);
    reader->meta.journal_id = reader->journal_id;
    return result;
}

/* A WAL file whose WAL is not there or empty. In its own place (with its lock) that is ordinary after a clean
 * end; of a copy nobody can tell whether it was in use when it was made. */
static void notice_copy(struct journal_reader *reader, bool ends_with_stop, bool is_wal)
{
    const struct place *place = &reader->place;
    bool is_in_place = is_there(place->lock_path);
    str_replace(&reader->notice, NULL);
    if (is_wal && !reader->had_wal && !is_in_place)
        reader->notice =
            xasprintf("%s looks like a plain copy of a journal: if that was in use, the newest rows may be "
                      "missing, for they were in its -wal; `neoset-audit backup` makes a whole one",
                      place->path);
    else if (is_wal && !reader->had_wal && !ends_with_stop && !reader->meta.lives)
        reader->notice = xasprintf("%s: its last run did not end, and its -wal is gone or empty: the newest "
                                   "rows may be missing",
                                   place->path);
    reader->meta.notice = reader->notice;
}

static int take_snapshot(struct journal_reader *reader, struct error **err)
{
    struct snapshot snapshot = {.reader = reader};
    /* Both rows from the same moment. */
    int code = sqlite3_exec(reader->db, "BEGIN", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return reader_fail(reader, code, err);
    int result = number(reader, "PRAGMA data_version", &reader->data_version, err);
    if (result == 0)
        result = read_snapshot(&snapshot, err);
    (void)sqlite3_exec(reader->db, "COMMIT", NULL, NULL, NULL);
    if (result < 0)
        return result;
    reader->meta.path = reader->place.path;
    reader->meta.journal_id = reader->journal_id;
    reader->meta.lives = reader->meta.newest_run > 0 && lock_is_held(reader->place.lock_path);
    notice_copy(reader, snapshot.ends_with_stop, is_wal_mode(reader));
    return 0;
}

/* --- open, close ------------------------------------------------------------------------------ */

static int refuse_empty(const struct journal_reader *reader, struct error **err)
{
    int result = place_check_empty(&reader->place, err);
    return result < 0 ? result : refuse_unbegun(reader->place.path, err);
}

static int open_reader(struct journal_reader *reader, const char *path, struct error **err)
{
    int result = place_find(path, false, &reader->place, err);
    if (result < 0)
        return result;
    if (reader->place.is_new)
        return refuse_empty(reader, err);
    struct stat wal;
    reader->had_wal_file = stat(reader->place.wal_path, &wal) == 0;
    reader->had_wal = reader->had_wal_file && wal.st_size > 0;
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(reader->place.path, &reader->db, flags, NULL);
    if (code != SQLITE_OK)
        return reader_fail(reader, code, err);
    result = settings_apply_reader(reader->db, reader->place.path, err);
    if (result == 0)
        result = check_header(reader, err);
    return result < 0 ? result : take_snapshot(reader, err);
}

int journal_reader_open(const char *path, struct journal_reader **ret, struct error **err)
{
    struct journal_reader *reader = xcalloc(1, sizeof(*reader));
    reader->place.fd = -1;
    int result = open_reader(reader, path, err);
    if (result < 0) {
        journal_reader_close(reader);
        return result;
    }
    *ret = reader;
    return 0;
}

void journal_reader_close(struct journal_reader *reader)
{
    if (!reader)
        return;
    reader_nonces_free(reader);
    for (int i = 0; i < READER_KEPT_COUNT; i++)
        sqlite3_finalize(reader->kept[i]);
    ENSURE(sqlite3_close(reader->db) == SQLITE_OK);
    place_done(&reader->place);
    free(reader->journal_id);
    free(reader->notice);
    free(reader);
}

const struct journal_meta *journal_reader_meta(const struct journal_reader *reader)
{
    return &reader->meta;
}

int journal_reader_refresh(struct journal_reader *reader, bool *ret_moved, struct error **err)
{
    int64_t version = 0;
    int result = number(reader, "PRAGMA data_version", &version, err);
    if (result < 0)
        return result;
    if (version == reader->data_version) {
        reader->meta.lives = reader->meta.newest_run > 0 && lock_is_held(reader->place.lock_path);
        *ret_moved = false;
        return 0;
    }
    int64_t before = reader->meta.head_seq;
    result = take_snapshot(reader, err);
    if (result == 0)
        *ret_moved = reader->meta.head_seq != before;
    return result;
}
