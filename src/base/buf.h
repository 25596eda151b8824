/* SPDX-License-Identifier: Apache-2.0
 *
 * A growable byte buffer with a mandatory maximum (the habit of curl's dynbuf). Always NUL-terminated, so
 * that buf_text() is a C string when the bytes are text. Past the maximum it keeps what it has, refuses what
 * does not fit and remembers that it did. */
#pragma once

#include "base/error.h"

struct buf {
    char *data;    /* NULL or NUL-terminated */
    size_t length; /* bytes without the NUL */
    size_t room;
    size_t max; /* bytes that length may reach */
    bool overflowed;
};

#define BUF_INIT(max_bytes) ((struct buf){.max = (max_bytes)})

/* Each returns 0, or -ERROR_TOO_LARGE when the maximum would be passed (nothing of this call is added then).
 */
int buf_add(struct buf *buf, const void *bytes, size_t length);
int buf_add_text(struct buf *buf, const char *text);
int buf_add_char(struct buf *buf, char byte);
/* Room for so many more bytes, which count at once and are the caller's to write; NULL when the maximum would
 * be passed. Good until the next call. */
static inline char *buf_extend(struct buf *buf, size_t length);
/* In decimal. */
int buf_add_int64(struct buf *buf, int64_t number);
int buf_addf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Removes length bytes from the front. */
void buf_drop_front(struct buf *buf, size_t length);
/* Keeps the first length bytes, of as many or more. */
void buf_cut(struct buf *buf, size_t length);
/* Removes white space from the end. */
void buf_trim_end(struct buf *buf);
/* Forgets the content, keeps the memory. */
void buf_clear(struct buf *buf);
/* Frees the content; the maximum stays. */
void buf_done(struct buf *buf);
/* The content as a string, never NULL; owned by buf. */
const char *buf_text(const struct buf *buf);
/* Hands the content over (never NULL); buf is empty afterwards. */
char *buf_take(struct buf *buf);
#define CLEANUP_BUF __attribute__((cleanup(buf_done)))

/* Makes room for so many more bytes and the NUL; -ERROR_TOO_LARGE. For buf_extend() alone. */
int buf_grow(struct buf *buf, size_t more);

/* What every byte of a written text goes through. */
static inline char *buf_extend(struct buf *buf, size_t length)
{
    if ((length > buf->max - buf->length || length >= buf->room - buf->length) && buf_grow(buf, length) < 0)
        return NULL;
    char *place = buf->data + buf->length;
    buf->length += length;
    buf->data[buf->length] = '\0';
    return place;
}
