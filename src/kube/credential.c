/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/credential.h"

#include "base/time_text.h"
#include "kube/answer.h"
#include "kube/pem.h"
#include "kube/plugin.h"

#include <utlist.h>

/* Bound tokens live an hour and the kubelet renews them at 80 %: a minute is what every client takes. */
#define REREAD_US (60 * US_PER_S)
#define PLUGIN_TIMEOUT_US (30 * US_PER_S)
/* A plug-in may call a cloud: not for each request that is refused. */
#define PLUGIN_PAUSE_US (5 * US_PER_S)

enum { PLUGIN_OUTPUT_MAX = 1024 * 1024, PLUGIN_ENVIRONMENT_MAX = 1002, STDERR_SHOWN = 200 };

struct kube_credential {
    struct env *env;
    const struct kube_config *config;
    struct kube_identity *current; /* NULL: nothing yet */
    uint64_t generation;
    bool refused;       /* current was answered with a 401 */
    int64_t read_us;    /* boot clock, of the files' last reading */
    int64_t expires_us; /* wall clock, of a plug-in's answer */
    int64_t started_us; /* boot clock, of the plug-in's last start; -1: never */
    bool plugin_failed; /* the last run did */
    char *problem;      /* of the last reading or run; NULL: it went well */
    struct env_child *child;
    struct env_timer *start_timer; /* the plug-in's next start */
    struct env_timer *serve_timer; /* answers the first of waits */
    struct kube_credential_wait *waits;
};

void kube_identity_release(struct kube_identity *identity)
{
    if (!identity)
        return;
    PRE(identity->references > 0);
    if (--identity->references > 0)
        return;
    http_server_done(&identity->server);
    if (identity->authorization)
        explicit_bzero(identity->authorization, strlen(identity->authorization));
    free(identity->authorization);
    free(identity);
}

static struct http_server server_copy(const struct http_server *server)
{
    return (struct http_server){
        .base_url = xstrdup(server->base_url),
        .ca_pem = xstrdup_or_null(server->ca_pem),
        .certificate_pem = xstrdup_or_null(server->certificate_pem),
        .key_pem = xstrdup_or_null(server->key_pem),
        .server_name = xstrdup_or_null(server->server_name),
        .proxy_url = xstrdup_or_null(server->proxy_url),
        .insecure = server->insecure,
    };
}

static bool server_equal(const struct http_server *a, const struct http_server *b)
{
    return str_equal(a->ca_pem, b->ca_pem) && str_equal(a->certificate_pem, b->certificate_pem) &&
           str_equal(a->key_pem, b->key_pem);
}

/* Makes server (taken over) and token the identity in use, unless nothing changed. */
static void use(struct kube_credential *credential, struct http_server server, const char *token)
{
    CLEANUP_FREE char *authorization = token ? xasprintf("Bearer %s", token) : NULL;
    struct kube_identity *current = credential->current;
    credential->refused = false;
    if (current && server_equal(&current->server, &server) &&
        str_equal(current->authorization, authorization)) {
        http_server_done(&server);
        return;
    }
    kube_identity_release(current);
    struct kube_identity *identity = xcalloc(1, sizeof(*identity));
    identity->references = 1;
    identity->generation = ++credential->generation;
    identity->server = server;
    identity->authorization = STEAL(authorization);
    credential->current = identity;
}

static void set_problem(struct kube_credential *credential, char *problem)
{
    free(credential->problem);
    credential->problem = problem;
}

/* Replaces *pem by the file's content when that is readable PEM: a rotation caught half-way keeps the old
 * one. */
static void reread_pem(struct kube_credential *credential, const char *path, const char *label, char **pem)
{
    CLEANUP_BUF struct buf text = BUF_INIT(KUBE_PEM_MAX);
    CLEANUP_ERROR struct error *problem = NULL;
    if (!path)
        return;
    if (env_read_file(credential->env, path, &text, &problem) < 0 ||
        kube_pem_check(buf_text(&text), label, path, &problem) < 0) {
        set_problem(credential, xstrdup(error_text(problem)));
        return;
    }
    free(*pem);
    *pem = buf_take(&text);
}

static int read_token(struct kube_credential *credential, char **ret)
{
    const char *path = credential->config->token_file;
    CLEANUP_BUF struct buf text = BUF_INIT(KUBE_PEM_MAX);
    CLEANUP_ERROR struct error *problem = NULL;
    int result = env_read_file(credential->env, path, &text, &problem);
    buf_trim_end(&text);
    if (result == 0 && text.length == 0)
        result = error_set(&problem, ERROR_INVALID, "%s is empty", path);
    bool is_text = strlen(buf_text(&text)) == text.length && !str_has_control_character(buf_text(&text));
    if (result == 0 && !is_text)
        result = error_set(&problem, ERROR_INVALID, "%s has a control character in it", path);
    if (result == 0)
        *ret = buf_take(&text);
    else
        set_problem(credential, xasprintf("the token cannot be read: %s", error_text(problem)));
    return result;
}

/* What the files say now. A file that cannot be read leaves what was read before. */
static void read_files(struct kube_credential *credential)
{
    const struct kube_config *config = credential->config;
    const struct kube_identity *current = credential->current;
    set_problem(credential, NULL);
    credential->read_us = env_boot_us(credential->env);
    struct http_server server = server_copy(current ? &current->server : &config->server);
    reread_pem(credential, config->ca_file, "CERTIFICATE", &server.ca_pem);
    reread_pem(credential, config->certificate_file, "CERTIFICATE", &server.certificate_pem);
    reread_pem(credential, config->key_file, "PRIVATE KEY", &server.key_pem);
    CLEANUP_FREE char *token = NULL;
    if (config->token_file && read_token(credential, &token) < 0) {
        bool keep = current && current->authorization;
        token = keep ? xstrdup(current->authorization + strlen("Bearer ")) : xstrdup_or_null(config->token);
    } else if (!config->token_file) {
        token = xstrdup_or_null(config->token);
    }
    if (config->token_file && !token)
        http_server_done(&server); /* nobody: say so rather than call as nobody */
    else
        use(credential, server, token);
    if (token)
        explicit_bzero(token, strlen(token));
}

static void serve(void *context);

static void serve_soon(struct kube_credential *credential)
{
    if (credential->waits && !credential->serve_timer)
        credential->serve_timer = env_timer_start(credential->env, 0, serve, credential);
}

/* Is what we have good for another request? */
static bool is_valid(const struct kube_credential *credential)
{
    if (!credential->current)
        return false;
    if (!credential->config->exec)
        return true;
    bool expired = env_wall_us(credential->env) >= credential->expires_us;
    bool just_run = credential->started_us >= 0 && !credential->plugin_failed &&
                    env_boot_us(credential->env) - credential->started_us < PLUGIN_PAUSE_US;
    return !expired && (!credential->refused || just_run);
}

static struct kube_identity *reference(struct kube_identity *identity)
{
    identity->references++;
    return identity;
}

/* Answers one that waits, and is called again while there are more: each may cancel others, or free us. */
static void serve(void *context)
{
    struct kube_credential *credential = context;
    credential->serve_timer = NULL;
    struct kube_credential_wait *wait = credential->waits;
    if (!wait)
        return;
    DL_DELETE(credential->waits, wait);
    serve_soon(credential);
    struct kube_identity *identity = is_valid(credential) ? reference(credential->current) : NULL;
    CLEANUP_FREE char *problem =
        identity ? NULL : xstrdup(credential->problem ? credential->problem : "there is no credential");
    wait->ready(wait->context, identity, problem);
}

static char *plugin_problem(const struct kube_exec_plugin *plugin, const struct child_result *result)
{
    char line[STDERR_SHOWN];
    kube_first_line(result->errors ? result->errors : "", line, sizeof(line));
    if (result->exit_code < 0)
        return xasprintf("the credential plug-in '%s' failed: %s%s%s%s%s", plugin->argv[0],
                         result->problem ? result->problem : "it could not be run", *line ? ": " : "", line,
                         plugin->install_hint ? "; " : "", plugin->install_hint ? plugin->install_hint : "");
    return xasprintf("the credential plug-in '%s' failed with exit code %d%s%s", plugin->argv[0],
                     result->exit_code, *line ? ": " : "", line);
}

/* Reads what the plug-in printed, and uses it. */
static int take_plugin_answer(struct kube_credential *credential, const struct child_result *result,
                              struct error **err)
{
    struct kube_plugin_answer answer;
    int failed =
        kube_plugin_parse(credential->config->exec, result->output, result->output_length, &answer, err);
    if (failed < 0)
        return failed;
    if (answer.expires_us <= env_wall_us(credential->env)) {
        kube_plugin_answer_done(&answer);
        return error_set(err, ERROR_INVALID, "it gave a credential that has expired already");
    }
    struct http_server server = server_copy(&credential->config->server);
    if (answer.certificate_pem) {
        str_replace(&server.certificate_pem, answer.certificate_pem);
        str_replace(&server.key_pem, answer.key_pem);
    }
    credential->expires_us = answer.expires_us;
    use(credential, server, answer.token);
    kube_plugin_answer_done(&answer);
    return 0;
}

static void plugin_done(void *context, const struct child_result *result)
{
    struct kube_credential *credential = context;
    const struct kube_exec_plugin *plugin = credential->config->exec;
    CLEANUP_ERROR struct error *problem = NULL;
    credential->child = NULL;
    set_problem(credential, NULL);
    if (result->exit_code != 0)
        set_problem(credential, plugin_problem(plugin, result));
    else if (take_plugin_answer(credential, result, &problem) < 0)
        set_problem(credential, xasprintf("the credential plug-in '%s' failed: %s", plugin->argv[0],
                                          error_text(problem)));
    credential->plugin_failed = credential->problem != NULL;
    serve_soon(credential);
}

static void start_plugin(void *context)
{
    struct kube_credential *credential = context;
    const struct kube_exec_plugin *plugin = credential->config->exec;
    credential->start_timer = NULL;
    const char *environment[PLUGIN_ENVIRONMENT_MAX];
    size_t count = 0;
    for (; plugin->environment && plugin->environment[count]; count++) {
        ENSURE(count + 2 < PLUGIN_ENVIRONMENT_MAX);
        environment[count] = plugin->environment[count];
    }
    CLEANUP_FREE char *info = kube_plugin_info(credential->config);
    environment[count++] = info;
    environment[count] = NULL;
    struct child_spec spec = {
        .argv = (const char *const *)plugin->argv,
        .environment = environment,
        .output_max = PLUGIN_OUTPUT_MAX,
        .timeout_us = PLUGIN_TIMEOUT_US,
    };
    credential->started_us = env_boot_us(credential->env);
    credential->child = env_child_start(credential->env, &spec, plugin_done, credential);
}

/* At most one run at a time, and after a failed one a pause. */
static void want_plugin(struct kube_credential *credential)
{
    if (credential->child || credential->start_timer)
        return;
    int64_t delay_us = 0;
    if (credential->plugin_failed)
        delay_us = credential->started_us + PLUGIN_PAUSE_US - env_boot_us(credential->env);
    credential->start_timer = env_timer_start(credential->env, MAX(delay_us, 0), start_plugin, credential);
}

struct kube_credential *kube_credential_make(struct env *env, const struct kube_config *config)
{
    struct kube_credential *credential = xcalloc(1, sizeof(*credential));
    credential->env = env;
    credential->config = config;
    credential->started_us = -1;
    credential->expires_us = INT64_MAX;
    if (!config->exec)
        read_files(credential);
    return credential;
}

void kube_credential_free(struct kube_credential *credential)
{
    if (!credential)
        return;
    env_child_cancel(credential->env, &credential->child);
    env_timer_cancel(credential->env, &credential->start_timer);
    env_timer_cancel(credential->env, &credential->serve_timer);
    kube_identity_release(credential->current);
    free(credential->problem);
    free(credential);
}

struct kube_identity *kube_credential_now(struct kube_credential *credential)
{
    const struct kube_config *config = credential->config;
    bool has_files = config->token_file || config->ca_file || config->certificate_file || config->key_file;
    int64_t age_us = env_boot_us(credential->env) - credential->read_us;
    if (!config->exec && has_files && (credential->refused || !credential->current || age_us >= REREAD_US))
        read_files(credential);
    return is_valid(credential) ? reference(credential->current) : NULL;
}

void kube_credential_wait(struct kube_credential *credential, struct kube_credential_wait *wait)
{
    DL_APPEND(credential->waits, wait);
    if (credential->config->exec && !is_valid(credential))
        want_plugin(credential);
    else
        serve_soon(credential);
}

void kube_credential_wait_cancel(struct kube_credential *credential, struct kube_credential_wait *wait)
{
    DL_DELETE(credential->waits, wait);
}

void kube_credential_refused(struct kube_credential *credential, uint64_t generation)
{
    if (credential->current && credential->current->generation == generation)
        credential->refused = true;
}

void kube_credential_refresh(struct kube_credential *credential)
{
    credential->refused = true;
}

const char *kube_credential_problem(const struct kube_credential *credential)
{
    return credential->problem;
}
