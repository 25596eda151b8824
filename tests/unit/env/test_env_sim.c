/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated world: what its users rely on. */
#include "env_sim.h"

#include "base/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <errno.h>

/* Everything that happens is written down, with its time in milliseconds since the beginning. */
struct scene {
    struct env *env;
    int64_t begun_us;
    struct buf log;
    bool send; /* what before_send says */
    bool stream;
    bool more; /* what on_data says */
    struct env_http *http;
    bool cancel_in_send;
    bool cancel_in_status;
    bool cancel_in_data;
    int status; /* what the model answers; 0: nothing by itself */
    struct env_sim_call *call;
    struct env_sim_route route;
};

static void write_down(struct scene *scene, const char *text)
{
    ENSURE(buf_addf(&scene->log, "%s@%lld ", text,
                    (long long)(env_boot_us(scene->env) - scene->begun_us) / 1000) == 0);
}

static void begin(struct scene *scene)
{
    *scene = (struct scene){.env = env_sim_make(7), .log = BUF_INIT(1 << 16), .send = true, .more = true};
    scene->begun_us = env_boot_us(scene->env);
}

static void end(struct scene *scene)
{
    env_free(scene->env);
    buf_done(&scene->log);
}

struct mark {
    struct scene *scene;
    const char *text;
};

static void on_mark(void *context)
{
    struct mark *mark = context;
    write_down(mark->scene, mark->text);
}

/* --- time --- */

static void events_run_by_time_and_then_by_order(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    struct mark marks[] = {{&scene, "a"}, {&scene, "b"}, {&scene, "c"}, {&scene, "d"}};
    env_timer_start(scene.env, 3000, on_mark, &marks[0]);
    env_timer_start(scene.env, 1000, on_mark, &marks[1]);
    struct env_timer *never = env_timer_start(scene.env, 2000, on_mark, &marks[0]);
    env_timer_start(scene.env, 3000, on_mark, &marks[2]);
    env_timer_start(scene.env, 0, on_mark, &marks[3]);
    env_timer_cancel(scene.env, &never);
    assert_int_equal(env_sim_event_count(scene.env), 4);
    while (env_sim_step(scene.env))
        ;
    assert_string_equal(buf_text(&scene.log), "d@0 b@1 a@3 c@3 ");
    assert_int_equal(env_sim_next_us(scene.env), INT64_MAX);
    end(&scene);
}

static void running_until_a_time_leaves_the_clock_there(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    struct mark mark = {&scene, "x"};
    int64_t wall_us = env_wall_us(scene.env);
    env_timer_start(scene.env, 5 * US_PER_S, on_mark, &mark);
    env_sim_run_for(scene.env, 4 * US_PER_S);
    assert_int_equal(scene.log.length, 0);
    env_sim_jump_wall(scene.env, -3600 * US_PER_S);
    assert_int_equal(env_wall_us(scene.env) - wall_us, -3596 * US_PER_S);
    env_sim_run_for(scene.env, 10 * US_PER_S);
    assert_string_equal(buf_text(&scene.log), "x@5000 ");
    assert_int_equal(env_boot_us(scene.env) - scene.begun_us, 14 * US_PER_S);
    end(&scene);
}

static void a_seed_gives_the_same_numbers(void **state)
{
    (void)state;
    uint64_t first[2];
    for (size_t i = 0; i < 2; i++) {
        CLEANUP_ENV struct env *env = env_sim_make(42);
        env_random(env, &first[i], sizeof(first[i]));
    }
    assert_true(first[0] == first[1]);
    CLEANUP_ENV struct env *other = env_sim_make(43);
    uint64_t number;
    env_random(other, &number, sizeof(number));
    assert_true(number != first[0]);
    for (int i = 0; i < 100; i++)
        assert_true(env_sim_random_below(other, 7) < 7);
}

/* A random load on the heap: what comes out is sorted, whatever was cancelled in between. */
struct load {
    struct env *env;
    int64_t last_us;
    size_t fired;
};

static void on_load(void *context)
{
    struct load *load = context;
    assert_true(env_boot_us(load->env) >= load->last_us);
    load->last_us = env_boot_us(load->env);
    load->fired++;
}

static void the_heap_keeps_its_order_under_load(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_sim_make(1);
    struct load load = {.env = env};
    struct env_timer *timers[1000];
    size_t cancelled = 0;
    for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
        timers[i] = env_timer_start(env, (int64_t)env_sim_random_below(env, 500), on_load, &load);
    for (size_t i = 0; i < ARRAY_SIZE(timers); i++) {
        if (env_sim_random_below(env, 3) == 0) {
            env_timer_cancel(env, &timers[i]);
            cancelled++;
        }
    }
    while (env_sim_step(env))
        ;
    assert_int_equal(load.fired + cancelled, ARRAY_SIZE(timers));
}

/* --- the worker --- */

static int64_t slow_disk(void *context)
{
    int64_t *next_us = context;
    *next_us += 1000;
    return *next_us;
}

static void jobs_take_the_time_that_the_hook_says_one_after_another(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    int64_t next_us = 0;
    struct mark runs[] = {{&scene, "run1"}, {&scene, "run2"}};
    env_sim_on_work(scene.env, slow_disk, &next_us);
    env_work(scene.env, on_mark, on_mark, &runs[0]);
    env_work(scene.env, on_mark, on_mark, &runs[1]);
    env_sim_step(scene.env);
    assert_string_equal(buf_text(&scene.log), "run1@1 "); /* on the disk, not yet told */
    while (env_sim_step(scene.env))
        ;
    assert_string_equal(buf_text(&scene.log), "run1@1 run1@1 run2@3 run2@3 ");
    end(&scene);
}

/* --- HTTP --- */

static bool before_send(void *context)
{
    struct scene *scene = context;
    write_down(scene, "send");
    if (scene->cancel_in_send)
        env_http_cancel(scene->env, &scene->http);
    return scene->send;
}

static void on_status(void *context, int status)
{
    struct scene *scene = context;
    (void)status;
    write_down(scene, "status");
    if (scene->cancel_in_status)
        env_http_cancel(scene->env, &scene->http);
}

static bool on_data(void *context, const char *bytes, size_t length)
{
    struct scene *scene = context;
    CLEANUP_FREE char *text = xmemdup0(bytes, length);
    write_down(scene, text);
    if (scene->cancel_in_data)
        env_http_cancel(scene->env, &scene->http);
    return scene->more;
}

static void on_done(void *context, const struct http_answer *answer)
{
    struct scene *scene = context;
    static const char *const outcomes[] = {"answered", "no-answer", "not-sent"};
    CLEANUP_FREE char *text =
        xasprintf("%s:%d:%s:%s:%s", outcomes[answer->outcome], answer->status,
                  answer->body_whole ? "whole" : "cut", answer->body, error_code_text(answer->code));
    write_down(scene, text);
    scene->http = NULL;
}

static void serve(void *context, struct env_sim_call *call)
{
    struct scene *scene = context;
    write_down(scene, call->method);
    scene->call = call;
    if (scene->status)
        env_sim_http_answer(call, scene->status, NULL, 0, "body", 4);
}

static void client_gone(void *context, struct env_sim_call *call)
{
    struct scene *scene = context;
    write_down(scene, "gone");
    assert_true(call->client_gone);
    env_sim_http_freeze(call);
    scene->call = NULL;
}

static void choose_route(void *context, const struct env_sim_call *call, struct env_sim_route *route)
{
    struct scene *scene = context;
    assert_non_null(call->path);
    *route = scene->route;
}

static const struct env_sim_http_ops model = {.request = serve, .gone = client_gone};

static struct http_request put_request(void)
{
    static const struct http_server server = {.base_url = (char *)"http://sim"};
    return (struct http_request){.server = &server,
                                 .method = "PUT",
                                 .path = "/x",
                                 .body = "{}",
                                 .body_length = 2,
                                 .timeout_us = 10 * US_PER_S,
                                 .answer_max = 100,
                                 .once = true};
}

static void submit(struct scene *scene, const struct http_request *request)
{
    env_sim_http(scene->env, &model, scene);
    env_sim_on_route(scene->env, choose_route, scene);
    struct http_callbacks callbacks = {.before_send = before_send,
                                       .on_status = on_status,
                                       .on_data = scene->stream ? on_data : NULL,
                                       .on_done = on_done};
    scene->http = env_http_submit(scene->env, request, &callbacks, scene);
    assert_int_equal(scene->log.length, 0); /* nothing happens inside the call */
}

static void expect(struct scene *scene, const char *log)
{
    struct http_request request = put_request();
    submit(scene, &request);
    while (env_sim_step(scene->env))
        ;
    assert_string_equal(buf_text(&scene->log), log);
    end(scene);
}

static void a_request_takes_its_way_and_its_time(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    scene.status = 201;
    scene.route = (struct env_sim_route){.connect_us = 1000, .request_us = 2000, .answer_us = 4000};
    expect(&scene, "send@1 PUT@3 status@7 answered:201:whole:body:no error@7 ");
}

static void the_network_has_its_faults(void **state)
{
    (void)state;
    static const struct {
        enum env_sim_fate fate;
        const char *log;
    } rows[] = {
        {ENV_SIM_REFUSE, "not-sent:0:cut::unreachable@0 "},
        {ENV_SIM_LOSE_REQUEST, "send@0 no-answer:0:cut::timed out@10000 "},
        {ENV_SIM_LOSE_ANSWER, "send@0 PUT@0 no-answer:0:cut::unreachable@0 "},
        {ENV_SIM_EAT_ANSWER, "send@0 PUT@0 no-answer:0:cut::timed out@10000 "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct scene scene;
        begin(&scene);
        scene.status = 200;
        scene.route.fate = rows[i].fate;
        expect(&scene, rows[i].log);
    }
}

static void a_request_can_arrive_after_its_client_gave_up(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    scene.status = 200;
    scene.route.request_us = 15 * US_PER_S;
    expect(&scene, "send@0 no-answer:0:cut::timed out@10000 PUT@15000 ");
}

static void a_refused_hook_sends_nothing(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    scene.send = false;
    scene.status = 200;
    expect(&scene, "send@0 not-sent:0:cut::cancelled@0 ");
}

static void cancelling_inside_callbacks_ends_it(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        struct scene scene;
        begin(&scene);
        scene.status = 200;
        scene.stream = true;
        scene.cancel_in_send = which == 0;
        scene.cancel_in_status = which == 1;
        scene.cancel_in_data = which == 2;
        expect(&scene, which == 0   ? "send@0 "
                       : which == 1 ? "send@0 PUT@0 status@0 "
                                    : "send@0 PUT@0 status@0 body@0 ");
    }
}

static void a_stream_comes_in_pieces_and_its_silence_is_noticed(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    scene.stream = true;
    struct http_request request = put_request();
    request.timeout_us = 0;
    request.idle_timeout_us = 5 * US_PER_S;
    submit(&scene, &request);
    env_sim_run_for(scene.env, US_PER_S);
    env_sim_http_begin(scene.call, 200, NULL, 0);
    env_sim_http_data(scene.call, "one", 3);
    env_sim_run_for(scene.env, 4 * US_PER_S);
    env_sim_http_data(scene.call, "two", 3);
    env_sim_run_for(scene.env, 10 * US_PER_S);
    assert_string_equal(buf_text(&scene.log), "send@0 PUT@0 status@1000 one@1000 two@5000 gone@10000 "
                                              "answered:200:cut::timed out@10000 ");
    end(&scene);
}

static void a_cut_and_an_ended_stream_are_told(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        struct scene scene;
        begin(&scene);
        scene.stream = true;
        struct http_request request = put_request();
        submit(&scene, &request);
        env_sim_run_for(scene.env, 0);
        env_sim_http_begin(scene.call, 200, NULL, 0);
        if (cut)
            env_sim_http_cut(scene.call);
        else
            env_sim_http_end(scene.call);
        env_sim_run_for(scene.env, 0);
        assert_non_null(strstr(buf_text(&scene.log),
                               cut ? "answered:200:cut::unreachable@0 " : "answered:200:whole::no error@0 "));
        end(&scene);
    }
}

static void bodies_are_bounded(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    struct http_request request = put_request();
    request.answer_max = 5;
    submit(&scene, &request);
    env_sim_run_for(scene.env, 0);
    env_sim_http_answer(scene.call, 200, NULL, 0, "0123456789", 10);
    env_sim_run_for(scene.env, 0);
    assert_non_null(strstr(buf_text(&scene.log), "answered:200:cut:01234:too large@0 "));
    end(&scene);
}

static void a_dead_process_leaves_its_requests_to_the_server(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    struct env *world = scene.env;
    struct env *process = env_sim_process(world);
    scene.status = 200;
    scene.route.request_us = 2 * US_PER_S;
    scene.env = process;
    struct http_request request = put_request();
    submit(&scene, &request);
    struct mark mark = {&scene, "timer"};
    env_timer_start(process, US_PER_S, on_mark, &mark);
    struct mark dropped = {&scene, "dropped"};
    env_work(process, on_mark, on_mark, &mark);
    env_work_or_drop(process, on_mark, on_mark, on_mark, &dropped);
    env_sim_step(world); /* before_send */
    scene.env = world;
    env_free(process); /* kill -9 */
    env_sim_run_for(world, 10 * US_PER_S);
    assert_string_equal(buf_text(&scene.log), "send@0 dropped@0 PUT@2000 ");
    end(&scene);
}

static void request_headers_can_be_read(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    static const struct http_header headers[] = {{"Audit-ID", "neo-1"}};
    struct http_request request = put_request();
    request.headers = headers;
    request.header_count = 1;
    submit(&scene, &request);
    env_sim_run_for(scene.env, 0);
    assert_string_equal(env_sim_http_header(scene.call, "audit-id"), "neo-1");
    assert_null(env_sim_http_header(scene.call, "other"));
    assert_string_equal(scene.call->body, "{}");
    assert_true(scene.call->once);
    end(&scene);
}

/* --- the rest --- */

static void tell_child(void *context, const struct child_spec *spec, struct env_sim_child_result *result)
{
    (void)context;
    result->output = spec->argv[1];
    result->duration_us = strcmp(spec->argv[1], "slow") == 0 ? 100 * US_PER_S : US_PER_S;
}

static void child_done(void *context, const struct child_result *result)
{
    struct scene *scene = context;
    CLEANUP_FREE char *text =
        xasprintf("%d:%s:%s", result->exit_code, result->output, result->problem ? result->problem : "");
    write_down(scene, text);
}

static void children_are_a_hook(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    const char *const argv[] = {"helm", "quick", NULL};
    const char *const slow[] = {"helm", "slow", NULL};
    struct child_spec spec = {.argv = argv, .output_max = 100, .timeout_us = 5 * US_PER_S};
    env_child_start(scene.env, &spec, child_done, &scene);
    env_sim_on_child(scene.env, tell_child, NULL);
    env_child_start(scene.env, &spec, child_done, &scene);
    struct env_child *cancelled = env_child_start(scene.env, &spec, child_done, &scene);
    env_child_cancel(scene.env, &cancelled);
    spec.argv = slow;
    env_child_start(scene.env, &spec, child_done, &scene);
    while (env_sim_step(scene.env))
        ;
    assert_string_equal(buf_text(&scene.log), "-1::could not be started: no such file@0 0:quick:@1000 "
                                              "-1::did not finish in time and was killed@5000 ");
    end(&scene);
}

static void files_outlive_processes_and_can_fail(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_sim_make(1);
    struct env *process = env_sim_process(env);
    assert_int_equal(env_write_file(process, "/a", 0600, "one", 3, NULL), 0);
    env_free(process);
    CLEANUP_BUF struct buf content = BUF_INIT(3);
    assert_int_equal(env_read_file(env, "/a", &content, NULL), 0);
    assert_string_equal(buf_text(&content), "one");
    assert_int_equal(env_read_file(env, "/b", &content, NULL), -ERROR_NOT_FOUND);
    env_sim_file_put(env, "/b", "two");
    assert_int_equal(env_read_file(env, "/b", &content, NULL), -ERROR_TOO_LARGE);
    env_sim_file_fail(env, "/b", ENOSPC);
    assert_int_equal(env_write_file(env, "/b", 0600, "x", 1, NULL), -ERROR_NO_SPACE);
    assert_string_equal(env_sim_file_get(env, "/b"), "two");
    env_sim_file_put(env, "/b", NULL);
    assert_null(env_sim_file_get(env, "/b"));
}

static int answer_ready(void *context, const char *path, struct buf *body, const char **ret_content_type)
{
    (void)context;
    *ret_content_type = "text/plain";
    ENSURE(buf_add_text(body, path) == 0);
    return 200;
}

static void listeners_variables_and_signals_are_tables(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    assert_int_equal(env_listen(scene.env, "127.0.0.1:1", answer_ready, NULL, NULL), 0);
    assert_true(env_listen(scene.env, "127.0.0.1:1", answer_ready, NULL, NULL) < 0);
    CLEANUP_BUF struct buf body = BUF_INIT(100);
    assert_int_equal(env_sim_listen_get(scene.env, "127.0.0.1:1", "/readyz", &body), 200);
    assert_string_equal(buf_text(&body), "/readyz");
    assert_int_equal(env_sim_listen_get(scene.env, "127.0.0.1:2", "/readyz", &body), 0);
    assert_null(env_variable(scene.env, "KUBECONFIG"));
    env_sim_variable_set(scene.env, "KUBECONFIG", "/k");
    assert_string_equal(env_variable(scene.env, "KUBECONFIG"), "/k");
    env_sim_variable_set(scene.env, "KUBECONFIG", NULL);
    assert_null(env_variable(scene.env, "KUBECONFIG"));
    struct mark mark = {&scene, "stop"};
    env_on_stop_signal(scene.env, on_mark, &mark);
    env_sim_signal(scene.env);
    env_run(scene.env); /* returns when nothing is left */
    assert_string_equal(buf_text(&scene.log), "stop@0 ");
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_run_by_time_and_then_by_order),
        cmocka_unit_test(running_until_a_time_leaves_the_clock_there),
        cmocka_unit_test(a_seed_gives_the_same_numbers),
        cmocka_unit_test(the_heap_keeps_its_order_under_load),
        cmocka_unit_test(jobs_take_the_time_that_the_hook_says_one_after_another),
        cmocka_unit_test(a_request_takes_its_way_and_its_time),
        cmocka_unit_test(the_network_has_its_faults),
        cmocka_unit_test(a_request_can_arrive_after_its_client_gave_up),
        cmocka_unit_test(a_refused_hook_sends_nothing),
        cmocka_unit_test(cancelling_inside_callbacks_ends_it),
        cmocka_unit_test(a_stream_comes_in_pieces_and_its_silence_is_noticed),
        cmocka_unit_test(a_cut_and_an_ended_stream_are_told),
        cmocka_unit_test(bodies_are_bounded),
        cmocka_unit_test(a_dead_process_leaves_its_requests_to_the_server),
        cmocka_unit_test(request_headers_can_be_read),
        cmocka_unit_test(children_are_a_hook),
        cmocka_unit_test(files_outlive_processes_and_can_fail),
        cmocka_unit_test(listeners_variables_and_signals_are_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
