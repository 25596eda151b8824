/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks steps up by their keys on the worker, a few at a time between commits: each by an index, so that the
 * history's length does not matter. */
#include "journal/internal.h"

/* A worker that always has a commit to do looks nevertheless, after so many. */
enum { COMMITS_A_LOOK = 8 };

/* --- on the worker -------------------------------------------------------------------------------------- */

/* Runs a statement with what is bound to it; true: there is a row, *ret its first column. */
static bool first_int64(sqlite3_stmt *statement, int64_t *ret)
{
    bool found = sqlite3_step(statement) == SQLITE_ROW;
    if (found)
        *ret = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    return found;
}

static bool is_nonce_of(struct store *store, int64_t run, uint64_t wanted)
{
    sqlite3_stmt *statement = store->statements[STORE_LOOK_NONCE];
    sqlite3_bind_int64(statement, 1, run);
    bool is_it = false;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        const char *detail = (const char *)sqlite3_column_text(statement, 0);
        CLEANUP_JSON cJSON *tree = NULL;
        if (detail && json_parse(detail, strlen(detail), &tree, NULL) == 0) {
            const char *nonce = json_str(tree, "nonce");
            is_it = nonce && strtoull(nonce, NULL, 16) == wanted;
        }
    }
    sqlite3_reset(statement);
    return is_it;
}

/* Closed as something else than applied: is the key its, and did it turn up before? */
static enum journal_fate fate_of_closed(struct store *store, struct journal_look *look)
{
    sqlite3_stmt *intent = store->statements[STORE_LOOK_INTENT];
    sqlite3_bind_int64(intent, 1, look->step);
    int64_t run = 0;
    bool found = sqlite3_step(intent) == SQLITE_ROW;
    if (found) {
        look->operation = sqlite3_column_int64(intent, 0);
        run = sqlite3_column_int64(intent, 1);
    }
    sqlite3_reset(intent);
    if (!found || !is_nonce_of(store, run, look->nonce))
        return JOURNAL_FATE_UNKNOWN;
    sqlite3_stmt *late = store->statements[STORE_LOOK_LATE];
    sqlite3_bind_int64(late, 1, look->operation);
    sqlite3_bind_int64(late, 2, look->step);
    int64_t one;
    return first_int64(late, &one) ? JOURNAL_FATE_LATE : JOURNAL_FATE_CLOSED;
}

static enum journal_fate fate_of(struct store *store, struct journal_look *look)
{
    sqlite3_stmt *outcome = store->statements[STORE_LOOK_OUTCOME];
    sqlite3_bind_int64(outcome, 1, look->step);
    int64_t is_applied = 0;
    if (!first_int64(outcome, &is_applied))
        return JOURNAL_FATE_UNKNOWN;
    return is_applied ? JOURNAL_FATE_APPLIED : fate_of_closed(store, look);
}

static void run_look(void *context)
{
    struct look_job *job = &((struct journal *)context)->look_job;
    for (size_t i = 0; i < job->count; i++)
        job->looks[i].fate = fate_of(job->store, &job->looks[i]);
}

/* --- on the loop ---------------------------------------------------------------------------------------- */

static void on_looked(void *context)
{
    struct journal *journal = context;
    struct look_job *job = &journal->look_job;
    job->state = LOOK_RESTS;
    journal_look_done *done = STEAL(job->done);
    if (done)
        done(job->context, job->looks, job->count);
    committer_pump(journal);
}

bool look_pump(struct journal *journal, bool busy)
{
    struct look_job *job = &journal->look_job;
    if (job->state != LOOK_WANTED || (busy && job->commits_since < COMMITS_A_LOOK))
        return false;
    job->commits_since = 0;
    job->state = LOOK_RUNS;
    job->store = journal->store;
    hand_give(journal->hand, run_look, on_looked, journal);
    return true;
}

bool journal_look(struct journal *journal, const struct journal_look *looks, size_t count,
                  journal_look_done *done, void *context)
{
    PRE(count > 0 && count <= JOURNAL_LOOKS_MAX && done);
    struct look_job *job = &journal->look_job;
    if (job->state != LOOK_RESTS || journal->is_dead)
        return false;
    memcpy(job->looks, looks, count * sizeof(*looks));
    job->count = count;
    job->done = done;
    job->context = context;
    job->state = LOOK_WANTED;
    committer_pump(journal);
    return true;
}

void journal_look_forget(struct journal *journal, const void *context)
{
    if (journal->look_job.context == context)
        journal->look_job.done = NULL;
}
