/* SPDX-License-Identifier: Apache-2.0
 *
 * The real listener, asked by plain sockets: what it serves, and what it does not put up with. */
#include "env/env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS_MAX = 64 };

struct scene {
    struct env *env;
    char *address;
    int port;
    size_t asked;
    char path[64];
};

static int answer(void *context, const char *path, struct buf *body, const char **ret_content_type)
{
    struct scene *scene = context;
    scene->asked++;
    snprintf(scene->path, sizeof(scene->path), "%s", path);
    if (strcmp(path, "/metrics") != 0)
        return 404;
    *ret_content_type = "text/plain; version=0.0.4";
    ENSURE(buf_add_text(body, "neoset_up 1\n") == 0);
    return 200;
}

static int free_port(void)
{
    CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    ENSURE(bind(fd, (struct sockaddr *)&address, length) == 0);
    ENSURE(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    return ntohs(address.sin_port);
}

static void begin(struct scene *scene)
{
    *scene = (struct scene){.env = env_real_make()};
    int result = -1;
    for (int i = 0; i < 20 && result < 0; i++) { /* another program may be faster */
        scene->port = free_port();
        CLEANUP_FREE char *address = xasprintf("127.0.0.1:%d", scene->port);
        str_replace(&scene->address, address);
        result = env_listen(scene->env, address, answer, scene, NULL);
    }
    assert_int_equal(result, 0);
}

static void end(struct scene *scene)
{
    env_free(scene->env);
    free(scene->address);
}

/* A client in a thread: sends text, reads until the server closes. */
struct client {
    struct scene *scene;
    const char *text;
    struct buf answer;
    bool ended; /* by the server, before everything was sent */
    pthread_t thread;
};

static int connect_to(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ENSURE(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

static void *run_client(void *argument)
{
    struct client *client = argument;
    CLEANUP_CLOSE int fd = connect_to(client->scene->port);
    (void)!send(fd, client->text, strlen(client->text), MSG_NOSIGNAL);
    char block[4096];
    ssize_t got;
    while ((got = recv(fd, block, sizeof(block), 0)) > 0)
        ENSURE(buf_add(&client->answer, block, (size_t)got) == 0);
    return NULL;
}

static void join_clients(void *context)
{
    struct client *client = context;
    pthread_join(client->thread, NULL);
}

static void stop_loop(void *context)
{
    env_stop(context);
}

static void noop(void *context)
{
    (void)context;
}

/* The worker waits for the client, the loop serves meanwhile. */
static void run_and_wait(struct scene *scene, struct client *client, void *(*run)(void *))
{
    client->scene = scene;
    ENSURE(pthread_create(&client->thread, NULL, run, client) == 0);
    env_work(scene->env, join_clients, NULL, client);
    env_work(scene->env, noop, stop_loop, scene->env);
    env_run(scene->env);
}

static void ask_and_wait(struct scene *scene, struct client *client, const char *text)
{
    *client = (struct client){.text = text, .answer = BUF_INIT(1 << 20)};
    run_and_wait(scene, client, run_client);
}

static void a_get_is_answered_and_the_connection_closed(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    struct client client;
    ask_and_wait(&scene, &client, "GET /metrics?x=1 HTTP/1.1\r\nHost: h\r\n\r\n");
    const char *text = buf_text(&client.answer);
    assert_true(str_starts_with(text, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(text, "Content-Type: text/plain; version=0.0.4\r\n"));
    assert_non_null(strcasestr(text, "Connection: close\r\n"));
    assert_true(str_ends_with(text, "\r\n\r\nneoset_up 1\n"));
    assert_string_equal(scene.path, "/metrics");
    buf_done(&client.answer);
    ask_and_wait(&scene, &client, "GET /else HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_true(str_starts_with(buf_text(&client.answer), "HTTP/1.1 404 "));
    buf_done(&client.answer);
    end(&scene);
}

static void other_methods_and_garbage_are_refused(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    static const char *const texts[] = {"POST /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi",
                                        "DELETE /metrics HTTP/1.1\r\nHost: h\r\n\r\n", "gibberish\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct client client;
        ask_and_wait(&scene, &client, texts[i]);
        assert_null(strstr(buf_text(&client.answer), " 200 "));
        buf_done(&client.answer);
    }
    assert_int_equal(scene.asked, 0);
    end(&scene);
}

/* Neither bytes nor the end have come. */
static bool is_silent(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

/* A kubelet's probe waits for one second: it must not have to wait until the others' time is over. */
static void those_who_only_connect_do_not_shut_others_out(void **state)
{
    (void)state;
    static const char *const sent[] = {"", "GET /metr"};
    for (size_t round = 0; round < ARRAY_SIZE(sent); round++) {
        struct scene scene;
        begin(&scene);
        int silent[CLIENTS_MAX];
        for (size_t i = 0; i < ARRAY_SIZE(silent); i++) {
            silent[i] = connect_to(scene.port);
            (void)!send(silent[i], sent[round], strlen(sent[round]), MSG_NOSIGNAL);
        }
        struct client client;
        ask_and_wait(&scene, &client, "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_true(str_starts_with(buf_text(&client.answer), "HTTP/1.1 200 OK\r\n"));
        buf_done(&client.answer);
        /* The oldest made room; the newest still have their time. */
        assert_false(is_silent(silent[0]));
        assert_true(is_silent(silent[CLIENTS_MAX - 1]));
        for (size_t i = 0; i < ARRAY_SIZE(silent); i++)
            close(silent[i]);
        end(&scene);
    }
}

/* One byte of a head every now and then: it is the whole head that has a deadline. */
static void *drip(void *argument)
{
    struct client *client = argument;
    CLEANUP_CLOSE int fd = connect_to(client->scene->port);
    static const char text[] = "GET /metrics HTTP/1.1\r\nHost: h\r\nX-Slow: aaaaaaaaaaaaaaaa\r\n\r\n";
    struct pollfd closed = {.fd = fd, .events = POLLIN};
    for (size_t i = 0; i < strlen(text) && !client->ended; i++) {
        (void)!send(fd, text + i, 1, MSG_NOSIGNAL);
        client->ended = poll(&closed, 1, 100) > 0;
    }
    return NULL;
}

static void a_head_that_does_not_end_is_not_waited_for(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    struct client client = {0};
    run_and_wait(&scene, &client, drip);
    assert_true(client.ended);
    assert_int_equal(scene.asked, 0);
    end(&scene);
}

static void an_address_that_cannot_be_used_says_so(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    CLEANUP_ERROR struct error *taken = NULL;
    assert_true(env_listen(scene.env, scene.address, answer, &scene, &taken) < 0);
    assert_non_null(strstr(taken->text, scene.address));
    static const char *const bad[] = {
        "",        "8080",     "host.name:80", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999", "127.0.0.1:-1",
        "[::1:80", "1.2.3:80", "127.0.0.1:80x"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(env_listen(scene.env, bad[i], answer, &scene, &err), -ERROR_INVALID);
        assert_non_null(strstr(err->text, "127.0.0.1:8080"));
    }
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_get_is_answered_and_the_connection_closed),
        cmocka_unit_test(other_methods_and_garbage_are_refused),
        cmocka_unit_test(those_who_only_connect_do_not_shut_others_out),
        cmocka_unit_test(a_head_that_does_not_end_is_not_waited_for),
        cmocka_unit_test(an_address_that_cannot_be_used_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
