/* SPDX-License-Identifier: Apache-2.0
 *
 * Is a neoset-controller at work? By its Lease, where that may be read: the one called neoset (the default of
 * --lease) of whatever namespace, that carries a journal's head. A controller with --no-lease has none, and
 * nothing is said of it here: its journal tells, where that was named (ctl_find_controller). Reads only. */
#pragma once

#include "cmd/neosetctl/server.h"

struct ctl_leader {
    bool is_here;    /* it was seen lately */
    char *away;      /* "it was last seen at TIME as NAME (renewing Lease NAMESPACE/NAME, every 5 s)"; NULL:
                        nothing is known */
    char *next;      /* the command that helps; NULL as above */
    char *journal;   /* the id of the journal whose head the Lease carries; NULL: none can be read there */
    int64_t seen_us; /* wall; 0: unknown */
};

/* leases: an array. now_us: wall; what is compared with it is the controller's clock, so only a Lease that is
 * older than LEASE_LENGTHS of its lengths tells that it is away. */
void ctl_leader_make(const cJSON *leases, int64_t now_us, struct ctl_leader *ret);
/* Whatever cannot be read is not known: never an error. */
void ctl_leader_read(struct ctl_server *server, struct ctl_leader *ret);
void ctl_leader_done(struct ctl_leader *leader);
