/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller of NeoSets, put together: watches and facts, the lease, recovery, turns (observe, plan,
 * submit), the writes that only describe, Events, waits. Everything that decides is in plan.h; everything
 * that writes to the cluster goes through src/control. Never logs: it reports. The program (src/cmd) and the
 * simulator run this very code. */
#pragma once

#include "control/lease.h"
#include "journal/journal.h"

struct controller;

enum report_level { REPORT_DEBUG, REPORT_INFO, REPORT_WARNING, REPORT_ERROR };

struct controller_options {
    struct env *env; /* outlives the controller, as do client and journal */
    struct kube_client *client;
    struct journal *journal;
    const char *namespace;       /* NULL: all */
    const char *lease_namespace; /* NULL: without a lease */
    const char *lease_name;
    const char *identity; /* pod or host name */
    /* A StatefulSet whose manifest is kept and that has been away so long is made again; 0: never. */
    int64_t resize_abandoned_us;
    bool once; /* end when there is nothing left to do */
    /* object: "NeoSet/default/mysql", or NULL. Borrowed. */
    void (*report)(void *context, enum report_level level, const char *object, const char *sentence);
    /* It cannot go on (the journal died), or --once is done: exit_code 0 or 1, with a sentence. Called once.
     */
    void (*ended)(void *context, int exit_code, const char *sentence);
    void *context;
};

/* Starts at once. */
struct controller *controller_start(const struct controller_options *options);
/* Cancels what is under way. */
void controller_free(struct controller *controller);
/* No new step; answers are waited for (10 s), the lease is given back; then done. The journal is still open.
 */
void controller_stop(struct controller *controller, env_callback *done, void *context);
/* Everything is listed, the journal is well. false: *ret_why says what is not; static or the controller's,
 * valid until the next call. */
bool controller_is_ready(struct controller *controller, const char **ret_why);
/* Prometheus text. */
void controller_write_metrics(const struct controller *controller, struct buf *text);

/* Every set that is there has nothing left to do, and nothing is under way. */
bool controller_is_quiet(const struct controller *controller);

DEFINE_CLEANUP(cleanup_controller, struct controller, controller_free);
#define CLEANUP_CONTROLLER __attribute__((cleanup(cleanup_controller)))
