/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/schema.h"

#include "kubesim/cel.h"

struct named {
    const char *name;
    const char *json;
};
static const struct named builtin_definitions[] = {
#define SCHEMA(name, json) {name, json},
#include "kubesim/schemas.inc"
#undef SCHEMA
};

struct schema_set {
    struct schema **all; /* everything allocated */
    size_t count;
    size_t room;
    struct schema *named[ARRAY_SIZE(builtin_definitions)]; /* only of the built-in set */
    bool builtin;
};

static const char reference_prefix[] = "#/components/schemas/";

static struct schema *new_schema(struct schema_set *set)
{
    if (set->count == set->room) {
        set->room = MAX(set->room * 2, 64);
        set->all = xreallocarray(set->all, set->room, sizeof(set->all[0]));
    }
    struct schema *schema = xcalloc(1, sizeof(*schema));
    schema->min_length = schema->max_length = schema->min_items = schema->max_items = -1;
    schema->min_properties = schema->max_properties = -1;
    schema->builtin = set->builtin;
    set->all[set->count++] = schema;
    return schema;
}

static void schema_done(struct schema *schema)
{
    for (size_t i = 0; i < schema->property_count; i++)
        free(schema->properties[i].name);
    free(schema->properties);
    free(schema->slots);
    json_delete(schema->required);
    json_delete(schema->default_value);
    json_delete(schema->enumeration);
    json_delete(schema->value_checks);
    if (schema->pattern)
        regfree(&schema->regex);
    free(schema->pattern);
    free(schema->format);
    for (size_t i = 0; i < schema->map_key_count; i++)
        free(schema->map_keys[i]);
    free(schema->merge_key);
    for (size_t i = 0; i < schema->rule_count; i++)
        cel_rule_free(schema->rules[i]);
    free(schema);
}

void schema_set_free(struct schema_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++)
        schema_done(set->all[i]);
    free(set->all);
    free(set);
}

static int find_named(const char *name)
{
    size_t low = 0;
    size_t high = ARRAY_SIZE(builtin_definitions);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(builtin_definitions[middle].name, name);
        if (order == 0)
            return (int)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

const struct schema *schema_set_find(const struct schema_set *set, const char *name)
{
    int index = set->builtin ? find_named(name) : -1;
    return index < 0 ? NULL : set->named[index];
}

/* The $ref of a node, also where OpenAPI 3.0 has to wrap it in allOf to put a default beside it. */
static const char *reference_of(const cJSON *tree)
{
    const char *reference = json_str(tree, "$ref");
    const cJSON *all_of = json_get(tree, "allOf");
    if (!reference && cJSON_GetArraySize(all_of) == 1)
        reference = json_str(all_of->child, "$ref");
    return reference;
}

static int read_type(struct schema *schema, const cJSON *tree, const char *at, struct error **err)
{
    static const struct {
        const char *name;
        enum schema_type type;
    } types[] = {{"object", SCHEMA_OBJECT},   {"array", SCHEMA_ARRAY},   {"string", SCHEMA_STRING},
                 {"integer", SCHEMA_INTEGER}, {"number", SCHEMA_NUMBER}, {"boolean", SCHEMA_BOOLEAN}};
    const char *name = json_str(tree, "type");
    const char *format = json_str(tree, "format");
    schema->format = xstrdup_or_null(format);
    if (json_bool_or(tree, "x-kubernetes-int-or-string", false) || str_equal(format, "int-or-string")) {
        schema->type = SCHEMA_INT_OR_STRING;
        return 0;
    }
    if (!name) {
        const cJSON *one_of = json_get(tree, "oneOf");
        const char *second = one_of && one_of->child ? json_str(one_of->child->next, "type") : NULL;
        schema->type = str_equal(second, "number") ? SCHEMA_QUANTITY : SCHEMA_ANY;
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (strcmp(types[i].name, name) == 0) {
            schema->type = types[i].type;
            return 0;
        }
    }
    return error_set(err, ERROR_INVALID, "%s.type: Unsupported value: \"%s\"", at, name);
}

static void read_number(const cJSON *tree, const char *key, bool *has, double *ret)
{
    const cJSON *node = json_get(tree, key);
    int64_t whole = 0;
    *has = node != NULL;
    if (json_node_int64(node, &whole))
        *ret = (double)whole;
    else if (node && cJSON_IsNumber(node))
        *ret = node->valuedouble;
}

static void read_bounds(struct schema *schema, const cJSON *tree)
{
    bool ignored;
    read_number(tree, "minimum", &schema->has_minimum, &schema->minimum);
    read_number(tree, "maximum", &schema->has_maximum, &schema->maximum);
    read_number(tree, "multipleOf", &ignored, &schema->multiple_of);
    schema->exclusive_minimum = json_bool_or(tree, "exclusiveMinimum", false);
    schema->exclusive_maximum = json_bool_or(tree, "exclusiveMaximum", false);
    schema->min_length = json_int64_or(tree, "minLength", -1);
    schema->max_length = json_int64_or(tree, "maxLength", -1);
    schema->min_items = json_int64_or(tree, "minItems", -1);
    schema->max_items = json_int64_or(tree, "maxItems", -1);
    schema->min_properties = json_int64_or(tree, "minProperties", -1);
    schema->max_properties = json_int64_or(tree, "maxProperties", -1);
    schema->unique_items = json_bool_or(tree, "uniqueItems", false);
    schema->nullable = json_bool_or(tree, "nullable", false);
}

static void read_merge(struct schema *schema, const cJSON *tree)
{
    const char *list = json_str(tree, "x-kubernetes-list-type");
    if (str_equal(list, "map"))
        schema->list = SCHEMA_LIST_MAP;
    else if (str_equal(list, "set"))
        schema->list = SCHEMA_LIST_SET;
    const cJSON *key;
    cJSON_ArrayForEach (key, json_get(tree, "x-kubernetes-list-map-keys"))
        if (cJSON_IsString(key) && schema->map_key_count < SCHEMA_MAP_KEYS_MAX)
            schema->map_keys[schema->map_key_count++] = xstrdup(key->valuestring);
    schema->atomic_map = str_equal(json_str(tree, "x-kubernetes-map-type"), "atomic");
    const char *strategy = json_str(tree, "x-kubernetes-patch-strategy");
    const char *merge_key = json_str(tree, "x-kubernetes-patch-merge-key");
    schema->retain_keys = strategy && strstr(strategy, "retainKeys");
    if (strategy && strstr(strategy, "merge"))
        schema->merge_key = xstrdup(merge_key ? merge_key : "");
    schema->preserve_unknown = json_bool_or(tree, "x-kubernetes-preserve-unknown-fields", false);
    schema->embedded = json_bool_or(tree, "x-kubernetes-embedded-resource", false);
}

/* RE2 as far as POSIX extended expressions can say it: \d \w \s and non-capturing groups. */
static char *translate_pattern(const char *pattern)
{
    CLEANUP_BUF struct buf text = BUF_INIT(64 * 1024);
    bool in_brackets = false;
    for (const char *at = pattern; *at; at++) {
        const char *class = NULL;
        if (at[0] == '\\')
            class = at[1] == 'd' ? "0-9" : at[1] == 'w' ? "0-9A-Za-z_" : at[1] == 's' ? " \t\n\r\f" : NULL;
        if (class) {
            buf_addf(&text, in_brackets ? "%s" : "[%s]", class);
            at++;
        } else if (str_starts_with(at, "(?:")) {
            buf_add_char(&text, '(');
            at += 2;
        } else if (at[0] == '\\' && at[1]) {
            buf_add(&text, at, 2);
            at++;
        } else {
            if (*at == '[' && !in_brackets)
                in_brackets = true;
            else if (*at == ']')
                in_brackets = false;
            buf_add_char(&text, *at);
        }
    }
    return buf_take(&text);
}

static int read_pattern(struct schema *schema, const cJSON *tree, const char *at, struct error **err)
{
    const char *pattern = json_str(tree, "pattern");
    if (!pattern)
        return 0;
    CLEANUP_FREE char *translated = translate_pattern(pattern);
    if (regcomp(&schema->regex, translated, REG_EXTENDED | REG_NOSUB) != 0)
        return error_set(err, ERROR_UNSUPPORTED,
                         "%s.pattern: kubesim cannot evaluate '%s' (it knows POSIX extended expressions)", at,
                         pattern);
    schema->pattern = xstrdup(pattern);
    return 0;
}

static int read_rules(struct schema *schema, const cJSON *tree, const char *at, struct error **err)
{
    const cJSON *rule;
    cJSON_ArrayForEach (rule, json_get(tree, "x-kubernetes-validations")) {
        if (schema->rule_count == SCHEMA_RULES_MAX)
            return error_set(err, ERROR_INVALID, "%s: more than %d rules", at, SCHEMA_RULES_MAX);
        struct cel_rule *compiled;
        int result = cel_rule_compile(rule, &compiled, err);
        if (result < 0)
            return error_wrap(err, result, "%s.x-kubernetes-validations", at);
        schema->rules[schema->rule_count++] = compiled;
    }
    return 0;
}

static void read_value_checks(struct schema *schema, const cJSON *tree)
{
    static const char *const keys[] = {"allOf", "anyOf", "oneOf", "not"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const cJSON *check = json_get(tree, keys[i]);
        if (!check)
            continue;
        if (!schema->value_checks)
            schema->value_checks = json_new_object();
        json_add_item(schema->value_checks, keys[i], json_copy(check));
    }
}

/* Names of one schema differ in length or in one of three bytes, as a rule. */
static size_t hash_of(const char *name)
{
    size_t length = strlen(name);
    if (length == 0)
        return 0;
    const uint8_t *bytes = (const uint8_t *)name;
    return length + 5U * bytes[0] + 23U * bytes[length / 2] + 67U * bytes[length - 1];
}

/* Once all properties are there. At most half of the slots are taken. */
static void index_properties(struct schema *schema)
{
    size_t room = 2;
    ENSURE(schema->property_count < UINT16_MAX);
    while (room < 2 * schema->property_count)
        room *= 2;
    schema->slots = xcalloc(room, sizeof(schema->slots[0]));
    schema->slot_mask = room - 1;
    for (size_t i = 0; i < schema->property_count; i++) {
        size_t at = hash_of(schema->properties[i].name) & schema->slot_mask;
        while (schema->slots[at])
            at = (at + 1) & schema->slot_mask;
        schema->slots[at] = (uint16_t)(i + 1);
    }
}

static void index_all(struct schema_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->all[i]->property_count > 0)
            index_properties(set->all[i]);
}

static const struct schema *find_property(const struct schema *schema, const char *name)
{
    if (!schema->slots)
        return NULL;
    for (size_t at = hash_of(name) & schema->slot_mask; schema->slots[at];
         at = (at + 1) & schema->slot_mask) {
        const struct schema_property *property = &schema->properties[schema->slots[at] - 1];
        if (strcmp(property->name, name) == 0)
            return property->schema;
    }
    return NULL;
}

static int compare_properties(const void *a, const void *b)
{
    return strcmp(((const struct schema_property *)a)->name, ((const struct schema_property *)b)->name);
}

static int compile(struct schema_set *set, const cJSON *tree, struct schema *schema, const char *at,
                   int depth, struct error **err);

static int compile_properties(struct schema_set *set, const cJSON *properties, struct schema *schema,
                              const char *at, int depth, struct error **err)
{
    size_t count = (size_t)cJSON_GetArraySize(properties);
    if (count == 0)
        return 0;
    schema->properties = xcalloc(count, sizeof(schema->properties[0]));
    const cJSON *property;
    cJSON_ArrayForEach (property, properties) {
        CLEANUP_FREE char *below = xasprintf("%s.properties[%s]", at, property->string);
        struct schema_property *slot = &schema->properties[schema->property_count++];
        slot->name = xstrdup(property->string);
        slot->schema = new_schema(set);
        int result = compile(set, property, slot->schema, below, depth, err);
        if (result < 0)
            return result;
    }
    qsort(schema->properties, count, sizeof(schema->properties[0]), compare_properties);
    return 0;
}

static int compile_children(struct schema_set *set, const cJSON *tree, struct schema *schema, const char *at,
                            int depth, struct error **err)
{
    int result = compile_properties(set, json_get(tree, "properties"), schema, at, depth, err);
    const cJSON *items = json_get(tree, "items");
    if (result == 0 && cJSON_IsObject(items)) {
        CLEANUP_FREE char *below = xasprintf("%s.items", at);
        schema->items = new_schema(set);
        result = compile(set, items, schema->items, below, depth, err);
    }
    const cJSON *additional = json_get(tree, "additionalProperties");
    if (result == 0 && cJSON_IsObject(additional)) {
        CLEANUP_FREE char *below = xasprintf("%s.additionalProperties", at);
        schema->additional = new_schema(set);
        result = compile(set, additional, schema->additional, below, depth, err);
    } else if (cJSON_IsTrue(additional)) {
        schema->preserve_unknown = true;
    }
    return result;
}

static struct schema *follow_reference(struct schema_set *set, const char *reference)
{
    if (!set->builtin || !str_starts_with(reference, reference_prefix))
        return NULL;
    int index = find_named(reference + sizeof(reference_prefix) - 1);
    return index < 0 ? NULL : set->named[index];
}

static int compile(struct schema_set *set, const cJSON *tree, struct schema *schema, const char *at,
                   int depth, struct error **err)
{
    if (depth > JSON_DEPTH_MAX || !cJSON_IsObject(tree))
        return error_set(err, ERROR_INVALID, "%s: must be an object, not too deep", at);
    read_merge(schema, tree);
    if (json_get(tree, "default"))
        schema->default_value = json_copy(json_get(tree, "default"));
    const char *reference = reference_of(tree);
    if (reference) {
        schema->reference = follow_reference(set, reference);
        return schema->reference ? 0 : error_set(err, ERROR_INVALID, "%s.$ref: Forbidden: %s", at, reference);
    }
    int result = read_type(schema, tree, at, err);
    read_bounds(schema, tree);
    if (json_get(tree, "required"))
        schema->required = json_copy(json_get(tree, "required"));
    if (json_get(tree, "enum"))
        schema->enumeration = json_copy(json_get(tree, "enum"));
    if (!set->builtin)
        read_value_checks(schema, tree);
    if (result == 0)
        result = read_pattern(schema, tree, at, err);
    if (result == 0)
        result = read_rules(schema, tree, at, err);
    if (result == 0)
        result = compile_children(set, tree, schema, at, depth + 1, err);
    /* RawExtension, FieldsV1: free-form. In a definition of a custom kind such an object is pruned empty. */
    if (set->builtin && schema->type == SCHEMA_OBJECT && !schema->properties && !schema->additional)
        schema->preserve_unknown = true;
    return result;
}

struct schema_set *schema_set_builtin(void)
{
    struct schema_set *set = xcalloc(1, sizeof(*set));
    set->builtin = true;
    for (size_t i = 0; i < ARRAY_SIZE(builtin_definitions); i++)
        set->named[i] = new_schema(set);
    for (size_t i = 0; i < ARRAY_SIZE(builtin_definitions); i++) {
        const struct named *definition = &builtin_definitions[i];
        CLEANUP_JSON cJSON *tree = NULL;
        ENSURE(json_parse(definition->json, strlen(definition->json), &tree, NULL) == 0);
        ENSURE(compile(set, tree, set->named[i], definition->name, 0, NULL) == 0);
        set->named[i]->micro_time = str_ends_with(definition->name, ".MicroTime");
    }
    index_all(set);
    return set;
}

/* What every object has, said by its definition or not. reference: what it stands for; NULL: a string. */
static void add_property(struct schema_set *set, struct schema *root, const char *name,
                         const struct schema *reference)
{
    struct schema *schema = NULL;
    for (size_t i = 0; i < root->property_count; i++)
        if (strcmp(root->properties[i].name, name) == 0)
            schema = root->properties[i].schema;
    if (!schema) {
        root->properties =
            xreallocarray(root->properties, root->property_count + 1, sizeof(root->properties[0]));
        schema = new_schema(set);
        root->properties[root->property_count++] =
            (struct schema_property){.name = xstrdup(name), .schema = schema};
        qsort(root->properties, root->property_count, sizeof(root->properties[0]), compare_properties);
        schema->type = SCHEMA_STRING;
    }
    schema->reference = reference;
}

/* metadata is the server's own type; what the definition says of it (name and generateName) comes on top. */
static void keep_own_metadata(struct schema_set *set, struct schema *root)
{
    for (size_t i = 0; i < root->property_count; i++) {
        if (strcmp(root->properties[i].name, "metadata") != 0)
            continue;
        if (root->properties[i].schema->property_count > 0)
            root->own_metadata = root->properties[i].schema;
        root->properties[i].schema = new_schema(set);
    }
}

int schema_set_custom(const cJSON *tree, const struct schema *meta, struct schema_set **ret,
                      const struct schema **ret_root, struct error **err)
{
    struct schema_set *set = xcalloc(1, sizeof(*set));
    struct schema *root = new_schema(set);
    int result = compile(set, tree, root, "openAPIV3Schema", 0, err);
    add_property(set, root, "apiVersion", NULL);
    add_property(set, root, "kind", NULL);
    if (meta) {
        keep_own_metadata(set, root);
        add_property(set, root, "metadata", meta);
    }
    if (result < 0) {
        schema_set_free(set);
        return result;
    }
    index_all(set);
    *ret = set;
    *ret_root = root;
    return 0;
}

const struct schema *schema_member_raw(const struct schema *schema, const char *name)
{
    schema = schema_follow(schema);
    const struct schema *property = schema ? find_property(schema, name) : NULL;
    return property || !schema ? property : schema->additional;
}

const struct schema *schema_member(const struct schema *schema, const char *name)
{
    return schema_follow(schema_member_raw(schema, name));
}

bool schema_has_rules(const struct schema *schema)
{
    if (!schema || schema->reference)
        return false;
    if (schema->rule_count > 0 || schema_has_rules(schema->items) || schema_has_rules(schema->additional))
        return true;
    for (size_t i = 0; i < schema->property_count; i++)
        if (schema_has_rules(schema->properties[i].schema))
            return true;
    return false;
}

void schema_visit_builtin(void (*visit)(void *context, const char *name, const char *json), void *context)
{
    for (size_t i = 0; i < ARRAY_SIZE(builtin_definitions); i++)
        visit(context, builtin_definitions[i].name, builtin_definitions[i].json);
}
