/* SPDX-License-Identifier: Apache-2.0
 *
 * `resize plan`, `resize converge` and what goes on with an interrupted one: drives the procedure of
 * volume/converge.h with the user's own identity and journal. Says each step and each wait; decides nothing.
 */
#pragma once

#include "audit/sheet.h"
#include "cmd/neosetctl/server.h"

struct ctl_converge {
    struct ctl_server *server;
    struct out *out;
    const struct sheet_look *look;
    const char *namespace;
    const char *name;
    const cJSON *desired; /* the manifest, with its namespace; NULL: what was begun is finished */
    /* Without a manifest: what an earlier run of this user wanted, as its journal has it; or NULL. */
    const char *sizes;
    const char *come_from;
    const char
        *field_manager; /* of the ordinary apply; NULL: whoever applied the live set, else "neosetctl" */
    bool is_forced;
    bool unready_will_do;
    bool waits_for_file_system;
    bool recovers;    /* back from a growth that failed */
    int64_t limit_us; /* after so long it ends, to be gone on with */
};

/* Errors: -ERROR_REFUSED, -ERROR_INVALID, -ERROR_FORBIDDEN: refused before the first write, with every
 * reason; -ERROR_FAILED: stopped, with what to do; -ERROR_TIMED_OUT: what it waits for, and the command that
 * goes on. */
int ctl_converge(const struct ctl_converge *wanted, struct error **err);
/* Whether it would be refused; says nothing, writes nothing. */
int ctl_converge_check(const struct ctl_converge *wanted, struct error **err);
/* What converging would do, as a table (claim, class, from, to) or as JSON; writes nothing. */
int ctl_converge_plan(const struct ctl_converge *wanted, struct error **err);
