/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/verify.h"

#include "journal/journal.h"
#include "journal/verify_parts.h"

#include "base/time_text.h"

enum { RESTARTS_MAX = 5, CATCH_UP_MAX = 100, CATCH_UP_ROWS = 4096 };

/* --- findings --------------------------------------------------------------------------------- */

static void add(struct journal_finding **list, size_t *count, int64_t seq, char *text)
{
    *list = xreallocarray(*list, *count + 1, sizeof(**list));
    (*list)[(*count)++] = (struct journal_finding){.seq = seq, .text = text};
}

void verify_find(struct verifier *verifier, int64_t seq, const char *format, ...)
{
    struct journal_verify_result *result = verifier->result;
    if (result->finding_count >= JOURNAL_FINDINGS_MAX) {
        result->findings_left_out++;
        return;
    }
    va_list args;
    va_start(args, format);
    add(&result->findings, &result->finding_count, seq, xvasprintf(format, args));
    va_end(args);
}

void verify_remark(struct verifier *verifier, int64_t seq, const char *format, ...)
{
    struct journal_verify_result *result = verifier->result;
    va_list args;
    va_start(args, format);
    add(&result->remarks, &result->remark_count, seq, xvasprintf(format, args));
    va_end(args);
}

static void free_list(struct journal_finding **list, size_t *count)
{
    for (size_t i = 0; i < *count; i++)
        free((*list)[i].text);
    free(STEAL(*list));
    *count = 0;
}

void journal_verify_result_done(struct journal_verify_result *result)
{
    free_list(&result->findings, &result->finding_count);
    free_list(&result->remarks, &result->remark_count);
}

/* --- what stands around the rows -------------------------------------------------------------- */

/* The row at which a pass begins, and what must stand before it. */
static void begin_pass(struct verifier *verifier)
{
    const struct journal_meta *meta = &verifier->reader->meta;
    recomputed_free(verifier->recomputed);
    verifier->recomputed = recomputed_make();
    verifier->position = meta->pruned_seq;
    verifier->begins_after = meta->pruned_seq;
    memcpy(verifier->hash, meta->pruned_hash, SHA256_SIZE);
    verifier->run = 0;
    verifier->epoch = 0;
    verifier->at_us = 0;
    verifier->mono_us = 0;
    verifier->clock_back_count = 0;
    verifier->result->entries = 0;
    verifier->result->bodies = 0;
}

/* The chain must begin with the journal's identity, or with what the newest `pruned` entry says. */
static void check_beginning(struct verifier *verifier)
{
    const struct journal_meta *meta = &verifier->reader->meta;
    uint8_t expected[SHA256_SIZE];
    if (meta->pruned_seq == 0) {
        chain_genesis(meta->journal_id, meta->created_us, expected);
        if (memcmp(expected, meta->pruned_hash, SHA256_SIZE) != 0)
            verify_find(verifier, 0, "the journal's identity was changed: its hash does not fit");
        return;
    }
    bool fits = verifier->pruned_hash && verifier->pruned_through == meta->pruned_seq &&
                hex_decode(verifier->pruned_hash, expected, SHA256_SIZE) &&
                memcmp(expected, meta->pruned_hash, SHA256_SIZE) == 0;
    if (!fits)
        verify_find(verifier, verifier->pruned_entry,
                    "entries up to %lld are gone, but no `pruned` entry explains that range and its hash",
                    (long long)meta->pruned_seq);
    else
        verify_remark(verifier, verifier->pruned_entry,
                      "entries up to %lld were removed by retention; the chain goes on",
                      (long long)meta->pruned_seq);
}

/* Those that no row was compared with on the way (verify_rows.c does the others). */
static void check_head(struct verifier *verifier, const struct journal_head *head)
{
    const struct journal_meta *meta = &verifier->reader->meta;
    if (!str_equal(head->journal_id, meta->journal_id))
        verify_find(verifier, 0, "the head %.8s...:%lld is of another journal (this is %.8s...)",
                    head->journal_id, (long long)head->seq, meta->journal_id);
    else if (head->seq > meta->head_seq)
        verify_find(verifier, 0,
                    "entry %lld was published, but the journal ends at %lld: its tail was cut off, or an "
                    "older copy was "
                    "put in its place",
                    (long long)head->seq, (long long)meta->head_seq);
    else if (head->seq < verifier->begins_after)
        verify_remark(verifier, head->seq, "head %lld cannot be checked: it was removed by retention",
                      (long long)head->seq);
    else if (head->seq == verifier->begins_after &&
             memcmp(head->hash, verifier->reader->meta.pruned_hash, SHA256_SIZE) != 0)
        verify_find(verifier, head->seq,
                    "entry %lld had another hash when it was published: the history forked",
                    (long long)head->seq);
}

static void remark_clock(struct verifier *verifier)
{
    if (verifier->clock_back_count > 0)
        verify_remark(verifier, verifier->clock_back_seq,
                      "the wall clock went back %lld time%s (first here): no error",
                      (long long)verifier->clock_back_count, verifier->clock_back_count == 1 ? "" : "s");
}

/* --- the run of it ---------------------------------------------------------------------------- */

static int refresh(struct verifier *verifier, struct error **err)
{
    bool moved = false;
    return journal_reader_refresh(verifier->reader, &moved, err);
}

/* Follows a living writer until little is left. */
static int follow(struct verifier *verifier, bool *ret_restart, struct error **err)
{
    for (int turn = 0; turn < CATCH_UP_MAX; turn++) {
        int64_t through = verifier->reader->meta.head_seq;
        int result = verify_rows(verifier, through, ret_restart, err);
        if (result < 0 || *ret_restart)
            return result;
        result = refresh(verifier, err);
        if (result < 0 || verifier->reader->meta.head_seq - through < CATCH_UP_ROWS)
            return result;
    }
    return 0;
}

/* The rest, and the derived tables, in one snapshot: both of the same moment. */
static int finish(struct verifier *verifier, bool *ret_restart, struct error **err)
{
    sqlite3 *db = verifier->reader->db;
    int code = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return reader_fail(verifier->reader, code, err);
    int result = reader_read_meta(verifier->reader, err);
    *ret_restart = result == 0 && verifier->reader->meta.pruned_seq != verifier->begins_after;
    if (result == 0 && !*ret_restart)
        result = verify_rows(verifier, verifier->reader->meta.head_seq, ret_restart, err);
    if (result == 0 && !*ret_restart)
        result = recomputed_check_open(verifier, err);
    (void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return result;
}

static int pass(struct verifier *verifier, struct error **err)
{
    int result = 0;
    for (int restarts = 0; restarts <= RESTARTS_MAX; restarts++) {
        bool restart = false;
        begin_pass(verifier);
        result = follow(verifier, &restart, err);
        if (result == 0 && !restart)
            result = finish(verifier, &restart, err);
        if (result < 0 || !restart)
            return result;
        /* Retention moved on while we read: what it says now is where the history begins. */
        free_list(&verifier->result->findings, &verifier->result->finding_count);
        verifier->result->findings_left_out = 0;
        result = refresh(verifier, err);
        if (result < 0)
            return result;
    }
    return error_set(err, ERROR_FAILED,
                     "journal %s: retention removes entries faster than they can be read: try again",
                     verifier->reader->place.path);
}

static int check_all(struct verifier *verifier, struct error **err)
{
    int result = refresh(verifier, err);
    if (result == 0)
        result = pass(verifier, err);
    if (result == 0)
        result = verify_schema(verifier, err);
    if (result == 0 && !verifier->options->quick)
        result = verify_integrity(verifier, err);
    if (result < 0)
        return result;
    check_beginning(verifier);
    for (size_t i = 0; i < verifier->options->head_count; i++)
        check_head(verifier, &verifier->options->heads[i]);
    remark_clock(verifier);
    const struct journal_meta *meta = &verifier->reader->meta;
    struct journal_verify_result *done = verifier->result;
    done->first_seq = verifier->begins_after + 1;
    done->head_seq = meta->head_seq;
    memcpy(done->head_hash, meta->head_hash, SHA256_SIZE);
    char library[JOURNAL_LIBRARY_TEXT_SIZE];
    journal_library_text(library);
    verify_remark(verifier, 0, "SQLite %s", library);
    return 0;
}

int journal_verify(struct journal_reader *reader, const struct journal_verify_options *options,
                   struct journal_verify_result *ret, struct error **err)
{
    struct journal_verify_result result = {0};
    struct verifier verifier = {
        .reader = reader, .options = options, .result = &result, .chain = chain_make()};
    int code = check_all(&verifier, err);
    recomputed_free(verifier.recomputed);
    chain_free(verifier.chain);
    free(verifier.pruned_hash);
    if (code < 0)
        journal_verify_result_done(&result);
    else
        *ret = result;
    return code;
}
