/* SPDX-License-Identifier: Apache-2.0
 *
 * What changes from one revision's pod template to another's: can a live pod be patched, or must it be made
 * anew? The API server lets the images of a live pod be changed, and its metadata; everything else is fixed.
 * Pure. */
#pragma once

#include "neoset/completion.h"

struct image_difference {
    char *container;
    char *from;
    char *to;
};

struct template_diff {
    struct image_difference *images; /* of spec.containers */
    size_t image_count;
    cJSON *labels;      /* changed keys; null: the new template has it no more */
    cJSON *annotations; /* likewise */
    char *recreate;     /* the first field that forces a re-creation, e.g. "spec.containers[mysql].env"; NULL:
                           none */
};

/* Both are templates as compact JSON. */
void template_diff_make(const char *from, const char *to, struct template_diff *ret);
void template_diff_done(struct template_diff *diff);
/* Nothing that runs changes: labels or annotations at most. */
bool template_diff_is_metadata(const struct template_diff *diff);
/* "image mysql:8.0 -> mysql:8.1", "labels", or the field that forces a re-creation: for people; the caller's.
 */
char *template_diff_text(const struct template_diff *diff);
