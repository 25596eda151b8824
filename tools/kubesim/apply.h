/* SPDX-License-Identifier: Apache-2.0
 *
 * Server-side apply: merge by field ownership, conflicts, force. */
#pragma once

#include "kubesim/model.h"

/* PATCH with application/apply-patch+yaml; call->body is the configuration. */
int write_apply(struct call *call);
