/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/fact.h"

#include "neoset/defaults.h"
#include "neoset/fact_read.h"
#include "neoset/selector.h"

/* A pod that is out of service for longer serves nobody. */
enum { GRACE_PERIOD_MAX_S = 86400 };

/* --- spec ----------------------------------------------------------------------------------------------- */

/* The first problem stays: one sentence is enough to act on. */
static void __attribute__((format(printf, 2, 3))) complain(struct neoset_fact *fact, const char *format, ...)
{
    if (fact->problem)
        return;
    va_list args;
    va_start(args, format);
    fact->problem = xvasprintf(format, args);
    va_end(args);
}

/* An integer member between minimum and maximum; absent or null: fallback. */
static int read_int_up_to(struct neoset_fact *fact, const cJSON *object, const char *key, int minimum,
                          int maximum, int fallback, const char *path)
{
    const cJSON *node = json_get(object, key);
    if (!node || cJSON_IsNull(node))
        return fallback;
    int64_t number = 0;
    if (json_node_int64(node, &number) && number >= minimum && number <= maximum)
        return (int)number;
    if (maximum == INT32_MAX)
        complain(fact, "%s must be an integer of at least %d.", path, minimum);
    else
        complain(fact, "%s must be an integer from %d to %d.", path, minimum, maximum);
    return fallback;
}

static int read_int(struct neoset_fact *fact, const cJSON *object, const char *key, int minimum, int fallback,
                    const char *path)
{
    return read_int_up_to(fact, object, key, minimum, INT32_MAX, fallback, path);
}

/* Absent or null: false. */
static bool read_bool(struct neoset_fact *fact, const cJSON *object, const char *key, const char *path)
{
    const cJSON *node = json_get(object, key);
    if (node && !cJSON_IsNull(node) && !cJSON_IsBool(node))
        complain(fact, "%s must be true or false.", path);
    return cJSON_IsTrue(node);
}

/* Absent or null: NULL. What else is no object would be read as if it were not there. */
static const cJSON *read_object(struct neoset_fact *fact, const cJSON *object, const char *key,
                                const char *path)
{
    const cJSON *node = json_get(object, key);
    if (node && !cJSON_IsNull(node) && !cJSON_IsObject(node))
        complain(fact, "%s must be an object.", path);
    return cJSON_IsObject(node) ? node : NULL;
}

/* Which of the two texts; absent or null: the first. */
static bool read_second(struct neoset_fact *fact, const cJSON *object, const char *key, const char *first,
                        const char *second, const char *path)
{
    const cJSON *node = json_get(object, key);
    if (!node || cJSON_IsNull(node))
        return false;
    const char *text = cJSON_IsString(node) ? node->valuestring : "";
    if (str_equal(text, second))
        return true;
    if (!str_equal(text, first))
        complain(fact, "%s must be %s or %s.", path, first, second);
    return false;
}

/* Absent or null: IfPossible. */
static enum neoset_prefetch read_prefetch(struct neoset_fact *fact, const cJSON *in_place)
{
    static const char *const texts[] = {
        [NEOSET_PREFETCH_IF_POSSIBLE] = "IfPossible",
        [NEOSET_PREFETCH_NEVER] = "Never",
        [NEOSET_PREFETCH_REQUIRED] = "Required",
    };
    const cJSON *node = json_get(in_place, "prefetch");
    if (!node || cJSON_IsNull(node))
        return NEOSET_PREFETCH_IF_POSSIBLE;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (cJSON_IsString(node) && str_equal(node->valuestring, texts[i]))
            return (enum neoset_prefetch)i;
    complain(fact, "spec.updateStrategy.inPlaceUpdateStrategy.prefetch must be IfPossible, Never or "
                   "Required.");
    return NEOSET_PREFETCH_NEVER;
}

/* maxUnavailable: a number of at least 1, or "1%" to "100%" of replicas, rounded down, at least 1. */
static int read_budget(struct neoset_fact *fact, const cJSON *strategy, int replicas)
{
    const cJSON *node = json_get(strategy, "maxUnavailable");
    if (!node || cJSON_IsNull(node))
        return 1;
    int64_t number = 0;
    if (json_node_int64(node, &number) && number >= 1 && number <= INT32_MAX)
        return (int)number;
    if (cJSON_IsString(node)) {
        const char *text = node->valuestring;
        size_t digits = strspn(text, "0123456789");
        bool is_percent = digits >= 1 && digits <= 3 && str_equal(text + digits, "%");
        long percent = is_percent ? strtol(text, NULL, 10) : 0;
        if (percent >= 1 && percent <= 100)
            return (int)MAX((int64_t)replicas * percent / 100, 1);
    }
    complain(fact,
             "spec.updateStrategy.maxUnavailable must be a number of at least 1 or a percentage from 1%% to "
             "100%%.");
    return 1;
}

static void read_strategy(struct neoset_fact *fact, const cJSON *spec_node)
{
    struct neoset_spec *spec = &fact->spec;
    const cJSON *strategy = read_object(fact, spec_node, "updateStrategy", "spec.updateStrategy");
    const cJSON *in_place =
        read_object(fact, strategy, "inPlaceUpdateStrategy", "spec.updateStrategy.inPlaceUpdateStrategy");
    spec->strategy = read_second(fact, strategy, "type", "InPlace", "Recreate", "spec.updateStrategy.type")
                         ? NEOSET_RECREATE
                         : NEOSET_IN_PLACE;
    spec->partition = read_int(fact, strategy, "partition", 0, 0, "spec.updateStrategy.partition");
    spec->budget = read_budget(fact, strategy, spec->replicas);
    spec->pause = read_bool(fact, strategy, "pause", "spec.updateStrategy.pause");
    spec->readiness = read_second(fact, in_place, "readiness", "Probe", "Ready",
                                  "spec.updateStrategy.inPlaceUpdateStrategy.readiness")
                          ? NEOSET_READY
                          : NEOSET_PROBE;
    spec->readiness_timeout_seconds =
        read_int(fact, in_place, "readinessTimeoutSeconds", 1, 300,
                 "spec.updateStrategy.inPlaceUpdateStrategy.readinessTimeoutSeconds");
    spec->grace_period_seconds =
        read_int_up_to(fact, in_place, "gracePeriodSeconds", 0, GRACE_PERIOD_MAX_S, 0,
                       "spec.updateStrategy.inPlaceUpdateStrategy.gracePeriodSeconds");
    spec->prefetch = read_prefetch(fact, in_place);
}

static void read_spec(struct neoset_fact *fact, const cJSON *node)
{
    struct neoset_spec *spec = &fact->spec;
    const cJSON *ordinals = read_object(fact, node, "ordinals", "spec.ordinals");
    const cJSON *retention = read_object(fact, node, "persistentVolumeClaimRetentionPolicy",
                                         "spec.persistentVolumeClaimRetentionPolicy");
    spec->replicas = read_int(fact, node, "replicas", 0, 1, "spec.replicas");
    spec->start = read_int(fact, ordinals, "start", 0, 0, "spec.ordinals.start");
    if (spec->replicas > NEOSET_REPLICAS_MAX) {
        complain(fact, "spec.replicas must be at most %d.", NEOSET_REPLICAS_MAX);
        spec->replicas = NEOSET_REPLICAS_MAX;
    }
    if (spec->start > INT32_MAX - spec->replicas) {
        complain(fact, "spec.ordinals.start is too large.");
        spec->start = 0;
    }
    spec->management =
        read_second(fact, node, "podManagementPolicy", "OrderedReady", "Parallel", "spec.podManagementPolicy")
            ? NEOSET_PARALLEL
            : NEOSET_ORDERED_READY;
    spec->min_ready_seconds = read_int(fact, node, "minReadySeconds", 0, 0, "spec.minReadySeconds");
    spec->history_limit = read_int(fact, node, "revisionHistoryLimit", 0, 10, "spec.revisionHistoryLimit");
    spec->delete_claims_with_set = read_second(fact, retention, "whenDeleted", "Retain", "Delete",
                                               "spec.persistentVolumeClaimRetentionPolicy.whenDeleted");
    spec->delete_claims_scaled = read_second(fact, retention, "whenScaled", "Retain", "Delete",
                                             "spec.persistentVolumeClaimRetentionPolicy.whenScaled");
    read_strategy(fact, node);
}

static void read_selector(struct neoset_fact *fact, const cJSON *spec)
{
    const cJSON *selector = json_get(spec, "selector");
    fact->selector_text = selector_print(selector);
    fact->selector = cJSON_IsObject(selector) ? json_print(selector) : NULL;
    const cJSON *labels = json_path(spec, "template", "metadata", "labels", NULL);
    if (!fact->selector_text)
        complain(fact,
                 "spec.selector cannot be read: each expression needs a key and one of In, NotIn, Exists, "
                 "DoesNotExist.");
    else if (!*fact->selector_text)
        complain(fact, "spec.selector is empty: it must select the pods of the template.");
    else if (!selector_matches(selector, labels))
        complain(fact, "spec.selector does not match the labels of spec.template.");
    const cJSON *match = json_get(selector, "matchLabels");
    fact->match_labels = cJSON_IsObject(match) ? json_print(match) : NULL;
}

static void read_containers(struct neoset_fact *fact, const cJSON *pod_spec)
{
    const cJSON *containers = json_get(pod_spec, "containers");
    const cJSON *first = cJSON_IsArray(containers) ? containers->child : NULL;
    if (!first)
        complain(fact, "spec.template.spec.containers is empty.");
    const cJSON *container = NULL;
    cJSON_ArrayForEach (container, containers) {
        if (!json_str(container, "name") || !json_str(container, "image"))
            complain(fact, "a container in spec.template.spec.containers has no name or no image.");
        else if (fact_find_item(containers, "name", json_str(container, "name")) != container)
            complain(fact, "two containers in spec.template.spec.containers are named %s.",
                     json_str(container, "name"));
    }
    const char *image = json_str(first, "image");
    fact->first_image = xstrdup(image ? image : "");
}

static void read_template(struct neoset_fact *fact, const cJSON *spec)
{
    const cJSON *template = json_get(spec, "template");
    const cJSON *pod_spec = json_get(template, "spec");
    read_containers(fact, pod_spec);
    if (!cJSON_IsObject(template))
        return;
    const char *restart = json_str(pod_spec, "restartPolicy");
    if (restart && !str_equal(restart, "Always"))
        complain(fact, "spec.template.spec.restartPolicy must be Always.");
    fact->template_text = json_print(template);
    defaults_digest_template(template, fact->template_digest);
}

/* It is the name of a volume of the pod: a DNS label. */
enum { CLAIM_TEMPLATE_NAME_MAX = 63 };

static struct claim_template read_claim_template(const char *name, const cJSON *json)
{
    struct claim_template template = {.name = xstrdup(name), .text = json_print(json)};
    const cJSON *size = json_path(json, "spec", "resources", "requests", "storage", NULL);
    if (quantity_read(size, &template.size_value, &template.size, NULL) < 0)
        str_replace(&template.size, NULL);
    return template;
}

static void read_claim_templates(struct neoset_fact *fact, const cJSON *spec)
{
    const cJSON *templates = json_get(spec, "volumeClaimTemplates");
    if (templates && !cJSON_IsNull(templates) && !cJSON_IsArray(templates))
        complain(fact, "spec.volumeClaimTemplates must be a list.");
    size_t count = cJSON_IsArray(templates) ? (size_t)cJSON_GetArraySize(templates) : 0;
    fact->claim_templates = xcalloc(count + 1, sizeof(*fact->claim_templates));
    const cJSON *template = NULL;
    cJSON_ArrayForEach (template, templates) {
        const char *name = json_path_str(template, "metadata", "name", NULL);
        if (!name || !*name) {
            complain(fact, "a claim template in spec.volumeClaimTemplates has no name.");
            continue;
        }
        if (strlen(name) > CLAIM_TEMPLATE_NAME_MAX) {
            complain(fact,
                     "a claim template in spec.volumeClaimTemplates has a name of more than 63 characters.");
            continue;
        }
        for (size_t i = 0; i < fact->claim_template_count; i++)
            if (str_equal(fact->claim_templates[i].name, name))
                complain(fact, "two claim templates in spec.volumeClaimTemplates are named %s.", name);
        if (fact->claim_template_count < count)
            fact->claim_templates[fact->claim_template_count++] = read_claim_template(name, template);
    }
}

/* The pod's name is a label value, and its own hostname: 63 characters. */
static void check_name(struct neoset_fact *fact)
{
    int last = fact->spec.start + MAX(fact->spec.replicas - 1, 0);
    CLEANUP_FREE char *pod = xasprintf("%s-%d", fact->name, last);
    if (strlen(pod) > 63)
        complain(fact, "the name is too long: the pod name %s has more than 63 characters.", pod);
}

/* --- status --------------------------------------------------------------------------------------------- */

/* Sorted. */
static const char *const described_keys[] = {
    "availableReplicas",
    "conditions",
    "currentRevision",
    "currentUpdatePod",
    "effectiveMaxUnavailable",
    "expectedUpdatedReplicas",
    "labelSelector",
    "lastUpdateTime",
    "message",
    "observedGeneration",
    "phase",
    "readyReplicas",
    "replicas",
    "updatedAvailableReplicas",
    "updatedReadyReplicas",
    "updatedReplicas",
};

char *neoset_described_text(const cJSON *status)
{
    return json_print_members(status, described_keys, ARRAY_SIZE(described_keys));
}

static void read_ordinals(struct ordinals *list, const cJSON *array)
{
    const cJSON *item = NULL;
    if (!cJSON_IsArray(array))
        return;
    cJSON_ArrayForEach (item, array) {
        int64_t number = -1;
        if (json_node_int64(item, &number) && number >= 0 && number <= INT32_MAX)
            ordinals_add(list, (int)number);
    }
}

static char *filled_copy(const cJSON *object, const char *key)
{
    const char *text = json_str(object, key);
    return text && *text ? xstrdup(text) : NULL;
}

static void read_deciding(struct neoset_deciding *deciding, const cJSON *status)
{
    deciding->stable = filled_copy(status, "currentRevisionName");
    deciding->target = filled_copy(status, "updateRevisionName");
    deciding->present = deciding->target != NULL;
    deciding->stable_proven = json_bool_or(status, "currentRevisionProven", false);
    /* A stage that is not there opens nothing. */
    deciding->stage = fact_read_int(status, "currentPartition", 0, INT32_MAX);
    deciding->collision_count = fact_read_int(status, "collisionCount", 0, 0);
    read_ordinals(&deciding->done, json_get(status, "doneOrdinals"));
    read_ordinals(&deciding->left, json_get(status, "leftStableOrdinals"));
    deciding->current_image = filled_copy(status, "currentImage");
    deciding->target_image = filled_copy(status, "targetImage");
}

/* Anybody may have written more; NULL: none. */
static char *read_proven(const cJSON *status)
{
    CLEANUP_JSON cJSON *names = json_new_array();
    int count = 0;
    const cJSON *item = NULL;
    const cJSON *list = json_get(status, "provenRevisionNames");
    if (!cJSON_IsArray(list))
        return NULL;
    cJSON_ArrayForEach (item, list) {
        if (count == NEOSET_PROVEN_MAX)
            break;
        if (!cJSON_IsString(item) || strlen(item->valuestring) > NEOSET_PROVEN_NAME_MAX)
            continue;
        json_append_str(names, item->valuestring);
        count++;
    }
    return count > 0 ? json_print(names) : NULL;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* What may change without a new generation. */
static void read_changing(struct neoset_fact *fact, const cJSON *object)
{
    const cJSON *metadata = json_get(object, "metadata");
    const char *adopts = json_path_str(metadata, "annotations", NEOSET_ADOPTS_ANNOTATION, NULL);
    const cJSON *status = json_get(object, "status");
    const cJSON *conditions = json_get(status, "conditions");
    fact->version = xstrdup_or_null(json_str(metadata, "resourceVersion"));
    fact->deleting = json_str(metadata, "deletionTimestamp") != NULL;
    fact->waits_for_pods = adopts && !str_ends_with(adopts, NEOSET_ADOPTS_GONE);
    read_deciding(&fact->deciding, status);
    fact->described = neoset_described_text(status);
    fact->conditions = cJSON_IsArray(conditions) ? json_print(conditions) : NULL;
    fact->proven = read_proven(status);
    fact->last_update = filled_copy(status, "lastUpdateTime");
    if (str_equal(json_str(status, "phase"), "Failed"))
        fact->failure = filled_copy(status, "message");
    fact->failed_revision = json_int64_or(status, "currentRevision", 0);
}

static void forget_changing(struct neoset_fact *fact)
{
    char **const texts[] = {&fact->version, &fact->described,   &fact->conditions,
                            &fact->proven,  &fact->last_update, &fact->failure};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        str_replace(texts[i], NULL);
    neoset_deciding_done(&fact->deciding);
}

struct neoset_fact *neoset_fact_make(struct intern *pool, const cJSON *object)
{
    const cJSON *metadata = json_get(object, "metadata");
    const char *name = json_str(metadata, "name");
    const char *namespace = json_str(metadata, "namespace");
    if (!name || !*name || !namespace || !*namespace)
        return NULL;
    struct neoset_fact *fact = xcalloc(1, sizeof(*fact));
    fact->pool = pool;
    fact->name = xstrdup(name);
    fact->namespace = xstrdup(namespace);
    fact->uid = xstrdup_or_null(json_str(metadata, "uid"));
    fact->generation = json_int64_or(metadata, "generation", 0);
    const cJSON *spec = json_get(object, "spec");
    const cJSON *service_node = json_get(spec, "serviceName");
    const char *service = json_str(spec, "serviceName");
    if (service_node && !cJSON_IsNull(service_node) && !service)
        complain(fact, "spec.serviceName must be a text.");
    fact->service_name = xstrdup(service ? service : "");
    read_spec(fact, spec);
    read_template(fact, spec);
    read_selector(fact, spec);
    read_claim_templates(fact, spec);
    check_name(fact);
    read_changing(fact, object);
    return fact;
}

bool neoset_fact_renew(struct neoset_fact *fact, const cJSON *object)
{
    const cJSON *metadata = json_get(object, "metadata");
    int64_t generation = json_int64_or(metadata, "generation", 0);
    if (generation == 0 || generation != fact->generation || !fact->uid ||
        !str_equal(json_str(metadata, "uid"), fact->uid))
        return false;
    forget_changing(fact);
    read_changing(fact, object);
    return true;
}

void neoset_fact_free(struct neoset_fact *fact)
{
    if (!fact)
        return;
    char *const texts[] = {fact->namespace,     fact->name,         fact->uid,           fact->version,
                           fact->problem,       fact->service_name, fact->selector_text, fact->match_labels,
                           fact->template_text, fact->first_image,  fact->described,     fact->conditions,
                           fact->last_update,   fact->selector,     fact->proven,        fact->failure};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free(texts[i]);
    for (size_t i = 0; i < fact->claim_template_count; i++) {
        free(fact->claim_templates[i].name);
        free(fact->claim_templates[i].text);
        free(fact->claim_templates[i].size);
    }
    free(fact->claim_templates);
    neoset_deciding_done(&fact->deciding);
    free(fact);
}
