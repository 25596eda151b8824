/* SPDX-License-Identifier: Apache-2.0
 *
 * Compact text of cJSON's trees, byte by byte as cJSON prints it: its own printer formats each whole number
 * as a fraction and reads it back, and can sort nothing. Only json.c includes this. */
#pragma once

#include "base/buf.h"

#include <cjson/cJSON.h>

/* Up to this every whole number is exact in a double, and prints all its digits. */
#define JSON_EXACT_MAX 999999999999999LL

struct json_member {
    const cJSON *node;
    size_t place; /* in the object */
};
/* The members by key, those of one key in their own order; the array is the caller's. */
struct json_member *json_sorted_members(const cJSON *object, size_t *ret_count);

/* Appends the tree; sorted: with the keys of each object in order. */
void json_write(struct buf *out, const cJSON *tree, bool sorted);
/* See json_print_members(). */
void json_write_members(struct buf *out, const cJSON *object, const char *const *keys, size_t count);
