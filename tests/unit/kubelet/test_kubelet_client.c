/* SPDX-License-Identifier: Apache-2.0
 *
 * The kubelet as a client: over the product's own kube client and a simulated network it makes the same of
 * pods as inside kubesim, whatever the server and the connection do to its writes. */
#include "env_sim.h"

#include "base/time_text.h"
#include "kubesim/kubelet_client.h"
#include "kubesim/kubesim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* An API server model behind the simulated network. */
struct server {
    struct env *env; /* of its own process */
    struct kubesim *sim;
    struct env_timer *timer;
};

struct stage {
    struct server server;
    struct env *env; /* the kubelet's process */
    struct kube_client *client;
    struct kubelet_client *kubelet;
};

/* --- the server
 * -------------------------------------------------------------------------------------------------- */

static int64_t server_now_us(void *context)
{
    return env_wall_us(((struct server *)context)->env);
}

static void server_random(void *context, void *bytes, size_t length)
{
    env_random(((struct server *)context)->env, bytes, length);
}

static void set_server_timer(struct server *server);

static void on_server_timer(void *context)
{
    struct server *server = context;
    server->timer = NULL;
    kubesim_tick(server->sim);
    set_server_timer(server);
}

static void set_server_timer(struct server *server)
{
    int64_t next_us = kubesim_next_tick_us(server->sim);
    env_timer_cancel(server->env, &server->timer);
    if (next_us != INT64_MAX)
        server->timer =
            env_timer_start(server->env, MAX(next_us - server_now_us(server), 0), on_server_timer, server);
}

/* A watch and the call that it answers; freed when both have ended. */
struct stream {
    struct server *server;
    struct env_sim_call *call; /* NULL: ended */
    struct kubesim_watch *watch;
};

static void on_line(void *context, const char *line, size_t length)
{
    struct stream *stream = context;
    if (stream->call)
        env_sim_http_data(stream->call, line, length);
}

static void close_watch(void *context)
{
    struct stream *stream = context;
    kubesim_watch_close(stream->watch);
    free(stream);
}

/* The watch may not be closed from here. */
static void on_end(void *context, bool broken)
{
    struct stream *stream = context;
    struct env_sim_call *call = STEAL(stream->call);
    if (!call)
        return;
    call->model = NULL;
    if (broken)
        env_sim_http_cut(call);
    else
        env_sim_http_end(call);
    env_timer_start(stream->server->env, 0, close_watch, stream);
}

static void answer(struct env_sim_call *call, struct kubesim_response *response)
{
    if (response->disposition == KUBESIM_LOST)
        env_sim_http_cut(call);
    else
        env_sim_http_answer(call, response->status, NULL, 0, response->body, response->body_length);
    kubesim_response_done(response);
}

static void open_watch(struct server *server, struct env_sim_call *call,
                       const struct kubesim_request *request)
{
    static const struct kubesim_watch_callbacks callbacks = {.on_line = on_line, .on_end = on_end};
    struct stream *stream = xcalloc(1, sizeof(*stream));
    struct kubesim_response response;
    stream->server = server;
    stream->call = call;
    call->model = stream;
    env_sim_http_begin(call, 200, NULL, 0);
    stream->watch = kubesim_watch_open(server->sim, request, &callbacks, stream, &response);
    assert_non_null(stream->watch);
    kubesim_response_done(&response);
}

static void on_request(void *context, struct env_sim_call *call)
{
    struct server *server = context;
    const struct kubesim_request request = {.method = call->method,
                                            .path = call->path,
                                            .content_type = env_sim_http_header(call, "Content-Type"),
                                            .accept = env_sim_http_header(call, "Accept"),
                                            .audit_id = env_sim_http_header(call, "Audit-ID"),
                                            .body = call->body,
                                            .body_length = call->body_length};
    if (kubesim_is_watch(&request)) {
        open_watch(server, call, &request);
    } else {
        struct kubesim_response response;
        kubesim_handle(server->sim, &request, &response);
        answer(call, &response);
    }
    set_server_timer(server);
}

static void on_gone(void *context, struct env_sim_call *call)
{
    (void)context;
    struct stream *stream = call->model;
    if (!stream)
        return;
    call->model = NULL;
    env_sim_http_end(call);
    close_watch(stream);
}

/* --- the stage
 * --------------------------------------------------------------------------------------------------- */

static void start_kubelet(struct stage *stage)
{
    const struct kubelet_options options = {.seed = 3, .node_count = 2};
    stage->env = env_sim_process(stage->server.env);
    stage->client = kube_client_make(stage->env, kube_config_of_url("http://server"));
    stage->kubelet = kubelet_client_start(stage->client, &options, true);
}

static void stop_kubelet(struct stage *stage)
{
    kubelet_client_stop(stage->kubelet);
    kube_client_free(stage->client);
    env_free(stage->env);
}

static void set_up(struct stage *stage, const char *faults)
{
    *stage = (struct stage){0};
    struct server *server = &stage->server;
    server->env = env_sim_make(11);
    const struct kubesim_options options = {
        .now_us = server_now_us, .random = server_random, .context = server};
    server->sim = kubesim_make(&options);
    if (faults)
        assert_int_equal(kubesim_fault_add(server->sim, faults, NULL), 0);
    static const struct env_sim_http_ops ops = {.request = on_request, .gone = on_gone};
    env_sim_http(server->env, &ops, server);
    start_kubelet(stage);
}

static void tear_down(struct stage *stage)
{
    stop_kubelet(stage);
    env_sim_run_for(stage->server.env, US_PER_S);
    env_timer_cancel(stage->server.env, &stage->server.timer);
    kubesim_free(stage->server.sim);
    env_free(stage->server.env);
}

static void run_for(struct stage *stage, int64_t duration_us)
{
    env_sim_run_for(stage->server.env, duration_us);
}

static int ask(struct stage *stage, const char *method, const char *path, const char *type, const char *body,
               cJSON **ret)
{
    const struct kubesim_request request = {.method = method,
                                            .path = path,
                                            .content_type = type,
                                            .body = body,
                                            .body_length = body ? strlen(body) : 0,
                                            .no_faults = true};
    struct kubesim_response response;
    kubesim_handle(stage->server.sim, &request, &response);
    int status = response.status;
    if (ret)
        assert_int_equal(json_parse(response.body, response.body_length, ret, NULL), 0);
    kubesim_response_done(&response);
    set_server_timer(&stage->server);
    return status;
}

static void create_pods(struct stage *stage, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        CLEANUP_FREE char *body = xasprintf(
            "{\"metadata\":{\"name\":\"p%u\"},\"spec\":{\"containers\":[{\"name\":\"m\",\"image\":"
            "\"app:v1\"}],\"terminationGracePeriodSeconds\":1},\"apiVersion\":\"v1\",\"kind\":\"Pod\"}",
            i);
        assert_int_equal(
            ask(stage, "POST", "/api/v1/namespaces/default/pods", "application/json", body, NULL), 201);
    }
}

static void set_images(struct stage *stage, unsigned count, const char *image)
{
    for (unsigned i = 0; i < count; i++) {
        CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/default/pods/p%u", i);
        CLEANUP_FREE char *body =
            xasprintf("{\"spec\":{\"containers\":[{\"name\":\"m\",\"image\":\"%s\"}]}}", image);
        assert_int_equal(ask(stage, "PATCH", path, "application/strategic-merge-patch+json", body, NULL),
                         200);
    }
}

static unsigned count_pods(struct stage *stage)
{
    CLEANUP_JSON cJSON *list = NULL;
    ask(stage, "GET", "/api/v1/namespaces/default/pods", NULL, NULL, &list);
    return (unsigned)cJSON_GetArraySize(json_get(list, "items"));
}

/* Pods whose container is ready, with this image reported and so many restarts. */
static unsigned count_ready(struct stage *stage, const char *image, int64_t restarts)
{
    CLEANUP_JSON cJSON *list = NULL;
    ask(stage, "GET", "/api/v1/namespaces/default/pods", NULL, NULL, &list);
    CLEANUP_FREE char *reported = xasprintf("docker.io/library/%s", image);
    unsigned count = 0;
    const cJSON *pod;
    cJSON_ArrayForEach (pod, json_get(list, "items")) {
        const cJSON *statuses = json_path(pod, "status", "containerStatuses", NULL);
        const cJSON *status = statuses ? statuses->child : NULL;
        count += json_bool_or(status, "ready", false) && str_equal(json_str(status, "image"), reported) &&
                 json_int64_or(status, "restartCount", -1) == restarts;
    }
    return count;
}

/* --- the tests
 * ---------------------------------------------------------------------------------------------------- */

enum { PODS = 6 };

/* Created, rolled and deleted, with room for retries between. */
static void play_a_life(struct stage *stage)
{
    create_pods(stage, PODS);
    run_for(stage, 60 * US_PER_S);
    assert_int_equal(count_ready(stage, "app:v1", 0), PODS);
    set_images(stage, PODS, "app:v2");
    run_for(stage, 60 * US_PER_S);
    assert_int_equal(count_ready(stage, "app:v2", 1), PODS);
    assert_int_equal(ask(stage, "DELETE", "/api/v1/namespaces/default/pods", NULL, NULL, NULL), 200);
    run_for(stage, 60 * US_PER_S);
    assert_int_equal(count_pods(stage), 0);
}

static void pods_of_any_server_live_and_end(void **state)
{
    (void)state;
    struct stage stage;
    set_up(&stage, NULL);
    run_for(&stage, US_PER_S);
    assert_true(kubelet_client_is_ready(stage.kubelet));
    play_a_life(&stage);
    CLEANUP_JSON cJSON *nodes = NULL;
    ask(&stage, "GET", "/api/v1/nodes", NULL, NULL, &nodes);
    assert_int_equal(cJSON_GetArraySize(json_get(nodes, "items")), 2);
    tear_down(&stage);
}

static void lost_refused_and_late_writes_are_made_good(void **state)
{
    (void)state;
    static const char *const faults[] = {
        "lost,times=5",
        "drop,times=5",
        "500,verb=patch,times=8",
        "503,times=5",
        "429,retry=1,times=5",
        "409,verb=patch,times=6",
        "lost,verb=delete,times=3",
        "500,verb=create,resource=nodes,times=3",
        "500,verb=create,resource=pods/binding,times=3",
        "cut=2,verb=watch,times=5",
        "cut=2,verb=watch,times=2;gone,verb=watch,nth=1,times=2",
    };
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        struct stage stage;
        set_up(&stage, faults[i]);
        run_for(&stage, 20 * US_PER_S);
        play_a_life(&stage);
        if (kubesim_fault_hits(stage.server.sim) == 0)
            fail_msg("nothing was hit by: %s", faults[i]);
        tear_down(&stage);
    }
}

static void a_kubelet_that_starts_again_takes_over(void **state)
{
    (void)state;
    struct stage stage;
    set_up(&stage, NULL);
    create_pods(&stage, PODS);
    run_for(&stage, 5 * US_PER_S);
    stop_kubelet(&stage);
    run_for(&stage, 5 * US_PER_S);
    start_kubelet(&stage);
    run_for(&stage, 5 * US_PER_S);
    assert_int_equal(count_ready(&stage, "app:v1", 0), PODS);
    tear_down(&stage);
}

static void a_status_under_way_is_followed_by_the_newest_one(void **state)
{
    (void)state;
    struct stage stage;
    set_up(&stage, NULL);
    create_pods(&stage, 1);
    run_for(&stage, 5 * US_PER_S);
    uint64_t before = kubesim_count(stage.server.sim).writes;
    set_images(&stage, 1, "app:v2");
    run_for(&stage, 10 * US_PER_S);
    uint64_t writes = kubesim_count(stage.server.sim).writes - before;
    assert_int_equal(count_ready(&stage, "app:v2", 1), 1);
    /* The patch itself, "seen", "started" - and the ready one with it or after it. */
    assert_in_range(writes, 3, 5);
    run_for(&stage, 3600 * US_PER_S);
    assert_int_equal(kubesim_count(stage.server.sim).writes - before, writes);
    tear_down(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_of_any_server_live_and_end),
        cmocka_unit_test(lost_refused_and_late_writes_are_made_good),
        cmocka_unit_test(a_kubelet_that_starts_again_takes_over),
        cmocka_unit_test(a_status_under_way_is_followed_by_the_newest_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
