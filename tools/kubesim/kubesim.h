/* SPDX-License-Identifier: Apache-2.0
 *
 * kubesim: a Kubernetes API server in memory, as far as neoset's steps depend on one. One call in, one answer
 * out, synchronous and single-threaded; clock and random come from the caller, so that the same model runs
 * under virtual time, in unit tests and behind HTTP (http.h). It answers as kube-apiserver 1.36 does; what it
 * does not model it refuses with 501 and a sentence. It never opens a file or a socket, never reads a clock,
 * never calls back into the caller but through the callbacks below, and those must not call into it. */
#pragma once

#include "base/buf.h"

struct kubesim;
struct kubesim_watch;

/* A state that the store has just taken in; everything is borrowed for the call. */
struct kubesim_change {
    const char *kind;
    const char *namespace; /* NULL: cluster-scoped */
    const char *name;
    const struct cJSON *before; /* NULL: it is new */
    const struct cJSON *after;  /* NULL: it is gone */
    /* Of the request that made it; NULL: the server itself (collector, finalizers). */
    const char *verb;
    const char *path;
    const char *audit_id;
    const char *user;
};

struct kubesim_options {
    /* Wall clock, microseconds since 1970. Needed. */
    int64_t (*now_us)(void *context);
    /* Fills bytes: uids and generated names. Needed. */
    void (*random)(void *context, void *bytes, size_t length);
    /* One line of an audit log (audit.k8s.io/v1 Event, without the newline) a request; NULL: none. */
    void (*audit)(void *context, const char *line, size_t length);
    /* Each change of the store, as it happens, also of what no audit log shows; NULL: none. */
    void (*changed)(void *context, const struct kubesim_change *change);
    /* A mutating webhook for pods: may change object before it is checked. old: NULL on create. NULL: none.
     */
    void (*mutate_pod)(void *context, struct cJSON *object, const struct cJSON *old);
    void *context;
    unsigned history_max;    /* changes that a watch can resume from; 0: 10000 */
    bool gc_off;             /* the garbage collector starts switched off (kubesim_set_gc) */
    int64_t gc_delay_us;     /* how long after a change the collector looks; 0: at the next tick */
    int64_t bookmark_us;     /* between bookmarks of a watch; 0: 60 s */
    bool no_managed_fields;  /* leave metadata.managedFields out (an apply is then answered 501) */
    bool deny_reviews;       /* access reviews answer no instead of yes */
    const char *git_version; /* what /version says; NULL: "v1.36.3+kubesim", or "v1.37.2+kubesim" */
    bool statefulsets;       /* run StatefulSets: their pods, revisions and status */
    bool volumes;            /* bind claims to volumes and resize them (volumes.h) */
    bool newer;              /* as 1.37 answers: immutability with one cause a field, and what else differs */
};

/* Everything is borrowed for the call. Strings may be NULL where the header is absent. */
struct kubesim_request {
    const char *method; /* "GET" ... */
    const char *path;   /* percent-encoded, with the query */
    const char *content_type;
    const char *accept;
    const char *audit_id; /* the Audit-ID header */
    const char *user_agent;
    const char *user; /* who asks, for the audit log; NULL: "kubesim" */
    const char *body;
    size_t body_length;
    bool no_faults; /* delivery of a request that a fault held back: faults do not count or hit it again */
};

enum kubesim_disposition {
    KUBESIM_ANSWERED, /* give the answer to the client, after delay_us */
    KUBESIM_LOST,     /* executed; the connection ends without a byte of the answer, after delay_us */
    KUBESIM_HELD, /* not executed yet: hand it in again with no_faults set after delay_us, whether the client
                     still waits or not; give it that answer if it does */
};

struct kubesim_response {
    enum kubesim_disposition disposition;
    int64_t delay_us;
    int status;
    char *body; /* NUL-terminated, owned by the response; NULL when HELD */
    size_t body_length;
    const char *content_type;
    int retry_after_s; /* 0: no Retry-After header */
    char *audit_id;    /* the Audit-ID header of the answer */
    char *warning;     /* text of one Warning header (299), or NULL */
};

struct kubesim *kubesim_make(const struct kubesim_options *options);
void kubesim_free(struct kubesim *sim);

/* Answers one request that is not a watch (a watch is answered 400). *ret is filled in any case and freed
 * with kubesim_response_done(). Large or malformed input is answered, never fatal. */
void kubesim_handle(struct kubesim *sim, const struct kubesim_request *request, struct kubesim_response *ret);
void kubesim_response_done(struct kubesim_response *response);
/* True when the request must go to kubesim_watch_open(). */
bool kubesim_is_watch(const struct kubesim_request *request);

struct version; /* model.h */

struct kubesim_watch_callbacks {
    /* One event with its newline; borrowed. Also called inside kubesim_watch_open() (what the watch resumes
     * from) and inside the call that changed the object. Must not call into kubesim. */
    void (*on_line)(void *context, const char *line, size_t length);
    /* Or NULL. For who lives in kubesim: an event of a whole object comes here instead of as a line; type is
     * static, version borrowed. */
    void (*on_version)(void *context, const char *type, struct version *version);
    /* The stream ended: clean as a server ends it (timeout, 410), or cut like a connection. The watch is
     * still to be closed by its owner, later. */
    void (*on_end)(void *context, bool clean);
};
/* Opens a watch: returns it with ret->status 200 and no body, or NULL with ret filled as by kubesim_handle
 * (also HELD or LOST by a fault). The caller closes it. */
struct kubesim_watch *kubesim_watch_open(struct kubesim *sim, const struct kubesim_request *request,
                                         const struct kubesim_watch_callbacks *callbacks, void *context,
                                         struct kubesim_response *ret);
void kubesim_watch_close(struct kubesim_watch *watch);

/* Does what is due by now: the garbage collector, finalizers, namespaces that go, bookmarks, ends of watches.
 */
void kubesim_tick(struct kubesim *sim);
/* When kubesim_tick() has something to do next, on the clock of now_us; INT64_MAX: nothing is pending. */
int64_t kubesim_next_tick_us(const struct kubesim *sim);
/* The clock that the model goes by: now_us of its options. */
int64_t kubesim_now_us(const struct kubesim *sim);

/* Faults, by the grammar of kubesim_fault_help(); several may be given, separated by ';'. They act in the
 * order in which they were added, at most one a request. */
int kubesim_fault_add(struct kubesim *sim, const char *spec, struct error **err);
void kubesim_fault_clear(struct kubesim *sim);
/* How often faults have hit so far. */
unsigned kubesim_fault_hits(const struct kubesim *sim);
/* The grammar with examples, for --help. */
const char *kubesim_fault_help(void);

/* The garbage collector (owner references, orphan and foreground deletion) on or off; off, finalizers wait.
 * delay_us: how long after a change it looks. blind_us: its picture is so old - dependents younger than that
 * are overlooked when an owner is orphaned, and collected later because their owner is gone (as the real one
 * does under load). */
void kubesim_set_gc(struct kubesim *sim, bool on, int64_t delay_us, int64_t blind_us);
/* Runs StatefulSets from now on, as options.statefulsets from the start. */
void kubesim_run_statefulsets(struct kubesim *sim);
/* Binds and resizes volumes from now on, as options.volumes from the start. */
void kubesim_run_volumes(struct kubesim *sim);
/* Answers as 1.37 from now on, as options.newer from the start. */
void kubesim_answer_newer(struct kubesim *sim);
/* Who owns which field is kept from now on, where options.no_managed_fields left it out. */
void kubesim_keep_managed_fields(struct kubesim *sim);
/* How to make its resizer behave, for --help. */
const char *kubesim_volumes_help(void);
/* Forgets the history of changes, as a compaction does: watches from older versions are answered 410. */
void kubesim_compact(struct kubesim *sim);
/* Keeps the whole storage as it is now; the one that was kept before is forgotten. */
void kubesim_snapshot(struct kubesim *sim);
/* The storage is as it was kept: objects, resourceVersions, uids. The changes since then never were, their
 * numbers are given out again, and every watch breaks; options.changed is told what became different. False:
 * nothing was kept. */
bool kubesim_rewind(struct kubesim *sim);

/* Writes refused or done since the start; bench and tests read them. */
struct kubesim_counts {
    uint64_t requests;
    uint64_t writes; /* changes of stored objects */
    uint64_t objects;
    uint64_t resource_version;
};
struct kubesim_counts kubesim_count(const struct kubesim *sim);

DEFINE_CLEANUP(cleanup_kubesim, struct kubesim, kubesim_free);
#define CLEANUP_KUBESIM __attribute__((cleanup(cleanup_kubesim)))
