/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/volumes.h"

#include "kubesim/quantity.h"

static const struct actor resizer = {.manager = "csi-resizer", .user = "system:serviceaccount:csi:resizer"};
static const struct actor node = {.manager = "kubelet", .user = "system:node:node1"};
static const struct actor expander = {.manager = "volume_expand",
                                      .user = "system:serviceaccount:kube-system:expand-controller"};

static const char annotation[] = "kubesim.neo.io/resizer";

static const struct {
    const char *word;
    enum volume_behaviour behaviour;
} words[] = {{"ok", VOLUME_OK},
             {"never", VOLUME_NEVER},
             {"pool-full", VOLUME_POOL_FULL},
             {"slow", VOLUME_SLOW},
             {"in-use", VOLUME_IN_USE},
             {"node-pending", VOLUME_NODE_PENDING},
             {"node-infeasible", VOLUME_NODE_INFEASIBLE},
             {"node-transient", VOLUME_NODE_TRANSIENT}};

static enum volume_behaviour behaviour_of_word(const char *text)
{
    struct quantity size;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcmp(words[i].word, text) == 0)
            return words[i].behaviour;
    return str_starts_with(text, "max=") && quantity_from_text(text + 4, &size) ? VOLUME_MAX : VOLUME_UNKNOWN;
}

enum volume_behaviour volume_behaviour_of(const cJSON *claim, const cJSON *class, const char **ret_text)
{
    const char *text = json_path_str(claim, "metadata", "annotations", annotation, NULL);
    if (!text)
        text = json_path_str(class, "metadata", "annotations", annotation, NULL);
    *ret_text = text ? text : "ok";
    return behaviour_of_word(*ret_text);
}

/* --- what is due ---------------------------------------------------------------------------------------- */

static const char *request_of(const cJSON *claim)
{
    return json_path_str(claim, "spec", "resources", "requests", "storage", NULL);
}

static int compare_texts(const char *a, const char *b)
{
    struct quantity left = {0};
    struct quantity right = {0};
    (void)quantity_from_text(a, &left);
    (void)quantity_from_text(b, &right);
    return quantity_compare(&left, &right);
}

static const char *status_of(const cJSON *claim)
{
    return json_path_str(claim, "status", "allocatedResourceStatuses", "storage", NULL);
}

enum volume_step volume_resize_step(const struct volume_work *work)
{
    const cJSON *claim = work->claim;
    const char *request = request_of(claim);
    if (compare_texts(request, json_path_str(claim, "status", "capacity", "storage", NULL)) <= 0)
        return VOLUME_STEP_NONE;
    if (work->behaviour == VOLUME_NEVER)
        return work->tries == 0 ? VOLUME_STEP_TELL : VOLUME_STEP_NONE;
    const char *allocated = json_path_str(claim, "status", "allocatedResources", "storage", NULL);
    const char *status = status_of(claim);
    if (compare_texts(request, allocated) != 0 || !status)
        return VOLUME_STEP_BEGIN;
    if (str_equal(status, "ControllerResizeInProgress") || str_equal(status, "ControllerResizeInfeasible"))
        return VOLUME_STEP_CONTROLLER;
    if (str_equal(status, "NodeResizeInfeasible"))
        return VOLUME_STEP_NODE_BACK;
    if (str_equal(status, "NodeResizeInProgress"))
        return VOLUME_STEP_NODE_END;
    return work->used && work->behaviour != VOLUME_NODE_PENDING ? VOLUME_STEP_NODE_BEGIN : VOLUME_STEP_NONE;
}

/* As recorded: milliseconds in the control plane, seconds until a kubelet looks; failures back off from one
 * second to ten. */
int64_t volume_step_delay_us(enum volume_step step, const struct volume_work *work)
{
    switch (step) {
    case VOLUME_STEP_CONTROLLER:
        if (work->behaviour == VOLUME_SLOW)
            return 10 * US_PER_S;
        return work->tries == 0 ? 20 * US_PER_MS : MIN(US_PER_S << MIN(work->tries - 1, 5u), 10 * US_PER_S);
    case VOLUME_STEP_NODE_BEGIN:
        return 4500 * US_PER_MS;
    case VOLUME_STEP_NODE_END:
        return work->tries == 0 ? 30 * US_PER_MS : 2 * US_PER_S;
    case VOLUME_STEP_NONE:
    case VOLUME_STEP_BIND:
    case VOLUME_STEP_TELL:
    case VOLUME_STEP_BEGIN:
    case VOLUME_STEP_NODE_BACK:
        break;
    }
    return 10 * US_PER_MS;
}

/* --- writing -------------------------------------------------------------------------------------------- */

static const char *volume_name(const cJSON *claim)
{
    return json_path_str(claim, "spec", "volumeName", NULL);
}

/* status (NULL: the resize is over) and the conditions that hold from now on (taken; NULL: as they are). */
static void write_status(struct kubesim *sim, const struct actor *actor, const struct volume_work *work,
                         const char *status, cJSON *conditions)
{
    const cJSON *claim = work->claim;
    cJSON *patch = json_new_object();
    cJSON *part = json_add_object(patch, "status");
    if (status)
        json_add_str(json_add_object(part, "allocatedResourceStatuses"), "storage", status);
    else
        json_add_item(part, "allocatedResourceStatuses", cJSON_CreateNull());
    json_add_str(json_add_object(part, status ? "allocatedResources" : "capacity"), "storage",
                 request_of(claim));
    if (conditions)
        json_add_item(part, "conditions", conditions);
    (void)actor_ask(sim, actor, "PATCH", MERGE_TYPE, patch,
                    "/api/v1/namespaces/%s/persistentvolumeclaims/%s/status", meta_str(claim, "namespace"),
                    meta_str(claim, "name"));
}

/* The claim's conditions with one more of a type, or with a new message. The caller's. */
static cJSON *with_condition(const struct kubesim *sim, const cJSON *claim, const char *type,
                             const char *message)
{
    cJSON *conditions = json_new_array();
    cJSON *condition = NULL;
    const cJSON *old = NULL;
    cJSON_ArrayForEach (old, json_path(claim, "status", "conditions", NULL)) {
        cJSON *copy = json_copy(old);
        json_append_item(conditions, copy);
        if (str_equal(json_str(copy, "type"), type))
            condition = copy;
    }
    if (!condition) {
        char now[TIME_TEXT_SIZE];
        sim_time_text(sim, now);
        condition = json_new_object();
        json_add_str(condition, "type", type);
        json_add_str(condition, "status", "True");
        json_add_item(condition, "lastProbeTime", cJSON_CreateNull());
        json_add_str(condition, "lastTransitionTime", now);
        json_append_item(conditions, condition);
    }
    if (*message)
        json_set_str(condition, "message", message);
    return conditions;
}

/* The claim's conditions without those of a resize. The caller's. */
static cJSON *without_resize(const cJSON *claim)
{
    static const char *const mine[] = {"Resizing", "FileSystemResizePending", "ControllerResizeError",
                                       "NodeResizeError"};
    cJSON *conditions = json_new_array();
    const cJSON *old = NULL;
    cJSON_ArrayForEach (old, json_path(claim, "status", "conditions", NULL)) {
        bool drop = false;
        for (size_t i = 0; i < ARRAY_SIZE(mine); i++)
            drop = drop || str_equal(json_str(old, "type"), mine[i]);
        if (!drop)
            json_append_item(conditions, json_copy(old));
    }
    return conditions;
}

/* --- the steps ------------------------------------------------------------------------------------------ */

static void tell_expanding(struct kubesim *sim, const struct volume_work *work)
{
    actor_note(sim, &expander, work->claim, "Normal", "ExternalExpanding",
               "waiting for an external controller to expand this PVC");
}

static void begin(struct kubesim *sim, const struct volume_work *work)
{
    CLEANUP_JSON cJSON *claim = json_copy(work->claim);
    json_set_item(json_get(claim, "status"), "conditions", without_resize(work->claim));
    write_status(sim, &resizer, work, "ControllerResizeInProgress",
                 with_condition(sim, claim, "Resizing", ""));
    tell_expanding(sim, work);
    actor_note(sim, &resizer, work->claim, "Normal", "Resizing", "External resizer is resizing volume %s",
               volume_name(work->claim));
}

static void note_failure(struct kubesim *sim, const struct volume_work *work, const char *error)
{
    const char *driver = json_path_str(work->claim, "metadata", "annotations",
                                       "volume.kubernetes.io/storage-provisioner", NULL);
    actor_note(sim, &resizer, work->claim, "Warning", "VolumeResizeFailed",
               "resize volume \"%s\" by resizer \"%s\" failed: rpc error: code = %s",
               volume_name(work->claim), driver ? driver : "", error);
}

/* A failure that the status tells too. */
static void fail(struct kubesim *sim, const struct volume_work *work, const char *status, const char *error)
{
    CLEANUP_FREE char *message = xasprintf("failed to expand pvc with rpc error: code = %s", error);
    note_failure(sim, work, error);
    write_status(sim, &resizer, work, status,
                 with_condition(sim, work->claim, "ControllerResizeError", message));
}

static void grow_storage(struct kubesim *sim, const struct volume_work *work)
{
    cJSON *patch = json_new_object();
    json_add_str(json_add_object(json_add_object(patch, "spec"), "capacity"), "storage",
                 request_of(work->claim));
    (void)actor_ask(sim, &resizer, "PATCH", MERGE_TYPE, patch, "/api/v1/persistentvolumes/%s",
                    volume_name(work->claim));
    /* Each try begins without the error of the one before. */
    CLEANUP_JSON cJSON *claim = json_copy(work->claim);
    json_set_item(json_get(claim, "status"), "conditions", without_resize(work->claim));
    json_set_item(json_get(claim, "status"), "conditions", with_condition(sim, claim, "Resizing", ""));
    write_status(sim, &resizer, work, "NodeResizePending",
                 with_condition(sim, claim, "FileSystemResizePending",
                                "Waiting for user to (re-)start a pod to finish file system resize of volume "
                                "on node."));
    actor_note(sim, &resizer, work->claim, "Normal", "FileSystemResizeRequired",
               "Require file system resize of volume on node");
}

static void work_in_controller(struct kubesim *sim, const struct volume_work *work)
{
    enum { SLOW_TRIES = 3 };
    bool too_large = work->behaviour == VOLUME_MAX &&
                     compare_texts(request_of(work->claim), work->behaviour_text + strlen("max=")) > 0;
    if (too_large) {
        CLEANUP_FREE char *error = xasprintf("OutOfRange desc = requested %s exceeds the largest volume %s",
                                             request_of(work->claim), work->behaviour_text + strlen("max="));
        fail(sim, work, "ControllerResizeInfeasible", error);
    } else if (work->behaviour == VOLUME_POOL_FULL) {
        note_failure(sim, work, "ResourceExhausted desc = pool is full");
    } else if (work->behaviour == VOLUME_SLOW && work->tries < SLOW_TRIES) {
        note_failure(sim, work, "DeadlineExceeded desc = context deadline exceeded");
    } else if (work->behaviour == VOLUME_IN_USE && work->used) {
        fail(sim, work, "ControllerResizeInProgress",
             "FailedPrecondition desc = the volume is in use; offline expansion only");
    } else {
        grow_storage(sim, work);
    }
}

static void fail_on_node(struct kubesim *sim, const struct volume_work *work, const char *status,
                         const char *error)
{
    CLEANUP_FREE char *message = xasprintf(
        "failed to expand pvc with Expander.NodeExpand failed to expand the volume rpc error: code = %s",
        error);
    write_status(sim, &node, work, status, with_condition(sim, work->claim, "NodeResizeError", message));
}

static void end_on_node(struct kubesim *sim, const struct volume_work *work)
{
    if (work->behaviour == VOLUME_NODE_INFEASIBLE) {
        fail_on_node(sim, work, "NodeResizeInfeasible",
                     "InvalidArgument desc = the filesystem cannot be grown");
    } else if (work->behaviour == VOLUME_NODE_TRANSIENT && work->tries == 0) {
        fail_on_node(sim, work, "NodeResizeInProgress", "Internal desc = try again");
    } else {
        write_status(sim, &node, work, NULL, without_resize(work->claim));
        actor_note(sim, &node, work->claim, "Normal", "FileSystemResizeSuccessful",
                   "MountVolume.NodeExpandVolume succeeded for volume \"%s\"", volume_name(work->claim));
    }
}

void volume_resize(struct kubesim *sim, const struct volume_work *work, enum volume_step step)
{
    switch (step) {
    case VOLUME_STEP_TELL:
        tell_expanding(sim, work);
        break;
    case VOLUME_STEP_BEGIN:
        begin(sim, work);
        break;
    case VOLUME_STEP_CONTROLLER:
        work_in_controller(sim, work);
        break;
    case VOLUME_STEP_NODE_BEGIN:
        write_status(sim, &node, work, "NodeResizeInProgress", NULL);
        break;
    case VOLUME_STEP_NODE_END:
        end_on_node(sim, work);
        break;
    case VOLUME_STEP_NODE_BACK:
        write_status(sim, &resizer, work, "NodeResizePending", NULL);
        break;
    case VOLUME_STEP_NONE:
    case VOLUME_STEP_BIND:
        UNREACHABLE();
    }
}
