/* SPDX-License-Identifier: Apache-2.0
 *
 * What a journal holds was written by others (names, server texts): before a terminal, a spreadsheet or a
 * parser sees it, control characters (C0, DEL, C1), bidirectional marks and invalid UTF-8 become visible
 * escapes, in every format. Pure. */
#pragma once

#include "base/buf.h"

/* For tables and plain text: "\n", "\t", "\r", "\x1b", "\u202e"; an invalid byte is "\xff". */
void escape_plain(struct buf *out, const char *text);
/* A JSON string with its quotes (also a YAML one); an invalid byte is "\ufffd". */
void escape_json(struct buf *out, const char *text);
/* JSON text from the journal, on one line, with what a terminal must not see as \u escapes; text that is not
 * valid JSON becomes a string of itself. */
void escape_json_text(struct buf *out, const char *text);
/* A CSV cell with its quotes, quotes doubled (RFC 4180), otherwise as escape_plain. A cell that a spreadsheet
 * may take for a formula - its first non-blank character is one of = + - @ ＝ ＋ － ＠ TAB CR LF ' - gets a
 * leading ' unless raw. */
void escape_csv(struct buf *out, const char *text, bool raw);

/* Columns that a terminal needs for an escaped text: wide characters count 2, combining ones 0. */
size_t text_width(const char *text);
/* Bytes of the longest start of text that needs at most width columns. */
size_t text_fit(const char *text, size_t width);
