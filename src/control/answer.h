/* SPDX-License-Identifier: Apache-2.0
 *
 * What an answer to a write says of the step (journal.md, "In doubt", rule 3). Pure. */
#pragma once

#include "control/step.h"

enum answer_class {
    ANSWER_APPLIED,  /* 2xx, also with a cut body */
    ANSWER_AGAIN,    /* 401, 429: not executed; the step stays open and is sent again */
    ANSWER_REJECTED, /* refused for good */
    ANSWER_ECHO,     /* 409, 404, 422 uid: may be the echo of an earlier delivery of the same step; ask the
                        resolver */
    ANSWER_UNKNOWN,  /* 408, 5xx, none: nobody knows */
    ANSWER_NOT_SENT, /* it provably never left */
};

enum answer_class answer_classify(enum step_kind kind, const struct kube_answer *answer);
