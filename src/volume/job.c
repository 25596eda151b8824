/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/job.h"
#include "base/sha256.h"
#include "volume/declared.h"
#include "volume/script.h"

#include <ctype.h>

enum {
    HASH_DIGITS = 10,
    LABEL_MAX = 63,            /* of a label's value, which the names become */
    SUBDOMAIN_MAX = 253,       /* of a Secret's name */
    DECLARED_MAX = 120 * 1024, /* bytes: the kernel takes an environment variable of 128 KiB */
    USER = 65532,              /* nobody's: no right but to run */
    TRIES = 6,                 /* the server's own default of backoffLimit, said */
};

/* --- names ---------------------------------------------------------------------------------------------- */

/* A DNS label, or with dots a subdomain: small letters, digits, dashes; no dash at an end. */
static bool is_name(const char *text, bool with_dots, size_t max)
{
    size_t length = strlen(text);
    if (length == 0 || length > max)
        return false;
    for (size_t i = 0; i < length; i++) {
        bool is_letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9');
        bool is_inside = i > 0 && i + 1 < length;
        if (!is_letter && !(is_inside && (text[i] == '-' || (with_dots && text[i] == '.'))))
            return false;
    }
    return true;
}

/* What a label's value, or its name behind the slash, may be: letters, digits, and inside of them -_. */
static bool is_label_word(const char *text)
{
    size_t length = strlen(text);
    if (length > LABEL_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        bool is_inside = i > 0 && i + 1 < length;
        if (!isalnum((unsigned char)text[i]) && !(is_inside && strchr("-_.", text[i])))
            return false;
    }
    return true;
}

static bool is_label_name(const char *text)
{
    const char *slash = strchr(text, '/');
    CLEANUP_FREE char *prefix = xstrndup(text, slash ? (size_t)(slash - text) : 0);
    const char *word = slash ? slash + 1 : text;
    return *word && is_label_word(word) && (!slash || is_name(prefix, true, SUBDOMAIN_MAX));
}

static int check_labels(const cJSON *labels, struct error **err)
{
    const cJSON *label = NULL;
    cJSON_ArrayForEach (label, labels) {
        if (!is_label_name(label->string) || !cJSON_IsString(label) || !is_label_word(label->valuestring))
            return error_set(
                err, ERROR_USAGE,
                "--label %.80s=%.80s cannot be a label: letters, digits and -_. inside of them, at "
                "most %d, the name perhaps behind a domain and a slash",
                label->string, cJSON_IsString(label) ? label->valuestring : "", LABEL_MAX);
        if (str_equal(label->string, VOLUME_JOB_LABEL))
            return error_set(err, ERROR_USAGE, "--label %s is the Job's own: leave it out", VOLUME_JOB_LABEL);
    }
    return 0;
}

static int check(const struct volume_job *job, const char *base, struct error **err)
{
    const cJSON *secret = NULL, *set = NULL;
    if (!job->namespace || !is_name(job->namespace, false, LABEL_MAX))
        return error_set(err, ERROR_INVALID, "%.80s cannot be a namespace's name",
                         job->namespace && *job->namespace ? job->namespace : "an empty name");
    if (!is_name(base, false, LABEL_MAX - HASH_DIGITS - 1))
        return error_set(
            err, ERROR_USAGE,
            "--unit %.80s cannot be a part of names: small letters, digits and dashes, at most %zu",
            job->unit, LABEL_MAX - HASH_DIGITS - 2 - strlen(VOLUME_JOB_NAME));
    if (job->image && (!*job->image || strpbrk(job->image, " \t\r\n")))
        return error_set(err, ERROR_USAGE, "--image \"%.80s\" cannot be an image", job->image);
    cJSON_ArrayForEach (secret, job->secrets)
        if (!cJSON_IsString(secret) || !is_name(secret->valuestring, true, SUBDOMAIN_MAX))
            return error_set(err, ERROR_USAGE, "--pull-secret %.80s cannot be the name of a Secret",
                             cJSON_IsString(secret) ? secret->valuestring : "");
    cJSON_ArrayForEach (set, job->declared)
        if (!is_name(json_str(set, "name"), true, SUBDOMAIN_MAX))
            return error_set(err, ERROR_INVALID, "%.80s cannot be the name of a StatefulSet",
                             json_str(set, "name"));
    return check_labels(job->labels, err);
}

/* --- pieces --------------------------------------------------------------------------------------------- */

static void add_strings(cJSON *object, const char *key, const char *const *texts, size_t count)
{
    cJSON *array = json_add_array(object, key);
    for (size_t i = 0; i < count; i++)
        json_append_str(array, texts[i]);
}
#define ADD_STRINGS(object, key, ...)                                                                        \
    add_strings(object, key, (const char *const[]){__VA_ARGS__},                                             \
                ARRAY_SIZE(((const char *const[]){__VA_ARGS__})))

static cJSON *append_object(cJSON *array)
{
    cJSON *object = json_new_object();
    json_append_item(array, object);
    return object;
}

/* An object with its metadata, appended to array; the Job's own label goes onto it where is_job. */
static cJSON *add_object(cJSON *array, const struct volume_job *job, const char *version, const char *kind,
                         const char *name, const char *own_label)
{
    cJSON *object = append_object(array);
    json_add_str(object, "apiVersion", version);
    json_add_str(object, "kind", kind);
    cJSON *metadata = json_add_object(object, "metadata");
    json_add_str(metadata, "name", name);
    json_add_str(metadata, "namespace", job->namespace);
    if (!own_label && cJSON_GetArraySize(job->labels) == 0)
        return object;
    cJSON *labels = json_add_object(metadata, "labels");
    if (own_label)
        json_add_str(labels, VOLUME_JOB_LABEL, own_label);
    const cJSON *label = NULL;
    cJSON_ArrayForEach (label, job->labels)
        json_add_str(labels, label->string, label->valuestring);
    return object;
}

static void add_account(cJSON *array, const struct volume_job *job, const char *base)
{
    cJSON *account = add_object(array, job, "v1", "ServiceAccount", base, NULL);
    if (cJSON_GetArraySize(job->secrets) == 0)
        return;
    cJSON *secrets = json_add_array(account, "imagePullSecrets");
    const cJSON *secret = NULL;
    cJSON_ArrayForEach (secret, job->secrets)
        json_add_str(append_object(secrets), "name", secret->valuestring);
}

/* Exactly what the script asks for. A list cannot be bound to names, and whose claims there will be is not
 * known beforehand. */
static void add_role(cJSON *array, const struct volume_job *job, const char *base)
{
    cJSON *rules =
        json_add_array(add_object(array, job, "rbac.authorization.k8s.io/v1", "Role", base, NULL), "rules");
    cJSON *sets = append_object(rules);
    ADD_STRINGS(sets, "apiGroups", "apps");
    ADD_STRINGS(sets, "resources", "statefulsets");
    cJSON *names = json_add_array(sets, "resourceNames");
    const cJSON *set = NULL;
    cJSON_ArrayForEach (set, job->declared)
        json_append_str(names, json_str(set, "name"));
    ADD_STRINGS(sets, "verbs", "get", "delete");
    cJSON *claims = append_object(rules);
    ADD_STRINGS(claims, "apiGroups", "");
    ADD_STRINGS(claims, "resources", "persistentvolumeclaims");
    ADD_STRINGS(claims, "verbs", "get", "list", "patch");
}

static void add_binding(cJSON *array, const struct volume_job *job, const char *base)
{
    cJSON *binding = add_object(array, job, "rbac.authorization.k8s.io/v1", "RoleBinding", base, NULL);
    cJSON *role = json_add_object(binding, "roleRef");
    json_add_str(role, "apiGroup", "rbac.authorization.k8s.io");
    json_add_str(role, "kind", "Role");
    json_add_str(role, "name", base);
    cJSON *subject = append_object(json_add_array(binding, "subjects"));
    json_add_str(subject, "kind", "ServiceAccount");
    json_add_str(subject, "name", base);
    json_add_str(subject, "namespace", job->namespace);
}

static void add_port(cJSON *ports, const char *protocol, int port)
{
    cJSON *item = append_object(ports);
    json_add_str(item, "protocol", protocol);
    json_add_int64(item, "port", port);
}

/* Any address on the ports of DNS and of the API server: policies are judged behind the translation of a
 * Service's address, and which address that is differs from cluster to cluster. */
static void add_policy(cJSON *array, const struct volume_job *job, const char *base)
{
    cJSON *spec =
        json_add_object(add_object(array, job, "networking.k8s.io/v1", "NetworkPolicy", base, NULL), "spec");
    cJSON *selector = json_add_object(json_add_object(spec, "podSelector"), "matchLabels");
    json_add_str(selector, VOLUME_JOB_LABEL, base);
    ADD_STRINGS(spec, "policyTypes", "Egress");
    cJSON *egress = json_add_array(spec, "egress");
    cJSON *dns = json_add_array(append_object(egress), "ports");
    add_port(dns, "UDP", 53);
    add_port(dns, "TCP", 53);
    cJSON *server = json_add_array(append_object(egress), "ports");
    add_port(server, "TCP", 443);
    add_port(server, "TCP", 6443);
}

/* --- the Job -------------------------------------------------------------------------------------------- */

static void add_variable(cJSON *variables, const char *name, const char *value)
{
    cJSON *variable = append_object(variables);
    json_add_str(variable, "name", name);
    json_add_str(variable, "value", value);
}

static void add_container(cJSON *pod, const struct volume_job *job, const char *declared)
{
    cJSON *container = append_object(json_add_array(pod, "containers"));
    json_add_str(container, "name", VOLUME_JOB_CONTAINER);
    json_add_str(container, "image", job->image ? job->image : VOLUME_JOB_IMAGE);
    ADD_STRINGS(container, "command", "sh", "-c", volume_script_text());
    cJSON *variables = json_add_array(container, "env");
    add_variable(variables, "HOME", "/tmp"); /* kubectl keeps what it learnt of the server there */
    add_variable(variables, "RESIZE_NAMESPACE", job->namespace);
    add_variable(variables, "RESIZE_DECLARED", declared);
    cJSON *security = json_add_object(container, "securityContext");
    json_add_bool(security, "allowPrivilegeEscalation", false);
    json_add_bool(security, "readOnlyRootFilesystem", true);
    ADD_STRINGS(json_add_object(security, "capabilities"), "drop", "ALL");
    cJSON *mount = append_object(json_add_array(container, "volumeMounts"));
    json_add_str(mount, "name", "tmp");
    json_add_str(mount, "mountPath", "/tmp");
}

static cJSON *make_pod(const struct volume_job *job, const char *base, const char *declared)
{
    cJSON *pod = json_new_object();
    json_add_str(pod, "serviceAccountName", base);
    json_add_str(pod, "restartPolicy", "Never"); /* a podFailurePolicy demands it */
    cJSON *security = json_add_object(pod, "securityContext");
    json_add_bool(security, "runAsNonRoot", true);
    json_add_int64(security, "runAsUser", USER);
    json_add_int64(security, "runAsGroup", USER);
    json_add_str(json_add_object(security, "seccompProfile"), "type", "RuntimeDefault");
    add_container(pod, job, declared);
    cJSON *volume = append_object(json_add_array(pod, "volumes"));
    json_add_str(volume, "name", "tmp");
    json_add_object(volume, "emptyDir");
    return pod;
}

/* The first digits of the hash of the pod spec, keys sorted; the caller's. */
static char *hash_of(const cJSON *pod)
{
    CLEANUP_FREE char *text = json_print_sorted(pod);
    uint8_t digest[SHA256_SIZE];
    sha256_once(text, strlen(text), digest);
    return hex_encode(digest, HASH_DIGITS / 2);
}

/* A refusal (2) ends it for good; a drained node is no failure of its own. */
static void add_failure_policy(cJSON *spec)
{
    cJSON *rules = json_add_array(json_add_object(spec, "podFailurePolicy"), "rules");
    cJSON *refused = append_object(rules);
    json_add_str(refused, "action", "FailJob");
    cJSON *codes = json_add_object(refused, "onExitCodes");
    json_add_str(codes, "containerName", VOLUME_JOB_CONTAINER);
    json_add_str(codes, "operator", "In");
    json_append_int64(json_add_array(codes, "values"), 2);
    cJSON *disrupted = append_object(rules);
    json_add_str(disrupted, "action", "Ignore");
    cJSON *condition = append_object(json_add_array(disrupted, "onPodConditions"));
    json_add_str(condition, "type", "DisruptionTarget");
    json_add_str(condition, "status", "True");
}

static void add_job(cJSON *array, const struct volume_job *job, const char *base, const char *declared)
{
    cJSON *pod = make_pod(job, base, declared);
    CLEANUP_FREE char *hash = hash_of(pod);
    CLEANUP_FREE char *name = xasprintf("%s-%s", base, hash);
    cJSON *spec = json_add_object(add_object(array, job, "batch/v1", "Job", name, base), "spec");
    json_add_int64(spec, "backoffLimit", TRIES);
    add_failure_policy(spec);
    cJSON *template = json_add_object(spec, "template");
    cJSON *labels = json_add_object(json_add_object(template, "metadata"), "labels");
    json_add_str(labels, VOLUME_JOB_LABEL, base);
    json_add_item(template, "spec", pod);
}

int volume_job_build(const struct volume_job *job, cJSON **ret, struct error **err)
{
    PRE(cJSON_GetArraySize(job->declared) > 0);
    bool is_default = !job->unit || !*job->unit || str_equal(job->unit, "base");
    CLEANUP_FREE char *base =
        is_default ? xstrdup(VOLUME_JOB_NAME) : xasprintf("%s-%s", VOLUME_JOB_NAME, job->unit);
    CLEANUP_FREE char *declared = volume_declared_text(job->declared);
    int r = check(job, base, err);
    if (r < 0)
        return r;
    if (strlen(declared) > DECLARED_MAX)
        return error_set(
            err, ERROR_TOO_LARGE,
            "%d StatefulSets are too many for one Job: give them to several, each with a --unit of "
            "its own",
            cJSON_GetArraySize(job->declared));
    cJSON *objects = json_new_array();
    add_account(objects, job, base);
    add_role(objects, job, base);
    add_binding(objects, job, base);
    add_policy(objects, job, base);
    add_job(objects, job, base, declared);
    *ret = objects;
    return 0;
}
