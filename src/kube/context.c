/* SPDX-License-Identifier: Apache-2.0
 * One context of a merged kubeconfig, checked and turned into a kube_config. */
#include "kube/kubeconfig.h"
#include "kube/pem.h"

#define PLUGIN_API "client.authentication.k8s.io/"

enum { LIST_MAX = 1000 }; /* arguments, variables, groups */

/* What is being read: one entry, and how messages call it. */
struct reading {
    struct env *env;
    struct kubeconfig_entry entry;
    char *where; /* "user 'admin' of FILE" */
    struct error **err;
};

static int text_at(const struct reading *reading, const char *key, const char **ret)
{
    return kubeconfig_text(reading->entry.value, key, reading->where, ret, reading->err);
}

static int copy_at(const struct reading *reading, const char *key, char **ret)
{
    const char *text = NULL;
    int result = text_at(reading, key, &text);
    if (result == 0)
        str_replace(ret, text);
    return result;
}

/* Relative paths in a kubeconfig begin at its own folder. */
static char *path_from(const struct reading *reading, const char *path)
{
    return *path == '/' ? xstrdup(path) : xasprintf("%s/%s", reading->entry.folder, path);
}

static int file_at(const struct reading *reading, const char *key, char **ret_path)
{
    const char *path = NULL;
    int result = text_at(reading, key, &path);
    if (result == 0 && path) {
        free(*ret_path);
        *ret_path = path_from(reading, path);
    }
    return result;
}

/* Reads KEY-data (inline, wins) or the file that KEY names. *ret_pem and *ret_path stay as they are when
 * there is neither. */
static int pem_at(const struct reading *reading, const char *key, const char *label, char **ret_pem,
                  char **ret_path)
{
    CLEANUP_FREE char *data_key = xasprintf("%s-data", key);
    CLEANUP_FREE char *what = xasprintf("%s: %s", reading->where, data_key);
    const char *data = NULL;
    int result = text_at(reading, data_key, &data);
    if (result == 0 && data)
        result = kube_base64_decode(data, what, ret_pem, reading->err);
    if (result < 0)
        return result;
    if (data)
        return kube_pem_check(*ret_pem, label, what, reading->err);
    result = file_at(reading, key, ret_path);
    if (result < 0 || !*ret_path)
        return result;
    CLEANUP_BUF struct buf text = BUF_INIT(KUBE_PEM_MAX);
    result = env_read_file(reading->env, *ret_path, &text, reading->err);
    if (result < 0)
        return error_wrap(reading->err, result, "%s: %s", reading->where, key);
    result = kube_pem_check(buf_text(&text), label, *ret_path, reading->err);
    if (result == 0)
        *ret_pem = buf_take(&text);
    return result;
}

static bool has_host(const char *url)
{
    const char *host = strstr(url, "://") + 3;
    for (const char *at = host; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == '?' || *at == '#' || *at == 0x7F)
            return false;
    return *host && *host != '/' && *host != ':';
}

static int read_server(const struct reading *reading, struct http_server *server)
{
    const char *url = NULL;
    int result = text_at(reading, "server", &url);
    if (result < 0)
        return result;
    if (!url)
        return error_set(reading->err, ERROR_INVALID, "%s has no server", reading->where);
    bool good = (str_starts_with(url, "https://") || str_starts_with(url, "http://")) && has_host(url);
    if (!good || strchr(url, '@'))
        return error_set(reading->err, ERROR_INVALID,
                         "%s: server must be like https://HOST:PORT, without a user or a query",
                         reading->where);
    server->base_url = xstrdup(url);
    for (size_t length = strlen(url); server->base_url[length - 1] == '/'; length--)
        server->base_url[length - 1] = '\0';
    return 0;
}

static int read_bool(const struct reading *reading, const cJSON *object, const char *key, bool *ret)
{
    const cJSON *node = json_get(object, key);
    *ret = false;
    if (!node || cJSON_IsNull(node))
        return 0;
    if (!cJSON_IsBool(node))
        return error_set(reading->err, ERROR_INVALID, "%s: %s must be true or false", reading->where, key);
    *ret = cJSON_IsTrue(node);
    return 0;
}

static int read_cluster(const struct reading *reading, struct kube_config *config)
{
    struct http_server *server = &config->server;
    int result = read_server(reading, server);
    if (result == 0)
        result = read_bool(reading, reading->entry.value, "insecure-skip-tls-verify", &server->insecure);
    if (result == 0)
        result = pem_at(reading, "certificate-authority", "CERTIFICATE", &server->ca_pem, &config->ca_file);
    if (result == 0)
        result = copy_at(reading, "tls-server-name", &server->server_name);
    if (result == 0)
        result = copy_at(reading, "proxy-url", &server->proxy_url);
    if (result < 0)
        return result;
    if (server->insecure && server->ca_pem)
        return error_set(reading->err, ERROR_INVALID,
                         "%s asks to verify the server (certificate-authority) and not to "
                         "(insecure-skip-tls-verify): remove one of them",
                         reading->where);
    const char *proxy = server->proxy_url;
    bool proxy_good =
        !proxy || ((str_starts_with(proxy, "http://") || str_starts_with(proxy, "https://") ||
                    str_starts_with(proxy, "socks5://") || str_starts_with(proxy, "socks5h://")) &&
                   has_host(proxy));
    if (!proxy_good)
        return error_set(reading->err, ERROR_INVALID,
                         "%s: proxy-url must begin with http://, https:// or socks5://", reading->where);
    return 0;
}

/* A NULL-terminated copy of the list of strings at key, or NULL when it is absent. */
static int read_list(const struct reading *reading, const cJSON *object, const char *key, char ***ret)
{
    const cJSON *list = json_get(object, key);
    *ret = NULL;
    if (!list || cJSON_IsNull(list))
        return 0;
    int count = cJSON_GetArraySize(list);
    bool good = cJSON_IsArray(list) && count <= LIST_MAX;
    const cJSON *element;
    cJSON_ArrayForEach (element, list)
        good = good && cJSON_IsString(element);
    if (!good)
        return error_set(reading->err, ERROR_INVALID, "%s: %s must be a list of at most %d strings",
                         reading->where, key, LIST_MAX);
    char **copies = xcalloc((size_t)count + 1, sizeof(char *));
    size_t i = 0;
    cJSON_ArrayForEach (element, list)
        copies[i++] = xstrdup(element->valuestring);
    *ret = copies;
    return 0;
}

static int read_plugin_environment(const struct reading *reading, const cJSON *exec, char ***ret)
{
    const cJSON *list = json_get(exec, "env");
    if (!list || cJSON_IsNull(list))
        return 0;
    int count = cJSON_GetArraySize(list);
    bool good = cJSON_IsArray(list) && count <= LIST_MAX;
    const cJSON *element;
    cJSON_ArrayForEach (element, list) {
        const char *name = json_str(element, "name");
        good = good && name && *name && !strchr(name, '=') && json_str(element, "value");
    }
    if (!good)
        return error_set(reading->err, ERROR_INVALID,
                         "%s: exec.env must be a list of names and values, both strings", reading->where);
    *ret = xcalloc((size_t)count + 1, sizeof(char *));
    size_t i = 0;
    cJSON_ArrayForEach (element, list)
        (*ret)[i++] = xasprintf("%s=%s", json_str(element, "name"), json_str(element, "value"));
    return 0;
}

/* command and args as one vector. */
static int read_plugin_command(const struct reading *reading, const cJSON *exec, char ***ret)
{
    const char *command = NULL;
    char **arguments = NULL;
    int result = kubeconfig_text(exec, "command", reading->where, &command, reading->err);
    if (result < 0)
        return result;
    if (!command)
        return error_set(reading->err, ERROR_INVALID, "%s: exec has no command", reading->where);
    result = read_list(reading, exec, "args", &arguments);
    if (result < 0)
        return result;
    size_t count = 0;
    while (arguments && arguments[count])
        count++;
    *ret = xcalloc(count + 2, sizeof(char *));
    (*ret)[0] = strchr(command, '/') ? path_from(reading, command) : xstrdup(command);
    for (size_t i = 0; i < count; i++)
        (*ret)[i + 1] = arguments[i];
    free(arguments);
    return 0;
}

static int check_plugin_terms(const struct reading *reading, const cJSON *exec,
                              struct kube_exec_plugin *plugin)
{
    const char *version = NULL;
    const char *interactive = NULL;
    int result = kubeconfig_text(exec, "apiVersion", reading->where, &version, reading->err);
    if (result == 0)
        result = kubeconfig_text(exec, "interactiveMode", reading->where, &interactive, reading->err);
    if (result < 0)
        return result;
    bool is_v1 = version && strcmp(version, PLUGIN_API "v1") == 0;
    if (!is_v1 && !(version && strcmp(version, PLUGIN_API "v1beta1") == 0))
        return error_set(reading->err, ERROR_UNSUPPORTED,
                         "%s: exec.apiVersion is '%.60s'; " PLUGIN_API "v1 and v1beta1 are supported",
                         reading->where, version ? version : "");
    if (is_v1 && !interactive)
        return error_set(reading->err, ERROR_INVALID,
                         "%s: exec.interactiveMode must be set (Never or IfAvailable)", reading->where);
    if (interactive && strcmp(interactive, "Always") == 0)
        return error_set(reading->err, ERROR_UNSUPPORTED,
                         "%s: the credential plug-in wants to ask a person (interactiveMode Always), and "
                         "here is nobody to ask",
                         reading->where);
    plugin->api_version = xstrdup(version);
    return 0;
}

static int read_plugin(const struct reading *reading, const cJSON *exec, struct kube_config *config)
{
    if (!cJSON_IsObject(exec))
        return error_set(reading->err, ERROR_INVALID, "%s: exec is not a mapping", reading->where);
    struct kube_exec_plugin *plugin = xcalloc(1, sizeof(*plugin));
    config->exec = plugin;
    int result = read_plugin_command(reading, exec, &plugin->argv);
    if (result == 0)
        result = read_plugin_environment(reading, exec, &plugin->environment);
    if (result == 0)
        result = check_plugin_terms(reading, exec, plugin);
    if (result == 0)
        result = read_bool(reading, exec, "provideClusterInfo", &plugin->provide_cluster_info);
    const char *hint = NULL;
    if (result == 0)
        result = kubeconfig_text(exec, "installHint", reading->where, &hint, reading->err);
    if (result == 0)
        plugin->install_hint = xstrdup_or_null(hint);
    return result;
}

/* The cluster's own words to plug-ins: extensions: [{name: client.authentication.k8s.io/exec, extension:
 * ...}]. */
static char *plugin_extension(const cJSON *cluster)
{
    const cJSON *element;
    cJSON_ArrayForEach (element, json_get(cluster, "extensions")) {
        const cJSON *extension = json_get(element, "extension");
        if (extension && str_equal(json_str(element, "name"), PLUGIN_API "exec"))
            return json_print(extension);
    }
    return NULL;
}

/* Ways of old that are refused by name: a silent fall-back would act as somebody else, or as nobody. */
static int refuse_unsupported(const struct reading *reading)
{
    const cJSON *provider = json_get(reading->entry.value, "auth-provider");
    if (provider && !cJSON_IsNull(provider))
        return error_set(reading->err, ERROR_UNSUPPORTED,
                         "%s uses auth-provider '%.60s', which kubectl gave up too: use an exec plug-in, a "
                         "token or a client certificate",
                         reading->where, json_str(provider, "name") ? json_str(provider, "name") : "");
    const cJSON *extra = json_get(reading->entry.value, "as-user-extra");
    if (cJSON_GetArraySize(extra) > 0)
        return error_set(reading->err, ERROR_UNSUPPORTED,
                         "%s uses as-user-extra, which is not supported: use as, as-uid and as-groups",
                         reading->where);
    if (json_get(reading->entry.value, "username") || json_get(reading->entry.value, "password"))
        return error_set(
            reading->err, ERROR_UNSUPPORTED,
            "%s logs in with a user name and a password, which API servers no longer take: use a "
            "token or a client certificate",
            reading->where);
    return 0;
}

static int read_certificate(const struct reading *reading, struct kube_config *config)
{
    struct http_server *server = &config->server;
    int result = pem_at(reading, "client-certificate", "CERTIFICATE", &server->certificate_pem,
                        &config->certificate_file);
    if (result == 0)
        result = pem_at(reading, "client-key", "PRIVATE KEY", &server->key_pem, &config->key_file);
    if (result < 0)
        return result;
    if (!server->certificate_pem != !server->key_pem)
        return error_set(reading->err, ERROR_INVALID, "%s has %s", reading->where,
                         server->key_pem ? "a client-key without a client-certificate"
                                         : "a client-certificate without a client-key");
    return 0;
}

/* A header value: no control characters, so that nothing can be smuggled into the request. */
static int check_header_text(const struct reading *reading, const char *key, const char *text)
{
    if (text && str_has_control_character(text))
        return error_set(reading->err, ERROR_INVALID, "%s: %s has a control character in it", reading->where,
                         key);
    return 0;
}

static int read_impersonation(const struct reading *reading, struct kube_config *config)
{
    int result = copy_at(reading, "as", &config->impersonate_user);
    if (result == 0)
        result = copy_at(reading, "as-uid", &config->impersonate_uid);
    if (result == 0)
        result = read_list(reading, reading->entry.value, "as-groups", &config->impersonate_groups);
    if (result == 0)
        result = check_header_text(reading, "as", config->impersonate_user);
    if (result == 0)
        result = check_header_text(reading, "as-uid", config->impersonate_uid);
    for (size_t i = 0; result == 0 && config->impersonate_groups && config->impersonate_groups[i]; i++)
        result = check_header_text(reading, "as-groups", config->impersonate_groups[i]);
    return result;
}

static int read_user(const struct reading *reading, struct kube_config *config)
{
    int result = refuse_unsupported(reading);
    if (result == 0)
        result = read_impersonation(reading, config);
    /* Without TLS no credential is sent (as kubectl). */
    if (result < 0 || str_starts_with(config->server.base_url, "http://"))
        return result;
    result = read_certificate(reading, config);
    if (result == 0)
        result = copy_at(reading, "token", &config->token);
    if (result == 0)
        result = check_header_text(reading, "token", config->token);
    if (result == 0)
        result = file_at(reading, "tokenFile", &config->token_file);
    const cJSON *exec = json_get(reading->entry.value, "exec");
    /* A token that is given outright wins over a plug-in (as kubectl). */
    if (result == 0 && exec && !cJSON_IsNull(exec) && !config->token && !config->token_file)
        result = read_plugin(reading, exec, config);
    return result;
}

static int choose_context(const struct kubeconfig *merged, const char *wanted, struct kubeconfig_entry *ret,
                          struct error **err)
{
    const char *name = wanted ? wanted : kubeconfig_current_context(merged);
    CLEANUP_FREE char *files = kubeconfig_files_text(merged);
    CLEANUP_FREE char *names = kubeconfig_names_text(merged, KUBECONFIG_CONTEXT);
    if (!*names)
        return error_set(err, ERROR_NOT_FOUND, "there is no context in %s", files);
    if (!name)
        return error_set(err, ERROR_NOT_FOUND,
                         "no context is chosen: %s sets no current-context; give --context (there are: %s)",
                         files, names);
    if (!kubeconfig_find(merged, KUBECONFIG_CONTEXT, name, ret))
        return error_set(err, ERROR_NOT_FOUND, "there is no context '%s' in %s; there are: %s", name, files,
                         names);
    return 0;
}

/* The cluster or user that the context names. -ERROR_NOT_FOUND with a sentence when it is nowhere; for a user
 * that the context leaves out, 0 and a NULL value: nobody in particular. */
static int find_part(const struct kubeconfig *merged, enum kubeconfig_section section, const char *key,
                     const struct kubeconfig_entry *context, struct kubeconfig_entry *ret, struct error **err)
{
    CLEANUP_FREE char *where = xasprintf("context '%s' of %s", context->name, context->file);
    const char *name = NULL;
    int result = kubeconfig_text(context->value, key, where, &name, err);
    if (result < 0)
        return result;
    if (!name && section == KUBECONFIG_USER) {
        *ret = (struct kubeconfig_entry){.name = "", .file = context->file, .folder = context->folder};
        return 0;
    }
    if (!name)
        return error_set(err, ERROR_INVALID, "%s names no %s", where, key);
    CLEANUP_FREE char *names = kubeconfig_names_text(merged, section);
    if (!kubeconfig_find(merged, section, name, ret))
        return error_set(err, ERROR_NOT_FOUND, "%s names the %s '%s', which does not exist; there are: %s",
                         where, key, name, *names ? names : "none");
    return 0;
}

static int fill(const struct kubeconfig *merged, struct env *env, const struct kubeconfig_entry *context,
                struct kube_config *config, struct error **err)
{
    struct reading cluster = {.env = env, .err = err};
    struct reading user = {.env = env, .err = err};
    int result = find_part(merged, KUBECONFIG_CLUSTER, "cluster", context, &cluster.entry, err);
    if (result == 0)
        result = find_part(merged, KUBECONFIG_USER, "user", context, &user.entry, err);
    if (result < 0)
        return result;
    cluster.where = xasprintf("cluster '%s' of %s", cluster.entry.name, cluster.entry.file);
    user.where = xasprintf("user '%s' of %s", user.entry.name, user.entry.file);
    result = read_cluster(&cluster, config);
    if (result == 0)
        result = read_user(&user, config);
    if (result == 0 && config->exec && config->exec->provide_cluster_info)
        config->exec->cluster_config = plugin_extension(cluster.entry.value);
    free(cluster.where);
    free(user.where);
    return result;
}

int kubeconfig_resolve(const struct kubeconfig *merged, struct env *env,
                       const struct kube_config_options *options, struct kube_config **ret,
                       struct error **err)
{
    PRE(merged && env && options && ret);
    struct kubeconfig_entry context = {0};
    int result = choose_context(merged, options->context, &context, err);
    if (result < 0)
        return result;
    CLEANUP_KUBE_CONFIG struct kube_config *config = xcalloc(1, sizeof(*config));
    CLEANUP_FREE char *where = xasprintf("context '%s' of %s", context.name, context.file);
    const char *namespace = NULL;
    result = kubeconfig_text(context.value, "namespace", where, &namespace, err);
    if (result == 0)
        result = fill(merged, env, &context, config, err);
    if (result < 0)
        return result;
    config->context_name = xstrdup(context.name);
    config->namespace = xstrdup(namespace ? namespace : "default");
    *ret = STEAL(config);
    return 0;
}
