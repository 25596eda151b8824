/* SPDX-License-Identifier: Apache-2.0
 *
 * What neosetctl prints: tables and reports made of views, and of what the controller's journal says where
 * one is given. Talks to nobody. */
#pragma once

#include "audit/audit.h"
#include "cmd/neosetctl_view.h"

/* A table (or any other format) of sets; objects is an array. Returns how many. */
int64_t ctl_report_sets(struct out *out, const struct sheet_look *look, const cJSON *objects, int64_t now_us,
                        bool has_namespaces);
/* Phase, stage, fence, a line a pod, the message, the next command. */
void ctl_report_status(struct out *out, const struct sheet_look *look, const struct set_view *set,
                       const struct pod_views *pods);
void ctl_report_history(struct out *out, const struct sheet_look *look, const struct set_view *set,
                        const struct revision_views *revisions, int64_t now_us);
/* Why it stands where it stands. journal NULL: from the cluster alone. */
int ctl_report_why(struct out *out, const struct sheet_look *look, const struct set_view *set,
                   const struct pod_views *pods, struct audit *journal, struct error **err);
