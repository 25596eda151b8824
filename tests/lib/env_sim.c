/* SPDX-License-Identifier: Apache-2.0 */
#include "env_sim_private.h"

#include "base/time_text.h"

#include <errno.h>
#include <stdio.h>

/* 2026-11-30T07:00:00Z */
static const int64_t first_wall_us = 1796022000LL * US_PER_S;
static const int64_t first_boot_us = 1000 * US_PER_S;

/* --- the heap --- */

static bool comes_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void put_at(struct sim_world *world, size_t index, struct sim_event *event)
{
    world->heap[index] = event;
    event->index = index;
}

static void sift_up(struct sim_world *world, size_t index)
{
    struct sim_event *event = world->heap[index];
    while (index > 0 && comes_before(event, world->heap[(index - 1) / 2])) {
        put_at(world, index, world->heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    put_at(world, index, event);
}

static void sift_down(struct sim_world *world, size_t index)
{
    struct sim_event *event = world->heap[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= world->heap_length)
            break;
        if (child + 1 < world->heap_length && comes_before(world->heap[child + 1], world->heap[child]))
            child++;
        if (!comes_before(world->heap[child], event))
            break;
        put_at(world, index, world->heap[child]);
        index = child;
    }
    put_at(world, index, event);
}

struct sim_event *sim_schedule(struct sim_world *world, struct sim *owner, int64_t delay_us,
                               env_callback *fire, void *context)
{
    struct sim_event *event = xcalloc(1, sizeof(*event));
    *event = (struct sim_event){.at_us = world->boot_us + MAX(0, delay_us),
                                .order = world->order++,
                                .owner = owner,
                                .fire = fire,
                                .context = context};
    if (world->heap_length == world->heap_room) {
        world->heap_room = MAX(64, world->heap_room * 2);
        world->heap = xreallocarray(world->heap, world->heap_room, sizeof(world->heap[0]));
    }
    put_at(world, world->heap_length++, event);
    sift_up(world, event->index);
    return event;
}

static void take_out(struct sim_world *world, struct sim_event *event)
{
    size_t index = event->index;
    struct sim_event *last = world->heap[--world->heap_length];
    if (last == event)
        return;
    put_at(world, index, last);
    sift_up(world, index);
    sift_down(world, last->index);
}

void sim_unschedule(struct sim_world *world, struct sim_event **event)
{
    if (!*event)
        return;
    take_out(world, *event);
    free(STEAL(*event));
}

/* --- time --- */

bool env_sim_step(struct env *env)
{
    struct sim_world *world = sim_of(env)->world;
    if (world->heap_length == 0)
        return false;
    struct sim_event event = *world->heap[0];
    struct sim_event *memory = world->heap[0];
    take_out(world, memory);
    free(memory);
    ENSURE(event.at_us >= world->boot_us);
    world->boot_us = event.at_us;
    event.fire(event.context);
    return true;
}

void env_sim_run_until(struct env *env, int64_t boot_us)
{
    struct sim_world *world = sim_of(env)->world;
    PRE(boot_us >= world->boot_us);
    while (env_sim_next_us(env) <= boot_us)
        env_sim_step(env);
    world->boot_us = boot_us;
}

void env_sim_run_for(struct env *env, int64_t duration_us)
{
    env_sim_run_until(env, env_boot_us(env) + duration_us);
}

int64_t env_sim_next_us(struct env *env)
{
    const struct sim_world *world = sim_of(env)->world;
    return world->heap_length ? world->heap[0]->at_us : INT64_MAX;
}

size_t env_sim_event_count(struct env *env)
{
    return sim_of(env)->world->heap_length;
}

void env_sim_jump_wall(struct env *env, int64_t delta_us)
{
    sim_of(env)->world->wall_minus_boot_us += delta_us;
}

static int64_t boot_us(struct env *env)
{
    return sim_of(env)->world->boot_us;
}

static int64_t wall_us(struct env *env)
{
    const struct sim_world *world = sim_of(env)->world;
    return world->boot_us + world->wall_minus_boot_us;
}

/* splitmix64 */
static uint64_t next_random(struct sim_world *world)
{
    uint64_t z = world->random_state += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

void env_sim_reseed(struct env *env, uint64_t seed)
{
    sim_of(env)->world->random_state = seed;
}

uint64_t env_sim_random_below(struct env *env, uint64_t bound)
{
    PRE(bound > 0);
    return next_random(sim_of(env)->world) % bound;
}

static void random_bytes(struct env *env, void *bytes, size_t length)
{
    uint8_t *at = bytes;
    for (size_t i = 0; i < length; i++)
        at[i] = (uint8_t)next_random(sim_of(env)->world);
}

/* --- timers --- */

struct env_timer {
    struct sim *sim;
    struct sim_event *event;
    env_callback *fire;
    void *context;
    struct env_timer *prev;
    struct env_timer *next;
};

static void on_timer(void *context)
{
    struct env_timer timer = *(struct env_timer *)context;
    DL_DELETE(timer.sim->timers, (struct env_timer *)context);
    free(context);
    timer.fire(timer.context);
}

static struct env_timer *timer_start(struct env *env, int64_t delay_us, env_callback *fire, void *context)
{
    PRE(fire);
    struct sim *sim = sim_of(env);
    struct env_timer *timer = xcalloc(1, sizeof(*timer));
    *timer = (struct env_timer){.sim = sim, .fire = fire, .context = context};
    timer->event = sim_schedule(sim->world, sim, delay_us, on_timer, timer);
    DL_APPEND(sim->timers, timer);
    return timer;
}

static void timer_cancel(struct env_timer *timer)
{
    struct sim *sim = timer->sim;
    sim_unschedule(sim->world, &timer->event);
    DL_DELETE(sim->timers, timer);
    free(timer);
}

/* --- the worker --- */

static void drop_job(struct sim_job *job)
{
    sim_unschedule(job->sim->world, &job->event);
    DL_DELETE(job->sim->jobs, job);
    free(job);
}

static void free_job(struct sim_job *job)
{
    struct sim_job copy = *job;
    drop_job(job);
    if (copy.dropped)
        copy.dropped(copy.context);
}

static void on_job_done(void *context)
{
    struct sim_job *job = context;
    struct sim_job copy = *job;
    job->event = NULL;
    drop_job(job);
    if (copy.done)
        copy.done(copy.context);
}

static void on_job_run(void *context)
{
    struct sim_job *job = context;
    job->event = sim_schedule(job->sim->world, job->sim, 0, on_job_done, job);
    job->run(job->context);
}

static void work(struct env *env, env_callback *run, env_callback *done, env_callback *dropped, void *context)
{
    PRE(run);
    struct sim *sim = sim_of(env);
    int64_t duration_us = sim->work_hook ? sim->work_hook(sim->work_context) : 0;
    PRE(duration_us >= 0);
    sim->worker_free_us = MAX(sim->worker_free_us, sim->world->boot_us) + duration_us;
    struct sim_job *job = xcalloc(1, sizeof(*job));
    *job = (struct sim_job){.sim = sim, .run = run, .done = done, .dropped = dropped, .context = context};
    job->event = sim_schedule(sim->world, sim, sim->worker_free_us - sim->world->boot_us, on_job_run, job);
    DL_APPEND(sim->jobs, job);
}

void env_sim_on_work(struct env *env, env_sim_work_hook *hook, void *context)
{
    sim_of(env)->work_hook = hook;
    sim_of(env)->work_context = context;
}

/* --- children --- */

struct env_child {
    struct sim *sim;
    struct sim_event *event;
    env_child_done *done;
    void *context;
    int exit_code;
    char *output;
    char *errors;
    char *problem;
    struct env_child *prev;
    struct env_child *next;
};

static void free_child(struct env_child *child)
{
    sim_unschedule(child->sim->world, &child->event);
    DL_DELETE(child->sim->children, child);
    free(child->output);
    free(child->errors);
    free(child->problem);
    free(child);
}

static void on_child(void *context)
{
    struct env_child *child = context;
    child->event = NULL;
    struct child_result result = {.exit_code = child->exit_code,
                                  .output = child->output,
                                  .output_length = strlen(child->output),
                                  .errors = child->errors,
                                  .problem = child->problem};
    env_child_done *done = child->done;
    child->done = NULL;
    done(child->context, &result);
    free_child(child);
}

static struct env_child *child_start(struct env *env, const struct child_spec *spec, env_child_done *done,
                                     void *context)
{
    PRE(spec && spec->argv && spec->argv[0] && spec->timeout_us > 0 && done);
    struct sim *sim = sim_of(env);
    struct env_sim_child_result told = {.exit_code = -1, .problem = "could not be started: no such file"};
    if (sim->child_hook) {
        told = (struct env_sim_child_result){0};
        sim->child_hook(sim->child_context, spec, &told);
    }
    if (told.duration_us > spec->timeout_us)
        told = (struct env_sim_child_result){.duration_us = spec->timeout_us,
                                             .exit_code = -1,
                                             .problem = "did not finish in time and was killed"};
    if (told.output && strlen(told.output) > spec->output_max)
        told = (struct env_sim_child_result){
            .duration_us = told.duration_us, .exit_code = -1, .problem = "wrote too much and was killed"};
    struct env_child *child = xcalloc(1, sizeof(*child));
    *child = (struct env_child){.sim = sim, .done = done, .context = context, .exit_code = told.exit_code};
    child->output = xstrdup(told.output ? told.output : "");
    child->errors = xstrdup(told.errors ? told.errors : "");
    child->problem = xstrdup_or_null(told.exit_code == -1 && !told.problem ? "failed" : told.problem);
    child->event = sim_schedule(sim->world, sim, told.duration_us, on_child, child);
    DL_APPEND(sim->children, child);
    return child;
}

static void child_cancel(struct env_child *child)
{
    if (child->done)
        free_child(child);
}

void env_sim_on_child(struct env *env, env_sim_child_hook *hook, void *context)
{
    sim_of(env)->child_hook = hook;
    sim_of(env)->child_context = context;
}

/* --- files, variables, listener, signals --- */

static struct sim_entry *find_entry(struct sim_entry *entries, const char *name)
{
    struct sim_entry *entry;
    DL_FOREACH (entries, entry)
        if (strcmp(entry->name, name) == 0)
            return entry;
    return NULL;
}

static struct sim_entry *ensure_entry(struct sim_entry **entries, const char *name)
{
    struct sim_entry *entry = find_entry(*entries, name);
    if (!entry) {
        entry = xcalloc(1, sizeof(*entry));
        entry->name = xstrdup(name);
        DL_APPEND(*entries, entry);
    }
    return entry;
}

static void free_entries(struct sim_entry **entries)
{
    struct sim_entry *entry;
    struct sim_entry *next;
    DL_FOREACH_SAFE (*entries, entry, next) {
        free(entry->name);
        free(entry->value);
        free(entry);
    }
    *entries = NULL;
}

void env_sim_file_put(struct env *env, const char *path, const char *text)
{
    str_replace(&ensure_entry(&sim_of(env)->world->files, path)->value, text);
}

const char *env_sim_file_get(struct env *env, const char *path)
{
    const struct sim_entry *file = find_entry(sim_of(env)->world->files, path);
    return file ? file->value : NULL;
}

void env_sim_file_fail(struct env *env, const char *path, int errno_value)
{
    ensure_entry(&sim_of(env)->world->files, path)->errno_value = errno_value;
}

static int read_file(struct env *env, const char *path, struct buf *ret, struct error **err)
{
    const char *text = env_sim_file_get(env, path);
    if (!text)
        return error_set_errno(err, ENOENT, "cannot open %s", path);
    if (buf_add_text(ret, text) < 0)
        return error_set(err, ERROR_TOO_LARGE, "%s is larger than %zu bytes", path, ret->max);
    return 0;
}

/* Files are text here: a zero byte would be lost, and nothing of ours writes one. */
static int write_file(struct env *env, const char *path, unsigned mode, const void *bytes, size_t length,
                      struct error **err)
{
    (void)mode;
    struct sim_entry *file = ensure_entry(&sim_of(env)->world->files, path);
    if (file->errno_value)
        return error_set_errno(err, file->errno_value, "cannot write %s", path);
    CLEANUP_FREE char *text = xmemdup0(bytes, length);
    PRE(strlen(text) == length);
    str_replace(&file->value, text);
    return 0;
}

static const char *variable(struct env *env, const char *name)
{
    const struct sim_entry *entry = find_entry(sim_of(env)->variables, name);
    return entry && entry->value && entry->value[0] ? entry->value : NULL;
}

void env_sim_variable_set(struct env *env, const char *name, const char *value)
{
    str_replace(&ensure_entry(&sim_of(env)->variables, name)->value, value);
}

static struct sim_listener *find_listener(const struct sim *sim, const char *address)
{
    struct sim_listener *listener;
    LL_FOREACH (sim->listeners, listener)
        if (strcmp(listener->address, address) == 0)
            return listener;
    return NULL;
}

static int listen_on(struct env *env, const char *address, env_listen_handler *handler, void *context,
                     struct error **err)
{
    struct sim *sim = sim_of(env);
    if (find_listener(sim, address))
        return error_set_errno(err, EADDRINUSE, "cannot listen on %s", address);
    struct sim_listener *listener = xcalloc(1, sizeof(*listener));
    *listener = (struct sim_listener){.address = xstrdup(address), .handler = handler, .context = context};
    LL_APPEND(sim->listeners, listener);
    return 0;
}

int env_sim_listen_get(struct env *env, const char *address, const char *path, struct buf *body)
{
    const struct sim_listener *listener = find_listener(sim_of(env), address);
    const char *type;
    return listener ? listener->handler(listener->context, path, body, &type) : 0;
}

static void on_stop_signal(struct env *env, env_callback *stop, void *context)
{
    sim_of(env)->on_stop = stop;
    sim_of(env)->on_stop_context = context;
}

static void on_signal(void *context)
{
    struct sim *sim = context;
    sim->signal = NULL;
    if (sim->on_stop)
        sim->on_stop(sim->on_stop_context);
}

void env_sim_signal(struct env *env)
{
    struct sim *sim = sim_of(env);
    if (!sim->signal)
        sim->signal = sim_schedule(sim->world, sim, 0, on_signal, sim);
}

/* --- the process --- */

static void run(struct env *env)
{
    struct sim *sim = sim_of(env);
    while (!sim->stopped && env_sim_step(env))
        ;
    sim->stopped = false;
}

static void stop(struct env *env)
{
    sim_of(env)->stopped = true;
}

static void free_world(struct sim_world *world)
{
    sim_http_free_calls(world);
    for (size_t i = 0; i < world->heap_length; i++)
        free(world->heap[i]);
    free(world->heap);
    free_entries(&world->files);
    free(world);
}

static void free_sim(struct env *env)
{
    struct sim *sim = sim_of(env);
    struct sim_world *world = sim->world;
    sim_http_end_all(sim);
    while (sim->timers)
        timer_cancel(sim->timers);
    while (sim->jobs)
        free_job(sim->jobs);
    while (sim->children)
        free_child(sim->children);
    sim_unschedule(world, &sim->signal);
    while (sim->listeners) {
        struct sim_listener *listener = sim->listeners;
        LL_DELETE(sim->listeners, listener);
        free(listener->address);
        free(listener);
    }
    free_entries(&sim->variables);
    for (size_t i = 0; i < world->heap_length; i++)
        POST(world->heap[i]->owner != sim);
    free(sim);
    if (--world->processes == 0)
        free_world(world);
}

static const struct env_ops sim_ops = {
    .free = free_sim,
    .wall_us = wall_us,
    .boot_us = boot_us,
    .random = random_bytes,
    .timer_start = timer_start,
    .timer_cancel = timer_cancel,
    .work = work,
    .http_submit = sim_http_submit,
    .http_cancel = sim_http_cancel,
    .child_start = child_start,
    .child_cancel = child_cancel,
    .listen = listen_on,
    .read_file = read_file,
    .write_file = write_file,
    .variable = variable,
    .on_stop_signal = on_stop_signal,
    .run = run,
    .stop = stop,
};

static struct env *make_process(struct sim_world *world)
{
    struct sim *sim = xcalloc(1, sizeof(*sim));
    sim->env.ops = &sim_ops;
    sim->world = world;
    world->processes++;
    return &sim->env;
}

struct env *env_sim_make(uint64_t seed)
{
    struct sim_world *world = xcalloc(1, sizeof(*world));
    world->boot_us = first_boot_us;
    world->wall_minus_boot_us = first_wall_us - first_boot_us;
    world->random_state = seed;
    return make_process(world);
}

struct env *env_sim_process(struct env *env)
{
    return make_process(sim_of(env)->world);
}
