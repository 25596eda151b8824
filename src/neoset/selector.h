/* SPDX-License-Identifier: Apache-2.0
 *
 * Label selectors, as metav1.LabelSelector has them: does one match these labels, and how does one read as a
 * query. What cannot be read matches nothing. */
#pragma once

#include "base/json.h"

/* labels: an object or NULL. An empty selector matches nothing here: a set that owns every pod is never
 * meant. */
bool selector_matches(const cJSON *selector, const cJSON *labels);
/* Labels as one text, a line each, "app=mysql\n"; without those that a controller gives to each pod its own
 * value of (revision, index, name): equal for all pods of a set. The caller's. */
char *labels_print(const cJSON *labels);
/* As selector_matches(), for a selector as JSON text and labels as labels_print() has them; NULL: no labels.
 */
bool selector_matches_text(const char *selector, const char *labels);
/* "app=mysql,tier in (a,b),!old": the form of status.labelSelector and of a labelSelector query; the
 * caller's. NULL: the selector cannot be read (an unknown operator, say). */
char *selector_print(const cJSON *selector);
