/* SPDX-License-Identifier: Apache-2.0 */
#include "whole_file.h"

#include "env/file.h"

#include <stdio.h>

enum { FILE_MAX = 16 * 1024 * 1024 };

char *whole_file(const char *path, size_t *ret_length)
{
    CLEANUP_BUF struct buf text = BUF_INIT(FILE_MAX);
    CLEANUP_ERROR struct error *err = NULL;
    if (real_read_file(NULL, path, &text, &err) < 0) {
        fprintf(stderr, "%s (run from the top of the tree)\n", error_text(err));
        abort();
    }
    if (ret_length)
        *ret_length = text.length;
    return buf_take(&text);
}
