/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts of all NeoSets, their pods, claims and revisions, grouped as plans want them. The newest version
 * of an object wins, whoever brings it: a watch, a list, or the answer to a write ("Freshness" in the
 * design). What a full list does not show is gone. No I/O, nothing is decided here. */
#pragma once

#include "neoset/fact.h"
#include "neoset/memory.h"

#include <uthash.h>

struct pod_slot {
    struct pod_fact *fact;
    uint32_t mark; /* of the list or watch that saw it last; 0: only an answer has brought it */
};

/* uids of pods that an answer or a watch said are gone: what comes late about them is ignored. */
enum { GONE_UIDS = 8, LOST_REVISIONS = 4 };

/* What belongs to one name: a set (if there is one) and the pods that are named after it, whoever owns them.
 */
struct set_group {
    UT_hash_handle hh;
    char *key; /* "<namespace>/<name>" */
    char *namespace;
    char *name;
    struct neoset_fact *set; /* NULL: there is none of this name */
    uint32_t set_mark;
    struct neoset_memory *memory; /* NULL while there is no set */
    struct pod_slot *pods;        /* by ordinal, rising */
    size_t pod_count;
    size_t pod_room;
    struct pod_slot *prefetches; /* pods named <set>-prefetch-<hash>; few, in any order */
    size_t prefetch_count;
    char *gone_uids[GONE_UIDS];
    unsigned next_gone;
    /* The set's revisions that were deleted last, whoever did it: one that is in use is made again. NULL:
     * free. */
    struct revision_fact *lost[LOST_REVISIONS];
    unsigned next_lost;
    void *turn; /* the turn's own, see controller_parts.h */
};

struct claim_slot {
    UT_hash_handle hh;
    char *key;
    struct claim_fact *fact;
    uint32_t mark;
};
/* The claims whose names a set of this name may have given, whether there is one or not. */
struct claimant_slot {
    UT_hash_handle hh;
    char *key; /* "<namespace>/<set>" */
    struct claim_slot **items;
    size_t count;
    size_t room;
};
struct revision_slot {
    UT_hash_handle hh;
    char *key;
    struct revision_fact *fact;
    char *set_name; /* of its controller; of an orphan: as its name tells, or NULL */
    uint32_t mark;
};
/* The revisions that one uid controls; or the orphans of one namespace. */
struct owner_slot {
    UT_hash_handle hh;
    char *uid; /* of orphans: "/<namespace>" */
    struct revision_slot **items;
    size_t count;
    size_t room;
};

/* The sets of one namespace that have one selector. */
struct selector_slot {
    UT_hash_handle hh;
    char *key; /* "<namespace>/<selector as text>" */
    struct set_group **items;
    size_t count;
    size_t room;
};

/* A power of two: versions that are remembered of answers, round about. */
enum { ANSWERED_PLACES = 512 };

struct fact_store {
    struct intern *pool;
    uint64_t answered[ANSWERED_PLACES]; /* hashes of resourceVersions that answers brought */
    struct selector_slot *selectors;
    struct set_group *groups;
    struct claim_slot *claims;
    struct claimant_slot *claimants;
    struct revision_slot *revisions;
    struct owner_slot *owners;
    size_t set_count;
    size_t pod_count;
    /* A group changed. */
    void (*changed)(void *context, struct set_group *group);
    /* A group is about to be freed. */
    void (*dropped)(void *context, struct set_group *group);
    void *context;
};

struct fact_store *fact_store_make(void (*changed)(void *context, struct set_group *group),
                                   void (*dropped)(void *context, struct set_group *group), void *context);
void fact_store_free(struct fact_store *store);

/* NULL: nothing is known under this name. */
struct set_group *fact_store_find_group(const struct fact_store *store, const char *namespace,
                                        const char *name);
struct set_group *fact_store_find_key(const struct fact_store *store, const char *key);
/* The same; made when it is not there. */
struct set_group *fact_store_need_group(struct fact_store *store, const char *namespace, const char *name);
/* Frees a group that neither a set, nor a pod, nor a turn uses any more. */
void fact_store_drop_if_empty(struct fact_store *store, struct set_group *group);
const struct claim_fact *fact_store_find_claim(const struct fact_store *store, const char *namespace,
                                               const char *name);
/* The claims that may be of a set of this name, ordinals that were scaled away too; NULL: none. */
const struct claimant_slot *fact_store_find_claims(const struct fact_store *store, const char *namespace,
                                                   const char *set_name);
/* The revisions that uid controls; NULL: none. */
const struct owner_slot *fact_store_find_revisions(const struct fact_store *store, const char *uid);
/* The revisions of a namespace that nobody controls; NULL: none. */
const struct owner_slot *fact_store_find_orphans(const struct fact_store *store, const char *namespace);

/* Another set with this set's selector; NULL: none. Its name is valid until the store changes. */
const char *fact_store_find_same_selector(const struct fact_store *store, const struct set_group *group);

/* An answer brought an object of this version lately; false may be a lapse of memory. */
bool fact_store_may_know(const struct fact_store *store, const char *version);
/* This state of the NeoSet or pod, or one after it, was taken: taking object would change nothing. It needs
 * no more than its metadata. False is always right. */
bool fact_store_knows(const struct fact_store *store, enum kube_resource resource, const cJSON *object);
/* An object was seen: its fact replaces an older one. Kinds that are not kept are ignored. */
void fact_store_take(struct fact_store *store, enum kube_resource resource, const cJSON *object,
                     uint32_t mark, int64_t wall_us, int64_t boot_us);
/* The answer to a write or a GET brought the object: it may be older than what the watch has told. An object
 * that is not known, of a version that the watch has passed (watch_version; NULL: it lists), was deleted
 * meanwhile. */
void fact_store_take_answer(struct fact_store *store, enum kube_resource resource, const cJSON *object,
                            const char *watch_version, int64_t wall_us, int64_t boot_us);
/* An object was deleted; last_state is what it was. */
void fact_store_drop(struct fact_store *store, enum kube_resource resource, const cJSON *last_state);
/* The resourceVersion that is known; NULL: none. Borrowed until the store changes. */
const char *fact_store_version(const struct fact_store *store, enum kube_resource resource,
                               const char *namespace, const char *name);
/* A quorum read says that there is nothing under this name. version: fact_store_version() when it was asked:
 * what came since is newer than the answer. */
void fact_store_drop_name(struct fact_store *store, enum kube_resource resource, const char *namespace,
                          const char *name, const char *version);
/* The server went back to another time: nothing that is known of these objects holds, not even that they are
 * gone. */
void fact_store_forget(struct fact_store *store, enum kube_resource resource);
/* A full list ended: what does not have its mark is gone, unless it is newer than the list (list_version). */
void fact_store_sweep(struct fact_store *store, enum kube_resource resource, uint32_t mark,
                      const char *list_version);
