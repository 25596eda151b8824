/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/json_memory.h"
#include "base/json_read.h"
#include "base/json_write.h"

#include <errno.h>
#include <limits.h>
#include <math.h>

int json_parse(const char *text, size_t length, cJSON **ret_tree, struct error **err)
{
    return json_read(text, length, NULL, ret_tree, err);
}

int json_parse_without(const char *text, size_t length, const struct json_omission *omission,
                       cJSON **ret_tree, struct error **err)
{
    PRE(omission && omission->parent && omission->key && omission->depth > 0);
    return json_read(text, length, omission, ret_tree, err);
}

int json_parse_part(const char *text, size_t length, const char *const *path,
                    const struct json_omission *omission, cJSON **ret_tree, struct error **err)
{
    PRE(path && path[0]);
    return json_read_part(text, length, path, omission, ret_tree, err);
}

static char *print(const cJSON *tree, bool sorted)
{
    PRE(tree);
    struct buf text = BUF_INIT(INT_MAX);
    json_write(&text, tree, sorted);
    return buf_take(&text);
}

char *json_print(const cJSON *tree)
{
    return print(tree, false);
}

char *json_print_sorted(const cJSON *tree)
{
    return print(tree, true);
}

char *json_print_members(const cJSON *object, const char *const *keys, size_t count)
{
    struct buf text = BUF_INIT(INT_MAX);
    json_write_members(&text, object, keys, count);
    return buf_take(&text);
}

cJSON *json_get(const cJSON *object, const char *key)
{
    /* The most frequent of all questions: cJSON's own look-up calls a comparison for each member. */
    for (cJSON *node = key && cJSON_IsObject(object) ? object->child : NULL; node; node = node->next)
        if (node->string[0] == key[0] && strcmp(node->string, key) == 0)
            return node;
    return NULL;
}

static cJSON *walk(const cJSON *object, va_list keys)
{
    cJSON *node = (cJSON *)object;
    for (const char *key = va_arg(keys, const char *); key && node; key = va_arg(keys, const char *))
        node = json_get(node, key);
    return node;
}

cJSON *json_path(const cJSON *object, ...)
{
    va_list keys;
    va_start(keys, object);
    cJSON *node = walk(object, keys);
    va_end(keys);
    return node;
}

const char *json_path_str(const cJSON *object, ...)
{
    va_list keys;
    va_start(keys, object);
    cJSON *node = walk(object, keys);
    va_end(keys);
    return cJSON_IsString(node) ? node->valuestring : NULL;
}

const char *json_str(const cJSON *object, const char *key)
{
    cJSON *node = json_get(object, key);
    return cJSON_IsString(node) ? node->valuestring : NULL;
}

bool json_node_int64(const cJSON *node, int64_t *ret)
{
    if (cJSON_IsRaw(node)) {
        char *end;
        errno = 0;
        long long number = strtoll(node->valuestring, &end, 10);
        if (errno || *end || end == node->valuestring)
            return false;
        *ret = number;
        return true;
    }
    if (!cJSON_IsNumber(node) || fabs(node->valuedouble) > (double)JSON_EXACT_MAX ||
        node->valuedouble != floor(node->valuedouble))
        return false;
    *ret = (int64_t)node->valuedouble;
    return true;
}

bool json_int64(const cJSON *object, const char *key, int64_t *ret)
{
    return json_node_int64(json_get(object, key), ret);
}

int64_t json_int64_or(const cJSON *object, const char *key, int64_t fallback)
{
    int64_t number;
    return json_int64(object, key, &number) ? number : fallback;
}

bool json_bool_or(const cJSON *object, const char *key, bool fallback)
{
    cJSON *node = json_get(object, key);
    return cJSON_IsBool(node) ? cJSON_IsTrue(node) : fallback;
}

static cJSON *or_die(cJSON *node)
{
    ENSURE(node);
    return node;
}

cJSON *json_new_object(void)
{
    return or_die(cJSON_CreateObject());
}

cJSON *json_new_array(void)
{
    return or_die(cJSON_CreateArray());
}

cJSON *json_new_str(const char *text)
{
    PRE(text);
    return or_die(cJSON_CreateString(text));
}

cJSON *json_new_int64(int64_t number)
{
    if (number >= -JSON_EXACT_MAX && number <= JSON_EXACT_MAX)
        return or_die(cJSON_CreateNumber((double)number));
    CLEANUP_FREE char *text = xasprintf("%lld", (long long)number);
    return or_die(cJSON_CreateRaw(text));
}

cJSON *json_new_raw(const char *text)
{
    return or_die(cJSON_CreateRaw(text));
}

/* Trees are no deeper than JSON_DEPTH_MAX allows texts to be. */
static cJSON *copy_node(struct json_memory *memory, const cJSON *from)
{
    size_t key_size = from->string ? strlen(from->string) + 1 : 0;
    size_t text_size = from->valuestring ? strlen(from->valuestring) + 1 : 0;
    cJSON *node = json_memory_take_node(memory, from->type & 0xFF, key_size, text_size);
    node->valueint = from->valueint;
    node->valuedouble = from->valuedouble;
    if (key_size)
        memcpy(node->string, from->string, key_size);
    if (text_size)
        memcpy(node->valuestring, from->valuestring, text_size);
    cJSON *last = NULL;
    for (const cJSON *child = from->child; child; child = child->next) {
        cJSON *copy = copy_node(memory, child);
        if (last)
            last->next = copy;
        else
            node->child = copy;
        copy->prev = last;
        last = copy;
    }
    if (last)
        node->child->prev = last;
    return node;
}

cJSON *json_copy(const cJSON *tree)
{
    PRE(tree);
    struct json_memory memory;
    json_memory_begin(&memory, 0);
    cJSON *copy = copy_node(&memory, tree);
    json_memory_done(&memory);
    return copy;
}

void json_add_item(cJSON *object, const char *key, cJSON *item)
{
    PRE(object && item && !json_get(object, key));
    ENSURE(cJSON_AddItemToObject(object, key, item));
}

cJSON *json_add_object(cJSON *object, const char *key)
{
    cJSON *item = json_new_object();
    json_add_item(object, key, item);
    return item;
}

cJSON *json_add_array(cJSON *object, const char *key)
{
    cJSON *item = json_new_array();
    json_add_item(object, key, item);
    return item;
}

void json_add_str(cJSON *object, const char *key, const char *text)
{
    json_add_item(object, key, json_new_str(text));
}

void json_add_int64(cJSON *object, const char *key, int64_t number)
{
    json_add_item(object, key, json_new_int64(number));
}

void json_add_bool(cJSON *object, const char *key, bool value)
{
    json_add_item(object, key, or_die(cJSON_CreateBool(value)));
}

void json_append_item(cJSON *array, cJSON *item)
{
    ENSURE(cJSON_AddItemToArray(array, item));
}

bool json_has_str(const cJSON *array, const char *text)
{
    const cJSON *item = NULL;
    if (!cJSON_IsArray(array) || !text)
        return false;
    cJSON_ArrayForEach (item, array) {
        if (cJSON_IsString(item) && str_equal(item->valuestring, text))
            return true;
    }
    return false;
}

void json_append_str(cJSON *array, const char *text)
{
    json_append_item(array, json_new_str(text));
}

void json_append_int64(cJSON *array, int64_t number)
{
    json_append_item(array, json_new_int64(number));
}

void json_set_item(cJSON *object, const char *key, cJSON *item)
{
    PRE(cJSON_IsObject(object) && item);
    if (json_get(object, key))
        ENSURE(cJSON_ReplaceItemInObjectCaseSensitive(object, key, item));
    else
        json_add_item(object, key, item);
}

void json_set_str(cJSON *object, const char *key, const char *text)
{
    json_set_item(object, key, json_new_str(text));
}

cJSON *json_ensure_object(cJSON *object, const char *key)
{
    cJSON *item = json_get(object, key);
    if (cJSON_IsObject(item))
        return item;
    item = json_new_object();
    json_set_item(object, key, item);
    return item;
}

/* Trees are no deeper than JSON_DEPTH_MAX allows texts to be. */
void json_carry(cJSON *object, const cJSON *was, const cJSON *is)
{
    PRE(cJSON_IsObject(object) && cJSON_IsObject(was) && cJSON_IsObject(is));
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, was)
        if (!json_get(is, member->string))
            json_remove(object, member->string);
    cJSON_ArrayForEach (member, is) {
        const cJSON *before = json_get(was, member->string);
        if (before && json_equal(before, member))
            continue;
        if (cJSON_IsObject(before) && cJSON_IsObject(member))
            json_carry(json_ensure_object(object, member->string), before, member);
        else
            json_set_item(object, member->string, json_copy(member));
    }
}

void json_remove(cJSON *object, const char *key)
{
    if (cJSON_IsObject(object))
        cJSON_DeleteItemFromObjectCaseSensitive(object, key);
}

static bool children_equal(const cJSON *a, const cJSON *b)
{
    const cJSON *left = a->child;
    const cJSON *right = b->child;
    for (; left && right; left = left->next, right = right->next)
        if (!json_equal(left, right))
            return false;
    return !left && !right;
}

static bool have_keys_in_one_order(const cJSON *a, const cJSON *b)
{
    const cJSON *left = a->child;
    const cJSON *right = b->child;
    for (; left && right; left = left->next, right = right->next)
        if (strcmp(left->string, right->string) != 0)
            return false;
    return !left && !right;
}

static bool objects_equal(const cJSON *a, const cJSON *b)
{
    if (have_keys_in_one_order(a, b)) /* most are: one is a copy of the other, and was changed */
        return children_equal(a, b);
    size_t left_count;
    size_t right_count;
    CLEANUP_FREE struct json_member *left = json_sorted_members(a, &left_count);
    CLEANUP_FREE struct json_member *right = json_sorted_members(b, &right_count);
    if (left_count != right_count)
        return false;
    for (size_t i = 0; i < left_count; i++)
        if (strcmp(left[i].node->string, right[i].node->string) != 0 ||
            !json_equal(left[i].node, right[i].node))
            return false;
    return true;
}

bool json_equal(const cJSON *a, const cJSON *b)
{
    if (!a || !b)
        return a == b;
    if ((a->type & 0xFF) != (b->type & 0xFF))
        return false;
    if (cJSON_IsObject(a))
        return objects_equal(a, b);
    if (cJSON_IsArray(a))
        return children_equal(a, b);
    if (cJSON_IsNumber(a))
        return a->valuedouble == b->valuedouble;
    if (cJSON_IsString(a) || cJSON_IsRaw(a))
        return strcmp(a->valuestring, b->valuestring) == 0;
    return true;
}

void json_delete(cJSON *tree)
{
    cJSON_Delete(tree);
}
