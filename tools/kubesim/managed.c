/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/managed.h"

#include "kubesim/field_set.h"

/* Nobody owns these, in any kind. */
static const char server_owned[] =
    "{\"f:apiVersion\":{},\"f:kind\":{},\"f:metadata\":{\".\":{},\"f:name\":{},\"f:namespace\":{},"
    "\"f:creationTimestamp\":{},\"f:selfLink\":{},\"f:uid\":{},\"f:generation\":{},\"f:managedFields\":{},"
    "\"f:resourceVersion\":{},\"f:deletionTimestamp\":{},\"f:deletionGracePeriodSeconds\":{}}}";

static void drop_member(cJSON *set, const char *key)
{
    json_remove(set, key);
}

void managed_strip(const struct call *call, const struct kind *kind, cJSON *set)
{
    CLEANUP_JSON cJSON *owned = NULL;
    ENSURE(json_parse(server_owned, strlen(server_owned), &owned, NULL) == 0);
    field_set_subtract(set, owned);
    bool status = str_equal(call->subresource, "status");
    if (!status && kind->flags & KIND_STATUS)
        drop_member(set, "f:status");
    if (status)
        drop_member(set, "f:spec");
    if (status && kind->flags & KIND_CUSTOM)
        drop_member(set, "f:metadata");
    static const char *const containers[] = {"f:spec", "f:status", "f:metadata"};
    for (size_t i = 0; i < ARRAY_SIZE(containers); i++) {
        cJSON *below = json_get(set, containers[i]);
        if (below && !(kind->flags & KIND_CUSTOM) && below->child)
            json_remove(below, ".");
        if (below && !below->child)
            json_remove(set, containers[i]);
    }
}

static cJSON *list_of(const cJSON *object)
{
    return json_path(object, "metadata", "managedFields", NULL);
}

static bool is_entry(const cJSON *entry, const char *manager, const char *operation, const char *subresource)
{
    const char *own = json_str(entry, "subresource");
    return str_equal(json_str(entry, "manager"), manager) &&
           str_equal(json_str(entry, "operation"), operation) && strcmp(own ? own : "", subresource) == 0;
}

cJSON *managed_find(const cJSON *object, const char *manager, const char *operation, const char *subresource)
{
    cJSON *entry;
    cJSON_ArrayForEach (entry, list_of(object))
        if (is_entry(entry, manager, operation, subresource))
            return entry;
    return NULL;
}

static cJSON *make_entry(struct call *call, const struct kind *kind, const char *manager,
                         const char *operation, const char *subresource, cJSON *set)
{
    char now[TIME_TEXT_SIZE];
    sim_time_text(call->sim, now);
    CLEANUP_FREE char *api_version = kind_api_version(kind);
    cJSON *entry = json_new_object();
    json_add_str(entry, "manager", manager);
    json_add_str(entry, "operation", operation);
    json_add_str(entry, "apiVersion", api_version);
    json_add_str(entry, "time", now);
    json_add_str(entry, "fieldsType", "FieldsV1");
    json_add_item(entry, "fieldsV1", set);
    if (*subresource)
        json_add_str(entry, "subresource", subresource);
    return entry;
}

void managed_put(struct call *call, const struct kind *kind, cJSON *object, const char *manager,
                 const char *operation, const char *subresource, cJSON *set)
{
    cJSON *present = managed_find(object, manager, operation, subresource);
    cJSON *meta = meta_of(object);
    if (!cJSON_IsArray(json_get(meta, "managedFields")))
        json_set_item(meta, "managedFields", json_new_array());
    cJSON *list = json_get(meta, "managedFields");
    if (present && json_equal(json_get(present, "fieldsV1"), set)) {
        json_delete(set);
        return;
    }
    cJSON *entry = make_entry(call, kind, manager, operation, subresource, set);
    if (present)
        ENSURE(cJSON_ReplaceItemViaPointer(list, present, entry));
    else
        json_append_item(list, entry);
}

/* Applies before updates, then by time, then by name. */
static bool comes_after(const cJSON *a, const cJSON *b)
{
    static const char *const keys[] = {"operation", "time", "manager"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const char *left = json_str(a, keys[i]);
        const char *right = json_str(b, keys[i]);
        int order = strcmp(left ? left : "", right ? right : "");
        if (order != 0)
            return order > 0;
    }
    return false;
}

/* cJSON 1.7.15 cannot insert in the middle of an array that grew at its front: the first is taken again and
 * again. */
static void sort_entries(cJSON *list)
{
    cJSON *sorted = json_new_array();
    while (list->child) {
        cJSON *first = list->child;
        for (cJSON *other = first->next; other; other = other->next)
            if (comes_after(first, other))
                first = other;
        json_append_item(sorted, cJSON_DetachItemViaPointer(list, first));
    }
    list->child = STEAL(sorted->child);
    json_delete(sorted);
}

void managed_tidy(cJSON *object)
{
    cJSON *list = list_of(object);
    cJSON *next;
    for (cJSON *entry = list ? list->child : NULL; entry; entry = next) {
        next = entry->next;
        if (field_set_is_empty(json_get(entry, "fieldsV1")))
            cJSON_Delete(cJSON_DetachItemViaPointer(list, entry));
    }
    if (list && !list->child)
        json_remove(meta_of(object), "managedFields");
    else if (list)
        sort_entries(list);
}

/* False for a list that cannot be decoded: it is ignored. [{}] can. */
static bool is_readable(const cJSON *list)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, list) {
        const char *operation = json_str(entry, "operation");
        bool empty = cJSON_IsObject(entry) && !entry->child;
        bool known = str_equal(operation, "Apply") || str_equal(operation, "Update");
        if (!empty &&
            (!known || !json_str(entry, "manager") || !field_set_is_valid(json_get(entry, "fieldsV1"))))
            return false;
    }
    return true;
}

/* The list to start from: what the request says when it says something, else what was there. */
static void choose_list(cJSON *object, const cJSON *old)
{
    cJSON *meta = meta_of(object);
    cJSON *given = json_get(meta, "managedFields");
    if (!is_readable(given)) {
        json_remove(meta, "managedFields");
        given = NULL;
    }
    bool reset = cJSON_GetArraySize(given) == 1 && cJSON_IsObject(given->child) && !given->child->child;
    if (reset)
        json_remove(meta, "managedFields");
    else if (cJSON_GetArraySize(given) == 0 && old)
        tree_copy_member(meta, json_get(old, "metadata"), "managedFields");
    managed_tidy(object);
}

/* /scale leaves no trace where nobody owned the number, nor when a whole Scale is PUT: that one does not
 * carry the owners, as a patched one does. */
static bool scale_without_owner(const struct call *call, const cJSON *object)
{
    if (!str_equal(call->subresource, "scale"))
        return false;
    const cJSON *entry;
    if (call->verb == VERB_PATCH)
        cJSON_ArrayForEach (entry, list_of(object))
            if (json_path(entry, "fieldsV1", "f:spec", "f:replicas", NULL))
                return false;
    return true;
}

void managed_record_update(struct call *call, const struct kind *kind, const cJSON *old, cJSON *object)
{
    if (call->sim->options.no_managed_fields || call->applied) {
        if (!call->applied)
            json_remove(meta_of(object), "managedFields");
        return;
    }
    choose_list(object, old);
    CLEANUP_JSON cJSON *changed = NULL;
    CLEANUP_JSON cJSON *removed = NULL;
    field_set_compare(kind->schema, old, object, &changed, &removed);
    managed_strip(call, kind, changed);
    managed_strip(call, kind, removed);
    const char *subresource = call->subresource ? call->subresource : "";
    const cJSON *present = managed_find(object, call->field_manager, "Update", subresource);
    CLEANUP_JSON cJSON *mine = present ? json_copy(json_get(present, "fieldsV1")) : json_new_object();
    bool untraced = scale_without_owner(call, object);
    if (field_set_is_empty(changed) && field_set_is_empty(removed))
        return;
    const cJSON *entry;
    cJSON_ArrayForEach (entry, list_of(object)) {
        cJSON *set = json_get(entry, "fieldsV1");
        if (entry != present || untraced)
            field_set_subtract(set, changed);
        field_set_subtract(set, removed);
    }
    if (!untraced) {
        field_set_add(mine, changed);
        field_set_subtract(mine, removed);
        managed_put(call, kind, object, call->field_manager, "Update", subresource, STEAL(mine));
    }
    managed_tidy(object);
}
