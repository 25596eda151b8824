/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/failure.h"

enum error_code failure_code(int sqlite_code)
{
    if (sqlite_code == SQLITE_IOERR_SHMSIZE)
        return ERROR_NO_SPACE;
    switch (sqlite_code & 0xff) {
    case SQLITE_FULL:
        return ERROR_NO_SPACE;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ERROR_LOCKED;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ERROR_CORRUPT;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
        return ERROR_FORBIDDEN;
    default:
        return ERROR_FAILED;
    }
}

int failure_set(struct error **err, sqlite3 *db, int sqlite_code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *what = xvasprintf(format, args);
    va_end(args);
    /* The connection's message is richer where it speaks of the same failure. */
    const char *text =
        db && sqlite3_extended_errcode(db) == sqlite_code ? sqlite3_errmsg(db) : sqlite3_errstr(sqlite_code);
    int system_errno = db && (sqlite_code & 0xff) == SQLITE_IOERR ? sqlite3_system_errno(db) : 0;
    if (system_errno)
        return error_set(err, failure_code(sqlite_code), "%s: %s (SQLite %d: %s)", what, text, sqlite_code,
                         strerror(system_errno));
    return error_set(err, failure_code(sqlite_code), "%s: %s (SQLite %d)", what, text, sqlite_code);
}
