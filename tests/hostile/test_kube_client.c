/* SPDX-License-Identifier: Apache-2.0
 * The kube client through the real transport, against servers that misbehave on the wire. */
#include "base/time_text.h"
#include "kube/pem.h"
#include "kube/watch.h"

#include "hostile_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* What one call or watch was told. */
struct seen {
    struct env *env;
    unsigned left; /* answers to wait for */
    enum kube_outcome outcome;
    int http;
    bool body_cut;
    enum error_code code;
    char summary[KUBE_SUMMARY_SIZE];
    char log[512];       /* of a watch */
    const char *stop_at; /* the log that a test waits for */
};

static void on_done(void *context, const struct kube_answer *answer)
{
    struct seen *seen = context;
    seen->outcome = answer->outcome;
    seen->http = answer->http;
    seen->body_cut = answer->body_cut;
    seen->code = answer->code;
    snprintf(seen->summary, sizeof(seen->summary), "%s", answer->summary);
    if (--seen->left == 0)
        env_stop(seen->env);
}

static void too_late(void *context)
{
    (void)context;
    fail_msg("nothing came within 20 s");
}

static void run(struct seen *seen)
{
    struct env_timer *timer = env_timer_start(seen->env, 20 * US_PER_S, too_late, NULL);
    env_run(seen->env);
    env_timer_cancel(seen->env, &timer);
}

static void read_and_wait(struct kube_client *client, struct seen *seen, int64_t timeout_us)
{
    seen->env = kube_client_env(client);
    seen->left = 1;
    kube_get(client, "/api/v1/pods", timeout_us, on_done, seen);
    run(seen);
}

static void write_and_wait(struct kube_client *client, struct seen *seen)
{
    struct kube_write write = {.method = "POST",
                               .path = "/api/v1/namespaces/a/pods?timeout=10s",
                               .content_type = "application/json",
                               .body = "{}",
                               .body_length = 2,
                               .audit_id = "neo-1-1-1",
                               .pool = HTTP_POOL_REQUEST,
                               .timeout_us = 10 * US_PER_S};
    seen->env = kube_client_env(client);
    seen->left = 1;
    kube_write(client, kube_permit_issue(client), &write, on_done, seen);
    run(seen);
}

struct scene {
    struct env *env;
    struct hostile_server *server;
    struct kube_client *client;
    char folder[64];
};

/* A server, and a client that a kubeconfig of these cluster and user members configures (NULL: plain). */
static void begin(struct scene *scene, const struct hostile_options *options, const char *cluster,
                  const char *user)
{
    scene->env = env_real_make();
    scene->server = hostile_start(options);
    snprintf(scene->folder, sizeof(scene->folder), "/tmp/neoset-test-kube.XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    CLEANUP_FREE char *url = hostile_url(scene->server);
    CLEANUP_FREE char *path = xasprintf("%s/config", scene->folder);
    CLEANUP_FREE char *text =
        xasprintf("clusters: [{name: c, cluster: {server: '%s'%s%s}}]\nusers: [{name: u, user: {%s}}]\n"
                  "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
                  url, *cluster ? ", " : "", cluster, user);
    assert_int_equal(env_write_file(scene->env, path, 0600, text, strlen(text), NULL), 0);
    struct kube_config *config = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    if (kube_config_load(scene->env, &(struct kube_config_options){.kubeconfig = path}, &config, &err) < 0)
        fail_msg("%s", error_text(err));
    scene->client = kube_client_make(scene->env, config);
}

static void put_file(struct scene *scene, const char *name, unsigned mode, const char *text)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s", scene->folder, name);
    assert_int_equal(env_write_file(scene->env, path, mode, text, strlen(text), NULL), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void end(struct scene *scene)
{
    static const char *const names[] = {"config", "token", "plugin", "count"};
    kube_client_free(scene->client);
    env_free(scene->env);
    hostile_stop(scene->server);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", scene->folder, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(scene->folder), 0);
}

/* --- single requests --- */

/* Answers the first request of a connection; takes the second one whole and dies. */
static void serve_one_and_die(struct hostile_connection *connection, void *context)
{
    (void)context;
    if (hostile_read_request(connection) && hostile_answer(connection, 200, "{}") &&
        hostile_read_request(connection))
        hostile_reset(connection);
}

static void a_write_on_a_connection_that_dies_is_sent_once_and_in_doubt(void **state)
{
    (void)state;
    struct scene scene;
    struct seen seen = {0};
    begin(&scene, &(struct hostile_options){.serve = serve_one_and_die}, "", "");
    read_and_wait(scene.client, &seen, 10 * US_PER_S);
    assert_int_equal(seen.outcome, KUBE_OK);
    write_and_wait(scene.client, &seen);
    assert_int_equal(seen.outcome, KUBE_NO_ANSWER);
    assert_int_equal(hostile_request_count(scene.server), 2);
    assert_int_equal(hostile_connection_count(scene.server), 1);
    end(&scene);
}

static void serve_cut(struct hostile_connection *connection, void *context)
{
    (void)context;
    if (hostile_read_request(connection))
        hostile_send_text(connection, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
                                      "Content-Length: 1000\r\n\r\n{\"metadata\":");
}

static void a_cut_body_settles_a_write_and_not_a_read(void **state)
{
    (void)state;
    struct scene scene;
    struct seen seen = {0};
    begin(&scene, &(struct hostile_options){.serve = serve_cut}, "", "");
    write_and_wait(scene.client, &seen);
    assert_int_equal(seen.outcome, KUBE_OK);
    assert_int_equal(seen.http, 201);
    assert_true(seen.body_cut);
    read_and_wait(scene.client, &seen, 10 * US_PER_S);
    assert_int_equal(seen.outcome, KUBE_NO_ANSWER);
    end(&scene);
}

static void serve_for_ever(struct hostile_connection *connection, void *context)
{
    (void)context;
    static char piece[65536];
    memset(piece, ' ', sizeof(piece) - 1);
    if (hostile_read_request(connection) &&
        hostile_send_text(connection, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"))
        hostile_send_forever(connection, piece);
}

static void an_answer_that_never_ends_is_bounded_in_size(void **state)
{
    (void)state;
    struct scene scene;
    struct seen seen = {0};
    begin(&scene, &(struct hostile_options){.serve = serve_for_ever}, "", "");
    read_and_wait(scene.client, &seen, 15 * US_PER_S);
    assert_int_equal(seen.outcome, KUBE_NO_ANSWER);
    assert_int_equal(seen.code, ERROR_TOO_LARGE);
    end(&scene);
}

static void serve_drop_by_drop(struct hostile_connection *connection, void *context)
{
    (void)context;
    if (!hostile_read_request(connection) ||
        !hostile_send_text(connection, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"))
        return;
    while (hostile_send_text(connection, " ") && hostile_pause(connection, 20))
        ;
}

static void an_answer_that_never_ends_is_bounded_in_time(void **state)
{
    (void)state;
    struct scene scene;
    struct seen seen = {0};
    begin(&scene, &(struct hostile_options){.serve = serve_drop_by_drop}, "", "");
    read_and_wait(scene.client, &seen, US_PER_S / 2);
    assert_int_equal(seen.outcome, KUBE_NO_ANSWER);
    assert_int_equal(seen.code, ERROR_TIMED_OUT);
    end(&scene);
}

static void nobody_listens_is_a_sentence(void **state)
{
    (void)state;
    struct scene scene;
    struct seen seen = {0};
    begin(&scene, &(struct hostile_options){.serve = serve_cut}, "", "");
    hostile_stop(STEAL(scene.server));
    write_and_wait(scene.client, &seen);
    assert_int_equal(seen.outcome, KUBE_NOT_SENT);
    assert_int_equal(seen.code, ERROR_UNREACHABLE);
    assert_non_null(strstr(seen.summary, "not sent: cannot connect to 127.0.0.1:"));
    end(&scene);
}

/* --- credentials; each over TLS, for without it none is sent --- */

static struct hostile_identity authority;
static struct hostile_identity good;
static struct hostile_identity foreign;

static int make_identities(void **state)
{
    (void)state;
    hostile_identity_make(&authority, "authority", NULL, NULL, -1, 30);
    hostile_identity_make(&good, "server", "DNS:kubernetes.default.svc", &authority, -1, 30);
    hostile_identity_make(&foreign, "server", "IP:127.0.0.1", NULL, -1, 30);
    return 0;
}

static int drop_identities(void **state)
{
    (void)state;
    hostile_identity_done(&authority);
    hostile_identity_done(&good);
    hostile_identity_done(&foreign);
    return 0;
}

/* Cluster members that trust our authority under the name of `good`; the caller's. */
static char *trust(void)
{
    CLEANUP_FREE char *encoded = kube_base64_encode(authority.certificate_pem);
    return xasprintf("tls-server-name: kubernetes.default.svc, certificate-authority-data: '%s'", encoded);
}

/* 200 to the bearer of "Bearer new", 401 to everyone else. */
static void serve_the_new_token(struct hostile_connection *connection, void *context)
{
    (void)context;
    while (hostile_read_request(connection)) {
        bool known = strstr(hostile_last_request(connection), "Authorization: Bearer new\r\n");
        if (!hostile_answer(connection, known ? 200 : 401,
                            known ? "{}" : "{\"kind\":\"Status\",\"code\":401}"))
            return;
    }
}

static void a_token_that_was_replaced_is_read_again_after_a_refusal(void **state)
{
    (void)state;
    struct scene scene;
    struct seen seen = {0};
    CLEANUP_FREE char *cluster = trust();
    begin(&scene, &(struct hostile_options){.serve = serve_the_new_token, .identity = &good}, cluster,
          "tokenFile: token");
    put_file(&scene, "token", 0600, "old");
    write_and_wait(scene.client, &seen);
    assert_int_equal(seen.http, 401);
    assert_int_equal(hostile_request_count(scene.server), 1);
    put_file(&scene, "token", 0600, "new\n");
    read_and_wait(scene.client, &seen, 10 * US_PER_S);
    assert_int_equal(seen.outcome, KUBE_OK);
    put_file(&scene, "token", 0600, "older");
    kube_client_refresh_credentials(scene.client);
    read_and_wait(scene.client, &seen, 10 * US_PER_S);
    assert_int_equal(seen.http, 401);
    assert_int_equal(hostile_request_count(scene.server), 4);
    end(&scene);
}

static void a_plugin_is_a_program_without_a_shell(void **state)
{
    (void)state;
    struct scene scene;
    struct seen seen = {0};
    CLEANUP_FREE char *cluster = trust();
    begin(&scene, &(struct hostile_options){.serve = serve_the_new_token, .identity = &good}, cluster,
          "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, args: ['$(touch count)', "
          "'a b'], "
          "env: [{name: WORD, value: new}], interactiveMode: Never}");
    put_file(
        &scene, "plugin", 0700,
        "#!/bin/sh\n[ \"$1\" = '$(touch count)' ] && [ \"$2\" = 'a b' ] || exit 9\n"
        "case $KUBERNETES_EXEC_INFO in *ExecCredential*) ;; *) exit 8 ;; esac\n"
        "printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":"
        "{\"token\":\"%s\"}}' \"$WORD\"\n");
    write_and_wait(scene.client, &seen);
    assert_int_equal(seen.outcome, KUBE_OK);
    assert_int_equal(seen.http, 200);
    end(&scene);
}

static void a_plugin_that_fails_is_quoted_by_its_first_line(void **state)
{
    (void)state;
    struct scene scene;
    struct seen seen = {0};
    CLEANUP_FREE char *cluster = trust();
    begin(&scene, &(struct hostile_options){.serve = serve_the_new_token, .identity = &good}, cluster,
          "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}");
    put_file(&scene, "plugin", 0700,
             "#!/bin/sh\necho hunter2\necho 'please log in' >&2\necho more >&2\nexit 4\n");
    read_and_wait(scene.client, &seen, 10 * US_PER_S);
    assert_int_equal(seen.outcome, KUBE_NOT_SENT);
    assert_int_equal(seen.code, ERROR_UNAUTHORIZED);
    assert_non_null(strstr(seen.summary, "/plugin' failed with exit code 4: please log in"));
    assert_null(strstr(seen.summary, "hunter2"));
    assert_null(strstr(seen.summary, "more"));
    assert_int_equal(hostile_connection_count(scene.server), 0);
    end(&scene);
}

static void a_server_that_is_not_the_one_we_trust_gets_no_token(void **state)
{
    (void)state;
    struct scene scene;
    struct seen seen = {0};
    CLEANUP_FREE char *cluster = trust();
    begin(&scene, &(struct hostile_options){.serve = serve_the_new_token, .identity = &foreign}, cluster,
          "token: new");
    read_and_wait(scene.client, &seen, 10 * US_PER_S);
    assert_int_equal(seen.outcome, KUBE_NOT_SENT);
    assert_int_equal(seen.code, ERROR_FORBIDDEN);
    assert_non_null(strstr(seen.summary, "not trusted"));
    assert_int_equal(hostile_request_count(scene.server), 0);
    end(&scene);
}

static void serve_frozen_first(struct hostile_connection *connection, void *context)
{
    (void)context;
    struct hostile_h2 options = {.answer_first = hostile_number(connection) == 0 ? 1 : 1000};
    hostile_serve_h2(connection, &options);
}

static void a_frozen_http2_connection_is_left_behind(void **state)
{
    (void)state;
    struct scene scene;
    struct seen seen = {0};
    CLEANUP_FREE char *cluster = trust();
    begin(&scene, &(struct hostile_options){.serve = serve_frozen_first, .identity = &good, .http2 = true},
          cluster, "");
    read_and_wait(scene.client, &seen, 10 * US_PER_S); /* "ok" is no JSON */
    assert_int_equal(seen.code, ERROR_CORRUPT);
    read_and_wait(scene.client, &seen, US_PER_S / 2);
    assert_int_equal(seen.code, ERROR_TIMED_OUT);
    read_and_wait(scene.client, &seen, 10 * US_PER_S);
    assert_int_equal(seen.code, ERROR_CORRUPT);
    read_and_wait(scene.client, &seen, 10 * US_PER_S);
    assert_int_equal(seen.code, ERROR_CORRUPT);
    assert_int_equal(hostile_connection_count(scene.server), 2);
    end(&scene);
}

/* --- a watch --- */

static void note(struct seen *seen, const char *sign, const char *word)
{
    size_t at = strlen(seen->log);
    snprintf(seen->log + at, sizeof(seen->log) - at, "%s%s ", sign, word);
    if (strstr(seen->log, seen->stop_at))
        env_stop(seen->env);
}

static void on_list_begin(void *context)
{
    note(context, "", "begin");
}

static void on_list_end(void *context)
{
    note(context, "", "end");
}

static void on_object(void *context, const cJSON *object)
{
    note(context, "+", json_path_str(object, "metadata", "name", NULL));
}

static void on_deleted(void *context, const cJSON *object)
{
    note(context, "-", json_path_str(object, "metadata", "name", NULL));
}

static void on_state(void *context, enum kube_watch_state watch_state, const char *reason)
{
    (void)reason;
    static const char *const words[] = {"LISTING", "FRESH", "STALE"};
    note(context, "", words[watch_state]);
}

static const struct kube_watch_callbacks callbacks = {.list_begin = on_list_begin,
                                                      .list_end = on_list_end,
                                                      .object = on_object,
                                                      .deleted = on_deleted,
                                                      .state = on_state};

/* Sends text as one chunk of a chunked body, its bytes one by one. */
static bool send_chunk(struct hostile_connection *connection, const char *text)
{
    CLEANUP_FREE char *head = xasprintf("%zx\r\n", strlen(text));
    return hostile_send_text(connection, head) && hostile_send_slowly(connection, text, 0) &&
           hostile_send_text(connection, "\r\n");
}

#define OBJECT(name, version) "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define LINE(type, name, version) "{\"type\":\"" type "\",\"object\":" OBJECT(name, version) "}\n"

/* A whole life: two pages, a stream that is cut inside a line, one that ends as it should, one that sends
 * garbage, one that is too old. */
static void serve_a_life(struct hostile_connection *connection, void *context)
{
    (void)context;
    static const char chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    while (hostile_read_request(connection)) {
        const char *request = hostile_last_request(connection);
        bool alive = true;
        if (!strstr(request, "watch=true")) {
            bool second = strstr(request, "continue=next");
            alive = hostile_answer(
                connection, 200,
                second ? "{\"metadata\":{\"resourceVersion\":\"6\"},\"items\":[" OBJECT("b", "4") "]}"
                       : "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"next\"},\"items\":[" OBJECT(
                             "a", "3") "]}");
        } else if (strstr(request, "resourceVersion=5&")) {
            hostile_send_text(connection, chunked);
            send_chunk(connection, LINE("ADDED", "c", "7"));
            send_chunk(connection, "{\"type\":\"ADD");
            return; /* closed without a last chunk */
        } else if (strstr(request, "resourceVersion=7&")) {
            hostile_send_text(connection, chunked);
            send_chunk(connection, LINE("DELETED", "c", "8"));
            send_chunk(connection, LINE("BOOKMARK", "", "9"));
            alive = hostile_send_text(connection, "0\r\n\r\n");
        } else if (strstr(request, "resourceVersion=9&")) {
            hostile_send_text(connection, chunked);
            send_chunk(connection, LINE("MODIFIED", "b", "10"));
            send_chunk(connection, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}\n");
            hostile_wait_for_close(connection);
            return;
        }
        if (!alive)
            return;
    }
}

static void a_watch_lives_through_cuts_ends_and_an_old_version(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, &(struct hostile_options){.serve = serve_a_life}, "", "");
    struct seen seen = {.env = scene.env,
                        .stop_at = "LISTING begin +a +b end FRESH +c STALE FRESH -c +b LISTING begin "
                                   "+a +b end FRESH "};
    struct kube_watch_spec spec = {.resource = KUBE_POD};
    struct kube_watch *watch = kube_watch_start(scene.client, &spec, &callbacks, &seen);
    run(&seen);
    assert_true(str_starts_with(seen.log, seen.stop_at));
    kube_watch_stop(watch);
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_on_a_connection_that_dies_is_sent_once_and_in_doubt),
        cmocka_unit_test(a_cut_body_settles_a_write_and_not_a_read),
        cmocka_unit_test(an_answer_that_never_ends_is_bounded_in_size),
        cmocka_unit_test(an_answer_that_never_ends_is_bounded_in_time),
        cmocka_unit_test(nobody_listens_is_a_sentence),
        cmocka_unit_test(a_token_that_was_replaced_is_read_again_after_a_refusal),
        cmocka_unit_test(a_plugin_is_a_program_without_a_shell),
        cmocka_unit_test(a_plugin_that_fails_is_quoted_by_its_first_line),
        cmocka_unit_test(a_server_that_is_not_the_one_we_trust_gets_no_token),
        cmocka_unit_test(a_frozen_http2_connection_is_left_behind),
        cmocka_unit_test(a_watch_lives_through_cuts_ends_and_an_old_version),
    };
    return cmocka_run_group_tests(tests, make_identities, drop_identities);
}
