/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit log: one audit.k8s.io/v1 Event a request, stage ResponseComplete, as the real server writes it.
 */
#pragma once

#include "kubesim/model.h"

/* The request's Audit-ID, or one of our own; the caller's. */
char *audit_id_of(const struct call *call);
/* Level Request for writes of a status (their body tells whether they describe or decide), else Metadata. */
void audit_write(struct call *call, int64_t received_us);
