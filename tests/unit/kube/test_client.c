/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/client.h"

#include "base/time_text.h"
#include "kube/discovery.h"

#include "model.h"

#include <sys/wait.h>
#include <unistd.h>

/* What a call ended with, copied. */
struct seen {
    unsigned count;
    enum kube_outcome outcome;
    int http;
    enum error_code code;
    char summary[KUBE_SUMMARY_SIZE];
    char message[1024];
    char audit_id[64];
    char name[64]; /* of the body */
};

static void on_done(void *context, const struct kube_answer *answer)
{
    struct seen *seen = context;
    const char *name = json_path_str(answer->body, "metadata", "name", NULL);
    seen->count++;
    seen->outcome = answer->outcome;
    seen->http = answer->http;
    seen->code = answer->code;
    snprintf(seen->summary, sizeof(seen->summary), "%s", answer->summary);
    snprintf(seen->message, sizeof(seen->message), "%s", answer->message);
    snprintf(seen->audit_id, sizeof(seen->audit_id), "%s", answer->audit_id ? answer->audit_id : "");
    snprintf(seen->name, sizeof(seen->name), "%s", name ? name : "");
}

static struct kube_config *config_with_token_file(void)
{
    struct kube_config *config = kube_config_of_url("https://api");
    config->token_file = xstrdup("/token");
    return config;
}

static int make(void **state)
{
    *state = model_make(7);
    return 0;
}

static int unmake(void **state)
{
    model_free(*state);
    return 0;
}

static struct kube_call *get(struct kube_client *client, struct seen *seen)
{
    return kube_get(client, "/api/v1/pods", 10 * US_PER_S, on_done, seen);
}

static const struct kube_write a_patch = {
    .method = "PATCH",
    .path = "/api/v1/namespaces/a/pods/b?timeout=10s",
    .content_type = "application/merge-patch+json",
    .body = "{\"a\":1}",
    .body_length = 7,
    .audit_id = "neo-0123-1-1",
    .pool = HTTP_POOL_LEASE,
    .timeout_us = 10 * US_PER_S,
};

static struct kube_call *patch(struct kube_client *client, struct seen *seen)
{
    return kube_write(client, kube_permit_issue(client), &a_patch, on_done, seen);
}

/* --- requests --- */

static void a_read_carries_its_headers(void **state)
{
    struct model *model = *state;
    struct kube_config *config = kube_config_of_url("https://api");
    config->token = xstrdup("secret");
    config->impersonate_user = xstrdup("bob");
    config->impersonate_uid = xstrdup("7");
    config->impersonate_groups = xcalloc(3, sizeof(char *));
    config->impersonate_groups[0] = xstrdup("g1");
    config->impersonate_groups[1] = xstrdup("g2");
    struct kube_client *client = kube_client_make(model->env, config);
    struct seen seen = {0};
    get(client, &seen);
    struct env_sim_call *call = model_next(model);
    assert_string_equal(call->method, "GET");
    assert_string_equal(call->path, "/api/v1/pods");
    assert_int_equal(call->pool, HTTP_POOL_REQUEST);
    assert_false(call->once);
    assert_true(str_starts_with(env_sim_http_header(call, "User-Agent"), "neoset/"));
    assert_string_equal(env_sim_http_header(call, "Accept"), "application/json");
    assert_string_equal(env_sim_http_header(call, "Authorization"), "Bearer secret");
    assert_string_equal(env_sim_http_header(call, "Impersonate-User"), "bob");
    assert_string_equal(env_sim_http_header(call, "Impersonate-Uid"), "7");
    assert_null(env_sim_http_header(call, "Audit-ID"));
    assert_null(env_sim_http_header(call, "Content-Type"));
    unsigned groups = 0;
    for (size_t i = 0; i < call->header_count; i++)
        groups += strcmp(call->headers[i].name, "Impersonate-Group") == 0;
    assert_int_equal(groups, 2);
    model_answer(model, call, 200, "{\"metadata\":{\"name\":\"x\"}}");
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.outcome, KUBE_OK);
    assert_int_equal(seen.code, ERROR_NONE);
    assert_string_equal(seen.name, "x");
    kube_client_free(client);
}

static void a_write_carries_its_body_once(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    struct seen seen = {0};
    patch(client, &seen);
    struct env_sim_call *call = model_next(model);
    assert_string_equal(call->method, "PATCH");
    assert_true(call->once);
    assert_int_equal(call->pool, HTTP_POOL_LEASE);
    assert_string_equal(call->body, "{\"a\":1}");
    assert_string_equal(env_sim_http_header(call, "Content-Type"), "application/merge-patch+json");
    assert_string_equal(env_sim_http_header(call, "Audit-ID"), "neo-0123-1-1");
    assert_true(model_how(model)->timeout_us == 10 * US_PER_S);
    struct http_header header = {"Audit-Id", "from-server"};
    env_sim_http_answer(call, 200, &header, 1, "{\"metadata\":{\"name\":\"b\"}}", 25);
    model_settle(model);
    assert_int_equal(seen.outcome, KUBE_OK);
    assert_string_equal(seen.audit_id, "from-server");
    kube_client_free(client);
}

static void a_delete_needs_no_body(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    struct seen seen = {0};
    struct kube_write write = a_patch;
    write.method = "DELETE";
    write.content_type = NULL;
    write.body = NULL;
    write.body_length = 0;
    kube_write(client, kube_permit_issue(client), &write, on_done, &seen);
    struct env_sim_call *call = model_next(model);
    assert_string_equal(call->method, "DELETE");
    assert_null(call->body);
    model_answer(model, call, 409, STATUS(409, "Conflict"));
    assert_int_equal(seen.outcome, KUBE_REFUSED);
    assert_int_equal(seen.code, ERROR_CONFLICT);
    kube_client_free(client);
}

static bool say_no(void *context)
{
    (void)context;
    return false;
}

static void a_write_that_is_held_back_at_the_last_moment_is_not_sent(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    struct seen seen = {0};
    struct kube_write write = a_patch;
    write.before_send = say_no;
    kube_write(client, kube_permit_issue(client), &write, on_done, &seen);
    model_expect_none_for(model, US_PER_S);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.outcome, KUBE_NOT_SENT);
    kube_client_free(client);
}

static void eat_answer(void *context, const struct env_sim_call *call, struct env_sim_route *route)
{
    (void)context;
    (void)call;
    route->fate = ENV_SIM_LOSE_ANSWER;
}

static void a_write_whose_answer_is_lost_is_not_sent_again(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    struct seen seen = {0};
    env_sim_on_route(model->env, eat_answer, NULL);
    patch(client, &seen);
    model_answer(model, model_next(model), 200, "{}");
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.outcome, KUBE_NO_ANSWER);
    assert_int_equal(seen.http, 0);
    model_expect_none_for(model, 600 * US_PER_S);
    assert_int_equal(seen.count, 1);
    kube_client_free(client);
}

static void dies(void (*act)(struct kube_client *), struct kube_client *client)
{
    pid_t child = fork();
    if (child == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        act(client);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
}

static void write_with_a_made_up_permit(struct kube_client *client)
{
    kube_write(client, (struct kube_permit){.cookie = 1}, &a_patch, on_done, NULL);
}

static void read_by_writing(struct kube_client *client)
{
    struct kube_write write = a_patch;
    write.method = "GET";
    kube_write(client, kube_permit_issue(client), &write, on_done, NULL);
}

static void write_without_a_name(struct kube_client *client)
{
    struct kube_write write = a_patch;
    write.audit_id = "";
    kube_write(client, kube_permit_issue(client), &write, on_done, NULL);
}

static void a_write_without_its_permit_ends_the_process(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    dies(write_with_a_made_up_permit, client);
    dies(read_by_writing, client);
    dies(write_without_a_name, client);
    struct kube_client *other = kube_client_make(model->env, kube_config_of_url("http://api"));
    assert_true(kube_permit_issue(client).cookie != kube_permit_issue(other).cookie);
    kube_client_free(other);
    kube_client_free(client);
}

static void a_cancelled_call_is_not_heard_of(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    struct seen seen = {0};
    struct kube_call *before = get(client, &seen);
    kube_call_cancel(client, &before);
    assert_null(before);
    kube_call_cancel(client, &before);
    struct kube_call *during = get(client, &seen);
    struct env_sim_call *call = model_next(model);
    kube_call_cancel(client, &during);
    assert_true(call->client_gone);
    model_answer(model, call, 200, "{}");
    env_sim_run_for(model->env, 60 * US_PER_S);
    assert_int_equal(seen.count, 0);
    get(client, &seen);
    kube_client_free(client);
    env_sim_run_for(model->env, 60 * US_PER_S);
    assert_int_equal(seen.count, 0);
}

static void free_client(void *context, const struct kube_answer *answer)
{
    (void)answer;
    kube_client_free(context);
}

static void the_client_may_be_freed_in_done(void **state)
{
    struct model *model = *state;
    struct seen seen = {0};
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    get(client, &seen);
    kube_get(client, "/b", US_PER_S, free_client, client);
    struct env_sim_call *first = model_next(model);
    model_answer(model, model_next(model), 200, "{}");
    assert_true(first->client_gone);
    model_answer(model, first, 200, "{}");
    assert_int_equal(seen.count, 0);
}

/* --- tokens --- */

static const char *token_of(struct env_sim_call *call)
{
    return env_sim_http_header(call, "Authorization");
}

static void a_token_file_is_read_again_after_a_minute(void **state)
{
    struct model *model = *state;
    env_sim_file_put(model->env, "/token", "one\n");
    struct kube_client *client = kube_client_make(model->env, config_with_token_file());
    struct seen seen = {0};
    env_sim_file_put(model->env, "/token", "two\n");
    env_sim_run_for(model->env, 59 * US_PER_S);
    get(client, &seen);
    struct env_sim_call *call = model_next(model);
    assert_string_equal(token_of(call), "Bearer one");
    model_answer(model, call, 200, "{}");
    env_sim_run_for(model->env, 1 * US_PER_S);
    get(client, &seen);
    call = model_next(model);
    assert_string_equal(token_of(call), "Bearer two");
    model_answer(model, call, 200, "{}");
    kube_client_free(client);
}

static void a_refused_read_is_tried_once_more_with_the_new_token(void **state)
{
    struct model *model = *state;
    env_sim_file_put(model->env, "/token", "one");
    struct kube_client *client = kube_client_make(model->env, config_with_token_file());
    struct seen seen = {0};
    env_sim_file_put(model->env, "/token", "two");
    get(client, &seen);
    model_answer(model, model_next(model), 401, STATUS(401, "Unauthorized"));
    struct env_sim_call *again = model_next(model);
    assert_string_equal(token_of(again), "Bearer two");
    assert_int_equal(seen.count, 0);
    model_answer(model, again, 200, "{}");
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.outcome, KUBE_OK);
    kube_client_free(client);
}

static void a_second_refusal_is_reported(void **state)
{
    struct model *model = *state;
    env_sim_file_put(model->env, "/token", "one");
    struct kube_client *client = kube_client_make(model->env, config_with_token_file());
    struct seen seen = {0};
    env_sim_file_put(model->env, "/token", NULL);
    get(client, &seen);
    model_answer(model, model_next(model), 401, STATUS(401, "Unauthorized"));
    struct env_sim_call *again = model_next(model);
    assert_string_equal(token_of(again), "Bearer one");
    model_answer(model, again, 401, STATUS(401, "Unauthorized"));
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.code, ERROR_UNAUTHORIZED);
    /* Why there was no better token is said, the token is not. */
    assert_non_null(strstr(seen.summary, "/token"));
    assert_null(strstr(seen.message, "one"));
    model_expect_none_for(model, 60 * US_PER_S);
    kube_client_free(client);
}

static void a_refused_write_is_not_repeated_but_the_next_has_the_new_token(void **state)
{
    struct model *model = *state;
    env_sim_file_put(model->env, "/token", "one");
    struct kube_client *client = kube_client_make(model->env, config_with_token_file());
    struct seen seen = {0};
    env_sim_file_put(model->env, "/token", "two");
    patch(client, &seen);
    model_answer(model, model_next(model), 401, STATUS(401, "Unauthorized"));
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.http, 401);
    model_expect_none_for(model, 30 * US_PER_S);
    patch(client, &seen);
    struct env_sim_call *call = model_next(model);
    assert_string_equal(token_of(call), "Bearer two");
    model_answer(model, call, 200, "{}");
    env_sim_file_put(model->env, "/token", "three");
    kube_client_refresh_credentials(client);
    get(client, &seen);
    call = model_next(model);
    assert_string_equal(token_of(call), "Bearer three");
    model_answer(model, call, 200, "{}");
    kube_client_free(client);
}

static void without_any_token_nothing_is_sent_as_nobody(void **state)
{
    struct model *model = *state;
    static const char *const contents[] = {NULL, "", "\n", "a\x01z"};
    for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
        env_sim_file_put(model->env, "/token", contents[i]);
        struct kube_client *client = kube_client_make(model->env, config_with_token_file());
        struct seen seen = {0};
        get(client, &seen);
        assert_int_equal(seen.count, 0);
        model_expect_none_for(model, US_PER_S);
        assert_int_equal(seen.count, 1);
        assert_int_equal(seen.outcome, KUBE_NOT_SENT);
        assert_int_equal(seen.code, ERROR_UNAUTHORIZED);
        assert_non_null(strstr(seen.message, "/token"));
        env_sim_file_put(model->env, "/token", "late");
        get(client, &seen);
        struct env_sim_call *call = model_next(model);
        assert_string_equal(token_of(call), "Bearer late");
        model_answer(model, call, 200, "{}");
        kube_client_free(client);
    }
}

static void a_static_token_stands_in_for_an_unreadable_file(void **state)
{
    struct model *model = *state;
    struct kube_config *config = config_with_token_file();
    config->token = xstrdup("static");
    struct kube_client *client = kube_client_make(model->env, config);
    struct seen seen = {0};
    get(client, &seen);
    struct env_sim_call *call = model_next(model);
    assert_string_equal(token_of(call), "Bearer static");
    model_answer(model, call, 200, "{}");
    kube_client_free(client);
}

static void certificate_files_are_read_again_too(void **state)
{
    struct model *model = *state;
    struct kube_config *config = kube_config_of_url("https://api");
    config->ca_file = xstrdup("/ca");
    config->certificate_file = xstrdup("/certificate");
    config->key_file = xstrdup("/key");
    env_sim_file_put(model->env, "/ca", "-----BEGIN CERTIFICATE-----old");
    env_sim_file_put(model->env, "/certificate", "-----BEGIN CERTIFICATE-----mine");
    env_sim_file_put(model->env, "/key", "-----BEGIN PRIVATE KEY-----");
    struct kube_client *client = kube_client_make(model->env, config);
    struct seen seen = {0};
    static const struct {
        const char *ca; /* what the file holds a minute later */
        const char *used;
    } cases[] = {{"-----BEGIN CERTIFICATE-----new", "-----BEGIN CERTIFICATE-----new"},
                 {"half", "-----BEGIN CERTIFICATE-----new"},
                 {NULL, "-----BEGIN CERTIFICATE-----new"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        env_sim_file_put(model->env, "/ca", cases[i].ca);
        env_sim_run_for(model->env, 61 * US_PER_S);
        get(client, &seen);
        model_answer(model, model_next(model), 200, "{}");
        assert_string_equal(model_how(model)->ca_pem, cases[i].used);
        assert_string_equal(model_how(model)->certificate_pem, "-----BEGIN CERTIFICATE-----mine");
    }
    kube_client_free(client);
}

/* --- exec plug-ins --- */

struct plugin {
    unsigned runs;
    struct env_sim_child_result result;
    char environment[4096]; /* of the last run, joined by newlines */
    char argv[256];
};

static void run_plugin(void *context, const struct child_spec *spec, struct env_sim_child_result *result)
{
    struct plugin *plugin = context;
    plugin->runs++;
    *result = plugin->result;
    plugin->argv[0] = plugin->environment[0] = '\0';
    for (const char *const *at = spec->argv; *at; at++)
        snprintf(plugin->argv + strlen(plugin->argv), sizeof(plugin->argv) - strlen(plugin->argv), "[%s]",
                 *at);
    for (const char *const *at = spec->environment; *at; at++)
        snprintf(plugin->environment + strlen(plugin->environment),
                 sizeof(plugin->environment) - strlen(plugin->environment), "%s\n", *at);
    assert_true(spec->timeout_us > 0 && spec->timeout_us <= 60 * US_PER_S);
    assert_true(spec->output_max <= 1024 * 1024);
    assert_null(spec->input);
}

static struct kube_config *config_with_plugin(void)
{
    struct kube_config *config = kube_config_of_url("https://api");
    config->exec = xcalloc(1, sizeof(*config->exec));
    config->exec->argv = xcalloc(3, sizeof(char *));
    config->exec->argv[0] = xstrdup("plug");
    config->exec->argv[1] = xstrdup("a b; $(c)");
    config->exec->environment = xcalloc(2, sizeof(char *));
    config->exec->environment[0] = xstrdup("PROFILE=p");
    config->exec->api_version = xstrdup("client.authentication.k8s.io/v1");
    return config;
}

#define CREDENTIAL(status)                                                                                   \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":" status "}"

static void a_plugin_is_run_once_for_all_that_wait(void **state)
{
    struct model *model = *state;
    struct plugin plugin = {
        .result = {.duration_us = 3 * US_PER_S, .output = CREDENTIAL("{\"token\":\"tok\"}")}};
    env_sim_on_child(model->env, run_plugin, &plugin);
    struct kube_client *client = kube_client_make(model->env, config_with_plugin());
    struct seen seen[4] = {0};
    get(client, &seen[0]);
    patch(client, &seen[1]);
    struct kube_call *cancelled = get(client, &seen[2]);
    model_expect_none_for(model, 2 * US_PER_S);
    kube_call_cancel(client, &cancelled);
    get(client, &seen[3]);
    for (int i = 0; i < 3; i++) {
        struct env_sim_call *call = model_next(model);
        assert_string_equal(token_of(call), "Bearer tok");
        model_answer(model, call, 200, "{}");
    }
    assert_int_equal(plugin.runs, 1);
    assert_string_equal(plugin.argv, "[plug][a b; $(c)]");
    assert_string_equal(plugin.environment,
                        "PROFILE=p\nKUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":"
                        "\"client.authentication.k8s.io/v1\",\"spec\":{\"interactive\":false}}\n");
    assert_int_equal(seen[0].count, 1);
    assert_int_equal(seen[1].count, 1);
    assert_int_equal(seen[2].count, 0);
    assert_int_equal(seen[3].count, 1);
    /* What waited is bounded by its own time. */
    assert_true(model->submitted[1].timeout_us == 7 * US_PER_S);
    kube_client_free(client);
}

static void a_plugin_is_told_about_the_cluster_when_it_wants(void **state)
{
    struct model *model = *state;
    struct plugin plugin = {.result = {.output = CREDENTIAL("{\"token\":\"tok\"}")}};
    env_sim_on_child(model->env, run_plugin, &plugin);
    struct kube_config *config = config_with_plugin();
    config->exec->provide_cluster_info = true;
    config->exec->cluster_config = xstrdup("{\"audience\":\"a\"}");
    config->server.ca_pem = xstrdup("hi");
    config->server.server_name = xstrdup("n");
    struct kube_client *client = kube_client_make(model->env, config);
    struct seen seen = {0};
    get(client, &seen);
    model_answer(model, model_next(model), 200, "{}");
    assert_non_null(strstr(plugin.environment,
                           "\"cluster\":{\"server\":\"https://api\",\"tls-server-name\":\"n\","
                           "\"certificate-authority-data\":\"aGk=\",\"config\":{\"audience\":\"a\"}}"));
    kube_client_free(client);
}

static void a_plugins_answer_is_kept_until_it_expires(void **state)
{
    struct model *model = *state;
    struct plugin plugin = {
        .result = {.output =
                       CREDENTIAL("{\"token\":\"a\",\"expirationTimestamp\":\"2026-11-30T07:10:00Z\"}")}};
    env_sim_on_child(model->env, run_plugin, &plugin); /* the world begins at 07:00 */
    struct kube_client *client = kube_client_make(model->env, config_with_plugin());
    struct seen seen = {0};
    for (int i = 0; i < 3; i++) {
        get(client, &seen);
        model_answer(model, model_next(model), 200, "{}");
        assert_int_equal(plugin.runs, 1);
        env_sim_run_for(model->env, 199 * US_PER_S);
    }
    plugin.result.output = CREDENTIAL("{\"token\":\"b\",\"expirationTimestamp\":null}");
    env_sim_run_for(model->env, 4 * US_PER_S);
    get(client, &seen);
    struct env_sim_call *call = model_next(model);
    assert_string_equal(token_of(call), "Bearer b");
    model_answer(model, call, 200, "{}");
    assert_int_equal(plugin.runs, 2);
    kube_client_free(client);
}

static void a_refusal_runs_the_plugin_again_but_not_at_every_request(void **state)
{
    struct model *model = *state;
    struct plugin plugin = {.result = {.output = CREDENTIAL("{\"token\":\"a\"}")}};
    env_sim_on_child(model->env, run_plugin, &plugin);
    struct kube_client *client = kube_client_make(model->env, config_with_plugin());
    struct seen seen = {0};
    get(client, &seen);
    model_answer(model, model_next(model), 200, "{}");
    env_sim_run_for(model->env, 60 * US_PER_S);
    plugin.result.output = CREDENTIAL("{\"token\":\"b\"}");
    get(client, &seen);
    model_answer(model, model_next(model), 401, STATUS(401, "Unauthorized"));
    struct env_sim_call *call = model_next(model);
    assert_string_equal(token_of(call), "Bearer b");
    assert_int_equal(plugin.runs, 2);
    model_answer(model, call, 401, STATUS(401, "Unauthorized"));
    for (int i = 0; i < 10; i++) {
        get(client, &seen);
        model_answer(model, model_next(model), 401, STATUS(401, "Unauthorized"));
        model_answer(model, model_next(model), 401, STATUS(401, "Unauthorized"));
    }
    assert_int_equal(plugin.runs, 2);
    kube_client_free(client);
}

static void a_plugin_may_give_a_client_certificate(void **state)
{
    struct model *model = *state;
    struct plugin plugin = {
        .result = {.output = CREDENTIAL("{\"clientCertificateData\":\"-----BEGIN CERTIFICATE-----\\n\","
                                        "\"clientKeyData\":\"-----BEGIN RSA PRIVATE KEY-----\\n\"}")}};
    env_sim_on_child(model->env, run_plugin, &plugin);
    struct kube_client *client = kube_client_make(model->env, config_with_plugin());
    struct seen seen = {0};
    get(client, &seen);
    struct env_sim_call *call = model_next(model);
    assert_null(token_of(call));
    assert_string_equal(model_how(model)->certificate_pem, "-----BEGIN CERTIFICATE-----\n");
    model_answer(model, call, 200, "{}");
    assert_int_equal(seen.outcome, KUBE_OK);
    kube_client_free(client);
}

static void what_is_wrong_with_a_plugin_is_said_without_its_secrets(void **state)
{
    struct model *model = *state;
    static const struct {
        struct env_sim_child_result result;
        const char *holds;
    } cases[] = {
        {{.exit_code = 3, .output = "hunter2", .errors = "no session\nhunter2"}, "exit code 3: no session"},
        {{.exit_code = -1, .problem = "there is no such program"}, "there is no such program"},
        {{.duration_us = 31 * US_PER_S, .output = ""}, "the credential plug-in 'plug' failed"},
        {{.output = "hunter2"}, "no ExecCredential"},
        {{.output = "{\"kind\":\"Secret\",\"x\":\"hunter2\"}"}, "no ExecCredential"},
        {{.output = "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}"},
         "another apiVersion"},
        {{.output = CREDENTIAL("{}")}, "neither a token nor"},
        {{.output = CREDENTIAL("{\"token\":\"hunter2\\n\"}")}, "control character"},
        {{.output = CREDENTIAL("{\"clientKeyData\":\"hunter2\"}")}, "without its key, or the reverse"},
        {{.output = CREDENTIAL("{\"clientCertificateData\":\"hunter2\",\"clientKeyData\":\"hunter2\"}")},
         "PEM"},
        {{.output = CREDENTIAL("{\"token\":\"hunter2\",\"expirationTimestamp\":\"soon\"}")},
         "expirationTimestamp"},
        {{.output = CREDENTIAL("{\"token\":\"hunter2\",\"expirationTimestamp\":\"2026-11-30T06:00:00Z\"}")},
         "expired already"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct plugin plugin = {.result = cases[i].result};
        env_sim_on_child(model->env, run_plugin, &plugin);
        struct kube_config *config = config_with_plugin();
        struct kube_client *client = kube_client_make(model->env, config);
        struct seen seen = {0};
        kube_get(client, "/a", 60 * US_PER_S, on_done, &seen);
        model_expect_none_for(model, 40 * US_PER_S);
        assert_int_equal(seen.count, 1);
        assert_int_equal(seen.outcome, KUBE_NOT_SENT);
        assert_int_equal(seen.code, ERROR_UNAUTHORIZED);
        assert_non_null(strstr(seen.message, "'plug'"));
        if (!strstr(seen.message, cases[i].holds))
            print_error("%s\n", seen.message);
        assert_non_null(strstr(seen.message, cases[i].holds));
        assert_null(strstr(seen.message, "hunter2"));
        kube_client_free(client);
    }
}

static void a_failing_plugin_is_not_run_at_every_request_and_may_recover(void **state)
{
    struct model *model = *state;
    struct plugin plugin = {.result = {.exit_code = 1}};
    env_sim_on_child(model->env, run_plugin, &plugin);
    struct kube_client *client = kube_client_make(model->env, config_with_plugin());
    struct seen seen = {0};
    get(client, &seen);
    model_settle(model);
    assert_int_equal(seen.count, 1);
    assert_int_equal(plugin.runs, 1);
    plugin.result = (struct env_sim_child_result){.output = CREDENTIAL("{\"token\":\"t\"}")};
    get(client, &seen);
    model_expect_none_for(model, 4 * US_PER_S);
    assert_int_equal(plugin.runs, 1);
    model_answer(model, model_next(model), 200, "{}");
    assert_int_equal(plugin.runs, 2);
    assert_int_equal(seen.outcome, KUBE_OK);
    kube_client_free(client);
}

static void a_call_waits_for_a_plugin_no_longer_than_its_own_time(void **state)
{
    struct model *model = *state;
    struct plugin plugin = {
        .result = {.duration_us = 20 * US_PER_S, .output = CREDENTIAL("{\"token\":\"t\"}")}};
    env_sim_on_child(model->env, run_plugin, &plugin);
    struct kube_client *client = kube_client_make(model->env, config_with_plugin());
    struct seen seen = {0};
    patch(client, &seen);
    model_expect_none_for(model, 9 * US_PER_S);
    assert_int_equal(seen.count, 0);
    model_expect_none_for(model, 2 * US_PER_S);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.outcome, KUBE_NOT_SENT);
    assert_int_equal(seen.code, ERROR_TIMED_OUT);
    model_expect_none_for(model, 60 * US_PER_S);
    kube_client_free(client);
}

/* --- the rest --- */

static void back_off_grows_with_jitter_and_never_falls_below_retry_after(void **state)
{
    struct model *model = *state;
    static const struct {
        unsigned attempt;
        int64_t ceiling_us;
    } cases[] = {{0, 250000},   {1, 500000},   {2, 1000000},
                 {6, 16000000}, {7, 30000000}, {4000000000U, 30000000}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t least_us = INT64_MAX;
        int64_t most_us = 0;
        for (int n = 0; n < 1000; n++) {
            int64_t wait_us = kube_backoff_us(model->env, cases[i].attempt, -1);
            least_us = MIN(least_us, wait_us);
            most_us = MAX(most_us, wait_us);
        }
        assert_true(least_us >= 0 && least_us < cases[i].ceiling_us / 20);
        assert_true(most_us <= cases[i].ceiling_us && most_us > cases[i].ceiling_us / 20 * 19);
        assert_true(kube_backoff_us(model->env, cases[i].attempt, 40 * US_PER_S) == 40 * US_PER_S);
    }
    /* A server cannot send us away for ever. */
    assert_true(kube_backoff_us(model->env, 0, INT64_MAX) == 300 * US_PER_S);
}

struct discovered {
    unsigned count;
    enum kube_served served;
    char text[512];
};

static void on_discovered(void *context, enum kube_served served, const char *sentence)
{
    struct discovered *seen = context;
    seen->count++;
    seen->served = served;
    snprintf(seen->text, sizeof(seen->text), "%s", sentence ? sentence : "");
}

static void discovery_tells_a_missing_definition(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    static const struct {
        enum kube_resource resource;
        int http;
        const char *body;
        enum kube_served served;
        const char *holds;
    } cases[] = {
        {KUBE_NEOSET, 200, "{\"resources\":[{\"name\":\"neosets/status\"},{\"name\":\"neosets\"}]}",
         KUBE_SERVED, ""},
        {KUBE_NEOSET, 200, "{\"resources\":[{\"name\":\"neosets/status\"}]}", KUBE_NOT_SERVED,
         "deploy/crd.yaml"},
        {KUBE_NEOSET, 404, "404 page not found", KUBE_NOT_SERVED, "deploy/crd.yaml"},
        {KUBE_LEASE, 404, "404 page not found", KUBE_NOT_SERVED, "leases (coordination.k8s.io/v1)"},
        {KUBE_NEOSET, 503, "", KUBE_SERVED_UNKNOWN, "cannot ask"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct discovered seen = {0};
        kube_discover(client, cases[i].resource, US_PER_S, on_discovered, &seen);
        struct env_sim_call *call = model_next(model);
        assert_string_equal(call->path, cases[i].resource == KUBE_NEOSET ? "/apis/apps.neo.io/v1alpha1"
                                                                         : "/apis/coordination.k8s.io/v1");
        model_answer(model, call, cases[i].http, cases[i].body);
        assert_int_equal(seen.count, 1);
        assert_int_equal(seen.served, cases[i].served);
        assert_non_null(strstr(seen.text, cases[i].holds));
    }
    struct discovered seen = {0};
    struct kube_discovery *discovery = kube_discover(client, KUBE_POD, US_PER_S, on_discovered, &seen);
    kube_discovery_cancel(&discovery);
    model_expect_none_for(model, 10 * US_PER_S);
    assert_int_equal(seen.count, 0);
    kube_client_free(client);
}

static void on_version(void *context, const char *version, const char *sentence)
{
    struct discovered *seen = context;
    seen->count++;
    snprintf(seen->text, sizeof(seen->text), "%s", version ? version : sentence);
}

static void the_servers_version_is_asked_for(void **state)
{
    struct model *model = *state;
    struct kube_client *client = kube_client_make(model->env, kube_config_of_url("http://api"));
    static const struct {
        int http;
        const char *body;
        const char *holds;
    } cases[] = {{200, "{\"gitVersion\":\"v1.36.3\"}", "v1.36.3"},
                 {200, "{}", "no Kubernetes?"},
                 {403, STATUS(403, "Forbidden"), "403 Forbidden"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct discovered seen = {0};
        kube_server_version(client, US_PER_S, on_version, &seen);
        struct env_sim_call *call = model_next(model);
        assert_string_equal(call->path, "/version");
        model_answer(model, call, cases[i].http, cases[i].body);
        assert_non_null(strstr(seen.text, cases[i].holds));
    }
    kube_client_free(client);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, make, unmake)
    const struct CMUnitTest tests[] = {
        TEST(a_read_carries_its_headers),
        TEST(a_write_carries_its_body_once),
        TEST(a_delete_needs_no_body),
        TEST(a_write_that_is_held_back_at_the_last_moment_is_not_sent),
        TEST(a_write_whose_answer_is_lost_is_not_sent_again),
        TEST(a_write_without_its_permit_ends_the_process),
        TEST(a_cancelled_call_is_not_heard_of),
        TEST(the_client_may_be_freed_in_done),
        TEST(a_token_file_is_read_again_after_a_minute),
        TEST(a_refused_read_is_tried_once_more_with_the_new_token),
        TEST(a_second_refusal_is_reported),
        TEST(a_refused_write_is_not_repeated_but_the_next_has_the_new_token),
        TEST(without_any_token_nothing_is_sent_as_nobody),
        TEST(a_static_token_stands_in_for_an_unreadable_file),
        TEST(certificate_files_are_read_again_too),
        TEST(a_plugin_is_run_once_for_all_that_wait),
        TEST(a_plugin_is_told_about_the_cluster_when_it_wants),
        TEST(a_plugins_answer_is_kept_until_it_expires),
        TEST(a_refusal_runs_the_plugin_again_but_not_at_every_request),
        TEST(a_plugin_may_give_a_client_certificate),
        TEST(what_is_wrong_with_a_plugin_is_said_without_its_secrets),
        TEST(a_failing_plugin_is_not_run_at_every_request_and_may_recover),
        TEST(a_call_waits_for_a_plugin_no_longer_than_its_own_time),
        TEST(back_off_grows_with_jitter_and_never_falls_below_retry_after),
        TEST(discovery_tells_a_missing_definition),
        TEST(the_servers_version_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
