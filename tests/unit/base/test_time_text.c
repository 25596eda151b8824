/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <time.h>

/* A fixed stream of numbers: the same in every run. */
static uint64_t random_state = 20261130;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void known_times_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
        int64_t us;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0, 0},
        {"1970-01-01T00:00:00.000001Z", 0, 1},
        {"1969-12-31T23:59:59.999999Z", -1, 999999},
        {"2026-11-30T07:38:15Z", 1796024295, 0},
        {"2026-11-30t07:38:15z", 1796024295, 0},
        {"2026-11-30 07:38:15Z", 1796024295, 0},
        {"2026-11-30T07:38:15.5Z", 1796024295, 500000},
        {"2026-11-30T07:38:15.123456789Z", 1796024295, 123456},
        {"2026-11-30T09:38:15+02:00", 1796024295, 0},
        {"2026-11-30T02:08:15-05:30", 1796024295, 0},
        {"2000-02-29T00:00:00Z", 951782400, 0},
        {"2024-02-29T12:00:00Z", 1709208000, 0},
        {"2016-12-31T23:59:60Z", 1483228800, 0},
        {"1900-03-01T00:00:00Z", -2203891200, 0},
        {"0001-01-01T00:00:00Z", -62135596800, 0},
        {"9999-12-31T23:59:59Z", 253402300799, 0},
        {"2038-01-19T03:14:08Z", 2147483648, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t at_us;
        assert_int_equal(time_parse_rfc3339(rows[i].text, &at_us, NULL), 0);
        assert_int_equal(at_us, rows[i].seconds * US_PER_S + rows[i].us);
    }
}

static void what_is_no_time_is_refused_with_its_text(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "now",
        "2026-11-30",
        "2026-11-30T07:38Z",
        "2026-11-30T07:38:15",
        "2026-11-30T07:38:15Zx",
        "2026-11-30T07:38:15.Z",
        "2026-11-30T07:38:15,5Z",
        "2026-11-30T07:38:15+2:00",
        "2026-11-30T07:38:15+24:00",
        "2026-11-30T07:38:15+02:60",
        "2026-11-30T07:38:15+0200",
        "2026-11-30T24:00:00Z",
        "2026-11-30T07:60:00Z",
        "2026-11-30T07:38:61Z",
        "2026-00-30T07:38:15Z",
        "2026-13-30T07:38:15Z",
        "2026-11-00T07:38:15Z",
        "2026-11-31T07:38:15Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2024-02-30T00:00:00Z",
        "-026-11-30T07:38:15Z",
        "+2026-11-30T07:38:15Z",
        "12026-11-30T07:38:15Z",
        " 2026-11-30T07:38:15Z",
        "2026-1-30T07:38:15Z",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int64_t at_us = 42;
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(time_parse_rfc3339(bad[i], &at_us, &err), -ERROR_INVALID);
        assert_int_equal(at_us, 42);
        assert_non_null(strstr(err->text, bad[i]));
    }
}

static void any_time_comes_back_as_it_was(void **state)
{
    (void)state;
    const int64_t first = -62135596800LL * US_PER_S; /* year 1 */
    const int64_t span = 315537897600LL * US_PER_S;  /* to the end of 9999 */
    for (int i = 0; i < 20000; i++) {
        int64_t at_us = first + (int64_t)(next_random() % (uint64_t)span);
        char text[TIME_TEXT_SIZE];
        int64_t back;
        time_format_micros(at_us, text);
        assert_int_equal(strlen(text), strlen("2026-11-30T07:38:15.123456Z"));
        assert_int_equal(time_parse_rfc3339(text, &back, NULL), 0);
        assert_int_equal(back, at_us);
        time_format_seconds(at_us, text);
        assert_int_equal(time_parse_rfc3339(text, &back, NULL), 0);
        assert_true(back <= at_us && at_us - back < US_PER_S);
        /* The C library agrees. */
        time_t seconds = (time_t)(back / US_PER_S);
        struct tm broken;
        char expected[TIME_TEXT_SIZE * 2];
        assert_non_null(gmtime_r(&seconds, &broken));
        snprintf(expected, sizeof(expected), "%04d-%02d-%02dT%02d:%02d:%02dZ", broken.tm_year + 1900,
                 broken.tm_mon + 1, broken.tm_mday, broken.tm_hour, broken.tm_min, broken.tm_sec);
        assert_string_equal(text, expected);
    }
}

static void times_out_of_range_are_still_text(void **state)
{
    (void)state;
    char text[TIME_TEXT_SIZE];
    static const int64_t rows[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1, -62167219200000001LL};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        time_format_micros(rows[i], text);
        assert_int_equal(strlen(text), strlen("2026-11-30T07:38:15.123456Z"));
    }
}

static void durations_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
    } rows[] = {
        {"0s", 0},
        {"300ms", 300 * US_PER_MS},
        {"1.5s", 1500 * US_PER_MS},
        {"0.000001s", 1},
        {"5us", 5},
        {"90s", 90 * US_PER_S},
        {"2m", 120 * US_PER_S},
        {"2h45m", 9900 * US_PER_S},
        {"1h0m0.5s", 3600 * US_PER_S + 500000},
        {"7d", 7 * 86400 * US_PER_S},
        {"36500d", 36500LL * 86400 * US_PER_S},
        {"1.5d", 129600 * US_PER_S},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t us = -1;
        assert_int_equal(duration_parse(rows[i].text, &us, NULL), 0);
        assert_int_equal(us, rows[i].us);
    }
}

static void what_is_no_duration_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "5",
                                      "s",
                                      "-5s",
                                      "5 s",
                                      "5x",
                                      "1..5s",
                                      "1.s",
                                      ".5s",
                                      "5s5",
                                      "1e3s",
                                      "36501d",
                                      "+5s",
                                      "5S",
                                      "9999999999d",
                                      "5min",
                                      "inf",
                                      "36500d1us",
                                      "99999999999999999999999s",
                                      "0x5s"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int64_t us = 42;
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(duration_parse(bad[i], &us, &err), -ERROR_INVALID);
        assert_int_equal(us, 42);
        assert_non_null(err);
    }
}

static void durations_are_shown_for_people(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        const char *text;
    } rows[] = {
        {0, "0ms"},
        {999, "0ms"},
        {850 * US_PER_MS, "850ms"},
        {4200 * US_PER_MS, "4.2s"},
        {59999 * US_PER_MS, "59.9s"},
        {190 * US_PER_S, "3m10s"},
        {7500 * US_PER_S, "2h05m"},
        {(3 * 86400 + 4 * 3600) * US_PER_S, "3d4h"},
        {-4200 * US_PER_MS, "-4.2s"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[TIME_TEXT_SIZE];
        duration_format(rows[i].us, text);
        assert_string_equal(text, rows[i].text);
    }
    static const int64_t extremes[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(extremes); i++) {
        char text[TIME_TEXT_SIZE];
        duration_format(extremes[i], text);
        assert_in_range(strlen(text), 1, 12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_times_are_read),
        cmocka_unit_test(what_is_no_time_is_refused_with_its_text),
        cmocka_unit_test(any_time_comes_back_as_it_was),
        cmocka_unit_test(times_out_of_range_are_still_text),
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(what_is_no_duration_is_refused),
        cmocka_unit_test(durations_are_shown_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
