/* SPDX-License-Identifier: Apache-2.0
 *
 * The only code that writes to a cluster. A step's intent is on disk before its request leaves; its outcome
 * is journaled after the answer; what is in doubt is resolved by reading the API server, never by guessing.
 * At most one step is open an object. A write without its preconditions does not leave.
 *
 *   submitted --commit--> durable --last-moment hook--> left --answer--> applied | rejected
 *       |                    |                            |
 *       |                    +--hook not called--> not_sent
 *       |                                                 +--409, 404, 422 uid, 408, 5xx, none--> in doubt
 *   in doubt --read--> applied | overtaken | rejected | absent
 *                      open --submitted again (same fingerprint)--> sent again, same bytes, next attempt
 *                      open --no longer wanted--> block, then absent
 */
#pragma once

#include "control/step.h"
#include "journal/journal.h"

struct gateway;

struct gateway_options {
    struct env *env;
    struct kube_client *client;
    struct journal *journal;
    const char *field_manager; /* "neoset" */
    /* Asked at the last moment before the bytes leave: do we still lead? NULL: always. */
    bool (*may_write)(void *context);
    /* How long the lease is still surely ours; bounds the write's timeout. NULL: unbounded. */
    int64_t (*lease_left_us)(void *context);
    /* What was refused for now may be accepted again (the journal is well, a hold is over). NULL: nobody
     * waits. */
    void (*resume)(void *context);
    /* An open step's fate changed outside a submit (recovery, late answers): wake the operation's object. */
    void (*wake)(void *context, enum kube_resource resource, const char *namespace, const char *name);
    void *context;
};

struct gateway *gateway_make(const struct gateway_options *options);
void gateway_free(struct gateway *gateway);

/* Takes request over. 0: accepted (an intent was appended, or an open step in doubt is sent again);
 * -ERROR_CONFLICT: another step is open on this object; -ERROR_REFUSED: not now (journal slow or full,
 * stopping, not leading, server unreachable, horizon after a replaced journal); nothing was appended then.
 * done is called once, from the loop, with an outcome; and before that once with JOURNAL_UNKNOWN each time
 * the step falls in doubt. The intent becomes durable with the caller's journal_commit(): one for all that a
 * turn submits. */
int gateway_submit(struct gateway *gateway, struct step_request *request, step_done *done, void *context);

/* Who submitted with this context does not wait any more: the done of its steps is not called. They stay open
 * until they are decided. */
void gateway_forget(struct gateway *gateway, const void *context);

/* As many steps are under way (first attempts, later ones and blocks) as are good for a server and for the
 * steps: each has 10 s from being handed over, the wait for a connection included. gateway_submit() refuses
 * more; the outcome of any makes room. */
bool gateway_is_busy(const struct gateway *gateway);
/* A step is open on this object (submitted, under way or in doubt). */
bool gateway_is_open(const struct gateway *gateway, enum kube_resource resource, const char *namespace,
                     const char *name);
/* The same, with what a plan must know of it: in_doubt when submitting it again would send it again, or may.
 */
bool gateway_find_open(const struct gateway *gateway, enum kube_resource resource, const char *namespace,
                       const char *name, bool *ret_in_doubt, bool *ret_lowers_availability);
/* A step that lowers availability of this operation's object is open (journal.md, In doubt, rule 7). */
bool gateway_lowers_availability(const struct gateway *gateway, enum kube_resource operation_resource,
                                 const char *namespace, const char *name);
/* A step of this operation's object that cannot be decided for now, as a sentence without a full stop; the
 * caller's. NULL: none. */
char *gateway_parked_text(const struct gateway *gateway, enum kube_resource operation_resource,
                          const char *namespace, const char *name);
/* After a full turn of planning for one operation object: steps of it that are in doubt with verdict open,
 * and that the turn did not submit again, are made impossible by a `block` step and closed. */
void gateway_settle_unwanted(struct gateway *gateway, enum kube_resource operation_resource,
                             const char *namespace, const char *name);
/* Resolves every step that ended runs left open (at start, after the head check). went_back: they are all
 * closed overtaken. done is called when nothing of them is undecided any more but what verdict open leaves to
 * the plans. */
void gateway_recover(struct gateway *gateway, bool went_back, env_callback *done, void *context);
/* Refuses every submit for one horizon from now: the journal was replaced, a request of its life before may
 * be under way. */
void gateway_hold_horizon(struct gateway *gateway);
/* Tells the gateway of a step key seen on an object. A key of a step of this journal that was closed as
 * anything but applied, by this run or one before, gets its `late` entry, once. */
void gateway_observe_key(struct gateway *gateway, const char *key);
/* Ends an operation with an outcome ("completed", "failed", "superseded", "cancelled"); nothing when none is
 * open. Put off while a step of it is open. */
void gateway_end_operation(struct gateway *gateway, const char *kind, enum kube_resource resource,
                           const char *namespace, const char *name, const char *outcome, const char *reason);
/* The journal's health changed: who was refused may try again. Its owner calls this from journal_on_health().
 */
void gateway_health_changed(struct gateway *gateway);
/* No new steps; done is called when nothing is under way any more or after timeout_us. */
void gateway_stop(struct gateway *gateway, int64_t timeout_us, env_callback *done, void *context);

struct gateway_metrics {
    int64_t submitted, sent, applied, rejected, in_doubt, resent, not_sent, late, recovered;
    int unreadable; /* open steps of a kind that this program does not know */
    int open;
    int parked; /* open steps that cannot be decided for now */
};
void gateway_metrics_get(const struct gateway *gateway, struct gateway_metrics *ret);
