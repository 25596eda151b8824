/* SPDX-License-Identifier: Apache-2.0 */
#include "base/plant.h"

#ifdef PLANTED

#include <string.h>

/* A property of the process, in test builds only. */
static const char *chosen;

void plant_choose(const char *name)
{
    chosen = name;
}

bool plant_is(const char *name)
{
    return chosen && strcmp(chosen, name) == 0;
}

#endif
