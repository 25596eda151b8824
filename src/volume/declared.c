/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/declared_parts.h"

#include "kube/object.h"
#include "volume/quantity.h"

/* As kubectl does: what is null is not said. */
static void drop_nulls(cJSON *node)
{
    cJSON *next = NULL;
    for (cJSON *child = node->child; child; child = next) {
        next = child->next;
        if (cJSON_IsNull(child) && cJSON_IsObject(node))
            json_delete(cJSON_DetachItemViaPointer(node, child));
        else
            drop_nulls(child);
    }
}

static void copy_member(cJSON *to, const cJSON *from, const char *key)
{
    const cJSON *value = json_get(from, key);
    if (value && !cJSON_IsNull(value))
        json_add_item(to, key, json_copy(value));
}

static int check_size(const char *set, const char *name, const cJSON *spec, struct error **err)
{
    const cJSON *size = json_path(spec, "resources", "requests", "storage", NULL);
    CLEANUP_FREE char *text = NULL;
    CLEANUP_ERROR struct error *own = NULL;
    struct quantity quantity;
    if (!size || cJSON_IsNull(size))
        return error_set(err, ERROR_INVALID,
                         "StatefulSet %s: volumeClaimTemplate %s has no spec.resources.requests.storage: say "
                         "how large it is",
                         set, name);
    if (quantity_read(size, &quantity, &text, &own) < 0)
        return error_set(err, ERROR_INVALID, "StatefulSet %s: volumeClaimTemplate %s: %s", set, name,
                         error_text(own));
    if (quantity_sign(&quantity) <= 0)
        return error_set(
            err, ERROR_INVALID,
            "StatefulSet %s: volumeClaimTemplate %s: a volume of %s is none: a size is above zero", set, name,
            text);
    return 0;
}

static int add_template(cJSON *array, const char *set, const cJSON *template, struct error **err)
{
    const cJSON *metadata = json_get(template, "metadata");
    const char *name = json_str(metadata, "name");
    CLEANUP_FREE char *called = name && *name ? xstrdup(name) : xasprintf("%d", cJSON_GetArraySize(array));
    int r = declared_check_template(set, called, template, err);
    if (r < 0)
        return r;
    if (!name || !*name)
        return error_set(err, ERROR_INVALID,
                         "StatefulSet %s: volumeClaimTemplate %d has no metadata.name: give it one", set,
                         cJSON_GetArraySize(array));
    r = check_size(set, name, json_get(template, "spec"), err);
    if (r < 0)
        return r;
    cJSON *item = json_new_object();
    cJSON *shown = json_add_object(item, "metadata");
    json_add_str(shown, "name", name);
    copy_member(shown, metadata, "labels");
    copy_member(shown, metadata, "annotations");
    copy_member(item, template, "spec");
    json_append_item(array, item);
    return 0;
}

int volume_declared_add(cJSON *array, const cJSON *set, struct error **err)
{
    const char *name = kube_object_name(set);
    const cJSON *spec = json_get(set, "spec");
    const cJSON *templates = json_get(spec, "volumeClaimTemplates");
    if (!name)
        return error_set(err, ERROR_INVALID, "a StatefulSet has no metadata.name: give it one");
    int r = declared_check_set(name, set, err);
    if (r < 0)
        return r;
    if (cJSON_GetArraySize(templates) == 0)
        return error_set(
            err, ERROR_INVALID,
            "StatefulSet %s has no volumeClaimTemplates: nothing of it can grow, so leave it out", name);
    CLEANUP_JSON cJSON *declared = json_new_object();
    json_add_str(declared, "name", name);
    copy_member(declared, spec, "serviceName");
    copy_member(declared, spec, "podManagementPolicy");
    copy_member(declared, spec, "selector");
    copy_member(declared, spec, "replicas");
    cJSON *shown = json_add_array(declared, "volumeClaimTemplates");
    const cJSON *template;
    cJSON_ArrayForEach (template, templates) {
        r = add_template(shown, name, template, err);
        if (r < 0)
            return r;
    }
    drop_nulls(declared);
    json_append_item(array, STEAL(declared));
    return 0;
}

char *volume_declared_text(const cJSON *array)
{
    return json_print_sorted(array);
}
