/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/object.h"

#include "base/time_text.h"

/* Writes U+FFFD over each \u0000 escape (a backslash that is not itself escaped). */
static void replace_nul_escapes(char *text, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++) {
        if (text[i] != '\\')
            continue;
        if (length - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0)
            memcpy(text + i, "\\ufffd", 6);
        i++;
    }
}

int kube_object_parse(const char *text, size_t length, cJSON **ret_tree, struct error **err)
{
    if (memmem(text, length, "\\u0000", 6) == NULL)
        return json_parse(text, length, ret_tree, err);
    CLEANUP_FREE char *copy = xmemdup0(text, length);
    replace_nul_escapes(copy, length);
    return json_parse(copy, length, ret_tree, err);
}

static const char *text_or_null(const char *text)
{
    return text && *text ? text : NULL;
}

static const char *metadata_text(const cJSON *object, const char *key)
{
    return text_or_null(json_path_str(object, "metadata", key, NULL));
}

const char *kube_object_name(const cJSON *object)
{
    return metadata_text(object, "name");
}

const char *kube_object_namespace(const cJSON *object)
{
    return metadata_text(object, "namespace");
}

const char *kube_object_uid(const cJSON *object)
{
    return metadata_text(object, "uid");
}

const char *kube_object_version(const cJSON *object)
{
    return metadata_text(object, "resourceVersion");
}

const char *kube_object_label(const cJSON *object, const char *key)
{
    return text_or_null(json_path_str(object, "metadata", "labels", key, NULL));
}

const char *kube_object_annotation(const cJSON *object, const char *key)
{
    return text_or_null(json_path_str(object, "metadata", "annotations", key, NULL));
}

int64_t kube_object_generation(const cJSON *object)
{
    return json_int64_or(json_get(object, "metadata"), "generation", 0);
}

bool kube_object_is_deleting(const cJSON *object)
{
    return metadata_text(object, "deletionTimestamp") != NULL;
}

bool kube_object_has_finalizer(const cJSON *object, const char *finalizer)
{
    const cJSON *element;
    cJSON_ArrayForEach (element, json_path(object, "metadata", "finalizers", NULL))
        if (cJSON_IsString(element) && strcmp(element->valuestring, finalizer) == 0)
            return true;
    return false;
}

int64_t kube_object_created_us(const cJSON *object)
{
    return kube_time_us(metadata_text(object, "creationTimestamp"));
}

int64_t kube_object_deleting_us(const cJSON *object)
{
    return kube_time_us(metadata_text(object, "deletionTimestamp"));
}

const cJSON *kube_object_controller(const cJSON *object)
{
    const cJSON *owner;
    cJSON_ArrayForEach (owner, json_path(object, "metadata", "ownerReferences", NULL))
        if (json_bool_or(owner, "controller", false))
            return owner;
    return NULL;
}

bool kube_object_is_controlled_by(const cJSON *object, const char *uid)
{
    PRE(uid && *uid);
    return str_equal(json_str(kube_object_controller(object), "uid"), uid);
}

bool kube_object_is_owned_by(const cJSON *object, const char *uid)
{
    PRE(uid && *uid);
    const cJSON *owner;
    cJSON_ArrayForEach (owner, json_path(object, "metadata", "ownerReferences", NULL))
        if (str_equal(json_str(owner, "uid"), uid))
            return true;
    return false;
}

const cJSON *kube_object_condition(const cJSON *object, const char *type)
{
    const cJSON *condition;
    cJSON_ArrayForEach (condition, json_path(object, "status", "conditions", NULL))
        if (str_equal(json_str(condition, "type"), type))
            return condition;
    return NULL;
}

const char *kube_object_condition_status(const cJSON *object, const char *type)
{
    return json_str(kube_object_condition(object, type), "status");
}

bool kube_object_condition_is_true(const cJSON *object, const char *type)
{
    return str_equal(kube_object_condition_status(object, type), "True");
}

const cJSON *kube_named_element(const cJSON *array, const char *name)
{
    const cJSON *element;
    cJSON_ArrayForEach (element, array)
        if (str_equal(json_str(element, "name"), name))
            return element;
    return NULL;
}

int64_t kube_time_us(const char *text)
{
    int64_t at_us;
    return text && time_parse_rfc3339(text, &at_us, NULL) == 0 ? at_us : -1;
}

char *kube_object_ref_text(enum kube_resource resource, const char *namespace, const char *name)
{
    PRE(name);
    const char *kind = kube_resource_info(resource)->kind;
    return namespace && *namespace ? xasprintf("%s/%s/%s", kind, namespace, name)
                                   : xasprintf("%s/%s", kind, name);
}
