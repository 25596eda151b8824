/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"
#include "kubesim/decode.h"
#include "kubesim/kinds.h"
#include "kubesim/managed.h"
#include "kubesim/quotas.h"
#include "kubesim/schema_check.h"

#include <errno.h>

struct version *version_make_loose(cJSON *tree)
{
    struct version *version = xcalloc(1, sizeof(*version));
    version->references = 1;
    version->tree = tree;
    return version;
}

int read_resource_version(struct call *call, const cJSON *object, int64_t *ret)
{
    const char *text = meta_str(object, "resourceVersion");
    *ret = 0;
    if (!text || !*text)
        return 0;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*end || *text == '-' || *text == '+' || errno)
        return refuse(call, 500, "", "strconv.ParseUint: parsing \"%s\": invalid syntax", text);
    *ret = (int64_t)number;
    return 0;
}

static void fill_uid(const struct kubesim *sim, cJSON *meta)
{
    uint8_t bytes[16];
    sim->options.random(sim->options.context, bytes, sizeof(bytes));
    bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x40);
    bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80);
    CLEANUP_FREE char *hex = hex_encode(bytes, sizeof(bytes));
    CLEANUP_FREE char *uid =
        xasprintf("%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
    json_set_str(meta, "uid", uid);
}

/* Five characters of the alphabet that the server uses, behind the prefix cut to 58. */
static void generate_name(const struct kubesim *sim, cJSON *meta)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    uint8_t bytes[5];
    sim->options.random(sim->options.context, bytes, sizeof(bytes));
    char suffix[6] = "";
    for (size_t i = 0; i < sizeof(bytes); i++)
        suffix[i] = alphabet[bytes[i] % (sizeof(alphabet) - 1)];
    CLEANUP_FREE char *name = xasprintf("%.58s%s", json_str(meta, "generateName"), suffix);
    json_set_str(meta, "name", name);
}

static int check_namespace(struct call *call, const struct kind *kind, cJSON *object)
{
    cJSON *meta = meta_of(object);
    if (!(kind->flags & KIND_NAMESPACED)) {
        json_remove(meta, "namespace");
        return 0;
    }
    const char *namespace = json_str(meta, "namespace");
    if (namespace && *namespace && strcmp(namespace, call->namespace) != 0)
        return refuse_bad_request(
            call, "the namespace of the provided object does not match the namespace sent on the request");
    json_set_str(meta, "namespace", call->namespace);
    return 0;
}

/* The admission plug-in NamespaceLifecycle: nothing is created in a namespace that is absent or going. */
static int check_namespace_lives(struct call *call, const struct kind *kind, const cJSON *object)
{
    if (!(kind->flags & KIND_NAMESPACED))
        return 0;
    const struct kind *namespaces = kind_find(call->sim, "", "namespaces");
    const struct object *namespace = store_find(namespaces, NULL, call->namespace);
    if (!namespace)
        return refuse_not_found(call, namespaces, call->namespace);
    if (!meta_is_deleting(object_tree(namespace)))
        return 0;
    CLEANUP_FREE char *resource = kind_qualified_resource(kind);
    CLEANUP_FREE char *message = xasprintf("namespace %s is being terminated", call->namespace);
    refuse_object(
        call, kind, meta_str(object, "name"), 403, "Forbidden",
        "%s \"%s\" is forbidden: unable to create new content in namespace %s because it is being terminated",
        resource, meta_str(object, "name"), call->namespace);
    refusal_add_cause(call, "NamespaceTerminating", message, "metadata.namespace");
    return -1;
}

static int check_name(struct call *call, const struct kind *kind, cJSON *object)
{
    cJSON *meta = meta_of(object);
    const char *name = json_str(meta, "name");
    const char *prefix = json_str(meta, "generateName");
    if (name && *name)
        return 0;
    if (prefix && *prefix) {
        generate_name(call->sim, meta);
        return 0;
    }
    CLEANUP_CAUSES struct causes causes = {0};
    causes_add(&causes, CAUSE_REQUIRED, "metadata.name", NULL, "name or generateName is required");
    return refuse_invalid(call, kind, "", &causes);
}

static void fill_new_meta(struct call *call, const struct kind *kind, cJSON *object)
{
    cJSON *meta = meta_of(object);
    static const char *const dropped[] = {"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds",
                                          "generation"};
    for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
        json_remove(meta, dropped[i]);
    fill_uid(call->sim, meta);
    char now[TIME_TEXT_SIZE];
    sim_time_text(call->sim, now);
    json_set_str(meta, "creationTimestamp", now);
    if (kind->flags & KIND_GENERATION)
        json_set_item(meta, "generation", json_new_int64(1));
    if (kind->flags & KIND_STATUS && kind->flags & KIND_CUSTOM)
        json_remove(object, "status");
}

static int validate(struct call *call, const struct kind *kind, const cJSON *object, const cJSON *old)
{
    CLEANUP_CAUSES struct causes causes = {0};
    meta_validate(kind, object, old, &causes);
    /* 1.36 looks at the metadata of an update twice, so each cause comes twice. */
    if (old && !call->sim->options.newer)
        meta_validate(kind, object, old, &causes);
    if (kind->flags & KIND_CUSTOM)
        schema_validate(kind->schema, object, old,
                        str_equal(call->subresource, "status") ? kind->scale_status_path
                                                               : kind->scale_spec_path,
                        &causes);
    if (kind->hooks && kind->hooks->validate)
        kind->hooks->validate(call, object, old, &causes);
    if (refuse_invalid(call, kind, meta_str(object, "name"), &causes) < 0)
        return -1;
    if (limits_admit(call, kind, object, old) < 0)
        return -1;
    if (kind->hooks && kind->hooks->admit_late && kind->hooks->admit_late(call, object, old) < 0)
        return -1;
    return quotas_admit(call, kind, object, old);
}

static int refuse_exists(struct call *call, const struct kind *kind, const struct object *present)
{
    const char *name = meta_str(object_tree(present), "name");
    CLEANUP_FREE char *resource = kind_qualified_resource(kind);
    return refuse_object(call, kind, name, 409, "AlreadyExists", "%s%s \"%s\" already exists",
                         meta_is_deleting(object_tree(present)) ? "object is being deleted: " : "", resource,
                         name);
}

static int admit(struct call *call, const struct kind *kind, cJSON *object, const cJSON *old)
{
    const struct kubesim_options *options = &call->sim->options;
    if (options->mutate_pod && strcmp(kind->name, "Pod") == 0 && !call->subresource) {
        options->mutate_pod(options->context, object, old);
        schema_set_defaults(kind->schema, object, NULL); /* what a webhook adds is decoded as the rest was */
        kind->hooks->set_defaults(call, object);
    }
    return kind->hooks && kind->hooks->admit ? kind->hooks->admit(call, object, old) : 0;
}

int create_object(struct call *call, struct kind *kind, cJSON *taken, struct version **ret)
{
    CLEANUP_JSON cJSON *object = taken;
    if (check_namespace(call, kind, object) < 0 || check_name(call, kind, object) < 0 ||
        check_namespace_lives(call, kind, object) < 0)
        return -1;
    bool versioned = meta_str(object, "resourceVersion") && *meta_str(object, "resourceVersion");
    fill_new_meta(call, kind, object);
    if (admit(call, kind, object, NULL) < 0)
        return -1;
    managed_record_update(call, kind, NULL, object);
    if (kind->hooks && kind->hooks->prepare_create)
        kind->hooks->prepare_create(call, object);
    if (validate(call, kind, object, NULL) < 0)
        return -1;
    const struct object *present = store_find(kind, call->namespace, meta_str(object, "name"));
    if (present)
        return refuse_exists(call, kind, present);
    /* A dry run does not reach the place that refuses this: the real server lies once, so do we. */
    if (versioned && !call->dry_run)
        return refuse(call, 500, "", "resourceVersion should not be set on objects to be created");
    json_remove(meta_of(object), "resourceVersion");
    if (call->dry_run)
        *ret = version_make_loose(STEAL(object));
    else
        *ret = version_ref(store_put(call->sim, kind, STEAL(object))->version);
    return 0;
}

int write_create(struct call *call)
{
    if (decode_object(call, call->kind) < 0)
        return -1;
    struct version *version = NULL;
    if (create_object(call, call->kind, json_copy(call->body), &version) < 0)
        return -1;
    answer_version(call, 201, call->kind, version);
    return 0;
}

/* --- update
 * --------------------------------------------------------------------------------------------------- */

static int check_version(struct call *call, const struct kind *kind, const struct object *old,
                         const cJSON *object)
{
    int64_t wanted;
    if (read_resource_version(call, object, &wanted) < 0)
        return -1;
    const char *name = meta_str(object_tree(old), "name");
    if (wanted == 0 && !(kind->flags & KIND_UNCONDITIONAL_UPDATE)) {
        CLEANUP_CAUSES struct causes causes = {0};
        causes_add(&causes, CAUSE_INVALID, "metadata.resourceVersion", "0",
                   "must be specified for an update");
        struct kind plural = {.group = kind->group, .name = kind->plural};
        return refuse_invalid(call, &plural, name, &causes);
    }
    if (wanted != 0 && wanted != old->version->number)
        return refuse_conflict(
            call, kind, name,
            "the object has been modified; please apply your changes to the latest version and "
            "try again");
    return 0;
}

/* What an update can never change by itself (rest.BeforeUpdate). */
static void keep_meta(cJSON *object, const cJSON *old)
{
    cJSON *meta = meta_of(object);
    const cJSON *old_meta = json_get(old, "metadata");
    const char *uid = json_str(meta, "uid");
    if (!uid || !*uid)
        tree_copy_member(meta, old_meta, "uid");
    static const char *const kept[] = {"creationTimestamp", "deletionTimestamp", "generation",
                                       "resourceVersion", "selfLink"};
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        tree_copy_member(meta, old_meta, kept[i]);
    if (!json_get(meta, "deletionGracePeriodSeconds"))
        tree_copy_member(meta, old_meta, "deletionGracePeriodSeconds");
}

/* Everything but metadata and status; what raises the generation of a custom resource. */
static bool desired_changed(const struct kind *kind, const cJSON *object, const cJSON *old, bool with_status)
{
    if (kind->hooks == &statefulset_hooks)
        return !statefulset_spec_equal(json_get(object, "spec"), json_get(old, "spec"));
    int counted = 0;
    const cJSON *member;
    cJSON_ArrayForEach (member, object) {
        if (strcmp(member->string, "metadata") == 0 ||
            (!with_status && strcmp(member->string, "status") == 0))
            continue;
        if (!json_equal(member, json_get(old, member->string)))
            return true;
        counted++;
    }
    cJSON_ArrayForEach (member, old)
        if (strcmp(member->string, "metadata") != 0 && (with_status || strcmp(member->string, "status") != 0))
            counted--;
    return counted != 0;
}

/* /status of a custom resource: everything but status and managedFields is the old one's - the uid is never
 * looked at. */
static void take_status_only(cJSON *object, const cJSON *old)
{
    CLEANUP_JSON cJSON *sent = json_copy(object);
    const cJSON *managed = json_path(sent, "metadata", "managedFields", NULL);
    cJSON *next;
    for (cJSON *member = object->child; member; member = next) {
        next = member->next;
        cJSON_Delete(cJSON_DetachItemViaPointer(object, member));
    }
    const cJSON *member;
    cJSON_ArrayForEach (member, old)
        json_set_item(object, member->string, json_copy(member));
    tree_copy_member(object, sent, "status");
    if (managed)
        json_set_item(meta_of(object), "managedFields", json_copy(managed));
}

static void prepare_update(struct call *call, const struct kind *kind, cJSON *object, const cJSON *old)
{
    bool status = str_equal(call->subresource, "status");
    if (status && kind->flags & KIND_CUSTOM) {
        take_status_only(object, old);
    } else if (status) {
        tree_copy_member(object, old, "spec");
        json_remove(meta_of(object), "deletionTimestamp");
        tree_copy_member(meta_of(object), json_get(old, "metadata"), "deletionTimestamp");
        if (kind->hooks && kind->hooks->prepare_status)
            kind->hooks->prepare_status(call, object, old);
    } else {
        if (kind->flags & KIND_STATUS)
            tree_copy_member(object, old, "status");
        if (kind->hooks && kind->hooks->prepare_update)
            kind->hooks->prepare_update(call, object, old);
        bool custom = kind->flags & KIND_CUSTOM;
        if (kind->flags & KIND_GENERATION &&
            desired_changed(kind, object, old, custom && !(kind->flags & KIND_STATUS)))
            meta_raise_generation(object);
    }
}

struct version *remove_object(struct call *call, struct kind *kind, struct object *object, cJSON *last)
{
    if (call->dry_run)
        return version_make_loose(last);
    struct version *answer = version_make_loose(json_copy(last));
    store_remove(call->sim, kind, object, last);
    return answer;
}

static bool lets_go(const cJSON *object)
{
    return meta_is_deleting(object) && meta_finalizer_count(object) == 0 &&
           json_int64_or(json_get(object, "metadata"), "deletionGracePeriodSeconds", 0) == 0;
}

int update_object(struct call *call, struct kind *kind, struct object *old, cJSON *taken,
                  struct version **ret)
{
    CLEANUP_JSON cJSON *object = taken;
    const cJSON *before = object_tree(old);
    if (check_namespace(call, kind, object) < 0)
        return -1;
    const char *name = meta_str(object, "name");
    if (!name || !*name)
        json_set_str(meta_of(object), "name", call->name);
    else if (strcmp(name, meta_str(before, "name")) != 0)
        return refuse_bad_request(call, "the name of the object (%s) does not match the name on the URL (%s)",
                                  name, call->name);
    if (check_version(call, kind, old, object) < 0)
        return -1;
    keep_meta(object, before);
    if (admit(call, kind, object, before) < 0)
        return -1;
    prepare_update(call, kind, object, before);
    managed_record_update(call, kind, before, object);
    if (validate(call, kind, object, before) < 0)
        return -1;
    if (lets_go(object)) {
        *ret = remove_object(call, kind, old, STEAL(object));
        return 0;
    }
    if (json_equal(object, before))
        *ret = version_ref(old->version);
    else if (call->dry_run)
        *ret = version_make_loose(STEAL(object));
    else
        *ret = version_ref(store_put(call->sim, kind, STEAL(object))->version);
    return 0;
}

/* PUT carries the uid as a precondition of the storage, unlike a patch. */
static int check_uid_precondition(struct call *call, const cJSON *object, const struct object *old)
{
    const char *uid = meta_str(object, "uid");
    const char *present = meta_str(object_tree(old), "uid");
    if (!uid || !*uid || strcmp(uid, present) == 0)
        return 0;
    return refuse_conflict(
        call, call->kind, call->name,
        "StorageError: invalid object, Code: 4, Key: /registry/%s%s%s/%s, ResourceVersion: 0, "
        "AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s",
        call->kind->flags & KIND_CUSTOM ? call->kind->group : "", call->kind->flags & KIND_CUSTOM ? "/" : "",
        call->kind->plural, old->key, uid, present);
}

int write_update(struct call *call)
{
    if (decode_object(call, call->kind) < 0)
        return -1;
    const char *name = meta_str(call->body, "name");
    if (name && *name && strcmp(name, call->name) != 0)
        return refuse_bad_request(call, "the name of the object (%s) does not match the name on the URL (%s)",
                                  name, call->name);
    struct object *old = store_find(call->kind, call->namespace, call->name);
    struct version *version = NULL;
    if (!old && call->kind->flags & KIND_CREATE_ON_UPDATE && !call->subresource) {
        json_set_str(meta_of(call->body), "name", call->name);
        json_remove(meta_of(call->body), "resourceVersion");
        if (create_object(call, call->kind, json_copy(call->body), &version) < 0)
            return -1;
        answer_version(call, 201, call->kind, version);
        return 0;
    }
    if (!old)
        return refuse_not_found(call, call->kind, call->name);
    if (check_uid_precondition(call, call->body, old) < 0 ||
        update_object(call, call->kind, old, json_copy(call->body), &version) < 0)
        return -1;
    answer_version(call, 200, call->kind, version);
    return 0;
}
