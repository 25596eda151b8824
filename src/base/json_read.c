/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_read.h"

#include "base/hex.h"
#include "base/json_memory.h"
#include "base/json_plain.h"
#include "base/json_write.h"
#include "base/utf8.h"

#include <limits.h>

/* Bytes of a tree to a byte of its text: measured on pods and NeoSets, 3 to 5. */
enum { TREE_TO_TEXT = 4 };
/* A plain integer of so many digits is exact in a double. */
enum { EXACT_DIGITS_MAX = 15 };

struct reader {
    const uint8_t *text;
    size_t length;
    size_t at;
    int depth;
    const struct json_omission *omission; /* NULL: none */
    bool is_omitting;                     /* what is read now is checked, and not kept */
    cJSON nothing;                        /* the node of what is not kept */
    struct json_memory memory;
    struct error **err;
};

/* A string as it stands in the text, without its quotes. */
struct span {
    size_t begin;
    size_t length;
    bool has_escapes;
};

static int bad(struct reader *reader, const char *what)
{
    return error_set(reader->err, ERROR_INVALID, "not valid JSON at byte %zu: %s", reader->at, what);
}

static uint8_t peek(const struct reader *reader)
{
    return reader->at < reader->length ? reader->text[reader->at] : 0;
}

static void skip_space(struct reader *reader)
{
    for (;;) {
        uint8_t byte = peek(reader);
        if (byte != ' ' && byte != '\t' && byte != '\r' && byte != '\n')
            return;
        reader->at++;
    }
}

/* --- strings -------------------------------------------------------------------------------------------- */

static bool hex4(const uint8_t *digits, unsigned *ret)
{
    *ret = 0;
    for (int i = 0; i < 4; i++) {
        int value = hex_value((char)digits[i]);
        if (value < 0)
            return false;
        *ret = *ret << 4 | (unsigned)value;
    }
    return true;
}

static int scan_escape(struct reader *reader)
{
    reader->at++;
    if (peek(reader) != 'u') {
        if (peek(reader) == 0 || !strchr("\"\\/bfnrt", peek(reader)))
            return bad(reader, "unknown escape");
        reader->at++;
        return 0;
    }
    unsigned code;
    if (reader->length - reader->at < 5 || !hex4(reader->text + reader->at + 1, &code))
        return bad(reader, "broken \\u escape");
    if (code == 0)
        return bad(reader, "\\u0000 in a string");
    reader->at += 5;
    if (code >= 0xDC00 && code <= 0xDFFF)
        return bad(reader, "lone surrogate");
    if (code >= 0xD800 && code <= 0xDBFF) {
        const uint8_t *next = reader->text + reader->at;
        unsigned low;
        if (reader->length - reader->at < 6 || next[0] != '\\' || next[1] != 'u' || !hex4(next + 2, &low) ||
            low < 0xDC00 || low > 0xDFFF)
            return bad(reader, "lone surrogate");
        reader->at += 6;
    }
    return 0;
}

/* Most of what is read. */
static void skip_plain(struct reader *reader)
{
    const uint8_t *end = json_plain_end(reader->text + reader->at, reader->text + reader->length);
    reader->at = (size_t)(end - reader->text);
}

static int scan_string(struct reader *reader, struct span *ret)
{
    reader->at++;
    *ret = (struct span){.begin = reader->at};
    for (skip_plain(reader); reader->at < reader->length; skip_plain(reader)) {
        uint8_t byte = reader->text[reader->at];
        if (byte == '"') {
            ret->length = reader->at++ - ret->begin;
            return 0;
        }
        if (byte < 0x20)
            return bad(reader, "control character in a string");
        if (byte == '\\') {
            ret->has_escapes = true;
            int result = scan_escape(reader);
            if (result < 0)
                return result;
            continue;
        }
        size_t sequence = utf8_sequence_length(reader->text + reader->at, reader->length - reader->at);
        if (sequence == 0)
            return bad(reader, "invalid UTF-8");
        reader->at += sequence;
    }
    return bad(reader, "unfinished string");
}

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned marks[] = {0, 0xC0, 0xE0, 0xF0};
    *to++ = (char)(marks[more] | code >> (6 * more));
    while (more-- > 0)
        *to++ = (char)(0x80 | ((code >> (6 * more)) & 0x3F));
    return to;
}

/* One escape that was scanned; returns the place behind it. */
static const uint8_t *put_escape(const uint8_t *at, char **to)
{
    static const char letters[] = "bfnrt", bytes[] = "\b\f\n\r\t";
    if (at[1] != 'u') {
        const char *letter = strchr(letters, at[1]);
        *(*to)++ = letter ? bytes[letter - letters] : (char)at[1];
        return at + 2;
    }
    unsigned code = 0, low = 0;
    ENSURE(hex4(at + 2, &code));
    at += 6;
    if (code >= 0xD800 && code <= 0xDBFF) {
        ENSURE(hex4(at + 2, &low));
        at += 6;
        code = 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00));
    }
    *to = put_utf8(*to, code);
    return at;
}

/* What the string says, with its end: at most span->length + 1 bytes. */
static void put_text(const struct reader *reader, const struct span *span, char *to)
{
    const uint8_t *at = reader->text + span->begin;
    const uint8_t *end = at + span->length;
    if (!span->has_escapes) {
        *(char *)mempcpy(to, at, span->length) = '\0';
        return;
    }
    while (at < end) {
        if (*at == '\\')
            at = put_escape(at, &to);
        else
            *to++ = (char)*at++;
    }
    *to = '\0';
}

/* --- values --------------------------------------------------------------------------------------------- */

/* At the end of parent. */
static void link_node(cJSON *parent, cJSON *node)
{
    if (parent->child) {
        node->prev = parent->child->prev;
        node->prev->next = node;
        parent->child->prev = node;
    } else {
        node->prev = node;
        parent->child = node;
    }
}

/* A node at the end of parent; key is NULL in a list, value where there is no text. */
static cJSON *add_node(struct reader *reader, cJSON *parent, const struct span *key, int type,
                       const struct span *value)
{
    if (reader->is_omitting)
        return &reader->nothing;
    cJSON *node = json_memory_take_node(&reader->memory, type, key ? key->length + 1 : 0,
                                        value ? value->length + 1 : 0);
    if (key)
        put_text(reader, key, node->string);
    if (value)
        put_text(reader, value, node->valuestring);
    link_node(parent, node);
    return node;
}

static size_t skip_digits(struct reader *reader)
{
    size_t begin = reader->at;
    while (peek(reader) >= '0' && peek(reader) <= '9')
        reader->at++;
    return reader->at - begin;
}

/* Digits behind a point or an exponent. */
static bool skip_more_digits(struct reader *reader)
{
    reader->at++;
    return skip_digits(reader) > 0;
}

static void add_integer(struct reader *reader, cJSON *parent, const struct span *key, size_t begin)
{
    int64_t number = 0;
    bool is_negative = reader->text[begin] == '-';
    for (size_t i = begin + is_negative; i < reader->at; i++)
        number = 10 * number + (reader->text[i] - '0');
    number = is_negative ? -number : number;
    cJSON *node = add_node(reader, parent, key, cJSON_Number, NULL);
    node->valuedouble = (double)number;
    node->valueint = (int)MIN(MAX(number, (int64_t)INT_MIN), (int64_t)INT_MAX);
}

/* All but plain integers keeps its text. */
static int read_number(struct reader *reader, cJSON *parent, const struct span *key)
{
    size_t begin = reader->at;
    if (peek(reader) == '-')
        reader->at++;
    bool is_zero = peek(reader) == '0';
    size_t digits = skip_digits(reader);
    if (digits == 0 || (is_zero && digits > 1))
        return bad(reader, "broken number");
    bool is_plain = digits <= EXACT_DIGITS_MAX && !(is_zero && reader->text[begin] == '-');
    if (peek(reader) == '.') {
        is_plain = false;
        if (!skip_more_digits(reader))
            return bad(reader, "broken number");
    }
    if (peek(reader) == 'e' || peek(reader) == 'E') {
        is_plain = false;
        uint8_t sign = reader->at + 1 < reader->length ? reader->text[reader->at + 1] : 0;
        if (sign == '+' || sign == '-')
            reader->at++;
        if (!skip_more_digits(reader))
            return bad(reader, "broken number");
    }
    if (is_plain)
        add_integer(reader, parent, key, begin);
    else
        (void)add_node(reader, parent, key, cJSON_Raw,
                       &(struct span){.begin = begin, .length = reader->at - begin});
    return 0;
}

static int read_word(struct reader *reader, cJSON *parent, const struct span *key, const char *word, int type)
{
    size_t length = strlen(word);
    if (reader->length - reader->at < length || memcmp(reader->text + reader->at, word, length) != 0)
        return bad(reader, "unknown word");
    reader->at += length;
    (void)add_node(reader, parent, key, type, NULL);
    return 0;
}

static int read_string(struct reader *reader, cJSON *parent, const struct span *key)
{
    struct span span;
    int result = scan_string(reader, &span);
    if (result == 0)
        (void)add_node(reader, parent, key, cJSON_String, &span);
    return result;
}

/* Keys of one name have one mark; few others share it. */
static uint64_t mark_of(const char *key)
{
    unsigned first = (uint8_t)key[0], second = first ? (uint8_t)key[1] : 0,
             third = second ? (uint8_t)key[2] : 0;
    return UINT64_C(1) << ((5 * first + 11 * second + 23 * third) % 64);
}

static bool is_among(const char *key, const cJSON *first, const cJSON *end)
{
    for (const cJSON *node = first; node != end; node = node->next)
        if (strcmp(node->string, key) == 0)
            return true;
    return false;
}

/* Most objects are small, and need no array to be looked through. */
static bool has_unique_keys(const cJSON *object)
{
    enum { LOOKED_THROUGH_MAX = 16 };
    size_t count = 0;
    uint64_t marks = 0;
    for (const cJSON *node = object->child; node; node = node->next) {
        if (++count > LOOKED_THROUGH_MAX)
            return false;
        uint64_t mark = mark_of(node->string);
        if ((marks & mark) && is_among(node->string, object->child, node))
            return false;
        marks |= mark;
    }
    return true;
}

/* Of the members of one key the last one stays, as with the server's decoder: what it checked is what we see.
 */
static void drop_overwritten(cJSON *object)
{
    if (has_unique_keys(object))
        return;
    size_t count;
    CLEANUP_FREE struct json_member *members = json_sorted_members(object, &count);
    for (size_t i = 0; i + 1 < count; i++)
        if (strcmp(members[i].node->string, members[i + 1].node->string) == 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(object, (cJSON *)members[i].node));
}

static int read_value(struct reader *reader, cJSON *parent, const struct span *key);

/* A key that is written with escapes is not looked at. */
static bool key_is(const struct reader *reader, const struct span *key, const char *text)
{
    return !key->has_escapes && key->length == strlen(text) &&
           memcmp(reader->text + key->begin, text, key->length) == 0;
}

static bool is_omitted(const struct reader *reader, const cJSON *object, const struct span *key)
{
    const struct json_omission *omission = reader->omission;
    return omission && !reader->is_omitting && reader->depth == omission->depth &&
           key_is(reader, key, omission->key) && str_equal(object->string, omission->parent);
}

static int read_key(struct reader *reader, struct span *ret)
{
    skip_space(reader);
    if (peek(reader) != '"')
        return bad(reader, "a member name is missing");
    int result = scan_string(reader, ret);
    if (result < 0)
        return result;
    skip_space(reader);
    if (peek(reader) != ':')
        return bad(reader, "':' is missing");
    reader->at++;
    return 0;
}

static int omit_value(struct reader *reader)
{
    reader->is_omitting = true;
    int result = read_value(reader, &reader->nothing, NULL);
    reader->is_omitting = false;
    return result;
}

static int read_member(struct reader *reader, cJSON *object)
{
    struct span key;
    int result = read_key(reader, &key);
    if (result < 0)
        return result;
    return is_omitted(reader, object, &key) ? omit_value(reader) : read_value(reader, object, &key);
}

static int read_items(struct reader *reader, cJSON *container, uint8_t end)
{
    for (;;) {
        int result = end == '}' ? read_member(reader, container) : read_value(reader, container, NULL);
        if (result < 0)
            return result;
        skip_space(reader);
        uint8_t next = peek(reader);
        if (next != ',' && next != end)
            return bad(reader, "',' or an end is missing");
        reader->at++;
        if (next == end)
            return 0;
    }
}

static int read_container(struct reader *reader, cJSON *parent, const struct span *key, int type)
{
    uint8_t end = type == cJSON_Object ? '}' : ']';
    if (++reader->depth > JSON_DEPTH_MAX)
        return bad(reader, "nested too deeply");
    cJSON *container = add_node(reader, parent, key, type, NULL);
    reader->at++;
    skip_space(reader);
    if (peek(reader) == end) {
        reader->at++;
    } else {
        int result = read_items(reader, container, end);
        if (result < 0)
            return result;
    }
    if (type == cJSON_Object && !reader->is_omitting)
        drop_overwritten(container);
    reader->depth--;
    return 0;
}

static int read_value(struct reader *reader, cJSON *parent, const struct span *key)
{
    skip_space(reader);
    switch (peek(reader)) {
    case '{':
        return read_container(reader, parent, key, cJSON_Object);
    case '[':
        return read_container(reader, parent, key, cJSON_Array);
    case '"':
        return read_string(reader, parent, key);
    case 't':
        return read_word(reader, parent, key, "true", cJSON_True);
    case 'f':
        return read_word(reader, parent, key, "false", cJSON_False);
    case 'n':
        return read_word(reader, parent, key, "null", cJSON_NULL);
    case 0:
        return bad(reader, reader->at < reader->length ? "a zero byte" : "it ends too early");
    default:
        return read_number(reader, parent, key);
    }
}

static int read_all(struct reader *reader, cJSON *top)
{
    int result = read_value(reader, top, NULL);
    if (result < 0)
        return result;
    skip_space(reader);
    return reader->at == reader->length ? 0 : bad(reader, "bytes after its end");
}

int json_read(const char *text, size_t length, const struct json_omission *omission, cJSON **ret_tree,
              struct error **err)
{
    PRE(text && ret_tree);
    struct reader reader = {
        .text = (const uint8_t *)text, .length = length, .omission = omission, .err = err};
    cJSON top = {0}; /* the tree is its only child */
    json_memory_begin(&reader.memory, MIN(length, SIZE_MAX / TREE_TO_TEXT) * TREE_TO_TEXT);
    int result = read_all(&reader, &top);
    json_memory_done(&reader.memory);
    if (result < 0) {
        cJSON_Delete(top.child);
        return result;
    }
    top.child->prev = NULL;
    *ret_tree = top.child;
    return 0;
}

/* --- a part of it --------------------------------------------------------------------------------------- */

static int no_part(struct reader *reader, const char *key)
{
    return error_set(reader->err, ERROR_NOT_FOUND, "it has no %s", key);
}

/* The reader stands at the value that has path[0] as a member. */
static int read_part(struct reader *reader, cJSON *top, const char *const *path)
{
    skip_space(reader);
    if (peek(reader) != '{')
        return no_part(reader, path[0]);
    reader->at++;
    reader->depth++;
    skip_space(reader);
    if (peek(reader) == '}')
        return no_part(reader, path[0]);
    for (;;) {
        struct span key;
        int result = read_key(reader, &key);
        if (result < 0)
            return result;
        if (key_is(reader, &key, path[0]))
            return path[1] ? read_part(reader, top, path + 1) : read_value(reader, top, &key);
        result = omit_value(reader);
        if (result < 0)
            return result;
        skip_space(reader);
        if (peek(reader) == '}')
            return no_part(reader, path[0]);
        if (peek(reader) != ',')
            return bad(reader, "',' or an end is missing");
        reader->at++;
    }
}

int json_read_part(const char *text, size_t length, const char *const *path,
                   const struct json_omission *omission, cJSON **ret_tree, struct error **err)
{
    PRE(text && ret_tree);
    struct reader reader = {
        .text = (const uint8_t *)text, .length = length, .omission = omission, .err = err};
    json_memory_begin(&reader.memory, 0);
    cJSON *top = json_memory_take_node(&reader.memory, cJSON_Object, 0, 0);
    int result = read_part(&reader, top, path);
    json_memory_done(&reader.memory);
    if (result < 0)
        cJSON_Delete(top);
    else
        *ret_tree = top;
    return result;
}
