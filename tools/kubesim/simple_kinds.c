/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds with little of their own: events, secrets, services, leases. */
#include "kubesim/kinds.h"

static void event_defaults(struct call *call, cJSON *object)
{
    (void)call;
    if (!json_get(object, "eventTime"))
        json_add_item(object, "eventTime", cJSON_CreateNull());
}

static void event_validate(struct call *call, const cJSON *object, const cJSON *old, struct causes *causes)
{
    (void)call;
    (void)old;
    const char *namespace = json_path_str(object, "involvedObject", "namespace", NULL);
    if (namespace && *namespace && !str_equal(namespace, meta_str(object, "namespace")))
        causes_add_node(causes, CAUSE_INVALID, "involvedObject.namespace",
                        json_path(object, "involvedObject", "namespace", NULL),
                        "does not match event.namespace");
}

const struct kind_hooks event_hooks = {.set_defaults = event_defaults, .validate = event_validate};

/* stringData is only written: it ends up in data, in base64. */
static char *base64(const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *bytes = (const uint8_t *)text;
    size_t length = strlen(text);
    char *out = xcalloc(1, (length + 2) / 3 * 4 + 1);
    char *at = out;
    for (size_t i = 0; i < length; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16;
        group |= i + 1 < length ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= i + 2 < length ? (uint32_t)bytes[i + 2] : 0;
        *at++ = digits[group >> 18];
        *at++ = digits[(group >> 12) & 63];
        *at++ = i + 1 < length ? digits[(group >> 6) & 63] : '=';
        *at++ = i + 2 < length ? digits[group & 63] : '=';
    }
    return out;
}

static void secret_defaults(struct call *call, cJSON *object)
{
    (void)call;
    if (!json_get(object, "type"))
        json_set_str(object, "type", "Opaque");
    const cJSON *text;
    cJSON_ArrayForEach (text, json_get(object, "stringData")) {
        CLEANUP_FREE char *encoded = base64(cJSON_IsString(text) ? text->valuestring : "");
        json_set_str(json_ensure_object(object, "data"), text->string, encoded);
    }
    json_remove(object, "stringData");
}

static void secret_validate(struct call *call, const cJSON *object, const cJSON *old, struct causes *causes)
{
    (void)call;
    if (old && !json_equal(json_get(object, "type"), json_get(old, "type")))
        causes_add_node(causes, CAUSE_INVALID, "type", json_get(object, "type"), "field is immutable");
    if (old && json_bool_or(old, "immutable", false) &&
        !json_equal(json_get(object, "data"), json_get(old, "data")))
        causes_add(causes, CAUSE_FORBIDDEN, "data", NULL, "field is immutable when `immutable` is set");
}

const struct kind_hooks secret_hooks = {.set_defaults = secret_defaults, .validate = secret_validate};

static void service_defaults(struct call *call, cJSON *object)
{
    (void)call;
    cJSON *spec = json_ensure_object(object, "spec");
    if (!json_get(spec, "type"))
        json_set_str(spec, "type", "ClusterIP");
    if (!json_get(spec, "sessionAffinity"))
        json_set_str(spec, "sessionAffinity", "None");
    if (!json_get(spec, "internalTrafficPolicy"))
        json_set_str(spec, "internalTrafficPolicy", "Cluster");
    cJSON *port;
    cJSON_ArrayForEach (port, json_get(spec, "ports")) {
        if (!json_get(port, "protocol"))
            json_set_str(port, "protocol", "TCP");
        if (!json_get(port, "targetPort") && json_get(port, "port"))
            json_set_item(port, "targetPort", json_copy(json_get(port, "port")));
    }
}

/* The list beside the address, which the server keeps in step. */
static void mirror_address(cJSON *spec)
{
    const char *address = json_str(spec, "clusterIP");
    if (!address || json_get(spec, "clusterIPs"))
        return;
    json_append_str(json_add_array(spec, "clusterIPs"), address);
}

/* An address out of 10.96.0.0/12, never used twice in one run but by chance. */
static void service_prepare_create(struct call *call, cJSON *object)
{
    cJSON *spec = json_get(object, "spec");
    if (!json_get(spec, "ipFamilyPolicy"))
        json_set_str(spec, "ipFamilyPolicy", "SingleStack");
    if (!json_get(spec, "ipFamilies"))
        json_append_str(json_add_array(spec, "ipFamilies"), "IPv4");
    mirror_address(spec);
    if (json_get(spec, "clusterIP"))
        return;
    uint8_t bytes[3];
    call->sim->options.random(call->sim->options.context, bytes, sizeof(bytes));
    CLEANUP_FREE char *address = xasprintf("10.%d.%d.%d", 96 + bytes[0] % 16, bytes[1], 1 + bytes[2] % 254);
    json_set_str(spec, "clusterIP", address);
    mirror_address(spec);
}

static void service_prepare_update(struct call *call, cJSON *object, const cJSON *old)
{
    (void)call;
    if (!json_path(object, "spec", "clusterIP", NULL))
        tree_copy_member(json_get(object, "spec"), json_get(old, "spec"), "clusterIP");
    mirror_address(json_get(object, "spec"));
}

static void service_validate(struct call *call, const cJSON *object, const cJSON *old, struct causes *causes)
{
    (void)call;
    const cJSON *address = json_path(object, "spec", "clusterIP", NULL);
    bool headless = str_equal(json_path_str(object, "spec", "clusterIP", NULL), "None");
    if (!headless && cJSON_GetArraySize(json_path(object, "spec", "ports", NULL)) == 0 &&
        !str_equal(json_path_str(object, "spec", "type", NULL), "ExternalName"))
        causes_add(causes, CAUSE_REQUIRED, "spec.ports", NULL, "%s", "");
    if (old && !json_equal(address, json_path(old, "spec", "clusterIP", NULL)))
        causes_add_node(causes, CAUSE_INVALID, "spec.clusterIPs[0]", address, "may not change once set");
}

const struct kind_hooks service_hooks = {.set_defaults = service_defaults,
                                         .prepare_create = service_prepare_create,
                                         .prepare_update = service_prepare_update,
                                         .validate = service_validate};

static void lease_validate(struct call *call, const cJSON *object, const cJSON *old, struct causes *causes)
{
    (void)call;
    (void)old;
    const cJSON *duration = json_path(object, "spec", "leaseDurationSeconds", NULL);
    const cJSON *transitions = json_path(object, "spec", "leaseTransitions", NULL);
    int64_t number;
    if (json_node_int64(duration, &number) && number <= 0)
        causes_add_node(causes, CAUSE_INVALID, "spec.leaseDurationSeconds", duration,
                        "must be greater than 0");
    if (json_node_int64(transitions, &number) && number < 0)
        causes_add_node(causes, CAUSE_INVALID, "spec.leaseTransitions", transitions,
                        "must be greater than or equal to 0");
}

const struct kind_hooks lease_hooks = {.validate = lease_validate};
