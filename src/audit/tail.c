/* SPDX-License-Identifier: Apache-2.0
 *
 * `tail`: entries as they come. The cursor is what `verify --head` takes too, ID:SEQ:HASH, a line a journal:
 * so a journal that went back or forked under a cursor is noticed. */
#include "audit/belonging.h"
#include "audit/parts.h"

#include <inttypes.h>

struct tail {
    struct audit *audit;
    const struct audit_filter *filter;
    const struct audit_tail_options *options;
    struct sheet *sheet;
    struct audit_row row;
    int64_t after_seqs[AUDIT_JOURNALS_MAX]; /* delivered up to here */
};

/* --- where to begin --------------------------------------------------------------------------------- */

static bool take_hash(void *context, const struct journal_entry *entry)
{
    memcpy(context, entry->hash, SHA256_SIZE);
    return false;
}

/* The journal must still hold what was delivered last. */
static int check_cursor(const struct tail *tail, size_t index, const struct journal_head *head,
                        struct error **err)
{
    const struct journal_meta *meta = tail->audit->journals[index].meta;
    if (head->seq > meta->head_seq)
        return error_set(err, ERROR_FORKED,
                         "%s ends at entry %" PRId64 ", but the cursor is at %" PRId64
                         ": the journal went back (a restored backup?); remove the cursor file to begin anew",
                         meta->path, meta->head_seq, head->seq);
    if (head->seq < meta->pruned_seq) {
        audit_say(tail->audit,
                  "%s: entries %" PRId64 " to %" PRId64 " were removed by retention before they were read",
                  meta->path, head->seq + 1, meta->pruned_seq);
        return 0;
    }
    uint8_t hash[SHA256_SIZE];
    memcpy(hash, meta->pruned_hash, SHA256_SIZE);
    int r = head->seq > meta->pruned_seq
                ? journal_read_entry(tail->audit->journals[index].reader, head->seq, take_hash, hash, err)
                : 0;
    if (r == 0 && head->seq > 0 && memcmp(hash, head->hash, SHA256_SIZE) != 0)
        return error_set(err, ERROR_FORKED,
                         "entry %" PRId64
                         " of %s is not the one that was delivered: the journal forked; remove the "
                         "cursor file to begin anew",
                         head->seq, meta->path);
    return r;
}

static int read_cursor(struct tail *tail, const char *text, struct error **err)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        CLEANUP_FREE char *line = xstrndup(text, length);
        struct journal_head head;
        int r = journal_head_parse(line, &head, err);
        if (r < 0)
            return error_wrap(err, r, "the cursor file");
        for (size_t i = 0; i < tail->audit->count; i++) {
            if (!str_equal(tail->audit->journals[i].meta->journal_id, head.journal_id))
                continue;
            r = check_cursor(tail, i, &head, err);
            if (r < 0)
                return r;
            tail->after_seqs[i] = head.seq;
        }
        text += length + (text[length] == '\n');
    }
    return 0;
}

/* Counts entries that fit backwards. */
struct countdown {
    struct belonging *belonging;
    int64_t left;
    int64_t seq; /* of the oldest that fits */
    int result;
    struct error *err;
};

static bool count_back(void *context, const struct journal_entry *entry)
{
    struct countdown *countdown = context;
    bool belongs = false;
    countdown->result = belonging_check(countdown->belonging, entry, &belongs, &countdown->err);
    if (countdown->result < 0)
        return false;
    if (belongs) {
        countdown->seq = entry->seq;
        countdown->left--;
    }
    return countdown->left > 0;
}

/* after_seqs so that `last` entries of each journal come. */
static int go_back(struct tail *tail, int64_t last, struct error **err)
{
    for (size_t i = 0; i < tail->audit->count; i++) {
        const struct audit_journal *journal = &tail->audit->journals[i];
        tail->after_seqs[i] = journal->meta->head_seq;
        struct journal_entry_filter filter = {
            .since_us = tail->filter->since_us, .until_us = tail->filter->until_us, .newest_first = true};
        int r = record_entry_kinds(tail->filter->kind, &filter.kinds, err);
        if (r < 0)
            return r;
        if (last == 0)
            continue;
        struct countdown countdown = {.belonging = belonging_make(journal, tail->filter), .left = last};
        r = journal_read_entries(journal->reader, &filter, count_back, &countdown, err);
        belonging_free(countdown.belonging);
        if (r == 0 && countdown.result < 0) {
            r = countdown.result;
            if (err)
                *err = STEAL(countdown.err);
        }
        error_free(countdown.err);
        if (r < 0)
            return r;
        if (countdown.seq > 0)
            tail->after_seqs[i] = countdown.seq - 1;
    }
    return 0;
}

/* --- going on --------------------------------------------------------------------------------------- */

static bool print_entry(void *context, const struct record *record)
{
    struct tail *tail = context;
    audit_row_of_entry(tail->audit, record->journal, record->entry, &tail->row);
    return sheet_row(tail->sheet, tail->row.cells);
}

static int keep_cursor(const struct tail *tail, struct error **err)
{
    if (!tail->options->keep_cursor)
        return 0;
    CLEANUP_BUF struct buf text = BUF_INIT((size_t)1024 * 1024);
    for (size_t i = 0; i < tail->audit->count; i++) {
        CLEANUP_FREE char *head = journal_head_format(tail->audit->journals[i].meta);
        buf_addf(&text, "%s\n", head);
    }
    return tail->options->keep_cursor(tail->options->context, buf_text(&text), err);
}

/* What is new since the last call; the cursor moves only once it was written. */
static int deliver(struct tail *tail, bool *ret_goes_on, struct error **err)
{
    struct out *out = tail->audit->out;
    int r = records_read_after(tail->audit, tail->after_seqs, tail->filter, print_entry, tail, err);
    if (r < 0)
        return r;
    sheet_release(tail->sheet);
    r = out_flush(out, err);
    *ret_goes_on = !out->closed;
    if (r < 0 || out->closed)
        return r;
    for (size_t i = 0; i < tail->audit->count; i++)
        tail->after_seqs[i] = tail->audit->journals[i].meta->head_seq;
    return keep_cursor(tail, err);
}

static int follow(struct tail *tail, struct error **err)
{
    bool goes_on = true;
    while (goes_on && tail->options->wait(tail->options->context)) {
        bool any_moved = false;
        for (size_t i = 0; i < tail->audit->count; i++) {
            bool moved = false;
            int r = journal_reader_refresh(tail->audit->journals[i].reader, &moved, err);
            if (r < 0)
                return r;
            any_moved = any_moved || moved;
        }
        if (!any_moved)
            continue;
        int r = deliver(tail, &goes_on, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int audit_tail(struct audit *audit, const struct audit_filter *filter,
               const struct audit_tail_options *options, struct error **err)
{
    if (filter->outcome)
        return error_set(err, ERROR_USAGE, "entries have no outcome: use --kind applied,rejected");
    struct tail tail = {.audit = audit, .filter = filter, .options = options};
    int r = options->last >= 0 ? go_back(&tail, options->last, err) : 0;
    if (r == 0 && options->last < 0 && options->cursor_text)
        r = read_cursor(&tail, options->cursor_text, err);
    if (r < 0)
        return r;
    tail.sheet = sheet_begin(audit->out, &audit->look, audit_entry_sheet.columns, audit_entry_sheet.count);
    bool goes_on = true;
    r = deliver(&tail, &goes_on, err);
    if (r == 0 && goes_on && options->wait)
        r = follow(&tail, err);
    sheet_end(tail.sheet);
    audit_row_done(&tail.row);
    return r < 0 ? r : out_flush(audit->out, err);
}
