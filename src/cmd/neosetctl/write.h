/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person's command writes to a cluster: one guarded step through the gateway, with a journal of the
 * user's own. Waits until the step has an outcome. */
#pragma once

#include "cmd/neosetctl/server.h"
#include "control/step.h"

enum ctl_written {
    CTL_WRITTEN,
    CTL_ALREADY, /* it was so before: nothing was written */
};

/* A change of one object, asked again each time that it is read anew: someone else may have changed it. */
struct ctl_change {
    enum kube_resource resource; /* KUBE_NEOSET, unless said otherwise */
    const char *kind;            /* of the operation in the journal: "settings", "undo" */
    /* The object is as wanted. */
    bool (*is_done)(void *context, const cJSON *set);
    /* Fills in body, fingerprint, reason, come_from and go_to of the step. Negative: it is not to be written
     * any more, with a sentence. */
    int (*fill)(void *context, const cJSON *set, struct step_request *request, struct error **err);
    void *context;
};

/* Writes a change to the object called name. Errors: as ctl_get_set, and those of fill; -ERROR_REFUSED,
 * -ERROR_FORBIDDEN, -ERROR_INVALID: the server refused, nothing was written; -ERROR_LOCKED: another neosetctl
 * holds the journal; -ERROR_TIMED_OUT: nobody knows whether it was done. */
int ctl_write(struct ctl_server *server, const char *name, const struct ctl_change *change,
              enum ctl_written *ret, struct error **err);

/* Sets spec.updateStrategy.pause of a set. */
int ctl_write_pause(struct ctl_server *server, const char *name, bool is_paused, enum ctl_written *ret,
                    struct error **err);
struct ctl_undo;
/* Writes the template of undo back. -ERROR_REFUSED also when the template is not the one any more that undo
 * was decided on. */
int ctl_write_undo(struct ctl_server *server, const char *name, const struct ctl_undo *undo,
                   enum ctl_written *ret, struct error **err);
