/* SPDX-License-Identifier: Apache-2.0
 *
 * `timeline`: operations on a time axis, a bar for each step and each wait, restarts of the controller
 * marked. As text for a terminal or a file, or as rows. */
#include "audit/escape.h"
#include "audit/story.h"
#include "base/time_text.h"

#include <inttypes.h>
#include <stdio.h>

enum { OPERATIONS_DEFAULT = 10, BAR_WIDTH_MIN = 16, LABEL_WIDTH_MIN = 12, RIGHT_WIDTH = 22, TICKS = 4 };

/* What a place of a bar shows. */
enum glyph {
    GLYPH_SPACE,
    GLYPH_STEP,
    GLYPH_WAIT,
    GLYPH_HELD,
    GLYPH_UNKNOWN,
    GLYPH_OPEN,
    GLYPH_RESTART,
    GLYPH_COUNT
};
static const char *const utf8_glyphs[GLYPH_COUNT] = {" ", "\xe2\x96\x88", "\xe2\x96\x91", "\xc2\xb7",
                                                     "?", "\xe2\x96\xb6", "\xe2\x94\x86"};
static const char *const ascii_glyphs[GLYPH_COUNT] = {" ", "#", "=", ".", "?", ">", "|"};

/* --- as text ---------------------------------------------------------------------------------------- */

struct picture {
    const struct story *story;
    const struct audit_filter *filter; /* parts of which object; NULL: all */
    struct buf *out;
    size_t label_width;
    size_t bar_width;
};

static const struct journal_entry *part_begin(const struct story_part *part)
{
    if (part->step)
        return &part->step->intent;
    ENSURE(part->wait);
    return &part->wait->begin;
}

/* All parts of the object's own operation, else those that target it. */
static bool is_shown(const struct story *story, const struct audit_filter *filter,
                     const struct story_part *part)
{
    if (!filter || !filter->object)
        return true;
    const struct journal_entry *begin = part_begin(part);
    bool is_own = str_equal(story->operation->object, filter->object) &&
                  str_equal(story->operation->name, filter->name);
    return is_own || (str_equal(begin->object, filter->object) && str_equal(begin->name, filter->name));
}

/* "gate Pod/mysql-4"; is_short: without the kind, which the action tells as well: "gate mysql-4". */
static char *part_label(const struct story_part *part, bool is_short)
{
    const struct journal_entry *begin = part_begin(part);
    struct buf text = BUF_INIT(1024 * 1024);
    if (part->wait)
        buf_add_text(&text, "wait ");
    escape_plain(&text, begin->action ? begin->action : "-");
    buf_add_char(&text, ' ');
    if (!is_short) {
        escape_plain(&text, begin->object ? begin->object : "-");
        buf_add_char(&text, '/');
    }
    escape_plain(&text, begin->name ? begin->name : "-");
    return buf_take(&text);
}

static size_t column_of(const struct picture *picture, int64_t position_us)
{
    int64_t total_us = MAX(picture->story->end_us - picture->story->begin_us, 1);
    int64_t offset_us = MIN(MAX(position_us - picture->story->begin_us, 0), total_us);
    return (size_t)((double)offset_us / (double)total_us * (double)(picture->bar_width - 1) + 0.5);
}

/* Pads text to width; cuts it when it is longer. */
static void add_padded(const struct picture *picture, const char *text, size_t width, bool is_right)
{
    const struct sheet_look *look = &picture->story->audit->look;
    size_t needed = text_width(text);
    size_t length = strlen(text);
    const char *tail = "";
    if (needed > width) {
        length = text_fit(text, width - 1);
        tail = look->has_utf8 ? "\xe2\x80\xa6" : "~";
        needed = width;
    }
    if (is_right)
        buf_addf(picture->out, "%*s", (int)(width - needed), "");
    buf_add(picture->out, text, length);
    buf_add_text(picture->out, tail);
    if (!is_right)
        buf_addf(picture->out, "%*s", (int)(width - needed), "");
}

static void fill_glyphs(unsigned char *bar, size_t from, size_t to, enum glyph glyph)
{
    for (size_t i = from; i <= to; i++)
        bar[i] = (unsigned char)glyph;
}

/* Times on hold, and where the answer to a sending stayed unknown. */
static void mark_entries(const struct picture *picture, const struct story_part *part, unsigned char *bar)
{
    const struct story *story = picture->story;
    size_t held_from = 0;
    bool is_held = false;
    for (size_t i = part->first_entry; i < story->entry_count; i = story->next_entry[i]) {
        const struct journal_entry *entry = story->entries[i];
        size_t at = column_of(picture, story_position_us(story, entry));
        if (entry->kind == JOURNAL_WAIT_HOLD) {
            held_from = at;
            is_held = true;
        } else if (is_held && (entry->kind == JOURNAL_WAIT_GO || entry->kind == JOURNAL_WAIT_END)) {
            fill_glyphs(bar, held_from, at, GLYPH_HELD);
            is_held = false;
        } else if (entry->kind == JOURNAL_UNKNOWN) {
            bar[at] = GLYPH_UNKNOWN;
        }
    }
    if (is_held)
        fill_glyphs(bar, held_from, column_of(picture, part->end_us), GLYPH_HELD);
}

static void mark_restarts(const struct picture *picture, unsigned char *bar)
{
    const struct story *story = picture->story;
    for (size_t i = 1; i < story->run_count; i++) {
        size_t at = column_of(picture, story->run_base_us[i]);
        if (bar[at] == GLYPH_SPACE)
            bar[at] = GLYPH_RESTART;
    }
}

static void add_part(const struct picture *picture, const struct story_part *part)
{
    const struct sheet_look *look = &picture->story->audit->look;
    const char *const *glyphs = look->has_utf8 ? utf8_glyphs : ascii_glyphs;
    const char *outcome = story_part_outcome(part);
    enum sheet_tone tone = part->is_open ? TONE_WARN : audit_tone_of(outcome);
    CLEANUP_FREE unsigned char *bar = xcalloc(picture->bar_width, 1);
    size_t from = column_of(picture, part->begin_us);
    size_t to = column_of(picture, part->end_us);
    fill_glyphs(bar, from, to, part->step ? GLYPH_STEP : GLYPH_WAIT);
    mark_entries(picture, part, bar);
    if (part->is_open)
        bar[to] = GLYPH_OPEN;
    mark_restarts(picture, bar);

    CLEANUP_FREE char *whole = part_label(part, false);
    CLEANUP_FREE char *label = part_label(part, text_width(whole) > picture->label_width);
    add_padded(picture, label, picture->label_width, false);
    buf_add_text(picture->out, "  ");
    for (size_t i = 0; i < picture->bar_width; i++) {
        if (i == from)
            buf_add_text(picture->out, sheet_tone_on(look, part->wait && !part->is_open ? TONE_DIM : tone));
        buf_add_text(picture->out, glyphs[bar[i]]);
        if (i == to)
            buf_add_text(picture->out, sheet_tone_off(look, part->wait && !part->is_open ? TONE_DIM : tone));
    }
    char took[TIME_TEXT_SIZE];
    duration_format(part->end_us - part->begin_us, took);
    buf_add_text(picture->out, "  ");
    add_padded(picture, took, 8, true);
    buf_addf(picture->out, "  %s", sheet_tone_on(look, tone));
    escape_plain(picture->out, outcome);
    buf_addf(picture->out, "%s\n", sheet_tone_off(look, tone));
}

/* "---- run 3 died, run 45 began 850ms later ----" */
static void add_restart(const struct picture *picture, size_t index)
{
    const struct story *story = picture->story;
    const struct journal_run_record *before = story->runs[index - 1];
    const struct journal_run_record *run = story->runs[index];
    struct id_text old;
    struct id_text new;
    char gap[TIME_TEXT_SIZE];
    audit_id_text(story->audit, story->journal, before->run, &old);
    audit_id_text(story->audit, story->journal, run->run, &new);
    duration_format(MAX(run->begun_us - before->last_us, 0), gap);
    const char *line = story->audit->look.has_utf8 ? "\xe2\x94\x80\xe2\x94\x80" : "--";
    buf_addf(picture->out, "%s%s restart: run %s %s, run %s began %s after its last entry %s%s\n",
             sheet_tone_on(&story->audit->look, TONE_WARN), line, old.text,
             before->end == JOURNAL_RUN_STOPPED ? "stopped" : "died", new.text, gap, line,
             sheet_tone_off(&story->audit->look, TONE_WARN));
}

/* Offsets from the beginning, each at its place; the end is always shown, what lies too close to it is not.
 */
static void add_axis(const struct picture *picture)
{
    int64_t total_us = picture->story->end_us - picture->story->begin_us;
    CLEANUP_FREE char *line = xmalloc(picture->bar_width + 1);
    memset(line, ' ', picture->bar_width);
    char last[TIME_TEXT_SIZE];
    duration_format(total_us, last);
    size_t end = picture->bar_width - MIN(strlen(last), picture->bar_width);
    memcpy(line + end, last, picture->bar_width - end);
    line[picture->bar_width] = '\0';
    size_t free_from = 0;
    for (int i = 0; i < TICKS; i++) {
        char text[TIME_TEXT_SIZE];
        duration_format(total_us / TICKS * i, text);
        size_t length = strlen(text);
        size_t at = (picture->bar_width - 1) * (size_t)i / TICKS;
        if (at < free_from || at + length + 1 > end)
            continue;
        memcpy(line + at, text, length);
        free_from = at + length + 1;
    }
    buf_addf(picture->out, "%*s  %s\n", (int)picture->label_width, "", line);
}

static void add_title(const struct picture *picture)
{
    const struct story *story = picture->story;
    const struct journal_operation_record *operation = story->operation;
    struct id_text id;
    char at[40];
    char took[TIME_TEXT_SIZE];
    audit_id_text(story->audit, story->journal, operation->id, &id);
    duration_format(story->end_us - story->begin_us, took);
    sheet_format_time(&story->audit->look, operation->begun_us, at);
    CLEANUP_FREE char *change = audit_change_text(operation);
    CLEANUP_FREE char *title = xasprintf(
        "Operation %s: %s of %s/%s%s%s%s%s", id.text, operation->kind, operation->object, operation->name,
        *operation->namespace ? " in " : "", operation->namespace, *change ? ", " : "", change);
    buf_add_text(picture->out, story->audit->look.has_color ? "\x1b[1m" : "");
    escape_plain(picture->out, title);
    buf_add_text(picture->out, story->audit->look.has_color ? "\x1b[0m\n" : "\n");
    buf_addf(picture->out, "begun %s, %s", at,
             sheet_tone_on(&story->audit->look, audit_tone_of(operation->outcome)));
    escape_plain(picture->out, operation->outcome ? operation->outcome : "open");
    buf_addf(picture->out, "%s %s %s\n",
             sheet_tone_off(&story->audit->look, audit_tone_of(operation->outcome)),
             operation->outcome ? "after" : "for", took);
}

/* The label takes what it needs, up to two fifths of the width; the bar what is left. */
static void measure(struct picture *picture)
{
    const struct story *story = picture->story;
    size_t columns = story->audit->look.columns;
    size_t limit = MAX(columns * 2 / 5, (size_t)LABEL_WIDTH_MIN);
    size_t needed = LABEL_WIDTH_MIN;
    for (size_t i = 0; i < story->part_count; i++) {
        if (!is_shown(story, picture->filter, &story->parts[i]))
            continue;
        CLEANUP_FREE char *whole = part_label(&story->parts[i], false);
        CLEANUP_FREE char *label = part_label(&story->parts[i], text_width(whole) > limit);
        needed = MAX(needed, text_width(label));
    }
    picture->label_width = MIN(needed, limit);
    size_t used = picture->label_width + 2 + RIGHT_WIDTH;
    picture->bar_width = columns > used + BAR_WIDTH_MIN ? columns - used : BAR_WIDTH_MIN;
}

static bool draw(const struct story *story, const struct audit_filter *filter)
{
    struct picture picture = {.story = story, .filter = filter, .out = &story->audit->out->text};
    measure(&picture);
    add_title(&picture);
    add_axis(&picture);
    size_t run = 1;
    for (size_t i = 0; i < story->part_count; i++) {
        const struct story_part *part = &story->parts[i];
        for (; run < story->run_count && story->runs[run]->run < part->seq; run++)
            add_restart(&picture, run);
        if (is_shown(story, filter, part))
            add_part(&picture, part);
        if (!out_row(story->audit->out))
            return false;
    }
    for (; run < story->run_count; run++)
        add_restart(&picture, run);
    return out_row(story->audit->out);
}

/* --- as rows ---------------------------------------------------------------------------------------- */

enum {
    PART_OPERATION,
    PART_ID,
    PART_WHAT,
    PART_ACTION,
    PART_OBJECT,
    PART_NAMESPACE,
    PART_NAME,
    PART_BEGUN,
    PART_OFFSET,
    PART_DURATION,
    PART_OUTCOME,
    PART_ATTEMPTS,
    PART_RUN,
    PART_JOURNAL,
    PART_COLUMNS
};

static const struct sheet_column part_columns[PART_COLUMNS] = {
    [PART_OPERATION] = {"operation", "OPERATION", SHEET_ID, IN_DATA, 0, 0},
    [PART_ID] = {"id", "ID", SHEET_ID, IN_DATA, 0, 0},
    [PART_WHAT] = {"what", "WHAT", SHEET_TEXT, IN_DATA, 0, 0},
    [PART_ACTION] = {"action", "ACTION", SHEET_TEXT, IN_DATA, 0, 0},
    [PART_OBJECT] = {"object", "OBJECT", SHEET_TEXT, IN_DATA, 0, 0},
    [PART_NAMESPACE] = {"namespace", "NAMESPACE", SHEET_TEXT, IN_DATA, 0, 0},
    [PART_NAME] = {"name", "NAME", SHEET_TEXT, IN_DATA, 0, 0},
    [PART_BEGUN] = {"begun", "BEGUN", SHEET_TIME, IN_DATA, 0, 0},
    [PART_OFFSET] = {"offset_s", "OFFSET", SHEET_DURATION, IN_DATA, 0, 0},
    [PART_DURATION] = {"duration_s", "TOOK", SHEET_DURATION, IN_DATA, 0, 0},
    [PART_OUTCOME] = {"outcome", "OUTCOME", SHEET_TEXT, IN_DATA, 0, 0},
    [PART_ATTEMPTS] = {"attempts", "ATTEMPTS", SHEET_NUMBER, IN_DATA, 0, 0},
    [PART_RUN] = {"run", "RUN", SHEET_ID, IN_DATA, 0, 0},
    [PART_JOURNAL] = {"journal", "JOURNAL", SHEET_TEXT, IN_DATA, 0, 0},
};

static bool add_rows(struct sheet *sheet, const struct story *story, const struct audit_filter *filter)
{
    bool goes_on = true;
    for (size_t i = 0; goes_on && i < story->part_count; i++) {
        const struct story_part *part = &story->parts[i];
        if (!is_shown(story, filter, part))
            continue;
        const struct journal_entry *begin = part_begin(part);
        struct audit_row row = {0};
        struct sheet_cell *cells = row.cells;
        cells[PART_OPERATION] =
            audit_id_cell(story->audit, story->journal, story->operation->id, &row.ids[0]);
        cells[PART_ID] = audit_id_cell(story->audit, story->journal, part->seq, &row.ids[1]);
        cells[PART_WHAT] = cell_text(part->step ? "step" : "wait");
        cells[PART_ACTION] = cell_text(begin->action);
        cells[PART_OBJECT] = cell_text(begin->object);
        cells[PART_NAMESPACE] = cell_text(begin->namespace);
        cells[PART_NAME] = cell_text(begin->name);
        cells[PART_BEGUN] = cell_number(part->begin_us);
        cells[PART_OFFSET] = cell_number(part->begin_us - story->begin_us);
        cells[PART_DURATION] = part->is_open ? cell_null() : cell_number(part->end_us - part->begin_us);
        cells[PART_OUTCOME] = cell_text(part->is_open ? NULL : story_part_outcome(part));
        cells[PART_ATTEMPTS] = part->step ? cell_number(part->step->attempts) : cell_null();
        cells[PART_RUN] = audit_id_cell(story->audit, story->journal, begin->run, &row.ids[2]);
        cells[PART_JOURNAL] = cell_text(story->journal->meta->journal_id);
        goes_on = sheet_row(sheet, cells);
    }
    return goes_on;
}

/* --- which ------------------------------------------------------------------------------------------ */

struct chosen {
    const struct audit_journal *journal;
    int64_t id;
};

struct choice {
    struct chosen *items;
    size_t count;
};

static bool choose(void *context, const struct record *record)
{
    struct choice *choice = context;
    choice->items = xreallocarray(choice->items, choice->count + 1, sizeof *choice->items);
    choice->items[choice->count++] = (struct chosen){.journal = record->journal, .id = record->seq};
    return true;
}

/* Newest first. */
static int choose_operations(struct audit *audit, const char *operation, const struct audit_filter *filter,
                             struct choice *ret, struct error **err)
{
    if (operation) {
        struct audit_journal *journal = NULL;
        int64_t id = 0;
        int r = audit_find_operation(audit, operation, &journal, &id, err);
        if (r < 0)
            return r;
        ret->items = xcalloc(1, sizeof *ret->items);
        ret->items[ret->count++] = (struct chosen){.journal = journal, .id = id};
        return 0;
    }
    struct audit_filter bounded = *filter;
    bool is_filtered = filter->object || filter->namespace || filter->kind || filter->outcome ||
                       filter->since_us || filter->until_us;
    if (bounded.limit == 0)
        bounded.limit = is_filtered ? OPERATIONS_DEFAULT : 1;
    int r = records_read(audit, RECORD_OPERATION, &bounded, true, choose, ret, err);
    if (r == 0 && ret->count == 0 && filter->object)
        return error_set(err, ERROR_NOT_FOUND,
                         "no operation has to do with %s/%s: `neoset-audit list` shows those there are",
                         filter->object, filter->name);
    if (r == 0 && ret->count == 0)
        audit_say(audit, "no operations");
    return r;
}

int audit_timeline(struct audit *audit, const char *operation, const struct audit_filter *filter,
                   struct error **err)
{
    struct choice choice = {0};
    bool is_text = audit->look.format == SHEET_TABLE || audit->look.format == SHEET_WIDE;
    int r = choose_operations(audit, operation, filter, &choice, err);
    struct sheet *sheet = NULL;
    if (r == 0 && !is_text)
        sheet = sheet_begin(audit->out, &audit->look, part_columns, PART_COLUMNS);
    bool goes_on = true;
    for (size_t i = choice.count; r == 0 && goes_on && i-- > 0;) {
        struct story story;
        r = story_read(audit, choice.items[i].journal, choice.items[i].id, &story, err);
        if (r == 0)
            goes_on = sheet ? add_rows(sheet, &story, operation ? NULL : filter)
                            : draw(&story, operation ? NULL : filter);
        story_done(&story);
        if (!sheet && i > 0)
            buf_add_char(&audit->out->text, '\n');
    }
    if (sheet)
        sheet_end(sheet);
    free(choice.items);
    return r < 0 ? r : out_flush(audit->out, err);
}
