/* SPDX-License-Identifier: Apache-2.0
 *
 * The writes that are not journaled, by name, in one table: what describes but does not decide, and what
 * stores nothing (journal.md, "What is journaled, what is exempt"). They carry Audit-ID neo-x-<kind>-<n>, so
 * that the server's log tells them from steps. Whatever is not in the table cannot be written from here: it
 * is asserted, kind by kind. Nothing is ever sent twice. */
#pragma once

#include "kube/client.h"

/* X(NAME, text in the Audit-ID, method or methods, connection pool) */
#define EXEMPT_KINDS(X)                                                                                      \
    X(STATUS, "status", "PATCH", HTTP_POOL_REQUEST)          /* descriptive fields of a NeoSet's status */   \
    X(EVENT, "event", "POST PATCH", HTTP_POOL_REQUEST)       /* Events */                                    \
    X(LEASE, "lease", "POST PATCH", HTTP_POOL_LEASE)         /* our Lease: taking, renewing, giving back */  \
    X(DRY_RUN, "dry-run", "POST PATCH", HTTP_POOL_REQUEST)   /* dryRun=All in the query: stores nothing */   \
    X(DRY_DELETE, "dry-delete", "DELETE", HTTP_POOL_REQUEST) /* an orphan delete, dryRun in its body */      \
    X(REVIEW, "review", "POST", HTTP_POOL_REQUEST)           /* may we? */

enum exempt_kind {
#define X(name, text, methods, pool) EXEMPT_##name,
    EXEMPT_KINDS(X)
#undef X
        EXEMPT_KIND_COUNT,
};

struct exempt;

struct exempt_options {
    struct env *env;
    struct kube_client *client;
    const char *field_manager;
    /* Asked at the last moment for status and Events: do we still lead? NULL: always. */
    bool (*may_write)(void *context);
    void *context;
};
struct exempt *exempt_make(const struct exempt_options *options);
/* Cancels what is under way. */
void exempt_free(struct exempt *exempt);

struct exempt_request {
    enum exempt_kind kind;
    const char *method;
    enum kube_resource resource;
    const char *namespace;
    const char *name;          /* NULL for a create */
    const char *subresource;   /* or NULL */
    const char *content_type;  /* KUBE_JSON, KUBE_MERGE ... */
    const char *field_manager; /* NULL: the options' */
    bool is_forced;            /* of an apply: fields of other managers are taken over */
    const cJSON *body;         /* borrowed */
    int64_t timeout_us;
};
/* done may be NULL; it is called once unless exempt is freed first. A 2xx whose body is not the object that
 * was written did not come from the API server: done hears KUBE_NO_ANSWER. */
void exempt_write(struct exempt *exempt, const struct exempt_request *request, kube_done *done,
                  void *context);
/* True when status holds a field that decides, for this resource: such a write is a step, never exempt. */
bool exempt_has_deciding_field(enum kube_resource resource, const cJSON *status);
/* How many writes were sent, by kind. */
int64_t exempt_count(const struct exempt *exempt, enum exempt_kind kind);
const char *exempt_kind_text(enum exempt_kind kind);
