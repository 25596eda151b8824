/* SPDX-License-Identifier: Apache-2.0
 *
 * resource.Quantity, exact: sign and a 128-bit count of billionths. */
#pragma once

#include "base/json.h"

struct quantity {
    bool negative;
    unsigned __int128 nano; /* rounded up */
};

/* False when text is NULL or no quantity, or too large to hold. */
bool quantity_parse(const char *text, struct quantity *ret);
/* A string or number node. */
bool quantity_from_node(const cJSON *node, struct quantity *ret);
/* As Kubernetes prints it (1024Mi becomes 1Gi, 0.5 becomes 500m); the caller's. NULL when it is none. */
char *quantity_canonical(const cJSON *node);
/* <0, 0, >0 */
int quantity_compare(const struct quantity *a, const struct quantity *b);
int quantity_sign(const struct quantity *quantity);
/* The whole value when it is one and fits, as CEL's asInteger(). */
bool quantity_integer(const struct quantity *quantity, int64_t *ret);
