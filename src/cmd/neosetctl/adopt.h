/* SPDX-License-Identifier: Apache-2.0
 *
 * `adopt`: a running StatefulSet becomes a NeoSet that owns the same pods, and back again, without a restart.
 * All of it is read from the cluster anew before each step, so that a second run goes on where a first one
 * ended, also another person's. The way there: proven by dry runs; the NeoSet is created, paused, so that
 * there is somebody to take the pods over; the StatefulSet's manifest is kept as a ControllerRevision; the
 * StatefulSet is deleted, its pods left behind; neoset-controller adopts them; the NeoSet is let go. */
#pragma once

#include "audit/sheet.h"
#include "cmd/neosetctl/server.h"

struct ctl_adopt {
    struct ctl_server *server;
    const char *name; /* of the StatefulSet and of the NeoSet */
    struct out *out;
    const struct sheet_look *look;
    bool is_dry;      /* the plan, and nothing is written */
    bool is_yaml;     /* with is_dry: the object that would be created, and nothing else */
    bool goes_back;   /* from the NeoSet to the StatefulSet */
    int64_t limit_us; /* after so long it ends, to be gone on with */
    /* Asks a person; false: no. Not asked on a dry run. */
    bool (*confirm)(void *context, const char *question);
    void *context;
};

/* Errors: -ERROR_NOT_FOUND; -ERROR_REFUSED and others before the first write, with every reason;
 * -ERROR_CANCELLED: the person said no; -ERROR_TIMED_OUT: what it waits for, and the command that goes on. */
int ctl_adopt(const struct ctl_adopt *adopt, struct error **err);
