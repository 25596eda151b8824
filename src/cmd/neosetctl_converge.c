/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl_converge_parts.h"

#include "audit/escape.h"
#include "base/time_text.h"
#include "cmd/neosetctl_session.h"
#include "volume/decide.h"

/* How often a wait that goes on is said again. */
#define SAY_AGAIN_US (15 * US_PER_S)

struct run {
    const struct ctl_converge *wanted;
    struct converge *converge;
    struct ctl_session session;
    int64_t began_us;
    bool is_journaled; /* the session has its journal: something may be written */
    struct converge_sight sight;
    char *waits_for; /* what was said last */
    int64_t waits_since_us, said_us;
};

/* --- saying --------------------------------------------------------------------------------------------- */

static void say(const struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct run *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *line = xvasprintf(format, args);
    va_end(args);
    escape_plain(&run->wanted->out->text, line);
    buf_add_char(&run->wanted->out->text, '\n');
    (void)out_flush(run->wanted->out, NULL);
}

/* Each wait once, and again when it takes long, with how long. */
static void say_wait(struct run *run, const char *phrase)
{
    int64_t now_us = env_boot_us(run->wanted->server->env);
    if (!str_equal(phrase, run->waits_for)) {
        str_replace(&run->waits_for, phrase);
        run->waits_since_us = run->said_us = now_us;
        if (phrase)
            say(run, "waiting: %s", phrase);
    } else if (phrase && now_us - run->said_us >= SAY_AGAIN_US) {
        char since[TIME_TEXT_SIZE];
        duration_format(now_us - run->waits_since_us, since);
        run->said_us = now_us;
        say(run, "waiting: %s (for %s)", phrase, since);
    }
}

static int out_of_time(const struct run *run, struct error **err)
{
    const struct ctl_converge *wanted = run->wanted;
    const char *why = run->session.is_interrupted ? "interrupted" : "out of time";
    const char *what = run->waits_for ? run->waits_for : "nothing is known to be in the way";
    if (!converge_has_written(run->converge))
        return error_set(err, ERROR_TIMED_OUT, "%s, nothing was written: %s", why, what);
    return error_set(err, ERROR_TIMED_OUT, "%s: %s; nothing is lost: `neosetctl continue -n %s` goes on", why,
                     what, wanted->namespace);
}

/* --- turns ---------------------------------------------------------------------------------------------- */

static int take_look(struct run *run, const struct converge_turn *turn, struct error **err)
{
    say_wait(run, turn->phrase);
    if (turn->wait_us > 0)
        ctl_session_pause(&run->session, turn->wait_us);
    if (ctl_session_is_over(&run->session))
        return out_of_time(run, err);
    int r = converge_sight_read(run->wanted, &run->sight, err);
    if (r == 0)
        converge_take_look(run->converge, &run->sight.look);
    return r;
}

static void answered(void *context, const struct kube_answer *answer)
{
    struct run *run = context;
    converge_take_answer(run->converge, answer, env_wall_us(run->wanted->server->env));
}

static void take_answer(struct run *run, struct converge_turn *turn)
{
    turn->ask.timeout_us = run->wanted->server->timeout_us;
    ctl_session_ask(&run->session, &turn->ask, answered, run);
}

/* Another set's growth that this user began and did not end. */
static void note_other(void *context, const struct journal_open_operation *operation)
{
    const struct run *run = context;
    const struct ctl_converge *wanted = run->wanted;
    bool is_own =
        str_equal(operation->name, wanted->name) && str_equal(operation->namespace, wanted->namespace);
    if (str_equal(operation->action, CONVERGE_OPERATION) && !is_own)
        say(run,
            "note: growing the volumes of StatefulSet %s in namespace %s was begun and not ended: `neosetctl "
            "continue -n %s` goes on",
            operation->name, operation->namespace, operation->namespace);
}

/* The journal is made before the first write, and not for a refusal. */
static int open_session(struct run *run, struct error **err)
{
    const struct ctl_converge *wanted = run->wanted;
    struct kube_ref object = run->session.object;
    int64_t limit_us = MAX(1, run->wanted->limit_us - (env_boot_us(wanted->server->env) - run->began_us));
    ctl_session_close(&run->session, CONVERGE_OPERATION, NULL, NULL);
    int r = ctl_session_open(&run->session, wanted->server, &object, limit_us, err);
    if (r < 0)
        return r;
    run->is_journaled = true;
    journal_open_operations_each(run->session.journal, note_other, run);
    return 0;
}

/* A delete of an earlier run that may still arrive is made impossible before anything is decided. */
static int settle(struct run *run, bool *ret_settled, struct error **err)
{
    const struct kube_ref *object = &run->session.object;
    bool is_there = run->sight.set && !kube_object_is_deleting(run->sight.set);
    *ret_settled = run->is_journaled && is_there &&
                   gateway_is_open(run->session.gateway, object->resource, object->namespace, object->name);
    return *ret_settled ? ctl_session_settle(&run->session, object, err) : 0;
}

static int take_step(struct run *run, struct converge_turn *turn, struct error **err)
{
    struct step_request *request = STEAL(turn->step);
    bool again = !run->is_journaled;
    if (again) {
        step_request_free(request);
        converge_look_again(run->converge);
        bool settled = false;
        int opened = open_session(run, err);
        return opened == 0 ? settle(run, &settled, err) : opened;
    }
    CLEANUP_FREE char *reason = xstrdup(request->reason);
    CLEANUP_ERROR struct error *own = NULL;
    struct converge_outcome outcome = {.kind = JOURNAL_UNKNOWN};
    int r = ctl_session_step(&run->session, request, &again, &own);
    bool is_answered = r < 0 && run->session.is_closed && !ctl_session_is_over(&run->session);
    if (r < 0 && !is_answered) {
        if (ctl_session_is_over(&run->session))
            return out_of_time(run, err);
        if (err)
            *err = STEAL(own);
        return r;
    }
    if (is_answered)
        outcome = (struct converge_outcome){
            .kind = run->session.outcome, .http = run->session.http, .summary = run->session.summary};
    else if (!again)
        outcome.kind = JOURNAL_APPLIED;
    if (outcome.kind == JOURNAL_APPLIED)
        say(run, "%s", reason);
    converge_take_outcome(run->converge, &outcome);
    return 0;
}

/* "Refused" is said of what was not begun. */
static int ended(const struct run *run, const struct converge_turn *turn, struct error **err)
{
    if (turn->code == ERROR_NONE)
        return 0;
    bool is_refusal =
        turn->code == ERROR_REFUSED || turn->code == ERROR_INVALID || turn->code == ERROR_FORBIDDEN;
    enum error_code code = is_refusal && converge_has_written(run->converge) ? ERROR_FAILED : turn->code;
    return error_set(err, code, "%s", turn->phrase);
}

static int run_turns(struct run *run, char **ret_account, struct error **err)
{
    int r = 0;
    while (r == 0) {
        struct converge_turn turn;
        converge_next(run->converge, &turn);
        switch (turn.next) {
        case CONVERGE_NEXT_LOOK:
            r = take_look(run, &turn, err);
            break;
        case CONVERGE_NEXT_ASK:
            take_answer(run, &turn);
            break;
        case CONVERGE_NEXT_STEP:
            r = take_step(run, &turn, err);
            break;
        case CONVERGE_NEXT_END:
            r = ended(run, &turn, err);
            if (r == 0)
                *ret_account = xstrdup(turn.phrase);
            return r;
        }
    }
    return r;
}

/* --- whose fields they are ------------------------------------------------------------------------------ */

/* Whoever applied the claim templates last, on the server's side: the sizes are declared in his name, so that
 * nobody owns them besides. The caller's. */
static char *manager_of(const struct ctl_converge *wanted, const cJSON *set)
{
    if (wanted->field_manager)
        return xstrdup(wanted->field_manager);
    const cJSON *entry = NULL;
    cJSON_ArrayForEach (entry, json_path(set, "metadata", "managedFields", NULL))
        if (str_equal(json_str(entry, "operation"), "Apply") && json_str(entry, "manager") &&
            json_path(entry, "fieldsV1", "f:spec", "f:volumeClaimTemplates", NULL))
            return xstrdup(json_str(entry, "manager"));
    return xstrdup("neosetctl");
}

/* What an earlier run wanted of this very set: one that was made anew since, or that is in another cluster,
 * has another uid. */
static const char *sizes_of(const struct ctl_converge *wanted, const cJSON *set)
{
    const char *uid = kube_object_uid(set);
    return wanted->sizes && uid && strstr(wanted->come_from, uid) ? wanted->sizes : NULL;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* Where there is a journal, what an earlier run left in doubt is settled before anything is looked at. */
static int begin(struct run *run, const struct ctl_converge *wanted, bool plans_only, struct error **err)
{
    struct kube_ref object = {KUBE_STATEFULSET, wanted->namespace, wanted->name};
    *run = (struct run){.wanted = wanted, .began_us = env_boot_us(wanted->server->env)};
    ctl_session_open_dry(&run->session, wanted->server, &object, wanted->limit_us);
    bool settled = false;
    CLEANUP_FREE char *journal = ctl_session_find_journal();
    int r = !plans_only && journal ? open_session(run, err) : 0;
    if (r == 0)
        r = converge_sight_read(wanted, &run->sight, err);
    if (r == 0)
        r = settle(run, &settled, err);
    if (r == 0 && settled)
        r = converge_sight_read(wanted, &run->sight, err);
    if (r < 0)
        return r;
    CLEANUP_FREE char *manager = manager_of(wanted, run->sight.set);
    struct converge_options options = {.namespace = wanted->namespace,
                                       .name = wanted->name,
                                       .desired = wanted->desired,
                                       .sizes = sizes_of(wanted, run->sight.set),
                                       .field_manager = manager,
                                       .is_forced = wanted->is_forced,
                                       .unready_will_do = wanted->unready_will_do,
                                       .waits_for_file_system = wanted->waits_for_file_system,
                                       .recovers = wanted->recovers,
                                       .plans_only = plans_only};
    run->converge = converge_make(&options);
    converge_take_look(run->converge, &run->sight.look);
    return 0;
}

static void finish(struct run *run, bool is_done)
{
    /* Not done: it stays open in the journal, to be gone on with. */
    ctl_session_close(&run->session, CONVERGE_OPERATION, is_done ? "completed" : NULL, NULL);
    converge_free(run->converge);
    converge_sight_done(&run->sight);
    free(run->waits_for);
}

int ctl_converge(const struct ctl_converge *wanted, struct error **err)
{
    struct run run;
    CLEANUP_FREE char *account = NULL;
    int r = begin(&run, wanted, false, err);
    if (r == 0)
        r = run_turns(&run, &account, err);
    if (r == 0)
        say(&run, "%s", account);
    finish(&run, r == 0);
    return r;
}

/* --- the plan ------------------------------------------------------------------------------------------- */

static void show_plan(const struct ctl_converge *wanted, const struct volume_decision *decision)
{
    static const struct sheet_column columns[] = {
        {.name = "claim", .title = "CLAIM", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "class", .title = "CLASS", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "from", .title = "FROM", .type = SHEET_TEXT, .where = IN_ALL},
        {.name = "to", .title = "TO", .type = SHEET_TEXT, .where = IN_ALL},
    };
    struct sheet *sheet = sheet_begin(wanted->out, wanted->look, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < decision->claims.count; i++) {
        const struct volume_item *claim = &decision->claims.items[i];
        struct sheet_cell cells[] = {cell_text(claim->name), cell_text(claim->class), cell_text(claim->from),
                                     cell_text(claim->to)};
        sheet_row(sheet, cells);
    }
    sheet_end(sheet);
}

int ctl_converge_check(const struct ctl_converge *wanted, struct error **err)
{
    struct run run;
    CLEANUP_FREE char *account = NULL;
    int r = begin(&run, wanted, true, err);
    if (r == 0)
        r = run_turns(&run, &account, err);
    finish(&run, false);
    return r;
}

int ctl_converge_plan(const struct ctl_converge *wanted, struct error **err)
{
    struct run run;
    CLEANUP_FREE char *account = NULL;
    int r = begin(&run, wanted, true, err);
    if (r == 0)
        r = run_turns(&run, &account, err);
    const struct volume_decision *decision = run.converge ? converge_decision(run.converge) : NULL;
    if (decision && wanted->look->format == SHEET_JSON) {
        CLEANUP_JSON cJSON *tree = volume_decision_json(decision);
        CLEANUP_FREE char *text = json_print(tree);
        buf_add_text(&wanted->out->text, text);
        buf_add_char(&wanted->out->text, '\n');
        (void)out_flush(wanted->out, NULL);
    } else if (r == 0) {
        if (decision && decision->claims.count > 0)
            show_plan(wanted, decision);
        say(&run, "%s", account);
    }
    finish(&run, false);
    return r;
}
