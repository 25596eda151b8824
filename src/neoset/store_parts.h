/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the store of facts, as they know each other: controller_store.c keeps groups, selectors and
 * sets, store_pods.c pods, store_others.c claims and revisions. Only these include this. */
#pragma once

#include "neoset/controller_store.h"

char *store_group_key(const char *namespace, const char *name);
void store_tell_changed(struct store *store, struct set_group *group);
bool store_is_older(const char *version, const char *than);
bool store_is_swept(uint32_t seen, uint32_t mark, const char *version, const char *list_version);
void store_take_pod(struct store *store, const cJSON *object, uint32_t mark, int64_t wall_us,
                    int64_t boot_us);
bool store_knows_pod(const struct store *store, const char *namespace, const char *name);
void store_drop_pod(struct store *store, const char *namespace, const char *name, const char *uid);
void store_sweep_pods(struct store *store, uint32_t mark, const char *list_version);
void store_take_claim(struct store *store, const cJSON *object, uint32_t mark);
struct claim_slot *store_find_claim_slot(const struct store *store, const char *namespace, const char *name);
void store_remove_claim(struct store *store, struct claim_slot *slot);
void store_take_revision(struct store *store, const cJSON *object, uint32_t mark);
struct revision_slot *store_find_revision_slot(const struct store *store, const char *namespace,
                                               const char *name);
void store_remove_revision(struct store *store, struct revision_slot *slot);
/* The same for one that was deleted: its set's group keeps the fact for a while. */
void store_lose_revision(struct store *store, struct revision_slot *slot);
void store_free_claims(struct store *store);
void store_free_revisions(struct store *store);
