/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out whether a journal still says what was written (journal.md, "Tamper evidence"): header, seq
 * without gaps, the hash chain, bodies against digests, run and epoch never falling, one intent and at most
 * one outcome a step, the derived tables recomputed, published heads, SQLite's own check. Changes nothing. A
 * tail that was cut off is invisible without a head. Beside a living writer it follows until it has caught
 * up. */
#pragma once

#include "journal/reader.h"

/* A head as it was published: ID:SEQ:HASH (32 hex digits, a number, 64 hex digits). */
struct journal_head {
    char journal_id[33];
    int64_t seq;
    uint8_t hash[SHA256_SIZE];
};
int journal_head_parse(const char *text, struct journal_head *ret, struct error **err);
/* The same from the Lease's annotation (JSON). */
int journal_head_parse_json(const char *text, struct journal_head *ret, struct error **err);
/* "ID:SEQ:HASH" of the snapshot's head, the caller's. */
char *journal_head_format(const struct journal_meta *meta);

struct journal_verify_options {
    bool quick; /* leave out SQLite's integrity_check */
    const struct journal_head *heads;
    size_t head_count;
    /* May be NULL. Entries done of about total; stage is a few words. */
    void (*progress)(void *context, const char *stage, int64_t done, int64_t total);
    void *context;
};

struct journal_finding {
    int64_t seq; /* the entry it is about; 0: the file as a whole */
    char *text;  /* one sentence */
};
enum { JOURNAL_FINDINGS_MAX = 1000 };

struct journal_verify_result {
    int64_t entries; /* checked */
    int64_t bodies;  /* checked against their digests */
    int64_t first_seq;
    int64_t head_seq;
    uint8_t head_hash[SHA256_SIZE];
    struct journal_finding *findings; /* what is wrong: none means verified */
    size_t finding_count;
    int64_t findings_left_out; /* beyond JOURNAL_FINDINGS_MAX */
    struct journal_finding
        *remarks; /* worth telling, not wrong: wall clock went back, pruned range, library version */
    size_t remark_count;
};

/* 0 when the check could be carried out, whatever it found; negative when the file cannot be read at all. */
int journal_verify(struct journal_reader *reader, const struct journal_verify_options *options,
                   struct journal_verify_result *ret, struct error **err);
void journal_verify_result_done(struct journal_verify_result *result);
