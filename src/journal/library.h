/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of the SQLite library that we run with. */
#pragma once

#include <stdbool.h>

/* Has this version (as sqlite3_libversion_number()) the WAL-reset bug? It needs two connections that write or
 * checkpoint at the same time: one writer in the whole system keeps out of it. */
bool library_is_affected(int version);
