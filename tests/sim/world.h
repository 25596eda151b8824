/* SPDX-License-Identifier: Apache-2.0
 *
 * One run: a world with a server, its kubelets and one or two controllers - the real code -, on which a
 * draw's operations are done, and a judge who looks at every event. world_prepare() makes what all runs
 * share; each run is then done in a process of its own that was forked from it. */
#pragma once

#include "draw.h"
#include "report.h"

#include "../lib/sim_server.h"

#include "journal/journal.h"

enum { CONTROLLERS_MAX = 2, FIRST_USER = 1, PROGRAMS_MAX = FIRST_USER + USERS_MAX };

struct judge;
struct command;
struct command_wish;
struct resize;

/* What a process of the world runs: a controller, or a person's command (command.h). */
struct program {
    struct world *world;
    int index;
    char *journal_path;
    struct env *env; /* NULL: it does not run */
    struct kube_client *client;
    struct journal *journal;
    struct controller *controller;
    struct command *command;   /* instead */
    struct command_wish *wish; /* of the person's last one; NULL: it is a controller's */
    int user;                  /* the person */
    uint64_t steps;            /* that have left, of all its lives */
    bool left_undone;          /* its last command was killed, or failed */
    char has_made_uid[48];     /* the StatefulSet that it made last */
    int last_code;             /* enum error_code of the last command that ended; its sentence */
    char last_sentence[SENTENCE_MAX];
    int64_t started_us;
    int64_t start_due_us; /* it is started then; INT64_MAX: not planned */
    bool ended;
    bool stopped;
};

struct world {
    struct env *env;
    struct sim_server *server;
    const struct draw *draw;
    struct report *report;
    struct judge *judge;
    struct program programs[PROGRAMS_MAX];
    int program_count;
    char *folder;
    int64_t begun_us;
    int64_t disk_us;
    int64_t clock_off_us;
    uint64_t call_count;
    struct resize *resize; /* of a world of a StatefulSet */
    bool calm;             /* nothing is done to it any more */
};

struct world *world_prepare(void);
/* Once its folder is there: a journal without any history, for the first controller of each run. */
void world_prepare_journal(struct world *world);
/* Plays the first so many operations, then heals the world and looks whether it comes home. Never returns:
 * the process ends. */
_Noreturn void world_run(struct world *world, const struct draw *draw, int operations, struct report *report);

int64_t world_now_us(const struct world *world);
/* Everything that is due up to then, the judge looking on. */
void world_run_for(struct world *world, int64_t duration_us);

/* The value of label "app", by which the set selects. */
const char *world_label(const struct world *world, int set);
/* The template of the set as it was drawn; the caller's. */
cJSON *world_template(const struct world *world, int set);

/* operations.c */
void world_create_set(struct world *world, int set);
/* Annotates the set and writes its template with its keys in another order: nothing changes by that. */
void world_rustle(struct world *world, int set);
void world_do(struct world *world, const struct operation *operation);
/* Whatever was done to it is made good: good images, no fences, no pauses, fair kubelets. */
void world_heal(struct world *world);
/* The operations of the draw, one after the other. */
void world_play(struct world *world, int operations);
/* Somebody asks the server; says so when it refuses. */
int world_ask(struct world *world, const char *method, const char *path, const char *type, const char *body);
/* Programs, as operations use them. */
/* Its process and its client. */
void program_open(struct program *program);
void program_make(struct world *world, int index);
void program_start(struct program *program);
void program_kill(struct program *program);
void program_stop(struct program *program);
/* Runs so many events. */
/* from does not exist: to will not either. */
void world_copy_file(const char *from, const char *to);
void world_run_events(struct world *world, int count);
cJSON *world_set(struct world *world, int set);
