/* SPDX-License-Identifier: Apache-2.0
 *
 * How many files a process may have open (ulimit -n): as many as it is allowed to, and enough to begin. Call
 * it before anything is opened. */
#pragma once

#include "base/error.h"

/* Raises the soft limit as far as the hard one allows, up to what is of use. -ERROR_REFUSED: it is still too
 * low, with a sentence that says what to do. */
int open_files_ensure(const char *program, struct error **err);
