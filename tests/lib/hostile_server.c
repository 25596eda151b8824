/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    REQUESTS_MAX = 4096,
    REQUEST_SIZE_MAX = 4 << 20,
};

struct hostile_connection {
    struct hostile_server *server;
    size_t number;
    int fd;
    SSL *tls; /* NULL: plain */
    bool reset;
    struct buf input;   /* read, not yet consumed */
    struct buf request; /* the last one */
    pthread_t thread;
    struct hostile_connection *next;
};

struct hostile_server {
    struct hostile_options options;
    int fd;
    int port;
    int stop_fd; /* readable once the server is being stopped */
    SSL_CTX *tls;
    pthread_t thread;
    pthread_mutex_t mutex;
    /* Guarded by mutex: */
    struct hostile_connection *connections;
    size_t connection_count;
    char *requests[REQUESTS_MAX];
    size_t request_count;
};

/* --- bytes --- */

/* Waits for the socket; false when the server is being stopped. */
static bool wait_for(const struct hostile_connection *connection, short events, int timeout_ms)
{
    struct pollfd fds[2] = {{.fd = connection->fd, .events = events},
                            {.fd = connection->server->stop_fd, .events = POLLIN}};
    int result;
    do
        result = poll(fds, 2, timeout_ms);
    while (result < 0 && errno == EINTR);
    return !(fds[1].revents & POLLIN);
}

/* Some bytes; 0 or less when the peer is gone or the server is being stopped. */
static ssize_t receive(struct hostile_connection *connection, void *bytes, size_t length)
{
    if (connection->tls) {
        if (SSL_pending(connection->tls) == 0 && !wait_for(connection, POLLIN, -1))
            return -1;
        return SSL_read(connection->tls, bytes, (int)length);
    }
    if (!wait_for(connection, POLLIN, -1))
        return -1;
    return recv(connection->fd, bytes, length, 0);
}

bool hostile_send(struct hostile_connection *connection, const char *bytes, size_t length)
{
    while (length > 0) {
        if (!wait_for(connection, POLLOUT, -1))
            return false;
        ssize_t sent = connection->tls ? SSL_write(connection->tls, bytes, (int)MIN(length, 1 << 20))
                                       : send(connection->fd, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

bool hostile_send_text(struct hostile_connection *connection, const char *text)
{
    return hostile_send(connection, text, strlen(text));
}

bool hostile_pause(struct hostile_connection *connection, int pause_ms)
{
    struct pollfd stop = {.fd = connection->server->stop_fd, .events = POLLIN};
    return poll(&stop, 1, pause_ms) == 0;
}

bool hostile_send_slowly(struct hostile_connection *connection, const char *text, int pause_ms)
{
    for (; *text; text++)
        if (!hostile_send(connection, text, 1) || !hostile_pause(connection, pause_ms))
            return false;
    return true;
}

void hostile_send_forever(struct hostile_connection *connection, const char *text)
{
    while (hostile_send_text(connection, text))
        ;
}

void hostile_wait_for_close(struct hostile_connection *connection)
{
    char waste[4096];
    while (receive(connection, waste, sizeof(waste)) > 0)
        ;
}

void hostile_reset(struct hostile_connection *connection)
{
    connection->reset = true;
}

static bool fill(struct hostile_connection *connection)
{
    char block[16384];
    ssize_t got = receive(connection, block, sizeof(block));
    return got > 0 && buf_add(&connection->input, block, (size_t)got) == 0;
}

bool hostile_read(struct hostile_connection *connection, void *bytes, size_t length)
{
    while (connection->input.length < length)
        if (!fill(connection))
            return false;
    memcpy(bytes, buf_text(&connection->input), length);
    buf_drop_front(&connection->input, length);
    return true;
}

/* --- HTTP/1.1 --- */

static size_t content_length(const char *head)
{
    const char *header = strcasestr(head, "\r\nContent-Length:");
    return header ? (size_t)strtoul(header + strlen("\r\nContent-Length:"), NULL, 10) : 0;
}

void hostile_keep_request(struct hostile_connection *connection, const char *text)
{
    struct hostile_server *server = connection->server;
    pthread_mutex_lock(&server->mutex);
    ENSURE(server->request_count < REQUESTS_MAX);
    server->requests[server->request_count++] = xstrdup(text);
    pthread_mutex_unlock(&server->mutex);
}

bool hostile_read_request(struct hostile_connection *connection)
{
    const char *end;
    while (!(end = strstr(buf_text(&connection->input), "\r\n\r\n")))
        if (!fill(connection))
            return false;
    size_t head = (size_t)(end - buf_text(&connection->input)) + 4;
    size_t whole = head + content_length(buf_text(&connection->input));
    while (connection->input.length < whole)
        if (!fill(connection))
            return false;
    buf_clear(&connection->request);
    ENSURE(buf_add(&connection->request, buf_text(&connection->input), whole) == 0);
    buf_drop_front(&connection->input, whole);
    hostile_keep_request(connection, buf_text(&connection->request));
    return true;
}

const char *hostile_last_request(const struct hostile_connection *connection)
{
    return buf_text(&connection->request);
}

bool hostile_answer(struct hostile_connection *connection, int status, const char *body)
{
    CLEANUP_FREE char *text = xasprintf("HTTP/1.1 %d Whatever\r\nContent-Type: application/json\r\n"
                                        "Content-Length: %zu\r\n\r\n%s",
                                        status, strlen(body), body);
    return hostile_send_text(connection, text);
}

size_t hostile_number(const struct hostile_connection *connection)
{
    return connection->number;
}

/* --- connections --- */

static void close_connection(struct hostile_connection *connection)
{
    if (connection->reset) {
        struct linger linger = {.l_onoff = 1, .l_linger = 0};
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    }
    if (connection->tls) {
        if (!connection->reset)
            SSL_shutdown(connection->tls);
        SSL_free(connection->tls);
    }
    close(connection->fd);
    buf_done(&connection->input);
    buf_done(&connection->request);
}

static void *run_connection(void *argument)
{
    struct hostile_connection *connection = argument;
    struct hostile_server *server = connection->server;
    bool good = true;
    if (server->tls) {
        connection->tls = SSL_new(server->tls);
        ENSURE(connection->tls && SSL_set_fd(connection->tls, connection->fd) == 1);
        good = wait_for(connection, POLLIN, -1) && SSL_accept(connection->tls) == 1;
    }
    if (good)
        server->options.serve(connection, server->options.context);
    ERR_clear_error();
    close_connection(connection);
    return NULL;
}

static void start_connection(struct hostile_server *server, int fd)
{
    struct hostile_connection *connection = xcalloc(1, sizeof(*connection));
    connection->server = server;
    connection->fd = fd;
    connection->input = BUF_INIT(REQUEST_SIZE_MAX);
    connection->request = BUF_INIT(REQUEST_SIZE_MAX);
    /* A handshake or a read never outlives a forgotten peer. */
    struct timeval limit = {.tv_sec = 30};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    pthread_mutex_lock(&server->mutex);
    connection->number = server->connection_count++;
    connection->next = server->connections;
    server->connections = connection;
    pthread_mutex_unlock(&server->mutex);
    ENSURE(pthread_create(&connection->thread, NULL, run_connection, connection) == 0);
}

static void *run_server(void *argument)
{
    struct hostile_server *server = argument;
    for (;;) {
        struct pollfd fds[2] = {{.fd = server->fd, .events = POLLIN},
                                {.fd = server->stop_fd, .events = POLLIN}};
        poll(fds, 2, -1);
        if (fds[1].revents)
            return NULL;
        int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            start_connection(server, fd);
    }
}

/* --- TLS
 * ---------------------------------------------------------------------------------------------------------
 */

static int choose_protocol(SSL *tls, const unsigned char **ret, unsigned char *ret_length,
                           const unsigned char *offered, unsigned int offered_length, void *context)
{
    (void)tls;
    const struct hostile_server *server = context;
    static const unsigned char two[] = "\x02h2";
    static const unsigned char one[] = "\x08http/1.1";
    const unsigned char *wanted = server->options.http2 ? two : one;
    unsigned int length = (unsigned int)strlen((const char *)wanted);
    int result =
        SSL_select_next_proto((unsigned char **)ret, ret_length, wanted, length, offered, offered_length);
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static X509 *certificate_of(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    ENSURE(certificate);
    return certificate;
}

static SSL_CTX *make_tls(struct hostile_server *server)
{
    const struct hostile_options *options = &server->options;
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    ENSURE(tls);
    X509 *certificate = certificate_of(options->identity->certificate_pem);
    BIO *bio = BIO_new_mem_buf(options->identity->key_pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    ENSURE(SSL_CTX_use_certificate(tls, certificate) == 1 && SSL_CTX_use_PrivateKey(tls, key) == 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    SSL_CTX_set_alpn_select_cb(tls, choose_protocol, server);
    if (options->client_ca_pem) {
        X509 *authority = certificate_of(options->client_ca_pem);
        ENSURE(X509_STORE_add_cert(SSL_CTX_get_cert_store(tls), authority) == 1);
        X509_free(authority);
        SSL_CTX_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return tls;
}

/* --- the server --- */

struct hostile_server *hostile_start(const struct hostile_options *options)
{
    PRE(options && options->serve);
    signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
    struct hostile_server *server = xcalloc(1, sizeof(*server));
    server->options = *options;
    server->stop_fd = eventfd(0, EFD_CLOEXEC);
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ENSURE(server->stop_fd >= 0 && server->fd >= 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    ENSURE(bind(server->fd, (struct sockaddr *)&address, length) == 0 && listen(server->fd, 256) == 0);
    ENSURE(getsockname(server->fd, (struct sockaddr *)&address, &length) == 0);
    server->port = ntohs(address.sin_port);
    if (options->identity)
        server->tls = make_tls(server);
    ENSURE(pthread_mutex_init(&server->mutex, NULL) == 0);
    ENSURE(pthread_create(&server->thread, NULL, run_server, server) == 0);
    return server;
}

void hostile_stop(struct hostile_server *server)
{
    if (!server)
        return;
    uint64_t one = 1;
    ENSURE(write(server->stop_fd, &one, sizeof(one)) == sizeof(one));
    pthread_join(server->thread, NULL);
    while (server->connections) {
        struct hostile_connection *connection = server->connections;
        server->connections = connection->next;
        pthread_join(connection->thread, NULL);
        free(connection);
    }
    for (size_t i = 0; i < server->request_count; i++)
        free(server->requests[i]);
    SSL_CTX_free(server->tls);
    close(server->fd);
    close(server->stop_fd);
    pthread_mutex_destroy(&server->mutex);
    free(server);
}

int hostile_port(const struct hostile_server *server)
{
    return server->port;
}

char *hostile_url(const struct hostile_server *server)
{
    return xasprintf("%s://127.0.0.1:%d", server->tls ? "https" : "http", server->port);
}

size_t hostile_connection_count(struct hostile_server *server)
{
    pthread_mutex_lock(&server->mutex);
    size_t count = server->connection_count;
    pthread_mutex_unlock(&server->mutex);
    return count;
}

size_t hostile_request_count(struct hostile_server *server)
{
    pthread_mutex_lock(&server->mutex);
    size_t count = server->request_count;
    pthread_mutex_unlock(&server->mutex);
    return count;
}

char *hostile_request(struct hostile_server *server, size_t index)
{
    pthread_mutex_lock(&server->mutex);
    char *text = index < server->request_count ? xstrdup(server->requests[index]) : NULL;
    pthread_mutex_unlock(&server->mutex);
    return text;
}
