/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/schema_check.h"

#include "kubesim/cel.h"
#include "kubesim/jsonpath.h"
#include "kubesim/quantity.h"

#include <math.h>
#include <stdio.h>

void unknown_fields_done(struct unknown_fields *unknown)
{
    for (size_t i = 0; i < unknown->count; i++)
        free(unknown->paths[i]);
    unknown->count = 0;
}

/* Where the check is: one text that grows and shrinks on the way, and is copied where something is wrong. */
enum { PATH_BYTES_MAX = 1 << 20 };

/* Each returns what leave() takes. */
static size_t enter(struct buf *path, const char *member)
{
    size_t above = path->length;
    if (above > 0)
        buf_add_char(path, '.');
    buf_add_text(path, member);
    return above;
}

static size_t enter_item(struct buf *path, int index)
{
    size_t above = path->length;
    buf_add_char(path, '[');
    buf_add_int64(path, index);
    buf_add_char(path, ']');
    return above;
}

static void leave(struct buf *path, size_t above)
{
    buf_cut(path, above);
}

static bool is_type_member(const char *name)
{
    return strcmp(name, "apiVersion") == 0 || strcmp(name, "kind") == 0 || strcmp(name, "metadata") == 0;
}

/* Of the root of a resource; below it there is none. */
struct scope {
    const cJSON *touched;
};

static bool is_out_of_scope(const struct scope *scope, const char *name)
{
    return scope && (is_type_member(name) || (scope->touched && !json_get(scope->touched, name)));
}

static void prune_at(const struct schema *schema, cJSON *node, struct buf *path, const struct scope *scope,
                     struct unknown_fields *unknown)
{
    schema = schema_follow(schema);
    if (!schema)
        return;
    if (cJSON_IsArray(node)) {
        int index = 0;
        cJSON *item;
        cJSON_ArrayForEach (item, node) {
            size_t above = enter_item(path, index++);
            prune_at(schema->items, item, path, NULL, unknown);
            leave(path, above);
        }
        return;
    }
    cJSON *next;
    for (cJSON *member = cJSON_IsObject(node) ? node->child : NULL; member; member = next) {
        next = member->next;
        if (is_out_of_scope(scope, member->string))
            continue;
        const struct schema *below_schema = schema_member(schema, member->string);
        size_t above = enter(path, member->string);
        if (below_schema) {
            const struct scope whole = {0};
            prune_at(below_schema, member, path, below_schema->embedded ? &whole : NULL, unknown);
        } else if (!schema->preserve_unknown && schema->type != SCHEMA_ANY) {
            if (unknown->count < UNKNOWN_FIELDS_MAX)
                unknown->paths[unknown->count++] = xstrdup(buf_text(path));
            cJSON_Delete(cJSON_DetachItemViaPointer(node, member));
        }
        leave(path, above);
    }
}

void schema_prune(const struct schema *schema, cJSON *object, const cJSON *touched,
                  struct unknown_fields *unknown)
{
    CLEANUP_BUF struct buf path = BUF_INIT(PATH_BYTES_MAX);
    prune_at(schema, object, &path, &(struct scope){.touched = touched}, unknown);
}

/* What null means as an item of a list: the zero value of its type. */
static cJSON *zero_of(const struct schema *schema)
{
    if (!schema || schema->type == SCHEMA_STRING || schema->type == SCHEMA_QUANTITY)
        return json_new_str("");
    if (schema->type == SCHEMA_OBJECT)
        return json_new_object();
    if (schema->type == SCHEMA_ARRAY)
        return json_new_array();
    return schema->type == SCHEMA_BOOLEAN ? cJSON_CreateBool(false) : json_new_int64(0);
}

/* An empty list or map that Go's encoder leaves out. */
static bool is_left_out(const struct schema *schema, const cJSON *node, const struct schema *below)
{
    bool list = below && below->type == SCHEMA_ARRAY && cJSON_IsArray(node);
    bool map = below && cJSON_IsObject(node) && below->additional && !below->property_count;
    if (node->child || !(list || map))
        return false;
    const cJSON *required = NULL;
    cJSON_ArrayForEach (required, schema->required)
        if (str_equal(required->valuestring, node->string))
            return false;
    return true;
}

static void normalize_at(const struct schema *schema, cJSON *node, const struct scope *scope)
{
    schema = schema_follow(schema);
    bool free_form = schema && schema->preserve_unknown && !schema->property_count;
    if (!schema || free_form)
        return;
    cJSON *next;
    for (cJSON *child = node->child; child; child = next) {
        next = child->next;
        if (is_out_of_scope(scope, child->string))
            continue;
        if (cJSON_IsNull(child) && cJSON_IsObject(node)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(node, child));
            continue;
        }
        const struct schema *below =
            cJSON_IsArray(node) ? schema->items : schema_member(schema, child->string);
        below = schema_follow(below);
        if (cJSON_IsNull(child)) {
            ENSURE(cJSON_ReplaceItemViaPointer(node, child, zero_of(below)));
            continue;
        }
        if (!below || below->type != SCHEMA_QUANTITY) {
            normalize_at(below, child, NULL);
            if (cJSON_IsObject(node) && is_left_out(schema, child, below))
                cJSON_Delete(cJSON_DetachItemViaPointer(node, child));
            continue;
        }
        CLEANUP_FREE char *text = quantity_canonical(child);
        if (text && cJSON_IsObject(node))
            json_set_str(node, child->string, text);
    }
}

void schema_normalize(const struct schema *schema, cJSON *object, const cJSON *touched)
{
    normalize_at(schema, object, &(struct scope){.touched = touched});
}

/* metadata of a custom kind */
static bool is_foreign(const struct schema *schema, const struct schema *member)
{
    return member->reference && !schema->builtin;
}

/* Null is as good as nothing where the schema does not say otherwise. */
static void drop_nulls(const struct schema *schema, cJSON *node)
{
    cJSON *next = NULL;
    for (cJSON *child = node->child; child; child = next) {
        next = child->next;
        const struct schema *member = cJSON_IsNull(child) ? schema_member_raw(schema, child->string) : NULL;
        if (member && member != schema->additional && !is_foreign(schema, member) &&
            !schema_follow(member)->nullable)
            cJSON_Delete(cJSON_DetachItemViaPointer(node, child));
    }
}

static void default_at(const struct schema *schema, cJSON *node, const cJSON *touched)
{
    schema = schema_follow(schema);
    if (!schema || !node)
        return;
    cJSON *child;
    if (cJSON_IsArray(node)) {
        cJSON_ArrayForEach (child, node)
            default_at(schema->items, child, NULL);
        return;
    }
    if (!cJSON_IsObject(node))
        return;
    drop_nulls(schema, node);
    for (size_t i = 0; i < schema->property_count; i++) {
        const struct schema_property *property = &schema->properties[i];
        const cJSON *fallback = property->schema->default_value
                                    ? property->schema->default_value
                                    : schema_follow(property->schema)->default_value;
        if (fallback && !is_foreign(schema, property->schema) && !json_get(node, property->name))
            json_set_item(node, property->name, json_copy(fallback));
    }
    cJSON_ArrayForEach (child, node)
        if (!touched || json_get(touched, child->string))
            default_at(schema_member(schema, child->string), child, NULL);
}

void schema_set_defaults(const struct schema *schema, cJSON *object, const cJSON *touched)
{
    default_at(schema, object, touched);
}

/* --- validation of custom kinds
 * ------------------------------------------------------------------------------ */

static const char *type_name(enum schema_type type)
{
    static const char *const names[] = {"object", "object",  "array",          "string", "integer",
                                        "number", "boolean", "integer,string", "string"};
    return names[type];
}

static bool is_number(const cJSON *node)
{
    return cJSON_IsNumber(node) || cJSON_IsRaw(node);
}

static bool is_whole(const cJSON *node)
{
    return (cJSON_IsNumber(node) && node->valuedouble == floor(node->valuedouble)) ||
           (cJSON_IsRaw(node) && !strpbrk(node->valuestring, ".eE"));
}

static bool has_type(enum schema_type type, const cJSON *node)
{
    switch (type) {
    case SCHEMA_ANY:
        return true;
    case SCHEMA_OBJECT:
        return cJSON_IsObject(node);
    case SCHEMA_ARRAY:
        return cJSON_IsArray(node);
    case SCHEMA_STRING:
        return cJSON_IsString(node);
    case SCHEMA_INTEGER:
        return is_whole(node);
    case SCHEMA_NUMBER:
        return is_number(node);
    case SCHEMA_BOOLEAN:
        return cJSON_IsBool(node);
    case SCHEMA_INT_OR_STRING:
        return is_whole(node) || cJSON_IsString(node);
    case SCHEMA_QUANTITY:
        return is_number(node) || cJSON_IsString(node);
    }
    UNREACHABLE();
}

static const char *node_type_name(const cJSON *node)
{
    if (cJSON_IsNull(node))
        return "null";
    if (cJSON_IsObject(node))
        return "object";
    if (cJSON_IsArray(node))
        return "array";
    if (cJSON_IsString(node))
        return "string";
    if (cJSON_IsBool(node))
        return "boolean";
    return is_whole(node) ? "integer" : "number";
}

static double number_of(const cJSON *node)
{
    return cJSON_IsRaw(node) ? strtod(node->valuestring, NULL) : node->valuedouble;
}

static void check_number(const struct schema *schema, const cJSON *node, const char *path,
                         struct causes *causes)
{
    double value = number_of(node);
    if (schema->has_minimum &&
        (schema->exclusive_minimum ? value <= schema->minimum : value < schema->minimum))
        causes_add_node(causes, CAUSE_INVALID, path, node, "%s in body should be greater than %s%.15g", path,
                        schema->exclusive_minimum ? "" : "or equal to ", schema->minimum);
    if (schema->has_maximum &&
        (schema->exclusive_maximum ? value >= schema->maximum : value > schema->maximum))
        causes_add_node(causes, CAUSE_INVALID, path, node, "%s in body should be less than %s%.15g", path,
                        schema->exclusive_maximum ? "" : "or equal to ", schema->maximum);
    if (schema->multiple_of > 0 && fmod(value, schema->multiple_of) != 0)
        causes_add_node(causes, CAUSE_INVALID, path, node, "%s in body should be a multiple of %.15g", path,
                        schema->multiple_of);
}

/* Unicode code points. */
static int64_t text_length(const char *text)
{
    int64_t length = 0;
    for (; *text; text++)
        length += ((unsigned char)*text & 0xC0) != 0x80;
    return length;
}

static void check_format(const struct schema *schema, const cJSON *node, const char *path,
                         struct causes *causes)
{
    int64_t ignored;
    if (str_equal(schema->format, "date-time") && time_parse_rfc3339(node->valuestring, &ignored, NULL) < 0)
        causes_add_node(causes, CAUSE_TYPE_INVALID, path, node,
                        "%s in body must be of type date-time: \"%s\"", path, node->valuestring);
}

static void check_string(const struct schema *schema, const cJSON *node, const char *path,
                         struct causes *causes)
{
    int64_t length = text_length(node->valuestring);
    if (schema->min_length >= 0 && length < schema->min_length)
        causes_add_node(causes, CAUSE_INVALID, path, node, "%s in body should be at least %lld chars long",
                        path, (long long)schema->min_length);
    if (schema->max_length >= 0 && length > schema->max_length)
        causes_add(causes, CAUSE_TOO_LONG, path, NULL, "may not be more than %lld bytes",
                   (long long)schema->max_length);
    if (schema->pattern && regexec(&schema->regex, node->valuestring, 0, NULL, 0) != 0)
        causes_add_node(causes, CAUSE_INVALID, path, node, "%s in body should match '%s'", path,
                        schema->pattern);
    check_format(schema, node, path, causes);
}

static void check_enumeration(const struct schema *schema, const cJSON *node, const char *path,
                              struct causes *causes)
{
    CLEANUP_BUF struct buf values = BUF_INIT(16 * 1024);
    const cJSON *value;
    cJSON_ArrayForEach (value, schema->enumeration) {
        if (json_equal(value, node))
            return;
        CLEANUP_FREE char *text = json_print(value);
        buf_addf(&values, "%s%s", values.length ? ", " : "", text);
    }
    causes_add_node(causes, CAUSE_NOT_SUPPORTED, path, node, "supported values: %s", buf_text(&values));
}

static bool same_map_key(const struct schema *schema, const cJSON *a, const cJSON *b)
{
    if (schema->list == SCHEMA_LIST_SET)
        return json_equal(a, b);
    for (size_t i = 0; i < schema->map_key_count; i++)
        if (!json_equal(json_get(a, schema->map_keys[i]), json_get(b, schema->map_keys[i])))
            return false;
    return true;
}

static void check_duplicates(const struct schema *schema, const cJSON *node, const char *path,
                             struct causes *causes)
{
    int index = 0;
    for (const cJSON *item = node->child; item; item = item->next, index++) {
        for (const cJSON *earlier = node->child; earlier != item; earlier = earlier->next) {
            if (!same_map_key(schema, item, earlier))
                continue;
            CLEANUP_FREE char *below = xasprintf("%s[%d]", path, index);
            CLEANUP_JSON cJSON *keys = json_new_object();
            for (size_t i = 0; i < schema->map_key_count; i++)
                tree_copy_member(keys, item, schema->map_keys[i]);
            causes_add_node(causes, CAUSE_DUPLICATE, below, schema->map_key_count ? keys : item, "%s", "");
            break;
        }
    }
}

static void validate_at(const struct schema *schema, const cJSON *node, struct buf *path, bool resource,
                        struct causes *causes);

static void check_array_size(const struct schema *schema, int count, const char *path, struct causes *causes)
{
    char shown[16];
    snprintf(shown, sizeof(shown), "%d", count);
    if (schema->min_items >= 0 && count < schema->min_items)
        causes_add(causes, CAUSE_INVALID, path, shown, "%s in body should have at least %lld items", path,
                   (long long)schema->min_items);
    if (schema->max_items >= 0 && count > schema->max_items)
        causes_add(causes, CAUSE_TOO_MANY, path, shown, "must have at most %lld items",
                   (long long)schema->max_items);
}

static void check_array(const struct schema *schema, const cJSON *node, struct buf *path,
                        struct causes *causes)
{
    check_array_size(schema, cJSON_GetArraySize(node), buf_text(path), causes);
    if (schema->list != SCHEMA_LIST_ATOMIC)
        check_duplicates(schema, node, buf_text(path), causes);
    int index = 0;
    const cJSON *item;
    cJSON_ArrayForEach (item, node) {
        size_t above = enter_item(path, index++);
        validate_at(schema->items, item, path, false, causes);
        leave(path, above);
    }
}

/* Of metadata a definition may bound the name alone. */
static void check_name(const struct schema *schema, const cJSON *object, struct buf *path,
                       struct causes *causes)
{
    const struct schema *metadata = schema_member_raw(schema, "metadata");
    for (size_t i = 0; metadata && i < metadata->property_count; i++) {
        if (strcmp(metadata->properties[i].name, "name") != 0)
            continue;
        size_t above = enter(path, "metadata.name");
        validate_at(metadata->properties[i].schema, json_path(object, "metadata", "name", NULL), path, false,
                    causes);
        leave(path, above);
    }
}

static void check_required(const struct schema *schema, const cJSON *node, struct buf *path,
                           struct causes *causes)
{
    const cJSON *name;
    cJSON_ArrayForEach (name, schema->required) {
        if (!cJSON_IsString(name) || json_get(node, name->valuestring))
            continue;
        size_t above = enter(path, name->valuestring);
        causes_add(causes, CAUSE_REQUIRED, buf_text(path), NULL, "%s", "");
        leave(path, above);
    }
}

static void check_object_size(const struct schema *schema, const cJSON *node, const char *path,
                              struct causes *causes)
{
    int count = cJSON_GetArraySize(node);
    if (schema->min_properties >= 0 && count < schema->min_properties)
        causes_add_node(causes, CAUSE_INVALID, path, node, "%s in body should have at least %lld properties",
                        path, (long long)schema->min_properties);
    if (schema->max_properties >= 0 && count > schema->max_properties) {
        CLEANUP_FREE char *text = xasprintf("%d", count);
        causes_add(causes, CAUSE_TOO_MANY, path, text, "must have at most %lld items",
                   (long long)schema->max_properties);
    }
}

static void check_object(const struct schema *schema, const cJSON *node, struct buf *path, bool resource,
                         struct causes *causes)
{
    check_required(schema, node, path, causes);
    check_object_size(schema, node, buf_text(path), causes);
    if (resource)
        check_name(schema, node, path, causes);
    const cJSON *member;
    cJSON_ArrayForEach (member, node) {
        if (resource && is_type_member(member->string))
            continue;
        const struct schema *below_schema = schema_member(schema, member->string);
        size_t above = enter(path, member->string);
        validate_at(below_schema, member, path, below_schema && below_schema->embedded, causes);
        leave(path, above);
    }
}

/* allOf, anyOf, oneOf, not: only what structural schemas may say there. */
static bool matches_check(const cJSON *check, const cJSON *node)
{
    CLEANUP_CAUSES struct causes causes = {0};
    struct schema_set *set = NULL;
    const struct schema *root = NULL;
    if (schema_set_custom(check, NULL, &set, &root, NULL) < 0)
        return true;
    CLEANUP_BUF struct buf path = BUF_INIT(PATH_BYTES_MAX);
    validate_at(root, node, &path, false, &causes);
    schema_set_free(set);
    return causes.count == 0;
}

static void check_combinations(const struct schema *schema, const cJSON *node, const char *path,
                               struct causes *causes)
{
    const cJSON *check;
    cJSON_ArrayForEach (check, schema->value_checks) {
        int total = 1;
        int matched = 0;
        const cJSON *alternative;
        if (cJSON_IsArray(check)) {
            total = cJSON_GetArraySize(check);
            cJSON_ArrayForEach (alternative, check)
                matched += matches_check(alternative, node);
        } else {
            matched = matches_check(check, node);
        }
        bool holds = strcmp(check->string, "allOf") == 0   ? matched == total
                     : strcmp(check->string, "anyOf") == 0 ? matched > 0
                     : strcmp(check->string, "oneOf") == 0 ? matched == 1
                                                           : matched == 0;
        if (!holds)
            causes_add_node(causes, CAUSE_INVALID, path, node, "%s in body must validate %s", path,
                            check->string);
    }
}

static void validate_at(const struct schema *schema, const cJSON *node, struct buf *path, bool resource,
                        struct causes *causes)
{
    schema = schema_follow(schema);
    if (!schema || (cJSON_IsNull(node) && schema->nullable))
        return;
    if (!has_type(schema->type, node)) {
        CLEANUP_FREE char *shown = xasprintf("\"%s\"", node_type_name(node));
        causes_add(causes, CAUSE_TYPE_INVALID, buf_text(path), shown, "%s in body must be of type %s: %s",
                   buf_text(path), type_name(schema->type), shown);
        return;
    }
    if (schema->enumeration)
        check_enumeration(schema, node, buf_text(path), causes);
    if (is_number(node))
        check_number(schema, node, buf_text(path), causes);
    else if (cJSON_IsString(node))
        check_string(schema, node, buf_text(path), causes);
    else if (cJSON_IsArray(node))
        check_array(schema, node, path, causes);
    else if (cJSON_IsObject(node))
        check_object(schema, node, path, resource, causes);
    if (schema->value_checks && schema->type != SCHEMA_INT_OR_STRING)
        check_combinations(schema, node, buf_text(path), causes);
}

/* --- rules
 * ---------------------------------------------------------------------------------------------------- */

static enum cause_type rule_cause(const char *reason)
{
    if (str_equal(reason, "FieldValueForbidden"))
        return CAUSE_FORBIDDEN;
    if (str_equal(reason, "FieldValueRequired"))
        return CAUSE_REQUIRED;
    if (str_equal(reason, "FieldValueDuplicate"))
        return CAUSE_DUPLICATE;
    return CAUSE_INVALID;
}

static void report_rule(const struct cel_rule *rule, const cJSON *node, const cJSON *old, const char *path,
                        struct causes *causes)
{
    CLEANUP_FREE char *message = cel_rule_message(rule, node, old);
    const char *below = cel_rule_field(rule);
    CLEANUP_FREE char *field = !below  ? xstrdup(path)
                               : *path ? xasprintf("%s%s", path, below)
                                       : xstrdup(below + 1);
    enum cause_type type = rule_cause(cel_rule_reason(rule));
    /* Scalars are shown; objects and lists are not. */
    CLEANUP_FREE char *shown =
        node->child || cJSON_IsObject(node) || cJSON_IsArray(node) ? NULL : json_print(node);
    causes_add(causes, type, *field ? field : "<nil>", type == CAUSE_INVALID ? shown : NULL, "%s", message);
}

static void report_broken_rule(const cJSON *node, const char *path, const char *problem,
                               struct causes *causes)
{
    CLEANUP_FREE char *shown = xasprintf("\"%s\"", node_type_name(node));
    causes_add(causes, CAUSE_INVALID, *path ? path : "<nil>", shown, "%s", problem);
}

static void run_rules(const struct schema *schema, const cJSON *node, const cJSON *old, const char *path,
                      struct causes *causes)
{
    for (size_t i = 0; i < schema->rule_count; i++) {
        const struct cel_rule *rule = schema->rules[i];
        if (cel_rule_is_transition(rule) && !old)
            continue;
        CLEANUP_ERROR struct error *err = NULL;
        int result = cel_rule_holds(rule, node, old, &err);
        if (result < 0)
            report_broken_rule(node, path, error_text(err), causes);
        else if (!result)
            report_rule(rule, node, old, path, causes);
    }
}

/* The counterpart of item in the old list: by map keys; items of other lists have none. */
static const cJSON *old_item(const struct schema *schema, const cJSON *old, const cJSON *item)
{
    const cJSON *candidate;
    if (schema->list == SCHEMA_LIST_MAP)
        cJSON_ArrayForEach (candidate, old)
            if (same_map_key(schema, candidate, item))
                return candidate;
    return NULL;
}

static void rules_at(const struct schema *schema, const cJSON *node, const cJSON *old, struct buf *path,
                     struct causes *causes)
{
    schema = schema_follow(schema);
    if (!schema)
        return;
    run_rules(schema, node, old, buf_text(path), causes);
    int index = 0;
    const cJSON *child;
    cJSON_ArrayForEach (child, node) {
        if (cJSON_IsArray(node)) {
            size_t above = enter_item(path, index++);
            rules_at(schema->items, child, old_item(schema, old, child), path, causes);
            leave(path, above);
        } else if (cJSON_IsObject(node)) {
            size_t above = enter(path, child->string);
            rules_at(schema_member(schema, child->string), child, json_get(old, child->string), path, causes);
            leave(path, above);
        }
    }
}

/* Errors after which the values cannot be trusted to be what the rules think they are. */
static bool is_blocked(const struct causes *causes)
{
    for (size_t i = 0; i < causes->count; i++) {
        enum cause_type type = causes->items[i].type;
        if (type == CAUSE_NOT_SUPPORTED || type == CAUSE_REQUIRED || type == CAUSE_TOO_LONG ||
            type == CAUSE_TOO_MANY || type == CAUSE_TYPE_INVALID)
            return true;
    }
    return false;
}

/* What the scale subresource reads must be a number that is not negative. */
static void check_scale_numbers(const cJSON *object, const char *path, struct causes *causes)
{
    const cJSON *node = path ? jsonpath_find(object, path) : NULL;
    int64_t number;
    if (!node || cJSON_IsNull(node))
        return;
    if (!json_node_int64(node, &number))
        causes_add(causes, CAUSE_INVALID, path, "0",
                   "%s accessor error: the value is of the type %s, expected int64", path,
                   node_type_name(node));
    else if (number < 0)
        causes_add_node(causes, CAUSE_INVALID, path, node, "should be a non-negative integer");
}

void schema_validate(const struct schema *schema, const cJSON *object, const cJSON *old,
                     const char *scale_path, struct causes *causes)
{
    CLEANUP_BUF struct buf path = BUF_INIT(PATH_BYTES_MAX);
    validate_at(schema, object, &path, true, causes);
    if (schema->own_metadata) {
        CLEANUP_BUF struct buf metadata = BUF_INIT(PATH_BYTES_MAX);
        buf_add_text(&metadata, "metadata");
        validate_at(schema->own_metadata, json_get(object, "metadata"), &metadata, false, causes);
    }
    check_scale_numbers(object, scale_path, causes);
    if (!schema_has_rules(schema))
        return;
    if (is_blocked(causes))
        causes_add(causes, CAUSE_INVALID, "<nil>", "null",
                   "some validation rules were not checked because the object was invalid; correct the "
                   "existing errors "
                   "to complete validation");
    else
        rules_at(schema, object, old, &path, causes);
}

/* --- built-in kinds
 * ------------------------------------------------------------------------------------------- */

/* metav1.MicroTime takes exactly six digits behind the point. */
static bool has_six_digits(const char *text)
{
    const char *point = strchr(text, '.');
    return point && strspn(point + 1, "0123456789") == 6;
}

static int check_types_at(const struct schema *schema, const cJSON *node, struct buf *path,
                          const struct scope *scope, struct error **err)
{
    schema = schema_follow(schema);
    if (!schema || cJSON_IsNull(node))
        return 0;
    if (!has_type(schema->type, node))
        return error_set(err, ERROR_INVALID, "json: cannot unmarshal %s into field %s of type %s",
                         is_number(node) ? "number" : node_type_name(node), buf_text(path),
                         type_name(schema->type));
    int64_t at_us;
    if (str_equal(schema->format, "date-time") && cJSON_IsString(node) &&
        time_parse_rfc3339(node->valuestring, &at_us, err) < 0)
        return -ERROR_INVALID;
    if (schema->micro_time && cJSON_IsString(node) && !has_six_digits(node->valuestring))
        return error_set(err, ERROR_INVALID,
                         "parsing time \"%s\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse",
                         node->valuestring);
    struct quantity ignored;
    if (schema->type == SCHEMA_QUANTITY && !quantity_from_node(node, &ignored))
        return error_set(err, ERROR_INVALID,
                         "quantities must match the regular expression "
                         "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    int index = 0;
    const cJSON *child;
    cJSON_ArrayForEach (child, node) {
        if (is_out_of_scope(scope, child->string))
            continue;
        size_t above = cJSON_IsArray(node) ? enter_item(path, index++) : enter(path, child->string);
        const struct schema *below_schema =
            cJSON_IsArray(node) ? schema->items : schema_member(schema, child->string);
        int result = check_types_at(below_schema, child, path, NULL, err);
        leave(path, above);
        if (result < 0)
            return result;
    }
    return 0;
}

int schema_check_types(const struct schema *schema, const cJSON *object, const cJSON *touched,
                       struct error **err)
{
    CLEANUP_BUF struct buf path = BUF_INIT(PATH_BYTES_MAX);
    return check_types_at(schema, object, &path, &(struct scope){.touched = touched}, err);
}
