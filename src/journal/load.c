/* SPDX-License-Identifier: Apache-2.0
 *
 * What a start reads: the identity, the last entry, what is open. Each by key or from a small table: the time
 * does not grow with the history. The order of joins is written down (CROSS JOIN): without statistics the
 * planner begins with `entry`, 138 ms instead of 0.3. */
#include "base/plant.h"
#include "journal/failure.h"
#include "journal/internal.h"
#include "journal/row.h"

typedef int load_row(struct journal *journal, sqlite3_stmt *statement, struct error **err);

/* each for every row of sql, with parameter ?1. */
static int each_row(struct journal *journal, const char *sql, int64_t parameter, load_row *each,
                    struct error **err)
{
    sqlite3 *db = journal->store->db;
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    int result = 0;
    if (code == SQLITE_OK && sqlite3_bind_parameter_count(statement) > 0)
        sqlite3_bind_int64(statement, 1, parameter);
    while (code == SQLITE_OK && result == 0) {
        code = sqlite3_step(statement);
        if (code == SQLITE_DONE)
            break;
        if (code == SQLITE_ROW) {
            result = each(journal, statement, err);
            code = SQLITE_OK;
        }
    }
    /* Also tells an allocation that failed while a column was read. */
    int end = sqlite3_finalize(statement);
    if (code == SQLITE_DONE)
        code = end;
    if (result < 0)
        return result;
    return code == SQLITE_OK
               ? 0
               : failure_set(err, db, code, "journal %s: read what is open", journal->place.path);
}

static int corrupt(const struct journal *journal, int64_t seq, const char *what, struct error **err)
{
    return error_set(
        err, ERROR_CORRUPT,
        "journal %s: entry %lld %s: `neoset-audit verify` says more; restore a backup, or move the file away "
        "to begin a new history",
        journal->place.path, (long long)seq, what);
}

static const char *text(sqlite3_stmt *statement, int column)
{
    return (const char *)sqlite3_column_text(statement, column);
}

/* --- identity and tip ------------------------------------------------------------------------- */

static int read_meta(struct journal *journal, sqlite3_stmt *statement, struct error **err)
{
    const char *id = text(statement, 0);
    const void *hash = sqlite3_column_blob(statement, 2);
    if (!id || strlen(id) != 2 * ID_BYTES || !hash || sqlite3_column_bytes(statement, 2) != SHA256_SIZE)
        return error_set(err, ERROR_CORRUPT, "journal %s: its identity cannot be read: restore a backup",
                         journal->place.path);
    memcpy(journal->id, id, sizeof(journal->id));
    journal->store->tip_seq = sqlite3_column_int64(statement, 1);
    memcpy(journal->store->tip_hash, hash, SHA256_SIZE);
    return 0;
}

int load_meta(struct journal *journal, struct error **err)
{
    int result = each_row(journal, "SELECT journal_id, pruned_seq, pruned_hash FROM meta", 0, read_meta, err);
    if (result == 0 && !journal->id[0])
        return error_set(err, ERROR_CORRUPT, "journal %s: it has lost its identity: restore a backup",
                         journal->place.path);
    return result;
}

struct tip {
    int64_t seq;
    uint8_t hash[SHA256_SIZE];
};

/* The newest two rows, older first: the chain holds between them. */
static int read_tip(struct journal *journal, sqlite3_stmt *statement, struct error **err)
{
    struct store *store = journal->store;
    struct journal_entry row = {0};
    if (!row_read(statement, 0, &row))
        return corrupt(journal, row.seq, "is not readable", err);
    /* before: the row before is the one just read, or the last that was pruned. */
    bool before = row.seq == store->tip_seq + 1;
    uint8_t hash[SHA256_SIZE];
    if (before && !chain_hash(store->chain, &row, store->tip_hash, hash))
        return corrupt(journal, row.seq, "has a form that this program does not know", err);
    if (before && memcmp(hash, row.hash, SHA256_SIZE) != 0)
        return corrupt(journal, row.seq, "was changed after it was written (its hash does not fit)", err);
    store->tip_seq = row.seq;
    memcpy(store->tip_hash, row.hash, SHA256_SIZE);
    struct loaded *loaded = journal->loading;
    loaded->has_last = true;
    loaded->seq = row.seq;
    loaded->run = row.run;
    loaded->epoch = row.epoch;
    loaded->at_us = row.at_us;
    loaded->mono_us = row.mono_us;
    return 0;
}

int load_last(struct journal *journal, struct loaded *ret, struct error **err)
{
    *ret = (struct loaded){0};
    journal->loading = ret;
    int result = each_row(
        journal,
        "SELECT * FROM (SELECT " ROW_COLUMNS("") " FROM entry WHERE seq > (SELECT pruned_seq FROM meta)"
                                                 " ORDER BY seq DESC LIMIT 2) ORDER BY seq",
        0, read_tip, err);
    journal->loading = NULL;
    return result;
}

/* --- nonces ----------------------------------------------------------------------------------- */

static int read_nonce(struct journal *journal, sqlite3_stmt *statement, struct error **err)
{
    const char *detail = text(statement, 1);
    CLEANUP_JSON cJSON *tree = NULL;
    if (detail && json_parse(detail, strlen(detail), &tree, NULL) < 0)
        tree = NULL;
    const char *nonce = json_str(tree, "nonce");
    if (!nonce)
        return corrupt(journal, sqlite3_column_int64(statement, 0), "does not say its run's nonce", err);
    str_replace(&journal->found_nonce, nonce);
    return 0;
}

/* The nonce of a run: from its start entry or, where that was pruned, from the checkpoint that the history
 * begins with. *ret is the caller's; NULL when neither is there. */
static int find_nonce(struct journal *journal, int64_t run, char **ret, struct error **err)
{
    str_replace(&journal->found_nonce, NULL);
    int result = each_row(journal, "SELECT seq, detail FROM entry WHERE seq = ?1 AND kind = 'start'", run,
                          read_nonce, err);
    if (result == 0 && !journal->found_nonce)
        result = each_row(journal,
                          "SELECT seq, detail FROM entry WHERE seq = (SELECT pruned_seq + 1 FROM meta)"
                          " AND run = ?1 AND kind = 'checkpoint'",
                          run, read_nonce, err);
    if (result < 0)
        return result;
    *ret = STEAL(journal->found_nonce);
    return 0;
}

int load_previous_nonce(struct journal *journal, int64_t run, struct error **err)
{
    return find_nonce(journal, run, &journal->previous_nonce, err);
}

/* --- what is open ----------------------------------------------------------------------------- */

static int read_step(struct journal *journal, sqlite3_stmt *statement, struct error **err)
{
    struct journal_entry row = {0};
    if (!row_read(statement, 0, &row) || row.kind != JOURNAL_INTENT || !row.action || !row.object ||
        !row.name)
        return corrupt(journal, row.seq, "is no readable intent", err);
    CLEANUP_FREE char *nonce = NULL;
    int result = find_nonce(journal, row.run, &nonce, err);
    if (result < 0)
        return result;
    if (!nonce)
        return corrupt(journal, row.seq, "is open, and its run is not known any more", err);
    open_set_add_step(journal->open, &(struct journal_open_step){
                                         .seq = row.seq,
                                         .operation = row.operation,
                                         .run = row.run,
                                         .nonce = nonce,
                                         .action = row.action,
                                         .object = row.object,
                                         .namespace = row.namespace,
                                         .name = row.name,
                                         .uid = row.uid,
                                         .version = row.version,
                                         .detail = row.detail,
                                         .unknowns = sqlite3_column_int(statement, ROW_COLUMN_COUNT),
                                         .last_at_us = journal->start_at_us,
                                     });
    return 0;
}

static int read_operation(struct journal *journal, sqlite3_stmt *statement, struct error **err)
{
    (void)err;
    const char *namespace = text(statement, 3);
    open_set_add_operation(journal->open, &(struct journal_open_operation){
                                              .seq = sqlite3_column_int64(statement, 0),
                                              .action = text(statement, 1),
                                              .object = text(statement, 2),
                                              .namespace = namespace && namespace[0] ? namespace : NULL,
                                              .name = text(statement, 4),
                                              .come_from = text(statement, 5),
                                              .go_to = text(statement, 6),
                                              .begun_us = sqlite3_column_int64(statement, 7),
                                          });
    return 0;
}

static int read_wait(struct journal *journal, sqlite3_stmt *statement, struct error **err)
{
    (void)err;
    const char *namespace = text(statement, 4);
    open_set_add_wait(
        journal->open,
        &(struct open_wait){
            .seq = sqlite3_column_int64(statement, 0),
            .operation = sqlite3_column_int64(statement, 1),
            .action = text(statement, 2),
            .object = text(statement, 3),
            .namespace = namespace && namespace[0] ? namespace : NULL,
            .name = text(statement, 5),
            .budget_us = sqlite3_column_int64(statement, 6),
            .spent_us = PLANT("deadline-restarted-by-a-restart") ? 0 : sqlite3_column_int64(statement, 7),
            .held = sqlite3_column_type(statement, 8) == SQLITE_NULL,
            .since_mono_us = sqlite3_column_int64(statement, 8),
        });
    return 0;
}

/* The newest, or the beginning of the history when there is none yet. */
static int read_checkpoint(struct journal *journal, sqlite3_stmt *statement, struct error **err)
{
    (void)err;
    journal->checkpoint_seq = sqlite3_column_int64(statement, 0);
    journal->checkpoint_at_us = sqlite3_column_int64(statement, 1);
    return 0;
}

int load_open(struct journal *journal, struct error **err)
{
    static const struct {
        const char *sql;
        load_row *each;
    } parts[] = {
        {"SELECT " ROW_COLUMNS(
             "e.") ", o.unknowns FROM open_step AS o CROSS JOIN entry AS e ON e.seq = o.step"
                   " ORDER BY o.step",
         read_step},
        {"SELECT id, kind, object, namespace, name, come_from, go_to, begun_us FROM operation WHERE ended_us "
         "IS NULL"
         " ORDER BY id",
         read_operation},
        {"SELECT o.wait, e.operation, o.action, o.object, o.namespace, o.name, o.budget_us, o.spent_us, "
         "o.since_us"
         " FROM open_wait AS o CROSS JOIN entry AS e ON e.seq = o.wait ORDER BY o.wait",
         read_wait},
        {"SELECT (SELECT pruned_seq FROM meta), at_us FROM entry WHERE seq > (SELECT pruned_seq FROM meta)"
         " ORDER BY seq LIMIT 1",
         read_checkpoint},
        {"SELECT seq, at_us FROM entry WHERE seq = (SELECT max(seq) FROM entry WHERE kind = 'checkpoint')",
         read_checkpoint},
    };
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        int result = each_row(journal, parts[i].sql, 0, parts[i].each, err);
        if (result < 0)
            return result;
    }
    return 0;
}
