/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/settings.h"

#include "journal/failure.h"

#include <stdio.h>

struct setting {
    const char *name;
    const char *set;      /* what is written */
    const char *expected; /* what reading it back must give */
};

static const struct setting writer_settings[] = {
    {"journal_mode", "WAL", "wal"},    /* answers another mode where shared memory does not work */
    {"synchronous", "FULL", "2"},      /* NORMAL loses committed rows in a power cut */
    {"recursive_triggers", "ON", "1"}, /* else REPLACE walks past the delete triggers */
    {"trusted_schema", "OFF", "0"},
    {"cell_size_check", "ON", "1"},
    {"wal_autocheckpoint", "0", "0"}, /* the committer checkpoints, after its callbacks */
    {"journal_size_limit", "16777216", "16777216"},
    {"secure_delete", "ON", "1"}, /* a dropped salt or body is gone */
    {"mmap_size", "0", "0"},      /* a stray pointer must not reach the file */
    {"temp_store", "MEMORY", "2"},
    {"busy_timeout", "0", "0"}, /* it would sleep in the caller */
};

static const struct setting reader_settings[] = {
    {"query_only", "ON", "1"}, {"trusted_schema", "OFF", "0"}, {"cell_size_check", "ON", "1"},
    {"mmap_size", "0", "0"},   {"temp_store", "MEMORY", "2"},  {"busy_timeout", "5000", "5000"},
};

_Static_assert(SETTINGS_WAL_LIMIT_BYTES == 16777216, "the table says the same");
_Static_assert(SETTINGS_READER_BUSY_MS == 5000, "the table says the same");

/* First column of the first row as text, or NULL when there is no row. The caller's. */
static int query_text(sqlite3 *db, const char *sql, char **ret, struct error **err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    *ret = code == SQLITE_ROW ? xstrdup_or_null((const char *)sqlite3_column_text(statement, 0)) : NULL;
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        code = sqlite3_finalize(statement);
    else
        sqlite3_finalize(statement);
    if (code == SQLITE_OK)
        return 0;
    free(STEAL(*ret));
    return failure_set(err, db, code, "%s", sql);
}

int settings_query_int64(sqlite3 *db, const char *sql, int64_t *ret, struct error **err)
{
    char *text = NULL;
    int result = query_text(db, sql, &text, err);
    if (result < 0)
        return result;
    int64_t number = text ? strtoll(text, NULL, 10) : 0;
    free(text);
    *ret = number;
    return 0;
}

static int apply_one(sqlite3 *db, const char *path, const struct setting *setting, struct error **err)
{
    char sql[128];
    CLEANUP_FREE char *ignored = NULL;
    snprintf(sql, sizeof(sql), "PRAGMA %s=%s", setting->name, setting->set);
    int result = query_text(db, sql, &ignored, err);
    if (result < 0)
        return error_wrap(err, result, "journal %s", path);
    CLEANUP_FREE char *found = NULL;
    snprintf(sql, sizeof(sql), "PRAGMA %s", setting->name);
    result = query_text(db, sql, &found, err);
    if (result < 0)
        return error_wrap(err, result, "journal %s", path);
    /* A library built without memory mapping has no row to answer: what we want. */
    if (!found && str_equal(setting->name, "mmap_size"))
        return 0;
    if (str_equal(found, setting->expected))
        return 0;
    return error_set(err, ERROR_UNSUPPORTED,
                     "journal %s: setting %s=%s did not take (it is %s): is this a local disk?", path,
                     setting->name, setting->set, found ? found : "unset");
}

static int apply_defensive(sqlite3 *db, const char *path, struct error **err)
{
    int on = 0;
    int code = sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, &on);
    if (code != SQLITE_OK || on != 1)
        return error_set(err, ERROR_UNSUPPORTED, "journal %s: SQLite's defensive mode did not take", path);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, SETTINGS_LENGTH_MAX_BYTES);
    return 0;
}

static int apply_list(sqlite3 *db, const char *path, const struct setting *settings, size_t count,
                      struct error **err)
{
    for (size_t i = 0; i < count; i++) {
        int result = apply_one(db, path, &settings[i], err);
        if (result < 0)
            return result;
    }
    return apply_defensive(db, path, err);
}

int settings_apply_writer(sqlite3 *db, const char *path, struct error **err)
{
    int result = apply_list(db, path, writer_settings, ARRAY_SIZE(writer_settings), err);
    if (result < 0)
        return result;
    /* The -wal and -shm stay after a clean end: a reader without write permission needs them. */
    int persist = 1;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
    persist = -1;
    if (code == SQLITE_OK)
        code = sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
    if (code != SQLITE_OK || persist != 1)
        return error_set(err, ERROR_UNSUPPORTED, "journal %s: persistent WAL files did not take", path);
    return 0;
}

int settings_apply_reader(sqlite3 *db, const char *path, struct error **err)
{
    return apply_list(db, path, reader_settings, ARRAY_SIZE(reader_settings), err);
}
