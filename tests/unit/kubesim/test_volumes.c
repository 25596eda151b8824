/* SPDX-License-Identifier: Apache-2.0
 *
 * Volumes as kubesim binds and grows them, in the sequences that were recorded of external-resizer v2.3.0 and
 * a kubelet 1.36.3; and the quotas and limits that stand in the way. */
#include "world.h"

#define QUOTAS "/api/v1/namespaces/default/resourcequotas"
#define LIMITS "/api/v1/namespaces/default/limitranges"
#define VOLUMES "/api/v1/persistentvolumes"
#define CLAIM CLAIMS "/data-db-0"

static struct world *make(const char *behaviour, bool by_field)
{
    struct world *world = xcalloc(1, sizeof(*world));
    struct kubesim_options options = world_options(world);
    options.volumes = true;
    options.newer = by_field;
    world_make_with(&options, world);
    CLEANUP_FREE char *class = xasprintf(
        "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"std\","
        "\"annotations\":{\"kubesim.neo.io/resizer\":\"%s\"}},\"provisioner\":\"x/y\","
        "\"allowVolumeExpansion\":true}",
        behaviour);
    assert_int_equal(ask(world, "POST", CLASSES, class), 201);
    return world;
}

static void make_claim(struct world *world, const char *name, const char *class)
{
    CLEANUP_FREE char *body =
        xasprintf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"storageClassName\":\"%s\",\"accessModes\":["
                  "\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}",
                  name, class);
    assert_int_equal(ask(world, "POST", CLAIMS, body), 201);
}

static void mount_it(struct world *world)
{
    assert_int_equal(
        ask(world, "POST", PODS,
            "{\"metadata\":{\"name\":\"db-0\"},\"spec\":{\"nodeName\":\"n1\",\"volumes\":[{\"name\":\"d\","
            "\"persistentVolumeClaim\":{\"claimName\":\"data-db-0\"}}],\"containers\":[{\"name\":\"c\","
            "\"image\":\"i\"}]}}"),
        201);
}

static int ask_for(struct world *world, const char *size)
{
    CLEANUP_FREE char *body =
        xasprintf("{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"%s\"}}}}", size);
    return patch(world, CLAIM, MERGE, body);
}

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

/* "request/capacity/allocated status condition condition" of the claim now; the caller's. */
static char *state_of(struct world *world)
{
    assert_int_equal(ask(world, "GET", CLAIM, NULL), 200);
    const cJSON *claim = world->body;
    CLEANUP_BUF struct buf text = BUF_INIT(4096);
    buf_addf(&text, "%s/%s/%s %s", json_path_str(claim, "spec", "resources", "requests", "storage", NULL),
             or_dash(json_path_str(claim, "status", "capacity", "storage", NULL)),
             or_dash(json_path_str(claim, "status", "allocatedResources", "storage", NULL)),
             or_dash(json_path_str(claim, "status", "allocatedResourceStatuses", "storage", NULL)));
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, json_path(claim, "status", "conditions", NULL))
        buf_addf(&text, " %s", json_str(condition, "type"));
    return buf_take(&text);
}

/* Each state of the claim within so many seconds, a line each; the caller's. */
static char *states(struct world *world, int64_t seconds)
{
    CLEANUP_BUF struct buf lines = BUF_INIT(65536);
    CLEANUP_FREE char *last = xstrdup("");
    int64_t end_us = world->now_us + seconds * US_PER_S;
    for (;;) {
        CLEANUP_FREE char *now = state_of(world);
        if (strcmp(now, last) != 0)
            buf_addf(&lines, "%s\n", now);
        str_replace(&last, now);
        int64_t next_us = kubesim_next_tick_us(world->sim);
        if (next_us > end_us)
            break;
        world->now_us = MAX(next_us, world->now_us);
        kubesim_tick(world->sim);
    }
    world->now_us = end_us;
    return buf_take(&lines);
}

static struct world *make_bound(const char *behaviour, bool mounted)
{
    struct world *world = make(behaviour, false);
    make_claim(world, "data-db-0", "std");
    if (mounted)
        mount_it(world);
    CLEANUP_FREE char *before = states(world, 1);
    assert_string_equal(before, "1Gi/-/- -\n1Gi/1Gi/- -\n");
    return world;
}

static int events(struct world *world, const char *word)
{
    assert_int_equal(ask(world, "GET", EVENTS, NULL), 200);
    int count = 0;
    const cJSON *event = NULL;
    cJSON_ArrayForEach (event, json_get(world->body, "items"))
        if (str_equal(json_str(event, "reason"), word))
            count += (int)json_int64_or(event, "count", 0);
    return count;
}

static void a_claim_of_a_dynamic_class_gets_a_volume(void **state)
{
    (void)state;
    WORLD world = make_bound("ok", false);
    assert_int_equal(ask(world, "GET", CLAIM, NULL), 200);
    CLEANUP_FREE char *volume =
        xasprintf(VOLUMES "/%s", json_path_str(world->body, "spec", "volumeName", NULL));
    assert_int_equal(ask(world, "GET", volume, NULL), 200);
    make_claim(world, "other", "nobodys");
    pass(world, 5);
    assert_int_equal(ask(world, "GET", CLAIMS "/other", NULL), 200);
    assert_string_equal(json_path_str(world->body, "status", "phase", NULL), "Pending");
    assert_int_equal(ask(world, "DELETE", CLAIM, NULL), 200);
    for (int i = 0; i < 3; i++)
        pass(world, 1);
    assert_int_equal(ask(world, "GET", volume, NULL), 404);
}

/* Its class is gone before it is bound, and comes again: nothing is due meanwhile, or the clock would stand
 * still. */
static void a_claim_whose_class_is_gone_is_not_looked_at_for_ever(void **state)
{
    (void)state;
    WORLD world = make("ok", false);
    make_claim(world, "data-db-0", "std");
    kubesim_tick(world->sim);
    assert_true(kubesim_next_tick_us(world->sim) > world->now_us);
    assert_int_equal(ask(world, "DELETE", CLASSES "/std", NULL), 200);
    pass(world, 1);
    kubesim_tick(world->sim);
    assert_true(kubesim_next_tick_us(world->sim) > world->now_us);
    assert_int_equal(ask(world, "POST", CLASSES,
                         "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{"
                         "\"name\":\"std\"},\"provisioner\":\"x/y\"}"),
                     201);
    CLEANUP_FREE char *after = states(world, 1);
    assert_string_equal(after, "1Gi/-/- -\n1Gi/1Gi/- -\n");
}

#define BEGUN "2Gi/1Gi/- -\n2Gi/1Gi/2Gi ControllerResizeInProgress Resizing\n"
#define ON_NODE "2Gi/1Gi/2Gi NodeResizePending Resizing FileSystemResizePending\n"
#define NODE_WORKS "2Gi/1Gi/2Gi NodeResizeInProgress Resizing FileSystemResizePending"
#define DONE "2Gi/2Gi/2Gi -\n"
#define NODE_ERROR "Resizing FileSystemResizePending NodeResizeError\n"

static void a_volume_grows_in_the_recorded_steps(void **state)
{
    (void)state;
    static const struct {
        const char *behaviour;
        bool mounted;
        const char *steps;
    } cases[] = {
        {"ok", true, BEGUN ON_NODE NODE_WORKS "\n" DONE},
        {"ok", false, BEGUN ON_NODE},
        {"never", true, "2Gi/1Gi/- -\n"},
        {"pool-full", true, BEGUN},
        {"slow", true, BEGUN ON_NODE NODE_WORKS "\n" DONE},
        {"max=5Gi", true, BEGUN ON_NODE NODE_WORKS "\n" DONE},
        {"max=1Gi", true, BEGUN "2Gi/1Gi/2Gi ControllerResizeInfeasible Resizing ControllerResizeError\n"},
        {"in-use", true, BEGUN "2Gi/1Gi/2Gi ControllerResizeInProgress Resizing ControllerResizeError\n"},
        {"in-use", false, BEGUN ON_NODE},
        {"node-pending", true, BEGUN ON_NODE},
        {"node-transient", true,
         BEGUN ON_NODE NODE_WORKS "\n2Gi/1Gi/2Gi NodeResizeInProgress " NODE_ERROR DONE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        WORLD world = make_bound(cases[i].behaviour, cases[i].mounted);
        assert_int_equal(ask_for(world, "2Gi"), 200);
        CLEANUP_FREE char *steps = states(world, 60);
        assert_string_equal(steps, cases[i].steps);
    }
}

/* The events are all that tells of a full pool; they do not stop, and a pool that has room again is found. */
static void a_fault_that_heals_is_found_by_the_retries(void **state)
{
    (void)state;
    static const char *const faults[] = {"pool-full", "max=1Gi", "never", "node-pending", "in-use"};
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        WORLD world = make_bound(faults[i], true);
        assert_int_equal(ask_for(world, "2Gi"), 200);
        free(states(world, 60));
        int failures = events(world, "VolumeResizeFailed");
        bool silent = str_equal(faults[i], "never") || str_equal(faults[i], "node-pending");
        assert_true(silent ? failures == 0 : failures >= 5);
        assert_int_equal(events(world, "ExternalExpanding"), 1);
        assert_int_equal(patch(world, CLASSES "/std", MERGE,
                               "{\"metadata\":{\"annotations\":{\"kubesim.neo.io/resizer\":\"ok\"}}}"),
                         200);
        free(states(world, 30));
        CLEANUP_FREE char *end = state_of(world);
        assert_string_equal(end, "2Gi/2Gi/2Gi -");
    }
}

static void an_infeasible_size_is_lowered(void **state)
{
    (void)state;
    WORLD world = make_bound("max=5Gi", true);
    assert_int_equal(ask_for(world, "10Gi"), 200);
    free(states(world, 5));
    assert_int_equal(ask_for(world, "1Gi"), 422);
    assert_int_equal(ask_for(world, "3Gi"), 200);
    CLEANUP_FREE char *steps = states(world, 30);
    assert_string_equal(steps, "3Gi/1Gi/10Gi ControllerResizeInfeasible Resizing ControllerResizeError\n"
                               "3Gi/1Gi/3Gi ControllerResizeInProgress Resizing\n"
                               "3Gi/1Gi/3Gi NodeResizePending Resizing FileSystemResizePending\n"
                               "3Gi/1Gi/3Gi NodeResizeInProgress Resizing FileSystemResizePending\n"
                               "3Gi/3Gi/3Gi -\n");
}

/* NodeResizeInfeasible is there for milliseconds only; what stays is the condition. */
static void an_infeasible_node_is_asked_again_and_again(void **state)
{
    (void)state;
    WORLD world = make_bound("node-infeasible", true);
    assert_int_equal(ask_for(world, "2Gi"), 200);
    CLEANUP_FREE char *steps = states(world, 12);
    static const char begun[] = BEGUN ON_NODE NODE_WORKS "\n";
    assert_true(str_starts_with(steps, begun));
    assert_true(str_starts_with(steps + strlen(begun), "2Gi/1Gi/2Gi NodeResizeInfeasible " NODE_ERROR
                                                       "2Gi/1Gi/2Gi NodeResizePending " NODE_ERROR
                                                       "2Gi/1Gi/2Gi NodeResizeInProgress " NODE_ERROR
                                                       "2Gi/1Gi/2Gi NodeResizeInfeasible " NODE_ERROR));
}

static void a_claim_may_behave_unlike_its_class(void **state)
{
    (void)state;
    WORLD world = make_bound("ok", true);
    assert_int_equal(
        patch(world, CLAIM, MERGE, "{\"metadata\":{\"annotations\":{\"kubesim.neo.io/resizer\":\"never\"}}}"),
        200);
    assert_int_equal(ask_for(world, "2Gi"), 200);
    CLEANUP_FREE char *steps = states(world, 60);
    assert_string_equal(steps, "2Gi/1Gi/- -\n");
    assert_int_equal(patch(world, CLAIM, MERGE,
                           "{\"metadata\":{\"annotations\":{\"kubesim.neo.io/resizer\":\"sometimes\"}}}"),
                     501);
}

static void the_newer_server_says_whether_a_pod_uses_it(void **state)
{
    (void)state;
    WORLD world = make("ok", true);
    make_claim(world, "data-db-0", "std");
    free(states(world, 1));
    CLEANUP_FREE char *unused = state_of(world);
    assert_string_equal(unused, "1Gi/1Gi/- - Unused");
    assert_string_equal(
        json_path_str(json_path(world->body, "status", "conditions", NULL)->child, "reason", NULL),
        "NoPodsUsingPVC");
    mount_it(world);
    assert_int_equal(ask_for(world, "2Gi"), 200);
    free(states(world, 30));
    CLEANUP_FREE char *used = state_of(world);
    assert_string_equal(used, "2Gi/2Gi/2Gi - Unused");
    assert_string_equal(
        json_path_str(json_path(world->body, "status", "conditions", NULL)->child, "reason", NULL),
        "PodUsingPVC");
}

static void a_quota_counts_what_is_there(void **state)
{
    (void)state;
    WORLD world = make("ok", false);
    assert_int_equal(ask(world, "POST", QUOTAS,
                         "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"hard\":{\"requests.storage\":\"3Gi\","
                         "\"persistentvolumeclaims\":\"2\",\"std.storageclass.storage.k8s.io/"
                         "requests.storage\":\"10Gi\",\"count/configmaps\":\"1\"}}}"),
                     201);
    make_claim(world, "data-db-0", "std");
    make_claim(world, "data-db-1", "std");
    assert_int_equal(ask(world, "POST", CLAIMS,
                         "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
                         "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}"),
                     403);
    assert_string_equal(message(world),
                        "persistentvolumeclaims \"c\" is forbidden: exceeded quota: q, requested: "
                        "persistentvolumeclaims=1, used: persistentvolumeclaims=2, limited: "
                        "persistentvolumeclaims=2");
    make_config(world, "one", "");
    assert_int_equal(ask(world, "POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"two\"}}"), 403);
    free(states(world, 1));
    assert_int_equal(ask(world, "GET", QUOTAS "/q", NULL), 200);
    const cJSON *used = json_path(world->body, "status", "used", NULL);
    assert_string_equal(json_str(used, "requests.storage"), "2Gi");
    assert_string_equal(json_str(used, "std.storageclass.storage.k8s.io/requests.storage"), "2Gi");
    assert_string_equal(json_str(used, "persistentvolumeclaims"), "2");
    assert_int_equal(ask_for(world, "2Gi"), 200);
    assert_int_equal(ask_for(world, "2049Mi"), 403);
}

static void what_quotas_and_limits_cannot_count_is_refused(void **state)
{
    (void)state;
    WORLD world = make("ok", false);
    static const struct {
        const char *path;
        const char *spec;
    } cases[] = {
        {QUOTAS, "\"hard\":{\"requests.cpu\":\"1\"}"},
        {QUOTAS, "\"hard\":{\"pods\":\"1\"},\"scopes\":[\"BestEffort\"]"},
        {LIMITS, "\"limits\":[{\"type\":\"Container\",\"max\":{\"cpu\":\"1\"}}]"},
        {LIMITS, "\"limits\":[{\"type\":\"PersistentVolumeClaim\",\"default\":{\"storage\":\"1\"}}]"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"name\":\"x\"},\"spec\":{%s}}", cases[i].spec);
        assert_int_equal(ask(world, "POST", cases[i].path, body), 501);
    }
    assert_int_equal(ask(world, "POST", LIMITS,
                         "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"limits\":[{\"type\":"
                         "\"PersistentVolumeClaim\",\"min\":{\"storage\":\"2Gi\"}}]}}"),
                     201);
    assert_int_equal(ask(world, "POST", CLAIMS,
                         "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
                         "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}"),
                     403);
    assert_string_equal(message(world),
                        "persistentvolumeclaims \"c\" is forbidden: minimum storage usage per "
                        "PersistentVolumeClaim is 2Gi, but request is 1Gi");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_of_a_dynamic_class_gets_a_volume),
        cmocka_unit_test(a_claim_whose_class_is_gone_is_not_looked_at_for_ever),
        cmocka_unit_test(a_volume_grows_in_the_recorded_steps),
        cmocka_unit_test(a_fault_that_heals_is_found_by_the_retries),
        cmocka_unit_test(an_infeasible_size_is_lowered),
        cmocka_unit_test(an_infeasible_node_is_asked_again_and_again),
        cmocka_unit_test(a_claim_may_behave_unlike_its_class),
        cmocka_unit_test(the_newer_server_says_whether_a_pod_uses_it),
        cmocka_unit_test(a_quota_counts_what_is_there),
        cmocka_unit_test(what_quotas_and_limits_cannot_count_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
