/* SPDX-License-Identifier: Apache-2.0
 *
 * One request of a kube_client with all its terms, also a streaming one. kube_get and kube_write are made of
 * it, and the watch. Only src/kube includes this. */
#pragma once

#include "kube/answer.h"

/* Everything is borrowed for the call of kube_call_start. */
struct kube_request {
    const char *method;
    const char *path;
    const char *accept; /* NULL: application/json */
    const char *content_type;
    const char *body;
    size_t body_length;
    const char *audit_id;
    enum http_pool pool;
    int64_t timeout_us; /* from now on, the wait for credentials included; 0: none */
    int64_t idle_timeout_us;
    bool write;  /* leaves at most once; everything else is read again after a 401 */
    bool is_dry; /* a write that stores nothing: its answer is read whole */
    bool fresh_connection;
    bool (*before_send)(void *context);
    /* With on_data a 2xx body is streamed and not kept. Both are called for a 2xx only, and may cancel this
     * very call; false of on_data ends it as well, and done is called. */
    void (*on_status)(void *context);
    bool (*on_data)(void *context, const char *bytes, size_t length);
};

/* done is called once, from the loop, unless the call is cancelled (kube_call_cancel) first. */
struct kube_call *kube_call_start(struct kube_client *client, const struct kube_request *request,
                                  kube_done *done, void *context);
