/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kubelet_parts.h"

static const struct {
    const char *word;
    unsigned flag;
} words[] = {
    {"ok", 0},
    {"slow-stop", BEHAVE_SLOW_STOP},
    {"slow-pull", BEHAVE_SLOW_PULL},
    {"fail-pull", BEHAVE_FAIL_PULL},
    {"crash", BEHAVE_CRASH},
    {"never-ready", BEHAVE_NEVER_READY},
    {"same-digest", BEHAVE_SAME_DIGEST},
    {"rename", BEHAVE_RENAME},
    {"evict", BEHAVE_EVICT},
    {"node-lost", BEHAVE_NODE_LOST},
    {"pending", BEHAVE_PENDING},
    {"old", BEHAVE_OLD},
};

bool behaviour_read(const char *text, unsigned *ret)
{
    unsigned flags = 0;
    bool known = true;
    while (*text) {
        size_t length = strcspn(text, ",");
        bool found = false;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
            if (strlen(words[i].word) == length && strncmp(words[i].word, text, length) == 0) {
                flags |= words[i].flag;
                found = true;
            }
        }
        known = known && found;
        text += length;
        text += *text == ',';
    }
    *ret = flags;
    return known;
}

bool kubelet_behaviour_is_known(const char *behaviour)
{
    unsigned flags;
    return behaviour && *behaviour && behaviour_read(behaviour, &flags);
}

const char *kubelet_behaviour_words(void)
{
    return "ok, slow-stop, slow-pull, fail-pull, crash, never-ready, same-digest, rename, evict, node-lost, "
           "pending, old";
}

const char *kubelet_behaviour_help(void)
{
    return "What a pod goes through is told by its annotation kubesim.neo.io/behaviour (words, parted by\n"
           "commas), else by --kubelet or --behaviour; its images add to that:\n"
           "  word         image               what happens\n"
           "  ok                               nothing special\n"
           "  slow-stop                        ignores SIGTERM: each stop takes the whole grace period\n"
           "  slow-pull    *slow*              a pull takes long\n"
           "  fail-pull    tag none*           ErrImagePull, ImagePullBackOff\n"
           "  crash        tag crash*          exits with 3, again and again: CrashLoopBackOff\n"
           "               tag done*           exits with 0\n"
           "  never-ready  tag unready*        runs, the readiness probe fails\n"
           "  same-digest  tags X and Xsame    have one digest\n"
           "  rename                           the reported image is another tag of the digest\n"
           "  evict                            the node evicts it after a while: phase Failed\n"
           "  node-lost                        its node falls silent\n"
           "  pending                          no node takes it\n"
           "  old                              a kubelet of 1.33: no observedGeneration\n"
           "Examples:\n"
           "  kubectl set image statefulset/db db=mysql:none           cannot be pulled\n"
           "  kubectl set image statefulset/db db=mysql:crash-8.2      crashes, again and again\n"
           "  kubectl set image statefulset/db db=mysql:unready-8.2    never gets ready\n"
           "  kubectl annotate pod db-0 kubesim.neo.io/behaviour=slow-stop,evict\n";
}

static int64_t seconds_of(const cJSON *object, const char *key, int64_t fallback_s)
{
    int64_t seconds = json_int64_or(object, key, fallback_s);
    return MAX(seconds, 0) * US_PER_S;
}

static void read_readiness(struct container_spec *container, const cJSON *probe)
{
    container->has_readiness = true;
    container->readiness_is_exec = json_get(probe, "exec") != NULL;
    container->readiness_delay_us = seconds_of(probe, "initialDelaySeconds", 0);
    container->readiness_period_us = MAX(seconds_of(probe, "periodSeconds", 10), US_PER_S);
    int64_t failures = json_int64_or(probe, "failureThreshold", 3);
    container->readiness_failures = (int)MAX(MIN(failures, 1000), 1);
}

static void read_container(struct container_spec *container, const cJSON *tree, bool is_init)
{
    const char *name = json_str(tree, "name");
    const char *image = json_str(tree, "image");
    container->name = xstrdup(name ? name : "");
    container->image = xstrdup(image ? image : "");
    container->is_init = is_init;
    container->is_sidecar = is_init && str_equal(json_str(tree, "restartPolicy"), "Always");
    const cJSON *readiness = json_get(tree, "readinessProbe");
    if (cJSON_IsObject(readiness))
        read_readiness(container, readiness);
    const cJSON *startup = json_get(tree, "startupProbe");
    container->has_startup = cJSON_IsObject(startup);
    container->startup_period_us = MAX(seconds_of(startup, "periodSeconds", 10), US_PER_S);
    const cJSON *command = json_get(tree, "command");
    const cJSON *first = command ? command->child : NULL;
    container->cannot_start =
        first && cJSON_IsString(first) && str_starts_with(first->valuestring, "/neoset-prefetch");
}

static void read_containers(struct pod_spec *spec, const cJSON *tree)
{
    const cJSON *inits = json_get(tree, "initContainers");
    const cJSON *mains = json_get(tree, "containers");
    size_t count = (size_t)cJSON_GetArraySize(inits) + (size_t)cJSON_GetArraySize(mains);
    spec->containers = xcalloc(MAX(count, 1), sizeof(*spec->containers));
    const cJSON *item;
    cJSON_ArrayForEach (item, inits)
        read_container(&spec->containers[spec->container_count++], item, true);
    spec->init_count = spec->container_count;
    cJSON_ArrayForEach (item, mains)
        read_container(&spec->containers[spec->container_count++], item, false);
}

static void read_gates(struct pod_spec *spec, const cJSON *pod)
{
    const cJSON *gates = json_path(pod, "spec", "readinessGates", NULL);
    const cJSON *conditions = json_path(pod, "status", "conditions", NULL);
    spec->gates = xcalloc((size_t)MAX(cJSON_GetArraySize(gates), 1), sizeof(*spec->gates));
    const cJSON *item;
    cJSON_ArrayForEach (item, gates) {
        const char *type = json_str(item, "conditionType");
        if (!type)
            continue;
        struct readiness_gate *gate = &spec->gates[spec->gate_count++];
        gate->type = xstrdup(type);
        const cJSON *condition;
        cJSON_ArrayForEach (condition, conditions)
            if (str_equal(json_str(condition, "type"), type))
                str_replace(&gate->status, json_str(condition, "status"));
    }
}

/* FNV-1a: only equality matters. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 1099511628211ULL;
    return hash;
}

static uint64_t hash_of_meta(const cJSON *meta)
{
    uint64_t hash = 14695981039346656037ULL;
    static const char *const keys[] = {"labels", "annotations"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const cJSON *member = json_get(meta, keys[i]);
        CLEANUP_FREE char *text = member ? json_print_sorted(member) : xstrdup("-");
        hash = hash_text(hash, text);
    }
    return hash;
}

struct pod_spec *pod_spec_read(const cJSON *pod, unsigned default_behaviour)
{
    const cJSON *meta = json_get(pod, "metadata");
    const cJSON *tree = json_get(pod, "spec");
    struct pod_spec *spec = xcalloc(1, sizeof(*spec));
    spec->references = 1;
    spec->generation = json_int64_or(meta, "generation", 0);
    spec->meta_hash = hash_of_meta(meta);
    spec->behaviour = default_behaviour;
    const char *behaviour = json_path_str(meta, "annotations", "kubesim.neo.io/behaviour", NULL);
    if (behaviour)
        behaviour_read(behaviour, &spec->behaviour);
    spec->behaviour |= default_behaviour & BEHAVE_OLD;
    const char *restart = json_str(tree, "restartPolicy");
    if (str_equal(restart, "Never"))
        spec->restart = RESTART_NEVER;
    else if (str_equal(restart, "OnFailure"))
        spec->restart = RESTART_ON_FAILURE;
    spec->grace_us = seconds_of(tree, "terminationGracePeriodSeconds", 30);
    spec->is_deleting = json_str(meta, "deletionTimestamp") != NULL;
    spec->deletion_grace_us = seconds_of(meta, "deletionGracePeriodSeconds", 0);
    read_containers(spec, tree);
    read_gates(spec, pod);
    return spec;
}

struct pod_spec *pod_spec_ref(struct pod_spec *spec)
{
    spec->references++;
    return spec;
}

void pod_spec_unref(struct pod_spec *spec)
{
    if (!spec || --spec->references > 0)
        return;
    for (size_t i = 0; i < spec->container_count; i++) {
        free(spec->containers[i].name);
        free(spec->containers[i].image);
    }
    for (size_t i = 0; i < spec->gate_count; i++) {
        free(spec->gates[i].type);
        free(spec->gates[i].status);
    }
    free(spec->containers);
    free(spec->gates);
    free(spec);
}
