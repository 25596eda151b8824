/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/object.h"

#include "base/buf.h"
#include "base/hex.h"
#include "base/time_text.h"
#include "base/utf8.h"

#include <ctype.h>

enum { RAW_MAX = 64 << 20, FINALIZERS_MAX = 1 << 16 };

/* The code of a \uXXXX escape, or -1. */
static int escaped_code(const char *at, size_t left)
{
    if (left < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    int code = 0;
    for (int i = 2; i < 6; i++) {
        int value = hex_value(at[i]);
        if (value < 0)
            return -1;
        code = code << 4 | value;
    }
    return code;
}

static const char replacement[6] = {'\\', 'u', 'f', 'f', 'f', 'd'};

/* Writes U+FFFD over an escape that stands for no character. Returns how many bytes are done. */
static size_t tame_escape(char *at, size_t left)
{
    int code = escaped_code(at, left);
    bool high = code >= 0xD800 && code <= 0xDBFF;
    int low = high ? escaped_code(at + 6, left - 6) : -1;
    if (low >= 0xDC00 && low <= 0xDFFF)
        return 12;
    if (code == 0 || (code >= 0xD800 && code <= 0xDFFF))
        memcpy(at, replacement, sizeof(replacement));
    return 2;
}

/* From the opening quote; returns the place behind the closing one. */
static size_t tame_string(char *text, size_t length, size_t at)
{
    at++;
    while (at < length && text[at] != '"') {
        size_t sequence = utf8_sequence_length(text + at, length - at);
        if (sequence == 0)
            text[at] = '?';
        at += text[at] == '\\' ? tame_escape(text + at, length - at) : MAX(sequence, 1);
    }
    return at + 1;
}

/* Writes over what json_parse refuses and a server may hold; the length stays. */
static void tame(char *text, size_t length)
{
    int depth = 0;
    size_t too_deep = 0;
    for (size_t at = 0; at < length;) {
        char byte = text[at];
        if (byte == '"') {
            at = tame_string(text, length, at);
            continue;
        }
        if ((byte == '{' || byte == '[') && ++depth == JSON_DEPTH_MAX + 1)
            too_deep = at;
        at++;
        if ((byte == '}' || byte == ']') && depth-- == JSON_DEPTH_MAX + 1) {
            memset(text + too_deep, ' ', at - too_deep);
            text[too_deep] = '"';
            text[too_deep + 1] = '"';
        }
    }
}

static int parse(const char *text, size_t length, const struct json_omission *omission, cJSON **ret_tree,
                 struct error **err)
{
    return omission ? json_parse_without(text, length, omission, ret_tree, err)
                    : json_parse(text, length, ret_tree, err);
}

/* Servers hold what json_parse refuses; omission may be NULL. */
static int parse_or_tame(const char *text, size_t length, const struct json_omission *omission,
                         cJSON **ret_tree, struct error **err)
{
    if (parse(text, length, omission, ret_tree, NULL) == 0)
        return 0;
    CLEANUP_FREE char *tamed = xmemdup0(text, length);
    tame(tamed, length);
    return parse(tamed, length, omission, ret_tree, err);
}

int kube_object_parse(const char *text, size_t length, cJSON **ret_tree, struct error **err)
{
    return parse_or_tame(text, length, NULL, ret_tree, err);
}

int kube_object_parse_unmanaged(const char *text, size_t length, int depth, cJSON **ret_tree,
                                struct error **err)
{
    PRE(depth >= 1);
    const struct json_omission managed = {.parent = "metadata", .key = "managedFields", .depth = depth + 1};
    return parse_or_tame(text, length, &managed, ret_tree, err);
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

/* -1 when text is NULL or no time. */
static int64_t time_us(const char *text)
{
    int64_t at_us;
    return text && time_parse_rfc3339(text, &at_us, NULL) == 0 ? at_us : -1;
}

int64_t kube_object_created_us(const cJSON *object)
{
    return time_us(metadata_text(object, "creationTimestamp"));
}

int64_t kube_object_deleting_us(const cJSON *object)
{
    return time_us(metadata_text(object, "deletionTimestamp"));
}

const cJSON *kube_object_controller(const cJSON *object)
{
    const cJSON *owner;
    cJSON_ArrayForEach (owner, json_path(object, "metadata", "ownerReferences", NULL))
        if (json_bool_or(owner, "controller", false))
            return owner;
    return NULL;
}

const char *kube_object_controller_uid(const cJSON *object)
{
    return json_str(kube_object_controller(object), "uid");
}

bool kube_object_is_controlled_by(const cJSON *object, const char *uid)
{
    PRE(uid && *uid);
    return str_equal(kube_object_controller_uid(object), uid);
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

bool kube_object_condition_is_true(const cJSON *object, const char *type)
{
    return str_equal(json_str(kube_object_condition(object, type), "status"), "True");
}

int kube_version_compare(const char *a, const char *b)
{
    if (!a || !b || strspn(a, "0123456789") != strlen(a) || strspn(b, "0123456789") != strlen(b))
        return 0;
    a += strspn(a, "0");
    b += strspn(b, "0");
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length != b_length)
        return a_length < b_length ? -1 : 1;
    int order = strcmp(a, b);
    return (order > 0) - (order < 0);
}

char *kube_object_ref_text(enum kube_resource resource, const char *namespace, const char *name)
{
    PRE(name);
    const char *kind = kube_resource_info(resource)->kind;
    return namespace && *namespace ? xasprintf("%s/%s/%s", kind, namespace, name)
                                   : xasprintf("%s/%s", kind, name);
}

bool kube_object_has_finalizer(const cJSON *object, const char *name)
{
    const cJSON *finalizer = NULL;
    cJSON_ArrayForEach (finalizer, json_path(object, "metadata", "finalizers", NULL))
        if (cJSON_IsString(finalizer) && str_equal(finalizer->valuestring, name))
            return true;
    return false;
}

char *kube_object_finalizers_text(const cJSON *object)
{
    struct buf text = BUF_INIT(FINALIZERS_MAX);
    const cJSON *finalizer = NULL;
    cJSON_ArrayForEach (finalizer, json_path(object, "metadata", "finalizers", NULL))
        if (cJSON_IsString(finalizer))
            buf_addf(&text, "%s%s", text.length > 0 ? ", " : "", finalizer->valuestring);
    return buf_take(&text);
}

cJSON *kube_object_raw(const cJSON *tree)
{
    static const struct {
        const char *plain, *escaped;
    } spellings[] = {
        {"<", "\\u003c"},
        {">", "\\u003e"},
        {"&", "\\u0026"},
        {"\xe2\x80\xa8", "\\u2028"},
        {"\xe2\x80\xa9", "\\u2029"},
    };
    CLEANUP_FREE char *text = json_print_sorted(tree);
    CLEANUP_BUF struct buf spelt = BUF_INIT(RAW_MAX);
    for (const char *at = text; *at;) {
        size_t i = 0;
        while (i < ARRAY_SIZE(spellings) && !str_starts_with(at, spellings[i].plain))
            i++;
        bool special = i < ARRAY_SIZE(spellings);
        ENSURE((special ? buf_add_text(&spelt, spellings[i].escaped) : buf_add_char(&spelt, *at)) == 0);
        at += special ? strlen(spellings[i].plain) : 1;
    }
    return json_new_raw(buf_text(&spelt));
}

/* --- of damaged text ---------------------------------------------------------------------------------------
 */

/* The value of "member" in text, when it is a plain name; its length, 0: none. */
static size_t find_name(const char *text, size_t length, const char *member, const char **ret)
{
    enum { NAME_MAX_BYTES = 253 };
    const char *at = memmem(text, length, member, strlen(member));
    if (!at)
        return 0;
    const char *end = text + length;
    for (at += strlen(member); at < end && (isspace((unsigned char)*at) || *at == ':'); at++)
        ;
    if (at == end || *at++ != '"')
        return 0;
    size_t size = 0;
    while (at + size < end && (isalnum((unsigned char)at[size]) || strchr("-.:", at[size])) && at[size])
        size++;
    if (size == 0 || size > NAME_MAX_BYTES || at + size == end || at[size] != '"')
        return 0;
    *ret = at;
    return size;
}

char *kube_object_guess_name(const char *text, size_t length)
{
    /* Servers write name and namespace first in metadata; further on others' objects are named. */
    enum { LOOK_BYTES = 1024 };
    static const char metadata[] = "\"metadata\"";
    const char *begin = memmem(text, length, metadata, sizeof(metadata) - 1);
    if (!begin)
        return NULL;
    size_t left = MIN(length - (size_t)(begin - text), (size_t)LOOK_BYTES);
    const char *name = NULL, *namespace = NULL;
    size_t name_length = find_name(begin, left, "\"name\"", &name);
    size_t namespace_length = find_name(begin, left, "\"namespace\"", &namespace);
    if (name_length == 0)
        return NULL;
    return namespace_length > 0
               ? xasprintf("%.*s/%.*s", (int)namespace_length, namespace, (int)name_length, name)
               : xasprintf("%.*s", (int)name_length, name);
}

const cJSON *kube_object_find(const cJSON *items, const char *name)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, items)
        if (name && str_equal(kube_object_name(item), name))
            return item;
    return NULL;
}
