/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the bytes of a text stand for themselves in a JSON string. Only json*.c includes this. */
#pragma once

#include "base/alloc.h"

#include <endian.h>

/* The first byte from at on that may not: a control character, a quote, a backslash, or one that is not
 * ASCII; end: there is none. Eight bytes at a time: of a difference of whole words the lowest byte that
 * borrows is a true one, whatever lies above it. */
static inline const uint8_t *json_plain_end(const uint8_t *at, const uint8_t *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
    for (uint64_t bytes; (size_t)(end - at) >= sizeof(bytes); at += sizeof(bytes)) {
        memcpy(&bytes, at, sizeof(bytes));
        bytes = le64toh(bytes);
        uint64_t quote = bytes ^ (ones * '"'), escape = bytes ^ (ones * '\\');
        uint64_t found = bytes | ((bytes - ones * 0x20) & ~bytes) | ((quote - ones) & ~quote) |
                         ((escape - ones) & ~escape);
        if (found & highs)
            return at + __builtin_ctzll(found & highs) / 8;
    }
    while (at < end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\')
        at++;
    return at;
}
