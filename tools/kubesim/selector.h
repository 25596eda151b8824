/* SPDX-License-Identifier: Apache-2.0
 *
 * Label and field selectors, parsed once and matched against objects. Label selectors take both spellings
 * (equality and set based) and the LabelSelector structure; field selectors only =, == and !=. */
#pragma once

#include "base/json.h"

struct selector; /* NULL selects everything */

int selector_parse_labels(const char *text, struct selector **ret, struct error **err);
/* A metav1.LabelSelector. NULL selects nothing in Kubernetes' own controllers: the caller decides. */
int selector_from_tree(const cJSON *tree, struct selector **ret, struct error **err);
/* paths: the fields that this kind supports, NULL-terminated; another one is -ERROR_UNSUPPORTED and named in
 * err. */
int selector_parse_fields(const char *text, const char *const *paths, struct selector **ret,
                          struct error **err);
void selector_free(struct selector *selector);

/* labels: the object's metadata.labels or NULL. */
bool selector_match_labels(const struct selector *selector, const cJSON *labels);
/* Dotted paths are looked up in the object; absent counts as "". */
bool selector_match_fields(const struct selector *selector, const cJSON *object);
/* The value that the selector demands of a field by equality, or NULL. */
const char *selector_field_value(const struct selector *selector, const char *field);

DEFINE_CLEANUP(cleanup_selector, struct selector, selector_free);
#define CLEANUP_SELECTOR __attribute__((cleanup(cleanup_selector)))
