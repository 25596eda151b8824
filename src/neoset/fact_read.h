/* SPDX-License-Identifier: Apache-2.0
 *
 * Small readers of object fields that every fact uses. Private to the fact_*.c files. */
#pragma once

#include "neoset/fact.h"

/* An RFC 3339 text, or 0 when it is absent or malformed. */
int64_t fact_read_time(const char *text);
/* An integer of at least minimum that fits an int; fallback when absent or anything else. */
int fact_read_int(const cJSON *object, const char *key, int minimum, int fallback);
/* The first item of an array whose member key is value, or NULL. */
const cJSON *fact_find_item(const cJSON *array, const char *key, const char *value);
