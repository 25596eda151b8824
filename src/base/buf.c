/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <ctype.h>

enum { FIRST_ROOM = 64 };

int buf_grow(struct buf *buf, size_t more)
{
    PRE(buf->length <= buf->max);
    if (more > buf->max - buf->length) {
        buf->overflowed = true;
        return -ERROR_TOO_LARGE;
    }
    size_t needed = buf->length + more + 1;
    if (needed <= buf->room)
        return 0;
    size_t room = buf->room ? buf->room : FIRST_ROOM;
    while (room < needed)
        room *= 2;
    buf->data = xreallocarray(buf->data, room, 1);
    buf->room = room;
    return 0;
}

int buf_add(struct buf *buf, const void *bytes, size_t length)
{
    char *place = buf_extend(buf, length);
    if (place && length)
        memcpy(place, bytes, length);
    return place ? 0 : -ERROR_TOO_LARGE;
}

int buf_add_text(struct buf *buf, const char *text)
{
    return buf_add(buf, text, strlen(text));
}

int buf_add_char(struct buf *buf, char byte)
{
    return buf_add(buf, &byte, 1);
}

int buf_add_int64(struct buf *buf, int64_t number)
{
    char digits[24];
    char *at = digits + sizeof(digits);
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--at = '-';
    return buf_add(buf, at, (size_t)(digits + sizeof(digits) - at));
}

int buf_addf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *text = xvasprintf(format, args);
    va_end(args);
    return buf_add_text(buf, text);
}

void buf_drop_front(struct buf *buf, size_t length)
{
    PRE(length <= buf->length);
    if (length == 0)
        return;
    memmove(buf->data, buf->data + length, buf->length - length);
    buf->length -= length;
    buf->data[buf->length] = '\0';
}

void buf_cut(struct buf *buf, size_t length)
{
    PRE(length <= buf->length);
    buf->length = length;
    if (buf->data)
        buf->data[length] = '\0';
}

void buf_trim_end(struct buf *buf)
{
    while (buf->length > 0 && isspace((unsigned char)buf->data[buf->length - 1]))
        buf->data[--buf->length] = '\0';
}

void buf_clear(struct buf *buf)
{
    buf->length = 0;
    buf->overflowed = false;
    if (buf->data)
        buf->data[0] = '\0';
}

void buf_done(struct buf *buf)
{
    free(buf->data);
    *buf = BUF_INIT(buf->max);
}

const char *buf_text(const struct buf *buf)
{
    return buf->data ? buf->data : "";
}

char *buf_take(struct buf *buf)
{
    char *data = buf->data ? STEAL(buf->data) : xstrdup("");
    *buf = BUF_INIT(buf->max);
    return data;
}
