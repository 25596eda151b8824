/* SPDX-License-Identifier: Apache-2.0
 *
 * The power is cut at every call that changes the disk, unsynced writes are lost, torn and reordered: no
 * intent that was said to be durable is lost, and what is found afterwards verifies, ever. */
#include "journal_fixture.h"
#include "vfs_power.h"

#include "base/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <sys/stat.h>

/* Sanitizers look for other things, and are ten times slower. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(SANITIZED)
enum { SEEDS = 1, LIFE_CUTS = 40, LONG_LIFE_CUTS = 30, FAT_LIFE_CUTS = 6 };
#else
enum { SEEDS = 2, LIFE_CUTS = 4000, LONG_LIFE_CUTS = 300, FAT_LIFE_CUTS = 100 };
#endif

/* What the journal has said to be durable: what a gateway would have acted on. */
struct acknowledged {
    struct journal_fixture *fixture;
    char *head; /* the newest */
    int64_t seq;
    int count;
};

static struct acknowledged acknowledged;

static void on_durable(void *context)
{
    struct acknowledged *said = context;
    assert_false(vfs_power_is_off()); /* nothing is durable that was not written */
    free(said->head);
    said->head = journal_head_text(said->fixture->journal);
    said->seq = journal_durable_seq(said->fixture->journal);
    said->count++;
}

static void commit(struct journal_fixture *fixture)
{
    if (!fixture->journal)
        return;
    journal_when_durable(fixture->journal, journal_next_seq(fixture->journal) - 1, on_durable, &acknowledged);
    journal_commit(fixture->journal);
    /* Bounded: a dead journal never becomes durable. */
    env_sim_run_for(fixture->env, US_PER_S);
}

static bool try_open(struct journal_fixture *fixture)
{
    CLEANUP_ERROR struct error *err = NULL;
    if (fixture->journal || journal_open(fixture->env, &fixture->options, &fixture->journal, &err) == 0)
        return true;
    /* Only the cut excuses a start that fails. */
    if (!vfs_power_is_off())
        fail_msg("open: %s", error_text(err));
    return false;
}

static void roll(struct journal_fixture *fixture, int pods)
{
    char name[32];
    int64_t steps[16];
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    for (int i = 0; i < pods; i++) {
        snprintf(name, sizeof(name), "mysql-%d", i);
        steps[i] = journal_fixture_intent(fixture, operation, name);
    }
    commit(fixture);
    int64_t wait = journal_wait_begin(fixture->journal, operation, "ready", "Pod", "db", "mysql-0",
                                      300 * US_PER_S, NULL);
    journal_fixture_outcome(fixture, JOURNAL_UNKNOWN, steps[0]);
    commit(fixture);
    for (int i = 0; i < pods; i++)
        journal_fixture_outcome(fixture, JOURNAL_APPLIED, steps[i]);
    journal_wait_hold(fixture->journal, wait, "paused");
    commit(fixture);
    journal_wait_end(fixture->journal, wait, "done");
    journal_fixture_end(fixture, operation, "completed");
    commit(fixture);
}

/* Birth, a rollout, a clean end (with its checkpoint), another run that ends in the middle, one more. */
static void life(struct journal_fixture *fixture)
{
    if (!try_open(fixture))
        return;
    roll(fixture, 3);
    journal_fixture_stop(fixture);
    if (vfs_power_is_off() || !try_open(fixture))
        return;
    roll(fixture, 8);
    int64_t operation = journal_fixture_begin(fixture, "scale");
    journal_fixture_intent(fixture, operation, "mysql-9");
    commit(fixture);
    journal_fixture_crash(fixture);
    if (vfs_power_is_off() || !try_open(fixture))
        return;
    roll(fixture, 2);
    journal_fixture_stop(fixture);
}

/* The same with retention at work: a day passes between rollouts, two days are kept. */
static void long_life(struct journal_fixture *fixture)
{
    fixture->options.retention_us = 2 * 24 * 3600 * US_PER_S;
    for (int day = 0; day < 6; day++) {
        if (vfs_power_is_off() || !try_open(fixture))
            return;
        roll(fixture, 2);
        env_sim_run_for(fixture->env, 24 * 3600 * US_PER_S);
    }
    journal_fixture_crash(fixture);
}

/* Enough rows for a checkpoint in the middle of it. */
static void fat_life(struct journal_fixture *fixture)
{
    char words[3000];
    memset(words, 'x', sizeof(words));
    words[sizeof(words) - 1] = '\0';
    if (!try_open(fixture))
        return;
    for (int round = 0; round < 3 && !vfs_power_is_off(); round++) {
        for (int i = 0; i < 2800; i++)
            journal_fixture_note(fixture, words);
        commit(fixture);
        roll(fixture, 2);
    }
    journal_fixture_crash(fixture);
}

/* The power is back: the file opens, has all that was acknowledged, verifies, and life goes on. */
static char *check_after(struct journal_fixture *fixture)
{
    CLEANUP_ERROR struct error *err = NULL;
    fixture->options.vfs = NULL;
    if (journal_open(fixture->env, &fixture->options, &fixture->journal, &err) < 0)
        return xstrdup(error_text(err));
    if (acknowledged.head && journal_check_head(fixture->journal, acknowledged.head) != JOURNAL_HEAD_GOES_ON)
        return xasprintf("acknowledged entry %lld is lost", (long long)acknowledged.seq);
    char *problem = journal_fixture_verify(fixture);
    if (problem)
        return problem;
    journal_fixture_note(fixture, "life goes on");
    journal_fixture_settle(fixture);
    journal_fixture_stop(fixture);
    return journal_fixture_verify(fixture);
}

struct trial {
    void (*life)(struct journal_fixture *fixture);
    bool lies;
    int64_t calls; /* out */
    char *problem; /* out; the caller's */
};

/* One life with the power cut at call k (0: never). */
static void live_and_check(struct trial *trial, int64_t k, uint64_t seed)
{
    struct journal_fixture fixture;
    journal_fixture_setup(&fixture);
    acknowledged = (struct acknowledged){.fixture = &fixture};
    fixture.options.vfs = VFS_POWER_NAME;
    /* A folder where the ballast would lie: none is made, which saves most of the time. */
    CLEANUP_FREE char *no_ballast = xasprintf("%s-ballast", fixture.path);
    assert_int_equal(mkdir(no_ballast, 0700), 0);
    vfs_power_begin(k, seed);
    vfs_power_set_lying(trial->lies);
    trial->life(&fixture);
    trial->calls = vfs_power_calls();
    assert_true(k == 0 || vfs_power_is_off());
    journal_fixture_crash(&fixture);
    vfs_power_restore();
    fixture.options.retention_us = 0;
    free(trial->problem);
    trial->problem = check_after(&fixture);
    free(acknowledged.head);
    journal_fixture_teardown(&fixture);
}

/* Every call, or so many of them spread evenly. */
static void cut_at_each_call(void (*life_of)(struct journal_fixture *), int cuts_max, int seeds)
{
    struct trial trial = {.life = life_of};
    live_and_check(&trial, 0, 1);
    assert_null(trial.problem);
    assert_true(acknowledged.count > 4);
    int64_t calls = trial.calls;
    int64_t stride = MAX((int64_t)1, (calls + cuts_max - 1) / cuts_max);
    int cuts = 0;
    for (int64_t k = 1; k <= calls; k += stride) {
        for (int seed = 0; seed < seeds; seed++, cuts++) {
            live_and_check(&trial, k, (uint64_t)(k * 1000 + seed));
            if (trial.problem)
                fail_msg("cut at call %lld, seed %d: %s", (long long)k, seed, trial.problem);
        }
    }
    print_message("%lld calls, %d power cuts\n", (long long)calls, cuts);
    assert_true(cuts >= MIN(calls, cuts_max) * seeds / 2);
}

static void a_cut_at_any_call_loses_nothing_that_was_acknowledged(void **state)
{
    (void)state;
    cut_at_each_call(life, LIFE_CUTS, SEEDS);
}

static void a_cut_while_retention_works_loses_nothing_either(void **state)
{
    (void)state;
    cut_at_each_call(long_life, LONG_LIFE_CUTS, 1);
}

static void a_cut_around_checkpoints_loses_nothing_either(void **state)
{
    (void)state;
    cut_at_each_call(fat_life, FAT_LIFE_CUTS, 1);
}

/* So the test can fail: on a disk that lies about its syncs it must. */
static void a_disk_that_lies_is_caught(void **state)
{
    (void)state;
    struct trial trial = {.life = life, .lies = true};
    int caught = 0;
    for (int64_t k = 100; k < 300; k += 10) {
        live_and_check(&trial, k, (uint64_t)k);
        caught += trial.problem != NULL;
    }
    free(trial.problem);
    print_message("20 power cuts on a disk that lies, %d noticed\n", caught);
    assert_true(caught >= 10);
}

int main(void)
{
    vfs_power_register();
    journal_fixture_use_memory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_at_any_call_loses_nothing_that_was_acknowledged),
        cmocka_unit_test(a_cut_while_retention_works_loses_nothing_either),
        cmocka_unit_test(a_cut_around_checkpoints_loses_nothing_either),
        cmocka_unit_test(a_disk_that_lies_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
