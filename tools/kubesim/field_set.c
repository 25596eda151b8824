/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/field_set.h"

enum { PATH_MAX_BYTES = 64 * 1024 };

/* --- what a value is to the schema
 * ------------------------------------------------------------------------------ */

/* Free-form data of custom kinds is deduced: objects merge, lists do not. Of built-in kinds it is one value.
 */
static bool is_atomic_object(const struct schema *schema)
{
    if (!schema)
        return false;
    bool free_form = schema->type == SCHEMA_OBJECT && schema->preserve_unknown && !schema->properties &&
                     !schema->additional && !schema->rule_count;
    return schema->atomic_map || (free_form && schema->builtin);
}

/* True when the value is owned as a whole. */
static bool is_leaf(const struct schema *schema, const cJSON *node)
{
    if (cJSON_IsArray(node))
        return !schema || schema->list == SCHEMA_LIST_ATOMIC || !node->child;
    return !cJSON_IsObject(node) || is_atomic_object(schema) || !node->child;
}

static const cJSON *key_value(const struct schema *items, const cJSON *item, const char *key)
{
    const cJSON *value = json_get(item, key);
    const struct schema *property = schema_member_raw(items, key);
    if (!value && property)
        value = property->default_value ? property->default_value : schema_follow(property)->default_value;
    return value;
}

/* "k:{...}" or "v:..." of a list item; the caller's. */
static char *item_key(const struct schema *list, const cJSON *item)
{
    if (list->list == SCHEMA_LIST_SET) {
        CLEANUP_FREE char *text = json_print(item);
        return xasprintf("v:%s", text);
    }
    CLEANUP_JSON cJSON *keys = json_new_object();
    for (size_t i = 0; i < list->map_key_count; i++) {
        const cJSON *value = key_value(schema_follow(list->items), item, list->map_keys[i]);
        if (value)
            json_add_item(keys, list->map_keys[i], json_copy(value));
    }
    CLEANUP_FREE char *text = json_print_sorted(keys);
    return xasprintf("k:%s", text);
}

static char *member_key(const char *name)
{
    return xasprintf("f:%s", name);
}

static const cJSON *find_item(const struct schema *list, const cJSON *array, const char *key)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, array) {
        CLEANUP_FREE char *own = item_key(list, item);
        if (strcmp(own, key) == 0)
            return item;
    }
    return NULL;
}

/* --- sets
 * ------------------------------------------------------------------------------------------------------- */

bool field_set_is_valid(const cJSON *set)
{
    if (!cJSON_IsObject(set))
        return false;
    const cJSON *entry;
    cJSON_ArrayForEach (entry, set) {
        const char *key = entry->string;
        bool known = strcmp(key, ".") == 0 || (key[0] && strchr("fkvi", key[0]) && key[1] == ':');
        if (!known || !field_set_is_valid(entry))
            return false;
    }
    return true;
}

bool field_set_is_empty(const cJSON *set)
{
    return !set || !set->child;
}

/* The thing itself is a member: a leaf, or a "." among the children. */
static bool is_member(const cJSON *set)
{
    return set && (!set->child || json_get(set, "."));
}

void field_set_add(cJSON *set, const cJSON *other)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, other) {
        cJSON *present = json_get(set, entry->string);
        if (!present) {
            json_add_item(set, entry->string, json_copy(entry));
            continue;
        }
        if (!present->child != !entry->child && strcmp(entry->string, ".") != 0)
            json_set_item(present, ".", json_new_object());
        field_set_add(present, entry);
    }
}

void field_set_subtract(cJSON *set, const cJSON *other)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, other) {
        cJSON *present = json_get(set, entry->string);
        if (!present)
            continue;
        bool gone = !entry->child;
        if (!gone && present->child) {
            field_set_subtract(present, entry);
            gone = !present->child;
        } else if (!gone) {
            gone = is_member(entry);
        }
        if (gone)
            json_remove(set, entry->string);
    }
}

cJSON *field_set_intersection(const cJSON *a, const cJSON *b)
{
    cJSON *both = json_new_object();
    const cJSON *entry;
    cJSON_ArrayForEach (entry, a) {
        const cJSON *other = json_get(b, entry->string);
        if (!other)
            continue;
        cJSON *below = field_set_intersection(entry, other);
        bool member = is_member(entry) && is_member(other);
        if (below->child && member && strcmp(entry->string, ".") != 0)
            json_set_item(below, ".", json_new_object());
        if (below->child || member)
            json_add_item(both, entry->string, below);
        else
            json_delete(below);
    }
    return both;
}

static void add_path_step(struct buf *path, const char *key)
{
    if (key[0] == 'f') {
        buf_addf(path, ".%s", key + 2);
        return;
    }
    CLEANUP_JSON cJSON *value = NULL;
    if (key[0] == 'v' || json_parse(key + 2, strlen(key + 2), &value, NULL) < 0) {
        buf_addf(path, "[=%s]", key + 2);
        return;
    }
    buf_add_char(path, '[');
    const cJSON *member;
    cJSON_ArrayForEach (member, value) {
        CLEANUP_FREE char *text = json_print(member);
        buf_addf(path, "%s%s=%s", member == value->child ? "" : ",", member->string, text);
    }
    buf_add_char(path, ']');
}

static void visit_at(const cJSON *set, const char *prefix, void (*visit)(void *context, const char *path),
                     void *context)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, set) {
        if (strcmp(entry->string, ".") == 0) {
            visit(context, prefix);
            continue;
        }
        CLEANUP_BUF struct buf path = BUF_INIT(PATH_MAX_BYTES);
        buf_add_text(&path, prefix);
        add_path_step(&path, entry->string);
        if (entry->child)
            visit_at(entry, buf_text(&path), visit, context);
        else
            visit(context, buf_text(&path));
    }
}

void field_set_visit(const cJSON *set, void (*visit)(void *context, const char *path), void *context)
{
    visit_at(set, "", visit, context);
}

/* --- the fields of a configuration
 * ------------------------------------------------------------------------------ */

static int fields_below(const struct schema *schema, const cJSON *node, const char *path, bool strict,
                        cJSON *set, struct error **err);

static int refuse_duplicate(const char *path, const char *key, struct error **err)
{
    CLEANUP_BUF struct buf step = BUF_INIT(PATH_MAX_BYTES);
    add_path_step(&step, key);
    return error_set(err, ERROR_INVALID, "%s: duplicate entries for key %s", path, buf_text(&step));
}

static int fields_of_list(const struct schema *schema, const cJSON *node, const char *path, bool strict,
                          cJSON *set, struct error **err)
{
    PRE(schema);
    const cJSON *item;
    cJSON_ArrayForEach (item, node) {
        CLEANUP_FREE char *key = item_key(schema, item);
        if (json_get(set, key))
            return refuse_duplicate(path, key, err);
        cJSON *below = json_add_object(set, key);
        if (schema->list == SCHEMA_LIST_SET)
            continue;
        json_add_object(below, ".");
        CLEANUP_FREE char *at = xasprintf("%s[%s]", path, key + 2);
        int result = fields_below(schema_follow(schema->items), item, at, strict, below, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static int fields_below(const struct schema *schema, const cJSON *node, const char *path, bool strict,
                        cJSON *set, struct error **err)
{
    if (cJSON_IsArray(node)) /* an item of a list that is a list itself has no key and no fields */
        return is_leaf(schema, node) ? 0 : fields_of_list(schema, node, path, strict, set, err);
    const cJSON *member;
    cJSON_ArrayForEach (member, node) {
        const struct schema *below_schema = schema_member(schema, member->string);
        CLEANUP_FREE char *at = xasprintf("%s.%s", path, member->string);
        bool declared = below_schema || !schema || schema->preserve_unknown || schema->type == SCHEMA_ANY;
        if (strict && !declared)
            return error_set(err, ERROR_INVALID, "%s: field not declared in schema", at);
        CLEANUP_FREE char *key = member_key(member->string);
        cJSON *below = json_new_object();
        json_set_item(set, key, below);
        bool keyed = below_schema && below_schema->list != SCHEMA_LIST_ATOMIC;
        if (cJSON_IsArray(member) && !member->child && keyed) /* without items, nobody's */
            json_remove(set, key);
        if (is_leaf(below_schema, member))
            continue;
        if (!below_schema)
            json_add_object(below, ".");
        int result = fields_below(below_schema, member, at, strict, below, err);
        if (result < 0)
            return result;
    }
    return 0;
}

int field_set_of(const struct schema *schema, const cJSON *object, bool strict, cJSON **ret,
                 struct error **err)
{
    CLEANUP_JSON cJSON *set = json_new_object();
    int result = fields_below(schema_follow(schema), object, "", strict, set, err);
    if (result == 0)
        *ret = STEAL(set);
    return result;
}

/* --- comparison
 * ------------------------------------------------------------------------------------------------- */

/* known: the server's types print this object even when it is empty, so it is not new itself. */
static void compare_at(const struct schema *schema, const cJSON *old, const cJSON *node, bool known,
                       cJSON *changed, cJSON *removed);

/* Compares one value under its key and hangs what differs into the sets. */
static void compare_child(const struct schema *schema, const cJSON *old, const cJSON *node, const char *key,
                          bool known, cJSON *changed, cJSON *removed)
{
    if (json_equal(old, node))
        return;
    if (is_leaf(schema, node)) {
        json_set_item(changed, key, json_new_object());
        return;
    }
    bool comparable =
        old && cJSON_IsArray(old) == cJSON_IsArray(node) && cJSON_IsObject(old) == cJSON_IsObject(node);
    cJSON *changed_below = json_new_object();
    cJSON *removed_below = json_new_object();
    if (!comparable && !known)
        json_add_object(changed_below, ".");
    compare_at(schema, comparable ? old : NULL, node, known, changed_below, removed_below);
    if (changed_below->child)
        json_set_item(changed, key, changed_below);
    else
        json_delete(changed_below);
    if (removed_below->child)
        json_set_item(removed, key, removed_below);
    else
        json_delete(removed_below);
}

/* As find_item(); the item behind the last one that was found is tried first: most often the order is the
 * same. */
static const cJSON *find_next_item(const struct schema *list, const cJSON *array, const char *key,
                                   const cJSON **guess)
{
    const cJSON *first = *guess ? *guess : (array ? array->child : NULL);
    CLEANUP_FREE char *own = first ? item_key(list, first) : NULL;
    const cJSON *found = own && strcmp(own, key) == 0 ? first : find_item(list, array, key);
    *guess = found ? found->next : *guess;
    return found;
}

static void compare_lists(const struct schema *schema, const cJSON *old, const cJSON *node, cJSON *changed,
                          cJSON *removed)
{
    const cJSON *item;
    const cJSON *guess = NULL;
    cJSON_ArrayForEach (item, node) {
        CLEANUP_FREE char *key = item_key(schema, item);
        compare_child(schema_follow(schema->items), find_next_item(schema, old, key, &guess), item, key,
                      false, changed, removed);
    }
    guess = NULL;
    cJSON_ArrayForEach (item, old) {
        CLEANUP_FREE char *key = item_key(schema, item);
        if (!find_next_item(schema, node, key, &guess))
            json_set_item(removed, key, json_new_object());
    }
}

/* Members that the server's types print even when empty: required ones, and structures (their default is {}).
 */
static bool is_always_there(const struct schema *schema, const char *name)
{
    const cJSON *required;
    const struct schema *member = schema && schema->builtin ? schema_member_raw(schema, name) : NULL;
    if (member && cJSON_IsObject(member->default_value))
        return true;
    if (schema && schema->builtin)
        cJSON_ArrayForEach (required, schema->required)
            if (cJSON_IsString(required) && strcmp(required->valuestring, name) == 0)
                return true;
    return false;
}

/* What an empty object prints for this member already: nobody owns it. */
static bool is_printed_anyway(const struct schema *schema, const cJSON *member)
{
    const struct schema *wrapper = schema_member_raw(schema, member->string);
    return cJSON_IsNull(member) || (wrapper && wrapper->default_value && !member->child &&
                                    json_equal(member, wrapper->default_value));
}

static void compare_at(const struct schema *schema, const cJSON *old, const cJSON *node, bool known,
                       cJSON *changed, cJSON *removed)
{
    if (cJSON_IsArray(node)) {
        if (!is_leaf(schema, node))
            compare_lists(schema, old, node, changed, removed);
        return;
    }
    const cJSON *member;
    cJSON_ArrayForEach (member, node) {
        if (known && is_printed_anyway(schema, member))
            continue;
        CLEANUP_FREE char *key = member_key(member->string);
        bool below_known = known && is_always_there(schema, member->string);
        compare_child(schema_member(schema, member->string), json_get(old, member->string), member, key,
                      below_known, changed, removed);
    }
    cJSON_ArrayForEach (member, old) {
        CLEANUP_FREE char *key = member_key(member->string);
        if (!json_get(node, member->string))
            json_set_item(removed, key, json_new_object());
    }
}

void field_set_compare(const struct schema *schema, const cJSON *old, const cJSON *object,
                       cJSON **ret_changed, cJSON **ret_removed)
{
    *ret_changed = json_new_object();
    *ret_removed = json_new_object();
    schema = schema_follow(schema);
    /* A new object of a built-in kind is compared with an empty one, as it would be printed. */
    compare_at(schema, old, object, !old && schema->builtin, *ret_changed, *ret_removed);
}

/* --- merging and pruning
 * ---------------------------------------------------------------------------------------- */

static void merge_into(const struct schema *schema, cJSON *target, const cJSON *config);

/* The merged form of one value over another that is not NULL. */
static cJSON *merged(const struct schema *schema, const cJSON *live, const cJSON *config)
{
    bool same_shape =
        cJSON_IsArray(live) == cJSON_IsArray(config) && cJSON_IsObject(live) == cJSON_IsObject(config);
    bool atomic = cJSON_IsObject(config)
                      ? is_atomic_object(schema)
                      : !cJSON_IsArray(config) || !schema || schema->list == SCHEMA_LIST_ATOMIC;
    if (atomic || !same_shape)
        return json_copy(config);
    cJSON *target = json_copy(live);
    merge_into(schema, target, config);
    return target;
}

static void merge_lists(const struct schema *schema, cJSON *target, const cJSON *config)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, config) {
        CLEANUP_FREE char *key = item_key(schema, item);
        cJSON *present = (cJSON *)find_item(schema, target, key);
        if (!present)
            json_append_item(target, json_copy(item));
        else if (schema->list == SCHEMA_LIST_MAP)
            merge_into(schema_follow(schema->items), present, item);
    }
}

static void merge_into(const struct schema *schema, cJSON *target, const cJSON *config)
{
    if (cJSON_IsArray(config)) {
        if (schema && schema->list != SCHEMA_LIST_ATOMIC)
            merge_lists(schema, target, config);
        return;
    }
    const cJSON *member;
    cJSON_ArrayForEach (member, config) {
        const cJSON *present = json_get(target, member->string);
        const struct schema *below = schema_member(schema, member->string);
        json_set_item(target, member->string, present ? merged(below, present, member) : json_copy(member));
    }
}

cJSON *field_merge(const struct schema *schema, const cJSON *live, const cJSON *config)
{
    cJSON *target = json_copy(live);
    merge_into(schema_follow(schema), target, config);
    return target;
}

/* What a key of a set names in a node; NULL when it is not there. */
static cJSON *child_by_key(const struct schema *schema, cJSON *node, const char *key)
{
    if (key[0] == 'f')
        return json_get(node, key + 2);
    return schema && cJSON_IsArray(node) ? (cJSON *)find_item(schema, node, key) : NULL;
}

static const struct schema *schema_by_key(const struct schema *schema, const char *key)
{
    if (!schema)
        return NULL;
    return key[0] == 'f' ? schema_member(schema, key + 2) : schema_follow(schema->items);
}

/* metadata holds the name and more that no set names: it never goes as a whole. */
static bool is_metadata(const cJSON *node, const cJSON *entry)
{
    return strcmp(entry->string, "f:metadata") == 0 && json_get(node, "apiVersion") && json_get(node, "kind");
}

static void prune_at(const struct schema *schema, cJSON *node, const cJSON *last, const cJSON *mine,
                     const cJSON *others)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, last) {
        cJSON *child = child_by_key(schema, node, entry->string);
        const cJSON *in_mine = json_get(mine, entry->string);
        const cJSON *in_others = json_get(others, entry->string);
        if (!child)
            continue;
        if (!in_mine && !in_others && !is_metadata(node, entry))
            cJSON_Delete(cJSON_DetachItemViaPointer(node, child));
        else if (entry->child)
            prune_at(schema_by_key(schema, entry->string), child, entry, in_mine, in_others);
    }
}

void field_prune(const struct schema *schema, cJSON *object, const cJSON *last, const cJSON *mine,
                 const cJSON *others)
{
    prune_at(schema_follow(schema), object, last, mine, others);
}
