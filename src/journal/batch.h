/* SPDX-License-Identifier: Apache-2.0
 *
 * What was appended and is not on disk yet: rows with all their text, in memory of their own, so that the
 * loop fills one batch while the worker commits another. */
#pragma once

#include "journal/chain.h"
#include "journal/entry.h"

/* What a row does to the derived tables beyond what its columns say. */
struct batch_effect {
    const char *come_from; /* begin */
    const char *go_to;
    int64_t wait;         /* wait_hold, wait_go, wait_end: which */
    int64_t budget_us;    /* wait_begin */
    int64_t spent_us;     /* wait_hold, wait_go */
    int64_t gap_us;       /* start: wall time since the newest entry before; >= 0 */
    int64_t last_mono_us; /* start: mono_us of that entry */
    int64_t pruned_seq;   /* pruned: what meta says from then on */
    const uint8_t *pruned_hash;
};

struct batch_row {
    struct journal_entry entry; /* strings are the batch's; hash is filled in by the store */
    struct batch_effect effect;
    uint8_t hash[SHA256_SIZE];
    bool has_salt; /* an intent: the digest is made by the store */
    bool keep_body;
    uint8_t salt[CHAIN_SALT_SIZE];
    uint8_t digest[SHA256_SIZE];
    const void *body;
    size_t body_length;
};

struct batch;
struct batch *batch_make(void);
void batch_free(struct batch *batch);
/* Forgets the rows, keeps the memory for the next ones. */
void batch_clear(struct batch *batch);
size_t batch_count(const struct batch *batch);
/* Memory held, in bytes. */
size_t batch_bytes(const struct batch *batch);
struct batch_row *batch_row(struct batch *batch, size_t index);
/* A row that copies *entry and its strings. Valid until the next add. */
struct batch_row *batch_add(struct batch *batch, const struct journal_entry *entry);
/* Copies into the batch's memory. */
const void *batch_copy(struct batch *batch, const void *bytes, size_t length);
const char *batch_copy_text(struct batch *batch, const char *text);
/* Moves all rows of *from behind those of batch; *from is freed and NULL. */
void batch_append_all(struct batch *batch, struct batch **from);
