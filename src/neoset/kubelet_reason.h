/* SPDX-License-Identifier: Apache-2.0
 *
 * The reasons that a kubelet gives for a container that waits: one table, for all who judge by them. */
#pragma once

#include "base/alloc.h"

/* The image could not be fetched. */
bool kubelet_reason_is_pull(const char *reason);
/* Something is wrong, and time alone does not mend it: pulls, crashes, configurations. Merely starting is
 * none. */
bool kubelet_reason_is_error(const char *reason);
