/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/fact.h"

#include "kube/object.h"
#include "neoset/fact_read.h"
#include "neoset/kubelet_reason.h"
#include "neoset/selector.h"

/* Of what a kubelet says, in bytes. */
enum { TROUBLE_MAX = 200 };

/* Strings that are a pod's own live behind it in one block; the first pass counts, the second copies. */
struct block {
    char *at; /* NULL in the counting pass */
    size_t size;
    size_t room; /* in the copying pass */
};

static const char *block_add(struct block *block, const char *text)
{
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    /* Only an object with two containers of one name wants more than was counted. */
    if (block->at && size > block->room - block->size)
        return NULL;
    const char *copy = block->at ? block->at + block->size : NULL;
    if (block->at)
        memcpy(block->at + block->size, text, size);
    block->size += size;
    return copy;
}

static const char *filled(const char *text)
{
    return text && *text ? text : NULL;
}

static enum tristate condition_status(const cJSON *condition)
{
    const char *status = json_str(condition, "status");
    if (str_equal(status, "True"))
        return IS_TRUE;
    return status ? IS_FALSE : IS_UNKNOWN;
}

static enum pod_phase read_phase(const cJSON *status)
{
    static const char *const names[] = {"", "Pending", "Running", "Succeeded", "Failed"};
    const char *phase = json_str(status, "phase");
    for (size_t i = 1; i < ARRAY_SIZE(names); i++)
        if (str_equal(names[i], phase))
            return (enum pod_phase)i;
    return POD_PHASE_NONE;
}

/* --- containers ----------------------------------------------------------------------------------------- */

static bool is_sidecar(const cJSON *init_container)
{
    return str_equal(json_str(init_container, "restartPolicy"), "Always");
}

/* At most 255, and only those with a name: the server lets no others in. */
static size_t count_containers(const cJSON *spec)
{
    size_t count = 0;
    const cJSON *container = NULL;
    cJSON_ArrayForEach (container, json_get(spec, "containers"))
        count += json_str(container, "name") != NULL;
    cJSON_ArrayForEach (container, json_get(spec, "initContainers"))
        count += is_sidecar(container) && json_str(container, "name");
    return MIN(count, (size_t)UINT8_MAX);
}

static void read_state(struct container_fact *fact, struct intern *pool, const cJSON *status)
{
    static const struct {
        const char *key;
        enum container_state state;
    } states[] = {
        {"running", CONTAINER_RUNNING}, {"waiting", CONTAINER_WAITING}, {"terminated", CONTAINER_TERMINATED}};
    const cJSON *state = json_get(status, "state");
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        const cJSON *detail = json_get(state, states[i].key);
        if (!cJSON_IsObject(detail))
            continue;
        fact->state = (uint8_t)states[i].state;
        fact->reason = intern_get(pool, filled(json_str(detail, "reason")));
        if (states[i].state == CONTAINER_RUNNING)
            fact->started_us = fact_read_time(json_str(detail, "startedAt"));
        return;
    }
}

/* Line breaks and what is too long for a sentence are left out. */
static char *one_line(const char *text)
{
    char *copy = xstrndup(text, TROUBLE_MAX);
    for (char *at = copy; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
    return copy;
}

/* "exit code 3; back-off 40s restarting failed container=m ...": of a container that waits; NULL: nothing is
 * told. The caller's. */
static char *trouble_text(const cJSON *status)
{
    const cJSON *waiting = json_path(status, "state", "waiting", NULL);
    const char *message = filled(json_str(waiting, "message"));
    const cJSON *ended = json_path(status, "lastState", "terminated", NULL);
    int64_t exit_code = 0;
    bool ended_badly = json_int64(ended, "exitCode", &exit_code);
    const char *reason = json_str(ended, "reason");
    if (!waiting || (!message && !ended_badly))
        return NULL;
    CLEANUP_FREE char *line = one_line(message ? message : "");
    if (!ended_badly)
        return STEAL(line);
    bool is_plain = !reason || str_equal(reason, "Error") || str_equal(reason, "Completed");
    return xasprintf("exit code %lld%s%s%s%s", (long long)exit_code, is_plain ? "" : ", ",
                     is_plain ? "" : reason, *line ? "; " : "", line);
}

static enum pull_policy read_pull_policy(const cJSON *container)
{
    static const char *const names[] = {"", "IfNotPresent", "Always", "Never"};
    const char *policy = json_str(container, "imagePullPolicy");
    for (size_t i = 1; i < ARRAY_SIZE(names); i++)
        if (str_equal(names[i], policy))
            return (enum pull_policy)i;
    return PULL_UNSAID;
}

static void read_container(struct container_fact *fact, struct intern *pool, struct block *block,
                           const cJSON *container, const cJSON *status)
{
    fact->name = intern_get(pool, json_str(container, "name"));
    fact->spec_image = intern_get(pool, json_str(container, "image"));
    fact->pull_policy = (uint8_t)read_pull_policy(container);
    const cJSON *probe = json_get(container, "startupProbe");
    if (cJSON_IsObject(probe))
        fact->startup_period_s = fact_read_int(probe, "periodSeconds", 1, 10);
    fact->image = intern_get(pool, filled(json_str(status, "image")));
    fact->image_id = intern_get(pool, filled(json_str(status, "imageID")));
    fact->container_id = block_add(block, filled(json_str(status, "containerID")));
    CLEANUP_FREE char *trouble = trouble_text(status);
    fact->trouble = block_add(block, trouble);
    fact->restart_count = fact_read_int(status, "restartCount", 0, 0);
    fact->ready = json_bool_or(status, "ready", false);
    fact->started = json_bool_or(status, "started", false);
    read_state(fact, pool, status);
}

static void read_containers(struct pod_fact *fact, struct block *block, const cJSON *object)
{
    const cJSON *spec = json_get(object, "spec");
    const cJSON *status = json_get(object, "status");
    static const char *const lists[][2] = {{"containers", "containerStatuses"},
                                           {"initContainers", "initContainerStatuses"}};
    size_t at = 0;
    for (size_t list = 0; list < ARRAY_SIZE(lists); list++) {
        const cJSON *statuses = json_get(status, lists[list][1]);
        const cJSON *container = NULL;
        cJSON_ArrayForEach (container, json_get(spec, lists[list][0])) {
            const char *name = json_str(container, "name");
            if (!name || (list == 1 && !is_sidecar(container)) || at == fact->container_count)
                continue;
            fact->containers[at].sidecar = list == 1;
            read_container(&fact->containers[at++], fact->pool, block, container,
                           fact_find_item(statuses, "name", name));
        }
    }
}

/* --- conditions ----------------------------------------------------------------------------------------- */

static void read_drain(struct pod_fact *fact, const char *text)
{
    struct gate_message message;
    if (gate_message_parse(text, &message))
        fact->drained_for = intern_get(fact->pool, filled(message.target));
    gate_message_done(&message);
}

static void read_conditions(struct pod_fact *fact, const cJSON *object)
{
    const cJSON *conditions = json_path(object, "status", "conditions", NULL);
    const cJSON *ready = fact_find_item(conditions, "type", "Ready");
    const cJSON *gate = fact_find_item(conditions, "type", NEOSET_GATE);
    fact->ready = (uint8_t)condition_status(ready);
    fact->ready_changed_us = fact_read_time(json_str(ready, "lastTransitionTime"));
    fact->scheduled = (uint8_t)condition_status(fact_find_item(conditions, "type", "PodScheduled"));
    fact->gate = (uint8_t)condition_status(gate);
    fact->gate_changed_us = fact_read_time(json_str(gate, "lastTransitionTime"));
    if (fact->gate == IS_FALSE)
        read_drain(fact, json_str(gate, "message"));
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_path(object, "spec", "readinessGates", NULL)) {
        const char *type = json_str(item, "conditionType");
        if (str_equal(type, NEOSET_GATE))
            fact->has_gate = true;
        else if (type && condition_status(fact_find_item(conditions, "type", type)) != IS_TRUE)
            fact->foreign_gate_down = true;
    }
}

/* Why an image could not be fetched, in the registry's words. "Back-off pulling image ..." alone says
 * nothing, and newer kubelets repeat the words behind it. Only of pods that fetch images: others live without
 * it. */
static const char *read_words(const cJSON *object)
{
    static const char marker[] = "ErrImagePull: ";
    size_t length = 0;
    const char *name = json_path_str(object, "metadata", "name", NULL);
    if (!name || !neoset_split_prefetch_name(name, &length))
        return NULL;
    const cJSON *status = NULL;
    cJSON_ArrayForEach (status, json_path(object, "status", "containerStatuses", NULL)) {
        const cJSON *waiting = json_path(status, "state", "waiting", NULL);
        const char *reason = json_str(waiting, "reason"), *message = filled(json_str(waiting, "message"));
        const char *behind = message ? strstr(message, marker) : NULL;
        if (!kubelet_reason_is_pull(reason) || (str_equal(reason, "ImagePullBackOff") && !behind))
            continue;
        return behind ? behind + strlen(marker) : message ? message : reason;
    }
    return NULL;
}

/* The containers that our condition names, when it belongs to the update that the annotation tells of. */
static size_t read_witness(const struct pod_fact *fact, const cJSON *object, uint64_t *hashes, size_t max)
{
    const cJSON *conditions = json_path(object, "status", "conditions", NULL);
    const char *text = json_str(fact_find_item(conditions, "type", NEOSET_GATE), "message");
    struct gate_message message;
    size_t count = SIZE_MAX;
    if (fact->state && fact->state->step && gate_message_parse(text, &message) &&
        (str_equal(message.update, fact->state->step) ||
         (message.update && str_equal(message.update, fact->state->witness)))) {
        count = 0;
        const cJSON *node = NULL;
        cJSON_ArrayForEach (node, message.containers) {
            if (cJSON_IsString(node) && !str_equal(node->valuestring, "none") && count < max)
                hashes[count++] = text_hash64(node->valuestring);
        }
    }
    if (fact->state && fact->state->step)
        gate_message_done(&message);
    return count;
}

/* --- the pod -------------------------------------------------------------------------------------------- */

static void read_metadata(struct pod_fact *fact, struct block *block, const cJSON *object)
{
    const cJSON *metadata = json_get(object, "metadata");
    const cJSON *annotations = json_get(metadata, "annotations");
    fact->name = block_add(block, json_str(metadata, "name"));
    fact->uid = block_add(block, json_str(metadata, "uid"));
    fact->version = block_add(block, json_str(metadata, "resourceVersion"));
    fact->step = block_add(block, json_str(annotations, NEOSET_STEP_ANNOTATION));
    fact->words = block_add(block, read_words(object));
}

static void count_block(struct block *block, const cJSON *object)
{
    struct pod_fact unused = {0};
    read_metadata(&unused, block, object);
    static const char *const lists[] = {"containerStatuses", "initContainerStatuses"};
    for (size_t list = 0; list < ARRAY_SIZE(lists); list++) {
        const cJSON *status = NULL;
        cJSON_ArrayForEach (status, json_path(object, "status", lists[list], NULL)) {
            CLEANUP_FREE char *trouble = trouble_text(status);
            block_add(block, filled(json_str(status, "containerID")));
            block_add(block, trouble);
        }
    }
}

static void read_owner(struct pod_fact *fact, const cJSON *object)
{
    const cJSON *owner = NULL;
    cJSON_ArrayForEach (owner, json_path(object, "metadata", "ownerReferences", NULL)) {
        if (!json_bool_or(owner, "controller", false))
            continue;
        const char *kind = json_str(owner, "kind"), *name = json_str(owner, "name");
        CLEANUP_FREE char *text = xasprintf("%s %s", kind ? kind : "", name ? name : "");
        fact->owner = intern_get(fact->pool, text);
        return;
    }
}

static void read_rest(struct pod_fact *fact, const cJSON *object)
{
    struct intern *pool = fact->pool;
    const cJSON *metadata = json_get(object, "metadata");
    const cJSON *spec = json_get(object, "spec");
    const cJSON *status = json_get(object, "status");
    size_t length = 0;
    if (!neoset_split_pod_name(json_str(metadata, "name"), &length, &fact->ordinal))
        fact->ordinal = -1;
    fact->namespace = intern_get(pool, json_str(metadata, "namespace"));
    fact->owner_uid = intern_get(pool, kube_object_controller_uid(object));
    read_owner(fact, object);
    CLEANUP_FREE char *labels = labels_print(json_get(metadata, "labels"));
    fact->labels = intern_get(pool, labels);
    fact->revision = intern_get(pool, json_str(json_get(metadata, "labels"), NEOSET_REVISION_LABEL));
    fact->node = intern_get(pool, filled(json_str(spec, "nodeName")));
    fact->reason = intern_get(pool, filled(json_str(status, "reason")));
    fact->generation = json_int64_or(metadata, "generation", 0);
    fact->observed_generation = json_int64_or(status, "observedGeneration", 0);
    fact->created_us = fact_read_time(json_str(metadata, "creationTimestamp"));
    fact->deleting = json_str(metadata, "deletionTimestamp") != NULL;
    fact->deletion_us = fact_read_time(json_str(metadata, "deletionTimestamp"));
    fact->grace_seconds = fact_read_int(spec, "terminationGracePeriodSeconds", 0, 30);
    fact->phase = (uint8_t)read_phase(status);
    fact->state =
        in_place_state_parse(pool, json_str(json_get(metadata, "annotations"), NEOSET_STATE_ANNOTATION));
    read_conditions(fact, object);
}

struct pod_fact *pod_fact_make(struct intern *pool, const cJSON *object)
{
    const char *name = json_path_str(object, "metadata", "name", NULL);
    if (!name || !*name)
        return NULL;
    struct pod_fact first = {.pool = pool};
    read_rest(&first, object);
    uint64_t hashes[UINT8_MAX];
    size_t witnesses = read_witness(&first, object, hashes, ARRAY_SIZE(hashes));
    first.witnessed = witnesses != SIZE_MAX;
    first.witness_count = (uint8_t)(first.witnessed ? witnesses : 0);
    first.container_count = (uint8_t)count_containers(json_get(object, "spec"));

    struct block block = {0};
    count_block(&block, object);
    size_t containers_size = first.container_count * sizeof(*first.containers);
    size_t witness_size = first.witness_count * sizeof(*first.witness);
    char *memory = xcalloc(1, sizeof(first) + containers_size + witness_size + block.size);
    struct pod_fact *fact = (struct pod_fact *)(void *)memory;
    *fact = first;
    fact->containers = (struct container_fact *)(void *)(memory + sizeof(first));
    uint64_t *witness = (uint64_t *)(void *)(memory + sizeof(first) + containers_size);
    memcpy(witness, hashes, witness_size);
    fact->witness = witness;
    block = (struct block){.at = memory + sizeof(first) + containers_size + witness_size, .room = block.size};
    read_metadata(fact, &block, object);
    read_containers(fact, &block, object);
    return fact;
}

void pod_fact_free(struct pod_fact *fact)
{
    if (!fact)
        return;
    struct intern *pool = fact->pool;
    for (size_t i = 0; i < fact->container_count; i++) {
        intern_put(pool, fact->containers[i].name);
        intern_put(pool, fact->containers[i].spec_image);
        intern_put(pool, fact->containers[i].image);
        intern_put(pool, fact->containers[i].image_id);
        intern_put(pool, fact->containers[i].reason);
    }
    intern_put(pool, fact->namespace);
    intern_put(pool, fact->owner_uid);
    intern_put(pool, fact->owner);
    intern_put(pool, fact->labels);
    intern_put(pool, fact->revision);
    intern_put(pool, fact->node);
    intern_put(pool, fact->reason);
    intern_put(pool, fact->drained_for);
    in_place_state_free(fact->state);
    free(fact);
}

const struct container_fact *pod_fact_container(const struct pod_fact *pod, const char *name)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (str_equal(pod->containers[i].name, name))
            return &pod->containers[i];
    return NULL;
}

bool pod_fact_probes_ready(const struct pod_fact *pod)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (!pod->containers[i].ready)
            return false;
    return pod->container_count > 0;
}

int pod_fact_restarts(const struct pod_fact *pod)
{
    int64_t sum = 0;
    for (size_t i = 0; i < pod->container_count; i++)
        sum += pod->containers[i].restart_count;
    return (int)MIN(sum, (int64_t)INT32_MAX);
}
