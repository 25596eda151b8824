/* SPDX-License-Identifier: Apache-2.0
 *
 * The committer (journal.md): what was appended goes to disk on the worker, one transaction and one sync at a
 * time; the loop collects the next batch meanwhile. */
#include "journal/internal.h"

#include "base/time_text.h"
#include "journal/ballast.h"

#include <utlist.h>

enum { BUSY_RETRY_MS = 20, FULL_RETRY_MS = 1000, FULL_RETRY_MS_MAX = 5000, SPARE_BYTES_MAX = 1 << 20 };
#define SOON_US (200 * US_PER_MS)

/* --- what is durable -------------------------------------------------------------------------- */

static void deliver(struct journal *journal)
{
    if (journal->delivering)
        return;
    journal->delivering = true;
    /* What callbacks add waits for the next turn, so that they cannot keep us here. */
    const struct durable_waiter *stop = journal->waiters ? journal->waiters->prev : NULL;
    bool more = stop != NULL;
    while (more && journal->waiters && journal->waiters->seq <= journal->durable_seq) {
        struct durable_waiter *waiter = journal->waiters;
        more = waiter != stop;
        DL_DELETE(journal->waiters, waiter);
        env_callback *durable = waiter->durable;
        void *context = waiter->context;
        free(waiter);
        durable(context);
    }
    journal->delivering = false;
}

static void on_wake(void *context)
{
    struct journal *journal = context;
    journal->wake = NULL;
    deliver(journal);
    if (journal->waiters && journal->waiters->seq <= journal->durable_seq && !journal->wake)
        journal->wake = env_timer_start(journal->env, 0, on_wake, journal);
}

void journal_when_durable(struct journal *journal, int64_t seq, env_callback *durable, void *context)
{
    PRE(durable && seq <= journal->last_seq);
    struct durable_waiter *waiter = xcalloc(1, sizeof(*waiter));
    *waiter = (struct durable_waiter){.seq = seq, .durable = durable, .context = context};
    /* Usually the newest: looked for from the end. */
    struct durable_waiter *before = journal->waiters ? journal->waiters->prev : NULL;
    while (before && before->seq > seq)
        before = before == journal->waiters ? NULL : before->prev;
    if (before)
        DL_APPEND_ELEM(journal->waiters, before, waiter);
    else
        DL_PREPEND(journal->waiters, waiter);
    if (seq <= journal->durable_seq && !journal->wake)
        journal->wake = env_timer_start(journal->env, 0, on_wake, journal);
}

void journal_forget(struct journal *journal, const void *context)
{
    struct durable_waiter *waiter = NULL;
    struct durable_waiter *next = NULL;
    DL_FOREACH_SAFE (journal->waiters, waiter, next) {
        if (waiter->context != context)
            continue;
        DL_DELETE(journal->waiters, waiter);
        free(waiter);
    }
}

int64_t journal_durable_seq(const struct journal *journal)
{
    return journal->durable_seq;
}

/* When the oldest commit that is not done was asked for; 0: none is waited for. */
static int64_t oldest_wanted_us(const struct journal *journal)
{
    return journal->flight_since_us ? journal->flight_since_us : journal->wanted_since_us;
}

int64_t journal_commit_age_us(const struct journal *journal)
{
    int64_t since_us = oldest_wanted_us(journal);
    return since_us ? env_boot_us(journal->env) - since_us : 0;
}

/* --- late commits ----------------------------------------------------------------------------- */

static void on_slow(void *context)
{
    struct journal *journal = context;
    journal->slow = NULL;
    journal->is_slow = true;
    health_changed(journal);
}

/* Once a commit was asked for, and again for the next when one is done. */
static void watch_oldest(struct journal *journal)
{
    int64_t since_us = oldest_wanted_us(journal);
    if (!since_us || journal->slow || journal->is_slow)
        return;
    int64_t late_us = since_us + journal->options.renew_deadline_us / 3;
    int64_t left_us = MAX(late_us - env_boot_us(journal->env), (int64_t)0);
    journal->slow = env_timer_start(journal->env, left_us, on_slow, journal);
}

static void end_watching(struct journal *journal)
{
    journal->flight_since_us = 0;
    env_timer_cancel(journal->env, &journal->slow);
    journal->is_slow = false;
}

/* --- the jobs --------------------------------------------------------------------------------- */

/* On the worker. */
static void run_commit(void *context)
{
    struct commit_job *job = &((struct journal *)context)->commit_job;
    struct store *store = job->store;
    job->result = store_commit(store, job->batch, &job->err);
    if (job->result == -ERROR_NO_SPACE && ballast_give_up(store->place->ballast_path)) {
        job->gave_up_ballast = true;
        error_free(STEAL(job->err));
        job->result = store_commit(store, job->batch, &job->err);
    }
}

/* On the worker. */
static void run_checkpoint(void *context)
{
    struct checkpoint_job *job = &((struct journal *)context)->checkpoint_job;
    job->result = store_checkpoint(job->store, &job->err);
}

/* On the worker: is there room again? */
static void run_probe(void *context)
{
    struct probe_job *job = &((struct journal *)context)->probe_job;
    job->has_ballast = ballast_make(job->store->place->ballast_path);
}

/* What is pending is the flight from now on. */
static void take_off(struct journal *journal)
{
    journal->flight = journal->pending;
    journal->flight_since_us = journal->wanted_since_us;
    journal->wanted_since_us = 0;
    journal->pending = journal->spare ? STEAL(journal->spare) : batch_make();
}

/* Moves what is acted on: after OK only. */
static void note_durable(struct journal *journal)
{
    const struct store *store = journal->store;
    journal->durable_seq = store->tip_seq;
    memcpy(journal->durable_hash, store->tip_hash, SHA256_SIZE);
    batch_free(STEAL(journal->spare));
    journal->spare = STEAL(journal->flight);
    batch_clear(journal->spare);
    if (batch_bytes(journal->spare) > SPARE_BYTES_MAX)
        batch_free(STEAL(journal->spare));
    int64_t took_us = env_boot_us(journal->env) - journal->given_us;
    journal->commits++;
    journal->commit_us_total += took_us;
    journal->commit_us_max = MAX(journal->commit_us_max, took_us);
    journal->retries = 0;
    health_note_unlocked(journal);
    end_watching(journal);
    watch_oldest(journal);
}

static void on_retry(void *context)
{
    struct journal *journal = context;
    journal->retry = NULL;
    committer_pump(journal);
}

static void retry_after(struct journal *journal, int64_t delay_ms)
{
    if (!journal->retry)
        journal->retry = env_timer_start(journal->env, delay_ms * US_PER_MS, on_retry, journal);
}

static void on_probe(void *context)
{
    struct journal *journal = context;
    journal->probe = NULL;
    journal->wants_probe = true;
    committer_pump(journal);
}

static void probe_after(struct journal *journal, int64_t delay_ms)
{
    if (!journal->probe)
        journal->probe = env_timer_start(journal->env, delay_ms * US_PER_MS, on_probe, journal);
}

static void turn_full(struct journal *journal, const char *text)
{
    free(journal->problem);
    journal->problem =
        xasprintf("%s: nothing new is sent until there is room on the disk of the journal; it goes on by "
                  "itself then",
                  text);
    journal->is_full = true;
}

/* Neither full nor busy: what is on disk is unknown from then on. */
static bool is_fatal(int result)
{
    return result < 0 && result != -ERROR_NO_SPACE && result != -ERROR_LOCKED;
}

/* full is survived, busy is tried again, all else is the end. */
static void note_failure(struct journal *journal, int result, const struct error *err)
{
    if (result == -ERROR_NO_SPACE) {
        turn_full(journal, error_text(err));
        int64_t delay_ms = (int64_t)FULL_RETRY_MS * (journal->retries + 1);
        retry_after(journal, MIN(delay_ms, (int64_t)FULL_RETRY_MS_MAX));
        journal->retries++;
    } else if (result == -ERROR_LOCKED &&
               journal_commit_age_us(journal) < journal->options.renew_deadline_us) {
        health_note_locked(journal);
        retry_after(journal, BUSY_RETRY_MS);
    } else if (result == -ERROR_LOCKED) {
        health_note_locked(journal);
        health_set_dead(
            journal,
            "%s: %s writes to the file (a sqlite3 shell without -readonly?): end it; this program stops",
            error_text(err), journal->locked_by);
    } else {
        health_set_dead(
            journal,
            "%s: whether the newest entries are on disk is unknown; this program stops, its next start "
            "finds out",
            error_text(err));
    }
}

/* The disk took a commit. While the ballast is gone it counts as full: what it made room for is not for new
 * steps. */
static void note_room(struct journal *journal)
{
    if (journal->lost_ballast) {
        if (!journal->is_full)
            turn_full(journal, "the disk of the journal is full (its reserve is used)");
        probe_after(journal, 0);
    } else {
        journal->is_full = false;
    }
}

static void on_committed(void *context)
{
    struct journal *journal = context;
    struct commit_job *job = &journal->commit_job;
    CLEANUP_ERROR struct error *err = STEAL(job->err);
    job->batch = NULL;
    journal->lost_ballast = journal->lost_ballast || job->gave_up_ballast;
    if (job->result == 0) {
        note_durable(journal);
        note_room(journal);
        health_note_wal(journal, (int64_t)journal->store->wal_frames * STORE_FRAME_BYTES);
    } else {
        note_failure(journal, job->result, err);
    }
    health_changed(journal);
    deliver(journal);
    committer_pump(journal);
}

static void on_checkpointed(void *context)
{
    struct journal *journal = context;
    CLEANUP_ERROR struct error *err = STEAL(journal->checkpoint_job.err);
    /* No room for the copy, or somebody in the way: the WAL has it all, the next one will do. */
    if (is_fatal(journal->checkpoint_job.result))
        note_failure(journal, journal->checkpoint_job.result, err);
    committer_pump(journal);
}

static void on_probed(void *context)
{
    struct journal *journal = context;
    if (journal->probe_job.has_ballast) {
        journal->lost_ballast = false;
        /* A batch that still waits decides by itself. */
        journal->is_full = journal->flight != NULL && journal->is_full;
        health_changed(journal);
    } else {
        probe_after(journal, FULL_RETRY_MS_MAX);
    }
    committer_pump(journal);
}

/* --- the pump --------------------------------------------------------------------------------- */

/* In the build that benches measure the journal against: what is pending is forgotten and called durable. */
#ifdef NEOSET_NO_JOURNAL
enum { FORGETS = true };
#else
enum { FORGETS = false };
#endif

static void forget(struct journal *journal)
{
    journal->store->tip_seq = journal->last_seq;
    note_durable(journal);
    if (!journal->wake)
        journal->wake = env_timer_start(journal->env, 0, on_wake, journal);
}

static void give_commit(struct journal *journal)
{
    if (!journal->flight) {
        take_off(journal);
        journal->wanted = false;
        env_timer_cancel(journal->env, &journal->soon);
    }
    journal->given_us = env_boot_us(journal->env);
    if (FORGETS) {
        forget(journal);
        return;
    }
    journal->retention.commits_since_slice++;
    journal->look_job.commits_since++;
    journal->commit_job = (struct commit_job){.store = journal->store, .batch = journal->flight};
    hand_give(journal->hand, run_commit, on_committed, journal);
}

void committer_pump(struct journal *journal)
{
    if (journal->is_dead || hand_is_out(journal->hand))
        return;
    bool commits = journal->flight || (journal->wanted && batch_count(journal->pending) > 0);
    if (store_checkpoint_is_due(journal->store)) {
        journal->checkpoint_job = (struct checkpoint_job){.store = journal->store};
        hand_give(journal->hand, run_checkpoint, on_checkpointed, journal);
    } else if (journal->wants_probe) {
        journal->wants_probe = false;
        journal->probe_job = (struct probe_job){.store = journal->store};
        hand_give(journal->hand, run_probe, on_probed, journal);
    } else if (retention_pump(journal, commits)) {
        return;
    } else if (look_pump(journal, commits && !journal->retry)) {
        return;
    } else if (commits && !journal->retry) {
        give_commit(journal);
    }
}

void journal_commit(struct journal *journal)
{
    if (batch_count(journal->pending) == 0 || journal->is_dead)
        return;
    clock_look(journal);
    journal->wanted = true;
    if (!journal->wanted_since_us)
        journal->wanted_since_us = MAX(env_boot_us(journal->env), (int64_t)1);
    watch_oldest(journal);
    committer_pump(journal);
}

static void on_soon(void *context)
{
    struct journal *journal = context;
    journal->soon = NULL;
    journal_commit(journal);
}

void journal_commit_soon(struct journal *journal)
{
    if (batch_count(journal->pending) > 0 && !journal->wanted && !journal->soon && !journal->is_dead)
        journal->soon = env_timer_start(journal->env, SOON_US, on_soon, journal);
}

/* --- start and end ---------------------------------------------------------------------------- */

int committer_commit_now(struct journal *journal, struct error **err)
{
    PRE(!hand_is_out(journal->hand));
    if (!journal->flight) {
        take_off(journal);
    } else {
        batch_append_all(journal->flight, &journal->pending);
        journal->pending = batch_make();
    }
    journal->wanted_since_us = 0;
    if (batch_count(journal->flight) == 0) {
        batch_free(STEAL(journal->flight));
        return 0;
    }
    journal->given_us = env_boot_us(journal->env);
    struct commit_job *job = &journal->commit_job;
    *job = (struct commit_job){.store = journal->store, .batch = journal->flight};
    run_commit(journal);
    job->batch = NULL;
    if (job->result < 0) {
        int result = job->result;
        if (err)
            *err = STEAL(job->err);
        error_free(STEAL(job->err));
        return result;
    }
    journal->wanted = false;
    note_durable(journal);
    return 0;
}

void committer_stop(struct journal *journal)
{
    struct env_timer **const timers[] = {&journal->soon,           &journal->slow,  &journal->retry,
                                         &journal->wake,           &journal->probe, &journal->health_timer,
                                         &journal->retention.timer};
    for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
        env_timer_cancel(journal->env, timers[i]);
    bool committing = hand_is_out(journal->hand) && journal->commit_job.batch;
    bool finished = hand_take_back(journal->hand);
    if (finished && committing && journal->commit_job.result == 0)
        note_durable(journal);
    env_timer_cancel(journal->env, &journal->slow);
    /* What its done callback would have found out. */
    if (is_fatal(journal->commit_job.result) || is_fatal(journal->checkpoint_job.result) ||
        is_fatal(journal->retention.job.result))
        journal->is_dead = true;
    error_free(STEAL(journal->commit_job.err));
    error_free(STEAL(journal->checkpoint_job.err));
    error_free(STEAL(journal->retention.job.err));
    struct durable_waiter *waiter = NULL;
    struct durable_waiter *next = NULL;
    DL_FOREACH_SAFE (journal->waiters, waiter, next) {
        DL_DELETE(journal->waiters, waiter);
        free(waiter);
    }
}
