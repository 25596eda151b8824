/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/plugin.h"

#include "base/json.h"
#include "base/time_text.h"
#include "kube/pem.h"

static void add_cluster(const struct kube_config *config, cJSON *spec)
{
    const struct http_server *server = &config->server;
    cJSON *cluster = json_add_object(spec, "cluster");
    json_add_str(cluster, "server", server->base_url);
    if (server->server_name)
        json_add_str(cluster, "tls-server-name", server->server_name);
    if (server->insecure)
        json_add_bool(cluster, "insecure-skip-tls-verify", true);
    if (server->ca_pem) {
        CLEANUP_FREE char *encoded = kube_base64_encode(server->ca_pem);
        json_add_str(cluster, "certificate-authority-data", encoded);
    }
    if (server->proxy_url)
        json_add_str(cluster, "proxy-url", server->proxy_url);
    const char *extension = config->exec->cluster_config;
    cJSON *parsed;
    if (extension && json_parse(extension, strlen(extension), &parsed, NULL) == 0)
        json_add_item(cluster, "config", parsed);
}

char *kube_plugin_info(const struct kube_config *config)
{
    PRE(config->exec);
    CLEANUP_JSON cJSON *info = json_new_object();
    json_add_str(info, "kind", "ExecCredential");
    json_add_str(info, "apiVersion", config->exec->api_version);
    cJSON *spec = json_add_object(info, "spec");
    if (config->exec->provide_cluster_info)
        add_cluster(config, spec);
    json_add_bool(spec, "interactive", false);
    CLEANUP_FREE char *text = json_print(info);
    return xasprintf("KUBERNETES_EXEC_INFO=%s", text);
}

static int take_certificate(const cJSON *status, struct kube_plugin_answer *answer, struct error **err)
{
    const char *certificate = json_str(status, "clientCertificateData");
    const char *key = json_str(status, "clientKeyData");
    bool has_certificate = certificate && *certificate;
    bool has_key = key && *key;
    if (has_certificate != has_key)
        return error_set(err, ERROR_INVALID, "it gave a client certificate without its key, or the reverse");
    if (!has_certificate)
        return 0;
    int result = kube_pem_check(certificate, "CERTIFICATE", "its clientCertificateData", err);
    if (result == 0)
        result = kube_pem_check(key, "PRIVATE KEY", "its clientKeyData", err);
    if (result < 0)
        return result;
    answer->certificate_pem = xstrdup(certificate);
    answer->key_pem = xstrdup(key);
    return 0;
}

static int take_status(const cJSON *status, struct kube_plugin_answer *answer, struct error **err)
{
    const char *token = json_str(status, "token");
    if (token && *token) {
        if (str_has_control_character(token))
            return error_set(err, ERROR_INVALID, "its token has a control character in it");
        answer->token = xstrdup(token);
    }
    int result = take_certificate(status, answer, err);
    if (result < 0)
        return result;
    if (!answer->token && !answer->certificate_pem)
        return error_set(err, ERROR_INVALID, "it gave neither a token nor a client certificate");
    const cJSON *expires = json_get(status, "expirationTimestamp");
    if (!expires || cJSON_IsNull(expires))
        return 0;
    if (!cJSON_IsString(expires) || time_parse_rfc3339(expires->valuestring, &answer->expires_us, NULL) < 0)
        return error_set(err, ERROR_INVALID, "its expirationTimestamp is no RFC 3339 time");
    return 0;
}

int kube_plugin_parse(const struct kube_exec_plugin *plugin, const char *output, size_t length,
                      struct kube_plugin_answer *ret, struct error **err)
{
    CLEANUP_JSON cJSON *tree = NULL;
    if (json_parse(output, length, &tree, NULL) < 0 || !str_equal(json_str(tree, "kind"), "ExecCredential"))
        return error_set(err, ERROR_INVALID, "it printed no ExecCredential in JSON");
    if (!str_equal(json_str(tree, "apiVersion"), plugin->api_version))
        return error_set(err, ERROR_INVALID, "it answered with another apiVersion than %s",
                         plugin->api_version);
    struct kube_plugin_answer answer = {.expires_us = INT64_MAX};
    int result = take_status(json_get(tree, "status"), &answer, err);
    if (result < 0)
        kube_plugin_answer_done(&answer);
    else
        *ret = answer;
    return result;
}

/* Key material does not stay behind in freed memory. */
static void wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void kube_plugin_answer_done(struct kube_plugin_answer *answer)
{
    wipe(answer->token);
    wipe(answer->certificate_pem);
    wipe(answer->key_pem);
    *answer = (struct kube_plugin_answer){.expires_us = INT64_MAX};
}
