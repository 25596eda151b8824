/* SPDX-License-Identifier: Apache-2.0
 *
 * Old entries go: by age and by size, bodies first, whole ranges only, never under what is open; the chain
 * verifies. */
#include "journal_fixture.h"

#include "base/time_text.h"
#include "journal/verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define DAY_US (24 * 3600 * US_PER_S)

static int64_t number(const struct journal_fixture *fixture, const char *sql)
{
    return strtoll(journal_fixture_sql(fixture->path, sql), NULL, 10);
}

/* A rollout of one step, and a day later the next. */
static void roll_for_days(struct journal_fixture *fixture, int days, int rollouts_a_day)
{
    for (int day = 0; day < days; day++) {
        for (int i = 0; i < rollouts_a_day; i++) {
            int64_t operation = journal_fixture_begin(fixture, "rollout");
            int64_t wait = journal_wait_begin(fixture->journal, operation, "ready", "Pod", "db", "mysql-4",
                                              US_PER_S, NULL);
            int64_t step = journal_fixture_intent(fixture, operation, "mysql-4");
            journal_fixture_settle(fixture);
            journal_fixture_outcome(fixture, JOURNAL_APPLIED, step);
            journal_wait_end(fixture->journal, wait, "done");
            journal_fixture_end(fixture, operation, "completed");
        }
        journal_fixture_settle(fixture);
        env_sim_run_for(fixture->env, DAY_US);
    }
}

static void must_verify(struct journal_fixture *fixture)
{
    CLEANUP_JOURNAL_READER struct journal_reader *reader = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    struct journal_verify_options options = {0};
    struct journal_verify_result result;
    if (journal_reader_open(fixture->path, &reader, &err) < 0 ||
        journal_verify(reader, &options, &result, &err) < 0)
        fail_msg("%s", error_text(err));
    if (result.finding_count)
        fail_msg("%s", result.findings[0].text);
    assert_int_equal(result.first_seq, journal_reader_meta(reader)->pruned_seq + 1);
    journal_verify_result_done(&result);
}

static void a_checkpoint_closes_a_range_each_day(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    roll_for_days(fixture, 10, 3);
    assert_in_range(number(fixture, "SELECT count(*) FROM entry WHERE kind = 'checkpoint'"), 8, 10);
    assert_string_equal(journal_fixture_sql(fixture->path,
                                            "SELECT detail LIKE '{\"nonce\":\"%' FROM entry WHERE kind ="
                                            " 'checkpoint'"),
                        "1");
}

static void entries_older_than_kept_go_and_the_gap_is_explained(void **state)
{
    struct journal_fixture *fixture = *state;
    fixture->options.retention_us = 5 * DAY_US;
    journal_fixture_open(fixture);
    roll_for_days(fixture, 30, 3);
    env_sim_run_for(fixture->env, 3600 * US_PER_S);
    int64_t pruned = number(fixture, "SELECT pruned_seq FROM meta");
    assert_true(pruned > 100);
    assert_int_equal(number(fixture, "SELECT min(seq) FROM entry"), pruned + 1);
    assert_true(number(fixture, "SELECT min(id) FROM operation") > pruned);
    assert_true(number(fixture, "SELECT min(step) FROM body") > pruned);
    assert_string_equal(journal_fixture_sql(fixture->path, "SELECT kind FROM entry ORDER BY seq LIMIT 1"),
                        "checkpoint");
    /* Nothing younger than five days went. */
    CLEANUP_FREE char *sql = xasprintf("SELECT min(at_us) <= %lld FROM entry",
                                       (long long)(env_wall_us(fixture->env) - 5 * DAY_US));
    assert_int_equal(number(fixture, sql), 1);
    struct journal_metrics metrics;
    journal_metrics_get(fixture->journal, &metrics);
    assert_int_equal(metrics.pruned_seq, pruned);
    must_verify(fixture);
    /* And it goes on over a restart. */
    journal_fixture_restart(fixture);
    roll_for_days(fixture, 10, 3);
    assert_true(number(fixture, "SELECT pruned_seq FROM meta") > pruned);
    must_verify(fixture);
}

static void nothing_goes_below_what_is_open(void **state)
{
    struct journal_fixture *fixture = *state;
    fixture->options.retention_us = 5 * DAY_US;
    journal_fixture_open(fixture);
    roll_for_days(fixture, 2, 3);
    int64_t operation = journal_fixture_begin(fixture, "adopt");
    int64_t step = journal_fixture_intent(fixture, operation, "mysql-0");
    CLEANUP_FREE char *nonce = xstrdup(journal_nonce(fixture->journal));
    roll_for_days(fixture, 30, 3);
    assert_true(number(fixture, "SELECT pruned_seq FROM meta") < operation);
    assert_true(number(fixture, "SELECT pruned_seq FROM meta") > 0);
    /* The run's start went: its nonce is still known, also after a restart. */
    assert_int_equal(number(fixture, "SELECT count(*) FROM entry WHERE seq = 1"), 0);
    journal_fixture_restart(fixture);
    assert_string_equal(journal_open_step_find(fixture->journal, step)->nonce, nonce);
    assert_string_equal(journal_previous_nonce(fixture->journal), nonce);
    must_verify(fixture);
    journal_fixture_outcome(fixture, JOURNAL_OVERTAKEN, step);
    journal_fixture_end(fixture, operation, "cancelled");
    roll_for_days(fixture, 3, 3);
    assert_true(number(fixture, "SELECT pruned_seq FROM meta") > step);
    must_verify(fixture);
}

struct listener {
    int count;
    char text[512];
};

static void take_warning(void *context, const char *sentence)
{
    struct listener *listener = context;
    listener->count++;
    snprintf(listener->text, sizeof(listener->text), "%s", sentence);
}

static void what_keeps_old_entries_for_long_is_named(void **state)
{
    struct journal_fixture *fixture = *state;
    struct listener listener = {0};
    fixture->options.retention_us = 5 * DAY_US;
    journal_fixture_open(fixture);
    journal_on_warning(fixture->journal, take_warning, &listener);
    int64_t operation = journal_fixture_begin(fixture, "adopt");
    /* Open for a while is ordinary. */
    roll_for_days(fixture, 4, 3);
    assert_int_equal(listener.count, 0);
    roll_for_days(fixture, 10, 3);
    assert_in_range(listener.count, 5, 10); /* once a day */
    CLEANUP_FREE char *named =
        xasprintf("entry %lld (operation adopt of NeoSet db/mysql)", (long long)operation);
    assert_non_null(strstr(listener.text, named));
    /* Then nothing is kept back any more, and nothing said. */
    journal_fixture_end(fixture, operation, "cancelled");
    roll_for_days(fixture, 1, 3);
    listener.count = 0;
    roll_for_days(fixture, 10, 3);
    assert_int_equal(listener.count, 0);
}

static void fill(struct journal_fixture *fixture, int rows)
{
    static char words[2048];
    memset(words, 'w', sizeof(words) - 1);
    for (int i = 0; i < rows; i++) {
        journal_fixture_note(fixture, words);
        if (i % 500 == 0)
            journal_fixture_settle(fixture);
    }
    journal_fixture_settle(fixture);
}

static void what_keeps_a_journal_above_its_size_limit_is_named(void **state)
{
    struct journal_fixture *fixture = *state;
    struct listener listener = {0};
    fixture->options.retention_bytes = 8 << 20;
    journal_fixture_open(fixture);
    journal_on_warning(fixture->journal, take_warning, &listener);
    int64_t wait = journal_wait_begin(fixture->journal, 0, "approval", "NeoSet", "db", "other", DAY_US, NULL);
    fill(fixture, 12000);
    env_sim_run_for(fixture->env, DAY_US / 2);
    assert_in_range(listener.count, 1, 2);
    CLEANUP_FREE char *named = xasprintf("entry %lld (wait approval of NeoSet db/other)", (long long)wait);
    assert_non_null(strstr(listener.text, named));
}

static void an_open_wait_keeps_its_range_too(void **state)
{
    struct journal_fixture *fixture = *state;
    fixture->options.retention_us = 5 * DAY_US;
    journal_fixture_open(fixture);
    roll_for_days(fixture, 2, 3);
    int64_t wait = journal_wait_begin(fixture->journal, 0, "approval", "NeoSet", "db", "other", DAY_US, NULL);
    roll_for_days(fixture, 20, 3);
    assert_in_range(number(fixture, "SELECT pruned_seq FROM meta"), 1, wait - 1);
    must_verify(fixture);
}

static void near_its_size_limit_bodies_go_first_then_ranges(void **state)
{
    struct journal_fixture *fixture = *state;
    fixture->options.retention_bytes = 4 << 20;
    journal_fixture_open(fixture);
    char body[4000];
    memset(body, 'b', sizeof(body));
    body[sizeof(body) - 1] = '\0';
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    int64_t open = journal_fixture_intent_with_body(fixture, operation, "mysql-0", body, true);
    (void)open;
    journal_fixture_outcome(fixture, JOURNAL_APPLIED, open);
    for (int i = 0; i < 1200; i++) {
        int64_t step = journal_fixture_intent_with_body(fixture, operation, "mysql-4", body, true);
        journal_fixture_outcome(fixture, JOURNAL_APPLIED, step);
        if (i % 20 == 0)
            journal_fixture_settle(fixture);
    }
    journal_fixture_end(fixture, operation, "completed");
    journal_fixture_settle(fixture);
    env_sim_run_for(fixture->env, 300 * US_PER_S);
    assert_int_equal(number(fixture, "SELECT pruned_seq FROM meta"), 0);
    assert_true(number(fixture, "SELECT count(*) FROM body") < 900);
    assert_true(
        number(fixture, "SELECT count(*) FROM entry WHERE kind = 'note' AND action = 'bodies-dropped'") > 0);
    must_verify(fixture);
    /* Then so many entries that bodies do not help any more. */
    for (int i = 0; i < 60; i++) {
        for (int j = 0; j < 1000; j++)
            journal_fixture_note(
                fixture, "a row of about two hundred bytes that says in many words that nothing happened");
        journal_fixture_settle(fixture);
        env_sim_run_for(fixture->env, 100 * US_PER_S);
    }
    env_sim_run_for(fixture->env, 600 * US_PER_S);
    assert_true(number(fixture, "SELECT pruned_seq FROM meta") > 0);
    assert_true(number(fixture, "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count,"
                                " pragma_freelist_count, pragma_page_size") <= 4 << 20);
    must_verify(fixture);
}

static void a_crash_between_the_announcement_and_the_deletion_is_finished_by_the_next_run(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    roll_for_days(fixture, 20, 100);
    journal_fixture_crash(fixture);
    fixture->options.retention_us = 5 * DAY_US;
    journal_fixture_open(fixture);
    /* One event at a time until it is announced, then the crash. */
    while (number(fixture, "SELECT pruned_seq FROM meta") == 0)
        assert_true(env_sim_step(fixture->env));
    journal_fixture_crash(fixture);
    int64_t pruned = number(fixture, "SELECT pruned_seq FROM meta");
    assert_int_equal(number(fixture, "SELECT min(seq) FROM entry"), 1);
    must_verify(fixture); /* rows that are still there do not disturb */
    journal_fixture_open(fixture);
    env_sim_run_for(fixture->env, US_PER_S);
    assert_int_equal(number(fixture, "SELECT min(seq) FROM entry"), pruned + 1);
    assert_true(number(fixture, "SELECT min(id) FROM operation") > pruned);
    must_verify(fixture);
}

static void rows_are_deleted_a_thousand_at_a_time_between_the_commits(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    roll_for_days(fixture, 10, 300);
    journal_fixture_crash(fixture);
    fixture->options.retention_us = 2 * DAY_US;
    journal_fixture_open(fixture);
    while (number(fixture, "SELECT pruned_seq FROM meta") == 0)
        assert_true(env_sim_step(fixture->env));
    int64_t rows = number(fixture, "SELECT count(*) FROM entry");
    int64_t pruned = number(fixture, "SELECT pruned_seq FROM meta");
    assert_true(pruned > 4000);
    /* Commits go on meanwhile, and no step deletes more than a slice. */
    while (number(fixture, "SELECT min(seq) FROM entry") <= pruned) {
        int64_t seq = journal_fixture_note(fixture, "busy");
        journal_commit(fixture->journal);
        while (journal_durable_seq(fixture->journal) < seq)
            assert_true(env_sim_step(fixture->env));
        int64_t now = number(fixture, "SELECT count(*) FROM entry");
        assert_true(rows - now <= 1000);
        rows = now;
    }
    must_verify(fixture);
}

static void without_limits_everything_stays(void **state)
{
    struct journal_fixture *fixture = *state;
    journal_fixture_open(fixture);
    roll_for_days(fixture, 500, 1);
    assert_int_equal(number(fixture, "SELECT min(seq) FROM entry"), 1);
    assert_int_equal(number(fixture, "SELECT count(*) FROM body"), 500);
}

static void a_head_from_before_the_pruned_range_goes_on(void **state)
{
    struct journal_fixture *fixture = *state;
    fixture->options.retention_us = 5 * DAY_US;
    journal_fixture_open(fixture);
    CLEANUP_FREE char *old = journal_head_text(fixture->journal);
    roll_for_days(fixture, 20, 2);
    assert_true(number(fixture, "SELECT pruned_seq FROM meta") > 1);
    assert_int_equal(journal_check_head(fixture->journal, old), JOURNAL_HEAD_GOES_ON);
    journal_fixture_restart(fixture);
    assert_int_equal(journal_check_head(fixture->journal, old), JOURNAL_HEAD_GOES_ON);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, journal_fixture_make, journal_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_checkpoint_closes_a_range_each_day),
        TEST(entries_older_than_kept_go_and_the_gap_is_explained),
        TEST(nothing_goes_below_what_is_open),
        TEST(what_keeps_old_entries_for_long_is_named),
        TEST(what_keeps_a_journal_above_its_size_limit_is_named),
        TEST(an_open_wait_keeps_its_range_too),
        TEST(near_its_size_limit_bodies_go_first_then_ranges),
        TEST(a_crash_between_the_announcement_and_the_deletion_is_finished_by_the_next_run),
        TEST(rows_are_deleted_a_thousand_at_a_time_between_the_commits),
        TEST(without_limits_everything_stays),
        TEST(a_head_from_before_the_pruned_range_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
