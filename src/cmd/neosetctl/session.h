/* SPDX-License-Identifier: Apache-2.0
 *
 * A command that writes, while it runs: the user's own journal, the gateway over it, a time limit and Ctrl-C.
 * One step at a time, each waited for until it has an outcome; decides nothing about what is written. */
#pragma once

#include "cmd/neosetctl/server.h"
#include "control/exempt.h"
#include "control/gateway.h"

struct ctl_session {
    struct ctl_server *server;
    struct journal *journal;
    struct gateway *gateway;
    struct exempt *exempt;
    struct kube_ref object; /* of its operation; borrowed */
    struct env_timer *timer;
    bool is_recovered;
    bool is_stopped;
    bool is_out_of_time;
    bool is_interrupted;
    bool is_woken;  /* something about an open step of the operation changed */
    bool is_closed; /* our step has an outcome */
    bool was_in_doubt;
    enum journal_kind outcome;
    enum error_code refusal;
    int http; /* of a refusal */
    char *summary;
    cJSON *answer; /* the newest state of what our step wrote, or NULL */
};

/* object: of the operation that all steps belong to, borrowed while the session lives. limit_us: after so
 * long nothing more is begun. Errors: -ERROR_LOCKED and others: the journal cannot be used, nothing was
 * written; -ERROR_TIMED_OUT. Closed by ctl_session_close in any case. */
int ctl_session_open(struct ctl_session *ret, struct ctl_server *server, const struct kube_ref *object,
                     int64_t limit_us, struct error **err);
/* Where the user's own journal is, when there is one: something was written before, and may be in doubt. The
 * caller's; NULL: there is none. */
char *ctl_session_find_journal(void);
/* The error for a journal of the user's that could not be opened or read because of why: with it nothing can
 * be written, whatever the command. */
int ctl_session_journal_unusable(const struct error *why, struct error **err);
/* For what stores nothing: without journal and gateway, so that only ctl_session_dry_run works. */
void ctl_session_open_dry(struct ctl_session *ret, struct ctl_server *server, const struct kube_ref *object,
                          int64_t limit_us);
/* Ends the operation of this kind with outcome; NULL leaves it open, to be gone on with. */
void ctl_session_close(struct ctl_session *session, const char *kind, const char *outcome,
                       const char *reason);

/* Out of time, or interrupted. */
bool ctl_session_is_over(const struct ctl_session *session);
/* -ERROR_TIMED_OUT, with a sentence about what is known. */
int ctl_session_over(const struct ctl_session *session, struct error **err);
/* Lets the loop run for so long, or until the session is over. */
void ctl_session_pause(struct ctl_session *session, int64_t delay_us);

/* Takes request over and waits for its outcome. 0: it was applied, or *ret_again: look at the cluster anew
 * and decide again. Errors: -ERROR_REFUSED, -ERROR_FORBIDDEN, -ERROR_INVALID: the server refused it;
 * -ERROR_UNREACHABLE: it never left; -ERROR_TIMED_OUT. */
int ctl_session_step(struct ctl_session *session, struct step_request *request, bool *ret_again,
                     struct error **err);
/* A step on this object that an earlier command left open is made impossible, or its outcome found. */
int ctl_session_settle(struct ctl_session *session, const struct kube_ref *object, struct error **err);
/* Something that stores nothing: waits for its answer, which answered is given. */
void ctl_session_ask(struct ctl_session *session, const struct exempt_request *request, kube_done *answered,
                     void *context);
/* The same; *ret: the answered object, the caller's. */
int ctl_session_dry_run(struct ctl_session *session, const struct exempt_request *request, cJSON **ret,
                        struct error **err);

/* "user@host": who writes; the caller's. */
char *ctl_identity(void);
