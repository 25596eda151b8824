/* SPDX-License-Identifier: Apache-2.0
 *
 * How a connection is set up, each setting read back after it is set: one that did not take is an error. */
#pragma once

#include "base/error.h"

#include <sqlite3.h>

enum {
    SETTINGS_WAL_LIMIT_BYTES = 16 << 20,  /* what a WAL is cut to when it starts anew */
    SETTINGS_LENGTH_MAX_BYTES = 64 << 20, /* of one value or row */
    SETTINGS_READER_BUSY_MS = 5000,
};

/* The only connection that writes and checkpoints. */
int settings_apply_writer(sqlite3 *db, const char *path, struct error **err);
/* Every other one. */
int settings_apply_reader(sqlite3 *db, const char *path, struct error **err);
/* The integer (or the text) that a one-row query answers. */
int settings_query_int64(sqlite3 *db, const char *sql, int64_t *ret, struct error **err);
