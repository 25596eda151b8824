/* SPDX-License-Identifier: Apache-2.0
 *
 * replay DIR: plays every *.jsonl of a folder through the completion rule and prints, for each patch,
 * trace<TAB>generation<TAB>done_at_s|never. Where DIR holds an expected.tsv the rows are compared with it;
 * the exit code tells. */
#include "base/time_text.h"
#include "env/file.h"
#include "trace.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

enum { FILE_MAX = 64 * 1024 * 1024, ROWS_MAX = 100000 };
/* Times in the table are rounded to 10 ms. */
#define TOLERANCE_US 6000

struct row {
    char *trace;
    int64_t generation;
    int64_t done_us; /* -1: never */
    bool matched;
};

struct rows {
    struct row *items;
    size_t count;
};

static void add_row(struct rows *rows, const char *trace, int64_t generation, int64_t done_us)
{
    rows->items = xreallocarray(rows->items, rows->count + 1, sizeof(*rows->items));
    rows->items[rows->count++] = (struct row){xstrdup(trace), generation, done_us, false};
}

static void free_rows(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->items[i].trace);
    free(rows->items);
}

/* --- the table
 * ---------------------------------------------------------------------------------------------- */

/* trace, generation, time or "never", in the columns that the first line names (the first three by default).
 */
static int read_expected(char *text, struct rows *rows, struct error **err)
{
    char *lines = NULL;
    size_t number = 0;
    for (char *line = strtok_r(text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
        char *fields = NULL;
        number++;
        const char *trace = strtok_r(line, "\t", &fields);
        const char *generation = strtok_r(NULL, "\t", &fields);
        const char *done = strtok_r(NULL, "\t", &fields);
        if (number == 1 && str_equal(generation, "generation"))
            continue;
        if (!trace || !generation || !done || rows->count == ROWS_MAX)
            return error_set(err, ERROR_INVALID,
                             "expected.tsv, line %zu: trace, generation and time are needed", number);
        char *end = NULL;
        double seconds = strtod(done, &end);
        bool never = str_equal(done, "never");
        if (!never && (end == done || *end))
            return error_set(err, ERROR_INVALID, "expected.tsv, line %zu: %s is no time", number, done);
        add_row(rows, trace, strtoll(generation, NULL, 10), never ? -1 : (int64_t)(seconds * 1e6 + 0.5));
    }
    return 0;
}

static bool same_time(int64_t a_us, int64_t b_us)
{
    if (a_us < 0 || b_us < 0)
        return a_us < 0 && b_us < 0;
    return llabs(a_us - b_us) <= TOLERANCE_US;
}

static void format_time(int64_t done_us, char text[static 32])
{
    if (done_us < 0)
        snprintf(text, 32, "never");
    else
        snprintf(text, 32, "%.3f", (double)done_us / 1e6);
}

/* Every row of the table must have been played, and right. Rows that the table does not know are not judged.
 */
static size_t compare(struct rows *expected, const struct rows *played, size_t *ret_passed)
{
    size_t failed = 0;
    *ret_passed = 0;
    for (size_t i = 0; i < expected->count; i++) {
        const struct row *want = &expected->items[i];
        const struct row *got = NULL;
        for (size_t j = 0; j < played->count && !got; j++)
            if (str_equal(played->items[j].trace, want->trace) &&
                played->items[j].generation == want->generation)
                got = &played->items[j];
        if (got && same_time(got->done_us, want->done_us)) {
            (*ret_passed)++;
            continue;
        }
        char wanted[32], found[32] = "not in the trace";
        format_time(want->done_us, wanted);
        if (got)
            format_time(got->done_us, found);
        fprintf(stderr, "%s, generation %lld: expected %s, got %s\n", want->trace,
                (long long)want->generation, wanted, found);
        failed++;
    }
    return failed;
}

/* --- the folder
 * --------------------------------------------------------------------------------------------- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_trace(const struct dirent *entry)
{
    return str_ends_with(entry->d_name, ".jsonl") && entry->d_name[0] != '.';
}

static int play_file(const char *folder, const char *file, struct rows *rows, struct error **err)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s", folder, file);
    CLEANUP_FREE char *name = xstrndup(file, strlen(file) - strlen(".jsonl"));
    CLEANUP_BUF struct buf text = BUF_INIT(FILE_MAX);
    struct trace_result played;
    int result = real_read_file(NULL, path, &text, err);
    if (result == 0) {
        result = trace_play(name, buf_text(&text), text.length, trace_rule_completion, NULL, &played, err);
        if (result < 0)
            return error_wrap(err, result, "%s", path);
    }
    for (size_t i = 0; result == 0 && i < played.patch_count; i++) {
        char done[32];
        format_time(played.patches[i].done_us, done);
        printf("%s\t%lld\t%s\n", name, (long long)played.patches[i].generation, done);
        add_row(rows, name, played.patches[i].generation, played.patches[i].done_us);
    }
    return result;
}

static int play_folder(const char *folder, struct rows *rows, struct error **err)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_trace, by_name);
    if (count < 0)
        return error_set_errno(err, errno, "cannot read the folder %s", folder);
    int result = count > 0 ? 0 : error_set(err, ERROR_NOT_FOUND, "%s holds no *.jsonl", folder);
    for (int i = 0; i < count; i++) {
        if (result == 0)
            result = play_file(folder, entries[i]->d_name, rows, err);
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int check_folder(const char *folder, struct rows *played, bool *ret_good, struct error **err)
{
    CLEANUP_FREE char *path = xasprintf("%s/expected.tsv", folder);
    CLEANUP_BUF struct buf text = BUF_INIT(FILE_MAX);
    CLEANUP_ERROR struct error *missing = NULL;
    int result = real_read_file(NULL, path, &text, &missing);
    *ret_good = true;
    if (result == -ERROR_NOT_FOUND)
        return 0;
    if (result < 0)
        return error_set(err, ERROR_FAILED, "%s", error_text(missing));
    struct rows expected = {0};
    CLEANUP_FREE char *table = buf_take(&text);
    result = read_expected(table, &expected, err);
    if (result == 0) {
        size_t passed = 0;
        size_t failed = compare(&expected, played, &passed);
        printf("%zu passed, %zu failed\n", passed, failed);
        *ret_good = failed == 0;
    }
    free_rows(&expected);
    return result;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: replay DIR\n");
        return 64;
    }
    CLEANUP_ERROR struct error *err = NULL;
    struct rows played = {0};
    bool good = false;
    int result = play_folder(argv[1], &played, &err);
    if (result == 0)
        result = check_folder(argv[1], &played, &good, &err);
    free_rows(&played);
    if (result < 0)
        fprintf(stderr, "replay: %s\n", error_text(err));
    return result == 0 && good ? 0 : 1;
}
