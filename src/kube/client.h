/* SPDX-License-Identifier: Apache-2.0
 *
 * One API server: credentials, single requests, decoded answers. Reads are free for all; kube_write() demands
 * a permit that only src/control/gateway.c makes (and, for what stores nothing or only describes,
 * src/control/exempt.c). Never retries by itself: who asks decides. */
#pragma once

#include "base/json.h"
#include "env/env.h"
#include "kube/config.h"
#include "kube/resource.h"

struct kube_client;

/* How a single request ended. */
enum kube_outcome {
    KUBE_OK,        /* 2xx */
    KUBE_REFUSED,   /* any other status line */
    KUBE_NO_ANSWER, /* it may have been executed */
    KUBE_NOT_SENT,  /* it never left */
};

/* One cause of a Status error. */
struct kube_cause {
    char *reason; /* e.g. "FieldValueInvalid", "FieldManagerConflict" */
    char *field;  /* e.g. "metadata.uid" */
};
enum { KUBE_CAUSES_MAX = 32 };

enum { KUBE_SUMMARY_SIZE = 257 };

/* Everything in it is valid during the callback only. */
struct kube_answer {
    enum kube_outcome outcome;
    int http;          /* 0 without a status line */
    const cJSON *body; /* parsed; NULL when absent, cut or not JSON */
    /* 2xx whose body did not arrive whole, or cannot be read. A write is KUBE_OK nevertheless (the server did
     * it); a read is KUBE_NO_ANSWER, so that KUBE_OK on a kube_get always has a body. */
    bool body_cut;
    /* Of a Status error: */
    const char *reason;  /* "Conflict", "NotFound", "Invalid" ...; "" when the Status has none */
    const char *message; /* the server's words, or the transport's when there is no answer; may echo what the
                            request held, Secret values too: for the user's own terminal only. Never NULL */
    char summary[KUBE_SUMMARY_SIZE]; /* code, reason, causes' fields, first line where it cannot echo values:
                                        what journal, log, Event and status may hold */
    struct kube_cause causes[KUBE_CAUSES_MAX];
    size_t cause_count;
    int64_t retry_after_us; /* -1: absent */
    const char *audit_id;   /* the server's, or NULL */
    const char *stranger;   /* who answered is no API server (a login page, a redirect, another protocol): a
                               clause that says so and what to do, without the answer's words; or NULL */
    enum error_code
        code; /* NOT_FOUND, CONFLICT, EXISTS, GONE, FORBIDDEN, UNAUTHORIZED, INVALID, REFUSED (429, 3xx),
                 UNREACHABLE (503 too), TIMED_OUT ...; NONE for KUBE_OK with a whole body */
};
typedef void kube_done(void *context, const struct kube_answer *answer);

struct kube_call;

/* Takes config over. The environment must outlive the client. Reads the token file, if any. */
struct kube_client *kube_client_make(struct env *env, struct kube_config *config);
/* Cancels what is under way. Watches on it are stopped first, by their owners. */
void kube_client_free(struct kube_client *client);
const struct kube_config *kube_client_config(const struct kube_client *client);
struct env *kube_client_env(const struct kube_client *client);

enum { KUBE_ANSWER_MAX = 32 * 1024 * 1024 }; /* bytes of an answer's body */

/* GET of path (kube_path, query included) with a bound of timeout_us and 32 MiB. done is called exactly once
 * unless the call is cancelled; the call is gone then. A 401 refreshes the credentials and is tried once more
 * before it is reported. */
struct kube_call *kube_get(struct kube_client *client, const char *path, int64_t timeout_us, kube_done *done,
                           void *context);
/* done is not called any more; the request may have been executed nevertheless. Sets *call to NULL; NULL is
 * fine. */
void kube_call_cancel(struct kube_client *client, struct kube_call **call);

/* A mutating request, everything borrowed and copied. */
struct kube_write {
    const char *method;       /* POST, PATCH, PUT, DELETE */
    const char *path;         /* with its query; the gateway puts timeout=, fieldManager= there */
    const char *content_type; /* NULL without a body */
    const char *body;
    size_t body_length;
    const char *audit_id; /* sent as Audit-ID */
    enum http_pool pool;
    int64_t timeout_us;
    bool is_dry; /* nothing is stored: the answer is wanted whole, with its managedFields */
    /* Last moment before the bytes leave: false keeps them here (the call ends KUBE_NOT_SENT). */
    bool (*before_send)(void *context);
};

/* Proof that a write went through the gateway. Only control/gateway.c and control/exempt.c may name
 * kube_permit_issue(): `make lint` checks it. */
struct kube_permit {
    uint64_t cookie;
};
struct kube_permit kube_permit_issue(struct kube_client *client);
/* Sends once, never again by itself (also not on a 401: the gateway decides). timeout_us counts from here,
 * the wait for a credential plug-in included. */
struct kube_call *kube_write(struct kube_client *client, struct kube_permit permit,
                             const struct kube_write *write, kube_done *done, void *context);
/* Re-reads the credentials now (after a 401). */
void kube_client_refresh_credentials(struct kube_client *client);

/* True when the answer has a cause with this field, e.g. "metadata.uid". */
bool kube_answer_has_cause_field(const struct kube_answer *answer, const char *field);
/* A 500 whose Status has no reason, in the words of a server that could not read what was sent: its store was
 * not asked. Any other such 500 ("rpc error: code = Unavailable ...", "etcdserver: request timed out") comes
 * from its store, and leaves open whether the write was done. Seen on 1.36.3 and 1.37.2. */
bool kube_answer_is_unreadable(const struct kube_answer *answer);
/* A sentence for people: names what was asked, the server's code and words, and what to do for the usual ones
 * (forbidden: which verb on what; 404 of a collection: the definition is missing; untrusted certificate ...).
 * Says no more of the server's words than summary does, so it may go anywhere. The caller's. */
char *kube_answer_sentence(const struct kube_answer *answer, const char *what);
/* The server's own words on one line, whose lists become "a, b"; without any the summary. They may repeat
 * values of what was sent: for whoever sent it, never for a journal or a log. The caller's. */
char *kube_answer_words(const struct kube_answer *answer);
/* Back-off with full jitter: attempt 0, 1, 2 ... → a random time up to 0.25 s, doubling to 30 s; never below
 * the answer's Retry-After (-1: none; honoured up to KUBE_ASKED_MAX_US). */
#define KUBE_ASKED_MAX_US (300 * US_PER_S)
int64_t kube_backoff_us(struct env *env, unsigned attempt, int64_t retry_after_us);
