/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantities (src/volume/quantity) as the simulated server asks for them: readable or not, no sentence. */
#pragma once

#include "volume/quantity.h"

/* False when text is NULL or no quantity, or too large to hold. */
bool quantity_from_text(const char *text, struct quantity *ret);
/* A string or number node. */
bool quantity_from_node(const cJSON *node, struct quantity *ret);
/* As Kubernetes prints it (1024Mi becomes 1Gi, 0.5 becomes 500m); the caller's. NULL when it is none. */
char *quantity_canonical(const cJSON *node);
/* The whole value when it is one and fits, as CEL's asInteger(). */
bool quantity_integer(const struct quantity *quantity, int64_t *ret);
/* A value that has no text yet as Kubernetes prints it: with Ki, Mi ... or in decimal. The caller's. */
char *quantity_text(const struct quantity *quantity, bool binary);
/* Adds to *sum; neither may be negative. */
void quantity_add(struct quantity *sum, const struct quantity *more);
/* What the server does with each amount of a resource list (requests, limits): thousandths, rounded up. */
void quantity_round_list(cJSON *list);
