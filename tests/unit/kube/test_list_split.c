/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list_split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct seen {
    char elements[4096]; /* each followed by '|' */
    unsigned stop_after; /* 0: never */
    unsigned count;
};

static bool on_item(void *context, const char *text, size_t length)
{
    struct seen *seen = context;
    assert_int_equal(strlen(text), length);
    size_t at = strlen(seen->elements);
    snprintf(seen->elements + at, sizeof(seen->elements) - at, "%s|", text);
    return ++seen->count != seen->stop_after;
}

/* Feeds text in pieces of `piece` bytes. */
static int feed(struct list_split *split, const char *text, size_t piece)
{
    size_t length = strlen(text);
    for (size_t at = 0; at < length; at += piece) {
        int result = list_split_feed(split, text + at, MIN(piece, length - at));
        if (result < 0)
            return result;
    }
    return 0;
}

static void a_list_is_taken_apart_wherever_it_is_cut(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *elements;
        const char *envelope;
    } cases[] = {
        {"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"a\":1},{\"b\":[{}]}]}",
         "{\"a\":1}|{\"b\":[{}]}|",
         "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}"},
        {"{\"items\":[],\"metadata\":{\"items\":[{}],\"x\":\"items\"}}", "",
         "{\"items\":[],\"metadata\":{\"items\":[{}],\"x\":\"items\"}}"},
        {" { \"items\" : [ {\"s\":\"}],{\\\"\"} , { } ] , \"z\" : [1,{\"q\":2}] } \n",
         "{\"s\":\"}],{\\\"\"}|{ }|", " { \"items\" : [] , \"z\" : [1,{\"q\":2}] } \n"},
        {"{\"items\":null,\"xitems\":[{}],\"itemsx\":[{}]}", "",
         "{\"items\":null,\"xitems\":[{}],\"itemsx\":[{}]}"},
        {"{\"x\":\"items\",\"y\":[{}]}", "", "{\"x\":\"items\",\"y\":[{}]}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (size_t piece = 1; piece < 12; piece++) {
            struct seen seen = {0};
            struct list_split split;
            list_split_begin(&split, on_item, &seen);
            assert_int_equal(feed(&split, cases[i].text, piece), 0);
            assert_true(split.complete);
            assert_string_equal(seen.elements, cases[i].elements);
            size_t length;
            assert_string_equal(list_split_envelope(&split, &length), cases[i].envelope);
            assert_int_equal(length, strlen(cases[i].envelope));
            list_split_done(&split);
        }
    }
}

static void what_is_no_list_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]",
        "]",
        "{\"items\":[7]}",
        "{\"items\":[\"a\"]}",
        "{\"items\":[[]]}",
        "{\"items\":[{}{}]}",
        "{\"items\":[,{}]}",
        "{\"items\":[{},,{}]}",
        "{}{}",
        "{\"items\":[true]}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct seen seen = {0};
        struct list_split split;
        list_split_begin(&split, on_item, &seen);
        assert_int_equal(feed(&split, texts[i], 3), -ERROR_INVALID);
        list_split_done(&split);
    }
}

static void a_cut_list_is_not_complete(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct list_split split;
    list_split_begin(&split, on_item, &seen);
    assert_int_equal(feed(&split, "{\"metadata\":{},\"items\":[{\"a\":1},{\"b\":", 5), 0);
    assert_false(split.complete);
    assert_string_equal(seen.elements, "{\"a\":1}|");
    list_split_done(&split);
}

static void the_reader_can_stop(void **state)
{
    (void)state;
    struct seen seen = {.stop_after = 1};
    struct list_split split;
    list_split_begin(&split, on_item, &seen);
    assert_int_equal(feed(&split, "{\"items\":[{},{}]}", 100), -ERROR_CANCELLED);
    assert_int_equal(seen.count, 1);
    list_split_done(&split);
}

static void an_object_and_the_rest_have_a_bound(void **state)
{
    (void)state;
    static char filler[1024 * 1024];
    memset(filler, 'x', sizeof(filler));
    static const char *const beginnings[] = {"{\"items\":[{\"a\":\"", "{\"metadata\":\""};
    for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
        struct seen seen = {0};
        struct list_split split;
        list_split_begin(&split, on_item, &seen);
        assert_int_equal(feed(&split, beginnings[i], 100), 0);
        int result = 0;
        for (int mib = 0; mib < 33 && result == 0; mib++)
            result = list_split_feed(&split, filler, sizeof(filler));
        assert_int_equal(result, -ERROR_TOO_LARGE);
        list_split_done(&split);
    }
}

/* It only counts: how deep an element is its reader's concern. */
static void depth_is_no_concern(void **state)
{
    (void)state;
    enum { DEPTH = 9000 };
    struct seen seen = {0};
    struct list_split split;
    list_split_begin(&split, on_item, &seen);
    assert_int_equal(feed(&split, "{\"items\":[{\"a\":", 100), 0);
    for (int i = 0; i < DEPTH; i++)
        assert_int_equal(list_split_feed(&split, "[", 1), 0);
    for (int i = 0; i < DEPTH; i++)
        assert_int_equal(list_split_feed(&split, "]", 1), 0);
    assert_int_equal(feed(&split, "},{}]}", 100), 0);
    assert_int_equal(seen.count, 2);
    assert_true(split.complete);
    list_split_done(&split);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_taken_apart_wherever_it_is_cut),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(a_cut_list_is_not_complete),
        cmocka_unit_test(the_reader_can_stop),
        cmocka_unit_test(an_object_and_the_rest_have_a_bound),
        cmocka_unit_test(depth_is_no_concern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
