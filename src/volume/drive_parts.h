/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the drive: drive.c takes the turns, drive_look.c reads the cluster. Only these include this.
 */
#pragma once

#include "control/exempt.h"
#include "kube/list.h"
#include "kube/object.h"
#include "kube/owners.h"
#include "volume/drive.h"

/* What is read for a look, in this order; SETS, CLASSES and QUOTAS once a run. */
enum sight_part {
    SIGHT_SETS,
    SIGHT_SET,
    SIGHT_REVISIONS,
    SIGHT_PODS,
    SIGHT_CLAIMS,
    SIGHT_CLASSES,
    SIGHT_QUOTAS,
    SIGHT_OWNERS,
    SIGHT_EVENTS,
    SIGHT_PARTS,
};

struct drive {
    struct drive_options options;
    struct exempt *exempt;
    struct converge *converge; /* NULL until the first look */
    struct env_timer *timer;

    /* The look under way. */
    enum sight_part part;
    unsigned reads_failed; /* in a row */
    int64_t pods_boot_us;  /* when the pods were asked for */
    struct kube_call *call;
    struct kube_list *list;
    struct kube_owners *owners;
    cJSON *trees[SIGHT_PARTS]; /* NULL: not read, or not readable */
    bool is_surveyed;
    struct converge_look look;

    /* The step under way. */
    bool waits_for_step;
    enum kube_resource step_resource;
    char *step_name, *step_reason;
    bool needs_gateway;
};

/* drive_look.c: reads, then drive_saw(), or drive_failed_to_read(). */
void drive_read(struct drive *drive);
void drive_forget_look(struct drive *drive);
void drive_forget_survey(struct drive *drive);

/* drive.c */
void drive_saw(struct drive *drive);
void drive_failed_to_read(struct drive *drive, enum error_code code, const char *sentence);
