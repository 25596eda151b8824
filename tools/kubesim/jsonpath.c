/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/jsonpath.h"

enum step_type { STEP_MEMBER, STEP_INDEX, STEP_FILTER, STEP_END, STEP_BAD };

struct step {
    enum step_type type;
    char *name;  /* member, or the filter's field */
    char *value; /* what the filter's field equals */
    int index;
};

static void step_done(struct step *step)
{
    free(STEAL(step->name));
    free(STEAL(step->value));
}

/* ['name'] with \' and \. for what is escaped in it. */
static const char *read_quoted(const char *at, struct step *step)
{
    const char *end = strstr(at, "']");
    if (!end)
        return NULL;
    step->type = STEP_MEMBER;
    step->name = xstrndup(at, (size_t)(end - at));
    return end + 2;
}

/* [?(@.type=="Ready")] and with single quotes. */
static const char *read_filter(const char *at, struct step *step)
{
    size_t length = strcspn(at, " =!<>)");
    const char *equals = at + length + strspn(at + length, " ");
    if (length == 0 || !str_starts_with(equals, "=="))
        return NULL;
    const char *quote = equals + 2 + strspn(equals + 2, " ");
    const char *end = *quote == '"' || *quote == '\'' ? strchr(quote + 1, *quote) : NULL;
    if (!end || !str_starts_with(end + 1 + strspn(end + 1, " "), ")]"))
        return NULL;
    step->type = STEP_FILTER;
    step->name = xstrndup(at, length);
    step->value = xstrndup(quote + 1, (size_t)(end - quote - 1));
    return strstr(end, ")]") + 2;
}

/* Reads one step; moves *at. */
static enum step_type next_step(const char **at, struct step *step)
{
    *step = (struct step){.type = STEP_BAD};
    const char *text = *at;
    if (!*text)
        return step->type = STEP_END;
    if (*text == '.') {
        size_t length = strcspn(text + 1, ".[");
        if (length == 0 || text[1] == '*')
            return STEP_BAD;
        step->name = xstrndup(text + 1, length);
        *at = text + 1 + length;
        return step->type = STEP_MEMBER;
    }
    if (str_starts_with(text, "['")) {
        text = read_quoted(text + 2, step);
    } else if (str_starts_with(text, "[?(@.")) {
        text = read_filter(text + strlen("[?(@."), step);
    } else if (*text == '[' && strspn(text + 1, "0123456789") > 0) {
        char *end;
        step->index = (int)strtol(text + 1, &end, 10);
        step->type = STEP_INDEX;
        text = *end == ']' ? end + 1 : NULL;
    } else {
        return STEP_BAD;
    }
    if (!text)
        return step->type = STEP_BAD;
    *at = text;
    return step->type;
}

bool jsonpath_is_supported(const char *path)
{
    for (;;) {
        struct step step;
        enum step_type type = next_step(&path, &step);
        step_done(&step);
        if (type == STEP_END || type == STEP_BAD)
            return type == STEP_END;
    }
}

static const cJSON *follow(const cJSON *node, const struct step *step)
{
    if (step->type == STEP_MEMBER)
        return json_get(node, step->name);
    if (!cJSON_IsArray(node))
        return NULL;
    if (step->type == STEP_INDEX)
        return cJSON_GetArrayItem(node, step->index);
    const cJSON *item;
    cJSON_ArrayForEach (item, node)
        if (str_equal(json_str(item, step->name), step->value))
            return item;
    return NULL;
}

const cJSON *jsonpath_find(const cJSON *tree, const char *path)
{
    const cJSON *node = tree;
    while (node) {
        struct step step;
        enum step_type type = next_step(&path, &step);
        if (type == STEP_END || type == STEP_BAD) {
            step_done(&step);
            return type == STEP_END ? node : NULL;
        }
        node = follow(node, &step);
        step_done(&step);
    }
    return NULL;
}
