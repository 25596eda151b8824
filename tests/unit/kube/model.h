/* SPDX-License-Identifier: Apache-2.0
 *
 * A server that the test plays by hand, on the simulated world: requests queue up as they arrive, the test
 * takes them one by one and answers. Also remembers how each request was submitted. */
#pragma once

#include "kube/client.h"

#include "env_sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { MODEL_CALLS_MAX = 512 };

/* How a request was handed to the transport. */
struct submitted {
    bool fresh_connection;
    bool once;
    int64_t timeout_us;
    int64_t idle_timeout_us;
    char ca_pem[80]; /* "" without one */
    char certificate_pem[80];
};

struct model {
    struct env *env;
    struct env_sim_call *calls[MODEL_CALLS_MAX]; /* that arrived */
    size_t arrived;
    size_t taken;
    struct submitted submitted[MODEL_CALLS_MAX];
    size_t submitted_count;
    const struct env_ops *real_ops;
    struct env_ops ops;
};

static struct model *model_of_test; /* env_ops have no context */

static inline void model_arrive(void *context, struct env_sim_call *call)
{
    struct model *model = context;
    assert_true(model->arrived < MODEL_CALLS_MAX);
    model->calls[model->arrived++] = call;
}

static inline struct env_http *model_submit(struct env *env, const struct http_request *request,
                                            const struct http_callbacks *callbacks, void *context)
{
    struct model *model = model_of_test;
    const struct http_server *server = request->server;
    assert_true(model->submitted_count < MODEL_CALLS_MAX);
    struct submitted *how = &model->submitted[model->submitted_count++];
    *how = (struct submitted){
        .fresh_connection = request->fresh_connection,
        .once = request->once,
        .timeout_us = request->timeout_us,
        .idle_timeout_us = request->idle_timeout_us,
    };
    snprintf(how->ca_pem, sizeof(how->ca_pem), "%s", server->ca_pem ? server->ca_pem : "");
    snprintf(how->certificate_pem, sizeof(how->certificate_pem), "%s",
             server->certificate_pem ? server->certificate_pem : "");
    return model->real_ops->http_submit(env, request, callbacks, context);
}

static inline struct model *model_make(uint64_t seed)
{
    static const struct env_sim_http_ops ops = {.request = model_arrive};
    struct model *model = xcalloc(1, sizeof(*model));
    model->env = env_sim_make(seed);
    env_sim_http(model->env, &ops, model);
    model->real_ops = model->env->ops;
    model->ops = *model->env->ops;
    model->ops.http_submit = model_submit;
    model->env->ops = &model->ops;
    model_of_test = model;
    return model;
}

static inline void model_free(struct model *model)
{
    env_free(model->env);
    free(model);
}

/* The next request, which must come within ten minutes of the world. */
static inline struct env_sim_call *model_next(struct model *model)
{
    int64_t end_us = env_boot_us(model->env) + 600 * 1000000LL;
    while (model->taken == model->arrived) {
        assert_true(env_sim_next_us(model->env) <= end_us);
        assert_true(env_sim_step(model->env));
    }
    return model->calls[model->taken++];
}

/* No request comes for so long. */
static inline void model_expect_none_for(struct model *model, int64_t duration_us)
{
    env_sim_run_for(model->env, duration_us);
    assert_int_equal(model->taken, model->arrived);
}

/* How the request taken last was submitted (they arrive in order of submission here). */
static inline const struct submitted *model_how(const struct model *model)
{
    assert_true(model->taken > 0 && model->taken <= model->submitted_count);
    return &model->submitted[model->taken - 1];
}

/* Everything that is due now happens. */
static inline void model_settle(struct model *model)
{
    env_sim_run_for(model->env, 0);
}

static inline void model_answer(struct model *model, struct env_sim_call *call, int status, const char *body)
{
    env_sim_http_answer(call, status, NULL, 0, body, strlen(body));
    model_settle(model);
}

static inline void model_answer_retry_after(struct model *model, struct env_sim_call *call, int status,
                                            const char *seconds)
{
    struct http_header header = {"Retry-After", seconds};
    env_sim_http_answer(call, status, &header, 1, "", 0);
    model_settle(model);
}

/* A part of a body, and it is there. */
static inline void model_data(struct model *model, struct env_sim_call *call, const char *text)
{
    env_sim_http_data(call, text, strlen(text));
    model_settle(model);
}

#define STATUS(code, reason)                                                                                 \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\",\"reason\":"        \
    "\"" reason "\",\"code\":" #code "}"
