/* SPDX-License-Identifier: Apache-2.0
 *
 * The listener for metrics and probes: libmicrohttpd driven by our loop through its epoll descriptor. One
 * request a connection. A request's head has one second, all of it five; when more than 32 are connected, the
 * oldest without a whole head goes: a probe is answered whoever else holds connections open. */
#include "env/address.h"
#include "env/real.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum {
    CONNECTIONS_MAX = 32,
    /* Places for those that come while those that must go are being closed. */
    CONNECTIONS_SPARE = 8,
    AGE_MAX_S = 5,
    CONNECTION_MEMORY = 16384,
    BODY_MAX = 16 << 20,
};
static const int64_t head_max_us = 1000000;
static const int64_t age_max_us = AGE_MAX_S * 1000000LL;

struct connection {
    int fd;
    int64_t since_us;
    bool has_head; /* the request's line and headers are in */
    bool ended;    /* by us; libmicrohttpd will say so */
    struct connection *prev;
    struct connection *next;
};

struct real_listener {
    struct real *real;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    struct env_timer *tick;         /* when the next one's time is over; runs while there are connections */
    struct connection *connections; /* oldest first */
    bool closed;                    /* a connection, in this run of the daemon */
    env_listen_handler *handler;
    void *context;
    struct real_listener *prev;
    struct real_listener *next;
};

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status, const char *type,
                                   const char *bytes, size_t length)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, (void *)bytes, MHD_RESPMEM_MUST_COPY);
    ENSURE(response);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    /* No keep-alive: a connection is one request, so that its age bounds it. */
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request)
{
    (void)version;
    (void)upload;
    static const char plain[] = "text/plain; charset=utf-8";
    struct real_listener *listener = context;
    if (*request == NULL) { /* first call: headers only */
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        ((struct connection *)info->socket_context)->has_head = true;
        *request = listener;
        return MHD_YES;
    }
    *upload_size = 0;
    bool head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    if (!head && strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, plain, "only GET\n",
                           strlen("only GET\n"));
    CLEANUP_BUF struct buf body = BUF_INIT(BODY_MAX);
    const char *type = plain;
    int status = listener->handler(listener->context, url, &body, &type);
    ENSURE(status >= 200 && status <= 599);
    return answer_text(connection, (unsigned)status, type, buf_text(&body), body.length);
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **slot,
                          enum MHD_ConnectionNotificationCode code)
{
    struct real_listener *listener = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct connection *connection = xcalloc(1, sizeof(*connection));
        *connection = (struct connection){.fd = info->connect_fd, .since_us = real_boot_us()};
        DL_APPEND(listener->connections, connection);
        *slot = connection;
    } else if (*slot) {
        struct connection *connection = *slot;
        DL_DELETE(listener->connections, connection);
        free(connection);
        listener->closed = true;
    }
}

static void on_tick(void *context);

static int64_t due_us(const struct connection *connection)
{
    return connection->since_us + (connection->has_head ? age_max_us : head_max_us);
}

/* Ends those whose time is over (libmicrohttpd itself only ends what is silent), and of those that are too
 * many the oldest without a head. When to look again, on the boot clock. */
static int64_t end_some(struct real_listener *listener)
{
    size_t count = 0;
    struct connection *connection;
    DL_FOREACH (listener->connections, connection)
        count += !connection->ended;
    int64_t now_us = real_boot_us();
    int64_t next_us = now_us + age_max_us;
    DL_FOREACH (listener->connections, connection) {
        if (connection->ended)
            continue;
        bool is_too_many = count > CONNECTIONS_MAX && !connection->has_head;
        if (!is_too_many && due_us(connection) > now_us) {
            next_us = MIN(next_us, due_us(connection));
            continue;
        }
        connection->ended = true;
        shutdown(connection->fd, SHUT_RDWR);
        listener->closed = true;
        count--;
    }
    return next_us;
}

static void serve(struct real_listener *listener)
{
    listener->closed = false;
    MHD_run(listener->daemon);
    int64_t next_us = end_some(listener);
    env_timer_cancel(&listener->real->env, &listener->tick);
    if (!listener->connections && !listener->closed)
        return;
    /* Zero when libmicrohttpd has work left that its epoll descriptor does not tell of; and when a connection
     * goes: one that came while all places were taken is accepted by the next run only. */
    MHD_UNSIGNED_LONG_LONG wait_ms;
    int64_t wait_us = listener->closed ? 0 : MAX(next_us - real_boot_us(), 0);
    if (MHD_get_timeout(listener->daemon, &wait_ms) == MHD_YES && wait_ms < (unsigned)(wait_us / 1000))
        wait_us = (int64_t)wait_ms * 1000;
    listener->tick = env_timer_start(&listener->real->env, wait_us, on_tick, listener);
}

static void on_tick(void *context)
{
    struct real_listener *listener = context;
    listener->tick = NULL;
    serve(listener);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    serve(poll->data);
}

static struct MHD_Daemon *start_daemon(struct real_listener *listener, const struct sockaddr *address)
{
    return MHD_start_daemon(MHD_USE_EPOLL | (address->sa_family == AF_INET6 ? MHD_USE_IPv6 : 0), 0, NULL,
                            NULL, on_request, listener, MHD_OPTION_SOCK_ADDR, address,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)(CONNECTIONS_MAX + CONNECTIONS_SPARE),
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)AGE_MAX_S,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, listener, MHD_OPTION_END);
}

int real_listen(struct env *env, const char *address, env_listen_handler *handler, void *context,
                struct error **err)
{
    PRE(address && handler);
    struct sockaddr_storage parsed;
    if (!env_address_parse(address, &parsed))
        return error_set(err, ERROR_INVALID, "'%.100s' is not an address to listen on, like 127.0.0.1:8080",
                         address);
    struct real *real = real_of(env);
    struct real_listener *listener = xcalloc(1, sizeof(*listener));
    *listener = (struct real_listener){.real = real, .handler = handler, .context = context};
    errno = 0;
    listener->daemon = start_daemon(listener, (struct sockaddr *)&parsed);
    if (!listener->daemon) {
        int saved = errno;
        free(listener);
        return error_set_errno(err, saved ? saved : EADDRINUSE, "cannot listen on %s", address);
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    ENSURE(uv_poll_init(&real->loop, &listener->poll, info->epoll_fd) == 0);
    listener->poll.data = listener;
    ENSURE(uv_poll_start(&listener->poll, UV_READABLE, on_readable) == 0);
    DL_APPEND(real->listeners, listener);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void real_listeners_free(struct real *real)
{
    while (real->listeners) {
        struct real_listener *listener = real->listeners;
        DL_DELETE(real->listeners, listener);
        env_timer_cancel(&real->env, &listener->tick);
        uv_poll_stop(&listener->poll);
        MHD_stop_daemon(listener->daemon);
        uv_close((uv_handle_t *)&listener->poll, on_closed);
    }
}
