/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of fields as FieldsV1 trees: "f:name" for members, "k:{...}" for items of keyed lists, "v:..." for
 * items of sets, "." for the thing itself; a leaf is an empty object. */
#pragma once

#include "base/json.h"
#include "kubesim/schema.h"

/* The fields that a configuration names. strict: a field that the schema does not declare is -ERROR_INVALID
 * with the words of the server. */
int field_set_of(const struct schema *schema, const cJSON *object, bool strict, cJSON **ret,
                 struct error **err);
/* What differs between two states: fields added or changed, and fields gone (leaves that stand for all below
 * them). Both sets are the caller's. old may be NULL. */
void field_set_compare(const struct schema *schema, const cJSON *old, const cJSON *object,
                       cJSON **ret_changed, cJSON **ret_removed);
/* False for what no server has printed (someone posted it). */
bool field_set_is_valid(const cJSON *set);
bool field_set_is_empty(const cJSON *set);
void field_set_add(cJSON *set, const cJSON *other);
/* A leaf of other takes everything below it away too. */
void field_set_subtract(cJSON *set, const cJSON *other);
/* The caller's. */
cJSON *field_set_intersection(const cJSON *a, const cJSON *b);
/* Calls visit for each member with its path (".spec.containers[name=\"a\"].image"). */
void field_set_visit(const cJSON *set, void (*visit)(void *context, const char *path), void *context);

/* config merged over live, by the schema (lists by their keys); the caller's. */
cJSON *field_merge(const struct schema *schema, const cJSON *live, const cJSON *config);
/* Takes from object what last had, and neither mine nor others have. */
void field_prune(const struct schema *schema, cJSON *object, const cJSON *last, const cJSON *mine,
                 const cJSON *others);
