/* SPDX-License-Identifier: Apache-2.0
 *
 * Brings a file's schema to the newest version, in one transaction. A migration practically never touches
 * `entry` (journal.md, "Tables"). */
#pragma once

#include "base/error.h"

#include <sqlite3.h>

struct migrations {
    const char *const *sql; /* number n-1 leads from user_version n-1 to n */
    int count;
};
/* Those that were embedded at build. */
struct migrations migrations_embedded(void);

/* What a new journal's meta row says. */
struct migrate_identity {
    const char *journal_id;
    int64_t created_us;
};

/* Readers that know schema versions up to this one read what we write. */
enum { MIGRATE_MIN_READER = 1 };

/* -ERROR_UNSUPPORTED: the file is newer than the last migration. Nothing was changed then. */
int migrate(sqlite3 *db, const char *path, struct migrations migrations,
            const struct migrate_identity *identity, struct error **err);
/* Writes application_id into an empty file, before it becomes a WAL file: so the header alone says whose it
 * is. */
int migrate_mark_new(sqlite3 *db, const char *path, struct error **err);
