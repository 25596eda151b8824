/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/grow.h"

#include "base/time_text.h"
#include "kube/object.h"
#include "volume/quantity.h"

#define STUCK_AFTER_US (120 * US_PER_S)
#define NOBODY_AFTER_US (30 * US_PER_S)
/* It tries again at least every five minutes, and each try that fails moves the Event's time. */
#define SAID_LONG_AGO_US (600 * US_PER_S)

enum { SAID_BYTES_MAX = 256 };

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

/* --- what was said -------------------------------------------------------------------------------------- */

static char *first_line(const char *text)
{
    size_t length = strcspn(text, "\r\n");
    if (length > SAID_BYTES_MAX)
        length = SAID_BYTES_MAX;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) /* never half a character */
        length--;
    return xstrndup(text, length);
}

static const char *condition_said(const cJSON *claim)
{
    static const char *const types[] = {"ControllerResizeError", "NodeResizeError"};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        const char *message = kube_object_condition_is_true(claim, types[i])
                                  ? json_str(kube_object_condition(claim, types[i]), "message")
                                  : NULL;
        if (message && *message)
            return message;
    }
    return NULL;
}

static int64_t said_us(const cJSON *event)
{
    static const char *const keys[] = {"lastTimestamp", "eventTime"};
    int64_t at_us = 0;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const char *text = json_str(event, keys[i]);
        if (text && time_parse_rfc3339(text, &at_us, NULL) == 0)
            return at_us;
    }
    return kube_object_created_us(event);
}

char *growth_said(const cJSON *claim, const cJSON *events, int64_t now_us)
{
    const char *said = condition_said(claim);
    int64_t newest_us = now_us - SAID_LONG_AGO_US;
    const cJSON *event = NULL;
    if (said)
        return first_line(said);
    cJSON_ArrayForEach (event, events) {
        const char *message = json_str(event, "message");
        bool is_of_it =
            str_equal(json_str(event, "reason"), "VolumeResizeFailed") &&
            str_equal(json_path_str(event, "involvedObject", "uid", NULL), kube_object_uid(claim));
        if (!is_of_it || !message || !*message || said_us(event) < newest_us)
            continue;
        said = message;
        newest_us = said_us(event);
    }
    return said ? first_line(said) : NULL;
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
