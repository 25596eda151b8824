/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal's read side, for neoset-audit: any number of readers beside the living writer, on a copy, on a
 * read-only mount. Opens with mode=ro, never writes, never checkpoints, never falls back to immutable=1 (that
 * hides rows of a live file). Rows never change, so a snapshot is just "seq up to the head seen at open or
 * refresh": rows are read at most 1,000 at a time and the statement is ended before anything is handed out,
 * so a callback may take as long as it likes (a pipe nobody reads does not make the WAL grow). Not for the
 * controller's own process.
 *
 * Errors, each a sentence that says what to do: NOT_FOUND (no file, or one that nothing was ever written
 * with: its first opening was interrupted), FORBIDDEN, INVALID (a directory, not a journal), UNSUPPORTED
 * (another application's, newer and incompatible, a copy without its -wal), CORRUPT, NO_SPACE (disk full and
 * no -shm), FAILED. */
#pragma once

#include "base/error.h"
#include "journal/entry.h"

struct journal_reader;

int journal_reader_open(const char *path, struct journal_reader **ret, struct error **err);
void journal_reader_close(struct journal_reader *reader);
DEFINE_CLEANUP(cleanup_journal_reader, struct journal_reader, journal_reader_close);
#define CLEANUP_JOURNAL_READER __attribute__((cleanup(cleanup_journal_reader)))

/* What the snapshot is. Strings live as long as the reader. */
struct journal_meta {
    const char *path;
    const char *journal_id; /* 32 hexadecimal digits */
    int64_t created_us;
    int user_version;
    int64_t pruned_seq; /* entries up to this one were removed by retention */
    uint8_t pruned_hash[SHA256_SIZE];
    int64_t head_seq; /* newest entry of the snapshot; 0: none */
    uint8_t head_hash[SHA256_SIZE];
    int64_t head_at_us;
    int64_t newest_run; /* seq of its start entry */
    bool lives;         /* somebody holds the lock beside the file: newest_run is a running process */
    const char *
        notice; /* a sentence worth a warning (a plain copy without its -wal: rows may be missing), or NULL */
};
const struct journal_meta *journal_reader_meta(const struct journal_reader *reader);
/* Takes a new snapshot. *ret_moved tells whether there is anything new (cheap when not: for tail -f). */
int journal_reader_refresh(struct journal_reader *reader, bool *ret_moved, struct error **err);

/* Handed out rows live during the callback. Return true to go on, false to stop (which is no error). */
typedef bool journal_entry_each(void *context, const struct journal_entry *entry);

enum { JOURNAL_KIND_ALL = 0 };
#define JOURNAL_KIND_BIT(kind) (1U << (kind))

/* All conditions hold together; zero or NULL means "any". Times filter, seq orders: a clock that went back
 * never reorders rows. Indexed: after_seq, operation, since/until, name. */
struct journal_entry_filter {
    int64_t after_seq;     /* only seq above this one */
    int64_t through_seq;   /* only up to this one; 0: the snapshot's head */
    int64_t operation;     /* seq of its begin entry */
    int64_t since_us;      /* at_us >= */
    int64_t until_us;      /* at_us < */
    unsigned kinds;        /* JOURNAL_KIND_BIT()s, or JOURNAL_KIND_ALL */
    const char *object;    /* with name: rows that name this object themselves: begin, intent, wait_begin */
    const char *namespace; /* "" means: only rows without a namespace */
    const char *name;
    int64_t limit;
    bool newest_first;
};
/* Entries in order of seq. Rows that retention removes while we read are skipped. */
int journal_read_entries(struct journal_reader *reader, const struct journal_entry_filter *filter,
                         journal_entry_each *each, void *context, struct error **err);
/* One entry. NOT_FOUND when there is none in the snapshot (the sentence tells a pruned one from a future
 * one). */
int journal_read_entry(struct journal_reader *reader, int64_t seq, journal_entry_each *each, void *context,
                       struct error **err);

/* A row of the list of operations. */
struct journal_operation_record {
    int64_t id;            /* seq of its begin entry */
    const char *kind;      /* rollout, scale, resize ... */
    const char *object;    /* NeoSet, StatefulSet ... */
    const char *namespace; /* "": none */
    const char *name;
    const char *come_from;
    const char *go_to;
    int64_t begun_us;
    int64_t ended_us;    /* 0: open */
    const char *outcome; /* "completed", "failed" ...; NULL: open */
    int steps;           /* of an open one: so far */
    int attempts;        /* sendings: one a step and one more for each `unknown` */
};
typedef bool journal_operation_each(void *context, const struct journal_operation_record *operation);
struct journal_operation_filter {
    int64_t id; /* just this one (an empty answer when it is not there) */
    const char *kind;
    const char *object;
    const char *namespace; /* "" means: only those without a namespace */
    const char *name;
    const char *outcome; /* "open": those that have not ended */
    int64_t since_us;    /* begun_us >= */
    int64_t until_us;    /* begun_us < */
    int64_t limit;
    bool oldest_first; /* default: newest first */
};
int journal_read_operations(struct journal_reader *reader, const struct journal_operation_filter *filter,
                            journal_operation_each *each, void *context, struct error **err);

/* A step with how it ended. */
struct journal_step_record {
    struct journal_entry intent;
    bool has_outcome;
    struct journal_entry outcome; /* when has_outcome */
    const char *key;              /* "<nonce of its run>-<seq>" */
    int attempts;                 /* sendings so far: `unknown` entries + 1 */
    int64_t last_at_us;           /* of its newest entry */
    bool in_flight;               /* open, of the living run, and no answer was unknown yet: not in doubt */
    bool has_body;                /* the exact bytes are kept */
};
typedef bool journal_step_each(void *context, const struct journal_step_record *step);
struct journal_step_filter {
    int64_t step; /* just this one */
    int64_t operation;
    const char *object; /* the target, with name */
    const char *namespace;
    const char *name;
    const char *action; /* step kind */
    int64_t since_us;   /* of the intent */
    int64_t until_us;
    int64_t after_seq; /* of the intent */
    int64_t limit;
};
/* Steps in order of their intents. */
int journal_read_steps(struct journal_reader *reader, const struct journal_step_filter *filter,
                       journal_step_each *each, void *context, struct error **err);
/* The steps without an outcome: the in-doubt ones and (in_flight) those under way. Oldest first. */
int journal_read_open_steps(struct journal_reader *reader, journal_step_each *each, void *context,
                            struct error **err);

/* A wait with how it ended. */
struct journal_wait_record {
    struct journal_entry begin; /* action: what for; object, namespace, name; reason */
    bool has_end;
    struct journal_entry end;
    const char *outcome; /* "done", "expired", "dropped" ...; NULL while open */
    int64_t budget_us;
    int64_t spent_us; /* counted against the budget: of an open wait up to the newest entry */
    bool held;        /* open and on hold */
};
typedef bool journal_wait_each(void *context, const struct journal_wait_record *wait);
struct journal_wait_filter {
    int64_t operation;
    const char *object; /* with name */
    const char *namespace;
    const char *name;
    int64_t since_us; /* of its beginning */
    int64_t until_us;
    bool open_only;
    int64_t limit;
};
/* Waits in order of their wait_begin entries. */
int journal_read_waits(struct journal_reader *reader, const struct journal_wait_filter *filter,
                       journal_wait_each *each, void *context, struct error **err);

enum journal_run_end {
    JOURNAL_RUN_LIVES,   /* the newest, and somebody holds the lock */
    JOURNAL_RUN_STOPPED, /* as asked: it wrote a stop entry */
    JOURNAL_RUN_DIED,    /* ended without one: killed, crashed, power lost */
};
struct journal_run_record {
    int64_t run; /* seq of its start entry */
    const char *nonce;
    const char *identity;
    const char *version; /* program version */
    int64_t pid;
    int64_t begun_us;
    int64_t last_us; /* its newest entry */
    int64_t last_seq;
    int64_t epoch;  /* of its newest entry */
    int open_steps; /* steps it began that are still open */
    enum journal_run_end end;
    const char *stop_reason; /* NULL unless STOPPED */
};
typedef bool journal_run_each(void *context, const struct journal_run_record *run);
/* Newest first. limit 0: all. */
int journal_read_runs(struct journal_reader *reader, int64_t limit, journal_run_each *each, void *context,
                      struct error **err);

/* Writes a consistent copy to a new file (mode 0600; EXISTS when something is there), safe while the
 * controller writes. The copy is one file, without -wal and -shm: it can be read anywhere, and a controller
 * can be started on it. progress may be NULL; pages of the database. */
int journal_backup(struct journal_reader *reader, const char *target,
                   void (*progress)(void *context, int done, int total), void *context, struct error **err);
