/* SPDX-License-Identifier: Apache-2.0
 *
 * A set with its pods, as read from the server at one moment. Reads only. */
#pragma once

#include "cmd/neosetctl/leader.h"
#include "cmd/neosetctl/server.h"
#include "cmd/neosetctl/view.h"

struct ctl_picture {
    cJSON *object;
    cJSON *pod_objects;
    struct set_view set; /* borrows from object, as pods from pod_objects */
    struct pod_views pods;
    struct ctl_leader leader;
    char *recreates;
    int64_t at_us; /* wall */
};

/* Errors as ctl_get_set and ctl_list. Undone by ctl_picture_done in any case. */
int ctl_picture_read(struct ctl_server *server, const char *name, struct ctl_picture *ret,
                     struct error **err);
/* "spec.containers[mysql].env changes": the first field in which the templates of stable and target, found
 * among revisions (an array), differ so that pods are re-created; the caller's. NULL: none, or not known. */
char *ctl_picture_recreates(const struct set_view *set, const cJSON *revisions);
void ctl_picture_done(struct ctl_picture *picture);
