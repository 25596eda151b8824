/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_write.h"

#include "base/json.h"
#include "base/json_plain.h"

#include <math.h>
#include <stdio.h>

static int compare_members(const void *left, const void *right)
{
    const struct json_member *a = left;
    const struct json_member *b = right;
    int order = strcmp(a->node->string, b->node->string);
    return order ? order : (a->place > b->place) - (a->place < b->place);
}

struct json_member *json_sorted_members(const cJSON *object, size_t *ret_count)
{
    size_t count = (size_t)cJSON_GetArraySize(object);
    struct json_member *members = xcalloc(count, sizeof(*members));
    size_t i = 0;
    bool in_order = true;
    for (const cJSON *node = object->child; node; node = node->next, i++) {
        members[i] = (struct json_member){.node = node, .place = i};
        in_order = in_order && (i == 0 || strcmp(members[i - 1].node->string, node->string) <= 0);
    }
    if (!in_order)
        qsort(members, count, sizeof(*members), compare_members);
    *ret_count = count;
    return members;
}

static char *room_for(struct buf *out, size_t length)
{
    char *place = buf_extend(out, length);
    ENSURE(place); /* the largest text that there can be was asked for */
    return place;
}

static void put(struct buf *out, const char *bytes, size_t length)
{
    memcpy(room_for(out, length), bytes, length);
}

static void put_byte(struct buf *out, char byte)
{
    *room_for(out, 1) = byte;
}

static void write_escaped(struct buf *out, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[0x20] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    put_byte(out, '"');
    const char *plain = text;
    for (const char *at = text; *at; at++) {
        uint8_t byte = (uint8_t)*at;
        if (byte >= 0x20 && byte != '"' && byte != '\\')
            continue;
        put(out, plain, (size_t)(at - plain));
        plain = at + 1;
        char letter = byte >= 0x20 ? *at : letters[byte];
        if (letter)
            put(out, (char[]){'\\', letter}, 2);
        else
            put(out, (char[]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6);
    }
    put(out, plain, strlen(plain));
    put_byte(out, '"');
}

/* A string, and behind it one byte more unless that is 0. */
static void write_string(struct buf *out, const char *text, char behind)
{
    size_t length = strlen(text);
    const uint8_t *bytes = (const uint8_t *)text, *end = bytes + length;
    if (json_plain_end(bytes, end) != end) { /* most of what is written needs no escape */
        write_escaped(out, text);
        if (behind)
            put_byte(out, behind);
        return;
    }
    char *place = room_for(out, length + 2 + (behind != 0));
    *place = '"';
    place = mempcpy(place + 1, text, length);
    *place = '"';
    if (behind)
        place[1] = behind;
}

static void write_whole(struct buf *out, int64_t number)
{
    int result = buf_add_int64(out, number);
    ENSURE(result == 0);
}

/* The shorter of two texts that reads as the same number. */
static void write_fraction(struct buf *out, double number)
{
    char text[40];
    int length = snprintf(text, sizeof(text), "%.15g", number);
    if (strtod(text, NULL) != number)
        length = snprintf(text, sizeof(text), "%.17g", number);
    put(out, text, (size_t)length);
}

static void write_number(struct buf *out, double number)
{
    if (!isfinite(number))
        put(out, "null", 4);
    else if (fabs(number) <= (double)JSON_EXACT_MAX && number == floor(number) &&
             (number != 0 || !signbit(number)))
        write_whole(out, (int64_t)number);
    else
        write_fraction(out, number);
}

static void write_member(struct buf *out, const cJSON *node, bool first, bool sorted)
{
    if (!first)
        put_byte(out, ',');
    write_string(out, node->string, ':');
    json_write(out, node, sorted);
}

static void write_object(struct buf *out, const cJSON *object, bool sorted)
{
    put_byte(out, '{');
    if (sorted) {
        size_t count;
        CLEANUP_FREE struct json_member *members = json_sorted_members(object, &count);
        for (size_t i = 0; i < count; i++)
            write_member(out, members[i].node, i == 0, sorted);
    } else {
        for (const cJSON *node = object->child; node; node = node->next)
            write_member(out, node, node == object->child, sorted);
    }
    put_byte(out, '}');
}

static void write_array(struct buf *out, const cJSON *array, bool sorted)
{
    put_byte(out, '[');
    for (const cJSON *node = array->child; node; node = node->next) {
        if (node != array->child)
            put_byte(out, ',');
        json_write(out, node, sorted);
    }
    put_byte(out, ']');
}

static void write_text(struct buf *out, const char *text)
{
    put(out, text, strlen(text));
}

void json_write(struct buf *out, const cJSON *tree, bool sorted)
{
    switch (tree->type & 0xFF) {
    case cJSON_Object:
        write_object(out, tree, sorted);
        break;
    case cJSON_Array:
        write_array(out, tree, sorted);
        break;
    case cJSON_String:
        write_string(out, tree->valuestring, 0);
        break;
    case cJSON_Raw:
        write_text(out, tree->valuestring);
        break;
    case cJSON_Number:
        write_number(out, tree->valuedouble);
        break;
    case cJSON_True:
        write_text(out, "true");
        break;
    case cJSON_False:
        write_text(out, "false");
        break;
    case cJSON_NULL:
        write_text(out, "null");
        break;
    default:
        UNREACHABLE();
    }
}

void json_write_members(struct buf *out, const cJSON *object, const char *const *keys, size_t count)
{
    bool is_first = true;
    put_byte(out, '{');
    for (size_t i = 0; i < count; i++) {
        PRE(i == 0 || strcmp(keys[i - 1], keys[i]) < 0);
        const cJSON *node = json_get(object, keys[i]);
        if (!node || cJSON_IsNull(node))
            continue;
        write_member(out, node, is_first, true);
        is_first = false;
    }
    put_byte(out, '}');
}
