/* SPDX-License-Identifier: Apache-2.0
 *
 * A claim that was asked to grow: how far is it? What its size is patched with (volume.md, "State of a
 * growth" and Converge 4). Acceptance is not completion: the storage controller and the node follow. Pure. */
#pragma once

#include "control/step.h"

/* X(name, for people, it will not come by itself) */
#define GROWTHS(X)                                                                                           \
    X(DONE, "done", false)                                                                                   \
    X(UNANSWERED, "no storage controller has taken it up yet", false)                                        \
    X(CONTROLLER, "its storage controller resizes it", false)                                                \
    X(NODE, "its node resizes the file system (when a pod uses it)", false)                                  \
    X(STUCK, "its storage controller does not get on (`kubectl describe pvc` shows why)", false)             \
    X(NOBODY, "nobody takes it up: is the external-resizer of its driver running?", false)                   \
    X(NODE_FAILED, "its node cannot resize it for now", false)                                               \
    X(INFEASIBLE, "its storage cannot become that large", true)

enum growth {
#define X(name, text, is_final) GROWTH_##name,
    GROWTHS(X)
#undef X
};

/* since_us: how long its state has been looked at, in microseconds. */
enum growth growth_of(const cJSON *claim, int64_t since_us);
const char *growth_text(enum growth growth);
/* The storage controller has said what it makes of it, or it is past that. */
bool growth_is_answered(enum growth growth);
/* What the storage controller or the node said of a growth that does not get on: of its conditions, else in
 * the newest VolumeResizeFailed among the claim's Events (NULL: not read) that is no older than some minutes
 * at now_us; its first line, cut. NULL: nothing. The caller's. */
char *growth_said(const cJSON *claim, const cJSON *events, int64_t now_us);
/* spec.resources.requests.storage as a claim has it, or NULL. */
const char *growth_request(const cJSON *claim);
/* The merge patch that asks for size; the caller's. */
cJSON *growth_patch(const char *size);
