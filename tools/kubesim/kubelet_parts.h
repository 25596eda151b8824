/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the kubelet model as they know each other: pods, their containers as they are (now), as the
 * last list of containers saw them (seen), and as the status tells them (shown). Only kubelet*.c includes
 * this. */
#pragma once

#include "base/time_text.h"
#include "kubesim/kubelet.h"

#include <uthash.h>

enum behaviour {
    BEHAVE_SLOW_STOP = 1 << 0,
    BEHAVE_SLOW_PULL = 1 << 1,
    BEHAVE_FAIL_PULL = 1 << 2,
    BEHAVE_CRASH = 1 << 3,
    BEHAVE_NEVER_READY = 1 << 4,
    BEHAVE_SAME_DIGEST = 1 << 5,
    BEHAVE_RENAME = 1 << 6,
    BEHAVE_EVICT = 1 << 7,
    BEHAVE_NODE_LOST = 1 << 8,
    BEHAVE_PENDING = 1 << 9,
    BEHAVE_OLD = 1 << 10,
    BEHAVE_DONE = 1 << 11, /* by image only */
};

enum { NEVER = 0 }; /* a timer that is not set */

enum restart_policy { RESTART_ALWAYS, RESTART_ON_FAILURE, RESTART_NEVER };

struct container_spec {
    char *name;
    char *image;
    bool is_init;    /* of initContainers */
    bool is_sidecar; /* of initContainers, restartable */
    bool has_readiness;
    bool readiness_is_exec; /* an error of an exec probe is no result */
    int64_t readiness_delay_us;
    int64_t readiness_period_us;
    int readiness_failures;
    bool has_startup;
    int64_t startup_period_us;
    bool cannot_start; /* its command does not exist */
};

struct readiness_gate {
    char *type;
    char *status; /* "True" ... of the pod's condition, NULL: there is none */
};

/* A pod's spec, and what is read with it, at one moment; shared by counting. Init containers come first. */
struct pod_spec {
    unsigned references;
    int64_t generation;
    uint64_t meta_hash; /* of labels and annotations */
    unsigned behaviour;
    enum restart_policy restart;
    int64_t grace_us;
    bool is_deleting;
    int64_t deletion_grace_us;
    struct container_spec *containers;
    size_t init_count;
    size_t container_count;
    struct readiness_gate *gates;
    size_t gate_count;
};

/* An image on the node: what a status says of it. Lives as long as the kubelet. */
struct image {
    char *key; /* the name, and what of the pod's behaviour bears on it */
    char *name;
    char *reported;
    char image_id[80];
    unsigned behaviour; /* what its name adds */
    bool is_present;
    UT_hash_handle hh;
};

enum run_state { RUN_NONE, RUN_RUNNING, RUN_EXITED };

/* One container in the runtime's sense: it starts once and ends once. */
struct instance {
    enum run_state state;
    uint8_t id[32];
    const struct image *image;
    int restarts;
    int64_t started_us;
    int64_t finished_us;
    int exit_code;
    const char *exit_reason;
};

/* What a delay between attempts is kept by: the container's restarts by its spec, pulls by the image. */
struct backoff {
    const struct image *image;
    int64_t delay_us;
    int64_t updated_us;
};
enum { BACKOFFS_MAX = 8 };

struct shown_container {
    struct instance now;
    struct instance last;
    const char *waiting; /* a reason; NULL: as now says */
    bool is_ready;
    bool is_started;
};

struct container {
    struct instance now;
    struct instance last;
    struct instance seen_now;
    struct instance seen_last;
    const char *reason; /* why the last attempt to start it failed; NULL: it did not */
    struct backoff restart_backoffs[BACKOFFS_MAX];
    struct backoff pull_backoffs[BACKOFFS_MAX];
    unsigned replaced;   /* how often a sync stopped it because its spec had changed */
    int64_t exit_due_us; /* it ends by itself */
    int exit_code;
    /* Readiness: the container that the prober knows, and what it thinks of it. */
    uint8_t probed_id[32];
    bool is_probed;
    bool readiness;
    int64_t ready_due_us;   /* a probe ends */
    int64_t unready_due_us; /* the prober finds it dead, or gives it up */
    /* Startup. */
    uint8_t startup_id[32];
    bool is_startup_probed;
    bool startup;
    int64_t startup_tick_us; /* the prober looks */
    int64_t startup_due_us;  /* a probe ends */
    struct shown_container shown;
};

enum condition_type {
    CONDITION_READY_TO_START,
    CONDITION_INITIALIZED,
    CONDITION_READY,
    CONDITION_CONTAINERS_READY,
    CONDITION_SCHEDULED,
    CONDITION_COUNT,
};

struct condition {
    bool is_set;
    bool is_true;
    const char *reason; /* or NULL */
    char *message;      /* or NULL */
    int64_t generation;
    int64_t since_us;
};

enum worker_state {
    WORKER_IDLE,
    WORKER_WAITING,   /* took an update, waits for a newer list of containers */
    WORKER_SYNCING,   /* a step of the sync is under way */
    WORKER_KILLING,   /* all containers are being stopped for good */
    WORKER_FINISHING, /* stopped; the final status and the deletion are to come */
    WORKER_GONE,      /* nothing is to be done any more */
};

enum step_kind { STEP_SANDBOX, STEP_KILL, STEP_START };
enum step_phase { PHASE_BEGIN, PHASE_PULLING, PHASE_STARTING, PHASE_RUNNING };
struct step {
    enum step_kind kind;
    size_t container;
};

struct pod {
    char *uid;
    char *namespace;
    char *name;
    char *node; /* NULL: not bound */
    unsigned node_index;
    bool is_ours;
    bool is_listed;           /* of the list under way */
    struct pod_spec *current; /* as the API server has it */
    struct pod_spec *pending; /* of an update that the worker has not taken */
    struct pod_spec *sync;    /* of the update that the worker works on */
    struct container *containers;
    size_t container_count;
    int64_t created_us;

    enum worker_state worker;
    int64_t worker_due_us;
    int64_t last_sync_us; /* end of the last sync; 0: none */
    struct step *steps;
    size_t step_count;
    size_t step;
    enum step_phase phase;
    int64_t kill_us; /* how long the stop under way takes */
    bool sync_started_something;
    bool sync_failed;
    int64_t retry_us; /* of a failed sync: when the back-off is over; 0: the usual */

    bool has_sandbox;
    bool seen_sandbox;
    int64_t observed_us; /* of the last list of this pod alone */
    int64_t relist_due_us;
    int64_t pleg_due_us; /* the next list of all will find a change */
    int64_t requeue_due_us;
    int64_t bind_due_us;
    int64_t evict_due_us;
    int64_t lost_due_us;
    bool is_evicted;

    /* The status. */
    int64_t shown_generation;
    const char *shown_phase; /* NULL: no status yet */
    struct condition conditions[CONDITION_COUNT];
    struct pod_spec *shown_spec; /* whose gates it read */
    char *ip;
    int64_t start_us;
    uint64_t posted_hash;
    int64_t version; /* the resourceVersion that was seen last */
    int64_t posted_us;
    int64_t post_due_us;

    int64_t next_us;
    size_t heap_index;
    UT_hash_handle hh;
};

struct kubelet {
    struct kubelet_options options;
    unsigned default_behaviour;
    char **nodes;
    unsigned node_count;
    unsigned next_node;
    unsigned next_ip;
    uint64_t random;
    int64_t now_us;
    struct image *images;
    struct pod *pods;
    struct pod **heap; /* by next_us */
    size_t heap_count;
    size_t heap_room;
};

/* --- kubelet.c --- */

uint64_t kubelet_random(struct kubelet *kubelet);
/* A duration with its random part. */
int64_t kubelet_vary(struct kubelet *kubelet, int64_t duration_us);
/* A time strictly after after_us at which all containers are listed. */
int64_t kubelet_next_list_us(const struct kubelet *kubelet, int64_t after_us);
int64_t kubelet_last_list_us(const struct kubelet *kubelet);
void heap_add(struct kubelet *kubelet, struct pod *pod);
void heap_remove(struct kubelet *kubelet, struct pod *pod);
/* After anything that sets a timer of the pod. */
void pod_schedule(struct kubelet *kubelet, struct pod *pod);

/* --- kubelet_pod.c --- */

void pod_free(struct pod *pod);

/* --- kubelet_spec.c --- */

struct pod_spec *pod_spec_read(const cJSON *pod, unsigned default_behaviour);
struct pod_spec *pod_spec_ref(struct pod_spec *spec);
void pod_spec_unref(struct pod_spec *spec);
/* 0 when a word is unknown: *ret is set to what is known. */
bool behaviour_read(const char *words, unsigned *ret);

/* --- kubelet_image.c --- */

/* As the runtime names it: registry, library and tag filled in. The caller's. */
char *image_normalise(const char *name);
struct image *image_get(struct kubelet *kubelet, const char *name, unsigned behaviour);
void images_free(struct kubelet *kubelet);

/* --- kubelet_runtime.c: the sync's work on containers --- */

/* What has to be done for sync's spec by what was seen; fills pod->steps. */
void runtime_plan(struct kubelet *kubelet, struct pod *pod);
/* Goes on with the steps. True when none is left; else pod->worker_due_us is set. */
bool runtime_go_on(struct kubelet *kubelet, struct pod *pod);
/* How long stopping everything takes. */
int64_t runtime_stop_all_us(struct kubelet *kubelet, struct pod *pod);
void runtime_stopped_all(struct kubelet *kubelet, struct pod *pod);
void container_exit(struct kubelet *kubelet, struct pod *pod, struct container *container, int exit_code,
                    const char *reason);
/* Whether it is to run again, by what is given of it. */
bool container_restarts(const struct pod_spec *spec, const struct container_spec *container,
                        const struct instance *instance);

/* --- kubelet_worker.c --- */

/* Something calls for a sync with the pod as it is now. */
void pod_trigger(struct kubelet *kubelet, struct pod *pod);
void pod_relist(struct kubelet *kubelet, struct pod *pod, bool alone);
void pod_worker_run(struct kubelet *kubelet, struct pod *pod);
/* A container or the sandbox changed outside a list. */
void pod_changed(struct kubelet *kubelet, struct pod *pod);

/* --- kubelet_prober.c --- */

/* The status shows containers anew: probes begin, end or look again. */
void prober_look(struct kubelet *kubelet, struct pod *pod);
bool prober_is_started(const struct pod *pod, size_t index);
bool prober_is_ready(const struct pod *pod, size_t index);
void prober_container_ended(struct kubelet *kubelet, struct pod *pod, struct container *container);
/* Does one thing that is due; false: nothing is. */
bool prober_run(struct kubelet *kubelet, struct pod *pod, struct container *container);

/* --- kubelet_status.c --- */

/* The status by what was seen of the containers and by spec, which it keeps. ending: all were stopped for
 * good. */
void status_generate(struct kubelet *kubelet, struct pod *pod, struct pod_spec *spec, bool ending);
/* One container's readiness changed outside a sync: its flag and the conditions that follow from it. */
void status_set_ready(struct kubelet *kubelet, struct pod *pod, struct container *container, bool ready);
void status_set_started(struct kubelet *kubelet, struct pod *pod, struct container *container, bool started);
void status_set_sandbox(struct kubelet *kubelet, struct pod *pod);
void status_set_lost(struct kubelet *kubelet, struct pod *pod);
/* The server shows an older state again: what was posted since is posted anew. */
void status_set_forgotten(struct kubelet *kubelet, struct pod *pod);
/* Ready as it follows from these; *ret_message is the caller's (or NULL). */
bool ready_condition(const struct pod_spec *spec, const bool *container_ready, const char **ret_reason,
                     char **ret_message);
void status_post(struct kubelet *kubelet, struct pod *pod);

/* --- kubelet_json.c --- */

/* The status as the API server takes it; the caller's. */
cJSON *status_json(const struct kubelet *kubelet, const struct pod *pod);
/* Takes over what a status says: a pod that ran before the kubelet was started. */
void status_adopt(struct kubelet *kubelet, struct pod *pod, const cJSON *object);
