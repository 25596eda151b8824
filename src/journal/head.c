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

/* Hash of the row, or of what was pruned last. false: the file does not have it. */
static bool read_hash(struct journal *journal, int64_t seq, uint8_t ret_hash[static SHA256_SIZE],
                      bool *ret_pruned)
{
    sqlite3_stmt *statement = NULL;
    bool found = false;
    *ret_pruned = false;
    int code = sqlite3_prepare_v2(journal->store->db,
                                  "SELECT pruned_seq > ?1, CASE WHEN pruned_seq = ?1 THEN pruned_hash"
                                  " ELSE (SELECT hash FROM entry WHERE seq = ?1) END FROM meta",
                                  -1, &statement, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, seq);
        code = sqlite3_step(statement);
    }
    if (code == SQLITE_ROW) {
        *ret_pruned = sqlite3_column_int(statement, 0) != 0;
        const void *hash = sqlite3_column_blob(statement, 1);
        found = hash && sqlite3_column_bytes(statement, 1) == SHA256_SIZE;
        if (found)
            memcpy(ret_hash, hash, SHA256_SIZE);
    }
    sqlite3_finalize(statement);
    return found;
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
    bool pruned = false;
    hand_hold(journal->hand);
    bool found = read_hash(journal, head.seq, hash, &pruned);
    hand_release(journal->hand);
    /* Older than what retention left: nothing to compare, and retention moved on from there. */
    if (pruned)
        return JOURNAL_HEAD_GOES_ON;
    return found && memcmp(hash, head.hash, SHA256_SIZE) == 0 ? JOURNAL_HEAD_GOES_ON : JOURNAL_HEAD_FORKED;
}
