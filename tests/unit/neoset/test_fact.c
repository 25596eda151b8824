/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts from objects: what is read, and that nothing a server may send makes reading fail. */
#include "neoset/fact.h"
#include "neoset/memory.h"

#include "pool.h"

#include <stdio.h>

#define US 1000000LL

static const char pod_text[] =
    "{\"metadata\":{\"name\":\"db-3\",\"namespace\":\"default\",\"uid\":\"u-3\",\"resourceVersion\":\"77\","
    "\"generation\":4,\"creationTimestamp\":\"2027-01-15T08:00:00Z\",\"labels\":{\"controller-revision-"
    "hash\":"
    "\"db-abc\"},\"annotations\":{\"apps.neo.io/step\":\"k-7\",\"apps.neo.io/"
    "in-place-state\":\"{\\\"step\\\":"
    "\\\"k-7\\\",\\\"target\\\":\\\"db-abc\\\",\\\"containers\\\":{\\\"main\\\":{\\\"image\\\":\\\"a:1\\\","
    "\\\"containerID\\\":\\\"c://0\\\"}}}\"},\"ownerReferences\":[{\"uid\":\"other\"},{\"uid\":\"set\","
    "\"controller\":true}]},\"spec\":{\"nodeName\":\"n1\",\"terminationGracePeriodSeconds\":45,"
    "\"readinessGates\":"
    "[{\"conditionType\":\"apps.neo.io/"
    "in-place-ready\"},{\"conditionType\":\"lb\"}],\"initContainers\":[{\"name\":"
    "\"init\",\"image\":\"i:1\"},{\"name\":\"side\",\"image\":\"s:1\",\"restartPolicy\":\"Always\"}],"
    "\"containers\":["
    "{\"name\":\"main\",\"image\":\"a:2\",\"startupProbe\":{\"periodSeconds\":7}},{\"name\":\"log\","
    "\"image\":"
    "\"l:1\"}]},\"status\":{\"phase\":\"Running\",\"reason\":\"Evicted\",\"observedGeneration\":4,"
    "\"conditions\":[{"
    "\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"2027-01-15T08:00:05Z\"},{\"type\":"
    "\"PodScheduled\",\"status\":\"True\"},{\"type\":\"apps.neo.io/"
    "in-place-ready\",\"status\":\"True\",\"message\":"
    "\"{\\\"update\\\":\\\"k-7\\\",\\\"containers\\\":{\\\"main\\\":\\\"c://0\\\"}}\",\"lastTransitionTime\":"
    "\"2027-01-15T08:00:04Z\"}],\"containerStatuses\":[{\"name\":\"log\",\"ready\":false,\"restartCount\":2,"
    "\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}},{\"name\":\"main\",\"containerID\":\"c://1\","
    "\"imageID\":\"sha256:1\",\"image\":\"a:2\",\"ready\":true,\"started\":true,\"restartCount\":1,\"state\":"
    "{"
    "\"running\":{\"startedAt\":\"2027-01-15T08:00:01Z\"}}}],\"initContainerStatuses\":[{\"name\":\"side\","
    "\"containerID\":\"c://2\",\"ready\":true,\"started\":true,\"state\":{\"running\":{}}}]}}";

static const char set_text[] =
    "{\"metadata\":{\"name\":\"db\",\"namespace\":\"default\",\"uid\":\"set\",\"resourceVersion\":\"5\","
    "\"generation\":3},\"spec\":{\"replicas\":5,\"serviceName\":\"db\",\"selector\":{\"matchLabels\":{"
    "\"app\":\"db\"},"
    "\"matchExpressions\":[{\"key\":\"tier\",\"operator\":\"In\",\"values\":[\"a\",\"b\"]},{\"key\":\"x\","
    "\"operator\":"
    "\"DoesNotExist\"}]},\"template\":{\"metadata\":{\"labels\":{\"app\":\"db\",\"tier\":\"a\"}},\"spec\":{"
    "\"containers\":[{\"name\":\"main\",\"image\":\"a:2\"}]}},\"volumeClaimTemplates\":[{\"metadata\":{"
    "\"name\":"
    "\"data\"},\"spec\":{\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}],\"ordinals\":{\"start\":2},"
    "\"minReadySeconds\":4,\"podManagementPolicy\":\"Parallel\",\"revisionHistoryLimit\":3,"
    "\"persistentVolumeClaimRetentionPolicy\":{\"whenDeleted\":\"Delete\",\"whenScaled\":\"Retain\"},"
    "\"updateStrategy\":{\"type\":\"Recreate\",\"partition\":2,\"maxUnavailable\":\"50%\",\"pause\":true,"
    "\"inPlaceUpdateStrategy\":{\"readiness\":\"Ready\",\"readinessTimeoutSeconds\":60,"
    "\"gracePeriodSeconds\":9}}},"
    "\"status\":{\"currentRevisionName\":\"db-1\",\"currentRevisionProven\":true,\"updateRevisionName\":\"db-"
    "2\","
    "\"currentPartition\":4,\"doneOrdinals\":[5,3,3],\"leftStableOrdinals\":[],\"collisionCount\":1,"
    "\"currentImage\":"
    "\"a:1\",\"targetImage\":\"a:2\",\"phase\":\"Canary\",\"conditions\":[{\"type\":\"Available\",\"status\":"
    "\"True\"}],"
    "\"lastUpdateTime\":\"2027-01-15T08:00:00Z\",\"somethingElse\":1}}";

static const char revision_text[] =
    "{\"metadata\":{\"name\":\"db-abc\",\"namespace\":\"default\",\"uid\":\"r\",\"resourceVersion\":\"9\","
    "\"ownerReferences\":[{\"uid\":\"set\",\"controller\":true}]},\"revision\":3,\"data\":{\"spec\":{"
    "\"template\":{"
    "\"$patch\":\"replace\",\"metadata\":{\"labels\":{\"app\":\"db\"}},\"spec\":{\"containers\":[{\"name\":"
    "\"main\","
    "\"image\":\"a:2\"}]}}}}}";

static const char claim_text[] =
    "{\"metadata\":{\"name\":\"data-db-3\",\"namespace\":\"default\",\"uid\":\"c\",\"resourceVersion\":\"8\","
    "\"deletionTimestamp\":\"2027-01-15T08:00:00Z\",\"ownerReferences\":[{\"kind\":\"NeoSet\",\"uid\":"
    "\"set\"},{"
    "\"kind\":\"Pod\",\"uid\":\"p\"},{\"kind\":\"Backup\",\"uid\":\"b\",\"controller\":true}]},\"spec\":{"
    "\"resources\":{"
    "\"requests\":{\"storage\":\"1Gi\"}}}}";

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    assert_int_equal(json_parse(text, strlen(text), &tree, NULL), 0);
    return tree;
}

/* --- what is read --------------------------------------------------------------------------------------- */

static void a_pod_is_read_with_its_sidecars(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = parse(pod_text);
    struct pod_fact *pod = pod_fact_make(pool, object);
    assert_string_equal(pod->name, "db-3");
    assert_int_equal(pod->ordinal, 3);
    assert_string_equal(pod->uid, "u-3");
    assert_string_equal(pod->version, "77");
    assert_string_equal(pod->step, "k-7");
    assert_string_equal(pod->owner_uid, "set");
    assert_string_equal(pod->revision, "db-abc");
    assert_string_equal(pod->node, "n1");
    assert_string_equal(pod->reason, "Evicted");
    assert_int_equal(pod->generation, 4);
    assert_int_equal(pod->observed_generation, 4);
    assert_int_equal(pod->grace_seconds, 45);
    assert_int_equal(pod->phase, POD_RUNNING);
    assert_true(pod->has_gate && pod->foreign_gate_down && !pod->deleting);
    assert_int_equal(pod->ready, IS_TRUE);
    assert_int_equal(pod->gate, IS_TRUE);
    assert_int_equal(pod->container_count, 3);
    const struct container_fact *main_container = pod_fact_container(pod, "main");
    assert_string_equal(main_container->spec_image, "a:2");
    assert_string_equal(main_container->container_id, "c://1");
    assert_int_equal(main_container->startup_period_s, 7);
    assert_int_equal(main_container->state, CONTAINER_RUNNING);
    assert_string_equal(pod_fact_container(pod, "log")->reason, "CrashLoopBackOff");
    assert_true(pod_fact_container(pod, "side")->sidecar);
    assert_null(pod_fact_container(pod, "init"));
    assert_int_equal(pod_fact_restarts(pod), 3);
    assert_false(pod_fact_probes_ready(pod));
    assert_string_equal(pod->state->target, "db-abc");
    assert_true(pod->witnessed);
    assert_int_equal(pod->witness_count, 1);
    assert_true(pod->witness[0] == text_hash64("c://0"));
    pod_fact_free(pod);
}

static void a_set_is_read_with_its_status(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = parse(set_text);
    struct neoset_fact *set = neoset_fact_make(pool, object);
    assert_null(set->problem);
    assert_int_equal(set->spec.replicas, 5);
    assert_int_equal(set->spec.start, 2);
    assert_int_equal(set->spec.budget, 2);
    assert_int_equal(set->spec.partition, 2);
    assert_int_equal(set->spec.management, NEOSET_PARALLEL);
    assert_int_equal(set->spec.strategy, NEOSET_RECREATE);
    assert_int_equal(set->spec.readiness, NEOSET_READY);
    assert_int_equal(set->spec.readiness_timeout_seconds, 60);
    assert_int_equal(set->spec.grace_period_seconds, 9);
    assert_int_equal(set->spec.min_ready_seconds, 4);
    assert_int_equal(set->spec.history_limit, 3);
    assert_true(set->spec.pause && set->spec.delete_claims_with_set && !set->spec.delete_claims_scaled);
    assert_string_equal(set->selector_text, "app=db,tier in (a,b),!x");
    assert_int_equal(set->claim_template_count, 1);
    assert_string_equal(set->first_image, "a:2");
    assert_true(set->deciding.present && set->deciding.stable_proven);
    assert_int_equal(set->deciding.stage, 4);
    assert_int_equal(set->deciding.done.count, 2);
    assert_true(ordinals_has(&set->deciding.done, 3) && ordinals_has(&set->deciding.done, 5));
    assert_string_equal(set->described, "{\"conditions\":[{\"status\":\"True\",\"type\":\"Available\"}],"
                                        "\"lastUpdateTime\":\"2027-01-15T08:00:00Z\",\"phase\":\"Canary\"}");
    CLEANUP_JSON cJSON *deciding = neoset_deciding_json(&set->deciding);
    CLEANUP_FREE char *text = json_print(deciding);
    assert_string_equal(
        text, "{\"currentRevisionName\":\"db-1\",\"currentRevisionProven\":true,\"updateRevisionName\":"
              "\"db-2\",\"currentPartition\":4,\"collisionCount\":1,\"doneOrdinals\":[3,5],"
              "\"leftStableOrdinals\":[],\"currentImage\":\"a:1\",\"targetImage\":\"a:2\"}");
    neoset_fact_free(set);
}

/* Anybody may write a status; its size is bounded by the server alone. */
static void of_the_proven_revisions_so_many_are_kept(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = json_new_object();
    cJSON *metadata = json_add_object(object, "metadata");
    json_add_str(metadata, "name", "db");
    json_add_str(metadata, "namespace", "default");
    cJSON *status = json_add_object(object, "status");
    cJSON *names = json_add_array(status, "provenRevisionNames");
    json_append_int64(names, 7);
    CLEANUP_FREE char *long_name = xasprintf("%0300d", 0);
    json_append_str(names, long_name);
    for (int i = 0; i < 1000; i++) {
        CLEANUP_FREE char *name = xasprintf("db-%d", i);
        json_append_str(names, name);
    }
    struct neoset_fact *set = neoset_fact_make(pool, object);
    CLEANUP_JSON cJSON *kept = NULL;
    assert_int_equal(json_parse(set->proven, strlen(set->proven), &kept, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(kept), NEOSET_PROVEN_MAX);
    assert_true(json_has_str(kept, "db-0") && json_has_str(kept, "db-99"));
    neoset_fact_free(set);
    json_set_str(status, "provenRevisionNames", "db-1");
    set = neoset_fact_make(pool, object);
    assert_null(set->proven);
    neoset_fact_free(set);
}

/* What the server takes for a set, and more members of its spec. */
#define SMALLEST_SET(more)                                                                                   \
    "{\"metadata\":{\"name\":\"db\",\"namespace\":\"d\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"           \
    "\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"                                                \
    "\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},"                                                 \
    "\"spec\":{\"containers\":[{\"name\":\"m\",\"image\":\"i\"}]}}" more "}}"

/* It became the name of a claim, and one set that slipped past the schema ended the controller of them all.
 */
static void an_endless_claim_template_name_is_a_problem_not_a_crash(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = parse(SMALLEST_SET(",\"volumeClaimTemplates\":[{\"metadata\":{}}]"));
    CLEANUP_FREE char *name = xmalloc(500001);
    memset(name, 'a', 500000);
    name[500000] = '\0';
    cJSON *template = json_path(object, "spec", "volumeClaimTemplates", NULL)->child;
    json_add_str(json_get(template, "metadata"), "name", name);
    struct neoset_fact *set = neoset_fact_make(pool, object);
    assert_non_null(strstr(set->problem, "more than 63 characters"));
    assert_int_equal(set->claim_template_count, 0);
    neoset_fact_free(set);
}

static void defaults_are_the_documented_ones(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = parse(SMALLEST_SET(""));
    struct neoset_fact *set = neoset_fact_make(pool, object);
    assert_null(set->problem);
    assert_int_equal(set->spec.replicas, 1);
    assert_int_equal(set->spec.budget, 1);
    assert_int_equal(set->spec.partition, 0);
    assert_int_equal(set->spec.strategy, NEOSET_IN_PLACE);
    assert_int_equal(set->spec.readiness, NEOSET_PROBE);
    assert_int_equal(set->spec.readiness_timeout_seconds, 300);
    assert_int_equal(set->spec.history_limit, 10);
    assert_int_equal(set->spec.management, NEOSET_ORDERED_READY);
    assert_false(set->spec.pause);
    assert_false(set->deciding.present);
    neoset_fact_free(set);
}

static void a_revision_and_a_claim_are_read(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = parse(revision_text);
    struct revision_fact *revision = revision_fact_make(pool, object);
    assert_int_equal(revision->number, 3);
    assert_string_equal(revision->owner_uid, "set");
    assert_string_equal(revision->first_image, "a:2");
    assert_string_equal(revision->template_text,
                        "{\"metadata\":{\"labels\":{\"app\":\"db\"}},\"spec\":{\"containers\":"
                        "[{\"name\":\"main\",\"image\":\"a:2\"}]}}");
    revision_fact_free(revision);
    CLEANUP_JSON cJSON *claim_object = parse(claim_text);
    struct claim_fact *claim = claim_fact_make(pool, claim_object);
    assert_true(claim->deleting);
    assert_string_equal(claim->set_owner_uid, "set");
    assert_string_equal(claim->pod_owner_uid, "p");
    assert_string_equal(claim->controller_uid, "b");
    assert_string_equal(claim->request, "1Gi");
    claim_fact_free(claim);
}

/* --- anything goes -------------------------------------------------------------------------------------- */

typedef void *fact_make(struct intern *facts_pool, const cJSON *object);
typedef void fact_free(void *fact);

static void *make_pod(struct intern *facts_pool, const cJSON *object)
{
    return pod_fact_make(facts_pool, object);
}
static void free_pod(void *fact)
{
    struct neoset_memory *memory = neoset_memory_make();
    if (fact)
        neoset_observe_pod(memory, fact, 5, 7);
    neoset_memory_free(memory);
    pod_fact_free(fact);
}
static void *make_set(struct intern *facts_pool, const cJSON *object)
{
    return neoset_fact_make(facts_pool, object);
}
static void free_set(void *fact)
{
    neoset_fact_free(fact);
}
static void *make_revision(struct intern *facts_pool, const cJSON *object)
{
    return revision_fact_make(facts_pool, object);
}
static void free_revision(void *fact)
{
    revision_fact_free(fact);
}
static void *make_claim(struct intern *facts_pool, const cJSON *object)
{
    return claim_fact_make(facts_pool, object);
}
static void free_claim(void *fact)
{
    claim_fact_free(fact);
}

/* Replaces every node in turn by something else, and reads the object. */
static int mutate(cJSON *root, cJSON *parent, fact_make *make, fact_free *destroy)
{
    static const char *const others[] = {
        "null", "true",   "-1",    "99999999999999999999",
        "1.5",  "\"\"",   "\"x\"", "[]",
        "{}",   "[null]", "[[1]]", "[{\"name\":\"main\"},{\"name\":\"main\"}]"};
    int tried = 0;
    for (int at = 0; at < cJSON_GetArraySize(parent); at++) {
        cJSON *child = cJSON_GetArrayItem(parent, at);
        CLEANUP_FREE char *key = xstrdup_or_null(child->string);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
            cJSON *kept = json_copy(child);
            cJSON *other = parse(others[i]);
            if (key)
                assert_true(cJSON_ReplaceItemInObjectCaseSensitive(parent, key, other));
            else
                assert_true(cJSON_ReplaceItemInArray(parent, at, other));
            void *fact = make(pool, root);
            destroy(fact);
            tried++;
            if (key)
                assert_true(cJSON_ReplaceItemInObjectCaseSensitive(parent, key, kept));
            else
                assert_true(cJSON_ReplaceItemInArray(parent, at, kept));
            child = cJSON_GetArrayItem(parent, at);
        }
        if (cJSON_IsObject(child) || cJSON_IsArray(child))
            tried += mutate(root, child, make, destroy);
    }
    return tried;
}

static void no_object_makes_reading_fail(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        fact_make *make;
        fact_free *destroy;
    } kinds[] = {{pod_text, make_pod, free_pod},
                 {set_text, make_set, free_set},
                 {revision_text, make_revision, free_revision},
                 {claim_text, make_claim, free_claim}};
    int tried = 0;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        CLEANUP_JSON cJSON *root = parse(kinds[i].text);
        tried += mutate(root, root, kinds[i].make, kinds[i].destroy);
        /* Nothing was changed in the end. */
        CLEANUP_JSON cJSON *again = parse(kinds[i].text);
        assert_true(json_equal(root, again));
        assert_null(kinds[i].make(pool, NULL));
    }
    assert_true(tried > 2000);
}

static void names_split_only_at_canonical_ordinals(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool good;
        size_t length;
        int ordinal;
    } cases[] = {{"db-0", true, 2, 0},
                 {"my-db-12", true, 5, 12},
                 {"db", false, 0, 0},
                 {"-1", false, 0, 0},
                 {"db-", false, 0, 0},
                 {"db-01", false, 0, 0},
                 {"db-1a", false, 0, 0},
                 {"db-2147483647", true, 2, INT32_MAX},
                 {"db-2147483648", false, 0, 0},
                 {"db--1", true, 3, 1}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t length = 0;
        int ordinal = 0;
        assert_int_equal(neoset_split_pod_name(cases[i].name, &length, &ordinal), cases[i].good);
        assert_int_equal(length, cases[i].length);
        assert_int_equal(ordinal, cases[i].ordinal);
    }
}

static void a_claim_names_every_set_it_may_belong_to(void **state)
{
    (void)state;
    size_t position = 0;
    static const char *const expected[] = {"my-sql", "sql"};
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        CLEANUP_FREE char *name = neoset_claim_next_set("data-my-sql-3", &position);
        assert_string_equal(name, expected[i]);
    }
    assert_null(neoset_claim_next_set("data-my-sql-3", &position));
    assert_null(neoset_claim_next_set("data-my-sql-3", &position));
    position = 0;
    assert_null(neoset_claim_next_set("data", &position));
}

static void ten_thousand_pods_share_what_is_equal(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = parse(pod_text);
    struct pod_fact *first = pod_fact_make(pool, object);
    size_t count = intern_count(pool);
    struct pod_fact *second = pod_fact_make(pool, object);
    assert_int_equal(intern_count(pool), count);
    assert_ptr_equal(first->revision, second->revision);
    pod_fact_free(first);
    pod_fact_free(second);
    /* The struct and its containers: the goal is a kilobyte a pod, with everything. */
    assert_true(sizeof(struct pod_fact) + sizeof(struct container_fact) <= 300);
    assert_true(sizeof(struct pod_observation) <= 112);
}

/* --- memory --------------------------------------------------------------------------------------------- */

static void the_first_sight_goes_by_the_objects_own_times(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = parse(pod_text);
    struct pod_fact *pod = pod_fact_make(pool, object);
    struct neoset_memory *memory = neoset_memory_make();
    /* Ready for 100 s when we first look. */
    int64_t wall = pod->ready_changed_us + 100 * US;
    neoset_observe_pod(memory, pod, wall, 1000 * US);
    const struct pod_observation *seen = neoset_memory_pod(memory, 3, "u-3");
    assert_non_null(seen);
    assert_int_equal(seen->ready_boot_us, 900 * US);
    assert_int_equal(seen->not_ready_boot_us, NEOSET_NEVER);
    assert_null(neoset_memory_pod(memory, 3, "another"));
    assert_null(neoset_memory_pod(memory, 4, "u-3"));
    /* A clock of the node that is ahead does not make it younger than now. */
    neoset_forget_pod(memory, 3);
    assert_null(neoset_memory_pod(memory, 3, "u-3"));
    neoset_observe_pod(memory, pod, pod->ready_changed_us - 50 * US, 2000 * US);
    assert_int_equal(neoset_memory_pod(memory, 3, "u-3")->ready_boot_us, 2000 * US);
    neoset_memory_free(memory);
    pod_fact_free(pod);
}

static void readiness_counts_from_its_last_break_by_our_clock(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *object = parse(pod_text);
    struct neoset_memory *memory = neoset_memory_make();
    static const char *const statuses[] = {"True", "False", "True", "True"};
    for (int i = 0; i < 4; i++) {
        json_set_str(json_path(object, "status", "conditions", NULL)->child, "status", statuses[i]);
        struct pod_fact *pod = pod_fact_make(pool, object);
        neoset_observe_pod(memory, pod, pod->ready_changed_us, (10 + i) * US);
        pod_fact_free(pod);
    }
    assert_int_equal(neoset_memory_pod(memory, 3, "u-3")->ready_boot_us, 12 * US);
    neoset_memory_free(memory);
}

static void refusals_back_off_and_are_forgotten_when_made_good(void **state)
{
    (void)state;
    struct neoset_memory *memory = neoset_memory_make();
    struct step_outcome outcome = {.step_kind = STEP_UPDATE_IN_PLACE,
                                   .target = {KUBE_POD, "default", "db-0"},
                                   .fingerprint = "update/x",
                                   .kind = JOURNAL_REJECTED,
                                   .http = 403,
                                   .summary = "no",
                                   .reason = "Forbidden"};
    int64_t expected[] = {5, 10, 20, 40, 80, 160, 300, 300};
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        neoset_note_outcome(memory, &outcome, 0);
        assert_int_equal(neoset_memory_refusal(memory, KUBE_POD, "db-0", STEP_UPDATE_IN_PLACE)->again_boot_us,
                         expected[i] * US);
    }
    /* Another write of the same object makes nothing good; another fingerprint starts anew. */
    outcome.kind = JOURNAL_APPLIED;
    outcome.step_kind = STEP_GATE;
    neoset_note_outcome(memory, &outcome, 0);
    assert_non_null(neoset_memory_refusal(memory, KUBE_POD, "db-0", STEP_UPDATE_IN_PLACE));
    outcome.kind = JOURNAL_REJECTED;
    outcome.step_kind = STEP_UPDATE_IN_PLACE;
    outcome.fingerprint = "update/y";
    neoset_note_outcome(memory, &outcome, 0);
    assert_int_equal(neoset_memory_refusal(memory, KUBE_POD, "db-0", STEP_UPDATE_IN_PLACE)->again_boot_us,
                     5 * US);
    outcome.kind = JOURNAL_APPLIED;
    neoset_note_outcome(memory, &outcome, 0);
    assert_null(neoset_memory_refusal(memory, KUBE_POD, "db-0", STEP_UPDATE_IN_PLACE));
    /* Bounded. */
    outcome.kind = JOURNAL_REJECTED;
    for (int i = 0; i < 1000; i++) {
        CLEANUP_FREE char *name = xasprintf("db-%d", i);
        outcome.target.name = name;
        neoset_note_outcome(memory, &outcome, 0);
    }
    assert_null(neoset_memory_refusal(memory, KUBE_POD, "db-0", STEP_UPDATE_IN_PLACE));
    assert_non_null(neoset_memory_refusal(memory, KUBE_POD, "db-999", STEP_UPDATE_IN_PLACE));
    neoset_memory_free(memory);
}

/* Neither makes the other forgotten: they would be sent in turns, at the speed of the network. */
static void two_kinds_of_write_that_are_refused_are_both_remembered(void **state)
{
    (void)state;
    struct neoset_memory *memory = neoset_memory_make();
    struct step_outcome outcome = {.step_kind = STEP_UPDATE_IN_PLACE,
                                   .target = {KUBE_POD, "default", "db-0"},
                                   .fingerprint = "update/x",
                                   .kind = JOURNAL_REJECTED,
                                   .http = 403};
    neoset_note_outcome(memory, &outcome, 0);
    outcome.step_kind = STEP_GATE;
    outcome.fingerprint = "open/";
    neoset_note_outcome(memory, &outcome, 0);
    assert_string_equal(neoset_memory_refusal(memory, KUBE_POD, "db-0", STEP_UPDATE_IN_PLACE)->fingerprint,
                        "update/x");
    assert_string_equal(neoset_memory_refusal(memory, KUBE_POD, "db-0", STEP_GATE)->fingerprint, "open/");
    neoset_memory_free(memory);
}

static void no_object_is_written_more_than_sixty_times_a_minute(void **state)
{
    (void)state;
    struct neoset_memory *memory = neoset_memory_make();
    static const char *const prints[] = {"open/", "drain/x", "open/y"};
    struct step_outcome outcome = {
        .step_kind = STEP_GATE, .target = {KUBE_POD, "default", "db-x"}, .kind = JOURNAL_ABSENT};
    int64_t until_us = 0;
    for (int i = 0; i < 60; i++) {
        assert_false(neoset_memory_is_flooded(memory, KUBE_POD, "db-x", 61 * US, &until_us));
        outcome.fingerprint = prints[i % 3];
        neoset_note_outcome(memory, &outcome, 61 * US);
    }
    assert_true(neoset_memory_is_flooded(memory, KUBE_POD, "db-x", 62 * US, &until_us));
    assert_int_equal(until_us, 120 * US);
    assert_false(neoset_memory_is_flooded(memory, KUBE_POD, "db-x", 120 * US, &until_us));
    neoset_memory_free(memory);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_pool, free_pool)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pod_is_read_with_its_sidecars),
        TEST(a_set_is_read_with_its_status),
        TEST(of_the_proven_revisions_so_many_are_kept),
        TEST(defaults_are_the_documented_ones),
        TEST(an_endless_claim_template_name_is_a_problem_not_a_crash),
        TEST(a_revision_and_a_claim_are_read),
        TEST(no_object_makes_reading_fail),
        TEST(names_split_only_at_canonical_ordinals),
        TEST(a_claim_names_every_set_it_may_belong_to),
        TEST(ten_thousand_pods_share_what_is_equal),
        TEST(the_first_sight_goes_by_the_objects_own_times),
        TEST(readiness_counts_from_its_last_break_by_our_clock),
        TEST(refusals_back_off_and_are_forgotten_when_made_good),
        TEST(two_kinds_of_write_that_are_refused_are_both_remembered),
        TEST(no_object_is_written_more_than_sixty_times_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
