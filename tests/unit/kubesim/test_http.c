/* SPDX-License-Identifier: Apache-2.0
 *
 * kubesim behind HTTP, over loopback: the loop runs here, a client with plain blocking sockets in a thread.
 */
#include "world.h"

#include "kubesim/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct scene {
    uv_loop_t loop;
    uv_async_t over; /* the client is done */
    struct kubesim *sim;
    struct http_front *front;
    pthread_t client;
    void (*play)(struct scene *scene);
    int port;
    /* What the client got: */
    struct buf answer;
    struct buf second;
    bool bad; /* something went wrong in the client, where nothing may be asserted */
};

static int64_t real_now_us(void *context)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

static void plain_random(void *context, void *bytes, size_t length)
{
    static uint8_t next;
    (void)context;
    for (size_t i = 0; i < length; i++)
        ((uint8_t *)bytes)[i] = next += 37;
}

/* --- the client
 * ------------------------------------------------------------------------------------------------------ */

static int dial(const struct scene *scene)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ENSURE(fd >= 0);
    const struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)scene->port)};
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    ENSURE(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

static void send_text(int fd, const char *text)
{
    size_t length = strlen(text);
    while (length > 0) {
        ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        text += sent;
        length -= (size_t)sent;
    }
}

/* Reads until the end, or until words are there (NULL: the end). False when the words never came. */
static bool read_until(int fd, struct buf *answer, const char *words)
{
    char block[4096];
    if (words && strstr(buf_text(answer), words))
        return true;
    for (ssize_t got; (got = recv(fd, block, sizeof(block), 0)) > 0;) {
        buf_add(answer, block, (size_t)got);
        if (words && strstr(buf_text(answer), words))
            return true;
    }
    return !words;
}

/* One request on a connection of its own. */
static void request(const struct scene *scene, struct buf *answer, const char *method, const char *path,
                    const char *headers, const char *body)
{
    int fd = dial(scene);
    CLEANUP_FREE char *text =
        xasprintf("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n%s\r\n%s", method,
                  path, body ? strlen(body) : 0, headers, body ? body : "");
    send_text(fd, text);
    read_until(fd, answer, NULL);
    close(fd);
}

static void *run_client(void *context)
{
    struct scene *scene = context;
    scene->play(scene);
    uv_async_send(&scene->over);
    return NULL;
}

/* --- the stage
 * ---------------------------------------------------------------------------------------------------------
 */

static void on_over(uv_async_t *handle)
{
    struct scene *scene = handle->data;
    uv_close((uv_handle_t *)&scene->over, NULL);
    http_front_stop(STEAL(scene->front));
}

/* Plays a client against a fresh server with these faults. Answers are kept in the scene. */
static void perform(struct scene *scene, const char *faults, void (*play)(struct scene *scene))
{
    const struct kubesim_options options = {.now_us = real_now_us, .random = plain_random};
    scene->answer = BUF_INIT(64 * 1024 * 1024);
    scene->second = BUF_INIT(64 * 1024 * 1024);
    scene->sim = kubesim_make(&options);
    scene->play = play;
    assert_int_equal(kubesim_fault_add(scene->sim, faults, NULL), 0);
    assert_int_equal(uv_loop_init(&scene->loop), 0);
    uv_async_init(&scene->loop, &scene->over, on_over);
    scene->over.data = scene;
    assert_int_equal(http_front_start(&scene->loop, scene->sim, "127.0.0.1:0", &scene->front, NULL), 0);
    scene->port = atoi(strrchr(http_front_address(scene->front), ':') + 1);
    pthread_create(&scene->client, NULL, run_client, scene);
    uv_run(&scene->loop, UV_RUN_DEFAULT);
    pthread_join(scene->client, NULL);
    assert_int_equal(uv_loop_close(&scene->loop), 0);
    assert_false(scene->bad);
}

static void scene_done(struct scene *scene)
{
    kubesim_free(scene->sim);
    buf_done(&scene->answer);
    buf_done(&scene->second);
}
#define SCENE __attribute__((cleanup(scene_done))) struct scene

#define CONFIG(name) "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name "\"}}"
#define JSON_TYPE "Content-Type: application/json\r\n"

static void assert_has(const struct buf *answer, const char *words)
{
    if (!strstr(buf_text(answer), words))
        fail_msg("'%s' is not in: %s", words, buf_text(answer));
}

/* --- the plays
 * ---------------------------------------------------------------------------------------------------------
 */

static void play_create(struct scene *scene)
{
    request(scene, &scene->answer, "POST", CONFIGMAPS "?fieldManager=a%2Fb",
            JSON_TYPE "Audit-ID: neo-1-2\r\n",
            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},\"data\":{\"k\":"
            "\"v\"}}");
    request(scene, &scene->second, "GET", CONFIGMAPS "?labelSelector=a%20in%20(b)&limit=500", "", NULL);
}

static void requests_are_answered_with_the_server_s_headers(void **state)
{
    (void)state;
    SCENE scene = {0};
    perform(&scene, "", play_create);
    assert_has(&scene.answer, "HTTP/1.1 201 ");
    assert_has(&scene.answer, "Audit-Id: neo-1-2\r\n");
    assert_has(&scene.answer, "Content-Type: application/json\r\n");
    assert_has(&scene.answer, "\"manager\":\"a/b\"");
    assert_has(&scene.second, "HTTP/1.1 200 ");
    assert_has(&scene.second, "\"items\":[]");
}

static void play_watch(struct scene *scene)
{
    int fd = dial(scene);
    send_text(fd, "GET " CONFIGMAPS "?watch=1&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    scene->bad |= !read_until(fd, &scene->answer, "\r\n\r\n");
    request(scene, &scene->second, "POST", CONFIGMAPS, JSON_TYPE, CONFIG("c"));
    scene->bad |= !read_until(fd, &scene->answer, "\"type\":\"ADDED\"");
    scene->bad |= !read_until(fd, &scene->answer, "\r\n0\r\n\r\n");
    close(fd);
}

static void a_watch_is_chunked_and_ends_cleanly(void **state)
{
    (void)state;
    SCENE scene = {0};
    perform(&scene, "", play_watch);
    assert_has(&scene.answer, "Transfer-Encoding: chunked\r\n");
    assert_has(&scene.answer, "\"name\":\"c\"");
}

static void play_cut(struct scene *scene)
{
    int fd = dial(scene);
    send_text(fd, "GET " CONFIGMAPS "?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    read_until(fd, &scene->answer, "\r\n\r\n");
    request(scene, &scene->second, "POST", CONFIGMAPS, JSON_TYPE, CONFIG("c"));
    scene->bad |= !read_until(fd, &scene->answer, NULL);
    close(fd);
}

static void a_cut_watch_has_no_end(void **state)
{
    (void)state;
    SCENE scene = {0};
    perform(&scene, "cut=1", play_cut);
    assert_null(strstr(buf_text(&scene.answer), "\r\n0\r\n\r\n"));
}

static void play_lost(struct scene *scene)
{
    request(scene, &scene->answer, "POST", CONFIGMAPS, JSON_TYPE, CONFIG("c"));
    request(scene, &scene->second, "GET", CONFIGMAPS "/c", "", NULL);
}

static void a_lost_answer_is_a_closed_connection(void **state)
{
    (void)state;
    SCENE scene = {0};
    perform(&scene, "lost", play_lost);
    assert_string_equal(buf_text(&scene.answer), "");
    assert_has(&scene.second, "HTTP/1.1 200 ");
}

static void a_dropped_request_is_a_closed_connection_too(void **state)
{
    (void)state;
    SCENE scene = {0};
    perform(&scene, "drop", play_lost);
    assert_string_equal(buf_text(&scene.answer), "");
    assert_has(&scene.second, "HTTP/1.1 404 ");
}

/* The client gives up at once; the request lands nevertheless. */
static void play_late(struct scene *scene)
{
    int fd = dial(scene);
    CLEANUP_FREE char *text = xasprintf("POST " CONFIGMAPS " HTTP/1.1\r\nHost: x\r\n" JSON_TYPE
                                        "Content-Length: %zu\r\n\r\n" CONFIG("c"),
                                        strlen(CONFIG("c")));
    send_text(fd, text);
    usleep(50 * 1000);
    close(fd);
    request(scene, &scene->answer, "GET", CONFIGMAPS "/c", "", NULL);
    for (int i = 0; i < 100 && !strstr(buf_text(&scene->second), " 200 OK"); i++) {
        buf_clear(&scene->second);
        usleep(50 * 1000);
        request(scene, &scene->second, "GET", CONFIGMAPS "/c", "", NULL);
    }
}

static void a_late_request_lands_after_its_client_is_gone(void **state)
{
    (void)state;
    SCENE scene = {0};
    perform(&scene, "late=300ms", play_late);
    assert_has(&scene.answer, "HTTP/1.1 404 ");
    assert_has(&scene.second, "HTTP/1.1 200 ");
}

static void play_slow(struct scene *scene)
{
    int64_t start_us = real_now_us(NULL);
    request(scene, &scene->answer, "POST", CONFIGMAPS, JSON_TYPE, CONFIG("c"));
    buf_addf(&scene->second, "%lld", (long long)(real_now_us(NULL) - start_us));
}

static void a_slow_answer_comes_later(void **state)
{
    (void)state;
    SCENE scene = {0};
    perform(&scene, "slow=200ms", play_slow);
    assert_has(&scene.answer, "HTTP/1.1 201 ");
    assert_true(atoll(buf_text(&scene.second)) >= 190 * US_PER_MS);
}

static void play_large(struct scene *scene)
{
    size_t length = 9 * 1024 * 1024;
    char *body = xmalloc(length + 1);
    memset(body, ' ', length);
    body[length] = '\0';
    request(scene, &scene->answer, "POST", CONFIGMAPS, JSON_TYPE, body);
    free(body);
    request(scene, &scene->second, "GET", "/readyz", "", NULL);
}

static void a_huge_body_is_413(void **state)
{
    (void)state;
    SCENE scene = {0};
    perform(&scene, "", play_large);
    assert_has(&scene.answer, "HTTP/1.1 413 ");
    assert_has(&scene.second, "HTTP/1.1 200 ");
}

static void play_junk(struct scene *scene)
{
    static const char *const junk[] = {"\r\n\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
                                       "\x16\x03\x01\x02\x00\x01",
                                       "GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_SIZE(junk); i++) {
        int fd = dial(scene);
        send_text(fd, junk[i]);
        usleep(10 * 1000);
        close(fd);
    }
    request(scene, &scene->answer, "GET", "/readyz", "", NULL);
}

static void junk_does_no_harm(void **state)
{
    (void)state;
    SCENE scene = {0};
    perform(&scene, "", play_junk);
    assert_has(&scene.answer, "HTTP/1.1 200 ");
}

static void play_user(struct scene *scene)
{
    static const char path[] = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    static const char body[] = "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}";
    request(scene, &scene->answer, "POST", path, JSON_TYPE "Authorization: Bearer user:anna\r\n", body);
    request(scene, &scene->second, "POST", path, JSON_TYPE "Impersonate-User: bob\r\n", body);
}

static void the_user_is_the_token_s_or_the_impersonated_one(void **state)
{
    (void)state;
    SCENE scene = {0};
    perform(&scene, "", play_user);
    assert_has(&scene.answer, "\"username\":\"anna\"");
    assert_has(&scene.second, "\"username\":\"bob\"");
}

/* Stopped with a watch and a held request open: both connections end, nothing is left behind. */
static void play_open(struct scene *scene)
{
    int watch_fd = dial(scene);
    send_text(watch_fd, "GET " CONFIGMAPS "?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    read_until(watch_fd, &scene->answer, "\r\n\r\n");
    int held_fd = dial(scene);
    send_text(held_fd, "DELETE " CONFIGMAPS "/c HTTP/1.1\r\nHost: x\r\n\r\n");
    request(scene, &scene->second, "GET", "/readyz", "", NULL);
    /* Left open on purpose; the process keeps two descriptors until it ends. */
    (void)held_fd;
}

static void it_stops_while_connections_wait(void **state)
{
    (void)state;
    SCENE scene = {0};
    perform(&scene, "late=1h", play_open);
    assert_has(&scene.second, "HTTP/1.1 200 ");
}

static void bad_addresses_are_named(void **state)
{
    (void)state;
    static const char *const addresses[] = {
        "", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "host.example:80", "[::1:80"};
    uv_loop_t loop;
    uv_loop_init(&loop);
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        CLEANUP_ERROR struct error *err = NULL;
        struct http_front *front = NULL;
        assert_int_equal(http_front_start(&loop, NULL, addresses[i], &front, &err), -ERROR_USAGE);
        assert_non_null(strstr(error_text(err), addresses[i]));
    }
    uv_loop_close(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_answered_with_the_server_s_headers),
        cmocka_unit_test(a_watch_is_chunked_and_ends_cleanly),
        cmocka_unit_test(a_cut_watch_has_no_end),
        cmocka_unit_test(a_lost_answer_is_a_closed_connection),
        cmocka_unit_test(a_dropped_request_is_a_closed_connection_too),
        cmocka_unit_test(a_late_request_lands_after_its_client_is_gone),
        cmocka_unit_test(a_slow_answer_comes_later),
        cmocka_unit_test(a_huge_body_is_413),
        cmocka_unit_test(junk_does_no_harm),
        cmocka_unit_test(the_user_is_the_token_s_or_the_impersonated_one),
        cmocka_unit_test(it_stops_while_connections_wait),
        cmocka_unit_test(bad_addresses_are_named),
    };
    return cmocka_run_group_tests_name("kubesim over http", tests, NULL, NULL);
}
