/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include "kube/pem.h"

#include "env_sim.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define CERTIFICATE "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
#define KEY "-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\n"
#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

static int make_env(void **state)
{
    struct env *env = env_sim_make(1);
    env_sim_variable_set(env, "HOME", "/home/a");
    *state = env;
    return 0;
}

static int free_env(void **state)
{
    env_free(*state);
    return 0;
}

static struct kube_config *load(struct env *env, const struct kube_config_options *options)
{
    static const struct kube_config_options none = {0};
    CLEANUP_ERROR struct error *err = NULL;
    struct kube_config *config = NULL;
    int result = kube_config_load(env, options ? options : &none, &config, &err);
    if (result < 0)
        print_error("%s\n", error_text(err));
    assert_int_equal(result, 0);
    return config;
}

/* Loading fails with this code, and its sentence holds each of the texts. */
static void refuses(struct env *env, const struct kube_config_options *options, enum error_code code,
                    const char *const *holds)
{
    static const struct kube_config_options none = {0};
    CLEANUP_ERROR struct error *err = NULL;
    struct kube_config *config = NULL;
    assert_int_equal(kube_config_load(env, options ? options : &none, &config, &err), -(int)code);
    assert_null(config);
    for (; *holds; holds++) {
        if (!strstr(error_text(err), *holds))
            print_error("'%s' is not in: %s\n", *holds, error_text(err));
        assert_non_null(strstr(error_text(err), *holds));
    }
}
#define HOLDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A kubeconfig whose cluster and user have these members (YAML flow mappings without the braces). */
static void put(struct env *env, const char *path, const char *cluster, const char *user)
{
    CLEANUP_FREE char *text = xasprintf("apiVersion: v1\nkind: Config\n"
                                        "clusters:\n- name: c\n  cluster: {%s}\n"
                                        "users:\n- name: u\n  user: {%s}\n"
                                        "contexts:\n- name: x\n  context: {cluster: c, user: u}\n"
                                        "current-context: x\n",
                                        cluster, user);
    env_sim_file_put(env, path, text);
}

static void the_home_kubeconfig_is_read(void **state)
{
    struct env *env = *state;
    env_sim_file_put(
        env, "/home/a/.kube/config",
        "apiVersion: v1\nkind: Config\npreferences: {}\n"
        "clusters:\n- cluster:\n    server: https://10.0.0.1:6443/\n    tls-server-name: api.example\n"
        "    proxy-url: http://proxy:3128\n    insecure-skip-tls-verify: true\n  name: prod\n"
        "users:\n- name: admin\n  user:\n    token: abc\n    as: bob\n    as-uid: '7'\n"
        "    as-groups: [g1, g2]\n"
        "contexts:\n- name: prod-admin\n  context:\n    cluster: prod\n    user: admin\n"
        "    namespace: db\n"
        "current-context: prod-admin\n");
    CLEANUP_KUBE_CONFIG struct kube_config *config = load(env, NULL);
    assert_string_equal(config->server.base_url, "https://10.0.0.1:6443");
    assert_string_equal(config->server.server_name, "api.example");
    assert_string_equal(config->server.proxy_url, "http://proxy:3128");
    assert_true(config->server.insecure);
    assert_null(config->server.ca_pem);
    assert_string_equal(config->context_name, "prod-admin");
    assert_string_equal(config->namespace, "db");
    assert_string_equal(config->token, "abc");
    assert_string_equal(config->impersonate_user, "bob");
    assert_string_equal(config->impersonate_uid, "7");
    assert_string_equal(config->impersonate_groups[0], "g1");
    assert_string_equal(config->impersonate_groups[1], "g2");
    assert_null(config->impersonate_groups[2]);
    assert_null(config->exec);
    assert_false(config->in_cluster);
}

static void a_json_kubeconfig_is_read(void **state)
{
    struct env *env = *state;
    env_sim_file_put(
        env, "/k.json",
        "\n{\t\"kind\":\"Config\",\"apiVersion\":\"v1\",\"clusters\":[{\"name\":\"c\",\"cluster\":{"
        "\"server\":\"https://h\"}}],\"contexts\":[{\"name\":\"x\",\"context\":{\"cluster\":\"c\"}}],"
        "\"users\":null,\"current-context\":\"x\"}");
    CLEANUP_KUBE_CONFIG struct kube_config *config =
        load(env, &(struct kube_config_options){.kubeconfig = "/k.json"});
    assert_string_equal(config->server.base_url, "https://h");
    assert_string_equal(config->namespace, "default");
    assert_null(config->token);
}

static void of_several_files_the_first_that_names_an_entry_wins_whole(void **state)
{
    struct env *env = *state;
    env_sim_variable_set(env, "KUBECONFIG", "/a:/missing::/b:/a");
    env_sim_file_put(env, "/a",
                     "users:\n- name: u\n  user: {as: first}\n"
                     "contexts:\n- name: x\n  context: {cluster: c, user: u}\n");
    env_sim_file_put(env, "/b",
                     "clusters:\n- name: c\n  cluster: {server: 'https://b'}\n"
                     "users:\n- name: u\n  user: {as: second, token: t}\n- name: v\n  user: {token: v}\n"
                     "contexts:\n- name: x\n  context: {cluster: c, user: v, namespace: n}\n"
                     "- name: z\n  context: {cluster: c, user: v}\n"
                     "current-context: x\n");
    CLEANUP_KUBE_CONFIG struct kube_config *config = load(env, NULL);
    assert_string_equal(config->server.base_url, "https://b");
    assert_string_equal(config->impersonate_user, "first");
    assert_null(config->token);
    assert_string_equal(config->namespace, "default");
    CLEANUP_KUBE_CONFIG struct kube_config *other =
        load(env, &(struct kube_config_options){.context = "z", .impersonate_user = "carol"});
    assert_string_equal(other->token, "v");
    assert_string_equal(other->impersonate_user, "carol");
}

static void the_first_current_context_wins(void **state)
{
    struct env *env = *state;
    env_sim_variable_set(env, "KUBECONFIG", "/a:/b");
    put(env, "/b", "server: 'https://b'", "");
    env_sim_file_put(env, "/a", "current-context: z\ncontexts:\n- name: z\n  context: {cluster: c}\n");
    CLEANUP_KUBE_CONFIG struct kube_config *config = load(env, NULL);
    assert_string_equal(config->context_name, "z");
}

static void certificates_come_inline_or_from_files_beside_the_kubeconfig(void **state)
{
    struct env *env = *state;
    CLEANUP_FREE char *encoded = kube_base64_encode(CERTIFICATE);
    CLEANUP_FREE char *user = xasprintf(
        "client-certificate-data: '%s', client-certificate: /nowhere, client-key: key.pem", encoded);
    put(env, "/etc/kube/config", "server: 'https://h', certificate-authority: pki/ca.pem", user);
    env_sim_file_put(env, "/etc/kube/pki/ca.pem", "text before\n" CERTIFICATE);
    env_sim_file_put(env, "/etc/kube/key.pem", KEY);
    CLEANUP_KUBE_CONFIG struct kube_config *config =
        load(env, &(struct kube_config_options){.kubeconfig = "/etc/kube/config"});
    assert_string_equal(config->server.ca_pem, "text before\n" CERTIFICATE);
    assert_string_equal(config->ca_file, "/etc/kube/pki/ca.pem");
    assert_string_equal(config->server.certificate_pem, CERTIFICATE);
    assert_null(config->certificate_file);
    assert_string_equal(config->server.key_pem, KEY);
    assert_string_equal(config->key_file, "/etc/kube/key.pem");
}

static void a_token_file_is_found_beside_the_kubeconfig(void **state)
{
    struct env *env = *state;
    put(env, "/etc/kube/config", "server: 'https://h'", "token: t, tokenFile: token");
    CLEANUP_KUBE_CONFIG struct kube_config *config =
        load(env, &(struct kube_config_options){.kubeconfig = "/etc/kube/config"});
    assert_string_equal(config->token_file, "/etc/kube/token");
    assert_string_equal(config->token, "t");
}

static void without_tls_no_credential_is_taken(void **state)
{
    struct env *env = *state;
    put(env, "/k", "server: 'http://127.0.0.1:8080'", "token: t, client-key: /nowhere, as: bob");
    CLEANUP_KUBE_CONFIG struct kube_config *config =
        load(env, &(struct kube_config_options){.kubeconfig = "/k"});
    assert_null(config->token);
    assert_string_equal(config->impersonate_user, "bob");
}

static void an_exec_plugin_is_a_vector(void **state)
{
    struct env *env = *state;
    env_sim_file_put(
        env, "/etc/kube/config",
        "clusters:\n- name: c\n  cluster:\n    server: https://h\n    extensions:\n"
        "    - name: client.authentication.k8s.io/exec\n      extension: {audience: a}\n"
        "users:\n- name: u\n  user:\n    exec:\n      apiVersion: client.authentication.k8s.io/v1\n"
        "      command: ./bin/plug\n      args: [get-token, 'a b; $(c)']\n"
        "      env:\n      - {name: PROFILE, value: p=q}\n      interactiveMode: IfAvailable\n"
        "      provideClusterInfo: true\n      installHint: get it from example.com\n"
        "contexts:\n- name: x\n  context: {cluster: c, user: u}\ncurrent-context: x\n");
    CLEANUP_KUBE_CONFIG struct kube_config *config =
        load(env, &(struct kube_config_options){.kubeconfig = "/etc/kube/config"});
    const struct kube_exec_plugin *plugin = config->exec;
    assert_string_equal(plugin->argv[0], "/etc/kube/./bin/plug");
    assert_string_equal(plugin->argv[1], "get-token");
    assert_string_equal(plugin->argv[2], "a b; $(c)");
    assert_null(plugin->argv[3]);
    assert_string_equal(plugin->environment[0], "PROFILE=p=q");
    assert_null(plugin->environment[1]);
    assert_string_equal(plugin->api_version, "client.authentication.k8s.io/v1");
    assert_true(plugin->provide_cluster_info);
    assert_string_equal(plugin->cluster_config, "{\"audience\":\"a\"}");
    assert_string_equal(plugin->install_hint, "get it from example.com");
}

static void a_plugin_of_the_path_keeps_its_name_and_a_token_wins_over_it(void **state)
{
    struct env *env = *state;
    put(env, "/k", "server: 'https://h'",
        "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws}");
    struct kube_config_options options = {.kubeconfig = "/k"};
    CLEANUP_KUBE_CONFIG struct kube_config *config = load(env, &options);
    assert_string_equal(config->exec->argv[0], "aws");
    assert_null(config->exec->environment);
    put(env, "/k", "server: 'https://h'",
        "token: t, exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws}");
    CLEANUP_KUBE_CONFIG struct kube_config *other = load(env, &options);
    assert_null(other->exec);
}

static void bad_entries_are_refused_by_name(void **state)
{
    struct env *env = *state;
#define EXEC "exec: {apiVersion: client.authentication.k8s.io/v1, command: c, interactiveMode: Never"
    static const struct {
        const char *cluster;
        const char *user;
        enum error_code code;
        const char *holds[3];
    } cases[] = {
        {"", "", ERROR_INVALID, {"cluster 'c' of /k", "no server"}},
        {"server: 7", "", ERROR_INVALID, {"server is not a string"}},
        {"server: '10.0.0.1:6443'", "", ERROR_INVALID, {"https://HOST:PORT"}},
        {"server: 'https://'", "", ERROR_INVALID, {"https://HOST:PORT"}},
        {"server: 'https://u:hunter2@h'", "", ERROR_INVALID, {"without a user"}},
        {"server: 'https://h?a'", "", ERROR_INVALID, {"https://HOST:PORT"}},
        {"server: \"https://h\\nx\"", "", ERROR_INVALID, {"https://HOST:PORT"}},
        {"server: 'https://h', insecure-skip-tls-verify: 'yes'",
         "",
         ERROR_INVALID,
         {"must be true or false"}},
        {"server: 'https://h', proxy-url: 'ftp://h'", "", ERROR_INVALID, {"proxy-url"}},
        {"server: 'https://h', certificate-authority: ca",
         "",
         ERROR_NOT_FOUND,
         {"certificate-authority", "/ca"}},
        {"server: 'https://h', certificate-authority-data: '!!'", "", ERROR_INVALID, {"not valid base64"}},
        {"server: 'https://h', certificate-authority-data: aGVsbG8=",
         "",
         ERROR_INVALID,
         {"holds no PEM block", "CERTIFICATE"}},
        {"server: 'https://h', insecure-skip-tls-verify: true, certificate-authority: /ca.pem",
         "",
         ERROR_INVALID,
         {"remove one of them"}},
        {"server: 'https://h'",
         "auth-provider: {name: gcp}",
         ERROR_UNSUPPORTED,
         {"auth-provider 'gcp'", "user 'u'"}},
        {"server: 'https://h'",
         "username: a, password: hunter2",
         ERROR_UNSUPPORTED,
         {"user name and a password"}},
        {"server: 'https://h'", "as: a, as-user-extra: {k: [v]}", ERROR_UNSUPPORTED, {"as-user-extra"}},
        {"server: 'https://h'", "as: \"a\\nb\"", ERROR_INVALID, {"control character"}},
        {"server: 'https://h'", "as: a, as-groups: [7]", ERROR_INVALID, {"as-groups"}},
        {"server: 'https://h'",
         "token: \"hunter2\\r\\nx\"",
         ERROR_INVALID,
         {"token has a control character"}},
        {"server: 'https://h'", "token: 12345", ERROR_INVALID, {"token is not a string"}},
        {"server: 'https://h'", "client-certificate: /ca.pem", ERROR_INVALID, {"without a client-key"}},
        {"server: 'https://h'", "client-key: /key.pem", ERROR_INVALID, {"without a client-certificate"}},
        {"server: 'https://h'", "client-key: /ca.pem", ERROR_INVALID, {"PRIVATE KEY"}},
        {"server: 'https://h'", "exec: 7", ERROR_INVALID, {"exec is not a mapping"}},
        {"server: 'https://h'", "exec: {command: c}", ERROR_UNSUPPORTED, {"exec.apiVersion"}},
        {"server: 'https://h'",
         "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: c}",
         ERROR_UNSUPPORTED,
         {"v1 and v1beta1"}},
        {"server: 'https://h'",
         "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}",
         ERROR_INVALID,
         {"exec has no command"}},
        {"server: 'https://h'",
         "exec: {apiVersion: client.authentication.k8s.io/v1, command: c}",
         ERROR_INVALID,
         {"interactiveMode"}},
        {"server: 'https://h'",
         "exec: {apiVersion: client.authentication.k8s.io/v1, command: c, interactiveMode: Always}",
         ERROR_UNSUPPORTED,
         {"nobody to ask"}},
        {"server: 'https://h'", EXEC ", args: x}", ERROR_INVALID, {"args"}},
        {"server: 'https://h'", EXEC ", env: [{name: a}]}", ERROR_INVALID, {"exec.env"}},
        {"server: 'https://h'", EXEC ", env: [{name: 'a=b', value: c}]}", ERROR_INVALID, {"exec.env"}},
    };
#undef EXEC
    env_sim_file_put(env, "/ca.pem", CERTIFICATE);
    env_sim_file_put(env, "/key.pem", KEY);
    struct kube_config_options options = {.kubeconfig = "/k"};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        put(env, "/k", cases[i].cluster, cases[i].user);
        refuses(env, &options, cases[i].code, cases[i].holds);
        CLEANUP_ERROR struct error *err = NULL;
        struct kube_config *config = NULL;
        kube_config_load(env, &options, &config, &err);
        assert_null(strstr(error_text(err), "hunter2"));
    }
}

static void bad_files_are_refused_by_name(void **state)
{
    struct env *env = *state;
    static const struct {
        const char *text;
        enum error_code code;
        const char *holds[3];
    } cases[] = {
        {"", ERROR_INVALID, {"/k defines nothing"}},
        {"# nothing\n", ERROR_INVALID, {"/k defines nothing"}},
        {"[1, 2]", ERROR_INVALID, {"/k is not a kubeconfig"}},
        {"kind: Pod\napiVersion: v1\n", ERROR_INVALID, {"/k is not a kubeconfig", "Pod"}},
        {"clusters: {a: b}\n", ERROR_INVALID, {"clusters is not a list"}},
        {"clusters: [7]\n", ERROR_INVALID, {"clusters has no name"}},
        {"users: [{name: a, user: 7}]\n", ERROR_INVALID, {"user of 'a' is not a mapping"}},
        {"users: [{name: a}, {name: a}]\n", ERROR_INVALID, {"'a' twice"}},
        {"current-context: x\n", ERROR_NOT_FOUND, {"there is no context in /k"}},
        {"contexts: [{name: a}, {name: b}]\n", ERROR_NOT_FOUND, {"--context", "a, b"}},
        {"contexts: [{name: a}]\ncurrent-context: z\n", ERROR_NOT_FOUND, {"'z'", "there are: a"}},
        {"contexts: [{name: a}]\ncurrent-context: a\n",
         ERROR_INVALID,
         {"context 'a' of /k names no cluster"}},
        {"contexts: [{name: a, context: {cluster: q}}]\ncurrent-context: a\n",
         ERROR_NOT_FOUND,
         {"the cluster 'q'", "there are: none"}},
        {"contexts: [{name: a, context: {cluster: c, user: q}}]\nclusters: [{name: c}]\ncurrent-context: a\n",
         ERROR_NOT_FOUND,
         {"the user 'q'"}},
        {"a: [", ERROR_INVALID, {"/k"}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        env_sim_file_put(env, "/k", cases[i].text);
        refuses(env, &(struct kube_config_options){.kubeconfig = "/k"}, cases[i].code, cases[i].holds);
    }
}

static void a_named_kubeconfig_must_exist(void **state)
{
    refuses(*state, &(struct kube_config_options){.kubeconfig = "/nowhere"}, ERROR_NOT_FOUND,
            HOLDS("/nowhere"));
}

static void no_kubeconfig_at_all_says_what_was_looked_for(void **state)
{
    struct env *env = *state;
    refuses(
        env, NULL, ERROR_NOT_FOUND,
        HOLDS("no kubeconfig", "KUBECONFIG is not set", "/home/a/.kube/config", "not a pod", "--kubeconfig"));
    env_sim_variable_set(env, "KUBECONFIG", "/x:/y");
    refuses(env, NULL, ERROR_NOT_FOUND, HOLDS("KUBECONFIG (/x:/y)"));
    env_sim_variable_set(env, "KUBECONFIG", NULL);
    env_sim_variable_set(env, "HOME", NULL);
    refuses(env, NULL, ERROR_NOT_FOUND, HOLDS("KUBECONFIG and HOME are not set"));
    refuses(env, &(struct kube_config_options){.context = "z"}, ERROR_NOT_FOUND,
            HOLDS("'z'", "--kubeconfig"));
}

static void an_unknown_context_lists_the_known_ones_up_to_a_bound(void **state)
{
    struct env *env = *state;
    CLEANUP_BUF struct buf text = BUF_INIT(100000);
    buf_add_text(&text, "contexts:\n");
    for (int i = 0; i < 25; i++)
        buf_addf(&text, "- name: c%d\n", i);
    env_sim_file_put(env, "/k", buf_text(&text));
    refuses(env, &(struct kube_config_options){.kubeconfig = "/k", .context = "z"}, ERROR_NOT_FOUND,
            HOLDS("c0, c1", "c19 and 5 more"));
}

static void impersonation_cannot_smuggle_a_header(void **state)
{
    refuses(*state, &(struct kube_config_options){.impersonate_user = "a\r\nX: y"}, ERROR_USAGE,
            HOLDS("--as"));
}

static void in_a_pod_the_service_account_is_used(void **state)
{
    struct env *env = *state;
    static const struct {
        const char *host;
        const char *port;
        const char *url;
    } cases[] = {{"10.96.0.1", "443", "https://10.96.0.1:443"},
                 {"fd00::1", "6443", "https://[fd00::1]:6443"},
                 {"[fd00::1]", "6443", "https://[fd00::1]:6443"},
                 {"api.example", NULL, "https://api.example:443"}};
    env_sim_file_put(env, ACCOUNT "token", "tok\n");
    env_sim_file_put(env, ACCOUNT "ca.crt", CERTIFICATE);
    env_sim_file_put(env, ACCOUNT "namespace", "db\n");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        env_sim_variable_set(env, "KUBERNETES_SERVICE_HOST", cases[i].host);
        env_sim_variable_set(env, "KUBERNETES_SERVICE_PORT", cases[i].port);
        CLEANUP_KUBE_CONFIG struct kube_config *config = load(env, NULL);
        assert_true(config->in_cluster);
        assert_string_equal(config->server.base_url, cases[i].url);
        assert_string_equal(config->server.ca_pem, CERTIFICATE);
        assert_string_equal(config->token_file, ACCOUNT "token");
        assert_string_equal(config->namespace, "db");
        assert_null(config->context_name);
    }
    /* A kubeconfig that says something is preferred, as kubectl does. */
    put(env, "/home/a/.kube/config", "server: 'https://h'", "");
    CLEANUP_KUBE_CONFIG struct kube_config *config = load(env, NULL);
    assert_false(config->in_cluster);
}

static void a_pod_without_its_account_says_so(void **state)
{
    struct env *env = *state;
    env_sim_variable_set(env, "KUBERNETES_SERVICE_HOST", "10.96.0.1");
    refuses(env, NULL, ERROR_NOT_FOUND, HOLDS("automountServiceAccountToken", ACCOUNT "token"));
    env_sim_file_put(env, ACCOUNT "token", "tok");
    env_sim_file_put(env, ACCOUNT "ca.crt", "garbage");
    refuses(env, NULL, ERROR_INVALID, HOLDS("certificate authority", "PEM"));
}

static void base64_is_read_strictly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *decoded; /* NULL: refused */
    } cases[] = {{"", ""},        {"aGk=", "hi"}, {"aGkh", "hi!"}, {" aG\nkh\t", "hi!"}, {"aA==", "h"},
                 {"aGk", NULL},   {"aG=k", NULL}, {"a===", NULL},  {"====", NULL},       {"aGk-", NULL},
                 {"aGk=a", NULL}, {"AAAA", NULL}, {"-----", NULL}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *decoded = NULL;
        int result = kube_base64_decode(cases[i].text, "x", &decoded, NULL);
        assert_int_equal(result, cases[i].decoded ? 0 : -ERROR_INVALID);
        assert_true(str_equal(decoded, cases[i].decoded));
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, make_env, free_env)
    const struct CMUnitTest tests[] = {
        TEST(the_home_kubeconfig_is_read),
        TEST(a_json_kubeconfig_is_read),
        TEST(of_several_files_the_first_that_names_an_entry_wins_whole),
        TEST(the_first_current_context_wins),
        TEST(certificates_come_inline_or_from_files_beside_the_kubeconfig),
        TEST(a_token_file_is_found_beside_the_kubeconfig),
        TEST(without_tls_no_credential_is_taken),
        TEST(an_exec_plugin_is_a_vector),
        TEST(a_plugin_of_the_path_keeps_its_name_and_a_token_wins_over_it),
        TEST(bad_entries_are_refused_by_name),
        TEST(bad_files_are_refused_by_name),
        TEST(a_named_kubeconfig_must_exist),
        TEST(no_kubeconfig_at_all_says_what_was_looked_for),
        TEST(an_unknown_context_lists_the_known_ones_up_to_a_bound),
        TEST(impersonation_cannot_smuggle_a_header),
        TEST(in_a_pod_the_service_account_is_used),
        TEST(a_pod_without_its_account_says_so),
        TEST(base64_is_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
