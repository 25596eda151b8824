/* SPDX-License-Identifier: Apache-2.0
 *
 * What a converge was asked for, as one line of a journal that people read and `continue` goes on from:
 * "data=2Gi", or "data=2Gi (allow-degraded; wait-for-filesystem)". Pure. */
#pragma once

#include "base/buf.h"

struct converge_goal {
    char *sizes; /* as recreate_sizes_text() prints them */
    bool waits_for_file_system;
    bool unready_will_do;
    bool recovers;
};

/* The caller's. */
char *converge_goal_text(const struct converge_goal *goal);
/* The other way round; words that are not known - a newer program wrote them - are passed over. */
void converge_goal_read(const char *text, struct converge_goal *ret);
void converge_goal_done(struct converge_goal *goal);
