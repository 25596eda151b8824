/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_server.h"
#include "whole_file.h"

#include "base/time_text.h"
#include "base/yaml.h"
#include "kube/resource.h"

#include <stdio.h>
#include <utlist.h>

enum { WRITES_MAX = 100000 };

struct exchange {
    struct sim_server *server;
    struct env_sim_call *call; /* NULL: ended */
    struct kubesim_watch *watch;
    struct buf early; /* lines of a watch that is being opened */
    bool watch_ended;
    bool ended_clean;
    struct kubesim_response response;
    struct env_timer *timer;
    struct exchange *prev, *next;
};

struct sim_server {
    struct env *env;
    struct kubesim *sim;
    struct kubelet_attach *kubelet;
    struct env_timer *tick;
    int64_t tick_due_us; /* wall */
    struct exchange *exchanges;
    struct sim_write *writes;
    size_t write_count;
    struct sim_server_hooks hooks;
    bool own_clock; /* the world's wall clock may jump, the server's goes on */
    int64_t wall_minus_boot_us;
};

static int64_t server_now_us(const struct sim_server *server)
{
    return server->own_clock ? env_boot_us(server->env) + server->wall_minus_boot_us
                             : env_wall_us(server->env);
}

/* --- kubesim's outside ---------------------------------------------------------------------------------- */

static int64_t now_us(void *context)
{
    const struct sim_server *server = context;
    return server_now_us(server);
}

static void fill_random(void *context, void *bytes, size_t length)
{
    const struct sim_server *server = context;
    env_random(server->env, bytes, length);
}

static bool is_write(const char *verb)
{
    return strcmp(verb, "get") != 0 && strcmp(verb, "list") != 0 && strcmp(verb, "watch") != 0;
}

static void take_audit(void *context, const char *line, size_t length)
{
    struct sim_server *server = context;
    CLEANUP_JSON cJSON *event = NULL;
    if (json_parse(line, length, &event, NULL) < 0)
        return;
    int64_t code = json_int64_or(json_get(event, "responseStatus"), "code", 0);
    const char *path = json_str(event, "requestURI");
    const char *verb = json_str(event, "verb");
    if (!path || !verb || !is_write(verb) || code < 200 || code > 299 || strstr(path, "dryRun=All"))
        return;
    ENSURE(server->write_count < WRITES_MAX);
    server->writes = xreallocarray(server->writes, server->write_count + 1, sizeof(*server->writes));
    const char *audit_id = json_str(event, "auditID");
    server->writes[server->write_count++] = (struct sim_write){
        .audit_id = xstrdup(audit_id ? audit_id : ""),
        .verb = xstrdup(verb),
        .path = xstrdup(path),
        .status = (int)code,
        .at_us = env_wall_us(server->env),
    };
}

static void take_change(void *context, const struct kubesim_change *change)
{
    struct sim_server *server = context;
    server->hooks.changed(server->hooks.context, change);
}

static void mutate_pod(void *context, cJSON *object, const cJSON *old)
{
    struct sim_server *server = context;
    server->hooks.mutate_pod(server->hooks.context, object, old);
}

static void pass_audit_on(void *context, const char *line, size_t length)
{
    struct sim_server *server = context;
    if (server->hooks.audited)
        server->hooks.audited(server->hooks.context, line, length);
}

static void tell_answered(struct exchange *exchange)
{
    struct sim_server *server = exchange->server;
    const struct kubesim_response *response = &exchange->response;
    if (server->hooks.answered)
        server->hooks.answered(server->hooks.context, exchange->call,
                               response->disposition == KUBESIM_HELD ? 0 : response->status,
                               response->disposition == KUBESIM_ANSWERED);
}

/* --- time ----------------------------------------------------------------------------------------------- */

static void set_tick(struct sim_server *server);

static void on_tick(void *context)
{
    struct sim_server *server = context;
    server->tick = NULL;
    kubesim_tick(server->sim);
    if (server->kubelet)
        kubelet_attach_tick(server->kubelet, server_now_us(server));
    set_tick(server);
}

static void set_tick(struct sim_server *server)
{
    int64_t next_us = kubesim_next_tick_us(server->sim);
    if (server->kubelet)
        next_us = MIN(next_us, kubelet_attach_next_us(server->kubelet));
    if (server->tick && server->tick_due_us <= next_us)
        return;
    env_timer_cancel(server->env, &server->tick);
    if (next_us == INT64_MAX)
        return;
    server->tick_due_us = next_us;
    server->tick = env_timer_start(server->env, MAX(0, next_us - server_now_us(server)), on_tick, server);
}

/* The kubelet's queue got a line, from within a request. */
static void on_wake(void *context)
{
    struct sim_server *server = context;
    env_timer_cancel(server->env, &server->tick);
    server->tick_due_us = 0;
    server->tick = env_timer_start(server->env, 0, on_tick, server);
}

/* --- answers -------------------------------------------------------------------------------------------- */

static void exchange_free(struct exchange *exchange)
{
    struct sim_server *server = exchange->server;
    DL_DELETE(server->exchanges, exchange);
    env_timer_cancel(server->env, &exchange->timer);
    kubesim_watch_close(exchange->watch);
    kubesim_response_done(&exchange->response);
    buf_done(&exchange->early);
    free(exchange);
}

static void send_answer(struct exchange *exchange)
{
    const struct kubesim_response *response = &exchange->response;
    if (response->disposition == KUBESIM_LOST) {
        env_sim_http_cut(exchange->call);
        return;
    }
    char seconds[16];
    snprintf(seconds, sizeof(seconds), "%d", response->retry_after_s);
    const struct http_header headers[] = {{"Audit-Id", response->audit_id ? response->audit_id : ""},
                                          {"Retry-After", seconds}};
    env_sim_http_answer(exchange->call, response->status, headers, response->retry_after_s > 0 ? 2 : 1,
                        response->body ? response->body : "", response->body_length);
}

static struct kubesim_request request_of(const struct env_sim_call *call, bool no_faults)
{
    return (struct kubesim_request){
        .method = call->method,
        .path = call->path,
        .content_type = env_sim_http_header(call, "Content-Type"),
        .accept = env_sim_http_header(call, "Accept"),
        .audit_id = env_sim_http_header(call, "Audit-ID"),
        .user_agent = env_sim_http_header(call, "User-Agent"),
        .body = call->body,
        .body_length = call->body_length,
        .no_faults = no_faults,
    };
}

static void on_due(void *context)
{
    struct exchange *exchange = context;
    struct sim_server *server = exchange->server;
    exchange->timer = NULL;
    if (exchange->response.disposition == KUBESIM_HELD) {
        /* It lands now, whether anyone still waits or not. */
        struct kubesim_request request = request_of(exchange->call, true);
        kubesim_response_done(&exchange->response);
        kubesim_handle(server->sim, &request, &exchange->response);
        tell_answered(exchange);
        set_tick(server);
    }
    send_answer(exchange);
    exchange_free(exchange);
}

static void answer_later(struct exchange *exchange)
{
    exchange->timer = env_timer_start(exchange->server->env, exchange->response.delay_us, on_due, exchange);
}

/* --- watches -------------------------------------------------------------------------------------------- */

static void on_line(void *context, const char *line, size_t length)
{
    struct exchange *exchange = context;
    if (!exchange->watch)
        ENSURE(buf_add(&exchange->early, line, length) == 0);
    else if (!exchange->call->client_gone)
        env_sim_http_data(exchange->call, line, length);
}

static void on_watch_over(void *context)
{
    struct exchange *exchange = context;
    exchange->timer = NULL;
    if (exchange->ended_clean)
        env_sim_http_end(exchange->call);
    else
        env_sim_http_cut(exchange->call);
    exchange_free(exchange);
}

static void on_end(void *context, bool clean)
{
    struct exchange *exchange = context;
    if (exchange->watch_ended)
        return;
    exchange->watch_ended = true;
    exchange->ended_clean = clean;
    exchange->timer = env_timer_start(exchange->server->env, 0, on_watch_over, exchange);
}

static void open_watch(struct exchange *exchange, const struct kubesim_request *request)
{
    static const struct kubesim_watch_callbacks callbacks = {.on_line = on_line, .on_end = on_end};
    exchange->watch =
        kubesim_watch_open(exchange->server->sim, request, &callbacks, exchange, &exchange->response);
    if (!exchange->watch) {
        answer_later(exchange); /* refused, or a fault */
        return;
    }
    env_sim_http_begin(exchange->call, 200, NULL, 0);
    if (exchange->early.length > 0)
        env_sim_http_data(exchange->call, exchange->early.data, exchange->early.length);
}

static void on_request(void *context, struct env_sim_call *call)
{
    struct sim_server *server = context;
    struct exchange *exchange = xcalloc(1, sizeof(*exchange));
    exchange->server = server;
    exchange->call = call;
    exchange->early = BUF_INIT(64 << 20);
    call->model = exchange;
    DL_APPEND(server->exchanges, exchange);
    struct kubesim_request request = request_of(call, false);
    if (kubesim_is_watch(&request)) {
        open_watch(exchange, &request);
    } else {
        kubesim_handle(server->sim, &request, &exchange->response);
        tell_answered(exchange);
        answer_later(exchange);
    }
    set_tick(server);
}

/* A watch whose client has gone ends; a request is executed nevertheless, its answer goes nowhere. */
static void on_gone(void *context, struct env_sim_call *call)
{
    (void)context;
    struct exchange *exchange = call->model;
    if (exchange && exchange->watch)
        on_end(exchange, false);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static struct sim_server *make(struct env *world, const struct sim_server_hooks *hooks)
{
    static const struct env_sim_http_ops ops = {.request = on_request, .gone = on_gone};
    struct sim_server *server = xcalloc(1, sizeof(*server));
    server->env = env_sim_process(world);
    if (hooks)
        server->hooks = *hooks;
    server->own_clock = hooks != NULL;
    server->wall_minus_boot_us = env_wall_us(server->env) - env_boot_us(server->env);
    server->sim =
        kubesim_make(&(struct kubesim_options){.now_us = now_us,
                                               .random = fill_random,
                                               .audit = !hooks           ? take_audit
                                                        : hooks->audited ? pass_audit_on
                                                                         : NULL,
                                               .no_managed_fields = hooks && !hooks->audited,
                                               .changed = hooks && hooks->changed ? take_change : NULL,
                                               .mutate_pod = hooks && hooks->mutate_pod ? mutate_pod : NULL,
                                               .context = server});
    env_sim_http(server->env, &ops, server);
    return server;
}

struct sim_server *sim_server_make(struct env *world, const struct kubelet_options *kubelet)
{
    struct sim_server *server = make(world, NULL);
    if (kubelet)
        sim_server_attach_kubelet(server, kubelet);
    set_tick(server);
    return server;
}

struct sim_server *sim_server_make_watched(struct env *world, const struct sim_server_hooks *hooks)
{
    struct sim_server *server = make(world, hooks);
    set_tick(server);
    return server;
}

void sim_server_attach_kubelet(struct sim_server *server, const struct kubelet_options *options)
{
    PRE(!server->kubelet);
    server->kubelet = kubelet_attach_make(server->sim, options, server_now_us(server), on_wake, server);
    set_tick(server);
}

struct kubelet *sim_server_kubelet(struct sim_server *server)
{
    return server->kubelet ? kubelet_attach_kubelet(server->kubelet) : NULL;
}

void sim_server_poke(struct sim_server *server)
{
    set_tick(server);
}

void sim_server_free(struct sim_server *server)
{
    struct exchange *exchange = NULL, *next = NULL;
    DL_FOREACH_SAFE (server->exchanges, exchange, next) {
        env_sim_http_cut(exchange->call);
        exchange_free(exchange);
    }
    env_timer_cancel(server->env, &server->tick);
    kubelet_attach_free(server->kubelet);
    kubesim_free(server->sim);
    for (size_t i = 0; i < server->write_count; i++) {
        free(server->writes[i].audit_id);
        free(server->writes[i].verb);
        free(server->writes[i].path);
    }
    free(server->writes);
    env_free(server->env);
    free(server);
}

struct kubesim *sim_server_kubesim(struct sim_server *server)
{
    return server->sim;
}

/* --- a person ------------------------------------------------------------------------------------------- */

int sim_server_ask(struct sim_server *server, const char *method, const char *path, const char *content_type,
                   const char *body, cJSON **ret_body)
{
    struct kubesim_response response;
    kubesim_handle(server->sim,
                   &(struct kubesim_request){.method = method,
                                             .path = path,
                                             .content_type = content_type,
                                             .user = "person",
                                             .body = body,
                                             .body_length = body ? strlen(body) : 0,
                                             .no_faults = true},
                   &response);
    set_tick(server);
    int status = response.status;
    if (ret_body && (!response.body || json_parse(response.body, response.body_length, ret_body, NULL) < 0))
        *ret_body = NULL;
    kubesim_response_done(&response);
    return status;
}

cJSON *sim_server_get(struct sim_server *server, const char *path)
{
    cJSON *body = NULL;
    if (sim_server_ask(server, "GET", path, NULL, NULL, &body) == 200)
        return body;
    json_delete(body);
    return NULL;
}

static void post(struct sim_server *server, const cJSON *object)
{
    enum kube_resource resource;
    const char *namespace = json_path_str(object, "metadata", "namespace", NULL);
    ENSURE(kube_resource_by_name(json_str(object, "kind"), &resource) == 0);
    if (!namespace && kube_resource_info(resource)->namespaced)
    namespace = "default";
    CLEANUP_FREE char *path = kube_path(resource, namespace, NULL, NULL);
    CLEANUP_FREE char *text = json_print(object);
    CLEANUP_JSON cJSON *answer = NULL;
    int status = sim_server_ask(server, "POST", path, "application/json", text, &answer);
    if (status == 201)
        return;
    CLEANUP_FREE char *words = answer ? json_print(answer) : xstrdup("");
    fprintf(stderr, "POST %s: %d %s\n", path, status, words);
    abort();
}

void sim_server_apply_file(struct sim_server *server, const char *path)
{
    size_t length = 0;
    CLEANUP_FREE char *text = whole_file(path, &length);
    struct yaml_documents documents = {0};
    ENSURE(yaml_parse(text, length, path, &documents, NULL) == 0);
    for (size_t i = 0; i < documents.count; i++)
        post(server, documents.items[i]);
    yaml_documents_done(&documents);
}

size_t sim_server_write_count(const struct sim_server *server)
{
    return server->write_count;
}

const struct sim_write *sim_server_write(const struct sim_server *server, size_t index)
{
    PRE(index < server->write_count);
    return &server->writes[index];
}
