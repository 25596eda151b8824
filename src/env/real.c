/* SPDX-License-Identifier: Apache-2.0 */
#include "env/real.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/random.h>
#include <time.h>

/* SQLite's page cache lies at the top of the heap; without this glibc gives it back and takes it again at
 * every transaction (measured: 36,000 brk calls for 40,000 entries, three times slower). */
enum { TRIM_THRESHOLD_BYTES = 8 << 20 };

/* A long list, or a thousand steps at once, leave free pages all over the heap: they go back so often. */
enum { TRIM_EVERY_MS = 10000 };

static void on_trim(uv_timer_t *timer)
{
    (void)timer;
    (void)malloc_trim(0);
}

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;
    ENSURE(clock_gettime(clock, &now) == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t real_boot_us(void)
{
    return clock_us(CLOCK_BOOTTIME);
}

int64_t real_wall_us(void)
{
    return clock_us(CLOCK_REALTIME);
}

static int64_t boot_us(struct env *env)
{
    (void)env;
    return real_boot_us();
}

static int64_t wall_us(struct env *env)
{
    (void)env;
    return real_wall_us();
}

static void random_bytes(struct env *env, void *bytes, size_t length)
{
    (void)env;
    uint8_t *at = bytes;
    while (length > 0) {
        ssize_t got = getrandom(at, length, 0);
        ENSURE(got > 0 || errno == EINTR);
        if (got > 0) {
            at += got;
            length -= (size_t)got;
        }
    }
}

static void free_timer_handle(uv_handle_t *handle)
{
    free(handle->data);
}

/* Takes the timer out of its list; its memory lives until libuv lets go of the handle. */
static void forget_timer(struct env_timer *timer)
{
    if (timer->immediate) {
        DL_DELETE(timer->real->immediate, timer);
        free(timer);
        return;
    }
    DL_DELETE(timer->real->timers, timer);
    uv_close((uv_handle_t *)&timer->uv, free_timer_handle);
}

static void on_timer(uv_timer_t *uv);

static void arm_timer(struct env_timer *timer, int64_t delay_us)
{
    /* Rounded up: libuv counts whole milliseconds, and ours never fire early. */
    ENSURE(uv_timer_start(&timer->uv, on_timer, (uint64_t)(delay_us + 999) / 1000, 0) == 0);
}

static void on_timer(uv_timer_t *uv)
{
    struct env_timer *timer = uv->data;
    int64_t left_us = timer->due_us - real_boot_us();
    if (left_us > 0) {
        arm_timer(timer, left_us);
        return;
    }
    env_callback *fire = timer->fire;
    void *context = timer->context;
    forget_timer(timer);
    fire(context);
}

/* Fires the timers that were immediate when this turn began; those they start wait for the next one, so that
 * a chain of them never starves the rest of the loop (it would with a zero libuv timer). */
static void on_idle(uv_idle_t *idle)
{
    struct real *real = idle->data;
    real->turn++;
    while (real->immediate && real->immediate->turn < real->turn) {
        struct env_timer *timer = real->immediate;
        env_callback *fire = timer->fire;
        void *context = timer->context;
        forget_timer(timer);
        fire(context);
    }
    if (!real->immediate)
        uv_idle_stop(idle);
}

struct env_timer *real_timer_start(struct env *env, int64_t delay_us, env_callback *fire, void *context)
{
    PRE(fire);
    struct real *real = real_of(env);
    struct env_timer *timer = xcalloc(1, sizeof(*timer));
    timer->real = real;
    timer->fire = fire;
    timer->context = context;
    timer->immediate = delay_us <= 0;
    if (timer->immediate) {
        timer->turn = real->turn;
        DL_APPEND(real->immediate, timer);
        ENSURE(uv_idle_start(&real->idle, on_idle) == 0);
        return timer;
    }
    timer->due_us = real_boot_us() + delay_us;
    ENSURE(uv_timer_init(&real->loop, &timer->uv) == 0);
    timer->uv.data = timer;
    arm_timer(timer, delay_us);
    DL_APPEND(real->timers, timer);
    return timer;
}

void real_timer_cancel(struct env_timer *timer)
{
    PRE(timer);
    forget_timer(timer);
}

static const char *variable(struct env *env, const char *name)
{
    (void)env;
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static void on_signal(uv_signal_t *signal_handle, int number)
{
    (void)number;
    struct real *real = signal_handle->data;
    real->on_stop(real->on_stop_context);
}

/* nohup: what was told to ignore it before it began goes on. */
static bool outlives_terminal(void)
{
    struct sigaction was;
    return sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler == SIG_IGN;
}

static void on_stop_signal(struct env *env, env_callback *stop, void *context)
{
    PRE(stop);
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    struct real *real = real_of(env);
    _Static_assert(ARRAY_SIZE(numbers) == ARRAY_SIZE(real->signals), "one watcher each");
    real->on_stop = stop;
    real->on_stop_context = context;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        if (numbers[i] != SIGHUP || !outlives_terminal())
            ENSURE(uv_signal_start(&real->signals[i], on_signal, numbers[i]) == 0);
}

static void run(struct env *env)
{
    struct real *real = real_of(env);
    while (!real->stopped)
        uv_run(&real->loop, UV_RUN_ONCE);
    real->stopped = false;
}

static void stop(struct env *env)
{
    struct real *real = real_of(env);
    real->stopped = true;
    uv_stop(&real->loop);
}

static void free_real(struct env *env)
{
    struct real *real = real_of(env);
    /* The worker first: its running job may still use what a callback's owner holds. */
    real_worker_free(real->worker);
    real_http_free(real->http);
    real_children_free(real);
    real_listeners_free(real);
    while (real->immediate)
        forget_timer(real->immediate); // NOLINT(clang-analyzer-unix.Malloc): DL_DELETE moves the head
    while (real->timers)
        forget_timer(real->timers); // NOLINT(clang-analyzer-unix.Malloc)
    uv_close((uv_handle_t *)&real->idle, NULL);
    uv_close((uv_handle_t *)&real->trim, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(real->signals); i++)
        uv_close((uv_handle_t *)&real->signals[i], NULL);
    while (uv_loop_close(&real->loop) == UV_EBUSY)
        uv_run(&real->loop, UV_RUN_ONCE);
    free(real);
}

static const struct env_ops real_ops = {
    .free = free_real,
    .wall_us = wall_us,
    .boot_us = boot_us,
    .random = random_bytes,
    .timer_start = real_timer_start,
    .timer_cancel = real_timer_cancel,
    .work = real_work,
    .http_submit = real_http_submit,
    .http_cancel = real_http_cancel,
    .child_start = real_child_start,
    .child_cancel = real_child_cancel,
    .listen = real_listen,
    .read_file = real_read_file,
    .write_file = real_write_file,
    .variable = variable,
    .on_stop_signal = on_stop_signal,
    .run = run,
    .stop = stop,
};

struct env *env_real_make(void)
{
    (void)mallopt(M_TRIM_THRESHOLD,
                  TRIM_THRESHOLD_BYTES); /* an economy; a sanitizer's malloc has no such knob */
    /* A peer that goes away is an error code of write(), never the end of the process. */
    ENSURE(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    /* A file size limit is an error to report, not an end without a word. */
    ENSURE(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    struct real *real = xcalloc(1, sizeof(*real));
    real->env.ops = &real_ops;
    ENSURE(uv_loop_init(&real->loop) == 0);
    ENSURE(uv_idle_init(&real->loop, &real->idle) == 0);
    real->idle.data = real;
    ENSURE(uv_timer_init(&real->loop, &real->trim) == 0);
    ENSURE(uv_timer_start(&real->trim, on_trim, TRIM_EVERY_MS, TRIM_EVERY_MS) == 0);
    uv_unref((uv_handle_t *)&real->trim);
    for (size_t i = 0; i < ARRAY_SIZE(real->signals); i++) {
        ENSURE(uv_signal_init(&real->loop, &real->signals[i]) == 0);
        real->signals[i].data = real;
    }
    real->worker = real_worker_make(real);
    real->http = real_http_make(real);
    return &real->env;
}
