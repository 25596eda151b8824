/* SPDX-License-Identifier: Apache-2.0
 *
 * The API server for a command-line program: one question at a time, waiting for each answer. Reads only;
 * what is written goes through neosetctl_write.h. Errors name the thing and the way out. */
#pragma once

#include "cmd/neosetctl/options.h"
#include "kube/client.h"

struct ctl_server {
    struct env *env;
    struct kube_client *client;
    char *namespace;
    bool all_namespaces;
    int64_t timeout_us;
};

/* From --kubeconfig, --context, --as, -n, -A, --request-timeout. Undone by ctl_server_close in any case. */
int ctl_server_open(const struct options *options, struct ctl_server *ret, struct error **err);
void ctl_server_close(struct ctl_server *server);

/* The object at path; what names it for people ("NeoSet mysql in namespace default"). -ERROR_NOT_FOUND when
 * the server says that there is none, -ERROR_UNSUPPORTED when it does not know the resource, with the
 * server's sentence. The tree is the caller's. */
int ctl_get(struct ctl_server *server, const char *path, const char *what, cJSON **ret, struct error **err);
/* All items of a collection, read in chunks, as one array; the caller's. */
int ctl_list(struct ctl_server *server, enum kube_resource resource, const char *namespace,
             const char *selector, const char *what, cJSON **ret, struct error **err);
/* The set, or an error that names those that there are. */
int ctl_get_set(struct ctl_server *server, const char *name, cJSON **ret, struct error **err);
