/* SPDX-License-Identifier: Apache-2.0
 *
 * The strict reading of JSON text into a cJSON tree, in one pass: grammar, UTF-8, depth, keys that are there
 * twice, numbers. Only json.c includes this. */
#pragma once

#include "base/json.h"

/* See json_parse_without(); omission may be NULL. */
int json_read(const char *text, size_t length, const struct json_omission *omission, cJSON **ret_tree,
              struct error **err);
/* See json_parse_part(); omission may be NULL. */
int json_read_part(const char *text, size_t length, const char *const *path,
                   const struct json_omission *omission, cJSON **ret_tree, struct error **err);
