/* SPDX-License-Identifier: Apache-2.0
 *
 * kubelet_attach on the program's loop: a timer that fires when the kubelet has something to do. */
#pragma once

#include "kubesim/http.h"
#include "kubesim/kubelet_attach.h"

struct kubelet_loop;

/* loop, sim and front must outlive it. */
struct kubelet_loop *kubelet_loop_start(uv_loop_t *loop, struct kubesim *sim, struct http_front *front,
                                        const struct kubelet_options *options);
/* NULL is fine. The loop must run once more for its handle to close. */
void kubelet_loop_stop(struct kubelet_loop *kubelet);
