/* SPDX-License-Identifier: Apache-2.0
 *
 * Disks that are slow, frozen, full or broken: what the journal says, and what it does not claim. */
#include "journal_fixture.h"
#include "vfs_fault.h"

#include "base/time_text.h"
#include "journal/ballast.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct scene {
    struct journal_fixture fixture;
    int64_t work_us; /* how long the worker takes */
    int health_changes;
    int durable;
    int warnings;
    char warning[512];
};

static int64_t work_takes(void *context)
{
    const struct scene *scene = context;
    return scene->work_us;
}

static void on_health(void *context)
{
    ((struct scene *)context)->health_changes++;
}

static void on_durable(void *context)
{
    ((struct scene *)context)->durable++;
}

static int setup(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    vfs_fault_register();
    journal_fixture_setup(&scene->fixture);
    scene->fixture.options.vfs = VFS_FAULT_NAME;
    scene->fixture.options.renew_deadline_us = 15 * US_PER_S;
    env_sim_on_work(scene->fixture.env, work_takes, scene);
    journal_fixture_open(&scene->fixture);
    journal_on_health(scene->fixture.journal, on_health, scene);
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    vfs_fault_reset();
    journal_fixture_teardown(&scene->fixture);
    free(scene);
    return 0;
}

static int64_t note_and_commit(struct scene *scene)
{
    int64_t seq = journal_fixture_note(&scene->fixture, "x");
    journal_when_durable(scene->fixture.journal, seq, on_durable, scene);
    journal_commit(scene->fixture.journal);
    return seq;
}

static void run_for(struct scene *scene, int64_t duration_us)
{
    env_sim_run_for(scene->fixture.env, duration_us);
}

static bool has_ballast(const struct scene *scene)
{
    CLEANUP_FREE char *path = xasprintf("%s-ballast", scene->fixture.path);
    struct stat status;
    return stat(path, &status) == 0 && status.st_size == BALLAST_BYTES;
}

/* --- slow ------------------------------------------------------------------------------------- */

static void a_commit_that_takes_a_third_of_the_renew_deadline_turns_it_slow_until_it_is_done(void **state)
{
    struct scene *scene = *state;
    struct journal *journal = scene->fixture.journal;
    scene->work_us = 6 * US_PER_S;
    int64_t seq = note_and_commit(scene);
    run_for(scene, 4999 * US_PER_MS);
    assert_int_equal(journal_health(journal), JOURNAL_WELL);
    assert_int_equal(journal_commit_age_us(journal), 4999 * US_PER_MS);
    run_for(scene, 2 * US_PER_MS);
    assert_int_equal(journal_health(journal), JOURNAL_SLOW);
    assert_int_equal(scene->health_changes, 1);
    assert_non_null(strstr(journal_problem(journal), "slow"));
    assert_true(journal_durable_seq(journal) < seq);
    run_for(scene, US_PER_S);
    assert_int_equal(journal_health(journal), JOURNAL_WELL);
    assert_int_equal(scene->health_changes, 2);
    assert_int_equal(journal_durable_seq(journal), seq);
    assert_int_equal(journal_commit_age_us(journal), 0);
    assert_string_equal(journal_problem(journal), "");
}

static void a_commit_that_waits_behind_a_frozen_one_is_as_late(void **state)
{
    struct scene *scene = *state;
    struct journal *journal = scene->fixture.journal;
    scene->work_us = 4 * US_PER_S;
    note_and_commit(scene);
    run_for(scene, US_PER_S);
    int64_t second = note_and_commit(scene);
    run_for(scene, 4500 * US_PER_MS);
    assert_int_equal(scene->durable, 1);
    assert_int_equal(journal_health(journal), JOURNAL_WELL);
    assert_int_equal(journal_commit_age_us(journal), 4500 * US_PER_MS);
    run_for(scene, US_PER_S);
    assert_int_equal(journal_health(journal), JOURNAL_SLOW);
    run_for(scene, 3 * US_PER_S);
    assert_int_equal(journal_health(journal), JOURNAL_WELL);
    assert_int_equal(journal_durable_seq(journal), second);
    assert_int_equal(scene->durable, 2);
}

static void a_crash_during_a_commit_that_has_not_begun_loses_it_and_the_loop_forgets_it(void **state)
{
    struct scene *scene = *state;
    scene->work_us = 4 * US_PER_S;
    note_and_commit(scene);
    run_for(scene, US_PER_S);
    journal_fixture_crash(&scene->fixture);
    run_for(scene, 10 * US_PER_S);
    assert_int_equal(scene->durable, 0);
    assert_string_equal(journal_fixture_sql(scene->fixture.path, "SELECT count(*) FROM entry"), "1");
}

/* --- full ------------------------------------------------------------------------------------- */

static void a_full_disk_is_survived_and_carried_on_from(void **state)
{
    struct scene *scene = *state;
    struct journal *journal = scene->fixture.journal;
    assert_true(has_ballast(scene));
    vfs_fault_set_full(true);
    int64_t seq = note_and_commit(scene);
    run_for(scene, US_PER_S / 2);
    assert_int_equal(journal_health(journal), JOURNAL_FULL);
    assert_non_null(strstr(journal_problem(journal), "full"));
    assert_non_null(strstr(journal_problem(journal), "goes on by itself"));
    assert_int_equal(scene->durable, 0);
    assert_true(journal_durable_seq(journal) < seq);
    assert_false(has_ballast(scene)); /* given up first */
    run_for(scene, 60 * US_PER_S);
    assert_int_equal(journal_health(journal), JOURNAL_FULL);
    int64_t second = note_and_commit(scene);
    vfs_fault_set_full(false);
    run_for(scene, 15 * US_PER_S);
    assert_int_equal(journal_health(journal), JOURNAL_WELL);
    assert_int_equal(journal_durable_seq(journal), second);
    assert_int_equal(scene->durable, 2);
    assert_true(has_ballast(scene)); /* and made again */
}

static void readers_see_nothing_of_what_found_no_room(void **state)
{
    struct scene *scene = *state;
    vfs_fault_set_full(true);
    note_and_commit(scene);
    run_for(scene, 3 * US_PER_S);
    assert_string_equal(journal_fixture_sql(scene->fixture.path, "SELECT max(seq) FROM entry"), "1");
}

static void the_ballast_makes_room_for_what_is_under_way_and_nothing_new_is_sent(void **state)
{
    struct scene *scene = *state;
    struct journal *journal = scene->fixture.journal;
    /* Only the first write finds no room: what the ballast gave is enough for the second try. */
    vfs_fault_arm(VFS_FAULT_WRITE, 1, false, SQLITE_FULL);
    int64_t seq = note_and_commit(scene);
    while (journal_durable_seq(journal) < seq)
        assert_true(env_sim_step(scene->fixture.env));
    assert_int_equal(scene->durable, 1);
    assert_int_equal(journal_health(journal), JOURNAL_FULL);
    run_for(scene, 10 * US_PER_S);
    /* There is room for a ballast again. */
    assert_int_equal(journal_health(journal), JOURNAL_WELL);
    assert_true(has_ballast(scene));
}

static void a_stop_on_a_full_disk_ends_in_peace(void **state)
{
    struct scene *scene = *state;
    vfs_fault_set_full(true);
    note_and_commit(scene);
    run_for(scene, US_PER_S);
    journal_fixture_stop(&scene->fixture);
    vfs_fault_set_full(false);
    assert_string_equal(journal_fixture_sql(scene->fixture.path, "SELECT group_concat(kind) FROM entry"),
                        "start");
}

/* --- broken ----------------------------------------------------------------------------------- */

static void a_failed_sync_is_unknown_and_ends_the_process(void **state)
{
    struct scene *scene = *state;
    struct journal *journal = scene->fixture.journal;
    CLEANUP_FREE char *head = journal_head_text(journal);
    vfs_fault_arm(VFS_FAULT_SYNC, 1, false, 0);
    int64_t seq = note_and_commit(scene);
    run_for(scene, 60 * US_PER_S);
    assert_int_equal(journal_health(journal), JOURNAL_DEAD);
    assert_int_equal(scene->health_changes, 1);
    assert_non_null(strstr(journal_problem(journal), "unknown"));
    assert_int_equal(scene->durable, 0);
    assert_true(journal_durable_seq(journal) < seq);
    CLEANUP_FREE char *after = journal_head_text(journal);
    assert_string_equal(after, head);
    /* Nothing is tried any more. */
    note_and_commit(scene);
    run_for(scene, 60 * US_PER_S);
    assert_int_equal(vfs_fault_failures(), 1);
    assert_int_equal(journal_durable_seq(journal), seq - 1);
}

static void the_row_of_a_failed_sync_may_be_back_after_the_restart_and_the_chain_goes_on(void **state)
{
    struct scene *scene = *state;
    int64_t operation = journal_fixture_begin(&scene->fixture, "rollout");
    journal_fixture_settle(&scene->fixture);
    int64_t step = journal_fixture_intent(&scene->fixture, operation, "mysql-4");
    vfs_fault_arm(VFS_FAULT_SYNC, 1, false, 0);
    journal_commit(scene->fixture.journal);
    run_for(scene, US_PER_S);
    assert_int_equal(journal_health(scene->fixture.journal), JOURNAL_DEAD);
    assert_true(journal_durable_seq(scene->fixture.journal) < step);
    journal_fixture_crash(&scene->fixture);
    vfs_fault_reset();
    journal_fixture_open(&scene->fixture);
    /* It is: an open step, to be resolved by reading the cluster, and its seq is not used again. */
    assert_non_null(journal_open_step_find(scene->fixture.journal, step));
    assert_true(journal_run(scene->fixture.journal) > step);
    journal_fixture_outcome(&scene->fixture, JOURNAL_ABSENT, step);
    journal_fixture_settle(&scene->fixture);
    assert_string_equal(journal_fixture_sql(scene->fixture.path, "SELECT count(*) = max(seq) FROM entry"),
                        "1");
}

static void a_failed_checkpoint_sync_ends_the_process_too(void **state)
{
    struct scene *scene = *state;
    struct journal *journal = scene->fixture.journal;
    /* Enough pages for a checkpoint: its first sync is the second one from here on. */
    for (int i = 0; i < 60000; i++)
        journal_fixture_note(&scene->fixture, "a row to fill the pages of the write-ahead log with");
    vfs_fault_arm(VFS_FAULT_SYNC, 2, true, 0);
    journal_commit(journal);
    run_for(scene, 60 * US_PER_S);
    assert_int_equal(journal_health(journal), JOURNAL_DEAD);
}

static void the_wal_is_checkpointed_and_used_anew(void **state)
{
    struct scene *scene = *state;
    struct journal_metrics metrics;
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 500; i++)
            journal_fixture_note(&scene->fixture, "a row to fill the pages of the write-ahead log with");
        journal_fixture_settle(&scene->fixture);
        run_for(scene, 1);
        journal_metrics_get(scene->fixture.journal, &metrics);
        assert_true(metrics.wal_bytes <= 20 << 20);
    }
    assert_true(metrics.file_bytes > 8 << 20); /* so it did reach the file */
}

/* A long log left behind makes a start begin with a checkpoint: a stop right then must not take that for a
 * commit. */
static void a_stop_while_the_first_checkpoint_is_under_way_is_clean(void **state)
{
    struct scene *scene = *state;
    sqlite3 *reader = NULL;
    assert_int_equal(sqlite3_open_v2(scene->fixture.path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT * FROM meta", NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < 60000; i++)
        journal_fixture_note(&scene->fixture, "a row to fill the pages of the write-ahead log with");
    journal_fixture_settle(&scene->fixture);
    journal_fixture_crash(&scene->fixture);
    sqlite3_close(reader);
    for (int events = 0; events < 3; events++) {
        journal_fixture_open(&scene->fixture);
        for (int i = 0; i < events; i++)
            env_sim_step(scene->fixture.env);
        if (events == 2)
            journal_fixture_stop(&scene->fixture);
        else
            journal_fixture_crash(&scene->fixture);
        run_for(scene, US_PER_S);
    }
    assert_string_equal(
        journal_fixture_sql(scene->fixture.path, "SELECT kind FROM entry ORDER BY seq DESC LIMIT 1"), "stop");
}

static void a_stranger_who_writes_delays_and_then_ends_us(void **state)
{
    struct scene *scene = *state;
    struct journal *journal = scene->fixture.journal;
    sqlite3 *stranger = NULL;
    assert_int_equal(sqlite3_open(scene->fixture.path, &stranger), SQLITE_OK);
    assert_int_equal(sqlite3_exec(stranger, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    int64_t seq = note_and_commit(scene);
    run_for(scene, 3 * US_PER_S);
    assert_int_equal(journal_health(journal), JOURNAL_WELL);
    assert_int_equal(sqlite3_exec(stranger, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    run_for(scene, US_PER_S);
    assert_int_equal(journal_durable_seq(journal), seq);
    assert_int_equal(sqlite3_exec(stranger, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    note_and_commit(scene);
    run_for(scene, 16 * US_PER_S);
    assert_int_equal(journal_health(journal), JOURNAL_DEAD);
    assert_non_null(strstr(journal_problem(journal), "another process writes"));
    sqlite3_close(stranger);
}

/* Takes the write lock in a process of its own and keeps it until the pipe is closed; it says when it has it.
 */
static void lock_and_wait(const char *path, int said, int waits)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        _exit(1);
    char byte = 'y';
    if (write(said, &byte, 1) == 1)
        (void)!read(waits, &byte, 1);
    _exit(0);
}

static void a_stranger_who_writes_is_named_and_is_no_slow_disk(void **state)
{
    struct scene *scene = *state;
    struct journal *journal = scene->fixture.journal;
    int said[2], waits[2];
    assert_int_equal(pipe2(said, O_CLOEXEC), 0);
    assert_int_equal(pipe2(waits, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        close(waits[1]);
        lock_and_wait(scene->fixture.path, said[1], waits[0]);
    }
    char byte = 0;
    assert_int_equal(read(said[0], &byte, 1), 1);
    note_and_commit(scene);
    run_for(scene, 6 * US_PER_S);
    assert_int_equal(journal_health(journal), JOURNAL_SLOW);
    CLEANUP_FREE char *words = xasprintf("is locked for writing by process %d (", (int)child);
    assert_non_null(strstr(journal_problem(journal), words));
    assert_non_null(strstr(journal_problem(journal), "sqlite3 -readonly"));
    assert_null(strstr(journal_problem(journal), "slow"));
    close(waits[1]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    run_for(scene, US_PER_S);
    assert_int_equal(journal_health(journal), JOURNAL_WELL);
    close(said[0]);
    close(said[1]);
    close(waits[0]);
}

static void take_warning(void *context, const char *sentence)
{
    struct scene *scene = context;
    scene->warnings++;
    snprintf(scene->warning, sizeof(scene->warning), "%s", sentence);
}

static void a_wal_that_grows_is_warned_of_once_a_step(void **state)
{
    struct scene *scene = *state;
    journal_fixture_crash(&scene->fixture);
    scene->fixture.options.wal_warn_bytes = 1 << 20;
    journal_fixture_open(&scene->fixture);
    journal_on_warning(scene->fixture.journal, take_warning, scene);
    sqlite3 *reader = NULL;
    assert_int_equal(sqlite3_open_v2(scene->fixture.path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT * FROM meta", NULL, NULL, NULL), SQLITE_OK);
    static char words[4096];
    memset(words, 'w', sizeof(words) - 1);
    /* Three pages a commit, or a few more: 2.5 MiB and no more than 3.9. */
    for (int i = 0; i < 220; i++) {
        journal_fixture_note(&scene->fixture, words);
        journal_fixture_settle(&scene->fixture);
    }
    struct journal_metrics metrics;
    journal_metrics_get(scene->fixture.journal, &metrics);
    assert_in_range(metrics.wal_bytes, 2 << 20, (4 << 20) - 1);
    assert_int_equal(scene->warnings, 2);
    assert_non_null(strstr(scene->warning, "journal.db-wal has grown to 2 MiB"));
    assert_int_equal(journal_health(scene->fixture.journal), JOURNAL_WELL);
    sqlite3_close(reader);
}

static void a_file_that_is_moved_or_removed_in_use_ends_the_process(void **state)
{
    static const char *const ends[] = {"journal.db", "journal.db-wal", "journal.lock"};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        void *own = NULL;
        setup(&own);
        struct scene *scene = own;
        note_and_commit(scene);
        run_for(scene, US_PER_S);
        assert_int_equal(scene->durable, 1);
        CLEANUP_FREE char *path = xasprintf("%s/%s", scene->fixture.folder, ends[i]);
        assert_int_equal(unlink(path), 0);
        note_and_commit(scene);
        run_for(scene, US_PER_S);
        assert_int_equal(scene->durable, 1);
        assert_int_equal(journal_health(scene->fixture.journal), JOURNAL_DEAD);
        assert_non_null(strstr(journal_problem(scene->fixture.journal), ends[i]));
        assert_non_null(strstr(journal_problem(scene->fixture.journal), "moved, removed or replaced"));
        teardown(&own);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_commit_that_takes_a_third_of_the_renew_deadline_turns_it_slow_until_it_is_done),
        TEST(a_commit_that_waits_behind_a_frozen_one_is_as_late),
        TEST(a_crash_during_a_commit_that_has_not_begun_loses_it_and_the_loop_forgets_it),
        TEST(a_full_disk_is_survived_and_carried_on_from),
        TEST(readers_see_nothing_of_what_found_no_room),
        TEST(the_ballast_makes_room_for_what_is_under_way_and_nothing_new_is_sent),
        TEST(a_stop_on_a_full_disk_ends_in_peace),
        TEST(a_failed_sync_is_unknown_and_ends_the_process),
        TEST(the_row_of_a_failed_sync_may_be_back_after_the_restart_and_the_chain_goes_on),
        TEST(a_failed_checkpoint_sync_ends_the_process_too),
        TEST(the_wal_is_checkpointed_and_used_anew),
        cmocka_unit_test(a_file_that_is_moved_or_removed_in_use_ends_the_process),
        TEST(a_stop_while_the_first_checkpoint_is_under_way_is_clean),
        TEST(a_stranger_who_writes_delays_and_then_ends_us),
        TEST(a_stranger_who_writes_is_named_and_is_no_slow_disk),
        TEST(a_wal_that_grows_is_warned_of_once_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
