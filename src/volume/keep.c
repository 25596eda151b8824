/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/keep.h"

#include "control/step.h"
#include "kube/manifest.h"
#include "kube/object.h"

/* All annotations of an object have room for 256 KiB. */
enum { UID_BYTES = 8, PODS_BYTES_MAX = 128 * 1024 };

char *keep_name(const cJSON *statefulset)
{
    return xasprintf("%s-kept-%.*s", kube_object_name(statefulset), UID_BYTES, kube_object_uid(statefulset));
}

cJSON *keep_object(const cJSON *statefulset)
{
    CLEANUP_FREE char *name = keep_name(statefulset);
    cJSON *kept = kube_manifest(KUBE_REVISION, kube_object_namespace(statefulset), name);
    json_add_str(json_add_object(json_get(kept, "metadata"), "labels"), KEEP_LABEL,
                 kube_object_uid(statefulset));
    json_add_item(kept, "data", kube_object_raw(statefulset));
    json_add_int64(kept, "revision", 1);
    return kept;
}

const cJSON *keep_manifest(const cJSON *kept)
{
    const cJSON *data = json_get(kept, "data");
    bool is_one = str_equal(json_str(data, "kind"), "StatefulSet") && kube_object_name(data) &&
                  cJSON_IsObject(json_get(data, "spec"));
    return is_one && kube_object_label(kept, KEEP_LABEL) ? data : NULL;
}

bool keep_is_of(const cJSON *kept, const cJSON *statefulset)
{
    const char *uid = kube_object_label(kept, KEEP_LABEL);
    return uid && str_equal(uid, kube_object_uid(statefulset));
}

const cJSON *keep_growing(const cJSON *kept)
{
    if (kube_object_is_deleting(kept) || kube_object_annotation(kept, KEEP_ADOPTED_BY))
        return NULL;
    return keep_manifest(kept);
}

const cJSON *keep_find_growing(const cJSON *revisions, const char *namespace, const char *name,
                               const cJSON *set)
{
    const cJSON *found = NULL;
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, revisions) {
        if (!str_equal(kube_object_name(keep_growing(revision)), name) ||
            (namespace && !str_equal(kube_object_namespace(revision), namespace)))
            continue;
        if (keep_is_of(revision, set))
            return revision;
        if (!found || kube_object_created_us(revision) > kube_object_created_us(found))
            found = revision;
    }
    return found;
}

const char *keep_leaving_phrase(const cJSON *statefulset, const cJSON *kept)
{
    if (kube_object_has_finalizer(statefulset, "orphan"))
        return kept ? "the StatefulSet is on its way out, its pods left behind; its manifest is kept"
                    : "the StatefulSet is on its way out, its pods left behind; nobody kept its manifest";
    return kept ? "ALARM: the StatefulSet is being deleted together with its pods: those that still name it "
                  "may "
                  "die; its manifest is kept"
                : "ALARM: the StatefulSet is being deleted together with its pods: those that still name it "
                  "may "
                  "die; nobody kept its manifest";
}

void keep_put_pods(cJSON *kept, const cJSON *picture)
{
    CLEANUP_FREE char *text = json_print_sorted(picture);
    if (strlen(text) <= PODS_BYTES_MAX)
        json_set_str(json_ensure_object(json_get(kept, "metadata"), "annotations"), KEEP_PODS, text);
}

cJSON *keep_pods(const cJSON *kept)
{
    const char *text = kube_object_annotation(kept, KEEP_PODS);
    cJSON *picture = NULL;
    return text && json_parse(text, strlen(text), &picture, NULL) == 0 ? picture : NULL;
}

static void remove_finalizer(cJSON *metadata, const char *name)
{
    cJSON *finalizers = json_get(metadata, "finalizers");
    cJSON *item = finalizers ? finalizers->child : NULL;
    while (item) {
        cJSON *next = item->next;
        if (cJSON_IsString(item) && str_equal(item->valuestring, name))
            cJSON_Delete(cJSON_DetachItemViaPointer(finalizers, item));
        item = next;
    }
    if (finalizers && !finalizers->child)
        json_remove(metadata, "finalizers");
}

/* Whole members: a list in a merge patch is whole, and replicas is a number. */
static void take_changes(cJSON *statefulset, const char *text)
{
    CLEANUP_JSON cJSON *patch = NULL;
    if (!text || json_parse(text, strlen(text), &patch, NULL) < 0)
        return;
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, patch)
        json_set_item(json_get(statefulset, "spec"), member->string, json_copy(member));
}

cJSON *keep_as_new(const cJSON *set)
{
    static const char *const servers[] = {"uid",
                                          "resourceVersion",
                                          "generation",
                                          "creationTimestamp",
                                          "deletionTimestamp",
                                          "selfLink",
                                          "managedFields",
                                          "deletionGracePeriodSeconds"};
    cJSON *statefulset = json_copy(set);
    cJSON *metadata = json_get(statefulset, "metadata");
    json_set_str(statefulset, "apiVersion", "apps/v1");
    json_remove(statefulset, "status");
    for (size_t i = 0; i < ARRAY_SIZE(servers); i++)
        json_remove(metadata, servers[i]);
    json_remove(json_get(metadata, "annotations"), STEP_ANNOTATION);
    remove_finalizer(metadata, "orphan");
    return statefulset;
}

cJSON *keep_recreation(const cJSON *kept)
{
    const cJSON *manifest = keep_manifest(kept);
    if (!manifest)
        return NULL;
    cJSON *statefulset = keep_as_new(manifest);
    take_changes(statefulset, kube_object_annotation(kept, KEEP_RETURN));
    return statefulset;
}
