/* SPDX-License-Identifier: Apache-2.0
 *
 * kubesim behind HTTP: libmicrohttpd driven by a libuv loop, everything on the loop's thread. Plain HTTP,
 * bounded connections, bodies and buffers. */
#pragma once

#include "kubesim/kubesim.h"

#include <uv.h>

struct http_front;

/* Listens on "ADDRESS:PORT" (a literal IPv4 or IPv6 address or localhost; port 0 takes a free one). sim and
 * loop must outlive the front. */
int http_front_start(uv_loop_t *loop, struct kubesim *sim, const char *address, struct http_front **ret,
                     struct error **err);
/* "127.0.0.1:41234"; owned by the front. */
const char *http_front_address(const struct http_front *front);
/* Closes every connection; the loop must run once more for its handles to close. */
void http_front_stop(struct http_front *front);
/* After the sim changed outside of a request (a kubelet, a tick): lets watches have their lines, sets the
 * timer. */
void http_front_pump(struct http_front *front);
