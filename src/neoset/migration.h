/* SPDX-License-Identifier: Apache-2.0
 *
 * From a StatefulSet to a NeoSet that owns the same pods, and back: what cannot be carried over, what the
 * objects look like, and what goes back (neoset.md, Identity). What is kept, and when pods are
 * quiet enough, is in volume/keep.h and volume/quiet.h.
 * Pure: objects as the API server has them in, objects and sentences out; who writes them, and when, is not
 * known here. */
#pragma once

#include "neoset/fact.h"

/* Sentences without full stops, in the order of the object. */
struct migration_list {
    char **items;
    size_t count;
};
void migration_list_done(struct migration_list *list);
/* "a; b; c", the caller's. */
char *migration_list_text(const struct migration_list *list);

/* Everything of the StatefulSet that a NeoSet has not, or that would bring it back to life: each with its
 * path. */
void migration_refuse(const cJSON *statefulset, struct migration_list *ret);
/* What a person should know besides. */
void migration_notes(const cJSON *statefulset, struct migration_list *ret);
/* The NeoSet: of the same name, paused, annotated with whose pods it takes over. The caller's. */
cJSON *migration_neoset(const cJSON *statefulset);
/* NULL: not set. The uid alone, the caller's. */
char *migration_adopts(const cJSON *neoset, bool *ret_is_gone);
/* The value once the StatefulSet is gone; the caller's. */
char *migration_adopts_gone(const char *uid);
/* Fields of sent.spec that the server did not keep (an older definition prunes what it does not know). */
void migration_not_kept(const cJSON *sent, const cJSON *answered, struct migration_list *ret);
/* A merge patch that makes the spec of the NeoSet what migration_neoset() says, for a StatefulSet that
 * changed meanwhile; NULL: it is so. The caller's. */
cJSON *migration_neoset_patch(const cJSON *neoset, const cJSON *statefulset);

/* Equal by meaning: the template of the pods' revision and that of the set, so that adopting restarts
 * nothing. revision: the ControllerRevision that they carry. */
bool migration_means(const cJSON *revision, const cJSON *set);

/* What keeps statefulset's manifest, annotated with the NeoSet that it was handed to. neoset: NULL, or the
 * NeoSet with which it may be collected. The caller's. */
cJSON *migration_kept(const cJSON *statefulset, const cJSON *neoset);

/* What of the NeoSet goes back into the StatefulSet's spec: replicas, and larger claims. NULL: all is as it
 * was kept. The caller's. */
cJSON *migration_return(const cJSON *neoset, const cJSON *manifest);
/* Why there is no way back any more (a template that is not the StatefulSet's, moved ordinals ...). */
void migration_refuse_return(const cJSON *neoset, const cJSON *manifest, struct migration_list *ret);
/* A revision that the NeoSet called name made for itself; its set is gone. */
bool migration_is_left_over(const cJSON *revision, const char *name);
