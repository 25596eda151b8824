/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/library.h"

#include "journal/journal.h"

#include <sqlite3.h>
#include <stdio.h>

/* Fixed in 3.51.3, and in 3.50.7 and 3.44.6 of the older lines; 3.52.0 was withdrawn. */
bool library_is_affected(int version)
{
    if (version < 3007000)
        return false;
    if (version >= 3044006 && version < 3045000)
        return false;
    if (version >= 3050007 && version < 3051000)
        return false;
    return version < 3051003;
}

void journal_library_text(char text[static JOURNAL_LIBRARY_TEXT_SIZE])
{
    bool affected = library_is_affected(sqlite3_libversion_number());
    snprintf(text, JOURNAL_LIBRARY_TEXT_SIZE, "%s (affected by the WAL-reset bug: %s)", sqlite3_libversion(),
             affected ? "yes; harmless while nobody else writes: use `sqlite3 -readonly`" : "no");
}
