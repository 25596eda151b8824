/* SPDX-License-Identifier: Apache-2.0
 *
 * The k-th write, sync, read, open, truncation, mapping or allocation fails, once or from then on, for each
 * k: nothing crashes, nothing is claimed that is not so, and the next start finds a journal that verifies and
 * has all that was acknowledged. */
#include "journal_fixture.h"
#include "vfs_fault.h"

#include "base/time_text.h"
#include "journal/verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <sys/stat.h>

/* --- allocations ------------------------------------------------------------------------------ */

static sqlite3_mem_methods under_memory;
static int64_t allocations;
static int64_t allocation_fails_at; /* 0: never */
static bool allocation_fails_on;
static int64_t allocation_failures;

static bool allocation_fails(void)
{
    if (!allocation_fails_at)
        return false;
    allocations++;
    bool fails =
        allocations == allocation_fails_at || (allocations > allocation_fails_at && allocation_fails_on);
    allocation_failures += fails;
    return fails;
}

static void *failing_malloc(int size)
{
    return allocation_fails() ? NULL : under_memory.xMalloc(size);
}

static void *failing_realloc(void *old, int size)
{
    return allocation_fails() ? NULL : under_memory.xRealloc(old, size);
}

/* Before SQLite's first use in the process. */
static void wrap_allocations(void)
{
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &under_memory), SQLITE_OK);
    sqlite3_mem_methods methods = under_memory;
    methods.xMalloc = failing_malloc;
    methods.xRealloc = failing_realloc;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods), SQLITE_OK);
}

/* --- one life --------------------------------------------------------------------------------- */

struct acknowledged {
    struct journal_fixture *fixture;
    char *head;
    int64_t seq;
    int count;
};

static struct acknowledged acknowledged;

static void on_durable(void *context)
{
    struct acknowledged *said = context;
    free(said->head);
    said->head = journal_head_text(said->fixture->journal);
    said->seq = journal_durable_seq(said->fixture->journal);
    said->count++;
}

static void commit(struct journal_fixture *fixture)
{
    journal_when_durable(fixture->journal, journal_next_seq(fixture->journal) - 1, on_durable, &acknowledged);
    journal_commit(fixture->journal);
    env_sim_run_for(fixture->env, US_PER_S);
}

static bool try_open(struct journal_fixture *fixture)
{
    CLEANUP_ERROR struct error *err = NULL;
    int result = journal_open(fixture->env, &fixture->options, &fixture->journal, &err);
    assert_true(result == 0 || (err && err->text[0]));
    return result == 0;
}

/* What a run before left open is closed first, as recovery does. */
static void recover(struct journal_fixture *fixture)
{
    const struct journal_open_step *step = journal_open_step_on(fixture->journal, "Pod", "db", "mysql-4");
    if (step)
        journal_fixture_outcome(fixture, JOURNAL_OVERTAKEN, step->seq);
    const struct journal_open_operation *operation =
        journal_open_operation_find(fixture->journal, "rollout", "NeoSet", "db", "mysql");
    if (operation)
        journal_fixture_end(fixture, operation->seq, "cancelled");
}

static void roll(struct journal_fixture *fixture)
{
    recover(fixture);
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    int64_t step = journal_fixture_intent(fixture, operation, "mysql-4");
    commit(fixture);
    journal_fixture_outcome(fixture, JOURNAL_UNKNOWN, step);
    commit(fixture);
    journal_fixture_outcome(fixture, JOURNAL_APPLIED, step);
    journal_fixture_end(fixture, operation, "completed");
    commit(fixture);
}

/* An open step from the run before, recovery, a rollout, a clean end, another start. */
static void life(struct journal_fixture *fixture)
{
    if (!try_open(fixture))
        return;
    roll(fixture);
    journal_fixture_stop(fixture);
    if (!try_open(fixture))
        return;
    roll(fixture);
    journal_fixture_crash(fixture);
}

/* A journal with something in it, closed as by a crash: the WAL is left behind. */
static void prepare(struct journal_fixture *fixture)
{
    journal_fixture_setup(fixture);
    CLEANUP_FREE char *no_ballast = xasprintf("%s-ballast", fixture->path);
    assert_int_equal(mkdir(no_ballast, 0700), 0);
    fixture->options.vfs = VFS_FAULT_NAME;
    acknowledged = (struct acknowledged){.fixture = fixture};
    journal_fixture_open(fixture);
    roll(fixture);
    int64_t operation = journal_fixture_begin(fixture, "scale");
    journal_fixture_intent(fixture, operation, "mysql-0");
    commit(fixture);
    journal_fixture_crash(fixture);
}

static char *check_after(struct journal_fixture *fixture)
{
    CLEANUP_ERROR struct error *err = NULL;
    if (journal_open(fixture->env, &fixture->options, &fixture->journal, &err) < 0)
        return xstrdup(error_text(err));
    if (acknowledged.head && journal_check_head(fixture->journal, acknowledged.head) != JOURNAL_HEAD_GOES_ON)
        return xasprintf("acknowledged entry %lld is lost", (long long)acknowledged.seq);
    if (!journal_open_step_on(fixture->journal, "Pod", "db", "mysql-0"))
        return xstrdup("the open step is lost");
    journal_fixture_stop(fixture);
    return journal_fixture_verify(fixture);
}

/* Arms the k-th failure; disarms and says how many there were. */
struct injector {
    const char *name;
    void (*arm)(int64_t k, bool sticky);
    int64_t (*disarm)(void);
};

static void fail_each(const struct injector *injector, int stride, bool sticky)
{
    int trials = 0;
    for (int64_t k = 1;; k += stride, trials++) {
        struct journal_fixture fixture;
        prepare(&fixture);
        injector->arm(k, sticky);
        life(&fixture);
        journal_fixture_crash(&fixture);
        int64_t failures = injector->disarm();
        CLEANUP_FREE char *problem = check_after(&fixture);
        if (problem)
            fail_msg("%s %lld%s: %s", injector->name, (long long)k, sticky ? " and later" : "", problem);
        free(acknowledged.head);
        journal_fixture_teardown(&fixture);
        if (failures == 0)
            break;
    }
    print_message("%s%s: %d failures\n", injector->name, sticky ? ", and later ones" : "", trials);
    assert_true(trials > 0);
}

static unsigned armed_kinds;
static int armed_code;

static void arm_disk(int64_t k, bool sticky)
{
    vfs_fault_arm(armed_kinds, k, sticky, armed_code);
}

static int64_t disarm_disk(void)
{
    int64_t failures = vfs_fault_failures();
    vfs_fault_reset();
    return failures;
}

static void arm_memory(int64_t k, bool sticky)
{
    allocations = 0;
    allocation_failures = 0;
    allocation_fails_on = sticky;
    allocation_fails_at = k;
}

static int64_t disarm_memory(void)
{
    allocation_fails_at = 0;
    return allocation_failures;
}

static void any_call_to_the_disk_may_fail(void **state)
{
    static const struct {
        const char *name;
        unsigned kinds;
        int code;
    } cases[] = {
        {"write", VFS_FAULT_WRITE, 0},     {"write on a full disk", VFS_FAULT_WRITE, SQLITE_FULL},
        {"sync", VFS_FAULT_SYNC, 0},       {"read", VFS_FAULT_READ, 0},
        {"open", VFS_FAULT_OPEN, 0},       {"truncation", VFS_FAULT_TRUNCATE, 0},
        {"mapping", VFS_FAULT_SHM, 0},     {"mapping on a full disk", VFS_FAULT_SHM, SQLITE_IOERR_SHMSIZE},
        {"deletion", VFS_FAULT_DELETE, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct injector injector = {.name = cases[i].name, .arm = arm_disk, .disarm = disarm_disk};
        armed_kinds = cases[i].kinds;
        armed_code = cases[i].code;
        if (cases[i].kinds == VFS_FAULT_DELETE || cases[i].kinds == VFS_FAULT_TRUNCATE)
            continue; /* such calls are rare in this life: see the birth below */
        fail_each(&injector, 1, false);
        fail_each(&injector, 1, true);
    }
}

/* The file is made: the same with nothing there before. */
static void any_call_while_the_file_is_made_may_fail(void **state)
{
    (void)state;
    int trials = 0;
    for (int sticky = 0; sticky < 2; sticky++) {
        for (int64_t k = 1;; k++, trials++) {
            struct journal_fixture fixture;
            CLEANUP_ERROR struct error *err = NULL;
            journal_fixture_setup(&fixture);
            fixture.options.vfs = VFS_FAULT_NAME;
            vfs_fault_arm(VFS_FAULT_ALL & ~VFS_FAULT_READ, k, sticky, 0);
            int result = journal_open(fixture.env, &fixture.options, &fixture.journal, &err);
            assert_true(result == 0 || (err && err->text[0]));
            journal_fixture_crash(&fixture);
            int64_t failures = disarm_disk();
            journal_fixture_open(&fixture);
            journal_fixture_teardown(&fixture);
            if (failures == 0)
                break;
        }
    }
    print_message("birth: %d failures\n", trials);
    assert_true(trials > 20);
}

static void any_allocation_of_the_library_may_fail(void **state)
{
    static const struct injector injector = {
        .name = "allocation", .arm = arm_memory, .disarm = disarm_memory};
    (void)state;
    fail_each(&injector, 7, false);
    fail_each(&injector, 61, true);
}

static bool go_on(void *context, const struct journal_entry *entry)
{
    (void)entry;
    ++*(int *)context;
    return true;
}

/* The read side: an error or the whole truth, never a part of it. */
static void any_allocation_of_the_reader_may_fail(void **state)
{
    (void)state;
    struct journal_fixture fixture;
    int failed = 0;
    int done = 0;
    prepare(&fixture);
    for (int64_t k = 1; done == 0; k += 3) {
        struct journal_reader *reader = NULL;
        struct error *err = NULL;
        struct journal_verify_options options = {.quick = true};
        struct journal_verify_result result;
        int entries = 0;
        arm_memory(k, false);
        int code = journal_reader_open(fixture.path, &reader, &err);
        if (code == 0)
            code = journal_read_entries(reader, &(struct journal_entry_filter){0}, go_on, &entries, &err);
        if (code == 0)
            assert_int_equal(entries, journal_reader_meta(reader)->head_seq);
        if (code == 0)
            code = journal_verify(reader, &options, &result, &err);
        if (code == 0) {
            assert_int_equal(result.finding_count, 0);
            journal_verify_result_done(&result);
        }
        assert_true(code == 0 || (err && err->text[0]));
        failed += code != 0;
        journal_reader_close(reader);
        error_free(err);
        done = disarm_memory() == 0;
    }
    print_message("reader: %d failures\n", failed);
    assert_true(failed > 20);
    free(acknowledged.head);
    journal_fixture_teardown(&fixture);
}

int main(void)
{
    wrap_allocations();
    vfs_fault_register();
    journal_fixture_use_memory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_call_to_the_disk_may_fail),
        cmocka_unit_test(any_call_while_the_file_is_made_may_fail),
        cmocka_unit_test(any_allocation_of_the_library_may_fail),
        cmocka_unit_test(any_allocation_of_the_reader_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
