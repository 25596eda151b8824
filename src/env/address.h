/* SPDX-License-Identifier: Apache-2.0
 *
 * How an address to listen on is written. Looks no name up, and binds nothing. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

/* "ADDRESS:PORT" with a literal IPv4, [IPv6] or localhost; false: it is none. */
bool env_address_parse(const char *text, struct sockaddr_storage *ret);
