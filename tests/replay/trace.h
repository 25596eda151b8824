/* SPDX-License-Identifier: Apache-2.0
 *
 * A recorded story of one pod, played through the completion rule. Shared by the replay program and the unit
 * tests. */
#pragma once

#include "neoset/completion.h"

enum { TRACE_PATCHES_MAX = 64 };

struct trace_patch {
    int64_t generation;
    bool applied;    /* the pod version that it made was seen */
    int64_t done_us; /* since the pod was created; -1: never */
};

struct trace_result {
    struct trace_patch patches[TRACE_PATCHES_MAX];
    size_t patch_count;
};

/* One version of the pod, after the rule's own writes were put in. Returns whether the update is done: the
 * rule under test, or a worse one. */
typedef bool trace_rule(void *context, const struct pod_fact *pod, const struct pod_observation *observation,
                        int64_t at_us, int64_t *ret_again_us);

/* The product's rule. */
trace_rule trace_rule_completion;

/* text: the lines of a .jsonl file; name: its name without folder and ending (it says what the pod was made
 * with). */
int trace_play(const char *name, const char *text, size_t length, trace_rule *rule, void *context,
               struct trace_result *ret, struct error **err);
