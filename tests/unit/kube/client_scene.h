/* SPDX-License-Identifier: Apache-2.0
 *
 * A client, on a server that the test plays by hand: copies what a call ended with. */
#pragma once

#include "kube/client.h"

#include "base/time_text.h"

#include "model.h"

/* What a call ended with, copied. */
struct seen {
    unsigned count;
    enum kube_outcome outcome;
    int http;
    enum error_code code;
    char summary[KUBE_SUMMARY_SIZE];
    char message[1024];
    char audit_id[64];
    char name[64]; /* of the body */
};

static inline void on_done(void *context, const struct kube_answer *answer)
{
    struct seen *seen = context;
    const char *name = json_path_str(answer->body, "metadata", "name", NULL);
    seen->count++;
    seen->outcome = answer->outcome;
    seen->http = answer->http;
    seen->code = answer->code;
    snprintf(seen->summary, sizeof(seen->summary), "%s", answer->summary);
    snprintf(seen->message, sizeof(seen->message), "%s", answer->message);
    snprintf(seen->audit_id, sizeof(seen->audit_id), "%s", answer->audit_id ? answer->audit_id : "");
    snprintf(seen->name, sizeof(seen->name), "%s", name ? name : "");
}

static inline int make(void **state)
{
    *state = model_make(7);
    return 0;
}

static inline int unmake(void **state)
{
    model_free(*state);
    return 0;
}

static inline struct kube_call *get(struct kube_client *client, struct seen *seen)
{
    return kube_get(client, "/api/v1/pods", 10 * US_PER_S, on_done, seen);
}

static const struct kube_write a_patch = {
    .method = "PATCH",
    .path = "/api/v1/namespaces/a/pods/b?timeout=10s",
    .content_type = "application/merge-patch+json",
    .body = "{\"a\":1}",
    .body_length = 7,
    .audit_id = "neo-0123-1-1",
    .pool = HTTP_POOL_LEASE,
    .timeout_us = 10 * US_PER_S,
};

static inline struct kube_call *patch(struct kube_client *client, struct seen *seen)
{
    return kube_write(client, kube_permit_issue(client), &a_patch, on_done, seen);
}
