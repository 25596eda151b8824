/* SPDX-License-Identifier: Apache-2.0
 *
 * The planted bugs by name (src/base/plant.h): what each one is, and which invariant it breaks. */
#pragma once

#include "base/alloc.h"

struct plant {
    const char *name;
    int invariant; /* the one that it is meant to break; others may notice it first */
    const char *sentence;
};

size_t plant_count(void);
const struct plant *plant_at(size_t index);
/* NULL: there is none of this name. */
const struct plant *plant_find(const char *name);
/* False: this build has none. */
bool plant_set(const char *name);
