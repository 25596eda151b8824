/* SPDX-License-Identifier: Apache-2.0
 *
 * `continue`: what was begun and not ended: where it stands, the commands that go on and back, and what each
 * does next. Read from the cluster, so that it does not matter who began it, or where, and from the user's
 * own journal. Writes nothing; what has one way only is ended by neosetctl_continue_resize.h before. */
#pragma once

#include "audit/sheet.h"
#include "cmd/neosetctl/server.h"

/* *ret_count: how many there are. */
int ctl_continue(struct ctl_server *server, struct out *out, const struct sheet_look *look,
                 int64_t *ret_count, struct error **err);
