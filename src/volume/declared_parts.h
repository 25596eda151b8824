/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of what is declared as they know each other: declared.c says it, declared_types.c checks that
 * each field is of its type. Only these include this. */
#pragma once

#include "volume/declared.h"

/* -ERROR_INVALID with the object, the field, what it is and what it should be. A template is called by its
 * name, or by its number where it has none. */
int declared_check_set(const char *name, const cJSON *set, struct error **err);
int declared_check_template(const char *set, const char *name, const cJSON *template, struct error **err);
