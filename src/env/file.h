/* SPDX-License-Identifier: Apache-2.0
 *
 * The real files without a loop, for programs that talk to no server: they start without the network's
 * libraries. Everything else uses env_read_file and env_write_file. */
#pragma once

#include "env/env.h"

/* As env_read_file and env_write_file; env may be NULL. */
int real_read_file(struct env *env, const char *path, struct buf *ret, struct error **err);
int real_write_file(struct env *env, const char *path, unsigned mode, const void *bytes, size_t length,
                    struct error **err);
