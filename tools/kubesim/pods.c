/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/decode.h"
#include "kubesim/kinds.h"

static void set_defaults(struct call *call, cJSON *object)
{
    (void)call;
    pod_spec_set_defaults(json_ensure_object(object, "spec"), false);
}

static bool has_resources(const cJSON *container, const char *which, const char *name)
{
    return json_path(container, "resources", which, name, NULL) != NULL;
}

/* Guaranteed: limits of cpu and memory everywhere, requests equal (or left out); BestEffort: nothing
 * anywhere. */
static const char *qos_class(const cJSON *spec)
{
    bool guaranteed = true;
    bool any = false;
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        const cJSON *container;
        cJSON_ArrayForEach (container, json_get(spec, lists[i])) {
            const char *const names[] = {"cpu", "memory"};
            for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
                const cJSON *limit = json_path(container, "resources", "limits", names[k], NULL);
                const cJSON *request = json_path(container, "resources", "requests", names[k], NULL);
                any = any || has_resources(container, "limits", names[k]) ||
                      has_resources(container, "requests", names[k]);
                guaranteed = guaranteed && limit && (!request || json_equal(request, limit));
            }
        }
    }
    return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

static void prepare_create(struct call *call, cJSON *object)
{
    (void)call;
    pod_spec_admit(json_get(object, "spec"));
    cJSON *status = json_new_object();
    json_add_str(status, "phase", "Pending");
    json_add_str(status, "qosClass", qos_class(json_get(object, "spec")));
    json_set_item(object, "status", status);
}

static void add_null(cJSON *object, const char *key)
{
    if (!json_get(object, key))
        json_add_item(object, key, cJSON_CreateNull());
}

/* Members that the server's types always print. */
static void complete_status(cJSON *status)
{
    static const char *const lists[] = {"containerStatuses", "initContainerStatuses",
                                        "ephemeralContainerStatuses"};
    cJSON *item;
    cJSON_ArrayForEach (item, json_get(status, "conditions")) {
        add_null(item, "lastProbeTime");
        add_null(item, "lastTransitionTime");
    }
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        cJSON_ArrayForEach (item, json_get(status, lists[i])) {
            json_ensure_object(item, "lastState");
            json_ensure_object(item, "state");
        }
    }
    const char *address = json_str(status, "podIP");
    if (!address || json_get(status, "podIPs"))
        return;
    cJSON *entry = json_new_object();
    json_add_str(entry, "ip", address);
    json_append_item(json_add_array(status, "podIPs"), entry);
}

/* The admission plug-ins look at updates too. */
static void prepare_update(struct call *call, cJSON *object, const cJSON *old)
{
    (void)call;
    (void)old;
    pod_spec_admit(json_get(object, "spec"));
}

/* ownerReferences cannot be changed through /status. */
static void prepare_status(struct call *call, cJSON *object, const cJSON *old)
{
    (void)call;
    tree_copy_member(meta_of(object), json_get(old, "metadata"), "ownerReferences");
    complete_status(json_ensure_object(object, "status"));
}

/* Makes what may change equal to old's, so that what is left must be equal. */
static void level_images(cJSON *spec, const cJSON *old, const char *list)
{
    cJSON *container = json_get(spec, list) ? json_get(spec, list)->child : NULL;
    const cJSON *other = json_get(old, list) ? json_get(old, list)->child : NULL;
    for (; container && other; container = container->next, other = other->next)
        tree_copy_member(container, other, "image");
}

static bool only_adds(const cJSON *list, const cJSON *old)
{
    const cJSON *item;
    const cJSON *other = list ? list->child : NULL;
    cJSON_ArrayForEach (item, old) {
        while (other && !json_equal(other, item))
            other = other->next;
        if (!other)
            return false;
    }
    return true;
}

static bool only_removes_gates(const cJSON *spec, const cJSON *old)
{
    return only_adds(json_get(old, "schedulingGates"), json_get(spec, "schedulingGates"));
}

static bool may_change_deadline(const cJSON *spec, const cJSON *old)
{
    int64_t now;
    int64_t before;
    if (!json_int64(old, "activeDeadlineSeconds", &before))
        return true;
    return json_int64(spec, "activeDeadlineSeconds", &now) && now >= 0 && now <= before;
}

static void validate_update(const cJSON *object, const cJSON *old_object, struct causes *causes)
{
    const cJSON *old = json_get(old_object, "spec");
    CLEANUP_JSON cJSON *spec = json_copy(json_get(object, "spec"));
    const char *const lists[] = {"containers", "initContainers"};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        if (cJSON_GetArraySize(json_get(spec, lists[i])) != cJSON_GetArraySize(json_get(old, lists[i]))) {
            CLEANUP_FREE char *field = xasprintf("spec.%s", lists[i]);
            causes_add(causes, CAUSE_FORBIDDEN, field, NULL, "pod updates may not add or remove containers");
            return;
        }
        level_images(spec, old, lists[i]);
    }
    if (may_change_deadline(spec, old))
        tree_copy_member(spec, old, "activeDeadlineSeconds");
    if (only_adds(json_get(spec, "tolerations"), json_get(old, "tolerations")))
        tree_copy_member(spec, old, "tolerations");
    if (only_removes_gates(spec, old))
        tree_copy_member(spec, old, "schedulingGates");
    if (json_int64_or(old, "terminationGracePeriodSeconds", 0) < 0 &&
        json_int64_or(spec, "terminationGracePeriodSeconds", 0) == 1)
        tree_copy_member(spec, old, "terminationGracePeriodSeconds");
    if (!json_equal(spec, old))
        causes_add(
            causes, CAUSE_FORBIDDEN, "spec", NULL,
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions "
            "to "
            "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
            "previously negative)\n");
}

static void validate(struct call *call, const cJSON *object, const cJSON *old, struct causes *causes)
{
    pod_spec_validate(json_get(object, "spec"), "spec", causes);
    if (old && !str_equal(call->subresource, "status"))
        validate_update(object, old, causes);
}

const struct kind_hooks pod_hooks = {.set_defaults = set_defaults,
                                     .prepare_create = prepare_create,
                                     .prepare_update = prepare_update,
                                     .prepare_status = prepare_status,
                                     .validate = validate};

int64_t pod_deletion_grace_s(const cJSON *pod, int64_t asked_s)
{
    int64_t grace_s =
        asked_s >= 0 ? asked_s : json_int64_or(json_get(pod, "spec"), "terminationGracePeriodSeconds", 30);
    const char *node = json_path_str(pod, "spec", "nodeName", NULL);
    const char *phase = json_path_str(pod, "status", "phase", NULL);
    if (!node || !*node || str_equal(phase, "Failed") || str_equal(phase, "Succeeded"))
        return 0;
    return grace_s < 0 ? 1 : grace_s;
}

static void set_scheduled(struct call *call, cJSON *pod)
{
    char now[TIME_TEXT_SIZE];
    sim_time_text(call->sim, now);
    cJSON *status = json_ensure_object(pod, "status");
    if (!json_get(status, "conditions"))
        json_add_array(status, "conditions");
    cJSON *conditions = json_get(status, "conditions");
    cJSON *next;
    for (cJSON *condition = conditions->child; condition; condition = next) {
        next = condition->next;
        if (str_equal(json_str(condition, "type"), "PodScheduled"))
            cJSON_Delete(cJSON_DetachItemViaPointer(conditions, condition));
    }
    cJSON *condition = json_new_object();
    json_add_str(condition, "type", "PodScheduled");
    json_add_str(condition, "status", "True");
    json_add_str(condition, "lastTransitionTime", now);
    json_append_item(conditions, condition);
}

/* POST pods/NAME/binding: what a scheduler does. */
int write_bind(struct call *call)
{
    if (decode_body(call) < 0)
        return -1;
    struct object *object = store_find(call->kind, call->namespace, call->name);
    const char *node = json_path_str(call->body, "target", "name", NULL);
    if (!object)
        return refuse_not_found(call, call->kind, call->name);
    if (!node || !*node)
        return refuse_bad_request(call, "a binding needs target.name");
    const cJSON *tree = object_tree(object);
    const char *present = json_path_str(tree, "spec", "nodeName", NULL);
    if (meta_is_deleting(tree))
        return refuse_conflict(call, call->kind, call->name,
                               "pod %s is being deleted, cannot be assigned to a host", call->name);
    if (present && *present)
        return refuse_conflict(call, call->kind, call->name, "pod %s is already assigned to node \"%s\"",
                               call->name, present);
    cJSON *changed = json_copy(tree);
    json_set_str(json_get(changed, "spec"), "nodeName", node);
    set_scheduled(call, changed);
    if (call->dry_run)
        json_delete(changed);
    else
        store_put(call->sim, call->kind, changed);
    cJSON *status = json_new_object();
    json_add_str(status, "kind", "Status");
    json_add_str(status, "apiVersion", "v1");
    json_add_object(status, "metadata");
    json_add_str(status, "status", "Success");
    json_add_int64(status, "code", 201);
    answer_tree(call, 201, status);
    return 0;
}
