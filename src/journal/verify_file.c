/* SPDX-License-Identifier: Apache-2.0
 *
 * The file as SQLite sees it: its schema against ours, its own integrity check. */
#include "journal/migrate.h"
#include "journal/verify_parts.h"

#include <uthash.h>

static const char schema_query[] =
    "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite~_%' ESCAPE"
    " '~' ORDER BY 1";

struct schema_item {
    char *name;
    char *sql;
    bool found;
    UT_hash_handle hh;
};

struct schema_visit {
    struct verifier *verifier;
    struct schema_item *expected;
};

static bool collect(struct schema_item **items, sqlite3_stmt *statement)
{
    const char *name = (const char *)sqlite3_column_text(statement, 0);
    const char *sql = (const char *)sqlite3_column_text(statement, 1);
    if (!name || !sql)
        return false;
    struct schema_item *item = xcalloc(1, sizeof(*item));
    item->name = xstrdup(name);
    item->sql = xstrdup(sql);
    HASH_ADD_KEYPTR(hh, *items, item->name, strlen(item->name), item);
    return true;
}

/* What the migrations up to this version make. A SQLite result code. */
static int expected_schema(int user_version, struct schema_item **ret)
{
    struct migrations migrations = migrations_embedded();
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_open(":memory:", &db);
    for (int i = 0; code == SQLITE_OK && i < user_version; i++)
        code = sqlite3_exec(db, migrations.sql[i], NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v2(db, schema_query, -1, &statement, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW)
        code = collect(ret, statement) ? SQLITE_OK : SQLITE_NOMEM;
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static void visit_item(void *context, sqlite3_stmt *statement)
{
    struct schema_visit *visit = context;
    const char *name = (const char *)sqlite3_column_text(statement, 0);
    const char *sql = (const char *)sqlite3_column_text(statement, 1);
    struct schema_item *item = NULL;
    if (name)
        HASH_FIND_STR(visit->expected, name, item);
    if (!item)
        verify_find(visit->verifier, 0, "the schema has something that is not ours: %.100s",
                    name ? name : "?");
    else if (!str_equal(item->sql, sql))
        verify_find(visit->verifier, 0, "the schema was changed: %s is not as we made it", item->name);
    if (item)
        item->found = true;
}

static int compare_schema(struct verifier *verifier, struct schema_visit *visit, int version,
                          struct error **err)
{
    int code = expected_schema(version, &visit->expected);
    if (code != SQLITE_OK)
        return error_set(err, ERROR_FAILED, "the schema to compare with cannot be made: %s",
                         sqlite3_errstr(code));
    struct query query = QUERY_INIT;
    query_add(&query, schema_query);
    int result = query_run(verifier->reader, &query, visit_item, visit, err);
    query_done(&query);
    return result;
}

int verify_schema(struct verifier *verifier, struct error **err)
{
    struct schema_visit visit = {.verifier = verifier};
    int version = verifier->reader->meta.user_version;
    if (version > migrations_embedded().count) {
        verify_remark(verifier, 0, "schema %d is newer than this program: its tables were not compared",
                      version);
        return 0;
    }
    int result = compare_schema(verifier, &visit, version, err);
    struct schema_item *item = NULL;
    struct schema_item *next = NULL;
    HASH_ITER (hh, visit.expected, item, next) {
        if (result == 0 && !item->found)
            verify_find(verifier, 0, "the schema was changed: %s is missing", item->name);
        HASH_DEL(visit.expected, item);
        free(item->name);
        free(item->sql);
        free(item);
    }
    return result;
}

static void visit_integrity(void *context, sqlite3_stmt *statement)
{
    struct verifier *verifier = context;
    const char *text = (const char *)sqlite3_column_text(statement, 0);
    if (!str_equal(text, "ok"))
        verify_find(verifier, 0, "SQLite's integrity check: %s", text ? text : "?");
}

int verify_integrity(struct verifier *verifier, struct error **err)
{
    if (verifier->options->progress)
        verifier->options->progress(verifier->options->context, "SQLite's integrity check", 0, 0);
    struct query query = QUERY_INIT;
    query_add(&query, "PRAGMA integrity_check(100)");
    int result = query_run(verifier->reader, &query, visit_integrity, verifier, err);
    query_done(&query);
    return result;
}
