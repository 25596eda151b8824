/* SPDX-License-Identifier: Apache-2.0
 *
 * What src/journal reads from outside, under libFuzzer; FUZZ_MODE (head, file) chooses which: a published
 * head as text, and a whole file that the audit opens, reads and verifies. */
#include "modes.h"

#include "journal/reader.h"
#include "journal/verify.h"

#include <stdio.h>
#include <unistd.h>

static char folder[] = "/tmp/fuzz-journal-XXXXXX";
static bool whole_file;

static bool take_entry(void *context, const struct journal_entry *entry)
{
    int64_t *count = context;
    ENSURE(entry->seq > 0);
    return ++*count < 1000;
}

static void fuzz_file(const uint8_t *bytes, size_t length)
{
    CLEANUP_FREE char *path = xasprintf("%s/journal.db", folder);
    FILE *file = fopen(path, "wb");
    ENSURE(file && fwrite(bytes, 1, length, file) == length && fclose(file) == 0);
    struct journal_reader *reader = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    if (journal_reader_open(path, &reader, &err) == 0) {
        int64_t count = 0;
        (void)journal_read_entries(reader, &(struct journal_entry_filter){.limit = 1000}, take_entry, &count,
                                   NULL);
        journal_reader_close(reader);
    } else {
        ENSURE(err && *error_text(err));
    }
    unlink(path);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    static const char *const names[] = {"head", "file"};
    whole_file = fuzz_mode_of(names, ARRAY_SIZE(names)) == 1;
    ENSURE(mkdtemp(folder));
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (whole_file) {
        fuzz_file(bytes, length);
        return 0;
    }
    CLEANUP_FREE char *text = xmemdup0(bytes, length);
    struct journal_head head;
    CLEANUP_ERROR struct error *err = NULL;
    if (journal_head_parse(text, &head, &err) == 0)
        ENSURE(head.seq >= 0 && !err);
    else
        ENSURE(err);
    return 0;
}
