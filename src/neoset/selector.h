/* SPDX-License-Identifier: Apache-2.0
 *
 * Label selectors, as metav1.LabelSelector has them: does one match these labels, and how does one read as a
 * query. What cannot be read matches nothing. */
#pragma once

#include "base/json.h"

/* labels: an object or NULL. An empty selector matches nothing here: a set that owns every pod is never
 * meant. */
bool selector_matches(const cJSON *selector, const cJSON *labels);
/* "app=mysql,tier in (a,b),!old": the form of status.labelSelector and of a labelSelector query; the
 * caller's. NULL: the selector cannot be read (an unknown operator, say). */
char *selector_print(const cJSON *selector);
