/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a file of this tree, for tests and for what stands in for a server. Never of input: a file that
 * cannot be read ends the program. */
#pragma once

#include <stddef.h>

/* path: from the top of the tree. The text ends with a 0, which *ret_length (NULL: not asked for) does not
 * count. The caller's to free. */
char *whole_file(const char *path, size_t *ret_length);
