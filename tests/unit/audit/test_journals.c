/* SPDX-License-Identifier: Apache-2.0
 *
 * Several files as one history: merged by time, the same journal read once, a fork noticed. */
#include "history.h"

enum { FILES_MAX = 4 };

struct shelf {
    struct journal_fixture fixtures[FILES_MAX];
    size_t count;
    struct history history; /* only its output */
};

static int setup(void **state)
{
    struct shelf *shelf = xcalloc(1, sizeof *shelf);
    setlocale(LC_CTYPE, "C.UTF-8");
    history_catch(&shelf->history);
    *state = shelf;
    return 0;
}

static int teardown(void **state)
{
    struct shelf *shelf = *state;
    audit_close(&shelf->history.audit);
    out_done(&shelf->history.out);
    close(shelf->history.output);
    free(shelf->history.notices);
    for (size_t i = 0; i < shelf->count; i++)
        journal_fixture_teardown(&shelf->fixtures[i]);
    free(shelf);
    return 0;
}

/* A new, empty journal whose ids differ from the others'; its clock begins offset_us later. */
static struct journal_fixture *add_journal(struct shelf *shelf, int64_t offset_us)
{
    struct journal_fixture *fixture = &shelf->fixtures[shelf->count++];
    journal_fixture_setup(fixture);
    /* Another world: other random numbers. */
    env_free(fixture->env);
    fixture->env = env_sim_make(100 + shelf->count);
    env_sim_run_for(fixture->env, offset_us);
    journal_fixture_open(fixture);
    return fixture;
}

static void write_operation(struct journal_fixture *fixture, int64_t duration_us)
{
    int64_t operation = journal_fixture_begin(fixture, "rollout");
    int64_t step = journal_fixture_intent(fixture, operation, "mysql-0");
    journal_fixture_settle(fixture);
    env_sim_run_for(fixture->env, duration_us);
    journal_fixture_outcome(fixture, JOURNAL_APPLIED, step);
    journal_fixture_end(fixture, operation, "completed");
    journal_fixture_settle(fixture);
    env_sim_run_for(fixture->env, US_PER_S);
}

/* A copy of the file as it is now, of a stopped journal, in the same folder; the caller's path. */
static char *copy_file(const struct journal_fixture *fixture, const char *name)
{
    char *path = xasprintf("%s/%s", fixture->folder, name);
    struct journal_reader *reader = NULL;
    assert_int_equal(journal_reader_open(fixture->path, &reader, NULL), 0);
    assert_int_equal(journal_backup(reader, path, NULL, NULL, NULL), 0);
    journal_reader_close(reader);
    return path;
}

static int open_paths(struct shelf *shelf, const char *first, const char *second, struct error **err)
{
    const char *paths[] = {first, second};
    return audit_open(&shelf->history.audit, paths, ARRAY_SIZE(paths), err);
}

static void two_journals_are_merged_by_time_and_keep_their_order(void **state)
{
    struct shelf *shelf = *state;
    struct journal_fixture *first = add_journal(shelf, 0);
    struct journal_fixture *second = add_journal(shelf, 500 * US_PER_MS);
    for (int i = 0; i < 3; i++) {
        write_operation(first, 100 * US_PER_MS);
        write_operation(second, 100 * US_PER_MS);
    }
    /* The clock goes back: its rows stay in their own order. */
    env_sim_jump_wall(second->env, -3600 * US_PER_S);
    write_operation(second, 100 * US_PER_MS);
    journal_fixture_stop(first);
    journal_fixture_stop(second);
    struct audit *audit = &shelf->history.audit;
    assert_int_equal(open_paths(shelf, first->path, second->path, NULL), 0);
    assert_int_equal(audit->count, 2);
    const char *ids[] = {audit->journals[0].prefix, audit->journals[1].prefix};
    assert_int_equal(strlen(ids[0]), 4);
    assert_string_not_equal(ids[0], ids[1]);

    static const struct audit_filter begins = {.kind = "begin"};
    audit->look.format = SHEET_NAME;
    assert_int_equal(audit_export_entries(audit, &begins, NULL), 0);
    CLEANUP_FREE char *text = history_take(&shelf->history);
    CLEANUP_FREE char *wanted = xasprintf("%s:2\n%s:2\n%s:6\n%s:6\n%s:10\n%s:10\n%s:14\n", ids[0], ids[1],
                                          ids[0], ids[1], ids[0], ids[1], ids[1]);
    assert_string_equal(text, wanted);

    static const struct audit_filter all = {0};
    assert_int_equal(audit_list(audit, &all, NULL), 0);
    CLEANUP_FREE char *list = history_take(&shelf->history);
    CLEANUP_FREE char *newest_first = xasprintf("%s:10\n%s:6\n%s:2\n%s:14\n%s:10\n%s:6\n%s:2\n", ids[0],
                                                ids[0], ids[0], ids[1], ids[1], ids[1], ids[1]);
    assert_string_equal(list, newest_first);
    static const struct audit_filter two = {.limit = 2, .object = "NeoSet", .name = "mysql"};
    assert_int_equal(audit_export_steps(audit, &two, NULL), 0);
    CLEANUP_FREE char *steps = history_take(&shelf->history);
    CLEANUP_FREE char *two_steps = xasprintf("%s:3\n%s:3\n", ids[0], ids[1]);
    assert_string_equal(steps, two_steps);
}

static void ids_of_several_journals_are_understood(void **state)
{
    struct shelf *shelf = *state;
    struct journal_fixture *first = add_journal(shelf, 0);
    struct journal_fixture *second = add_journal(shelf, US_PER_S);
    write_operation(first, US_PER_S);
    write_operation(second, US_PER_S);
    write_operation(second, US_PER_S);
    journal_fixture_stop(first);
    journal_fixture_stop(second);
    struct audit *audit = &shelf->history.audit;
    assert_int_equal(open_paths(shelf, first->path, second->path, NULL), 0);
    struct audit_journal *journal = NULL;
    int64_t id = 0;
    CLEANUP_ERROR struct error *err = NULL;
    assert_int_equal(audit_find_operation(audit, "2", &journal, &id, &err), -ERROR_USAGE);
    assert_non_null(strstr(error_text(err), audit->journals[1].prefix));
    assert_int_equal(audit_find_operation(audit, "6", &journal, &id, NULL), 0);
    assert_ptr_equal(journal, &audit->journals[1]);
    CLEANUP_FREE char *whole = xasprintf("%s:2", audit->journals[0].prefix);
    assert_int_equal(audit_find_operation(audit, whole, &journal, &id, NULL), 0);
    assert_ptr_equal(journal, &audit->journals[0]);
    audit->look.format = SHEET_CSV;
    assert_int_equal(audit_show(audit, whole, NULL), 0);
    CLEANUP_FREE char *text = history_take(&shelf->history);
    CLEANUP_FREE char *quoted = xasprintf("\"%s\"", whole);
    assert_non_null(strstr(text, quoted));
}

static void the_same_journal_twice_is_read_once(void **state)
{
    struct shelf *shelf = *state;
    struct journal_fixture *fixture = add_journal(shelf, 0);
    write_operation(fixture, US_PER_S);
    journal_fixture_stop(fixture);
    assert_int_equal(open_paths(shelf, fixture->path, fixture->path, NULL), 0);
    assert_int_equal(shelf->history.audit.count, 1);
    assert_non_null(strstr(shelf->history.notices, "read once"));
}

/* An operation in the journal and in a copy of it, and one more in the journal alone; the copy's path. */
static char *write_and_leave_a_copy(struct journal_fixture *fixture, const char *name)
{
    write_operation(fixture, US_PER_S);
    journal_fixture_stop(fixture);
    char *copy = copy_file(fixture, name);
    journal_fixture_open(fixture);
    write_operation(fixture, US_PER_S);
    journal_fixture_stop(fixture);
    return copy;
}

static void an_older_copy_is_read_as_the_newer_file(void **state)
{
    struct shelf *shelf = *state;
    struct journal_fixture *fixture = add_journal(shelf, 0);
    CLEANUP_FREE char *copy = write_and_leave_a_copy(fixture, "older.db");
    assert_int_equal(open_paths(shelf, copy, fixture->path, NULL), 0);
    struct audit *audit = &shelf->history.audit;
    assert_int_equal(audit->count, 1);
    assert_string_equal(audit->journals[0].meta->path, fixture->path);
    assert_int_equal(audit->journals[0].meta->head_seq, 12);
}

static void a_fork_is_no_history(void **state)
{
    struct shelf *shelf = *state;
    struct journal_fixture *fixture = add_journal(shelf, 0);
    CLEANUP_FREE char *copy = write_and_leave_a_copy(fixture, "fork.db");
    /* The copy goes its own way. */
    struct journal_options options = fixture->options;
    options.path = copy;
    assert_int_equal(journal_open(fixture->env, &options, &fixture->journal, NULL), 0);
    write_operation(fixture, US_PER_S);
    write_operation(fixture, US_PER_S);
    journal_fixture_stop(fixture);
    CLEANUP_ERROR struct error *err = NULL;
    assert_int_equal(open_paths(shelf, fixture->path, copy, &err), -ERROR_FORKED);
    /* start, begin, intent, applied, end, stop are common; the next start differs. */
    assert_non_null(strstr(error_text(err), "differ from entry 7 on"));
    assert_non_null(strstr(error_text(err), copy));
}

static void verify_gives_each_journal_its_own_heads(void **state)
{
    struct shelf *shelf = *state;
    struct journal_fixture *first = add_journal(shelf, 0);
    struct journal_fixture *second = add_journal(shelf, 0);
    write_operation(first, US_PER_S);
    write_operation(second, US_PER_S);
    journal_fixture_stop(first);
    journal_fixture_stop(second);
    struct audit *audit = &shelf->history.audit;
    assert_int_equal(open_paths(shelf, first->path, second->path, NULL), 0);
    struct journal_head heads[2];
    for (size_t i = 0; i < 2; i++) {
        CLEANUP_FREE char *text = journal_head_format(audit->journals[1 - i].meta);
        assert_int_equal(journal_head_parse(text, &heads[i], NULL), 0);
    }
    struct audit_verify_options options = {.is_quick = true, .heads = heads, .head_count = 2};
    bool is_intact = false;
    assert_int_equal(audit_verify(audit, &options, &is_intact, NULL), 0);
    assert_true(is_intact);
    heads[0].hash[5] ^= 1;
    assert_int_equal(audit_verify(audit, &options, &is_intact, NULL), 0);
    assert_false(is_intact);
    heads[0].hash[5] ^= 1;
    heads[0].journal_id[0] = heads[0].journal_id[0] == '0' ? '1' : '0';
    assert_int_equal(audit_verify(audit, &options, &is_intact, NULL), 0);
    assert_false(is_intact);
}

static void an_open_wait_goes_on_while_a_controller_runs(void **state)
{
    (void)state;
    static const struct {
        bool lives, held, has_end;
        int64_t wanted_us;
    } table[] = {
        {true, false, false, 9}, {false, false, false, 2}, {true, true, false, 2}, {true, false, true, 2}};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct journal_meta meta = {.lives = table[i].lives, .head_at_us = 100};
        struct audit_journal journal = {.meta = &meta};
        struct audit audit = {.now_us = 107};
        struct journal_wait_record wait = {.spent_us = 2, .held = table[i].held, .has_end = table[i].has_end};
        assert_int_equal(audit_wait_spent_us(&audit, &journal, &wait), table[i].wanted_us);
        audit.now_us = 50; /* the clock went back */
        assert_int_equal(audit_wait_spent_us(&audit, &journal, &wait), 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_wait_goes_on_while_a_controller_runs),
        cmocka_unit_test_setup_teardown(two_journals_are_merged_by_time_and_keep_their_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(ids_of_several_journals_are_understood, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_journal_twice_is_read_once, setup, teardown),
        cmocka_unit_test_setup_teardown(an_older_copy_is_read_as_the_newer_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fork_is_no_history, setup, teardown),
        cmocka_unit_test_setup_teardown(verify_gives_each_journal_its_own_heads, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
