/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/reader_parts.h"

#include <stdio.h>

/* The predicates of partial indexes, word by word: the planner takes the index only then. */
static const char names_itself[] = " AND (kind = 'intent' OR kind = 'wait_begin' OR kind = 'begin')";

/* --- time bounds ------------------------------------------------------------------------------ */

/* Times filter, seq orders: rows are read by key between the lowest and the highest seq of the times asked
 * for. Both come from the time index alone; where the clock never went back all rows between them fit. */
struct bounds {
    int64_t low;
    int64_t high;
    int64_t count;
};

enum { BOUNDS_ROWS_MAX = 50000 };

static void visit_bounds(void *context, sqlite3_stmt *statement)
{
    struct bounds *bounds = context;
    bounds->low = sqlite3_column_int64(statement, 0);
    bounds->high = sqlite3_column_int64(statement, 1);
    bounds->count = sqlite3_column_int64(statement, 2);
}

/* Of the rows of the snapshot with since <= at_us < until (0: no limit), at most rows_max of them. */
static int read_bounds(struct journal_reader *reader, int64_t since_us, int64_t until_us, int64_t rows_max,
                       struct bounds *ret, struct error **err)
{
    struct query query = QUERY_INIT;
    query_add(&query, "SELECT min(seq), max(seq), count(*) FROM (SELECT seq FROM entry");
    /* The limits on seq are looked at in the index: the key is its last column. */
    query_add_number(&query, " WHERE seq > ", reader->meta.pruned_seq);
    query_add_number(&query, " AND seq <= ", reader->meta.head_seq);
    query_add_number(&query, " AND at_us >= ", since_us ? since_us : INT64_MIN);
    query_add_number(&query, " AND at_us < ", until_us ? until_us : INT64_MAX);
    query_add_number(&query, " LIMIT ", rows_max);
    query_add(&query, ")");
    int result = query_run(reader, &query, visit_bounds, ret, err);
    query_done(&query);
    return result;
}

static void visit_time(void *context, sqlite3_stmt *statement)
{
    *(int64_t *)context = sqlite3_column_int64(statement, 0);
}

/* Is more of the history before this time than after it? */
static int is_late(struct journal_reader *reader, int64_t at_us, bool *ret, struct error **err)
{
    int64_t middle_us = 0;
    struct query query = QUERY_INIT;
    query_add_number(&query, "SELECT at_us FROM entry WHERE seq >= ",
                     (reader->meta.pruned_seq + reader->meta.head_seq) / 2);
    query_add(&query, " ORDER BY seq LIMIT 1");
    int result = query_run(reader, &query, visit_time, &middle_us, err);
    query_done(&query);
    if (result == 0)
        *ret = at_us > middle_us;
    return result;
}

/* The lowest seq at or after since. Many rows are: when fewer are before, and those are all the oldest, it is
 * the next. */
static int find_low(struct journal_reader *reader, int64_t since_us, int64_t *ret_low, struct error **err)
{
    struct bounds rows = {0};
    bool late = false;
    int result = is_late(reader, since_us, &late, err);
    if (result == 0 && !late)
        result = read_bounds(reader, 0, since_us, INT64_MAX, &rows, err);
    if (result < 0)
        return result;
    if (!late && rows.count == 0)
        return 0; /* all of them */
    if (!late && rows.high - reader->meta.pruned_seq == rows.count) {
        *ret_low = rows.high;
        return 0;
    }
    result = read_bounds(reader, since_us, 0, INT64_MAX, &rows, err);
    if (result == 0)
        *ret_low = rows.count ? rows.low - 1 : reader->meta.head_seq;
    return result;
}

/* The highest seq before until, in the same way. */
static int find_high(struct journal_reader *reader, int64_t until_us, int64_t *ret_high, struct error **err)
{
    struct bounds rows = {0};
    bool late = false;
    int result = is_late(reader, until_us, &late, err);
    if (result == 0 && late)
        result = read_bounds(reader, until_us, 0, INT64_MAX, &rows, err);
    if (result < 0)
        return result;
    if (late && rows.count == 0)
        return 0;
    if (late && reader->meta.head_seq - rows.low + 1 == rows.count) {
        *ret_high = rows.low - 1;
        return 0;
    }
    result = read_bounds(reader, 0, until_us, INT64_MAX, &rows, err);
    if (result == 0)
        *ret_high = rows.count ? rows.high : reader->meta.pruned_seq;
    return result;
}

static int narrow_by_time(struct journal_reader *reader, struct entry_cursor *cursor, struct error **err)
{
    const struct journal_entry_filter *filter = &cursor->filter;
    struct bounds rows = {0};
    int result = read_bounds(reader, filter->since_us, filter->until_us, BOUNDS_ROWS_MAX, &rows, err);
    if (result < 0)
        return result;
    int64_t low = reader->meta.pruned_seq;
    int64_t high = reader->meta.head_seq;
    if (rows.count < BOUNDS_ROWS_MAX) {
        low = rows.count ? rows.low - 1 : high;
        high = rows.high;
    } else {
        if (filter->since_us)
            result = find_low(reader, filter->since_us, &low, err);
        if (result == 0 && filter->until_us)
            result = find_high(reader, filter->until_us, &high, err);
    }
    cursor->low = MAX(cursor->low, low);
    cursor->high = MIN(cursor->high, high);
    return result;
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
            "journal %s: entry %lld cannot be read: it is damaged, or a newer neoset wrote it; `neoset-audit "
            "verify` says more",
            reader->place.path, (long long)page->unsound_seq);
    cursor->left -= (int64_t)page->count;
    cursor->done = (int64_t)page->count < rows;
    if (page->count > 0 && cursor->filter.newest_first)
        cursor->high = page->entries[page->count - 1].seq - 1;
    else if (page->count > 0)
        cursor->low = page->entries[page->count - 1].seq;
    return 0;
}

/* --- entries ---------------------------------------------------------------------------------- */

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
