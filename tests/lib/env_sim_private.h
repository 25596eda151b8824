/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated world's inside, shared by env_sim*.c only. */
#pragma once

#include "env_sim.h"

#include <utlist.h>

struct sim_world;
struct sim;

/* One thing that will happen. */
struct sim_event {
    int64_t at_us;
    uint64_t order;    /* among events of the same time */
    size_t index;      /* in the heap */
    struct sim *owner; /* dies with this process; NULL: the world's */
    env_callback *fire;
    void *context;
};

struct sim_entry {
    char *name;
    char *value;
    int errno_value;
    struct sim_entry *prev;
    struct sim_entry *next;
};

struct sim_call;

struct sim_world {
    int64_t boot_us;
    int64_t wall_minus_boot_us;
    uint64_t order;
    uint64_t random_state;
    struct sim_event **heap;
    size_t heap_length;
    size_t heap_room;
    size_t processes;
    struct sim_entry *files;
    const struct env_sim_http_ops *http;
    void *http_context;
    env_sim_route_hook *route;
    void *route_context;
    uint64_t call_count;
    struct sim_call *calls;
};

struct sim_job {
    struct sim *sim;
    env_callback *run;
    env_callback *done;
    env_callback *dropped;
    void *context;
    struct sim_event *event;
    struct sim_job *prev;
    struct sim_job *next;
};

struct sim_listener {
    char *address;
    env_listen_handler *handler;
    void *context;
    struct sim_listener *next;
};

/* A process. */
struct sim {
    struct env env;
    struct sim_world *world;
    bool stopped;
    int64_t worker_free_us;
    env_sim_work_hook *work_hook;
    void *work_context;
    struct sim_job *jobs;
    struct env_timer *timers;
    struct env_http *requests;
    env_sim_child_hook *child_hook;
    void *child_context;
    struct env_child *children;
    struct sim_listener *listeners;
    struct sim_entry *variables;
    env_callback *on_stop;
    void *on_stop_context;
    struct sim_event *signal;
};

static inline struct sim *sim_of(struct env *env)
{
    return (struct sim *)env;
}

/* Schedules; the event is freed when it fires (before its callback runs) or is cancelled. */
struct sim_event *sim_schedule(struct sim_world *world, struct sim *owner, int64_t delay_us,
                               env_callback *fire, void *context);
/* Cancels if *event is not NULL, and sets it to NULL. */
void sim_unschedule(struct sim_world *world, struct sim_event **event);

struct env_http *sim_http_submit(struct env *env, const struct http_request *request,
                                 const struct http_callbacks *callbacks, void *context);
void sim_http_cancel(struct env_http *http);
/* The process is dying. */
void sim_http_end_all(struct sim *sim);
/* The world is ending. */
void sim_http_free_calls(struct sim_world *world);
