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

/* This one and those after it are of worlds of a StatefulSet. */
enum { RESIZE_INVARIANTS_FIRST = 16, INVARIANTS = 22 };

size_t plant_count(void);
const struct plant *plant_at(size_t index);
/* NULL: there is none of this name. */
const struct plant *plant_find(const char *name);
/* False: this build has none. */
bool plant_set(const char *name);
