/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/resource.h"

#include <ctype.h>
#include <strings.h>

static const struct kube_resource_info resources[] = {
#define X(name, kind_text, group_text, version_text, plural_text, is_namespaced)                             \
    [KUBE_##name] = {.kind = (kind_text),                                                                    \
                     .group = (group_text),                                                                  \
                     .version = (version_text),                                                              \
                     .plural = (plural_text),                                                                \
                     .namespaced = (is_namespaced)},
    KUBE_RESOURCES(X)
#undef X
};

/* What kubectl calls them besides kind and plural. */
static const struct {
    const char *name;
    enum kube_resource resource;
} short_names[] = {
    {"neo", KUBE_NEOSET}, {"po", KUBE_POD},          {"pvc", KUBE_CLAIM},
    {"ev", KUBE_EVENT},   {"sts", KUBE_STATEFULSET}, {"crd", KUBE_DEFINITION},
};

/* What kube_resource_intern made, in the order of their numbers behind those of the table. */
static struct kube_resource_info *others[KUBE_OTHERS_MAX];
static size_t other_count;

const struct kube_resource_info *kube_resource_info(enum kube_resource resource)
{
    size_t number = (size_t)resource;
    PRE(number < KUBE_RESOURCE_COUNT + other_count);
    return number < KUBE_RESOURCE_COUNT ? &resources[number] : others[number - KUBE_RESOURCE_COUNT];
}

static struct kube_resource_info *copy_info(const struct kube_resource_info *info)
{
    struct kube_resource_info *copy = xcalloc(1, sizeof *copy);
    copy->kind = xstrdup(info->kind);
    copy->group = xstrdup(info->group);
    copy->version = xstrdup(info->version);
    copy->plural = xstrdup(info->plural);
    copy->namespaced = info->namespaced;
    return copy;
}

int kube_resource_intern(const struct kube_resource_info *info, enum kube_resource *ret)
{
    PRE(*info->kind && *info->version && *info->plural);
    for (size_t i = 0; i < KUBE_RESOURCE_COUNT + other_count; i++) {
        const struct kube_resource_info *known = kube_resource_info((enum kube_resource)i);
        *ret = (enum kube_resource)i;
        if (str_equal(known->kind, info->kind) && str_equal(known->group, info->group) &&
            str_equal(known->version, info->version))
            return 0;
    }
    if (other_count == KUBE_OTHERS_MAX)
        return -ERROR_TOO_LARGE;
    others[other_count++] = copy_info(info);
    *ret = (enum kube_resource)(KUBE_RESOURCE_COUNT + other_count - 1);
    return 0;
}

char *kube_resource_text(enum kube_resource resource)
{
    const struct kube_resource_info *info = kube_resource_info(resource);
    return xasprintf("%s/%s/%s/%s", info->group, info->version, info->plural,
                     info->namespaced ? "namespaced" : "cluster");
}

int kube_resource_of_text(const char *text, const char *kind, enum kube_resource *ret)
{
    CLEANUP_FREE char *memory = xstrdup(text);
    char *parts[4] = {memory};
    for (size_t i = 1; i < ARRAY_SIZE(parts); i++) {
        char *slash = strchr(parts[i - 1], '/');
        if (!slash)
            return -ERROR_INVALID;
        *slash = '\0';
        parts[i] = slash + 1;
    }
    struct kube_resource_info info = {.kind = kind,
                                      .group = parts[0],
                                      .version = parts[1],
                                      .plural = parts[2],
                                      .namespaced = str_equal(parts[3], "namespaced")};
    if (!*kind || !*info.version || !*info.plural || (!info.namespaced && !str_equal(parts[3], "cluster")))
        return -ERROR_INVALID;
    return kube_resource_intern(&info, ret);
}

int kube_resource_by_name(const char *name, enum kube_resource *ret)
{
    PRE(name && ret);
    for (size_t i = 0; i < KUBE_RESOURCE_COUNT + other_count; i++) {
        const struct kube_resource_info *info = kube_resource_info((enum kube_resource)i);
        /* The singular is the kind in lower case. */
        if (strcasecmp(name, info->kind) == 0 || strcasecmp(name, info->plural) == 0) {
            *ret = (enum kube_resource)i;
            return 0;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(short_names); i++) {
        if (strcasecmp(name, short_names[i].name) == 0) {
            *ret = short_names[i].resource;
            return 0;
        }
    }
    return -ERROR_NOT_FOUND;
}

char *kube_resource_api_version(enum kube_resource resource)
{
    const struct kube_resource_info *info = kube_resource_info(resource);
    return *info->group ? xasprintf("%s/%s", info->group, info->version) : xstrdup(info->version);
}

char *kube_resource_root(enum kube_resource resource)
{
    const struct kube_resource_info *info = kube_resource_info(resource);
    return *info->group ? xasprintf("/apis/%s/%s", info->group, info->version)
                        : xasprintf("/api/%s", info->version);
}

static bool is_unreserved(unsigned char byte)
{
    return isalnum(byte) || strchr("-._~", byte);
}

char *kube_percent_encode(const char *text)
{
    PRE(text);
    static const char digits[] = "0123456789ABCDEF";
    char *encoded = xmalloc(3 * strlen(text) + 1);
    char *out = encoded;
    for (const char *at = text; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if (is_unreserved(byte)) {
            *out++ = *at;
            continue;
        }
        *out++ = '%';
        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 15];
    }
    *out = '\0';
    return encoded;
}

/* Appends "/segment". A segment of dots alone would be taken for a relative path on the way, and a DELETE
 * would then reach the namespace instead of the object in it. */
static void add_segment(char **path, const char *segment)
{
    PRE(*segment);
    CLEANUP_FREE char *encoded = kube_percent_encode(segment);
    if (strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0) {
        free(encoded);
        encoded = xstrdup(segment[1] ? "%2E%2E" : "%2E");
    }
    char *longer = xasprintf("%s/%s", *path, encoded);
    free(*path);
    *path = longer;
}

char *kube_path(enum kube_resource resource, const char *namespace, const char *name, const char *subresource)
{
    const struct kube_resource_info *info = kube_resource_info(resource);
    bool in_namespace = info->namespaced && namespace && *namespace;
    /* An empty name would turn "delete this object" into "delete them all". */
    PRE(ERGO(name, *name));
    PRE(ERGO(subresource, name && *subresource));
    PRE(ERGO(name && info->namespaced, in_namespace));
    char *path = kube_resource_root(resource);
    if (in_namespace) {
        add_segment(&path, "namespaces");
        add_segment(&path, namespace);
    }
    add_segment(&path, info->plural);
    if (name)
        add_segment(&path, name);
    if (subresource)
        add_segment(&path, subresource);
    return path;
}

void kube_path_add_query(char **path, const char *name, const char *value)
{
    PRE(path && *path && name && value);
    CLEANUP_FREE char *encoded_name = kube_percent_encode(name);
    CLEANUP_FREE char *encoded_value = kube_percent_encode(value);
    char *longer = xasprintf("%s%c%s=%s", *path, strchr(*path, '?') ? '&' : '?', encoded_name, encoded_value);
    free(*path);
    *path = longer;
}
