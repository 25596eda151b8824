/* SPDX-License-Identifier: Apache-2.0
 *
 * What the API server does with a step. */
#include "fake_set_parts.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static void merge(cJSON *to, const cJSON *patch);

/* Lists of a pod that merge by a key. */
static bool merges_by_key(const char *list, const char **ret_key)
{
    if (str_equal(list, "containers"))
        *ret_key = "name";
    else if (str_equal(list, "conditions"))
        *ret_key = "type";
    else
        return false;
    return true;
}

static void merge_list(cJSON *to, const cJSON *patch, const char *key)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, patch) {
        cJSON *found = NULL, *there = NULL;
        cJSON_ArrayForEach (there, to) {
            if (str_equal(json_str(there, key), json_str(item, key)))
                found = there;
        }
        if (found)
            merge(found, item);
        else
            json_append_item(to, json_copy(item));
    }
}

static void merge(cJSON *to, const cJSON *patch)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, patch) {
        cJSON *there = json_get(to, item->string);
        const char *key = NULL;
        if (cJSON_IsNull(item))
            json_remove(to, item->string);
        else if (cJSON_IsObject(item) && cJSON_IsObject(there))
            merge(there, item);
        else if (cJSON_IsArray(item) && cJSON_IsArray(there) && merges_by_key(item->string, &key))
            merge_list(there, item, key);
        else
            json_set_item(to, item->string, json_copy(item));
    }
}

static bool is_prefetch(const char *name)
{
    size_t length = 0;
    return neoset_split_prefetch_name(name, &length);
}

static cJSON *list_of(const struct fake *fake, enum kube_resource resource, const char *name)
{
    if (resource == KUBE_POD && is_prefetch(name))
        return fake->prefetches;
    return resource == KUBE_POD ? fake->pods : resource == KUBE_CLAIM ? fake->claims : fake->revisions;
}

static void create(struct fake *fake, const struct step_request *step)
{
    /* As the wire has it: some of it may be raw text. */
    CLEANUP_FREE char *text = json_print(step->body);
    cJSON *object = NULL;
    assert_int_equal(json_parse(text, strlen(text), &object, NULL), 0);
    cJSON *metadata = json_get(object, "metadata");
    CLEANUP_FREE char *uid = xasprintf("uid-%lld", (long long)++fake->serial);
    json_set_str(metadata, "uid", uid);
    json_set_item(metadata, "generation", json_new_int64(1));
    char now[TIME_TEXT_SIZE];
    time_format_seconds(fake_wall_us(fake), now);
    json_set_str(metadata, "creationTimestamp", now);
    if (step->resource == KUBE_POD)
        json_set_str(json_ensure_object(object, "status"), "phase", "Pending");
    if (step->resource == KUBE_POD && fake->node)
        json_set_str(json_get(object, "spec"), "nodeName", fake->node);
    fake_touch(fake, object);
    json_append_item(list_of(fake, step->resource, step->name), object);
}

static void patch_object(struct fake *fake, cJSON *object, const cJSON *body)
{
    CLEANUP_JSON cJSON *before = json_copy(object);
    merge(object, body);
    if (json_equal(before, object))
        return;
    cJSON *metadata = json_get(object, "metadata");
    if (object == fake->set && !str_equal(json_path_str(before, "status", "updateRevisionName", NULL),
                                          fake_text(fake, "updateRevisionName")))
        fake->target_changes++;
    const cJSON *old_spec = json_get(before, "spec");
    if (old_spec && !json_equal(old_spec, json_get(object, "spec")))
        json_set_item(metadata, "generation", json_new_int64(json_int64_or(metadata, "generation", 0) + 1));
    fake_touch(fake, object);
}

static void delete_object(struct fake *fake, enum kube_resource resource, cJSON *object)
{
    const char *name = json_path_str(object, "metadata", "name", NULL);
    if (resource == KUBE_POD && !is_prefetch(name))
        fake_delete_pod(fake, name);
    else
        json_delete(cJSON_DetachItemViaPointer(list_of(fake, resource, name), object));
}

static void count(struct fake *fake, const struct step_request *step)
{
    struct fake_counts *counts = &fake->counts;
    counts->writes++;
    if (step->resource == KUBE_POD && is_prefetch(step->name)) {
        counts->prefetches += step->kind == STEP_CREATE_POD;
        counts->prefetch_deletes += step->kind == STEP_DELETE;
        return;
    }
    counts->advances += step->kind == STEP_ADVANCE;
    counts->creates += step->kind == STEP_CREATE_POD;
    counts->deletes += step->kind == STEP_DELETE && step->resource == KUBE_POD;
    counts->patches += step->kind == STEP_UPDATE_IN_PLACE;
    counts->drains += step->kind == STEP_GATE && step->lowers_availability;
    counts->opens += step->kind == STEP_GATE && !step->lowers_availability;
    counts->revisions += step->kind == STEP_CREATE_REVISION;
}

static void tell(struct fake *fake, const struct step_request *step, enum journal_kind kind, int http)
{
    struct step_outcome outcome = {
        .step_kind = step->kind,
        .target = {step->resource, step->namespace, step->name},
        .fingerprint = step->fingerprint,
        .kind = kind,
        .http = http,
        .summary = http ? "refused by the test" : "",
        .reason = "",
    };
    neoset_note_outcome(fake->memory, &outcome, fake->boot_us);
}

void fake_do_step(struct fake *fake, struct step_request *step)
{
    const struct step_kind_info *info = step_kind_info(step->kind);
    CLEANUP_FREE char *key = xasprintf("0123456789abcdef-%lld", (long long)++fake->serial);
    assert_non_null(step->fingerprint);
    str_replace(&fake->last, step->reason);
    CLEANUP_FREE char *operation =
        xasprintf("%s->%s\n", step->operation_kind, step->go_to ? step->go_to : "");
    if (!str_ends_with(fake->operations, operation)) {
        char *all = xasprintf("%s%s", fake->operations, operation);
        free(fake->operations);
        fake->operations = all;
    }
    assert_non_null(step->operation_kind);
    count(fake, step);
    if (step->body)
        info->stamp(step->body, key);
    if (str_equal(info->method, "POST")) {
        bool prefetch = is_prefetch(step->name);
        if (prefetch && fake->refuse_prefetches) {
            tell(fake, step, JOURNAL_REJECTED, fake->refuse_prefetches);
            return;
        }
        if (step->resource == KUBE_POD && !prefetch)
            fake_check_create(fake, step);
        create(fake, step);
        tell(fake, step, JOURNAL_APPLIED, 0);
        return;
    }
    cJSON *object = step->resource == KUBE_NEOSET
                        ? fake->set
                        : fake_find(list_of(fake, step->resource, step->name), step->name);
    assert_non_null(object);
    assert_string_equal(step->uid, json_path_str(object, "metadata", "uid", NULL));
    if (!str_equal(step->version, json_path_str(object, "metadata", "resourceVersion", NULL)))
        return; /* 409: overtaken by an earlier write of this turn */
    if (fake_is_move(step))
        fake_check_moves(fake, step, object);
    int refused = step->kind == STEP_UPDATE_IN_PLACE ? fake->refuse_patches
                  : step->kind == STEP_GROW_CLAIM    ? fake->refuse_growth
                                                     : 0;
    if (refused) {
        tell(fake, step, JOURNAL_REJECTED, refused);
        return;
    }
    if (fake_is_move(step))
        fake_check_once(fake, step);
    if (step->kind == STEP_DELETE)
        delete_object(fake, step->resource, object);
    else
        patch_object(fake, object, step->body);
    tell(fake, step, JOURNAL_APPLIED, 0);
}
