/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/manifest.h"
#include "base/yaml.h"
#include "env/file.h"
#include "kube/object.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <uthash.h>

enum {
    INPUT_MAX = 64 << 20, /* bytes of all files together: as base/yaml.h bounds one */
    OBJECTS_MAX = 10000,
    FILES_MAX = 10000,
    LISTS_MAX = 8, /* lists in lists */
};

/* One reading of all that is named. */
struct reading {
    struct manifests *manifests;
    size_t bytes;
    size_t files;
    bool had_stdin;
    struct error **err;
};

void manifests_done(struct manifests *manifests)
{
    for (size_t i = 0; i < manifests->count; i++) {
        json_delete(manifests->items[i].object);
        free(manifests->items[i].origin);
    }
    free(manifests->items);
    *manifests = (struct manifests){0};
}

char *manifest_text(const struct manifest *manifest)
{
    const char *kind = json_str(manifest->object, "kind");
    const char *name = kube_object_name(manifest->object);
    const char *namespace = kube_object_namespace(manifest->object);
    return xasprintf("%s %s%s%s (%s)", kind ? kind : "object", name ? name : "without a name",
                     namespace ? " in namespace " : "", namespace ? namespace : "", manifest->origin);
}

/* --- one document --------------------------------------------------------------------------------------- */

static int check(const struct manifest *manifest, struct error **err)
{
    const cJSON *object = manifest->object;
    const char *origin = manifest->origin;
    if (!cJSON_IsObject(object))
        return error_set(err, ERROR_INVALID, "%s: not an object, but %s: each document is one object", origin,
                         cJSON_IsArray(object) ? "a list" : "a single value");
    const char *kind = json_str(object, "kind");
    const char *version = json_str(object, "apiVersion");
    if (!kind || !*kind || !version || !*version)
        return error_set(err, ERROR_INVALID,
                         "%s: the object has no %s (it says what the object is, as in %s)", origin,
                         kind && *kind ? "apiVersion" : "kind",
                         kind && *kind ? "apiVersion: apps/v1" : "kind: StatefulSet");
    return 0;
}

/* Unquoted, 2024 is a number to YAML. As a namespace it would be taken for none: for another one. */
static int check_is_text(const struct manifest *manifest, const char *field, struct error **err)
{
    const cJSON *value = json_path(manifest->object, "metadata", field, NULL);
    if (!value || cJSON_IsString(value) || cJSON_IsNull(value))
        return 0;
    CLEANUP_FREE char *text = json_print(value);
    return error_set(err, ERROR_INVALID, "%s: the %s has a metadata.%s that is no text: %.40s%s",
                     manifest->origin, json_str(manifest->object, "kind"), field, text,
                     cJSON_IsNumber(value) || cJSON_IsBool(value) ? ": put it into quotes" : "");
}

static int check_name(const struct manifest *manifest, struct error **err)
{
    const char *kind = json_str(manifest->object, "kind");
    int r = check_is_text(manifest, "name", err);
    if (r == 0)
        r = check_is_text(manifest, "namespace", err);
    if (r < 0)
        return r;
    if (kube_object_name(manifest->object))
        return 0;
    if (json_path(manifest->object, "metadata", "generateName", NULL))
        return error_set(err, ERROR_INVALID,
                         "%s: the %s has generateName, so each time it would be another object: give it "
                         "metadata.name, or use `kubectl create`",
                         manifest->origin, kind);
    return error_set(err, ERROR_INVALID, "%s: the %s has no metadata.name: give it one", manifest->origin,
                     kind);
}

static int keep(struct reading *reading, struct manifest *manifest)
{
    struct manifests *manifests = reading->manifests;
    if (manifests->count == OBJECTS_MAX)
        return error_set(reading->err, ERROR_TOO_LARGE, "%s: more than %d objects: give them in several runs",
                         manifest->origin, OBJECTS_MAX);
    if (manifests->count == manifests->room) {
        manifests->room = MAX(16, manifests->room * 2);
        manifests->items = xreallocarray(manifests->items, manifests->room, sizeof(*manifests->items));
    }
    struct manifest *added = &manifests->items[manifests->count++];
    added->object = STEAL(manifest->object);
    added->origin = STEAL(manifest->origin);
    return 0;
}

static bool is_list(const cJSON *object)
{
    const char *kind = json_str(object, "kind");
    return kind && (str_equal(kind, "List") || (str_ends_with(kind, "List") && json_get(object, "items")));
}

/* Takes manifest over. */
static int add(struct reading *reading, struct manifest manifest, int depth)
{
    int r = check(&manifest, reading->err);
    if (r == 0 && !is_list(manifest.object)) {
        r = check_name(&manifest, reading->err);
        if (r == 0)
            r = keep(reading, &manifest);
    } else if (r == 0) {
        cJSON *items = json_get(manifest.object, "items");
        int64_t number = 0;
        if (!cJSON_IsArray(items) || depth == LISTS_MAX)
            r = error_set(reading->err, ERROR_INVALID, "%s: %s", manifest.origin,
                          depth == LISTS_MAX ? "lists in lists in lists: too deep"
                                             : "the items of a List are a list");
        while (r == 0 && items->child) {
            cJSON *item = cJSON_DetachItemViaPointer(items, items->child);
            char *origin = xasprintf("%s, item %d", manifest.origin, (int)++number);
            r = add(reading, (struct manifest){item, origin}, depth + 1);
        }
    }
    json_delete(manifest.object);
    free(manifest.origin);
    return r;
}

static int add_text(struct reading *reading, const struct buf *text, const char *name)
{
    struct yaml_documents documents = {0};
    int r = yaml_parse(buf_text(text), text->length, name, &documents, reading->err);
    for (size_t i = 0; r == 0 && i < documents.count; i++) {
        cJSON *object = STEAL(documents.items[i]);
        char *origin = xasprintf("%s, line %d", name, documents.lines[i]);
        r = add(reading, (struct manifest){object, origin}, 0);
    }
    yaml_documents_done(&documents);
    return r;
}

/* --- files ---------------------------------------------------------------------------------------------- */

static int add_file(struct reading *reading, const char *path, const char *name)
{
    CLEANUP_BUF struct buf text = BUF_INIT(INPUT_MAX - reading->bytes);
    if (++reading->files > FILES_MAX)
        return error_set(reading->err, ERROR_TOO_LARGE, "%s: more than %d files: give them in several runs",
                         name, FILES_MAX);
    int r = real_read_file(NULL, path, &text, reading->err);
    if (r == -ERROR_TOO_LARGE) {
        if (reading->err)
            error_free(STEAL(*reading->err));
        return error_set(reading->err, ERROR_TOO_LARGE,
                         "%s: more than %d MiB of manifests: give them in several runs", name,
                         INPUT_MAX >> 20);
    }
    reading->bytes += text.length;
    return r < 0 ? r : add_text(reading, &text, name);
}

static int is_manifest_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.' &&
           (str_ends_with(entry->d_name, ".yaml") || str_ends_with(entry->d_name, ".yml") ||
            str_ends_with(entry->d_name, ".json"));
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* the same everywhere, whatever the locale */
}

static int add_folder(struct reading *reading, const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_manifest_file, by_bytes);
    if (count < 0)
        return error_set_errno(reading->err, errno, "cannot read the folder %s", path);
    int r = 0;
    if (count == 0)
        r = error_set(reading->err, ERROR_INVALID,
                      "the folder %s has no *.yaml, *.yml or *.json (folders in it are not looked into)",
                      path);
    for (int i = 0; i < count; i++) {
        CLEANUP_FREE char *file =
            xasprintf("%s%s%s", path, str_ends_with(path, "/") ? "" : "/", entries[i]->d_name);
        if (r == 0)
            r = add_file(reading, file, file);
        free(entries[i]);
    }
    free(entries);
    return r;
}

static int add_path(struct reading *reading, const char *path)
{
    struct stat about;
    if (str_equal(path, "-")) {
        if (reading->had_stdin)
            return error_set(reading->err, ERROR_USAGE, "-f - is given twice: there is one standard input");
        reading->had_stdin = true;
        return add_file(reading, "/dev/stdin", "standard input");
    }
    if (str_starts_with(path, "http://") || str_starts_with(path, "https://"))
        return error_set(reading->err, ERROR_USAGE,
                         "-f %s: no address is fetched; fetch it and look at it first, then give the file",
                         path);
    if (stat(path, &about) < 0)
        return error_set_errno(reading->err, errno, "cannot open %s", path);
    return S_ISDIR(about.st_mode) ? add_folder(reading, path) : add_file(reading, path, path);
}

int manifests_read(const struct options *options, struct manifests *ret, struct error **err)
{
    struct manifests manifests = {0};
    struct reading reading = {.manifests = &manifests, .err = err};
    int count = option_count(options, "filename");
    if (count == 0)
        return error_set(err, ERROR_USAGE, "%s needs -f FILE (a folder is fine, - is the standard input)",
                         option_command_name(options));
    int r = 0;
    for (int i = 0; r == 0 && i < count; i++)
        r = add_path(&reading, option_text_at(options, "filename", i));
    if (r == 0 && manifests.count == 0)
        r = error_set(err, ERROR_INVALID, "there is no object in %s", option_text_at(options, "filename", 0));
    if (r < 0)
        manifests_done(&manifests);
    else
        *ret = manifests;
    return r;
}

/* --- one name, one object ------------------------------------------------------------------------------- */

struct named {
    const struct manifest *manifest;
    UT_hash_handle hh;
    char key[];
};

static struct named *named_make(const struct manifest *manifest)
{
    const char *version = json_str(manifest->object, "apiVersion");
    const char *slash = strchr(version, '/');
    const char *namespace = kube_object_namespace(manifest->object);
    CLEANUP_FREE char *key = xasprintf("%.*s/%s/%s/%s", slash ? (int)(slash - version) : 0, version,
                                       json_str(manifest->object, "kind"), namespace ? namespace : "",
                                       kube_object_name(manifest->object));
    size_t size = strlen(key) + 1;
    struct named *named = xcalloc(1, sizeof *named + size);
    named->manifest = manifest;
    memcpy(named->key, key, size);
    return named;
}

int manifests_check_unique(const struct manifests *manifests, struct error **err)
{
    struct named *all = NULL, *named, *next;
    int r = 0;
    for (size_t i = 0; r == 0 && i < manifests->count; i++) {
        struct named *other = NULL;
        named = named_make(&manifests->items[i]);
        HASH_FIND_STR(all, named->key, other);
        if (other) {
            CLEANUP_FREE char *second = manifest_text(named->manifest);
            r = error_set(
                err, ERROR_INVALID,
                "%s is there twice, first in %s: one of the two would undo the other, so remove one", second,
                other->manifest->origin);
            free(named);
        } else {
            HASH_ADD_STR(all, key, named);
        }
    }
    HASH_ITER (hh, all, named, next) {
        HASH_DEL(all, named);
        free(named);
    }
    return r;
}
