/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of the crash matrix: a kubesim and a controller of its own in a folder of their own, a story that
 * is played to them over HTTP, and what is to go wrong. Everything is driven by callbacks of one environment,
 * so that many runs go on side by side. */
#pragma once

#include "base/json.h"
#include "base/time_text.h"
#include "env/env.h"

#include <stdio.h>

enum { CRASHES_MAX = 4, KILLS_MAX = 16 };

/* One act of a story, and what must be seen before the next one. */
struct stage {
    const char *what;
    const char *method; /* NULL: nothing is asked for */
    const char *path;
    const char *content_type;
    const char *body;
    const char *look_at; /* the object whose state ends the stage */
    bool (*is_over)(const cJSON *object);
    bool awaits_crash; /* it is over when the controller has died, which then stays dead until the next act */
};

struct story {
    const struct stage *stages;
    size_t count;
};

/* What a run is to do. */
struct plan {
    char name[160];
    const struct story *story;
    char crashes[CRASHES_MAX][64]; /* NEOSET_CRASH of the first, second ... start; "" ends them */
    const char *faults;            /* kubesim --faults, or NULL */
    bool brings_doubt;             /* the faults leave attempts without an answer */
    unsigned kills;                /* kill -9 at random moments, so often */
    uint64_t seed;
};

struct lab {
    struct env *env;
    const char *build;
    char *crash_controller; /* the controller with crash points */
    char *root;             /* the folder of all runs */
};

/* How a run ended. The strings are the run's. */
struct run_result {
    char *problem; /* NULL: it went to the end */
    char *state;   /* the end state, as text */
    char *steps;   /* what was applied, as text, without what is about the gate and the status */
    unsigned deaths;
    unsigned accepted; /* writes of steps in the server's audit log */
    unsigned doubts;   /* attempts that were not answered, or not in a way that settles them */
    unsigned resent;   /* attempts after a step's first */
};

struct run;
typedef void run_done(void *context, struct run *run);

struct run *run_start(struct lab *lab, const struct plan *plan, run_done *done, void *context);
const struct plan *run_plan(const struct run *run);
const struct run_result *run_result(const struct run *run);
const char *run_folder(const struct run *run);
void run_free(struct run *run);

/* The stories (stories.c). */
extern const struct story story_whole, story_not_wanted_any_more;

/* What the end is judged by (judge.c). objects: the end state's lists by their path. The strings are the
 * caller's. */
char *judge_state(const cJSON *set, const cJSON *pods, const cJSON *claims, const cJSON *revisions);
/* steps: `neoset-audit export steps -o jsonl`; audit: kubesim's audit log. Fills accepted, resent and steps
 * of result. Returns a sentence when something is wrong, else NULL. */
char *judge_journal(const char *steps, const char *audit, struct run_result *result);
/* entries: `neoset-audit export entries -o jsonl`: counts the attempts whose end had to be found out. */
char *judge_doubts(const char *entries, struct run_result *result);
