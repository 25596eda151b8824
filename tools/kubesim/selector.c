/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/selector.h"

#include <stdio.h>

enum { REQUIREMENTS_MAX = 64, VALUES_MAX = 256 };

enum relation { OP_IN, OP_NOT_IN, OP_EXISTS, OP_NOT_EXISTS };

struct requirement {
    char *key;
    enum relation relation;
    char **values;
    size_t value_count;
};

struct selector {
    struct requirement requirements[REQUIREMENTS_MAX];
    size_t count;
};

void selector_free(struct selector *selector)
{
    if (!selector)
        return;
    for (size_t i = 0; i < selector->count; i++) {
        struct requirement *requirement = &selector->requirements[i];
        for (size_t k = 0; k < requirement->value_count; k++)
            free(requirement->values[k]);
        free(requirement->values);
        free(requirement->key);
    }
    free(selector);
}

static void add_value(struct requirement *requirement, const char *text, size_t length)
{
    if (requirement->value_count == VALUES_MAX)
        return;
    requirement->values =
        xreallocarray(requirement->values, requirement->value_count + 1, sizeof(requirement->values[0]));
    requirement->values[requirement->value_count++] = xstrndup(text, length);
}

static struct requirement *add_requirement(struct selector *selector, const char *key, size_t length,
                                           enum relation relation)
{
    if (selector->count == REQUIREMENTS_MAX)
        return NULL;
    struct requirement *requirement = &selector->requirements[selector->count++];
    *requirement = (struct requirement){.key = xstrndup(key, length), .relation = relation};
    return requirement;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* One word of a label selector: up to an operator, a bracket, a comma or a blank. */
static size_t word_length(const char *at)
{
    return strcspn(at, " \t,()=!");
}

/* "(a, b)" behind in or notin. */
static const char *parse_values(struct requirement *requirement, const char *at)
{
    at = skip_blanks(at);
    if (*at != '(')
        return NULL;
    do {
        at = skip_blanks(at + 1);
        size_t length = word_length(at);
        add_value(requirement, at, length);
        at = skip_blanks(at + length);
    } while (*at == ',');
    return *at == ')' ? at + 1 : NULL;
}

/* The requirement at *at; NULL when it cannot be read. */
static const char *parse_requirement(struct selector *selector, const char *at)
{
    at = skip_blanks(at);
    bool negated = *at == '!';
    at = negated ? skip_blanks(at + 1) : at;
    size_t length = word_length(at);
    if (length == 0)
        return NULL;
    struct requirement *requirement =
        add_requirement(selector, at, length, negated ? OP_NOT_EXISTS : OP_EXISTS);
    if (!requirement)
        return NULL;
    at = skip_blanks(at + length);
    if (negated || *at == ',' || *at == '\0')
        return at;
    if (*at == '=' || str_starts_with(at, "!=")) {
        requirement->relation = *at == '!' ? OP_NOT_IN : OP_IN;
        at = skip_blanks(at + (at[0] == '!' || at[1] == '=' ? 2 : 1));
        length = word_length(at);
        add_value(requirement, at, length);
        return skip_blanks(at + length);
    }
    if (str_starts_with(at, "in") || str_starts_with(at, "notin")) {
        requirement->relation = *at == 'i' ? OP_IN : OP_NOT_IN;
        at = parse_values(requirement, at + (*at == 'i' ? 2 : 5));
        return at ? skip_blanks(at) : NULL;
    }
    return NULL;
}

int selector_parse_labels(const char *text, struct selector **ret, struct error **err)
{
    if (!text || !*skip_blanks(text)) {
        *ret = NULL;
        return 0;
    }
    CLEANUP_SELECTOR struct selector *selector = xcalloc(1, sizeof(*selector));
    for (const char *at = text;; at++) {
        at = parse_requirement(selector, at);
        if (!at || (*at && *at != ','))
            return error_set(err, ERROR_INVALID, "unable to parse requirement: '%s' is not a label selector",
                             text);
        if (!*at)
            break;
    }
    *ret = STEAL(selector);
    return 0;
}

static int add_expression(struct selector *selector, const cJSON *expression, struct error **err)
{
    static const char *const names[] = {"In", "NotIn", "Exists", "DoesNotExist"};
    const char *key = json_str(expression, "key");
    const char *name = json_str(expression, "operator");
    for (size_t i = 0; key && name && i < ARRAY_SIZE(names); i++) {
        if (strcmp(name, names[i]) != 0)
            continue;
        struct requirement *requirement = add_requirement(selector, key, strlen(key), (enum relation)i);
        const cJSON *value;
        if (requirement)
            cJSON_ArrayForEach (value, json_get(expression, "values"))
                if (cJSON_IsString(value))
                    add_value(requirement, value->valuestring, strlen(value->valuestring));
        return 0;
    }
    return error_set(err, ERROR_INVALID, "\"%s\" is not a valid label selector operator", name ? name : "");
}

int selector_from_tree(const cJSON *tree, struct selector **ret, struct error **err)
{
    CLEANUP_SELECTOR struct selector *selector = xcalloc(1, sizeof(*selector));
    const cJSON *member;
    cJSON_ArrayForEach (member, json_get(tree, "matchLabels")) {
        struct requirement *requirement =
            cJSON_IsString(member) ? add_requirement(selector, member->string, strlen(member->string), OP_IN)
                                   : NULL;
        if (!requirement)
            return error_set(err, ERROR_INVALID, "matchLabels must hold at most %d strings",
                             REQUIREMENTS_MAX);
        add_value(requirement, member->valuestring, strlen(member->valuestring));
    }
    cJSON_ArrayForEach (member, json_get(tree, "matchExpressions")) {
        int result = add_expression(selector, member, err);
        if (result < 0)
            return result;
    }
    *ret = STEAL(selector);
    return 0;
}

static bool is_supported(const char *field, const char *const *paths)
{
    for (; *paths; paths++)
        if (strcmp(*paths, field) == 0)
            return true;
    return false;
}

int selector_parse_fields(const char *text, const char *const *paths, struct selector **ret,
                          struct error **err)
{
    if (!text || !*text) {
        *ret = NULL;
        return 0;
    }
    CLEANUP_SELECTOR struct selector *selector = xcalloc(1, sizeof(*selector));
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "=!,");
        size_t operator_length = at[length] == '!' || at[length + 1] == '=' ? 2 : 1;
        bool equal = at[length] == '=';
        if (!equal && !str_starts_with(at + length, "!="))
            return error_set(err, ERROR_INVALID, "invalid selector: '%s'; can't understand '%s'", text, at);
        struct requirement *requirement = add_requirement(selector, at, length, equal ? OP_IN : OP_NOT_IN);
        if (!requirement)
            return error_set(err, ERROR_INVALID, "more than %d field requirements", REQUIREMENTS_MAX);
        if (!is_supported(requirement->key, paths))
            return error_set(err, ERROR_UNSUPPORTED, "%s", requirement->key);
        at += length + operator_length;
        length = strcspn(at, ",");
        add_value(requirement, at, length);
        at += length + (at[length] == ',');
    }
    *ret = STEAL(selector);
    return 0;
}

static bool has_value(const struct requirement *requirement, const char *value)
{
    for (size_t i = 0; i < requirement->value_count; i++)
        if (strcmp(requirement->values[i], value) == 0)
            return true;
    return false;
}

static bool meets(const struct requirement *requirement, const char *value)
{
    switch (requirement->relation) {
    case OP_IN:
        return value && has_value(requirement, value);
    case OP_NOT_IN:
        return !value || !has_value(requirement, value);
    case OP_EXISTS:
        return value != NULL;
    case OP_NOT_EXISTS:
        return value == NULL;
    }
    UNREACHABLE();
}

bool selector_match_labels(const struct selector *selector, const cJSON *labels)
{
    for (size_t i = 0; selector && i < selector->count; i++)
        if (!meets(&selector->requirements[i], json_str(labels, selector->requirements[i].key)))
            return false;
    return true;
}

/* The text of the field at a dotted path; "" when absent. scratch holds numbers. */
static const char *field_text(const cJSON *object, const char *path, char scratch[static 32])
{
    const cJSON *node = object;
    while (node && *path) {
        size_t length = strcspn(path, ".");
        CLEANUP_FREE char *key = xstrndup(path, length);
        node = json_get(node, key);
        path += length + (path[length] == '.');
    }
    int64_t number = 0;
    if (!node)
        return "";
    if (cJSON_IsString(node))
        return node->valuestring;
    if (cJSON_IsBool(node))
        return cJSON_IsTrue(node) ? "true" : "false";
    if (!json_node_int64(node, &number))
        return "";
    snprintf(scratch, 32, "%lld", (long long)number);
    return scratch;
}

bool selector_match_fields(const struct selector *selector, const cJSON *object)
{
    char scratch[32];
    for (size_t i = 0; selector && i < selector->count; i++)
        if (!meets(&selector->requirements[i], field_text(object, selector->requirements[i].key, scratch)))
            return false;
    return true;
}

const char *selector_field_value(const struct selector *selector, const char *field)
{
    for (size_t i = 0; selector && i < selector->count; i++) {
        const struct requirement *requirement = &selector->requirements[i];
        if (requirement->relation == OP_IN && strcmp(requirement->key, field) == 0)
            return requirement->values[0];
    }
    return NULL;
}
