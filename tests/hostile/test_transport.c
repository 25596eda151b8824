/* SPDX-License-Identifier: Apache-2.0
 *
 * The real transport over HTTP/1.1: what arrives, what is told, what leaves at most once or not at all, and
 * what may be done inside callbacks. */
#include "hostile_client.h"
#include "hostile_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void begin(struct hostile_scene *scene, hostile_serve *serve, const void *context)
{
    struct hostile_options options = {.serve = serve, .context = (void *)context};
    hostile_scene_begin(scene, &options);
}

/* --- ordinary --- */

static void an_answer_is_told_with_its_headers(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_text,
          "HTTP/1.1 429 Too Many\r\naudit-id: neo-1\r\nRETRY-AFTER: 7\r\nContent-Length: 4\r\n\r\nbusy");
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.outcome, HTTP_ANSWERED);
    assert_int_equal(heard.answer.status, 429);
    assert_true(heard.answer.body_whole);
    assert_string_equal(heard.answer.body, "busy");
    assert_string_equal(heard.answer.audit_id, "neo-1");
    assert_int_equal(heard.answer.retry_after_us, 7000000);
    assert_int_equal(heard.answer.code, ERROR_NONE);
    assert_null(heard.answer.problem);
}

static int64_t retry_after_of(const char *value)
{
    CLEANUP_FREE char *text =
        xasprintf("HTTP/1.1 503 No\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n", value);
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_text, text);
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    return heard.answer.retry_after_us;
}

static void retry_after_is_seconds_or_a_date(void **state)
{
    (void)state;
    assert_int_equal(retry_after_of("0"), 0);
    assert_int_equal(retry_after_of("120"), 120000000);
    assert_int_equal(retry_after_of("99999999999999999999"), 86400LL * 1000000);
    assert_int_equal(retry_after_of("Wed, 21 Oct 2015 07:28:00 GMT"), 0);
    assert_int_equal(retry_after_of("Fri, 31 Dec 2999 23:59:59 GMT"), 86400LL * 1000000);
    assert_int_equal(retry_after_of("soon"), -1);
    assert_int_equal(retry_after_of("-5"), -1);
}

static void a_request_arrives_as_it_was_given(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_ok, NULL);
    static const struct http_header headers[] = {
        {"Content-Type", "application/merge-patch+json"}, {"Audit-ID", "neo-x-1"}, {"X-Empty", ""}};
    scene.post.method = "PATCH";
    scene.post.path = "/a/../b/%2e%2e/c?x=%20y";
    scene.post.headers = headers;
    scene.post.header_count = ARRAY_SIZE(headers);
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.post);
    assert_int_equal(heard.answer.status, 200);
    CLEANUP_FREE char *text = hostile_request(scene.server, 0);
    assert_non_null(strstr(text, "PATCH /a/../b/%2e%2e/c?x=%20y HTTP/1.1\r\n"));
    assert_non_null(strstr(text, "\r\nContent-Type: application/merge-patch+json\r\n"));
    assert_non_null(strstr(text, "\r\nAudit-ID: neo-x-1\r\n"));
    assert_non_null(strstr(text, "\r\nX-Empty:\r\n"));
    assert_non_null(strstr(text, "\r\nContent-Length: 7\r\n"));
    assert_non_null(strstr(text, "\r\n\r\n{\"a\":1}"));
    assert_null(strcasestr(text, "Expect:"));
    assert_null(strcasestr(text, "Transfer-Encoding"));
}

static void a_write_without_a_body_has_no_made_up_headers(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_ok, NULL);
    scene.get.method = "DELETE";
    scene.get.once = true;
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    CLEANUP_FREE char *text = hostile_request(scene.server, 0);
    assert_true(str_starts_with(text, "DELETE /x HTTP/1.1\r\n"));
    assert_null(strcasestr(text, "Content-Type"));
    assert_null(strcasestr(text, "Accept-Encoding"));
}

static void a_large_body_arrives_whole(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_ok, NULL);
    size_t length = (1 << 20) + 1; /* from there on libcurl would ask for a 100 first */
    CLEANUP_FREE char *body = xmalloc(length);
    memset(body, 'b', length);
    scene.post.body = body;
    scene.post.body_length = length;
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.post);
    CLEANUP_FREE char *text = hostile_request(scene.server, 0);
    assert_null(strcasestr(text, "Expect:"));
    const char *sent = strstr(text, "\r\n\r\n") + 4;
    assert_int_equal(strlen(sent), length);
    assert_memory_equal(sent, body, length);
}

static void a_connection_is_kept_and_a_fresh_one_is_made_on_demand(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_ok, NULL);
    for (int i = 0; i < 3; i++) {
        scene.get.fresh_connection = i == 2;
        CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
        assert_int_equal(heard.answer.status, 200);
        assert_int_equal(hostile_connection_count(scene.server), i == 2 ? 2 : 1);
    }
}

static void each_pool_has_its_own_connections(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_ok, NULL);
    for (int pool = 0; pool < HTTP_POOL_COUNT; pool++) {
        scene.get.pool = (enum http_pool)pool;
        CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    }
    assert_int_equal(hostile_connection_count(scene.server), HTTP_POOL_COUNT);
}

static void a_redirect_is_an_answer(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_text,
          "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n");
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.status, 302);
    assert_int_equal(hostile_request_count(scene.server), 1);
}

static void interim_answers_are_passed_over(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_text,
          "HTTP/1.1 103 Early Hints\r\nAudit-Id: early\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
          "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok");
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.post);
    assert_int_equal(heard.answer.status, 201);
    assert_int_equal(heard.status_count, 1);
    assert_null(heard.answer.audit_id);
    assert_string_equal(heard.answer.body, "ok");
}

static void a_stream_is_handed_over_and_an_error_body_is_kept(void **state)
{
    (void)state;
    static const char *const texts[] = {"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                                        "chunked\r\n\r\n4\r\none\n\r\n4\r\ntwo\n\r\n0\r\nTrailer: x\r\n\r\n",
                                        "HTTP/1.1 410 Gone\r\nContent-Length: 3\r\n\r\nold"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
        begin(&scene, hostile_serve_text, texts[i]);
        CLEANUP_HEARD struct heard heard;
        heard_init(&heard, scene.env);
        heard.stream = true;
        heard_ask(&heard, &scene.get);
        assert_true(heard.answer.body_whole);
        assert_string_equal(buf_text(&heard.streamed), i == 0 ? "one\ntwo\n" : "");
        assert_string_equal(heard.answer.body, i == 0 ? "" : "old");
        assert_int_equal(heard.status_count, 1);
    }
}

/* --- at most once --- */

/* Answers GETs; closes without a word when it has read anything else. */
static void serve_and_drop_writes(struct hostile_connection *connection, void *context)
{
    bool *reset = context;
    while (hostile_read_request(connection)) {
        if (!str_starts_with(hostile_last_request(connection), "GET")) {
            if (*reset)
                hostile_reset(connection);
            return;
        }
        if (!hostile_answer(connection, 200, "{}"))
            return;
    }
}

static void a_write_whose_answer_is_lost_on_a_reused_connection_is_sent_once(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        bool body;
        bool reset;
    } rows[] = {{"POST", true, false},  {"POST", true, true},    {"PATCH", true, false},
                {"PUT", true, true},    {"DELETE", true, false}, {"DELETE", false, false},
                {"DELETE", false, true}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool reset = rows[i].reset;
        CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
        begin(&scene, serve_and_drop_writes, &reset);
        CLEANUP_HEARD struct heard first = heard_from(scene.env, &scene.get);
        assert_int_equal(first.answer.status, 200);
        scene.post.method = rows[i].method;
        if (!rows[i].body)
            scene.post.body = NULL;
        CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.post);
        assert_int_equal(heard.answer.outcome, HTTP_NO_ANSWER);
        assert_int_equal(heard.answer.status, 0);
        assert_int_equal(heard.answer.code, ERROR_UNREACHABLE);
        assert_int_equal(heard.before_send_count, 1);
        assert_int_equal(heard.done_count, 1);
        assert_int_equal(hostile_scene_requests(&scene, rows[i].method), 1);
    }
}

/* The first connection answers once and then drops what comes. */
static void serve_drop_second(struct hostile_connection *connection, void *context)
{
    (void)context;
    size_t served = 0;
    while (hostile_read_request(connection)) {
        if (hostile_number(connection) == 0 && served++ > 0)
            return;
        if (!hostile_answer(connection, 200, "{}"))
            return;
    }
}

static void a_read_may_be_repeated_on_a_new_connection(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, serve_drop_second, NULL);
    for (int i = 0; i < 2; i++) {
        CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
        assert_int_equal(heard.answer.status, 200);
    }
    assert_int_equal(hostile_request_count(scene.server), 3);
}

static void a_refused_hook_keeps_the_request_here(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_ok, NULL);
    CLEANUP_HEARD struct heard heard;
    heard_init(&heard, scene.env);
    heard.refuse = true;
    heard_ask(&heard, &scene.post);
    assert_int_equal(heard.answer.outcome, HTTP_NOT_SENT);
    assert_int_equal(heard.answer.code, ERROR_CANCELLED);
    assert_int_equal(heard.before_send_count, 1);
    /* Something that does arrive, later, proves that nothing was under way. */
    CLEANUP_HEARD struct heard after = heard_from(scene.env, &scene.get);
    assert_int_equal(hostile_request_count(scene.server), 1);
    assert_int_equal(hostile_scene_requests(&scene, "POST"), 0);
}

static void an_interim_answer_alone_is_no_answer(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_text, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 2");
    scene.post.idle_timeout_us = 200000;
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.post);
    assert_int_equal(heard.answer.outcome, HTTP_NO_ANSWER);
    assert_int_equal(heard.answer.status, 0);
}

/* --- never sent --- */

static void nobody_listening_is_not_sent(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_ok, NULL);
    hostile_stop(scene.server);
    scene.server = NULL;
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.post);
    assert_int_equal(heard.answer.outcome, HTTP_NOT_SENT);
    assert_int_equal(heard.answer.code, ERROR_UNREACHABLE);
    assert_int_equal(heard.before_send_count, 0);
    assert_non_null(strstr(heard.answer.problem, scene.target.base_url + strlen("http://")));
    assert_non_null(strstr(heard.answer.problem, "Connection refused"));
}

static void what_cannot_be_a_request_is_not_sent(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        const char *value;
        const char *words;
    } rows[] = {
        {"ftp://127.0.0.1", "x", "not a URL"},
        {"127.0.0.1:6443", "x", "not a URL"},
        {"http://a b", "x", "not a URL"},
        {"", "x", "not a URL"},
        {"http://127.0.0.1:99999", "x", "not a URL"},
        {"http://127.0.0.1:1", "Bearer a\nX: y", "control character"},
        {"file:///etc/passwd", "x", "not a URL"},
    };
    CLEANUP_ENV struct env *env = env_real_make();
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct http_server server = {.base_url = (char *)rows[i].url};
        struct http_header header = {"Authorization", rows[i].value};
        struct http_request request = heard_get(&server);
        request.headers = &header;
        request.header_count = 1;
        CLEANUP_HEARD struct heard heard = heard_from(env, &request);
        assert_int_equal(heard.answer.outcome, HTTP_NOT_SENT);
        assert_int_equal(heard.answer.code, ERROR_INVALID);
        assert_non_null(strstr(heard.answer.problem, rows[i].words));
    }
}

static void an_unknown_name_is_not_sent(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct http_server server = {.base_url = (char *)"http://name.invalid:6443"};
    struct http_request request = heard_get(&server);
    CLEANUP_HEARD struct heard heard = heard_from(env, &request);
    assert_int_equal(heard.answer.outcome, HTTP_NOT_SENT);
    assert_int_equal(heard.answer.code, ERROR_UNREACHABLE);
    assert_non_null(strstr(heard.answer.problem, "name.invalid"));
}

/* --- proxies --- */

static void only_the_kubeconfig_names_a_proxy(void **state)
{
    (void)state;
    assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    assert_int_equal(setenv("ALL_PROXY", "http://127.0.0.1:1", 1), 0);
    assert_int_equal(setenv("NO_PROXY", "*", 1), 0);
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_ok, NULL);
    CLEANUP_HEARD struct heard direct = heard_from(scene.env, &scene.get);
    assert_int_equal(direct.answer.status, 200);
    struct http_server far = {.base_url = (char *)"http://far.invalid:6443",
                              .proxy_url = scene.target.base_url};
    scene.get.server = &far;
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.status, 200);
    CLEANUP_FREE char *text = hostile_request(scene.server, 1);
    assert_true(str_starts_with(text, "GET http://far.invalid:6443/x HTTP/1.1\r\n"));
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    unsetenv("NO_PROXY");
}

/* --- inside callbacks --- */

static void cancel_self(struct heard *heard)
{
    env_http_cancel(heard->env, &heard->http);
    env_stop(heard->env);
}

static void cancel_user(struct heard *heard)
{
    struct heard *other = heard->user;
    env_http_cancel(heard->env, &other->http);
    cancel_self(heard);
}

typedef void moment(struct heard *);

static void set_moment(struct heard *heard, int which, moment *act)
{
    moment **slots[] = {&heard->at_before_send, &heard->at_status, &heard->at_data, &heard->at_done};
    *slots[which] = act;
}

static void a_request_can_be_cancelled_in_each_callback(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        for (int both = 0; both < 2; both++) {
            CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
            begin(&scene, hostile_serve_ok, NULL);
            CLEANUP_HEARD struct heard other;
            heard_init(&other, scene.env);
            CLEANUP_HEARD struct heard heard;
            heard_init(&heard, scene.env);
            heard.stream = true;
            heard.user = &other;
            set_moment(&heard, which, both ? cancel_user : cancel_self);
            heard_submit(&heard, &scene.get);
            if (both)
                heard_submit(&other, &scene.get);
            env_run(scene.env); /* until the moment */
            /* A later request shows that the loop goes on. */
            CLEANUP_HEARD struct heard after = heard_from(scene.env, &scene.get);
            assert_int_equal(after.answer.status, 200);
            assert_int_equal(heard.done_count, which == 3 ? 1 : 0);
        }
    }
}

struct second {
    struct heard heard;
    struct http_request request;
};

static void submit_second(struct heard *heard)
{
    struct second *second = heard->user;
    heard_submit(&second->heard, &second->request);
}

static void a_request_can_be_started_in_each_callback(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
        begin(&scene, hostile_serve_ok, NULL);
        size_t left = 2;
        struct second second = {.request = scene.get};
        heard_init(&second.heard, scene.env);
        second.heard.left = &left;
        second.request.fresh_connection = which % 2;
        CLEANUP_HEARD struct heard heard;
        heard_init(&heard, scene.env);
        heard.stream = true;
        heard.user = &second;
        heard.left = &left;
        set_moment(&heard, which, submit_second);
        heard_submit(&heard, &scene.get);
        heard_wait(scene.env, &left);
        assert_int_equal(heard.answer.status, 200);
        assert_int_equal(second.heard.answer.status, 200);
        heard_done(&second.heard);
    }
}

static void a_request_can_be_cancelled_before_and_while_it_runs(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_nothing, NULL);
    struct heard heard[3];
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        heard_init(&heard[i], scene.env);
        heard_submit(&heard[i], &scene.get);
    }
    env_http_cancel(scene.env, &heard[0].http);
    scene.get.timeout_us = 100000; /* one that times out runs the loop meanwhile */
    CLEANUP_HEARD struct heard ticking = heard_from(scene.env, &scene.get);
    env_http_cancel(scene.env, &heard[1].http);
    env_free(scene.env); /* the third one is still under way */
    scene.env = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        assert_int_equal(heard[i].done_count, 0);
        heard_done(&heard[i]);
    }
}

static void many_requests_share_few_connections(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_ok, NULL);
    struct heard heard[150];
    size_t left = ARRAY_SIZE(heard);
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        heard_init(&heard[i], scene.env);
        heard[i].left = &left;
        heard_submit(&heard[i], &scene.get);
    }
    heard_wait(scene.env, &left);
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        assert_int_equal(heard[i].answer.status, 200);
        heard_done(&heard[i]);
    }
    assert_in_range(hostile_connection_count(scene.server), 1, 8);
    assert_int_equal(hostile_request_count(scene.server), 150);
}

/* Connections of one server, by pool. */
enum { CONNECTIONS_MAX = 8 };

/* The first ones hang; what waits behind them goes out on connections of its own when those are given up. */
static void serve_nothing_then_ok(struct hostile_connection *connection, void *context)
{
    if (hostile_number(connection) < CONNECTIONS_MAX)
        hostile_serve_nothing(connection, context);
    else
        hostile_serve_ok(connection, context);
}

static void what_waits_behind_a_stall_goes_out_after_it(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, serve_nothing_then_ok, NULL);
    struct heard heard[CONNECTIONS_MAX + 20];
    size_t left = ARRAY_SIZE(heard);
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        heard_init(&heard[i], scene.env);
        heard[i].left = &left;
        scene.get.timeout_us = i < CONNECTIONS_MAX ? 500000 : 10000000;
        heard_submit(&heard[i], &scene.get);
    }
    heard_wait(scene.env, &left);
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        assert_int_equal(heard[i].answer.outcome, i < CONNECTIONS_MAX ? HTTP_NO_ANSWER : HTTP_ANSWERED);
        heard_done(&heard[i]);
    }
}

static void what_waits_ends_at_its_own_time_unsent(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, hostile_serve_nothing, NULL);
    struct heard heard[CONNECTIONS_MAX];
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        heard_init(&heard[i], scene.env);
        heard_submit(&heard[i], &scene.get);
    }
    scene.get.timeout_us = 300000;
    CLEANUP_HEARD struct heard waiting = heard_from(scene.env, &scene.get);
    assert_int_equal(waiting.answer.outcome, HTTP_NOT_SENT);
    assert_int_equal(waiting.answer.code, ERROR_TIMED_OUT);
    assert_non_null(strstr(waiting.answer.problem, "so slow with the requests before this one"));
    assert_int_equal(waiting.before_send_count, 0);
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        assert_int_equal(heard[i].done_count, 0);
        env_http_cancel(scene.env, &heard[i].http);
        heard_done(&heard[i]);
    }
    assert_int_equal(hostile_request_count(scene.server), CONNECTIONS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_told_with_its_headers),
        cmocka_unit_test(retry_after_is_seconds_or_a_date),
        cmocka_unit_test(a_request_arrives_as_it_was_given),
        cmocka_unit_test(a_write_without_a_body_has_no_made_up_headers),
        cmocka_unit_test(a_large_body_arrives_whole),
        cmocka_unit_test(a_connection_is_kept_and_a_fresh_one_is_made_on_demand),
        cmocka_unit_test(each_pool_has_its_own_connections),
        cmocka_unit_test(a_redirect_is_an_answer),
        cmocka_unit_test(interim_answers_are_passed_over),
        cmocka_unit_test(a_stream_is_handed_over_and_an_error_body_is_kept),
        cmocka_unit_test(a_write_whose_answer_is_lost_on_a_reused_connection_is_sent_once),
        cmocka_unit_test(a_read_may_be_repeated_on_a_new_connection),
        cmocka_unit_test(a_refused_hook_keeps_the_request_here),
        cmocka_unit_test(an_interim_answer_alone_is_no_answer),
        cmocka_unit_test(nobody_listening_is_not_sent),
        cmocka_unit_test(what_cannot_be_a_request_is_not_sent),
        cmocka_unit_test(an_unknown_name_is_not_sent),
        cmocka_unit_test(only_the_kubeconfig_names_a_proxy),
        cmocka_unit_test(a_request_can_be_cancelled_in_each_callback),
        cmocka_unit_test(a_request_can_be_started_in_each_callback),
        cmocka_unit_test(a_request_can_be_cancelled_before_and_while_it_runs),
        cmocka_unit_test(many_requests_share_few_connections),
        cmocka_unit_test(what_waits_behind_a_stall_goes_out_after_it),
        cmocka_unit_test(what_waits_ends_at_its_own_time_unsent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
