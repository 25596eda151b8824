/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/ballast.h"
#include "journal/failure.h"
#include "journal/internal.h"
#include "journal/lock.h"

#include "base/time_text.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define RENEW_DEADLINE_US (15 * US_PER_S)
#define WAL_WARN_BYTES (256LL << 20)

static void hex_random(struct env *env, char *text, size_t bytes)
{
    uint8_t noise[ID_BYTES];
    PRE(bytes <= sizeof(noise));
    env_random(env, noise, bytes);
    CLEANUP_FREE char *digits = hex_encode(noise, bytes);
    memcpy(text, digits, 2 * bytes + 1);
}

static void journal_free(struct journal *journal)
{
    if (!journal)
        return;
    batch_free(journal->pending);
    batch_free(journal->flight);
    batch_free(journal->spare);
    open_set_free(journal->open);
    hand_free(journal->hand);
    /* The lock is let go after the file is closed, the look at the header after SQLite's locks are. */
    place_done(&journal->place);
    cleanup_close_fd(&journal->lock_fd);
    free(journal->previous_nonce);
    free(journal->found_nonce);
    free(journal->identity);
    free(journal->version);
    free(journal->problem);
    free(journal->locked_by);
    free(journal->lock_problem);
    free(journal->kept_warning);
    free(journal);
}

static struct journal *make(struct env *env, const struct journal_options *options)
{
    struct journal *journal = xcalloc(1, sizeof(*journal));
    journal->env = env;
    journal->lock_fd = -1;
    journal->place.fd = -1;
    journal->options = (struct journal_options){
        .retention_us = options->retention_us,
        .retention_bytes = options->retention_bytes,
        .renew_deadline_us = options->renew_deadline_us > 0 ? options->renew_deadline_us : RENEW_DEADLINE_US,
        .wal_warn_bytes = options->wal_warn_bytes > 0 ? options->wal_warn_bytes : WAL_WARN_BYTES,
    };
    journal->wal_warn_bytes = journal->options.wal_warn_bytes;
    journal->identity = xstrdup(options->identity ? options->identity : "");
    journal->version = xstrdup(options->version ? options->version : "");
    journal->pending = batch_make();
    journal->open = open_set_make();
    journal->hand = hand_make(env);
    hex_random(env, journal->nonce, NONCE_BYTES);
    return journal;
}

/* A file that is ours, and the lock on it. Nothing was written to it yet. */
static int take_place(struct journal *journal, const struct journal_options *options, struct error **err)
{
    int result = place_find(options->path, true, &journal->place, err);
    if (result == 0 && !options->unsafe_file_system)
        result = place_check_file_system(&journal->place, err);
    if (result == 0)
        result = lock_take(journal->place.lock_path, journal->place.path, journal->identity,
                           &journal->lock_fd, err);
    if (result == 0)
        result = place_check_header(&journal->place, err);
    return result;
}

static int open_store(struct journal *journal, const struct journal_options *options, struct error **err)
{
    char id[2 * ID_BYTES + 1];
    hex_random(journal->env, id, ID_BYTES);
    struct store_options store = {
        .place = &journal->place,
        .vfs = options->vfs,
        .migrations = migrations_embedded(),
        .identity = {.journal_id = id, .created_us = env_wall_us(journal->env)},
    };
    int result = store_open(&store, &journal->store, err);
    return result < 0 ? result : load_meta(journal, err);
}

/* The first entry of this run, durable on return. */
static int write_start(struct journal *journal, const struct loaded *last, struct error **err)
{
    journal->epoch = last->epoch;
    journal->last_seq = journal->store->tip_seq;
    journal->start_boot_us = env_boot_us(journal->env);
    CLEANUP_JSON cJSON *detail = json_new_object();
    json_add_str(detail, "nonce", journal->nonce);
    json_add_str(detail, "identity", journal->identity);
    json_add_str(detail, "version", journal->version);
    json_add_int64(detail, "pid", getpid());
    json_add_str(detail, "journal_id", journal->id);
    json_add_str(detail, "sqlite", sqlite3_libversion());
    CLEANUP_FREE char *text = json_print(detail);
    struct batch_row *row =
        journal_append_row(journal, &(struct journal_entry){.kind = JOURNAL_START, .detail = text});
    /* One reading of the boot clock: what waits have spent is counted from here. */
    row->entry.mono_us = 0;
    journal->run = row->entry.seq;
    journal->start_at_us = row->entry.at_us;
    row->effect.last_mono_us = last->mono_us;
    row->effect.gap_us = last->has_last ? MAX((int64_t)0, row->entry.at_us - last->at_us) : 0;
    return committer_commit_now(journal, err);
}

static int begin_run(struct journal *journal, struct error **err)
{
    struct loaded last = {0};
    int result = load_last(journal, &last, err);
    if (result == 0 && last.has_last)
        result = load_previous_nonce(journal, last.run, err);
    if (result == 0)
        result = write_start(journal, &last, err);
    if (result == 0)
        clock_begin(journal, &last);
    if (result == 0)
        result = load_open(journal, err);
    if (result == 0)
        result = retention_resume(journal, err);
    return result;
}

/* What SQLite says of it names the symptom only. Takes failure over. */
static int with_way_out(const struct journal *journal, int result, struct error *taken, struct error **err)
{
    CLEANUP_ERROR struct error *failure = taken;
    if (result == -ERROR_NO_SPACE)
        return error_set(
            err, ERROR_NO_SPACE,
            "%s: the disk of the journal is full: free 32 MiB in the file system of %s (less lets "
            "it start, but without its reserve); %s and its -wal must stay",
            error_text(failure), journal->place.folder, journal->place.path);
    if (result == -ERROR_CORRUPT && !strstr(error_text(failure), "restore a backup"))
        return error_set(err, ERROR_CORRUPT,
                         "%s: the file was cut short or damaged: restore a backup (neoset-audit backup makes "
                         "them), or move %s and its -wal and -shm away to begin a new history",
                         error_text(failure), journal->place.path);
    if (err)
        *err = STEAL(failure);
    return result;
}

int journal_open(struct env *env, const struct journal_options *options, struct journal **ret,
                 struct error **err)
{
    struct journal *journal = make(env, options);
    struct error *failure = NULL;
    int result = take_place(journal, options, &failure);
    if (result == 0)
        result = open_store(journal, options, &failure);
    if (result == 0)
        result = begin_run(journal, &failure);
    if (result < 0) {
        store_close(journal->store, false);
        result = with_way_out(journal, result, failure, err);
        journal_free(journal);
        return result;
    }
    /* Reserved while there is room; where there is none from the start we live without it. */
    (void)ballast_make(journal->place.ballast_path);
    committer_pump(journal); /* what an interrupted run left to delete */
    *ret = journal;
    return 0;
}

void journal_close(struct journal *journal, const char *stop_reason)
{
    if (!journal)
        return;
    PRE(!journal->delivering);
    committer_stop(journal);
    bool clean = stop_reason && !journal->is_dead;
    if (clean) {
        journal_append_row(journal, &(struct journal_entry){.kind = JOURNAL_STOP, .reason = stop_reason});
        clean = committer_commit_now(journal, NULL) == 0;
    }
    store_close(journal->store, clean);
    journal_free(journal);
}

/* --- what is known ---------------------------------------------------------------------------- */

const char *journal_nonce(const struct journal *journal)
{
    return journal->nonce;
}

const char *journal_id(const struct journal *journal)
{
    return journal->id;
}

const char *journal_previous_nonce(const struct journal *journal)
{
    return journal->previous_nonce;
}

int64_t journal_run(const struct journal *journal)
{
    return journal->run;
}

int64_t journal_epoch(const struct journal *journal)
{
    return journal->epoch;
}

void journal_set_epoch(struct journal *journal, int64_t epoch)
{
    PRE(epoch >= journal->epoch);
    journal->epoch = epoch;
}

const struct journal_open_step *journal_open_step_find(const struct journal *journal, int64_t step)
{
    return open_set_step(journal->open, step);
}

const struct journal_open_step *journal_open_step_on(const struct journal *journal, const char *object,
                                                     const char *namespace, const char *name)
{
    return open_set_step_on(journal->open, object, namespace, name);
}

void journal_open_steps_each(const struct journal *journal,
                             void (*each)(void *context, const struct journal_open_step *step), void *context)
{
    open_set_each_step(journal->open, each, context);
}

const struct journal_open_operation *journal_open_operation_find(const struct journal *journal,
                                                                 const char *action, const char *object,
                                                                 const char *namespace, const char *name)
{
    return open_set_operation_on(journal->open, action, object, namespace, name);
}

void journal_open_operations_each(const struct journal *journal,
                                  void (*each)(void *context, const struct journal_open_operation *operation),
                                  void *context)
{
    open_set_each_operation(journal->open, each, context);
}

static int64_t size_of(const char *path)
{
    /* stat() only: an open() and close() would drop SQLite's locks. */
    struct stat status;
    return stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
}

void journal_metrics_get(const struct journal *journal, struct journal_metrics *ret)
{
    *ret = (struct journal_metrics){
        .entries = journal->durable_seq - journal->retention.pruned_seq,
        .commits = journal->commits,
        .commit_us_total = journal->commit_us_total,
        .commit_us_max = journal->commit_us_max,
        .wal_bytes = size_of(journal->place.wal_path),
        .file_bytes = size_of(journal->place.path),
        .pruned_seq = journal->retention.pruned_seq,
        .open_steps = open_set_step_count(journal->open),
        .open_operations = open_set_operation_count(journal->open),
        .open_waits = open_set_wait_count(journal->open),
    };
}
