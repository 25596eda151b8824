/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static uint64_t random_state = 1130;

static uint64_t next_random(uint64_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % bound;
}

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    if (json_parse(text, strlen(text), &tree, &err) < 0)
        fail_msg("%s: %s", text, error_text(err));
    return tree;
}

static void expect_same_text(const char *text)
{
    CLEANUP_JSON cJSON *tree = parse(text);
    CLEANUP_FREE char *printed = json_print(tree);
    assert_string_equal(printed, text);
}

static void numbers_print_as_they_came(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "0",
        "-0",
        "1",
        "-1",
        "1e3",
        "1E+3",
        "1.0",
        "0.1",
        "0.30000000000000004",
        "-0.0",
        "999999999999999",
        "9007199254740991",
        "9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551616",
        "123456789012345678901234567890",
        "11111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111",
        "1e400",
        "1e-400",
        "2147483647",
        "2147483648",
        "[-0,-0,-0]",
        "{\"a\":9007199254740993,\"b\":[1.50,2]}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        expect_same_text(rows[i]);
}

static void strings_print_as_they_came(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "\"\"",
        "\"a\\\"b\\\\c\\n\\t\\r\\b\\f\"",
        "\"/\"",
        "\"\\u0001\"",
        "\"\\u0001#123\"",
        "\"\\u0001\\u0001\"",
        "\"x\\u0001#\"",
        "{\"\\u0001#5\":5,\"\\u0001\":\"\\u0001#\"}",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
        "\"\xef\xbf\xbf\xf4\x8f\xbf\xbf\"",
        "\"\x7f\"",
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        expect_same_text(rows[i]);
    CLEANUP_JSON cJSON *tree = parse("\"\\u00e9\\uD83D\\uDE00\\/\"");
    assert_string_equal(tree->valuestring, "\xc3\xa9\xf0\x9f\x98\x80/");
    CLEANUP_JSON cJSON *mark = parse("\"\\u0001#1\"");
    assert_true(cJSON_IsString(mark));
    assert_string_equal(mark->valuestring, "\x01#1");
}

static void what_is_not_json_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\" 1}",
        "{\"a\":}",
        "{1:2}",
        "[1 2]",
        "1 2",
        "{} {}",
        "{}x",
        "[]]",
        "nul",
        "nulll",
        "True",
        "NaN",
        "Infinity",
        "-",
        "+1",
        "01",
        "-01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x10",
        "1_0",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\u0000\"",
        "\"a\\u0000b\"",
        "{\"\\u0000\":1}",
        "\"\n\"",
        "\"\x01\"",
        "\"\x1f\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800x\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xc3\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xe0\x80\x80\"",
        "'a'",
        "// x\n1",
        "/**/1",
        "\xef\xbb\xbf{}",
        "\v1",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        cJSON *tree = NULL;
        CLEANUP_ERROR struct error *err = NULL;
        if (json_parse(bad[i], strlen(bad[i]), &tree, &err) == 0)
            fail_msg("taken for JSON: %s", bad[i]);
        assert_null(tree);
        assert_int_equal(err->code, ERROR_INVALID);
    }
}

static void the_length_bounds_what_is_read(void **state)
{
    (void)state;
    cJSON *tree = NULL;
    assert_int_equal(json_parse("12345", 2, &tree, NULL), 0);
    assert_int_equal(tree->valueint, 12);
    json_delete(tree);
    tree = NULL;
    assert_true(json_parse("1\0", 2, &tree, NULL) < 0);
    assert_true(json_parse("{}\0{}", 5, &tree, NULL) < 0);
    assert_true(json_parse("\0", 1, &tree, NULL) < 0);
    assert_true(json_parse("\"a\0b\"", 5, &tree, NULL) < 0);
    assert_true(json_parse("1e\0"
                           "5",
                           4, &tree, NULL) < 0);
    assert_true(json_parse("\"\\\0\"", 4, &tree, NULL) < 0);
    /* Not a byte beyond the end is looked at. */
    static const char text[] = "[\"\\u00e9\xc3\xa9\",true,-1.5e3]";
    for (size_t length = 0; length < strlen(text); length++) {
        char *exact = xmalloc(length + 1);
        memcpy(exact, text, length);
        exact = xreallocarray(exact, MAX(length, 1), 1);
        assert_true(json_parse(exact, length, &tree, NULL) < 0);
        free(exact);
    }
}

static char *nested(int depth, const char *open, const char *close)
{
    struct buf text = BUF_INIT(1 << 20);
    for (int i = 0; i < depth; i++)
        ENSURE(buf_add_text(&text, open) == 0);
    ENSURE(buf_add_text(&text, "1") == 0);
    for (int i = 0; i < depth; i++)
        ENSURE(buf_add_text(&text, close) == 0);
    return buf_take(&text);
}

static void depth_is_bounded(void **state)
{
    (void)state;
    CLEANUP_FREE char *deep = nested(JSON_DEPTH_MAX, "{\"a\":", "}");
    expect_same_text(deep);
    static const char *const brackets[][2] = {{"{\"a\":", "}"}, {"[", "]"}, {"[", ""}};
    for (size_t i = 0; i < ARRAY_SIZE(brackets); i++) {
        CLEANUP_FREE char *text =
            nested(i == 2 ? 100000 : JSON_DEPTH_MAX + 1, brackets[i][0], brackets[i][1]);
        cJSON *tree = NULL;
        assert_int_equal(json_parse(text, strlen(text), &tree, NULL), -ERROR_INVALID);
    }
}

static void of_a_key_that_is_there_twice_the_last_value_counts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *kept;
    } rows[] = {
        {"{\"a\":1,\"a\":2}", "{\"a\":2}"},
        {"{\"a\":1,\"b\":0,\"a\":{\"c\":1,\"c\":[2]},\"A\":3}", "{\"b\":0,\"a\":{\"c\":[2]},\"A\":3}"},
        {"[{\"a\":1,\"\\u0061\":2,\"a\":null}]", "[{\"a\":null}]"},
        {"{\"\\u0001\":1,\"\\u0001\":2}", "{\"\\u0001\":2}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_JSON cJSON *tree = parse(rows[i].text);
        CLEANUP_FREE char *printed = json_print(tree);
        assert_string_equal(printed, rows[i].kept);
    }
    /* Larger than what is looked through member by member. */
    CLEANUP_BUF struct buf text = BUF_INIT(1 << 20);
    for (int i = 0; i < 3000; i++)
        ENSURE(buf_addf(&text, "%c\"k%d\":%d", i ? ',' : '{', i % 1000, i) == 0);
    ENSURE(buf_add_char(&text, '}') == 0);
    CLEANUP_JSON cJSON *tree = parse(buf_text(&text));
    assert_int_equal(cJSON_GetArraySize(tree), 1000);
    assert_int_equal(json_int64_or(tree, "k0", -1), 2000);
    assert_int_equal(json_int64_or(tree, "k999", -1), 2999);
}

/* A hundred thousand members in another order: not a moment for the loop. Member by member it is minutes. */
static void large_objects_are_compared_in_time(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    CLEANUP_BUF struct buf up = BUF_INIT(4 << 20);
    CLEANUP_BUF struct buf down = BUF_INIT(4 << 20);
    for (int i = 0; i < COUNT; i++) {
        ENSURE(buf_addf(&up, "%c\"k%d\":%d", i ? ',' : '{', i, i) == 0);
        ENSURE(buf_addf(&down, "%c\"k%d\":%d", i ? ',' : '{', COUNT - 1 - i, COUNT - 1 - i) == 0);
    }
    ENSURE(buf_add_char(&up, '}') == 0 && buf_add_char(&down, '}') == 0);
    CLEANUP_JSON cJSON *a = parse(buf_text(&up));
    CLEANUP_JSON cJSON *b = parse(buf_text(&down));
    assert_true(json_equal(a, b));
    json_set_str(b, "k5", "5");
    assert_false(json_equal(a, b));
}

static void look_ups_are_exact(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *tree =
        parse("{\"Name\":\"upper\",\"name\":\"lower\",\"metadata\":{\"labels\":{\"App\":\"x\"}},"
              "\"n\":null,\"list\":[1]}");
    assert_string_equal(json_str(tree, "name"), "lower");
    assert_string_equal(json_str(tree, "Name"), "upper");
    assert_null(json_str(tree, "NAME"));
    assert_string_equal(json_path_str(tree, "metadata", "labels", "App", NULL), "x");
    assert_null(json_path_str(tree, "metadata", "labels", "app", NULL));
    assert_null(json_path_str(tree, "name", "labels", NULL));
    assert_null(json_path(tree, "missing", "a", NULL));
    assert_null(json_get(NULL, "a"));
    assert_null(json_get(tree, json_get(tree, "list")->child->string));
    assert_null(json_get(json_get(tree, "list"), "a"));
    assert_null(json_str(tree, "list"));
    assert_true(cJSON_IsNull(json_get(tree, "n")));
}

static void integers_are_64_bits_wide_or_no_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"-5", true, -5},
        {"2147483648", true, 2147483648LL},
        {"9007199254740993", true, 9007199254740993LL},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"0.5", false, 0},
        {"\"5\"", false, 0},
        {"true", false, 0},
        {"null", false, 0},
        {"[]", false, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *text = xasprintf("{\"v\":%s}", rows[i].text);
        CLEANUP_JSON cJSON *tree = parse(text);
        int64_t value = 42;
        assert_int_equal(json_int64(tree, "v", &value), rows[i].good);
        assert_true(value == (rows[i].good ? rows[i].value : 42));
        assert_true(json_int64_or(tree, "v", 7) == (rows[i].good ? rows[i].value : 7));
    }
    CLEANUP_JSON cJSON *tree = parse("{\"t\":true,\"f\":false,\"s\":\"true\"}");
    assert_true(json_bool_or(tree, "t", false));
    assert_false(json_bool_or(tree, "f", true));
    assert_true(json_bool_or(tree, "s", true));
    assert_false(json_bool_or(tree, "missing", false));
}

static void trees_are_built_and_changed(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *tree = json_new_object();
    json_add_str(json_add_object(tree, "metadata"), "name", "a\"b");
    json_add_int64(tree, "big", INT64_MAX);
    json_add_int64(tree, "small", INT64_MIN);
    json_add_int64(tree, "edge", 999999999999999);
    json_add_int64(tree, "over", 1000000000000000);
    json_add_bool(tree, "no", false);
    cJSON *list = json_add_array(tree, "list");
    json_append_int64(list, -1);
    json_append_str(list, "x");
    json_append_item(list, json_new_object());
    json_set_str(tree, "no", "replaced");
    json_set_str(tree, "new", "added");
    assert_ptr_equal(json_ensure_object(tree, "metadata"), json_get(tree, "metadata"));
    json_add_bool(json_ensure_object(tree, "big"), "now", true);
    json_remove(tree, "small");
    json_remove(tree, "small");
    json_remove(list, "x");
    CLEANUP_FREE char *text = json_print(tree);
    assert_string_equal(
        text, "{\"metadata\":{\"name\":\"a\\\"b\"},\"big\":{\"now\":true},\"edge\":999999999999999,"
              "\"over\":1000000000000000,\"no\":\"replaced\",\"list\":[-1,\"x\",{}],\"new\":\"added\"}");
    CLEANUP_FREE char *sorted = json_print_sorted(tree);
    assert_string_equal(sorted, "{\"big\":{\"now\":true},\"edge\":999999999999999,\"list\":[-1,\"x\",{}],"
                                "\"metadata\":{\"name\":\"a\\\"b\"},\"new\":\"added\",\"no\":\"replaced\","
                                "\"over\":1000000000000000}");
    CLEANUP_JSON cJSON *back = parse(text);
    assert_true(json_equal(tree, back));
}

/* Read trees share memory: what is taken out of one lives on without it, and takes strangers in. */
static void parts_of_a_tree_live_on_without_it(void **state)
{
    (void)state;
    enum { PARTS = 2000 };
    CLEANUP_BUF struct buf text = BUF_INIT(1 << 20);
    for (int i = 0; i < PARTS; i++)
        ENSURE(buf_addf(&text, "%c{\"name\":\"part-%d\",\"list\":[%d,\"x\"]}", i ? ',' : '[', i, i) == 0);
    ENSURE(buf_add_char(&text, ']') == 0);
    cJSON *tree = parse(buf_text(&text));
    cJSON *kept[3];
    for (int i = 0; i < 3; i++)
        kept[i] = cJSON_DetachItemViaPointer(tree, cJSON_GetArrayItem(tree, i * 900 - i));
    cJSON *copy = json_copy(tree);
    json_delete(tree);
    assert_int_equal(cJSON_GetArraySize(copy), PARTS - 3);
    json_delete(copy);
    CLEANUP_JSON cJSON *object = json_new_object();
    json_add_item(object, "first", kept[0]);
    json_add_item(kept[0], "second", kept[1]);
    json_set_str(kept[0], "name", "another");
    json_set_item(object, "third", kept[2]);
    json_remove(kept[2], "list");
    /* A text too, under a key of its own. */
    json_add_item(object, "a fourth, of a longer name", cJSON_DetachItemFromObject(kept[1], "name"));
    CLEANUP_FREE char *printed = json_print(object);
    assert_string_equal(printed, "{\"first\":{\"name\":\"another\",\"list\":[0,\"x\"],\"second\":"
                                 "{\"list\":[900,\"x\"]}},\"third\":{\"name\":\"part-1800\"},"
                                 "\"a fourth, of a longer name\":\"part-900\"}");
}

static void some_members_are_printed_alone(void **state)
{
    (void)state;
    static const char *const keys[] = {"a", "b", "c", "d"};
    CLEANUP_JSON cJSON *tree = parse("{\"z\":0,\"d\":{\"y\":1,\"x\":[2]},\"c\":null,\"a\":\"1\"}");
    CLEANUP_FREE char *some = json_print_members(tree, keys, ARRAY_SIZE(keys));
    assert_string_equal(some, "{\"a\":\"1\",\"d\":{\"x\":[2],\"y\":1}}");
    CLEANUP_FREE char *none = json_print_members(NULL, keys, ARRAY_SIZE(keys));
    assert_string_equal(none, "{}");
}

static void a_member_may_be_left_out_but_is_checked(void **state)
{
    (void)state;
    static const struct json_omission omission = {.parent = "metadata", .key = "managedFields", .depth = 2};
    static const struct {
        const char *text;
        const char *kept; /* NULL: refused */
    } rows[] = {
        {"{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"f\":{\"x\":1,\"x\":\"\\n\"},\"n\":1.5}],"
         "\"uid\":\"b\"}}",
         "{\"metadata\":{\"name\":\"a\",\"uid\":\"b\"}}"},
        {"{\"metadata\":{\"managedFields\":null},\"managedFields\":1}",
         "{\"metadata\":{},\"managedFields\":1}"},
        {"{\"data\":{\"metadata\":{\"managedFields\":[]}}}",
         "{\"data\":{\"metadata\":{\"managedFields\":[]}}}"},
        {"{\"labels\":{\"managedFields\":\"x\"}}", "{\"labels\":{\"managedFields\":\"x\"}}"},
        {"[{\"managedFields\":\"x\"}]", "[{\"managedFields\":\"x\"}]"},
        {"{\"metadata\":{\"managedFieldsX\":1}}", "{\"metadata\":{\"managedFieldsX\":1}}"},
        {"{\"metadata\":{\"managedFields\":[}}", NULL},
        {"{\"metadata\":{\"managedFields\":[\"\\ud800\"]}}", NULL},
        {"{\"metadata\":{\"managedFields\":", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_JSON cJSON *tree = NULL;
        int result = json_parse_without(rows[i].text, strlen(rows[i].text), &omission, &tree, NULL);
        CLEANUP_FREE char *kept = result == 0 ? json_print(tree) : NULL;
        if (!str_equal(kept, rows[i].kept))
            fail_msg("%s: %s", rows[i].text, kept ? kept : "refused");
    }
}

static void a_part_is_read_alone_and_no_further(void **state)
{
    (void)state;
    static const char *const path[] = {"object", "metadata", NULL};
    static const struct json_omission omission = {.parent = "metadata", .key = "managedFields", .depth = 3};
    static const struct {
        const char *text;
        int result;
        const char *part;
    } rows[] = {
        {"{\"type\":\"A\",\"object\":{\"spec\":[{\"metadata\":1}],\"metadata\":{\"name\":\"a\\n\"},\"x\":1}}",
         0, "{\"metadata\":{\"name\":\"a\\n\"}}"},
        {"{\"object\":{\"metadata\":{\"managedFields\":[1],\"name\":\"a\"} what follows is anybody's", 0,
         "{\"metadata\":{\"name\":\"a\"}}"},
        {" { \"object\" : { \"metadata\" : null } } ", 0, "{\"metadata\":null}"},
        {"{\"metadata\":{\"name\":\"a\"},\"object\":{}}", -ERROR_NOT_FOUND, NULL},
        {"{\"object\":[{\"metadata\":{}}]}", -ERROR_NOT_FOUND, NULL},
        {"{}", -ERROR_NOT_FOUND, NULL},
        {"[]", -ERROR_NOT_FOUND, NULL},
        {"{\"object\":{\"spec\":[}", -ERROR_INVALID, NULL},
        {"{\"object\":{\"metadata\":{\"name\":\"a\"", -ERROR_INVALID, NULL},
        {"{\"object\"", -ERROR_INVALID, NULL},
        {"{\"object\":{\"spec\":1 \"metadata\":{}}}", -ERROR_INVALID, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_JSON cJSON *tree = NULL;
        int result = json_parse_part(rows[i].text, strlen(rows[i].text), path, &omission, &tree, NULL);
        CLEANUP_FREE char *part = tree ? json_print(tree) : NULL;
        if (result != rows[i].result || !str_equal(part, rows[i].part))
            fail_msg("%s: %d, %s", rows[i].text, result, part ? part : "nothing");
    }
}

/* Eight bytes are looked at together: what ends a string may stand at each of their places. */
static void a_string_ends_at_any_place(void **state)
{
    (void)state;
    static const char *const specials[] = {"\\n", "\\\"", "\xc3\xa4", "\x7f", "\\u0001"};
    for (size_t length = 0; length < 24; length++) {
        for (size_t i = 0; i < ARRAY_SIZE(specials); i++) {
            for (size_t at = 0; at <= length; at++) {
                CLEANUP_FREE char *text =
                    xasprintf("[\"%.*s%s%.*s\"]", (int)at, "!#$%&'()*+,-./0123456789", specials[i],
                              (int)(length - at), "[]^_`abcdefghijklmnopqrs");
                CLEANUP_JSON cJSON *tree = parse(text);
                CLEANUP_FREE char *printed = json_print(tree);
                assert_string_equal(printed, text);
            }
        }
    }
}

static void a_change_is_carried_over(void **state)
{
    (void)state;
    static const struct {
        const char *was, *is, *object, *becomes;
    } rows[] = {
        {"{}", "{}", "{\"a\":1}", "{\"a\":1}"},
        {"{}", "{\"b\":{\"c\":1}}", "{\"a\":1}", "{\"a\":1,\"b\":{\"c\":1}}"},
        {"{\"a\":1,\"b\":2}", "{\"b\":2}", "{\"a\":3,\"b\":4}", "{\"b\":4}"},
        {"{\"a\":{\"b\":1,\"c\":1}}", "{\"a\":{\"b\":2}}", "{\"a\":{\"c\":9,\"d\":9}}",
         "{\"a\":{\"d\":9,\"b\":2}}"},
        {"{\"a\":{\"b\":1}}", "{\"a\":{\"b\":2}}", "{}", "{\"a\":{\"b\":2}}"},
        {"{\"a\":{\"b\":1}}", "{\"a\":7}", "{\"a\":{\"c\":9}}", "{\"a\":7}"},
        {"{\"a\":[1,2]}", "{\"a\":[1,3]}", "{\"a\":[5]}", "{\"a\":[1,3]}"},
        {"{\"a\":[1,2]}", "{\"a\":[1,2]}", "{\"a\":[5]}", "{\"a\":[5]}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_JSON cJSON *was = parse(rows[i].was), *is = parse(rows[i].is);
        CLEANUP_JSON cJSON *object = parse(rows[i].object), *becomes = parse(rows[i].becomes);
        json_carry(object, was, is);
        assert_true(json_equal(object, becomes));
    }
}

static void equality_is_by_meaning(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        const char *b;
        bool equal;
    } rows[] = {
        {"{\"a\":1,\"b\":[1,2]}", "{\"b\":[1,2],\"a\":1}", true},
        {"{\"a\":{\"y\":1,\"x\":2},\"b\":3}", "{\"a\":{\"x\":2,\"y\":1},\"b\":3}", true},
        {"{\"a\":{\"y\":1,\"x\":2},\"b\":3}", "{\"b\":3,\"a\":{\"x\":2,\"y\":3}}", false},
        {"{\"a\":1}", "{\"A\":1}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}", false},
        {"{\"a\":null}", "{}", false},
        {"{}", "{\"a\":null}", false},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,1]", false},
        {"[]", "{}", false},
        {"9007199254740993", "9007199254740992", false},
        {"9007199254740993", "9007199254740993", true},
        {"\"1\"", "1", false},
        {"true", "false", false},
        {"null", "null", true},
        {"{\"a\":{\"b\":{\"c\":1}}}", "{\"a\":{\"b\":{\"c\":2}}}", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_JSON cJSON *a = parse(rows[i].a);
        CLEANUP_JSON cJSON *b = parse(rows[i].b);
        assert_int_equal(json_equal(a, b), rows[i].equal);
        assert_int_equal(json_equal(b, a), rows[i].equal);
    }
    assert_true(json_equal(NULL, NULL));
}

/* --- random trees --- */

static cJSON *random_text(void)
{
    static const char *const pieces[] = {"a", "\x01", "#", "\"", "\\",  "\n", "\xc3\xa9", "\xf0\x9f\x98\x80",
                                         "/", "\x7f", "0", " ",  "\x1f"};
    CLEANUP_BUF struct buf text = BUF_INIT(1000);
    for (uint64_t i = next_random(6); i > 0; i--)
        ENSURE(buf_add_text(&text, pieces[next_random(ARRAY_SIZE(pieces))]) == 0);
    return json_new_str(buf_text(&text));
}

static cJSON *random_tree(int depth)
{
    uint64_t kind = next_random(depth > 0 ? 8 : 6);
    switch (kind) {
    case 0:
        return cJSON_CreateNull();
    case 1:
        return cJSON_CreateBool(next_random(2) == 0);
    case 2:
        return json_new_int64((int64_t)next_random(2000) - 1000);
    case 3:
        return json_new_int64((int64_t)(next_random(UINT64_MAX) >> next_random(64)) *
                              (next_random(2) ? 1 : -1));
    case 4:
    case 5:
        return random_text();
    case 6: {
        cJSON *array = json_new_array();
        for (uint64_t i = next_random(5); i > 0; i--)
            json_append_item(array, random_tree(depth - 1));
        return array;
    }
    default: {
        cJSON *object = json_new_object();
        for (uint64_t i = next_random(5); i > 0; i--) {
            CLEANUP_JSON cJSON *key = random_text();
            json_set_item(object, key->valuestring, random_tree(depth - 1));
        }
        return object;
    }
    }
}

static void any_tree_comes_back_as_it_was(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        CLEANUP_JSON cJSON *tree = random_tree(4);
        CLEANUP_FREE char *text = json_print(tree);
        CLEANUP_JSON cJSON *back = parse(text);
        assert_true(json_equal(tree, back));
        CLEANUP_FREE char *again = json_print(back);
        assert_string_equal(again, text);
        CLEANUP_JSON cJSON *copy = json_copy(back);
        CLEANUP_FREE char *sorted = json_print_sorted(copy);
        CLEANUP_FREE char *sorted_before = json_print_sorted(tree);
        assert_string_equal(sorted, sorted_before);
    }
}

static void damaged_text_is_refused_or_read_but_never_more(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        CLEANUP_JSON cJSON *tree = random_tree(4);
        CLEANUP_FREE char *text = json_print(tree);
        size_t length = strlen(text);
        text[next_random(length)] = (char)next_random(256);
        length -= next_random(2);
        cJSON *back = NULL;
        if (json_parse(text, length, &back, NULL) == 0) {
            CLEANUP_FREE char *printed = json_print(back);
            CLEANUP_JSON cJSON *third = parse(printed);
            assert_true(json_equal(back, third));
            json_delete(back);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_print_as_they_came),
        cmocka_unit_test(strings_print_as_they_came),
        cmocka_unit_test(what_is_not_json_is_refused),
        cmocka_unit_test(the_length_bounds_what_is_read),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(of_a_key_that_is_there_twice_the_last_value_counts),
        cmocka_unit_test(large_objects_are_compared_in_time),
        cmocka_unit_test(look_ups_are_exact),
        cmocka_unit_test(integers_are_64_bits_wide_or_no_integers),
        cmocka_unit_test(trees_are_built_and_changed),
        cmocka_unit_test(parts_of_a_tree_live_on_without_it),
        cmocka_unit_test(some_members_are_printed_alone),
        cmocka_unit_test(a_member_may_be_left_out_but_is_checked),
        cmocka_unit_test(a_part_is_read_alone_and_no_further),
        cmocka_unit_test(a_string_ends_at_any_place),
        cmocka_unit_test(a_change_is_carried_over),
        cmocka_unit_test(equality_is_by_meaning),
        cmocka_unit_test(any_tree_comes_back_as_it_was),
        cmocka_unit_test(damaged_text_is_refused_or_read_but_never_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
