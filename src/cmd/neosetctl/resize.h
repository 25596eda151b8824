/* SPDX-License-Identifier: Apache-2.0
 *
 * `neosetctl resize ...`: the family of commands around growing volumes, by name. Each command is a function
 * in a file of its own; this finds it and says whether it talks to a server. */
#pragma once

#include "audit/sheet.h"
#include "cmd/neosetctl/server.h"

/* One run of a command of the family. */
struct ctl_resize {
    const struct options *options;
    struct ctl_server *server; /* not open for a command that needs none */
    struct out *out;
    const struct sheet_look *look;
    /* A sentence for people, on stderr. */
    void (*say)(void *context, const char *sentence);
    void *context;
};

/* command: its two words, as the option table has them ("resize job"). */
bool ctl_resize_has(const char *command);
bool ctl_resize_needs_server(const char *command);
/* Errors: those of the command. */
int ctl_resize(const struct ctl_resize *run, struct error **err);
