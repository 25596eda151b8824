/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's side of a transport test: sends requests through a real environment, runs its loop until all
 * are done, and keeps what the owner was told. */
#pragma once

#include "env/env.h"
#include "hostile_server.h"

/* What one request was told. */
struct heard {
    struct env *env;
    struct env_http *http; /* NULL once done */
    size_t *left;          /* shared by those that run together */
    /* What the callbacks shall do: */
    bool refuse;                            /* before_send says no */
    bool stream;                            /* take the body by on_data */
    bool end_at_data;                       /* on_data says no more */
    void (*at_before_send)(struct heard *); /* run inside the callback; may cancel and submit */
    void (*at_status)(struct heard *);
    void (*at_data)(struct heard *);
    void (*at_done)(struct heard *);
    void *user;
    /* What came: */
    size_t before_send_count;
    size_t status_count;
    size_t data_count;
    size_t done_count;
    struct http_answer answer; /* strings are ours */
    struct buf streamed;
};

void heard_init(struct heard *heard, struct env *env);
void heard_done(struct heard *heard);
#define CLEANUP_HEARD __attribute__((cleanup(heard_done)))
/* Submits; does not wait. */
void heard_submit(struct heard *heard, const struct http_request *request);
/* Submits and runs the loop until it is done. */
void heard_ask(struct heard *heard, const struct http_request *request);
/* What a request is told, asked as it is and waited for. */
struct heard heard_from(struct env *env, const struct http_request *request);
/* Runs the loop until all of those (count of them, submitted) are done; left counts them. */
void heard_wait(struct env *env, size_t *left);
/* A GET of /x with a timeout of 10 s and 1 MiB. */
struct http_request heard_get(const struct http_server *server);

/* One server and one environment a test. */
struct hostile_scene {
    struct env *env;
    struct hostile_server *server;
    struct http_server target; /* trusts nobody in particular */
    struct http_request get;   /* heard_get() of it */
    struct http_request post;  /* the same as a `once` POST with a small JSON body */
};
void hostile_scene_begin(struct hostile_scene *scene, const struct hostile_options *options);
/* Env and server may have been ended (and set to NULL) before. */
void hostile_scene_end(struct hostile_scene *scene);
/* It ends before anything that was declared before it, such as what its server serves from. */
#define CLEANUP_HOSTILE_SCENE __attribute__((cleanup(hostile_scene_end)))
/* Runs the loop until the server has got so many requests, or for 30 s. */
void hostile_scene_run_until(struct hostile_scene *scene, size_t request_count);
/* How many requests that begin with method the server got. */
size_t hostile_scene_requests(struct hostile_scene *scene, const char *method);

/* Serving functions: 200 "{}" to each request; the text that context points to as the answer to each; the
 * same to one, then close. */
void hostile_serve_ok(struct hostile_connection *connection, void *context);
void hostile_serve_text(struct hostile_connection *connection, void *context);
void hostile_serve_text_once(struct hostile_connection *connection, void *context);
/* Reads one request and says nothing. */
void hostile_serve_nothing(struct hostile_connection *connection, void *context);
