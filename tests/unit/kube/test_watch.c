/* SPDX-License-Identifier: Apache-2.0
 *
 * The reflector against a server that misbehaves: lists, refusals, and being stopped. */
#include "watch_owner.h"

/* --- lists --- */

static void a_list_comes_in_chunks_and_is_watched_from_its_first_version(void **state)
{
    struct owner *owner = *state;
    struct model *model = owner->model;
    start_spec(owner, &(struct kube_watch_spec){.resource = KUBE_NEOSET,
                                                .label_selector = "a in (b,c)",
                                                .field_selector = "metadata.name=x",
                                                .page_limit = 2});
    assert_string_equal(owner->log, "");
    struct env_sim_call *call = model_next(model);
    assert_int_equal(call->pool, HTTP_POOL_REQUEST);
    assert_true(str_starts_with(call->path, "/apis/apps.neo.io/v1alpha1/neosets?"));
    has_query(call, "limit", "2");
    has_query(call, "continue", NULL);
    has_query(call, "resourceVersion", NULL);
    has_query(call, "labelSelector", "a%20in%20%28b%2Cc%29");
    has_query(call, "fieldSelector", "metadata.name%3Dx");
    model_answer(model, call, 200, LIST("007", "t+1/=", OBJECT("a", "1") "," OBJECT("b", "2")));
    call = model_next(model);
    has_query(call, "limit", "2");
    has_query(call, "continue", "t%2B1%2F%3D");
    has_query(call, "labelSelector", "a%20in%20%28b%2Cc%29");
    model_answer(model, call, 200, LIST("999", "", OBJECT("c", "3")));
    call = model_next(model);
    assert_int_equal(call->pool, HTTP_POOL_WATCH);
    has_query(call, "watch", "true");
    has_query(call, "allowWatchBookmarks", "true");
    has_query(call, "resourceVersion", "007");
    has_query(call, "labelSelector", "a%20in%20%28b%2Cc%29");
    has_query(call, "fieldSelector", "metadata.name%3Dx");
    assert_false(kube_watch_is_fresh(owner->watch));
    env_sim_http_begin(call, 200, NULL, 0);
    model_settle(model);
    expect(owner, "LISTING begin +a +b +c end FRESH");
    env_sim_http_end(call);
}

static void objects_are_handed_over_while_a_page_arrives(void **state)
{
    struct owner *owner = *state;
    struct model *model = owner->model;
    start(owner);
    struct env_sim_call *call = model_next(model);
    env_sim_http_begin(call, 200, NULL, 0);
    model_data(model, call, "{\"items\":[" OBJECT("a", "1") ",{\"metadata\":{\"name\"");
    expect(owner, "LISTING begin +a");
    model_data(model, call, ":\"b\"}}],\"metadata\":{\"resourceVersion\":\"5\"}}");
    env_sim_http_end(call);
    env_sim_http_end(resumed(owner, "5"));
    expect(owner, "+b end FRESH");
}

/* Storage was restored from a backup, and the server's numbers begin anew below what was seen: the list is
 * taken onto nothing, once. Versions of another form tell nothing. */
static void a_list_that_is_older_than_the_stream_is_told_and_taken_anew(void **state)
{
    struct owner *owner = *state;
    static const struct {
        const char *line;
        const char *list;
        const char *told;
    } rows[] = {
        {BOOKMARK("100"), LIST("99", "", OBJECT("a", "98")), "LISTING begin +a BACK begin +a end FRESH"},
        {BOOKMARK("100"), LIST("100", "", OBJECT("a", "98")), "LISTING begin +a end FRESH"},
        {BOOKMARK("99"), LIST("100", "", OBJECT("a", "98")), "LISTING begin +a end FRESH"},
        {BOOKMARK("b"), LIST("a", "", OBJECT("a", "98")), "LISTING begin +a end FRESH"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct env_sim_call *call = stream(owner);
        model_data(owner->model, call, rows[i].line);
        model_data(owner->model, call, ERROR_LINE(410, "Expired"));
        env_sim_http_cut(call);
        for (int lists = strstr(rows[i].told, "BACK") ? 2 : 1; lists > 0; lists--)
            model_answer(owner->model, model_next(owner->model), 200, rows[i].list);
        call = model_next(owner->model);
        has_query(call, "watch", "true");
        env_sim_http_begin(call, 200, NULL, 0);
        model_settle(owner->model);
        expect(owner, rows[i].told);
        kube_watch_stop(STEAL(owner->watch));
        env_sim_http_cut(call);
        model_settle(owner->model);
    }
}

static void an_expired_continue_token_begins_the_list_again(void **state)
{
    struct owner *owner = *state;
    start(owner);
    model_answer(owner->model, model_next(owner->model), 200, LIST("10", "t", OBJECT("a", "9")));
    struct env_sim_call *call = model_next(owner->model);
    has_query(call, "continue", "t");
    model_answer(owner->model, call, 410, STATUS(410, "Expired"));
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    expect(owner, "LISTING begin +a begin +b end FRESH");
}

static void a_continue_token_that_the_server_does_not_take_begins_the_list_again(void **state)
{
    struct owner *owner = *state;
    static const int statuses[] = {400, 500};
    start(owner);
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        model_answer(owner->model, model_next(owner->model), 200, LIST("10", "t", OBJECT("a", "9")));
        struct env_sim_call *call = model_next(owner->model);
        for (int times = 0; query_is(call, "continue", "t"); times++) {
            assert_in_range(times, 0, 10);
            model_answer(owner->model, call, statuses[i], STATUS(500, "Odd"));
            call = model_next(owner->model);
        }
        has_query(call, "watch", NULL);
        model_answer(owner->model, call, 503, "");
    }
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
}

static void a_page_that_fails_for_a_moment_is_asked_for_again(void **state)
{
    struct owner *owner = *state;
    start(owner);
    model_answer(owner->model, model_next(owner->model), 200, LIST("10", "t", OBJECT("a", "9")));
    model_answer(owner->model, model_next(owner->model), 503, STATUS(503, "ServiceUnavailable"));
    struct env_sim_call *cut = model_next(owner->model);
    has_query(cut, "continue", "t");
    env_sim_http_begin(cut, 200, NULL, 0);
    env_sim_http_data(cut, "{\"items\":[", 10);
    env_sim_http_cut(cut);
    struct env_sim_call *call = model_next(owner->model);
    has_query(call, "continue", "t");
    model_answer(owner->model, call, 200, LIST("11", "", OBJECT("b", "9")));
    env_sim_http_end(resumed(owner, "10"));
    expect(owner, "LISTING begin +a STALE STALE +b end FRESH");
}

static void what_is_no_list_is_refused_with_a_sentence(void **state)
{
    struct owner *owner = *state;
    static const char *const bodies[] = {
        "[]",
        "",
        "{\"items\":[]}",
        "{\"items\":[7],\"metadata\":{\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"resourceVersion\":\"\"},\"items\":[]}",
        "{\"metadata\":{\"resourceVersion\":\"1\"}} x",
    };
    start(owner);
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        model_answer(owner->model, model_next(owner->model), 200, bodies[i]);
        assert_string_equal(owner->reason, "cannot list pods in namespace db: the answer is not a List");
        assert_false(kube_watch_is_fresh(owner->watch));
    }
    model_answer(owner->model, model_next(owner->model), 200, "<html>");
    assert_non_null(strstr(owner->reason, "cannot list pods in namespace db: the answer is a web page"));
    model_answer(owner->model, model_next(owner->model), 200,
                 "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"a\":tru}]}");
    assert_non_null(strstr(owner->reason, "an object is not valid JSON"));
    assert_non_null(strstr(owner->reason, "(its name did not come; "));
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    assert_true(kube_watch_is_fresh(owner->watch));
}

/* Not "the definition is missing": whoever says 404 here does not know Kubernetes. */
static void a_stranger_is_not_taken_for_an_api_server(void **state)
{
    struct owner *owner = *state;
    start_spec(owner, &(struct kube_watch_spec){.resource = KUBE_NEOSET});
    model_answer(owner->model, model_next(owner->model), 404, "<html>");
    assert_non_null(strstr(owner->reason, "a web page"));
    model_answer(owner->model, model_next(owner->model), 403, "<html>");
    assert_non_null(strstr(owner->reason, "a web page"));
    model_answer(owner->model, model_next(owner->model), 404, "404 page not found\n");
    assert_non_null(strstr(owner->reason, "the NeoSet definition is not installed"));
}

static void a_page_that_never_ends_is_given_up(void **state)
{
    struct owner *owner = *state;
    start(owner);
    struct env_sim_call *call = model_next(owner->model);
    assert_true(model_how(owner->model)->timeout_us <= 120 * US_PER_S);
    env_sim_http_begin(call, 200, NULL, 0);
    env_sim_http_data(call, "{", 1);
    for (int i = 0; i < 100 && !call->client_gone; i++) {
        env_sim_run_for(owner->model->env, 5 * US_PER_S);
        env_sim_http_data(call, " ", 1);
    }
    assert_true(call->client_gone);
    env_sim_http_cut(call);
    assert_non_null(strstr(owner->log, "STALE"));
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
}

static void metadata_alone_is_asked_for_where_it_is_enough(void **state)
{
    struct owner *owner = *state;
    start_spec(owner, &(struct kube_watch_spec){.resource = KUBE_POD, .metadata_only = true});
    struct env_sim_call *call = model_next(owner->model);
    assert_true(str_starts_with(env_sim_http_header(call, "Accept"),
                                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"));
    model_answer(owner->model, call, 200, LIST("10", "", ""));
    call = model_next(owner->model);
    assert_true(str_starts_with(env_sim_http_header(call, "Accept"),
                                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"));
    env_sim_http_cut(call);
}

/* --- refusals --- */

static void retry_after_is_honoured(void **state)
{
    struct owner *owner = *state;
    start(owner);
    for (int i = 0; i < 3; i++) {
        static const int statuses[] = {429, 503, 500};
        int64_t before_us = env_boot_us(owner->model->env);
        model_answer_retry_after(owner->model, model_next(owner->model), statuses[i], "40");
        model_expect_none_for(owner->model, before_us + 39 * US_PER_S - env_boot_us(owner->model->env));
    }
    relisted(owner);
    struct env_sim_call *call = model_next(owner->model);
    int64_t before_us = env_boot_us(owner->model->env);
    model_answer_retry_after(owner->model, call, 429, "50");
    env_sim_http_end(resumed(owner, "20"));
    assert_true(env_boot_us(owner->model->env) - before_us >= 50 * US_PER_S);
}

static void a_server_that_is_down_is_asked_less_and_less(void **state)
{
    struct owner *owner = *state;
    start(owner);
    int64_t before_us = env_boot_us(owner->model->env);
    unsigned asked = 0;
    while (env_boot_us(owner->model->env) - before_us < 600 * US_PER_S) {
        env_sim_http_cut(model_next(owner->model));
        model_settle(owner->model);
        asked++;
    }
    assert_in_range(asked, 20, 120);
    assert_non_null(strstr(owner->reason, "cannot list pods in namespace db: no answer"));
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    assert_true(kube_watch_is_fresh(owner->watch));
}

static void a_stream_that_has_lived_ends_the_back_off(void **state)
{
    struct owner *owner = *state;
    start(owner);
    for (int i = 0; i < 12; i++)
        model_answer(owner->model, model_next(owner->model), 503, "");
    relisted(owner);
    for (int i = 0; i < 12; i++) {
        struct env_sim_call *call = resumed(owner, "20");
        env_sim_run_for(owner->model->env, 6 * US_PER_S);
        env_sim_http_end(call);
        int64_t before_us = env_boot_us(owner->model->env);
        model_answer(owner->model, model_next(owner->model), 503, "");
        call = model_next(owner->model);
        assert_true(env_boot_us(owner->model->env) - before_us <= US_PER_S / 4);
        env_sim_http_begin(call, 200, NULL, 0);
        env_sim_run_for(owner->model->env, 6 * US_PER_S);
        env_sim_http_end(call);
    }
    env_sim_http_end(resumed(owner, "20"));
}

static void a_missing_definition_is_waited_for(void **state)
{
    struct owner *owner = *state;
    start_spec(owner, &(struct kube_watch_spec){.resource = KUBE_NEOSET});
    int64_t at_us = env_boot_us(owner->model->env);
    for (int i = 0; i < 4; i++) {
        struct env_sim_call *call = model_next(owner->model);
        assert_true(env_boot_us(owner->model->env) == at_us + i * 5 * US_PER_S);
        model_answer(owner->model, call, 404, "404 page not found\n");
    }
    expect(owner, "LISTING STALE");
    assert_string_equal(owner->reason,
                        "the NeoSet definition is not installed: kubectl apply -f deploy/crd.yaml; waiting");
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    expect(owner, "begin +b end FRESH");
}

static void a_definition_that_is_deleted_under_the_watch_is_waited_for(void **state)
{
    struct owner *owner = *state;
    struct env_sim_call *call = stream(owner);
    env_sim_http_end(call);
    model_answer(owner->model, model_next(owner->model), 404, "404 page not found\n");
    model_answer(owner->model, model_next(owner->model), 404, "404 page not found\n");
    expect(owner, "STALE");
    assert_string_equal(owner->reason, "the server has no pods (v1); waiting");
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
}

static void a_missing_permission_is_named(void **state)
{
    struct owner *owner = *state;
    static const char forbidden[] =
        "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403,\"message\":\"pods is forbidden: User "
        "\\\"x\\\" cannot "
        "list resource \\\"pods\\\" in API group \\\"\\\" in the namespace \\\"db\\\"\"}";
    start(owner);
    model_answer(owner->model, model_next(owner->model), 403, forbidden);
    expect(owner, "LISTING STALE");
    assert_string_equal(owner->reason,
                        "no permission to list pods in namespace db (v1): 403 Forbidden: pods is "
                        "forbidden: User \"x\" cannot list resource \"pods\" in API group \"\" in the "
                        "namespace \"db\"");
    relisted(owner);
    model_answer(owner->model, model_next(owner->model), 403, STATUS(403, "Forbidden"));
    assert_non_null(strstr(owner->reason, "no permission to watch pods in namespace db"));
    env_sim_http_end(resumed(owner, "20"));
    assert_true(kube_watch_is_fresh(owner->watch));
}

static void a_version_that_the_server_does_not_understand_lists_again(void **state)
{
    struct owner *owner = *state;
    env_sim_http_end(stream(owner));
    model_answer(owner->model, model_next(owner->model), 400, STATUS(400, "BadRequest"));
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
}

/* Real servers answer a version that is no number with a 500. */
static void a_stream_that_is_refused_again_and_again_lists_again(void **state)
{
    struct owner *owner = *state;
    env_sim_http_end(stream(owner));
    model_settle(owner->model);
    for (int i = 0; i < 3; i++) {
        struct env_sim_call *call = model_next(owner->model);
        has_query(call, "resourceVersion", "10");
        model_answer(owner->model, call, 500, "{\"kind\":\"Status\",\"code\":500}");
    }
    relisted(owner);
    env_sim_http_end(resumed(owner, "20"));
    assert_true(kube_watch_is_fresh(owner->watch));
}

/* --- stopping --- */

static void a_watch_can_be_stopped_in_each_of_its_callbacks(void **state)
{
    struct owner *owner = *state;
    static const char *const words[] = {"LISTING", "begin", "+", "end", "FRESH", "-", "STALE"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        owner->stop_at = words[i];
        start(owner);
        model_settle(owner->model);
        for (int step = 0; step < 100 && owner->watch; step++) {
            struct env_sim_call *call = model_next(owner->model);
            bool list = !strstr(call->path, "watch=true");
            env_sim_http_begin(call, 200, NULL, 0);
            const char *body =
                list ? LIST("10", "", OBJECT("a", "9")) : LINE("DELETED", "b", "11") "garbage\n";
            env_sim_http_data(call, body, strlen(body));
            env_sim_http_end(call);
            model_settle(owner->model);
        }
        assert_null(owner->watch);
        owner->log[0] = '\0';
        model_expect_none_for(owner->model, 600 * US_PER_S);
        assert_string_equal(owner->log, "");
    }
}

/* Else a silent stream would hold its connection until the server ends it. */
static void a_watch_that_is_stopped_as_its_stream_begins_leaves_the_server_at_once(void **state)
{
    struct owner *owner = *state;
    owner->stop_at = "FRESH";
    start(owner);
    model_answer(owner->model, model_next(owner->model), 200, LIST("10", "", ""));
    struct env_sim_call *call = model_next(owner->model);
    env_sim_http_begin(call, 200, NULL, 0);
    model_settle(owner->model);
    assert_null(owner->watch);
    assert_true(call->client_gone);
    env_sim_http_end(call);
}

static void a_watch_can_be_stopped_at_any_time(void **state)
{
    struct owner *owner = *state;
    for (int steps = 0; steps < 40; steps++) {
        start(owner);
        for (int i = 0; i < steps; i++) {
            env_sim_step(owner->model->env);
            while (owner->model->taken < owner->model->arrived) {
                struct env_sim_call *call = owner->model->calls[owner->model->taken++];
                bool list = !strstr(call->path, "watch=true");
                const char *body =
                    list ? LIST("10", "", OBJECT("a", "9")) : LINE("ADDED", "b", "11") "{\"type\":\"ADD";
                env_sim_http_answer(call, 200, NULL, 0, body, strlen(body));
            }
        }
        kube_watch_stop(STEAL(owner->watch));
        owner->log[0] = '\0';
        env_sim_run_for(owner->model->env, 100 * US_PER_S);
        while (owner->model->taken < owner->model->arrived)
            env_sim_http_cut(owner->model->calls[owner->model->taken++]);
        env_sim_run_for(owner->model->env, 100 * US_PER_S);
        assert_string_equal(owner->log, "");
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, make, unmake)
    const struct CMUnitTest tests[] = {
        TEST(a_list_comes_in_chunks_and_is_watched_from_its_first_version),
        TEST(objects_are_handed_over_while_a_page_arrives),
        TEST(a_list_that_is_older_than_the_stream_is_told_and_taken_anew),
        TEST(an_expired_continue_token_begins_the_list_again),
        TEST(a_continue_token_that_the_server_does_not_take_begins_the_list_again),
        TEST(a_page_that_fails_for_a_moment_is_asked_for_again),
        TEST(what_is_no_list_is_refused_with_a_sentence),
        TEST(a_stranger_is_not_taken_for_an_api_server),
        TEST(a_page_that_never_ends_is_given_up),
        TEST(metadata_alone_is_asked_for_where_it_is_enough),
        TEST(retry_after_is_honoured),
        TEST(a_server_that_is_down_is_asked_less_and_less),
        TEST(a_stream_that_has_lived_ends_the_back_off),
        TEST(a_missing_definition_is_waited_for),
        TEST(a_definition_that_is_deleted_under_the_watch_is_waited_for),
        TEST(a_missing_permission_is_named),
        TEST(a_version_that_the_server_does_not_understand_lists_again),
        TEST(a_stream_that_is_refused_again_and_again_lists_again),
        TEST(a_watch_can_be_stopped_in_each_of_its_callbacks),
        TEST(a_watch_that_is_stopped_as_its_stream_begins_leaves_the_server_at_once),
        TEST(a_watch_can_be_stopped_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
