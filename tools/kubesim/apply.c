/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/apply.h"

#include "kubesim/decode.h"
#include "kubesim/field_set.h"
#include "kubesim/managed.h"
#include "kubesim/schema_check.h"

enum { CONFLICTS_MAX = 256 };

static int check_options(struct call *call)
{
    const char *manager = path_parameter(&call->path, "fieldManager");
    if (call->sim->options.no_managed_fields)
        return refuse_not_modelled(call, "server-side apply without managedFields (an option of this model)");
    if (!manager || !*manager)
        return refuse_options(call, "PatchOptions", "fieldManager", CAUSE_REQUIRED, NULL,
                              "is required for apply patch");
    return 0;
}

static int check_configuration(struct call *call, const cJSON *config)
{
    CLEANUP_FREE char *expected = kind_api_version(call->kind);
    const char *kind = json_str(config, "kind");
    const char *api_version = json_str(config, "apiVersion");
    const char *name = meta_str(config, "name");
    if (!cJSON_IsObject(config) || !kind || !api_version)
        return refuse_bad_request(call, "Object 'Kind' is missing in the applied configuration");
    if (strcmp(kind, call->kind->name) != 0 || strcmp(api_version, expected) != 0)
        return refuse_bad_request(call, "the applied configuration is of %s %s, the path names %s %s",
                                  api_version, kind, expected, call->kind->name);
    if (name && strcmp(name, call->name) != 0)
        return refuse_bad_request(call, "the name of the object (%s) does not match the name on the URL (%s)",
                                  name, call->name);
    if (cJSON_GetArraySize(json_path(config, "metadata", "managedFields", NULL)) > 0)
        return refuse_bad_request(call, "metadata.managedFields must be nil");
    return 0;
}

/* "ns/db; apps/v1, Kind=StatefulSet", as an apply that cannot be read names its object. The caller's. */
static char *shown_object(const struct call *call, const cJSON *config)
{
    const char *namespace = meta_str(config, "namespace");
    CLEANUP_FREE char *api_version = kind_api_version(call->kind);
    return xasprintf("%s/%s; %s, Kind=%s", namespace ? namespace : "", call->name, api_version,
                     call->kind->name);
}

/* The configuration's fields. What cannot be typed is a 500 without reason: nothing was written. */
static int configured_set(struct call *call, const cJSON *config, cJSON **ret)
{
    CLEANUP_ERROR struct error *err = NULL;
    CLEANUP_FREE char *shown = shown_object(call, config);
    if (field_set_of(call->kind->schema, config, true, ret, &err) < 0)
        return refuse(call, 500, "", "failed to create typed patch object (%s): %s", shown, error_text(err));
    if (!(call->kind->flags & KIND_CUSTOM) &&
        schema_check_types(call->kind->schema, config, NULL, &err) < 0) {
        json_delete(STEAL(*ret));
        return refuse(call, 500, "",
                      "failed to convert new object (%s) to proper version: unable to convert unstructured "
                      "object to %s: %s",
                      shown, strchr(shown, ';') + 2, error_text(err));
    }
    managed_strip(call, call->kind, *ret);
    return 0;
}

/* --- conflicts
 * -------------------------------------------------------------------------------------------------- */

struct conflict {
    char *manager; /* as it is shown */
    char *path;
};
struct conflicts {
    struct conflict items[CONFLICTS_MAX];
    size_t count;
    const char *manager; /* while one manager's are collected */
};

static void conflicts_done(struct conflicts *conflicts)
{
    for (size_t i = 0; i < conflicts->count; i++) {
        free(conflicts->items[i].manager);
        free(conflicts->items[i].path);
    }
}

static void note_conflict(void *context, const char *path)
{
    struct conflicts *conflicts = context;
    if (conflicts->count == CONFLICTS_MAX)
        return;
    struct conflict *conflict = &conflicts->items[conflicts->count++];
    conflict->manager = xstrdup(conflicts->manager);
    conflict->path = xstrdup(path);
}

static char *shown_manager(const cJSON *entry)
{
    const char *subresource = json_str(entry, "subresource");
    CLEANUP_FREE char *name =
        subresource ? xasprintf("\"%s\" with subresource \"%s\"", json_str(entry, "manager"), subresource)
                    : xasprintf("\"%s\"", json_str(entry, "manager"));
    if (!str_equal(json_str(entry, "operation"), "Update"))
        return STEAL(name);
    return xasprintf("%s using %s", name, json_str(entry, "apiVersion"));
}

static char *conflict_sentence(const struct conflicts *conflicts)
{
    const struct conflict *items = conflicts->items;
    if (conflicts->count == 1)
        return xasprintf("Apply failed with 1 conflict: conflict with %s: %s", items[0].manager,
                         items[0].path);
    CLEANUP_BUF struct buf text = BUF_INIT(BODY_MAX);
    buf_addf(&text, "Apply failed with %zu conflicts: ", conflicts->count);
    for (size_t i = 0; i < conflicts->count; i++) {
        if (i == 0 || strcmp(items[i].manager, items[i - 1].manager) != 0)
            buf_addf(&text, "%sconflicts with %s:", i ? "\n" : "", items[i].manager);
        buf_addf(&text, "\n- %s", items[i].path);
    }
    return buf_take(&text);
}

static int refuse_conflicts(struct call *call, const struct conflicts *conflicts)
{
    CLEANUP_FREE char *sentence = conflict_sentence(conflicts);
    refuse(call, 409, "Conflict", "%s", sentence);
    for (size_t i = 0; i < conflicts->count; i++) {
        CLEANUP_FREE char *message = xasprintf("conflict with %s", conflicts->items[i].manager);
        refusal_add_cause(call, "FieldManagerConflict", message, conflicts->items[i].path);
    }
    return -1;
}

/* --- the apply itself
 * ------------------------------------------------------------------------------------------- */

static bool is_own_entry(const struct call *call, const cJSON *entry)
{
    const char *subresource = json_str(entry, "subresource");
    return str_equal(json_str(entry, "manager"), call->field_manager) &&
           str_equal(json_str(entry, "operation"), "Apply") &&
           strcmp(subresource ? subresource : "", call->subresource ? call->subresource : "") == 0;
}

/* Everything that others own. The caller's. */
static cJSON *others_set(const struct call *call, const cJSON *live)
{
    cJSON *all = json_new_object();
    const cJSON *entry;
    cJSON_ArrayForEach (entry, json_path(live, "metadata", "managedFields", NULL))
        if (!is_own_entry(call, entry))
            field_set_add(all, json_get(entry, "fieldsV1"));
    return all;
}

/* Others lose what changed - if that is forced - and what is gone. */
static int settle_owners(struct call *call, const cJSON *live, cJSON *object)
{
    CLEANUP_JSON cJSON *changed = NULL;
    CLEANUP_JSON cJSON *removed = NULL;
    field_set_compare(call->kind->schema, live, object, &changed, &removed);
    managed_strip(call, call->kind, changed);
    managed_strip(call, call->kind, removed);
    bool force = path_parameter_true(&call->path, "force");
    __attribute__((cleanup(conflicts_done))) struct conflicts conflicts = {.count = 0};
    const cJSON *entry;
    cJSON_ArrayForEach (entry, json_path(object, "metadata", "managedFields", NULL)) {
        cJSON *set = json_get(entry, "fieldsV1");
        if (is_own_entry(call, entry))
            continue;
        CLEANUP_JSON cJSON *taken = field_set_intersection(set, changed);
        CLEANUP_FREE char *shown = shown_manager(entry);
        conflicts.manager = shown;
        if (!force)
            field_set_visit(taken, note_conflict, &conflicts);
        field_set_subtract(set, changed);
        field_set_subtract(set, removed);
    }
    return conflicts.count > 0 ? refuse_conflicts(call, &conflicts) : 0;
}

/* An object whose owners were forgotten (or never known) has one by the first apply: all its fields are
 * "before-first-apply"'s. NULL when it has owners; the caller's. */
static cJSON *with_first_owner(struct call *call, struct object *old)
{
    if (json_path(object_tree(old), "metadata", "managedFields", NULL))
        return NULL;
    cJSON *live = json_copy(object_tree(old));
    cJSON *set = NULL;
    if (field_set_of(call->kind->schema, live, false, &set, NULL) < 0)
        return live;
    managed_strip(call, call->kind, set);
    managed_put(call, call->kind, live, "before-first-apply", "Update", "", set);
    return live;
}

static int apply_to(struct call *call, struct object *old, const cJSON *config, cJSON *mine)
{
    CLEANUP_JSON cJSON *set = mine;
    CLEANUP_JSON cJSON *owned = with_first_owner(call, old);
    const cJSON *live = owned ? owned : object_tree(old);
    const char *subresource = call->subresource ? call->subresource : "";
    const cJSON *last = json_get(managed_find(live, call->field_manager, "Apply", subresource), "fieldsV1");
    CLEANUP_JSON cJSON *others = others_set(call, live);
    CLEANUP_JSON cJSON *object = field_merge(call->kind->schema, live, config);
    field_prune(call->kind->schema, object, last, set, others);
    if (settle_owners(call, live, object) < 0)
        return -1;
    managed_put(call, call->kind, object, call->field_manager, "Apply", subresource, STEAL(set));
    managed_tidy(object);
    struct version *version = NULL;
    if (decode_finish(call, call->kind, object) < 0)
        return -1;
    call->applied = true;
    if (update_object(call, call->kind, old, STEAL(object), &version) < 0)
        return -1;
    answer_version(call, 200, call->kind, version);
    return 0;
}

static int apply_new(struct call *call, const cJSON *config, cJSON *mine)
{
    CLEANUP_JSON cJSON *set = mine;
    const char *uid = meta_str(config, "uid");
    if (uid && *uid)
        return refuse_conflict(
            call, call->kind, call->name,
            "uid mismatch: the provided object specified uid %s, and no existing object was found", uid);
    if (call->subresource)
        return refuse_not_found(call, call->kind, call->name);
    CLEANUP_JSON cJSON *object = json_copy(config);
    json_set_str(meta_of(object), "name", call->name);
    /* Unlike a POST: an apply with a version on an absent object creates it. */
    json_remove(meta_of(object), "resourceVersion");
    managed_put(call, call->kind, object, call->field_manager, "Apply", "", STEAL(set));
    struct version *version = NULL;
    if (decode_finish(call, call->kind, object) < 0)
        return -1;
    call->applied = true;
    if (create_object(call, call->kind, STEAL(object), &version) < 0)
        return -1;
    answer_version(call, 201, call->kind, version);
    return 0;
}

int write_apply(struct call *call)
{
    cJSON *config = call->body;
    cJSON *set = NULL;
    if (check_options(call) < 0 || check_configuration(call, config) < 0 ||
        configured_set(call, config, &set) < 0)
        return -1;
    struct object *old = store_find(call->kind, call->namespace, call->name);
    return old ? apply_to(call, old, config, set) : apply_new(call, config, set);
}
