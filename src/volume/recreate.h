/* SPDX-License-Identifier: Apache-2.0
 *
 * The bodies with which a StatefulSet is proven and made again (volume.md, Converge 2 and 7): as it was, with
 * larger sizes, so that its pods stay, its canary stays, and the next apply of its owner changes nothing.
 * Pure. */
#pragma once

#include "base/json.h"

/* The storage request of a template, or NULL. */
const char *recreate_size(const cJSON *template);
/* Puts the sizes of declared's templates into set's templates of the same names. */
void recreate_put_sizes(cJSON *set, const cJSON *declared);
/* The same, where they are larger. */
void recreate_raise_sizes(cJSON *set, const cJSON *declared);
/* "data=2Gi,logs=1Gi"; the caller's. */
char *recreate_sizes_text(const cJSON *set);
/* The same, read back into the templates of set; false: it does not fit them. */
bool recreate_take_sizes(cJSON *set, const char *text);

/* The body of the apply that proves desired: with live's templates and uid; the caller's. */
cJSON *recreate_swapped(const cJSON *desired, const cJSON *live);
/* The body of the create that proves manifest, under another name of the same length; the caller's. tries: of
 * names that were taken. */
cJSON *recreate_trial(const cJSON *manifest, int tries);

/* The StatefulSet that was kept is held by its partition in the middle of a canary: the revision of the pods
 * below the partition is not the newest. Made again as it is, its controller would take the newest for both.
 */
bool recreate_is_canary(const cJSON *manifest);
/* The POST that makes the kept set again; the caller's. revisions: of the namespace. Of a canary the first of
 * two steps: the template of the current revision, which updates nobody. NULL, and *ret_missing: the revision
 * that is not there; borrowed. */
cJSON *recreate_body(const cJSON *kept, const cJSON *revisions, const char **ret_missing);
/* The set stands at the first of the two steps. */
bool recreate_is_half(const cJSON *set, const cJSON *kept);
/* The second: a strategic merge patch with the template and the strategy that were kept; the caller's. What
 * somebody changed in the template of the first step - a restart that was asked for - is in it. */
cJSON *recreate_second(const cJSON *set, const cJSON *kept, const cJSON *revisions);
/* Whoever applied the claim templates last, on the server's side: sizes are declared in his name, so that
 * nobody owns them besides. Borrowed; NULL: nobody did. */
const char *recreate_applier(const cJSON *set);
/* The last write of ours is still on the set: who set which field is not as it was. */
bool recreate_needs_managers(const cJSON *set, const cJSON *kept);
/* The merge patch that gives the fields back to whom they belonged, and takes our key off; the caller's. */
cJSON *recreate_managers(const cJSON *kept);
/* The same for a set of which nothing is kept, and which carries the key of a step nevertheless; the
 * caller's.
 */
cJSON *recreate_clean(const cJSON *set);
