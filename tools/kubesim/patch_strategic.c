/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/patch.h"

static const char order_prefix[] = "$setElementOrder/";
static const char delete_prefix[] = "$deleteFromPrimitiveList/";

static int merge_object(const struct schema *schema, cJSON *target, const cJSON *patch, struct error **err);

static bool is_directive(const char *key)
{
    return strcmp(key, "$patch") == 0 || strcmp(key, "$retainKeys") == 0 ||
           str_starts_with(key, order_prefix) || str_starts_with(key, delete_prefix);
}

/* A copy of what a patch adds where nothing was: directives mean nothing there, nulls neither. */
static cJSON *copy_without_directives(const cJSON *patch)
{
    cJSON *copy = json_copy(patch);
    if (cJSON_IsArray(patch)) {
        cJSON_Delete(copy);
        copy = json_new_array();
        const cJSON *item;
        cJSON_ArrayForEach (item, patch)
            if (!str_equal(json_str(item, "$patch"), "delete") &&
                !str_equal(json_str(item, "$patch"), "replace"))
                json_append_item(copy, copy_without_directives(item));
    } else if (cJSON_IsObject(patch)) {
        cJSON_Delete(copy);
        copy = json_new_object();
        const cJSON *member;
        cJSON_ArrayForEach (member, patch)
            if (!is_directive(member->string) && !cJSON_IsNull(member))
                json_add_item(copy, member->string, copy_without_directives(member));
    }
    return copy;
}

static cJSON *find_by_key(const cJSON *list, const char *key, const cJSON *value)
{
    cJSON *item;
    cJSON_ArrayForEach (item, list)
        if (json_equal(json_get(item, key), value))
            return item;
    return NULL;
}

static cJSON *find_scalar(const cJSON *list, const cJSON *value)
{
    cJSON *item;
    cJSON_ArrayForEach (item, list)
        if (json_equal(item, value))
            return item;
    return NULL;
}

static int merge_keyed_list(const struct schema *items, const char *key, cJSON *target, const cJSON *patch,
                            struct error **err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, patch) {
        const char *directive = json_str(item, "$patch");
        if (str_equal(directive, "replace")) /* the whole list: what stands beside it replaces */
            continue;
        const cJSON *value = json_get(item, key);
        if (!value)
            return error_set(err, ERROR_INVALID, "map: %s does not contain declared merge key: %s", "an item",
                             key);
        cJSON *present = find_by_key(target, key, value);
        if (str_equal(directive, "delete")) {
            if (present)
                cJSON_Delete(cJSON_DetachItemViaPointer(target, present));
        } else if (present) {
            int result = merge_object(items, present, item, err);
            if (result < 0)
                return result;
        } else {
            json_append_item(target, copy_without_directives(item));
        }
    }
    return 0;
}

static bool has_replace_directive(const cJSON *list)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, list)
        if (str_equal(json_str(item, "$patch"), "replace"))
            return true;
    return false;
}

static int merge_list(const struct schema *wrapper, cJSON *object, const char *name, const cJSON *patch,
                      struct error **err)
{
    const struct schema *schema = schema_follow(wrapper);
    const char *key = wrapper && wrapper->merge_key ? wrapper->merge_key : NULL;
    cJSON *target = json_get(object, name);
    if (!key || !cJSON_IsArray(target) || has_replace_directive(patch)) {
        json_set_item(object, name, copy_without_directives(patch));
        return 0;
    }
    if (*key)
        return merge_keyed_list(schema->items, key, target, patch, err);
    const cJSON *item;
    cJSON_ArrayForEach (item, patch)
        if (!find_scalar(target, item))
            json_append_item(target, json_copy(item));
    return 0;
}

static int position_in(const cJSON *list, const cJSON *item)
{
    int index = 0;
    const cJSON *other;
    cJSON_ArrayForEach (other, list) {
        if (other == item)
            break;
        index++;
    }
    return index;
}

/* What the order wants next: the first of its items that is still in the list, or NULL. */
static cJSON *next_ordered(const cJSON *list, const char *key, const cJSON **order)
{
    for (; *order; *order = (*order)->next) {
        cJSON *item = *key ? find_by_key(list, key, json_get(*order, key)) : find_scalar(list, *order);
        if (item)
            return item;
    }
    return NULL;
}

static bool is_ordered(const char *key, const cJSON *order, const cJSON *item)
{
    return *key ? find_by_key(order, key, json_get(item, key)) != NULL : find_scalar(order, item) != NULL;
}

/* Items named by the order come in its order; one that it does not name keeps its place before those behind
 * it. */
static void order_list(cJSON *list, const char *key, const cJSON *order)
{
    cJSON *sorted = json_new_array();
    const cJSON *at = order->child;
    while (list->child) {
        cJSON *wanted = next_ordered(list, key, &at);
        cJSON *other = list->child;
        while (other && is_ordered(key, order, other))
            other = other->next;
        bool other_first = other && (!wanted || position_in(list, other) < position_in(list, wanted));
        json_append_item(sorted, cJSON_DetachItemViaPointer(list, other_first ? other : wanted));
    }
    list->child = STEAL(sorted->child);
    cJSON_Delete(sorted);
}

static void apply_list_directives(const struct schema *schema, cJSON *target, const cJSON *patch)
{
    const cJSON *member;
    cJSON_ArrayForEach (member, patch) {
        bool order = str_starts_with(member->string, order_prefix);
        bool deletes = str_starts_with(member->string, delete_prefix);
        if (!order && !deletes)
            continue;
        const char *name = strchr(member->string, '/') + 1;
        cJSON *list = json_get(target, name);
        const struct schema *wrapper = schema_member_raw(schema, name);
        if (!cJSON_IsArray(list))
            continue;
        const cJSON *value;
        if (order && wrapper && wrapper->merge_key)
            order_list(list, wrapper->merge_key, member);
        else if (deletes)
            cJSON_ArrayForEach (value, member) {
                cJSON *item = find_scalar(list, value);
                if (item)
                    cJSON_Delete(cJSON_DetachItemViaPointer(list, item));
            }
    }
}

static void apply_retain_keys(cJSON *target, const cJSON *keys)
{
    cJSON *next;
    for (cJSON *member = target->child; member; member = next) {
        next = member->next;
        bool kept = false;
        const cJSON *key;
        cJSON_ArrayForEach (key, keys)
            kept = kept || (cJSON_IsString(key) && strcmp(key->valuestring, member->string) == 0);
        if (!kept)
            cJSON_Delete(cJSON_DetachItemViaPointer(target, member));
    }
}

static void replace_object(cJSON *target, const cJSON *patch)
{
    cJSON *copy = copy_without_directives(patch);
    cJSON_Delete(STEAL(target->child));
    target->child = STEAL(copy->child);
    cJSON_Delete(copy);
}

static int merge_member(const struct schema *schema, cJSON *target, const cJSON *member, struct error **err)
{
    const struct schema *wrapper = schema_member_raw(schema, member->string);
    if (cJSON_IsNull(member)) {
        json_remove(target, member->string);
        return 0;
    }
    if (cJSON_IsArray(member))
        return merge_list(wrapper, target, member->string, member, err);
    if (!cJSON_IsObject(member)) {
        json_set_item(target, member->string, json_copy(member));
        return 0;
    }
    cJSON *present = json_get(target, member->string);
    if (cJSON_IsObject(present) && str_equal(json_str(member, "$patch"), "delete")) {
        json_remove(target, member->string);
        return 0;
    }
    if (cJSON_IsObject(present))
        return merge_object(schema_follow(wrapper), present, member, err);
    if (!str_equal(json_str(member, "$patch"), "delete"))
        json_set_item(target, member->string, copy_without_directives(member));
    return 0;
}

static int merge_object(const struct schema *schema, cJSON *target, const cJSON *patch, struct error **err)
{
    const char *directive = json_str(patch, "$patch");
    if (str_equal(directive, "replace")) {
        replace_object(target, patch);
        return 0;
    }
    if (str_equal(directive, "delete")) {
        cJSON_Delete(STEAL(target->child));
        return 0;
    }
    if (directive && strcmp(directive, "merge") != 0)
        return error_set(err, ERROR_INVALID, "unknown patch type: %s in map", directive);
    const cJSON *member;
    cJSON_ArrayForEach (member, patch) {
        if (is_directive(member->string))
            continue;
        int result = merge_member(schema, target, member, err);
        if (result < 0)
            return result;
    }
    apply_list_directives(schema, target, patch);
    if (json_get(patch, "$retainKeys"))
        apply_retain_keys(target, json_get(patch, "$retainKeys"));
    return 0;
}

int patch_strategic(const struct schema *schema, cJSON *target, const cJSON *patch, struct error **err)
{
    return merge_object(schema_follow(schema), target, patch, err);
}
