/* SPDX-License-Identifier: Apache-2.0
 *
 * quantity FILE: holds our reading of quantities against a table of what the reference implementation made of
 * them (see tests/lib/quantity_table.h). Prints each row that differs, then "N passed, N failed"; the exit
 * code tells. A table without a row is a failure. */
#include "quantity_table.h"

#include <errno.h>
#include <stdio.h>

enum { FILE_MAX = 64 * 1024 * 1024, EXIT_USAGE = 64 };

static int read_whole(const char *path, struct buf *ret, struct error **err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(err, errno, "cannot open %s", path);
    char chunk[65536];
    size_t got = 0;
    int result = 0;
    while (result == 0 && (got = fread(chunk, 1, sizeof(chunk), file)) > 0)
        result = buf_add(ret, chunk, got);
    if (result < 0)
        error_set(err, ERROR_TOO_LARGE, "%s has more than %d bytes", path, FILE_MAX);
    else if (ferror(file))
        result = error_set_errno(err, errno, "cannot read %s", path);
    fclose(file);
    return result;
}

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
    if (read_whole(arguments[1], &text, &err) < 0) {
        fprintf(stderr, "quantity: %s\n", error_text(err));
        return 1;
    }
    CLEANUP_FREE char *table = buf_take(&text);
    struct quantity_table_result result;
    quantity_table_check(table, print_difference, arguments[1], &result);
    printf("%zu passed, %zu failed\n", result.passed, result.failed);
    return result.failed == 0 && result.passed > 0 ? 0 : 1;
}
