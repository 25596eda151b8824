/* SPDX-License-Identifier: Apache-2.0
 *
 * The real transport over TLS and HTTP/2: whom it trusts, and what it does when streams or connections
 * misbehave. */
#include "hostile_client.h"
#include "hostile_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <sys/wait.h>
#include <unistd.h>

/* Made once: an authority, a stranger, and what they signed. */
static struct {
    struct hostile_identity authority;
    struct hostile_identity stranger;
    struct hostile_identity good;
    struct hostile_identity other_name;
    struct hostile_identity expired;
    struct hostile_identity future;
    struct hostile_identity foreign;
    struct hostile_identity client;
} made;

static int make_identities(void **state)
{
    (void)state;
    static const char here[] = "IP:127.0.0.1,DNS:localhost";
    hostile_identity_make(&made.authority, "authority", NULL, NULL, -1, 30);
    hostile_identity_make(&made.stranger, "stranger", NULL, NULL, -1, 30);
    hostile_identity_make(&made.good, "server", here, &made.authority, -1, 30);
    hostile_identity_make(&made.other_name, "server", "DNS:kubernetes.default.svc", &made.authority, -1, 30);
    hostile_identity_make(&made.expired, "server", here, &made.authority, -30, -1);
    hostile_identity_make(&made.future, "server", here, &made.authority, 1, 30);
    hostile_identity_make(&made.foreign, "server", here, &made.stranger, -1, 30);
    hostile_identity_make(&made.client, "client", "DNS:client", &made.authority, -1, 30);
    return 0;
}

static int drop_identities(void **state)
{
    (void)state;
    struct hostile_identity *all[] = {&made.authority, &made.stranger, &made.good,    &made.other_name,
                                      &made.expired,   &made.future,   &made.foreign, &made.client};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        hostile_identity_done(all[i]);
    return 0;
}

static void begin(struct hostile_scene *scene, const struct hostile_options *options)
{
    hostile_scene_begin(scene, options);
    str_replace(&scene->target.ca_pem, made.authority.certificate_pem);
}

/* A server that says yes to everything, as this identity. */
static void begin_as(struct hostile_scene *scene, const struct hostile_identity *identity)
{
    begin(scene, &(struct hostile_options){.serve = hostile_serve_ok, .identity = identity});
}

static void serve_h2(struct hostile_connection *connection, void *context)
{
    hostile_serve_h2(connection, context);
}

/* --- trust --- */

/* Asks once; checks that a distrusted server got nothing. */
static void expect_distrust(const struct hostile_identity *identity, const char *ca_pem, enum error_code code,
                            const char *words)
{
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin_as(&scene, identity);
    str_replace(&scene.target.ca_pem, ca_pem);
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.outcome, HTTP_NOT_SENT);
    assert_int_equal(heard.before_send_count, 0);
    assert_int_equal(heard.answer.code, code);
    assert_non_null(strstr(heard.answer.problem, words));
    assert_non_null(strstr(heard.answer.problem, "127.0.0.1:"));
    assert_int_equal(hostile_request_count(scene.server), 0);
}

static void a_server_of_our_authority_is_trusted(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin_as(&scene, &made.good);
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.status, 200);
}

static void anyone_else_is_not(void **state)
{
    (void)state;
    const char *ca = made.authority.certificate_pem;
    expect_distrust(&made.foreign, ca, ERROR_FORBIDDEN, "certificate-authority");
    expect_distrust(&made.stranger, ca, ERROR_FORBIDDEN, "certificate-authority");
    expect_distrust(&made.other_name, ca, ERROR_FORBIDDEN, "tls-server-name");
    expect_distrust(&made.expired, ca, ERROR_FORBIDDEN, "has expired");
    expect_distrust(&made.future, ca, ERROR_FORBIDDEN, "not valid yet");
    /* Without an authority of our own it is the system's. */
    expect_distrust(&made.good, NULL, ERROR_FORBIDDEN, "certificate-authority");
    expect_distrust(&made.good, "no PEM at all", ERROR_INVALID, "certificate-authority");
}

static void trust_is_not_kept_from_another_configuration(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin_as(&scene, &made.good);
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.status, 200);
    /* The connection stands, but it was made under another authority. */
    struct http_server doubter = scene.target;
    doubter.ca_pem = made.stranger.certificate_pem;
    scene.get.server = &doubter;
    CLEANUP_HEARD struct heard second = heard_from(scene.env, &scene.get);
    assert_int_equal(second.answer.code, ERROR_FORBIDDEN);
}

static void another_name_can_be_verified_and_the_host_header_stays(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin_as(&scene, &made.other_name);
    scene.target.server_name = xstrdup("kubernetes.default.svc");
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.status, 200);
    CLEANUP_FREE char *text = hostile_request(scene.server, 0);
    CLEANUP_FREE char *host = xasprintf("\r\nHost: 127.0.0.1:%d\r\n", hostile_port(scene.server));
    assert_non_null(strstr(text, host));
}

static void insecure_trusts_anyone(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin_as(&scene, &made.expired);
    str_replace(&scene.target.ca_pem, NULL);
    scene.target.insecure = true;
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.status, 200);
}

static void a_client_certificate_is_shown(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++) {
        CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
        begin(&scene, &(struct hostile_options){.serve = hostile_serve_ok,
                                                .identity = &made.good,
                                                .client_ca_pem = made.authority.certificate_pem});
        if (with) {
            scene.target.certificate_pem = xstrdup(made.client.certificate_pem);
            scene.target.key_pem = xstrdup(made.client.key_pem);
        }
        CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
        assert_int_equal(heard.answer.status, with ? 200 : 0);
        assert_int_equal(hostile_request_count(scene.server), with);
    }
}

static void a_client_key_that_does_not_fit_is_named(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin_as(&scene, &made.good);
    scene.target.certificate_pem = xstrdup(made.client.certificate_pem);
    scene.target.key_pem = xstrdup(made.stranger.key_pem);
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.outcome, HTTP_NOT_SENT);
    assert_int_equal(heard.answer.code, ERROR_INVALID);
    assert_non_null(strstr(heard.answer.problem, "client certificate or key"));
}

/* made.client's key under a pass phrase; the caller's. */
static char *encrypted_client_key(const char *phrase)
{
    BIO *bio = BIO_new_mem_buf(made.client.key_pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    bio = BIO_new(BIO_s_mem());
    ENSURE(key && PEM_write_bio_PKCS8PrivateKey(bio, key, EVP_aes_256_cbc(), phrase, (int)strlen(phrase),
                                                NULL, NULL) == 1);
    char *bytes;
    long length = BIO_get_mem_data(bio, &bytes);
    char *text = xmemdup0(bytes, (size_t)length);
    BIO_free(bio);
    EVP_PKEY_free(key);
    return text;
}

/* OpenSSL would ask for the pass phrase on the terminal, or on stdin, and the loop would stand still. */
static void nobody_is_asked_for_a_pass_phrase(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(write(ends[1], "secret\n", 7), 7);
    pid_t session = fork(); /* in a session of its own there is no terminal: stdin is what would be read */
    assert_true(session >= 0);
    if (session == 0) {
        setsid();
        dup2(ends[0], STDIN_FILENO);
        CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
        begin_as(&scene, &made.good);
        scene.target.certificate_pem = xstrdup(made.client.certificate_pem);
        scene.target.key_pem = encrypted_client_key("secret");
        CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
        char left[8];
        bool good = heard.answer.outcome == HTTP_NOT_SENT && heard.answer.code == ERROR_INVALID &&
                    strstr(heard.answer.problem, "client certificate or key") &&
                    read(STDIN_FILENO, left, sizeof(left)) == 7;
        _exit(good ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(session, &status, 0), session);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(status, 0);
}

/* What a plain server says to a TLS client. */
static void serve_complaint(struct hostile_connection *connection, void *context)
{
    (void)context;
    char byte;
    if (hostile_read(connection, &byte, 1))
        hostile_answer(connection, 400, "speak HTTP");
}

static void a_server_without_tls_is_named(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene, &(struct hostile_options){.serve = serve_complaint});
    CLEANUP_FREE char *url = xasprintf("https://127.0.0.1:%d", hostile_port(scene.server));
    str_replace(&scene.target.base_url, url);
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.outcome, HTTP_NOT_SENT);
    assert_int_equal(heard.answer.code, ERROR_UNREACHABLE);
    assert_non_null(strstr(heard.answer.problem, "does it serve https there, or is http:// meant?"));
}

/* --- HTTP/2 --- */

static void begin_h2(struct hostile_scene *scene, const struct hostile_h2 *h2)
{
    begin(scene, &(struct hostile_options){
                     .serve = serve_h2, .context = (void *)h2, .identity = &made.good, .http2 = true});
}

static void run_many(struct hostile_scene *scene, struct heard *heard, size_t count)
{
    size_t left = count;
    for (size_t i = 0; i < count; i++) {
        heard_init(&heard[i], scene->env);
        heard[i].left = &left;
        heard_submit(&heard[i], &scene->get);
    }
    heard_wait(scene->env, &left);
}

static void streams_share_one_connection(void **state)
{
    (void)state;
    /* Nothing is answered before all are open at once. */
    struct hostile_h2 h2 = {.answer_first = SIZE_MAX, .hold_until = 20};
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin_h2(&scene, &h2);
    struct heard heard[20];
    run_many(&scene, heard, ARRAY_SIZE(heard));
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        assert_int_equal(heard[i].answer.status, 200);
        assert_string_equal(heard[i].answer.body, "ok");
        heard_done(&heard[i]);
    }
    assert_int_equal(hostile_connection_count(scene.server), 1);
}

static void more_requests_than_a_connection_holds_all_finish(void **state)
{
    (void)state;
    struct hostile_h2 h2 = {.streams_max = 100, .answer_first = SIZE_MAX};
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin_h2(&scene, &h2);
    struct heard heard[150];
    run_many(&scene, heard, ARRAY_SIZE(heard));
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        assert_int_equal(heard[i].answer.status, 200);
        assert_int_equal(heard[i].before_send_count, 1);
        heard_done(&heard[i]);
    }
    assert_int_equal(hostile_request_count(scene.server), 150);
    assert_in_range(hostile_connection_count(scene.server), 1, 8);
}

static void a_connection_full_of_watches_gets_companions(void **state)
{
    (void)state;
    /* One is answered (by then the limit is known), the others never: more connections, or starvation. */
    struct hostile_h2 h2 = {.streams_max = 5, .answer_first = 1};
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin_h2(&scene, &h2);
    scene.get.pool = HTTP_POOL_WATCH;
    CLEANUP_HEARD struct heard first = heard_from(scene.env, &scene.get);
    struct heard heard[10];
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        heard_init(&heard[i], scene.env);
        heard_submit(&heard[i], &scene.get);
    }
    hostile_scene_run_until(&scene, 11);
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        env_http_cancel(scene.env, &heard[i].http);
        heard_done(&heard[i]);
    }
    assert_int_equal(hostile_request_count(scene.server), 11);
    assert_in_range(hostile_connection_count(scene.server), 2, 10);
}

static void after_a_stall_nothing_new_is_put_on_that_connection(void **state)
{
    (void)state;
    /* Each connection answers one stream and is frozen then. */
    struct hostile_h2 h2 = {.answer_first = 1};
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin_h2(&scene, &h2);
    CLEANUP_HEARD struct heard first = heard_from(scene.env, &scene.get);
    assert_int_equal(first.answer.status, 200);
    scene.get.idle_timeout_us = 1000000;
    CLEANUP_HEARD struct heard frozen = heard_from(scene.env, &scene.get);
    assert_int_equal(frozen.answer.outcome, HTTP_NO_ANSWER);
    assert_int_equal(frozen.answer.code, ERROR_TIMED_OUT);
    assert_int_equal(hostile_connection_count(scene.server), 1);
    /* The next one does not even ask for a fresh one. */
    CLEANUP_HEARD struct heard next = heard_from(scene.env, &scene.get);
    assert_int_equal(next.answer.status, 200);
    assert_int_equal(hostile_connection_count(scene.server), 2);
}

static void a_fresh_connection_leaves_others_alone(void **state)
{
    (void)state;
    struct hostile_h2 h2 = {.answer_first = SIZE_MAX, .hold_until = 2};
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin_h2(&scene, &h2);
    scene.get.timeout_us = 3000000;
    size_t left = 4;
    struct heard heard[4];
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        heard_init(&heard[i], scene.env);
        heard[i].left = &left;
        scene.get.fresh_connection = i == 1;
        heard_submit(&heard[i], &scene.get);
    }
    /* The first one's connection has one stream and waits for a second: nobody joins it. It times out alone.
     */
    scene.get.fresh_connection = false;
    heard_wait(scene.env, &left);
    size_t answered = 0;
    for (size_t i = 0; i < ARRAY_SIZE(heard); i++) {
        answered += heard[i].answer.status == 200;
        heard_done(&heard[i]);
    }
    assert_int_equal(answered, 2);
    assert_int_equal(hostile_connection_count(scene.server), 2);
}

static void a_refused_stream_is_not_sent_again_when_once(void **state)
{
    (void)state;
    for (int once = 0; once < 2; once++) {
        struct hostile_h2 h2 = {.answer_first = SIZE_MAX, .refuse_first = true};
        CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
        begin_h2(&scene, &h2);
        scene.get.method = once ? "DELETE" : "GET";
        scene.get.once = once;
        CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
        if (once) {
            assert_int_equal(heard.answer.outcome, HTTP_NO_ANSWER);
            assert_int_equal(heard.before_send_count, 1);
            assert_int_equal(hostile_request_count(scene.server), 1);
        } else {
            assert_int_equal(heard.answer.status, 200);
        }
    }
}

/* The first stream of a connection is answered; at the second the connection dies. */
static void serve_h2_and_die(struct hostile_connection *connection, void *context)
{
    (void)context;
    struct hostile_h2 h2 = {.answer_first = 1, .close_at = 2};
    hostile_serve_h2(connection, &h2);
}

static void a_write_whose_http2_connection_dies_is_sent_once(void **state)
{
    (void)state;
    CLEANUP_HOSTILE_SCENE struct hostile_scene scene;
    begin(&scene,
          &(struct hostile_options){.serve = serve_h2_and_die, .identity = &made.good, .http2 = true});
    CLEANUP_HEARD struct heard first = heard_from(scene.env, &scene.get);
    assert_int_equal(first.answer.status, 200);
    scene.get.method = "POST";
    scene.get.body = "{}";
    scene.get.body_length = 2;
    scene.get.once = true;
    CLEANUP_HEARD struct heard heard = heard_from(scene.env, &scene.get);
    assert_int_equal(heard.answer.outcome, HTTP_NO_ANSWER);
    assert_int_equal(hostile_request_count(scene.server), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_of_our_authority_is_trusted),
        cmocka_unit_test(anyone_else_is_not),
        cmocka_unit_test(trust_is_not_kept_from_another_configuration),
        cmocka_unit_test(another_name_can_be_verified_and_the_host_header_stays),
        cmocka_unit_test(insecure_trusts_anyone),
        cmocka_unit_test(a_client_certificate_is_shown),
        cmocka_unit_test(a_client_key_that_does_not_fit_is_named),
        cmocka_unit_test(nobody_is_asked_for_a_pass_phrase),
        cmocka_unit_test(a_server_without_tls_is_named),
        cmocka_unit_test(streams_share_one_connection),
        cmocka_unit_test(more_requests_than_a_connection_holds_all_finish),
        cmocka_unit_test(a_connection_full_of_watches_gets_companions),
        cmocka_unit_test(after_a_stall_nothing_new_is_put_on_that_connection),
        cmocka_unit_test(a_fresh_connection_leaves_others_alone),
        cmocka_unit_test(a_refused_stream_is_not_sent_again_when_once),
        cmocka_unit_test(a_write_whose_http2_connection_dies_is_sent_once),
    };
    return cmocka_run_group_tests(tests, make_identities, drop_identities);
}
