/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/decide_parts.h"

#include "kube/object.h"

#include <stdio.h>

#define SIZE_FIELD "spec.resources.requests.storage"

/* --- reading -------------------------------------------------------------------------------------------- */

static void add_bad(struct volume_items *bad, bool declared, const char *name, const char *field,
                    const char *text, char *problem)
{
    struct volume_item *item = volume_items_add(bad, name);
    str_replace(&item->field, field);
    str_replace(declared ? &item->to : &item->from, text);
    item->problem = problem;
}

/* What is wrong with the size, or NULL; the caller's. */
static char *read_size(const cJSON *node, struct volume_template *template)
{
    if (!node || cJSON_IsNull(node))
        return xstrdup("the size is missing");
    CLEANUP_ERROR struct error *err = NULL;
    if (quantity_read(node, &template->size, &template->text, &err) < 0)
        return xstrdup(error_text(err));
    if (quantity_sign(&template->size) <= 0)
        return xasprintf("the size %s is not greater than 0", template->text);
    return NULL;
}

static bool is_there_before(const struct volume_templates *templates, const char *name)
{
    for (size_t i = 0; i < templates->count; i++)
        if (str_equal(templates->items[i].name, name))
            return true;
    return false;
}

static void read_template(const cJSON *node, size_t place, bool declared, struct volume_templates *ret,
                          struct volume_items *bad)
{
    struct volume_template template = {.node = node, .name = kube_object_name(node)};
    const char *whose = declared ? "" : "of the live set, ";
    if (!template.name) {
        CLEANUP_FREE char *name = xasprintf("volumeClaimTemplates[%zu]", place);
        add_bad(bad, declared, name, "metadata.name", NULL, xasprintf("%sthe name is missing", whose));
        return;
    }
    if (is_there_before(ret, template.name))
        add_bad(bad, declared, template.name, "metadata.name", template.name,
                xasprintf("%sthe template is there twice", whose));
    CLEANUP_FREE char *problem =
        read_size(json_path(node, "spec", "resources", "requests", "storage", NULL), &template);
    if (problem)
        add_bad(bad, declared, template.name, SIZE_FIELD, template.text, xasprintf("%s%s", whose, problem));
    ret->items = xreallocarray(ret->items, ret->count + 1, sizeof(*ret->items));
    ret->items[ret->count++] = template;
}

void volume_templates_read(const cJSON *set, bool declared, struct volume_templates *ret,
                           struct volume_items *bad)
{
    *ret = (struct volume_templates){0};
    const cJSON *list = json_path(set, "spec", "volumeClaimTemplates", NULL);
    if (list && !cJSON_IsArray(list) && !cJSON_IsNull(list)) {
        const char *name = kube_object_name(set);
        add_bad(bad, declared, name ? name : "", "spec.volumeClaimTemplates", NULL,
                xstrdup("must be a list"));
        return;
    }
    const cJSON *node;
    size_t place = 0;
    cJSON_ArrayForEach (node, list)
        read_template(node, place++, declared, ret, bad);
}

void volume_templates_done(struct volume_templates *templates)
{
    for (size_t i = 0; i < templates->count; i++)
        free(templates->items[i].text);
    free(templates->items);
    *templates = (struct volume_templates){0};
}

/* --- comparing names ------------------------------------------------------------------------------------ */

static void add_missing(const struct volume_templates *of, const struct volume_templates *in,
                        const char *problem, struct volume_items *changed)
{
    for (size_t i = 0; i < of->count; i++)
        if (!is_there_before(in, of->items[i].name))
            volume_items_add(changed, of->items[i].name)->problem = xstrdup(problem);
}

/* The next that the other has, too, from *place on. */
static const char *next_common(const struct volume_templates *of, const struct volume_templates *in,
                               size_t *place)
{
    while (*place < of->count) {
        const char *name = of->items[(*place)++].name;
        if (is_there_before(in, name))
            return name;
    }
    return NULL;
}

void volume_templates_compare_names(const struct volume_templates *live,
                                    const struct volume_templates *declared, struct volume_items *changed)
{
    add_missing(live, declared, "is not declared any more", changed);
    add_missing(declared, live, "is new", changed);
    size_t live_place = 0, declared_place = 0;
    const char *was, *is;
    while ((was = next_common(live, declared, &live_place)) &&
           (is = next_common(declared, live, &declared_place)))
        if (strcmp(was, is) != 0)
            volume_items_add(changed, is)->problem = xasprintf("stands where %s was", was);
}

/* --- comparing fields ----------------------------------------------------------------------------------- */

/* Members that the server fills in or takes off by itself, and the size, which is judged elsewhere. */
static const char *const echoes[] = {"apiVersion", "kind", "status", "metadata.creationTimestamp",
                                     SIZE_FIELD,   NULL};
/* Objects that the server keeps behind a pointer: there, empty is not absent. */
static const char *const pointers[] = {"spec.selector", "spec.dataSource", "spec.dataSourceRef", NULL};
/* Texts that it does not: there, empty is absent. */
static const char *const plain_texts[] = {"spec.volumeName", "metadata.namespace", "metadata.generateName",
                                          NULL};

static bool is_one_of(const char *path, const char *const *paths)
{
    for (; *paths; paths++)
        if (strcmp(path, *paths) == 0)
            return true;
    return false;
}

/* The value as the server compares it: NULL for what means the same as absent. */
static const cJSON *meaning(const cJSON *value, const char *path)
{
    if (!value || cJSON_IsNull(value))
        return NULL;
    if ((cJSON_IsObject(value) || cJSON_IsArray(value)) && !value->child)
        return is_one_of(path, pointers) ? value : NULL;
    if (cJSON_IsString(value) && !*value->valuestring && is_one_of(path, plain_texts))
        return NULL;
    if (strcmp(path, "spec.volumeMode") == 0 && str_equal(value->valuestring, "Filesystem"))
        return NULL;
    return value;
}

static bool is_quantity(const char *path)
{
    return str_starts_with(path, "spec.resources.requests") || str_starts_with(path, "spec.resources.limits");
}

static bool is_same_quantity(const cJSON *a, const cJSON *b)
{
    struct quantity left, right;
    CLEANUP_FREE char *left_text = NULL, *right_text = NULL;
    return quantity_read(a, &left, &left_text, NULL) == 0 &&
           quantity_read(b, &right, &right_text, NULL) == 0 && quantity_compare(&left, &right) == 0;
}

static char *value_text(const cJSON *value)
{
    if (!value)
        return NULL;
    return cJSON_IsString(value) ? xstrdup(value->valuestring) : json_print(value);
}

static void compare_members(const cJSON *live, const cJSON *declared, const char *path, const char *template,
                            struct volume_items *changed);

static void compare_values(const cJSON *live, const cJSON *declared, const char *path, const char *template,
                           struct volume_items *changed)
{
    if (is_one_of(path, echoes))
        return;
    live = meaning(live, path);
    declared = meaning(declared, path);
    if (!live && !declared)
        return;
    /* Of a map that only one has each member is named, not the whole. */
    bool has_members = (!live || cJSON_IsObject(live)) && (!declared || cJSON_IsObject(declared));
    if (has_members && ((live && declared) || !is_one_of(path, pointers))) {
        compare_members(live, declared, path, template, changed);
        return;
    }
    if (live && declared &&
        (json_equal(live, declared) || (is_quantity(path) && is_same_quantity(live, declared))))
        return;
    struct volume_item *item = volume_items_add(changed, template);
    item->field = xstrdup(path);
    item->from = value_text(live);
    item->to = value_text(declared);
}

/* "metadata" and "labels" -> "metadata.labels"; keys that are not one word stand in brackets. The caller's.
 */
static char *path_of(const char *path, const char *key)
{
    bool is_word = *key != '\0';
    for (const char *at = key; *at && is_word; at++)
        is_word = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
                  *at == '-' || *at == '_';
    return xasprintf(is_word ? "%s%s%s" : "%s%s[%s]", path, is_word && *path ? "." : "", key);
}

static void compare_members(const cJSON *live, const cJSON *declared, const char *path, const char *template,
                            struct volume_items *changed)
{
    const cJSON *member;
    cJSON_ArrayForEach (member, live) {
        CLEANUP_FREE char *inner = path_of(path, member->string);
        compare_values(member, json_get(declared, member->string), inner, template, changed);
    }
    cJSON_ArrayForEach (member, declared) {
        if (json_get(live, member->string))
            continue;
        CLEANUP_FREE char *inner = path_of(path, member->string);
        compare_values(NULL, member, inner, template, changed);
    }
}

void volume_template_compare(const struct volume_template *live, const struct volume_template *declared,
                             struct volume_items *changed)
{
    compare_members(live->node, declared->node, "", declared->name, changed);
}
