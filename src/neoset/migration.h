/* SPDX-License-Identifier: Apache-2.0
 *
 * From a StatefulSet to a NeoSet that owns the same pods, and back: what cannot be carried over, what the
 * objects look like, and whether the pods are quiet enough (volume.md, Converge 5 to 7; neoset.md, Identity).
 * Pure: objects as the API server has them in, objects and sentences out; who writes them, and when, is not
 * known here. */
#pragma once

#include "neoset/fact.h"

/* On a NeoSet: the uid of the StatefulSet whose pods it is about to take over, with ",gone" behind it once
 * that is gone: from then on its controller makes pods that are missing. Not there any more when the NeoSet
 * has them all. */
/* On the ControllerRevision that keeps a StatefulSet's manifest: the set's uid (a label), the NeoSet it was
 * handed to (an annotation: nobody re-creates it by himself), and what has changed since, as a merge patch
 * for its spec (an annotation, written before the way back). */
#define MIGRATION_KEPT_LABEL "apps.neo.io/resize-of"
#define MIGRATION_ADOPTED_BY "apps.neo.io/adopted-by"
#define MIGRATION_RETURN "apps.neo.io/return"

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

/* The ControllerRevision that keeps statefulset as it is, of no set's labels. neoset: NULL, or the NeoSet
 * with which it may be collected. The caller's. */
cJSON *migration_kept(const cJSON *statefulset, const cJSON *neoset);
/* "<set>-kept-<8 of uid>", the caller's. */
char *migration_kept_name(const cJSON *statefulset);
/* The StatefulSet that was kept, or NULL; borrowed. */
const cJSON *migration_manifest(const cJSON *kept);

/* What of the NeoSet goes back into the StatefulSet's spec: replicas, and larger claims. NULL: all is as it
 * was kept. The caller's. */
cJSON *migration_return(const cJSON *neoset, const cJSON *manifest);
/* The StatefulSet to be created again from what was kept, as the server takes it in a POST; the caller's.
 * NULL: it cannot be read. */
cJSON *migration_statefulset(const cJSON *kept);
/* Why there is no way back any more (a template that is not the StatefulSet's, moved ordinals ...). */
void migration_refuse_return(const cJSON *neoset, const cJSON *manifest, struct migration_list *ret);
/* A revision that the NeoSet called name made for itself; its set is gone. */
bool migration_is_left_over(const cJSON *revision, const char *name);

/* NULL: quiet. Else a phrase that says what is waited for; the caller's. set: the owner of the pods.
 * revision: the label that all must carry, NULL: any. now_us: by the server's clock. */
char *migration_not_quiet(const cJSON *set, const cJSON *pods, const char *revision, int64_t now_us);
/* Which of the pods (an array) name uid as an owner. */
int migration_count_owned(const cJSON *pods, const char *uid);
