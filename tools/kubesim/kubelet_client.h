/* SPDX-License-Identifier: Apache-2.0
 *
 * The kubelet as a client of any API server: watches all pods, registers its nodes, and sends what the model
 * says. The newest status of a pod replaces one that has not left yet; a refused or lost write is tried
 * again. */
#pragma once

#include "env/env.h"
#include "kube/client.h"
#include "kubesim/kubelet.h"

struct kubelet_client;

/* client's environment drives it. options: callbacks and context are its own; binds: it also plays the
 * scheduler. */
struct kubelet_client *kubelet_client_start(struct kube_client *client, const struct kubelet_options *options,
                                            bool binds);
/* Before the kube_client is freed. NULL is fine. */
void kubelet_client_stop(struct kubelet_client *kubelet);
/* The first pods were listed and every node is registered. */
bool kubelet_client_is_ready(const struct kubelet_client *kubelet);

/* `kubesim kubelet ...`; argv[0] is "kubelet". The exit code. */
int kubelet_client_main(int argc, char **argv);
