/* SPDX-License-Identifier: Apache-2.0
 *
 * A StatefulSet's manifest, kept in the cluster while the set itself is gone: as a ControllerRevision that
 * carries the set's uid and none of its labels (its controller would take it for its own). Whoever finds it
 * can make the set again (volume.md, Converge 6 and 7). Pure: objects in, objects out. */
#pragma once

#include "base/json.h"

/* On the ControllerRevision: the set's uid (a label), the NeoSet it was handed to (an annotation: nobody
 * re-creates the set by himself), and what has changed since, as a merge patch for the set's spec (an
 * annotation). */
#define KEEP_LABEL "apps.neo.io/resize-of"
#define KEEP_ADOPTED_BY "apps.neo.io/adopted-by"
#define KEEP_RETURN "apps.neo.io/return"
/* And the pods that the set had, to see afterwards that it has them again (an annotation, left out when they
 * are too many for one). */
#define KEEP_PODS "apps.neo.io/pods"

/* "<set>-kept-<8 of uid>", the caller's. */
char *keep_name(const cJSON *statefulset);
/* The ControllerRevision that keeps statefulset as it is; the caller's. */
cJSON *keep_object(const cJSON *statefulset);
/* The StatefulSet that was kept, or NULL: kept is none of these; borrowed. */
const cJSON *keep_manifest(const cJSON *kept);
/* The StatefulSet that was kept because its volumes grow, or NULL: kept is none of these, was handed to a
 * NeoSet, or is being deleted itself; borrowed. */
const cJSON *keep_growing(const cJSON *kept);
/* Among revisions, what is kept of this growing set: of set itself (NULL: it is not there), else the newest.
 * namespace NULL: they are all of one. Borrowed; NULL: nothing. */
const cJSON *keep_find_growing(const cJSON *revisions, const char *namespace, const char *name,
                               const cJSON *set);
/* It keeps this very set (its uid), which therefore never went. */
bool keep_is_of(const cJSON *kept, const cJSON *statefulset);
/* Of a set that is being deleted, where it stands: a literal. It leaves its pods behind only as long as it
 * carries the finalizer `orphan`; who deletes it otherwise lets the pods go with it that still name it. kept:
 * its manifest, or NULL. */
const char *keep_leaving_phrase(const cJSON *statefulset, const cJSON *kept);
/* picture: of verify_picture(). */
void keep_put_pods(cJSON *kept, const cJSON *picture);
/* NULL: it is not kept; the caller's. */
cJSON *keep_pods(const cJSON *kept);
/* A StatefulSet as a server takes it in a POST: without what servers fill in, our step and the finalizer
 * `orphan`; the caller's. */
cJSON *keep_as_new(const cJSON *statefulset);
/* The StatefulSet to be created again: as new, with what has changed since. The caller's; NULL: it cannot be
 * read. */
cJSON *keep_recreation(const cJSON *kept);
