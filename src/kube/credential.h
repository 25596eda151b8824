/* SPDX-License-Identifier: Apache-2.0
 *
 * Who we are, kept fresh: token and certificate files read again at most every 60 s and once after a 401,
 * exec plug-ins run when there is nothing valid (one at a time, an argument vector and no shell, bounded in
 * time and output), their answer kept until it expires. Tokens and keys never get into a message. Only
 * src/kube includes this. */
#pragma once

#include "kube/config.h"

/* How to reach the server and what to say we are; never changes once made. Requests hold a reference while
 * they are under way, for the transport only borrows the server. */
struct kube_identity {
    unsigned references;
    uint64_t generation; /* rises with each new one */
    struct http_server server;
    char *authorization; /* "Bearer ...", or NULL */
};
void kube_identity_release(struct kube_identity *identity);

struct kube_credential;

/* env and config are borrowed and outlive it. */
struct kube_credential *kube_credential_make(struct env *env, const struct kube_config *config);
void kube_credential_free(struct kube_credential *credential);

/* What to use now, as a reference of the caller's; NULL: wait for it. */
struct kube_identity *kube_credential_now(struct kube_credential *credential);

/* identity is NULL when there is none to be had; problem is a sentence then. The callee releases identity. */
typedef void kube_credential_ready(void *context, struct kube_identity *identity, const char *problem);
struct kube_credential_wait {
    kube_credential_ready *ready;
    void *context;
    struct kube_credential_wait *prev, *next;
};
/* ready is called once, from the loop, unless it is cancelled. wait is the caller's and stays where it is
 * until then. */
void kube_credential_wait(struct kube_credential *credential, struct kube_credential_wait *wait);
void kube_credential_wait_cancel(struct kube_credential *credential, struct kube_credential_wait *wait);

/* The server refused this generation: if it is still the newest, the next request gets a new one. */
void kube_credential_refused(struct kube_credential *credential, uint64_t generation);
/* The same, whichever is in use. */
void kube_credential_refresh(struct kube_credential *credential);
/* Why the newest re-reading failed, or NULL. */
const char *kube_credential_problem(const struct kube_credential *credential);
