/* SPDX-License-Identifier: Apache-2.0
 *
 * An API server model behind HTTP in the process of a bench, and the real controller as its child: so that
 * the bench knows to the microsecond when an event went out and when a step's request was taken in. Real
 * time, real sockets. Any failure ends the process with a sentence. */
#pragma once

#include "kubesim/http.h"
#include "kubesim/kubelet_loop.h"

struct bench_server {
    uv_loop_t loop;
    struct kubesim *sim;
    struct http_front *front;
    struct kubelet_loop *kubelet; /* NULL: nobody runs the pods */
    const char *folder;
    uv_process_t controller;
    bool controller_runs;
    int64_t started_us; /* the boot clock, just before the controller was started */
    /* Called inside a request that carries a step's Audit-ID; must not call into the model. */
    void (*on_step)(void *context, int64_t boot_us);
    void *context;
};

int64_t bench_clock_us(void);
_Noreturn void bench_fail(const char *what, const char *text);

/* Files go into folder, which is there. definition: the manifest of NeoSet's definition. */
void bench_server_start(struct bench_server *server, const char *folder, const char *definition);
/* Runs in the loop, so a request may come from the bench's own callbacks only. Must be answered 2xx; the body
 * is the caller's. body may be NULL. */
char *bench_server_ask(struct bench_server *server, const char *method, const char *path,
                       const char *content_type, const char *body);
void bench_server_create_set(struct bench_server *server, const char *name, int replicas);
/* arguments: NULL-terminated, added to those that say where the server and the log are. */
void bench_server_start_controller(struct bench_server *server, const char *program,
                                   const char *const arguments[]);
/* SIGTERM; the loop runs until it is gone. */
void bench_server_stop_controller(struct bench_server *server);
void bench_server_stop(struct bench_server *server);
