/* SPDX-License-Identifier: Apache-2.0
 *
 * What all files of the model share: kinds, stored objects and their versions, one request under way (a
 * call), and how a call is refused. Internal to kubesim. Functions that can refuse return 0, or -1 with the
 * call's answer filled: nothing more is to be done then. */
#pragma once

#include "base/json.h"
#include "base/time_text.h"
#include "kubesim/kubesim.h"
#include "kubesim/path.h"
#include "kubesim/selector.h"

struct call;
struct causes;
struct schema;
struct schema_set;
struct table_column;

/* One immutable state of an object. Shared between the store, the history and answers by counting. */
struct version {
    unsigned references;
    unsigned holds; /* of those, the ones that need the tree to stay */
    bool is_past;   /* superseded */
    int64_t number; /* its resourceVersion */
    cJSON *tree;    /* NULL once superseded, printed and held by nobody: version_tree() reads it again */
    char *text;     /* NULL until printed: version_text() */
    size_t text_length;
};

struct object {
    char *key; /* "namespace/name", or "name" when cluster-scoped; what lists are sorted by */
    struct version *version;
};

enum kind_flags {
    KIND_NAMESPACED = 1 << 0,
    KIND_STATUS = 1 << 1,               /* has /status */
    KIND_SCALE = 1 << 2,                /* has /scale */
    KIND_UNCONDITIONAL_UPDATE = 1 << 3, /* an update without resourceVersion is allowed */
    KIND_CREATE_ON_UPDATE = 1 << 4,     /* PUT of an absent object creates it */
    KIND_RETURNS_DELETED = 1 << 5,      /* DELETE answers with the object, not with a Status */
    KIND_GENERATION = 1 << 6,           /* metadata.generation is kept */
    KIND_CUSTOM = 1 << 7,               /* made by a CustomResourceDefinition */
    KIND_REVIEW = 1 << 8,               /* only create, stores nothing */
};

/* What a kind does beside the general rules. Each may be NULL. object is the new state, owned by the caller.
 */
struct kind_hooks {
    /* Fills in what the server fills in, on every decode. */
    void (*set_defaults)(struct call *call, cJSON *object);
    /* May refuse (403 ...) before validation, as admission does. old is NULL on create. */
    int (*admit)(struct call *call, cJSON *object, const cJSON *old);
    void (*prepare_create)(struct call *call, cJSON *object);
    void (*prepare_update)(struct call *call, cJSON *object, const cJSON *old);
    /* Instead of prepare_update on /status. NULL: spec is reset to old's. */
    void (*prepare_status)(struct call *call, cJSON *object, const cJSON *old);
    /* Adds causes. old is NULL on create. */
    void (*validate)(struct call *call, const cJSON *object, const cJSON *old, struct causes *causes);
    /* May refuse after validation, as the validating admission plug-ins do. old is NULL on create. */
    int (*admit_late)(struct call *call, const cJSON *object, const cJSON *old);
    /* After the commit: object is the stored tree, or the last one when removed. */
    void (*committed)(struct kubesim *sim, const cJSON *object, bool removed);
};

struct kind {
    char *group; /* "" for the core group */
    char *version;
    char *name; /* "Pod" */
    char *plural;
    char *singular;
    char *list_name;           /* "PodList" */
    char **short_names;        /* NULL-terminated, or NULL */
    char **categories;         /* NULL-terminated, or NULL */
    const char *const *fields; /* what fieldSelector takes, NULL-terminated */
    unsigned flags;
    const struct kind_hooks *hooks;
    const struct schema *schema;    /* owned by the set it comes from */
    struct schema_set *own_schemas; /* of a custom kind */
    struct table_column *columns;   /* of a custom kind */
    size_t column_count;
    char *scale_spec_path; /* "spec.replicas" ... of a custom kind with KIND_SCALE */
    char *scale_status_path;
    char *scale_selector_path; /* or NULL */
    bool undefined;            /* its definition was deleted: answers 404, objects are gone */
    struct object **objects;   /* sorted by key */
    size_t object_count;
    size_t object_room;
};

enum { KINDS_MAX = 128, WATCHES_MAX = 4096 };

enum change_type { CHANGE_ADDED, CHANGE_MODIFIED, CHANGE_DELETED };

/* One entry of the history: what watches resume from, and how an older list is put together. */
struct change {
    enum change_type type;
    struct kind *kind;
    char *key;
    struct version *version; /* after; of a deletion the last state with the deletion's resourceVersion */
    struct version *before;  /* NULL for ADDED */
};

struct history {
    struct change *changes; /* a ring */
    size_t room;
    size_t first;
    size_t count;
    int64_t forgotten; /* the resourceVersion of the newest change that fell out */
};

struct owner_index; /* gc.c */
struct snapshot;    /* snapshot.c */

struct gc {
    bool off;
    int64_t delay_us;
    int64_t blind_us; /* dependents younger than this are overlooked when an owner lets go of its own */
    int64_t due_us;   /* when it looks next; INT64_MAX: nothing to do */
    unsigned dying_claims;
    unsigned dying_namespaces;
    struct owner_index *index;
};

struct kubesim {
    struct kubesim_options options;
    char *git_version;
    struct kind *kinds[KINDS_MAX];
    size_t kind_count;
    struct schema_set *schemas; /* of the built-in kinds */
    struct history history;
    int64_t resource_version;
    struct snapshot *snapshot;     /* NULL: none was taken */
    struct kubesim_watch *watches; /* a list */
    size_t watch_count;
    struct fault_list *faults;
    struct gc gc;
    int64_t sets_due_us;                  /* when StatefulSets are looked at next; INT64_MAX: nothing to do */
    int64_t volumes_due_us;               /* the same for volumes */
    int64_t quotas_due_us;                /* ... and for the status of quotas */
    struct set_note *set_notes;           /* statefulset_controller.c */
    struct volume_timer *volume_timers;   /* volumes.c */
    struct revision_note *revision_notes; /* revisions.c */
    const struct call *current;           /* the request under way, or NULL */
    struct kubesim_counts counts;
};

enum verb {
    VERB_GET,
    VERB_LIST,
    VERB_WATCH,
    VERB_CREATE,
    VERB_UPDATE,
    VERB_PATCH,
    VERB_DELETE,
    VERB_DELETE_COLLECTION,
    VERB_OTHER,
};

/* "get", "list" ... as in audit logs and permissions. */
const char *verb_name(enum verb verb);

/* One request under way. */
struct call {
    struct kubesim *sim;
    const struct kubesim_request *request;
    struct kubesim_response *response;
    struct path path;
    enum verb verb;
    struct kind *kind; /* NULL for what is no resource */
    const char *group; /* of the request, also when kind is NULL */
    const char *api_version;
    const char *resource;
    const char *namespace; /* NULL: none in the path */
    const char *name;      /* NULL: a collection */
    const char *subresource;
    bool dry_run;
    bool applied;              /* an apply has settled managedFields itself */
    int64_t stale_by;          /* a fault: a list shows the state so many changes ago */
    const char *field_manager; /* never NULL once routed */
    char *own_field_manager;
    char *own_name; /* of a create, when a fault asked for it */
    cJSON *body;    /* the parsed body of create, update, apply and patches; NULL before */
    char *problem;  /* of a refusal: the message for the audit log */
};

/* --- answers (answer.c) --- */

enum { BODY_MAX = 8 * 1024 * 1024, ANSWER_MAX = 1024 * 1024 * 1024 };

/* Takes tree. */
void answer_tree(struct call *call, int http, cJSON *tree);
/* Takes text. */
void answer_text(struct call *call, int http, const char *content_type, char *text, size_t length);
/* An object in the form that Accept asks for (plain, Table, PartialObjectMetadata). Takes version. */
void answer_version(struct call *call, int http, const struct kind *kind, struct version *version);

/* A Status of failure; reason "" leaves it out. The kind and name of the call go into details when given. */
int refuse(struct call *call, int http, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same with details about a named object of a kind. */
int refuse_object(struct call *call, const struct kind *kind, const char *name, int http, const char *reason,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));
int refuse_bad_request(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What nobody serves: 404, plain text. */
int refuse_unknown_path(struct call *call);
int refuse_not_found(struct call *call, const struct kind *kind, const char *name);
int refuse_conflict(struct call *call, const struct kind *kind, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Status.details.kind (NULL: details without anything), and retryAfterSeconds with the header, of the refusal
 * just made. */
void refusal_set_kind(struct call *call, const char *kind);
void refusal_set_retry(struct call *call, int retry_after_s);
/* What the model does not do: 501, reason NotImplemented, the sentence. */
int refuse_not_modelled(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Status.details.causes of the refusal just made. */
void refusal_add_cause(struct call *call, const char *reason, const char *message, const char *field);
/* "pods", "statefulsets.apps"; the caller's. */
char *kind_qualified_resource(const struct kind *kind);
char *kind_qualified_name(const struct kind *kind);
/* "v1", "apps/v1"; the caller's. */
char *kind_api_version(const struct kind *kind);

/* --- validation errors --- */

enum cause_type {
    CAUSE_INVALID,
    CAUSE_REQUIRED,
    CAUSE_FORBIDDEN,
    CAUSE_NOT_SUPPORTED,
    CAUSE_DUPLICATE,
    CAUSE_TYPE_INVALID,
    CAUSE_TOO_LONG,
    CAUSE_TOO_MANY,
    CAUSE_NOT_FOUND,
};
enum { CAUSES_MAX = 64 };
struct cause {
    enum cause_type type;
    char *field;
    char *message; /* the error's body: "Invalid value: ..." */
};
struct causes {
    struct cause items[CAUSES_MAX];
    size_t count;
};
/* value: what is shown after "Invalid value: "; NULL for the types that show none. detail may be "". */
void causes_add(struct causes *causes, enum cause_type type, const char *field, const char *value,
                const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same with the JSON text of a value (strings quoted, nothing as null). */
void causes_add_node(struct causes *causes, enum cause_type type, const char *field, const cJSON *value,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));
void causes_done(struct causes *causes);
#define CLEANUP_CAUSES __attribute__((cleanup(causes_done)))
/* 422 about a parameter of the request: "CreateOptions.meta.k8s.io "" is invalid: ...". */
int refuse_options(struct call *call, const char *kind, const char *field, enum cause_type type,
                   const char *value, const char *detail);
/* 422 when there are any, else 0. */
int refuse_invalid(struct call *call, const struct kind *kind, const char *name, const struct causes *causes);

/* --- kinds (kinds.c) --- */

void kinds_add_builtin(struct kubesim *sim);
/* group and plural; NULL when not served. */
struct kind *kind_find(const struct kubesim *sim, const char *group, const char *plural);
struct kind *kind_find_by_name(const struct kubesim *sim, const char *group, const char *name);
/* Takes kind over. */
void kind_add(struct kubesim *sim, struct kind *kind);
void kind_free(struct kind *kind);
/* A built-in resource of the real server that kubesim leaves out: its group and plural are known. */
bool kind_is_left_out(const char *group, const char *plural);

/* --- the store (store.c) --- */

struct object *store_find(const struct kind *kind, const char *namespace, const char *name);
/* Index of the first object whose key is not below prefix; count while store_in() holds. */
size_t store_lower_bound(const struct kind *kind, const char *key);
/* Stores tree (taken) as the new state under a new resourceVersion, tells the watches. Returns the object. */
struct object *store_put(struct kubesim *sim, struct kind *kind, cJSON *tree);
/* Removes an object; tree (taken) is its last state. */
void store_remove(struct kubesim *sim, struct kind *kind, struct object *object, cJSON *tree);
/* The object is as it was then, whatever it is now; version NULL: it is not there. No watch is told. */
void store_reset(struct kubesim *sim, struct kind *kind, const char *key, struct version *version);
void snapshot_free(struct snapshot *snapshot);
/* Everything of a kind, without a word to watches (when its definition goes). */
void store_drop_kind(struct kind *kind);
void store_done(struct kubesim *sim);
char *store_key(const char *namespace, const char *name);

struct version *version_ref(struct version *version);
void version_unref(struct version *version);
/* Owned by the version; of one that nobody holds good until the next write. */
const cJSON *version_tree(struct version *version);
/* References it, and its tree is good until version_release(), whatever is written meanwhile. */
struct version *version_hold(struct version *version);
void version_release(struct version *version);
const char *version_text(struct version *version);
/* The state of an object now. */
static inline const cJSON *object_tree(const struct object *object)
{
    return version_tree(object->version);
}

/* --- objects --- */

const char *meta_str(const cJSON *object, const char *key);
/* metadata, made when absent. */
cJSON *meta_of(cJSON *object);
bool meta_is_deleting(const cJSON *object);
size_t meta_finalizer_count(const cJSON *object);
bool meta_has_finalizer(const cJSON *object, const char *finalizer);
void meta_add_finalizer(cJSON *object, const char *finalizer);
void meta_remove_finalizer(cJSON *object, const char *finalizer);
/* Adds 1, from 0 when absent. */
void meta_raise_generation(cJSON *object);
/* The time of the call as metav1.Time. */
void sim_time_text(const struct kubesim *sim, char text[static TIME_TEXT_SIZE]);
int64_t sim_now_us(const struct kubesim *sim);
/* Takes item into array before the item at index (or at the end). cJSON_InsertItemInArray() of
 * Debian's 1.7.15 refuses to insert anywhere but in front. */
void tree_insert(cJSON *array, int index, cJSON *item);
/* Copies member key of from to to; removes it where from has none. */
void tree_copy_member(cJSON *to, const cJSON *from, const char *key);

/* --- verbs --- */

int read_get(struct call *call);
int read_list(struct call *call);
/* resourceVersionMatch and sendInitialEvents, which may stand only in some company. */
int check_list_options(struct call *call, bool watch);
/* labelSelector and fieldSelector of the call; the caller frees them. */
int read_selectors(struct call *call, struct selector **ret_labels, struct selector **ret_fields);
int write_create(struct call *call);
int write_update(struct call *call);
int write_patch(struct call *call);
int write_delete(struct call *call);
int write_delete_collection(struct call *call);
int write_evict(struct call *call);
int write_bind(struct call *call);
int scale_get(struct call *call);
int scale_write(struct call *call);
int review_create(struct call *call);
/* Everything that is not a resource: discovery, versions, health, OpenAPI. */
int discovery_answer(struct call *call);

/* --- writing, shared by the verbs (store rules: write.c) --- */

/* Admits, prepares, validates and stores a new object (taken, decoded). *ret is what to answer with: the
 * stored version, or with a dry run one that is stored nowhere; the caller's. */
int create_object(struct call *call, struct kind *kind, cJSON *object, struct version **ret);
/* The same for a changed one, also through a subresource of the call. An update that lets go the last
 * finalizer of an object that is being deleted removes it. old must not be used afterwards. */
int update_object(struct call *call, struct kind *kind, struct object *old, cJSON *object,
                  struct version **ret);
/* A new resourceVersion as the server reads it: 0 for absent, "" and "0". Junk is refused with 500. */
int read_resource_version(struct call *call, const cJSON *object, int64_t *ret);
/* An unstored version around a tree (taken). */
struct version *version_make_loose(cJSON *tree);
/* Takes an object away for good: last is its final state (taken). The caller must not use object afterwards.
 */
struct version *remove_object(struct call *call, struct kind *kind, struct object *object, cJSON *last);

/* --- the rest --- */

void watches_notify(struct kubesim *sim, const struct change *change);
/* The store tells the collector about each change: before or after is NULL. */
void gc_note(struct kubesim *sim, struct kind *kind, const cJSON *before, const cJSON *after);
void gc_look_soon(struct kubesim *sim);
void gc_tick(struct kubesim *sim);

/* statefulset_controller.c: something changed; do what is due. */
void statefulsets_look_soon(struct kubesim *sim);
void statefulsets_tick(struct kubesim *sim);
void statefulsets_done(struct kubesim *sim);
void gc_done(struct kubesim *sim);
/* DELETE as the collector and the namespace controller send it; propagation may be NULL. True when the object
 * is gone at once. */
bool delete_quietly(struct kubesim *sim, struct kind *kind, struct object *object, const char *propagation);
