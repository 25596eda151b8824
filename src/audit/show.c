/* SPDX-License-Identifier: Apache-2.0
 *
 * `show`: one operation, with every step's before and after. */
#include "audit/escape.h"
#include "audit/story.h"
#include "base/time_text.h"

#include <inttypes.h>
#include <stdio.h>

/* --- for people ------------------------------------------------------------------------------------- */

static void add_field(struct buf *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "  begun     ...": the text is escaped. */
static void add_field(struct buf *out, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *text = xvasprintf(format, args);
    va_end(args);
    buf_addf(out, "  %-9s ", name);
    escape_plain(out, *text ? text : "-");
    buf_add_char(out, '\n');
}

static const char *or_dash(const char *text)
{
    return text && *text ? text : "-";
}

static void add_toned(const struct story *story, enum sheet_tone tone, const char *text)
{
    struct buf *out = &story->audit->out->text;
    buf_add_text(out, sheet_tone_on(&story->audit->look, tone));
    escape_plain(out, text);
    buf_add_text(out, sheet_tone_off(&story->audit->look, tone));
}

static const char *end_reason(const struct story *story)
{
    for (size_t i = 0; i < story->entry_count; i++)
        if (story->entries[i]->kind == JOURNAL_END)
            return story->entries[i]->reason;
    return NULL;
}

static void add_run(const struct story *story, const struct journal_run_record *run, const char *name)
{
    struct buf *out = &story->audit->out->text;
    struct id_text id;
    char at[40];
    audit_id_text(story->audit, story->journal, run->run, &id);
    sheet_format_time(&story->audit->look, run->end == JOURNAL_RUN_LIVES ? run->begun_us : run->last_us, at);
    CLEANUP_FREE char *end = NULL;
    if (run->end == JOURNAL_RUN_LIVES)
        end = xasprintf("lives, since %s", at);
    else if (run->end == JOURNAL_RUN_STOPPED)
        end = xasprintf("stopped %s (%s)", at, run->stop_reason ? run->stop_reason : "as asked");
    else
        end = xasprintf("died, last entry %s", at);
    add_field(out, name, "%s: %s, version %s, pid %" PRId64 ", epoch %" PRId64 ", %s", id.text,
              or_dash(run->identity), or_dash(run->version), run->pid, run->epoch, end);
}

static void add_header(const struct story *story)
{
    struct buf *out = &story->audit->out->text;
    const struct journal_operation_record *operation = story->operation;
    struct id_text id;
    char at[40];
    char took[TIME_TEXT_SIZE];
    audit_id_text(story->audit, story->journal, operation->id, &id);
    buf_addf(out, "%sOperation %s: ", story->audit->look.has_color ? "\x1b[1m" : "", id.text);
    CLEANUP_FREE char *title =
        xasprintf("%s of %s/%s%s%s", operation->kind, operation->object, operation->name,
                  *operation->namespace ? " in " : "", operation->namespace);
    escape_plain(out, title);
    buf_add_text(out, story->audit->look.has_color ? "\x1b[0m\n" : "\n");
    add_field(out, "from", "%s", operation->come_from);
    bool is_unchanged = *operation->go_to && str_equal(operation->come_from, operation->go_to);
    add_field(out, "to", "%s", is_unchanged ? "unchanged" : operation->go_to);
    sheet_format_time(&story->audit->look, operation->begun_us, at);
    add_field(out, "begun", "%s", at);
    if (operation->ended_us) {
        sheet_format_time(&story->audit->look, operation->ended_us, at);
        duration_format(MAX(operation->ended_us - operation->begun_us, 0), took);
        add_field(out, "ended", "%s, after %s", at, took);
    }
    buf_add_text(out, "  outcome   ");
    add_toned(story, audit_tone_of(operation->outcome), operation->outcome ? operation->outcome : "open");
    const char *reason = end_reason(story);
    if (reason) {
        buf_add_text(out, ": ");
        escape_plain(out, reason);
    }
    buf_add_char(out, '\n');
    int retries = MAX(operation->attempts - operation->steps, 0);
    add_field(out, "steps", "%d, sent %d times, %d %s", operation->steps, operation->attempts, retries,
              retries == 1 ? "retry" : "retries");
    for (size_t i = 0; i < story->run_count; i++)
        add_run(story, story->runs[i], i == 0 ? "runs" : "");
}

static void add_part_title(const struct story *story, const struct story_part *part)
{
    struct buf *out = &story->audit->out->text;
    const struct journal_entry *begin = part->step ? &part->step->intent : &part->wait->begin;
    const char *outcome = story_part_outcome(part);
    struct id_text id;
    char took[TIME_TEXT_SIZE];
    audit_id_text(story->audit, story->journal, part->seq, &id);
    duration_format(part->end_us - part->begin_us, took);
    buf_addf(out, "\n%s %s  ", part->step ? "Step" : "Wait", id.text);
    CLEANUP_FREE char *what =
        xasprintf("%s %s/%s", or_dash(begin->action), or_dash(begin->object), or_dash(begin->name));
    escape_plain(out, what);
    buf_add_text(out, ": ");
    add_toned(story, part->is_open ? TONE_WARN : audit_tone_of(outcome), outcome);
    buf_addf(out, " %s %s", part->is_open ? "since" : "after", took);
    if (part->step && part->step->attempts > 1)
        buf_addf(out, ", sent %d times", part->step->attempts);
    if (part->wait) {
        duration_format(MAX(part->wait->budget_us, 0), took);
        buf_addf(out, ", budget %s", took);
        duration_format(audit_wait_spent_us(story->audit, story->journal, part->wait), took);
        buf_addf(out, ", spent %s", took);
    }
    buf_add_char(out, '\n');
    if (part->step) {
        buf_add_text(out, "      key ");
        escape_plain(out, or_dash(part->step->key));
        buf_add_char(out, '\n');
    }
}

static void add_word(struct buf *line, const char *name, const char *text)
{
    if (text && *text)
        buf_addf(line, "  %s%s%s", name, *name ? " " : "", text);
}

static void add_entry(const struct story *story, const struct journal_entry *entry, bool is_wide)
{
    struct buf *out = &story->audit->out->text;
    struct id_text seq;
    struct id_text run;
    char at[40];
    audit_id_text(story->audit, story->journal, entry->seq, &seq);
    audit_id_text(story->audit, story->journal, entry->run, &run);
    sheet_format_time(&story->audit->look, entry->at_us, at);
    buf_addf(out, "  %8s  %s  run %-5s  ", seq.text, at, run.text);
    CLEANUP_BUF struct buf line = BUF_INIT(1024 * 1024 * 64);
    if (entry->attempt)
        buf_addf(&line, "  attempt %d", entry->attempt);
    if (entry->http)
        buf_addf(&line, "  http %d", entry->http);
    if (entry->kind == JOURNAL_BEGIN || entry->kind == JOURNAL_END)
        add_word(&line, "", entry->action);
    add_word(&line, "version", entry->version);
    if (is_wide) {
        add_word(&line, "uid", entry->uid);
        add_word(&line, "audit-id", entry->audit_id);
        add_word(&line, "detail", entry->detail);
    }
    add_word(&line, "", entry->reason);
    buf_addf(out, line.length > 0 ? "%-10s" : "%s", journal_kind_text(entry->kind));
    escape_plain(out, buf_text(&line));
    buf_add_char(out, '\n');
}

static bool show_text(const struct story *story)
{
    bool is_wide = story->audit->look.format == SHEET_WIDE;
    add_header(story);
    buf_add_text(&story->audit->out->text, "\nOpened and closed\n");
    for (size_t i = 0; i < story->entry_count; i++)
        if (story->is_loose[i])
            add_entry(story, story->entries[i], is_wide);
    for (size_t i = 0; i < story->part_count; i++) {
        const struct story_part *part = &story->parts[i];
        add_part_title(story, part);
        for (size_t j = part->first_entry; j < story->entry_count; j = story->next_entry[j])
            add_entry(story, story->entries[j], is_wide);
        if (!out_row(story->audit->out))
            return false;
    }
    return true;
}

/* --- as a document ---------------------------------------------------------------------------------- */

/* One object with a member a section. YAML takes JSON rows as they are. */
struct document {
    const struct story *story;
    bool is_yaml;
    const struct audit_sheet *sheet; /* of the open section */
    bool is_first;
};

static void section(struct document *document, const char *name, const struct audit_sheet *sheet)
{
    struct buf *out = &document->story->audit->out->text;
    buf_addf(out, document->is_yaml ? "%s:" : ",\n \"%s\": [", name);
    document->sheet = sheet;
    document->is_first = true;
}

static void section_row(struct document *document, struct audit_row *row)
{
    struct buf *out = &document->story->audit->out->text;
    if (document->is_yaml)
        buf_add_text(out, "\n- ");
    else
        buf_add_text(out, document->is_first ? "\n  " : ",\n  ");
    document->is_first = false;
    sheet_add_json_row(out, &document->story->audit->look, document->sheet->columns, document->sheet->count,
                       row->cells);
    (void)out_row(document->story->audit->out);
}

static void section_end(struct document *document)
{
    struct buf *out = &document->story->audit->out->text;
    if (document->is_yaml)
        buf_add_text(out, document->is_first ? " []\n" : "\n");
    else
        buf_add_text(out, document->is_first ? "]" : "\n ]");
}

static void show_parts(struct document *document, bool are_steps)
{
    const struct story *story = document->story;
    section(document, are_steps ? "steps" : "waits", are_steps ? &audit_step_sheet : &audit_wait_sheet);
    for (size_t i = 0; i < story->part_count; i++) {
        struct audit_row row = {0};
        if (are_steps && story->parts[i].step)
            audit_row_of_step(story->audit, story->journal, story->parts[i].step, &row);
        else if (!are_steps && story->parts[i].wait)
            audit_row_of_wait(story->audit, story->journal, story->parts[i].wait, &row);
        else
            continue;
        section_row(document, &row);
    }
    section_end(document);
}

static void show_document(const struct story *story)
{
    struct document document = {.story = story, .is_yaml = story->audit->look.format == SHEET_YAML};
    struct buf *out = &story->audit->out->text;
    struct audit_row head = {0};
    audit_row_of_operation(story->audit, story->journal, story->operation, &head);
    buf_add_text(out, document.is_yaml ? "operation: " : "{\"operation\": ");
    sheet_add_json_row(out, &story->audit->look, audit_operation_sheet.columns, audit_operation_sheet.count,
                       head.cells);
    if (document.is_yaml)
        buf_add_char(out, '\n');
    section(&document, "runs", &audit_run_sheet);
    for (size_t i = 0; i < story->run_count; i++) {
        struct audit_row row = {0};
        audit_row_of_run(story->audit, story->journal, story->runs[i], &row);
        section_row(&document, &row);
    }
    section_end(&document);
    show_parts(&document, true);
    show_parts(&document, false);
    section(&document, "entries", &audit_entry_sheet);
    for (size_t i = 0; i < story->entry_count; i++) {
        struct audit_row row = {0};
        audit_row_of_entry(story->audit, story->journal, story->entries[i], &row);
        section_row(&document, &row);
    }
    section_end(&document);
    buf_add_text(out, document.is_yaml ? "" : "}\n");
}

/* CSV, JSON lines and names: the entries. */
static void show_rows(const struct story *story)
{
    struct sheet *sheet = sheet_begin(story->audit->out, &story->audit->look, audit_entry_sheet.columns,
                                      audit_entry_sheet.count);
    bool goes_on = true;
    for (size_t i = 0; goes_on && i < story->entry_count; i++) {
        struct audit_row row = {0};
        audit_row_of_entry(story->audit, story->journal, story->entries[i], &row);
        goes_on = sheet_row(sheet, row.cells);
    }
    sheet_end(sheet);
}

int audit_show(struct audit *audit, const char *operation, struct error **err)
{
    struct audit_journal *journal = NULL;
    int64_t id;
    int r = audit_find_operation(audit, operation, &journal, &id, err);
    if (r < 0)
        return r;
    struct story story;
    r = story_read(audit, journal, id, &story, err);
    if (r == 0) {
        enum sheet_format format = audit->look.format;
        if (format == SHEET_TABLE || format == SHEET_WIDE)
            (void)show_text(&story);
        else if (format == SHEET_JSON || format == SHEET_YAML)
            show_document(&story);
        else
            show_rows(&story);
    }
    story_done(&story);
    return r < 0 ? r : out_flush(audit->out, err);
}
