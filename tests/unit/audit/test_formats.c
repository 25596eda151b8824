/* SPDX-License-Identifier: Apache-2.0
 *
 * Every command in every format, against golden files: columns, their order and their spelling are an API. */
#include "history.h"

typedef int command(struct audit *audit, const struct audit_filter *filter, struct error **err);

static int show_rollout(struct audit *audit, const struct audit_filter *filter, struct error **err)
{
    (void)filter;
    const struct history *history = audit->context;
    CLEANUP_FREE char *id = xasprintf("%lld", (long long)history->rollout);
    return audit_show(audit, id, err);
}

static int timeline_all(struct audit *audit, const struct audit_filter *filter, struct error **err)
{
    struct audit_filter all = *filter;
    all.limit = 10;
    return audit_timeline(audit, NULL, &all, err);
}

static int in_doubt(struct audit *audit, const struct audit_filter *filter, struct error **err)
{
    int64_t found = 0;
    int r = audit_in_doubt(audit, filter, 0, &found, err);
    assert_int_equal(found, 1);
    return r;
}

static int verify(struct audit *audit, const struct audit_filter *filter, struct error **err)
{
    (void)filter;
    struct audit_verify_options options = {.is_quick = true};
    bool is_intact = false;
    int r = audit_verify(audit, &options, &is_intact, err);
    assert_true(is_intact);
    return r;
}

static const struct {
    const char *name;
    command *run;
} commands[] = {
    {"list", audit_list},
    {"show", show_rollout},
    {"timeline", timeline_all},
    {"export-entries", audit_export_entries},
    {"export-operations", audit_export_operations},
    {"export-steps", audit_export_steps},
    {"in-doubt", in_doubt},
    {"runs", audit_runs},
    {"verify", verify},
};

static const char *const formats[] = {"table", "wide", "json", "jsonl", "csv", "yaml", "name"};

static void every_command_in_every_format_is_as_agreed(void **state)
{
    struct history *history = *state;
    static const struct audit_filter all = {0};
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(formats); j++) {
            history->audit.look.format = sheet_format_of_text(formats[j]);
            struct error *err = NULL;
            if (commands[i].run(&history->audit, &all, &err) < 0)
                fail_msg("%s: %s", commands[i].name, error_text(err));
            CLEANUP_FREE char *name = xasprintf("%s.%s", commands[i].name, formats[j]);
            expect_golden(history, history_take(history), name);
        }
    }
}

static void on_a_narrow_terminal_tables_are_truncated_and_coloured(void **state)
{
    struct history *history = *state;
    static const struct audit_filter all = {0};
    history->audit.look = (struct sheet_look){
        .format = SHEET_TABLE, .columns = 120, .is_terminal = true, .has_color = true, .has_utf8 = true};
    assert_int_equal(audit_list(&history->audit, &all, NULL), 0);
    expect_golden(history, history_take(history), "list.terminal");
    assert_int_equal(audit_timeline(&history->audit, NULL, &all, NULL), 0);
    expect_golden(history, history_take(history), "timeline.terminal");
}

/* Columns that matter less go first; of an image the tag stays. */
static void at_80_columns_what_matters_stays(void **state)
{
    struct history *history = *state;
    static const struct audit_filter all = {0};
    journal_fixture_open(&history->fixture);
    int64_t rollout = history_begin(
        history, "rollout", "gitaly",
        "{\"from\":\"registry.example.com/gitlab/gitaly:v17.8.0\",\"to\":\"registry.example.com/gitlab/"
        "gitaly:v17.8.1\"}");
    history_intent(history, rollout, "update-in-place", "gitaly-0", "gitaly-0: image");
    history_pass(history, 90 * US_PER_S);
    journal_fixture_crash(&history->fixture);
    audit_close(&history->audit);
    const char *path = history->fixture.path;
    assert_int_equal(audit_open(&history->audit, &path, 1, NULL), 0);
    static const size_t columns[] = {80, 100, 70};
    for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
        history->audit.look = (struct sheet_look){
            .format = SHEET_TABLE, .columns = columns[i], .is_terminal = true, .has_utf8 = false};
        assert_int_equal(audit_list(&history->audit, &all, NULL), 0);
        char *text = history_take(history);
        for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
            assert_true(strcspn(at, "\n") <= columns[i]);
        CLEANUP_FREE char *name = xasprintf("list.%zu", columns[i]);
        expect_golden(history, text, name);
    }
}

static void in_a_file_nothing_is_truncated(void **state)
{
    struct history *history = *state;
    static const struct audit_filter all = {0};
    history->audit.look.columns = 40;
    assert_int_equal(audit_list(&history->audit, &all, NULL), 0);
    CLEANUP_FREE char *text = history_take(history);
    assert_non_null(strstr(text, "NeoSet/clickhouse"));
    assert_null(strchr(text, '~'));
    assert_null(strchr(text, '\x1b'));
}

static void every_row_of_json_is_json(void **state)
{
    struct history *history = *state;
    static const struct audit_filter all = {0};
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        history->audit.look.format = SHEET_JSON;
        assert_int_equal(commands[i].run(&history->audit, &all, NULL), 0);
        CLEANUP_FREE char *whole = history_take(history);
        CLEANUP_JSON cJSON *tree = NULL;
        if (json_parse(whole, strlen(whole), &tree, NULL) < 0)
            fail_msg("%s -o json is no JSON: %s", commands[i].name, whole);
        history->audit.look.format = SHEET_JSONL;
        assert_int_equal(commands[i].run(&history->audit, &all, NULL), 0);
        CLEANUP_FREE char *lines = history_take(history);
        for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
            CLEANUP_JSON cJSON *row = NULL;
            assert_int_equal(json_parse(line, strlen(line), &row, NULL), 0);
        }
    }
}

static void local_times_carry_their_offset(void **state)
{
    (void)state;
    char text[40];
    struct sheet_look look = {0};
    sheet_format_time(&look, 1796025600123456LL, text);
    assert_string_equal(text, "2026-11-30T08:00:00.123456Z");
}

/* The journal of an older program may hold such operations, open for ever. */
static void an_operation_that_changes_nothing_says_so(void **state)
{
    struct history *history = *state;
    journal_fixture_open(&history->fixture);
    int64_t scale = history_begin(history, "scale", "mysql", "{\"from\":\"5\",\"to\":\"5\"}");
    CLEANUP_FREE char *id = xasprintf("%lld", (long long)scale);
    history_pass(history, US_PER_S);
    journal_fixture_crash(&history->fixture);
    audit_close(&history->audit);
    const char *path = history->fixture.path;
    assert_int_equal(audit_open(&history->audit, &path, 1, NULL), 0);
    struct audit_filter filter = {.kind = "scale", .name = "mysql", .object = "NeoSet"};
    history->audit.look.format = SHEET_TABLE;
    assert_int_equal(audit_list(&history->audit, &filter, NULL), 0);
    CLEANUP_FREE char *list = history_take(history);
    assert_non_null(strstr(list, "scale  5     unchanged  open"));
    assert_int_equal(audit_timeline(&history->audit, id, &filter, NULL), 0);
    CLEANUP_FREE char *timeline = history_take(history);
    assert_non_null(strstr(timeline, "scale of NeoSet/mysql in prod, 5, unchanged\n"));
    assert_int_equal(audit_show(&history->audit, id, NULL), 0);
    CLEANUP_FREE char *shown = history_take(history);
    assert_non_null(strstr(shown, "unchanged\n"));
    history->audit.look.format = SHEET_CSV;
    assert_int_equal(audit_list(&history->audit, &filter, NULL), 0);
    CLEANUP_FREE char *data = history_take(history);
    assert_non_null(strstr(data, "\"5\",\"5\""));
}

#define history_test(function) cmocka_unit_test_setup_teardown(function, history_make, history_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        history_test(every_command_in_every_format_is_as_agreed),
        history_test(at_80_columns_what_matters_stays),
        history_test(on_a_narrow_terminal_tables_are_truncated_and_coloured),
        history_test(in_a_file_nothing_is_truncated),
        history_test(every_row_of_json_is_json),
        history_test(an_operation_that_changes_nothing_says_so),
        cmocka_unit_test(local_times_carry_their_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
