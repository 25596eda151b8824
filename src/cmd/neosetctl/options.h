/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of neosetctl (also `kubectl neoset`). */
#pragma once

#include "cmd/option.h"

enum {
    NEOSETCTL_EXIT_DONE = 0,
    NEOSETCTL_EXIT_FAILED = 1,
    NEOSETCTL_EXIT_REFUSED = 2, /* nothing was written */
    NEOSETCTL_EXIT_ROLLOUT_FAILED = 3,
    NEOSETCTL_EXIT_USAGE = 64,
};

extern const struct option_program neosetctl_program;

/* --request-timeout: "30s", "1m", or seconds as kubectl takes them; 0: as long as it takes (ten minutes). */
int neosetctl_timeout(const struct options *options, int64_t *ret_us, struct error **err);
