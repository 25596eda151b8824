/* SPDX-License-Identifier: Apache-2.0
 *
 * The one worker: a thread of our own, because libuv's pool has several threads and no order. */
#include "env/real.h"

struct job {
    env_callback *run;
    env_callback *done;
    env_callback *dropped;
    void *context;
    struct job *prev;
    struct job *next;
};

struct real_worker {
    uv_thread_t thread;
    uv_mutex_t mutex;
    uv_cond_t wake;
    uv_async_t async;
    /* Guarded by mutex: */
    struct job *waiting;
    struct job *finished;
    bool stop;
};

static void work(void *argument)
{
    struct real_worker *worker = argument;
    uv_mutex_lock(&worker->mutex);
    for (;;) {
        while (!worker->waiting && !worker->stop)
            uv_cond_wait(&worker->wake, &worker->mutex);
        if (worker->stop)
            break;
        struct job *job = worker->waiting;
        DL_DELETE(worker->waiting, job);
        uv_mutex_unlock(&worker->mutex);
        job->run(job->context);
        uv_mutex_lock(&worker->mutex);
        DL_APPEND(worker->finished, job);
        ENSURE(uv_async_send(&worker->async) == 0);
    }
    uv_mutex_unlock(&worker->mutex);
}

/* One signal may stand for several finished jobs. */
static void on_finished(uv_async_t *async)
{
    struct real_worker *worker = async->data;
    uv_mutex_lock(&worker->mutex);
    struct job *finished = STEAL(worker->finished);
    uv_mutex_unlock(&worker->mutex);
    while (finished) {
        struct job *job = finished;
        DL_DELETE(finished, job);
        env_callback *done = job->done;
        void *context = job->context;
        free(job);
        if (done)
            done(context);
    }
}

struct real_worker *real_worker_make(struct real *real)
{
    struct real_worker *worker = xcalloc(1, sizeof(*worker));
    ENSURE(uv_mutex_init(&worker->mutex) == 0);
    ENSURE(uv_cond_init(&worker->wake) == 0);
    ENSURE(uv_async_init(&real->loop, &worker->async, on_finished) == 0);
    worker->async.data = worker;
    ENSURE(uv_thread_create(&worker->thread, work, worker) == 0);
    return worker;
}

static void free_jobs(struct job *jobs)
{
    while (jobs) {
        struct job *job = jobs;
        DL_DELETE(jobs, job);
        if (job->dropped)
            job->dropped(job->context);
        free(job);
    }
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void real_worker_free(struct real_worker *worker)
{
    uv_mutex_lock(&worker->mutex);
    worker->stop = true;
    uv_cond_signal(&worker->wake);
    uv_mutex_unlock(&worker->mutex);
    ENSURE(uv_thread_join(&worker->thread) == 0);
    free_jobs(worker->waiting);
    free_jobs(worker->finished);
    uv_cond_destroy(&worker->wake);
    uv_mutex_destroy(&worker->mutex);
    uv_close((uv_handle_t *)&worker->async, on_closed);
}

void real_work(struct env *env, env_callback *job_run, env_callback *done, env_callback *dropped,
               void *context)
{
    PRE(job_run);
    struct real_worker *worker = real_of(env)->worker;
    struct job *job = xcalloc(1, sizeof(*job));
    *job = (struct job){.run = job_run, .done = done, .dropped = dropped, .context = context};
    uv_mutex_lock(&worker->mutex);
    DL_APPEND(worker->waiting, job);
    uv_cond_signal(&worker->wake);
    uv_mutex_unlock(&worker->mutex);
}
