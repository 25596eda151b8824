/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/selector.h"

#include "neoset/fact.h"

enum { SELECTOR_TEXT_MAX = 64 * 1024 };

static bool has_value(const cJSON *values, const char *text)
{
    const cJSON *value = NULL;
    cJSON_ArrayForEach (value, values) {
        if (cJSON_IsString(value) && str_equal(value->valuestring, text))
            return true;
    }
    return false;
}

static bool expression_matches(const cJSON *expression, const cJSON *labels)
{
    const char *key = json_str(expression, "key");
    const char *operator= json_str(expression, "operator");
    const cJSON *values = json_get(expression, "values");
    const char *label = key ? json_str(labels, key) : NULL;
    if (!key || !operator)
        return false;
    if (str_equal(operator, "In"))
        return label && has_value(values, label);
    if (str_equal(operator, "NotIn"))
        return !label || !has_value(values, label);
    if (str_equal(operator, "Exists"))
        return label != NULL;
    if (str_equal(operator, "DoesNotExist"))
        return label == NULL;
    return false;
}

static bool has_children(const cJSON *node)
{
    return node && node->child;
}

bool selector_matches(const cJSON *selector, const cJSON *labels)
{
    const cJSON *wanted = json_get(selector, "matchLabels");
    const cJSON *expressions = json_get(selector, "matchExpressions");
    if (!has_children(wanted) && !has_children(expressions))
        return false;
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, wanted) {
        if (!cJSON_IsString(item) || !str_equal(json_str(labels, item->string), item->valuestring))
            return false;
    }
    cJSON_ArrayForEach (item, expressions) {
        if (!expression_matches(item, labels))
            return false;
    }
    return true;
}

/* values joined by commas. */
static int add_values(struct buf *text, const cJSON *values)
{
    int result = 0;
    const cJSON *value = NULL;
    cJSON_ArrayForEach (value, values) {
        if (!cJSON_IsString(value))
            return -ERROR_INVALID;
        result |= buf_addf(text, "%s%s", value == values->child ? "" : ",", value->valuestring);
    }
    return result;
}

static int add_expression(struct buf *text, const cJSON *expression)
{
    const char *key = json_str(expression, "key");
    const char *operator= json_str(expression, "operator");
    const cJSON *values = json_get(expression, "values");
    if (!key || !operator)
        return -ERROR_INVALID;
    if (str_equal(operator, "Exists"))
        return buf_add_text(text, key);
    if (str_equal(operator, "DoesNotExist"))
        return buf_addf(text, "!%s", key);
    bool in = str_equal(operator, "In");
    if (!in && !str_equal(operator, "NotIn"))
        return -ERROR_INVALID;
    int result = buf_addf(text, "%s %s (", key, in ? "in" : "notin");
    result |= add_values(text, values);
    return result | buf_add_char(text, ')');
}

static int add_labels(struct buf *text, const cJSON *labels)
{
    if (!has_children(labels))
        return 0;
    CLEANUP_FREE char *sorted_text = json_print_sorted(labels);
    CLEANUP_JSON cJSON *sorted = NULL;
    int result = json_parse(sorted_text, strlen(sorted_text), &sorted, NULL);
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, sorted) {
        if (!cJSON_IsString(item))
            return -ERROR_INVALID;
        result |= buf_addf(text, "%s%s=%s", text->length ? "," : "", item->string, item->valuestring);
    }
    return result;
}

char *selector_print(const cJSON *selector)
{
    CLEANUP_BUF struct buf text = BUF_INIT(SELECTOR_TEXT_MAX);
    int result = add_labels(&text, json_get(selector, "matchLabels"));
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_get(selector, "matchExpressions")) {
        if (text.length)
            result |= buf_add_char(&text, ',');
        result |= add_expression(&text, item);
    }
    return result == 0 ? buf_take(&text) : NULL;
}

/* --- labels as text ------------------------------------------------------------------------------------- */

char *labels_print(const cJSON *labels)
{
    static const char *const own[] = {NEOSET_REVISION_LABEL, NEOSET_INDEX_LABEL, NEOSET_POD_NAME_LABEL};
    CLEANUP_BUF struct buf text = BUF_INIT(SELECTOR_TEXT_MAX);
    const cJSON *label = NULL;
    cJSON_ArrayForEach (label, labels) {
        bool is_own = !cJSON_IsString(label);
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
            is_own = is_own || strcmp(label->string, own[i]) == 0;
        /* Labels of that size are not let in by any server. */
        if (!is_own)
            (void)buf_addf(&text, "%s=%s\n", label->string, label->valuestring);
    }
    return buf_take(&text);
}

bool selector_matches_text(const char *selector, const char *labels)
{
    CLEANUP_JSON cJSON *tree = NULL;
    if (!selector || json_parse(selector, strlen(selector), &tree, NULL) < 0)
        return false;
    CLEANUP_JSON cJSON *object = json_new_object();
    for (const char *at = labels ? labels : ""; *at;) {
        const char *equals = strchr(at, '=');
        const char *end = equals ? strchr(equals, '\n') : NULL;
        if (!end)
            break;
        CLEANUP_FREE char *key = xstrndup(at, (size_t)(equals - at));
        CLEANUP_FREE char *value = xstrndup(equals + 1, (size_t)(end - equals - 1));
        json_set_str(object, key, value);
        at = end + 1;
    }
    return selector_matches(tree, object);
}
