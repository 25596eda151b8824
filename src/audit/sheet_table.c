/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables for people. Rows are held back until their widths are known: all of a usual listing, the first
 * ROWS_HELD_MAX of a very long one; later rows use those widths. */
#include "audit/escape.h"
#include "audit/sheet_parts.h"

#include <stdio.h>

enum {
    ROWS_HELD_MAX = 10000,
    HELD_BYTES_MAX = 32 * 1024 * 1024,
    COLUMNS_MAX = 40,
    GAP = 2,
    SHRUNK_WIDTH_MIN = 8,
    SHRUNK_WIDTH_FAIR = 12, /* no column is dropped to make another one wider than this */
    CUT = NARROW_CUT | NARROW_CUT_FRONT,
    SECONDS_BYTES = 19, /* "2026-11-30T07:38:15" */
    FRACTION_BYTES = 7, /* ".123456" */
    RULE = 0x40,
    CELL_BYTES_MAX = 16 * 1024, /* of a text in a table; other formats show all of it */
};

struct sheet_table {
    const struct sheet_column *shown[COLUMNS_MAX];
    size_t index[COLUMNS_MAX]; /* of shown[i] in the sheet's columns */
    size_t width[COLUMNS_MAX];
    size_t count;
    struct buf held;  /* cell texts, each ended by NUL; rows behind each other */
    struct buf tones; /* a byte a cell; RULE and the tone for a row that is one text */
    size_t rows_held;
    size_t last;       /* the last one that is shown */
    bool has_seconds;  /* times are shown without their microseconds */
    bool is_streaming; /* widths are fixed, the header is out */
};

static bool is_before(const struct sheet_table *table, size_t a, size_t b)
{
    if (table->shown[a]->place != table->shown[b]->place)
        return table->shown[a]->place < table->shown[b]->place;
    return table->index[a] < table->index[b];
}

static void swap(struct sheet_table *table, size_t a, size_t b)
{
    const struct sheet_column *column = table->shown[a];
    size_t index = table->index[a];
    table->shown[a] = table->shown[b];
    table->index[a] = table->index[b];
    table->shown[b] = column;
    table->index[b] = index;
}

struct sheet_table *sheet_table_make(const struct sheet *sheet)
{
    struct sheet_table *table = xcalloc(1, sizeof *table);
    table->held = BUF_INIT(HELD_BYTES_MAX);
    table->tones = BUF_INIT(HELD_BYTES_MAX);
    unsigned bit = sheet->look.format == SHEET_WIDE ? IN_WIDE : IN_TABLE;
    for (size_t i = 0; i < sheet->count; i++) {
        if (!(sheet->columns[i].where & bit))
            continue;
        ENSURE(table->count < COLUMNS_MAX);
        table->shown[table->count] = &sheet->columns[i];
        table->index[table->count++] = i;
    }
    for (size_t i = 1; i < table->count; i++)
        for (size_t j = i; j > 0 && is_before(table, j, j - 1); j--)
            swap(table, j, j - 1);
    for (size_t i = 0; i < table->count; i++)
        table->width[i] = text_width(table->shown[i]->title);
    return table;
}

/* most: of a column that may be cut. Those that are not shown have no width. */
static size_t total_width(const struct sheet_table *table, size_t most)
{
    size_t total = 0;
    for (size_t i = 0; i < table->count; i++) {
        size_t width = table->width[i];
        if (table->shown[i]->narrow & CUT)
            width = MIN(width, MAX(most, text_width(table->shown[i]->title)));
        total += width + (total > 0 && width > 0 ? GAP : 0);
    }
    return total;
}

static void drop_microseconds(struct sheet_table *table)
{
    table->has_seconds = true;
    for (size_t i = 0; i < table->count; i++)
        if (table->shown[i]->type == SHEET_TIME && table->width[i] >= SECONDS_BYTES + FRACTION_BYTES)
            table->width[i] -= FRACTION_BYTES;
}

/* One column after another, until the rest has a fair share. */
static void drop_columns(const struct sheet *sheet)
{
    struct sheet_table *table = sheet->table;
    while (total_width(table, SHRUNK_WIDTH_FAIR) > sheet->look.columns) {
        size_t least = table->count;
        for (size_t i = 0; i < table->count; i++)
            if (table->width[i] > 0 && table->shown[i]->narrow >= NARROW_DROP(1) &&
                (least == table->count || table->shown[i]->narrow > table->shown[least]->narrow))
                least = i;
        if (least == table->count)
            return;
        table->width[least] = 0;
    }
}

static void find_last(struct sheet_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->width[i] > 0)
            table->last = i;
}

/* Takes from the widest column that may give until the table fits or nothing is left to give. */
static void shrink(const struct sheet *sheet)
{
    struct sheet_table *table = sheet->table;
    if (total_width(table, SIZE_MAX) > sheet->look.columns)
        drop_microseconds(table);
    if (total_width(table, SIZE_MAX) > sheet->look.columns)
        drop_columns(sheet);
    for (size_t total = total_width(table, SIZE_MAX); total > sheet->look.columns; total--) {
        size_t widest = table->count;
        for (size_t i = 0; i < table->count; i++) {
            size_t least = MAX(text_width(table->shown[i]->title), (size_t)SHRUNK_WIDTH_MIN);
            if ((table->shown[i]->narrow & CUT) && table->width[i] > least &&
                (widest == table->count || table->width[i] > table->width[widest]))
                widest = i;
        }
        if (widest == table->count)
            return;
        table->width[widest]--;
    }
}

static void add_spaces(struct buf *out, size_t count)
{
    static const char spaces[] = "                                                                ";
    while (count > 0) {
        size_t piece = MIN(count, sizeof spaces - 1);
        buf_add(out, spaces, piece);
        count -= piece;
    }
}

/* Where the end of text begins that has this width at most. */
static size_t end_that_fits(const char *text, size_t width)
{
    size_t from = 0;
    while (text_width(text + from) > width) {
        from++;
        while (((unsigned char)text[from] & 0xc0) == 0x80)
            from++;
    }
    return from;
}

/* What is shown of a text: a part of it, and a mark or the rest of it before or behind. */
struct shown {
    const char *before, *text, *behind;
    size_t length; /* of text */
    size_t width;
};

static struct shown shown_of(const struct sheet *sheet, const struct sheet_column *column, size_t room,
                             const char *text)
{
    const char *mark = sheet->look.has_utf8 ? "\xe2\x80\xa6" : "~";
    size_t width = text_width(text);
    size_t length = strlen(text);
    bool has_fraction = length > SECONDS_BYTES && text[SECONDS_BYTES] == '.';
    if (column->type == SHEET_TIME && sheet->table->has_seconds && has_fraction)
        return (struct shown){"", text, text + SECONDS_BYTES + FRACTION_BYTES, SECONDS_BYTES,
                              width - FRACTION_BYTES};
    if (width <= room || !sheet->look.is_terminal || !(column->narrow & CUT))
        return (struct shown){"", text, "", length, width};
    if (column->narrow & NARROW_CUT)
        return (struct shown){"", text, mark, text_fit(text, room - 1), room};
    const char *end = text + end_that_fits(text, room - 1);
    return (struct shown){mark, end, "", strlen(end), 1 + text_width(end)};
}

/* Numbers stand on the right, everything else on the left; the last column is not padded. */
static void add_cell(const struct sheet *sheet, size_t i, const char *text, enum sheet_tone tone)
{
    struct sheet_table *table = sheet->table;
    struct buf *out = &sheet->out->text;
    size_t room = table->width[i];
    if (room == 0)
        return;
    struct shown shown = shown_of(sheet, table->shown[i], room, text);
    size_t pad = room > shown.width ? room - shown.width : 0;
    bool is_right = table->shown[i]->type == SHEET_NUMBER || table->shown[i]->type == SHEET_DURATION;
    if (i > 0)
        add_spaces(out, GAP);
    if (is_right)
        add_spaces(out, pad);
    buf_add_text(out, sheet_tone_on(&sheet->look, tone));
    buf_add_text(out, shown.before);
    buf_add(out, shown.text, shown.length);
    buf_add_text(out, shown.behind);
    buf_add_text(out, sheet_tone_off(&sheet->look, tone));
    if (!is_right && i < table->last)
        add_spaces(out, pad);
}

static void add_header(const struct sheet *sheet)
{
    struct buf *out = &sheet->out->text;
    buf_add_text(out, sheet->look.has_color ? "\x1b[1m" : "");
    for (size_t i = 0; i < sheet->table->count; i++)
        add_cell(sheet, i, sheet->table->shown[i]->title, TONE_NONE);
    buf_add_text(out, sheet->look.has_color ? "\x1b[0m" : "");
    buf_add_char(out, '\n');
}

/* text may be cut at the terminal's edge, as cells are. */
static void add_rule(const struct sheet *sheet, const char *text, enum sheet_tone tone)
{
    struct buf *out = &sheet->out->text;
    buf_add_text(out, sheet_tone_on(&sheet->look, tone));
    buf_add(out, text, sheet->look.is_terminal ? text_fit(text, sheet->look.columns) : strlen(text));
    buf_add_text(out, sheet_tone_off(&sheet->look, tone));
}

/* Prints the rows held back, in the widths that they have. */
static void release(const struct sheet *sheet)
{
    struct sheet_table *table = sheet->table;
    const char *text = buf_text(&table->held);
    size_t cell = 0;
    for (size_t row = 0; row < table->rows_held; row++) {
        bool is_rule = table->tones.data[cell] & RULE;
        if (is_rule) {
            add_rule(sheet, text, (enum sheet_tone)(table->tones.data[cell++] & ~RULE));
            text += strlen(text) + 1;
        }
        for (size_t i = 0; !is_rule && i < table->count; i++, cell++) {
            add_cell(sheet, i, text, (enum sheet_tone)table->tones.data[cell]);
            text += strlen(text) + 1;
        }
        buf_add_char(&sheet->out->text, '\n');
        if (!out_row(sheet->out))
            break;
    }
    table->rows_held = 0;
    buf_clear(&table->held);
    buf_clear(&table->tones);
}

static void begin_streaming(const struct sheet *sheet)
{
    sheet->table->is_streaming = true;
    if (sheet->look.is_terminal)
        shrink(sheet);
    find_last(sheet->table);
    add_header(sheet);
}

static void hold_cell(struct sheet *sheet, const struct sheet_column *column, const struct sheet_cell *cell)
{
    struct buf *held = &sheet->table->held;
    if (!cell->text || strnlen(cell->text, CELL_BYTES_MAX + 1) <= CELL_BYTES_MAX) {
        sheet_add_shown(held, sheet, column, cell);
        return;
    }
    CLEANUP_FREE char *start = xstrndup(cell->text, CELL_BYTES_MAX);
    struct sheet_cell cut = *cell;
    cut.text = start;
    sheet_add_shown(held, sheet, column, &cut);
    buf_add_text(held, "...");
}

/* One more row is held back: perhaps it is time to print. */
static void row_held(struct sheet *sheet)
{
    struct sheet_table *table = sheet->table;
    table->rows_held++;
    ENSURE(!table->held.overflowed);
    bool is_full = table->rows_held == ROWS_HELD_MAX || table->held.length > HELD_BYTES_MAX / 4;
    if (is_full && !table->is_streaming)
        begin_streaming(sheet);
    if (table->is_streaming)
        release(sheet);
}

void sheet_table_row(struct sheet *sheet, const struct sheet_cell *cells)
{
    struct sheet_table *table = sheet->table;
    for (size_t i = 0; i < table->count; i++) {
        const struct sheet_cell *cell = &cells[table->index[i]];
        size_t start = table->held.length;
        hold_cell(sheet, table->shown[i], cell);
        if (!table->is_streaming)
            table->width[i] = MAX(table->width[i], text_width(buf_text(&table->held) + start));
        buf_add_char(&table->held, '\0');
        buf_add_char(&table->tones, (char)cell->tone);
    }
    row_held(sheet);
}

void sheet_table_rule(struct sheet *sheet, const char *text, enum sheet_tone tone)
{
    struct sheet_table *table = sheet->table;
    escape_plain(&table->held, text);
    buf_add_char(&table->held, '\0');
    buf_add_char(&table->tones, (char)(RULE | tone));
    row_held(sheet);
}

void sheet_table_release(struct sheet *sheet)
{
    if (sheet->table->rows_held == 0)
        return;
    if (!sheet->table->is_streaming)
        begin_streaming(sheet);
    release(sheet);
}

void sheet_table_end(struct sheet *sheet)
{
    struct sheet_table *table = sheet->table;
    sheet_table_release(sheet);
    buf_done(&table->held);
    buf_done(&table->tones);
    free(table);
    sheet->table = NULL;
}
