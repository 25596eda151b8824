/* SPDX-License-Identifier: Apache-2.0
 *
 * Are the owners that an object names still there? An object that is made again with a reference to one that
 * is gone is collected within seconds, and what it owns with it. Owners may be of any kind: the server is
 * asked what it calls them. Reads only. */
#pragma once

#include "cmd/neosetctl_server.h"

/* An array of the uids of object's owners that are surely gone, the caller's. Who may not be read, or is of a
 * kind that the server does not tell of, is taken to be there. */
cJSON *ctl_find_gone_owners(struct ctl_server *server, const cJSON *object);
