/* SPDX-License-Identifier: Apache-2.0 */
#include "client_scene.h"

static struct kube_config *config_with_token_file(void)
{
    struct kube_config *config = kube_config_of_url("https://api");
    config->token_file = xstrdup("/token");
    return config;
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

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, make, unmake)
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
