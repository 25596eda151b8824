/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection that writes: opened once, statements prepared once, one transaction a batch. Whoever holds
 * the store (the worker during a job, the loop otherwise) is the only one to use it. A COMMIT that fails is
 * *unknown*: the tip does not move. */
#pragma once

#include "journal/batch.h"
#include "journal/chain.h"
#include "journal/migrate.h"
#include "journal/place.h"

#include <sqlite3.h>

#define STORE_STATEMENTS(X)                                                                                  \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                              \
    X(COMMIT, "COMMIT")                                                                                      \
    X(ROLLBACK, "ROLLBACK")                                                                                  \
    X(ENTRY, "INSERT OR ROLLBACK INTO entry (" ROW_COLUMNS(                                                  \
                 "") ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"                          \
                     " ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)")                                   \
    X(BODY, "INSERT INTO body (step, salt, bytes) VALUES (?1, ?2, ?3)")                                      \
    X(OPERATION_BEGIN,                                                                                       \
      "INSERT INTO operation (id, kind, object, namespace, name, come_from, go_to, begun_us)"                \
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                                            \
    X(OPERATION_END,                                                                                         \
      "UPDATE operation SET ended_us = ?2, outcome = ?3, (steps, attempts) = (SELECT"                        \
      " count(*) FILTER (WHERE kind = 'intent'),"                                                            \
      " count(*) FILTER (WHERE kind = 'intent' OR kind = 'unknown') FROM entry WHERE operation = ?1)"        \
      " WHERE id = ?1 AND ended_us IS NULL")                                                                 \
    X(STEP_OPEN, "INSERT INTO open_step (step, object, namespace, name, blocks, last_at_us, salt)"           \
                 " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                                     \
    X(STEP_UNKNOWN, "UPDATE open_step SET unknowns = unknowns + 1, last_at_us = ?2 WHERE step = ?1")         \
    X(STEP_CLOSE, "DELETE FROM open_step WHERE step = ?1")                                                   \
    X(WAIT_OPEN,                                                                                             \
      "INSERT INTO open_wait (wait, action, object, namespace, name, budget_us, spent_us, since_us)"         \
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)")                                                             \
    X(WAIT_HOLD,                                                                                             \
      "UPDATE open_wait SET spent_us = ?2, since_us = NULL WHERE wait = ?1 AND since_us IS NOT NULL")        \
    X(WAIT_GO, "UPDATE open_wait SET since_us = ?2 WHERE wait = ?1 AND since_us IS NULL")                    \
    X(WAIT_CLOSE, "DELETE FROM open_wait WHERE wait = ?1")                                                   \
    X(WAITS_NEW_RUN, "UPDATE open_wait SET spent_us = spent_us + (?1 - since_us) + ?2, since_us = 0"         \
                     " WHERE since_us IS NOT NULL")                                                          \
    X(LOOK_OUTCOME,                                                                                          \
      "SELECT kind = 'applied' FROM entry WHERE step = ?1 AND (kind = 'applied' OR kind = 'rejected'"        \
      " OR kind = 'overtaken' OR kind = 'not_sent' OR kind = 'absent')")                                     \
    X(LOOK_INTENT, "SELECT operation, run FROM entry WHERE seq = ?1 AND kind = 'intent'")                    \
    X(LOOK_NONCE,                                                                                            \
      "SELECT detail FROM entry WHERE (seq = ?1 AND kind = 'start') OR (seq = (SELECT pruned_seq + 1"        \
      " FROM meta) AND run = ?1 AND kind = 'checkpoint')")                                                   \
    X(LOOK_LATE, "SELECT 1 FROM entry WHERE operation = ?1 AND step = ?2 AND kind = 'late'")                 \
    X(META_PRUNED, "UPDATE meta SET pruned_seq = ?1, pruned_hash = ?2")                                      \
    X(PRUNE_BODIES,                                                                                          \
      "DELETE FROM body WHERE step IN (SELECT step FROM body WHERE step <= ?1 ORDER BY step LIMIT ?2)")      \
    X(PRUNE_ENTRIES,                                                                                         \
      "DELETE FROM entry WHERE seq IN (SELECT seq FROM entry WHERE seq <= ?1 ORDER BY seq LIMIT ?2)")        \
    X(PRUNE_OPERATIONS, "DELETE FROM operation WHERE id IN"                                                  \
                        " (SELECT id FROM operation WHERE id <= ?1 ORDER BY id LIMIT ?2)")

/* Of the WAL: a page of SQLite's usual size and what stands before it. */
enum { STORE_FRAME_BYTES = 4096 + 24 };

enum store_statement {
#define X(name, sql) STORE_##name,
    STORE_STATEMENTS(X)
#undef X
        STORE_STATEMENT_COUNT,
};

struct store {
    const struct place *place;
    sqlite3 *db;
    struct chain *chain;
    sqlite3_stmt *statements[STORE_STATEMENT_COUNT];
    int64_t tip_seq; /* newest durable entry */
    uint8_t tip_hash[SHA256_SIZE];
    struct place_files files; /* as they were after the first commit */
    bool has_files;
    int wal_frames;    /* in the WAL after the newest commit */
    int checkpoint_at; /* frames at which the next checkpoint is due */
};

struct store_options {
    const struct place *place;
    const char *vfs;
    struct migrations migrations;
    struct migrate_identity identity; /* of a new file */
};

/* Opens, sets, migrates, prepares. The place outlives the store. */
int store_open(const struct store_options *options, struct store **ret, struct error **err);
/* checkpoint: a last one, so that a plain copy of the closed file is whole. NULL is fine. */
void store_close(struct store *store, bool checkpoint);

/* One transaction, one sync. 0: durable, the tip moved, hashes are filled in. -ERROR_NO_SPACE, -ERROR_LOCKED:
 * rolled back, the same batch may be tried again as it is. Anything else: unknown, the process must end. */
int store_commit(struct store *store, struct batch *batch, struct error **err);
bool store_checkpoint_is_due(const struct store *store);
/* PASSIVE: never waits for readers. Errors as of store_commit(). */
int store_checkpoint(struct store *store, struct error **err);
/* Deletes at most limit rows of each table up to pruned_seq, in one transaction; only the bodies when
 * bodies_only. *ret_rows: how many entries and bodies went. */
int store_prune(struct store *store, int64_t through_seq, int limit, bool bodies_only, int64_t *ret_rows,
                struct error **err);
/* Pages in use, in bytes. */
int store_used_bytes(struct store *store, int64_t *ret, struct error **err);

/* derived.c: what a row does to the derived tables; a SQLite result code. */
int store_apply_derived(struct store *store, const struct batch_row *row);
/* Binds, steps and resets a statement that returns no rows. expect_changes < 0: any number. */
int store_run(struct store *store, enum store_statement statement, int expect_changes);
