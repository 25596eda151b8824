/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of neoset-controller: its table, and what it says, checked. */
#pragma once

#include "cmd/log.h"
#include "cmd/option.h"

extern const struct option_program controller_program;

struct controller_settings {
    char *journal_path;
    bool journal_path_is_default; /* its folder is made when it is missing */
    bool unsafe_file_system;
    int64_t retention_us;
    int64_t retention_bytes;
    const char *kubeconfig;
    const char *context;
    const char *impersonate;
    const char *namespace; /* NULL: all */
    const char *listen;    /* NULL: none */
    bool no_lease;
    char *lease_namespace; /* NULL: our own */
    char *lease_name;
    int64_t resize_abandoned_us;
    bool once;
    struct log log;
};

/* Strings borrow from options where they are const. Errors: USAGE. */
int controller_settings_read(const struct options *options, bool is_root, struct controller_settings *ret,
                             struct error **err);
void controller_settings_done(struct controller_settings *settings);
/* "400d,4Gi", "400d", "4Gi", "0": AGE and SIZE, in either order; 0 of each: no limit. */
int controller_read_retention(const char *text, int64_t *ret_us, int64_t *ret_bytes, struct error **err);
