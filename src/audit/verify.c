/* SPDX-License-Identifier: Apache-2.0
 *
 * `verify` and `backup`. */
#include "audit/escape.h"
#include "audit/parts.h"

#include <inttypes.h>

enum { FOUND_PATH, FOUND_JOURNAL, FOUND_WHAT, FOUND_SEQ, FOUND_TEXT, FOUND_COLUMNS };

/* As rows: one `verdict` a journal ("intact" or "broken"), one `head`, then findings and remarks. */
static const struct sheet_column found_columns[FOUND_COLUMNS] = {
    [FOUND_PATH] = {"path", "PATH", SHEET_TEXT, IN_ALL, 1, 0},
    [FOUND_JOURNAL] = {"journal", "JOURNAL", SHEET_TEXT, IN_ALL, 2, 0},
    [FOUND_WHAT] = {"what", "WHAT", SHEET_TEXT, IN_ALL, 3, 0},
    [FOUND_SEQ] = {"seq", "SEQ", SHEET_NUMBER, IN_ALL, 4, 0},
    [FOUND_TEXT] = {"text", "TEXT", SHEET_TEXT, IN_ALL, 5, 0},
};

static bool is_text(const struct audit *audit)
{
    return audit->look.format == SHEET_TABLE || audit->look.format == SHEET_WIDE;
}

static void add_line(struct audit *audit, enum sheet_tone tone, const char *head, const char *text)
{
    struct buf *out = &audit->out->text;
    buf_addf(out, "%s%s%s", sheet_tone_on(&audit->look, tone), head, sheet_tone_off(&audit->look, tone));
    escape_plain(out, text);
    buf_add_char(out, '\n');
}

static void add_finding_line(struct audit *audit, enum sheet_tone tone, const char *head,
                             const struct journal_finding *finding)
{
    CLEANUP_FREE char *text = finding->seq ? xasprintf("entry %" PRId64 ": %s", finding->seq, finding->text)
                                           : xstrdup(finding->text);
    add_line(audit, tone, head, text);
}

static void report_text(struct audit *audit, const struct audit_journal *journal, const char *head,
                        const struct journal_verify_result *result)
{
    bool is_intact = result->finding_count == 0;
    CLEANUP_FREE char *title = xasprintf("journal %s (%s)", journal->meta->journal_id, journal->meta->path);
    add_line(audit, is_intact ? TONE_GOOD : TONE_BAD, is_intact ? "intact: " : "BROKEN: ", title);
    CLEANUP_FREE char *counts =
        xasprintf("%" PRId64 " entries (%" PRId64 " to %" PRId64 "), %" PRId64 " bodies", result->entries,
                  result->first_seq, result->head_seq, result->bodies);
    add_line(audit, TONE_NONE, "checked: ", counts);
    add_line(audit, TONE_NONE, "head: ", head);
    for (size_t i = 0; i < result->finding_count; i++)
        add_finding_line(audit, TONE_BAD, "wrong: ", &result->findings[i]);
    if (result->findings_left_out > 0) {
        CLEANUP_FREE char *more = xasprintf("%" PRId64 " more", result->findings_left_out);
        add_line(audit, TONE_BAD, "wrong: ", more);
    }
    for (size_t i = 0; i < result->remark_count; i++)
        add_finding_line(audit, TONE_NONE, "remark: ", &result->remarks[i]);
}

static void add_found(struct sheet *sheet, const struct audit_journal *journal, const char *what, int64_t seq,
                      const char *text)
{
    struct sheet_cell cells[FOUND_COLUMNS] = {
        [FOUND_PATH] = cell_text(journal->meta->path),
        [FOUND_JOURNAL] = cell_text(journal->meta->journal_id),
        [FOUND_WHAT] = cell_text(what),
        [FOUND_SEQ] = cell_number_or_null(seq),
        [FOUND_TEXT] = cell_text(text),
    };
    sheet_row(sheet, cells);
}

static void report_rows(struct sheet *sheet, const struct audit_journal *journal, const char *head,
                        const struct journal_verify_result *result)
{
    add_found(sheet, journal, "verdict", 0, result->finding_count == 0 ? "intact" : "broken");
    CLEANUP_FREE char *entries = xasprintf("%" PRId64, result->entries);
    add_found(sheet, journal, "entries", 0, entries);
    add_found(sheet, journal, "head", result->head_seq, head);
    for (size_t i = 0; i < result->finding_count; i++)
        add_found(sheet, journal, "finding", result->findings[i].seq, result->findings[i].text);
    for (size_t i = 0; i < result->remark_count; i++)
        add_found(sheet, journal, "remark", result->remarks[i].seq, result->remarks[i].text);
}

/* The heads of one journal; a head that no journal answers to goes to the first one, which then says so. */
static size_t heads_for(const struct audit *audit, size_t index, const struct journal_head *heads,
                        size_t count, struct journal_head *ret)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        size_t owner = 0;
        for (size_t j = audit->count; j-- > 0;)
            if (str_equal(audit->journals[j].meta->journal_id, heads[i].journal_id))
                owner = j;
        if (owner == index)
            ret[found++] = heads[i];
    }
    return found;
}

/* ID:SEQ:HASH as `--head` takes it, the caller's. */
static char *head_text(const struct audit_journal *journal, const struct journal_verify_result *result)
{
    struct buf text = BUF_INIT(256);
    buf_addf(&text, "%s:%" PRId64 ":", journal->meta->journal_id, result->head_seq);
    for (size_t i = 0; i < SHA256_SIZE; i++)
        buf_addf(&text, "%02x", result->head_hash[i]);
    return buf_take(&text);
}

int audit_verify(struct audit *audit, const struct audit_verify_options *options, bool *ret_is_intact,
                 struct error **err)
{
    struct sheet *sheet = NULL;
    if (!is_text(audit))
        sheet = sheet_begin(audit->out, &audit->look, found_columns, FOUND_COLUMNS);
    CLEANUP_FREE struct journal_head *own = xcalloc(options->head_count + 1, sizeof *own);
    bool is_intact = true;
    int r = 0;
    for (size_t i = 0; r == 0 && i < audit->count; i++) {
        const struct audit_journal *journal = &audit->journals[i];
        struct journal_verify_options verify = {.quick = options->is_quick,
                                                .heads = own,
                                                .progress = options->progress,
                                                .context = options->context};
        verify.head_count = heads_for(audit, i, options->heads, options->head_count, own);
        struct journal_verify_result result = {0};
        r = journal_verify(journal->reader, &verify, &result, err);
        if (r < 0)
            break;
        CLEANUP_FREE char *head = head_text(journal, &result);
        is_intact = is_intact && result.finding_count == 0;
        if (sheet)
            report_rows(sheet, journal, head, &result);
        else
            report_text(audit, journal, head, &result);
        journal_verify_result_done(&result);
    }
    if (sheet)
        sheet_end(sheet);
    if (r == 0)
        *ret_is_intact = is_intact;
    return r < 0 ? r : out_flush(audit->out, err);
}

int audit_backup(struct audit *audit, const char *target, struct error **err)
{
    if (audit->count != 1)
        return error_set(err, ERROR_USAGE, "backup copies one journal at a time: give one --journal");
    return journal_backup(audit->journals[0].reader, target, NULL, NULL, err);
}
