/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "journal/reader_parts.h"

/* What a wait's later rows say of it. */
struct wait_visit {
    struct arena *arena;
    struct journal_wait_record *wait;
    int64_t head_mono_us;
    bool is_open; /* in open_wait */
};

static bool visit_open(void *context, sqlite3_stmt *statement)
{
    struct wait_visit *visit = context;
    struct journal_wait_record *wait = visit->wait;
    visit->is_open = true;
    wait->held = sqlite3_column_type(statement, 1) == SQLITE_NULL;
    wait->spent_us = sqlite3_column_int64(statement, 0);
    if (!wait->held)
        wait->spent_us += MAX((int64_t)0, visit->head_mono_us - sqlite3_column_int64(statement, 1));
    return true;
}

static bool visit_end(void *context, sqlite3_stmt *statement)
{
    struct wait_visit *visit = context;
    struct journal_wait_record *wait = visit->wait;
    struct journal_entry end;
    if (!row_read(statement, 0, &end) || reader_detail_number(end.detail, "wait") != wait->begin.seq)
        return true;
    CLEANUP_JSON cJSON *detail = NULL;
    if (json_parse(end.detail, strlen(end.detail), &detail, NULL) < 0)
        detail = NULL;
    wait->has_end = true;
    wait->end = page_copy(visit->arena, &end);
    wait->spent_us = json_int64_or(detail, "spent_us", 0);
    const char *outcome = json_str(detail, "outcome");
    wait->outcome = arena_copy_text(visit->arena, outcome ? outcome : "");
    return false;
}

/* Its end is one of the rows of its operation, or of those without one. */
static int read_end(struct journal_reader *reader, struct wait_visit *visit, struct error **err)
{
    const struct journal_entry *begin = &visit->wait->begin;
    const int64_t numbers[] = {begin->operation, begin->seq, reader->meta.head_seq};
    return kept_run(reader, begin->operation ? READER_WAIT_ENDS : READER_FREE_WAIT_ENDS, numbers,
                    ARRAY_SIZE(numbers), visit_end, visit, err);
}

static int complete(struct journal_reader *reader, struct arena *arena, struct journal_wait_record *wait,
                    struct error **err)
{
    wait->budget_us = reader_detail_number(wait->begin.detail, "budget_us");
    struct wait_visit visit = {.arena = arena, .wait = wait, .head_mono_us = reader->head_mono_us};
    int result = kept_run(reader, READER_OPEN_WAIT, &wait->begin.seq, 1, visit_open, &visit, err);
    return result < 0 || visit.is_open ? result : read_end(reader, &visit, err);
}

/* In the transaction that the page was read in; ended here. The waits are the caller's. */
static int complete_page(struct journal_reader *reader, struct page *page, struct journal_wait_record **ret,
                         struct error **err)
{
    struct journal_wait_record *waits = xcalloc(page->count + 1, sizeof(*waits));
    int result = 0;
    for (size_t i = 0; result == 0 && i < page->count; i++) {
        waits[i].begin = page->entries[i];
        result = complete(reader, &page->arena, &waits[i], err);
    }
    reader_end(reader);
    if (result == 0)
        *ret = waits;
    else
        free(waits);
    return result;
}

/* No statement and no transaction is open while a callback runs. */
static int hand_out(struct journal_reader *reader, struct page *page,
                    const struct journal_wait_filter *filter, journal_wait_each *each, void *context,
                    int64_t *left, bool *ret_more, struct error **err)
{
    CLEANUP_FREE struct journal_wait_record *waits = NULL;
    int result = complete_page(reader, page, &waits, err);
    bool more = result == 0 && page->count > 0;
    for (size_t i = 0; more && i < page->count; i++) {
        if (filter->open_only && waits[i].has_end)
            continue;
        more = each(context, &waits[i]) && --*left > 0;
    }
    *ret_more = more;
    return result;
}

int journal_read_waits(struct journal_reader *reader, const struct journal_wait_filter *filter,
                       journal_wait_each *each, void *context, struct error **err)
{
    struct journal_entry_filter entries = {
        .operation = filter->operation,
        .since_us = filter->since_us,
        .until_us = filter->until_us,
        .kinds = JOURNAL_KIND_BIT(JOURNAL_WAIT_BEGIN),
        .object = filter->object,
        .namespace = filter->namespace,
        .name = filter->name,
    };
    int64_t left = filter->limit > 0 ? filter->limit : INT64_MAX;
    struct entry_cursor cursor;
    struct page page = {0};
    bool more = true;
    int result = entry_cursor_begin(reader, &entries, &cursor, err);
    while (result == 0 && more) {
        result = reader_begin(reader, err);
        if (result == 0)
            result = entry_cursor_next(reader, &cursor, &page, err);
        if (result == 0)
            result = hand_out(reader, &page, filter, each, context, &left, &more, err);
    }
    reader_end(reader);
    page_done(&page);
    return result;
}
