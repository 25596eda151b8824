/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows in any shape: a table for people, wide, JSON, JSON lines, CSV, YAML, names. Columns are declared once;
 * what a row says does not depend on the shape. Column names and their order in JSON, CSV and YAML are an
 * API: new ones at the end. Knows nothing of journals. */
#pragma once

#include "audit/out.h"

enum sheet_format {
    SHEET_TABLE,
    SHEET_WIDE,
    SHEET_JSON, /* one array */
    SHEET_JSONL,
    SHEET_CSV,
    SHEET_YAML,
    SHEET_NAME, /* the first column only, one a line */
};
#define SHEET_FORMATS "table|wide|json|jsonl|csv|yaml|name"
/* text is one of SHEET_FORMATS (an assertion). */
enum sheet_format sheet_format_of_text(const char *text);

/* How things are shown, chosen by the program. */
struct sheet_look {
    enum sheet_format format;
    bool is_terminal; /* tables may truncate to columns */
    bool has_color;
    bool has_utf8;
    size_t columns; /* width of the terminal */
    bool csv_raw;   /* no leading ' before what a spreadsheet may take for a formula */
    /* Seconds east of UTC at a time; NULL: times are shown in UTC. */
    int64_t (*local_offset_s)(int64_t at_s);
};

enum sheet_type {
    SHEET_TEXT,
    SHEET_ID, /* a number, or text when several journals are read */
    SHEET_NUMBER,
    SHEET_TIME,     /* microseconds since 1970 */
    SHEET_DURATION, /* microseconds: "3m10s" in tables, seconds as a decimal number elsewhere */
    SHEET_BYTES,    /* hexadecimal digits */
    SHEET_DETAIL,   /* JSON text: part of the document in JSON and YAML, text elsewhere */
    SHEET_BOOL,
};

/* Where a column is shown. */
#define IN_TABLE 1U
#define IN_WIDE 2U
#define IN_DATA 4U
#define IN_TABLES (IN_TABLE | IN_WIDE)
#define IN_ALL (IN_TABLES | IN_DATA)

/* What a terminal that is too narrow does to a column of a table. Times lose their microseconds there first;
 * then columns are dropped until the others have room, and only then texts are cut. */
#define NARROW_CUT 1U                       /* a text that is too long loses its end */
#define NARROW_CUT_FRONT 2U                 /* ... its beginning: what matters of an image is its tag */
#define NARROW_DROP(n) ((unsigned)(n) << 2) /* it is not shown; the highest n goes first */

struct sheet_column {
    const char *name;  /* in JSON, CSV, YAML: "begun" */
    const char *title; /* in tables: "BEGUN" */
    enum sheet_type type;
    unsigned where;
    int place;       /* in tables columns are ordered by place, then as declared */
    unsigned narrow; /* NARROW_*, or 0: it is always whole */
};

/* Colours for people, never information of its own. */
enum sheet_tone { TONE_NONE, TONE_GOOD, TONE_BAD, TONE_WARN, TONE_DIM };

struct sheet_cell {
    bool is_set; /* false: null */
    const char *text;
    int64_t number;
    const uint8_t *bytes;
    size_t length; /* of bytes */
    enum sheet_tone tone;
};
/* Null when the argument says so: text NULL. */
struct sheet_cell cell_text(const char *text);
struct sheet_cell cell_number(int64_t number);
struct sheet_cell cell_bytes(const uint8_t *bytes, size_t length);
struct sheet_cell cell_null(void);
/* Null when number is 0. */
struct sheet_cell cell_number_or_null(int64_t number);

struct sheet;

/* columns must outlive the sheet. */
struct sheet *sheet_begin(struct out *out, const struct sheet_look *look, const struct sheet_column *columns,
                          size_t count);
/* What stands before each name of SHEET_NAME, as kubectl shows it: "pod/". It must outlive the sheet. */
void sheet_set_name_prefix(struct sheet *sheet, const char *prefix);
/* cells[count], borrowed for the call. False: stop, nobody reads any more. */
bool sheet_row(struct sheet *sheet, const struct sheet_cell *cells);
/* A line between the rows of a table, in its tone; nothing in the other formats. */
void sheet_rule(struct sheet *sheet, const char *text, enum sheet_tone tone);
/* Hands on what a table still holds back: its widths are fixed from now on. For output that comes as it
 * happens. */
void sheet_release(struct sheet *sheet);
/* Ends the document and frees the sheet; the caller flushes out. Returns the number of rows. */
int64_t sheet_end(struct sheet *sheet);

/* For texts that are not sheets. */
/* "2026-11-30T07:38:15.123456Z", or with an offset when look asks for local time. Fixed width in UTC. */
void sheet_format_time(const struct sheet_look *look, int64_t at_us, char text[static 40]);
/* The data columns of a row as a JSON object on one line, without a newline. */
void sheet_add_json_row(struct buf *out, const struct sheet_look *look, const struct sheet_column *columns,
                        size_t count, const struct sheet_cell *cells);
/* Terminal sequences of a tone, "" without colour. */
const char *sheet_tone_on(const struct sheet_look *look, enum sheet_tone tone);
const char *sheet_tone_off(const struct sheet_look *look, enum sheet_tone tone);
