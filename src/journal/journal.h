/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal's only writer: opens and locks the file, appends entries, commits them on the environment's
 * worker, keeps what is open (steps, operations, waits) in memory. What is on disk is never changed. The loop
 * never waits for the disk: appended entries become durable later, and journal_when_durable() says when. What
 * is in memory as "open" moves at append; what is *acted on* must wait for durability: the gateway sees to
 * that. Knows nothing of Kubernetes: objects are names. */
#pragma once

#include "base/json.h"
#include "env/env.h"
#include "journal/entry.h"

struct journal;

struct journal_options {
    const char *path;
    const char *identity;      /* who we are (pod or host name), for the start entry */
    const char *version;       /* program version, for the start entry */
    int64_t retention_us;      /* entries older are pruned; 0: keep */
    int64_t retention_bytes;   /* file size limit; 0: none */
    int64_t renew_deadline_us; /* a commit slower than a third of it turns the journal SLOW; 0: 15 s */
    int64_t wal_warn_bytes;    /* the WAL's size that is warned of, and again at each doubling; 0: 256 MiB */
    bool unsafe_file_system;   /* --journal-unsafe-fs */
    const char *vfs;           /* SQLite VFS by name, for tests; NULL: the default */
};

enum journal_health {
    JOURNAL_WELL,
    JOURNAL_SLOW, /* a commit takes longer than a third of the renew deadline: no new intents */
    JOURNAL_FULL, /* no space: nothing is sent; tried again by itself */
    JOURNAL_DEAD, /* any other error: the process must end; journal_problem() says why */
};

/* A step with an intent and no outcome. Strings live until the step is closed. */
struct journal_open_step {
    int64_t seq; /* its intent */
    int64_t operation;
    int64_t run;       /* run that wrote the intent */
    const char *nonce; /* nonce of that run: the step's key is <nonce>-<seq> */
    const char *action;
    const char *object;
    const char *namespace;
    const char *name;
    const char *uid;
    const char *version;
    const char *detail;
    int unknowns; /* `unknown` entries so far: the next attempt is this + 1 */
    /* Wall time of its newest entry. Of an ended run: the start of this one, the first moment at which that
     * run surely could not send any more (its process held the lock until it was dead). */
    int64_t last_at_us;
};

struct journal_open_operation {
    int64_t seq;
    const char *action; /* kind of operation: "rollout", "scale" ... */
    const char *object;
    const char *namespace;
    const char *name;
    const char *come_from;
    const char *go_to;
    int64_t begun_us;
};

/* Opens, creates or migrates the file; takes the lock; writes the `start` entry (durable on return). Blocks:
 * only at start. Errors: LOCKED (names the holder), UNSUPPORTED (newer file, another application's, network
 * file system), CORRUPT, FORBIDDEN, NO_SPACE, INVALID (a directory): each a sentence that says what to do. */
int journal_open(struct env *env, const struct journal_options *options, struct journal **ret,
                 struct error **err);
/* Commits what is pending with a `stop` entry whose reason is given, closes, unlocks. Blocks for that commit;
 * gives up silently when the disk does not take it. NULL: as after a crash: what is not on its way to the
 * disk yet is forgotten, no `stop` entry. Never from inside a callback of the journal. */
void journal_close(struct journal *journal, const char *stop_reason);

/* This run's nonce: 16 hexadecimal digits. The file's id: 32. */
const char *journal_nonce(const struct journal *journal);
const char *journal_id(const struct journal *journal);
/* The nonce of the run before this one, or NULL: its lease need not be waited out, since we hold the lock. */
const char *journal_previous_nonce(const struct journal *journal);
int64_t journal_run(const struct journal *journal);
/* Highest epoch ever written. The next entries carry what journal_set_epoch sets; it never falls. */
int64_t journal_epoch(const struct journal *journal);
void journal_set_epoch(struct journal *journal, int64_t epoch);

/* Members of a `begin` entry's detail: where the operation comes from and goes to, for lists. */
#define JOURNAL_DETAIL_FROM "from"
#define JOURNAL_DETAIL_TO "to"

/* Appends one entry: seq, form, run, epoch, at_us, mono_us, hash are filled in here, the rest is copied from
 * *entry. `begin` and `intent` get operation/step = their own seq. Checks what the file's CHECKs would refuse
 * by assertion (of answers' rows a version "" or "0" and an http code that is none are left out instead; a
 * reason is cut at 4 KiB). In an answer's row (outcome, unknown) operation and attempt are filled in from its
 * step when they are 0. Kinds: epoch, begin, end, intent, the outcomes, unknown, late, note. `begin` has its
 * from and to in detail. The others are the journal's own. Returns the seq. Nothing is written yet. */
int64_t journal_append(struct journal *journal, const struct journal_entry *entry);
/* As above, for an intent whose exact bytes may be kept (patches): makes salt and digest and keeps the body.
 * keep false: the digest only (creates, applies). */
int64_t journal_append_intent(struct journal *journal, const struct journal_entry *entry, const void *body,
                              size_t body_length, bool keep);
/* The seq that the next append will get: keys are made of it. */
int64_t journal_next_seq(const struct journal *journal);
/* Hands what was appended to the worker as soon as it is free: one transaction, one sync. */
void journal_commit(struct journal *journal);
/* The same, but it may wait up to 200 ms for company (outcomes). */
void journal_commit_soon(struct journal *journal);
/* Calls back on the loop once everything up to seq is on disk (at once when it is: from the loop, not
 * inside). In order of seq. Never when the journal died. */
void journal_when_durable(struct journal *journal, int64_t seq, env_callback *durable, void *context);
/* Drops what waits with this context: its owner goes away. */
void journal_forget(struct journal *journal, const void *context);
int64_t journal_durable_seq(const struct journal *journal);
/* How long the oldest commit that was asked for has not been done, in microseconds of the boot clock; 0: none
 * is waited for. Past the renew deadline the lease is let go. */
int64_t journal_commit_age_us(const struct journal *journal);

enum journal_health journal_health(const struct journal *journal);
/* A sentence when the health is not WELL: what and what to do. */
const char *journal_problem(const struct journal *journal);
/* Called on the loop on each change of health. changed NULL: its owner goes away. */
void journal_on_health(struct journal *journal, env_callback *changed, void *context);
/* What somebody should know although the journal is well: that the WAL grows, that the clock jumped. sentence
 * says what and what to do. Called on the loop; with what nobody heard before somebody listened, too. */
typedef void journal_warning(void *context, const char *sentence);
void journal_on_warning(struct journal *journal, journal_warning *warning, void *context);

/* What is open, including what was appended and is not durable yet. */
const struct journal_open_step *journal_open_step_find(const struct journal *journal, int64_t step);
/* The open step on an object that is not a `block`, or NULL. */
const struct journal_open_step *journal_open_step_on(const struct journal *journal, const char *object,
                                                     const char *namespace, const char *name);
/* each may close the step that it is given. */
void journal_open_steps_each(const struct journal *journal,
                             void (*each)(void *context, const struct journal_open_step *step),
                             void *context);
/* The open operation of this kind on this object, or NULL. */
const struct journal_open_operation *journal_open_operation_find(const struct journal *journal,
                                                                 const char *action, const char *object,
                                                                 const char *namespace, const char *name);
/* each may end the operation that it is given. */
void journal_open_operations_each(const struct journal *journal,
                                  void (*each)(void *context, const struct journal_open_operation *operation),
                                  void *context);

/* Of an open step of an ended run, read from the file (at most once a step, in recovery): the exact bytes
 * that were kept for it, NUL-terminated, the caller's; NULL: they were not kept. */
char *journal_step_body(struct journal *journal, int64_t step, size_t *ret_length);
/* True when bytes are exactly what the open step's intent was appended with, by its digest: for bodies that
 * are not kept but can be made again (creates). The salt of such a step lives as long as the step is open.
 * false also when the salt is gone. */
bool journal_step_has_body(struct journal *journal, int64_t step, const void *bytes, size_t length);

/* How a step ended, looked up by its key <nonce>-<step>. */
enum journal_fate {
    JOURNAL_FATE_UNKNOWN, /* no step of this journal, or open, or pruned */
    JOURNAL_FATE_APPLIED,
    JOURNAL_FATE_CLOSED, /* as anything else */
    JOURNAL_FATE_LATE,   /* so too, and its key turned up since */
};
struct journal_look {
    uint64_t nonce;
    int64_t step;
    int64_t operation; /* found, when CLOSED or LATE */
    enum journal_fate fate;
};
enum { JOURNAL_LOOKS_MAX = 64 };
typedef void journal_look_done(void *context, const struct journal_look *looks, size_t count);
/* Looks up at most JOURNAL_LOOKS_MAX steps, of ended runs too, on the worker between commits: what is not
 * durable yet is not found. done is called on the loop; looks are valid during it. false: one is under way.
 */
bool journal_look(struct journal *journal, const struct journal_look *looks, size_t count,
                  journal_look_done *done, void *context);
/* done is not called for this context any more: its owner goes away. */
void journal_look_forget(struct journal *journal, const void *context);

/* Waits, as budgets (journal.md, "Waiting is journaled too"). A wait is known by object and action; begin is
 * idempotent while it is open. Time spent is summed on the boot clock inside a run; across runs the gap
 * counts as wall time, never negative, not while held. */
int64_t journal_wait_begin(struct journal *journal, int64_t operation, const char *action, const char *object,
                           const char *namespace, const char *name, int64_t budget_us, const char *reason);
/* The open wait's seq, or 0. */
int64_t journal_wait_find(const struct journal *journal, const char *action, const char *object,
                          const char *namespace, const char *name);
void journal_wait_hold(struct journal *journal, int64_t wait, const char *reason);
void journal_wait_go(struct journal *journal, int64_t wait);
/* outcome: "done", "expired", "dropped" ... */
void journal_wait_end(struct journal *journal, int64_t wait, const char *outcome);
/* Every open wait, also of ended runs. */
void journal_open_waits_each(const struct journal *journal,
                             void (*each)(void *context, int64_t wait, const char *action, const char *object,
                                          const char *namespace, const char *name),
                             void *context);
int64_t journal_wait_spent_us(const struct journal *journal, int64_t wait);
bool journal_wait_is_held(const struct journal *journal, int64_t wait);
/* Spent ≥ budget_us (it may have changed since the wait began), not held, and at least 60 s since
 * first_seen_boot_us (the first observation of this run). */
bool journal_wait_has_spent(const struct journal *journal, int64_t wait, int64_t budget_us,
                            int64_t first_seen_boot_us);

/* The newest durable entry, for the Lease's annotation: {"journal_id":...,"seq":...,"hash":...}. The
 * caller's. */
char *journal_head_text(const struct journal *journal);
enum journal_head_verdict {
    JOURNAL_HEAD_GOES_ON,    /* same id, our row at that seq has that hash; or no head was published */
    JOURNAL_HEAD_WENT_BACK,  /* seq above ours */
    JOURNAL_HEAD_FORKED,     /* another hash at that seq */
    JOURNAL_HEAD_REPLACED,   /* another id */
    JOURNAL_HEAD_UNREADABLE, /* no head; or the disk did not give our row: then the journal is dead */
};
/* Compares a published head with this file. Reads one row, and waits for a commit that is under way: once
 * each time that the lease is gained. */
enum journal_head_verdict journal_check_head(struct journal *journal, const char *head_text);

/* Counters for /metrics. */
struct journal_metrics {
    int64_t entries, commits, commit_us_total, commit_us_max, wal_bytes, file_bytes, pruned_seq;
    int open_steps, open_operations, open_waits;
};
void journal_metrics_get(const struct journal *journal, struct journal_metrics *ret);

/* "3.40.1 (affected by the WAL-reset bug: yes; ...)": for --version and verify. */
enum { JOURNAL_LIBRARY_TEXT_SIZE = 160 };
void journal_library_text(char text[static JOURNAL_LIBRARY_TEXT_SIZE]);
