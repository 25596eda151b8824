/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/http.h"

#include "base/time_text.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <unistd.h>
#include <utlist.h>

enum {
    CONNECTIONS_MAX = 4096,
    IDLE_MAX_S =
        120, /* a connection on which nothing happens; watches that wait are suspended and do not count */
    UPLOAD_MAX = 8 * 1024 * 1024 + 1,
    STREAM_BUFFER_MAX = 64 * 1024 * 1024,
    STREAM_BLOCK = 32 * 1024,
};

struct http_front {
    uv_loop_t *loop;
    struct kubesim *sim;
    struct MHD_Daemon *daemon;
    char *address;
    uv_poll_t poll;
    uv_timer_t tick;            /* what the model has to do next */
    uv_timer_t wakeup;          /* what libmicrohttpd has to do next */
    struct exchange *exchanges; /* a list of those that libmicrohttpd knows */
    bool pumping;
    bool resumed; /* a connection was, since libmicrohttpd ran last */
    bool stopping;
    int handles; /* still open */
};

/* A request under way, from its first byte until its answer is out. */
struct exchange {
    struct http_front *front;
    struct exchange *next;
    struct exchange *previous;
    struct MHD_Connection *connection;
    char *path; /* with the query */
    char *method;
    struct buf upload;
    bool too_large;
    bool decided; /* response is filled */
    bool suspended;
    bool held; /* to be handed in again when the timer fires */
    struct kubesim_response response;
    uv_timer_t *timer; /* a delay; frees itself */
    /* Of a watch: */
    struct kubesim_watch *watch;
    struct buf lines;
    bool ended;
    bool cut;
};

static void on_wakeup(uv_timer_t *timer);

/* Called inside kubesim, from a watch's callbacks: libmicrohttpd runs later, since it may end exchanges, and
 * ending one closes its watch. */
static void resume(struct exchange *exchange)
{
    if (!exchange->suspended)
        return;
    exchange->suspended = false;
    exchange->front->resumed = true;
    MHD_resume_connection(exchange->connection);
    uv_timer_start(&exchange->front->wakeup, on_wakeup, 0, 0);
}

static void suspend(struct exchange *exchange)
{
    exchange->suspended = true;
    MHD_suspend_connection(exchange->connection);
}

/* --- watches
 * ------------------------------------------------------------------------------------------------------ */

static void on_line(void *context, const char *line, size_t length)
{
    struct exchange *exchange = context;
    if (buf_add(&exchange->lines, line, length) < 0)
        exchange->cut = exchange->ended =
            true; /* nobody reads: the connection goes, as the real one's would */
    resume(exchange);
}

static void on_end(void *context, bool clean)
{
    struct exchange *exchange = context;
    exchange->ended = true;
    exchange->cut = exchange->cut || !clean;
    resume(exchange);
}

static ssize_t read_lines(void *context, uint64_t position, char *out, size_t room)
{
    struct exchange *exchange = context;
    (void)position;
    if (exchange->lines.length > 0 && !exchange->cut) {
        size_t length = MIN(room, exchange->lines.length);
        memcpy(out, exchange->lines.data, length);
        buf_drop_front(&exchange->lines, length);
        return (ssize_t)length;
    }
    if (exchange->ended)
        return exchange->cut ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    suspend(exchange);
    return 0;
}

/* --- answers
 * ------------------------------------------------------------------------------------------------------ */

static void add_headers(struct MHD_Response *answer, const struct kubesim_response *response)
{
    MHD_add_response_header(answer, "Audit-Id", response->audit_id ? response->audit_id : "");
    MHD_add_response_header(answer, "Cache-Control", "no-cache, private");
    MHD_add_response_header(answer, "Content-Type",
                            response->content_type ? response->content_type : "application/json");
    if (response->retry_after_s > 0) {
        CLEANUP_FREE char *text = xasprintf("%d", response->retry_after_s);
        MHD_add_response_header(answer, "Retry-After", text);
    }
    if (response->warning) {
        CLEANUP_BUF struct buf text = BUF_INIT(16 * 1024);
        buf_add_text(&text, "299 - \"");
        for (const char *at = response->warning; *at; at++) {
            if (*at == '"' || *at == '\\')
                buf_add_char(&text, '\\');
            buf_add_char(&text, *at);
        }
        buf_add_char(&text, '"');
        MHD_add_response_header(answer, "Warning", buf_text(&text));
    }
}

static enum MHD_Result queue_answer(struct exchange *exchange)
{
    struct kubesim_response *response = &exchange->response;
    if (response->disposition != KUBESIM_ANSWERED || exchange->front->stopping)
        return MHD_NO;
    struct MHD_Response *answer;
    if (exchange->watch)
        answer =
            MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_lines, exchange, NULL);
    else
        answer =
            MHD_create_response_from_buffer(response->body_length, response->body, MHD_RESPMEM_PERSISTENT);
    if (!answer)
        return MHD_NO;
    add_headers(answer, response);
    enum MHD_Result result = MHD_queue_response(exchange->connection, (unsigned)response->status, answer);
    MHD_destroy_response(answer);
    return result;
}

static const char *header(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

/* Who asks: the impersonated user, or the NAME of a token "user:NAME". */
static const char *user_of(const struct exchange *exchange)
{
    const char *impersonated = header(exchange, "Impersonate-User");
    const char *authorization = header(exchange, "Authorization");
    if (impersonated)
        return impersonated;
    static const char prefix[] = "Bearer user:";
    return authorization && str_starts_with(authorization, prefix) ? authorization + sizeof(prefix) - 1
                                                                   : NULL;
}

static void hand_in(struct exchange *exchange, bool again)
{
    const struct kubesim_request request = {.method = exchange->method,
                                            .path = exchange->path,
                                            .content_type = header(exchange, "Content-Type"),
                                            .accept = header(exchange, "Accept"),
                                            .audit_id = header(exchange, "Audit-ID"),
                                            .user_agent = header(exchange, "User-Agent"),
                                            .user = user_of(exchange),
                                            .body =
                                                exchange->upload.length ? buf_text(&exchange->upload) : NULL,
                                            .body_length = exchange->upload.length,
                                            .no_faults = again};
    static const struct kubesim_watch_callbacks callbacks = {.on_line = on_line, .on_end = on_end};
    if (kubesim_is_watch(&request))
        exchange->watch =
            kubesim_watch_open(exchange->front->sim, &request, &callbacks, exchange, &exchange->response);
    else
        kubesim_handle(exchange->front->sim, &request, &exchange->response);
    exchange->decided = true;
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void on_delay_over(uv_timer_t *timer)
{
    struct exchange *exchange = timer->data;
    exchange->timer = NULL;
    uv_close((uv_handle_t *)timer, free_handle);
    if (exchange->held) {
        exchange->held = false;
        kubesim_response_done(&exchange->response);
        hand_in(exchange, true);
    }
    resume(exchange);
}

static void delay(struct exchange *exchange, int64_t delay_us)
{
    exchange->timer = xcalloc(1, sizeof(*exchange->timer));
    exchange->timer->data = exchange;
    uv_timer_init(exchange->front->loop, exchange->timer);
    uv_timer_start(exchange->timer, on_delay_over, (uint64_t)(delay_us / US_PER_MS), 0);
    suspend(exchange);
}

static enum MHD_Result first_decision(struct exchange *exchange)
{
    if (exchange->too_large) {
        exchange->response = (struct kubesim_response){.status = 413};
        exchange->response.body =
            xstrdup("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                    "\"Failure\",\"message\":\"Request entity too large: limit is 8388608\","
                    "\"reason\":\"RequestEntityTooLarge\",\"code\":413}");
        exchange->response.body_length = strlen(exchange->response.body);
        exchange->decided = true;
        return queue_answer(exchange);
    }
    hand_in(exchange, false);
    exchange->held = exchange->response.disposition == KUBESIM_HELD;
    if (exchange->response.delay_us > 0 || exchange->held) {
        delay(exchange, exchange->response.delay_us);
        return MHD_YES;
    }
    return queue_answer(exchange);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **slot)
{
    (void)context;
    (void)url;
    (void)version;
    struct exchange *exchange = *slot;
    if (!exchange)
        return MHD_NO;
    if (!exchange->connection) {
        exchange->connection = connection;
        exchange->method = xstrdup(method);
        return MHD_YES;
    }
    if (*upload_size > 0) {
        if (buf_add(&exchange->upload, upload, *upload_size) < 0)
            exchange->too_large = true;
        *upload_size = 0;
        return MHD_YES;
    }
    return exchange->decided ? queue_answer(exchange) : first_decision(exchange);
}

/* The path as it came, with its query: libmicrohttpd would decode it. */
static void *on_uri(void *context, const char *uri, struct MHD_Connection *connection)
{
    (void)connection;
    struct exchange *exchange = xcalloc(1, sizeof(*exchange));
    exchange->front = context;
    exchange->path = xstrdup(uri);
    exchange->upload = BUF_INIT(UPLOAD_MAX);
    exchange->lines = BUF_INIT(STREAM_BUFFER_MAX);
    DL_APPEND2(exchange->front->exchanges, exchange, previous, next);
    return exchange;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)connection;
    (void)code;
    struct exchange *exchange = *slot;
    if (!exchange)
        return;
    DL_DELETE2(exchange->front->exchanges, exchange, previous, next);
    kubesim_watch_close(exchange->watch);
    if (exchange->timer)
        uv_close((uv_handle_t *)exchange->timer, free_handle);
    kubesim_response_done(&exchange->response);
    buf_done(&exchange->upload);
    buf_done(&exchange->lines);
    free(exchange->path);
    free(exchange->method);
    free(exchange);
    *slot = NULL;
}

/* --- the loop
 * ------------------------------------------------------------------------------------------------------ */

static void on_wakeup(uv_timer_t *timer)
{
    http_front_pump(timer->data);
}

static void on_tick(uv_timer_t *timer)
{
    struct http_front *front = timer->data;
    kubesim_tick(front->sim);
    http_front_pump(front);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    http_front_pump(poll->data);
}

static void set_tick(struct http_front *front)
{
    int64_t next_us = kubesim_next_tick_us(front->sim);
    uv_timer_stop(&front->tick);
    if (next_us == INT64_MAX)
        return;
    int64_t now_us = kubesim_now_us(front->sim);
    uint64_t wait_ms = next_us <= now_us ? 0 : (uint64_t)((next_us - now_us + US_PER_MS - 1) / US_PER_MS);
    uv_timer_start(&front->tick, on_tick, wait_ms, 0);
}

void http_front_pump(struct http_front *front)
{
    if (front->pumping || !front->daemon)
        return;
    front->pumping = true;
    enum { ROUNDS_MAX = 1000 };
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    bool waits = false;
    for (int i = 0; i < ROUNDS_MAX; i++) {
        /* One that was resumed from within a handler is not told of by MHD_get_timeout(): it waits for the
         * next run. */
        front->resumed = false;
        MHD_run(front->daemon);
        waits = MHD_get_timeout(front->daemon, &wait_ms) == MHD_YES;
        if (!front->resumed && (!waits || wait_ms > 0))
            break;
    }
    front->pumping = false;
    uv_timer_stop(&front->wakeup);
    if (waits)
        uv_timer_start(&front->wakeup, on_wakeup, wait_ms, 0);
    set_tick(front);
}

/* --- start and stop
 * ------------------------------------------------------------------------------------------------ */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static int parse_address(const char *text, union address *ret, struct error **err)
{
    const char *colon = strrchr(text, ':');
    char *end;
    long port = colon ? strtol(colon + 1, &end, 10) : -1;
    if (!colon || *end || end == colon + 1 || port < 0 || port > 65535)
        return error_set(err, ERROR_USAGE, "--listen %s: give ADDRESS:PORT", text);
    CLEANUP_FREE char *host = xstrndup(text, (size_t)(colon - text));
    *ret = (union address){.v6 = {0}};
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons((uint16_t)port);
        return 0;
    }
    size_t length = strlen(host);
    if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        if (inet_pton(AF_INET6, host + 1, &ret->v6.sin6_addr) == 1) {
            ret->v6.sin6_family = AF_INET6;
            ret->v6.sin6_port = htons((uint16_t)port);
            return 0;
        }
    }
    return error_set(err, ERROR_USAGE, "--listen %s: '%s' is no address", text, host);
}

static char *bound_address(int fd)
{
    union address address = {.v6 = {0}};
    socklen_t length = sizeof(address);
    char host[INET6_ADDRSTRLEN] = "";
    ENSURE(getsockname(fd, &address.any, &length) == 0);
    if (address.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof(host));
        return xasprintf("[%s]:%u", host, ntohs(address.v6.sin6_port));
    }
    inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof(host));
    return xasprintf("%s:%u", host, ntohs(address.v4.sin_port));
}

static int bind_socket(const char *address, int *ret_fd, struct error **err)
{
    union address bound = {.v6 = {0}};
    int result = parse_address(address, &bound, err);
    if (result < 0)
        return result;
    int fd = socket(bound.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set_errno(err, errno, "socket");
    int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    socklen_t length = bound.any.sa_family == AF_INET6 ? sizeof(bound.v6) : sizeof(bound.v4);
    if (bind(fd, &bound.any, length) < 0 || listen(fd, 512) < 0) {
        result = error_set_errno(err, errno, "cannot listen on %s", address);
        close(fd);
        return result;
    }
    *ret_fd = fd;
    return 0;
}

static void init_handle(struct http_front *front, uv_timer_t *timer)
{
    uv_timer_init(front->loop, timer);
    timer->data = front;
    front->handles++;
}

int http_front_start(uv_loop_t *loop, struct kubesim *sim, const char *address, struct http_front **ret,
                     struct error **err)
{
    int fd = -1;
    int result = bind_socket(address, &fd, err);
    if (result < 0)
        return result;
    struct http_front *front = xcalloc(1, sizeof(*front));
    front->loop = loop;
    front->sim = sim;
    front->address = bound_address(fd);
    front->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, NULL, NULL, on_request,
                         front, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK, on_uri, front,
                         MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_MAX_S,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(128 * 1024), MHD_OPTION_END);
    if (!front->daemon) {
        close(fd);
        free(front->address);
        free(front);
        return error_set(err, ERROR_FAILED, "libmicrohttpd does not start on %s", address);
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(front->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    uv_poll_init(loop, &front->poll, info->epoll_fd);
    front->poll.data = front;
    front->handles++;
    init_handle(front, &front->tick);
    init_handle(front, &front->wakeup);
    uv_poll_start(&front->poll, UV_READABLE, on_readable);
    http_front_pump(front);
    *ret = front;
    return 0;
}

const char *http_front_address(const struct http_front *front)
{
    return front->address;
}

static void on_closed(uv_handle_t *handle)
{
    struct http_front *front = handle->data;
    if (--front->handles > 0)
        return;
    free(front->address);
    free(front);
}

void http_front_stop(struct http_front *front)
{
    uv_poll_stop(&front->poll);
    /* libmicrohttpd does not stop while a connection is suspended; those that wait are let go with an error.
     */
    front->stopping = true;
    struct exchange *exchange;
    DL_FOREACH2(front->exchanges, exchange, next)
    {
        exchange->ended = exchange->cut = true;
        if (exchange->suspended)
            MHD_resume_connection(exchange->connection);
        exchange->suspended = false;
    }
    MHD_run(front->daemon);
    MHD_stop_daemon(STEAL(front->daemon));
    uv_close((uv_handle_t *)&front->poll, on_closed);
    uv_close((uv_handle_t *)&front->tick, on_closed);
    uv_close((uv_handle_t *)&front->wakeup, on_closed);
}
