/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of JSONPath that printer columns and scale paths use: .a.b, ['a.b'], [0], and the filter
 * [?(@.type=="X")]. */
#pragma once

#include "base/json.h"

bool jsonpath_is_supported(const char *path);
/* The first match, owned by the tree, or NULL. */
const cJSON *jsonpath_find(const cJSON *tree, const char *path);
