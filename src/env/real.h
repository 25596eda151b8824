/* SPDX-License-Identifier: Apache-2.0
 *
 * The real world's parts, as they know each other: one libuv loop, timers, the worker, HTTP, children, the
 * listener, files. Only src/env includes this. */
#pragma once

#include "env/env.h"
#include "env/file.h"

#include <utlist.h>
#include <uv.h>

struct real;
struct real_worker;
struct real_http;
struct real_listener;

struct env_timer {
    struct real *real;
    env_callback *fire;
    void *context;
    int64_t due_us;         /* on the boot clock */
    bool immediate;         /* waits in real.immediate, not in libuv */
    uint64_t turn;          /* of the loop, when an immediate one was started */
    uv_timer_t uv;          /* freed by its close callback */
    struct env_timer *prev; /* in real.timers or real.immediate */
    struct env_timer *next;
};

struct real {
    struct env env;
    uv_loop_t loop;
    bool stopped;
    uv_idle_t idle;              /* runs while there are immediate timers */
    uv_timer_t trim;             /* gives back what a burst has left */
    struct env_timer *immediate; /* fire in the next turn, in the order given */
    uint64_t turn;
    struct env_timer *timers;
    uv_signal_t signals[3];
    env_callback *on_stop;
    void *on_stop_context;
    struct real_worker *worker;
    struct real_http *http;
    struct env_child *children;
    struct real_listener *listeners;
};

/* The real environment behind the seam's struct. */
static inline struct real *real_of(struct env *env)
{
    return (struct real *)env;
}

int64_t real_boot_us(void);
int64_t real_wall_us(void);
struct env_timer *real_timer_start(struct env *env, int64_t delay_us, env_callback *fire, void *context);
void real_timer_cancel(struct env_timer *timer);

/* Parts are made with the loop and ended before it is closed; each *_free may leave handles that are closing:
 * the loop is run until they are gone. */
struct real_worker *real_worker_make(struct real *real);
void real_worker_free(struct real_worker *worker);
void real_work(struct env *env, env_callback *job, env_callback *done, env_callback *dropped, void *context);

struct real_http *real_http_make(struct real *real);
void real_http_free(struct real_http *http);
struct env_http *real_http_submit(struct env *env, const struct http_request *request,
                                  const struct http_callbacks *callbacks, void *context);
void real_http_cancel(struct env_http *http);

struct env_child *real_child_start(struct env *env, const struct child_spec *spec, env_child_done *done,
                                   void *context);
void real_child_cancel(struct env_child *child);
/* Kills all that run, without their callbacks; the loop reaps them. */
void real_children_free(struct real *real);

int real_listen(struct env *env, const char *address, env_listen_handler *handler, void *context,
                struct error **err);
void real_listeners_free(struct real *real);
