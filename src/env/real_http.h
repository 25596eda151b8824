/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP inside src/env: the request as libcurl's callbacks see it, and the set of connections it runs on. Only
 * real_http*.c include this. */
#pragma once

#include "env/real.h"

#include <curl/curl.h>

enum {
    /* Header bytes of one answer, interim ones included; libcurl itself bounds a single line only. */
    HTTP_HEADERS_MAX = 256 * 1024,
    /* A body that is kept although on_data was given (an error answer), when answer_max says nothing. */
    HTTP_ERROR_BODY_MAX = 1 << 20,
    HTTP_AUDIT_ID_MAX = 256,
};
/* How long a request may wait for a connection, made or free. */
#define HTTP_CONNECT_TIMEOUT_US (15 * 1000000LL)

/* One libcurl multi handle with its connections. A pool has one that takes new requests; after a stall that
 * one is retired: it keeps what runs on it, new requests go to a new one, so a frozen connection is never
 * used again. */
struct http_set {
    struct real *real;
    enum http_pool pool;
    CURLM *multi;
    struct env_timer *timer; /* when libcurl wants to be called */
    bool busy;               /* libcurl or its results are being handled: additions and removals wait */
    bool retired;            /* takes no new requests; ends with its last one */
    bool used;               /* had a request: has connections that are not fresh */
    struct env_http *running;
    long running_count;
    struct env_http
        *waiting; /* submitted while busy, or more than run side by side; first come, first served */
    struct env_http *cancelled; /* cancelled while busy */
    struct http_set *prev;
    struct http_set *next;
};

/* A server's address, read. */
struct http_address {
    char *base_url; /* as it was given; may be NULL */
    char *server_name;
    char *host;   /* "10.0.0.1:6443", for sentences; NULL: nothing was read yet */
    char *prefix; /* of the URL: a path comes behind it */
    bool tls;
    char *host_header; /* with route: where another name is verified than that of the host */
    char *route;
    char *problem; /* a sentence: it cannot be used */
};

struct real_http {
    struct real *real;
    struct http_address address; /* the last one that was used */
    struct http_set *current[HTTP_POOL_COUNT];
    struct http_set *sets;   /* all, the retired ones included */
    struct env_http *failed; /* could not be set up; the next turn of the loop says so */
};

struct env_http {
    struct real *real;
    struct http_set *set;
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    char *host; /* "10.0.0.1:6443", for sentences */
    char *body;
    size_t body_length;
    size_t body_sent;
    struct http_callbacks callbacks;
    void *context;
    bool once;
    bool multiplexes;         /* the connection may carry many at once (HTTP/2) */
    int64_t timeout_us;       /* for sentences */
    int64_t idle_timeout_us;  /* 0: none */
    int64_t deadline_us;      /* on the boot clock; INT64_MAX: none */
    int64_t send_deadline_us; /* a connection must be had by then */
    int64_t last_byte_us;
    struct env_timer *timer; /* the next of these; reports a request that could not be set up */

    bool added;              /* to the multi handle */
    bool was_added;          /* at least once */
    bool cancelled;          /* no callback any more */
    bool finished;           /* on_done is running */
    unsigned sends;          /* times that the last-moment hook let it pass */
    bool refused;            /* before_send said no */
    bool repeated;           /* libcurl wanted to send a `once` request again */
    enum error_code stopped; /* why we ended it ourselves; NONE: we did not */
    bool silent;             /* it ended because no byte came */

    int status; /* of the final answer, or of the last interim one */
    bool headers_done;
    bool streaming; /* body bytes go to on_data */
    size_t header_bytes;
    struct buf answer;
    int64_t retry_after_us;
    char *audit_id;
    char *setup_problem;
    char error_text[CURL_ERROR_SIZE];

    struct env_http *prev;
    struct env_http *next;
};

/* real_http_request.c: everything about one request but when it runs. Never fails: what libcurl refuses is
 * kept in setup_problem. */
struct env_http *http_request_make(struct real *real, const struct http_request *request,
                                   const struct http_callbacks *callbacks, void *context);
void http_request_free(struct env_http *http);
/* Arms the timer for the nearest of the request's deadlines. */
void http_request_arm(struct env_http *http);
/* Tells the owner how it ended (unless cancelled) and frees it. It must not be in a multi handle any more. */
void http_request_end(struct env_http *http, CURLcode code);

void http_address_done(struct http_address *address);

/* real_http.c: ends a request whose time is over. */
void http_request_expire(struct env_http *http);

/* real_http_error.c: the sentence and the code of a failure; the sentence is the caller's. */
char *http_problem(const struct env_http *http, CURLcode code, enum error_code *ret_code);
