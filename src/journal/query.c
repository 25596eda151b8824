/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/reader_parts.h"

#include <stdio.h>

void query_add(struct query *query, const char *sql)
{
    ENSURE(buf_add_text(&query->sql, sql) == 0);
}

static void add_parameter(struct query *query, const char *sql)
{
    PRE(query->count < READER_PARAMETERS_MAX);
    char number[16];
    snprintf(number, sizeof(number), "?%d", query->count + 1);
    query_add(query, sql);
    query_add(query, number);
    query->count++;
}

void query_add_number(struct query *query, const char *sql, int64_t number)
{
    add_parameter(query, sql);
    query->parameters[query->count - 1].is_text = false;
    query->parameters[query->count - 1].number = number;
}

void query_add_text(struct query *query, const char *sql, const char *text)
{
    add_parameter(query, sql);
    query->parameters[query->count - 1].is_text = true;
    query->parameters[query->count - 1].text = text;
}

void query_done(struct query *query)
{
    buf_done(&query->sql);
    query->count = 0;
}

int query_prepare(struct journal_reader *reader, const struct query *query, sqlite3_stmt **ret,
                  struct error **err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(reader->db, buf_text(&query->sql), -1, &statement, NULL);
    if (code != SQLITE_OK)
        return reader_fail(reader, code, err);
    for (int i = 0; i < query->count; i++) {
        if (!query->parameters[i].is_text)
            code = sqlite3_bind_int64(statement, i + 1, query->parameters[i].number);
        else if (query->parameters[i].text)
            code = sqlite3_bind_text(statement, i + 1, query->parameters[i].text, -1, SQLITE_STATIC);
        ENSURE(code == SQLITE_OK);
    }
    *ret = statement;
    return 0;
}

int query_run(struct journal_reader *reader, const struct query *query, query_visit *visit, void *context,
              struct error **err)
{
    sqlite3_stmt *statement = NULL;
    int result = query_prepare(reader, query, &statement, err);
    if (result < 0)
        return result;
    int code = sqlite3_step(statement);
    while (code == SQLITE_ROW) {
        visit(context, statement);
        code = sqlite3_step(statement);
    }
    if (code == SQLITE_DONE)
        code = SQLITE_OK;
    if (code != SQLITE_OK)
        result = reader_fail(reader, code, err);
    sqlite3_finalize(statement);
    return result;
}

/* --- kept statements -------------------------------------------------------------------------- */

static const char *const kept_texts[READER_KEPT_COUNT] = {
#define X(name, sql) [READER_##name] = sql,
    READER_KEPT(X)
#undef X
};

int kept_run(struct journal_reader *reader, enum reader_kept kept, const int64_t *numbers, int count,
             kept_visit *visit, void *context, struct error **err)
{
    int code = SQLITE_OK;
    if (!reader->kept[kept])
        code = sqlite3_prepare_v3(reader->db, kept_texts[kept], -1, SQLITE_PREPARE_PERSISTENT,
                                  &reader->kept[kept], NULL);
    if (code != SQLITE_OK)
        return reader_fail(reader, code, err);
    sqlite3_stmt *statement = reader->kept[kept];
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(statement, i + 1, numbers[i]);
    bool more = true;
    while (more && (code = sqlite3_step(statement)) == SQLITE_ROW)
        more = visit(context, statement);
    /* An allocation that failed while a column was read is told here. */
    int end = sqlite3_reset(statement);
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        code = end;
    return code == SQLITE_OK ? 0 : reader_fail(reader, code, err);
}

int reader_begin(struct journal_reader *reader, struct error **err)
{
    int code = sqlite3_exec(reader->db, "BEGIN", NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : reader_fail(reader, code, err);
}

void reader_end(struct journal_reader *reader)
{
    if (!sqlite3_get_autocommit(reader->db))
        (void)sqlite3_exec(reader->db, "COMMIT", NULL, NULL, NULL);
}

int64_t reader_detail_number(const char *detail, const char *key)
{
    size_t length = strlen(key);
    if (!detail)
        return 0;
    if (detail[0] == '{' && detail[1] == '"' && strncmp(detail + 2, key, length) == 0 &&
        detail[2 + length] == '"' && detail[3 + length] == ':')
        return strtoll(detail + 4 + length, NULL, 10);
    CLEANUP_JSON cJSON *tree = NULL;
    if (json_parse(detail, strlen(detail), &tree, NULL) < 0)
        return 0;
    return json_int64_or(tree, key, 0);
}

/* --- pages ------------------------------------------------------------------------------------ */

void page_clear(struct page *page)
{
    arena_clear(&page->arena);
    page->count = 0;
    page->unsound = false;
}

void page_done(struct page *page)
{
    arena_done(&page->arena);
    free(STEAL(page->entries));
    page->count = 0;
    page->room = 0;
}

struct journal_entry page_copy(struct arena *arena, const struct journal_entry *entry)
{
    struct journal_entry copy = *entry;
    copy.action = arena_copy_text(arena, entry->action);
    copy.object = arena_copy_text(arena, entry->object);
    copy.namespace = arena_copy_text(arena, entry->namespace);
    copy.name = arena_copy_text(arena, entry->name);
    copy.uid = arena_copy_text(arena, entry->uid);
    copy.version = arena_copy_text(arena, entry->version);
    copy.audit_id = arena_copy_text(arena, entry->audit_id);
    copy.digest = arena_copy(arena, entry->digest, SHA256_SIZE);
    copy.reason = arena_copy_text(arena, entry->reason);
    copy.detail = arena_copy_text(arena, entry->detail);
    copy.hash = arena_copy(arena, entry->hash, SHA256_SIZE);
    return copy;
}

void page_visit(void *context, sqlite3_stmt *statement)
{
    struct page *page = context;
    struct journal_entry entry;
    if (!row_read(statement, 0, &entry)) {
        if (!page->unsound)
            page->unsound_seq = sqlite3_column_int64(statement, 0);
        page->unsound = true;
        return;
    }
    if (page->count == page->room) {
        page->room = page->room ? 2 * page->room : 64;
        page->entries = xreallocarray(page->entries, page->room, sizeof(*page->entries));
    }
    page->entries[page->count++] = page_copy(&page->arena, &entry);
}
