/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/session.h"
#include "base/time_text.h"
#include "cmd/state_path.h"
#include "version.h"

#include <errno.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOST_NAME_MAX_BYTES = 256 };
#define LOCK_WAIT_US (5 * US_PER_S)
#define LOCK_POLL_US (100 * US_PER_MS)
#define REFUSED_POLL_US (250 * US_PER_MS)
#define STOP_WAIT_US (1 * US_PER_S)
#define RETENTION_US (400LL * 86400 * US_PER_S)
#define RETENTION_BYTES (64LL * 1024 * 1024)

/* --- callbacks
 * ---------------------------------------------------------------------------------------------- */

static void recovered(void *context)
{
    struct ctl_session *session = context;
    session->is_recovered = true;
    env_stop(session->server->env);
}

static void stopped(void *context)
{
    struct ctl_session *session = context;
    session->is_stopped = true;
    env_stop(session->server->env);
}

static void out_of_time(void *context)
{
    struct ctl_session *session = context;
    session->is_out_of_time = true;
    session->timer = NULL;
    env_stop(session->server->env);
}

static void interrupted(void *context)
{
    struct ctl_session *session = context;
    session->is_interrupted = true;
    env_stop(session->server->env);
}

static void wake(void *context, enum kube_resource resource, const char *namespace, const char *name)
{
    struct ctl_session *session = context;
    const struct kube_ref *object = &session->object;
    if (resource != object->resource || !str_equal(namespace, object->namespace) ||
        !str_equal(name, object->name))
        return;
    session->is_woken = true;
    env_stop(session->server->env);
}

static enum error_code code_of_refusal(const struct step_outcome *outcome)
{
    if (outcome->http == 403)
        return ERROR_FORBIDDEN;
    return outcome->http == 422 || outcome->http == 400 ? ERROR_INVALID : ERROR_REFUSED;
}

static void step_ended(void *context, const struct step_outcome *outcome)
{
    struct ctl_session *session = context;
    if (outcome->kind == JOURNAL_UNKNOWN) {
        session->was_in_doubt = true;
        return;
    }
    session->is_closed = true;
    session->outcome = outcome->kind;
    session->refusal = code_of_refusal(outcome);
    session->http = outcome->http;
    str_replace(&session->summary, outcome->summary);
    json_delete(session->answer);
    session->answer = outcome->object ? json_copy(outcome->object) : NULL;
    env_stop(session->server->env);
}

bool ctl_session_is_over(const struct ctl_session *session)
{
    return session->is_out_of_time || session->is_interrupted;
}

void ctl_session_pause(struct ctl_session *session, int64_t delay_us)
{
    struct ctl_session scratch = {.server = session->server};
    scratch.timer = env_timer_start(session->server->env, delay_us, out_of_time, &scratch);
    while (!scratch.is_out_of_time && !ctl_session_is_over(session))
        env_run(session->server->env);
    env_timer_cancel(session->server->env, &scratch.timer);
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

char *ctl_identity(void)
{
    char host[HOST_NAME_MAX_BYTES] = "";
    (void)gethostname(host, sizeof host - 1);
    const struct passwd *user = getpwuid(geteuid());
    return user ? xasprintf("%s@%s", user->pw_name, host) : xasprintf("%u@%s", (unsigned)geteuid(), host);
}

char *ctl_session_find_journal(void)
{
    char *path = state_path_user(NULL, "neosetctl.db");
    /* One that may not be looked at is there: opening it says why it cannot be used. */
    if (path && (access(path, F_OK) == 0 || errno != ENOENT))
        return path;
    free(path);
    return NULL;
}

/* What was typed is not at fault: it is a failure, not a refusal. What the journal says of itself says what
 * is wrong with it; where else a user's own may lie, and that nothing depends on it, it does not know. */
int ctl_session_journal_unusable(const struct error *why, struct error **err)
{
    bool is_refusal =
        why->code == ERROR_FORBIDDEN || why->code == ERROR_INVALID || why->code == ERROR_REFUSED;
    const char *rest =
        why->code == ERROR_LOCKED
            ? ""
            : ". To go on without it: move it away with its -wal and -shm, or let "
              "XDG_STATE_HOME name another place. The command that began something goes on with it by "
              "what the cluster shows; `neosetctl continue` knows of volumes that grow only from this "
              "journal, until the manifest of their StatefulSet is kept in the cluster";
    return error_set(err, is_refusal ? ERROR_FAILED : why->code,
                     "your journal cannot be used, so nothing is written: %s%s", error_text(why), rest);
}

static int open_journal(struct ctl_session *session, struct error **err)
{
    CLEANUP_FREE char *path = state_path_user(NULL, "neosetctl.db");
    if (!path)
        return error_set(
            err, ERROR_FAILED,
            "there is no place for your journal: set HOME or XDG_STATE_HOME (what neosetctl writes is "
            "journaled first)");
    CLEANUP_ERROR struct error *no_folder = NULL;
    int r = make_folders(path, &no_folder);
    if (r < 0)
        return ctl_session_journal_unusable(no_folder, err);
    CLEANUP_FREE char *who = ctl_identity();
    struct journal_options options = {.path = path,
                                      .identity = who,
                                      .version = NEOSET_VERSION,
                                      .retention_us = RETENTION_US,
                                      .retention_bytes = RETENTION_BYTES};
    for (int64_t waited_us = 0;; waited_us += LOCK_POLL_US) {
        CLEANUP_ERROR struct error *own = NULL;
        r = journal_open(session->server->env, &options, &session->journal, &own);
        if (r != -ERROR_LOCKED || waited_us >= LOCK_WAIT_US || ctl_session_is_over(session)) {
            if (r < 0)
                return ctl_session_journal_unusable(own, err);
            break;
        }
        ctl_session_pause(session, LOCK_POLL_US);
    }
    /* No lease: the epoch is our last + 1. */
    journal_set_epoch(session->journal, journal_epoch(session->journal) + 1);
    return 0;
}

static void health_changed(void *context)
{
    struct ctl_session *session = context;
    gateway_health_changed(session->gateway);
    env_stop(session->server->env);
}

static void open_gateway(struct ctl_session *session)
{
    struct gateway_options options = {.env = session->server->env,
                                      .client = session->server->client,
                                      .journal = session->journal,
                                      .field_manager = "neosetctl",
                                      .wake = wake,
                                      .context = session};
    session->gateway = gateway_make(&options);
    journal_on_health(session->journal, health_changed, session);
    gateway_recover(session->gateway, false, recovered, session);
    while (!session->is_recovered && !ctl_session_is_over(session))
        env_run(session->server->env);
}

static void open_exempt(struct ctl_session *session)
{
    session->exempt = exempt_make(&(struct exempt_options){
        .env = session->server->env, .client = session->server->client, .field_manager = "neosetctl"});
}

void ctl_session_open_dry(struct ctl_session *ret, struct ctl_server *server, const struct kube_ref *object,
                          int64_t limit_us)
{
    *ret = (struct ctl_session){.server = server, .object = *object};
    ret->timer = env_timer_start(server->env, limit_us, out_of_time, ret);
    open_exempt(ret);
}

int ctl_session_open(struct ctl_session *ret, struct ctl_server *server, const struct kube_ref *object,
                     int64_t limit_us, struct error **err)
{
    *ret = (struct ctl_session){.server = server, .object = *object};
    ret->timer = env_timer_start(server->env, limit_us, out_of_time, ret);
    env_on_stop_signal(server->env, interrupted, ret);
    int r = open_journal(ret, err);
    if (r < 0)
        return r;
    open_exempt(ret);
    open_gateway(ret);
    return ctl_session_is_over(ret) ? ctl_session_over(ret, err) : 0;
}

void ctl_session_close(struct ctl_session *session, const char *kind, const char *outcome, const char *reason)
{
    const struct kube_ref *object = &session->object;
    env_timer_cancel(session->server->env, &session->timer);
    if (session->exempt)
        exempt_free(session->exempt);
    if (session->gateway) {
        if (outcome)
            gateway_end_operation(session->gateway, kind, object->resource, object->namespace, object->name,
                                  outcome, reason);
        gateway_stop(session->gateway, STOP_WAIT_US, stopped, session);
        while (!session->is_stopped)
            env_run(session->server->env);
        journal_on_health(session->journal, NULL, NULL);
        gateway_free(session->gateway);
    }
    if (session->journal)
        journal_close(session->journal, session->is_interrupted   ? "interrupted"
                                        : session->is_out_of_time ? "out of time"
                                                                  : "done");
    free(session->summary);
    json_delete(session->answer);
}

/* --- a step
 * ------------------------------------------------------------------------------------------------- */

int ctl_session_over(const struct ctl_session *session, struct error **err)
{
    const struct kube_ref *object = &session->object;
    const char *why = session->is_interrupted ? "interrupted" : "out of time";
    const char *problem = session->journal ? journal_problem(session->journal) : NULL;
    if (problem && journal_health(session->journal) != JOURNAL_WELL)
        return error_set(err, ERROR_FAILED, "nothing was written: %s", problem);
    bool is_open = session->gateway &&
                   gateway_is_open(session->gateway, object->resource, object->namespace, object->name);
    if (!is_open && !session->was_in_doubt)
        return error_set(err, ERROR_TIMED_OUT,
                         "%s: nothing was written (--request-timeout is how long to wait)", why);
    CLEANUP_FREE char *look =
        object->resource == KUBE_NEOSET
            ? xasprintf("`neosetctl status %s -n %s` tells, and ", object->name, object->namespace)
            : xstrdup("");
    return error_set(err, ERROR_TIMED_OUT,
                     "%s: nobody knows yet whether %s %s was changed; %sthe same command again settles it",
                     why, kube_resource_info(object->resource)->kind, object->name, look);
}

/* What the permission is called: the verb on "neosets.apps.neo.io". The caller's. */
static char *permission(const struct kube_ref *object, const char *method)
{
    const struct kube_resource_info *info = kube_resource_info(object->resource);
    const char *verb = strcmp(method, "POST") == 0     ? "create"
                       : strcmp(method, "DELETE") == 0 ? "delete"
                                                       : "patch";
    return xasprintf("%s %s%s%s", verb, info->plural, *info->group ? "." : "", info->group);
}

static int refused(const struct ctl_session *session, const struct kube_ref *object, const char *method,
                   struct error **err)
{
    const char *kind = kube_resource_info(object->resource)->kind;
    const char *namespace = object->namespace ? object->namespace : "";
    if (session->refusal != ERROR_FORBIDDEN)
        return error_set(err, session->refusal, "%s %s in namespace %s: the server refuses: %s", kind,
                         object->name, namespace, session->summary);
    CLEANUP_FREE char *what = permission(object, method);
    return error_set(
        err, ERROR_FORBIDDEN,
        "%s %s in namespace %s: you may not %.*s it (%s): you need the permission; `kubectl auth can-i "
        "%s -n %s` tells",
        kind, object->name, namespace, (int)strcspn(what, " "), what, session->summary, what, namespace);
}

/* What an outcome means for the command. *ret_again: the object moved, look again. */
static int judge(const struct ctl_session *session, const struct kube_ref *object, const char *method,
                 bool *ret_again, struct error **err)
{
    switch (session->outcome) {
    case JOURNAL_APPLIED:
        return 0;
    case JOURNAL_REJECTED:
        return refused(session, object, method, err);
    case JOURNAL_NOT_SENT:
        return error_set(err, ERROR_UNREACHABLE, "nothing was written: %s",
                         *session->summary ? session->summary : "the server cannot be reached");
    default:
        *ret_again = true;
        return 0;
    }
}

static void run_until_woken(struct ctl_session *session)
{
    while (!session->is_woken && !session->is_closed && !ctl_session_is_over(session))
        env_run(session->server->env);
}

int ctl_session_step(struct ctl_session *session, struct step_request *request, bool *ret_again,
                     struct error **err)
{
    const struct kube_ref *of = &session->object;
    const char *method = step_kind_info(request->kind)->method;
    CLEANUP_FREE char *namespace = xstrdup_or_null(request->namespace);
    CLEANUP_FREE char *name = xstrdup(request->name);
    struct kube_ref object = {request->resource, namespace, name};
    session->is_woken = false;
    session->is_closed = false;
    int r = gateway_submit(session->gateway, request, step_ended, session);
    if (r == -ERROR_REFUSED) {
        ctl_session_pause(session, REFUSED_POLL_US);
        *ret_again = true;
        return ctl_session_is_over(session) ? ctl_session_over(session, err) : 0;
    }
    /* The gateway appends; whoever drives the turn commits. */
    journal_commit(session->journal);
    /* An earlier command wanted something else and is in doubt: that is made impossible first. */
    if (r < 0)
        gateway_settle_unwanted(session->gateway, of->resource, of->namespace, of->name);
    journal_commit(session->journal);
    run_until_woken(session);
    if (session->is_closed)
        return judge(session, &object, method, ret_again, err);
    *ret_again = true;
    return ctl_session_is_over(session) ? ctl_session_over(session, err) : 0;
}

int ctl_session_settle(struct ctl_session *session, const struct kube_ref *object, struct error **err)
{
    const struct kube_ref *of = &session->object;
    while (gateway_is_open(session->gateway, object->resource, object->namespace, object->name)) {
        if (ctl_session_is_over(session))
            return ctl_session_over(session, err);
        session->is_woken = false;
        session->is_closed = false;
        gateway_settle_unwanted(session->gateway, of->resource, of->namespace, of->name);
        journal_commit(session->journal);
        ctl_session_pause(session, REFUSED_POLL_US);
    }
    return 0;
}

/* --- what stores nothing
 * ------------------------------------------------------------------------------------ */

struct question {
    struct env *env;
    bool is_answered;
    kube_done *answered;
    void *context;
};

static void question_answered(void *context, const struct kube_answer *answer)
{
    struct question *question = context;
    question->is_answered = true;
    question->answered(question->context, answer);
    env_stop(question->env);
}

void ctl_session_ask(struct ctl_session *session, const struct exempt_request *request, kube_done *answered,
                     void *context)
{
    struct question question = {.env = session->server->env, .answered = answered, .context = context};
    exempt_write(session->exempt, request, question_answered, &question);
    while (!question.is_answered)
        env_run(question.env);
}

struct trial {
    cJSON *object;
    int result;
    struct error *err;
};

static void trial_answered(void *context, const struct kube_answer *answer)
{
    struct trial *trial = context;
    CLEANUP_FREE char *words = kube_answer_words(answer);
    if (answer->outcome == KUBE_OK && answer->body)
        trial->object = json_copy(answer->body);
    else
        trial->result =
            error_set(&trial->err, answer->code != ERROR_NONE ? answer->code : ERROR_FAILED, "%s", words);
}

int ctl_session_dry_run(struct ctl_session *session, const struct exempt_request *request, cJSON **ret,
                        struct error **err)
{
    struct trial trial = {0};
    ctl_session_ask(session, request, trial_answered, &trial);
    if (trial.result < 0 && err)
        *err = STEAL(trial.err);
    else if (trial.result == 0)
        *ret = trial.object;
    error_free(trial.err);
    return trial.result;
}
