/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl_write.h"
#include "base/time_text.h"
#include "cmd/neosetctl_view.h"
#include "cmd/state_path.h"
#include "control/gateway.h"
#include "version.h"

#include <errno.h>
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
#define OPERATION_KIND "settings"

/* One change on its way. Callbacks only note what happened and end the loop's run; the deciding is done
 * between runs. */
struct change {
    struct ctl_server *server;
    struct journal *journal;
    struct gateway *gateway;
    const char *name;
    bool is_paused; /* wanted */
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
    struct change *change = context;
    change->is_recovered = true;
    env_stop(change->server->env);
}

static void stopped(void *context)
{
    struct change *change = context;
    change->is_stopped = true;
    env_stop(change->server->env);
}

static void out_of_time(void *context)
{
    struct change *change = context;
    change->is_out_of_time = true;
    env_stop(change->server->env);
}

static void interrupted(void *context)
{
    struct change *change = context;
    change->is_interrupted = true;
    env_stop(change->server->env);
}

static void wake(void *context, enum kube_resource resource, const char *namespace, const char *name)
{
    struct change *change = context;
    if (resource != KUBE_NEOSET || !str_equal(namespace, change->server->namespace) ||
        !str_equal(name, change->name))
        return;
    change->is_woken = true;
    env_stop(change->server->env);
}

static enum error_code code_of_refusal(const struct step_outcome *outcome)
{
    if (outcome->http == 403)
        return ERROR_FORBIDDEN;
    return outcome->http == 422 || outcome->http == 400 ? ERROR_INVALID : ERROR_REFUSED;
}

static void step_ended(void *context, const struct step_outcome *outcome)
{
    struct change *change = context;
    if (outcome->kind == JOURNAL_UNKNOWN) {
        change->was_in_doubt = true;
        return;
    }
    change->is_closed = true;
    change->outcome = outcome->kind;
    change->refusal = code_of_refusal(outcome);
    str_replace(&change->summary, outcome->summary);
    env_stop(change->server->env);
}

static bool has_ended(const struct change *change)
{
    return change->is_out_of_time || change->is_interrupted;
}

/* Runs the loop for so long, or until something else ends it. */
static void pause_for(struct change *change, int64_t delay_us)
{
    struct change scratch = {.server = change->server};
    struct env_timer *timer = env_timer_start(change->server->env, delay_us, out_of_time, &scratch);
    while (!scratch.is_out_of_time && !has_ended(change))
        env_run(change->server->env);
    if (scratch.is_out_of_time)
        timer = NULL;
    env_timer_cancel(change->server->env, &timer);
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

static int open_journal(struct change *change, struct error **err)
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
        r = journal_open(change->server->env, &options, &change->journal, &own);
        if (r != -ERROR_LOCKED || waited_us >= LOCK_WAIT_US || has_ended(change)) {
            if (r < 0)
                return error_set(err, own->code, "your journal cannot be used, so nothing is written: %s",
                                 error_text(own));
            break;
        }
        pause_for(change, LOCK_POLL_US);
    }
    /* No lease: the epoch is our last + 1. */
    journal_set_epoch(change->journal, journal_epoch(change->journal) + 1);
    return 0;
}

static void health_changed(void *context)
{
    struct change *change = context;
    gateway_health_changed(change->gateway);
    env_stop(change->server->env);
}

static void open_gateway(struct change *change)
{
    struct gateway_options options = {.env = change->server->env,
                                      .client = change->server->client,
                                      .journal = change->journal,
                                      .field_manager = "neosetctl",
                                      .wake = wake,
                                      .context = change};
    change->gateway = gateway_make(&options);
    journal_on_health(change->journal, health_changed, change);
    gateway_recover(change->gateway, false, recovered, change);
    while (!change->is_recovered && !has_ended(change))
        env_run(change->server->env);
}

/* --- the step
 * ----------------------------------------------------------------------------------------------- */

static struct step_request *make_request(const struct change *change, const struct set_view *set)
{
    const char *wanted = change->is_paused ? "true" : "false";
    struct step_request *request = step_request_make(STEP_PATCH, KUBE_NEOSET, set->namespace, set->name);
    request->uid = xstrdup(set->uid);
    request->version = xstrdup(set->version);
    request->body = json_new_object();
    cJSON *strategy = json_add_object(json_add_object(request->body, "spec"), "updateStrategy");
    json_add_bool(strategy, "pause", change->is_paused);
    request->fingerprint = xasprintf("pause=%s", wanted);
    request->reason = xasprintf("%s: %s", set->name, change->is_paused ? "pause" : "resume");
    request->operation_kind = xstrdup(OPERATION_KIND);
    request->operation_resource = KUBE_NEOSET;
    request->operation_namespace = xstrdup(set->namespace);
    request->operation_name = xstrdup(set->name);
    request->come_from = xasprintf("pause: %s", set->is_paused ? "true" : "false");
    request->go_to = xasprintf("pause: %s", wanted);
    return request;
}

static int timed_out(const struct change *change, struct error **err)
{
    const char *why = change->is_interrupted ? "interrupted" : "out of time";
    bool is_open = change->gateway &&
                   gateway_is_open(change->gateway, KUBE_NEOSET, change->server->namespace, change->name);
    if (is_open || change->was_in_doubt)
        return error_set(
            err, ERROR_TIMED_OUT,
            "%s: nobody knows yet whether NeoSet %s was changed; `neosetctl status %s -n %s` tells, and the "
            "same command again settles it",
            why, change->name, change->name, change->server->namespace);
    return error_set(err, ERROR_TIMED_OUT, "%s: nothing was written (--request-timeout is how long to wait)",
                     why);
}

/* What an outcome means for the command. *ret_again: the object moved, look again. */
static int judge(const struct change *change, bool *ret_again, struct error **err)
{
    switch (change->outcome) {
    case JOURNAL_APPLIED:
        return 0;
    case JOURNAL_REJECTED:
        if (change->refusal == ERROR_FORBIDDEN)
            return error_set(
                err, ERROR_FORBIDDEN,
                "NeoSet %s in namespace %s: you may not patch it (%s): you need the verb patch on "
                "neosets.apps.neo.io; `kubectl auth can-i patch neosets.apps.neo.io -n %s` tells",
                change->name, change->server->namespace, change->summary, change->server->namespace);
        return error_set(err, change->refusal, "NeoSet %s in namespace %s: the server refuses: %s",
                         change->name, change->server->namespace, change->summary);
    case JOURNAL_NOT_SENT:
        return error_set(err, ERROR_UNREACHABLE, "nothing was written: %s",
                         *change->summary ? change->summary : "the server cannot be reached");
    default:
        *ret_again = true;
        return 0;
    }
}

/* Submits until the step is closed. The set is read anew each time: someone else may have changed it. */
static int converge(struct change *change, enum ctl_written *ret, struct error **err)
{
    bool was_sent = false;
    for (int tries = 0; tries < TRIES_MAX && !has_ended(change);) {
        CLEANUP_JSON cJSON *object = NULL;
        int r = ctl_get_set(change->server, change->name, &object, err);
        if (r < 0)
            return r;
        struct set_view set;
        set_view_make(object, &set);
        bool is_open = gateway_is_open(change->gateway, KUBE_NEOSET, set.namespace, set.name);
        if (!is_open && set.is_paused == change->is_paused) {
            *ret = was_sent ? CTL_WRITTEN : CTL_ALREADY;
            return 0;
        }
        change->is_woken = false;
        change->is_closed = false;
        r = gateway_submit(change->gateway, make_request(change, &set), step_ended, change);
        if (r == -ERROR_REFUSED) {
            pause_for(change, REFUSED_POLL_US);
            continue;
        }
        /* The gateway appends; whoever drives the turn commits. */
        journal_commit(change->journal);
        tries++;
        /* An earlier command wanted something else and is in doubt: that is made impossible first. */
        if (r < 0)
            gateway_settle_unwanted(change->gateway, KUBE_NEOSET, set.namespace, set.name);
        was_sent = was_sent || r == 0;
        journal_commit(change->journal);
        while (!change->is_woken && !change->is_closed && !has_ended(change))
            env_run(change->server->env);
        if (!change->is_closed)
            continue;
        bool again = false;
        r = judge(change, &again, err);
        if (r < 0 || !again) {
            if (r == 0)
                *ret = CTL_WRITTEN;
            return r;
        }
    }
    const char *problem = journal_problem(change->journal);
    if (journal_health(change->journal) != JOURNAL_WELL && problem)
        return error_set(err, ERROR_FAILED, "nothing was written: %s", problem);
    return timed_out(change, err);
}

static void close_all(struct change *change, int result, const char *reason)
{
    if (change->gateway) {
        const char *outcome = result == 0 ? "completed" : (change->is_closed ? "failed" : "cancelled");
        if (!gateway_is_open(change->gateway, KUBE_NEOSET, change->server->namespace, change->name))
            gateway_end_operation(change->gateway, OPERATION_KIND, KUBE_NEOSET, change->server->namespace,
                                  change->name, outcome, result == 0 ? NULL : reason);
        gateway_stop(change->gateway, STOP_WAIT_US, stopped, change);
        while (!change->is_stopped)
            env_run(change->server->env);
        gateway_free(change->gateway);
    }
    if (change->journal)
        journal_close(change->journal, "done");
    free(change->summary);
}

int ctl_write_pause(struct ctl_server *server, const char *name, bool is_paused, enum ctl_written *ret,
                    struct error **err)
{
    CLEANUP_JSON cJSON *object = NULL;
    int r = ctl_get_set(server, name, &object, err);
    if (r < 0)
        return r;
    struct set_view set;
    set_view_make(object, &set);
    if (set.is_paused == is_paused) {
        *ret = CTL_ALREADY;
        return 0;
    }
    struct change change = {.server = server, .name = name, .is_paused = is_paused};
    struct env_timer *timer = env_timer_start(server->env, server->timeout_us, out_of_time, &change);
    env_on_stop_signal(server->env, interrupted, &change);
    CLEANUP_ERROR struct error *own = NULL;
    r = open_journal(&change, &own);
    if (r == 0) {
        open_gateway(&change);
        r = has_ended(&change) ? timed_out(&change, &own) : converge(&change, ret, &own);
    }
    if (change.is_out_of_time)
        timer = NULL;
    env_timer_cancel(server->env, &timer);
    close_all(&change, r, error_text(own));
    if (r < 0 && err)
        *err = STEAL(own);
    return r;
}
