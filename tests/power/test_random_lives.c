/* SPDX-License-Identifier: Apache-2.0
 *
 * Many lives of a journal, each of whatever comes: rollouts, waits, holds, slow and full disks, failed syncs,
 * stops, crashes at any event, days that pass with retention at work. After each restart what is open in
 * memory is what it was, nothing acknowledged is lost, and the file verifies. A failing seed is printed; it
 * replays. */
#include "journal_fixture.h"
#include "vfs_fault.h"

#include "base/time_text.h"
#include "journal/verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { SEEDS = 40, ACTIONS = 400, PODS = 6 };

struct life {
    struct journal_fixture fixture;
    uint64_t random;
    uint64_t seed;
    char *head; /* the newest that was acknowledged */
    int64_t day_us;
    int restarts;
    int deaths;
};

static uint64_t below(struct life *life, uint64_t bound)
{
    life->random ^= life->random << 13;
    life->random ^= life->random >> 7;
    life->random ^= life->random << 17;
    return life->random % bound;
}

static int64_t work_takes(void *context)
{
    struct life *life = context;
    return below(life, 20) == 0 ? (int64_t)below(life, 8 * US_PER_S) : (int64_t)below(life, 5 * US_PER_MS);
}

static void on_durable(void *context)
{
    struct life *life = context;
    free(life->head);
    life->head = journal_head_text(life->fixture.journal);
}

/* --- what is open, as text -------------------------------------------------------------------- */

static void add_step(void *context, const struct journal_open_step *step)
{
    ENSURE(buf_addf(context, "step %lld of %lld: %s %s %s-%lld, %d unknown\n", (long long)step->seq,
                    (long long)step->operation, step->action, step->name, step->nonce, (long long)step->seq,
                    step->unknowns) == 0);
}

static void add_operation(void *context, const struct journal_open_operation *operation)
{
    ENSURE(buf_addf(context, "operation %lld: %s %s, %s to %s, %lld\n", (long long)operation->seq,
                    operation->action, operation->name, operation->come_from, operation->go_to,
                    (long long)operation->begun_us) == 0);
}

/* Waits without what was spent: that goes on. */
static char *what_is_open(struct life *life)
{
    struct journal *journal = life->fixture.journal;
    struct buf text = BUF_INIT(1 << 20);
    journal_open_steps_each(journal, add_step, &text);
    journal_open_operations_each(journal, add_operation, &text);
    for (int pod = 0; pod < PODS; pod++) {
        char name[16];
        snprintf(name, sizeof(name), "mysql-%d", pod);
        int64_t wait = journal_wait_find(journal, "ready", "Pod", "db", name);
        if (wait)
            ENSURE(buf_addf(&text, "wait %lld for %s, %s\n", (long long)wait, name,
                            journal_wait_is_held(journal, wait) ? "held" : "going on") == 0);
    }
    return buf_take(&text);
}

/* --- actions ---------------------------------------------------------------------------------- */

static void open_again(struct life *life)
{
    CLEANUP_ERROR struct error *err = NULL;
    if (journal_open(life->fixture.env, &life->fixture.options, &life->fixture.journal, &err) < 0)
        fail_msg("seed %llu: %s", (unsigned long long)life->seed, error_text(err));
    if (life->head && journal_check_head(life->fixture.journal, life->head) != JOURNAL_HEAD_GOES_ON)
        fail_msg("seed %llu: something acknowledged is lost", (unsigned long long)life->seed);
    life->restarts++;
}

static void touch_step(struct life *life, const char *pod)
{
    static const enum journal_kind kinds[] = {JOURNAL_APPLIED, JOURNAL_REJECTED, JOURNAL_OVERTAKEN,
                                              JOURNAL_UNKNOWN, JOURNAL_UNKNOWN};
    struct journal_fixture *fixture = &life->fixture;
    const struct journal_open_step *step = journal_open_step_on(fixture->journal, "Pod", "db", pod);
    if (step) {
        journal_fixture_outcome(fixture, kinds[below(life, ARRAY_SIZE(kinds))], step->seq);
        return;
    }
    const struct journal_open_operation *operation =
        journal_open_operation_find(fixture->journal, "rollout", "NeoSet", "db", "mysql");
    int64_t seq = operation ? operation->seq : journal_fixture_begin(fixture, "rollout");
    journal_fixture_intent_with_body(fixture, seq, pod, "{\"spec\":{}}", below(life, 2));
}

static void touch_wait(struct life *life, const char *pod)
{
    struct journal *journal = life->fixture.journal;
    int64_t wait = journal_wait_find(journal, "ready", "Pod", "db", pod);
    if (!wait) {
        const struct journal_open_operation *operation =
            journal_open_operation_find(journal, "rollout", "NeoSet", "db", "mysql");
        journal_wait_begin(journal, operation ? operation->seq : 0, "ready", "Pod", "db", pod, 60 * US_PER_S,
                           "x");
    } else if (below(life, 3) == 0) {
        journal_wait_end(journal, wait, "done");
    } else if (journal_wait_is_held(journal, wait)) {
        journal_wait_go(journal, wait);
    } else {
        journal_wait_hold(journal, wait, "paused");
    }
}

/* An operation ends once none of its steps is open. */
static void end_operation(struct life *life)
{
    struct journal_fixture *fixture = &life->fixture;
    const struct journal_open_operation *operation =
        journal_open_operation_find(fixture->journal, "rollout", "NeoSet", "db", "mysql");
    if (!operation)
        return;
    for (int pod = 0; pod < PODS; pod++) {
        char name[16];
        snprintf(name, sizeof(name), "mysql-%d", pod);
        const struct journal_open_step *step = journal_open_step_on(fixture->journal, "Pod", "db", name);
        if (step)
            journal_fixture_outcome(fixture, JOURNAL_APPLIED, step->seq);
    }
    journal_fixture_end(fixture, operation->seq, below(life, 2) ? "completed" : "failed");
}

/* All durable: then what is open must be the same after the restart, however it ends. */
static void settle_and_restart(struct life *life)
{
    vfs_fault_reset();
    env_sim_run_for(life->fixture.env, 30 * US_PER_S);
    journal_fixture_settle(&life->fixture);
    bool all = journal_durable_seq(life->fixture.journal) == journal_next_seq(life->fixture.journal) - 1;
    CLEANUP_FREE char *before = what_is_open(life);
    if (below(life, 2))
        journal_fixture_stop(&life->fixture);
    else
        journal_fixture_crash(&life->fixture);
    open_again(life);
    CLEANUP_FREE char *after = what_is_open(life);
    if (all && !str_equal(before, after))
        fail_msg("seed %llu: open before:\n%sand after:\n%s", (unsigned long long)life->seed, before, after);
}

static void crash_anywhere(struct life *life)
{
    if (below(life, 3) == 0)
        journal_fixture_stop(&life->fixture);
    else
        journal_fixture_crash(&life->fixture);
    vfs_fault_reset();
    open_again(life);
}

static void disturb(struct life *life)
{
    switch (below(life, 5)) {
    case 0:
        vfs_fault_set_full(true);
        break;
    case 1:
        vfs_fault_arm(VFS_FAULT_SYNC, 1 + (int64_t)below(life, 4), false, 0);
        break;
    case 2:
        vfs_fault_arm(VFS_FAULT_WRITE, 1 + (int64_t)below(life, 60), false, 0);
        break;
    case 3:
        env_sim_jump_wall(life->fixture.env, (int64_t)below(life, 7200) * US_PER_S - 3600 * US_PER_S);
        break;
    default:
        vfs_fault_reset();
        break;
    }
}

static void pass_time(struct life *life)
{
    static const int64_t durations_us[] = {0, 1000, 200000, US_PER_S, 20 * US_PER_S, 24 * 3600 * US_PER_S};
    struct env *env = life->fixture.env;
    if (below(life, 2)) {
        for (uint64_t i = below(life, 12); i > 0; i--)
            env_sim_step(env);
        return;
    }
    env_sim_run_for(env, durations_us[below(life, ARRAY_SIZE(durations_us))]);
}

static void act(struct life *life)
{
    struct journal *journal = life->fixture.journal;
    char pod[16];
    snprintf(pod, sizeof(pod), "mysql-%d", (int)below(life, PODS));
    uint64_t choice = below(life, 100);
    if (choice < 30)
        touch_step(life, pod);
    else if (choice < 50)
        touch_wait(life, pod);
    else if (choice < 55)
        end_operation(life);
    else if (choice < 70)
        journal_commit(journal);
    else if (choice < 75)
        journal_commit_soon(journal);
    else if (choice < 90)
        pass_time(life);
    else if (choice < 93)
        disturb(life);
    else if (choice < 96)
        crash_anywhere(life);
    else if (choice < 98)
        settle_and_restart(life);
    else
        journal_when_durable(journal, journal_next_seq(journal) - 1, on_durable, life);
    if (life->fixture.journal && journal_health(life->fixture.journal) == JOURNAL_DEAD) {
        life->deaths++;
        crash_anywhere(life); /* as the process would */
    }
}

static void must_verify(struct life *life)
{
    CLEANUP_JOURNAL_READER struct journal_reader *reader = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    struct journal_verify_options options = {0};
    struct journal_verify_result result;
    if (journal_reader_open(life->fixture.path, &reader, &err) < 0 ||
        journal_verify(reader, &options, &result, &err) < 0)
        fail_msg("seed %llu: %s", (unsigned long long)life->seed, error_text(err));
    if (result.finding_count)
        fail_msg("seed %llu: %s", (unsigned long long)life->seed, result.findings[0].text);
    journal_verify_result_done(&result);
}

static void lives_of_whatever_comes_verify(void **state)
{
    (void)state;
    const char *only = getenv("SEED");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1;
    int restarts = 0;
    int deaths = 0;
    for (uint64_t seed = first; seed < (only ? first + 1 : first + SEEDS); seed++) {
        struct life life = {.seed = seed, .random = seed * 0x9e3779b97f4a7c15ULL + 1};
        journal_fixture_setup(&life.fixture);
        life.fixture.options.vfs = VFS_FAULT_NAME;
        life.fixture.options.retention_us = seed % 2 ? 2 * 24 * 3600 * US_PER_S : 0;
        env_sim_on_work(life.fixture.env, work_takes, &life);
        vfs_fault_reset();
        journal_fixture_open(&life.fixture);
        for (int i = 0; i < ACTIONS; i++)
            act(&life);
        settle_and_restart(&life);
        must_verify(&life);
        restarts += life.restarts;
        deaths += life.deaths;
        free(life.head);
        journal_fixture_teardown(&life.fixture);
    }
    print_message("%d restarts, %d of them after a disk that failed\n", restarts, deaths);
    assert_true(only || (restarts > SEEDS && deaths > 5));
}

int main(void)
{
    vfs_fault_register();
    journal_fixture_use_memory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lives_of_whatever_comes_verify),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
