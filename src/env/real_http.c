/* SPDX-License-Identifier: Apache-2.0
 *
 * libcurl's multi interface on the loop. libcurl does not allow its handles to be added or removed from
 * inside its own callbacks, and our owners may submit and cancel anywhere: while a set is busy both wait
 * until libcurl has returned. More requests than a set runs side by side wait here, too: libcurl looks at
 * every one that it has whenever a byte comes, and starts those that lack a connection all over again. */
#include "env/real_http.h"

/* Connections to one server, by pool. HTTP/2 needs one for about 100 requests; a server without it needs one
 * a request, and a watch holds its own for minutes. */
static const long connections_max[HTTP_POOL_COUNT] = {
    [HTTP_POOL_REQUEST] = 8, [HTTP_POOL_WATCH] = 32, [HTTP_POOL_LEASE] = 2};
/* Requests side by side; a server that multiplexes takes more of them than it has connections. */
enum { STREAMS_MAX = 32 };

struct socket_poll {
    struct http_set *set;
    uv_poll_t poll;
    curl_socket_t fd;
};

static void settle(struct http_set *set);
static void retire(struct http_set *set);

static void finish(struct env_http *http, CURLcode code)
{
    struct http_set *set = http->set;
    /* Whatever else lies on a connection that let a request run out of time: nothing new is put there. */
    if (code == CURLE_OPERATION_TIMEDOUT && http->sends > 0)
        retire(set);
    curl_multi_remove_handle(set->multi, http->easy);
    http->added = false;
    DL_DELETE(set->running, http);
    set->running_count--;
    http_request_end(http, code);
}

static void drain(struct http_set *set)
{
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(set->multi, &left))) {
        ENSURE(message->msg == CURLMSG_DONE);
        CURLcode code = message->data.result;
        struct env_http *http = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &http);
        if (!http->cancelled)
            finish(http, code);
    }
}

/* Lets libcurl act, hands out what is complete, then does what had to wait. */
static void act(struct http_set *set, curl_socket_t fd, int events)
{
    PRE(!set->busy);
    int running;
    set->busy = true;
    curl_multi_socket_action(set->multi, fd, events, &running);
    drain(set);
    set->busy = false;
    settle(set);
}

static void on_timer(void *context)
{
    struct http_set *set = context;
    set->timer = NULL;
    act(set, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer_change(CURLM *multi, long timeout_ms, void *context)
{
    (void)multi;
    struct http_set *set = context;
    env_timer_cancel(&set->real->env, &set->timer);
    if (timeout_ms >= 0)
        set->timer = env_timer_start(&set->real->env, (int64_t)timeout_ms * 1000, on_timer, set);
    return 0;
}

static void on_socket_event(uv_poll_t *poll, int status, int events)
{
    const struct socket_poll *watched = poll->data;
    int flags = (events & UV_READABLE ? CURL_CSELECT_IN : 0) | (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);
    act(watched->set, watched->fd, status < 0 ? CURL_CSELECT_ERR : flags);
}

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static int on_socket_change(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
    (void)easy;
    struct http_set *set = context;
    struct socket_poll *watched = socket_context;
    if (what == CURL_POLL_REMOVE) {
        if (watched) {
            uv_poll_stop(&watched->poll); /* at once: libcurl is about to close the descriptor */
            uv_close((uv_handle_t *)&watched->poll, on_poll_closed);
            curl_multi_assign(set->multi, fd, NULL);
        }
        return 0;
    }
    if (!watched) {
        watched = xcalloc(1, sizeof(*watched));
        watched->set = set;
        watched->fd = fd;
        ENSURE(uv_poll_init_socket(&set->real->loop, &watched->poll, fd) == 0);
        watched->poll.data = watched;
        curl_multi_assign(set->multi, fd, watched);
    }
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    ENSURE(uv_poll_start(&watched->poll, events, on_socket_event) == 0);
    return 0;
}

static struct http_set *make_set(struct real_http *all, enum http_pool pool)
{
    struct http_set *set = xcalloc(1, sizeof(*set));
    set->real = all->real;
    set->pool = pool;
    set->multi = curl_multi_init();
    ENSURE(set->multi);
    curl_multi_setopt(set->multi, CURLMOPT_SOCKETFUNCTION, on_socket_change);
    curl_multi_setopt(set->multi, CURLMOPT_SOCKETDATA, set);
    curl_multi_setopt(set->multi, CURLMOPT_TIMERFUNCTION, on_timer_change);
    curl_multi_setopt(set->multi, CURLMOPT_TIMERDATA, set);
    curl_multi_setopt(set->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    curl_multi_setopt(set->multi, CURLMOPT_MAX_HOST_CONNECTIONS, connections_max[pool]);
    curl_multi_setopt(set->multi, CURLMOPT_MAXCONNECTS, connections_max[pool]);
    DL_APPEND(all->sets, set);
    return set;
}

static void free_set(struct real_http *all, struct http_set *set)
{
    PRE(!set->busy && !set->running && !set->waiting && !set->cancelled);
    ENSURE(set->running_count == 0);
    DL_DELETE(all->sets, set);
    curl_multi_cleanup(set->multi);
    env_timer_cancel(&set->real->env, &set->timer);
    free(set);
}

static void remove_cancelled(struct http_set *set)
{
    while (set->cancelled) {
        struct env_http *http = set->cancelled;
        DL_DELETE(set->cancelled, http);
        if (http->added)
            curl_multi_remove_handle(set->multi, http->easy);
        http_request_free(http);
    }
}

static void add_now(struct http_set *set, struct env_http *http)
{
    DL_APPEND(set->running, http);
    set->running_count++;
    set->used = true;
    http->added = http->was_added = true;
    ENSURE(curl_multi_add_handle(set->multi, http->easy) == CURLM_OK);
}

static bool has_room(const struct http_set *set, const struct env_http *http)
{
    long max =
        http->multiplexes ? MAX(connections_max[set->pool], (long)STREAMS_MAX) : connections_max[set->pool];
    return set->running_count < max;
}

static void settle(struct http_set *set)
{
    remove_cancelled(set);
    while (set->waiting && has_room(set, set->waiting)) {
        struct env_http *http = set->waiting;
        DL_DELETE(set->waiting, http);
        add_now(set, http);
    }
    if (set->retired && !set->running)
        free_set(set->real->http, set);
}

/* What has no connection yet goes on with the next set. */
static void retire(struct http_set *set)
{
    if (set->retired)
        return;
    struct real_http *all = set->real->http;
    set->retired = true;
    struct http_set *next = make_set(all, set->pool);
    all->current[set->pool] = next;
    next->waiting = STEAL(set->waiting);
    struct env_http *http = NULL;
    DL_FOREACH (next->waiting, http)
        http->set = next;
    settle(next);
}

void http_request_expire(struct env_http *http)
{
    struct http_set *set = http->set;
    PRE(!set->busy); /* timers do not fire inside libcurl */
    if (!http->added) {
        DL_DELETE(set->waiting, http);
        settle(set); /* it may have stood before one that there is room for */
        http_request_end(http, CURLE_OPERATION_TIMEDOUT);
        return;
    }
    set->busy = true;
    finish(http, CURLE_OPERATION_TIMEDOUT);
    set->busy = false;
    settle(set);
}

static void report_failed(void *context)
{
    struct env_http *http = context;
    http->timer = NULL;
    DL_DELETE(http->real->http->failed, http);
    http_request_end(http, CURLE_URL_MALFORMAT);
}

struct env_http *real_http_submit(struct env *env, const struct http_request *request,
                                  const struct http_callbacks *callbacks, void *context)
{
    PRE(request && request->server && request->method && request->path && request->path[0] == '/');
    PRE(callbacks && callbacks->on_done && (unsigned)request->pool < HTTP_POOL_COUNT);
    PRE(request->timeout_us >= 0 && request->idle_timeout_us >= 0);
    struct real *real = real_of(env);
    struct env_http *http = http_request_make(real, request, callbacks, context);
    if (http->setup_problem) {
        DL_APPEND(real->http->failed, http);
        http->timer = env_timer_start(env, 0, report_failed, http);
        return http;
    }
    struct http_set *set = real->http->current[request->pool];
    if (request->fresh_connection && set->used) {
        retire(set);
        if (!set->busy)
            settle(set);
        set = real->http->current[request->pool];
    }
    http->set = set;
    http_request_arm(http);
    DL_APPEND(set->waiting, http);
    if (!set->busy)
        settle(set);
    return http;
}

void real_http_cancel(struct env_http *http)
{
    if (http->finished || http->cancelled)
        return; /* finished: its on_done is running, and it is freed after that */
    http->cancelled = true;
    env_timer_cancel(&http->real->env, &http->timer);
    struct http_set *set = http->set;
    if (!set) {
        DL_DELETE(http->real->http->failed, http); // NOLINT(clang-analyzer-core.NullDereference)
        http_request_free(http);
        return;
    }
    /* The analyzer does not know that the head of such a list has a next one unless it is alone. */
    if (http->added) {
        DL_DELETE(set->running, http); // NOLINT(clang-analyzer-core.NullDereference)
        set->running_count--;
    } else {
        DL_DELETE(set->waiting, http); // NOLINT(clang-analyzer-core.NullDereference)
    }
    DL_APPEND(set->cancelled, http);
    if (!set->busy)
        settle(set);
}

struct real_http *real_http_make(struct real *real)
{
    ENSURE(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    struct real_http *http = xcalloc(1, sizeof(*http));
    http->real = real;
    for (int pool = 0; pool < HTTP_POOL_COUNT; pool++)
        http->current[pool] = make_set(http, (enum http_pool)pool);
    return http;
}

void real_http_free(struct real_http *http)
{
    while (http->failed)
        real_http_cancel(http->failed);
    for (int pool = 0; pool < HTTP_POOL_COUNT; pool++)
        http->current[pool]->retired = true;
    while (http->sets) {
        struct http_set *set = http->sets;
        struct http_set *next = set->next;
        PRE(!set->busy); /* env_free from inside a callback */
        while (set->waiting)
            real_http_cancel(set->waiting);
        while (set->running && set->running->next)
            real_http_cancel(set->running);
        if (set->running)
            real_http_cancel(set->running); /* the last one: settle() frees the set */
        else
            free_set(http, set);
        ENSURE(http->sets == next);
    }
    curl_global_cleanup();
    http_address_done(&http->address);
    free(http);
}
