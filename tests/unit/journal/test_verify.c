/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever somebody changes in a journal is found, and what is found is said with the entry. */
#include "journal_fixture.h"

#include "base/time_text.h"
#include "journal/chain.h"
#include "journal/row.h"
#include "journal/verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <sqlite3.h>

/* A history with everything in it, closed cleanly. seq: 1 start, 2 begin, 3 intent mysql-4, 4 wait_begin, 5
 * applied, 6 wait_end, 7 intent mysql-3, 8 unknown, 9 end, 10 begin, 11 wait_begin, 12 stop. */
static int setup(void **state)
{
    journal_fixture_make_open(state);
    struct journal_fixture *fixture = *state;
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    int64_t step = journal_fixture_intent(fixture, operation, "mysql-4");
    int64_t wait = journal_wait_begin(fixture->journal, operation, "ready", "Pod", "db", "mysql-4",
                                      300 * US_PER_S, NULL);
    journal_fixture_settle(fixture);
    env_sim_run_for(fixture->env, US_PER_S);
    journal_fixture_outcome(fixture, JOURNAL_APPLIED, step);
    journal_wait_end(fixture->journal, wait, "done");
    int64_t second = journal_fixture_intent(fixture, operation, "mysql-3");
    journal_fixture_outcome(fixture, JOURNAL_UNKNOWN, second);
    journal_fixture_end(fixture, operation, "failed");
    int64_t scale = journal_fixture_begin(fixture, "scale");
    journal_wait_begin(fixture->journal, scale, "ready", "Pod", "db", "mysql-5", 60 * US_PER_S, NULL);
    journal_fixture_settle(fixture);
    journal_fixture_stop(fixture);
    return 0;
}

static void verify_with(const struct journal_fixture *fixture, const struct journal_verify_options *options,
                        struct journal_verify_result *ret)
{
    CLEANUP_JOURNAL_READER struct journal_reader *reader = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    if (journal_reader_open(fixture->path, &reader, &err) < 0 ||
        journal_verify(reader, options, ret, &err) < 0)
        fail_msg("%s", error_text(err));
}

static bool has_words(const struct journal_finding *list, size_t count, const char *words)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(list[i].text, words))
            return true;
    return false;
}

static void what_nobody_changed_verifies(void **state)
{
    struct journal_verify_options options = {0};
    struct journal_verify_result result;
    verify_with(*state, &options, &result);
    assert_int_equal(result.finding_count, 0);
    assert_int_equal(result.entries, 12);
    assert_int_equal(result.bodies, 2);
    assert_int_equal(result.first_seq, 1);
    assert_int_equal(result.head_seq, 12);
    assert_true(has_words(result.remarks, result.remark_count, "WAL-reset bug"));
    journal_verify_result_done(&result);
}

/* What a stranger does with a shell, and what is said of it. */
struct change {
    const char *what;
    const char *sql;
    const char *words;
    int64_t seq; /* of a finding; -1: any */
};

#define FREE_UPDATE "DROP TRIGGER entry_no_update; "
#define FREE_DELETE "DROP TRIGGER entry_no_delete; "
#define FREE_INSERT "DROP TRIGGER entry_in_order; "

static const struct change changes[] = {
    {"a changed word", FREE_UPDATE "UPDATE entry SET reason = 'x' WHERE seq = 9",
     "entry 9 does not fit its hash", 9},
    {"another target", FREE_UPDATE "UPDATE entry SET name = 'mysql-0' WHERE seq = 3", "entry 3 does not fit",
     3},
    {"another time", FREE_UPDATE "UPDATE entry SET at_us = at_us + 1 WHERE seq = 5", "entry 5 does not fit",
     5},
    {"a word made NULL", FREE_UPDATE "UPDATE entry SET detail = NULL WHERE seq = 2", "entry 2 does not fit",
     2},
    {"NULL made empty", FREE_UPDATE "UPDATE entry SET audit_id = '' WHERE seq = 2", "entry 2 does not fit",
     2},
    {"words moved from one column to the next",
     FREE_UPDATE "UPDATE entry SET action = NULL, reason = action WHERE seq = 8", "", -1},
    {"a changed hash", FREE_UPDATE "UPDATE entry SET hash = zeroblob(32) WHERE seq = 6",
     "entry 6 does not fit", 6},
    {"a short hash", FREE_UPDATE "UPDATE entry SET hash = x'00' WHERE seq = 6", "entry 6 is not readable", 6},
    {"text behind a NUL byte", FREE_UPDATE "UPDATE entry SET action = action || char(0) || 'x' WHERE seq = 3",
     "entry 3 is not readable", 3},
    {"another form", FREE_UPDATE "UPDATE entry SET form = 7 WHERE seq = 3", "entry 3 has form 7", 3},
    {"a removed row", FREE_DELETE "DELETE FROM entry WHERE seq = 8", "entries 8 to 8 are missing", 9},
    {"removed rows at the end", FREE_DELETE "DELETE FROM entry WHERE seq > 9", "the entries say", 0},
    {"a removed first row", FREE_DELETE "DELETE FROM entry WHERE seq = 1", "entries 1 to 1 are missing", 2},
    {"a row that says it was pruned",
     FREE_DELETE "UPDATE meta SET pruned_seq = 4; DELETE FROM entry WHERE seq <= 4",
     "no `pruned` entry explains", -1},
    {"another body", "DROP TRIGGER body_no_update; UPDATE body SET bytes = x'7b7d' WHERE step = 3",
     "the body of step 3 is not what its intent says", 3},
    {"another salt", "DROP TRIGGER body_no_update; UPDATE body SET salt = zeroblob(16) WHERE step = 3",
     "the body of step 3", 3},
    {"half a salt",
     "PRAGMA ignore_check_constraints = ON; DROP TRIGGER body_no_update; UPDATE body SET salt = zeroblob(8) "
     "WHERE step = 3",
     "the body of step 3", 3},
    {"a body of nothing", "INSERT INTO body VALUES (5, zeroblob(16), x'00')", "a body for entry 5", 5},
    {"another outcome in the list", "UPDATE operation SET outcome = 'completed' WHERE id = 2",
     "list of operations says of 2", 2},
    {"other counts in the list", "UPDATE operation SET attempts = 1 WHERE id = 2",
     "list of operations says of 2", 2},
    {"an operation missing in the list", "DELETE FROM operation WHERE id = 2", "operation 2 is missing", 2},
    {"an open operation missing in the list", "DELETE FROM operation WHERE id = 10",
     "open operations has 0 rows", 0},
    {"an operation that was never",
     "INSERT INTO operation VALUES (4, 'x', 'x', 'x', 'x', '', '', 1, 2, 'completed', 0, 0)",
     "list of operations has 3 rows", 0},
    {"a step that is not open any more", "DELETE FROM open_step", "open steps has 0 rows", 0},
    {"a step that is open again", "INSERT INTO open_step VALUES (3, 'Pod', 'db', 'mysql-4', 0, 0, 1, NULL)",
     "list of open steps says of 3", 3},
    {"fewer unknown answers", "UPDATE open_step SET unknowns = 0", "list of open steps says of 7", 7},
    {"another budget", "UPDATE open_wait SET budget_us = 1", "list of open waits says of 11", 11},
    {"more time spent", "UPDATE open_wait SET spent_us = 1", "list of open waits says of 11", 11},
    {"a wait that is held", "UPDATE open_wait SET since_us = NULL", "list of open waits says of 11", 11},
    {"another identity",
     "DROP TRIGGER meta_identity; UPDATE meta SET journal_id = 'ffffffffffffffffffffffffffffffff'",
     "identity was changed", 0},
    {"a dropped trigger", "DROP TRIGGER entry_no_update", "trigger entry_no_update is missing", 0},
    {"a dropped index", "DROP INDEX entry_outcome", "index entry_outcome is missing", 0},
    {"a trigger that does nothing",
     "DROP TRIGGER entry_no_delete; CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry BEGIN SELECT 1; "
     "END",
     "trigger entry_no_delete is not as we made it", 0},
    {"a table of somebody's", "CREATE TABLE mine (a)", "not ours: table mine", 0},
};

static void each_change_is_found_and_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        const struct change *change = &changes[i];
        void *own = NULL;
        setup(&own);
        struct journal_fixture *fixture = own;
        if (journal_fixture_sql_code(fixture->path, change->sql) != SQLITE_OK)
            fail_msg("%s: %s", change->what, journal_fixture_sql_words());
        struct journal_verify_options options = {.quick = i % 2 == 0};
        struct journal_verify_result result;
        verify_with(fixture, &options, &result);
        if (change->words[0] && !has_words(result.findings, result.finding_count, change->words))
            fail_msg("%s: not found; first of %zu findings: %s", change->what, result.finding_count,
                     result.finding_count ? result.findings[0].text : "");
        if (!change->words[0] && result.finding_count == 0)
            fail_msg("%s: not found", change->what);
        bool named = change->seq < 0;
        for (size_t j = 0; j < result.finding_count; j++)
            named = named || result.findings[j].seq == change->seq;
        if (!named)
            fail_msg("%s: no finding about %lld", change->what, (long long)change->seq);
        journal_verify_result_done(&result);
        journal_fixture_free(&own);
    }
}

/* Somebody who knows the chain makes the changed row's own hash fit: the next row tells. */
static void a_row_changed_together_with_its_hash_is_told_by_the_next_one(void **state)
{
    struct journal_fixture *fixture = *state;
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    uint8_t before[SHA256_SIZE];
    uint8_t hash[SHA256_SIZE];
    assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT hash FROM entry WHERE seq = 4", -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    memcpy(before, sqlite3_column_blob(statement, 0), SHA256_SIZE);
    sqlite3_finalize(statement);
    assert_int_equal(
        sqlite3_exec(db, FREE_UPDATE "UPDATE entry SET http = 201 WHERE seq = 5", NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT " ROW_COLUMNS("") " FROM entry WHERE seq = 5", -1, &statement, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    struct journal_entry row;
    assert_true(row_read(statement, 0, &row));
    struct chain *chain = chain_make();
    assert_true(chain_hash(chain, &row, before, hash));
    chain_free(chain);
    sqlite3_finalize(statement);
    assert_int_equal(sqlite3_prepare_v2(db, "UPDATE entry SET hash = ?1 WHERE seq = 5", -1, &statement, NULL),
                     SQLITE_OK);
    sqlite3_bind_blob(statement, 1, hash, SHA256_SIZE, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    struct journal_verify_options options = {.quick = true};
    struct journal_verify_result result;
    verify_with(fixture, &options, &result);
    assert_true(has_words(result.findings, result.finding_count,
                          "entry 6 does not fit its hash: it, or the hash of the "
                          "one before"));
    journal_verify_result_done(&result);
}

/* --- rows that hash well but cannot be: written by a program that has our chain --------------- */

static void forge(const struct journal_fixture *fixture, const struct journal_entry *entry)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    uint8_t before[SHA256_SIZE];
    uint8_t hash[SHA256_SIZE];
    struct journal_entry row = *entry;
    assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DROP INDEX entry_outcome", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT seq, hash FROM entry ORDER BY seq DESC LIMIT 1", -1, &statement, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    row.seq = sqlite3_column_int64(statement, 0) + 1;
    memcpy(before, sqlite3_column_blob(statement, 1), SHA256_SIZE);
    sqlite3_finalize(statement);
    row.form = 1;
    row.at_us = row.at_us ? row.at_us : INT64_C(2000000000000000);
    row.mono_us = row.mono_us ? row.mono_us : INT64_C(1000000000);
    if (row.kind == JOURNAL_INTENT)
        row.step = row.seq;
    struct chain *chain = chain_make();
    assert_true(chain_hash(chain, &row, before, hash));
    chain_free(chain);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "INSERT INTO entry (seq, form, kind, run, epoch, at_us, mono_us, operation, step,"
                           " attempt, action, object, namespace, name, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6,"
                           " ?7, nullif(?8, 0), nullif(?9, 0), nullif(?10, 0), ?11, ?12, ?13, ?14, ?15)",
                           -1, &statement, NULL),
        SQLITE_OK);
    const int64_t numbers[] = {row.seq,     row.form,      0,        row.run,    row.epoch, row.at_us,
                               row.mono_us, row.operation, row.step, row.attempt};
    for (int i = 0; i < (int)ARRAY_SIZE(numbers); i++)
        sqlite3_bind_int64(statement, i + 1, numbers[i]);
    sqlite3_bind_text(statement, 3, journal_kind_text(row.kind), -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 11, row.action, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 12, row.object, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 13, row.namespace, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 14, row.name, -1, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 15, hash, SHA256_SIZE, SQLITE_STATIC);
    if (sqlite3_step(statement) != SQLITE_DONE)
        fail_msg("forge: %s", sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

static void a_row_with_a_good_hash_must_still_make_sense(void **state)
{
    static const struct {
        struct journal_entry entry;
        const char *words;
    } cases[] = {
        {{.kind = JOURNAL_REJECTED, .run = 1, .step = 3, .operation = 2}, "it has an outcome already"},
        {{.kind = JOURNAL_APPLIED, .run = 1, .step = 4, .operation = 2}, "or no intent"},
        {{.kind = JOURNAL_APPLIED, .run = 1, .step = 7, .operation = 10}, "its step is of operation 2"},
        {{.kind = JOURNAL_UNKNOWN, .run = 1, .step = 3, .operation = 2}, "about step 3, which is not open"},
        {{.kind = JOURNAL_LATE, .run = 1, .step = 7}, "step 7 came late, but that is not closed"},
        {{.kind = JOURNAL_END, .run = 1, .operation = 2, .action = "completed"},
         "ends operation 2, which is not open"},
        {{.kind = JOURNAL_INTENT, .run = 1, .operation = 2, .action = "a", .object = "o", .name = "n"},
         "belongs to operation 2, which is not open"},
        {{.kind = JOURNAL_NOTE, .run = 5}, "is of run 5, but run 1 was under way"},
        {{.kind = JOURNAL_NOTE, .run = 1, .epoch = -1}, "epochs never fall"},
        {{.kind = JOURNAL_NOTE, .run = 1, .mono_us = 1}, "by the boot clock"},
        {{.kind = JOURNAL_WAIT_END, .run = 1, .action = "ready", .object = "Pod", .name = "x"},
         "about wait 0, which is not open"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        void *own = NULL;
        setup(&own);
        struct journal_fixture *fixture = own;
        forge(fixture, &cases[i].entry);
        struct journal_verify_options options = {.quick = true};
        struct journal_verify_result result;
        verify_with(fixture, &options, &result);
        if (!has_words(result.findings, result.finding_count, cases[i].words))
            fail_msg("case %zu: expected \"%s\", first of %zu findings: %s", i, cases[i].words,
                     result.finding_count, result.finding_count ? result.findings[0].text : "");
        journal_verify_result_done(&result);
        journal_fixture_free(&own);
    }
}

/* --- heads ------------------------------------------------------------------------------------ */

static void check_with_head(const struct journal_fixture *fixture, struct journal_head head,
                            const char *words)
{
    struct journal_verify_options options = {.quick = true, .heads = &head, .head_count = 1};
    struct journal_verify_result result;
    verify_with(fixture, &options, &result);
    if (words)
        assert_true(has_words(result.findings, result.finding_count, words));
    else
        assert_int_equal(result.finding_count, 0);
    journal_verify_result_done(&result);
}

static void published_heads_are_compared(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    CLEANUP_FREE char *text = journal_head_text(fixture->journal);
    struct journal_head head;
    assert_int_equal(journal_head_parse_json(text, &head, NULL), 0);
    journal_fixture_note(fixture, "more");
    journal_fixture_settle(fixture);
    check_with_head(fixture, head, NULL);
    struct journal_head other = head;
    other.hash[0] ^= 1;
    check_with_head(fixture, other, "the history forked");
    other = head;
    other.seq = 99;
    check_with_head(fixture, other, "its tail was cut off");
    other = head;
    memset(other.journal_id, 'f', 32);
    check_with_head(fixture, other, "of another journal");
}

static void a_cut_tail_is_invisible_without_a_head_and_seen_with_one(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    journal_fixture_note(fixture, "the evidence");
    journal_fixture_settle(fixture);
    CLEANUP_FREE char *text = journal_head_text(fixture->journal);
    journal_fixture_crash(fixture);
    journal_fixture_sql(fixture->path,
                        FREE_DELETE "DELETE FROM entry WHERE reason = 'the evidence'; CREATE TRIGGER"
                                    " entry_no_delete BEFORE DELETE ON entry WHEN OLD.seq > (SELECT"
                                    " pruned_seq FROM meta)\n  BEGIN SELECT RAISE(ABORT, 'entry: append"
                                    " only'); END");
    struct journal_verify_options options = {.quick = true};
    struct journal_verify_result result;
    verify_with(fixture, &options, &result);
    assert_int_equal(result.finding_count, 0);
    journal_verify_result_done(&result);
    struct journal_head head;
    assert_int_equal(journal_head_parse_json(text, &head, NULL), 0);
    check_with_head(fixture, head, "its tail was cut off");
}

/* --- beside a writer -------------------------------------------------------------------------- */

struct disturbance {
    struct journal_fixture *fixture;
    int64_t operation;
    int calls;
};

static void write_more(void *context, const char *stage, int64_t done, int64_t total)
{
    struct disturbance *disturbance = context;
    assert_non_null(stage);
    assert_true(done <= total || total == 0);
    if (disturbance->calls++ > 20)
        return;
    for (int i = 0; i < 500; i++) {
        int64_t step = journal_fixture_intent(disturbance->fixture, disturbance->operation, "mysql-9");
        journal_fixture_outcome(disturbance->fixture, JOURNAL_APPLIED, step);
    }
    journal_fixture_settle(disturbance->fixture);
}

static void a_living_journal_verifies_too(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    struct disturbance disturbance = {.fixture = fixture};
    disturbance.operation = journal_fixture_begin(fixture, "repair");
    for (int i = 0; i < 10000; i++)
        journal_fixture_note(fixture, "x");
    journal_fixture_settle(fixture);
    struct journal_verify_options options = {.progress = write_more, .context = &disturbance};
    struct journal_verify_result result;
    verify_with(fixture, &options, &result);
    if (result.finding_count)
        fail_msg("%s", result.findings[0].text);
    assert_true(result.entries > 12000);
    assert_true(disturbance.calls > 3);
    journal_verify_result_done(&result);
}

static void a_wall_clock_that_went_back_is_a_remark(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    env_sim_jump_wall(fixture->env, -3600 * US_PER_S);
    journal_fixture_note(fixture, "x");
    journal_fixture_settle(fixture);
    struct journal_verify_options options = {.quick = true};
    struct journal_verify_result result;
    verify_with(fixture, &options, &result);
    assert_int_equal(result.finding_count, 0);
    assert_true(
        has_words(result.remarks, result.remark_count, "the wall clock went back 1 time (first here)"));
    journal_verify_result_done(&result);
}

static void damaged_pages_are_found_by_the_full_check(void **state)
{
    struct journal_fixture *fixture = *state;
    /* An index that lacks a row: only SQLite's own check compares it with its table. */
    journal_fixture_sql(
        fixture->path,
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '(at_us)', '(mono_us)')"
        " WHERE name = 'entry_at'");
    struct journal_verify_options options = {0};
    struct journal_verify_result result;
    verify_with(fixture, &options, &result);
    assert_true(has_words(result.findings, result.finding_count, "SQLite's integrity check"));
    journal_verify_result_done(&result);
}

static void findings_are_bounded(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    for (int i = 0; i < 1500; i++)
        journal_fixture_note(fixture, "x");
    journal_fixture_settle(fixture);
    journal_fixture_crash(fixture);
    journal_fixture_sql(fixture->path, FREE_UPDATE "UPDATE entry SET reason = 'y' WHERE reason = 'x'");
    struct journal_verify_options options = {.quick = true};
    struct journal_verify_result result;
    verify_with(fixture, &options, &result);
    assert_int_equal(result.finding_count, JOURNAL_FINDINGS_MAX);
    assert_true(result.findings_left_out >= 500);
    journal_verify_result_done(&result);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, journal_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_nobody_changed_verifies),
        cmocka_unit_test(each_change_is_found_and_named),
        TEST(a_row_changed_together_with_its_hash_is_told_by_the_next_one),
        cmocka_unit_test(a_row_with_a_good_hash_must_still_make_sense),
        TEST(published_heads_are_compared),
        TEST(a_cut_tail_is_invisible_without_a_head_and_seen_with_one),
        TEST(a_living_journal_verifies_too),
        TEST(a_wall_clock_that_went_back_is_a_remark),
        TEST(damaged_pages_are_found_by_the_full_check),
        TEST(findings_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
