/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/recreate.h"

#include "base/plant.h"
#include "control/step.h"
#include "kube/object.h"
#include "volume/keep.h"
#include "volume/quantity.h"

enum { SIZES_MAX = 1 << 16 };

/* --- sizes ---------------------------------------------------------------------------------------------- */

static cJSON *templates_of(const cJSON *set)
{
    return json_path(set, "spec", "volumeClaimTemplates", NULL);
}

static const char *name_of(const cJSON *template)
{
    return json_path_str(template, "metadata", "name", NULL);
}

static const cJSON *find_template(const cJSON *set, const char *name)
{
    const cJSON *template = NULL;
    cJSON_ArrayForEach (template, templates_of(set))
        if (name && str_equal(name_of(template), name))
            return template;
    return NULL;
}

/* A size may be a bare number. */
static const cJSON *size_node(const cJSON *template)
{
    return json_path(template, "spec", "resources", "requests", "storage", NULL);
}

const char *recreate_size(const cJSON *template)
{
    const cJSON *node = size_node(template);
    return cJSON_IsString(node) ? node->valuestring : NULL;
}

static void put_size(cJSON *template, const cJSON *size)
{
    cJSON *resources = json_ensure_object(json_ensure_object(template, "spec"), "resources");
    json_set_item(json_ensure_object(resources, "requests"), "storage", json_copy(size));
}

static bool is_larger(const cJSON *size, const cJSON *than)
{
    struct quantity a, b;
    CLEANUP_FREE char *a_text = NULL;
    CLEANUP_FREE char *b_text = NULL;
    return quantity_read(size, &a, &a_text, NULL) == 0 &&
           (!than || (quantity_read(than, &b, &b_text, NULL) == 0 && quantity_compare(&a, &b) > 0));
}

static void take_sizes(cJSON *set, const cJSON *declared, bool only_larger)
{
    cJSON *template = NULL;
    cJSON_ArrayForEach (template, templates_of(set)) {
        const cJSON *size = size_node(find_template(declared, name_of(template)));
        if (size && (!only_larger || is_larger(size, size_node(template))))
            put_size(template, size);
    }
}

void recreate_put_sizes(cJSON *set, const cJSON *declared)
{
    take_sizes(set, declared, false);
}

void recreate_raise_sizes(cJSON *set, const cJSON *declared)
{
    take_sizes(set, declared, true);
}

char *recreate_sizes_text(const cJSON *set)
{
    struct buf text = BUF_INIT(SIZES_MAX);
    const cJSON *template = NULL;
    cJSON_ArrayForEach (template, templates_of(set)) {
        const cJSON *node = size_node(template);
        CLEANUP_FREE char *number = node && !cJSON_IsString(node) ? json_print(node) : NULL;
        const char *size = recreate_size(template);
        buf_addf(&text, "%s%s=%s", text.length > 0 ? "," : "", name_of(template) ? name_of(template) : "?",
                 size     ? size
                 : number ? number
                          : "?");
    }
    return buf_take(&text);
}

bool recreate_take_sizes(cJSON *set, const char *text)
{
    int count = 0;
    CLEANUP_FREE char *words = xstrdup(text);
    char *rest = NULL;
    for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char *size = strchr(word, '=');
        if (!size)
            return false;
        *size++ = '\0';
        cJSON *template = (cJSON *)find_template(set, word);
        if (!template)
            return false;
        CLEANUP_JSON cJSON *node = json_new_str(size);
        put_size(template, node);
        count++;
    }
    return count > 0 && count == cJSON_GetArraySize(templates_of(set));
}

/* --- proofs --------------------------------------------------------------------------------------------- */

cJSON *recreate_swapped(const cJSON *desired, const cJSON *live)
{
    cJSON *swapped = json_copy(desired);
    cJSON *metadata = json_ensure_object(swapped, "metadata");
    json_remove(swapped, "status");
    json_remove(metadata, "managedFields");
    json_remove(metadata, "creationTimestamp");
    json_remove(metadata, "resourceVersion");
    json_set_str(metadata, "uid", kube_object_uid(live));
    json_set_str(metadata, "namespace", kube_object_namespace(live));
    json_set_item(json_ensure_object(swapped, "spec"), "volumeClaimTemplates", json_copy(templates_of(live)));
    return swapped;
}

cJSON *recreate_trial(const cJSON *manifest, int tries)
{
    static const char letters[] = "xyzabcdefghijklmnopqrstuvw";
    cJSON *trial = keep_as_new(manifest);
    CLEANUP_FREE char *name = xstrdup(kube_object_name(manifest));
    char *last = name + strlen(name) - 1;
    char was = *last;
    *last = letters[(size_t)tries % (sizeof(letters) - 1)];
    if (*last == was)
        *last = letters[(size_t)(tries + 13) % (sizeof(letters) - 1)];
    json_set_str(json_get(trial, "metadata"), "name", name);
    return trial;
}

/* --- the canary ----------------------------------------------------------------------------------------- */

bool recreate_is_canary(const cJSON *manifest)
{
    const cJSON *strategy = json_path(manifest, "spec", "updateStrategy", NULL);
    const cJSON *status = json_get(manifest, "status");
    const char *current = json_str(status, "currentRevision");
    const char *update = json_str(status, "updateRevision");
    return !PLANT("canary-in-one-step") && str_equal(json_str(strategy, "type"), "RollingUpdate") &&
           json_int64_or(json_get(strategy, "rollingUpdate"), "partition", 0) > 0 && current && update &&
           !str_equal(current, update);
}

/* The revision of the first of two steps. */
static const char *first_revision(const cJSON *kept)
{
    return json_path_str(keep_manifest(kept), "status", "currentRevision", NULL);
}

/* Its template; NULL: it is not there. The caller's. */
static cJSON *first_template(const cJSON *kept, const cJSON *revisions)
{
    const cJSON *revision = kube_object_find(revisions, first_revision(kept));
    const cJSON *found = json_path(revision, "data", "spec", "template", NULL);
    cJSON *template = found ? json_copy(found) : NULL;
    json_remove(template, "$patch");
    return template;
}

cJSON *recreate_body(const cJSON *kept, const cJSON *revisions, const char **ret_missing)
{
    cJSON *body = keep_recreation(kept);
    *ret_missing = NULL;
    if (!body || !recreate_is_canary(keep_manifest(kept)))
        return body;
    cJSON *template = first_template(kept, revisions);
    if (!template) {
        *ret_missing = first_revision(kept);
        json_delete(body);
        return NULL;
    }
    cJSON *spec = json_get(body, "spec");
    json_set_item(spec, "template", template);
    cJSON *strategy = json_new_object();
    json_add_str(strategy, "type", "OnDelete");
    json_set_item(spec, "updateStrategy", strategy);
    return body;
}

bool recreate_is_half(const cJSON *set, const cJSON *kept)
{
    return recreate_is_canary(keep_manifest(kept)) &&
           str_equal(json_path_str(set, "spec", "updateStrategy", "type", NULL), "OnDelete");
}

static void add_replaced(cJSON *spec, const char *key, const cJSON *from)
{
    cJSON *copy = json_copy(json_get(from, key));
    json_set_str(copy, "$patch", "replace");
    json_add_item(spec, key, copy);
}

cJSON *recreate_second(const cJSON *set, const cJSON *kept, const cJSON *revisions)
{
    CLEANUP_JSON cJSON *whole = keep_recreation(kept);
    CLEANUP_JSON cJSON *was = first_template(kept, revisions);
    cJSON *template = json_path(whole, "spec", "template", NULL);
    const cJSON *live = json_path(set, "spec", "template", NULL);
    if (cJSON_IsObject(template) && cJSON_IsObject(was) && cJSON_IsObject(live))
        json_carry(template, was, live);
    cJSON *body = json_new_object();
    cJSON *spec = json_add_object(body, "spec");
    add_replaced(spec, "template", json_get(whole, "spec"));
    add_replaced(spec, "updateStrategy", json_get(whole, "spec"));
    return body;
}

/* --- who set what --------------------------------------------------------------------------------------- */

static const cJSON *managers_of(const cJSON *kept)
{
    const cJSON *managers = json_path(keep_manifest(kept), "metadata", "managedFields", NULL);
    return cJSON_IsArray(managers) && managers->child ? managers : NULL;
}

bool recreate_needs_managers(const cJSON *set, const cJSON *kept)
{
    return !PLANT("managers-are-not-given-back") && managers_of(kept) &&
           kube_object_annotation(set, STEP_ANNOTATION);
}

const char *recreate_applier(const cJSON *set)
{
    if (PLANT("declared-in-our-own-name"))
        return NULL;
    const cJSON *entry = NULL;
    cJSON_ArrayForEach (entry, json_path(set, "metadata", "managedFields", NULL))
        if (str_equal(json_str(entry, "operation"), "Apply") && json_str(entry, "manager") &&
            json_path(entry, "fieldsV1", "f:spec", "f:volumeClaimTemplates", NULL))
            return json_str(entry, "manager");
    return NULL;
}

static bool has_only(const cJSON *object, const char *key)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, object)
        if (strcmp(member->string, key) != 0 && strcmp(member->string, ".") != 0)
            return false;
    return json_get(object, key) != NULL;
}

/* Who owns nothing but the key of a step of ours: it is taken off with the key. */
static bool owns_our_key_alone(const cJSON *entry)
{
    const cJSON *fields = json_get(entry, "fieldsV1");
    const cJSON *annotations = json_path(fields, "f:metadata", "f:annotations", NULL);
    return has_only(fields, "f:metadata") && has_only(json_get(fields, "f:metadata"), "f:annotations") &&
           has_only(annotations, "f:" STEP_ANNOTATION);
}

static cJSON *managers_body(const cJSON *managers)
{
    cJSON *body = json_new_object();
    cJSON *metadata = json_add_object(body, "metadata");
    if (managers) {
        cJSON *list = json_add_array(metadata, "managedFields");
        const cJSON *entry = NULL;
        cJSON_ArrayForEach (entry, managers)
            if (!owns_our_key_alone(entry))
                json_append_item(list, json_copy(entry));
    }
    json_add_item(json_add_object(metadata, "annotations"), STEP_ANNOTATION, cJSON_CreateNull());
    return body;
}

cJSON *recreate_managers(const cJSON *kept)
{
    return managers_body(managers_of(kept));
}

cJSON *recreate_clean(const cJSON *set)
{
    return managers_body(json_path(set, "metadata", "managedFields", NULL));
}
