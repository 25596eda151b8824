/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kinds.h"

#include "kubesim/quantity.h"

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

const struct kind_hooks class_hooks = {.set_defaults = class_defaults, .validate = class_validate};

/* --- claims
 * --------------------------------------------------------------------------------------------------- */

/* What names the class: the beta annotation outranks the spec. NULL: none. */
static const char *class_name(const cJSON *claim)
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
}

/* The admission plug-in DefaultStorageClass. */
static void set_default_class(struct call *call, cJSON *object)
{
    if (json_path(object, "spec", "storageClassName", NULL) || class_name(object))
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

static bool same_but_request(const cJSON *object, const cJSON *old)
{
    CLEANUP_JSON cJSON *a = json_copy(json_get(object, "spec"));
    CLEANUP_JSON cJSON *b = json_copy(json_get(old, "spec"));
    json_remove(json_path(a, "resources", "requests", NULL), "storage");
    json_remove(json_path(b, "resources", "requests", NULL), "storage");
    json_remove(a, "volumeAttributesClassName");
    json_remove(b, "volumeAttributesClassName");
    return json_equal(a, b);
}

static void claim_validate_update(const cJSON *object, const cJSON *old, struct causes *causes)
{
    bool bound = str_equal(json_path_str(old, "status", "phase", NULL), "Bound");
    struct quantity wanted;
    struct quantity before;
    struct quantity capacity;
    bool readable =
        quantity_from_text(request_of(object), &wanted) && quantity_from_text(request_of(old), &before);
    bool changed = readable && quantity_compare(&wanted, &before) != 0;
    if (!same_but_request(object, old) || (changed && !bound))
        causes_add(causes, CAUSE_FORBIDDEN, "spec", NULL,
                   "spec is immutable after creation except resources.requests and volumeAttributesClassName "
                   "for bound "
                   "claims");
    const char *capacity_text = json_path_str(old, "status", "capacity", "storage", NULL);
    if (!changed || quantity_compare(&wanted, &before) > 0)
        return;
    if (!quantity_from_text(capacity_text ? capacity_text : "0", &capacity) ||
        quantity_compare(&wanted, &capacity) <= 0)
        causes_add(causes, CAUSE_FORBIDDEN, storage_field, NULL,
                   "field can not be less than status.capacity");
}

static void claim_validate(struct call *call, const cJSON *object, const cJSON *old, struct causes *causes)
{
    (void)call;
    const char *request = request_of(object);
    struct quantity size;
    if (cJSON_GetArraySize(json_path(object, "spec", "accessModes", NULL)) == 0)
        causes_add(causes, CAUSE_REQUIRED, "spec.accessModes", NULL, "at least 1 access mode is required");
    if (!request)
        causes_add(causes, CAUSE_REQUIRED, "spec.resources[storage]", NULL, "%s", "");
    else if (quantity_from_text(request, &size) && quantity_sign(&size) <= 0)
        causes_add_node(causes, CAUSE_INVALID, "spec.resources[storage]",
                        json_path(object, "spec", "resources", "requests", "storage", NULL),
                        "must be greater than zero");
    if (old)
        claim_validate_update(object, old, causes);
}

/* The admission plug-in PersistentVolumeClaimResize: after validation, 403 without causes. */
static int claim_admit_late(struct call *call, const cJSON *object, const cJSON *old)
{
    struct quantity wanted;
    struct quantity before;
    if (!old || !quantity_from_text(request_of(object), &wanted) ||
        !quantity_from_text(request_of(old), &before) || quantity_compare(&wanted, &before) <= 0)
        return 0;
    const char *name = class_name(object);
    const struct kind *classes = kind_find(call->sim, "storage.k8s.io", "storageclasses");
    const struct object *class = name && *name ? store_find(classes, NULL, name) : NULL;
    if (class && json_bool_or(object_tree(class), "allowVolumeExpansion", false))
        return 0;
    return refuse_object(
        call, call->kind, meta_str(object, "name"), 403, "Forbidden",
        "persistentvolumeclaims \"%s\" is forbidden: only dynamically provisioned pvc can be resized and "
        "the storageclass that provisions the pvc must support resize",
        meta_str(object, "name"));
}

const struct kind_hooks claim_hooks = {.set_defaults = claim_defaults,
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

static bool is_used(const struct kubesim *sim, const cJSON *claim)
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
        if (!held || is_used(sim, tree)) {
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
