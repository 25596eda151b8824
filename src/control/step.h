/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step is: one cluster write that moves something forward. The kinds, each with how its key is put
 * into the body and how it is resolved when in doubt (journal.md, "In doubt"). Plans make step requests; only
 * the gateway turns them into requests to a server. */
#pragma once

#include "journal/entry.h"
#include "kube/client.h"

struct step_doubt;

/* How the key gets into the bytes that are sent. */
typedef void step_stamp(cJSON *body, const char *key);

/* The stamps: each puts the key where its resolver looks for it.
 * annotation: metadata.annotations["apps.neo.io/step"].
 * in_place: that, and member "step" of the JSON text in the annotation "apps.neo.io/in-place-state".
 * gate: the message of the condition "apps.neo.io/in-place-ready": member "step" when it is a JSON object,
 * else " (step KEY)" at its end. none: the step is known by its value (advance, restore-managers) or by what
 * it makes impossible (delete). */
step_stamp step_stamp_annotation, step_stamp_in_place, step_stamp_gate, step_stamp_none;

#define STEP_ANNOTATION "apps.neo.io/step"
#define STEP_STATE_ANNOTATION "apps.neo.io/in-place-state"
#define STEP_GATE_CONDITION "apps.neo.io/in-place-ready"
#define STEP_SETTLE_ANNOTATION "apps.neo.io/settle"

/* What reading the cluster says of a step in doubt. */
enum step_verdict {
    STEP_APPLIED,
    STEP_OVERTAKEN, /* another uid, gone, or as wanted but not by us */
    STEP_REJECTED,  /* a create whose name belongs to someone else */
    STEP_ABSENT,    /* its precondition can never hold again */
    STEP_OPEN,      /* it may still arrive: send again, or make it impossible */
};
/* object: what the API server (not a cache) has under the step's name, NULL for 404. */
typedef enum step_verdict step_resolve(const struct step_doubt *doubt, const cJSON *object);

/* The resolvers, in resolve.c: one a row of the table in journal.md. */
step_resolve step_resolve_create, step_resolve_create_shared, step_resolve_recreate, step_resolve_patch,
    step_resolve_grow, step_resolve_managers, step_resolve_gate, step_resolve_advance, step_resolve_delete,
    step_resolve_orphan_delete;
/* A user's manifest carries no key: only an answer says that it was applied. */
step_resolve step_resolve_apply, step_resolve_apply_new;

/* X(NAME, text in the journal, method, content type, keep the body, stamp, resolver).
 * A kind without a resolver does not compile. */
#define STEP_KINDS(X)                                                                                        \
    X(CREATE_POD, "create-pod", "POST", KUBE_JSON, false, step_stamp_annotation, step_resolve_create)        \
    X(CREATE_CLAIM, "create-claim", "POST", KUBE_JSON, false, step_stamp_annotation,                         \
      step_resolve_create_shared)                                                                            \
    X(CREATE_REVISION, "create-revision", "POST", KUBE_JSON, false, step_stamp_annotation,                   \
      step_resolve_create_shared)                                                                            \
    X(UPDATE_IN_PLACE, "update-in-place", "PATCH", KUBE_STRATEGIC, true, step_stamp_in_place,                \
      step_resolve_patch)                                                                                    \
    X(PATCH, "patch", "PATCH", KUBE_MERGE, true, step_stamp_annotation, step_resolve_patch)                  \
    X(ADOPT, "adopt", "PATCH", KUBE_STRATEGIC, true, step_stamp_annotation, step_resolve_patch)              \
    X(RELEASE, "release", "PATCH", KUBE_STRATEGIC, true, step_stamp_annotation, step_resolve_patch)          \
    X(GATE, "gate", "PATCH", KUBE_STRATEGIC, true, step_stamp_gate, step_resolve_gate)                       \
    X(ADVANCE, "advance", "PATCH", KUBE_MERGE, true, step_stamp_none, step_resolve_advance)                  \
    X(DELETE, "delete", "DELETE", KUBE_JSON, true, step_stamp_none, step_resolve_delete)                     \
    X(ORPHAN_DELETE, "orphan-delete", "DELETE", KUBE_JSON, true, step_stamp_none,                            \
      step_resolve_orphan_delete)                                                                            \
    X(CREATE_NEOSET, "create-neoset", "POST", KUBE_JSON, false, step_stamp_annotation, step_resolve_create)  \
    X(CREATE_STATEFULSET, "create-statefulset", "POST", KUBE_JSON, false, step_stamp_annotation,             \
      step_resolve_recreate)                                                                                 \
    X(GROW_CLAIM, "grow-claim", "PATCH", KUBE_MERGE, true, step_stamp_annotation, step_resolve_grow)         \
    X(RESTORE_TEMPLATE, "restore-template", "PATCH", KUBE_STRATEGIC, false, step_stamp_annotation,           \
      step_resolve_patch)                                                                                    \
    X(RESTORE_MANAGERS, "restore-managers", "PATCH", KUBE_MERGE, true, step_stamp_none,                      \
      step_resolve_managers)                                                                                 \
    X(APPLY, "apply", "PATCH", KUBE_APPLY, false, step_stamp_none, step_resolve_apply)                       \
    X(APPLY_NEW, "apply-new", "PATCH", KUBE_APPLY, false, step_stamp_none, step_resolve_apply_new)           \
    X(BLOCK, "block", "PATCH", KUBE_MERGE, true, step_stamp_annotation, step_resolve_patch)

#define KUBE_JSON "application/json"
#define KUBE_MERGE "application/merge-patch+json"
#define KUBE_STRATEGIC "application/strategic-merge-patch+json"
#define KUBE_APPLY "application/apply-patch+yaml"

/* What operations are, and how they end: the words in the journal. neoset-audit tells a typing error by them;
 * the gateway begins no operation, and ends none, with a word that is not here. */
#define OPERATION_KINDS(X)                                                                                   \
    X("rollout")                                                                                             \
    X("scale")                                                                                               \
    X("repair")                                                                                              \
    X("cleanup")                                                                                             \
    X("adopt")                                                                                               \
    X("resize")                                                                                              \
    X("settings")                                                                                            \
    X("apply")                                                                                               \
    X("undo")                                                                                                \
    X("settle")
#define OPERATION_OUTCOMES(X)                                                                                \
    X("completed")                                                                                           \
    X("failed")                                                                                              \
    X("superseded")                                                                                          \
    X("cancelled")

bool step_is_operation_kind(const char *text);
bool step_is_operation_outcome(const char *text);

enum step_kind {
#define X(name, text, method, content_type, keep, stamp, resolve) STEP_##name,
    STEP_KINDS(X)
#undef X
        STEP_KIND_COUNT,
};

struct step_kind_info {
    const char *text;
    const char *method;
    const char *content_type;
    bool keep_body;
    step_stamp *stamp;
    step_resolve *resolve;
};
const struct step_kind_info *step_kind_info(enum step_kind kind);
int step_kind_of_text(const char *text); /* -1: unknown */
/* It makes an object: it has no preconditions. */
bool step_creates(enum step_kind kind);
/* Its path ends with the collection: the name is in the body alone. */
bool step_posts(enum step_kind kind);

/* All pointers are borrowed for the call. */
struct step_outcome {
    int64_t step;
    enum step_kind step_kind;
    struct kube_ref target; /* the object that the step writes */
    struct kube_ref
        operation_object; /* the object of its operation; name NULL when that is not known any more */
    const char *fingerprint;
    enum journal_kind kind; /* an outcome kind, or JOURNAL_UNKNOWN while the step is in doubt */
    int http;
    const cJSON *object; /* the server's newest state of the object when we have it, else NULL */
    const char *summary; /* for a refusal: kube_answer.summary; else "" */
    const char *reason;  /* Status reason of a refusal, e.g. "Invalid", "Forbidden", "Conflict"; else "" */
};
typedef void step_done(void *context, const struct step_outcome *outcome);

/* What a plan asks for. All strings are owned by the request; body is owned; step_request_free frees all. */
struct step_request {
    enum step_kind kind;
    enum kube_resource resource;
    char *namespace;
    char *name;
    char *subresource; /* "status", or NULL */
    char *uid;         /* precondition; NULL only for creates */
    char *version;     /* precondition; NULL only for creates. Never "" or "0" */
    cJSON *body; /* without key and preconditions: the gateway puts metadata.uid/resourceVersion and the key
                    in */
    char *fingerprint; /* what it does, without time or key: an open step with the same fingerprint, object,
                          uid and version is sent again instead of being made impossible */
    char *reason;      /* for people: "mysql-4: image mysql:8.0 -> mysql:8.1" */
    char *operation_kind;
    enum kube_resource operation_resource;
    char *operation_namespace;
    char *operation_name;
    char *come_from;
    char *go_to;
    char *failed_before; /* why the operation that this one takes the place of had failed; NULL: it had not */
    bool lowers_availability;
    /* Of an apply: who is to own the fields (NULL: the gateway's), and whether others' are taken over. */
    char *field_manager;
    bool is_forced;
};
struct step_request *step_request_make(enum step_kind kind, enum kube_resource resource,
                                       const char *namespace, const char *name);
void step_request_free(struct step_request *request);
