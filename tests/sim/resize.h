/* SPDX-License-Identifier: Apache-2.0
 *
 * Worlds of a StatefulSet whose volumes grow: how they begin, what is done to them, how they are healed and
 * come home. What a person runs is in command.h, who judges in judge_resize.c. */
#pragma once

#include "command.h"

#define RESIZE_NAMESPACE "default"
#define RESIZE_NAME "db"

enum { RESIZE_SENTENCE_MAX = 400 };

/* What people have said so far. */
struct resize {
    char image[TEXT_MAX];
    char sizes[TEXT_MAX]; /* declared last, by whoever grew or recovered */
    int replicas;         /* of the manifest, where it says how many */
    int restarts;
};

/* The server runs StatefulSets, the set is there and ready. */
void resize_begin(struct world *world);
/* False: not one of these worlds' operations. */
bool resize_do(struct world *world, const struct operation *operation);
/* Nothing is done to it any more: everything goes through, and stands still then. */
void resize_come_home(struct world *world);
/* The user's program is due again after a crash. */
void resize_start_again(struct program *program);

/* The manifest with these sizes; the caller's. */
cJSON *resize_manifest(const struct world *world, const char *sizes, bool other_service);
