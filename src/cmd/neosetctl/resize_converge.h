/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of `neosetctl resize` that look at a cluster: plan, converge, recover. From options to the
 * StatefulSets of -f, one after the other. */
#pragma once

#include "cmd/neosetctl/resize.h"

/* What converging the StatefulSets of -f would do; nothing is written. */
int ctl_resize_plan(const struct ctl_resize *run, struct error **err);
/* Converges the StatefulSets of -f: all are decided before the first is written. */
int ctl_resize_converge(const struct ctl_resize *run, struct error **err);
/* The same back from a growth that failed: to a size that is possible, above what the volumes have. */
int ctl_resize_recover(const struct ctl_resize *run, struct error **err);
