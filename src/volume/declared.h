/* SPDX-License-Identifier: Apache-2.0
 *
 * What the resize script is told of each StatefulSet (its RESIZE_DECLARED): the fields whose change it judges
 * and nothing else, so that it carries no pod template and changes only when one of them does. Pure. */
#pragma once

#include "base/json.h"

/* Appends to array, a JSON array, what the script judges of set, a StatefulSet as its manifest says it:
 * {name, podManagementPolicy, replicas, selector, serviceName, volumeClaimTemplates: [{metadata: {name,
 * labels, annotations}, spec}]}, without what is null or absent. Errors, all -ERROR_INVALID: no name, no
 * claim template, a field of another type, a size that is missing, no quantity or not above zero; each names
 * set, template and field. */
int volume_declared_add(cJSON *array, const cJSON *set, struct error **err);

/* The value itself: one line, keys sorted, so that manifests that say the same are the same bytes. The
 * caller's. */
char *volume_declared_text(const cJSON *array);
