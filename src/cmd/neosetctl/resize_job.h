/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of `neosetctl resize` that print what others run: the script, what it is told, the Job. They
 * talk to no server. */
#pragma once

#include "cmd/neosetctl/resize.h"

/* Prints the RESIZE_DECLARED value for the StatefulSets of -f that have claim templates, in their order. */
int ctl_resize_declared(const struct ctl_resize *run, struct error **err);
/* Prints the script. */
int ctl_resize_script(const struct ctl_resize *run, struct error **err);
/* Prints the Job and what it needs, for the StatefulSets of -f that have claim templates, as YAML documents
 * in the order in which they are to be applied. */
int ctl_resize_job(const struct ctl_resize *run, struct error **err);
