/* SPDX-License-Identifier: Apache-2.0
 *
 * A pod spec as the server completes and checks it: of pods and of templates. */
#include "kubesim/decode.h"
#include "kubesim/kinds.h"

static void set_if_absent(cJSON *object, const char *key, const char *text)
{
    if (!json_get(object, key))
        json_add_str(object, key, text);
}

static void set_number_if_absent(cJSON *object, const char *key, int64_t number)
{
    if (!json_get(object, key))
        json_add_int64(object, key, number);
}

static void probe_defaults(cJSON *probe)
{
    if (!probe)
        return;
    set_number_if_absent(probe, "timeoutSeconds", 1);
    set_number_if_absent(probe, "periodSeconds", 10);
    set_number_if_absent(probe, "successThreshold", 1);
    set_number_if_absent(probe, "failureThreshold", 3);
    cJSON *http = json_get(probe, "httpGet");
    if (http) {
        set_if_absent(http, "path", "/");
        set_if_absent(http, "scheme", "HTTP");
    }
    if (json_get(probe, "grpc"))
        set_if_absent(json_get(probe, "grpc"), "service", "");
}

/* Always for no tag and for latest. */
static const char *pull_policy(const char *image)
{
    const char *slash = strrchr(image, '/');
    const char *name = slash ? slash + 1 : image;
    if (strchr(name, '@'))
        return "IfNotPresent";
    const char *colon = strchr(name, ':');
    return !colon || strcmp(colon, ":latest") == 0 ? "Always" : "IfNotPresent";
}

static void container_defaults(cJSON *container)
{
    set_if_absent(container, "terminationMessagePath", "/dev/termination-log");
    set_if_absent(container, "terminationMessagePolicy", "File");
    const char *image = json_str(container, "image");
    set_if_absent(container, "imagePullPolicy", pull_policy(image ? image : ""));
    json_ensure_object(container, "resources");
    cJSON *item;
    cJSON_ArrayForEach (item, json_get(container, "ports"))
        set_if_absent(item, "protocol", "TCP");
    cJSON_ArrayForEach (item, json_get(container, "env")) {
        cJSON *field = json_path(item, "valueFrom", "fieldRef", NULL);
        if (field)
            set_if_absent(field, "apiVersion", "v1");
    }
    probe_defaults(json_get(container, "readinessProbe"));
    probe_defaults(json_get(container, "livenessProbe"));
    probe_defaults(json_get(container, "startupProbe"));
}

static void volume_defaults(cJSON *volume)
{
    static const char *const modes[] = {"configMap", "secret", "projected", "downwardAPI"};
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
        if (json_get(volume, modes[i]))
            set_number_if_absent(json_get(volume, modes[i]), "defaultMode", 420);
    cJSON *item;
    cJSON_ArrayForEach (item, json_path(volume, "downwardAPI", "items", NULL))
        if (json_get(item, "fieldRef"))
            set_if_absent(json_get(item, "fieldRef"), "apiVersion", "v1");
    if (json_get(volume, "hostPath"))
        set_if_absent(json_get(volume, "hostPath"), "type", "");
}

void pod_spec_admit(cJSON *spec)
{
    set_number_if_absent(spec, "priority", 0);
    set_if_absent(spec, "preemptionPolicy", "PreemptLowerPriority");
    static const char *const taints[] = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"};
    if (!json_get(spec, "tolerations"))
        json_add_array(spec, "tolerations");
    cJSON *tolerations = json_get(spec, "tolerations");
    for (size_t i = 0; i < ARRAY_SIZE(taints); i++) {
        bool there = false;
        const cJSON *toleration;
        cJSON_ArrayForEach (toleration, tolerations) {
            const char *key = json_str(toleration, "key");
            there = there || !key || !*key || strcmp(key, taints[i]) == 0;
        }
        if (there)
            continue;
        cJSON *added = json_new_object();
        json_add_str(added, "key", taints[i]);
        json_add_str(added, "operator", "Exists");
        json_add_str(added, "effect", "NoExecute");
        json_add_int64(added, "tolerationSeconds", 300);
        json_append_item(tolerations, added);
    }
}

void pod_spec_set_defaults(cJSON *spec, bool template)
{
    cJSON *item;
    cJSON_ArrayForEach (item, json_get(spec, "volumes"))
        volume_defaults(item);
    cJSON_ArrayForEach (item, json_get(spec, "initContainers"))
        container_defaults(item);
    cJSON_ArrayForEach (item, json_get(spec, "containers"))
        container_defaults(item);
    set_if_absent(spec, "restartPolicy", "Always");
    set_number_if_absent(spec, "terminationGracePeriodSeconds", 30);
    set_if_absent(spec, "dnsPolicy", "ClusterFirst");
    json_ensure_object(spec, "securityContext");
    set_if_absent(spec, "schedulerName", "default-scheduler");
    const char *account = json_str(spec, "serviceAccountName");
    if (account)
        json_set_str(spec, "serviceAccount", account);
    else if (json_str(spec, "serviceAccount"))
        json_set_str(spec, "serviceAccountName", json_str(spec, "serviceAccount"));
    if (!template && !json_get(spec, "enableServiceLinks"))
        json_add_bool(spec, "enableServiceLinks", true);
}

/* --- validation
 * ----------------------------------------------------------------------------------------------- */

static void validate_image(const cJSON *container, const char *field, struct causes *causes)
{
    CLEANUP_FREE char *below = xasprintf("%s.image", field);
    const cJSON *node = json_get(container, "image");
    const char *image = json_str(container, "image");
    if (!image || !*image)
        causes_add(causes, CAUSE_REQUIRED, below, NULL, "%s", "");
    else if (strspn(image, " \t\n\r") > 0 || strchr(" \t\n\r", image[strlen(image) - 1]))
        causes_add_node(causes, CAUSE_INVALID, below, node, "must not have leading or trailing whitespace");
}

static void validate_containers(const cJSON *list, const char *field, bool image_needed,
                                struct causes *causes)
{
    int index = 0;
    for (const cJSON *container = list ? list->child : NULL; container;
         container = container->next, index++) {
        CLEANUP_FREE char *at = xasprintf("%s[%d]", field, index);
        CLEANUP_FREE char *name_field = xasprintf("%s.name", at);
        const cJSON *name = json_get(container, "name");
        if (!cJSON_IsString(name) || !*name->valuestring)
            causes_add(causes, CAUSE_REQUIRED, name_field, NULL, "%s", "");
        for (const cJSON *earlier = list->child; name && earlier != container; earlier = earlier->next)
            if (json_equal(json_get(earlier, "name"), name))
                causes_add_node(causes, CAUSE_DUPLICATE, name_field, name, "%s", "");
        if (image_needed)
            validate_image(container, at, causes);
    }
}

static void validate_volumes(const cJSON *list, const char *field, struct causes *causes)
{
    int index = 0;
    const cJSON *volume = NULL;
    cJSON_ArrayForEach (volume, list) {
        CLEANUP_FREE char *at = xasprintf("%s.volumes[%d].name", field, index++);
        const char *name = json_str(volume, "name");
        if (name && *name)
            dns_name_validate(name, false, at, causes);
        else
            causes_add(causes, CAUSE_REQUIRED, at, NULL, "%s", "");
    }
}

static void validate_mounts(const cJSON *spec, const cJSON *list, const char *field, struct causes *causes)
{
    int container_index = 0;
    const cJSON *container;
    cJSON_ArrayForEach (container, list) {
        int index = 0;
        const cJSON *mount;
        cJSON_ArrayForEach (mount, json_get(container, "volumeMounts")) {
            bool found = false;
            const cJSON *volume;
            cJSON_ArrayForEach (volume, json_get(spec, "volumes"))
                found = found || str_equal(json_str(volume, "name"), json_str(mount, "name"));
            CLEANUP_FREE char *at =
                xasprintf("%s[%d].volumeMounts[%d].name", field, container_index, index++);
            if (!found)
                causes_add_node(causes, CAUSE_NOT_FOUND, at, json_get(mount, "name"), "%s", "");
        }
        container_index++;
    }
}

static void validate_word(const cJSON *spec, const char *field, const char *key, const char *const *words,
                          struct causes *causes)
{
    const char *value = json_str(spec, key);
    CLEANUP_BUF struct buf list = BUF_INIT(1024);
    for (; *words; words++) {
        if (str_equal(value, *words))
            return;
        buf_addf(&list, "%s\"%s\"", list.length ? ", " : "", *words);
    }
    CLEANUP_FREE char *at = xasprintf("%s.%s", field, key);
    causes_add_node(causes, CAUSE_NOT_SUPPORTED, at, json_get(spec, key), "supported values: %s",
                    buf_text(&list));
}

void pod_spec_validate(const cJSON *spec, const char *field, struct causes *causes)
{
    static const char *const restart[] = {"Always", "OnFailure", "Never", NULL};
    static const char *const dns[] = {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None", NULL};
    CLEANUP_FREE char *containers = xasprintf("%s.containers", field);
    CLEANUP_FREE char *init = xasprintf("%s.initContainers", field);
    validate_volumes(json_get(spec, "volumes"), field, causes);
    if (cJSON_GetArraySize(json_get(spec, "containers")) == 0)
        causes_add(causes, CAUSE_REQUIRED, containers, NULL, "%s", "");
    validate_containers(json_get(spec, "containers"), containers, true, causes);
    validate_containers(json_get(spec, "initContainers"), init, true, causes);
    validate_mounts(spec, json_get(spec, "containers"), containers, causes);
    validate_mounts(spec, json_get(spec, "initContainers"), init, causes);
    validate_word(spec, field, "restartPolicy", restart, causes);
    validate_word(spec, field, "dnsPolicy", dns, causes);
}
