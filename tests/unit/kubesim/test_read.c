/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

/* The names of a list answer: "a b c "; owned by the world. */
static const char *names(struct world *world)
{
    CLEANUP_BUF struct buf text = BUF_INIT(1024 * 1024);
    const cJSON *item;
    cJSON_ArrayForEach (item, json_get(world->body, "items"))
        buf_addf(&text, "%s ", json_path_str(item, "metadata", "name", NULL));
    json_set_str(world->body, "#names", buf_text(&text));
    return json_str(world->body, "#names");
}

static void make_many(struct world *world, int count)
{
    for (int i = 0; i < count; i++) {
        CLEANUP_FREE char *name = xasprintf("c%d", i);
        CLEANUP_FREE char *extra =
            xasprintf(",\"labels\":{\"odd\":\"%s\",\"n\":\"%d\"}", i % 2 ? "yes" : "no", i);
        make_config(world, name, extra);
    }
}

static void lists_are_sorted_and_selected(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        int status;
        const char *names;
    } rows[] = {
        {"", 200, "c0 c1 c2 c3 "},
        {"?labelSelector=odd%3Dyes", 200, "c1 c3 "},
        {"?labelSelector=odd%3D%3Dyes%2Cn%21%3D1", 200, "c3 "},
        {"?labelSelector=n%20in%20%280%2C3%29", 200, "c0 c3 "},
        {"?labelSelector=n%20notin%20%280%2C3%29", 200, "c1 c2 "},
        {"?labelSelector=odd", 200, "c0 c1 c2 c3 "},
        {"?labelSelector=%21odd", 200, ""},
        {"?labelSelector=other%21%3Dx", 200, "c0 c1 c2 c3 "},
        {"?labelSelector=a%3D%3D%3Db", 400, ""},
        {"?labelSelector=n%20in%200", 400, ""},
        {"?fieldSelector=metadata.name%3Dc2", 200, "c2 "},
        {"?fieldSelector=metadata.name%21%3Dc2", 200, "c0 c1 c3 "},
        {"?fieldSelector=spec.foo%3Dc2", 400, ""},
        {"?fieldSelector=metadata.name", 400, ""},
        {"?resourceVersion=0", 200, "c0 c1 c2 c3 "},
        {"?resourceVersion=99999", 504, ""},
        {"?resourceVersion=abc", 400, ""},
        {"?resourceVersionMatch=Exact", 422, ""},
        {"?resourceVersion=0&resourceVersionMatch=Exact", 422, ""},
        {"?resourceVersion=0&resourceVersionMatch=Sometimes", 422, ""},
        {"?sendInitialEvents=true", 422, ""},
        {"?continue=zz", 400, ""},
    };
    WORLD world = world_make();
    make_many(world, 4);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *path = xasprintf(CONFIGMAPS "%s", rows[i].query);
        int status = ask(world, "GET", path, NULL);
        if (status != rows[i].status || (status == 200 && strcmp(names(world), rows[i].names) != 0))
            fail_msg("%s: %d %s", rows[i].query, status, status == 200 ? names(world) : message(world));
    }
}

static void a_version_that_is_not_there_yet_asks_to_retry(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(ask(world, "GET", CONFIGMAPS "?resourceVersion=99999", NULL), 504);
    assert_int_equal(world->response.retry_after_s, 1);
    assert_int_equal(json_int64_or(json_get(world->body, "details"), "retryAfterSeconds", 0), 1);
}

/* All pages show the state of the first one, whatever happens meanwhile. */
static void pages_are_of_one_moment(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_many(world, 5);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "?limit=2", NULL), 200);
    assert_string_equal(names(world), "c0 c1 ");
    assert_int_equal(json_int64_or(json_get(world->body, "metadata"), "remainingItemCount", 0), 3);
    CLEANUP_FREE char *version = xstrdup(meta(world, "resourceVersion"));
    CLEANUP_FREE char *next = xasprintf(CONFIGMAPS "?limit=2&continue=%s", meta(world, "continue"));
    ask(world, "DELETE", CONFIGMAPS "/c3", NULL);
    make_config(world, "c25", "");
    patch(world, CONFIGMAPS "/c4", MERGE, "{\"data\":{\"a\":\"b\"}}");
    assert_int_equal(ask(world, "GET", next, NULL), 200);
    assert_string_equal(names(world), "c2 c3 ");
    assert_string_equal(meta(world, "resourceVersion"), version);
    CLEANUP_FREE char *last = xasprintf(CONFIGMAPS "?limit=2&continue=%s", meta(world, "continue"));
    assert_int_equal(ask(world, "GET", last, NULL), 200);
    assert_string_equal(names(world), "c4 ");
    assert_null(json_get(json_get(world->body, "items")->child, "data"));
    assert_null(meta(world, "continue"));
}

static void a_page_of_a_forgotten_moment_is_410(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_many(world, 5);
    ask(world, "GET", CONFIGMAPS "?limit=2", NULL);
    CLEANUP_FREE char *next = xasprintf(CONFIGMAPS "?limit=2&continue=%s", meta(world, "continue"));
    make_config(world, "x", "");
    kubesim_compact(world->sim);
    assert_int_equal(ask(world, "GET", next, NULL), 410);
    assert_string_equal(reason(world), "Expired");
}

static void an_exact_list_shows_the_past(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_many(world, 2);
    CLEANUP_FREE char *path = xasprintf(CONFIGMAPS "?resourceVersionMatch=Exact&resourceVersion=%s",
                                        meta(world, "resourceVersion"));
    ask(world, "DELETE", CONFIGMAPS "/c0", NULL);
    make_config(world, "z", "");
    assert_int_equal(ask(world, "GET", path, NULL), 200);
    assert_string_equal(names(world), "c0 c1 ");
}

static void items_of_built_in_lists_have_no_type(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_widgets(world);
    make_many(world, 1);
    make_widget(world, "w", "\"word\":\"ab\"");
    ask(world, "GET", CONFIGMAPS, NULL);
    assert_string_equal(json_str(world->body, "kind"), "ConfigMapList");
    assert_null(json_get(json_get(world->body, "items")->child, "kind"));
    ask(world, "GET", WIDGETS, NULL);
    assert_string_equal(json_str(world->body, "kind"), "WidgetList");
    assert_string_equal(json_str(json_get(world->body, "items")->child, "kind"), "Widget");
}

static void one_namespace_or_all(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_many(world, 1);
    assert_int_equal(ask(world, "POST", "/api/v1/namespaces/kube-system/configmaps",
                         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"k\"}}"),
                     201);
    ask(world, "GET", CONFIGMAPS, NULL);
    assert_string_equal(names(world), "c0 ");
    ask(world, "GET", "/api/v1/configmaps", NULL);
    assert_string_equal(names(world), "c0 k ");
    ask(world, "GET", "/api/v1/namespaces/def/configmaps", NULL);
    assert_string_equal(names(world), "");
}

/* --- watches
 * -------------------------------------------------------------------------------------------------------- */

static char *watch_path(struct world *world, const char *query)
{
    assert_int_equal(ask(world, "GET", CONFIGMAPS, NULL), 200);
    return xasprintf(CONFIGMAPS "?watch=true&resourceVersion=%s%s", meta(world, "resourceVersion"), query);
}

static void change_much(struct world *world)
{
    make_config(world, "w", ",\"labels\":{\"a\":\"b\"}");
    patch(world, CONFIGMAPS "/w", MERGE, "{\"data\":{\"v\":\"2\"}}");
    patch(world, CONFIGMAPS "/w", MERGE, "{\"data\":{\"v\":\"2\"}}");
    patch(world, CONFIGMAPS "/w", MERGE, "{\"metadata\":{\"labels\":{\"a\":\"c\"}}}");
    patch(world, CONFIGMAPS "/w", MERGE, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    ask(world, "DELETE", CONFIGMAPS "/w", NULL);
}

static void a_watch_tells_what_changes(void **state)
{
    (void)state;
    WORLD world = world_make();
    CLEANUP_FREE char *path = watch_path(world, "");
    TOLD told;
    assert_int_equal(watch(world, &told, path), 200);
    change_much(world);
    assert_string_equal(buf_text(&told.lines), "ADDED w\nMODIFIED w\nMODIFIED w\nMODIFIED w\nDELETED w\n");
    CLEANUP_FREE char *version =
        xasprintf("%llu", (unsigned long long)kubesim_count(world->sim).resource_version);
    assert_string_equal(json_path_str(told.last, "object", "metadata", "resourceVersion", NULL), version);
}

static void what_leaves_the_selection_is_told_as_deleted(void **state)
{
    (void)state;
    WORLD world = world_make();
    CLEANUP_FREE char *path = watch_path(world, "&labelSelector=a%3Db");
    TOLD told;
    watch(world, &told, path);
    change_much(world);
    assert_string_equal(buf_text(&told.lines), "ADDED w\nMODIFIED w\nDELETED w\nADDED w\nDELETED w\n");
}

static void a_watch_resumes_from_its_version(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_many(world, 1);
    CLEANUP_FREE char *path = watch_path(world, "");
    change_much(world);
    TOLD told;
    watch(world, &told, path);
    assert_string_equal(buf_text(&told.lines), "ADDED w\nMODIFIED w\nMODIFIED w\nMODIFIED w\nDELETED w\n");
    make_config(world, "after", "");
    assert_true(str_ends_with(buf_text(&told.lines), "ADDED after\n"));
}

static void without_a_version_everything_is_told_first(void **state)
{
    (void)state;
    static const char *const queries[] = {"", "&resourceVersion=0"};
    WORLD world = world_make();
    make_many(world, 2);
    for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
        CLEANUP_FREE char *path = xasprintf(CONFIGMAPS "?watch=1%s", queries[i]);
        TOLD told;
        watch(world, &told, path);
        assert_string_equal(buf_text(&told.lines), "ADDED c0\nADDED c1\n");
    }
}

static void a_streaming_list_ends_with_a_bookmark(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_many(world, 2);
    TOLD told;
    watch(world, &told,
          CONFIGMAPS
          "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    assert_string_equal(buf_text(&told.lines), "ADDED c0\nADDED c1\nBOOKMARK -\n");
    assert_string_equal(
        json_path_str(told.last, "object", "metadata", "annotations", "k8s.io/initial-events-end", NULL),
        "true");
}

static void a_forgotten_version_is_told_as_410(void **state)
{
    (void)state;
    WORLD world = world_make();
    CLEANUP_FREE char *path = watch_path(world, "");
    make_many(world, 1);
    kubesim_compact(world->sim);
    TOLD told;
    assert_int_equal(watch(world, &told, path), 200);
    assert_string_equal(buf_text(&told.lines), "ERROR -\n");
    assert_int_equal(json_int64_or(json_get(told.last, "object"), "code", 0), 410);
    assert_true(told.ended && told.clean);
}

static void the_history_has_a_window(void **state)
{
    (void)state;
    struct world *bare = xcalloc(1, sizeof(*bare));
    struct kubesim_options options = world_options(bare);
    options.history_max = 20;
    WORLD world = world_make_with(&options, bare);
    CLEANUP_FREE char *path = watch_path(world, "");
    make_many(world, 20);
    TOLD in_time;
    watch(world, &in_time, path);
    assert_false(in_time.ended);
    make_config(world, "one-more", "");
    TOLD late;
    watch(world, &late, path);
    assert_true(late.ended);
}

static void bookmarks_come_from_time_to_time(void **state)
{
    (void)state;
    WORLD world = world_make();
    CLEANUP_FREE char *path = watch_path(world, "&allowWatchBookmarks=true&timeoutSeconds=300");
    TOLD told;
    pass(world, 0);
    watch(world, &told, path);
    assert_int_equal(kubesim_next_tick_us(world->sim), world->now_us + 60 * US_PER_S);
    pass(world, 61);
    assert_string_equal(buf_text(&told.lines), "BOOKMARK -\n");
    for (int i = 0; i < 4; i++)
        pass(world, 61);
    assert_true(told.ended && told.clean);
}

static void a_watch_ends_after_its_timeout(void **state)
{
    (void)state;
    WORLD world = world_make();
    CLEANUP_FREE char *path = watch_path(world, "&timeoutSeconds=10");
    TOLD told;
    watch(world, &told, path);
    pass(world, 9);
    assert_false(told.ended);
    pass(world, 1);
    assert_true(told.ended && told.clean);
    make_many(world, 1);
    assert_string_equal(buf_text(&told.lines), "");
}

static void a_watch_is_refused_with_a_status(void **state)
{
    (void)state;
    WORLD world = world_make();
    TOLD told;
    assert_int_equal(watch(world, &told, CONFIGMAPS "?watch=1&resourceVersion=abc"), 500);
    assert_null(told.watch);
    assert_int_equal(watch(world, &told, CONFIGMAPS "?watch=1&labelSelector=%3D"), 400);
    assert_int_equal(watch(world, &told, CONFIGMAPS "?watch=1&sendInitialEvents=true"), 422);
    assert_int_equal(watch(world, &told, "/apis/none.io/v1/nothings?watch=1"), 404);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "?watch=1", NULL), 400);
}

static void a_table_watch_sends_rows(void **state)
{
    (void)state;
    static const struct kubesim_watch_callbacks callbacks = {.on_line = told_line, .on_end = told_end};
    const struct kubesim_request request = {
        .method = "GET", .path = PODS "?watch=1", .accept = "application/json;as=Table;v=v1;g=meta.k8s.io"};
    WORLD world = world_make();
    TOLD told = {.lines = BUF_INIT(1024 * 1024)};
    struct kubesim_response response;
    told.watch = kubesim_watch_open(world->sim, &request, &callbacks, &told, &response);
    kubesim_response_done(&response);
    make_pod(world, "p", NULL);
    assert_string_equal(json_path_str(told.last, "object", "kind", NULL), "Table");
    const cJSON *cells = json_get(json_path(told.last, "object", "rows", NULL)->child, "cells");
    CLEANUP_FREE char *text = json_print(cells);
    assert_string_equal(
        text, "[\"p\",\"0/2\",\"Pending\",\"0\",\"0s\",\"<none>\",\"<none>\",\"<none>\",\"<none>\"]");
}

/* --- discovery
 * -------------------------------------------------------------------------------------------------------- */

static void clients_find_their_way(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *words;
    } rows[] = {
        {"/version", "\"minor\":\"36\""},
        {"/healthz", "ok"},
        {"/readyz?verbose", "ok"},
        {"/livez", "ok"},
        {"/api", "\"versions\":[\"v1\"]"},
        {"/apis", "\"name\":\"ex.io\""},
        {"/apis/ex.io", "\"preferredVersion\":{\"groupVersion\":\"ex.io/v1\""},
        {"/apis/ex.io/v1", "\"shortNames\":[\"wd\"]"},
        {"/apis/ex.io/v1", "\"name\":\"widgets/scale\""},
        {"/api/v1", "\"name\":\"pods/eviction\""},
        {"/openapi/v3", "apis/ex.io/v1"},
        {"/openapi/v3/apis/ex.io/v1", "fieldValidation"},
        {"/openapi/v3/api/v1", "io.k8s.api.core.v1.Pod"},
    };
    WORLD world = world_make();
    make_widgets(world);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (ask(world, "GET", rows[i].path, NULL) != 200 || !strstr(world->response.body, rows[i].words))
            fail_msg("%s: %d", rows[i].path, world->response.status);
    assert_int_equal(ask(world, "GET", "/apis/none.io/v1", NULL), 404);
    assert_int_equal(ask(world, "POST", "/version", "{}"), 405);
}

static void reviews_allow_or_deny(void **state)
{
    (void)state;
    static const char body[] =
        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\",\"spec\":"
        "{\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\"}}}";
    static const char path[] = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    WORLD world = world_make();
    assert_int_equal(ask(world, "POST", path, body), 201);
    assert_true(json_bool_or(json_get(world->body, "status"), "allowed", false));
    struct world *bare = xcalloc(1, sizeof(*bare));
    struct kubesim_options options = world_options(bare);
    options.deny_reviews = true;
    WORLD closed = world_make_with(&options, bare);
    assert_int_equal(ask(closed, "POST", path, body), 201);
    assert_false(json_bool_or(json_get(closed->body, "status"), "allowed", true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_sorted_and_selected),
        cmocka_unit_test(a_version_that_is_not_there_yet_asks_to_retry),
        cmocka_unit_test(pages_are_of_one_moment),
        cmocka_unit_test(a_page_of_a_forgotten_moment_is_410),
        cmocka_unit_test(an_exact_list_shows_the_past),
        cmocka_unit_test(items_of_built_in_lists_have_no_type),
        cmocka_unit_test(one_namespace_or_all),
        cmocka_unit_test(a_watch_tells_what_changes),
        cmocka_unit_test(what_leaves_the_selection_is_told_as_deleted),
        cmocka_unit_test(a_watch_resumes_from_its_version),
        cmocka_unit_test(without_a_version_everything_is_told_first),
        cmocka_unit_test(a_streaming_list_ends_with_a_bookmark),
        cmocka_unit_test(a_forgotten_version_is_told_as_410),
        cmocka_unit_test(the_history_has_a_window),
        cmocka_unit_test(bookmarks_come_from_time_to_time),
        cmocka_unit_test(a_watch_ends_after_its_timeout),
        cmocka_unit_test(a_watch_is_refused_with_a_status),
        cmocka_unit_test(a_table_watch_sends_rows),
        cmocka_unit_test(clients_find_their_way),
        cmocka_unit_test(reviews_allow_or_deny),
    };
    return cmocka_run_group_tests_name("kubesim reads", tests, NULL, NULL);
}
