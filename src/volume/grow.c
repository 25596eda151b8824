/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/grow.h"

#include "base/time_text.h"
#include "kube/object.h"
#include "volume/quantity.h"

#define STUCK_AFTER_US (120 * US_PER_S)
#define NOBODY_AFTER_US (30 * US_PER_S)

static const struct {
    const char *text;
} growths[] = {
#define X(name, text_, is_final) [GROWTH_##name] = {.text = text_},
    GROWTHS(X)
#undef X
};

const char *growth_text(enum growth growth)
{
    return growths[growth].text;
}

const char *growth_request(const cJSON *claim)
{
    return json_path_str(claim, "spec", "resources", "requests", "storage", NULL);
}

static bool read_size(const cJSON *node, struct quantity *ret)
{
    CLEANUP_FREE char *text = NULL;
    return node && quantity_read(node, ret, &text, NULL) == 0;
}

/* What the storage controller answered counts only for the size that is asked for now: of an earlier one it
 * stays behind (measured: "Infeasible" of 10Gi 8 ms after 3Gi was asked for instead). */
static enum growth answered(const cJSON *claim, int64_t since_us)
{
    const char *state = json_path_str(claim, "status", "allocatedResourceStatuses", "storage", NULL);
    bool is_past_controller = state && str_starts_with(state, "NodeResize");
    if (str_equal(state, "ControllerResizeInfeasible") ||
        (!is_past_controller && kube_object_condition_is_true(claim, "ControllerResizeError")))
        return GROWTH_INFEASIBLE;
    if (str_equal(state, "NodeResizeInfeasible") || kube_object_condition_is_true(claim, "NodeResizeError"))
        return GROWTH_NODE_FAILED;
    if (is_past_controller)
        return GROWTH_NODE;
    if (!state && kube_object_condition_is_true(claim, "FileSystemResizePending"))
        return GROWTH_NODE;
    return since_us > STUCK_AFTER_US ? GROWTH_STUCK : GROWTH_CONTROLLER;
}

enum growth growth_of(const cJSON *claim, int64_t since_us)
{
    struct quantity request, capacity, allocated;
    const cJSON *status = json_get(claim, "status");
    if (!read_size(json_path(claim, "spec", "resources", "requests", "storage", NULL), &request))
        return GROWTH_UNANSWERED;
    if (read_size(json_path(status, "capacity", "storage", NULL), &capacity) &&
        quantity_compare(&capacity, &request) >= 0)
        return GROWTH_DONE;
    if (read_size(json_path(status, "allocatedResources", "storage", NULL), &allocated) &&
        quantity_compare(&allocated, &request) == 0)
        return answered(claim, since_us);
    return since_us > NOBODY_AFTER_US ? GROWTH_NOBODY : GROWTH_UNANSWERED;
}

bool growth_is_answered(enum growth growth)
{
    return growth != GROWTH_UNANSWERED && growth != GROWTH_CONTROLLER && growth != GROWTH_NOBODY &&
           growth != GROWTH_STUCK;
}

cJSON *growth_patch(const char *size)
{
    cJSON *body = json_new_object();
    cJSON *resources = json_add_object(json_add_object(body, "spec"), "resources");
    json_add_str(json_add_object(resources, "requests"), "storage", size);
    return body;
}
