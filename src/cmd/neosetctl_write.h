/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person's command writes to a cluster: one guarded step through the gateway, with a journal of the
 * user's own. Waits until the step has an outcome. */
#pragma once

#include "cmd/neosetctl_server.h"

enum ctl_written {
    CTL_WRITTEN,
    CTL_ALREADY, /* it was so before: nothing was written */
};

/* Sets spec.updateStrategy.pause of a set. Errors: as ctl_get_set; -ERROR_REFUSED, -ERROR_FORBIDDEN,
 * -ERROR_INVALID: the server refused, nothing was written; -ERROR_LOCKED: another neosetctl holds the
 * journal; -ERROR_TIMED_OUT: nobody knows whether it was done. */
int ctl_write_pause(struct ctl_server *server, const char *name, bool is_paused, enum ctl_written *ret,
                    struct error **err);
