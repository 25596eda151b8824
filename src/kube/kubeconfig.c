/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kubeconfig.h"

#include "base/yaml.h"

#include <ctype.h>
#include <uthash.h>

enum { NAMES_SHOWN_MAX = 20 };

static const struct {
    const char *list; /* key of the list in a file */
    const char *body; /* key of the object in an element */
} sections[] = {
    [KUBECONFIG_CLUSTER] = {"clusters", "cluster"},
    [KUBECONFIG_USER] = {"users", "user"},
    [KUBECONFIG_CONTEXT] = {"contexts", "context"},
};

struct source {
    char *path;
    char *folder;
    cJSON *tree;
    struct source *next;
};

struct entry {
    char *name;
    const cJSON *value;
    const struct source *source;
    UT_hash_handle hh; /* keeps the order of insertion */
};

struct kubeconfig {
    struct source *sources; /* in the order they were added */
    struct entry *entries[KUBECONFIG_SECTION_COUNT];
    const char *current_context;
};

struct kubeconfig *kubeconfig_make(void)
{
    return xcalloc(1, sizeof(struct kubeconfig));
}

void kubeconfig_free(struct kubeconfig *merged)
{
    if (!merged)
        return;
    for (size_t i = 0; i < KUBECONFIG_SECTION_COUNT; i++) {
        struct entry *entry = merged->entries[i];
        HASH_CLEAR(hh, merged->entries[i]); /* the table; the entries stay linked */
        while (entry) {
            struct entry *next = entry->hh.next;
            free(entry->name);
            free(entry);
            entry = next;
        }
    }
    while (merged->sources) {
        struct source *source = merged->sources;
        merged->sources = source->next;
        json_delete(source->tree);
        free(source->path);
        free(source->folder);
        free(source);
    }
    free(merged);
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return xstrdup(".");
    return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

/* An object, or NULL for a file that says nothing. */
static int parse(const char *path, const char *text, size_t length, cJSON **ret, struct error **err)
{
    size_t at = 0;
    while (at < length && isspace((unsigned char)text[at]))
        at++;
    *ret = NULL;
    if (at == length)
        return 0;
    CLEANUP_JSON cJSON *tree = NULL;
    /* A JSON text that YAML would read otherwise (tabs, long keys) is still JSON. */
    if (text[at] != '{' || json_parse(text, length, &tree, NULL) < 0) {
        int result = yaml_parse_one(text, length, path, &tree, err);
        if (result == -ERROR_NOT_FOUND) {
            if (err && *err) {
                error_free(*err);
                *err = NULL;
            }
            return 0;
        }
        if (result < 0)
            return error_wrap(err, result, "the kubeconfig cannot be read");
    }
    if (cJSON_IsNull(tree))
        return 0;
    if (!cJSON_IsObject(tree))
        return error_set(err, ERROR_INVALID, "%s is not a kubeconfig: no mapping at its top", path);
    *ret = STEAL(tree);
    return 0;
}

int kubeconfig_text(const cJSON *object, const char *key, const char *where, const char **ret,
                    struct error **err)
{
    const cJSON *node = json_get(object, key);
    *ret = NULL;
    if (!node || cJSON_IsNull(node))
        return 0;
    if (!cJSON_IsString(node))
        return error_set(err, ERROR_INVALID, "%s: %s is not a string (quote it)", where, key);
    if (*node->valuestring)
        *ret = node->valuestring;
    return 0;
}

static int check_head(const cJSON *tree, const char *path, struct error **err)
{
    const char *kind = NULL;
    const char *version = NULL;
    int result = kubeconfig_text(tree, "kind", path, &kind, err);
    if (result == 0)
        result = kubeconfig_text(tree, "apiVersion", path, &version, err);
    if (result < 0)
        return result;
    if ((kind && strcmp(kind, "Config") != 0) || (version && strcmp(version, "v1") != 0))
        return error_set(err, ERROR_INVALID, "%s is not a kubeconfig: it says kind %s, apiVersion %s", path,
                         kind ? kind : "(none)", version ? version : "(none)");
    return 0;
}

static int add_entry(struct kubeconfig *merged, enum kubeconfig_section section, const struct source *source,
                     const cJSON *element, struct error **err)
{
    CLEANUP_FREE char *where = xasprintf("%s: an element of %s", source->path, sections[section].list);
    const char *name = NULL;
    int result = kubeconfig_text(element, "name", where, &name, err);
    if (result < 0)
        return result;
    const cJSON *value = json_get(element, sections[section].body);
    if (!name)
        return error_set(err, ERROR_INVALID, "%s has no name", where);
    if (value && !cJSON_IsNull(value) && !cJSON_IsObject(value))
        return error_set(err, ERROR_INVALID, "%s: %s of '%s' is not a mapping", source->path,
                         sections[section].body, name);
    struct entry *found;
    HASH_FIND_STR(merged->entries[section], name, found);
    if (found && found->source == source)
        return error_set(err, ERROR_INVALID, "%s has the name '%s' twice in %s", source->path, name,
                         sections[section].list);
    /* The first file that names it wins whole: nothing of a later one is mixed in (as kubectl). */
    if (found)
        return 0;
    struct entry *entry = xcalloc(1, sizeof(*entry));
    entry->name = xstrdup(name);
    entry->value = value;
    entry->source = source;
    HASH_ADD_KEYPTR(hh, merged->entries[section], entry->name, strlen(entry->name), entry);
    return 0;
}

static int add_section(struct kubeconfig *merged, enum kubeconfig_section section,
                       const struct source *source, struct error **err)
{
    const cJSON *list = json_get(source->tree, sections[section].list);
    if (!list || cJSON_IsNull(list))
        return 0;
    if (!cJSON_IsArray(list))
        return error_set(err, ERROR_INVALID, "%s: %s is not a list", source->path, sections[section].list);
    const cJSON *element;
    cJSON_ArrayForEach (element, list) {
        int result = add_entry(merged, section, source, element, err);
        if (result < 0)
            return result;
    }
    return 0;
}

int kubeconfig_add(struct kubeconfig *merged, const char *path, const char *text, size_t length,
                   struct error **err)
{
    PRE(merged && path && text);
    CLEANUP_JSON cJSON *tree = NULL;
    int result = parse(path, text, length, &tree, err);
    if (result < 0 || !tree)
        return result;
    result = check_head(tree, path, err);
    if (result < 0)
        return result;
    struct source *source = xcalloc(1, sizeof(*source));
    source->path = xstrdup(path);
    source->folder = folder_of(path);
    source->tree = STEAL(tree);
    struct source **end = &merged->sources;
    while (*end)
        end = &(*end)->next;
    *end = source;
    const char *current = NULL;
    result = kubeconfig_text(source->tree, "current-context", path, &current, err);
    if (result == 0 && current && !merged->current_context)
        merged->current_context = current;
    for (size_t i = 0; i < KUBECONFIG_SECTION_COUNT && result == 0; i++)
        result = add_section(merged, (enum kubeconfig_section)i, source, err);
    return result;
}

bool kubeconfig_is_empty(const struct kubeconfig *merged)
{
    return !merged->current_context && !merged->entries[KUBECONFIG_CLUSTER] &&
           !merged->entries[KUBECONFIG_USER] && !merged->entries[KUBECONFIG_CONTEXT];
}

bool kubeconfig_find(const struct kubeconfig *merged, enum kubeconfig_section section, const char *name,
                     struct kubeconfig_entry *ret)
{
    struct entry *found;
    HASH_FIND_STR(merged->entries[section], name, found);
    if (!found)
        return false;
    *ret = (struct kubeconfig_entry){.name = found->name,
                                     .value = found->value,
                                     .file = found->source->path,
                                     .folder = found->source->folder};
    return true;
}

const char *kubeconfig_current_context(const struct kubeconfig *merged)
{
    return merged->current_context;
}

/* "a, b", grown by one. */
static void add_to_text(char **text, const char *name)
{
    char *longer = xasprintf("%s%s%s", *text, **text ? ", " : "", name);
    free(*text);
    *text = longer;
}

char *kubeconfig_files_text(const struct kubeconfig *merged)
{
    char *text = xstrdup("");
    for (const struct source *source = merged->sources; source; source = source->next)
        add_to_text(&text, source->path);
    return text;
}

char *kubeconfig_names_text(const struct kubeconfig *merged, enum kubeconfig_section section)
{
    CLEANUP_FREE char *text = xstrdup("");
    unsigned shown = 0;
    const struct entry *entry = merged->entries[section];
    for (; entry && shown < NAMES_SHOWN_MAX; entry = entry->hh.next, shown++)
        add_to_text(&text, entry->name);
    unsigned more = HASH_COUNT(merged->entries[section]) - shown;
    return more ? xasprintf("%s and %u more", text, more) : STEAL(text);
}
