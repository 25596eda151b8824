/* SPDX-License-Identifier: Apache-2.0
 *
 * ResourceQuotas and LimitRanges, as far as volumes meet them: storage of claims (also of one class), numbers
 * of claims, pods, and of any kind (count/RESOURCE.GROUP), and the largest and smallest claim. What is used
 * is counted from the objects at each write. A quota or a limit on anything else is refused with 501 when it
 * is made. */
#pragma once

#include "kubesim/model.h"

extern const struct kind_hooks quota_hooks;
extern const struct kind_hooks limit_range_hooks;

/* The admission plug-ins LimitRanger and ResourceQuota: 403 without causes. old is NULL on create. */
int limits_admit(struct call *call, const struct kind *kind, const cJSON *object, const cJSON *old);
int quotas_admit(struct call *call, const struct kind *kind, const cJSON *object, const cJSON *old);

/* Something of kind changed: the status of quotas may have to follow. */
void quotas_look_soon(struct kubesim *sim, const struct kind *kind);
void quotas_tick(struct kubesim *sim);
