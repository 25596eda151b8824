/* SPDX-License-Identifier: Apache-2.0
 *
 * Does this server have a resource? Asks once and remembers nothing. Never writes.
 */
#pragma once

#include "kube/client.h"

enum kube_served {
    KUBE_SERVED,
    KUBE_NOT_SERVED,     /* the definition is missing, or this version of it is not served */
    KUBE_SERVED_UNKNOWN, /* the server did not say; answer tells why */
};

struct kube_discovery;

/* sentence: what is missing and what to do, when not SERVED; else NULL. Both are valid during the call only.
 */
typedef void kube_discover_done(void *context, enum kube_served served, const char *sentence);
struct kube_discovery *kube_discover(struct kube_client *client, enum kube_resource resource,
                                     int64_t timeout_us, kube_discover_done *done, void *context);

/* done is not called any more. Sets *discovery to NULL; NULL is fine. Owners cancel before the client is
 * freed, and set their handle to NULL in done. */
void kube_discovery_cancel(struct kube_discovery **discovery);
