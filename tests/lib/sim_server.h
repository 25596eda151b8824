/* SPDX-License-Identifier: Apache-2.0
 *
 * kubesim with its kubelet as the server of a simulated world: every request of every process goes to it, in
 * virtual time; watches stream, faults hold and lose. It has a process of its own in the world, so that it
 * outlives those that talk to it. */
#pragma once

#include "env_sim.h"

#include "base/json.h"
#include "kubesim/kubelet_attach.h"
#include "kubesim/kubesim.h"

struct sim_server;

/* kubelet NULL: nobody runs the pods. Installs itself as the world's server. */
struct sim_server *sim_server_make(struct env *world, const struct kubelet_options *kubelet);
/* Who looks over the server's shoulder. Each may be NULL; all get context. */
struct sim_server_hooks {
    /* Each change of the store (see kubesim.h). */
    void (*changed)(void *context, const struct kubesim_change *change);
    /* What the server made of a request: the status, 0 when it was dropped or is held back; told: the answer
     * sets out for the client. Not for watches. */
    void (*answered)(void *context, const struct env_sim_call *call, int status, bool told);
    /* A line for the audit log. */
    void (*audited)(void *context, const char *line, size_t length);
    /* A mutating webhook (see kubesim.h). */
    void (*mutate_pod)(void *context, cJSON *object, const cJSON *old);
    void *context;
};
/* The same without a list of writes (sim_server_write_count() stays 0) and without a kubelet at first: hooks
 * see everything, and each request is cheaper: no managed fields either, unless the audit log is asked for.
 * The server has a clock of its own: when the world's wall clock jumps, it goes on. */
struct sim_server *sim_server_make_watched(struct env *world, const struct sim_server_hooks *hooks);
/* Pods run from now on. */
void sim_server_attach_kubelet(struct sim_server *server, const struct kubelet_options *options);
/* NULL: there is none. */
struct kubelet *sim_server_kubelet(struct sim_server *server);
/* Something was done to the model or the kubelet from outside: their clocks are looked at anew. */
void sim_server_poke(struct sim_server *server);
/* Its process ends with it. */
void sim_server_free(struct sim_server *server);
struct kubesim *sim_server_kubesim(struct sim_server *server);

/* A request of a person, answered at once and never hit by a fault. body: JSON or NULL. The answer's body is
 * the caller's, NULL when it is none. */
int sim_server_ask(struct sim_server *server, const char *method, const char *path, const char *content_type,
                   const char *body, cJSON **ret_body);
/* The object at path, or NULL; the caller's. */
cJSON *sim_server_get(struct sim_server *server, const char *path);
/* POSTs each document of a file of manifests (definitions, NeoSets); must succeed. */
void sim_server_apply_file(struct sim_server *server, const char *path);

/* A write that the server accepted. */
struct sim_write {
    char *audit_id;
    char *verb;
    char *path; /* with its query */
    int status;
    int64_t at_us;
};
/* All writes that were answered 2xx, in order; a dry run is none. */
size_t sim_server_write_count(const struct sim_server *server);
const struct sim_write *sim_server_write(const struct sim_server *server, size_t index);
