/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of neoset-audit: its table, and what the options mean. */
#pragma once

#include "audit/audit.h"
#include "cmd/option.h"

/* Exit codes (audit.md). */
enum {
    AUDIT_EXIT_DONE = 0,
    AUDIT_EXIT_FAILED = 1,
    AUDIT_EXIT_USAGE = 2,
    AUDIT_EXIT_NOT_FOUND = 3,
    AUDIT_EXIT_BROKEN = 4,
    AUDIT_EXIT_IN_DOUBT = 5,
};

extern const struct option_program audit_program;

/* --for, -n, --kind, --outcome, --since, --until, --limit. *ret_memory is the caller's. -ERROR_USAGE. */
int audit_options_filter(const struct options *options, int64_t now_us, struct audit_filter *ret,
                         char **ret_memory, struct error **err);
/* The exit code of a command that ended with result. */
int audit_exit_of(int result);
