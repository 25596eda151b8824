/* SPDX-License-Identifier: Apache-2.0
 *
 * The newest durable entry as it is published, and what a published one says about this file (journal.md,
 * "The journal went back, forked, or is gone"). */
#include "journal/failure.h"
#include "journal/internal.h"
#include "journal/verify.h"

char *journal_head_text(const struct journal *journal)
{
    CLEANUP_JSON cJSON *head = json_new_object();
    CLEANUP_FREE char *hash = hex_encode(journal->durable_hash, SHA256_SIZE);
    json_add_str(head, "journal_id", journal->id);
    json_add_int64(head, "seq", journal->durable_seq);
    json_add_str(head, "hash", hash);
    return json_print(head);
}

/* What the file says of an entry. UNREADABLE: nothing, the journal is dead now. */
enum row_state { ROW_READ, ROW_PRUNED, ROW_MISSING, ROW_UNREADABLE };

/* Hash of the row, or of what was pruned last. */
static enum row_state read_hash(struct journal *journal, int64_t seq, uint8_t ret_hash[static SHA256_SIZE])
{
    sqlite3_stmt *statement = NULL;
    enum row_state state = ROW_UNREADABLE;
    int code = sqlite3_prepare_v2(journal->store->db,
                                  "SELECT pruned_seq > ?1, CASE WHEN pruned_seq = ?1 THEN pruned_hash"
                                  " ELSE (SELECT hash FROM entry WHERE seq = ?1) END FROM meta",
                                  -1, &statement, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, seq);
        code = sqlite3_step(statement);
    }
    if (code == SQLITE_ROW) {
        const void *hash = sqlite3_column_blob(statement, 1);
        state = hash && sqlite3_column_bytes(statement, 1) == SHA256_SIZE ? ROW_READ : ROW_MISSING;
        if (state == ROW_READ)
            memcpy(ret_hash, hash, SHA256_SIZE);
        if (sqlite3_column_int(statement, 0))
            state = ROW_PRUNED;
    } else {
        health_set_dead(
            journal,
            "journal %s: read the entry that the lease names: %s: this program stops; look at the "
            "disk, then start it again",
            journal->place.path, sqlite3_errmsg(journal->store->db));
    }
    sqlite3_finalize(statement);
    return state;
}

enum journal_head_verdict journal_check_head(struct journal *journal, const char *head_text)
{
    if (!head_text || !head_text[0])
        return JOURNAL_HEAD_GOES_ON;
    struct journal_head head;
    if (journal_head_parse_json(head_text, &head, NULL) < 0)
        return JOURNAL_HEAD_UNREADABLE;
    if (!str_equal(head.journal_id, journal->id))
        return JOURNAL_HEAD_REPLACED;
    if (head.seq > journal->durable_seq)
        return JOURNAL_HEAD_WENT_BACK;
    uint8_t hash[SHA256_SIZE];
    hand_hold(journal->hand);
    enum row_state state = read_hash(journal, head.seq, hash);
    hand_release(journal->hand);
    if (state == ROW_UNREADABLE)
        return JOURNAL_HEAD_UNREADABLE;
    /* Older than what retention left: nothing to compare, and retention moved on from there. */
    if (state == ROW_PRUNED)
        return JOURNAL_HEAD_GOES_ON;
    bool same = state == ROW_READ && memcmp(hash, head.hash, SHA256_SIZE) == 0;
    return same ? JOURNAL_HEAD_GOES_ON : JOURNAL_HEAD_FORKED;
}
