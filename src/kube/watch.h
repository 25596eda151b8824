/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps one collection in view for ever: lists in chunks (limit, continue), watches with bookmarks, resumes
 * at the last resourceVersion, relists on 410, backs off with jitter, notices a frozen stream and takes a
 * fresh connection. Holds no objects itself: it hands each one to its owner, who keeps small facts. Never
 * writes.
 *
 *            +------ 410, ERROR line, malformed line ------+
 *            v                                             |
 *   start -> LISTING --last page, stream answered--> FRESH -+-> (ends: resumed)
 *            ^  |                                      |
 *            |  +--refused, cut, no answer--> STALE <--+ lost, frozen, refused
 *            +------------ after a back-off ----+--------> FRESH (resumed)
 */
#pragma once

#include "kube/client.h"

struct kube_watch;

struct kube_watch_spec {
    enum kube_resource resource;
    const char *namespace;      /* NULL: all */
    const char *label_selector; /* NULL: none */
    const char *field_selector; /* NULL: none */
    unsigned page_limit;        /* objects a list page; 0: 500 */
    bool metadata_only;         /* objects come as PartialObjectMetadata: without spec and status */
};

enum kube_watch_state {
    KUBE_WATCH_LISTING,
    KUBE_WATCH_FRESH, /* listed and streaming */
    KUBE_WATCH_STALE, /* the list failed, or the stream is gone or frozen; reason says why */
};

/* Each is called from the loop, never inside kube_watch_start, and may stop the watch (but not free the
 * client). */
struct kube_watch_callbacks {
    /* A full list begins: what is not seen between list_begin and list_end is gone. A list that fails
     * half-way begins again: list_begin without a list_end before it starts the count anew. */
    void (*list_begin)(void *context);
    void (*list_end)(void *context);
    /* One object, from a list page or an ADDED/MODIFIED line; borrowed for the call. Elements of a list of a
     * built-in kind have no kind and apiVersion of their own (the server leaves them out). May repeat what is
     * known. */
    void (*object)(void *context, const cJSON *object);
    /* Whether this state is known already: then the rest of the line is not even read. object has nothing but
     * its metadata, without managedFields; borrowed for the call. It is asked only where may_know, which a
     * guess of the resourceVersion is shown to, says yes. Neither may stop the watch. Optional, both or none.
     */
    bool (*may_know)(void *context, const char *version);
    bool (*knows)(void *context, const cJSON *object);
    void (*deleted)(void *context, const cJSON *last_state);
    /* A list ended that is older than what was seen before: the server's storage was restored from a backup,
     * and what was known is of another time, however new it looks. Instead of list_end; the list begins
     * anew, onto nothing. Optional: without it the list is taken as it is. */
    void (*went_back)(void *context);
    /* reason: a sentence that may go anywhere (names the missing definition or permission ...), or NULL.
     * FRESH keeps the reason of the trouble before it until the stream has lived for 5 s; then it is FRESH
     * without one. Optional. */
    void (*state)(void *context, enum kube_watch_state state, const char *reason);
};

/* spec and callbacks are copied. The client outlives the watch. */
struct kube_watch *kube_watch_start(struct kube_client *client, const struct kube_watch_spec *spec,
                                    const struct kube_watch_callbacks *callbacks, void *context);
/* No callback comes any more. NULL is fine. */
void kube_watch_stop(struct kube_watch *watch);
/* The resourceVersion that the list had and the stream has come to; NULL while it lists. */
const char *kube_watch_version(const struct kube_watch *watch);
bool kube_watch_is_fresh(const struct kube_watch *watch);
