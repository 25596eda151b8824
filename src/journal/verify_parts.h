/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of a journal from inside. Only verify*.c include this. */
#pragma once

#include "journal/chain.h"
#include "journal/reader_parts.h"
#include "journal/verify.h"

/* What the rows say, recomputed; verify_derived.c. */
struct recomputed;

struct verifier {
    struct journal_reader *reader;
    const struct journal_verify_options *options;
    struct journal_verify_result *result;
    struct chain *chain;
    struct recomputed *recomputed;

    int64_t position; /* the last row that was looked at, or pruned_seq */
    uint8_t hash[SHA256_SIZE];
    int64_t begins_after; /* pruned_seq that this pass began with */
    /* of the row before; run 0: none yet */
    int64_t run;
    int64_t epoch;
    int64_t at_us;
    int64_t mono_us;
    int64_t clock_back_count;
    int64_t clock_back_seq;
    /* of the newest `pruned` entry */
    int64_t pruned_entry;
    int64_t pruned_through;
    char *pruned_hash;
};

void verify_find(struct verifier *verifier, int64_t seq, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void verify_remark(struct verifier *verifier, int64_t seq, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* verify_rows.c: rows up to through; *ret_restart when retention removed rows under our feet. */
int verify_rows(struct verifier *verifier, int64_t through, bool *ret_restart, struct error **err);

/* verify_derived.c */
struct recomputed *recomputed_make(void);
void recomputed_free(struct recomputed *recomputed);
/* One row more. What it says is checked against what is open. */
void recomputed_add(struct verifier *verifier, const struct journal_entry *entry);
/* Operations that ended since the last call, against their rows. No statement may be open. */
int recomputed_check_ended(struct verifier *verifier, struct error **err);
/* What is open, against the tables, in the snapshot of the caller's transaction. */
int recomputed_check_open(struct verifier *verifier, struct error **err);

/* verify_file.c */
int verify_schema(struct verifier *verifier, struct error **err);
int verify_integrity(struct verifier *verifier, struct error **err);
