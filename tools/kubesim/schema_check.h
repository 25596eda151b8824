/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done to an object with its schema: unknown fields pruned, nulls dropped, defaults filled in, values checked.
 * apiVersion, kind and metadata of the root are left alone: they belong to the general rules. */
#pragma once

#include "kubesim/model.h"
#include "kubesim/schema.h"

enum { UNKNOWN_FIELDS_MAX = 32 };
struct unknown_fields {
    char *paths[UNKNOWN_FIELDS_MAX]; /* "spec.containers[0].imagee" */
    size_t count;
};
void unknown_fields_done(struct unknown_fields *unknown);
#define CLEANUP_UNKNOWN __attribute__((cleanup(unknown_fields_done)))

/* Removes what the schema does not know and notes where; below preserve_unknown everything stays. */
void schema_prune(const struct schema *schema, cJSON *object, struct unknown_fields *unknown);
/* Custom kinds: nulls that may not be are dropped where a default exists, then defaults are filled in. */
void schema_set_defaults(const struct schema *schema, cJSON *object);
/* Built-in kinds: null means absent. */
void schema_drop_nulls(cJSON *object);
/* Custom kinds: types, bounds, enums, rules. old is NULL on create. Rules run only when everything else is right. */
void schema_validate(const struct schema *schema, const cJSON *object, const cJSON *old, struct causes *causes);
/* Built-in kinds: only that each value can be decoded; -ERROR_INVALID with Go's words. */
int schema_check_types(const struct schema *schema, const cJSON *object, struct error **err);
