/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults: which request is hit, and how. Parsing and matching; the callers act. */
#pragma once

#include "kubesim/model.h"

enum fault_action {
    FAULT_NONE,
    FAULT_STATUS, /* an HTTP status instead of an execution */
    FAULT_LOST,   /* executed, the answer is lost */
    FAULT_DROP,   /* not executed, the connection ends */
    FAULT_LATE,   /* executed amount_us later, whether the client waits or not */
    FAULT_SLOW,   /* executed, answered amount_us later */
    FAULT_CUT,    /* a watch ends after so many lines or so long */
    FAULT_FREEZE, /* a watch says nothing more after so many lines or so long */
    FAULT_GONE,   /* a watch or a list is answered 410 */
    FAULT_STALE,  /* a list shows the state so many changes ago */
};

struct fault_effect {
    enum fault_action action;
    int status;
    int64_t amount_us; /* LATE, SLOW; CUT and FREEZE by time, else -1 */
    int64_t count;     /* CUT and FREEZE by lines, STALE */
    int retry_after_s;
};

struct fault_list;
void fault_list_free(struct fault_list *list);
/* Counts the call against every rule that matches it and returns what the first due one does. */
struct fault_effect faults_meet(struct call *call);
/* The Status of FAULT_STATUS. */
int fault_answer(struct call *call, const struct fault_effect *effect);
