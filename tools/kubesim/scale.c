/* SPDX-License-Identifier: Apache-2.0
 *
 * The scale subresource: an autoscaling/v1 Scale in front of a number somewhere in the object. */
#include "kubesim/decode.h"
#include "kubesim/jsonpath.h"
#include "kubesim/patch.h"

static int64_t number_at(const cJSON *object, const char *path, int64_t fallback)
{
    int64_t number;
    return json_node_int64(jsonpath_find(object, path), &number) ? number : fallback;
}

/* A LabelSelector as text; only matchLabels and Exists need spelling for what we scale. */
static char *selector_text(const cJSON *selector)
{
    CLEANUP_BUF struct buf text = BUF_INIT(16 * 1024);
    const cJSON *label;
    cJSON_ArrayForEach (label, json_get(selector, "matchLabels"))
        buf_addf(&text, "%s%s=%s", text.length ? "," : "", label->string, label->valuestring);
    return buf_take(&text);
}

static cJSON *scale_of(const struct kind *kind, const cJSON *object)
{
    bool custom = kind->flags & KIND_CUSTOM;
    static const char *const copied[] = {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"};
    cJSON *scale = json_new_object();
    json_add_str(scale, "kind", "Scale");
    json_add_str(scale, "apiVersion", "autoscaling/v1");
    cJSON *meta = json_add_object(scale, "metadata");
    for (size_t i = 0; i < ARRAY_SIZE(copied); i++)
        tree_copy_member(meta, json_get(object, "metadata"), copied[i]);
    cJSON *spec = json_add_object(scale, "spec");
    int64_t replicas = number_at(object, custom ? kind->scale_spec_path : ".spec.replicas", 0);
    if (replicas)
        json_add_int64(spec, "replicas", replicas);
    cJSON *status = json_add_object(scale, "status");
    json_add_int64(status, "replicas",
                   number_at(object, custom ? kind->scale_status_path : ".status.replicas", 0));
    const cJSON *selector =
        kind->scale_selector_path ? jsonpath_find(object, kind->scale_selector_path) : NULL;
    if (cJSON_IsString(selector)) {
        json_add_str(status, "selector", selector->valuestring);
    } else if (!custom) {
        CLEANUP_FREE char *text = selector_text(json_path(object, "spec", "selector", NULL));
        json_add_str(status, "selector", text);
    }
    return scale;
}

int scale_get(struct call *call)
{
    struct object *object = store_find(call->kind, call->namespace, call->name);
    if (!object)
        return refuse_not_found(call, call->kind, call->name);
    answer_tree(call, 200, scale_of(call->kind, object_tree(object)));
    return 0;
}

/* Changes the number at a path of members. */
static void set_number_at(cJSON *object, const char *path, int64_t number)
{
    cJSON *node = object;
    for (const char *at = path + (*path == '.'); *at;) {
        size_t length = strcspn(at, ".");
        CLEANUP_FREE char *key = xstrndup(at, length);
        at += length + (at[length] == '.');
        if (*at)
            node = json_ensure_object(node, key);
        else
            json_set_item(node, key, json_new_int64(number));
    }
}

/* The Scale that the request asks for, in *ret. */
static int wanted_scale(struct call *call, const cJSON *object, cJSON **ret)
{
    if (decode_body(call) < 0)
        return -1;
    if (call->verb == VERB_UPDATE) {
        *ret = json_copy(call->body);
        return 0;
    }
    const char *type = call->request->content_type ? call->request->content_type : "";
    CLEANUP_JSON cJSON *scale = scale_of(call->kind, object);
    CLEANUP_ERROR struct error *err = NULL;
    if (strstr(type, "application/json-patch+json")) {
        if (patch_json(&scale, call->body, &err) < 0)
            return refuse(call, 422, "Invalid",
                          "the server rejected our request due to an error in our request");
    } else if (strstr(type, "merge-patch+json") && cJSON_IsObject(call->body)) {
        patch_merge(scale, call->body);
    } else {
        return refuse_not_modelled(call, "a scale patch of the type %s", type);
    }
    *ret = STEAL(scale);
    return 0;
}

/* Of a custom kind a negative number is the object's own validation to refuse; the uid is never looked at. */
static int check_scale(struct call *call, const cJSON *scale, int64_t *ret_replicas)
{
    const cJSON *replicas = json_path(scale, "spec", "replicas", NULL);
    *ret_replicas = 0;
    if (!cJSON_IsObject(scale) || (replicas && !json_node_int64(replicas, ret_replicas)))
        return refuse_bad_request(
            call, "Scale in version \"v1\" cannot be handled as a Scale: spec.replicas must be an "
                  "integer");
    CLEANUP_CAUSES struct causes causes = {0};
    const struct kind scale_kind = {.group = (char *)"autoscaling", .name = (char *)"Scale"};
    if (*ret_replicas < 0 && !(call->kind->flags & KIND_CUSTOM))
        causes_add_node(&causes, CAUSE_INVALID, "spec.replicas", replicas,
                        "must be greater than or equal to 0");
    return refuse_invalid(call, &scale_kind, call->name, &causes);
}

int scale_write(struct call *call)
{
    struct object *object = store_find(call->kind, call->namespace, call->name);
    if (!object)
        return refuse_not_found(call, call->kind, call->name);
    CLEANUP_JSON cJSON *scale = NULL;
    int64_t replicas;
    if (wanted_scale(call, object_tree(object), &scale) < 0 || check_scale(call, scale, &replicas) < 0)
        return -1;
    cJSON *changed = json_copy(object_tree(object));
    const char *path = call->kind->flags & KIND_CUSTOM ? call->kind->scale_spec_path : ".spec.replicas";
    set_number_at(changed, path, replicas);
    const char *wanted_version = meta_str(scale, "resourceVersion");
    if (wanted_version && *wanted_version)
        json_set_str(meta_of(changed), "resourceVersion", wanted_version);
    struct version *version = NULL;
    if (update_object(call, call->kind, object, changed, &version) < 0)
        return -1;
    answer_tree(call, 200, scale_of(call->kind, version_tree(version)));
    version_unref(version);
    return 0;
}
