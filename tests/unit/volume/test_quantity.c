/* SPDX-License-Identifier: Apache-2.0 */
#include "quantity_table.h"
#include "volume/quantity.h"
#include "whole_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { TABLE_ROWS_MIN = 180, RANDOM_ROUNDS = 20000 };

static uint64_t random_state = 1201;

static unsigned next_random(unsigned bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % bound);
}

static struct quantity parsed(const char *text)
{
    struct quantity quantity;
    CLEANUP_ERROR struct error *err = NULL;
    if (quantity_parse(text, strlen(text), &quantity, &err) < 0)
        fail_msg("%s: %s", text, error_text(err));
    return quantity;
}

static int parse_code(const char *text)
{
    struct quantity quantity;
    return quantity_parse(text, strlen(text), &quantity, NULL);
}

static int order(const char *a, const char *b)
{
    struct quantity left = parsed(a), right = parsed(b);
    return quantity_compare(&left, &right);
}

static void print_difference(void *context, size_t line, const char *sentence)
{
    (void)context;
    print_error("line %zu: %s\n", line, sentence);
}

static void reads_as_the_reference_does(void **state)
{
    (void)state;
    CLEANUP_FREE char *text = whole_file("tests/volume/quantity.tsv", NULL);
    struct quantity_table_result result;
    quantity_table_check(text, print_difference, NULL, &result);
    assert_int_equal(result.failed, 0);
    assert_true(result.passed >= TABLE_ROWS_MIN);
}

static void count_difference(void *context, size_t line, const char *sentence)
{
    (void)line;
    assert_true(strlen(sentence) > 0);
    (*(size_t *)context)++;
}

/* The table's own judge: each of these rows is wrong. */
static void a_wrong_table_is_noticed(void **state)
{
    (void)state;
    char text[] = "parse\t\"1Ki\"\tok\t1000\t1Ki\n"
                  "parse\t\"1Ki\"\tok\t1024\t1024\n"
                  "parse\t\"1K\"\tok\t1000\t1K\n"
                  "parse\t\"1k\"\tinvalid\t\t\n"
                  "parse\t\"1e99\"\tinvalid\t\t\n"
                  "parse\t1k\tok\t1000\t1k\n"
                  "compare\t1Gi\t1G\t0\n"
                  "compare\t1Gi\t1Gb\t0\n"
                  "compare\t1Gi\n"
                  "other\t1\n"
                  "parse\t\"1\"\tok\t1\t1\tmore\n"
                  "# a comment\n"
                  "\n"
                  "parse\t\"1k\"\tok\t1000.000\t1k\n";
    size_t told = 0;
    struct quantity_table_result result;
    quantity_table_check(text, count_difference, &told, &result);
    assert_int_equal(result.failed, 11);
    assert_int_equal(told, 11);
    assert_int_equal(result.passed, 1);
}

static void limits(void **state)
{
    (void)state;
    /* 2^128-1 nano-units, and one more */
    assert_int_equal(parse_code("340282366920938463463374607431.768211455"), 0);
    assert_int_equal(parse_code("340282366920938463463374607431.768211456"), -ERROR_TOO_LARGE);
    assert_int_equal(parse_code("340282366920938463463374607431.7682114550"), 0);
    /* rounding up does not wrap round */
    assert_int_equal(parse_code("340282366920938463463374607431.7682114551"), -ERROR_TOO_LARGE);
    assert_int_equal(parse_code("-1e30"), -ERROR_TOO_LARGE);
    assert_int_equal(parse_code("1234567890123456789012345678901234567890"), -ERROR_TOO_LARGE);
    assert_int_equal(parse_code("0e99"), 0);
    assert_int_equal(parse_code("1e9223372036854775807"), -ERROR_TOO_LARGE);
    assert_int_equal(parse_code("1e9223372036854775808"), -ERROR_INVALID);
    assert_int_equal(order("1e-9223372036854775807", "1n"), 0);
    assert_int_equal(order("0.0000000000000000000000000000000000000000000001e46", "1"), 0);
    assert_int_equal(order("10000000000000000000000000000000000000000000000e-46", "1"), 0);
    /* binary values are capped, decimal ones are not */
    assert_int_equal(order("99999999999999999999999999999999999999999999Ei", "9223372036854775807"), 0);
    assert_int_equal(order("-99999999999999999999Ei", "-9223372036854775807"), 0);
    assert_int_equal(order("7.9999999999999999999999999999Ei", "9223372036854775807"), 0);
    assert_true(order("9223372036854775807.1", "9223372036854775807Ki") > 0);
    assert_true(order("7.999999999999999Ei", "8Ei") < 0);
    /* zero has no sign */
    assert_int_equal(order("-0", "0"), 0);
    assert_false(parsed("-0Gi").negative);
}

static void only_whole_texts_are_read(void **state)
{
    (void)state;
    struct quantity quantity;
    assert_int_equal(quantity_parse("1Gi", 3, &quantity, NULL), 0);
    assert_int_equal(quantity_parse("1Gi", 2, &quantity, NULL), 0);
    assert_true(quantity.nano == (unsigned __int128)1000000000 * 1000000000);
    assert_int_equal(quantity_parse("1\0Gi", 4, &quantity, NULL), -ERROR_INVALID);
    assert_int_equal(quantity_parse("", 0, &quantity, NULL), -ERROR_INVALID);
}

static void messages_say_what_to_do(void **state)
{
    (void)state;
    struct quantity quantity;
    CLEANUP_ERROR struct error *junk = NULL, *large = NULL, *odd = NULL;
    quantity_parse("10GiB", 5, &quantity, &junk);
    assert_non_null(strstr(error_text(junk), "\"10GiB\""));
    assert_non_null(strstr(error_text(junk), "as in 10Gi"));
    quantity_parse("1e40", 4, &quantity, &large);
    assert_non_null(strstr(error_text(large), "1e40 is too large"));
    CLEANUP_FREE char *text = xmemdup0("\n\x1b[2J", 5);
    CLEANUP_FREE char *more = xcalloc(1000, 1);
    memset(more, '7', 999);
    CLEANUP_FREE char *wrong = xasprintf("%s%s", text, more);
    quantity_parse(wrong, strlen(wrong), &quantity, &odd);
    assert_false(str_has_control_character(error_text(odd)));
    assert_true(strlen(error_text(odd)) < 300);
}

static void expect_read(const char *json, int code, const char *exact, const char *own)
{
    CLEANUP_JSON cJSON *node = NULL;
    assert_int_equal(json_parse(json, strlen(json), &node, NULL), 0);
    struct quantity quantity;
    CLEANUP_FREE char *text = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    assert_int_equal(quantity_read(node, &quantity, &text, &err), code);
    if (own)
        assert_string_equal(text, own);
    else
        assert_null(text);
    if (code < 0)
        return;
    CLEANUP_FREE char *value = quantity_exact_text(&quantity);
    assert_string_equal(value, exact);
}

static void a_json_value_is_read_as_the_server_reads_it(void **state)
{
    (void)state;
    expect_read("\"10Gi\"", 0, "10737418240", "10Gi");
    expect_read("\" 10Gi  \"", 0, "10737418240", " 10Gi  ");
    expect_read("\"1\\n\"", -ERROR_INVALID, NULL, "1\n");
    expect_read("\"   \"", -ERROR_INVALID, NULL, "   ");
    expect_read("10737418240", 0, "10737418240", "10737418240");
    expect_read("9007199254740993", 0, "9007199254740993", "9007199254740993");
    expect_read("1.5", 0, "1.5", "1.5");
    expect_read("1e3", 0, "1000", "1e3");
    expect_read("-1", 0, "-1", "-1");
    expect_read("null", -ERROR_INVALID, NULL, NULL);
    expect_read("true", -ERROR_INVALID, NULL, NULL);
    expect_read("{}", -ERROR_INVALID, NULL, NULL);
    struct quantity quantity;
    CLEANUP_FREE char *text = NULL;
    assert_int_equal(quantity_read(NULL, &quantity, &text, NULL), -ERROR_INVALID);
}

static char *random_quantity(void)
{
    static const char *const suffixes[] = {"",   "n",  "u",  "m",  "k",  "M",  "G",  "T",   "P",    "E",
                                           "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-6", "e+11", "e-2"};
    char whole[32] = "", fraction[32] = "";
    for (unsigned i = 0, count = next_random(20); i < count; i++)
        whole[i] = (char)('0' + next_random(3) * next_random(4));
    for (unsigned i = 0, count = next_random(12); i < count; i++)
        fraction[i] = (char)('0' + next_random(3) * next_random(4));
    return xasprintf("%s%s%s%s%s",
                     next_random(4)   ? ""
                     : next_random(2) ? "-"
                                      : "+",
                     whole, fraction[0] || !next_random(5) ? "." : "", fraction,
                     suffixes[next_random(ARRAY_SIZE(suffixes))]);
}

/* The server's echo and the exact value mean the same, and are echoed as they are. */
static void round_trips(void **state)
{
    (void)state;
    size_t seen = 0;
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        CLEANUP_FREE char *text = random_quantity();
        CLEANUP_FREE char *echo = quantity_echo(text);
        assert_int_equal(echo == NULL, parse_code(text) < 0);
        if (!echo)
            continue;
        seen++;
        CLEANUP_FREE char *again = quantity_echo(echo);
        struct quantity quantity = parsed(text);
        CLEANUP_FREE char *exact = quantity_exact_text(&quantity);
        if (order(text, echo) != 0 || order(text, exact) != 0 || !str_equal(echo, again))
            fail_msg("%s: echo %s, %s; exact %s", text, echo, again, exact);
    }
    assert_true(seen > RANDOM_ROUNDS / 2);
}

/* Small whole values against plain integers: nothing of the way above is used. */
static void small_values_compare_like_integers(void **state)
{
    (void)state;
    static const struct {
        const char *suffix;
        uint64_t factor;
    } rows[] = {{"", 1}, {"k", 1000}, {"Ki", 1024}, {"M", 1000000}, {"Mi", 1048576}, {"e2", 100}};
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        uint64_t a = next_random(3000), b = next_random(3000);
        unsigned x = next_random(ARRAY_SIZE(rows)), y = next_random(ARRAY_SIZE(rows));
        CLEANUP_FREE char *left = xasprintf("%llu%s", (unsigned long long)a, rows[x].suffix);
        CLEANUP_FREE char *right = xasprintf("%llu%s", (unsigned long long)b, rows[y].suffix);
        int got = order(left, right);
        a *= rows[x].factor;
        b *= rows[y].factor;
        assert_int_equal((got > 0) - (got < 0), (a > b) - (a < b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_as_the_reference_does),
        cmocka_unit_test(a_wrong_table_is_noticed),
        cmocka_unit_test(limits),
        cmocka_unit_test(only_whole_texts_are_read),
        cmocka_unit_test(messages_say_what_to_do),
        cmocka_unit_test(a_json_value_is_read_as_the_server_reads_it),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(small_values_compare_like_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
