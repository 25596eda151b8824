/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kinds.h"

#include "kubesim/decode.h"
#include "kubesim/quantity.h"
#include "kubesim/volumes.h"

static const char protection[] = "kubernetes.io/pvc-protection";
static const char beta_class[] = "volume.beta.kubernetes.io/storage-class";
static const char storage_field[] = "spec.resources.requests.storage";

/* --- storage classes
 * ------------------------------------------------------------------------------------------ */

static void class_defaults(struct call *call, cJSON *object)
{
    (void)call;
    if (!json_get(object, "reclaimPolicy"))
        json_set_str(object, "reclaimPolicy", "Delete");
    if (!json_get(object, "volumeBindingMode"))
        json_set_str(object, "volumeBindingMode", "Immediate");
}

static void class_validate(struct call *call, const cJSON *object, const cJSON *old, struct causes *causes)
{
    (void)call;
    const char *provisioner = json_str(object, "provisioner");
    if (!provisioner || !*provisioner)
        causes_add(causes, CAUSE_REQUIRED, "provisioner", NULL, "%s", "");
    if (old && !json_equal(json_get(object, "provisioner"), json_get(old, "provisioner")))
        causes_add(causes, CAUSE_FORBIDDEN, "provisioner", NULL, "updates to provisioner are forbidden.");
    if (old && !json_equal(json_get(object, "parameters"), json_get(old, "parameters")))
        causes_add(causes, CAUSE_FORBIDDEN, "parameters", NULL, "updates to parameters are forbidden.");
}

/* A behaviour of the resizer that kubesim does not know would be a test that proves nothing. */
static int admit_behaviour(struct call *call, cJSON *object, const cJSON *old)
{
    (void)old;
    const char *text;
    if (volume_behaviour_of(object, NULL, &text) == VOLUME_UNKNOWN)
        return refuse_not_modelled(call, "a resizer that behaves like \"%s\"", text);
    return 0;
}

const struct kind_hooks class_hooks = {
    .set_defaults = class_defaults, .admit = admit_behaviour, .validate = class_validate};

/* --- claims
 * --------------------------------------------------------------------------------------------------- */

const char *claim_class_name(const cJSON *claim)
{
    const char *annotation = json_path_str(claim, "metadata", "annotations", beta_class, NULL);
    return annotation ? annotation : json_path_str(claim, "spec", "storageClassName", NULL);
}

static const char *request_of(const cJSON *claim)
{
    return json_path_str(claim, "spec", "resources", "requests", "storage", NULL);
}

static void claim_defaults(struct call *call, cJSON *object)
{
    (void)call;
    cJSON *spec = json_ensure_object(object, "spec");
    if (!json_get(spec, "volumeMode"))
        json_set_str(spec, "volumeMode", "Filesystem");
    quantity_round_list(json_path(spec, "resources", "requests", NULL));
    quantity_round_list(json_path(spec, "resources", "limits", NULL));
}

/* The admission plug-in DefaultStorageClass. */
static void set_default_class(struct call *call, cJSON *object)
{
    if (json_path(object, "spec", "storageClassName", NULL) || claim_class_name(object))
        return;
    const struct kind *classes = kind_find(call->sim, "storage.k8s.io", "storageclasses");
    for (size_t i = 0; i < classes->object_count; i++) {
        const cJSON *class = object_tree(classes->objects[i]);
        if (str_equal(json_path_str(class, "metadata", "annotations",
                                    "storageclass.kubernetes.io/is-default-class", NULL),
                      "true")) {
            json_set_str(json_get(object, "spec"), "storageClassName", meta_str(class, "name"));
            return;
        }
    }
}

static void claim_prepare_create(struct call *call, cJSON *object)
{
    set_default_class(call, object);
    meta_add_finalizer(object, protection);
    cJSON *status = json_new_object();
    json_add_str(status, "phase", "Pending");
    json_set_item(object, "status", status);
}

/* What an update may change: once the volume's name, and of a bound claim the size and the attributes. */
static bool only_allowed_changes(const cJSON *object, const cJSON *old)
{
    bool bound = str_equal(json_path_str(old, "status", "phase", NULL), "Bound");
    CLEANUP_JSON cJSON *a = json_copy(json_get(object, "spec"));
    const cJSON *b = json_get(old, "spec");
    if (!json_get(b, "volumeName"))
        json_remove(a, "volumeName");
    if (bound) {
        tree_copy_member(json_path(a, "resources", "requests", NULL),
                         json_path(b, "resources", "requests", NULL), "storage");
        tree_copy_member(a, b, "volumeAttributesClassName");
    }
    return json_equal(a, b);
}

static void refuse_shrink(const cJSON *object, const cJSON *old, struct causes *causes)
{
    struct quantity wanted;
    struct quantity before;
    struct quantity capacity = {0};
    if (!quantity_from_text(request_of(object), &wanted) || !quantity_from_text(request_of(old), &before) ||
        quantity_compare(&wanted, &before) >= 0)
        return;
    (void)quantity_from_text(json_path_str(old, "status", "capacity", "storage", NULL), &capacity);
    if (quantity_compare(&wanted, &capacity) <= 0)
        causes_add(causes, CAUSE_FORBIDDEN, storage_field, NULL,
                   "field can not be less than status.capacity");
}

static void claim_validate_update(const cJSON *object, const cJSON *old, struct causes *causes)
{
    const cJSON *class = json_path(object, "metadata", "annotations", beta_class, NULL);
    CLEANUP_FREE char *field = xasprintf("metadata.annotations.%s", beta_class);
    if (!json_equal(class, json_path(old, "metadata", "annotations", beta_class, NULL)))
        causes_add_node(causes, CAUSE_INVALID, field, class, "field is immutable");
    if (!only_allowed_changes(object, old))
        causes_add(causes, CAUSE_FORBIDDEN, "spec", NULL,
                   "spec is immutable after creation except resources.requests and volumeAttributesClassName "
                   "for bound claims");
    refuse_shrink(object, old, causes);
}

/* A size is meant in whole bytes: 1.0000000001Gi is taken, with a warning. The last warning is the one that
 * is sent. */
static void warn(struct call *call, const cJSON *object)
{
    if (json_path(object, "metadata", "annotations", beta_class, NULL))
        str_replace(&call->response->warning,
                    "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; "
                    "use \"storageClassName\" attribute instead");
    struct quantity size;
    const cJSON *node = json_path(object, "spec", "resources", "requests", "storage", NULL);
    if (!quantity_from_node(node, &size) || size.nano % 1000000000 == 0)
        return;
    CLEANUP_FREE char *shown = quantity_canonical(node);
    CLEANUP_FREE char *warning = xasprintf(
        "spec.resources.requests[storage]: fractional byte value \"%s\" is invalid, must be an integer",
        shown);
    str_replace(&call->response->warning, warning);
}

void claim_spec_validate(const cJSON *spec, const char *field, struct causes *causes)
{
    const cJSON *request = json_path(spec, "resources", "requests", "storage", NULL);
    const char *class = json_str(spec, "storageClassName");
    CLEANUP_FREE char *modes_field = xasprintf("%s.accessModes", field);
    CLEANUP_FREE char *size_field = xasprintf("%s.resources[storage]", field);
    CLEANUP_FREE char *class_field = xasprintf("%s.storageClassName", field);
    struct quantity size;
    if (cJSON_GetArraySize(json_get(spec, "accessModes")) == 0)
        causes_add(causes, CAUSE_REQUIRED, modes_field, NULL, "at least 1 access mode is required");
    if (!request)
        causes_add(causes, CAUSE_REQUIRED, size_field, NULL, "%s", "");
    else if (quantity_from_node(request, &size) && quantity_sign(&size) <= 0)
        causes_add_node(causes, CAUSE_INVALID, size_field, request, "must be greater than zero");
    if (class && *class)
        dns_name_validate(class, true, class_field, causes);
}

static void claim_validate(struct call *call, const cJSON *object, const cJSON *old, struct causes *causes)
{
    (void)call;
    claim_spec_validate(json_get(object, "spec"), "spec", causes);
    if (old)
        claim_validate_update(object, old, causes);
}

/* The admission plug-in PersistentVolumeClaimResize: after validation, 403 without causes. */
static int claim_admit_late(struct call *call, const cJSON *object, const cJSON *old)
{
    struct quantity wanted;
    struct quantity before;
    warn(call, object);
    if (!old || !quantity_from_text(request_of(object), &wanted) ||
        !quantity_from_text(request_of(old), &before) || quantity_compare(&wanted, &before) <= 0)
        return 0;
    const char *name = claim_class_name(object);
    const struct kind *classes = kind_find(call->sim, "storage.k8s.io", "storageclasses");
    const struct object *class = name && *name ? store_find(classes, NULL, name) : NULL;
    if (class && json_bool_or(object_tree(class), "allowVolumeExpansion", false))
        return 0;
    free(STEAL(call->response->warning));
    return refuse_object(
        call, call->kind, meta_str(object, "name"), 403, "Forbidden",
        "persistentvolumeclaims \"%s\" is forbidden: only dynamically provisioned pvc can be resized and "
        "the storageclass that provisions the pvc must support resize",
        meta_str(object, "name"));
}

const struct kind_hooks claim_hooks = {.set_defaults = claim_defaults,
                                       .admit = admit_behaviour,
                                       .prepare_create = claim_prepare_create,
                                       .validate = claim_validate,
                                       .admit_late = claim_admit_late};

static bool pod_mounts(const cJSON *pod, const char *claim)
{
    const char *phase = json_path_str(pod, "status", "phase", NULL);
    const char *node = json_path_str(pod, "spec", "nodeName", NULL);
    bool ended = str_equal(phase, "Succeeded") || str_equal(phase, "Failed");
    if (ended || !node)
        return false;
    const cJSON *volume;
    cJSON_ArrayForEach (volume, json_path(pod, "spec", "volumes", NULL))
        if (str_equal(json_path_str(volume, "persistentVolumeClaim", "claimName", NULL), claim))
            return true;
    return false;
}

bool claim_is_used(const struct kubesim *sim, const cJSON *claim)
{
    const struct kind *pods = kind_find(sim, "", "pods");
    CLEANUP_FREE char *prefix = xasprintf("%s/", meta_str(claim, "namespace"));
    for (size_t i = store_lower_bound(pods, prefix); i < pods->object_count; i++) {
        if (!str_starts_with(pods->objects[i]->key, prefix))
            break;
        if (pod_mounts(object_tree(pods->objects[i]), meta_str(claim, "name")))
            return true;
    }
    return false;
}

bool claims_tick(struct kubesim *sim)
{
    struct kind *kind = kind_find(sim, "", "persistentvolumeclaims");
    bool left = false;
    for (size_t i = 0; i < kind->object_count;) {
        struct object *object = kind->objects[i];
        const cJSON *tree = object_tree(object);
        bool held = meta_is_deleting(tree) && meta_has_finalizer(tree, protection);
        if (!held || claim_is_used(sim, tree)) {
            left = left || held;
            i++;
            continue;
        }
        cJSON *changed = json_copy(tree);
        meta_remove_finalizer(changed, protection);
        bool gone = meta_finalizer_count(changed) == 0;
        if (gone)
            store_remove(sim, kind, object, changed);
        else
            store_put(sim, kind, changed);
        i += !gone;
    }
    return left;
}
