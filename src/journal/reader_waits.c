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

static cJSON *detail_of(const struct journal_entry *entry)
{
    cJSON *tree = NULL;
    if (!entry->detail || json_parse(entry->detail, strlen(entry->detail), &tree, NULL) < 0)
        return NULL;
    return tree;
}

static void visit_open(void *context, sqlite3_stmt *statement)
{
    struct wait_visit *visit = context;
    struct journal_wait_record *wait = visit->wait;
    visit->is_open = true;
    wait->held = sqlite3_column_type(statement, 1) == SQLITE_NULL;
    wait->spent_us = sqlite3_column_int64(statement, 0);
    if (!wait->held)
        wait->spent_us += MAX((int64_t)0, visit->head_mono_us - sqlite3_column_int64(statement, 1));
}

static void visit_end(void *context, sqlite3_stmt *statement)
{
    struct wait_visit *visit = context;
    struct journal_wait_record *wait = visit->wait;
    struct journal_entry end;
    if (wait->has_end || !row_read(statement, 0, &end))
        return;
    CLEANUP_JSON cJSON *detail = detail_of(&end);
    if (json_int64_or(detail, "wait", 0) != wait->begin.seq)
        return;
    wait->has_end = true;
    wait->end = page_copy(visit->arena, &end);
    wait->spent_us = json_int64_or(detail, "spent_us", 0);
    const char *outcome = json_str(detail, "outcome");
    wait->outcome = arena_copy_text(visit->arena, outcome ? outcome : "");
}

static int read_open(struct journal_reader *reader, struct wait_visit *visit, struct error **err)
{
    struct query query = QUERY_INIT;
    query_add_number(&query,
                     "SELECT spent_us, since_us FROM open_wait WHERE wait = ", visit->wait->begin.seq);
    int result = query_run(reader, &query, visit_open, visit, err);
    query_done(&query);
    return result;
}

/* Its end is one of the rows of its operation; of a wait without one, a row of the same object. */
static int read_end(struct journal_reader *reader, struct wait_visit *visit, struct error **err)
{
    const struct journal_entry *begin = &visit->wait->begin;
    struct query query = QUERY_INIT;
    query_add(&query, "SELECT " ROW_COLUMNS("") " FROM entry WHERE kind = 'wait_end'");
    if (begin->operation)
        query_add_number(&query, " AND operation = ", begin->operation);
    query_add_number(&query, " AND seq > ", begin->seq);
    query_add_number(&query, " AND seq <= ", reader->meta.head_seq);
    query_add_text(&query, " AND +name = ", begin->name);
    query_add_text(&query, " AND action = ", begin->action);
    /* The first that fits is it: while a wait is open there is no other of its object and action. */
    query_add_text(&query, " AND object = ", begin->object);
    query_add_text(&query, " AND +namespace IS ", begin->namespace);
    query_add(&query, " ORDER BY seq LIMIT 1");
    int result = query_run(reader, &query, visit_end, visit, err);
    query_done(&query);
    return result;
}

static int complete(struct journal_reader *reader, struct arena *arena, struct journal_wait_record *wait,
                    struct error **err)
{
    CLEANUP_JSON cJSON *detail = detail_of(&wait->begin);
    wait->budget_us = json_int64_or(detail, "budget_us", 0);
    struct wait_visit visit = {.arena = arena, .wait = wait, .head_mono_us = reader->head_mono_us};
    int result = read_open(reader, &visit, err);
    return result < 0 || visit.is_open ? result : read_end(reader, &visit, err);
}

static int hand_out(struct journal_reader *reader, struct page *page,
                    const struct journal_wait_filter *filter, journal_wait_each *each, void *context,
                    int64_t *left, bool *ret_more, struct error **err)
{
    CLEANUP_FREE struct journal_wait_record *waits = xcalloc(page->count + 1, sizeof(*waits));
    for (size_t i = 0; i < page->count; i++) {
        waits[i].begin = page->entries[i];
        int result = complete(reader, &page->arena, &waits[i], err);
        if (result < 0)
            return result;
    }
    bool more = page->count > 0;
    for (size_t i = 0; more && i < page->count; i++) {
        if (filter->open_only && waits[i].has_end)
            continue;
        more = each(context, &waits[i]) && --*left > 0;
    }
    *ret_more = more;
    return 0;
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
        result = entry_cursor_next(reader, &cursor, &page, err);
        if (result == 0)
            result = hand_out(reader, &page, filter, each, context, &left, &more, err);
    }
    page_done(&page);
    return result;
}
