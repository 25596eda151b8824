/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions of a set's pod template, kept as apps/v1 ControllerRevisions: data holds the template and nothing
 * else. A version is known by its revision's name; templates that mean the same are the same version. Rolling
 * back gives the older object a higher number. Pure: says what should be, writes nothing. */
#pragma once

#include "neoset/fact.h"

/* The part of a pod's labels that a revision's name may take. */
enum { REVISION_NAME_MAX = 63, REVISION_HASH_LENGTH = 10 };

/* "<set>-<hash>", the set's name cut so that the whole fits into a label value; the caller's. The hash is of
 * what the template means and of the collision count, in letters that make no words. */
char *revision_name(const char *set_name, const char *template_digest, int collision_count);
/* The ControllerRevision for the set's template; the caller's. */
cJSON *revision_object(const struct neoset_fact *set, const char *name, int64_t number);
/* The same for another template of it, as compact JSON. */
cJSON *revision_object_of(const struct neoset_fact *set, const char *template_text, const char *name,
                          int64_t number);

const struct revision_fact *revision_find(const struct revision_fact *const *revisions, size_t count,
                                          const char *name);
/* The newest that means the set's template and is not being deleted, or NULL. */
const struct revision_fact *revision_find_equal(const struct revision_fact *const *revisions, size_t count,
                                                const char *template_digest);
int64_t revision_highest(const struct revision_fact *const *revisions, size_t count);
/* The oldest revision that history has no room for, or NULL: of those that is_used does not hold, at most
 * limit stay. */
const struct revision_fact *revision_to_cut(const struct revision_fact *const *revisions, size_t count,
                                            int limit, bool (*is_used)(void *context, const char *name),
                                            void *context);
