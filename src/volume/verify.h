/* SPDX-License-Identifier: Apache-2.0
 *
 * The pods of a set before its owner went, and afterwards: the same, and none restarted (volume.md, Converge
 * 8)? What still names an owner that is gone is let go: whoever names it dies with the next look of the
 * collector. Pure. */
#pragma once

#include "control/step.h"

/* What pods (an array) are now: name to {uid, restarts}; terminating ones are left out. The caller's. */
cJSON *verify_picture(const cJSON *pods);
/* "the same 3 pods, none restarted", or what differs, those included that are not there any more; the
 * caller's. picture NULL: nobody remembers. */
char *verify_compare(const cJSON *picture, const cJSON *pods);

/* The next of pods that names an owner of this kind which is gone, and is not terminating; NULL: none. uid:
 * of the owner; NULL: any of this name. *ret_uid: of the reference; borrowed. */
const cJSON *verify_find_dead_owner(const cJSON *pods, const char *kind, const char *name, const char *uid,
                                    const char **ret_uid);
/* The strategic merge patch that takes the reference away; the caller's. */
cJSON *verify_release_patch(const char *owner_uid);
