/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile_client.h"

static bool before_send(void *context)
{
    struct heard *heard = context;
    heard->before_send_count++;
    if (heard->at_before_send)
        heard->at_before_send(heard);
    return !heard->refuse;
}

static void on_status(void *context, int status)
{
    struct heard *heard = context;
    heard->status_count++;
    heard->answer.status = status;
    if (heard->at_status)
        heard->at_status(heard);
}

static bool on_data(void *context, const char *bytes, size_t length)
{
    struct heard *heard = context;
    heard->data_count++;
    ENSURE(buf_add(&heard->streamed, bytes, length) == 0);
    if (heard->at_data)
        heard->at_data(heard);
    return !heard->end_at_data;
}

static void on_done(void *context, const struct http_answer *answer)
{
    struct heard *heard = context;
    heard->done_count++;
    heard->answer = *answer;
    heard->answer.body = xmemdup0(answer->body, answer->body_length);
    heard->answer.audit_id = xstrdup_or_null(answer->audit_id);
    heard->answer.problem = xstrdup_or_null(answer->problem);
    if (heard->at_done)
        heard->at_done(heard);
    heard->http = NULL;
    if (heard->left && --*heard->left == 0)
        env_stop(heard->env);
}

void heard_init(struct heard *heard, struct env *env)
{
    *heard = (struct heard){.env = env, .streamed = BUF_INIT(64 << 20)};
}

void heard_done(struct heard *heard)
{
    free((char *)heard->answer.body);
    free((char *)heard->answer.audit_id);
    free((char *)heard->answer.problem);
    buf_done(&heard->streamed);
}

void heard_submit(struct heard *heard, const struct http_request *request)
{
    struct http_callbacks callbacks = {.before_send = before_send,
                                       .on_status = on_status,
                                       .on_data = heard->stream ? on_data : NULL,
                                       .on_done = on_done};
    heard->http = env_http_submit(heard->env, request, &callbacks, heard);
}

void heard_ask(struct heard *heard, const struct http_request *request)
{
    size_t left = 1;
    heard->left = &left;
    heard_submit(heard, request);
    heard_wait(heard->env, &left);
    heard->left = NULL;
}

struct heard heard_from(struct env *env, const struct http_request *request)
{
    struct heard heard;
    heard_init(&heard, env);
    heard_ask(&heard, request);
    return heard;
}

void heard_wait(struct env *env, size_t *left)
{
    if (*left > 0)
        env_run(env);
    ENSURE(*left == 0);
}

struct http_request heard_get(const struct http_server *server)
{
    return (struct http_request){
        .server = server, .method = "GET", .path = "/x", .timeout_us = 10000000, .answer_max = 1 << 20};
}

void hostile_scene_begin(struct hostile_scene *scene, const struct hostile_options *options)
{
    static const char body[] = "{\"a\":1}";
    scene->env = env_real_make();
    scene->server = hostile_start(options);
    scene->target = (struct http_server){.base_url = hostile_url(scene->server)};
    scene->get = heard_get(&scene->target);
    scene->post = scene->get;
    scene->post.method = "POST";
    scene->post.body = body;
    scene->post.body_length = strlen(body);
    scene->post.once = true;
}

void hostile_scene_end(struct hostile_scene *scene)
{
    env_free(scene->env);
    hostile_stop(scene->server);
    http_server_done(&scene->target);
}

struct look {
    struct hostile_scene *scene;
    size_t wanted;
    unsigned left;
};

static void look_again(void *context)
{
    struct look *look = context;
    if (hostile_request_count(look->scene->server) >= look->wanted || look->left-- == 0)
        env_stop(look->scene->env);
    else
        env_timer_start(look->scene->env, 20000, look_again, look);
}

void hostile_scene_run_until(struct hostile_scene *scene, size_t request_count)
{
    struct look look = {.scene = scene, .wanted = request_count, .left = 30000000 / 20000};
    look_again(&look);
    env_run(scene->env);
}

size_t hostile_scene_requests(struct hostile_scene *scene, const char *method)
{
    size_t count = 0;
    for (size_t i = 0; i < hostile_request_count(scene->server); i++) {
        CLEANUP_FREE char *text = hostile_request(scene->server, i);
        count += str_starts_with(text, method);
    }
    return count;
}

void hostile_serve_ok(struct hostile_connection *connection, void *context)
{
    (void)context;
    while (hostile_read_request(connection))
        if (!hostile_answer(connection, 200, "{}"))
            return;
}

void hostile_serve_text(struct hostile_connection *connection, void *context)
{
    while (hostile_read_request(connection))
        if (!hostile_send_text(connection, context))
            return;
}

void hostile_serve_text_once(struct hostile_connection *connection, void *context)
{
    if (hostile_read_request(connection))
        hostile_send_text(connection, context);
}

void hostile_serve_nothing(struct hostile_connection *connection, void *context)
{
    (void)context;
    if (hostile_read_request(connection))
        hostile_wait_for_close(connection);
}
