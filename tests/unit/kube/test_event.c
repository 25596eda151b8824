/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/event.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_line_has_type_object_and_version(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum kube_event_type type;
        const char *version;
    } cases[] = {
        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}", KUBE_EVENT_ADDED, "7"},
        {"{\"object\":{\"metadata\":{\"resourceVersion\":\"08\"}},\"type\":\"MODIFIED\"}",
         KUBE_EVENT_MODIFIED, "08"},
        {"{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"resourceVersion\":\"x\"}}}", KUBE_EVENT_DELETED,
         "x"},
        {"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}", KUBE_EVENT_BOOKMARK,
         "9"},
        {"{\"type\":\"ERROR\",\"object\":{\"code\":410}}", KUBE_EVENT_ERROR, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct kube_event event;
        assert_int_equal(kube_event_parse(cases[i].line, strlen(cases[i].line), &event, NULL), 0);
        assert_int_equal(event.type, cases[i].type);
        assert_true(str_equal(event.version, cases[i].version));
        kube_event_done(&event);
    }
}

static void a_version_is_guessed_without_reading(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *version; /* NULL: none */
    } cases[] = {
        {"{\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}", "7"},
        {"{\"note\":\"{\\\"resourceVersion\\\":\\\"6\\\"}\",\"metadata\":{\"resourceVersion\":\"7\"}}", "7"},
        {"{\"metadata\":{\"resourceVersion\":7}}", NULL},
        {"{\"metadata\":{\"resourceVersion\":\"12345678\"}}", NULL},
        {"{\"metadata\":{\"resourceVersion\":\"1", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char version[8];
        bool found = kube_event_guess_version(cases[i].line, strlen(cases[i].line), version, sizeof(version));
        if (!str_equal(found ? version : NULL, cases[i].version))
            fail_msg("%s", cases[i].line);
    }
}

static void a_malformed_line_is_refused_and_not_repeated(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "hunter2",
        "{\"type\":\"hunter2\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}",
        "{\"type\":\"added\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}",
        "{\"type\":\"ADDED\",\"object\":\"hunter2\"}",
        "{\"type\":\"ADDED\"}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"\"}}}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":7}}}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}} {}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}",
        "[{\"type\":\"ERROR\",\"object\":{}}]",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct kube_event event;
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(kube_event_parse(lines[i], strlen(lines[i]), &event, &err), -ERROR_INVALID);
        assert_null(strstr(error_text(err), "hunter2"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_type_object_and_version),
        cmocka_unit_test(a_version_is_guessed_without_reading),
        cmocka_unit_test(a_malformed_line_is_refused_and_not_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
