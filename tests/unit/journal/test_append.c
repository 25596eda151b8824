/* SPDX-License-Identifier: Apache-2.0
 *
 * What is appended, when it is durable, and what a restart finds. */
#include "journal_fixture.h"

#include "base/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sys/stat.h>

/* --- durability ------------------------------------------------------------------------------- */

struct order {
    char letters[32];
    struct journal *journal;
    int64_t seen_durable;
};

static struct order order;

static void note(char letter)
{
    order.letters[strlen(order.letters)] = letter;
    order.seen_durable = journal_durable_seq(order.journal);
}

static void a_is_durable(void *context)
{
    (void)context;
    note('a');
}

static void b_is_durable(void *context)
{
    (void)context;
    note('b');
}

static void begin_order(struct journal_fixture *fixture)
{
    order = (struct order){.journal = fixture->journal};
}

static void what_is_appended_is_durable_only_after_its_commit(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t note_seq = journal_fixture_note(fixture, "hello");
    begin_order(fixture);
    journal_when_durable(fixture->journal, note_seq, a_is_durable, NULL);
    env_sim_run_for(fixture->env, 10 * US_PER_S);
    assert_string_equal(order.letters, "");
    assert_true(journal_durable_seq(fixture->journal) < note_seq);
    journal_commit(fixture->journal);
    assert_string_equal(order.letters, "");
    env_sim_run_for(fixture->env, US_PER_S);
    assert_string_equal(order.letters, "a");
    assert_int_equal(order.seen_durable, note_seq);
}

static void callbacks_come_in_the_order_of_seq_whatever_the_order_of_asking(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t first = journal_fixture_note(fixture, "1");
    int64_t second = journal_fixture_note(fixture, "2");
    begin_order(fixture);
    journal_when_durable(fixture->journal, second, b_is_durable, NULL);
    journal_when_durable(fixture->journal, first, a_is_durable, NULL);
    journal_when_durable(fixture->journal, second, b_is_durable, NULL);
    journal_fixture_settle(fixture);
    env_sim_run_for(fixture->env, US_PER_S);
    assert_string_equal(order.letters, "abb");
}

static void asking_for_what_is_durable_already_calls_back_from_the_loop(void **state)
{
    struct journal_fixture *fixture = *state;
    begin_order(fixture);
    journal_when_durable(fixture->journal, journal_durable_seq(fixture->journal), a_is_durable, NULL);
    assert_string_equal(order.letters, "");
    env_sim_run_for(fixture->env, 1);
    assert_string_equal(order.letters, "a");
}

static void who_is_forgotten_is_not_called(void **state)
{
    struct journal_fixture *fixture = *state;
    int owner = 0;
    begin_order(fixture);
    int64_t seq = journal_fixture_note(fixture, "x");
    journal_when_durable(fixture->journal, seq, a_is_durable, &owner);
    journal_when_durable(fixture->journal, seq, b_is_durable, NULL);
    journal_forget(fixture->journal, &owner);
    journal_fixture_settle(fixture);
    env_sim_run_for(fixture->env, 1);
    assert_string_equal(order.letters, "b");
}

static void an_outcome_waits_for_company_at_most_200_ms(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t seq = journal_fixture_note(fixture, "outcome");
    journal_commit_soon(fixture->journal);
    env_sim_run_for(fixture->env, 199 * US_PER_MS);
    assert_true(journal_durable_seq(fixture->journal) < seq);
    env_sim_run_for(fixture->env, 2 * US_PER_MS);
    assert_int_equal(journal_durable_seq(fixture->journal), seq);
}

static void an_outcome_rides_on_the_next_commit(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_note(fixture, "outcome");
    journal_commit_soon(fixture->journal);
    int64_t intent = journal_fixture_note(fixture, "intent");
    journal_commit(fixture->journal);
    env_sim_run_for(fixture->env, 1);
    assert_int_equal(journal_durable_seq(fixture->journal), intent);
    struct journal_metrics metrics;
    journal_metrics_get(fixture->journal, &metrics);
    assert_int_equal(metrics.commits, 2); /* the start, and both notes together */
}

static void what_is_appended_during_a_commit_goes_with_the_next_one(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t first = journal_fixture_note(fixture, "1");
    journal_commit(fixture->journal);
    int64_t second = journal_fixture_note(fixture, "2");
    journal_commit(fixture->journal);
    int64_t third = journal_fixture_note(fixture, "3");
    journal_commit(fixture->journal);
    while (journal_durable_seq(fixture->journal) < first)
        assert_true(env_sim_step(fixture->env));
    assert_int_equal(journal_durable_seq(fixture->journal), first);
    env_sim_run_for(fixture->env, 1);
    assert_int_equal(journal_durable_seq(fixture->journal), third);
    assert_int_equal(third, second + 1);
    struct journal_metrics metrics;
    journal_metrics_get(fixture->journal, &metrics);
    assert_int_equal(metrics.commits, 3);
}

static void a_crash_forgets_what_no_commit_was_asked_for(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_note(fixture, "kept");
    journal_fixture_settle(fixture);
    journal_fixture_note(fixture, "lost");
    journal_fixture_restart(fixture);
    assert_string_equal(
        journal_fixture_sql(fixture->path, "SELECT count(*) FROM entry WHERE reason = 'lost'"), "0");
    assert_string_equal(
        journal_fixture_sql(fixture->path, "SELECT count(*) FROM entry WHERE reason = 'kept'"), "1");
}

static void a_stop_commits_what_is_pending_and_says_so(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_note(fixture, "pending");
    journal_fixture_stop(fixture);
    assert_string_equal(journal_fixture_sql(fixture->path, "SELECT group_concat(kind) FROM entry"),
                        "start,note,stop");
    assert_string_equal(journal_fixture_sql(fixture->path, "SELECT reason FROM entry WHERE kind = 'stop'"),
                        "stopped by the test");
}

static void a_stop_in_the_middle_of_a_commit_loses_nothing(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_note(fixture, "in flight");
    journal_commit(fixture->journal);
    journal_fixture_note(fixture, "pending");
    journal_fixture_stop(fixture);
    env_sim_run_for(fixture->env, US_PER_S); /* the withdrawn job comes and goes */
    assert_string_equal(
        journal_fixture_sql(fixture->path, "SELECT group_concat(coalesce(reason, kind)) FROM entry"),
        "start,in flight,pending,stopped by the test");
}

/* --- rows ------------------------------------------------------------------------------------- */

static void a_new_file_has_mode_0600_and_its_neighbours_too(void **state)
{
    struct journal_fixture *fixture = *state;
    static const char *const ends[] = {"journal.db", "journal.db-wal", "journal.db-shm", "journal.lock",
                                       "journal.db-ballast"};
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", fixture->folder, ends[i]);
        struct stat status;
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
    }
}

static void runs_operations_and_steps_are_known_by_the_seq_of_their_first_rows(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    int64_t step = journal_next_seq(fixture->journal);
    assert_int_equal(journal_fixture_intent(fixture, operation, "mysql-4"), step);
    int64_t applied = journal_fixture_outcome(fixture, JOURNAL_APPLIED, step);
    journal_fixture_settle(fixture);
    CLEANUP_FREE char *sql =
        xasprintf("SELECT group_concat(seq || ':' || run || ':' || ifnull(operation, '-') || ':' ||"
                  " ifnull(step, '-') || ':' || ifnull(attempt, '-'), ' ') FROM entry");
    CLEANUP_FREE char *expected =
        xasprintf("1:1:-:-:- %lld:1:%lld:-:- %lld:1:%lld:%lld:- %lld:1:%lld:%lld:1", (long long)operation,
                  (long long)operation, (long long)step, (long long)operation, (long long)step,
                  (long long)applied, (long long)operation, (long long)step);
    assert_string_equal(journal_fixture_sql(fixture->path, sql), expected);
}

static void the_derived_tables_follow_in_the_same_transaction(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    int64_t first = journal_fixture_intent(fixture, operation, "mysql-4");
    int64_t second = journal_fixture_intent(fixture, operation, "mysql-3");
    journal_fixture_outcome(fixture, JOURNAL_UNKNOWN, second);
    journal_fixture_outcome(fixture, JOURNAL_APPLIED, first);
    journal_fixture_settle(fixture);
    assert_string_equal(journal_fixture_sql(fixture->path, "SELECT name || unknowns FROM open_step"),
                        "mysql-31");
    assert_string_equal(journal_fixture_sql(fixture->path,
                                            "SELECT kind || come_from || go_to || ifnull(outcome, '-')"
                                            " FROM operation"),
                        "rolloutmysql:8.0mysql:8.1-");
    journal_fixture_outcome(fixture, JOURNAL_APPLIED, second);
    journal_fixture_end(fixture, operation, "completed");
    journal_fixture_settle(fixture);
    assert_string_equal(journal_fixture_sql(fixture->path, "SELECT count(*) FROM open_step"), "0");
    assert_string_equal(journal_fixture_sql(fixture->path,
                                            "SELECT outcome || ':' || steps || ':' || attempts FROM"
                                            " operation"),
                        "completed:2:3");
}

static void an_answers_row_takes_operation_and_attempt_from_its_step(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    int64_t step = journal_fixture_intent(fixture, operation, "mysql-4");
    journal_fixture_outcome(fixture, JOURNAL_UNKNOWN, step);
    journal_fixture_outcome(fixture, JOURNAL_UNKNOWN, step);
    assert_int_equal(journal_open_step_find(fixture->journal, step)->unknowns, 2);
    journal_fixture_outcome(fixture, JOURNAL_APPLIED, step);
    journal_fixture_settle(fixture);
    assert_string_equal(
        journal_fixture_sql(fixture->path,
                            "SELECT group_concat(operation || '/' || attempt) FROM entry WHERE step IS NOT"
                            " NULL AND kind <> 'intent'"),
        "2/1,2/2,2/3");
}

static void what_a_server_answers_is_never_an_assertion(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    int64_t step = journal_fixture_intent(fixture, operation, "mysql-4");
    CLEANUP_FREE char *reason = xcalloc(1, 9000);
    for (int i = 0; i < 4499; i++)
        memcpy(reason + 2 * i, "\xc3\xa4", 2);
    journal_append(fixture->journal, &(struct journal_entry){.kind = JOURNAL_REJECTED,
                                                             .step = step,
                                                             .http = 999,
                                                             .version = "0",
                                                             .uid = "",
                                                             .reason = reason});
    journal_fixture_settle(fixture);
    assert_string_equal(journal_fixture_sql(fixture->path,
                                            "SELECT ifnull(http, '-') || ifnull(version, '-') ||"
                                            " length(CAST(reason AS BLOB)) FROM entry WHERE"
                                            " kind = 'rejected'"),
                        "--4096");
}

static void a_hostile_value_is_kept_byte_by_byte(void **state)
{
    static const char *const values[] = {"'); DROP TABLE entry; --", "=1+1", "a\xff\xfe",
                                         "line\nbreak\ttab\x1b[31m", "",     "\xe2\x80\xaetxt"};
    struct journal_fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        int64_t seq = journal_append(fixture->journal, &(struct journal_entry){.kind = JOURNAL_NOTE,
                                                                               .action = values[i],
                                                                               .object = values[i],
                                                                               .name = values[i],
                                                                               .uid = values[i],
                                                                               .reason = values[i],
                                                                               .detail = values[i]});
        journal_fixture_settle(fixture);
        CLEANUP_FREE char *sql =
            xasprintf("SELECT reason FROM entry WHERE seq = %lld AND action = object AND name = uid"
                      " AND uid = detail",
                      (long long)seq);
        assert_string_equal(journal_fixture_sql(fixture->path, sql), values[i]);
    }
}

/* --- bodies ----------------------------------------------------------------------------------- */

static void a_kept_body_is_there_with_its_salt_and_digest(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    int64_t step = journal_fixture_intent_with_body(fixture, operation, "mysql-4", "{\"a\":1}", true);
    journal_fixture_settle(fixture);
    assert_string_equal(
        journal_fixture_sql(fixture->path, "SELECT CAST(bytes AS TEXT) || length(salt) FROM body"),
        "{\"a\":1}16");
    assert_string_equal(
        journal_fixture_sql(fixture->path, "SELECT length(digest) FROM entry WHERE kind = 'intent'"), "32");
    journal_fixture_restart(fixture);
    size_t length = 0;
    CLEANUP_FREE char *body = journal_step_body(fixture->journal, step, &length);
    assert_string_equal(body, "{\"a\":1}");
    assert_int_equal(length, 7);
    assert_true(journal_step_has_body(fixture->journal, step, "{\"a\":1}", 7));
    assert_false(journal_step_has_body(fixture->journal, step, "{\"a\":2}", 7));
}

static void a_body_that_is_not_kept_leaves_a_salted_digest_that_no_guess_can_prove(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    int64_t first = journal_fixture_intent_with_body(fixture, operation, "mysql-4", "password", false);
    int64_t second = journal_fixture_intent_with_body(fixture, operation, "mysql-3", "password", false);
    journal_fixture_settle(fixture);
    assert_string_equal(journal_fixture_sql(fixture->path, "SELECT count(*) FROM body"), "0");
    /* Equal bodies have different digests: salted. */
    assert_string_equal(journal_fixture_sql(fixture->path,
                                            "SELECT count(DISTINCT digest) FROM entry WHERE digest IS NOT"
                                            " NULL"),
                        "2");
    journal_fixture_restart(fixture);
    size_t length = 0;
    assert_null(journal_step_body(fixture->journal, first, &length));
    assert_true(journal_step_has_body(fixture->journal, first, "password", 8));
    assert_false(journal_step_has_body(fixture->journal, second, "passwort", 8));
    /* The salt goes with the step. */
    journal_fixture_outcome(fixture, JOURNAL_APPLIED, first);
    journal_fixture_outcome(fixture, JOURNAL_APPLIED, second);
    journal_fixture_settle(fixture);
    assert_string_equal(journal_fixture_sql(fixture->path, "SELECT count(*) FROM open_step"), "0");
}

static void a_secrets_intent_has_no_digest_at_all(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    journal_fixture_intent_with_body(fixture, operation, "mysql-4", NULL, false);
    journal_fixture_settle(fixture);
    assert_string_equal(journal_fixture_sql(fixture->path, "SELECT count(digest) FROM entry"), "0");
}

/* --- what a restart finds --------------------------------------------------------------------- */

static void count_step(void *context, const struct journal_open_step *step)
{
    (void)step;
    ++*(int *)context;
}

static void a_restart_finds_the_open_steps_with_the_nonce_of_their_run(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *nonce = xstrdup(journal_nonce(fixture->journal));
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    int64_t closed = journal_fixture_intent(fixture, operation, "mysql-4");
    int64_t open = journal_fixture_intent(fixture, operation, "mysql-3");
    journal_fixture_outcome(fixture, JOURNAL_UNKNOWN, open);
    journal_fixture_outcome(fixture, JOURNAL_APPLIED, closed);
    journal_fixture_settle(fixture);
    env_sim_run_for(fixture->env, 3600 * US_PER_S);
    journal_fixture_restart(fixture);
    int count = 0;
    journal_open_steps_each(fixture->journal, count_step, &count);
    assert_int_equal(count, 1);
    assert_null(journal_open_step_find(fixture->journal, closed));
    const struct journal_open_step *step = journal_open_step_on(fixture->journal, "Pod", "db", "mysql-3");
    assert_non_null(step);
    assert_ptr_equal(step, journal_open_step_find(fixture->journal, open));
    assert_string_equal(step->nonce, nonce);
    assert_string_not_equal(step->nonce, journal_nonce(fixture->journal));
    assert_string_equal(journal_previous_nonce(fixture->journal), nonce);
    assert_string_equal(step->action, "patch");
    assert_string_equal(step->version, "1042");
    assert_string_equal(step->detail, "{\"fingerprint\":\"image\"}");
    assert_int_equal(step->unknowns, 1);
    assert_int_equal(step->run, 1);
    assert_int_equal(step->operation, operation);
    /* The dead process could send until this run took its lock. */
    assert_int_equal(step->last_at_us, env_wall_us(fixture->env));
}

static void a_restart_finds_the_open_operations(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t ended = journal_fixture_begin(fixture, "scale");
    int64_t open = journal_fixture_begin(fixture, "rollout");
    journal_fixture_end(fixture, ended, "completed");
    journal_fixture_settle(fixture);
    journal_fixture_restart(fixture);
    assert_null(journal_open_operation_find(fixture->journal, "scale", "NeoSet", "db", "mysql"));
    const struct journal_open_operation *operation =
        journal_open_operation_find(fixture->journal, "rollout", "NeoSet", "db", "mysql");
    assert_non_null(operation);
    assert_int_equal(operation->seq, open);
    assert_string_equal(operation->come_from, "mysql:8.0");
    assert_string_equal(operation->go_to, "mysql:8.1");
    /* Another object of the same name in another namespace is another object. */
    assert_null(journal_open_operation_find(fixture->journal, "rollout", "NeoSet", "other", "mysql"));
}

static void the_block_of_a_step_is_open_beside_it(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    int64_t step = journal_fixture_intent(fixture, operation, "mysql-4");
    int64_t block = journal_append(fixture->journal, &(struct journal_entry){.kind = JOURNAL_INTENT,
                                                                             .operation = operation,
                                                                             .action = "block",
                                                                             .object = "Pod",
                                                                             .namespace = "db",
                                                                             .name = "mysql-4"});
    journal_fixture_settle(fixture);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(journal_open_step_on(fixture->journal, "Pod", "db", "mysql-4")->seq, step);
        assert_string_equal(journal_open_step_find(fixture->journal, block)->action, "block");
        journal_fixture_restart(fixture);
    }
}

static void the_epoch_never_falls_over_restarts(void **state)
{
    struct journal_fixture *fixture = *state;
    assert_int_equal(journal_epoch(fixture->journal), 0);
    journal_set_epoch(fixture->journal, 7);
    journal_append(fixture->journal, &(struct journal_entry){.kind = JOURNAL_EPOCH});
    journal_fixture_settle(fixture);
    journal_fixture_restart(fixture);
    assert_int_equal(journal_epoch(fixture->journal), 7);
}

static void a_clean_restart_goes_on_with_the_same_identity_and_seq(void **state)
{
    struct journal_fixture *fixture = *state;
    CLEANUP_FREE char *id = xstrdup(journal_id(fixture->journal));
    assert_int_equal(strlen(id), 32);
    assert_int_equal(strlen(journal_nonce(fixture->journal)), 16);
    journal_fixture_stop(fixture);
    journal_fixture_open(fixture);
    assert_string_equal(journal_id(fixture->journal), id);
    assert_int_equal(journal_run(fixture->journal), 3); /* start, stop, start */
}

/* A crash that undoes whole transactions of what was said to be durable would show here as a lost row. */
static void many_runs_leave_a_history_without_gaps(void **state)
{
    struct journal_fixture *fixture = *state;
    for (int run = 0; run < 20; run++) {
        int64_t operation = journal_fixture_begin(fixture, "rollout");
        int64_t step = journal_fixture_intent(fixture, operation, "mysql-0");
        journal_fixture_settle(fixture);
        if (run % 2)
            journal_fixture_restart(fixture);
        journal_fixture_outcome(fixture, run % 3 ? JOURNAL_APPLIED : JOURNAL_OVERTAKEN, step);
        journal_fixture_end(fixture, operation, "completed");
        journal_fixture_settle(fixture);
        if (run % 5 == 0) {
            journal_fixture_stop(fixture);
            journal_fixture_open(fixture);
        }
    }
    assert_string_equal(journal_fixture_sql(fixture->path, "SELECT count(*) = max(seq) FROM entry"), "1");
    assert_string_equal(journal_fixture_sql(fixture->path, "SELECT count(*) FROM operation WHERE steps = 1"),
                        "20");
}

#define TEST(function)                                                                                       \
    cmocka_unit_test_setup_teardown(function, journal_fixture_make_open, journal_fixture_free)

static const char *clock_notes(struct journal_fixture *fixture)
{
    journal_fixture_settle(fixture);
    return journal_fixture_sql(fixture->path,
                               "SELECT coalesce(group_concat(reason, '|'), '') FROM entry WHERE "
                               "kind = 'note' AND action = 'clock-jump'");
}

static void a_wall_clock_that_jumps_is_noted_where_it_jumped(void **state)
{
    struct journal_fixture *fixture = *state;
    /* A clock that is being slewed: a second in an hour. */
    for (int i = 0; i < 10; i++) {
        env_sim_run_for(fixture->env, 3600 * US_PER_S);
        env_sim_jump_wall(fixture->env, US_PER_S);
        journal_fixture_note(fixture, "an hour later");
        assert_string_equal(clock_notes(fixture), "");
    }
    env_sim_jump_wall(fixture->env, 3600 * US_PER_S);
    journal_fixture_note(fixture, "summer");
    assert_string_equal(
        clock_notes(fixture),
        "the wall clock jumped forward by 3600.0 s while the boot clock went on: times before and "
        "after do not compare");
    assert_string_equal(journal_fixture_sql(fixture->path,
                                            "SELECT json_extract(detail, '$.jump_us') FROM entry "
                                            "WHERE action = 'clock-jump'"),
                        "3600000000");
    journal_fixture_note(fixture, "once");
    journal_fixture_settle(fixture);
    /* A clock without rest: what it did is noted, but not each time. */
    for (int i = 0; i < 100; i++) {
        env_sim_jump_wall(fixture->env, i % 3 ? 7 * US_PER_S : -7 * US_PER_S);
        journal_fixture_note(fixture, "restless");
        journal_fixture_settle(fixture);
        env_sim_run_for(fixture->env, US_PER_S);
    }
    int notes =
        atoi(journal_fixture_sql(fixture->path, "SELECT count(*) FROM entry WHERE action = 'clock-jump'"));
    assert_in_range(notes, 2, 12);
}

static void take_warning(void *context, const char *sentence)
{
    str_replace((char **)context, sentence);
}

static void a_wall_clock_that_is_behind_the_run_before_is_noted(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_stop(fixture);
    env_sim_jump_wall(fixture->env, 86400 * US_PER_S);
    journal_fixture_open(fixture);
    assert_string_equal(clock_notes(fixture), "");
    journal_fixture_stop(fixture);
    env_sim_jump_wall(fixture->env, -600 * US_PER_S);
    journal_fixture_open(fixture);
    assert_string_equal(clock_notes(fixture),
                        "the wall clock jumped back by 600.0 s since the run before: times "
                        "before and after do not compare");
    /* Nobody listens while a journal is opened: who listens first is told. */
    CLEANUP_FREE char *warning = NULL;
    journal_on_warning(fixture->journal, take_warning, &warning);
    assert_null(warning);
    env_sim_run_for(fixture->env, 0);
    assert_non_null(warning);
    assert_non_null(strstr(warning, "jumped back by 600.0 s since the run before"));
    str_replace(&warning, "");
    journal_on_warning(fixture->journal, take_warning, &warning);
    env_sim_run_for(fixture->env, US_PER_S);
    assert_string_equal(warning, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_appended_is_durable_only_after_its_commit),
        TEST(callbacks_come_in_the_order_of_seq_whatever_the_order_of_asking),
        TEST(asking_for_what_is_durable_already_calls_back_from_the_loop),
        TEST(who_is_forgotten_is_not_called),
        TEST(an_outcome_waits_for_company_at_most_200_ms),
        TEST(an_outcome_rides_on_the_next_commit),
        TEST(what_is_appended_during_a_commit_goes_with_the_next_one),
        TEST(a_crash_forgets_what_no_commit_was_asked_for),
        TEST(a_stop_commits_what_is_pending_and_says_so),
        TEST(a_stop_in_the_middle_of_a_commit_loses_nothing),
        TEST(a_new_file_has_mode_0600_and_its_neighbours_too),
        TEST(runs_operations_and_steps_are_known_by_the_seq_of_their_first_rows),
        TEST(the_derived_tables_follow_in_the_same_transaction),
        TEST(an_answers_row_takes_operation_and_attempt_from_its_step),
        TEST(what_a_server_answers_is_never_an_assertion),
        TEST(a_hostile_value_is_kept_byte_by_byte),
        TEST(a_kept_body_is_there_with_its_salt_and_digest),
        TEST(a_body_that_is_not_kept_leaves_a_salted_digest_that_no_guess_can_prove),
        TEST(a_secrets_intent_has_no_digest_at_all),
        TEST(a_restart_finds_the_open_steps_with_the_nonce_of_their_run),
        TEST(a_restart_finds_the_open_operations),
        TEST(the_block_of_a_step_is_open_beside_it),
        TEST(the_epoch_never_falls_over_restarts),
        TEST(a_clean_restart_goes_on_with_the_same_identity_and_seq),
        TEST(many_runs_leave_a_history_without_gaps),
        TEST(a_wall_clock_that_jumps_is_noted_where_it_jumped),
        TEST(a_wall_clock_that_is_behind_the_run_before_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
