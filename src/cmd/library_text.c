/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/library_text.h"
#include "journal/journal.h"

#include <stdio.h>

const char *library_text(void)
{
    static char text[512];
    char library[JOURNAL_LIBRARY_TEXT_SIZE];
    journal_library_text(library);
    snprintf(text, sizeof text, "SQLite %s", library);
    return text;
}
