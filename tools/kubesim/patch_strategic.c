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

/* --- order -------------------------------------------------------------------------------------------------
 */

/* A list as the server had it: which item stood where. */
struct before {
    const cJSON **items;
    size_t count;
};

static struct before remember(const cJSON *list)
{
    struct before before = {.count = 0};
    before.items = xcalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof(before.items[0]));
    const cJSON *item;
    cJSON_ArrayForEach (item, list)
        before.items[before.count++] = item;
    return before;
}

static int position_before(const struct before *before, const cJSON *item)
{
    for (size_t i = 0; i < before->count; i++)
        if (before->items[i] == item)
            return (int)i;
    return -1;
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

static cJSON *next_unordered(const cJSON *list, const char *key, const cJSON *order)
{
    cJSON *item;
    cJSON_ArrayForEach (item, list)
        if (*key ? !find_by_key(order, key, json_get(item, key)) : !find_scalar(order, item))
            return item;
    return NULL;
}

/* Two rows are merged into one: the items that the order names (the patch's own items where it has no order),
 * and the others as the server had them. One of the others goes first only if it stood before the named one;
 * so an item that is new comes before them all. (mergeSortedSlice of apimachinery) */
static void order_list(cJSON *list, const char *key, const cJSON *order, const struct before *before)
{
    cJSON *sorted = json_new_array();
    const cJSON *at = order->child;
    while (list->child) {
        cJSON *named = next_ordered(list, key, &at);
        cJSON *other = next_unordered(list, key, order);
        int named_at = named ? position_before(before, named) : -1;
        bool other_first = other && (!named || (named_at >= 0 && position_before(before, other) >= 0 &&
                                                position_before(before, other) < named_at));
        json_append_item(sorted, cJSON_DetachItemViaPointer(list, other_first ? other : named));
    }
    list->child = STEAL(sorted->child);
    cJSON_Delete(sorted);
}

/* --- lists -------------------------------------------------------------------------------------------------
 */

static int merge_items(const struct schema *schema, const char *key, cJSON *target, const cJSON *patch,
                       struct error **err)
{
    if (*key)
        return merge_keyed_list(schema->items, key, target, patch, err);
    const cJSON *item;
    cJSON_ArrayForEach (item, patch)
        if (!find_scalar(target, item))
            json_append_item(target, json_copy(item));
    return 0;
}

/* order: $setElementOrder of this list, or NULL. */
static int merge_list(const struct schema *wrapper, cJSON *object, const char *name, const cJSON *patch,
                      const cJSON *order, struct error **err)
{
    const struct schema *schema = schema_follow(wrapper);
    const char *key = wrapper && wrapper->merge_key ? wrapper->merge_key : NULL;
    cJSON *target = json_get(object, name);
    if (!key || !cJSON_IsArray(target) || has_replace_directive(patch)) {
        json_set_item(object, name, copy_without_directives(patch));
        return 0;
    }
    struct before before = remember(target);
    int result = merge_items(schema, key, target, patch, err);
    if (result == 0)
        order_list(target, key, cJSON_IsArray(order) ? order : patch, &before);
    free(before.items);
    return result;
}

static void apply_order(cJSON *list, const struct schema *wrapper, const cJSON *order)
{
    if (!wrapper || !wrapper->merge_key || !cJSON_IsArray(order))
        return;
    struct before before = remember(list);
    order_list(list, wrapper->merge_key, order, &before);
    free(before.items);
}

/* Orders without a list beside them (those were looked at with their list), and deletions of scalars. */
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
        if (!cJSON_IsArray(list))
            continue;
        if (order && !json_get(patch, name))
            apply_order(list, schema_member_raw(schema, name), member);
        const cJSON *value;
        if (deletes)
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

static int merge_member(const struct schema *schema, cJSON *target, const cJSON *patch, const cJSON *member,
                        struct error **err)
{
    const struct schema *wrapper = schema_member_raw(schema, member->string);
    if (cJSON_IsNull(member)) {
        json_remove(target, member->string);
        return 0;
    }
    if (cJSON_IsArray(member)) {
        CLEANUP_FREE char *order = xasprintf("%s%s", order_prefix, member->string);
        return merge_list(wrapper, target, member->string, member, json_get(patch, order), err);
    }
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
        int result = merge_member(schema, target, patch, member, err);
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
