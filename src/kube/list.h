/* SPDX-License-Identifier: Apache-2.0
 *
 * A collection, read once and whole: in chunks, put together. Never watches (watch.h), retries nothing but a
 * list that the server forgot before its last chunk was read (410): it is begun anew, a few times. */
#pragma once

#include "kube/client.h"

struct kube_list;

/* items: an array of all objects, the callee's; NULL: the last answer says why, or is no list at all
 * (KUBE_OK). */
typedef void kube_list_done(void *context, cJSON *items, const struct kube_answer *answer);

/* namespace NULL: of all; selector: of labels, or NULL. timeout_us bounds each chunk. done is called once
 * unless it is cancelled. */
struct kube_list *kube_list_start(struct kube_client *client, enum kube_resource resource,
                                  const char *namespace, const char *selector, int64_t timeout_us,
                                  kube_list_done *done, void *context);
/* Sets *list to NULL; NULL is fine. */
void kube_list_cancel(struct kube_list **list);
