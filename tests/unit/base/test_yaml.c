/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    if (yaml_parse_one(text, strlen(text), "f.yaml", &tree, &err) < 0)
        fail_msg("%s: %s", text, error_text(err));
    return tree;
}

static void expect(const char *text, const char *json)
{
    CLEANUP_JSON cJSON *tree = parse(text);
    CLEANUP_FREE char *printed = json_print(tree);
    assert_string_equal(printed, json);
}

static void expect_refused(const char *text, enum error_code code, const char *words)
{
    struct yaml_documents documents = {.count = 42};
    CLEANUP_ERROR struct error *err = NULL;
    if (yaml_parse(text, strlen(text), "f.yaml", &documents, &err) == 0)
        fail_msg("taken: %s", text);
    assert_int_equal(documents.count, 42);
    assert_int_equal(err->code, code);
    if (!strstr(err->text, words))
        fail_msg("'%s' is not in: %s", words, err->text);
    assert_non_null(strstr(err->text, "f.yaml"));
}

/* --- scalars --- */

static double number_of(const cJSON *node)
{
    return cJSON_IsRaw(node) ? strtod(node->valuestring, NULL) : node->valuedouble;
}

/* The server's answers went through a double: numbers are compared as such. */
static bool same(const cJSON *a, const cJSON *b)
{
    bool numbers = (cJSON_IsNumber(a) || cJSON_IsRaw(a)) && (cJSON_IsNumber(b) || cJSON_IsRaw(b));
    return numbers ? number_of(a) == number_of(b) : json_equal(a, b);
}

static void check_row(char *line)
{
    char *tab = strchr(line, '\t');
    assert_non_null(tab);
    line[strcspn(line, "\n")] = '\0';
    *tab = '\0';
    cJSON *quoted = NULL;
    assert_int_equal(json_parse(line, strlen(line), &quoted, NULL), 0);
    const char *text = quoted->valuestring;
    cJSON *tree = NULL;
    int result = yaml_parse_one(text, strlen(text), "row", &tree, NULL);
    if (strcmp(tab + 1, "refused") == 0) {
        if (result == 0)
            fail_msg("taken: %s", line);
    } else {
        if (result < 0)
            fail_msg("refused: %s", line);
        cJSON *wanted = NULL;
        assert_int_equal(json_parse(tab + 1, strlen(tab + 1), &wanted, NULL), 0);
        if (!same(json_get(tree, "v"), wanted)) {
            CLEANUP_FREE char *got = json_print(tree);
            fail_msg("%s gave %s", line, got);
        }
        json_delete(wanted);
        json_delete(tree);
    }
    json_delete(quoted);
}

static void scalars_mean_what_kubectl_takes_them_for(void **state)
{
    (void)state;
    CLEANUP_FREE char *folder = xstrndup(__FILE__, (size_t)(strrchr(__FILE__, '/') - __FILE__));
    CLEANUP_FREE char *path = xasprintf("%s/yaml11.tsv", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[1024];
    size_t rows = 0;
    while (fgets(line, sizeof(line), file)) {
        if (line[0] == '#')
            continue;
        check_row(line);
        rows++;
    }
    fclose(file);
    assert_true(rows >= 85);
}

static void numbers_keep_all_their_digits(void **state)
{
    (void)state;
    expect("a: 9007199254740993\nb: 18446744073709551615\nc: -9223372036854775808\nd: 0x7fffffffffffffff",
           "{\"a\":9007199254740993,\"b\":18446744073709551615,\"c\":-9223372036854775808,\"d\":"
           "9223372036854775807}");
    expect("[0.1, 1.5e300, 1e-7, 0.30000000000000004, 1e20, 1.5e21, 123456789.125, 18446744073709551616]",
           "[0.1,1.5e+300,1e-7,0.30000000000000004,100000000000000000000,1.5e+21,123456789.125,"
           "18446744073709552000]");
}

static void tags_say_what_a_scalar_is(void **state)
{
    (void)state;
    expect(
        "[!!str yes, !!bool \"yes\", !!int \"0x10\", !!float 3, !!null ~, ! \"12\", !!timestamp 2001-01-01]",
        "[\"yes\",true,16,3,null,\"12\",\"2001-01-01\"]");
    expect("[!!map {a: 1}, !!seq [1]]", "[{\"a\":1},[1]]");
    expect("!!binary \"aGFs\\n bG8=\"", "\"hallo\"");
    expect_refused("a: !!int x", ERROR_INVALID, "line 1");
    expect_refused("a: !!bool 1", ERROR_INVALID, "tag");
    expect_refused("a:\n  !secret x", ERROR_INVALID, "line 2: tag !secret is not known");
    expect_refused("!!set {a, b}", ERROR_INVALID, "tag");
    static const char *const bad[] = {
        "!!binary a",      "!!binary aGk",  "!!binary 'a===",  "!!binary '=aaa'",
        "!!binary '/w=='", "!!binary AA==", "!!binary 'aG k*'"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        cJSON *tree = NULL;
        assert_true(yaml_parse_one(bad[i], strlen(bad[i]), "f", &tree, NULL) < 0);
    }
}

/* --- structure --- */

static void documents_come_in_order_with_their_lines(void **state)
{
    (void)state;
    static const char text[] =
        "# first\n---\na: 1\n---\n# nothing\n---\n\n- 2\n---\n~\n--- 3\n...\n---\nb: |\n  ---x\n";
    struct yaml_documents documents;
    assert_int_equal(yaml_parse(text, strlen(text), "f.yaml", &documents, NULL), 0);
    assert_int_equal(documents.count, 4);
    static const int lines[] = {3, 8, 11, 14};
    static const char *const json[] = {"{\"a\":1}", "[2]", "3", "{\"b\":\"---x\\n\"}"};
    for (size_t i = 0; i < documents.count; i++) {
        assert_int_equal(documents.lines[i], lines[i]);
        CLEANUP_FREE char *printed = json_print(documents.items[i]);
        assert_string_equal(printed, json[i]);
    }
    yaml_documents_done(&documents);
    assert_int_equal(documents.count, 0);
}

static void an_empty_stream_holds_no_document(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "# only words\n", "---\n---\n", "null"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct yaml_documents documents;
        assert_int_equal(yaml_parse(texts[i], strlen(texts[i]), "f.yaml", &documents, NULL), 0);
        assert_int_equal(documents.count, 0);
        yaml_documents_done(&documents);
        cJSON *tree = NULL;
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(yaml_parse_one(texts[i], strlen(texts[i]), "f.yaml", &tree, &err), -ERROR_NOT_FOUND);
        assert_non_null(strstr(err->text, "f.yaml"));
    }
}

static void keys_become_text_as_kubectl_spells_them(void **state)
{
    (void)state;
    expect("1: a\ntrue: b\n1.5: c\nno: d\n0x10: e\n1e6: f\n100.0: g\n1234567.5: h\n1e-9: i\n0.1: j\n~x: "
           "k\n\"\": l",
           "{\"1\":\"a\",\"true\":\"b\",\"1.5\":\"c\",\"false\":\"d\",\"16\":\"e\",\"1e+06\":\"f\",\"100\":"
           "\"g\","
           "\"1.2345675e+06\":\"h\",\"1e-09\":\"i\",\"0.1\":\"j\",\"~x\":\"k\",\"\":\"l\"}");
    expect("&k a: 1\nb: {*k : 2}", "{\"a\":1,\"b\":{\"a\":2}}");
    expect_refused("a: 1\n~: 2", ERROR_INVALID, "line 2");
    expect_refused("[1]: 2", ERROR_INVALID, "line 1");
    expect_refused("{a: 1}: 2", ERROR_INVALID, "line 1");
    expect_refused("a: &x [1]\n*x : 2", ERROR_INVALID, "line 2");
    expect_refused(".inf: 2", ERROR_INVALID, "line 1");
}

static void a_key_is_there_once(void **state)
{
    (void)state;
    expect_refused("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", ERROR_INVALID, "line 5: the key c is there twice");
    expect_refused("{a: 1, \"a\": 2}", ERROR_INVALID, "twice");
    expect_refused("1: x\n'1': y", ERROR_INVALID, "line 2: the key 1 is there twice");
    expect_refused("yes: x\ntrue: y", ERROR_INVALID, "twice");
    expect_refused("a: 1\n<<: {a: 2}\na: 3", ERROR_INVALID, "line 3");
    expect("a: 1\nA: 2", "{\"a\":1,\"A\":2}");
}

static void aliases_are_copies(void **state)
{
    (void)state;
    expect("a: &x [1, {b: 2}]\nc: *x\nd: [*x, *x]",
           "{\"a\":[1,{\"b\":2}],\"c\":[1,{\"b\":2}],\"d\":[[1,{\"b\":2}],[1,{\"b\":2}]]}");
    expect("a: &x 1\nb: *x\nc: &x 2\nd: *x", "{\"a\":1,\"b\":1,\"c\":2,\"d\":2}");
    expect("a: &x {b: &y 5}\nc: *y", "{\"a\":{\"b\":5},\"c\":5}");
    expect_refused("a: *x", ERROR_INVALID, "alias *x");
    expect_refused("a: &x [*x]", ERROR_INVALID, "alias *x");
    expect_refused("&x a: 1\n---\nb: *x", ERROR_INVALID, "line 3: alias *x");
}

static void merges_are_done_as_kubectl_does_them(void **state)
{
    (void)state;
    expect("a: &x {p: 1, q: 1}\nb: {<<: *x, q: 2}", "{\"a\":{\"p\":1,\"q\":1},\"b\":{\"p\":1,\"q\":2}}");
    expect("<<: [{a: 1, b: 1}, {b: 2, c: 2}]\nd: 3", "{\"c\":2,\"a\":1,\"b\":1,\"d\":3}");
    expect("a: 2\n<<: {a: 1}", "{\"a\":1}");
    expect("<<: {a: 1}\n<<: {a: 2}", "{\"a\":2}");
    expect("'<<': 1", "{\"<<\":1}");
    expect("a: <<", "{\"a\":\"<<\"}");
    expect("<<: []", "{}");
    expect_refused("x: 1\n<<: 3", ERROR_INVALID, "line 2: << needs a mapping");
    expect_refused("<<: [{a: 1}, 3]", ERROR_INVALID, "<< needs a mapping");
}

static void text_has_many_spellings(void **state)
{
    (void)state;
    expect("a: |\n  x\n   y\n\nb: >-\n  x\n  y\nc: |+\n  x\n\nd: \"\\t\\u00e9\\x41\\\n  b\"\ne: 'it''s'",
           "{\"a\":\"x\\n y\\n\",\"b\":\"x y\",\"c\":\"x\\n\\n\",\"d\":\"\\t\xc3\xa9"
           "Ab\",\"e\":\"it's\"}");
    expect("\xef\xbb\xbf"
           "a: 1",
           "{\"a\":1}");
    expect("a: \"\\x01#5\"", "{\"a\":\"\\u0001#5\"}");
    expect("{\"json\": [1, true, null, \"x\"]}", "{\"json\":[1,true,null,\"x\"]}");
    expect_refused("a: \"\\0\"", ERROR_INVALID, "line 1: a zero byte");
    expect_refused("a: \xff", ERROR_INVALID, "f.yaml");
    expect_refused("a: \x01", ERROR_INVALID, "f.yaml");
}

static void what_is_not_yaml_is_refused_with_its_line(void **state)
{
    (void)state;
    expect_refused("a: 1\nb: [1,\nc: 2 ]]", ERROR_INVALID, "line 3");
    expect_refused("a: 1\n b: 2", ERROR_INVALID, "line 2");
    expect_refused("a:\n\t- 1", ERROR_INVALID, "line 2");
    expect_refused("a: \"x", ERROR_INVALID, "line");
    expect_refused("a: @x", ERROR_INVALID, "line 1");
    expect_refused("}", ERROR_INVALID, "line 1");
    expect_refused("a: {b: 1", ERROR_INVALID, "line");
    expect_refused("- a\nb: 1", ERROR_INVALID, "line 2");
    expect_refused("a: 1\n--- b\n: c: d", ERROR_INVALID, "line");
}

/* --- bounds --- */

static void a_billion_laughs_are_cut_short(void **state)
{
    (void)state;
    CLEANUP_BUF struct buf text = BUF_INIT(1 << 20);
    ENSURE(buf_add_text(&text, "a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol,lol]\n") == 0);
    for (int i = 1; i < 12; i++) {
        ENSURE(buf_addf(&text, "a%d: &a%d [", i, i) == 0);
        for (int j = 0; j < 10; j++)
            ENSURE(buf_addf(&text, "*a%d,", i - 1) == 0);
        ENSURE(buf_add_text(&text, "]\n") == 0);
    }
    expect_refused(buf_text(&text), ERROR_TOO_LARGE, "aliases");
    /* The same with one long string, and by merges. */
    buf_clear(&text);
    ENSURE(buf_add_text(&text, "a: &a ") == 0);
    for (int i = 0; i < 100000; i++)
        ENSURE(buf_add_char(&text, 'x') == 0);
    ENSURE(buf_add_text(&text, "\nb: [") == 0);
    for (int i = 0; i < 2000; i++)
        ENSURE(buf_add_text(&text, "*a,") == 0);
    ENSURE(buf_add_text(&text, "]\n") == 0);
    expect_refused(buf_text(&text), ERROR_TOO_LARGE, "MiB of text");
    buf_clear(&text);
    ENSURE(buf_add_text(&text, "a: &a {") == 0);
    for (int i = 0; i < 2000; i++)
        ENSURE(buf_addf(&text, "k%d: 1,", i) == 0);
    ENSURE(buf_add_text(&text, "}\nb: [") == 0);
    for (int i = 0; i < 2000; i++)
        ENSURE(buf_add_text(&text, "{<<: *a},") == 0);
    ENSURE(buf_add_text(&text, "]\n") == 0);
    expect_refused(buf_text(&text), ERROR_TOO_LARGE, "aliases");
}

static char *nested(int depth)
{
    struct buf text = BUF_INIT(1 << 20);
    for (int i = 0; i < depth; i++)
        ENSURE(buf_add_char(&text, '[') == 0);
    for (int i = 0; i < depth; i++)
        ENSURE(buf_add_char(&text, ']') == 0);
    return buf_take(&text);
}

static void depth_is_bounded_also_through_aliases(void **state)
{
    (void)state;
    CLEANUP_FREE char *deepest = nested(JSON_DEPTH_MAX);
    expect(deepest, deepest);
    CLEANUP_FREE char *deeper = nested(JSON_DEPTH_MAX + 1);
    expect_refused(deeper, ERROR_INVALID, "deep");
    CLEANUP_FREE char *far = nested(500000);
    cJSON *tree = NULL;
    assert_true(yaml_parse_one(far, strlen(far), "f", &tree, NULL) < 0);
    CLEANUP_FREE char *half = nested(JSON_DEPTH_MAX - 2);
    CLEANUP_FREE char *fits = xasprintf("- &a %s\n- [*a]\n", half);
    json_delete(parse(fits));
    CLEANUP_FREE char *too_deep = xasprintf("- &a %s\n- [[*a]]\n", half);
    expect_refused(too_deep, ERROR_INVALID, "line 2: nested");
}

static void documents_and_input_are_bounded(void **state)
{
    (void)state;
    CLEANUP_BUF struct buf text = BUF_INIT(1 << 20);
    for (int i = 0; i < YAML_DOCUMENTS_MAX + 1; i++)
        ENSURE(buf_add_text(&text, "--- 1\n") == 0);
    expect_refused(buf_text(&text), ERROR_TOO_LARGE, "more than 10000 documents");
    cJSON *tree = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    assert_int_equal(yaml_parse_one("a", (64 << 20) + 1, "f.yaml", &tree, &err), -ERROR_TOO_LARGE);
}

static void a_mapping_of_many_keys_is_read_in_time(void **state)
{
    (void)state;
    CLEANUP_BUF struct buf text = BUF_INIT(16 << 20);
    for (int i = 0; i < 200000; i++)
        ENSURE(buf_addf(&text, "key-%d: 1\n", i) == 0);
    CLEANUP_JSON cJSON *tree = parse(buf_text(&text));
    assert_int_equal(cJSON_GetArraySize(tree), 200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_mean_what_kubectl_takes_them_for),
        cmocka_unit_test(numbers_keep_all_their_digits),
        cmocka_unit_test(tags_say_what_a_scalar_is),
        cmocka_unit_test(documents_come_in_order_with_their_lines),
        cmocka_unit_test(an_empty_stream_holds_no_document),
        cmocka_unit_test(keys_become_text_as_kubectl_spells_them),
        cmocka_unit_test(a_key_is_there_once),
        cmocka_unit_test(aliases_are_copies),
        cmocka_unit_test(merges_are_done_as_kubectl_does_them),
        cmocka_unit_test(text_has_many_spellings),
        cmocka_unit_test(what_is_not_yaml_is_refused_with_its_line),
        cmocka_unit_test(a_billion_laughs_are_cut_short),
        cmocka_unit_test(depth_is_bounded_also_through_aliases),
        cmocka_unit_test(documents_and_input_are_bounded),
        cmocka_unit_test(a_mapping_of_many_keys_is_read_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
