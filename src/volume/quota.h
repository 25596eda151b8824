/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the quotas of a namespace have room for all claims that are to grow: a dry run asks for one at a
 * time, and each can pass where their sum does not (volume.md, Converge 3). Pure. */
#pragma once

#include "volume/decide.h"

/* quotas: the namespace's ResourceQuotas, an array; NULL: unknown. "quota q has 1Gi of requests.storage left,
 * the claims need 3Gi more", for each that has not, the caller's; NULL: there is room, as far as is known. A
 * quota with scopes is left to the server. */
char *quota_shortage(const cJSON *quotas, const struct volume_items *claims);
