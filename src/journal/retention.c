/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/internal.h"

#include "base/time_text.h"
#include "journal/failure.h"

#include <stdio.h>

enum {
    BEGIN_PERCENT = 80,  /* of the size limit: then it begins */
    UNTIL_PERCENT = 75,  /* until no more than this is used */
    COMMITS_A_SLICE = 4, /* while commits wait: one slice after so many of them */
};
#define LOOK_EVERY_US (60 * US_PER_S)
/* Something that is open keeps what is past the limits: for so long that is ordinary. */
#define HELD_LONG_US (3600 * US_PER_S)
#define HELD_AGAIN_US (24 * 3600 * US_PER_S)

/* --- survey, on the worker -------------------------------------------------------------------- */

static int query(struct retention_job *job, const char *sql, int64_t first, int64_t second,
                 int64_t *ret_number, uint8_t *ret_hash)
{
    sqlite3 *db = job->store->db;
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        int count = sqlite3_bind_parameter_count(statement);
        if (count > 0)
            sqlite3_bind_int64(statement, 1, first);
        if (count > 1)
            sqlite3_bind_int64(statement, 2, second);
        code = sqlite3_step(statement);
    }
    *ret_number = 0;
    if (code == SQLITE_ROW) {
        *ret_number = sqlite3_column_int64(statement, 0);
        const void *hash = ret_hash ? sqlite3_column_blob(statement, 1) : NULL;
        if (hash && sqlite3_column_bytes(statement, 1) == SHA256_SIZE)
            memcpy(ret_hash, hash, SHA256_SIZE);
        else if (ret_hash)
            *ret_number = 0;
    }
    int end = sqlite3_finalize(statement);
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        code = end;
    if (code == SQLITE_OK)
        return 0;
    return failure_set(&job->err, db, code, "journal %s: look for old entries", job->store->place->path);
}

/* Everything below the newest checkpoint that is old enough, with nothing open below it. The checkpoint is
 * what the history begins with from then on. */
static const char by_age[] =
    "SELECT seq - 1, (SELECT hash FROM entry AS before WHERE before.seq = entry.seq - 1) FROM entry"
    " WHERE kind = 'checkpoint'"
    " AND seq <= ?1 AND at_us < ?2 AND seq > (SELECT pruned_seq + 1 FROM meta)"
    " ORDER BY seq DESC LIMIT 1";
/* The oldest such range. */
static const char by_size[] =
    "SELECT seq - 1, (SELECT hash FROM entry AS before WHERE before.seq = entry.seq - 1) FROM"
    " entry WHERE kind = 'checkpoint'"
    " AND seq <= ?1 AND seq > (SELECT pruned_seq + 1 FROM meta) ORDER BY seq LIMIT 1";
/* A part of the oldest bodies of steps that are closed. */
static const char oldest_bodies[] =
    "SELECT max(step) FROM (SELECT step FROM body WHERE step < ?1 ORDER BY step LIMIT ?2)";

enum { BODIES_AT_ONCE = 10000 };

/* Would entries be let go for their age if nothing were open? */
static int look_behind_open(struct retention_job *job)
{
    int64_t cut_seq = 0;
    uint8_t hash[SHA256_SIZE];
    int result = query(job, by_age, INT64_MAX, job->before_us, &cut_seq, hash);
    job->is_held = cut_seq != 0;
    return result;
}

static int survey(struct retention_job *job)
{
    int result = 0;
    if (job->before_us)
        result = query(job, by_age, job->lowest_open, job->before_us, &job->cut_seq, job->cut_hash);
    if (result == 0 && job->before_us && !job->cut_seq)
        result = look_behind_open(job);
    if (result < 0 || job->cut_seq || !job->limit_bytes)
        return result;
    int64_t used = 0;
    result = store_used_bytes(job->store, &used, &job->err);
    int percent = job->goes_on ? UNTIL_PERCENT : BEGIN_PERCENT;
    job->goes_on = result == 0 && used > job->limit_bytes / 100 * percent;
    if (result < 0 || !job->goes_on)
        return result;
    result = query(job, oldest_bodies, job->lowest_open, BODIES_AT_ONCE, &job->bodies_through, NULL);
    if (result < 0 || job->bodies_through)
        return result;
    result = query(job, by_size, job->lowest_open, 0, &job->cut_seq, job->cut_hash);
    job->is_held = job->is_held || (result == 0 && !job->cut_seq && used > job->limit_bytes);
    return result;
}

static void run_survey(void *context)
{
    struct retention_job *job = &((struct journal *)context)->retention.job;
    job->result = survey(job);
}

static void run_slice(void *context)
{
    struct retention_job *job = &((struct journal *)context)->retention.job;
    job->result = store_prune(job->store, job->through_seq, RETENTION_SLICE_ROWS, job->bodies_only,
                              &job->rows, &job->err);
}

/* --- on the loop ------------------------------------------------------------------------------ */

static void rest(struct journal *journal, bool look_again);

static void on_look(void *context)
{
    struct journal *journal = context;
    journal->retention.timer = NULL;
    journal->retention.look_now = true;
    committer_pump(journal);
}

/* What is wanted of the disk comes first; a failure of the store itself is the committer's to judge. */
static bool note_result(struct journal *journal)
{
    struct retention_job *job = &journal->retention.job;
    CLEANUP_ERROR struct error *err = STEAL(job->err);
    if (job->result == 0)
        return true;
    if (job->result != -ERROR_NO_SPACE && job->result != -ERROR_LOCKED)
        health_set_dead(journal, "%s: this program stops, its next start finds out what is on disk",
                        error_text(err));
    rest(journal, false);
    return false;
}

static void rest(struct journal *journal, bool look_again)
{
    struct retention *retention = &journal->retention;
    retention->phase = RETENTION_RESTS;
    retention->look_now = look_again;
    bool limited = journal->options.retention_us > 0 || journal->options.retention_bytes > 0;
    if (limited && !look_again && !retention->timer)
        retention->timer = env_timer_start(journal->env, LOOK_EVERY_US, on_look, journal);
}

static void on_slice(void *context)
{
    struct journal *journal = context;
    struct retention *retention = &journal->retention;
    if (note_result(journal) && retention->job.rows == 0)
        rest(journal, retention->job.goes_on);
    committer_pump(journal);
}

static void on_announced(void *context)
{
    struct journal *journal = context;
    struct retention *retention = &journal->retention;
    retention->phase = RETENTION_DELETES;
    if (!retention->bodies_only)
        retention->pruned_seq = retention->through_seq;
    committer_pump(journal);
}

static void announce_range(struct journal *journal)
{
    struct retention *retention = &journal->retention;
    const struct retention_job *job = &retention->job;
    CLEANUP_FREE char *hash = hex_encode(job->cut_hash, SHA256_SIZE);
    CLEANUP_FREE char *detail =
        xasprintf("{\"from\":%lld,\"through\":%lld,\"hash\":\"%s\"}", (long long)retention->pruned_seq + 1,
                  (long long)job->cut_seq, hash);
    struct batch_row *row = journal_append_row(
        journal, &(struct journal_entry){.kind = JOURNAL_PRUNED,
                                         .action = "entries",
                                         .reason = job->goes_on ? "the file came near its size limit"
                                                                : "older than kept",
                                         .detail = detail});
    row->effect.pruned_seq = job->cut_seq;
    row->effect.pruned_hash = batch_copy(journal->pending, job->cut_hash, SHA256_SIZE);
    retention->through_seq = job->cut_seq;
    retention->bodies_only = false;
}

static void announce_bodies(struct journal *journal)
{
    struct retention *retention = &journal->retention;
    const struct retention_job *job = &retention->job;
    CLEANUP_FREE char *detail = xasprintf("{\"through\":%lld}", (long long)job->bodies_through);
    journal_append_row(journal, &(struct journal_entry){.kind = JOURNAL_NOTE,
                                                        .action = JOURNAL_NOTE_BODIES,
                                                        .reason = "the file came near its size limit",
                                                        .detail = detail});
    retention->through_seq = job->bodies_through;
    retention->bodies_only = true;
}

/* "step patch of Pod db/mysql-4"; the caller's. NULL: it is not open any more. */
static char *open_text(const struct journal *journal, int64_t seq)
{
    const struct journal_open_step *step = open_set_step(journal->open, seq);
    const struct journal_open_operation *operation = open_set_operation(journal->open, seq);
    const struct open_wait *wait = open_set_wait(journal->open, seq);
    if (step)
        return xasprintf("step %s of %s %s/%s", step->action, step->object, step->namespace, step->name);
    if (operation)
        return xasprintf("operation %s of %s %s/%s", operation->action, operation->object,
                         operation->namespace, operation->name);
    return wait ? xasprintf("wait %s of %s %s/%s", wait->action, wait->object, wait->namespace, wait->name)
                : NULL;
}

/* What no program here ends (of a namespace that none looks at, of a newer version) would keep everything
 * above it for ever, without a word. */
static void watch_held(struct journal *journal)
{
    struct retention *retention = &journal->retention;
    int64_t now_us = env_boot_us(journal->env);
    int64_t seq = retention->job.is_held ? open_set_lowest(journal->open) : 0;
    if (seq != retention->held_seq) {
        retention->held_seq = seq;
        retention->warn_boot_us = now_us + HELD_LONG_US;
    }
    if (!seq || now_us < retention->warn_boot_us)
        return;
    CLEANUP_FREE char *text = open_text(journal, seq);
    if (!text)
        return;
    retention->warn_boot_us = now_us + HELD_AGAIN_US;
    health_warn(
        journal,
        "journal %s keeps all entries from %lld on, beyond the limits of its retention, because entry "
        "%lld (%s) is open: only the controller of that namespace, of that version or a newer one, can "
        "end it; a step in doubt also neosetctl settle",
        journal->place.path, (long long)seq, (long long)seq, text);
}

static void on_survey(void *context)
{
    struct journal *journal = context;
    struct retention *retention = &journal->retention;
    if (!note_result(journal)) {
        committer_pump(journal);
        return;
    }
    watch_held(journal);
    if (retention->job.cut_seq)
        announce_range(journal);
    else if (retention->job.bodies_through)
        announce_bodies(journal);
    else
        rest(journal, false);
    if (retention->phase == RETENTION_LOOKS) {
        retention->phase = RETENTION_ANNOUNCES;
        journal_when_durable(journal, journal->last_seq, on_announced, journal);
        journal_commit(journal);
    }
    committer_pump(journal);
}

static void give_survey(struct journal *journal)
{
    struct retention *retention = &journal->retention;
    int64_t age_us = journal->options.retention_us;
    retention->job = (struct retention_job){
        .store = journal->store,
        .before_us = age_us > 0 ? MAX(env_wall_us(journal->env) - age_us, (int64_t)1) : 0,
        .limit_bytes = journal->options.retention_bytes,
        .lowest_open = MIN(open_set_lowest(journal->open), journal->durable_seq + 1),
        .goes_on = retention->job.goes_on && retention->look_now,
    };
    retention->look_now = false;
    retention->phase = RETENTION_LOOKS;
    env_timer_cancel(journal->env, &retention->timer);
    hand_give(journal->hand, run_survey, on_survey, journal);
}

static void give_slice(struct journal *journal)
{
    struct retention *retention = &journal->retention;
    bool goes_on = retention->job.goes_on;
    retention->job = (struct retention_job){
        .store = journal->store,
        .through_seq = retention->through_seq,
        .bodies_only = retention->bodies_only,
        .goes_on = goes_on,
    };
    hand_give(journal->hand, run_slice, on_slice, journal);
}

bool retention_pump(struct journal *journal, bool busy)
{
    struct retention *retention = &journal->retention;
    bool work =
        retention->phase == RETENTION_DELETES || (retention->phase == RETENTION_RESTS && retention->look_now);
    if (!work || (busy && retention->commits_since_slice < COMMITS_A_SLICE))
        return false;
    retention->commits_since_slice = 0;
    if (retention->phase == RETENTION_DELETES)
        give_slice(journal);
    else
        give_survey(journal);
    return true;
}

int retention_resume(struct journal *journal, struct error **err)
{
    struct retention *retention = &journal->retention;
    retention->job.store = journal->store;
    int64_t left = 0;
    int result = query(&retention->job, "SELECT pruned_seq FROM meta", 0, 0, &retention->pruned_seq, NULL);
    if (result == 0)
        result = query(
            &retention->job,
            "SELECT EXISTS (SELECT 1 FROM entry WHERE seq <= ?1) OR EXISTS (SELECT 1 FROM operation WHERE"
            " id <= ?1) OR EXISTS (SELECT 1 FROM body WHERE step <= ?1)",
            retention->pruned_seq, 0, &left, NULL);
    if (result < 0) {
        if (err)
            *err = STEAL(retention->job.err);
        error_free(STEAL(retention->job.err));
        return result;
    }
    retention->through_seq = retention->pruned_seq;
    if (left)
        retention->phase = RETENTION_DELETES;
    else
        rest(journal, false);
    return 0;
}
