/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include "kube/kubeconfig.h"
#include "kube/pem.h"

/* Where the kubelet puts a pod's account (fixed by Kubernetes). */
#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

enum { KUBECONFIG_FILES_MAX = 100, NAMESPACE_FILE_MAX = 1024 };

static void strings_free(char **strings)
{
    for (size_t i = 0; strings && strings[i]; i++)
        free(strings[i]);
    free(strings);
}

static void plugin_free(struct kube_exec_plugin *plugin)
{
    if (!plugin)
        return;
    strings_free(plugin->argv);
    strings_free(plugin->environment);
    free(plugin->api_version);
    free(plugin->cluster_config);
    free(plugin->install_hint);
    free(plugin);
}

void kube_config_free(struct kube_config *config)
{
    if (!config)
        return;
    http_server_done(&config->server);
    free(config->ca_file);
    free(config->certificate_file);
    free(config->key_file);
    free(config->context_name);
    free(config->namespace);
    free(config->token);
    free(config->token_file);
    free(config->impersonate_user);
    free(config->impersonate_uid);
    strings_free(config->impersonate_groups);
    plugin_free(config->exec);
    free(config);
}

struct kube_config *kube_config_of_url(const char *base_url)
{
    PRE(base_url && *base_url && !str_ends_with(base_url, "/"));
    struct kube_config *config = xcalloc(1, sizeof(*config));
    config->server.base_url = xstrdup(base_url);
    config->namespace = xstrdup("default");
    return config;
}

/* "https://10.96.0.1:443", "https://[fd00::1]:443"; the caller's. */
static char *service_url(const char *host, const char *port)
{
    bool ipv6 = strchr(host, ':') && *host != '[';
    return xasprintf("https://%s%s%s:%s", ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
}

static char *pod_namespace(struct env *env)
{
    const char *variable = env_variable(env, "POD_NAMESPACE");
    if (variable)
        return xstrdup(variable);
    CLEANUP_BUF struct buf text = BUF_INIT(NAMESPACE_FILE_MAX);
    if (env_read_file(env, ACCOUNT "namespace", &text, NULL) < 0)
        return xstrdup("default");
    buf_trim_end(&text);
    return text.length ? buf_take(&text) : xstrdup("default");
}

/* The service account of the pod we run in. */
static int load_in_cluster(struct env *env, struct kube_config **ret, struct error **err)
{
    const char *host = env_variable(env, "KUBERNETES_SERVICE_HOST");
    const char *port = env_variable(env, "KUBERNETES_SERVICE_PORT");
    ENSURE(host);
    CLEANUP_BUF struct buf ca = BUF_INIT(KUBE_PEM_MAX);
    CLEANUP_BUF struct buf token = BUF_INIT(KUBE_PEM_MAX);
    int result = env_read_file(env, ACCOUNT "token", &token, err);
    if (result < 0)
        return error_wrap(err, result,
                          "this is a pod, but its service account token cannot be read "
                          "(automountServiceAccountToken: false?)");
    result = env_read_file(env, ACCOUNT "ca.crt", &ca, err);
    if (result == 0)
        result = kube_pem_check(buf_text(&ca), "CERTIFICATE", ACCOUNT "ca.crt", err);
    if (result < 0)
        return error_wrap(err, result, "the cluster's certificate authority cannot be read");
    struct kube_config *config = xcalloc(1, sizeof(*config));
    config->server.base_url = service_url(host, port ? port : "443");
    config->server.ca_pem = buf_take(&ca);
    config->ca_file = xstrdup(ACCOUNT "ca.crt");
    config->token_file = xstrdup(ACCOUNT "token");
    config->namespace = pod_namespace(env);
    config->in_cluster = true;
    *ret = config;
    return 0;
}

/* Reads one file into merged. *ret_found tells whether it exists. */
static int add_file(struct env *env, struct kubeconfig *merged, const char *path, bool *ret_found,
                    struct error **err)
{
    CLEANUP_BUF struct buf text = BUF_INIT(KUBECONFIG_MAX);
    struct error *problem = NULL;
    int result = env_read_file(env, path, &text, &problem);
    *ret_found = result != -ERROR_NOT_FOUND;
    if (result < 0) {
        result = error_set(err, (enum error_code) - result, "the kubeconfig cannot be read: %s",
                           error_text(problem));
        error_free(problem);
        return result;
    }
    return kubeconfig_add(merged, path, buf_text(&text), text.length, err);
}

/* As add_file, but a file that does not exist is nothing to speak of. */
static int add_file_if_there(struct env *env, struct kubeconfig *merged, const char *path, struct error **err)
{
    bool found;
    struct error *problem = NULL;
    int result = add_file(env, merged, path, &found, &problem);
    if (!found) {
        error_free(problem);
        return 0;
    }
    if (result < 0 && err)
        *err = STEAL(problem);
    error_free(problem);
    return result;
}

/* Each file of a colon-separated list. A file that is named twice is read once. */
static int add_list(struct env *env, struct kubeconfig *merged, const char *list, struct error **err)
{
    CLEANUP_FREE char *copy = xstrdup(list);
    const char *seen[KUBECONFIG_FILES_MAX];
    size_t count = 0;
    char *rest = copy;
    for (char *path = strsep(&rest, ":"); path; path = strsep(&rest, ":")) {
        bool again = *path == '\0';
        for (size_t i = 0; i < count; i++)
            again = again || strcmp(seen[i], path) == 0;
        if (again)
            continue;
        if (count == KUBECONFIG_FILES_MAX)
            return error_set(err, ERROR_TOO_LARGE, "KUBECONFIG lists more than %d files",
                             KUBECONFIG_FILES_MAX);
        seen[count++] = path;
        int result = add_file_if_there(env, merged, path, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static int refuse_nothing(const char *list, const char *home_file, struct error **err)
{
    CLEANUP_FREE char *looked =
        list        ? xasprintf("KUBECONFIG (%.200s) names no file that exists and defines something", list)
        : home_file ? xasprintf("KUBECONFIG is not set, %s does not exist or is empty", home_file)
                    : xstrdup("KUBECONFIG and HOME are not set");
    return error_set(err, ERROR_NOT_FOUND,
                     "no kubeconfig: %s, and this is not a pod (KUBERNETES_SERVICE_HOST is not set); give "
                     "--kubeconfig FILE or set KUBECONFIG",
                     looked);
}

/* The sources in kubectl's order: --kubeconfig alone, else KUBECONFIG's list, else ~/.kube/config; and where
 * they define nothing, the pod's service account. */
static int load(struct env *env, const struct kube_config_options *options, struct kube_config **ret,
                struct error **err)
{
    CLEANUP_KUBECONFIG struct kubeconfig *merged = kubeconfig_make();
    const char *list = env_variable(env, "KUBECONFIG");
    const char *home = env_variable(env, "HOME");
    CLEANUP_FREE char *home_file = home ? xasprintf("%s/.kube/config", home) : NULL;
    bool found;
    int result = 0;
    if (options->kubeconfig)
        result = add_file(env, merged, options->kubeconfig, &found, err);
    else if (list)
        result = add_list(env, merged, list, err);
    else if (home_file)
        result = add_file_if_there(env, merged, home_file, err);
    if (result < 0)
        return result;
    if (!kubeconfig_is_empty(merged))
        return kubeconfig_resolve(merged, env, options, ret, err);
    if (options->kubeconfig)
        return error_set(err, ERROR_INVALID, "the kubeconfig %s defines nothing", options->kubeconfig);
    if (options->context)
        return error_set(err, ERROR_NOT_FOUND,
                         "there is no context '%s': no kubeconfig was found; give --kubeconfig FILE",
                         options->context);
    if (!env_variable(env, "KUBERNETES_SERVICE_HOST"))
        return refuse_nothing(list, home_file, err);
    return load_in_cluster(env, ret, err);
}

int kube_config_load(struct env *env, const struct kube_config_options *options, struct kube_config **ret,
                     struct error **err)
{
    PRE(env && options && ret);
    if (options->impersonate_user && str_has_control_character(options->impersonate_user))
        return error_set(err, ERROR_USAGE, "--as has a control character in it");
    struct kube_config *config = NULL;
    int result = load(env, options, &config, err);
    if (result < 0)
        return result;
    ENSURE(config);
    if (options->impersonate_user)
        str_replace(&config->impersonate_user, options->impersonate_user);
    POST(config->server.base_url && config->namespace);
    *ret = config;
    return 0;
}
