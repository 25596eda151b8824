/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows one by one: seq, hash, run and epoch, bodies. */
#include "base/json.h"
#include "journal/verify_parts.h"

enum { CHUNK_ROWS = 4096 };

/* A digest that the bodies of this chunk are compared with. */
struct commitment {
    int64_t step;
    bool has_digest;
    uint8_t digest[SHA256_SIZE];
};

struct chunk {
    struct verifier *verifier;
    struct commitment *commitments;
    size_t count;
    int64_t rows;
    bool gap_at_start;
};

static void check_heads(struct verifier *verifier, const struct journal_entry *entry)
{
    for (size_t i = 0; i < verifier->options->head_count; i++) {
        const struct journal_head *head = &verifier->options->heads[i];
        if (head->seq == entry->seq && str_equal(head->journal_id, verifier->reader->meta.journal_id) &&
            memcmp(head->hash, entry->hash, SHA256_SIZE) != 0)
            verify_find(verifier, entry->seq,
                        "entry %lld had another hash when it was published: the history forked",
                        (long long)entry->seq);
    }
}

static void check_hash(struct verifier *verifier, const struct journal_entry *entry)
{
    uint8_t hash[SHA256_SIZE];
    if (!chain_hash(verifier->chain, entry, verifier->hash, hash))
        verify_find(verifier, entry->seq, "entry %lld has form %d, which this program does not know",
                    (long long)entry->seq, entry->form);
    else if (memcmp(hash, entry->hash, SHA256_SIZE) != 0)
        verify_find(verifier, entry->seq,
                    "entry %lld does not fit its hash: it, or the hash of the one before, was changed after "
                    "it was written",
                    (long long)entry->seq);
    /* With the row's own hash, so that one change is one finding. */
    memcpy(verifier->hash, entry->hash, SHA256_SIZE);
}

static void check_run(struct verifier *verifier, const struct journal_entry *entry)
{
    bool starts = entry->kind == JOURNAL_START;
    if (starts != (entry->run == entry->seq) || (!starts && verifier->run && entry->run != verifier->run))
        verify_find(verifier, entry->seq, "entry %lld is of run %lld, but run %lld was under way",
                    (long long)entry->seq, (long long)entry->run, (long long)verifier->run);
    if (entry->epoch < verifier->epoch)
        verify_find(verifier, entry->seq, "entry %lld has epoch %lld after epoch %lld: epochs never fall",
                    (long long)entry->seq, (long long)entry->epoch, (long long)verifier->epoch);
    if (!starts && verifier->run == entry->run && entry->mono_us < verifier->mono_us)
        verify_find(verifier, entry->seq,
                    "entry %lld was written before the one before it, by the boot clock",
                    (long long)entry->seq);
    if (verifier->run && entry->at_us < verifier->at_us && verifier->clock_back_count++ == 0)
        verifier->clock_back_seq = entry->seq;
}

static void note_pruned(struct verifier *verifier, const struct journal_entry *entry)
{
    CLEANUP_JSON cJSON *detail = NULL;
    if (entry->detail && json_parse(entry->detail, strlen(entry->detail), &detail, NULL) < 0)
        detail = NULL;
    verifier->pruned_entry = entry->seq;
    verifier->pruned_through = json_int64_or(detail, "through", 0);
    str_replace(&verifier->pruned_hash, json_str(detail, "hash"));
}

static void check_row(struct verifier *verifier, const struct journal_entry *entry)
{
    check_hash(verifier, entry);
    check_heads(verifier, entry);
    check_run(verifier, entry);
    recomputed_add(verifier, entry);
    if (entry->kind == JOURNAL_PRUNED)
        note_pruned(verifier, entry);
    verifier->run = entry->run;
    verifier->epoch = MAX(verifier->epoch, entry->epoch);
    verifier->at_us = entry->at_us;
    verifier->mono_us = entry->mono_us;
    verifier->result->entries++;
}

static void visit_row(void *context, sqlite3_stmt *statement)
{
    struct chunk *chunk = context;
    struct verifier *verifier = chunk->verifier;
    struct journal_entry entry;
    bool sound = row_read(statement, 0, &entry);
    if (entry.seq != verifier->position + 1) {
        /* Right at the beginning of a chunk it may be retention: the caller looks. */
        chunk->gap_at_start = chunk->gap_at_start || chunk->rows == 0;
        verify_find(verifier, entry.seq, "entries %lld to %lld are missing",
                    (long long)verifier->position + 1, (long long)entry.seq - 1);
    }
    chunk->rows++;
    verifier->position = entry.seq;
    if (!sound) {
        verify_find(verifier, entry.seq,
                    "entry %lld is not readable: an unknown kind, a NUL in a text or a broken hash",
                    (long long)entry.seq);
        if (entry.hash)
            memcpy(verifier->hash, entry.hash, SHA256_SIZE);
        return;
    }
    if (entry.kind == JOURNAL_INTENT) {
        struct commitment *commitment = &chunk->commitments[chunk->count++];
        *commitment = (struct commitment){.step = entry.seq, .has_digest = entry.digest != NULL};
        if (entry.digest)
            memcpy(commitment->digest, entry.digest, SHA256_SIZE);
    }
    check_row(verifier, &entry);
}

/* --- bodies ----------------------------------------------------------------------------------- */

struct body_visit {
    struct chunk *chunk;
    size_t at;
};

static void visit_body(void *context, sqlite3_stmt *statement)
{
    struct body_visit *visit = context;
    struct chunk *chunk = visit->chunk;
    struct verifier *verifier = chunk->verifier;
    int64_t step = sqlite3_column_int64(statement, 0);
    while (visit->at < chunk->count && chunk->commitments[visit->at].step < step)
        visit->at++;
    const struct commitment *commitment = visit->at < chunk->count ? &chunk->commitments[visit->at] : NULL;
    if (!commitment || commitment->step != step || !commitment->has_digest) {
        verify_find(verifier, step, "there is a body for entry %lld, which is no intent with a digest",
                    (long long)step);
        return;
    }
    const void *salt = sqlite3_column_blob(statement, 1);
    const void *bytes = sqlite3_column_blob(statement, 2);
    uint8_t digest[SHA256_SIZE];
    verifier->result->bodies++;
    bool sized = salt && sqlite3_column_bytes(statement, 1) == CHAIN_SALT_SIZE;
    if (sized)
        chain_digest(verifier->chain, salt, bytes ? bytes : "", (size_t)sqlite3_column_bytes(statement, 2),
                     digest);
    if (!sized || memcmp(digest, commitment->digest, SHA256_SIZE) != 0)
        verify_find(verifier, step, "the body of step %lld is not what its intent says was sent",
                    (long long)step);
}

static int check_bodies(struct chunk *chunk, int64_t after, struct error **err)
{
    struct body_visit visit = {.chunk = chunk};
    struct query query = QUERY_INIT;
    query_add_number(&query, "SELECT step, salt, bytes FROM body WHERE step > ", after);
    query_add_number(&query, " AND step <= ", chunk->verifier->position);
    query_add(&query, " ORDER BY step");
    int result = query_run(chunk->verifier->reader, &query, visit_body, &visit, err);
    query_done(&query);
    return result;
}

/* --- chunks ----------------------------------------------------------------------------------- */

static int check_chunk(struct chunk *chunk, int64_t through, struct error **err)
{
    struct verifier *verifier = chunk->verifier;
    int64_t after = verifier->position;
    struct query query = QUERY_INIT;
    query_add_number(&query, "SELECT " ROW_COLUMNS("") " FROM entry WHERE seq > ", after);
    query_add_number(&query, " AND seq <= ", through);
    query_add_number(&query, " ORDER BY seq LIMIT ", CHUNK_ROWS);
    int result = query_run(verifier->reader, &query, visit_row, chunk, err);
    query_done(&query);
    if (result == 0)
        result = check_bodies(chunk, after, err);
    if (result == 0)
        result = recomputed_check_ended(verifier, err);
    return result;
}

static void visit_number(void *context, sqlite3_stmt *statement)
{
    *(int64_t *)context = sqlite3_column_int64(statement, 0);
}

/* Did retention remove rows that we were about to read? */
static int was_pruned(struct verifier *verifier, bool *ret, struct error **err)
{
    int64_t pruned_seq = 0;
    struct query query = QUERY_INIT;
    query_add(&query, "SELECT pruned_seq FROM meta");
    int result = query_run(verifier->reader, &query, visit_number, &pruned_seq, err);
    query_done(&query);
    if (result == 0)
        *ret = pruned_seq > verifier->begins_after;
    return result;
}

int verify_rows(struct verifier *verifier, int64_t through, bool *ret_restart, struct error **err)
{
    struct chunk chunk = {.verifier = verifier};
    chunk.commitments = xcalloc(CHUNK_ROWS, sizeof(*chunk.commitments));
    int result = 0;
    while (result == 0 && verifier->position < through) {
        chunk.count = 0;
        chunk.rows = 0;
        chunk.gap_at_start = false;
        result = check_chunk(&chunk, through, err);
        if (result == 0 && (chunk.gap_at_start || chunk.rows == 0))
            result = was_pruned(verifier, ret_restart, err);
        if (*ret_restart)
            break;
        if (result == 0 && chunk.rows == 0) {
            verify_find(verifier, through, "entries %lld to %lld are missing",
                        (long long)verifier->position + 1, (long long)through);
            verifier->position = through;
        }
        if (result == 0 && verifier->options->progress)
            verifier->options->progress(verifier->options->context, "entries",
                                        verifier->position - verifier->begins_after,
                                        verifier->reader->meta.head_seq - verifier->begins_after);
    }
    free(chunk.commitments);
    return result;
}
