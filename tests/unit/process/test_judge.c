/* SPDX-License-Identifier: Apache-2.0
 *
 * What the crash matrix judges by can fail: each breach, planted, is told. */
#include "../../process/judge.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define STEP(key, outcome)                                                                                   \
    "{\"key\":\"" key "\",\"action\":\"create-pod\",\"name\":\"db-0\",\"outcome\":" outcome                  \
    ",\"attempts\":1}\n"
#define SEEN(id, verb, code)                                                                                 \
    "{\"auditID\":\"" id "\",\"verb\":\"" verb "\",\"responseStatus\":{\"code\":" code "}}\n"

static const struct {
    const char *what;
    const char *steps;
    const char *audit;
    const char *told; /* a part of the sentence; NULL: all is well */
} cases[] = {
    {"a step that was applied", STEP("aa-4", "\"applied\""), SEEN("neo-aa-4-1", "create", "201"), NULL},
    {"one of whose attempts was refused", STEP("aa-4", "\"applied\""),
     SEEN("neo-aa-4-1", "create", "201") SEEN("neo-aa-4-2", "create", "409"), NULL},
    {"exempt writes and other people's do not count", STEP("aa-4", "\"applied\""),
     SEEN("neo-aa-4-1", "create", "201") SEEN("neo-x-status-1", "patch", "200") SEEN("u-1", "patch", "200"),
     NULL},
    {"reads do not count", STEP("aa-4", "\"applied\""),
     SEEN("neo-aa-4-1", "create", "201") SEEN("neo-aa-9-1", "get", "200"), NULL},
    {"accepted, and overtaken before the answer was known", STEP("aa-4", "\"overtaken\""),
     SEEN("neo-aa-4-1", "create", "201"), NULL},
    {"accepted twice", STEP("aa-4", "\"applied\""),
     SEEN("neo-aa-4-1", "create", "201") SEEN("neo-aa-4-2", "create", "201"), "accepted 2 times"},
    {"accepted without an intent", STEP("aa-4", "\"applied\""),
     SEEN("neo-aa-4-1", "create", "201") SEEN("neo-aa-5-1", "patch", "200"), "no intent"},
    {"still open", STEP("aa-4", "null"), SEEN("neo-aa-4-1", "create", "201"), "still open"},
    {"applied, though the server knows nothing of it",
     STEP("aa-4", "\"applied\"") STEP("aa-5", "\"applied\""), SEEN("neo-aa-5-1", "create", "201"),
     "the server's log does not"},
    {"accepted, though the journal says rejected", STEP("aa-4", "\"rejected\""),
     SEEN("neo-aa-4-1", "create", "201"), "the journal says rejected"},
    {"an empty audit log proves nothing", STEP("aa-4", "\"rejected\""), "", "no step at all"},
    {"a cut line", "{\"key\":", "", "cannot read"},
};

static void breaches_are_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct run_result result = {0};
        CLEANUP_FREE char *problem = judge_journal(cases[i].steps, cases[i].audit, &result);
        free(result.steps);
        if (cases[i].told ? !problem || !strstr(problem, cases[i].told) : problem != NULL)
            fail_msg("%s: %s", cases[i].what, problem ? problem : "nothing was told");
    }
}

static void what_was_applied_is_listed_without_what_depends_on_timing(void **state)
{
    (void)state;
    static const char steps[] =
        "{\"key\":\"a-1\",\"action\":\"gate\",\"name\":\"db-0\",\"outcome\":\"applied\",\"attempts\":2}\n"
        "{\"key\":\"a-2\",\"action\":\"delete\",\"name\":\"db-1\",\"outcome\":\"applied\",\"attempts\":1}\n"
        "{\"key\":\"a-3\",\"action\":\"create-pod\",\"name\":\"db-1\",\"outcome\":\"rejected\",\"attempts\":"
        "1}\n"
        "{\"key\":\"a-4\",\"action\":\"create-pod\",\"name\":\"db-0\",\"outcome\":\"applied\",\"attempts\":1}"
        "\n";
    static const char audit[] = SEEN("neo-a-1-2", "patch", "200") SEEN("neo-a-2-1", "delete", "200")
        SEEN("neo-a-3-1", "create", "409") SEEN("neo-a-4-1", "create", "201");
    struct run_result result = {0};
    assert_null(judge_journal(steps, audit, &result));
    assert_string_equal(result.steps, "create-pod db-0\ndelete db-1\n");
    assert_int_equal(result.accepted, 3);
    assert_int_equal(result.resent, 1);
    free(result.steps);
}

static void attempts_without_a_telling_answer_are_counted(void **state)
{
    (void)state;
    static const char entries[] =
        "{\"kind\":\"intent\",\"http\":null}\n{\"kind\":\"unknown\",\"http\":500}\n"
        "{\"kind\":\"applied\",\"http\":201}\n{\"kind\":\"applied\",\"http\":null}\n";
    struct run_result result = {0};
    assert_null(judge_doubts(entries, &result));
    assert_int_equal(result.doubts, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(breaches_are_told),
        cmocka_unit_test(attempts_without_a_telling_answer_are_counted),
        cmocka_unit_test(what_was_applied_is_listed_without_what_depends_on_timing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
