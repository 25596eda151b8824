/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl_write.h"
#include "base/time_text.h"
#include "cmd/neosetctl_undo.h"
#include "cmd/neosetctl_view.h"
#include "cmd/state_path.h"
#include "control/gateway.h"
#include "version.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES_MAX = 100, HOST_NAME_MAX_BYTES = 256 };
#define LOCK_WAIT_US (5 * US_PER_S)
#define LOCK_POLL_US (100 * US_PER_MS)
#define REFUSED_POLL_US (250 * US_PER_MS)
#define STOP_WAIT_US (1 * US_PER_S)
#define RETENTION_US (400LL * 86400 * US_PER_S)
#define RETENTION_BYTES (64LL * 1024 * 1024)

/* A change on its way. Callbacks only note what happened and end the loop's run; the deciding is done
 * between runs. */
struct flight {
    struct ctl_server *server;
    struct journal *journal;
    struct gateway *gateway;
    const char *name;
    const struct ctl_change *wanted;
    bool is_recovered;
    bool is_stopped;
    bool is_out_of_time;
    bool is_interrupted;
    bool is_woken;  /* something about the object's open step changed */
    bool is_closed; /* our step has an outcome */
    bool was_in_doubt;
    enum journal_kind outcome;
    enum error_code refusal;
    char *summary;
};

/* --- callbacks
 * ---------------------------------------------------------------------------------------------- */

static void recovered(void *context)
{
    struct flight *flight = context;
    flight->is_recovered = true;
    env_stop(flight->server->env);
}

static void stopped(void *context)
{
    struct flight *flight = context;
    flight->is_stopped = true;
    env_stop(flight->server->env);
}

static void out_of_time(void *context)
{
    struct flight *flight = context;
    flight->is_out_of_time = true;
    env_stop(flight->server->env);
}

static void interrupted(void *context)
{
    struct flight *flight = context;
    flight->is_interrupted = true;
    env_stop(flight->server->env);
}

static void wake(void *context, enum kube_resource resource, const char *namespace, const char *name)
{
    struct flight *flight = context;
    if (resource != KUBE_NEOSET || !str_equal(namespace, flight->server->namespace) ||
        !str_equal(name, flight->name))
        return;
    flight->is_woken = true;
    env_stop(flight->server->env);
}

static enum error_code code_of_refusal(const struct step_outcome *outcome)
{
    if (outcome->http == 403)
        return ERROR_FORBIDDEN;
    return outcome->http == 422 || outcome->http == 400 ? ERROR_INVALID : ERROR_REFUSED;
}

static void step_ended(void *context, const struct step_outcome *outcome)
{
    struct flight *flight = context;
    if (outcome->kind == JOURNAL_UNKNOWN) {
        flight->was_in_doubt = true;
        return;
    }
    flight->is_closed = true;
    flight->outcome = outcome->kind;
    flight->refusal = code_of_refusal(outcome);
    str_replace(&flight->summary, outcome->summary);
    env_stop(flight->server->env);
}

static bool has_ended(const struct flight *flight)
{
    return flight->is_out_of_time || flight->is_interrupted;
}

/* Runs the loop for so long, or until something else ends it. */
static void pause_for(struct flight *flight, int64_t delay_us)
{
    struct flight scratch = {.server = flight->server};
    struct env_timer *timer = env_timer_start(flight->server->env, delay_us, out_of_time, &scratch);
    while (!scratch.is_out_of_time && !has_ended(flight))
        env_run(flight->server->env);
    if (scratch.is_out_of_time)
        timer = NULL;
    env_timer_cancel(flight->server->env, &timer);
}

/* --- the journal
 * -------------------------------------------------------------------------------------------- */

static int make_folders(const char *path, struct error **err)
{
    CLEANUP_FREE char *folder = xstrdup(path);
    for (char *at = folder + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return error_set_errno(err, errno, "cannot make the folder %s for your journal", folder);
        *at = '/';
    }
    return 0;
}

/* "user@host": who wrote, for the start entry. The caller's. */
static char *identity(void)
{
    char host[HOST_NAME_MAX_BYTES] = "";
    (void)gethostname(host, sizeof host - 1);
    const struct passwd *user = getpwuid(geteuid());
    return user ? xasprintf("%s@%s", user->pw_name, host) : xasprintf("%u@%s", (unsigned)geteuid(), host);
}

static int open_journal(struct flight *flight, struct error **err)
{
    CLEANUP_FREE char *path = state_path_user(NULL, "neosetctl.db");
    if (!path)
        return error_set(
            err, ERROR_FAILED,
            "there is no place for your journal: set HOME or XDG_STATE_HOME (what neosetctl writes is "
            "journaled first)");
    int r = make_folders(path, err);
    if (r < 0)
        return r;
    CLEANUP_FREE char *who = identity();
    struct journal_options options = {.path = path,
                                      .identity = who,
                                      .version = NEOSET_VERSION,
                                      .retention_us = RETENTION_US,
                                      .retention_bytes = RETENTION_BYTES};
    for (int64_t waited_us = 0;; waited_us += LOCK_POLL_US) {
        CLEANUP_ERROR struct error *own = NULL;
        r = journal_open(flight->server->env, &options, &flight->journal, &own);
        if (r != -ERROR_LOCKED || waited_us >= LOCK_WAIT_US || has_ended(flight)) {
            if (r < 0)
                return error_set(err, own->code, "your journal cannot be used, so nothing is written: %s",
                                 error_text(own));
            break;
        }
        pause_for(flight, LOCK_POLL_US);
    }
    /* No lease: the epoch is our last + 1. */
    journal_set_epoch(flight->journal, journal_epoch(flight->journal) + 1);
    return 0;
}

static void health_changed(void *context)
{
    struct flight *flight = context;
    gateway_health_changed(flight->gateway);
    env_stop(flight->server->env);
}

static void open_gateway(struct flight *flight)
{
    struct gateway_options options = {.env = flight->server->env,
                                      .client = flight->server->client,
                                      .journal = flight->journal,
                                      .field_manager = "neosetctl",
                                      .wake = wake,
                                      .context = flight};
    flight->gateway = gateway_make(&options);
    journal_on_health(flight->journal, health_changed, flight);
    gateway_recover(flight->gateway, false, recovered, flight);
    while (!flight->is_recovered && !has_ended(flight))
        env_run(flight->server->env);
}

/* --- the step
 * ----------------------------------------------------------------------------------------------- */

static int make_request(const struct flight *flight, const cJSON *object, struct step_request **ret,
                        struct error **err)
{
    struct set_view set;
    set_view_make(object, &set);
    struct step_request *request = step_request_make(STEP_PATCH, KUBE_NEOSET, set.namespace, set.name);
    request->uid = xstrdup_or_null(set.uid);
    request->version = xstrdup_or_null(set.version);
    request->operation_kind = xstrdup(flight->wanted->kind);
    request->operation_resource = KUBE_NEOSET;
    request->operation_namespace = xstrdup(set.namespace);
    request->operation_name = xstrdup(set.name);
    int r = flight->wanted->fill(flight->wanted->context, object, request, err);
    if (r < 0)
        step_request_free(request);
    else
        *ret = request;
    return r;
}

static int timed_out(const struct flight *flight, struct error **err)
{
    const char *why = flight->is_interrupted ? "interrupted" : "out of time";
    bool is_open = flight->gateway &&
                   gateway_is_open(flight->gateway, KUBE_NEOSET, flight->server->namespace, flight->name);
    if (is_open || flight->was_in_doubt)
        return error_set(
            err, ERROR_TIMED_OUT,
            "%s: nobody knows yet whether NeoSet %s was changed; `neosetctl status %s -n %s` tells, and the "
            "same command again settles it",
            why, flight->name, flight->name, flight->server->namespace);
    return error_set(err, ERROR_TIMED_OUT, "%s: nothing was written (--request-timeout is how long to wait)",
                     why);
}

/* What an outcome means for the command. *ret_again: the object moved, look again. */
static int judge(const struct flight *flight, bool *ret_again, struct error **err)
{
    switch (flight->outcome) {
    case JOURNAL_APPLIED:
        return 0;
    case JOURNAL_REJECTED:
        if (flight->refusal == ERROR_FORBIDDEN)
            return error_set(
                err, ERROR_FORBIDDEN,
                "NeoSet %s in namespace %s: you may not patch it (%s): you need the verb patch on "
                "neosets.apps.neo.io; `kubectl auth can-i patch neosets.apps.neo.io -n %s` tells",
                flight->name, flight->server->namespace, flight->summary, flight->server->namespace);
        return error_set(err, flight->refusal, "NeoSet %s in namespace %s: the server refuses: %s",
                         flight->name, flight->server->namespace, flight->summary);
    case JOURNAL_NOT_SENT:
        return error_set(err, ERROR_UNREACHABLE, "nothing was written: %s",
                         *flight->summary ? flight->summary : "the server cannot be reached");
    default:
        *ret_again = true;
        return 0;
    }
}

/* Submits until the step is closed. The set is read anew each time: someone else may have changed it. */
static int converge(struct flight *flight, enum ctl_written *ret, struct error **err)
{
    bool was_sent = false;
    for (int tries = 0; tries < TRIES_MAX && !has_ended(flight);) {
        CLEANUP_JSON cJSON *object = NULL;
        int r = ctl_get_set(flight->server, flight->name, &object, err);
        if (r < 0)
            return r;
        const char *namespace = flight->server->namespace;
        bool is_open = gateway_is_open(flight->gateway, KUBE_NEOSET, namespace, flight->name);
        if (!is_open && flight->wanted->is_done(flight->wanted->context, object)) {
            *ret = was_sent ? CTL_WRITTEN : CTL_ALREADY;
            return 0;
        }
        struct step_request *request = NULL;
        r = make_request(flight, object, &request, err);
        if (r < 0)
            return r;
        flight->is_woken = false;
        flight->is_closed = false;
        r = gateway_submit(flight->gateway, request, step_ended, flight);
        if (r == -ERROR_REFUSED) {
            pause_for(flight, REFUSED_POLL_US);
            continue;
        }
        /* The gateway appends; whoever drives the turn commits. */
        journal_commit(flight->journal);
        tries++;
        /* An earlier command wanted something else and is in doubt: that is made impossible first. */
        if (r < 0)
            gateway_settle_unwanted(flight->gateway, KUBE_NEOSET, namespace, flight->name);
        was_sent = was_sent || r == 0;
        journal_commit(flight->journal);
        while (!flight->is_woken && !flight->is_closed && !has_ended(flight))
            env_run(flight->server->env);
        if (!flight->is_closed)
            continue;
        bool again = false;
        r = judge(flight, &again, err);
        if (r < 0 || !again) {
            if (r == 0)
                *ret = CTL_WRITTEN;
            return r;
        }
    }
    const char *problem = journal_problem(flight->journal);
    if (journal_health(flight->journal) != JOURNAL_WELL && problem)
        return error_set(err, ERROR_FAILED, "nothing was written: %s", problem);
    return timed_out(flight, err);
}

static void close_all(struct flight *flight, int result, const char *reason)
{
    if (flight->gateway) {
        const char *outcome = result == 0 ? "completed" : (flight->is_closed ? "failed" : "cancelled");
        if (!gateway_is_open(flight->gateway, KUBE_NEOSET, flight->server->namespace, flight->name))
            gateway_end_operation(flight->gateway, flight->wanted->kind, KUBE_NEOSET,
                                  flight->server->namespace, flight->name, outcome,
                                  result == 0 ? NULL : reason);
        gateway_stop(flight->gateway, STOP_WAIT_US, stopped, flight);
        while (!flight->is_stopped)
            env_run(flight->server->env);
        gateway_free(flight->gateway);
    }
    if (flight->journal)
        journal_close(flight->journal, "done");
    free(flight->summary);
}

int ctl_write(struct ctl_server *server, const char *name, const struct ctl_change *change,
              enum ctl_written *ret, struct error **err)
{
    CLEANUP_JSON cJSON *object = NULL;
    int r = ctl_get_set(server, name, &object, err);
    if (r < 0)
        return r;
    if (change->is_done(change->context, object)) {
        *ret = CTL_ALREADY;
        return 0;
    }
    struct flight flight = {.server = server, .name = name, .wanted = change};
    struct env_timer *timer = env_timer_start(server->env, server->timeout_us, out_of_time, &flight);
    env_on_stop_signal(server->env, interrupted, &flight);
    CLEANUP_ERROR struct error *own = NULL;
    r = open_journal(&flight, &own);
    if (r == 0) {
        open_gateway(&flight);
        r = has_ended(&flight) ? timed_out(&flight, &own) : converge(&flight, ret, &own);
    }
    if (flight.is_out_of_time)
        timer = NULL;
    env_timer_cancel(server->env, &timer);
    close_all(&flight, r, error_text(own));
    if (r < 0 && err)
        *err = STEAL(own);
    return r;
}

/* --- the changes
 * -------------------------------------------------------------------------------------------- */

static bool is_paused_as_wanted(void *context, const cJSON *object)
{
    const bool *is_paused = context;
    struct set_view set;
    set_view_make(object, &set);
    return set.is_paused == *is_paused;
}

static int fill_pause(void *context, const cJSON *object, struct step_request *request, struct error **err)
{
    (void)err;
    const bool *is_paused = context;
    const char *wanted = *is_paused ? "true" : "false";
    struct set_view set;
    set_view_make(object, &set);
    request->body = json_new_object();
    cJSON *strategy = json_add_object(json_add_object(request->body, "spec"), "updateStrategy");
    json_add_bool(strategy, "pause", *is_paused);
    request->fingerprint = xasprintf("pause=%s", wanted);
    request->reason = xasprintf("%s: %s", set.name, *is_paused ? "pause" : "resume");
    request->come_from = xasprintf("pause: %s", set.is_paused ? "true" : "false");
    request->go_to = xasprintf("pause: %s", wanted);
    return 0;
}

int ctl_write_pause(struct ctl_server *server, const char *name, bool is_paused, enum ctl_written *ret,
                    struct error **err)
{
    struct ctl_change change = {
        .kind = "settings", .is_done = is_paused_as_wanted, .fill = fill_pause, .context = &is_paused};
    return ctl_write(server, name, &change, ret, err);
}

static bool is_undone(void *context, const cJSON *set)
{
    return ctl_undo_is_done(context, set);
}

static int fill_undo(void *context, const cJSON *set, struct step_request *request, struct error **err)
{
    const struct ctl_undo *undo = context;
    if (!ctl_undo_is_done(undo, set) && !ctl_undo_is_as_seen(undo, set))
        return error_set(err, ERROR_REFUSED,
                         "somebody gave NeoSet %s another template meanwhile; look at it, "
                         "and say again what you want",
                         request->name);
    request->body = ctl_undo_patch(undo, set);
    request->fingerprint = xasprintf("template=%s", undo->digest);
    request->reason =
        xasprintf("%s: undo to revision %" PRId64 ": %s", request->name, undo->number, undo->change);
    request->come_from =
        undo->from_number > 0 ? xasprintf("revision %" PRId64, undo->from_number) : xstrdup("a new template");
    request->go_to = xasprintf("revision %" PRId64 " (%s)", undo->number, undo->name);
    return 0;
}

int ctl_write_undo(struct ctl_server *server, const char *name, const struct ctl_undo *undo,
                   enum ctl_written *ret, struct error **err)
{
    struct ctl_change change = {
        .kind = "undo", .is_done = is_undone, .fill = fill_undo, .context = (void *)undo};
    return ctl_write(server, name, &change, ret, err);
}
