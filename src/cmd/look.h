/* SPDX-License-Identifier: Apache-2.0
 *
 * How a program's output looks: what the options wish for, what the terminal and the environment allow.
 * Colours only on a terminal, never with NO_COLOR or TERM=dumb. */
#pragma once

#include "audit/sheet.h"

enum { LOOK_COLUMNS_DEFAULT = 100, LOOK_COLUMNS_MAX = 10000 };

struct look_wish {
    const char *format; /* one of SHEET_FORMATS */
    const char *color;  /* "auto", "always", "never" */
    int64_t columns;    /* 0: the terminal's */
    bool is_csv_raw;
    bool is_local; /* times in the local zone */
};

/* Reads the environment and asks stdout. Sets the process's LC_CTYPE so that widths of characters are known.
 */
void look_make(const struct look_wish *wish, struct sheet_look *ret);
/* Asks the terminal for its width anew: people drag windows. */
void look_refresh(struct sheet_look *look);
/* Standard output is a terminal that takes escape sequences: what was drawn may be drawn over. */
bool look_redraws(const struct sheet_look *look);
/* Lines of the terminal; 0: no terminal, or it does not say. */
size_t look_rows(void);
