/* SPDX-License-Identifier: Apache-2.0
 *
 * The three patch formats as functions on trees. They know nothing of resources but, for the strategic one,
 * the schema that says which lists merge by which key. */
#pragma once

#include "base/json.h"
#include "kubesim/schema.h"

enum { PATCH_OPERATIONS_MAX = 10000 };

/* RFC 7386: changes target in place. */
void patch_merge(cJSON *target, const cJSON *patch);
/* RFC 6902: changes *target. -ERROR_INVALID: the patch is no patch (400); -ERROR_REFUSED: an operation does
 * not apply, a test failed (422). */
int patch_json(cJSON **target, const cJSON *patch, struct error **err);
/* Kubernetes' strategic merge patch with $patch, $retainKeys, $setElementOrder and $deleteFromPrimitiveList:
 * changes target. -ERROR_INVALID: it cannot be merged (a list item without its key ...). */
int patch_strategic(const struct schema *schema, cJSON *target, const cJSON *patch, struct error **err);
