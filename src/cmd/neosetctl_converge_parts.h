/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of converge's driver: neosetctl_converge.c runs it, neosetctl_converge_look.c reads the cluster
 * for it. Only these include this. */
#pragma once

#include "cmd/neosetctl_converge.h"
#include "kube/object.h"
#include "volume/converge.h"

/* What is in the cluster now, and what does not change while a run lasts. */
struct converge_sight {
    struct converge_look look;
    cJSON *set, *revisions, *pods, *claims, *gone_owners;
    /* Of the whole run. NULL: they may not be read. */
    cJSON *sets, *classes, *quotas;
    bool is_surveyed;
};
int converge_sight_read(const struct ctl_converge *wanted, struct converge_sight *sight, struct error **err);
void converge_sight_done(struct converge_sight *sight);
