/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows come: by object, namespace, kind, outcome, time, number. */
#include "history.h"

#include "audit/when.h"

static int make_named(void **state)
{
    history_make(state);
    struct history *history = *state;
    history->audit.look.format = SHEET_NAME;
    return 0;
}

typedef int command(struct audit *audit, const struct audit_filter *filter, struct error **err);

/* The ids that a command prints, "18 14 2". */
static void expect_ids(struct history *history, command *run, const struct audit_filter *filter,
                       const char *wanted)
{
    struct error *err = NULL;
    if (run(&history->audit, filter, &err) < 0)
        fail_msg("%s", error_text(err));
    CLEANUP_FREE char *text = history_take(history);
    for (char *at = text; *at; at++)
        if (*at == '\n')
            *at = at[1] ? ' ' : '\0';
    assert_string_equal(text, wanted);
}

static void lists_operations_by_everything_that_they_have(void **state)
{
    struct history *history = *state;
    int64_t rolled_us = LOOK_AT_US - 3600 * US_PER_S; /* when the first one began */
    const struct {
        struct audit_filter filter;
        const char *wanted;
    } table[] = {
        {{0}, "18 14 2"},
        {{.limit = 2}, "18 14"},
        {{.kind = "rollout"}, "18 2"},
        {{.kind = "resize"}, ""},
        {{.outcome = "failed"}, "14"},
        {{.outcome = "open"}, "18"},
        {{.outcome = "completed", .kind = "rollout"}, "2"},
        {{.namespace = "prod"}, "18 14 2"},
        {{.namespace = "test"}, ""},
        {{.since_us = rolled_us + 1}, "18 14"},
        {{.until_us = rolled_us + 1}, "2"},
        {{.until_us = rolled_us}, ""},
        {{.since_us = rolled_us, .until_us = rolled_us + 84120 * US_PER_MS}, "2"},
        {{.object = "NeoSet", .name = "mysql"}, "2"},
        {{.object = "NeoSet", .name = "mysql", .namespace = "test"}, ""},
        {{.object = "Pod", .name = "mysql-3"}, "2"},
        {{.object = "Pod", .name = "mysql-4", .outcome = "failed"}, ""},
        {{.object = "Pod", .name = "clickhouse-0", .namespace = "prod"}, "18"},
        {{.object = "Pod", .name = "nobody"}, ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        expect_ids(history, audit_list, &table[i].filter, table[i].wanted);
}

static void exports_entries_of_an_object_with_the_outcomes_that_do_not_name_it(void **state)
{
    struct history *history = *state;
    const struct {
        struct audit_filter filter;
        const char *wanted;
    } table[] = {
        {{.object = "NeoSet", .name = "mysql"}, "2 3 4 5 6 7 8 9 11 12 13"},
        {{.object = "Pod", .name = "mysql-3"}, "9 11 12"},
        {{.object = "Pod", .name = "mysql-4"}, "3 4 5 6 7 8"},
        {{.object = "Pod", .name = "mysql-4", .kind = "applied,wait_end"}, "4 8"},
        {{.kind = "start"}, "1 10"},
        {{.kind = "intent", .limit = 2}, "3 9"},
        {{.namespace = "prod", .kind = "begin,end,applied"}, "2 4 12 13 14 17 18"},
        {{.namespace = "elsewhere"}, ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        expect_ids(history, audit_export_entries, &table[i].filter, table[i].wanted);
}

static void exports_steps_by_kind_outcome_and_object(void **state)
{
    struct history *history = *state;
    const struct {
        struct audit_filter filter;
        const char *wanted;
    } table[] = {
        {{0}, "3 9 15 19"},
        {{.kind = "create-pod"}, "15"},
        {{.outcome = "applied"}, "3 9"},
        {{.outcome = "open"}, "19"},
        {{.object = "NeoSet", .name = "mysql"}, "3 9"},
        {{.object = "Pod", .name = "mysql-3"}, "9"},
        {{.object = "NeoSet", .name = "mysql", .outcome = "rejected"}, ""},
        {{.limit = 1}, "3"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        expect_ids(history, audit_export_steps, &table[i].filter, table[i].wanted);
}

/* More steps than are read at a time, one of them answered thousands of entries later, one never. */
static void steps_are_whole_however_far_their_outcomes_are(void **state)
{
    enum { STEPS = 1100, NOTES = 2500 };
    struct history *history = *state;
    struct journal_fixture *fixture = &history->fixture;
    audit_close(&history->audit);
    journal_fixture_open(fixture);
    int64_t operation = history_begin(history, "scale", "wide", NULL);
    int64_t late = history_intent(history, operation, "create-pod", "wide-late", NULL);
    for (int i = 0; i < STEPS; i++) {
        CLEANUP_FREE char *pod = xasprintf("wide-%d", i);
        int64_t step = history_intent(history, operation, "create-pod", pod, NULL);
        history_answer(history, JOURNAL_APPLIED, operation, step, 1, 201, NULL);
    }
    for (int i = 0; i < NOTES; i++)
        journal_fixture_note(fixture, "time passes");
    history_answer(history, JOURNAL_UNKNOWN, operation, late, 1, 0, NULL);
    history_answer(history, JOURNAL_REJECTED, operation, late, 2, 409, NULL);
    journal_fixture_settle(fixture);
    journal_fixture_stop(fixture);
    const char *path = fixture->path;
    assert_int_equal(audit_open(&history->audit, &path, 1, NULL), 0);
    history->audit.look.format = SHEET_CSV;
    struct audit_filter created = {.kind = "create-pod"};
    assert_int_equal(audit_export_steps(&history->audit, &created, NULL), 0);
    CLEANUP_FREE char *text = history_take(history);
    size_t applied = 0;
    for (const char *at = text; (at = strstr(at, "\"applied\",201,1,")); at++)
        applied++;
    assert_int_equal(applied, STEPS);
    CLEANUP_FREE char *begins = xasprintf("\r\n%lld,", (long long)late);
    const char *row = strstr(text, begins);
    assert_non_null(row);
    assert_non_null(strstr(row, "\"rejected\",409,2,"));
    assert_true(strstr(row, "\"rejected\",409,2,") < strchr(row + 2, '\n'));
    struct audit_filter open = {.outcome = "open"};
    history->audit.look.format = SHEET_NAME;
    expect_ids(history, audit_export_steps, &open, "19");
}

static void refuses_a_filter_that_entries_have_not(void **state)
{
    struct history *history = *state;
    CLEANUP_ERROR struct error *err = NULL;
    struct audit_filter outcome = {.outcome = "failed"};
    assert_int_equal(audit_export_entries(&history->audit, &outcome, &err), -ERROR_USAGE);
    assert_non_null(strstr(error_text(err), "--kind"));
    CLEANUP_ERROR struct error *unknown = NULL;
    struct audit_filter kind = {.kind = "intent,nonsense"};
    assert_int_equal(audit_export_entries(&history->audit, &kind, &unknown), -ERROR_USAGE);
    assert_non_null(strstr(error_text(unknown), "nonsense"));
    assert_non_null(strstr(error_text(unknown), "wait_begin"));
}

static void says_that_there_is_nothing_beside_the_data(void **state)
{
    struct history *history = *state;
    struct audit_filter none = {.kind = "resize"};
    expect_ids(history, audit_list, &none, "");
    assert_string_equal(history->notices,
                        "no operations that fit: `neoset-audit list` without filters shows all\n");
}

static void a_timeline_shows_only_the_parts_of_its_object(void **state)
{
    struct history *history = *state;
    history->audit.look.format = SHEET_TABLE;
    struct audit_filter pod = {.object = "Pod", .name = "mysql-3", .namespace = "prod"};
    assert_int_equal(audit_timeline(&history->audit, NULL, &pod, NULL), 0);
    CLEANUP_FREE char *text = history_take(history);
    assert_non_null(strstr(text, "Pod/mysql-3"));
    assert_null(strstr(text, "Pod/mysql-4"));
    assert_non_null(strstr(text, "restart: run 1 died, run 10 began"));
    CLEANUP_ERROR struct error *err = NULL;
    struct audit_filter nobody = {.object = "Pod", .name = "nobody"};
    assert_int_equal(audit_timeline(&history->audit, NULL, &nobody, &err), -ERROR_NOT_FOUND);
}

static void a_timeline_is_as_wide_as_it_may_be(void **state)
{
    struct history *history = *state;
    history->audit.look.format = SHEET_TABLE;
    static const struct audit_filter all = {.limit = 10};
    static const size_t widths[] = {80, 120, 200};
    for (size_t i = 0; i < ARRAY_SIZE(widths); i++) {
        history->audit.look.columns = widths[i];
        assert_int_equal(audit_timeline(&history->audit, NULL, &all, NULL), 0);
        CLEANUP_FREE char *text = history_take(history);
        size_t widest = 0;
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            if (!str_starts_with(line, "Operation") && !str_starts_with(line, "begun") &&
                !str_starts_with(line, "--"))
                widest = MAX(widest, text_width(line));
        assert_in_range(widest, widths[i] - 4, widths[i]);
    }
}

static void an_operation_is_found_by_its_number(void **state)
{
    struct history *history = *state;
    static const char *const good[] = {"2", "operation/2"};
    static const char *const unknown[] = {"3", "999", "ffff:2"};
    static const char *const bad[] = {"", "0", "-1", "two", "2x", "2 ", "99999999999999999999", "a:b"};
    struct audit_journal *journal = NULL;
    int64_t id = 0;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_int_equal(audit_find_operation(&history->audit, good[i], &journal, &id, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
        assert_int_equal(audit_find_operation(&history->audit, unknown[i], &journal, &id, NULL),
                         -ERROR_NOT_FOUND);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(audit_find_operation(&history->audit, bad[i], &journal, &id, NULL), -ERROR_USAGE);
}

static void an_object_is_named_as_kubectl_names_it(void **state)
{
    (void)state;
    static const struct {
        const char *text, *object, *name; /* object NULL: refused */
    } table[] = {
        {"NeoSet/mysql", "NeoSet", "mysql"},
        {"neo/mysql", "NeoSet", "mysql"},
        {"neosets/mysql", "NeoSet", "mysql"},
        {"pod/mysql-3", "Pod", "mysql-3"},
        {"Widget/x", "Widget", "x"},
        {"mysql", NULL, NULL},
        {"/mysql", NULL, NULL},
        {"pod/", NULL, NULL},
        {"a/b/c", NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct audit_filter filter = {0};
        CLEANUP_FREE char *memory = NULL;
        int r = audit_parse_for(table[i].text, &filter, &memory, NULL);
        assert_int_equal(r, table[i].object ? 0 : -ERROR_USAGE);
        if (table[i].object) {
            assert_string_equal(filter.object, table[i].object);
            assert_string_equal(filter.name, table[i].name);
        }
    }
}

static void only_doubt_of_some_age_counts(void **state)
{
    struct history *history = *state;
    static const struct audit_filter all = {0};
    int64_t found = -1;
    assert_int_equal(audit_in_doubt(&history->audit, &all, 60 * US_PER_S, &found, NULL), 0);
    assert_int_equal(found, 1);
    assert_int_equal(audit_in_doubt(&history->audit, &all, 2 * 3600 * US_PER_S, &found, NULL), 0);
    assert_int_equal(found, 0);
    CLEANUP_FREE char *text = history_take(history);
    assert_string_equal(text, "19\n");
    static const struct audit_filter other = {.namespace = "elsewhere"};
    assert_int_equal(audit_in_doubt(&history->audit, &other, 0, &found, NULL), 0);
    assert_int_equal(found, 0);
}

static void times_are_read_as_people_type_them(void **state)
{
    (void)state;
    int64_t now_us = LOOK_AT_US + 1234567; /* 2026-11-30T08:00:01.234567Z */
    static const struct {
        const char *text, *wanted; /* NULL: refused */
    } table[] = {
        {"2026-11-30T07:38:15Z", "2026-11-30T07:38:15.000000Z"},
        {"2026-11-30T07:38:15.5+02:00", "2026-11-30T05:38:15.500000Z"},
        {"2026-11-30T07:38", "2026-11-30T07:38:00.000000Z"},
        {"2026-11-30 07:38:15", "2026-11-30T07:38:15.000000Z"},
        {"2026-11-30", "2026-11-30T00:00:00.000000Z"},
        {"today", "2026-11-30T00:00:00.000000Z"},
        {"yesterday", "2026-11-29T00:00:00.000000Z"},
        {"now", "2026-11-30T08:00:01.234567Z"},
        {"-2h", "2026-11-30T06:00:01.234567Z"},
        {"-1d", "2026-11-29T08:00:01.234567Z"},
        {"-1h30m", "2026-11-30T06:30:01.234567Z"},
        {"2h", NULL},
        {"-", NULL},
        {"-2x", NULL},
        {"2026-13-01", NULL},
        {"tomorrow", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        int64_t at_us = 0;
        CLEANUP_ERROR struct error *err = NULL;
        int r = when_parse(table[i].text, now_us, &at_us, &err);
        assert_int_equal(r, table[i].wanted ? 0 : -ERROR_USAGE);
        if (!table[i].wanted)
            continue;
        char text[TIME_TEXT_SIZE];
        time_format_micros(at_us, text);
        assert_string_equal(text, table[i].wanted);
    }
}

#define history_test(function) cmocka_unit_test_setup_teardown(function, make_named, history_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        history_test(lists_operations_by_everything_that_they_have),
        history_test(exports_entries_of_an_object_with_the_outcomes_that_do_not_name_it),
        history_test(exports_steps_by_kind_outcome_and_object),
        history_test(steps_are_whole_however_far_their_outcomes_are),
        history_test(refuses_a_filter_that_entries_have_not),
        history_test(says_that_there_is_nothing_beside_the_data),
        history_test(a_timeline_shows_only_the_parts_of_its_object),
        history_test(a_timeline_is_as_wide_as_it_may_be),
        history_test(an_operation_is_found_by_its_number),
        cmocka_unit_test(an_object_is_named_as_kubectl_names_it),
        history_test(only_doubt_of_some_age_counts),
        cmocka_unit_test(times_are_read_as_people_type_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
