/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done to an object with its schema: unknown fields pruned, nulls dropped, defaults filled in, values
 * checked. apiVersion, kind and metadata of the root are left alone: they belong to the general rules.
 *
 * touched, where a function takes it: members of the root that it does not have are as they were when all of
 * this was done to them before, with the same schema, and are passed over; NULL: none is. */
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
void schema_prune(const struct schema *schema, cJSON *object, const cJSON *touched,
                  struct unknown_fields *unknown);
/* Nulls that may not be are dropped, then defaults are filled in. Of built-in kinds these are the members
 * that the server's types always print; the other defaults are their hooks'. */
void schema_set_defaults(const struct schema *schema, cJSON *object, const cJSON *touched);
/* Built-in kinds: null means absent (but in free-form data), quantities are spelt in their canonical form. */
void schema_normalize(const struct schema *schema, cJSON *object, const cJSON *touched);
/* Custom kinds: types, bounds, enums, rules. old is NULL on create. scale_path: where the scale subresource
 * finds its number, or NULL. Rules run only when the values have the right shape. */
void schema_validate(const struct schema *schema, const cJSON *object, const cJSON *old,
                     const char *scale_path, struct causes *causes);
/* Built-in kinds: only that each value can be decoded; -ERROR_INVALID with Go's words. */
int schema_check_types(const struct schema *schema, const cJSON *object, const cJSON *touched,
                       struct error **err);
