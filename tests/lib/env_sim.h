/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated outside world: `struct env` with virtual time. One WORLD holds the clocks, the disk's files,
 * the network and a heap of events ordered by (time, order of scheduling); each simulated PROCESS is a
 * `struct env` in it. A run is a function of the seed and of what the test does: there is no thread, no real
 * clock, no pointer order.
 *
 *     struct env *env = env_sim_make(1);                      a world with its first process
 *     env_sim_http(env, &model, context);                     a server model for all requests of the world
 *     ... start the code under test on env ...
 *     while (env_sim_step(env)) check_invariants();           or env_sim_run_for(env, 10 * US_PER_S)
 *
 * A kill -9 is env_free(process) while another process (the server model's, say) keeps the world: timers,
 * jobs not yet run, children and callbacks of the dead process are gone; bytes that had left still arrive.
 * env_sim_process() starts the next one. Nothing here knows Kubernetes.
 *
 * Callbacks of the code under test run from env_sim_step only, one event a step: a callback, or a job, or its
 * done. */
#pragma once

#include "env/env.h"

/* --- worlds and processes
 * ---------------------------------------------------------------------------------------- */

/* A new world and its first process. Clocks begin at boot 1,000 s and wall 2026-11-30T07:00:00Z. Free with
 * env_free; the world goes with its last process. */
struct env *env_sim_make(uint64_t seed);
/* One more process in the world of env. */
struct env *env_sim_process(struct env *env);

/* --- time
 * -------------------------------------------------------------------------------------------------------- */

/* Moves the clock to the earliest event of the world and runs it. False when none is left. */
bool env_sim_step(struct env *env);
/* Runs all events that are due up to boot_us, then the clock stands there. */
void env_sim_run_until(struct env *env, int64_t boot_us);
void env_sim_run_for(struct env *env, int64_t duration_us);
/* When the next event is due on the boot clock; INT64_MAX when there is none. */
int64_t env_sim_next_us(struct env *env);
size_t env_sim_event_count(struct env *env);
/* The wall clock alone jumps. */
void env_sim_jump_wall(struct env *env, int64_t delta_us);
/* From now on the world draws as one that was made with this seed. */
void env_sim_reseed(struct env *env, uint64_t seed);
/* A number from the world's generator: 0 .. bound-1; bound > 0. */
uint64_t env_sim_random_below(struct env *env, uint64_t bound);

/* --- the worker
 * -------------------------------------------------------------------------------------------------- */

/* How long the next job of the worker takes (0 when no hook is set): it runs at the end of that time, its
 * done in an event of its own right after. Jobs of a process run one after another. */
typedef int64_t env_sim_work_hook(void *context);
void env_sim_on_work(struct env *env, env_sim_work_hook *hook, void *context);

/* --- HTTP
 * -------------------------------------------------------------------------------------------------------- */

/* A request as the server model sees it. Read only, but for `model`. It is the world's and valid until the
 * model ends it with one of the functions below that say so; also when the client is gone. */
struct env_sim_call {
    uint64_t number; /* 1, 2, 3 ... in the order of submission */
    const char *base_url;
    const char *method;
    const char *path;
    const struct http_header *headers;
    size_t header_count;
    const char *body; /* NULL: none */
    size_t body_length;
    enum http_pool pool;
    bool once;
    bool client_gone; /* cancelled, timed out, or its process is dead: answers go nowhere */
    void *model;      /* the model's own */
};

enum env_sim_fate {
    ENV_SIM_DELIVER,      /* as it should be */
    ENV_SIM_REFUSE,       /* no connection: NOT_SENT */
    ENV_SIM_LOSE_REQUEST, /* it leaves and never arrives: the client waits until its timeout */
    ENV_SIM_LOSE_ANSWER,  /* it arrives; where the answer would come the connection breaks: NO_ANSWER */
    ENV_SIM_EAT_ANSWER,   /* it arrives; the answer never comes: the client waits until its timeout */
};

/* What the network does with a request; chosen when it is submitted. Zero: all is well and takes no time. */
struct env_sim_route {
    int64_t connect_us; /* until the connection stands: then before_send is asked */
    int64_t request_us; /* from there until it arrives at the server */
    int64_t answer_us;  /* each piece of the answer on its way back */
    enum env_sim_fate fate;
};
/* Fills *route (zeroed before) for a request that is being submitted. */
typedef void env_sim_route_hook(void *context, const struct env_sim_call *call, struct env_sim_route *route);

struct env_sim_http_ops {
    /* A request has arrived. The model answers now or later with the functions below. */
    void (*request)(void *context, struct env_sim_call *call);
    /* The client of an unfinished call has gone. The model must still end the call. Optional. */
    void (*gone)(void *context, struct env_sim_call *call);
};
/* The server model of the world, for every URL. Without one every request is REFUSEd. */
void env_sim_http(struct env *env, const struct env_sim_http_ops *ops, void *context);
void env_sim_on_route(struct env *env, env_sim_route_hook *hook, void *context);

/* A whole answer; ends the call. headers may be NULL. "Retry-After" (seconds) and "Audit-Id" are read from
 * it, as by the real transport. All is copied. */
void env_sim_http_answer(struct env_sim_call *call, int status, const struct http_header *headers,
                         size_t header_count, const char *body, size_t body_length);
/* The same in pieces: begin, any number of data (a watch), then end, cut or freeze. */
void env_sim_http_begin(struct env_sim_call *call, int status, const struct http_header *headers,
                        size_t header_count);
void env_sim_http_data(struct env_sim_call *call, const char *bytes, size_t length);
/* The answer is complete; ends the call. */
void env_sim_http_end(struct env_sim_call *call);
/* The connection breaks: NO_ANSWER before begin, a cut body after it; ends the call. */
void env_sim_http_cut(struct env_sim_call *call);
/* Nothing comes any more, and the client is not told; ends the call. */
void env_sim_http_freeze(struct env_sim_call *call);
/* The value of a request header, or NULL; names in any case. */
const char *env_sim_http_header(const struct env_sim_call *call, const char *name);

/* --- children, files, listener, variables, signals
 * ---------------------------------------------------------------- */

struct env_sim_child_result {
    int64_t duration_us;
    int exit_code;
    const char *output; /* NULL: "" */
    const char *errors;
    const char *problem; /* when exit_code is -1 */
};
/* Fills *result (zeroed before) for a child that is started; its strings must live until the next call. A
 * duration above the child's timeout ends it as the real one would. Without a hook no program can be started.
 */
typedef void env_sim_child_hook(void *context, const struct child_spec *spec,
                                struct env_sim_child_result *result);
void env_sim_on_child(struct env *env, env_sim_child_hook *hook, void *context);

/* Files are the world's: they outlive processes. NULL removes. */
void env_sim_file_put(struct env *env, const char *path, const char *text);
/* The content, or NULL; the world's, valid until the file changes. */
const char *env_sim_file_get(struct env *env, const char *path);
/* Writing path fails with this errno from now on (0: no more). */
void env_sim_file_fail(struct env *env, const char *path, int errno_value);
/* A GET on a listener of this process: its status, or 0 when nothing listens on address. */
int env_sim_listen_get(struct env *env, const char *address, const char *path, struct buf *body);
/* A variable of this process; NULL removes. */
void env_sim_variable_set(struct env *env, const char *name, const char *value);
/* SIGTERM for this process, as an event. */
void env_sim_signal(struct env *env);
