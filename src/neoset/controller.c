/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/controller_parts.h"

#include "kube/object.h"

#include <utlist.h>

#define STOP_TIMEOUT_US (10 * US_PER_S)
/* Readings that fail in a row, about a quarter of a minute. */
enum { GIVE_UP_AFTER = 4 };
#define READ_TIMEOUT_US (10 * US_PER_S)
/* A slow disk turns SLOW after a third of the renew deadline; so much later the lease is let go. */
#define LET_GO_AFTER_US (10 * US_PER_S)
/* --once ends when nothing has happened for so long after everything was quiet. */
#define ONCE_QUIET_US (500 * US_PER_MS)
/* --once gives up when a collection cannot be watched, or the lease is not ours, for so long without a break:
 * longer than its slowest request (a page of a list: 90 s), than the pauses between several, and than the
 * lease of a holder that died. Not than the longest Retry-After: a server that asks for more patience than a
 * job has is not waited for. */
#define ONCE_PATIENCE_US (120 * US_PER_S)

/* --- reporting ------------------------------------------------------------------------------------------ */

void controller_report(struct controller *controller, enum report_level level, const char *object,
                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *sentence = xvasprintf(format, args);
    va_end(args);
    controller->options.report(controller->options.context, level, object, sentence);
}

/* Says a standing trouble once, until something else is said. */
static void report_once(struct controller *controller, enum report_level level, const char *sentence)
{
    if (str_equal(controller->reported, sentence))
        return;
    str_replace(&controller->reported, sentence);
    controller_report(controller, level, NULL, "%s", sentence);
}

static void end(struct controller *controller, int exit_code, const char *sentence)
{
    if (controller->ended)
        return;
    controller->ended = true;
    controller->options.ended(controller->options.context, exit_code, sentence);
}

/* --- who may do what ------------------------------------------------------------------------------------ */

static bool may_write(void *context)
{
    const struct controller *controller = context;
    return controller->lease ? lease_is_ours(controller->lease) : true;
}

static int64_t left_us(void *context)
{
    const struct controller *controller = context;
    return controller->lease ? lease_left_us(controller->lease) : INT64_MAX;
}

bool controller_may_plan(const struct controller *controller)
{
    return controller->leads && controller->recovered && controller_has_listed(controller) &&
           !controller->stopping && !controller->ended;
}

void controller_wake_all(struct controller *controller)
{
    for (struct set_group *group = controller->store->groups; group; group = group->hh.next)
        if (group->set || group->turn || group->prefetch_count > 0)
            loop_wake(controller->loop, group->key);
}

struct turn *controller_turn_of(struct set_group *group)
{
    if (!group->turn)
        group->turn = xcalloc(1, sizeof(struct turn));
    return group->turn;
}

/* --- facts ---------------------------------------------------------------------------------------------- */

static void group_changed(void *context, struct set_group *group)
{
    struct controller *controller = context;
    if (group->set || group->turn || group->prefetch_count > 0)
        loop_wake(controller->loop, group->key);
}

static void refresh_free(struct refresh *refresh)
{
    struct controller *controller = refresh->controller;
    DL_DELETE(controller->refreshes, refresh);
    env_timer_cancel(controller->env, &refresh->timer);
    if (refresh->call)
        kube_call_cancel(controller->client, &refresh->call);
    free(refresh->namespace);
    free(refresh->name);
    free(refresh->group_key);
    free(refresh->known);
    free(refresh);
}

void controller_forget_refreshes(struct controller *controller, const struct set_group *group)
{
    struct refresh *refresh = NULL, *next = NULL;
    DL_FOREACH_SAFE (controller->refreshes, refresh, next) {
        if (str_equal(refresh->group_key, group->key))
            refresh_free(refresh);
    }
}

static void group_dropped(void *context, struct set_group *group)
{
    struct controller *controller = context;
    controller_forget_refreshes(controller, group);
    turn_free(group->turn);
    group->turn = NULL;
    if (controller->loop)
        loop_forget(controller->loop, group->key);
}

static void refresh_now(void *context);

/* What a reading says beside the object. */
static void note_reading(struct refresh *refresh, struct set_group *group, const cJSON *object)
{
    if (refresh->resource == KUBE_NEOSET)
        controller_turn_of(group)->set_was_read = object != NULL;
    if (refresh->resource != KUBE_REVISION || !group->memory)
        return;
    enum lookup_state state = !object                          ? LOOKUP_ABSENT
                              : kube_object_controller(object) ? LOOKUP_FOREIGN
                                                               : LOOKUP_ORPHAN;
    neoset_note_lookup(group->memory, refresh->name, state, env_boot_us(refresh->controller->env));
}

/* Its set goes on without it after a while. */
static void report_unread(struct refresh *refresh, const struct kube_answer *answer)
{
    CLEANUP_FREE char *object = kube_object_ref_text(refresh->resource, refresh->namespace, refresh->name);
    CLEANUP_FREE char *sentence = kube_answer_sentence(answer, "cannot read it");
    controller_report(refresh->controller, REPORT_WARNING, object, "%s", sentence);
}

/* Gates, status and other pods must not wait for one object that cannot be read. */
static void give_up(struct refresh *refresh)
{
    struct set_group *group = fact_store_find_key(refresh->controller->store, refresh->group_key);
    if (refresh->given_up || !group || !group->turn)
        return;
    refresh->given_up = true;
    controller_turn_of(group)->refreshing--;
    loop_wake(refresh->controller->loop, group->key);
}

static void refresh_done(void *context, const struct kube_answer *answer)
{
    struct refresh *refresh = context;
    struct controller *controller = refresh->controller;
    struct env *env = controller->env;
    refresh->call = NULL;
    if (answer->outcome == KUBE_OK && cJSON_IsObject(answer->body)) {
        controller_take_answer(controller, refresh->resource, answer->body);
    } else if (answer->http == 404 && str_equal(answer->reason, "NotFound")) {
        fact_store_drop_name(controller->store, refresh->resource, refresh->namespace, refresh->name,
                             refresh->known);
    } else {
        if (answer->outcome == KUBE_REFUSED && refresh->attempt == 0)
            report_unread(refresh, answer);
        if (refresh->attempt >= GIVE_UP_AFTER)
            give_up(refresh);
        refresh->timer = env_timer_start(
            env, kube_backoff_us(env, refresh->attempt++, answer->retry_after_us), refresh_now, refresh);
        return;
    }
    struct set_group *group = fact_store_find_key(controller->store, refresh->group_key);
    if (group && group->turn) {
        struct turn *turn = group->turn;
        note_reading(refresh, group, answer->outcome == KUBE_OK ? answer->body : NULL);
        turn->refreshing -= !refresh->given_up;
        loop_wake(controller->loop, group->key);
    }
    refresh_free(refresh);
}

static void refresh_now(void *context)
{
    struct refresh *refresh = context;
    refresh->timer = NULL;
    free(refresh->known);
    refresh->known = xstrdup_or_null(
        fact_store_version(refresh->controller->store, refresh->resource, refresh->namespace, refresh->name));
    CLEANUP_FREE char *path = kube_path(refresh->resource, refresh->namespace, refresh->name, NULL);
    refresh->call = kube_get(refresh->controller->client, path, READ_TIMEOUT_US, refresh_done, refresh);
}

void controller_refresh(struct controller *controller, enum kube_resource resource, const char *namespace,
                        const char *name, struct set_group *group)
{
    struct refresh *asked = NULL;
    DL_FOREACH (controller->refreshes, asked) {
        if (asked->given_up && asked->resource == resource && str_equal(asked->name, name) &&
            str_equal(asked->group_key, group->key))
            return;
    }
    struct refresh *refresh = xcalloc(1, sizeof(*refresh));
    refresh->controller = controller;
    refresh->resource = resource;
    refresh->namespace = xstrdup_or_null(namespace);
    refresh->name = xstrdup(name);
    refresh->group_key = xstrdup(group->key);
    controller_turn_of(group)->refreshing++;
    DL_APPEND(controller->refreshes, refresh);
    refresh_now(refresh);
}

/* --- leading and recovering ----------------------------------------------------------------------------- */

/* A set that has something open in the journal gets its turn, also when it is gone: that ends it. */
static void wake_set(struct controller *controller, const char *namespace, const char *name)
{
    if (controller->options.namespace && !str_equal(controller->options.namespace, namespace))
        return; /* not ours to look at */
    struct set_group *group = fact_store_need_group(controller->store, namespace, name);
    (void)controller_turn_of(group);
    loop_wake(controller->loop, group->key);
}

static void wake_operation(void *context, const struct journal_open_operation *operation)
{
    if (str_equal(operation->object, "NeoSet"))
        wake_set(context, operation->namespace, operation->name);
}

static void recovered(void *context)
{
    struct controller *controller = context;
    controller->recovered = true;
    controller_report(controller, REPORT_DEBUG, NULL, "every step of earlier runs was looked at");
    journal_open_operations_each(controller->journal, wake_operation, controller);
    controller_wake_all(controller);
    controller_check_once(controller);
}

static void append_note(struct controller *controller, const char *reason)
{
    journal_append(controller->journal, &(struct journal_entry){.kind = JOURNAL_NOTE, .reason = reason});
    journal_commit_soon(controller->journal);
}

/* What the Lease says of the journal's head decides how far this journal is believed (journal.md, "The
 * journal went back, forked, or is gone"). */
static void judge_head(struct controller *controller, enum journal_head_verdict head)
{
    switch (head) {
    case JOURNAL_HEAD_GOES_ON:
        return;
    case JOURNAL_HEAD_WENT_BACK:
    case JOURNAL_HEAD_FORKED:
        controller->went_back = true;
        append_note(controller, head == JOURNAL_HEAD_FORKED
                                    ? "the journal forked: the lease names another history"
                                    : "the journal went back: the lease names a later entry");
        controller_report(controller, REPORT_ERROR, NULL,
                          "the journal %s (a restored backup, or a second copy?): its open steps are closed "
                          "overtaken, and only the cluster is believed",
                          head == JOURNAL_HEAD_FORKED ? "forked" : "went back");
        return;
    case JOURNAL_HEAD_REPLACED:
        append_note(controller, "the journal was replaced: the lease names another journal");
        controller_report(
            controller, REPORT_WARNING, NULL,
            "the lease names another journal: all writes wait 15 s, until nothing of its time can "
            "be under way any more");
        gateway_hold_horizon(controller->gateway);
        return;
    case JOURNAL_HEAD_UNREADABLE:
        if (journal_health(controller->journal) == JOURNAL_DEAD)
            return; /* it was our own row: the end of this run says so */
        append_note(controller, "the journal head in the lease cannot be read");
        controller_report(controller, REPORT_WARNING, NULL,
                          "the annotation %s of the lease cannot be read; ignored", LEASE_HEAD_ANNOTATION);
        return;
    }
    UNREACHABLE();
}

static void begin_to_lead(struct controller *controller, enum journal_head_verdict head)
{
    controller->leads = true;
    judge_head(controller, head);
    if (!controller->recovering) {
        controller->recovering = true;
        gateway_recover(controller->gateway, controller->went_back, recovered, controller);
    }
    controller_wake_all(controller);
}

static void lease_gained(void *context, enum journal_head_verdict head)
{
    struct controller *controller = context;
    controller_report(controller, REPORT_INFO, NULL, "leading, epoch %lld",
                      (long long)journal_epoch(controller->journal));
    free(STEAL(controller->lease_trouble));
    begin_to_lead(controller, head);
    controller_check_patience(controller);
}

static void lease_lost(void *context, const char *why)
{
    struct controller *controller = context;
    controller->leads = false;
    for (struct set_group *group = controller->store->groups; group; group = group->hh.next)
        if (group->turn)
            follow_stand_still(controller, group, "this controller does not lead");
    journal_commit_soon(controller->journal); /* no turn may come before the end of this run */
    controller_report(controller, REPORT_WARNING, NULL, "not leading any more: %s", why);
    str_replace(&controller->lease_trouble, why);
    controller_check_patience(controller);
}

static void lease_report(void *context, bool is_trouble, const char *sentence)
{
    struct controller *controller = context;
    report_once(controller, is_trouble ? REPORT_WARNING : REPORT_INFO, sentence);
    if (!controller->leads)
        str_replace(&controller->lease_trouble, sentence);
    controller_check_patience(controller);
}

static void lead_without_lease(struct controller *controller)
{
    journal_set_epoch(controller->journal, journal_epoch(controller->journal) + 1);
    journal_append(controller->journal,
                   &(struct journal_entry){.kind = JOURNAL_EPOCH, .reason = controller->options.identity});
    journal_commit(controller->journal);
    begin_to_lead(controller, JOURNAL_HEAD_GOES_ON);
}

static void start_to_lead(struct controller *controller)
{
    const struct controller_options *options = &controller->options;
    if (!options->lease_namespace) {
        lead_without_lease(controller);
        return;
    }
    controller->lease = lease_start(&(struct lease_options){
        .env = options->env,
        .client = options->client,
        .exempt = controller->exempt,
        .journal = options->journal,
        .namespace = options->lease_namespace,
        .name = options->lease_name,
        .identity = options->identity,
        .gained = lease_gained,
        .lost = lease_lost,
        .report = lease_report,
        .context = controller,
    });
}

/* --- the journal's health ------------------------------------------------------------------------------- */

static void disk_is_stuck(void *context)
{
    struct controller *controller = context;
    controller->stuck_disk = NULL;
    if (controller->lease)
        lease_let_go(controller->lease, "the journal's disk does not answer");
}

static void health_changed(void *context)
{
    struct controller *controller = context;
    enum journal_health health = journal_health(controller->journal);
    if (health == JOURNAL_DEAD) {
        end(controller, 1, journal_problem(controller->journal));
        return;
    }
    if (health == JOURNAL_WELL) {
        env_timer_cancel(controller->env, &controller->stuck_disk);
        controller_report(controller, REPORT_INFO, NULL, "the journal is well again");
        if (controller->lease && !controller->stopping)
            lease_resume(controller->lease);
        gateway_health_changed(controller->gateway);
        return;
    }
    report_once(controller, REPORT_ERROR, journal_problem(controller->journal));
    if (health == JOURNAL_SLOW && !controller->stuck_disk)
        controller->stuck_disk = env_timer_start(controller->env, LET_GO_AFTER_US, disk_is_stuck, controller);
}

static void journal_warns(void *context, const char *sentence)
{
    controller_report(context, REPORT_WARNING, NULL, "%s", sentence);
}

/* --- the gateway asks ----------------------------------------------------------------------------------- */

static void gateway_wakes(void *context, enum kube_resource resource, const char *namespace, const char *name)
{
    if (resource == KUBE_NEOSET)
        wake_set(context, namespace, name);
    else if (resource == KUBE_STATEFULSET)
        kept_wake(context, namespace, name);
}

static bool gateway_has_room(void *context)
{
    const struct controller *controller = context;
    return !gateway_is_busy(controller->gateway);
}

static void gateway_resumes(void *context)
{
    controller_wake_all(context);
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct controller *controller_start(const struct controller_options *options)
{
    PRE(options->env && options->client && options->journal && options->identity);
    PRE(options->report && options->ended);
    struct controller *controller = xcalloc(1, sizeof(*controller));
    controller->options = *options;
    controller->env = options->env;
    controller->client = options->client;
    controller->journal = options->journal;
    controller->exempt = exempt_make(&(struct exempt_options){.env = options->env,
                                                              .client = options->client,
                                                              .field_manager = "neoset",
                                                              .may_write = may_write,
                                                              .context = controller});
    controller->recorder =
        event_recorder_make(options->env, controller->exempt, "neoset-controller", options->identity);
    controller->gateway = gateway_make(&(struct gateway_options){.env = options->env,
                                                                 .client = options->client,
                                                                 .journal = options->journal,
                                                                 .field_manager = "neoset",
                                                                 .may_write = may_write,
                                                                 .lease_left_us = left_us,
                                                                 .resume = gateway_resumes,
                                                                 .wake = gateway_wakes,
                                                                 .context = controller});
    controller->loop = loop_make(options->env, options->journal, controller_handle, controller);
    loop_set_room(controller->loop, gateway_has_room);
    controller->store = fact_store_make(group_changed, group_dropped, controller);
    journal_on_health(options->journal, health_changed, controller);
    journal_on_warning(options->journal, journal_warns, controller);
    controller_start_watches(controller);
    start_to_lead(controller);
    return controller;
}

void controller_free(struct controller *controller)
{
    if (!controller)
        return;
    for (size_t i = 0; i < WATCHED_COUNT; i++) {
        kube_watch_stop(controller->watched[i].watch);
        free(controller->watched[i].trouble);
    }
    struct refresh *refresh = NULL, *next = NULL;
    DL_FOREACH_SAFE (controller->refreshes, refresh, next) {
        refresh_free(refresh);
    }
    env_timer_cancel(controller->env, &controller->stuck_disk);
    env_timer_cancel(controller->env, &controller->once_timer);
    env_timer_cancel(controller->env, &controller->once_patience);
    journal_on_health(controller->journal, NULL, NULL);
    journal_on_warning(controller->journal, NULL, NULL);
    lease_free(controller->lease);
    kept_free_all(controller);
    gateway_free(controller->gateway);
    exempt_free(controller->exempt);
    follow_forget_asked(controller);
    event_recorder_free(controller->recorder);
    fact_store_free(controller->store);
    loop_free(controller->loop);
    free(controller->why_not_ready);
    free(controller->reported);
    free(controller->lease_trouble);
    free(controller);
}

static void given_back(void *context)
{
    struct controller *controller = context;
    env_callback *stopped = STEAL(controller->stopped);
    stopped(controller->stopped_context);
}

static void gateway_stopped(void *context)
{
    struct controller *controller = context;
    if (controller->lease)
        lease_give_back(controller->lease, given_back, controller);
    else
        given_back(controller);
}

void controller_stop(struct controller *controller, env_callback *done, void *context)
{
    PRE(!controller->stopping && done);
    controller->stopping = true;
    controller->stopped = done;
    controller->stopped_context = context;
    gateway_stop(controller->gateway, STOP_TIMEOUT_US, gateway_stopped, controller);
    journal_commit(controller->journal);
}

/* --- --once --------------------------------------------------------------------------------------------- */

bool controller_is_quiet(const struct controller *controller)
{
    struct gateway_metrics metrics;
    gateway_metrics_get(controller->gateway, &metrics);
    if (!controller_may_plan(controller) || metrics.open > 0 || controller->refreshes)
        return false;
    for (const struct set_group *group = controller->store->groups; group; group = group->hh.next) {
        const struct turn *turn = group->turn;
        if (group->set && (!turn || !turn->quiet || turn->status_ask || turn->probe_ask))
            return false;
    }
    return true;
}

static void once_is_done(void *context)
{
    struct controller *controller = context;
    controller->once_timer = NULL;
    if (!controller_is_quiet(controller))
        return;
    for (const struct set_group *group = controller->store->groups; group; group = group->hh.next) {
        const struct turn *turn = group->turn;
        if (group->set && turn->stuck) {
            CLEANUP_FREE char *sentence = xasprintf("NeoSet %s stands still: %s", group->key,
                                                    turn->message ? turn->message : "see its status");
            end(controller, 1, sentence);
            return;
        }
    }
    end(controller, 0, "everything is as it should be");
}

void controller_check_once(struct controller *controller)
{
    if (!controller->options.once || controller->ended || controller->stopping)
        return;
    env_timer_cancel(controller->env, &controller->once_timer);
    if (controller_is_quiet(controller))
        controller->once_timer = env_timer_start(controller->env, ONCE_QUIET_US, once_is_done, controller);
}

/* Why it cannot begin, or go on; NULL: it can. */
static const char *trouble_of(const struct controller *controller)
{
    const char *trouble = controller_watch_trouble(controller);
    return trouble ? trouble : controller->lease_trouble;
}

static void once_gives_up(void *context)
{
    struct controller *controller = context;
    controller->once_patience = NULL;
    const char *trouble = trouble_of(controller);
    if (!trouble || controller->stopping)
        return;
    CLEANUP_FREE char *sentence = xasprintf("--once gives up after 2 minutes: %s", trouble);
    end(controller, 1, sentence);
}

void controller_check_patience(struct controller *controller)
{
    if (!controller->options.once)
        return;
    if (!trouble_of(controller))
        env_timer_cancel(controller->env, &controller->once_patience);
    else if (!controller->once_patience)
        controller->once_patience =
            env_timer_start(controller->env, ONCE_PATIENCE_US, once_gives_up, controller);
}

/* --- for the outside ------------------------------------------------------------------------------------ */

bool controller_is_ready(struct controller *controller, const char **ret_why)
{
    const char *why = NULL;
    if (journal_health(controller->journal) != JOURNAL_WELL) {
        *ret_why = journal_problem(controller->journal);
        return false;
    }
    if (!controller_is_fresh(controller, &why)) {
        *ret_why = why ? why : "still listing";
        return false;
    }
    if (controller->leads && !controller->recovered) {
        *ret_why = "steps of earlier runs are still being looked at";
        return false;
    }
    return true;
}
