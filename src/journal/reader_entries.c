/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/reader_parts.h"

#include <stdio.h>

/* The predicates of partial indexes, word by word: the planner takes the index only then. */
static const char names_itself[] = " AND (kind = 'intent' OR kind = 'wait_begin' OR kind = 'begin')";

/* --- time bounds
 * ---------------------------------------------------------------------------------------------- */

struct bounds {
    int64_t low;
    int64_t high;
    bool found;
};

static void visit_bounds(void *context, sqlite3_stmt *statement)
{
    struct bounds *bounds = context;
    bounds->found = sqlite3_column_type(statement, 0) != SQLITE_NULL;
    bounds->low = sqlite3_column_int64(statement, 0);
    bounds->high = sqlite3_column_int64(statement, 1);
}

/* Times filter, seq orders: the lowest and the highest seq of the times asked for, from the time index alone.
 * Between them rows are read by key; where the clock never went back all of them fit. */
static int narrow_by_time(struct journal_reader *reader, struct entry_cursor *cursor, struct error **err)
{
    const struct journal_entry_filter *filter = &cursor->filter;
    struct bounds bounds = {0};
    struct query query = QUERY_INIT;
    query_add(&query, "SELECT min(seq), max(seq) FROM entry WHERE 1");
    if (filter->since_us)
        query_add_number(&query, " AND at_us >= ", filter->since_us);
    if (filter->until_us)
        query_add_number(&query, " AND at_us < ", filter->until_us);
    int result = query_run(reader, &query, visit_bounds, &bounds, err);
    query_done(&query);
    if (result < 0)
        return result;
    cursor->done = !bounds.found;
    cursor->low = MAX(cursor->low, bounds.low - 1);
    cursor->high = MIN(cursor->high, bounds.high);
    return 0;
}

int entry_cursor_begin(struct journal_reader *reader, const struct journal_entry_filter *filter,
                       struct entry_cursor *ret, struct error **err)
{
    const struct journal_meta *meta = &reader->meta;
    *ret = (struct entry_cursor){
        .filter = *filter,
        .low = MAX(filter->after_seq, meta->pruned_seq),
        .high = filter->through_seq > 0 ? MIN(filter->through_seq, meta->head_seq) : meta->head_seq,
        .left = filter->limit > 0 ? filter->limit : INT64_MAX,
    };
    /* With an operation or a name there are few rows: their times are looked at one by one. */
    bool by_time = (filter->since_us || filter->until_us) && !filter->operation && !filter->name;
    return by_time ? narrow_by_time(reader, ret, err) : 0;
}

static void add_kinds(struct query *query, unsigned kinds)
{
    const char *separator = " AND kind IN ('";
    for (int kind = 0; kind < JOURNAL_KIND_COUNT; kind++) {
        if (!(kinds & JOURNAL_KIND_BIT(kind)))
            continue;
        query_add(query, separator);
        query_add(query, journal_kind_text((enum journal_kind)kind));
        separator = "', '";
    }
    query_add(query, "')");
}

/* The + keeps an index from being chosen: the one that drives is said below. */
static void add_conditions(struct query *query, const struct entry_cursor *cursor)
{
    const struct journal_entry_filter *filter = &cursor->filter;
    bool by_operation = filter->operation != 0;
    bool by_name = !by_operation && filter->name;
    if (by_operation)
        query_add_number(query, " AND operation = ", filter->operation);
    if (filter->name) {
        query_add_text(query, by_name ? " AND name = " : " AND +name = ", filter->name);
        query_add(query, names_itself);
    }
    if (filter->namespace && filter->namespace[0])
        query_add_text(query, by_name ? " AND namespace = " : " AND +namespace = ", filter->namespace);
    else if (filter->namespace)
        query_add(query, by_name ? " AND namespace IS NULL" : " AND +namespace IS NULL");
    if (filter->object)
        query_add_text(query, " AND object = ", filter->object);
    if (cursor->action)
        query_add_text(query, " AND action = ", cursor->action);
    if (filter->since_us)
        query_add_number(query, " AND +at_us >= ", filter->since_us);
    if (filter->until_us)
        query_add_number(query, " AND +at_us < ", filter->until_us);
    if (filter->kinds != JOURNAL_KIND_ALL)
        add_kinds(query, filter->kinds);
}

int entry_cursor_next(struct journal_reader *reader, struct entry_cursor *cursor, struct page *page,
                      struct error **err)
{
    page_clear(page);
    if (cursor->done || cursor->left == 0 || cursor->low >= cursor->high)
        return 0;
    int64_t rows = MIN(cursor->left, (int64_t)READER_PAGE_ROWS);
    struct query query = QUERY_INIT;
    query_add(&query, "SELECT " ROW_COLUMNS("") " FROM entry");
    query_add_number(&query, " WHERE seq > ", cursor->low);
    query_add_number(&query, " AND seq <= ", cursor->high);
    add_conditions(&query, cursor);
    query_add_number(
        &query, cursor->filter.newest_first ? " ORDER BY seq DESC LIMIT " : " ORDER BY seq LIMIT ", rows);
    int result = query_run(reader, &query, page_visit, page, err);
    query_done(&query);
    if (result < 0)
        return result;
    if (page->unsound)
        return error_set(
            err, ERROR_CORRUPT,
            "journal %s: a row after entry %lld is none that this program knows: `neoset-audit verify` says "
            "more",
            reader->place.path, (long long)cursor->low);
    cursor->left -= (int64_t)page->count;
    cursor->done = (int64_t)page->count < rows;
    if (page->count > 0 && cursor->filter.newest_first)
        cursor->high = page->entries[page->count - 1].seq - 1;
    else if (page->count > 0)
        cursor->low = page->entries[page->count - 1].seq;
    return 0;
}

/* --- entries
 * -------------------------------------------------------------------------------------------------- */

int journal_read_entries(struct journal_reader *reader, const struct journal_entry_filter *filter,
                         journal_entry_each *each, void *context, struct error **err)
{
    struct entry_cursor cursor;
    struct page page = {0};
    bool more = true;
    int result = entry_cursor_begin(reader, filter, &cursor, err);
    while (result == 0 && more) {
        result = entry_cursor_next(reader, &cursor, &page, err);
        more = result == 0 && page.count > 0;
        for (size_t i = 0; more && i < page.count; i++)
            more = each(context, &page.entries[i]);
    }
    page_done(&page);
    return result;
}

static int not_there(const struct journal_reader *reader, int64_t seq, struct error **err)
{
    const struct journal_meta *meta = &reader->meta;
    if (seq > 0 && seq <= meta->pruned_seq)
        return error_set(err, ERROR_NOT_FOUND,
                         "journal %s: entry %lld was removed by retention (entries begin at %lld)",
                         meta->path, (long long)seq, (long long)meta->pruned_seq + 1);
    return error_set(err, ERROR_NOT_FOUND, "journal %s has no entry %lld (the newest is %lld)", meta->path,
                     (long long)seq, (long long)meta->head_seq);
}

int journal_read_entry(struct journal_reader *reader, int64_t seq, journal_entry_each *each, void *context,
                       struct error **err)
{
    if (seq < 1 || seq > reader->meta.head_seq)
        return not_there(reader, seq, err);
    struct journal_entry_filter filter = {.after_seq = seq - 1, .through_seq = seq, .limit = 1};
    struct entry_cursor cursor;
    struct page page = {0};
    int result = entry_cursor_begin(reader, &filter, &cursor, err);
    if (result == 0)
        result = entry_cursor_next(reader, &cursor, &page, err);
    if (result == 0 && page.count == 0)
        result = not_there(reader, seq, err);
    if (result == 0)
        each(context, &page.entries[0]);
    page_done(&page);
    return result;
}

/* --- bodies
 * --------------------------------------------------------------------------------------------------- */

struct kept_body {
    char *bytes;
    size_t length;
};

static void visit_body(void *context, sqlite3_stmt *statement)
{
    struct kept_body *body = context;
    const void *bytes = sqlite3_column_blob(statement, 0);
    body->length = (size_t)sqlite3_column_bytes(statement, 0);
    free(body->bytes);
    body->bytes = xmemdup0(bytes ? bytes : "", body->length);
}

int journal_read_body(struct journal_reader *reader, int64_t step, char **ret_body, size_t *ret_length,
                      struct error **err)
{
    struct kept_body body = {0};
    struct query query = QUERY_INIT;
    query_add_number(&query, "SELECT bytes FROM body WHERE step = ", step);
    int result = step <= reader->meta.head_seq ? query_run(reader, &query, visit_body, &body, err) : 0;
    query_done(&query);
    if (result < 0) {
        free(body.bytes);
        return result;
    }
    if (!body.bytes)
        return error_set(
            err, ERROR_NOT_FOUND,
            "journal %s: the bytes of step %lld are not kept (only those of patches are, and not for ever)",
            reader->place.path, (long long)step);
    *ret_body = body.bytes;
    *ret_length = body.length;
    return 0;
}
