/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits are budgets: spent on the boot clock, standing still on hold, going on over restarts by the wall
 * clock. */
#include "journal_fixture.h"

#include "base/time_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define BUDGET_US (300 * US_PER_S)
#define HOUR_US (3600 * US_PER_S)

/* Whatever a test did, the file must verify: the derived table of waits is recomputed from the rows. */
static int verify_and_free(void **state)
{
    journal_fixture_stop(*state);
    CLEANUP_FREE char *problem = journal_fixture_verify(*state);
    if (problem)
        print_error("%s\n", problem);
    journal_fixture_free(state);
    return problem ? -1 : 0;
}

static int64_t begin(struct journal_fixture *fixture)
{
    return journal_wait_begin(fixture->journal, 0, "ready", "Pod", "db", "mysql-3", BUDGET_US,
                              "image mysql:8.1");
}

static int64_t spent(struct journal_fixture *fixture, int64_t wait)
{
    return journal_wait_spent_us(fixture->journal, wait);
}

static void a_wait_is_known_by_object_and_action_while_it_is_open(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t wait = begin(fixture);
    assert_int_equal(begin(fixture), wait);
    assert_int_equal(journal_wait_find(fixture->journal, "ready", "Pod", "db", "mysql-3"), wait);
    assert_int_equal(journal_wait_find(fixture->journal, "gone", "Pod", "db", "mysql-3"), 0);
    journal_wait_end(fixture->journal, wait, "done");
    assert_int_equal(journal_wait_find(fixture->journal, "ready", "Pod", "db", "mysql-3"), 0);
    assert_int_not_equal(begin(fixture), wait);
}

static void time_is_spent_on_the_boot_clock(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t wait = begin(fixture);
    env_sim_run_for(fixture->env, 100 * US_PER_S);
    assert_int_equal(spent(fixture, wait), 100 * US_PER_S);
}

static void a_wall_clock_that_jumps_spends_nothing_inside_a_run(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t wait = begin(fixture);
    env_sim_jump_wall(fixture->env, 10 * HOUR_US);
    env_sim_run_for(fixture->env, US_PER_S);
    assert_int_equal(spent(fixture, wait), US_PER_S);
    env_sim_jump_wall(fixture->env, -20 * HOUR_US);
    env_sim_run_for(fixture->env, US_PER_S);
    assert_int_equal(spent(fixture, wait), 2 * US_PER_S);
    assert_false(journal_wait_has_spent(fixture->journal, wait, BUDGET_US, 0));
}

static void a_hold_stands_still_and_go_goes_on(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t wait = begin(fixture);
    env_sim_run_for(fixture->env, 10 * US_PER_S);
    journal_wait_hold(fixture->journal, wait, "paused");
    journal_wait_hold(fixture->journal, wait, "paused");
    assert_true(journal_wait_is_held(fixture->journal, wait));
    env_sim_run_for(fixture->env, HOUR_US);
    assert_int_equal(spent(fixture, wait), 10 * US_PER_S);
    assert_false(journal_wait_has_spent(fixture->journal, wait, BUDGET_US, 0));
    journal_wait_go(fixture->journal, wait);
    journal_wait_go(fixture->journal, wait);
    env_sim_run_for(fixture->env, 5 * US_PER_S);
    assert_int_equal(spent(fixture, wait), 15 * US_PER_S);
    journal_fixture_settle(fixture);
    assert_string_equal(journal_fixture_sql(fixture->path,
                                            "SELECT group_concat(kind) FROM entry WHERE kind LIKE"
                                            " 'wait%'"),
                        "wait_begin,wait_hold,wait_go");
}

static void the_gap_between_runs_counts_by_the_wall_clock(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t wait = begin(fixture);
    env_sim_run_for(fixture->env, 20 * US_PER_S);
    journal_fixture_note(fixture, "the last row of the run");
    journal_fixture_settle(fixture);
    env_sim_run_for(fixture->env, 30 * US_PER_S); /* lived on for a while, then died */
    journal_fixture_restart(fixture);
    assert_int_equal(spent(fixture, wait), 50 * US_PER_S);
    env_sim_run_for(fixture->env, 7 * US_PER_S);
    assert_int_equal(spent(fixture, wait), 57 * US_PER_S);
    assert_int_equal(begin(fixture), wait);
}

static void the_time_of_several_runs_adds_up(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t wait = begin(fixture);
    journal_fixture_settle(fixture);
    for (int run = 0; run < 5; run++) {
        env_sim_run_for(fixture->env, 4 * US_PER_S);
        journal_fixture_note(fixture, "x");
        journal_fixture_settle(fixture);
        env_sim_run_for(fixture->env, 6 * US_PER_S);
        journal_fixture_restart(fixture);
    }
    assert_int_equal(spent(fixture, wait), 50 * US_PER_S);
}

static void a_gap_is_never_negative(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t wait = begin(fixture);
    env_sim_run_for(fixture->env, 20 * US_PER_S);
    journal_fixture_note(fixture, "x");
    journal_fixture_settle(fixture);
    journal_fixture_crash(fixture);
    env_sim_jump_wall(fixture->env, -HOUR_US);
    journal_fixture_open(fixture);
    assert_int_equal(spent(fixture, wait), 20 * US_PER_S);
}

static void a_gap_on_hold_spends_nothing(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t wait = begin(fixture);
    env_sim_run_for(fixture->env, 20 * US_PER_S);
    journal_wait_hold(fixture->journal, wait, "paused");
    journal_fixture_settle(fixture);
    env_sim_run_for(fixture->env, HOUR_US);
    journal_fixture_restart(fixture);
    assert_true(journal_wait_is_held(fixture->journal, wait));
    assert_int_equal(spent(fixture, wait), 20 * US_PER_S);
    env_sim_run_for(fixture->env, HOUR_US);
    journal_wait_go(fixture->journal, wait);
    env_sim_run_for(fixture->env, US_PER_S);
    assert_int_equal(spent(fixture, wait), 21 * US_PER_S);
}

static void no_wait_expires_within_a_minute_of_a_runs_first_observation(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t wait = begin(fixture);
    journal_fixture_settle(fixture);
    journal_fixture_crash(fixture);
    env_sim_run_for(fixture->env, HOUR_US); /* a long downtime: the budget is spent */
    journal_fixture_open(fixture);
    assert_true(spent(fixture, wait) > BUDGET_US);
    int64_t first_seen_us = env_boot_us(fixture->env);
    assert_false(journal_wait_has_spent(fixture->journal, wait, BUDGET_US, first_seen_us));
    env_sim_run_for(fixture->env, 59 * US_PER_S);
    assert_false(journal_wait_has_spent(fixture->journal, wait, BUDGET_US, first_seen_us));
    env_sim_run_for(fixture->env, US_PER_S);
    assert_true(journal_wait_has_spent(fixture->journal, wait, BUDGET_US, first_seen_us));
}

static void a_wait_expires_when_its_budget_is_spent(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t first_seen_us = env_boot_us(fixture->env);
    int64_t wait = begin(fixture);
    env_sim_run_for(fixture->env, BUDGET_US - 1);
    assert_false(journal_wait_has_spent(fixture->journal, wait, BUDGET_US, first_seen_us));
    env_sim_run_for(fixture->env, 1);
    assert_true(journal_wait_has_spent(fixture->journal, wait, BUDGET_US, first_seen_us));
}

static void the_end_says_how_and_what_was_spent(void **state)
{
    struct journal_fixture *fixture = *state;
    int64_t wait = begin(fixture);
    env_sim_run_for(fixture->env, 12 * US_PER_S);
    journal_wait_end(fixture->journal, wait, "say \"done\"");
    journal_fixture_settle(fixture);
    assert_string_equal(
        journal_fixture_sql(fixture->path, "SELECT detail FROM entry WHERE kind = 'wait_end'"),
        "{\"wait\":2,\"spent_us\":12000000,\"outcome\":\"say \\\"done\\\"\"}");
    assert_string_equal(journal_fixture_sql(fixture->path, "SELECT count(*) FROM open_wait"), "0");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, journal_fixture_make_open, verify_and_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wait_is_known_by_object_and_action_while_it_is_open),
        TEST(time_is_spent_on_the_boot_clock),
        TEST(a_wall_clock_that_jumps_spends_nothing_inside_a_run),
        TEST(a_hold_stands_still_and_go_goes_on),
        TEST(the_gap_between_runs_counts_by_the_wall_clock),
        TEST(the_time_of_several_runs_adds_up),
        TEST(a_gap_is_never_negative),
        TEST(a_gap_on_hold_spends_nothing),
        TEST(no_wait_expires_within_a_minute_of_a_runs_first_observation),
        TEST(a_wait_expires_when_its_budget_is_spent),
        TEST(the_end_says_how_and_what_was_spent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
