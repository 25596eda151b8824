/* SPDX-License-Identifier: Apache-2.0
 *
 * The judge of a run: watches what the server takes in, what leaves the controllers, what the journal has on
 * disk, and what the kubelet's containers really do, and ends the run with a sentence when an invariant of
 * the design is broken. It never asks the controller what it thinks. */
#pragma once

#include "world.h"

struct judge *judge_make(struct world *world);

/* Ends the run, unless another invariant is the one that is judged: then it goes on. */
void judge_break(struct judge *judge, int invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What it is told. */
void judge_take_change(struct judge *judge, const struct kubesim_change *change);
void judge_take_request(struct judge *judge, const struct env_sim_call *call);
void judge_take_answer(struct judge *judge, const struct env_sim_call *call, int status, bool told);
void judge_take_start(struct judge *judge, struct program *program);
void judge_take_end(struct judge *judge, struct program *program);
void judge_take_lost_journal(struct judge *judge, struct program *program);
void judge_take_fault(struct judge *judge, const char *spec);
/* Somebody took the lease: until its term is over nobody acts, and deadlines stand still. */
void judge_take_theft(struct judge *judge);
void judge_take_clock_jump(struct judge *judge);
/* The server's storage goes back to an older copy. */
void judge_take_rewind(struct judge *judge);
void judge_take_heal(struct judge *judge);

/* A person's command: what it wants is the program's wish; how it ended, an enum error_code. */
void judge_take_command_start(struct judge *judge, const struct program *program);
void judge_take_command_end(struct judge *judge, struct program *program, int code);

bool judge_has_lost_journal(const struct judge *judge);

/* After each event. */
void judge_look(struct judge *judge);
/* Every set runs the template that it has, and says so. why: what is missing. */
bool judge_is_home(struct judge *judge, char *why, size_t why_size);
/* From now on no controller may write anything but its lease. */
void judge_expect_quiet(struct judge *judge, bool quiet);
/* How many pods others want the StatefulSet to have. */
int judge_wanted_replicas(const struct judge *judge);
/* The sizes that it had before it went last, or NULL; the caller's. */
char *judge_old_sizes(const struct judge *judge);
/* Home: it is there with its pods, its claims have these sizes, and nothing is left of what was done. */
void judge_look_at_statefulset(struct judge *judge, const char *sizes);
/* What the journals have open becomes part of the story. */
void judge_tell_open(struct judge *judge);
void judge_look_at_end(struct judge *judge);
