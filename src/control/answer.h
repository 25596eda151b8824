/* SPDX-License-Identifier: Apache-2.0
 *
 * What an answer to a write says of the step (journal.md, "In doubt", rule 3). Pure. */
#pragma once

#include "control/step.h"

enum answer_class {
    ANSWER_APPLIED,  /* 2xx with the object that was written, or with a cut body */
    ANSWER_AGAIN,    /* 401, 429: not executed; the step stays open and is sent again */
    ANSWER_REJECTED, /* refused for good */
    ANSWER_ECHO,     /* 409, 404, 422 uid: may be the echo of an earlier delivery of the same step; ask the
                        resolver */
    ANSWER_UNKNOWN,  /* 408, 5xx, none, and a 2xx whose body is another's: nobody knows */
    ANSWER_NOT_SENT, /* it provably never left */
};

/* What a write is about. An API server answers it with this very object. */
struct answer_target {
    enum kube_resource resource;
    const char *namespace;   /* NULL: cluster-scoped */
    const char *name;        /* NULL: the server chooses, or it has none */
    const char *subresource; /* or NULL */
    const char *uid;         /* NULL: any */
    bool deleted;            /* a success that names it will do: the object is gone */
};

/* The server's object under the target's name, with its uid. A page of a proxy, an empty object and another
 * object are not. */
bool answer_is_target(const cJSON *body, const struct answer_target *target);
/* A 2xx that the API server did not give: a whole body that is not the target. It says nothing of the write.
 */
bool answer_is_foreign(const struct kube_answer *answer, const struct answer_target *target);
/* That, as a sentence; the caller's. */
char *answer_foreign_sentence(const struct kube_answer *answer, const struct answer_target *target);

enum answer_class answer_classify(enum step_kind kind, const struct answer_target *target,
                                  const struct kube_answer *answer);
