/* SPDX-License-Identifier: Apache-2.0
 *
 * On the real loop with its worker: a disk that freezes for six seconds stops no timer; a reader that stands
 * still in the middle of an export does not make the write-ahead log grow. */
#include "journal_fixture.h"
#include "vfs_fault.h"

#include "base/time_text.h"
#include "journal/reader.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#define FROZEN_US (6 * US_PER_S)
#define TICK_US (50 * US_PER_MS)

struct scene {
    struct journal_fixture fixture;
    struct env *env; /* the real one */
    struct journal *journal;
    int ticks;
    int ticks_while_frozen;
    bool frozen;
    bool was_slow;
    int64_t left;
};

static int setup(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    vfs_fault_register();
    journal_fixture_setup(&scene->fixture);
    scene->env = env_real_make();
    struct journal_options options = scene->fixture.options;
    options.vfs = VFS_FAULT_NAME;
    struct error *err = NULL;
    if (journal_open(scene->env, &options, &scene->journal, &err) < 0)
        fail_msg("%s", error_text(err));
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    vfs_fault_reset();
    journal_close(scene->journal, "tested");
    env_free(scene->env);
    journal_fixture_teardown(&scene->fixture);
    free(scene);
    return 0;
}

/* --- frozen ----------------------------------------------------------------------------------- */

static void tick(void *context)
{
    struct scene *scene = context;
    scene->ticks++;
    scene->ticks_while_frozen += scene->frozen;
    if (scene->frozen)
        (void)env_timer_start(scene->env, TICK_US, tick, scene);
}

static void on_health(void *context)
{
    struct scene *scene = context;
    scene->was_slow = scene->was_slow || journal_health(scene->journal) == JOURNAL_SLOW;
}

static void on_thawed(void *context)
{
    struct scene *scene = context;
    scene->frozen = false;
    env_stop(scene->env);
}

static void a_commit_that_takes_six_seconds_stops_no_timer(void **state)
{
    struct scene *scene = *state;
    journal_on_health(scene->journal, on_health, scene);
    vfs_fault_set_sync_delay_us(FROZEN_US);
    int64_t seq =
        journal_append(scene->journal, &(struct journal_entry){.kind = JOURNAL_NOTE, .reason = "frozen"});
    journal_when_durable(scene->journal, seq, on_thawed, scene);
    scene->frozen = true;
    int64_t begin_us = env_boot_us(scene->env);
    journal_commit(scene->journal);
    (void)env_timer_start(scene->env, TICK_US, tick, scene);
    env_run(scene->env);
    vfs_fault_set_sync_delay_us(0);
    assert_true(env_boot_us(scene->env) - begin_us >= FROZEN_US);
    /* Far more than none, far fewer than there should be on an idle machine. */
    assert_true(scene->ticks_while_frozen >= 20);
    assert_true(scene->was_slow);
    assert_int_equal(journal_health(scene->journal), JOURNAL_WELL);
}

/* A stop in the middle of a frozen commit waits for it, and loses nothing. */
static void a_stop_during_a_slow_commit_waits_for_it(void **state)
{
    struct scene *scene = *state;
    vfs_fault_set_sync_delay_us(US_PER_S / 5);
    journal_append(scene->journal, &(struct journal_entry){.kind = JOURNAL_NOTE, .reason = "in flight"});
    journal_commit(scene->journal);
    usleep(50000); /* the worker has it now */
    journal_append(scene->journal, &(struct journal_entry){.kind = JOURNAL_NOTE, .reason = "pending"});
    journal_close(STEAL(scene->journal), "stopped");
    vfs_fault_set_sync_delay_us(0);
    assert_string_equal(
        journal_fixture_sql(scene->fixture.path, "SELECT group_concat(coalesce(reason, kind)) FROM entry"),
        "start,in flight,pending,stopped");
}

/* --- an export that nobody reads -------------------------------------------------------------- */

enum { ROWS = 25000, ROWS_A_COMMIT = 8, WAL_BYTES_MAX = 32 << 20 };

static bool print_entry(void *context, const struct journal_entry *entry)
{
    const int *fd = context;
    CLEANUP_FREE char *line =
        xasprintf("%lld,%s,%lld,%s\n", (long long)entry->seq, journal_kind_text(entry->kind),
                  (long long)entry->at_us, entry->reason ? entry->reason : "");
    return write(*fd, line, strlen(line)) == (ssize_t)strlen(line);
}

/* Blocks in write() once the pipe is full, as `neoset-audit export | less` does. */
static pid_t start_export(const struct scene *scene, int *ret_pipe)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct journal_reader *reader = NULL;
        close(ends[0]);
        if (journal_reader_open(scene->fixture.path, &reader, NULL) < 0)
            _exit(1);
        journal_read_entries(reader, &(struct journal_entry_filter){0}, print_entry, &ends[1], NULL);
        _exit(0);
    }
    close(ends[1]);
    *ret_pipe = ends[0];
    return child;
}

static void write_on(void *context)
{
    struct scene *scene = context;
    if (scene->left <= 0) {
        env_stop(scene->env);
        return;
    }
    for (int i = 0; i < ROWS_A_COMMIT; i++, scene->left--)
        journal_append(scene->journal,
                       &(struct journal_entry){.kind = JOURNAL_NOTE,
                                               .reason = "committed while an export stands still"});
    journal_when_durable(scene->journal, journal_next_seq(scene->journal) - 1, write_on, scene);
    journal_commit(scene->journal);
}

static void an_export_into_a_pipe_that_nobody_reads_does_not_make_the_log_grow(void **state)
{
    struct scene *scene = *state;
    scene->left = 5000;
    write_on(scene);
    env_run(scene->env);
    int from_export = -1;
    pid_t child = start_export(scene, &from_export);
    char first[1];
    assert_int_equal(read(from_export, first, 1), 1); /* it is in the middle of it */
    scene->left = ROWS;
    write_on(scene);
    env_run(scene->env);
    struct journal_metrics metrics;
    journal_metrics_get(scene->journal, &metrics);
    print_message("%d rows committed, the log has %lld bytes\n", ROWS, (long long)metrics.wal_bytes);
    assert_true(metrics.wal_bytes < WAL_BYTES_MAX);
    int status = 0;
    assert_int_equal(waitpid(child, &status, WNOHANG), 0); /* it still stands there */
    close(from_export);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    journal_fixture_use_memory();
    const struct CMUnitTest tests[] = {
        TEST(a_commit_that_takes_six_seconds_stops_no_timer),
        TEST(a_stop_during_a_slow_commit_waits_for_it),
        TEST(an_export_into_a_pipe_that_nobody_reads_does_not_make_the_log_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
