/* SPDX-License-Identifier: Apache-2.0
 *
 * `tail`: each entry once, over many calls, while the journal is written; and what becomes of output that
 * nobody wants. */
#include "history.h"

#include <signal.h>

static int make_named(void **state)
{
    history_make(state);
    struct history *history = *state;
    history->audit.look.format = SHEET_NAME;
    return 0;
}

/* A call of `tail` with the cursor that the call before left. */
struct shipping {
    struct history *history;
    char *cursor;
    int kept;
    int rounds; /* of following */
    int64_t last;
    const char *kind;
};

static int keep(void *context, const char *text, struct error **err)
{
    (void)err;
    struct shipping *shipping = context;
    str_replace(&shipping->cursor, text);
    shipping->kept++;
    return 0;
}

/* Reopens the journal's file for reading, as the next call of the program would. */
static void reopen(struct history *history)
{
    const char *path = history->fixture.path;
    audit_close(&history->audit);
    assert_int_equal(audit_open(&history->audit, &path, 1, NULL), 0);
}

static int ship(struct shipping *shipping, struct error **err)
{
    struct audit_filter filter = {.kind = shipping->kind};
    struct audit_tail_options options = {
        .last = shipping->last, .cursor_text = shipping->cursor, .keep_cursor = keep, .context = shipping};
    return audit_tail(&shipping->history->audit, &filter, &options, err);
}

static void expect_taken(struct history *history, const char *wanted)
{
    CLEANUP_FREE char *text = history_take(history);
    for (char *at = text; *at; at++)
        if (*at == '\n')
            *at = at[1] ? ' ' : '\0';
    assert_string_equal(text, wanted);
}

static void begins_with_the_newest(void **state)
{
    struct history *history = *state;
    struct audit_tail_options options = {.last = 3};
    struct audit_filter all = {0};
    assert_int_equal(audit_tail(&history->audit, &all, &options, NULL), 0);
    expect_taken(history, "17 18 19");
    struct audit_filter intents = {.kind = "intent"};
    options.last = 2;
    assert_int_equal(audit_tail(&history->audit, &intents, &options, NULL), 0);
    expect_taken(history, "15 19");
    struct audit_filter pod = {.object = "Pod", .name = "mysql-3"};
    assert_int_equal(audit_tail(&history->audit, &pod, &options, NULL), 0);
    expect_taken(history, "11 12");
    options.last = 0;
    assert_int_equal(audit_tail(&history->audit, &all, &options, NULL), 0);
    expect_taken(history, "");
}

static void delivers_each_entry_once_over_many_calls(void **state)
{
    struct history *history = *state;
    struct shipping shipping = {.history = history, .last = -1};
    assert_int_equal(ship(&shipping, NULL), 0);
    expect_taken(history, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19");
    assert_int_equal(ship(&shipping, NULL), 0);
    expect_taken(history, "");
    journal_fixture_open(&history->fixture);
    journal_fixture_note(&history->fixture, "hello");
    journal_fixture_stop(&history->fixture);
    reopen(history);
    assert_int_equal(ship(&shipping, NULL), 0);
    expect_taken(history, "20 21 22");
    assert_int_equal(ship(&shipping, NULL), 0);
    expect_taken(history, "");
    free(shipping.cursor);
}

static void a_filter_does_not_hold_the_cursor_back(void **state)
{
    struct history *history = *state;
    struct shipping shipping = {.history = history, .last = -1, .kind = "begin"};
    assert_int_equal(ship(&shipping, NULL), 0);
    expect_taken(history, "2 14 18");
    CLEANUP_FREE char *head = journal_head_format(history->audit.journals[0].meta);
    CLEANUP_FREE char *wanted = xasprintf("%s\n", head);
    assert_string_equal(shipping.cursor, wanted);
    free(shipping.cursor);
}

static void a_journal_that_went_back_or_forked_under_the_cursor_is_noticed(void **state)
{
    struct history *history = *state;
    struct shipping shipping = {.history = history, .last = -1};
    assert_int_equal(ship(&shipping, NULL), 0);
    free(history_take(history));
    char *hash = strrchr(shipping.cursor, ':') + 1;
    *hash = *hash == '0' ? '1' : '0';
    CLEANUP_ERROR struct error *forked = NULL;
    assert_int_equal(ship(&shipping, &forked), -ERROR_FORKED);
    assert_non_null(strstr(error_text(forked), "entry 19"));
    CLEANUP_FREE char *ahead = xasprintf("%s:20:%064d\n", history->audit.journals[0].meta->journal_id, 0);
    str_replace(&shipping.cursor, ahead);
    CLEANUP_ERROR struct error *back = NULL;
    assert_int_equal(ship(&shipping, &back), -ERROR_FORKED);
    assert_non_null(strstr(error_text(back), "went back"));
    str_replace(&shipping.cursor, "nonsense");
    assert_true(ship(&shipping, NULL) < 0);
    expect_taken(history, "");
    free(shipping.cursor);
}

static bool write_more(void *context)
{
    struct shipping *shipping = context;
    if (shipping->rounds++ == 3)
        return false;
    journal_fixture_note(&shipping->history->fixture, "more");
    journal_fixture_settle(&shipping->history->fixture);
    return true;
}

static void follows_while_the_journal_is_written(void **state)
{
    struct history *history = *state;
    journal_fixture_open(&history->fixture);
    reopen(history);
    struct shipping shipping = {.history = history};
    struct audit_filter all = {0};
    struct audit_tail_options options = {.last = 1, .wait = write_more, .context = &shipping};
    assert_int_equal(audit_tail(&history->audit, &all, &options, NULL), 0);
    expect_taken(history, "20 21 22 23");
    journal_fixture_stop(&history->fixture);
}

static void a_table_that_is_followed_shows_rows_as_they_come(void **state)
{
    struct history *history = *state;
    history->audit.look.format = SHEET_TABLE;
    journal_fixture_open(&history->fixture);
    reopen(history);
    struct shipping shipping = {.history = history};
    struct audit_filter all = {0};
    struct audit_tail_options options = {.last = 2, .wait = write_more, .context = &shipping};
    assert_int_equal(audit_tail(&history->audit, &all, &options, NULL), 0);
    CLEANUP_FREE char *text = history_take(history);
    size_t lines = 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    assert_int_equal(lines, 1 + 2 + 3);
    journal_fixture_stop(&history->fixture);
}

/* --- output that nobody wants
 * ------------------------------------------------------------------------------- */

static void a_reader_who_goes_away_ends_it_quietly_and_keeps_the_cursor(void **state)
{
    struct history *history = *state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    history->out.fd = ends[1];
    struct shipping shipping = {.history = history, .last = -1};
    assert_int_equal(ship(&shipping, NULL), 0);
    assert_true(history->out.closed);
    assert_int_equal(shipping.kept, 0);
    static const struct audit_filter all = {0};
    assert_int_equal(audit_list(&history->audit, &all, NULL), 0);
    close(ends[1]);
}

static void a_full_disk_is_an_error(void **state)
{
    struct history *history = *state;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (full < 0)
        skip();
    history->out.fd = full;
    static const struct audit_filter all = {0};
    CLEANUP_ERROR struct error *err = NULL;
    assert_int_equal(audit_list(&history->audit, &all, &err), -ERROR_NO_SPACE);
    close(full);
}

#define history_test(function) cmocka_unit_test_setup_teardown(function, make_named, history_free)

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        history_test(begins_with_the_newest),
        history_test(delivers_each_entry_once_over_many_calls),
        history_test(a_filter_does_not_hold_the_cursor_back),
        history_test(a_journal_that_went_back_or_forked_under_the_cursor_is_noticed),
        history_test(follows_while_the_journal_is_written),
        history_test(a_table_that_is_followed_shows_rows_as_they_come),
        history_test(a_reader_who_goes_away_ends_it_quietly_and_keeps_the_cursor),
        history_test(a_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
