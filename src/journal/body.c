/* SPDX-License-Identifier: Apache-2.0
 *
 * What recovery needs of the requests that ended runs left open. */
#include "journal/internal.h"

/* One row of sql with ?1 = step: a salt, then the bytes or a digest. visit gets the statement on its row. */
static void look(struct journal *journal, const char *sql, int64_t step,
                 void (*visit)(sqlite3_stmt *statement, void *context), void *context)
{
    sqlite3_stmt *statement = NULL;
    hand_hold(journal->hand);
    if (sqlite3_prepare_v2(journal->store->db, sql, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, step);
        if (sqlite3_step(statement) == SQLITE_ROW)
            visit(statement, context);
    }
    sqlite3_finalize(statement);
    hand_release(journal->hand);
}

struct kept {
    char *bytes;
    size_t length;
};

static void take_bytes(sqlite3_stmt *statement, void *context)
{
    struct kept *kept = context;
    const void *bytes = sqlite3_column_blob(statement, 0);
    kept->length = (size_t)sqlite3_column_bytes(statement, 0);
    kept->bytes = xmemdup0(bytes ? bytes : "", kept->length);
}

char *journal_step_body(struct journal *journal, int64_t step, size_t *ret_length)
{
    PRE(open_set_step(journal->open, step));
    struct kept kept = {0};
    look(journal, "SELECT bytes FROM body WHERE step = ?1", step, take_bytes, &kept);
    if (kept.bytes)
        *ret_length = kept.length;
    return kept.bytes;
}

struct commitment {
    bool found;
    uint8_t salt[CHAIN_SALT_SIZE];
    uint8_t digest[SHA256_SIZE];
};

static void take_commitment(sqlite3_stmt *statement, void *context)
{
    struct commitment *commitment = context;
    const void *salt = sqlite3_column_blob(statement, 0);
    const void *digest = sqlite3_column_blob(statement, 1);
    commitment->found = salt && digest && sqlite3_column_bytes(statement, 0) == CHAIN_SALT_SIZE &&
                        sqlite3_column_bytes(statement, 1) == SHA256_SIZE;
    if (!commitment->found)
        return;
    memcpy(commitment->salt, salt, CHAIN_SALT_SIZE);
    memcpy(commitment->digest, digest, SHA256_SIZE);
}

bool journal_step_has_body(struct journal *journal, int64_t step, const void *bytes, size_t length)
{
    PRE(open_set_step(journal->open, step));
    struct commitment commitment = {0};
    look(journal,
         "SELECT coalesce(o.salt, b.salt), e.digest FROM open_step AS o CROSS JOIN entry AS e ON e.seq = "
         "o.step"
         " LEFT JOIN body AS b ON b.step = o.step WHERE o.step = ?1",
         step, take_commitment, &commitment);
    if (!commitment.found)
        return false;
    struct chain *chain = chain_make();
    uint8_t digest[SHA256_SIZE];
    chain_digest(chain, commitment.salt, bytes, length, digest);
    chain_free(chain);
    return memcmp(digest, commitment.digest, SHA256_SIZE) == 0;
}
