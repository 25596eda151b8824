/* SPDX-License-Identifier: Apache-2.0
 *
 * Planted bugs, to prove that the simulation finds bugs. The product contains none: without -DPLANTED each
 * PLANT() is the constant false, and nothing of it is left. In the test build one bug is chosen by name; what
 * each breaks is in tests/sim/plants.c. Never reads the environment. */
#pragma once

#include <stdbool.h>

#ifdef PLANTED

/* name lives as long as the process; NULL: none. */
void plant_choose(const char *name);
bool plant_is(const char *name);
#define PLANT(name) plant_is(name)

#else

#define PLANT(name) false

#endif
