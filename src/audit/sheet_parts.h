/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of a sheet know of each other: sheet.c (data formats) and sheet_table.c (tables for people).
 */
#pragma once

#include "audit/sheet.h"

struct sheet_table;

struct sheet {
    struct out *out;
    struct sheet_look look;
    const struct sheet_column *columns;
    size_t count;
    int64_t rows;
    const char *name_prefix;   /* NULL: none */
    struct sheet_table *table; /* of SHEET_TABLE and SHEET_WIDE */
    int64_t day;               /* of day_text: midnight in seconds since 1970 */
    char day_text[12];         /* "2026-11-30T" */
};

struct sheet_table *sheet_table_make(const struct sheet *sheet);
void sheet_table_row(struct sheet *sheet, const struct sheet_cell *cells);
void sheet_table_rule(struct sheet *sheet, const char *text, enum sheet_tone tone);
/* Prints what is still held back; then, with _end, frees it. */
void sheet_table_release(struct sheet *sheet);
void sheet_table_end(struct sheet *sheet);

/* Text of a cell as tables and names show it, escaped; "-" for null. */
void sheet_add_shown(struct buf *out, struct sheet *sheet, const struct sheet_column *column,
                     const struct sheet_cell *cell);
