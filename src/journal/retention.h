/* SPDX-License-Identifier: Apache-2.0
 *
 * How old entries are let go (journal.md, "Retention"): first bodies, then whole ranges below a `checkpoint`
 * entry with nothing open inside, in slices of 1,000 rows between the commits. The chain still verifies and
 * the gap is explained. */
#pragma once

#include "base/error.h"
#include "base/sha256.h"

struct env_timer;
struct journal;
struct store;

/* The note that retention writes before it drops bodies: detail {"through":SEQ}. */
#define JOURNAL_NOTE_BODIES "bodies-dropped"

enum { RETENTION_SLICE_ROWS = 1000 };

enum retention_phase {
    RETENTION_RESTS,     /* until the next look */
    RETENTION_LOOKS,     /* a survey is with the worker */
    RETENTION_ANNOUNCES, /* the `pruned` (or the note) entry is appended, not durable yet */
    RETENTION_DELETES,   /* rows up to through_seq go, slice by slice */
};

struct retention_job {
    struct store *store;
    /* in */
    int64_t before_us;   /* entries older go; 0: no age limit */
    int64_t limit_bytes; /* 0: no size limit */
    bool goes_on;        /* size: it has begun and is not down yet; survey: it is still too much */
    int64_t lowest_open; /* nothing at or above may go */
    int64_t through_seq; /* slice: rows up to this one */
    bool bodies_only;
    /* out */
    int64_t cut_seq; /* survey: entries up to this may go; 0: none */
    uint8_t cut_hash[SHA256_SIZE];
    int64_t bodies_through; /* survey: bodies up to this step may go; 0: none */
    bool is_held;           /* survey: more would go if nothing were open */
    int64_t rows;           /* slice: deleted */
    int result;
    struct error *err;
};

struct retention {
    enum retention_phase phase;
    int64_t through_seq;
    bool bodies_only;
    bool look_now;
    int64_t pruned_seq; /* entries up to this one are gone */
    int commits_since_slice;
    int64_t held_seq;        /* what is open and keeps others; 0: nothing does */
    int64_t warn_boot_us;    /* of it, then */
    struct env_timer *timer; /* the next look */
    struct retention_job job;
};

/* Hands a piece of work to the worker when there is any: true. busy: commits are waiting too. */
bool retention_pump(struct journal *journal, bool busy);
/* Rows that an interrupted run left below pruned_seq. At start. */
int retention_resume(struct journal *journal, struct error **err);
