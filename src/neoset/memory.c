/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/memory.h"

#include "base/time_text.h"
#include "neoset/bounded_list.h"
#include "neoset/completion.h"
#include "neoset/prefetch.h"

#define PROBE_FIRST_US (5 * US_PER_S)
#define PROBE_MOST_US (300 * US_PER_S)
#define REPAIR_FIRST_US (10 * US_PER_S)
#define REPAIR_MOST_US (300 * US_PER_S)
/* A pod that lived this long had a good life: the next failure starts the back-off again. */
#define REPAIR_FORGET_US (600 * US_PER_S)
enum { LOOKUPS_MAX = 16, REPAIRS_MAX = 256, PREFETCHES_MAX = 512, CRASHES_MAX = 256 };

struct lookup {
    struct lookup *next;
    char *revision;
    enum lookup_state state;
    int64_t since_boot_us;
    int64_t asked_boot_us;
};

/* Re-creations of one ordinal's failed pod. */
struct repair {
    struct repair *next;
    int ordinal;
    int count;
    int64_t last_boot_us;
};

/* A container in a crash loop. Texts but the trouble are remembered by their text_hash64(). */
struct crash {
    struct crash *next;
    int ordinal;
    uint64_t uid;
    uint64_t step; /* the key of the pod's last update; 0: none */
    uint64_t container;
    char *trouble; /* as of container_fact; NULL */
};

struct neoset_memory {
    struct pod_observation *pods; /* sorted by ordinal */
    size_t pod_count;
    size_t pod_room;
    struct refusals *refusals;
    struct lookup *lookups;
    size_t lookup_count;
    int64_t retention_generation;
    struct repair *repairs; /* the oldest first */
    size_t repair_count;
    struct crash *crashes; /* the oldest first */
    size_t crash_count;
    struct prefetch_observation *prefetches; /* the oldest first */
    size_t prefetch_count;
    char *probe_revision;
    char *probe_words;
    bool probe_accepted;
    int probe_refused; /* in a row */
    int64_t probe_again_boot_us;
};

struct neoset_memory *neoset_memory_make(void)
{
    struct neoset_memory *memory = xcalloc(1, sizeof(*memory));
    memory->refusals = refusals_make();
    return memory;
}

static void free_lookup(struct lookup *lookup)
{
    free(lookup->revision);
    free(lookup);
}

static void free_prefetch(struct prefetch_observation *prefetch)
{
    free(prefetch->name);
    free(prefetch->words);
    free(prefetch);
}

static void free_crash(struct neoset_memory *memory, struct crash *crash)
{
    LL_DELETE(memory->crashes, crash);
    memory->crash_count--;
    free(crash->trouble);
    free(crash);
}

static void drop_update(struct pod_observation *pod)
{
    if (pod->update)
        json_delete(pod->update->witness);
    free(pod->update);
    pod->update = NULL;
}

static void free_pod(struct pod_observation *pod)
{
    drop_update(pod);
    free(pod->containers);
}

void neoset_memory_free(struct neoset_memory *memory)
{
    if (!memory)
        return;
    for (size_t i = 0; i < memory->pod_count; i++)
        free_pod(&memory->pods[i]);
    free(memory->pods);
    refusals_free(memory->refusals);
    struct lookup *lookup = NULL, *next_lookup = NULL;
    LL_FOREACH_SAFE (memory->lookups, lookup, next_lookup)
        free_lookup(lookup);
    struct repair *repair = NULL, *next_repair = NULL;
    LL_FOREACH_SAFE (memory->repairs, repair, next_repair)
        free(repair);
    struct prefetch_observation *prefetch = NULL, *next_prefetch = NULL;
    LL_FOREACH_SAFE (memory->prefetches, prefetch, next_prefetch)
        free_prefetch(prefetch);
    while (memory->crashes)
        free_crash(memory, memory->crashes);
    free(memory->probe_revision);
    free(memory->probe_words);
    free(memory);
}

/* --- pods ----------------------------------------------------------------------------------------------- */

static size_t find_pod(const struct neoset_memory *memory, int ordinal)
{
    size_t low = 0, high = memory->pod_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memory->pods[middle].ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct pod_observation *neoset_memory_pod(const struct neoset_memory *memory, int ordinal,
                                                const char *uid)
{
    size_t at = find_pod(memory, ordinal);
    if (!uid || at == memory->pod_count || memory->pods[at].ordinal != ordinal ||
        memory->pods[at].uid != text_hash64(uid))
        return NULL;
    return &memory->pods[at];
}

const struct container_observation *pod_observation_container(const struct pod_observation *pod,
                                                              const char *name)
{
    for (size_t i = 0; pod && i < pod->container_count; i++)
        if (pod->containers[i].name == text_hash64(name))
            return &pod->containers[i];
    return NULL;
}

static uint64_t uid_of(const struct pod_fact *pod)
{
    return text_hash64(pod->uid ? pod->uid : "");
}

static uint64_t update_of(const struct pod_fact *pod)
{
    return pod->state && pod->state->step ? text_hash64(pod->state->step) : 0;
}

static struct crash *find_crash(const struct neoset_memory *memory, int ordinal)
{
    struct crash *crash = NULL;
    LL_SEARCH_SCALAR(memory->crashes, crash, ordinal, ordinal);
    return crash;
}

const struct container_fact *neoset_memory_crash(const struct neoset_memory *memory,
                                                 const struct pod_fact *pod, const char **ret_trouble)
{
    const struct crash *crash = find_crash(memory, pod->ordinal);
    if (!crash || crash->uid != uid_of(pod) || crash->step != update_of(pod))
        return NULL;
    *ret_trouble = crash->trouble;
    for (size_t i = 0; i < pod->container_count; i++)
        if (text_hash64(pod->containers[i].name) == crash->container)
            return &pod->containers[i];
    return NULL;
}

static struct crash *ensure_crash(struct neoset_memory *memory, int ordinal)
{
    struct crash *crash = find_crash(memory, ordinal);
    if (crash)
        return crash;
    if (memory->crash_count == CRASHES_MAX)
        free_crash(memory, memory->crashes);
    crash = xcalloc(1, sizeof(*crash));
    crash->ordinal = ordinal;
    LL_APPEND(memory->crashes, crash);
    memory->crash_count++;
    return crash;
}

static void observe_crash(struct neoset_memory *memory, const struct pod_fact *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct container_fact *container = &pod->containers[i];
        if (container->state != CONTAINER_WAITING || !str_equal(container->reason, "CrashLoopBackOff"))
            continue;
        struct crash *crash = ensure_crash(memory, pod->ordinal);
        crash->uid = uid_of(pod);
        crash->step = update_of(pod);
        crash->container = text_hash64(container->name);
        str_replace(&crash->trouble, container->trouble);
        return;
    }
}

void neoset_forget_pod(struct neoset_memory *memory, int ordinal)
{
    struct crash *crash = find_crash(memory, ordinal);
    if (crash)
        free_crash(memory, crash);
    size_t at = find_pod(memory, ordinal);
    if (at == memory->pod_count || memory->pods[at].ordinal != ordinal)
        return;
    free_pod(&memory->pods[at]);
    memmove(&memory->pods[at], &memory->pods[at + 1], (memory->pod_count - at - 1) * sizeof(*memory->pods));
    memory->pod_count--;
}

static struct pod_observation *ensure_pod(struct neoset_memory *memory, int ordinal)
{
    size_t at = find_pod(memory, ordinal);
    if (at < memory->pod_count && memory->pods[at].ordinal == ordinal)
        return &memory->pods[at];
    if (memory->pod_count == memory->pod_room) {
        memory->pod_room = memory->pod_room ? memory->pod_room + memory->pod_room / 2 + 1 : 4;
        memory->pods = xreallocarray(memory->pods, memory->pod_room, sizeof(*memory->pods));
    }
    memmove(&memory->pods[at + 1], &memory->pods[at], (memory->pod_count - at) * sizeof(*memory->pods));
    memory->pod_count++;
    memory->pods[at] = (struct pod_observation){.ordinal = ordinal};
    return &memory->pods[at];
}

/* A wall time on the boot clock: never in the future, as far as our own clocks go. */
static int64_t on_boot_clock(int64_t at_us, int64_t wall_us, int64_t boot_us)
{
    int64_t ago_us = at_us > 0 ? wall_us - at_us : 0;
    return boot_us - MAX(ago_us, 0);
}

static void set_since(int64_t *since, bool holds, int64_t from_us)
{
    if (!holds)
        *since = NEOSET_NEVER;
    else if (*since == NEOSET_NEVER)
        *since = from_us;
}

/* At first sight the objects' own times tell since when; later only our clock does. */
static void start_pod(struct pod_observation *seen, const struct pod_fact *pod, int64_t wall_us,
                      int64_t boot_us)
{
    int64_t ready_since = on_boot_clock(pod->ready_changed_us, wall_us, boot_us);
    int64_t gate_since = on_boot_clock(pod->gate_changed_us, wall_us, boot_us);
    bool ready = pod->ready == IS_TRUE;
    seen->uid = uid_of(pod);
    seen->seen_boot_us = boot_us;
    seen->ready_boot_us = ready ? ready_since : NEOSET_NEVER;
    seen->not_ready_boot_us = ready ? NEOSET_NEVER : ready_since;
    seen->gate_false_boot_us = pod->gate == IS_FALSE ? gate_since : NEOSET_NEVER;
    seen->drained_boot_us = !ready && pod->gate == IS_FALSE ? MAX(ready_since, gate_since) : NEOSET_NEVER;
    seen->probes_boot_us = !pod_fact_probes_ready(pod) ? NEOSET_NEVER : ready ? ready_since : boot_us;
    seen->writes = (struct write_history){0};
    seen->proven_step = 0;
    seen->proven_boot_us = NEOSET_NEVER;
    free_pod(seen);
    seen->containers = NULL;
    seen->container_count = 0;
}

static struct container_observation *ensure_container(struct pod_observation *seen, const char *name)
{
    uint64_t hash = text_hash64(name);
    for (size_t i = 0; i < seen->container_count; i++)
        if (seen->containers[i].name == hash)
            return &seen->containers[i];
    seen->containers = xreallocarray(seen->containers, seen->container_count + 1, sizeof(*seen->containers));
    struct container_observation *added = &seen->containers[seen->container_count++];
    *added = (struct container_observation){.name = hash};
    return added;
}

static void observe_containers(struct pod_observation *seen, const struct pod_fact *pod, int64_t boot_us)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct container_fact *container = &pod->containers[i];
        if (container->startup_period_s == 0 || !container->container_id)
            continue;
        struct container_observation *known = ensure_container(seen, container->name);
        uint64_t id = text_hash64(container->container_id);
        if (known->container_id != id)
            *known = (struct container_observation){
                .name = known->name, .container_id = id, .first_boot_us = boot_us};
        if (!container->started)
            known->seen_not_started = true;
    }
}

/* When an update that was done before we looked was proven at the latest. */
static int64_t proof_time(const struct pod_fact *pod, int64_t wall_us, int64_t boot_us)
{
    int64_t at_us = MAX(pod->ready_changed_us, pod->gate_changed_us);
    for (size_t i = 0; i < pod->container_count; i++)
        at_us = MAX(at_us, pod->containers[i].started_us);
    return on_boot_clock(at_us, wall_us, boot_us);
}

static void observe_proof(struct pod_observation *seen, const struct pod_fact *pod, bool first,
                          int64_t wall_us, int64_t boot_us)
{
    uint64_t step = update_of(pod);
    if (step == 0 || seen->proven_step == step)
        return;
    struct completion completion;
    completion_judge(pod, seen, boot_us, &completion);
    if (!completion.done)
        return;
    seen->proven_step = step;
    seen->proven_boot_us = first ? proof_time(pod, wall_us, boot_us) : boot_us;
}

/* The record may be refused because others write the pod just then: what was true of the first version is so
 * later, when the new container is there already. What an old kubelet has seen nobody knows: a newer one in
 * its place must not prove anything by it. */
static void observe_update(struct pod_observation *seen, const struct pod_fact *pod, int64_t boot_us)
{
    uint64_t step = update_of(pod);
    bool is_unproven = step != 0 && seen->proven_step != step;
    if (!is_unproven || !seen->update || seen->update->step != step)
        drop_update(seen);
    if (!is_unproven)
        return;
    if (!seen->update) {
        seen->update = xmalloc(sizeof(*seen->update));
        *seen->update = (struct pod_update){.step = step, .since_boot_us = boot_us};
    }
    struct pod_update *update = seen->update;
    if (pod->witnessed)
        json_delete(STEAL(update->witness));
    else if (!update->witness && completion_is_seen(pod) && !completion_is_old_kubelet(pod))
        update->witness = completion_witness(pod);
}

void neoset_observe_pod(struct neoset_memory *memory, const struct pod_fact *pod, int64_t wall_us,
                        int64_t boot_us)
{
    if (pod->ordinal < 0)
        return;
    struct pod_observation *seen = ensure_pod(memory, pod->ordinal);
    bool first = seen->uid != uid_of(pod);
    if (first)
        start_pod(seen, pod, wall_us, boot_us);
    bool ready = pod->ready == IS_TRUE;
    set_since(&seen->ready_boot_us, ready, boot_us);
    set_since(&seen->not_ready_boot_us, !ready, boot_us);
    set_since(&seen->probes_boot_us, pod_fact_probes_ready(pod), boot_us);
    set_since(&seen->gate_false_boot_us, pod->gate == IS_FALSE, boot_us);
    set_since(&seen->drained_boot_us, !ready && pod->gate == IS_FALSE, boot_us);
    observe_containers(seen, pod, boot_us);
    observe_crash(memory, pod);
    observe_proof(seen, pod, first, wall_us, boot_us);
    observe_update(seen, pod, boot_us);
}

void neoset_observe_time(struct neoset_memory *memory, const struct pod_fact *const *pods, size_t pod_count,
                         int64_t wall_us, int64_t boot_us)
{
    for (size_t i = 0; i < pod_count; i++) {
        if (!neoset_memory_pod(memory, pods[i]->ordinal, pods[i]->uid))
            continue;
        struct pod_observation *seen = ensure_pod(memory, pods[i]->ordinal);
        observe_proof(seen, pods[i], false, wall_us, boot_us);
    }
}

/* --- pods that fetch images --------------------------------------------------------------------------- */

static struct prefetch_observation *find_prefetch(const struct neoset_memory *memory, const char *name)
{
    struct prefetch_observation *prefetch = NULL;
    LL_FOREACH (memory->prefetches, prefetch) {
        if (str_equal(prefetch->name, name))
            return prefetch;
    }
    return NULL;
}

const struct prefetch_observation *neoset_memory_prefetch(const struct neoset_memory *memory,
                                                          const char *name)
{
    return find_prefetch(memory, name);
}

void neoset_observe_prefetch(struct neoset_memory *memory, const struct pod_fact *pod, int64_t boot_us)
{
    struct prefetch_observation *seen = find_prefetch(memory, pod->name);
    if (!seen) {
        seen = xcalloc(1, sizeof(*seen));
        seen->name = xstrdup(pod->name);
        seen->found_boot_us = NEOSET_NEVER;
        BOUNDED_LIST_APPEND(memory->prefetches, memory->prefetch_count, PREFETCHES_MAX, seen, free_prefetch);
    }
    if (prefetch_judge(pod) == PREFETCH_FOUND)
        seen->found_boot_us = boot_us;
    if (pod->words && !str_equal(pod->words, seen->words))
        str_replace(&seen->words, pod->words);
}

/* --- refusals ------------------------------------------------------------------------------------------- */

/* Kept with the pod's observation; NULL: it is no pod of the set that we know. */
static struct write_history *history_of(const struct neoset_memory *memory, enum kube_resource resource,
                                        const char *name)
{
    size_t length = 0;
    int ordinal = 0;
    if (resource != KUBE_POD || !neoset_split_pod_name(name, &length, &ordinal))
        return NULL;
    size_t at = find_pod(memory, ordinal);
    bool known = at < memory->pod_count && memory->pods[at].ordinal == ordinal;
    return known ? &memory->pods[at].writes : NULL;
}

const struct refusal *neoset_memory_refusal(const struct neoset_memory *memory, enum kube_resource resource,
                                            const char *name, enum step_kind kind)
{
    return refusals_find(memory->refusals, resource, name, kind);
}

bool neoset_memory_is_flooded(const struct neoset_memory *memory, enum kube_resource resource,
                              const char *name, int64_t boot_us, int64_t *ret_until_boot_us)
{
    return refusals_is_flooded(memory->refusals, resource, name, history_of(memory, resource, name), boot_us,
                               ret_until_boot_us);
}

/* --- failed pods ---------------------------------------------------------------------------------------- */

static struct repair *find_repair(const struct neoset_memory *memory, int ordinal)
{
    struct repair *repair = NULL;
    LL_FOREACH (memory->repairs, repair) {
        if (repair->ordinal == ordinal)
            return repair;
    }
    return NULL;
}

static void note_repair(struct neoset_memory *memory, int ordinal, int64_t boot_us)
{
    struct repair *repair = find_repair(memory, ordinal);
    if (!repair) {
        repair = xcalloc(1, sizeof(*repair));
        repair->ordinal = ordinal;
        BOUNDED_LIST_APPEND(memory->repairs, memory->repair_count, REPAIRS_MAX, repair, free);
    }
    if (repair->count > 0 && boot_us - repair->last_boot_us > REPAIR_FORGET_US)
        repair->count = 0;
    repair->count++;
    repair->last_boot_us = boot_us;
}

int64_t neoset_memory_repair_after(const struct neoset_memory *memory, int ordinal)
{
    const struct repair *repair = find_repair(memory, ordinal);
    return repair ? repair->last_boot_us + refusals_backoff_us(REPAIR_FIRST_US, REPAIR_MOST_US, repair->count)
                  : 0;
}

/* --- outcomes ------------------------------------------------------------------------------------------- */

void neoset_note_outcome(struct neoset_memory *memory, const struct step_outcome *outcome, int64_t boot_us)
{
    const struct kube_ref *target = &outcome->target;
    if (!target->name || outcome->kind == JOURNAL_UNKNOWN)
        return;
    refusals_note(memory->refusals, outcome, history_of(memory, target->resource, target->name), boot_us);
    size_t length = 0;
    int ordinal = 0;
    if (outcome->kind == JOURNAL_APPLIED && outcome->step_kind == STEP_DELETE &&
        target->resource == KUBE_POD &&
        str_starts_with(outcome->fingerprint ? outcome->fingerprint : "", "repair") &&
        neoset_split_pod_name(target->name, &length, &ordinal))
        note_repair(memory, ordinal, boot_us);
}

/* --- templates tried ------------------------------------------------------------------------------------ */

void neoset_note_probe(struct neoset_memory *memory, const char *revision, bool accepted, const char *words,
                       int64_t boot_us)
{
    if (!str_equal(memory->probe_revision, revision)) {
        str_replace(&memory->probe_revision, revision);
        memory->probe_refused = 0;
    }
    memory->probe_accepted = accepted;
    memory->probe_refused = accepted ? 0 : memory->probe_refused + 1;
    str_replace(&memory->probe_words, words);
    memory->probe_again_boot_us =
        boot_us + refusals_backoff_us(PROBE_FIRST_US, PROBE_MOST_US, memory->probe_refused);
}

enum probe_state neoset_memory_probe(const struct neoset_memory *memory, const char *revision,
                                     const char **ret_words, int64_t *ret_again_boot_us)
{
    if (!revision || !str_equal(memory->probe_revision, revision))
        return PROBE_UNKNOWN;
    if (memory->probe_accepted)
        return PROBE_ACCEPTED;
    *ret_words = memory->probe_words;
    *ret_again_boot_us = memory->probe_again_boot_us;
    return PROBE_REFUSED;
}

/* --- revisions looked up, owners of claims -------------------------------------------------------------- */

static struct lookup *find_lookup(const struct neoset_memory *memory, const char *revision)
{
    struct lookup *lookup = NULL;
    LL_FOREACH (memory->lookups, lookup) {
        if (str_equal(lookup->revision, revision))
            return lookup;
    }
    return NULL;
}

void neoset_note_lookup(struct neoset_memory *memory, const char *revision, enum lookup_state state,
                        int64_t boot_us)
{
    struct lookup *lookup = find_lookup(memory, revision);
    if (!lookup) {
        lookup = xcalloc(1, sizeof(*lookup));
        lookup->revision = xstrdup(revision);
        lookup->state = LOOKUP_UNKNOWN;
        BOUNDED_LIST_APPEND(memory->lookups, memory->lookup_count, LOOKUPS_MAX, lookup, free_lookup);
    }
    if (lookup->state != state)
        lookup->since_boot_us = boot_us;
    lookup->state = state;
    lookup->asked_boot_us = boot_us;
}

enum lookup_state neoset_memory_lookup(const struct neoset_memory *memory, const char *revision,
                                       int64_t *ret_since_boot_us, int64_t *ret_asked_boot_us)
{
    const struct lookup *lookup = find_lookup(memory, revision);
    if (!lookup)
        return LOOKUP_UNKNOWN;
    *ret_since_boot_us = lookup->since_boot_us;
    *ret_asked_boot_us = lookup->asked_boot_us;
    return lookup->state;
}

void neoset_note_retention(struct neoset_memory *memory, int64_t generation)
{
    memory->retention_generation = generation;
}

int64_t neoset_memory_retention(const struct neoset_memory *memory)
{
    return memory->retention_generation;
}
