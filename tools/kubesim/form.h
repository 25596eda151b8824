/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms that an object can be asked for in (the Accept header): as it is, as a Table, or its metadata
 * only. */
#pragma once

#include "kubesim/model.h"

enum form { FORM_PLAIN, FORM_TABLE, FORM_METADATA };

/* -1: nothing that we can write is acceptable (406 is answered). */
int form_of(struct call *call, enum form *ret);
/* One state in a form, as text without newline; the caller's. columns: with the column definitions (Table
 * only). */
char *form_text(const struct kubesim *sim, const struct kind *kind, enum form form, const char *include,
                struct version *version, bool columns);
/* PartialObjectMetadata. */
cJSON *form_metadata(const cJSON *object);
