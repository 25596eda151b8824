/* SPDX-License-Identifier: Apache-2.0
 *
 * What SQLite's result codes mean for us, as errors with a sentence. Only src/journal includes this. */
#pragma once

#include "base/error.h"

#include <sqlite3.h>

/* NO_SPACE: full, also a -shm that cannot be made. LOCKED: another connection is in the way for now. CORRUPT,
 * FORBIDDEN, FAILED (anything else: of a write it means "unknown"). */
enum error_code failure_code(int sqlite_code);
/* Makes *err of the newest failure of db (may be NULL) with the code given; what: "journal FILE: append". */
int failure_set(struct error **err, sqlite3 *db, int sqlite_code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
