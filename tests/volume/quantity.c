/* SPDX-License-Identifier: Apache-2.0
 *
 * quantity FILE: holds our reading of quantities against a table of what the reference implementation made of
 * them (see tests/lib/quantity_table.h). Prints each row that differs, then "N passed, N failed"; the exit
 * code tells. A table without a row is a failure. */
#include "quantity_table.h"

#include "env/file.h"

#include <stdio.h>

enum { FILE_MAX = 64 * 1024 * 1024, EXIT_USAGE = 64 };

static void print_difference(void *context, size_t line, const char *sentence)
{
    printf("%s, line %zu: %s\n", (const char *)context, line, sentence);
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: quantity FILE\n");
        return EXIT_USAGE;
    }
    CLEANUP_ERROR struct error *err = NULL;
    CLEANUP_BUF struct buf text = BUF_INIT(FILE_MAX);
    if (real_read_file(NULL, arguments[1], &text, &err) < 0) {
        fprintf(stderr, "quantity: %s\n", error_text(err));
        return 1;
    }
    CLEANUP_FREE char *table = buf_take(&text);
    struct quantity_table_result result;
    quantity_table_check(table, print_difference, arguments[1], &result);
    printf("%zu passed, %zu failed\n", result.passed, result.failed);
    return result.failed == 0 && result.passed > 0 ? 0 : 1;
}
