/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock of a journal: a file of its own beside it, never unlinked, an OFD lock on it that no child
 * inherits. Who holds it is written into it, for the message that a second controller gets. Never touches the
 * journal itself. */
#pragma once

#include "base/error.h"

/* "…/journal.db" -> "…/journal.lock"; any other name gets ".lock" behind. The caller's. */
char *lock_path_make(const char *journal_path);
/* *ret_fd holds the lock until it is closed. -ERROR_LOCKED names the holder. */
int lock_take(const char *lock_path, const char *journal_path, const char *identity, int *ret_fd,
              struct error **err);
/* Does another process (or another open of ours) hold it? Changes nothing. A file that cannot be looked at:
 * no. */
bool lock_is_held(const char *lock_path);
/* Who holds SQLite's write lock, by the -shm's place in /proc/locks (the file itself is never opened: that
 * would drop our locks): "process 1234 (sqlite3)", or "another process" where the system does not tell. The
 * caller's. */
char *lock_writer_text(const char *shm_path);
