/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of quantities as the reference implementation parsed, printed and compared them
 * (tests/volume/quantity.tsv), held against src/volume/quantity. Its lines, with tabs between:
 *   parse    JSON-STRING  ok|large|invalid  EXACT-VALUE  CANONICAL-TEXT
 *   compare  A  B  -1|0|1
 * Lines that begin with '#' and empty ones say nothing. */
#pragma once

#include "base/buf.h"

struct quantity_table_result {
    size_t passed;
    size_t failed;
};

/* For each row that differs, or that cannot be read, calls differs(context, line number, sentence). text is
 * changed. */
void quantity_table_check(char *text, void (*differs)(void *context, size_t line, const char *sentence),
                          void *context, struct quantity_table_result *ret);
