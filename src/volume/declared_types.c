/* SPDX-License-Identifier: Apache-2.0
 *
 * The script compares what it is told of as the server would: a number where the server wants text is no such
 * manifest, and is named here, where a person looks, and not in a Job at night. */
#include "volume/declared_parts.h"

enum type { TEXT, COUNT, MAP, LIST, TEXTS /* a list of them */, LABELS /* a map of them */ };

struct field {
    const char *path; /* members, parted by '.' */
    enum type type;
};

/* A map before what is in it. */
static const struct field of_set[] = {
    {"metadata", MAP},
    {"spec", MAP},
    {"spec.serviceName", TEXT},
    {"spec.podManagementPolicy", TEXT},
    {"spec.replicas", COUNT},
    {"spec.selector", MAP},
    {"spec.volumeClaimTemplates", LIST},
};
static const struct field of_template[] = {
    {"metadata", MAP},
    {"metadata.name", TEXT},
    {"metadata.labels", LABELS},
    {"metadata.annotations", LABELS},
    {"spec", MAP},
    {"spec.accessModes", TEXTS},
    {"spec.storageClassName", TEXT},
    {"spec.volumeMode", TEXT},
    {"spec.volumeName", TEXT},
    {"spec.volumeAttributesClassName", TEXT},
    {"spec.selector", MAP},
    {"spec.dataSource", MAP},
    {"spec.dataSourceRef", MAP},
    {"spec.resources", MAP},
    {"spec.resources.requests", MAP},
    {"spec.resources.limits", MAP},
};

static const cJSON *find(const cJSON *tree, const char *path)
{
    CLEANUP_FREE char *words = xstrdup(path);
    char *rest = NULL;
    for (char *word = strtok_r(words, ".", &rest); word && tree; word = strtok_r(NULL, ".", &rest))
        tree = json_get(tree, word);
    return tree;
}

static bool is_of_type(const cJSON *node, enum type type)
{
    int64_t count = -1;
    switch (type) {
    case TEXT:
        return cJSON_IsString(node);
    case COUNT:
        return json_node_int64(node, &count) && count >= 0;
    case LIST:
    case TEXTS:
        return cJSON_IsArray(node);
    case MAP:
    case LABELS:
        return cJSON_IsObject(node);
    }
    UNREACHABLE();
}

static const char *type_text(enum type type)
{
    return type == TEXT                    ? "text"
           : type == COUNT                 ? "a whole number"
           : type == LIST || type == TEXTS ? "a list"
                                           : "a map";
}

static const char *kind_text(const cJSON *node)
{
    return cJSON_IsString(node)   ? "text"
           : cJSON_IsArray(node)  ? "a list"
           : cJSON_IsObject(node) ? "a map"
           : cJSON_IsBool(node)   ? "true or false"
           : cJSON_IsNull(node)   ? "nothing"
                                  : "a number";
}

static int refuse(const char *whose, const char *path, const cJSON *node, enum type type, struct error **err)
{
    bool is_unquoted = type == TEXT && (cJSON_IsNumber(node) || cJSON_IsBool(node) || cJSON_IsRaw(node));
    return error_set(err, ERROR_INVALID, "%s: %s is %s, where %s is expected%s", whose, path, kind_text(node),
                     type_text(type), is_unquoted ? ": quote it" : "");
}

static int check_members(const char *whose, const char *path, const cJSON *node, struct error **err)
{
    int i = 0;
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, node) {
        CLEANUP_FREE char *at =
            cJSON_IsArray(node) ? xasprintf("%s[%d]", path, i++) : xasprintf("%s.%s", path, member->string);
        if (!cJSON_IsString(member))
            return refuse(whose, at, member, TEXT, err);
    }
    return 0;
}

static int check(const char *whose, const cJSON *tree, const struct field *fields, size_t count,
                 struct error **err)
{
    int r = cJSON_IsObject(tree)
                ? 0
                : error_set(err, ERROR_INVALID, "%s is %s, where a map is expected", whose, kind_text(tree));
    for (size_t i = 0; r == 0 && i < count; i++) {
        const cJSON *node = find(tree, fields[i].path);
        if (!node || cJSON_IsNull(node))
            continue;
        if (!is_of_type(node, fields[i].type))
            r = refuse(whose, fields[i].path, node, fields[i].type, err);
        else if (fields[i].type == TEXTS || fields[i].type == LABELS)
            r = check_members(whose, fields[i].path, node, err);
    }
    return r;
}

int declared_check_set(const char *name, const cJSON *set, struct error **err)
{
    CLEANUP_FREE char *whose = xasprintf("StatefulSet %s", name);
    return check(whose, set, of_set, ARRAY_SIZE(of_set), err);
}

int declared_check_template(const char *set, const char *name, const cJSON *template, struct error **err)
{
    CLEANUP_FREE char *whose = xasprintf("StatefulSet %s: volumeClaimTemplate %s", set, name);
    return check(whose, template, of_template, ARRAY_SIZE(of_template), err);
}
