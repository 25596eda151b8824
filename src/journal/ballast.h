/* SPDX-License-Identifier: Apache-2.0
 *
 * A file of 16 MiB beside the journal that is given up first when the disk is full: so that the outcomes of
 * what is under way still find room, and pruning can begin. */
#pragma once

#include <stdbool.h>

enum { BALLAST_BYTES = 16 << 20 };

/* Makes it when it is not there and the disk keeps at least as much free besides. true: it is there. */
bool ballast_make(const char *path);
/* true: it was there and is gone now. */
bool ballast_give_up(const char *path);
