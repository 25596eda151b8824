/* SPDX-License-Identifier: Apache-2.0
 *
 * The owners that an object names, asked after one by one: a server collects what all owners of are gone,
 * and what it owns with it. Only asks; of an owner that cannot be found out about nothing is said. */
#pragma once

#include "kube/client.h"

struct kube_owners;

/* gone: array of the uids of owners that are not there any more, the callee's. */
typedef void kube_owners_done(void *context, cJSON *gone);

/* object: borrowed for the call. done is called once, unless it is cancelled; NULL: it names none, and done
 * is not called. */
struct kube_owners *kube_owners_ask(struct kube_client *client, const cJSON *object, int64_t timeout_us,
                                    kube_owners_done *done, void *context);
/* Sets *owners to NULL; NULL is fine. */
void kube_owners_cancel(struct kube_owners **owners);
