/* SPDX-License-Identifier: Apache-2.0
 *
 * A small TCP server on loopback for tests, that misbehaves as it is told: one thread a connection runs the
 * test's own function, which reads requests and sends, delays, cuts or resets as it likes. HTTP/1.1 by hand,
 * HTTP/2 in just enough of it, TLS with certificates made on the spot. Every request that arrives whole is
 * kept and counted. */
#pragma once

#include "base/buf.h"

struct hostile_server;
struct hostile_connection;

/* Runs in a thread of its own; when it returns the connection is closed. */
typedef void hostile_serve(struct hostile_connection *connection, void *context);

/* A certificate and its key, PEM. */
struct hostile_identity {
    char *certificate_pem;
    char *key_pem;
};

struct hostile_options {
    hostile_serve *serve;
    void *context;
    const struct hostile_identity *identity; /* NULL: no TLS; must outlive the server */
    bool http2;                              /* with TLS: agree on h2 */
    const char *client_ca_pem;               /* with TLS: demand a client certificate signed by it */
};

struct hostile_server *hostile_start(const struct hostile_options *options);
/* Ends all connections, joins their threads, frees. NULL is fine. */
void hostile_stop(struct hostile_server *server);
int hostile_port(const struct hostile_server *server);
/* "http://127.0.0.1:PORT" or https; the caller's. */
char *hostile_url(const struct hostile_server *server);
size_t hostile_connection_count(struct hostile_server *server);
size_t hostile_request_count(struct hostile_server *server);
/* The head and the body of the n-th request (from 0) as they arrived, or NULL; the caller's. */
char *hostile_request(struct hostile_server *server, size_t index);

/* --- for the serving function --- */

/* 0 for the first connection, 1 for the next ... */
size_t hostile_number(const struct hostile_connection *connection);
/* Waits for a whole request (head, and the body that Content-Length tells); false when the peer closed first.
 */
bool hostile_read_request(struct hostile_connection *connection);
/* The request read last, as it arrived. */
const char *hostile_last_request(const struct hostile_connection *connection);
/* Each returns false when the peer is gone or the server is being stopped. */
bool hostile_send(struct hostile_connection *connection, const char *bytes, size_t length);
bool hostile_send_text(struct hostile_connection *connection, const char *text);
/* Byte by byte with a pause after each. */
bool hostile_send_slowly(struct hostile_connection *connection, const char *text, int pause_ms);
/* The same again and again until the peer goes. */
void hostile_send_forever(struct hostile_connection *connection, const char *text);
/* A plain answer with Content-Length. */
bool hostile_answer(struct hostile_connection *connection, int status, const char *body);
/* False when the server was stopped meanwhile. */
bool hostile_pause(struct hostile_connection *connection, int pause_ms);
/* Until the peer closes (what it sends is thrown away) or the server is stopped. */
void hostile_wait_for_close(struct hostile_connection *connection);
/* Closes with a TCP reset instead of a FIN when the serving function returns. */
void hostile_reset(struct hostile_connection *connection);
/* Reads exactly length raw bytes. */
bool hostile_read(struct hostile_connection *connection, void *bytes, size_t length);
/* Counts and keeps a request that was read raw. */
void hostile_keep_request(struct hostile_connection *connection, const char *text);

/* --- HTTP/2 --- */

struct hostile_h2 {
    unsigned streams_max; /* SETTINGS_MAX_CONCURRENT_STREAMS; 0: 100 */
    size_t answer_first;  /* this many streams are answered 200 "ok"; the rest get nothing */
    unsigned hold_until;  /* answers wait until so many streams are open at once; 0: none */
    size_t close_at;      /* the connection is closed when so many streams have come; 0: never */
    bool refuse_first;    /* the very first stream is RST with REFUSED_STREAM: the client may repeat it */
};
/* Serves one connection until the peer closes. Each stream whose request is whole counts as a request (its
 * text is "h2"). */
void hostile_serve_h2(struct hostile_connection *connection, const struct hostile_h2 *options);

/* --- certificates --- */

/* names like "IP:127.0.0.1,DNS:localhost", NULL for an authority; signer NULL: self-signed. Validity in days
 * from now. */
void hostile_identity_make(struct hostile_identity *ret, const char *common_name, const char *names,
                           const struct hostile_identity *signer, int from_days, int to_days);
void hostile_identity_done(struct hostile_identity *identity);
