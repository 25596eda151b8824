/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/escape.h"
#include "audit/sheet_parts.h"
#include "base/time_text.h"

#include <inttypes.h>
#include <stdio.h>

enum { DAY_S = 86400 };

enum sheet_format sheet_format_of_text(const char *text)
{
    static const char *const names[] = {
        [SHEET_TABLE] = "table", [SHEET_WIDE] = "wide", [SHEET_JSON] = "json", [SHEET_JSONL] = "jsonl",
        [SHEET_CSV] = "csv",     [SHEET_YAML] = "yaml", [SHEET_NAME] = "name",
    };
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (str_equal(text, names[i]))
            return (enum sheet_format)i;
    UNREACHABLE();
}

struct sheet_cell cell_text(const char *text)
{
    return (struct sheet_cell){.is_set = text != NULL, .text = text};
}

struct sheet_cell cell_number(int64_t number)
{
    return (struct sheet_cell){.is_set = true, .number = number};
}

struct sheet_cell cell_number_or_null(int64_t number)
{
    return (struct sheet_cell){.is_set = number != 0, .number = number};
}

struct sheet_cell cell_bytes(const uint8_t *bytes, size_t length)
{
    return (struct sheet_cell){.is_set = bytes != NULL, .bytes = bytes, .length = length};
}

struct sheet_cell cell_null(void)
{
    return (struct sheet_cell){0};
}

/* --- values ----------------------------------------------------------------------------------------- */

/* By hand: a million rows have twenty cells each. */
static void add_number(struct buf *out, int64_t number)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        digits[--at] = '-';
    buf_add(out, digits + at, sizeof digits - at);
}

static void put_digits(char *text, unsigned count, int64_t number)
{
    for (; count > 0; count--, number /= 10)
        text[count - 1] = (char)('0' + number % 10);
}

static int64_t floor_to(int64_t number, int64_t unit)
{
    int64_t rest = number % unit;
    return number - (rest < 0 ? rest + unit : rest);
}

/* As time_format_micros, with the day's text kept from the row before. */
static void add_time_utc(struct buf *out, struct sheet *sheet, int64_t at_us)
{
    int64_t day = floor_to(at_us, DAY_S * US_PER_S) / US_PER_S;
    if (day != sheet->day || sheet->day_text[0] == '\0') {
        char text[TIME_TEXT_SIZE];
        time_format_seconds(day * US_PER_S, text);
        memcpy(sheet->day_text, text, 11);
        sheet->day = day;
    }
    char text[] = "2026-11-30T07:38:15.123456Z";
    int64_t second = (at_us - day * US_PER_S) / US_PER_S;
    memcpy(text, sheet->day_text, 11);
    put_digits(text + 11, 2, second / 3600);
    put_digits(text + 14, 2, second / 60 % 60);
    put_digits(text + 17, 2, second % 60);
    put_digits(text + 20, 6, (at_us - day * US_PER_S) % US_PER_S);
    buf_add(out, text, sizeof text - 1);
}

void sheet_format_time(const struct sheet_look *look, int64_t at_us, char text[static 40])
{
    char utc[TIME_TEXT_SIZE];
    int64_t offset_s = look->local_offset_s ? look->local_offset_s(floor_to(at_us, US_PER_S) / US_PER_S) : 0;
    time_format_micros(at_us + offset_s * US_PER_S, utc);
    if (!look->local_offset_s) {
        memcpy(text, utc, sizeof utc);
        return;
    }
    utc[strlen(utc) - 1] = '\0';
    int minutes = (int)(offset_s / 60);
    snprintf(text, 40, "%s%c%02d:%02d", utc, minutes < 0 ? '-' : '+', abs(minutes) / 60 % 100,
             abs(minutes) % 60);
}

static void add_time(struct buf *out, struct sheet *sheet, int64_t at_us)
{
    if (!sheet->look.local_offset_s) {
        add_time_utc(out, sheet, at_us);
        return;
    }
    char text[40];
    sheet_format_time(&sheet->look, at_us, text);
    buf_add_text(out, text);
}

/* Seconds as a decimal number: exact, and a number for every reader. */
static void add_seconds(struct buf *out, int64_t duration_us)
{
    if (duration_us < 0) {
        buf_add_char(out, '-');
        duration_us = -duration_us;
    }
    add_number(out, duration_us / US_PER_S);
    char fraction[] = ".000000";
    put_digits(fraction + 1, 6, duration_us % US_PER_S);
    buf_add(out, fraction, sizeof fraction - 1);
}

static void add_hex(struct buf *out, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    char text[128];
    while (length > 0) {
        size_t piece = MIN(length, sizeof text / 2);
        for (size_t i = 0; i < piece; i++) {
            text[2 * i] = digits[bytes[i] >> 4];
            text[2 * i + 1] = digits[bytes[i] & 15];
        }
        buf_add(out, text, 2 * piece);
        bytes += piece;
        length -= piece;
    }
}

void sheet_add_shown(struct buf *out, struct sheet *sheet, const struct sheet_column *column,
                     const struct sheet_cell *cell)
{
    if (!cell->is_set) {
        buf_add_char(out, '-');
        return;
    }
    char text[TIME_TEXT_SIZE];
    switch (column->type) {
    case SHEET_NUMBER:
        add_number(out, cell->number);
        break;
    case SHEET_TIME:
        add_time(out, sheet, cell->number);
        break;
    case SHEET_DURATION:
        duration_format(MAX(cell->number, 0), text);
        buf_add_text(out, text);
        break;
    case SHEET_BYTES:
        add_hex(out, cell->bytes, cell->length);
        break;
    case SHEET_BOOL:
        buf_add_text(out, cell->number ? "yes" : "no");
        break;
    case SHEET_ID:
        if (!cell->text) {
            add_number(out, cell->number);
            break;
        }
        __attribute__((fallthrough));
    case SHEET_TEXT:
    case SHEET_DETAIL:
        escape_plain(out, *cell->text ? cell->text : "-");
        break;
    }
}

/* What JSON, YAML and CSV write alike: all but texts and what is not set. */
static void add_value(struct buf *out, struct sheet *sheet, enum sheet_type type,
                      const struct sheet_cell *cell)
{
    switch (type) {
    case SHEET_ID:
    case SHEET_NUMBER:
        add_number(out, cell->number);
        break;
    case SHEET_DURATION:
        add_seconds(out, cell->number);
        break;
    case SHEET_BOOL:
        buf_add_text(out, cell->number ? "true" : "false");
        break;
    case SHEET_TIME:
        buf_add_char(out, '"');
        add_time(out, sheet, cell->number);
        buf_add_char(out, '"');
        break;
    case SHEET_BYTES:
        buf_add_char(out, '"');
        add_hex(out, cell->bytes, cell->length);
        buf_add_char(out, '"');
        break;
    case SHEET_TEXT:
    case SHEET_DETAIL:
        UNREACHABLE();
    }
}

static bool is_text(enum sheet_type type, const struct sheet_cell *cell)
{
    return type == SHEET_TEXT || type == SHEET_DETAIL || (type == SHEET_ID && cell->text);
}

/* --- JSON and YAML ---------------------------------------------------------------------------------- */

static void add_json(struct buf *out, struct sheet *sheet, enum sheet_type type,
                     const struct sheet_cell *cell)
{
    if (!cell->is_set)
        buf_add_text(out, "null");
    else if (!is_text(type, cell))
        add_value(out, sheet, type, cell);
    else if (type == SHEET_DETAIL)
        escape_json_text(out, cell->text);
    else
        escape_json(out, cell->text);
}

static void add_json_row(struct buf *out, struct sheet *sheet, const struct sheet_cell *cells)
{
    const char *separator = "{";
    for (size_t i = 0; i < sheet->count; i++) {
        const struct sheet_column *column = &sheet->columns[i];
        if (!(column->where & IN_DATA))
            continue;
        buf_add_text(out, separator);
        buf_add_char(out, '"');
        buf_add_text(out, column->name);
        buf_add(out, "\":", 2);
        add_json(out, sheet, column->type, &cells[i]);
        separator = ",";
    }
    buf_add_char(out, '}');
}

void sheet_add_json_row(struct buf *out, const struct sheet_look *look, const struct sheet_column *columns,
                        size_t count, const struct sheet_cell *cells)
{
    struct sheet sheet = {.look = *look, .columns = columns, .count = count};
    add_json_row(out, &sheet, cells);
}

static void add_yaml_row(struct buf *out, struct sheet *sheet, const struct sheet_cell *cells)
{
    const char *lead = "- ";
    for (size_t i = 0; i < sheet->count; i++) {
        const struct sheet_column *column = &sheet->columns[i];
        if (!(column->where & IN_DATA))
            continue;
        buf_addf(out, "%s%s: ", lead, column->name);
        add_json(out, sheet, column->type, &cells[i]);
        buf_add_char(out, '\n');
        lead = "  ";
    }
}

/* --- CSV -------------------------------------------------------------------------------------------- */

/* Null is nothing, an empty text is "". Numbers stay bare, so that a negative one is no formula. */
static void add_csv(struct buf *out, struct sheet *sheet, enum sheet_type type, const struct sheet_cell *cell)
{
    if (!cell->is_set)
        return;
    if (is_text(type, cell))
        escape_csv(out, cell->text, sheet->look.csv_raw);
    else
        add_value(out, sheet, type, cell);
}

static void add_csv_header(struct buf *out, const struct sheet *sheet)
{
    const char *separator = "";
    for (size_t i = 0; i < sheet->count; i++) {
        if (!(sheet->columns[i].where & IN_DATA))
            continue;
        buf_addf(out, "%s\"%s\"", separator, sheet->columns[i].name);
        separator = ",";
    }
    buf_add_text(out, "\r\n");
}

static void add_csv_row(struct buf *out, struct sheet *sheet, const struct sheet_cell *cells)
{
    bool is_first = true;
    for (size_t i = 0; i < sheet->count; i++) {
        if (!(sheet->columns[i].where & IN_DATA))
            continue;
        if (!is_first)
            buf_add_char(out, ',');
        is_first = false;
        add_csv(out, sheet, sheet->columns[i].type, &cells[i]);
    }
    buf_add(out, "\r\n", 2);
}

/* --- the sheet -------------------------------------------------------------------------------------- */

struct sheet *sheet_begin(struct out *out, const struct sheet_look *look, const struct sheet_column *columns,
                          size_t count)
{
    PRE(count > 0);
    struct sheet *sheet = xcalloc(1, sizeof *sheet);
    *sheet = (struct sheet){.out = out, .look = *look, .columns = columns, .count = count};
    if (look->format == SHEET_TABLE || look->format == SHEET_WIDE)
        sheet->table = sheet_table_make(sheet);
    else if (look->format == SHEET_CSV)
        add_csv_header(&out->text, sheet);
    return sheet;
}

void sheet_set_name_prefix(struct sheet *sheet, const char *prefix)
{
    sheet->name_prefix = prefix;
}

bool sheet_row(struct sheet *sheet, const struct sheet_cell *cells)
{
    struct buf *text = &sheet->out->text;
    switch (sheet->look.format) {
    case SHEET_TABLE:
    case SHEET_WIDE:
        sheet_table_row(sheet, cells);
        break;
    case SHEET_JSON:
        buf_add_text(text, sheet->rows == 0 ? "[\n" : ",\n");
        add_json_row(text, sheet, cells);
        break;
    case SHEET_JSONL:
        add_json_row(text, sheet, cells);
        buf_add_char(text, '\n');
        break;
    case SHEET_CSV:
        add_csv_row(text, sheet, cells);
        break;
    case SHEET_YAML:
        add_yaml_row(text, sheet, cells);
        break;
    case SHEET_NAME:
        buf_add_text(text, sheet->name_prefix ? sheet->name_prefix : "");
        sheet_add_shown(text, sheet, &sheet->columns[0], &cells[0]);
        buf_add_char(text, '\n');
        break;
    }
    sheet->rows++;
    return out_row(sheet->out);
}

void sheet_rule(struct sheet *sheet, const char *text, enum sheet_tone tone)
{
    if (sheet->table)
        sheet_table_rule(sheet, text, tone);
}

void sheet_release(struct sheet *sheet)
{
    if (sheet->table)
        sheet_table_release(sheet);
}

int64_t sheet_end(struct sheet *sheet)
{
    struct buf *text = &sheet->out->text;
    if (sheet->table)
        sheet_table_end(sheet);
    else if (sheet->look.format == SHEET_JSON)
        buf_add_text(text, sheet->rows == 0 ? "[]\n" : "\n]\n");
    else if (sheet->look.format == SHEET_YAML && sheet->rows == 0)
        buf_add_text(text, "[]\n");
    int64_t rows = sheet->rows;
    free(sheet);
    return rows;
}

const char *sheet_tone_on(const struct sheet_look *look, enum sheet_tone tone)
{
    static const char *const on[] = {
        [TONE_NONE] = "",         [TONE_GOOD] = "\x1b[32m", [TONE_BAD] = "\x1b[31m",
        [TONE_WARN] = "\x1b[33m", [TONE_DIM] = "\x1b[2m",
    };
    return look->has_color ? on[tone] : "";
}

const char *sheet_tone_off(const struct sheet_look *look, enum sheet_tone tone)
{
    return look->has_color && tone != TONE_NONE ? "\x1b[0m" : "";
}
