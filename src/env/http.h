/* SPDX-License-Identifier: Apache-2.0
 *
 * An HTTP request and its answer, as data. What a write needs that ordinary clients do not give: a hook at
 * the last moment before the bytes leave, a promise that they leave at most once, and the truth about whether
 * they may have left. Never retries by itself. */
#pragma once

#include "base/error.h"

/* Separate connection pools: a starving watch must not hold up a write, nor either of them a lease renewal.
 */
enum http_pool { HTTP_POOL_REQUEST, HTTP_POOL_WATCH, HTTP_POOL_LEASE, HTTP_POOL_COUNT };

/* How to reach and trust one server. Owned by the caller, must outlive requests that point to it. */
struct http_server {
    char *base_url;        /* "https://10.0.0.1:6443", no trailing slash */
    char *ca_pem;          /* NULL: the system's store */
    char *certificate_pem; /* NULL: none */
    char *key_pem;
    char *server_name; /* name to verify and to send as SNI instead of the URL's host; NULL: the URL's */
    char *proxy_url;   /* NULL: none (the environment's proxy variables are not used) */
    bool insecure;     /* only because the kubeconfig says so */
};

struct http_header {
    const char *name;
    const char *value;
};

struct http_request {
    const struct http_server *server;
    const char *method; /* "GET", "POST", "PATCH", "PUT", "DELETE" */
    const char *path;   /* already percent-encoded, begins with '/', query included */
    const struct http_header *headers;
    size_t header_count;
    const char *body; /* NULL: none */
    size_t body_length;
    enum http_pool pool;
    /* For the whole request, waiting for a connection included; 0: none (watches). Whatever it is, a request
     * that has no connection after 15 s ends NOT_SENT. */
    int64_t timeout_us;
    int64_t idle_timeout_us; /* no byte for so long after it may have left ends it; 0: none */
    size_t answer_max;       /* bytes of a buffered body, unpacked; 0, or when on_data is given: 1 MiB */
    bool once;               /* a write: its bytes leave at most once, the body cannot be rewound */
    /* Do not reuse a pooled connection. After a timeout the transport does so by itself: nothing new is put
     * on the connections of a pool on which a request ran out of time. */
    bool fresh_connection;
};

enum http_outcome {
    HTTP_ANSWERED,  /* a status line came; body_whole tells whether the body is complete */
    HTTP_NO_ANSWER, /* it may have left; we do not know what the server did */
    HTTP_NOT_SENT,  /* it provably never left: the last-moment hook was not called, or refused */
};

struct http_answer {
    enum http_outcome outcome;
    int status; /* 100-599 when ANSWERED, else 0 */
    bool body_whole;
    const char *body; /* buffered body, NUL-terminated, valid during the callback; "" when streamed */
    size_t body_length;
    int64_t retry_after_us; /* from Retry-After (seconds or a date); -1: absent */
    const char *audit_id;   /* the Audit-ID header of the answer, or NULL */
    const char *problem;    /* a sentence when not ANSWERED, or when the body is not whole; else NULL */
    /* NONE when whole. UNREACHABLE; TIMED_OUT; TOO_LARGE; CANCELLED: by before_send or on_data; FORBIDDEN:
     * the server's certificate is not trusted; INVALID: the request or the credentials cannot be used, or it
     * is not HTTP. */
    enum error_code code;
};

struct http_callbacks {
    /* Called after the connection stands and before the first byte of the request is written; false: do not
     * send (the request ends NOT_SENT). Called at most once for a `once` request. NULL: always send. */
    bool (*before_send)(void *context);
    /* Status line and headers are in (final answer only). Optional. */
    void (*on_status)(void *context, int status);
    /* Body bytes as they come; when given, nothing is buffered. Only 2xx bodies are streamed; others are
     * buffered. Return false to end the request. */
    bool (*on_data)(void *context, const char *bytes, size_t length);
    void (*on_done)(void *context, const struct http_answer *answer);
};

void http_server_done(struct http_server *server);
