/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in a world beside the sets that its controllers look after: pods of others under a set's names or
 * labels, what a StatefulSet left behind, a mutating webhook. */
#pragma once

#include "world.h"

/* The pods that DO_STRANGER makes. */
enum stranger_kind {
    STRANGER_ORPHAN,     /* the set's name and labels, nobody's: to be adopted */
    STRANGER_OWNED,      /* the set's name and labels, somebody else's */
    STRANGER_UNLABELLED, /* the set's name, other labels */
    STRANGER_ELSEWHERE,  /* the set's labels, a name that is none of its names */
    STRANGER_KIND_COUNT,
};

void strangers_come(struct world *world, int set, int ordinal, enum stranger_kind kind);
/* A person takes them away, but for those that belong to a set by now. */
void strangers_go(struct world *world);
/* A StatefulSet of the set's name was here: its pods and revisions are there, and belong to nobody. */
void strangers_leave_pods(struct world *world, int set);

/* The webhook: images come from a cache, a container is injected, a field is filled in. */
void webhook_mutate(cJSON *pod, bool create);
/* What the template says where the webhook said so. */
const char *webhook_original_image(const char *image);
bool webhook_is_injected(const char *container);
