/* SPDX-License-Identifier: Apache-2.0 */
#include "client_scene.h"

#include "kube/discovery.h"

#include <sys/wait.h>
#include <unistd.h>

/* --- requests --- */

static void a_read_carries_its_headers(void **state)
{
    struct model *model = *state;
    struct kube_config *config = kube_config_of_url("https://api");
    config->token = xstrdup("secret");
    config->impersonate_user = xstrdup("bob");
    config->impersonate_uid = xstrdup("7");
    config->impersonate_groups = xcalloc(3, sizeof(char *));
    config->impersonate_groups[0] = xstrdup("g1");
    config->impersonate_groups[1] = xstrdup("g2");
    struct kube_client *client = kube_client_make(model->env, config);
    struct seen seen = {0};
    get(client, &seen);
    struct env_sim_call *call = model_next(model);
    assert_string_equal(call->method, "GET");
    assert_string_equal(call->path, "/api/v1/pods");
    assert_int_equal(call->pool, HTTP_POOL_REQUEST);
    assert_false(call->once);
    assert_true(str_starts_with(env_sim_http_header(call, "User-Agent"), "neoset/"));
    assert_string_equal(env_sim_http_header(call, "Accept"), "application/json");
    assert_string_equal(env_sim_http_header(call, "Authorization"), "Bearer secret");
    assert_string_equal(env_sim_http_header(call, "Impersonate-User"), "bob");
    assert_string_equal(env_sim_http_header(call, "Impersonate-Uid"), "7");
    assert_null(env_sim_http_header(call, "Audit-ID"));
    assert_null(env_sim_http_header(call, "Content-Type"));
    unsigned groups = 0;
    for (size_t i = 0; i < call->header_count; i++)
        groups += strcmp(call->headers[i].name, "Impersonate-Group") == 0;
    assert_int_equal(groups, 2);
    model_answer(model, call, 200, "{\"metadata\":{\"name\":\"x\"}}");
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.outcome, KUBE_OK);
    assert_int_equal(seen.code, ERROR_NONE);
    assert_string_equal(seen.name, "x");
    kube_client_free(client);
}

static void a_write_carries_its_body_once(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    struct seen seen = {0};
    patch(client, &seen);
    struct env_sim_call *call = model_next(model);
    assert_string_equal(call->method, "PATCH");
    assert_true(call->once);
    assert_int_equal(call->pool, HTTP_POOL_LEASE);
    assert_string_equal(call->body, "{\"a\":1}");
    assert_string_equal(env_sim_http_header(call, "Content-Type"), "application/merge-patch+json");
    assert_string_equal(env_sim_http_header(call, "Audit-ID"), "neo-0123-1-1");
    assert_true(model_how(model)->timeout_us == 10 * US_PER_S);
    struct http_header header = {"Audit-Id", "from-server"};
    env_sim_http_answer(call, 200, &header, 1, "{\"metadata\":{\"name\":\"b\"}}", 25);
    model_settle(model);
    assert_int_equal(seen.outcome, KUBE_OK);
    assert_string_equal(seen.audit_id, "from-server");
    kube_client_free(client);
}

static void a_delete_needs_no_body(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    struct seen seen = {0};
    struct kube_write write = a_patch;
    write.method = "DELETE";
    write.content_type = NULL;
    write.body = NULL;
    write.body_length = 0;
    kube_write(client, kube_permit_issue(client), &write, on_done, &seen);
    struct env_sim_call *call = model_next(model);
    assert_string_equal(call->method, "DELETE");
    assert_null(call->body);
    model_answer(model, call, 409, STATUS(409, "Conflict"));
    assert_int_equal(seen.outcome, KUBE_REFUSED);
    assert_int_equal(seen.code, ERROR_CONFLICT);
    kube_client_free(client);
}

static bool say_no(void *context)
{
    (void)context;
    return false;
}

static void a_write_that_is_held_back_at_the_last_moment_is_not_sent(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    struct seen seen = {0};
    struct kube_write write = a_patch;
    write.before_send = say_no;
    kube_write(client, kube_permit_issue(client), &write, on_done, &seen);
    model_expect_none_for(model, US_PER_S);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.outcome, KUBE_NOT_SENT);
    kube_client_free(client);
}

static void eat_answer(void *context, const struct env_sim_call *call, struct env_sim_route *route)
{
    (void)context;
    (void)call;
    route->fate = ENV_SIM_LOSE_ANSWER;
}

static void a_write_whose_answer_is_lost_is_not_sent_again(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    struct seen seen = {0};
    env_sim_on_route(model->env, eat_answer, NULL);
    patch(client, &seen);
    model_answer(model, model_next(model), 200, "{}");
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.outcome, KUBE_NO_ANSWER);
    assert_int_equal(seen.http, 0);
    model_expect_none_for(model, 600 * US_PER_S);
    assert_int_equal(seen.count, 1);
    kube_client_free(client);
}

static void dies(void (*act)(struct kube_client *), struct kube_client *client)
{
    pid_t child = fork();
    if (child == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        act(client);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
}

static void write_with_a_made_up_permit(struct kube_client *client)
{
    kube_write(client, (struct kube_permit){.cookie = 1}, &a_patch, on_done, NULL);
}

static void read_by_writing(struct kube_client *client)
{
    struct kube_write write = a_patch;
    write.method = "GET";
    kube_write(client, kube_permit_issue(client), &write, on_done, NULL);
}

static void write_without_a_name(struct kube_client *client)
{
    struct kube_write write = a_patch;
    write.audit_id = "";
    kube_write(client, kube_permit_issue(client), &write, on_done, NULL);
}

static void a_write_without_its_permit_ends_the_process(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    dies(write_with_a_made_up_permit, client);
    dies(read_by_writing, client);
    dies(write_without_a_name, client);
    struct kube_client *other = kube_client_make(model->env, kube_config_of_url("http://api"));
    assert_true(kube_permit_issue(client).cookie != kube_permit_issue(other).cookie);
    kube_client_free(other);
    kube_client_free(client);
}

static void a_cancelled_call_is_not_heard_of(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    struct seen seen = {0};
    struct kube_call *before = get(client, &seen);
    kube_call_cancel(client, &before);
    assert_null(before);
    kube_call_cancel(client, &before);
    struct kube_call *during = get(client, &seen);
    struct env_sim_call *call = model_next(model);
    kube_call_cancel(client, &during);
    assert_true(call->client_gone);
    model_answer(model, call, 200, "{}");
    env_sim_run_for(model->env, 60 * US_PER_S);
    assert_int_equal(seen.count, 0);
    get(client, &seen);
    kube_client_free(client);
    env_sim_run_for(model->env, 60 * US_PER_S);
    assert_int_equal(seen.count, 0);
}

static void free_client(void *context, const struct kube_answer *answer)
{
    (void)answer;
    kube_client_free(context);
}

static void the_client_may_be_freed_in_done(void **state)
{
    struct model *model = *state;
    struct seen seen = {0};
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    get(client, &seen);
    kube_get(client, "/b", US_PER_S, free_client, client);
    struct env_sim_call *first = model_next(model);
    model_answer(model, model_next(model), 200, "{}");
    assert_true(first->client_gone);
    model_answer(model, first, 200, "{}");
    assert_int_equal(seen.count, 0);
}

/* --- the rest --- */

static void back_off_grows_with_jitter_and_never_falls_below_retry_after(void **state)
{
    struct model *model = *state;
    static const struct {
        unsigned attempt;
        int64_t ceiling_us;
    } cases[] = {{0, 250000},   {1, 500000},   {2, 1000000},
                 {6, 16000000}, {7, 30000000}, {4000000000U, 30000000}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t least_us = INT64_MAX;
        int64_t most_us = 0;
        for (int n = 0; n < 1000; n++) {
            int64_t wait_us = kube_backoff_us(model->env, cases[i].attempt, -1);
            least_us = MIN(least_us, wait_us);
            most_us = MAX(most_us, wait_us);
        }
        assert_true(least_us >= 0 && least_us < cases[i].ceiling_us / 20);
        assert_true(most_us <= cases[i].ceiling_us && most_us > cases[i].ceiling_us / 20 * 19);
        assert_true(kube_backoff_us(model->env, cases[i].attempt, 40 * US_PER_S) == 40 * US_PER_S);
    }
    /* A server cannot send us away for ever. */
    assert_true(kube_backoff_us(model->env, 0, INT64_MAX) == 300 * US_PER_S);
}

struct discovered {
    unsigned count;
    enum kube_served served;
    char text[512];
};

static void on_discovered(void *context, enum kube_served served, const char *sentence)
{
    struct discovered *seen = context;
    seen->count++;
    seen->served = served;
    snprintf(seen->text, sizeof(seen->text), "%s", sentence ? sentence : "");
}

static void discovery_tells_a_missing_definition(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    static const struct {
        enum kube_resource resource;
        int http;
        const char *body;
        enum kube_served served;
        const char *holds;
    } cases[] = {
        {KUBE_NEOSET, 200, "{\"resources\":[{\"name\":\"neosets/status\"},{\"name\":\"neosets\"}]}",
         KUBE_SERVED, ""},
        {KUBE_NEOSET, 200, "{\"resources\":[{\"name\":\"neosets/status\"}]}", KUBE_NOT_SERVED,
         "deploy/crd.yaml"},
        {KUBE_NEOSET, 404, "404 page not found", KUBE_NOT_SERVED, "deploy/crd.yaml"},
        {KUBE_LEASE, 404, "404 page not found", KUBE_NOT_SERVED, "leases (coordination.k8s.io/v1)"},
        {KUBE_NEOSET, 404, "<html>", KUBE_SERVED_UNKNOWN, "a web page"},
        {KUBE_NEOSET, 503, "", KUBE_SERVED_UNKNOWN, "cannot ask"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct discovered seen = {0};
        kube_discover(client, cases[i].resource, US_PER_S, on_discovered, &seen);
        struct env_sim_call *call = model_next(model);
        assert_string_equal(call->path, cases[i].resource == KUBE_NEOSET ? "/apis/apps.neo.io/v1alpha1"
                                                                         : "/apis/coordination.k8s.io/v1");
        model_answer(model, call, cases[i].http, cases[i].body);
        assert_int_equal(seen.count, 1);
        assert_int_equal(seen.served, cases[i].served);
        assert_non_null(strstr(seen.text, cases[i].holds));
    }
    struct discovered seen = {0};
    struct kube_discovery *discovery = kube_discover(client, KUBE_POD, US_PER_S, on_discovered, &seen);
    kube_discovery_cancel(&discovery);
    model_expect_none_for(model, 10 * US_PER_S);
    assert_int_equal(seen.count, 0);
    kube_client_free(client);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, make, unmake)
    const struct CMUnitTest tests[] = {
        TEST(a_read_carries_its_headers),
        TEST(a_write_carries_its_body_once),
        TEST(a_delete_needs_no_body),
        TEST(a_write_that_is_held_back_at_the_last_moment_is_not_sent),
        TEST(a_write_whose_answer_is_lost_is_not_sent_again),
        TEST(a_write_without_its_permit_ends_the_process),
        TEST(a_cancelled_call_is_not_heard_of),
        TEST(the_client_may_be_freed_in_done),
        TEST(back_off_grows_with_jitter_and_never_falls_below_retry_after),
        TEST(discovery_tells_a_missing_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
