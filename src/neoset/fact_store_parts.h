/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the store of facts, as they know each other: fact_store.c keeps groups, selectors and
 * sets, fact_store_pods.c pods, fact_store_others.c claims and revisions. Only these include this. */
#pragma once

#include "neoset/fact_store.h"

char *fact_store_group_key(const char *namespace, const char *name);
void fact_store_tell_changed(struct fact_store *store, struct set_group *group);
/* The state that is known already, or one before it: the watch repeats what the answers to our own writes
 * have brought. One resourceVersion of one object is one state. */
bool fact_store_is_known(const cJSON *object, const char *known_uid, const char *known_version);
bool fact_store_is_older(const char *version, const char *than);
bool fact_store_is_swept(uint32_t seen, uint32_t mark, const char *version, const char *list_version);
void fact_store_take_pod(struct fact_store *store, const cJSON *object, uint32_t mark, int64_t wall_us,
                         int64_t boot_us);
/* Of this very state, or one after it; object needs its metadata only. */
bool fact_store_knows_pod_state(const struct fact_store *store, const cJSON *object);
/* NULL: no pod of this name is known, be it one of a set or one that fetches images. */
const char *fact_store_pod_version(const struct fact_store *store, const char *namespace, const char *name);
void fact_store_drop_pod(struct fact_store *store, const char *namespace, const char *name, const char *uid);
void fact_store_sweep_pods(struct fact_store *store, uint32_t mark, const char *list_version);
void fact_store_take_claim(struct fact_store *store, const cJSON *object, uint32_t mark);
struct claim_slot *fact_store_find_claim_slot(const struct fact_store *store, const char *namespace,
                                              const char *name);
void fact_store_remove_claim(struct fact_store *store, struct claim_slot *slot);
void fact_store_take_revision(struct fact_store *store, const cJSON *object, uint32_t mark);
struct revision_slot *fact_store_find_revision_slot(const struct fact_store *store, const char *namespace,
                                                    const char *name);
void fact_store_remove_revision(struct fact_store *store, struct revision_slot *slot);
/* The same for one that was deleted: its set's group keeps the fact for a while. */
void fact_store_lose_revision(struct fact_store *store, struct revision_slot *slot);
void fact_store_free_claims(struct fact_store *store);
void fact_store_free_revisions(struct fact_store *store);
