/* SPDX-License-Identifier: Apache-2.0
 *
 * The strict reading of JSON text that comes before cJSON's: grammar, UTF-8, depth. It rewrites numbers that
 * a double cannot hold into marked strings; json.c turns those back into cJSON_Raw nodes. Only json.c
 * includes this. */
#pragma once

#include "base/buf.h"

/* In the rewritten text a string that begins with U+0001 '#' is a number literal; one that begins with U+0001
 * U+0001 is a genuine string that began with U+0001. */
#define JSON_MARK '\x01'
#define JSON_MARK_NUMBER '#'

/* Checks text. *ret_marked tells whether anything was marked: only then out has the rewritten text. */
int json_scan(const char *text, size_t length, int depth_max, struct buf *out, bool *ret_marked,
              struct error **err);
