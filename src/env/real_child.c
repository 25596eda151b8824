/* SPDX-License-Identifier: Apache-2.0
 *
 * Child processes: a session and process group of their own, bounded in time and in output, killed as a
 * group. */
#include "env/real.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

extern char **environ;

enum {
    ERRORS_MAX = 4096,
    READ_SIZE = 65536,
};
/* After the child ended its group is killed; a pipe that someone outside the group still holds is not waited
 * for. */
static const int64_t drain_us = 1000000;
/* A process that SIGKILL does not end (stuck in the kernel) is reported without its exit. */
static const int64_t reap_us = 5000000;

enum { PIPE_IN, PIPE_OUT, PIPE_ERR, PIPE_COUNT };

struct env_child {
    struct real *real;
    uv_process_t process;
    uv_pipe_t pipes[PIPE_COUNT];
    uv_write_t write;
    char *input;
    struct buf output;
    struct buf errors;
    size_t errors_seen;
    size_t output_max;
    int64_t timeout_us;
    char *name;
    char *problem; /* why it was killed or could not be started */
    bool spawned;
    bool exited;
    bool closing;
    int exit_code;
    int term_signal;
    unsigned reading; /* pipes that have not ended */
    unsigned handles; /* open handles, the process included */
    struct env_timer *timer;
    env_child_done *done;
    void *context;
    struct env_child *prev;
    struct env_child *next;
};

static void free_child(struct env_child *child)
{
    buf_done(&child->output);
    buf_done(&child->errors);
    free(child->input);
    free(child->name);
    free(child->problem);
    free(child);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct env_child *child = handle->data;
    if (--child->handles == 0)
        free_child(child);
}

/* Closes what is open; the memory goes with the last handle. */
static void close_child(struct env_child *child)
{
    if (child->closing)
        return;
    child->closing = true;
    DL_DELETE(child->real->children, child);
    env_timer_cancel(&child->real->env, &child->timer);
    for (int i = 0; i < PIPE_COUNT; i++)
        if (!uv_is_closing((uv_handle_t *)&child->pipes[i]))
            uv_close((uv_handle_t *)&child->pipes[i], on_handle_closed);
    if (!uv_is_closing((uv_handle_t *)&child->process))
        uv_close((uv_handle_t *)&child->process, on_handle_closed);
}

/* The whole group: what the child started goes with it. */
static void kill_group(const struct env_child *child)
{
    if (child->spawned)
        kill(-child->process.pid, SIGKILL);
}

static void on_timer(void *context);

static void stop_because(struct env_child *child, char *problem)
{
    if (child->problem)
        free(problem);
    else
        child->problem = problem;
    env_timer_cancel(&child->real->env, &child->timer);
    child->timer = env_timer_start(&child->real->env, reap_us, on_timer, child);
    kill_group(child);
}

static void report(struct env_child *child)
{
    if (!child->problem && child->term_signal)
        child->problem = xasprintf("%s was ended by signal %d (%s)", child->name, child->term_signal,
                                   strsignal(child->term_signal));
    struct child_result result = {
        .exit_code = child->problem ? -1 : child->exit_code,
        .output = buf_text(&child->output),
        .output_length = child->output.length,
        .errors = buf_text(&child->errors),
        .problem = child->problem,
    };
    env_child_done *done = child->done;
    child->done = NULL;
    done(child->context, &result);
}

/* done is NULL while it is being called, so that a cancel from inside it is harmless. */
static void finish(struct env_child *child)
{
    if (child->done)
        report(child);
    close_child(child);
}

static void finish_when_complete(struct env_child *child)
{
    if (child->exited && child->reading == 0)
        finish(child);
}

static void on_timer(void *context)
{
    struct env_child *child = context;
    child->timer = NULL;
    if (child->exited || !child->spawned) {
        finish(child);
        return;
    }
    if (child->problem) {
        report(child); /* on_child_exit closes it, whenever that comes */
        return;
    }
    stop_because(child, xasprintf("%s did not finish within %.3g s and was killed", child->name,
                                  (double)child->timeout_us / 1e6));
}

static void on_child_exit(uv_process_t *process, int64_t exit_status, int term_signal)
{
    struct env_child *child = process->data;
    child->exited = true;
    child->exit_code = (int)exit_status;
    child->term_signal = term_signal;
    kill_group(child);
    env_timer_cancel(&child->real->env, &child->timer);
    if (!child->done) {
        finish(child); /* cancelled */
        return;
    }
    child->timer = env_timer_start(&child->real->env, drain_us, on_timer, child);
    finish_when_complete(child);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(xmalloc(READ_SIZE), READ_SIZE);
}

/* Keeps the end: that is where programs say what went wrong. */
static void keep_errors(struct env_child *child, const char *bytes, size_t length)
{
    child->errors_seen += length;
    if (length > ERRORS_MAX) {
        bytes += length - ERRORS_MAX;
        length = ERRORS_MAX;
    }
    if (child->errors.length + length > ERRORS_MAX)
        buf_drop_front(&child->errors, child->errors.length + length - ERRORS_MAX);
    ENSURE(buf_add(&child->errors, bytes, length) == 0);
}

static void keep_output(struct env_child *child, const uv_stream_t *stream, const char *bytes, size_t length)
{
    bool fits;
    if (stream == (const uv_stream_t *)&child->pipes[PIPE_OUT]) {
        fits = buf_add(&child->output, bytes, length) == 0;
    } else {
        keep_errors(child, bytes, length);
        fits = child->errors_seen <= child->output_max;
    }
    if (!fits)
        stop_because(
            child, xasprintf("%s wrote more than %zu bytes and was killed", child->name, child->output_max));
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct env_child *child = stream->data;
    bool wanted = child->done && !child->problem; /* neither cancelled nor given up */
    if (got > 0 && wanted)
        keep_output(child, stream, buf->base, (size_t)got);
    free(buf->base);
    if (got >= 0)
        return;
    uv_read_stop(stream);
    child->reading--;
    finish_when_complete(child);
}

/* A child that does not read its input to the end is its own affair. */
static void on_written(uv_write_t *write, int status)
{
    (void)status;
    uv_handle_t *pipe = (uv_handle_t *)write->handle;
    if (!uv_is_closing(pipe))
        uv_close(pipe, on_handle_closed);
}

static size_t count(const char *const *list)
{
    size_t length = 0;
    while (list && list[length])
        length++;
    return length;
}

static bool same_name(const char *a, const char *b)
{
    size_t length = strcspn(a, "=");
    return strcspn(b, "=") == length && strncmp(a, b, length) == 0;
}

/* Ours, with the additions in front and what they replace left out. The strings are borrowed. */
static char **merge_environment(const char *const *added)
{
    size_t additions = count(added);
    char **merged = xreallocarray(NULL, additions + count((const char *const *)environ) + 1, sizeof(*merged));
    size_t length = 0;
    for (size_t i = 0; i < additions; i++)
        merged[length++] = (char *)added[i];
    for (char **ours = environ; ours && *ours; ours++) {
        bool replaced = false;
        for (size_t i = 0; i < additions && !replaced; i++)
            replaced = same_name(added[i], *ours);
        if (!replaced)
            merged[length++] = *ours;
    }
    merged[length] = NULL;
    return merged;
}

static int spawn(struct env_child *child, const struct child_spec *spec)
{
    CLEANUP_FREE char **environment = merge_environment(spec->environment);
    uv_stdio_container_t stdio[PIPE_COUNT];
    for (int i = 0; i < PIPE_COUNT; i++) {
        unsigned flags = UV_CREATE_PIPE | (i == PIPE_IN ? UV_READABLE_PIPE : UV_WRITABLE_PIPE);
        stdio[i].flags = (uv_stdio_flags)flags;
        stdio[i].data.stream = (uv_stream_t *)&child->pipes[i];
    }
    uv_process_options_t options = {
        .exit_cb = on_child_exit,
        .file = spec->argv[0],
        .args = (char **)spec->argv,
        .env = environment,
        .flags = UV_PROCESS_DETACHED, /* a session, and so a process group, of its own */
        .stdio_count = PIPE_COUNT,
        .stdio = stdio,
    };
    /* What libraries opened without close-on-exec (sockets to the API server) is not for the child. Kernels
     * before 5.11 do not know the flag; there the child merely inherits them. */
    (void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    return uv_spawn(&child->real->loop, &child->process, &options);
}

static void feed(struct env_child *child)
{
    if (!child->input || !child->input[0]) {
        uv_close((uv_handle_t *)&child->pipes[PIPE_IN], on_handle_closed);
        return;
    }
    uv_buf_t buf = uv_buf_init(child->input, (unsigned)strlen(child->input));
    if (uv_write(&child->write, (uv_stream_t *)&child->pipes[PIPE_IN], &buf, 1, on_written) < 0)
        uv_close((uv_handle_t *)&child->pipes[PIPE_IN], on_handle_closed);
}

static struct env_child *make_child(struct real *real, const struct child_spec *spec)
{
    struct env_child *child = xcalloc(1, sizeof(*child));
    child->real = real;
    child->input = xstrdup_or_null(spec->input);
    child->name = xstrdup(spec->argv[0]);
    child->output = BUF_INIT(spec->output_max);
    child->errors = BUF_INIT(ERRORS_MAX);
    child->output_max = spec->output_max;
    child->timeout_us = spec->timeout_us;
    child->process.data = child;
    for (int i = 0; i < PIPE_COUNT; i++) {
        ENSURE(uv_pipe_init(&real->loop, &child->pipes[i], 0) == 0);
        child->pipes[i].data = child;
    }
    child->handles = PIPE_COUNT + 1;
    DL_APPEND(real->children, child);
    return child;
}

struct env_child *real_child_start(struct env *env, const struct child_spec *spec, env_child_done *done,
                                   void *context)
{
    PRE(spec && spec->argv && spec->argv[0] && spec->timeout_us > 0 && spec->output_max > 0 && done);
    struct env_child *child = make_child(real_of(env), spec);
    child->done = done;
    child->context = context;
    int result = spawn(child, spec);
    if (result < 0) {
        child->problem = xasprintf("%s could not be started: %s", child->name, uv_strerror(result));
        child->timer = env_timer_start(env, 0, on_timer, child);
        return child;
    }
    child->spawned = true;
    child->timer = env_timer_start(env, spec->timeout_us, on_timer, child);
    child->reading = 2;
    ENSURE(uv_read_start((uv_stream_t *)&child->pipes[PIPE_OUT], on_alloc, on_read) == 0);
    ENSURE(uv_read_start((uv_stream_t *)&child->pipes[PIPE_ERR], on_alloc, on_read) == 0);
    feed(child);
    return child;
}

void real_child_cancel(struct env_child *child)
{
    if (!child->done)
        return; /* its callback is running: finish() closes it */
    child->done = NULL;
    env_timer_cancel(&child->real->env, &child->timer);
    if (!child->spawned || child->exited) {
        close_child(child);
        return;
    }
    kill_group(child); /* on_child_exit reaps it */
}

void real_children_free(struct real *real)
{
    struct env_child *child;
    struct env_child *next;
    DL_FOREACH_SAFE (real->children, child, next)
        real_child_cancel(child);
}
