/* SPDX-License-Identifier: Apache-2.0 */
#include "env_sim_private.h"

#include "base/time_text.h"

#include <stdio.h>
#include <strings.h>

/* As the real transport's. */
enum { ERROR_BODY_MAX = 1 << 20 };

enum piece_kind { PIECE_BEGIN, PIECE_DATA, PIECE_END, PIECE_CUT };

/* A part of an answer on its way. */
struct piece {
    struct sim_call *call;
    enum piece_kind kind;
    int status;
    int64_t retry_after_us;
    char *audit_id;
    char *bytes;
    size_t length;
    struct sim_event *event;
    struct piece *prev;
    struct piece *next;
};

/* The network's and the server's side of a request: lives while the client waits, the model works, or pieces
 * travel. */
struct sim_call {
    struct env_sim_call shown;
    struct sim_world *world;
    struct env_http *client; /* NULL: gone, or told */
    struct env_sim_route route;
    struct sim_event *arrival;
    bool arrived;
    bool with_model; /* the model holds it */
    bool begun;
    bool closed; /* the client will see nothing more */
    struct piece *pieces;
    char *base_url;
    char *method;
    char *path;
    struct http_header *headers;
    char *body;
    struct sim_call *prev;
    struct sim_call *next;
};

/* The client's side. */
struct env_http {
    struct sim *sim;
    struct sim_call *call;
    struct http_callbacks callbacks;
    void *context;
    struct sim_event *connect;
    struct sim_event *deadline;
    struct sim_event *silence;
    int64_t idle_timeout_us;
    bool sent;
    bool calling;   /* inside a callback of its owner */
    bool cancelled; /* by its owner, inside that callback */
    bool finished;
    int status;
    bool streaming;
    int64_t retry_after_us;
    char *audit_id;
    struct buf answer;
    struct env_http *prev;
    struct env_http *next;
};

/* --- calls --- */

static void free_piece(struct piece *piece)
{
    sim_unschedule(piece->call->world, &piece->event);
    DL_DELETE(piece->call->pieces, piece);
    free(piece->audit_id);
    free(piece->bytes);
    free(piece);
}

static void free_call(struct sim_call *call)
{
    while (call->pieces)
        free_piece(call->pieces);
    sim_unschedule(call->world, &call->arrival);
    DL_DELETE(call->world->calls, call);
    for (size_t i = 0; i < call->shown.header_count; i++) {
        free((char *)call->headers[i].name);
        free((char *)call->headers[i].value);
    }
    free(call->headers);
    free(call->base_url);
    free(call->method);
    free(call->path);
    free(call->body);
    free(call);
}

static void free_call_if_over(struct sim_call *call)
{
    if (!call->client && !call->with_model && !call->pieces)
        free_call(call);
}

void sim_http_free_calls(struct sim_world *world)
{
    while (world->calls)
        free_call(world->calls);
}

static struct sim_call *make_call(struct sim_world *world, const struct http_request *request)
{
    struct sim_call *call = xcalloc(1, sizeof(*call));
    call->world = world;
    call->base_url = xstrdup(request->server->base_url ? request->server->base_url : "");
    call->method = xstrdup(request->method);
    call->path = xstrdup(request->path);
    call->body = request->body ? xmemdup0(request->body, request->body_length) : NULL;
    call->headers = xcalloc(request->header_count, sizeof(call->headers[0]));
    for (size_t i = 0; i < request->header_count; i++) {
        call->headers[i].name = xstrdup(request->headers[i].name);
        call->headers[i].value = xstrdup(request->headers[i].value);
    }
    call->shown = (struct env_sim_call){.number = ++world->call_count,
                                        .base_url = call->base_url,
                                        .method = call->method,
                                        .path = call->path,
                                        .headers = call->headers,
                                        .header_count = request->header_count,
                                        .body = call->body,
                                        .body_length = request->body ? request->body_length : 0,
                                        .pool = request->pool,
                                        .once = request->once};
    DL_APPEND(world->calls, call);
    return call;
}

/* --- the client --- */

static void free_client(struct env_http *http)
{
    buf_done(&http->answer);
    free(http->audit_id);
    free(http);
}

/* Cuts the client off the network; its memory stays. */
static void detach(struct env_http *http)
{
    struct sim_world *world = http->sim->world;
    struct sim_call *call = http->call;
    sim_unschedule(world, &http->connect);
    sim_unschedule(world, &http->deadline);
    sim_unschedule(world, &http->silence);
    DL_DELETE(http->sim->requests, http);
    call->client = NULL;
    http->call = NULL;
    if (call->closed && !call->with_model) {
        free_call_if_over(call);
        return;
    }
    call->shown.client_gone = true;
    while (call->pieces)
        free_piece(call->pieces);
    if (call->with_model && call->arrived && world->http && world->http->gone)
        world->http->gone(world->http_context, &call->shown);
    else
        free_call_if_over(call);
}

/* Around each callback of the owner: false when the owner cancelled inside it; http is freed then. */
static bool still_wanted(struct env_http *http)
{
    http->calling = false;
    if (!http->cancelled)
        return true;
    free_client(http);
    return false;
}

static void finish(struct env_http *http, bool whole, enum error_code code, const char *problem)
{
    struct http_answer answer = {
        .outcome = http->status ? HTTP_ANSWERED
                   : http->sent ? HTTP_NO_ANSWER
                                : HTTP_NOT_SENT,
        .status = http->status,
        .body_whole = whole,
        .body = buf_text(&http->answer),
        .body_length = http->answer.length,
        .retry_after_us = http->retry_after_us,
        .audit_id = http->audit_id,
        .problem = problem,
        .code = code,
    };
    http->finished = true;
    detach(http);
    http->callbacks.on_done(http->context, &answer);
    free_client(http);
}

static void on_deadline(void *context)
{
    struct env_http *http = context;
    http->deadline = NULL;
    finish(http, false, ERROR_TIMED_OUT, "the simulated server did not answer in time");
}

static void on_silence(void *context)
{
    struct env_http *http = context;
    http->silence = NULL;
    finish(http, false, ERROR_TIMED_OUT, "the simulated server sent nothing for too long");
}

static void heard(struct env_http *http)
{
    sim_unschedule(http->sim->world, &http->silence);
    if (http->idle_timeout_us > 0)
        http->silence = sim_schedule(http->sim->world, http->sim, http->idle_timeout_us, on_silence, http);
}

static void on_arrival(void *context)
{
    struct sim_call *call = context;
    call->arrival = NULL;
    call->arrived = true;
    call->world->http->request(call->world->http_context, &call->shown);
}

static void on_connected(void *context)
{
    struct env_http *http = context;
    struct sim_call *call = http->call;
    struct sim_world *world = http->sim->world;
    http->connect = NULL;
    if (call->route.fate == ENV_SIM_REFUSE || !world->http) {
        finish(http, false, ERROR_UNREACHABLE, "cannot connect to the simulated server");
        return;
    }
    http->calling = true;
    bool send = !http->callbacks.before_send || http->callbacks.before_send(http->context);
    if (!still_wanted(http))
        return;
    if (!send) {
        finish(http, false, ERROR_CANCELLED, "held back at the last moment");
        return;
    }
    http->sent = true;
    heard(http);
    if (call->route.fate == ENV_SIM_LOSE_REQUEST)
        return;
    call->with_model = true;
    call->arrival = sim_schedule(world, NULL, call->route.request_us, on_arrival, call);
}

struct env_http *sim_http_submit(struct env *env, const struct http_request *request,
                                 const struct http_callbacks *callbacks, void *context)
{
    PRE(request && request->server && request->method && request->path && request->path[0] == '/');
    PRE(callbacks && callbacks->on_done && (unsigned)request->pool < HTTP_POOL_COUNT);
    struct sim *sim = sim_of(env);
    struct env_http *http = xcalloc(1, sizeof(*http));
    *http = (struct env_http){.sim = sim,
                              .call = make_call(sim->world, request),
                              .callbacks = *callbacks,
                              .context = context,
                              .idle_timeout_us = request->idle_timeout_us,
                              .retry_after_us = -1};
    size_t max = request->answer_max && !callbacks->on_data ? request->answer_max : ERROR_BODY_MAX;
    http->answer = BUF_INIT(max);
    http->call->client = http;
    if (sim->world->route)
        sim->world->route(sim->world->route_context, &http->call->shown, &http->call->route);
    http->connect = sim_schedule(sim->world, sim, http->call->route.connect_us, on_connected, http);
    if (request->timeout_us > 0)
        http->deadline = sim_schedule(sim->world, sim, request->timeout_us, on_deadline, http);
    DL_APPEND(sim->requests, http);
    return http;
}

void sim_http_cancel(struct env_http *http)
{
    if (http->finished || http->cancelled)
        return;
    http->cancelled = true;
    detach(http);
    if (!http->calling)
        free_client(http);
}

void sim_http_end_all(struct sim *sim)
{
    while (sim->requests)
        sim_http_cancel(sim->requests);
}

/* --- the answer --- */

static void receive_begin(struct env_http *http, struct piece *piece)
{
    http->status = piece->status;
    http->retry_after_us = piece->retry_after_us;
    http->audit_id = STEAL(piece->audit_id);
    http->streaming = http->callbacks.on_data && http->status >= 200 && http->status < 300;
    if (!http->callbacks.on_status)
        return;
    http->calling = true;
    http->callbacks.on_status(http->context, http->status);
    still_wanted(http);
}

static void receive_data(struct env_http *http, const struct piece *piece)
{
    if (!http->streaming) {
        size_t room = http->answer.max - http->answer.length;
        ENSURE(buf_add(&http->answer, piece->bytes, MIN(piece->length, room)) == 0);
        if (piece->length > room)
            finish(http, false, ERROR_TOO_LARGE, "the simulated server's answer is too large");
        return;
    }
    http->calling = true;
    bool more = http->callbacks.on_data(http->context, piece->bytes, piece->length);
    if (still_wanted(http) && !more)
        finish(http, false, ERROR_CANCELLED, "the answer was ended by its reader");
}

static void receive(struct env_http *http, struct piece *piece)
{
    heard(http);
    switch (piece->kind) {
    case PIECE_BEGIN:
        receive_begin(http, piece);
        break;
    case PIECE_DATA:
        receive_data(http, piece);
        break;
    case PIECE_END:
        http->call->closed = true;
        finish(http, true, ERROR_NONE, NULL);
        break;
    case PIECE_CUT:
        http->call->closed = true;
        finish(http, false, ERROR_UNREACHABLE, "the connection to the simulated server broke");
        break;
    }
}

/* The piece leaves its list first: what happens then may free the call and all its pieces. */
static void on_piece(void *context)
{
    struct piece *piece = context;
    struct sim_call *call = piece->call;
    struct env_http *client = call->client;
    piece->event = NULL;
    DL_DELETE(call->pieces, piece);
    if (client)
        receive(client, piece);
    else
        free_call_if_over(call);
    free(piece->audit_id);
    free(piece->bytes);
    free(piece);
}

static struct piece *send_piece(struct sim_call *call, enum piece_kind kind, const char *bytes, size_t length)
{
    bool eaten =
        call->route.fate == ENV_SIM_EAT_ANSWER || (call->route.fate == ENV_SIM_LOSE_ANSWER && call->begun);
    if (!call->client || call->closed || eaten)
        return NULL;
    struct piece *piece = xcalloc(1, sizeof(*piece));
    *piece = (struct piece){.call = call, .kind = kind, .length = length, .retry_after_us = -1};
    if (call->route.fate == ENV_SIM_LOSE_ANSWER)
        piece->kind = PIECE_CUT;
    piece->bytes = bytes ? xmemdup0(bytes, length) : NULL;
    piece->event = sim_schedule(call->world, NULL, call->route.answer_us, on_piece, piece);
    DL_APPEND(call->pieces, piece);
    return piece;
}

/* The model lets go of the call. */
static void end_call(struct sim_call *call)
{
    PRE(call->with_model && call->arrived);
    call->with_model = false;
    free_call_if_over(call);
}

static struct sim_call *call_of(struct env_sim_call *shown)
{
    PRE(shown);
    return (struct sim_call *)shown;
}

void env_sim_http_begin(struct env_sim_call *shown, int status, const struct http_header *headers,
                        size_t header_count)
{
    struct sim_call *call = call_of(shown);
    PRE(status >= 200 && status <= 599 && !call->begun);
    struct piece *piece = send_piece(call, PIECE_BEGIN, NULL, 0);
    call->begun = true;
    if (!piece)
        return;
    piece->status = status;
    for (size_t i = 0; i < header_count; i++) {
        if (strcasecmp(headers[i].name, "Audit-Id") == 0)
            str_replace(&piece->audit_id, headers[i].value);
        if (strcasecmp(headers[i].name, "Retry-After") == 0)
            piece->retry_after_us = atoll(headers[i].value) * US_PER_S;
    }
}

void env_sim_http_data(struct env_sim_call *shown, const char *bytes, size_t length)
{
    struct sim_call *call = call_of(shown);
    PRE(call->begun && (bytes || length == 0));
    if (length > 0)
        send_piece(call, PIECE_DATA, bytes, length);
}

void env_sim_http_end(struct env_sim_call *shown)
{
    struct sim_call *call = call_of(shown);
    PRE(call->begun);
    send_piece(call, PIECE_END, NULL, 0);
    end_call(call);
}

void env_sim_http_cut(struct env_sim_call *shown)
{
    send_piece(call_of(shown), PIECE_CUT, NULL, 0);
    end_call(call_of(shown));
}

void env_sim_http_freeze(struct env_sim_call *shown)
{
    end_call(call_of(shown));
}

void env_sim_http_answer(struct env_sim_call *call, int status, const struct http_header *headers,
                         size_t header_count, const char *body, size_t body_length)
{
    env_sim_http_begin(call, status, headers, header_count);
    if (body)
        env_sim_http_data(call, body, body_length);
    env_sim_http_end(call);
}

const char *env_sim_http_header(const struct env_sim_call *call, const char *name)
{
    for (size_t i = 0; i < call->header_count; i++)
        if (strcasecmp(call->headers[i].name, name) == 0)
            return call->headers[i].value;
    return NULL;
}

void env_sim_http(struct env *env, const struct env_sim_http_ops *ops, void *context)
{
    PRE(!ops || ops->request);
    sim_of(env)->world->http = ops;
    sim_of(env)->world->http_context = context;
}

void env_sim_on_route(struct env *env, env_sim_route_hook *hook, void *context)
{
    sim_of(env)->world->route = hook;
    sim_of(env)->world->route_context = context;
}
