/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/reader_parts.h"

struct operations {
    struct journal_reader *reader;
    struct arena arena;
    struct journal_operation_record *items;
    size_t count;
    size_t room;
};

static const char *text(struct operations *operations, sqlite3_stmt *statement, int column)
{
    return arena_copy_text(&operations->arena, (const char *)sqlite3_column_text(statement, column));
}

static void visit_operation(void *context, sqlite3_stmt *statement)
{
    struct operations *operations = context;
    if (operations->count == operations->room) {
        operations->room = operations->room ? 2 * operations->room : 64;
        operations->items = xreallocarray(operations->items, operations->room, sizeof(*operations->items));
    }
    operations->items[operations->count++] = (struct journal_operation_record){
        .id = sqlite3_column_int64(statement, 0),
        .kind = text(operations, statement, 1),
        .object = text(operations, statement, 2),
        .namespace = text(operations, statement, 3),
        .name = text(operations, statement, 4),
        .come_from = text(operations, statement, 5),
        .go_to = text(operations, statement, 6),
        .begun_us = sqlite3_column_int64(statement, 7),
        .ended_us = sqlite3_column_int64(statement, 8),
        .outcome = text(operations, statement, 9),
        .steps = sqlite3_column_int(statement, 10),
        .attempts = sqlite3_column_int(statement, 11),
    };
}

static bool visit_counts(void *context, sqlite3_stmt *statement)
{
    struct journal_operation_record *operation = context;
    operation->steps = sqlite3_column_int(statement, 0);
    operation->attempts = sqlite3_column_int(statement, 1);
    return true;
}

/* The table counts at the end of an operation: those of an open one are counted now. */
static int count_open(struct journal_reader *reader, struct operations *operations, struct error **err)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < operations->count; i++)
        if (!operations->items[i].outcome)
            result = kept_run(reader, READER_COUNTS, &operations->items[i].id, 1, visit_counts,
                              &operations->items[i], err);
    return result;
}

static void add_conditions(struct query *query, const struct journal_operation_filter *filter)
{
    if (filter->name)
        query_add_text(query, " AND name = ", filter->name);
    /* Without a name the order of the keys is the order of the list. */
    if (filter->namespace)
        query_add_text(query, filter->name ? " AND namespace = " : " AND +namespace = ", filter->namespace);
    if (filter->object)
        query_add_text(query, " AND +object = ", filter->object);
    if (filter->kind)
        query_add_text(query, " AND +kind = ", filter->kind);
    if (filter->since_us)
        query_add_number(query, " AND +begun_us >= ", filter->since_us);
    if (filter->until_us)
        query_add_number(query, " AND +begun_us < ", filter->until_us);
    if (str_equal(filter->outcome, "open"))
        query_add(query, " AND ended_us IS NULL");
    else if (filter->outcome && !filter->name && !str_equal(filter->outcome, "completed"))
        query_add_text(query, " AND outcome <> 'completed' AND outcome = ", filter->outcome);
    else if (filter->outcome)
        query_add_text(query, " AND +outcome = ", filter->outcome);
}

struct range {
    int64_t low; /* id > */
    int64_t high;
};

static void visit_range(void *context, sqlite3_stmt *statement)
{
    struct range *range = context;
    if (sqlite3_column_type(statement, 0) == SQLITE_NULL) {
        range->high = range->low;
        return;
    }
    range->low = MAX(range->low, sqlite3_column_int64(statement, 0) - 1);
    range->high = MIN(range->high, sqlite3_column_int64(statement, 1));
}

/* As for entries: times filter, ids order. */
static int narrow_by_time(struct journal_reader *reader, const struct journal_operation_filter *filter,
                          struct range *range, struct error **err)
{
    if (!filter->since_us && !filter->until_us)
        return 0;
    struct query query = QUERY_INIT;
    query_add(&query, "SELECT min(id), max(id) FROM operation WHERE 1");
    if (filter->since_us)
        query_add_number(&query, " AND begun_us >= ", filter->since_us);
    if (filter->until_us)
        query_add_number(&query, " AND begun_us < ", filter->until_us);
    int result = query_run(reader, &query, visit_range, range, err);
    query_done(&query);
    return result;
}

static int read_page(struct journal_reader *reader, const struct journal_operation_filter *filter,
                     const struct range *range, int64_t rows, struct operations *page, struct error **err)
{
    arena_clear(&page->arena);
    page->count = 0;
    struct query query = QUERY_INIT;
    query_add(
        &query,
        "SELECT id, kind, object, namespace, name, come_from, go_to, begun_us, ended_us, outcome, steps,"
        " attempts FROM operation");
    query_add_number(&query, " WHERE id > ", range->low);
    query_add_number(&query, " AND id <= ", range->high);
    add_conditions(&query, filter);
    query_add_number(&query, filter->oldest_first ? " ORDER BY id LIMIT " : " ORDER BY id DESC LIMIT ", rows);
    int result = query_run(reader, &query, visit_operation, page, err);
    query_done(&query);
    return result < 0 ? result : count_open(reader, page, err);
}

int journal_read_operations(struct journal_reader *reader, const struct journal_operation_filter *filter,
                            journal_operation_each *each, void *context, struct error **err)
{
    struct operations page = {.reader = reader};
    struct range range = {
        .low = filter->id > 0 ? filter->id - 1 : reader->meta.pruned_seq,
        .high = filter->id > 0 ? MIN(filter->id, reader->meta.head_seq) : reader->meta.head_seq,
    };
    int64_t left = filter->limit > 0 ? filter->limit : INT64_MAX;
    int result = narrow_by_time(reader, filter, &range, err);
    bool more = result == 0;
    while (more && left > 0 && range.low < range.high) {
        int64_t rows = MIN(left, (int64_t)READER_PAGE_ROWS);
        result = read_page(reader, filter, &range, rows, &page, err);
        more = result == 0 && (int64_t)page.count == rows;
        left -= (int64_t)page.count;
        for (size_t i = 0; result == 0 && i < page.count; i++) {
            if (filter->oldest_first)
                range.low = page.items[i].id;
            else
                range.high = page.items[i].id - 1;
            if (!each(context, &page.items[i])) {
                more = false;
                break;
            }
        }
    }
    arena_done(&page.arena);
    free(page.items);
    return result;
}
