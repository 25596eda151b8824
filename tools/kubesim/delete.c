/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/decode.h"
#include "kubesim/kinds.h"

/* DeleteOptions, from the body where there is one: then nothing of the query counts. */
struct delete_options {
    cJSON *tree;     /* what the strings point into */
    const char *uid; /* NULL: no precondition; "" is one that never holds */
    const char *resource_version;
    const char *propagation; /* NULL, "Orphan", "Foreground", "Background" */
    int64_t grace_s;         /* -1: none given */
};

static void options_done(struct delete_options *options)
{
    json_delete(STEAL(options->tree));
}
#define CLEANUP_OPTIONS __attribute__((cleanup(options_done)))

static int check_propagation(struct call *call, const char *policy)
{
    if (!policy || strcmp(policy, "Orphan") == 0 || strcmp(policy, "Foreground") == 0 ||
        strcmp(policy, "Background") == 0)
        return 0;
    CLEANUP_FREE char *shown = xasprintf("\"%s\"", policy);
    return refuse_options(call, "DeleteOptions", "propagationPolicy", CAUSE_NOT_SUPPORTED, shown,
                          "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
}

/* The old spelling and the new one exclude each other. */
static int check_both_policies(struct call *call, const char *policy, const cJSON *orphan)
{
    if (!policy || !cJSON_IsBool(orphan))
        return 0;
    CLEANUP_FREE char *shown = xasprintf("\"%s\"", policy);
    return refuse_options(call, "DeleteOptions", "propagationPolicy", CAUSE_INVALID, shown,
                          "orphanDependents and deletionPropagation cannot be both set");
}

static int options_from_body(struct call *call, struct delete_options *options)
{
    if (decode_body(call) < 0)
        return -1;
    options->tree = STEAL(call->body);
    const cJSON *tree = options->tree;
    const char *kind = json_str(tree, "kind");
    if (!cJSON_IsObject(tree) || (kind && strcmp(kind, "DeleteOptions") != 0))
        return refuse_bad_request(call, "decoded object cannot be converted to DeleteOptions");
    options->uid = json_path_str(tree, "preconditions", "uid", NULL);
    options->resource_version = json_path_str(tree, "preconditions", "resourceVersion", NULL);
    options->propagation = json_str(tree, "propagationPolicy");
    options->grace_s = json_int64_or(tree, "gracePeriodSeconds", -1);
    if (check_both_policies(call, options->propagation, json_get(tree, "orphanDependents")) < 0)
        return -1;
    if (cJSON_IsTrue(json_get(tree, "orphanDependents")))
        options->propagation = "Orphan";
    call->dry_run = false;
    const cJSON *dry_run = json_get(tree, "dryRun");
    if (cJSON_GetArraySize(dry_run) > 0) {
        if (!cJSON_IsString(dry_run->child) || strcmp(dry_run->child->valuestring, "All") != 0)
            return refuse_options(call, "DeleteOptions", "dryRun", CAUSE_NOT_SUPPORTED, "[\"\"]",
                                  "supported values: \"All\"");
        call->dry_run = true;
    }
    return check_propagation(call, options->propagation);
}

static int options_from_query(struct call *call, struct delete_options *options)
{
    options->propagation = path_parameter(&call->path, "propagationPolicy");
    const char *grace = path_parameter(&call->path, "gracePeriodSeconds");
    options->grace_s = grace && *grace ? strtoll(grace, NULL, 10) : -1;
    if (path_parameter_true(&call->path, "orphanDependents"))
        options->propagation = "Orphan";
    return check_propagation(call, options->propagation);
}

static int read_options(struct call *call, struct delete_options *options)
{
    *options = (struct delete_options){.grace_s = -1};
    int result =
        call->request->body_length > 0 ? options_from_body(call, options) : options_from_query(call, options);
    if (result == 0 && options->grace_s < -1)
        options->grace_s = 1;
    return result;
}

/* Deletes name the kind where other conflicts name the resource. */
static int refuse_precondition(struct call *call, const struct kind *kind, const char *name,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));
static int refuse_precondition(struct call *call, const struct kind *kind, const char *name,
                               const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = xvasprintf(format, args);
    va_end(args);
    CLEANUP_FREE char *qualified = kind_qualified_name(kind);
    refuse_object(call, kind, name, 409, "Conflict", "Operation cannot be fulfilled on %s \"%s\": %s",
                  qualified, name, message);
    refusal_set_kind(call, kind->name);
    return -1;
}

static int check_preconditions(struct call *call, const struct kind *kind, const struct object *object,
                               const struct delete_options *options)
{
    const char *name = meta_str(object_tree(object), "name");
    const char *uid = meta_str(object_tree(object), "uid");
    const char *version = meta_str(object_tree(object), "resourceVersion");
    if (options->uid && strcmp(options->uid, uid) != 0)
        return refuse_precondition(
            call, kind, name,
            "the UID in the precondition (%s) does not match the UID in record (%s). The object "
            "might have been deleted and then recreated",
            options->uid, uid);
    if (options->resource_version && strcmp(options->resource_version, version) != 0)
        return refuse_precondition(
            call, kind, name,
            "the ResourceVersion in the precondition (%s) does not match the ResourceVersion in "
            "record (%s). The object might have been modified",
            options->resource_version, version);
    return 0;
}

/* The finalizers that a propagation policy asks for; without a policy they stay as they are. */
static void set_policy_finalizers(cJSON *object, const char *propagation)
{
    if (!propagation)
        return;
    bool orphan = strcmp(propagation, "Orphan") == 0;
    bool foreground = strcmp(propagation, "Foreground") == 0;
    if (!orphan)
        meta_remove_finalizer(object, "orphan");
    if (!foreground)
        meta_remove_finalizer(object, "foregroundDeletion");
    if (orphan)
        meta_add_finalizer(object, "orphan");
    if (foreground)
        meta_add_finalizer(object, "foregroundDeletion");
}

static void mark_deleting(struct call *call, cJSON *object, int64_t grace_s)
{
    cJSON *meta = meta_of(object);
    int64_t at_us = sim_now_us(call->sim) + grace_s * US_PER_S;
    if (meta_is_deleting(object)) {
        /* Only a shorter grace counts; the moment of the deletion moves with it. */
        int64_t present_s = json_int64_or(meta, "deletionGracePeriodSeconds", 0);
        if (grace_s >= present_s)
            return;
        ENSURE(time_parse_rfc3339(json_str(meta, "deletionTimestamp"), &at_us, NULL) == 0);
        at_us -= (present_s - grace_s) * US_PER_S;
    } else if (json_int64_or(meta, "generation", 0) > 0) {
        meta_raise_generation(object);
    }
    char text[TIME_TEXT_SIZE];
    time_format_seconds(at_us, text);
    json_set_str(meta, "deletionTimestamp", text);
    json_set_item(meta, "deletionGracePeriodSeconds", json_new_int64(grace_s));
}

static cJSON *success_status(const struct kind *kind, const cJSON *object)
{
    cJSON *status = json_new_object();
    json_add_str(status, "kind", "Status");
    json_add_str(status, "apiVersion", "v1");
    json_add_object(status, "metadata");
    json_add_str(status, "status", "Success");
    cJSON *details = json_add_object(status, "details");
    json_add_str(details, "name", meta_str(object, "name"));
    if (*kind->group)
        json_add_str(details, "group", kind->group);
    json_add_str(details, "kind", kind->plural);
    json_add_str(details, "uid", meta_str(object, "uid"));
    return status;
}

/* A dry run that would have let an object go which is being deleted already answers with nothing but the
 * type's zero value, as the real server does. */
static cJSON *zero_object(const struct kind *kind)
{
    static const char spec[] = "{\"replicas\":0,\"selector\":null,\"template\":{\"metadata\":{},\"spec\":{"
                               "\"containers\":null}},\"serviceName\":\"\",\"updateStrategy\":{}}";
    cJSON *object = json_new_object();
    CLEANUP_FREE char *api_version = kind_api_version(kind);
    json_add_str(object, "kind", kind->name);
    json_add_str(object, "apiVersion", api_version);
    json_add_object(object, "metadata");
    if (kind->hooks == &statefulset_hooks)
        json_add_item(object, "spec", json_new_raw(spec));
    return object;
}

static void answer_deleted(struct call *call, struct kind *kind, struct version *version, bool gone)
{
    if (!gone || kind->flags & KIND_RETURNS_DELETED) {
        answer_version(call, 200, kind, version);
        return;
    }
    answer_tree(call, 200, success_status(kind, version_tree(version)));
    version_unref(version);
}

/* The real server takes a definition's objects away in the background and shows it terminating meanwhile;
 * here it is gone at once, but the answer looks the same. Takes last. */
static struct version *delete_definition(struct call *call, struct kind *kind, struct object *object,
                                         cJSON *last, bool *ret_gone)
{
    cJSON *shown = json_copy(last);
    char now[TIME_TEXT_SIZE];
    sim_time_text(call->sim, now);
    json_set_str(meta_of(shown), "deletionTimestamp", now);
    meta_add_finalizer(shown, "customresourcecleanup.apiextensions.k8s.io");
    version_unref(remove_object(call, kind, object, last));
    *ret_gone = false;
    return version_make_loose(shown);
}

/* Deletes one object: marks it, or takes it away when nothing holds it. *ret_gone tells which. */
static struct version *delete_object(struct call *call, struct kind *kind, struct object *object,
                                     const struct delete_options *options, bool *ret_gone)
{
    const cJSON *before = object_tree(object);
    CLEANUP_JSON cJSON *changed = json_copy(before);
    bool pod = kind->hooks == &pod_hooks;
    int64_t grace_s = pod ? pod_deletion_grace_s(before, options->grace_s) : 0;
    bool namespace = kind->hooks == &namespace_hooks;
    set_policy_finalizers(changed, options->propagation);
    bool held = meta_finalizer_count(changed) > 0 || namespace;
    *ret_gone = !held && grace_s == 0;
    /* A pod's last state says so, also when it is gone at once. */
    if (*ret_gone && (pod || meta_is_deleting(changed)))
        mark_deleting(call, changed, 0);
    if (*ret_gone && kind->hooks == &definition_hooks)
        return delete_definition(call, kind, object, STEAL(changed), ret_gone);
    if (*ret_gone)
        return remove_object(call, kind, object, STEAL(changed));
    mark_deleting(call, changed, grace_s);
    if (namespace) {
        json_remove(meta_of(changed), "deletionGracePeriodSeconds");
        json_set_str(json_ensure_object(changed, "status"), "phase", "Terminating");
    }
    if (json_equal(changed, before))
        return version_ref(object->version);
    if (call->dry_run)
        return version_make_loose(STEAL(changed));
    return version_ref(store_put(call->sim, kind, STEAL(changed))->version);
}

bool delete_quietly(struct kubesim *sim, struct kind *kind, struct object *object, const char *propagation)
{
    struct call call = {.sim = sim};
    const struct delete_options options = {.grace_s = -1, .propagation = propagation};
    bool gone;
    version_unref(delete_object(&call, kind, object, &options, &gone));
    return gone;
}

int write_delete(struct call *call)
{
    CLEANUP_OPTIONS struct delete_options options;
    if (read_options(call, &options) < 0)
        return -1;
    struct object *object = store_find(call->kind, call->namespace, call->name);
    if (!object)
        return refuse_not_found(call, call->kind, call->name);
    if (check_preconditions(call, call->kind, object, &options) < 0)
        return -1;
    bool gone;
    bool dying = meta_is_deleting(object_tree(object));
    struct version *version = delete_object(call, call->kind, object, &options, &gone);
    if (gone && dying && call->dry_run) {
        version_unref(version);
        answer_tree(call, 200, zero_object(call->kind));
        return 0;
    }
    answer_deleted(call, call->kind, version, gone);
    return 0;
}

int write_delete_collection(struct call *call)
{
    CLEANUP_OPTIONS struct delete_options options;
    CLEANUP_SELECTOR struct selector *labels = NULL;
    CLEANUP_SELECTOR struct selector *fields = NULL;
    if (read_options(call, &options) < 0 || read_selectors(call, &labels, &fields) < 0)
        return -1;
    cJSON *items = json_new_array();
    CLEANUP_FREE char *prefix = call->namespace ? xasprintf("%s/", call->namespace) : xstrdup("");
    for (size_t i = store_lower_bound(call->kind, prefix); i < call->kind->object_count;) {
        struct object *object = call->kind->objects[i];
        const cJSON *tree = object_tree(object);
        if (!str_starts_with(object->key, prefix))
            break;
        bool gone = false;
        if (selector_match_labels(labels, json_path(tree, "metadata", "labels", NULL)) &&
            selector_match_fields(fields, tree)) {
            struct version *version = delete_object(call, call->kind, object, &options, &gone);
            json_append_item(items, json_copy(version_tree(version)));
            version_unref(version);
        }
        i += !(gone && !call->dry_run);
    }
    cJSON *list = json_new_object();
    CLEANUP_FREE char *api_version = kind_api_version(call->kind);
    json_add_str(list, "kind", call->kind->list_name);
    json_add_str(list, "apiVersion", api_version);
    CLEANUP_FREE char *version = xasprintf("%lld", (long long)call->sim->resource_version);
    json_add_str(json_add_object(list, "metadata"), "resourceVersion", version);
    json_add_item(list, "items", items);
    answer_tree(call, 200, list);
    return 0;
}

/* POST pods/NAME/eviction. PodDisruptionBudgets are not served, so none can stand in the way. */
int write_evict(struct call *call)
{
    if (decode_body(call) < 0)
        return -1;
    struct object *object = store_find(call->kind, call->namespace, call->name);
    if (!object)
        return refuse_not_found(call, call->kind, call->name);
    CLEANUP_JSON cJSON *eviction = STEAL(call->body);
    const cJSON *tree = json_get(eviction, "deleteOptions");
    struct delete_options options = {.grace_s = json_int64_or(tree, "gracePeriodSeconds", -1)};
    options.uid = json_path_str(tree, "preconditions", "uid", NULL);
    options.resource_version = json_path_str(tree, "preconditions", "resourceVersion", NULL);
    if (cJSON_GetArraySize(json_get(tree, "dryRun")) > 0)
        call->dry_run = true;
    if (check_preconditions(call, call->kind, object, &options) < 0)
        return -1;
    bool gone;
    version_unref(delete_object(call, call->kind, object, &options, &gone));
    cJSON *status = json_new_object();
    json_add_str(status, "kind", "Status");
    json_add_str(status, "apiVersion", "v1");
    json_add_object(status, "metadata");
    json_add_str(status, "status", "Success");
    json_add_int64(status, "code", 201);
    answer_tree(call, 201, status);
    return 0;
}
