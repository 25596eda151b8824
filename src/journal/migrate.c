/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/migrate.h"

#include "journal/chain.h"
#include "journal/failure.h"
#include "journal/place.h"
#include "journal/settings.h"
#include "journal_sql.h"

#include <stdio.h>

struct migrations migrations_embedded(void)
{
    _Static_assert(ARRAY_SIZE(journal_migrations) == JOURNAL_SCHEMA_VERSION, "embed-sql counts them");
    return (struct migrations){.sql = journal_migrations, .count = JOURNAL_SCHEMA_VERSION};
}

static int execute(sqlite3 *db, const char *path, const char *what, const char *sql, struct error **err)
{
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : failure_set(err, db, code, "journal %s: %s", path, what);
}

int migrate_mark_new(sqlite3 *db, const char *path, struct error **err)
{
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA application_id=%d", PLACE_APPLICATION_ID);
    return execute(db, path, "make it", sql, err);
}

static int insert_meta(sqlite3 *db, const char *path, const struct migrate_identity *identity,
                       struct error **err)
{
    uint8_t genesis[SHA256_SIZE];
    chain_genesis(identity->journal_id, identity->created_us, genesis);
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(
        db,
        "INSERT INTO meta (id, journal_id, created_us, min_reader, pruned_seq, pruned_hash)"
        " VALUES (1, ?1, ?2, ?3, 0, ?4) ON CONFLICT DO NOTHING",
        -1, &statement, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, identity->journal_id, -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 2, identity->created_us);
        sqlite3_bind_int64(statement, 3, MIGRATE_MIN_READER);
        sqlite3_bind_blob(statement, 4, genesis, sizeof(genesis), SQLITE_STATIC);
        code = sqlite3_step(statement) == SQLITE_DONE ? SQLITE_OK : sqlite3_extended_errcode(db);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_OK ? 0 : failure_set(err, db, code, "journal %s: make its identity", path);
}

static int refuse_newer(const char *path, int64_t have, int know, struct error **err)
{
    return error_set(
        err, ERROR_UNSUPPORTED,
        "journal %s was written by a newer neoset (schema %lld, this program knows %d): start that program "
        "again, or restore a backup from before the upgrade",
        path, (long long)have, know);
}

/* Inside the transaction. */
static int run_all(sqlite3 *db, const char *path, struct migrations migrations,
                   const struct migrate_identity *identity, struct error **err)
{
    int64_t have = 0;
    int result = settings_query_int64(db, "PRAGMA user_version", &have, err);
    if (result < 0)
        return result;
    if (have > migrations.count)
        return refuse_newer(path, have, migrations.count, err);
    for (int64_t version = have; version < migrations.count; version++) {
        char sql[64];
        char what[64];
        snprintf(what, sizeof(what), "migration %04lld", (long long)version + 1);
        snprintf(sql, sizeof(sql), "PRAGMA user_version=%lld", (long long)version + 1);
        result = execute(db, path, what, migrations.sql[version], err);
        if (result == 0)
            result = execute(db, path, what, sql, err);
        if (result < 0)
            return result;
    }
    return insert_meta(db, path, identity, err);
}

int migrate(sqlite3 *db, const char *path, struct migrations migrations,
            const struct migrate_identity *identity, struct error **err)
{
    int64_t have = 0;
    int result = settings_query_int64(db, "PRAGMA user_version", &have, err);
    if (result < 0)
        return error_wrap(err, result, "journal %s", path);
    if (have == migrations.count)
        return 0;
    if (have > migrations.count || have < 0)
        return refuse_newer(path, have, migrations.count, err);
    result = execute(db, path, "migrate", "BEGIN EXCLUSIVE", err);
    if (result < 0)
        return result;
    result = run_all(db, path, migrations, identity, err);
    if (result == 0)
        result = execute(db, path, "migrate", "COMMIT", err);
    if (result < 0 && !sqlite3_get_autocommit(db))
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return result;
}
