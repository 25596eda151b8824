/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam: everything that is not our own memory. Clock, random, HTTP, child process, timer, files, a
 * listener, one worker. Two implementations: env_real_make() (libuv, libcurl multi) and the simulator's with
 * virtual time. One thread calls all of this; callbacks run on that thread, from the loop, never inside the
 * call that started them. Only a job given to env_work runs elsewhere. Nothing here knows Kubernetes or
 * SQLite. */
#pragma once

#include "base/buf.h"
#include "env/http.h"

struct env;

struct env_timer;
struct env_http;
struct env_child;

typedef void env_callback(void *context);

/* What a child process is: an argument vector, never a shell. */
struct child_spec {
    const char *const *argv;        /* NULL-terminated; argv[0] is looked up in PATH */
    const char *const *environment; /* NULL-terminated "NAME=value", added to ours; may be NULL */
    const char *input;              /* written to its stdin, then closed; may be NULL */
    size_t output_max;              /* bytes of stdout (and of stderr) kept; more kills it */
    int64_t timeout_us;             /* killed after that; > 0 */
};
struct child_result {
    int exit_code;      /* -1: could not be started, was killed by a signal, or ran out of time or output */
    const char *output; /* stdout, NUL-terminated, valid during the callback */
    size_t output_length;
    const char *errors;  /* stderr, NUL-terminated, at most 4 KiB */
    const char *problem; /* a sentence when exit_code is -1, else NULL */
};
typedef void env_child_done(void *context, const struct child_result *result);

/* A plain GET on our listener: answer into body (at most its max), return the status. */
typedef int env_listen_handler(void *context, const char *path, struct buf *body,
                               const char **ret_content_type);

struct env_ops {
    void (*free)(struct env *env);
    int64_t (*wall_us)(struct env *env);
    int64_t (*boot_us)(struct env *env);
    void (*random)(struct env *env, void *bytes, size_t length);
    struct env_timer *(*timer_start)(struct env *env, int64_t delay_us, env_callback *fire, void *context);
    void (*timer_cancel)(struct env_timer *timer);
    void (*work)(struct env *env, env_callback *job, env_callback *done, env_callback *dropped,
                 void *context);
    struct env_http *(*http_submit)(struct env *env, const struct http_request *request,
                                    const struct http_callbacks *callbacks, void *context);
    void (*http_cancel)(struct env_http *http);
    struct env_child *(*child_start)(struct env *env, const struct child_spec *spec, env_child_done *done,
                                     void *context);
    void (*child_cancel)(struct env_child *child);
    int (*listen)(struct env *env, const char *address, env_listen_handler *handler, void *context,
                  struct error **err);
    int (*read_file)(struct env *env, const char *path, struct buf *ret, struct error **err);
    int (*write_file)(struct env *env, const char *path, unsigned mode, const void *bytes, size_t length,
                      struct error **err);
    const char *(*variable)(struct env *env, const char *name);
    void (*on_stop_signal)(struct env *env, env_callback *stop, void *context);
    void (*run)(struct env *env);
    void (*stop)(struct env *env);
};

/* Implementations embed this as their first member. */
struct env {
    const struct env_ops *ops;
};

/* The real world. argv0 and the process environment are used as they are. Never fails but by running out of
 * memory. */
struct env *env_real_make(void);

/* Ends everything that is under way without calling its callbacks, then frees. NULL is fine. */
void env_free(struct env *env);

/* Wall clock, microseconds since 1970, UTC. May jump. */
static inline int64_t env_wall_us(struct env *env)
{
    return env->ops->wall_us(env);
}
/* CLOCK_BOOTTIME in microseconds: counts in suspend, never goes back. All deadlines use it. */
static inline int64_t env_boot_us(struct env *env)
{
    return env->ops->boot_us(env);
}
static inline void env_random(struct env *env, void *bytes, size_t length)
{
    env->ops->random(env, bytes, length);
}
/* A hundred years: "never" may be asked for, and is still a time. */
#define ENV_DELAY_MAX_US (36500LL * 86400 * 1000000)
/* Fires once, not before delay_us (0: next turn of the loop; at most ENV_DELAY_MAX_US). The handle is dead
 * once it fired or was cancelled. */
static inline struct env_timer *env_timer_start(struct env *env, int64_t delay_us, env_callback *fire,
                                                void *context)
{
    return env->ops->timer_start(env, MIN(delay_us, ENV_DELAY_MAX_US), fire, context);
}
/* Cancels if *timer is not NULL and sets it to NULL. The owner sets it to NULL in its fire callback. */
static inline void env_timer_cancel(struct env *env, struct env_timer **timer)
{
    if (*timer)
        env->ops->timer_cancel(*timer);
    *timer = NULL;
}
/* Runs job on the one worker, jobs in the order given, then done on the loop. job may block; it shares
 * nothing with the loop but what context hands over. Cannot be cancelled; env_free waits for a running job.
 */
static inline void env_work(struct env *env, env_callback *job, env_callback *done, void *context)
{
    env->ops->work(env, job, done, NULL, context);
}
/* The same for a context that outlives its owner: env_free() calls dropped for it instead of done, when done
 * has not been called. */
static inline void env_work_or_drop(struct env *env, env_callback *job, env_callback *done,
                                    env_callback *dropped, void *context)
{
    env->ops->work(env, job, done, dropped, context);
}
/* Starts a request; everything in *request is copied. on_done is called exactly once unless it is cancelled
 * first. */
static inline struct env_http *env_http_submit(struct env *env, const struct http_request *request,
                                               const struct http_callbacks *callbacks, void *context)
{
    return env->ops->http_submit(env, request, callbacks, context);
}
/* Stops it; no callback comes any more. The bytes may have left nevertheless. */
static inline void env_http_cancel(struct env *env, struct env_http **http)
{
    if (*http)
        env->ops->http_cancel(*http);
    *http = NULL;
}
static inline struct env_child *env_child_start(struct env *env, const struct child_spec *spec,
                                                env_child_done *done, void *context)
{
    return env->ops->child_start(env, spec, done, context);
}
/* Kills it (SIGKILL to its process group); no callback comes any more. */
static inline void env_child_cancel(struct env *env, struct env_child **child)
{
    if (*child)
        env->ops->child_cancel(*child);
    *child = NULL;
}
/* Listens on "ADDRESS:PORT" (a literal IP or localhost) for GET until env_free. Bounded: 32 connections, 5 s
 * each, 1 s until the request's head is in. */
static inline int env_listen(struct env *env, const char *address, env_listen_handler *handler, void *context,
                             struct error **err)
{
    return env->ops->listen(env, address, handler, context, err);
}
/* Reads a whole file into ret (its max is the bound). Blocks briefly: for configuration and tokens. */
static inline int env_read_file(struct env *env, const char *path, struct buf *ret, struct error **err)
{
    return env->ops->read_file(env, path, ret, err);
}
/* Replaces a file atomically and durably (temporary name, fsync, rename, fsync of the folder). */
static inline int env_write_file(struct env *env, const char *path, unsigned mode, const void *bytes,
                                 size_t length, struct error **err)
{
    return env->ops->write_file(env, path, mode, bytes, length, err);
}
/* An environment variable, or NULL when unset or empty. */
static inline const char *env_variable(struct env *env, const char *name)
{
    return env->ops->variable(env, name);
}
/* SIGTERM, SIGINT, and SIGHUP unless the process was begun with it ignored (nohup): stop is called (again for
 * each signal). */
static inline void env_on_stop_signal(struct env *env, env_callback *stop, void *context)
{
    env->ops->on_stop_signal(env, stop, context);
}
/* Runs callbacks until env_stop(). May be called again afterwards. */
static inline void env_run(struct env *env)
{
    env->ops->run(env);
}
static inline void env_stop(struct env *env)
{
    env->ops->stop(env);
}

DEFINE_CLEANUP(cleanup_env, struct env, env_free);
#define CLEANUP_ENV __attribute__((cleanup(cleanup_env)))
