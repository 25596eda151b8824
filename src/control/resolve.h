/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step in doubt looks like to its resolver. The resolvers (declared in step.h, named by the table of
 * kinds) are pure: what we sent and what the API server has now in, a verdict out. They never read a clock, a
 * cache or the journal; the table that they follow is in journal.md, "In doubt". */
#pragma once

#include "control/step.h"

struct step_doubt {
    enum step_kind kind;
    const char *key;     /* <nonce>-<seq>; the same for every attempt */
    const char *uid;     /* precondition; NULL for creates */
    const char *version; /* precondition; NULL for creates */
    const cJSON *sent;   /* the body as it was sent; NULL when it was not kept over a restart */
    const char *owner;   /* uid of the controller in the body of a create, or NULL */
    bool horizon_passed; /* no attempt of it can still arrive */
};

/* The step key that object carries, or NULL. */
const char *step_key_on(const cJSON *object);
/* Every member of wanted is in object with an equal value; arrays are compared item by item. What object has
 * besides (defaults, status) does not matter. */
bool step_is_contained(const cJSON *wanted, const cJSON *object);
/* key stands in text and does not go on as a longer key. */
bool step_text_names_key(const char *text, const char *key);
