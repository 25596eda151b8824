/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/drive_parts.h"

#include "base/time_text.h"

/* What the gateway does not take now, and what it makes impossible, is asked about again after so long. */
#define AGAIN_US (250 * US_PER_MS)

static void take_turn(struct drive *drive);

/* --- the end -------------------------------------------------------------------------------------------- */

/* The last that is done with the drive: its owner may free it in there. */
static void end(struct drive *drive, enum error_code code, const char *sentence)
{
    drive->options.ended(drive->options.context, code, sentence);
}

void drive_failed_to_read(struct drive *drive, enum error_code code, const char *sentence)
{
    end(drive, code, sentence);
}

/* --- looking -------------------------------------------------------------------------------------------- */

static void look_now(void *context)
{
    struct drive *drive = context;
    drive->timer = NULL;
    drive_read(drive);
}

static void look_after(struct drive *drive, int64_t delay_us)
{
    struct env *env = drive->options.env;
    env_timer_cancel(env, &drive->timer);
    drive->timer = env_timer_start(env, delay_us, look_now, drive);
}

/* A step on the set itself may still arrive - a delete, above all: what is decided beside it is wrong when it
 * does. */
static bool is_in_doubt(const struct drive *drive)
{
    const struct converge_options *wanted = &drive->options.converge;
    const cJSON *set = drive->look.set;
    return drive->options.gateway && set && !kube_object_is_deleting(set) &&
           gateway_is_open(drive->options.gateway, KUBE_STATEFULSET, wanted->namespace, wanted->name);
}

static void settle(struct drive *drive)
{
    const struct converge_options *wanted = &drive->options.converge;
    gateway_settle_unwanted(drive->options.gateway, KUBE_STATEFULSET, wanted->namespace, wanted->name);
    journal_commit(drive->options.journal);
}

/* What an earlier run wanted of this very set: one that was made anew since, or that is in another cluster,
 * has another uid. */
static const char *sizes_of(const struct drive *drive)
{
    const char *uid = kube_object_uid(drive->look.set);
    const char *come_from = drive->options.come_from;
    bool is_of_this = !come_from || (uid && strstr(come_from, uid));
    return is_of_this ? drive->options.converge.sizes : NULL;
}

static void make_converge(struct drive *drive)
{
    struct converge_options options = drive->options.converge;
    options.sizes = sizes_of(drive);
    drive->converge = converge_make(&options);
}

void drive_saw(struct drive *drive)
{
    if (is_in_doubt(drive)) {
        settle(drive);
        look_after(drive, AGAIN_US);
        return;
    }
    if (!drive->converge)
        make_converge(drive);
    converge_take_look(drive->converge, &drive->look);
    take_turn(drive);
}

static void take_look_turn(struct drive *drive, int64_t wait_us, const char *phrase)
{
    const struct drive_options *options = &drive->options;
    if (options->looks && !options->looks(options->context, phrase))
        end(drive, ERROR_CANCELLED, phrase ? phrase : "stopped");
    else
        look_after(drive, wait_us);
}

/* --- dry runs ------------------------------------------------------------------------------------------- */

static void answered(void *context, const struct kube_answer *answer)
{
    struct drive *drive = context;
    converge_take_answer(drive->converge, answer, env_boot_us(drive->options.env));
    take_turn(drive);
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static void forget_step(struct drive *drive)
{
    drive->waits_for_step = false;
    env_timer_cancel(drive->options.env, &drive->timer); /* the wake of this very step */
    free(STEAL(drive->step_name));
    free(STEAL(drive->step_reason));
}

static void take_outcome(struct drive *drive, const struct converge_outcome *outcome)
{
    CLEANUP_FREE char *reason = STEAL(drive->step_reason);
    forget_step(drive);
    if (outcome->kind == JOURNAL_APPLIED && drive->options.applied)
        drive->options.applied(drive->options.context, reason);
    converge_take_outcome(drive->converge, outcome);
    take_turn(drive);
}

/* One that was given up for another meanwhile is heard, too: it is not the one that is waited for. */
static bool is_awaited(const struct drive *drive, const struct kube_ref *target)
{
    return drive->waits_for_step && target->resource == drive->step_resource &&
           str_equal(target->name, drive->step_name);
}

static void step_ended(void *context, const struct step_outcome *outcome)
{
    struct drive *drive = context;
    if (outcome->kind != JOURNAL_UNKNOWN && is_awaited(drive, &outcome->target))
        take_outcome(drive, &(struct converge_outcome){.kind = outcome->kind,
                                                       .http = outcome->http,
                                                       .summary = outcome->summary,
                                                       .boot_us = env_boot_us(drive->options.env)});
}

/* In doubt, and nobody knows whether it is still wanted: the cluster tells. */
static void woken(void *context)
{
    struct drive *drive = context;
    drive->timer = NULL;
    forget_step(drive);
    converge_take_outcome(drive->converge, &(struct converge_outcome){.kind = JOURNAL_UNKNOWN});
    take_turn(drive);
}

/* The gateway goes on with the step after it woke us, and must find it as it was: what the turn brings - the
 * end, at which steps that nobody wants are given up - waits for the loop. */
void drive_wake(struct drive *drive)
{
    if (drive->waits_for_step && !drive->timer)
        drive->timer = env_timer_start(drive->options.env, 0, woken, drive);
}

static void take_step(struct drive *drive, struct step_request *request)
{
    const struct drive_options *options = &drive->options;
    if (!options->gateway) {
        step_request_free(request);
        converge_look_again(drive->converge);
        drive->needs_gateway = true;
        options->needs_gateway(options->context);
        return;
    }
    drive->step_resource = request->resource;
    drive->step_name = xstrdup(request->name);
    drive->step_reason = xstrdup(request->reason);
    int r = gateway_submit(options->gateway, request, step_ended, drive);
    drive->waits_for_step = r == 0;
    journal_commit(options->journal);
    if (r == 0)
        return;
    /* What an earlier run wanted is in doubt - of this object, or of an operation that went elsewhere: it is
     * made impossible first. */
    settle(drive);
    forget_step(drive);
    converge_look_again(drive->converge);
    take_look_turn(drive, AGAIN_US, NULL);
}

void drive_take_gateway(struct drive *drive, struct gateway *gateway, struct journal *journal)
{
    PRE(drive->needs_gateway);
    drive->needs_gateway = false;
    drive->options.gateway = gateway;
    drive->options.journal = journal;
    look_after(drive, 0);
}

/* --- turns ---------------------------------------------------------------------------------------------- */

static void take_turn(struct drive *drive)
{
    struct converge_turn turn;
    converge_next(drive->converge, &turn);
    switch (turn.next) {
    case CONVERGE_NEXT_LOOK:
        take_look_turn(drive, turn.wait_us, turn.phrase);
        return;
    case CONVERGE_NEXT_ASK:
        turn.ask.timeout_us = drive->options.timeout_us;
        exempt_write(drive->exempt, &turn.ask, answered, drive);
        return;
    case CONVERGE_NEXT_STEP:
        take_step(drive, turn.step);
        return;
    case CONVERGE_NEXT_END:
        end(drive, turn.code, turn.phrase);
    }
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct drive *drive_start(const struct drive_options *options)
{
    PRE(options->env && options->client && options->writer && options->ended);
    PRE((options->gateway == NULL) == (options->journal == NULL));
    PRE(options->gateway || options->needs_gateway);
    struct drive *drive = xcalloc(1, sizeof(*drive));
    drive->options = *options;
    drive->exempt = exempt_make(&(struct exempt_options){
        .env = options->env, .client = options->client, .field_manager = options->writer});
    look_after(drive, 0);
    return drive;
}

const struct converge *drive_converge(const struct drive *drive)
{
    return drive->converge;
}

void drive_free(struct drive *drive)
{
    if (!drive)
        return;
    env_timer_cancel(drive->options.env, &drive->timer);
    if (drive->call)
        kube_call_cancel(drive->options.client, &drive->call);
    kube_list_cancel(&drive->list);
    kube_owners_cancel(&drive->owners);
    exempt_free(drive->exempt);
    if (drive->options.gateway)
        gateway_forget(drive->options.gateway, drive);
    forget_step(drive);
    converge_free(drive->converge);
    drive_forget_look(drive);
    drive_forget_survey(drive);
    free(drive);
}
