/* SPDX-License-Identifier: Apache-2.0
 *
 * One writer at a time, by a Lease in the cluster (journal.md, architecture.md "Many replicas"). The clock is
 * an economy: the fence is the preconditions that every write carries. Lease 30 s, renew deadline 15 s, write
 * timeout 10 s: what an old leader sent is dead before a new one may start. All times on the boot clock;
 * another holder's clock is never compared with ours: its lease is over when we saw it unchanged for its
 * whole length.
 *
 * The epoch of everything that this leader journals is max(our last, the Lease's leaseTransitions) + 1, and
 * is written back there. The Lease carries the head of our journal, so that a journal that went back is
 * noticed. */
#pragma once

#include "control/exempt.h"
#include "journal/journal.h"

struct lease;

struct lease_options {
    struct env *env;
    struct kube_client *client;
    struct exempt *exempt;
    struct journal *journal;
    const char *namespace;
    const char *name;
    const char *identity; /* pod or host name; the run's nonce is added */
    /* We lead: the epoch is set and its entry appended. head: what the Lease said of a journal's head before.
     */
    void (*gained)(void *context, enum journal_head_verdict head);
    void (*lost)(void *context, const char *why);
    /* Something that people may want to know while we wait or renew in vain. Optional. */
    void (*report)(void *context, bool is_trouble, const char *sentence);
    void *context;
};

struct lease *lease_start(const struct lease_options *options);
/* A write of it that is under way would call back here: exempt_free() follows before the loop runs again. */
void lease_free(struct lease *lease);
/* We hold it, and its renew deadline has not passed. */
bool lease_is_ours(const struct lease *lease);
/* How long nobody else can take it; 0 when it is not ours. */
int64_t lease_left_us(const struct lease *lease);
/* Lets it go on purpose (the disk is stuck) and does not take it again before lease_resume(). */
void lease_let_go(struct lease *lease, const char *why);
void lease_resume(struct lease *lease);
/* Gives it back for good; done is called when that is answered, or after 3 s. */
void lease_give_back(struct lease *lease, env_callback *done, void *context);

#define LEASE_HEAD_ANNOTATION "apps.neo.io/journal-head"
