/* SPDX-License-Identifier: Apache-2.0
 *
 * The kubelet inside kubesim: watches all pods, registers its nodes, binds and runs pods, all through the
 * model's own requests (which no fault hits, and which the audit log shows as a node's). The watch only fills
 * a queue; everything else happens in kubelet_attach_tick(). Works on any clock, so under virtual time too.
 */
#pragma once

#include "kubesim/kubelet.h"
#include "kubesim/kubesim.h"

struct kubelet_attach;

/* options: callbacks and context are its own. wake (or NULL) is called when the queue gets its first event,
 * from within the request that changed a pod: kubelet_attach_tick() is due, but not from there. sim must
 * outlive it. */
struct kubelet_attach *kubelet_attach_make(struct kubesim *sim, const struct kubelet_options *options,
                                           int64_t now_us, void (*wake)(void *context), void *wake_context);
void kubelet_attach_free(struct kubelet_attach *attach);
/* Takes the queue in and does what is due by now_us. */
void kubelet_attach_tick(struct kubelet_attach *attach, int64_t now_us);
/* When kubelet_attach_tick() has something to do: 0 when at once, INT64_MAX when nothing is pending. */
int64_t kubelet_attach_next_us(const struct kubelet_attach *attach);
struct kubelet *kubelet_attach_kubelet(struct kubelet_attach *attach);

DEFINE_CLEANUP(cleanup_kubelet_attach, struct kubelet_attach, kubelet_attach_free);
#define CLEANUP_KUBELET_ATTACH __attribute__((cleanup(cleanup_kubelet_attach)))
