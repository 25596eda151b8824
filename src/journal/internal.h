/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal from inside: what its parts share. Only src/journal includes this. Loop only, but for the store
 * and the jobs, which belong to the worker while they are handed over (hand.h). */
#pragma once

#include "journal/batch.h"
#include "journal/hand.h"
#include "journal/journal.h"
#include "journal/open_set.h"
#include "journal/place.h"
#include "journal/retention.h"
#include "journal/store.h"

enum {
    NONCE_BYTES = 8,
    ID_BYTES = 16,
    SALT_POOL = 32,
    JOURNAL_CHECKPOINT_ENTRIES = 10000, /* a `checkpoint` entry each so many: where ranges can be cut off */
};

struct durable_waiter {
    int64_t seq;
    env_callback *durable;
    void *context;
    struct durable_waiter *prev;
    struct durable_waiter *next;
};

/* What the worker gets and gives back. */
struct commit_job {
    struct store *store;
    struct batch *batch;
    bool gave_up_ballast;
    int result;
    struct error *err;
};
struct checkpoint_job {
    struct store *store;
    int result;
    struct error *err;
};
struct probe_job {
    const struct store *store;
    bool has_ballast;
};

struct look_job {
    enum { LOOK_RESTS, LOOK_WANTED, LOOK_RUNS } state;
    struct store *store;
    struct journal_look looks[JOURNAL_LOOKS_MAX];
    size_t count;
    int commits_since;
    journal_look_done *done; /* NULL: nobody asks any more */
    void *context;
};

struct loaded;

struct journal {
    struct env *env;
    struct place place;
    int lock_fd;
    struct journal_options options; /* strings are not kept */
    char id[2 * ID_BYTES + 1];
    char nonce[2 * NONCE_BYTES + 1];
    char *previous_nonce;
    char *identity;
    char *version;

    int64_t run;
    int64_t start_boot_us;
    int64_t start_at_us;
    int64_t clock_ahead_us; /* of the wall's clock, to journal_mono_us() */
    int64_t clock_seen_us;  /* journal_mono_us() when that was so */
    int64_t clock_noted_us; /* of the newest note */
    struct loaded *loading; /* during journal_open() */
    char *found_nonce;
    int64_t epoch;
    int64_t last_seq; /* newest appended */
    struct open_set *open;
    uint8_t salts[SALT_POOL][CHAIN_SALT_SIZE];
    int salts_left;

    /* the newest `checkpoint` entry */
    int64_t checkpoint_seq;
    int64_t checkpoint_at_us;

    struct store *store;
    struct hand *hand;
    struct batch *pending; /* appended, not handed over */
    struct batch *flight;  /* being committed, or to be tried again */
    struct batch *spare;   /* memory of one that is done, or NULL */
    bool wanted;           /* pending is to be committed as soon as the worker is free */
    /* Boot clock: when the commit of pending, of the flight was asked for; 0: it was not, there is none. */
    int64_t wanted_since_us;
    int64_t flight_since_us;
    int64_t given_us; /* boot clock: when the flight was handed over */
    struct commit_job commit_job;
    struct checkpoint_job checkpoint_job;
    struct probe_job probe_job;
    struct look_job look_job;
    struct retention retention;
    int retries;
    int64_t durable_seq;
    uint8_t durable_hash[SHA256_SIZE];
    struct durable_waiter *waiters; /* in order of seq */
    bool delivering;

    struct env_timer *soon;  /* commit at the latest then */
    struct env_timer *slow;  /* a commit is late then */
    struct env_timer *retry; /* try the flight again then */
    struct env_timer *probe; /* look for room again then */
    struct env_timer *wake;  /* deliver what is durable */
    struct env_timer *health_timer;

    bool is_slow;
    bool is_full;
    bool lost_ballast; /* it was given up: full until it is back */
    bool wants_probe;
    bool is_dead;
    char *problem;
    char *locked_by;        /* who keeps our newest commit from being made, or NULL */
    char *lock_problem;     /* that, as a sentence */
    int64_t wal_warn_bytes; /* the size of the WAL at which the next warning is due */
    journal_warning *on_warning;
    void *on_warning_context;
    char *kept_warning;       /* the newest that nobody heard: who opens a journal listens afterwards */
    enum journal_health told; /* what on_health was last called for */
    env_callback *on_health;
    void *on_health_context;

    int64_t commits;
    int64_t commit_us_total;
    int64_t commit_us_max;
};

/* append.c: the one way to append; *entry needs kind and what its kind has, the rest is filled in. */
struct batch_row *journal_append_row(struct journal *journal, const struct journal_entry *entry);
/* With a reading of the clock (journal_mono_us) that the caller has used already. */
struct batch_row *journal_append_row_at(struct journal *journal, const struct journal_entry *entry,
                                        int64_t mono_us);
int64_t journal_mono_us(const struct journal *journal);
/* A `checkpoint` entry when one is due. */
void journal_append_checkpoint(struct journal *journal);

/* committer.c */
/* Gives the worker what is next to do, if it is free. */
void committer_pump(struct journal *journal);
/* Cancels the timers, takes the store back; what was handed over is durable or in flight again. */
void committer_stop(struct journal *journal);
/* Blocks: pending and flight in one transaction, on this thread. At start and at the end only. */
int committer_commit_now(struct journal *journal, struct error **err);

/* health.c */
void health_set_dead(struct journal *journal, const char *format, ...) __attribute__((format(printf, 2, 3)));
void health_changed(struct journal *journal);
void health_warn(struct journal *journal, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A commit found the file locked by somebody else; it is not any more. */
void health_note_locked(struct journal *journal);
void health_note_unlocked(struct journal *journal);
/* How large the WAL is now. */
void health_note_wal(struct journal *journal, int64_t bytes);

struct loaded { /* of the newest entry */
    bool has_last;
    int64_t seq;
    int64_t run;
    int64_t epoch;
    int64_t at_us;
    int64_t mono_us;
};
/* look.c: gives the worker a look that is wanted; busy: a commit waits. false: it had nothing to give. */
bool look_pump(struct journal *journal, bool busy);

/* clock.c */
#define JOURNAL_NOTE_CLOCK_JUMP "clock-jump"
/* Once the start entry is durable. */
void clock_begin(struct journal *journal, const struct loaded *last);
/* Before what is pending is committed: a note when the wall clock jumped. */
void clock_look(struct journal *journal);

/* load.c: what the file says is open, into memory. Never scans `entry`. */
int load_meta(struct journal *journal, struct error **err);
int load_last(struct journal *journal, struct loaded *ret, struct error **err);
int load_previous_nonce(struct journal *journal, int64_t run, struct error **err);
/* Once the start entry is durable. */
int load_open(struct journal *journal, struct error **err);
