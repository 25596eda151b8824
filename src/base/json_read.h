/* SPDX-License-Identifier: Apache-2.0
 *
 * The strict reading of JSON text into cJSON's trees: grammar, UTF-8 and depth are checked, and numbers that
 * a double cannot hold are kept as their text (cJSON_Raw). Members of one key are all kept. Only json.c
 * includes this. */
#pragma once

#include "base/error.h"

#include <cjson/cJSON.h>

/* The tree, the caller's; NULL: it is refused, and err says at which byte and why. */
cJSON *json_read(const char *text, size_t length, int depth_max, struct error **err);
