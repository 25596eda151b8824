/* SPDX-License-Identifier: Apache-2.0
 *
 * The file defends itself: migrations make the schema that is written down, and each thing that must never be
 * in a journal is refused by a CHECK, an index or a trigger, also to a stranger with a shell. */
#include "journal_fixture.h"
#include "whole_file.h"

#include "journal/migrate.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sqlite3.h>

/* --- migrations ------------------------------------------------------------------------------- */

static int add_line(void *context, int columns, char **values, char **names)
{
    (void)columns;
    (void)names;
    struct buf *text = context;
    return buf_addf(text, "%s %s: %s\n", values[0], values[1], values[2] ? values[2] : "");
}

static char *schema_of(sqlite3 *db)
{
    struct buf text = BUF_INIT(1 << 20);
    assert_int_equal(sqlite3_exec(db, "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name",
                                  add_line, &text, NULL),
                     SQLITE_OK);
    return buf_take(&text);
}

static void the_migrations_make_exactly_the_schema_that_is_written_down(void **state)
{
    (void)state;
    sqlite3 *written = NULL;
    sqlite3 *migrated = NULL;
    CLEANUP_FREE char *sql = whole_file("schema/journal.sql", NULL);
    assert_int_equal(sqlite3_open(":memory:", &written), SQLITE_OK);
    assert_int_equal(sqlite3_open(":memory:", &migrated), SQLITE_OK);
    assert_int_equal(sqlite3_exec(written, sql, NULL, NULL, NULL), SQLITE_OK);
    struct migrate_identity identity = {.journal_id = "0123456789abcdef0123456789abcdef", .created_us = 1};
    struct error *err = NULL;
    assert_int_equal(migrate(migrated, "x", migrations_embedded(), &identity, &err), 0);
    CLEANUP_FREE char *expected = schema_of(written);
    CLEANUP_FREE char *found = schema_of(migrated);
    assert_string_equal(found, expected);
    sqlite3_close(written);
    sqlite3_close(migrated);
}

static void an_older_file_is_brought_up_in_one_transaction(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    struct migrations known = migrations_embedded();
    struct migrate_identity identity = {.journal_id = "0123456789abcdef0123456789abcdef", .created_us = 1};
    const char *sql[16];
    assert_true(known.count < 14);
    for (int i = 0; i < known.count; i++)
        sql[i] = known.sql[i];
    struct error *err = NULL;
    assert_int_equal(migrate(db, "x", known, &identity, &err), 0);
    /* One migration that fails half way leaves the version before. */
    sql[known.count] = "ALTER TABLE operation ADD COLUMN later TEXT; INSERT INTO nowhere VALUES (1);";
    struct migrations next = {.sql = sql, .count = known.count + 1};
    assert_true(migrate(db, "x", next, &identity, &err) < 0);
    assert_non_null(strstr(error_text(err), "migration 000"));
    error_free(err);
    err = NULL;
    assert_int_equal(sqlite3_exec(db, "SELECT later FROM operation", NULL, NULL, NULL), SQLITE_ERROR);
    sql[known.count] = "ALTER TABLE operation ADD COLUMN later TEXT;";
    assert_int_equal(migrate(db, "x", next, &identity, &err), 0);
    assert_int_equal(sqlite3_exec(db, "SELECT later FROM operation", NULL, NULL, NULL), SQLITE_OK);
    /* The older program does not touch the newer file. */
    assert_int_equal(migrate(db, "x", known, &identity, &err), -ERROR_UNSUPPORTED);
    assert_non_null(strstr(error_text(err), "newer"));
    error_free(err);
    sqlite3_close(db);
}

/* --- refusals --------------------------------------------------------------------------------- */

struct refusal {
    const char *what;
    const char *sql;
    const char *words; /* of SQLite's message */
};

/* A row with everything that must be there; the test puts its own columns in front. */
#define ROW(columns, values)                                                                                 \
    "INSERT INTO entry (" columns ", run, epoch, at_us, mono_us, hash) VALUES (" values                      \
    ", 1, 1, 1, 1, zeroblob(32))"
#define NEXT "(SELECT max(seq) + 1 FROM entry)"

static const struct refusal refusals[] = {
    {"an update", "UPDATE entry SET reason = 'other' WHERE seq = 1", "append only"},
    {"a delete", "DELETE FROM entry WHERE seq = 1", "append only"},
    {"a delete of the newest", "DELETE FROM entry WHERE seq = (SELECT max(seq) FROM entry)", "append only"},
    {"a replace", "INSERT OR REPLACE INTO entry SELECT * FROM entry WHERE seq = 2", "out of order"},
    {"a gap", ROW("seq, kind", "(SELECT max(seq) + 2 FROM entry), 'note'"), "out of order"},
    {"an insert before the newest", ROW("seq, kind", "2, 'note'"), "out of order"},
    {"a kind that is none", ROW("seq, kind", NEXT ", 'reverted'"), "CHECK"},
    {"version 0", ROW("seq, kind, version", NEXT ", 'note', '0'"), "CHECK"},
    {"an empty version", ROW("seq, kind, version", NEXT ", 'note', ''"), "CHECK"},
    {"an http code that is none", ROW("seq, kind, http", NEXT ", 'note', 42"), "CHECK"},
    {"attempt 0", ROW("seq, kind, attempt", NEXT ", 'note', 0"), "CHECK"},
    {"a step on a note", ROW("seq, kind, step", NEXT ", 'note', 3"), "CHECK"},
    {"an outcome without a step", ROW("seq, kind", NEXT ", 'applied'"), "CHECK"},
    {"an intent that is not its own step",
     ROW("seq, kind, step, operation, action, object, name", NEXT ", 'intent', 3, 2, 'a', 'o', 'n'"),
     "CHECK"},
    {"an intent without an operation",
     ROW("seq, kind, step, action, object, name", NEXT ", 'intent', " NEXT ", 'a', 'o', 'n'"), "CHECK"},
    {"an intent without a target",
     ROW("seq, kind, step, operation, action", NEXT ", 'intent', " NEXT ", 2, 'a'"), "CHECK"},
    {"a begin that is not its own operation",
     ROW("seq, kind, operation, action, object, name", NEXT ", 'begin', 2, 'a', 'o', 'n'"), "CHECK"},
    {"an end without an operation", ROW("seq, kind, action", NEXT ", 'end', 'completed'"), "CHECK"},
    {"an end without an outcome", ROW("seq, kind, operation", NEXT ", 'end', 2"), "CHECK"},
    {"a wait for nothing", ROW("seq, kind, action", NEXT ", 'wait_begin', 'ready'"), "CHECK"},
    {"a start of another run", ROW("seq, kind", NEXT ", 'start'"), "CHECK"},
    {"a second outcome of a step", ROW("seq, kind, step, operation", NEXT ", 'rejected', 3, 2"), "UNIQUE"},
    {"text where a number belongs", ROW("seq, kind, http", NEXT ", 'note', 'x'"), "cannot store"},
    {"a body that changes", "UPDATE body SET bytes = x'00'", "never changed"},
    {"a body with a short salt", "INSERT INTO body VALUES (99, x'00', x'00')", "CHECK"},
    {"another identity", "UPDATE meta SET journal_id = 'ffffffffffffffffffffffffffffffff'", "identity"},
    {"another birth", "UPDATE meta SET created_us = 5", "identity"},
    {"no identity", "DELETE FROM meta", "identity"},
    {"a second identity",
     "INSERT INTO meta (id, journal_id, created_us, pruned_hash) VALUES (2, "
     "'ffffffffffffffffffffffffffffffff', 1,"
     " zeroblob(32))",
     "CHECK"},
    {"a second open step on an object",
     "INSERT INTO open_step (step, object, namespace, name, blocks, last_at_us) VALUES (90, 'Pod', 'db', "
     "'mysql-3', 0, 1)",
     "UNIQUE"},
    {"a second open operation of a kind on an object",
     "INSERT INTO operation (id, kind, object, namespace, name, come_from, go_to, begun_us)"
     " VALUES (90, 'rollout', 'NeoSet', 'db', 'mysql', '', '', 1)",
     "UNIQUE"},
    {"an operation that ended without an outcome", "UPDATE operation SET ended_us = 1", "CHECK"},
    {"a second open wait for the same",
     "INSERT INTO open_wait VALUES (90, 'ready', 'Pod', 'db', 'mysql-4', 1, 0, 0)", "UNIQUE"},
};

static void what_must_never_be_in_a_journal_is_refused(void **state)
{
    struct journal_fixture fixture;
    (void)state;
    journal_fixture_setup(&fixture);
    journal_fixture_open(&fixture);
    int64_t operation = journal_fixture_begin(&fixture, "rollout");
    int64_t step = journal_fixture_intent(&fixture, operation, "mysql-4");
    assert_int_equal(operation, 2);
    assert_int_equal(step, 3);
    journal_fixture_outcome(&fixture, JOURNAL_APPLIED, step);
    journal_fixture_intent(&fixture, operation, "mysql-3");
    journal_wait_begin(fixture.journal, operation, "ready", "Pod", "db", "mysql-4", 1000, NULL);
    journal_fixture_settle(&fixture);
    CLEANUP_FREE char *before = xstrdup(journal_fixture_sql(fixture.path, "SELECT max(seq) FROM entry"));
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        int code = journal_fixture_sql_code(fixture.path, refusals[i].sql);
        const char *words = journal_fixture_sql_words();
        if (code == SQLITE_OK || !strstr(words, refusals[i].words))
            fail_msg("%s: expected \"%s\", got %d \"%s\"", refusals[i].what, refusals[i].words, code, words);
    }
    assert_string_equal(journal_fixture_sql(fixture.path, "SELECT max(seq) FROM entry"), before);
    journal_fixture_teardown(&fixture);
}

static void pruned_seq_never_falls(void **state)
{
    struct journal_fixture fixture;
    (void)state;
    journal_fixture_setup(&fixture);
    journal_fixture_open(&fixture);
    journal_fixture_crash(&fixture);
    journal_fixture_sql(fixture.path, "UPDATE meta SET pruned_seq = 1");
    assert_int_not_equal(journal_fixture_sql_code(fixture.path, "UPDATE meta SET pruned_seq = 0"), SQLITE_OK);
    journal_fixture_teardown(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_migrations_make_exactly_the_schema_that_is_written_down),
        cmocka_unit_test(an_older_file_is_brought_up_in_one_transaction),
        cmocka_unit_test(what_must_never_be_in_a_journal_is_refused),
        cmocka_unit_test(pruned_seq_never_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
