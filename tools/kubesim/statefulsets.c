/* SPDX-License-Identifier: Apache-2.0
 *
 * StatefulSets as objects: defaults, validation, immutability in the words of 1.36 or 1.37. What runs them
 * is statefulset_controller.c. */
#include "kubesim/kinds.h"

#include "kubesim/quantity.h"

static void set_if_absent(cJSON *object, const char *key, const char *text)
{
    if (!json_get(object, key))
        json_add_str(object, key, text);
}

/* 1.37 fills in maxUnavailable too. */
static void strategy_defaults(const struct call *call, cJSON *spec)
{
    cJSON *strategy = json_ensure_object(spec, "updateStrategy");
    set_if_absent(strategy, "type", "RollingUpdate");
    if (!str_equal(json_str(strategy, "type"), "RollingUpdate"))
        return;
    cJSON *rolling = json_ensure_object(strategy, "rollingUpdate");
    if (!json_get(rolling, "partition"))
        json_add_int64(rolling, "partition", 0);
    if (call->sim->options.newer && !json_get(rolling, "maxUnavailable"))
        json_add_int64(rolling, "maxUnavailable", 1);
}

static void set_defaults(struct call *call, cJSON *object)
{
    cJSON *spec = json_ensure_object(object, "spec");
    if (!json_get(spec, "replicas"))
        json_add_int64(spec, "replicas", 1);
    if (!json_get(spec, "revisionHistoryLimit"))
        json_add_int64(spec, "revisionHistoryLimit", 10);
    set_if_absent(spec, "podManagementPolicy", "OrderedReady");
    cJSON *retention = json_ensure_object(spec, "persistentVolumeClaimRetentionPolicy");
    set_if_absent(retention, "whenDeleted", "Retain");
    set_if_absent(retention, "whenScaled", "Retain");
    strategy_defaults(call, spec);
    pod_spec_set_defaults(json_ensure_object(json_ensure_object(spec, "template"), "spec"), true);
    cJSON *claim;
    cJSON_ArrayForEach (claim, json_get(spec, "volumeClaimTemplates")) {
        json_set_str(claim, "kind", "PersistentVolumeClaim");
        json_set_str(claim, "apiVersion", "v1");
        set_if_absent(json_ensure_object(claim, "spec"), "volumeMode", "Filesystem");
        set_if_absent(json_ensure_object(claim, "status"), "phase", "Pending");
    }
}

static void prepare_create(struct call *call, cJSON *object)
{
    (void)call;
    cJSON *status = json_new_object();
    json_add_int64(status, "replicas", 0);
    json_add_int64(status, "availableReplicas", 0);
    json_set_item(object, "status", status);
}

/* Each amount in one spelling. */
static void level_amounts(cJSON *list)
{
    cJSON *next = NULL;
    for (cJSON *node = list ? list->child : NULL; node; node = next) {
        next = node->next;
        struct quantity quantity;
        if (!quantity_from_node(node, &quantity))
            continue;
        CLEANUP_FREE char *text = quantity_text(&quantity, false);
        json_set_str(list, node->string, text);
    }
}

static void level_resources(cJSON *owner)
{
    level_amounts(json_path(owner, "resources", "requests", NULL));
    level_amounts(json_path(owner, "resources", "limits", NULL));
}

/* A copy in which equal sizes are spelt alike. The caller's. */
static cJSON *levelled_spec(const cJSON *spec)
{
    cJSON *copy = json_copy(spec);
    cJSON *pod = json_path(copy, "template", "spec", NULL);
    cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_get(copy, "volumeClaimTemplates"))
        level_resources(json_get(item, "spec"));
    cJSON_ArrayForEach (item, json_get(pod, "containers"))
        level_resources(item);
    cJSON_ArrayForEach (item, json_get(pod, "initContainers"))
        level_resources(item);
    return copy;
}

bool statefulset_spec_equal(const cJSON *a, const cJSON *b)
{
    if (json_equal(a, b))
        return true;
    CLEANUP_JSON cJSON *left = levelled_spec(a);
    CLEANUP_JSON cJSON *right = levelled_spec(b);
    return json_equal(left, right);
}

/* One cause on the whole spec, as 1.36 and older say it. */
static void validate_as_one(const cJSON *spec, const cJSON *old, struct causes *causes)
{
    static const char *const mutable[] = {"replicas",
                                          "ordinals",
                                          "template",
                                          "updateStrategy",
                                          "revisionHistoryLimit",
                                          "persistentVolumeClaimRetentionPolicy",
                                          "minReadySeconds"};
    CLEANUP_JSON cJSON *levelled = json_copy(spec);
    for (size_t i = 0; i < ARRAY_SIZE(mutable); i++)
        tree_copy_member(levelled, old, mutable[i]);
    if (!statefulset_spec_equal(levelled, old))
        causes_add(causes, CAUSE_FORBIDDEN, "spec", NULL,
                   "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                   "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
                   "'minReadySeconds' are forbidden");
}

/* One cause a field, as 1.37 says it. */
static void validate_by_field(const cJSON *spec, const cJSON *old, struct causes *causes)
{
    static const char *const fixed[] = {"selector", "volumeClaimTemplates", "serviceName",
                                        "podManagementPolicy"};
    CLEANUP_JSON cJSON *left = levelled_spec(spec);
    CLEANUP_JSON cJSON *right = levelled_spec(old);
    for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
        CLEANUP_FREE char *field = xasprintf("spec.%s", fixed[i]);
        if (!json_equal(json_get(left, fixed[i]), json_get(right, fixed[i])))
            causes_add_node(causes, CAUSE_INVALID, field, json_get(spec, fixed[i]), "field is immutable");
    }
}

static void refuse_labels(const cJSON *labels, struct causes *causes)
{
    causes_add_node(causes, CAUSE_INVALID, "spec.template.metadata.labels", labels,
                    "`selector` does not match template `labels`");
}

/* Containers may mount what the claim templates will bring. */
static void validate_pod_spec(const cJSON *spec, struct causes *causes)
{
    CLEANUP_JSON cJSON *pod_spec = json_copy(json_path(spec, "template", "spec", NULL));
    const cJSON *claim;
    cJSON_ArrayForEach (claim, json_get(spec, "volumeClaimTemplates")) {
        const char *name = json_path_str(claim, "metadata", "name", NULL);
        cJSON *volumes = json_get(pod_spec, "volumes");
        if (!name || !pod_spec)
            continue;
        cJSON *volume = json_new_object();
        json_add_str(volume, "name", name);
        json_add_str(json_add_object(volume, "persistentVolumeClaim"), "claimName", name);
        json_append_item(volumes ? volumes : json_add_array(pod_spec, "volumes"), volume);
    }
    pod_spec_validate(pod_spec, "spec.template.spec", causes);
}

static void validate_spec(const cJSON *spec, struct causes *causes)
{
    CLEANUP_SELECTOR struct selector *selector = NULL;
    const cJSON *selector_tree = json_get(spec, "selector");
    const cJSON *labels = json_path(spec, "template", "metadata", "labels", NULL);
    if (!selector_tree)
        causes_add(causes, CAUSE_REQUIRED, "spec.selector", NULL, "%s", "");
    if (!selector_tree)
        refuse_labels(labels, causes);
    else if (selector_from_tree(selector_tree, &selector, NULL) < 0)
        causes_add_node(causes, CAUSE_INVALID, "spec.selector", selector_tree, "invalid label selector");
    else if (!selector_match_labels(selector, labels))
        refuse_labels(labels, causes);
    if (json_int64_or(spec, "replicas", 0) < 0)
        causes_add_node(causes, CAUSE_INVALID, "spec.replicas", json_get(spec, "replicas"),
                        "must be greater than or equal to 0");
    const char *strategy = json_path_str(spec, "updateStrategy", "type", NULL);
    if (str_equal(strategy, "OnDelete") && json_path(spec, "updateStrategy", "rollingUpdate", NULL))
        causes_add_node(causes, CAUSE_INVALID, "spec.updateStrategy.rollingUpdate",
                        json_path(spec, "updateStrategy", "rollingUpdate", NULL),
                        "only allowed for updateStrategy 'RollingUpdate'");
    validate_pod_spec(spec, causes);
    const cJSON *restart = json_path(spec, "template", "spec", "restartPolicy", NULL);
    if (!str_equal(json_path_str(spec, "template", "spec", "restartPolicy", NULL), "Always"))
        causes_add_node(causes, CAUSE_NOT_SUPPORTED, "spec.template.spec.restartPolicy", restart,
                        "supported values: \"Always\"");
}

/* Only on create: what older servers let in stays as it is. */
static void validate_claim_templates(const cJSON *spec, struct causes *causes)
{
    int index = 0;
    const cJSON *claim = NULL;
    cJSON_ArrayForEach (claim, json_get(spec, "volumeClaimTemplates")) {
        CLEANUP_FREE char *field = xasprintf("spec.volumeClaimTemplates[%d].spec", index++);
        claim_spec_validate(json_get(claim, "spec"), field, causes);
    }
}

static void validate(struct call *call, const cJSON *object, const cJSON *old, struct causes *causes)
{
    const cJSON *spec = json_get(object, "spec");
    if (str_equal(call->subresource, "status"))
        return;
    validate_spec(spec, causes);
    if (!old) {
        validate_claim_templates(spec, causes);
        return;
    }
    if (call->sim->options.newer)
        validate_by_field(spec, json_get(old, "spec"), causes);
    else
        validate_as_one(spec, json_get(old, "spec"), causes);
}

const struct kind_hooks statefulset_hooks = {
    .set_defaults = set_defaults, .prepare_create = prepare_create, .validate = validate};
