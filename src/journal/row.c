/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/row.h"

/* A text with a NUL byte in it was not written by us: what stands behind it would escape the hash. */
static const char *text_at(sqlite3_stmt *statement, int column, bool *ret_sound)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    if (text && (size_t)sqlite3_column_bytes(statement, column) != strlen(text))
        *ret_sound = false;
    return text;
}

/* NULL stays NULL; *ret_sound turns false on a blob of another size. */
static const uint8_t *hash_at(sqlite3_stmt *statement, int column, bool *ret_sound)
{
    const uint8_t *bytes = sqlite3_column_blob(statement, column);
    if (bytes && sqlite3_column_bytes(statement, column) != SHA256_SIZE) {
        *ret_sound = false;
        return NULL;
    }
    return bytes;
}

bool row_read(sqlite3_stmt *statement, int first, struct journal_entry *ret)
{
    bool sound = true;
    int column = first;
    ret->seq = sqlite3_column_int64(statement, column++);
    ret->form = sqlite3_column_int(statement, column++);
    int kind = journal_kind_of_text(text_at(statement, column++, &sound));
    sound = sound && kind >= 0;
    ret->kind = kind >= 0 ? (enum journal_kind)kind : JOURNAL_NOTE;
    ret->run = sqlite3_column_int64(statement, column++);
    ret->epoch = sqlite3_column_int64(statement, column++);
    ret->at_us = sqlite3_column_int64(statement, column++);
    ret->mono_us = sqlite3_column_int64(statement, column++);
    ret->operation = sqlite3_column_int64(statement, column++);
    ret->step = sqlite3_column_int64(statement, column++);
    ret->attempt = sqlite3_column_int(statement, column++);
    ret->action = text_at(statement, column++, &sound);
    ret->object = text_at(statement, column++, &sound);
    ret->namespace = text_at(statement, column++, &sound);
    ret->name = text_at(statement, column++, &sound);
    ret->uid = text_at(statement, column++, &sound);
    ret->version = text_at(statement, column++, &sound);
    ret->http = sqlite3_column_int(statement, column++);
    ret->audit_id = text_at(statement, column++, &sound);
    ret->digest = hash_at(statement, column++, &sound);
    ret->reason = text_at(statement, column++, &sound);
    ret->detail = text_at(statement, column++, &sound);
    ret->hash = hash_at(statement, column++, &sound);
    POST(column - first == ROW_COLUMN_COUNT);
    return sound && ret->hash;
}

static void bind_text(sqlite3_stmt *statement, int parameter, const char *text)
{
    if (text)
        ENSURE(sqlite3_bind_text(statement, parameter, text, -1, SQLITE_STATIC) == SQLITE_OK);
    else
        ENSURE(sqlite3_bind_null(statement, parameter) == SQLITE_OK);
}

/* Columns that are NULL in the file are zero in the struct. */
static void bind_number_or_null(sqlite3_stmt *statement, int parameter, int64_t number)
{
    if (number)
        sqlite3_bind_int64(statement, parameter, number);
    else
        sqlite3_bind_null(statement, parameter);
}

static void bind_hash(sqlite3_stmt *statement, int parameter, const uint8_t *bytes)
{
    if (bytes)
        sqlite3_bind_blob(statement, parameter, bytes, SHA256_SIZE, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, parameter);
}

void row_bind(sqlite3_stmt *statement, const struct journal_entry *entry)
{
    int parameter = 1;
    sqlite3_bind_int64(statement, parameter++, entry->seq);
    sqlite3_bind_int64(statement, parameter++, entry->form);
    bind_text(statement, parameter++, journal_kind_text(entry->kind));
    sqlite3_bind_int64(statement, parameter++, entry->run);
    sqlite3_bind_int64(statement, parameter++, entry->epoch);
    sqlite3_bind_int64(statement, parameter++, entry->at_us);
    sqlite3_bind_int64(statement, parameter++, entry->mono_us);
    bind_number_or_null(statement, parameter++, entry->operation);
    bind_number_or_null(statement, parameter++, entry->step);
    bind_number_or_null(statement, parameter++, entry->attempt);
    bind_text(statement, parameter++, entry->action);
    bind_text(statement, parameter++, entry->object);
    bind_text(statement, parameter++, entry->namespace);
    bind_text(statement, parameter++, entry->name);
    bind_text(statement, parameter++, entry->uid);
    bind_text(statement, parameter++, entry->version);
    bind_number_or_null(statement, parameter++, entry->http);
    bind_text(statement, parameter++, entry->audit_id);
    bind_hash(statement, parameter++, entry->digest);
    bind_text(statement, parameter++, entry->reason);
    bind_text(statement, parameter++, entry->detail);
    bind_hash(statement, parameter++, entry->hash);
    POST(parameter == ROW_COLUMN_COUNT + 1);
}
