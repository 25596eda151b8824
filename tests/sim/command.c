/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include "judge.h"
#include "resize.h"

#include "base/time_text.h"
#include "control/gateway.h"
#include "kube/client.h"
#include "volume/drive.h"
#include "volume/goal.h"

#include <stdio.h>
#include <unistd.h>

/* A --timeout, and neosetctl's --request-timeout. */
#define LIMIT_US (5 * 60 * US_PER_S)
#define REQUEST_US (10 * US_PER_S)
#define STOP_US (1 * US_PER_S)

struct command {
    struct program *program;
    struct command_wish wish;
    cJSON *desired;            /* NULL: it continues */
    struct converge_goal goal; /* of the user's journal */
    char *come_from;
    struct gateway *gateway;
    struct drive *drive;
    struct env_timer *limit;
    char *said; /* what it waits for */
    bool has_ended;
};

/* --- its end -------------------------------------------------------------------------------------------- */

static void stopped(void *context)
{
    struct command *command = context;
    command->program->ended = true;
}

/* As neosetctl: a drive that is done ends its operation, any other leaves it open, to be gone on with. */
static void end(struct command *command, enum error_code code, const char *sentence)
{
    struct program *program = command->program;
    struct world *world = program->world;
    if (command->has_ended)
        return;
    command->has_ended = true;
    program->last_code = (int)code;
    snprintf(program->last_sentence, sizeof(program->last_sentence), "%s", sentence);
    report_tell(world->report, "user %d's command ends (%s): %s", program->user,
                code == ERROR_NONE ? "done" : error_code_text(code), sentence);
    judge_take_command_end(world->judge, program, code);
    drive_free(STEAL(command->drive));
    env_timer_cancel(program->env, &command->limit);
    if (!command->gateway) {
        stopped(command);
        return;
    }
    if (code == ERROR_NONE)
        gateway_end_operation(command->gateway, CONVERGE_OPERATION, KUBE_STATEFULSET, RESIZE_NAMESPACE,
                              RESIZE_NAME, "completed", NULL);
    gateway_stop(command->gateway, STOP_US, stopped, command);
}

static void ended(void *context, enum error_code code, const char *sentence)
{
    end(context, code, sentence);
}

static void out_of_time(void *context)
{
    struct command *command = context;
    command->limit = NULL;
    end(command, ERROR_TIMED_OUT, "out of time");
}

/* --- the drive ------------------------------------------------------------------------------------------ */

static bool looks(void *context, const char *phrase)
{
    struct command *command = context;
    if (phrase && !str_equal(phrase, command->said))
        report_tell(command->program->world->report, "  user %d waits: %s", command->program->user, phrase);
    str_replace(&command->said, phrase);
    return true;
}

static void applied(void *context, const char *reason)
{
    const struct command *command = context;
    report_tell(command->program->world->report, "  user %d: %s", command->program->user, reason);
}

static void needs_gateway(void *context);

static void start_drive(struct command *command)
{
    const struct program *program = command->program;
    const struct command_wish *wish = &command->wish;
    const struct converge_goal *goal = &command->goal;
    command->drive = drive_start(&(struct drive_options){
        .env = program->env,
        .client = program->client,
        .writer = "neosetctl",
        .timeout_us = REQUEST_US,
        .converge = {.namespace = RESIZE_NAMESPACE,
                     .name = RESIZE_NAME,
                     .desired = command->desired,
                     .sizes = goal->sizes,
                     .unready_will_do = goal->unready_will_do || wish->flags & CONVERGE_DEGRADED,
                     .waits_for_file_system = goal->waits_for_file_system || wish->flags & CONVERGE_WAITS,
                     .recovers = goal->recovers || wish->kind == COMMAND_RECOVER},
        .come_from = command->come_from,
        .gateway = command->gateway,
        .journal = program->journal,
        .needs_gateway = needs_gateway,
        .looks = looks,
        .applied = applied,
        .ended = ended,
        .context = command});
}

/* --- the journal and the gateway ------------------------------------------------------------------------ */

static void woken(void *context, enum kube_resource resource, const char *namespace, const char *name)
{
    struct command *command = context;
    if (resource == KUBE_STATEFULSET && str_equal(namespace, RESIZE_NAMESPACE) &&
        str_equal(name, RESIZE_NAME) && command->drive)
        drive_wake(command->drive);
}

static void health_changed(void *context)
{
    struct command *command = context;
    gateway_health_changed(command->gateway);
}

/* What the user's journal has open of this set, for `continue`. */
static void take_open_operation(struct command *command)
{
    const struct journal_open_operation *operation = journal_open_operation_find(
        command->program->journal, CONVERGE_OPERATION, "StatefulSet", RESIZE_NAMESPACE, RESIZE_NAME);
    if (command->wish.kind != COMMAND_CONTINUE || !operation)
        return;
    converge_goal_read(operation->go_to ? operation->go_to : "", &command->goal);
    command->come_from = xstrdup_or_null(operation->come_from);
}

static void recovered(void *context)
{
    struct command *command = context;
    if (command->has_ended)
        return;
    if (command->drive)
        drive_take_gateway(command->drive, command->gateway, command->program->journal);
    else
        start_drive(command);
}

static void open_gateway(struct command *command)
{
    struct program *program = command->program;
    CLEANUP_FREE char *identity = xasprintf("user-%d", program->user);
    CLEANUP_ERROR struct error *err = NULL;
    if (journal_open(program->env,
                     &(struct journal_options){
                         .path = program->journal_path, .identity = identity, .version = "simulated"},
                     &program->journal, &err) < 0)
        report_break(program->world->report, INVARIANT_NONE_OF_THEM, "the journal cannot be opened: %s",
                     error_text(err));
    judge_take_start(program->world->judge, program);
    journal_set_epoch(program->journal, journal_epoch(program->journal) + 1);
    take_open_operation(command);
    command->gateway = gateway_make(&(struct gateway_options){.env = program->env,
                                                              .client = program->client,
                                                              .journal = program->journal,
                                                              .field_manager = "neosetctl",
                                                              .wake = woken,
                                                              .context = command});
    journal_on_health(program->journal, health_changed, command);
    gateway_recover(command->gateway, false, recovered, command);
}

/* The journal is made before the first write, and not for a refusal. */
static void needs_gateway(void *context)
{
    open_gateway(context);
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct command *command_start(struct program *program, const struct command_wish *wish)
{
    struct command *command = xcalloc(1, sizeof(*command));
    *command = (struct command){.program = program, .wish = *wish};
    program->command = command;
    if (wish->kind != COMMAND_CONTINUE)
        command->desired = resize_manifest(program->world, wish->sizes, wish->flags & CONVERGE_OTHER_SERVICE);
    command->limit = env_timer_start(program->env, LIMIT_US, out_of_time, command);
    if (access(program->journal_path, R_OK) == 0)
        open_gateway(command);
    else
        start_drive(command);
    return command;
}

void command_free(struct command *command)
{
    if (!command)
        return;
    struct program *program = command->program;
    env_timer_cancel(program->env, &command->limit);
    drive_free(command->drive);
    if (program->journal)
        journal_on_health(program->journal, NULL, NULL);
    gateway_free(command->gateway);
    json_delete(command->desired);
    free(command->said);
    converge_goal_done(&command->goal);
    free(command->come_from);
    free(command);
}
