/* SPDX-License-Identifier: Apache-2.0
 *
 * How many files a process may have open (ulimit -n): as many as it is allowed to, and enough to begin. Call
 * it before anything is opened. */
#pragma once

#include "base/error.h"

/* A standard stream that was closed (`>&-`) is one that cannot be read or written: without this, the next
 * connection or lock would get its number, and what is meant for people would be written there. */
void standard_files_ensure(void);

/* Raises the soft limit as far as the hard one allows, up to what is of use. -ERROR_REFUSED: it is still too
 * low, with a sentence that says what to do. */
int open_files_ensure(const char *program, struct error **err);
