/* SPDX-License-Identifier: Apache-2.0
 *
 * StatefulSets as kubesim runs them, as kube-controller-manager 1.36.3 and 1.37.2 were measured to: what
 * grows their volumes deletes them without their pods and makes them again. */
#include "world.h"

#define ORPHAN "{\"kind\":\"DeleteOptions\",\"propagationPolicy\":\"Orphan\"}"
#define RETAIN_DELETE                                                                                        \
    "\"persistentVolumeClaimRetentionPolicy\":{\"whenDeleted\":\"Delete\",\"whenScaled\":\"Delete\"}"

/* replicas, image, more members of the spec. */
#define SET_FORMAT                                                                                           \
    "{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"db\"},\"spec\":{"         \
    "\"replicas\":%d,\"serviceName\":\"db\",\"selector\":{\"matchLabels\":{\"app\":\"db\"}},"                \
    "\"template\":{\"metadata\":{\"labels\":{\"app\":\"db\"}},\"spec\":{\"containers\":[{\"name\":\"c\","    \
    "\"image\":\"%s\"}]}},\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"data\"},\"spec\":{"            \
    "\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}]%s}}"

static struct world *make(bool newer)
{
    struct world *world = xcalloc(1, sizeof(*world));
    struct kubesim_options options = world_options(world);
    options.statefulsets = true;
    options.newer = newer;
    return world_make_with(&options, world);
}

static int post_set(struct world *world, int replicas, const char *image, const char *more)
{
    CLEANUP_FREE char *body = xasprintf(SET_FORMAT, replicas, image, more);
    return ask(world, "POST", SETS, body);
}

static int count_of(struct world *world, const char *path)
{
    assert_int_equal(ask(world, "GET", path, NULL), 200);
    return cJSON_GetArraySize(json_get(world->body, "items"));
}

/* Every pod that is not ready becomes it, as a kubelet would see to; returns how many there are. */
static int make_pods_ready(struct world *world)
{
    assert_int_equal(ask(world, "GET", PODS, NULL), 200);
    CLEANUP_JSON cJSON *pods = json_copy(json_get(world->body, "items"));
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, pods) {
        CLEANUP_FREE char *path = xasprintf(PODS "/%s/status", json_path_str(pod, "metadata", "name", NULL));
        if (!json_path(pod, "status", "conditions", NULL))
            assert_int_equal(patch(world, path, MERGE,
                                   "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
                                   "\"status\":\"True\",\"lastTransitionTime\":\"2027-01-01T00:00:00Z\"}]}}"),
                             200);
    }
    return cJSON_GetArraySize(pods);
}

/* Seconds in which pods become ready. */
static void run(struct world *world, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        pass(world, 1);
        make_pods_ready(world);
    }
}

/* Without a kubelet. */
static void run_alone(struct world *world, int seconds)
{
    for (int i = 0; i < seconds; i++)
        pass(world, 1);
}

/* A text of the set's status, the caller's. */
static char *status_text(struct world *world, const char *key)
{
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 200);
    const char *text = json_path_str(world->body, "status", key, NULL);
    return xstrdup(text ? text : "");
}

static int64_t status_number(struct world *world, const char *key)
{
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 200);
    return json_int64_or(json_get(world->body, "status"), key, -1);
}

static char *image_of(struct world *world, int ordinal)
{
    CLEANUP_FREE char *path = xasprintf(PODS "/db-%d", ordinal);
    if (ask(world, "GET", path, NULL) != 200)
        return xstrdup("none");
    return xstrdup(json_str(json_path(world->body, "spec", "containers", NULL)->child, "image"));
}

/* "i:1 i:1 i:2" of so many pods; the caller's. */
static char *images(struct world *world, int count)
{
    CLEANUP_BUF struct buf text = BUF_INIT(4096);
    for (int i = 0; i < count; i++) {
        CLEANUP_FREE char *image = image_of(world, i);
        buf_addf(&text, "%s%s", i ? " " : "", image);
    }
    return buf_take(&text);
}

static void set_image(struct world *world, const char *image)
{
    CLEANUP_FREE char *body = xasprintf(
        "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"%s\"}]}}}}", image);
    assert_int_equal(patch(world, SETS "/db", STRATEGIC, body), 200);
}

static char *uid_of(struct world *world, const char *path)
{
    return now_of(world, path, "uid");
}

static void orphan(struct world *world)
{
    assert_int_equal(ask(world, "DELETE", SETS "/db", ORPHAN), 200);
    run_alone(world, 2);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
}

#define PARTITION(number)                                                                                    \
    ",\"updateStrategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"partition\":" number "}}"
#define ON_DELETE ",\"updateStrategy\":{\"type\":\"OnDelete\"}"

/* --- making and updating -------------------------------------------------------------------------------- */

static void pods_come_one_after_another_or_all_at_once(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 3, "i:1", ""), 201);
    run_alone(world, 3);
    assert_int_equal(count_of(world, PODS), 1);
    run(world, 5);
    assert_int_equal(count_of(world, PODS), 3);
    assert_int_equal(count_of(world, CLAIMS), 3);
    WORLD parallel = make(false);
    assert_int_equal(post_set(parallel, 3, "i:1", ",\"podManagementPolicy\":\"Parallel\""), 201);
    run_alone(parallel, 1);
    assert_int_equal(count_of(parallel, PODS), 3);
}

static void status_comes_after_a_while(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 1, "i:1", ""), 201);
    for (int i = 0; i < 9; i++) {
        world->now_us += 10 * US_PER_MS;
        kubesim_tick(world->sim);
    }
    assert_int_equal(count_of(world, PODS), 1);
    assert_int_equal(status_number(world, "observedGeneration"), -1);
    assert_int_equal(status_number(world, "replicas"), 0);
    for (int i = 0; i < 15; i++) {
        world->now_us += 10 * US_PER_MS;
        kubesim_tick(world->sim);
    }
    assert_int_equal(status_number(world, "observedGeneration"), 1);
    assert_int_equal(status_number(world, "replicas"), 1);
}

static void an_update_goes_from_the_highest_ordinal_down(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 3, "i:1", ""), 201);
    run(world, 8);
    CLEANUP_FREE char *before = status_text(world, "currentRevision");
    set_image(world, "i:2");
    run_alone(world, 40);
    CLEANUP_FREE char *first = images(world, 3);
    assert_string_equal(first, "i:1 i:1 i:2");
    CLEANUP_FREE char *meanwhile = status_text(world, "currentRevision");
    assert_string_equal(meanwhile, before);
    run(world, 120);
    CLEANUP_FREE char *all = images(world, 3);
    assert_string_equal(all, "i:2 i:2 i:2");
    CLEANUP_FREE char *current = status_text(world, "currentRevision");
    CLEANUP_FREE char *update = status_text(world, "updateRevision");
    assert_string_equal(current, update);
    assert_string_not_equal(current, before);
}

static void a_partition_holds_the_rest(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 3, "i:1", PARTITION("2")), 201);
    run(world, 8);
    set_image(world, "i:2");
    run(world, 60);
    CLEANUP_FREE char *held = images(world, 3);
    assert_string_equal(held, "i:1 i:1 i:2");
    assert_int_equal(status_number(world, "updatedReplicas"), 1);
    assert_int_equal(status_number(world, "currentReplicas"), 2);
    assert_int_equal(ask(world, "DELETE", PODS "/db-0", NULL), 200);
    run(world, 40);
    CLEANUP_FREE char *again = images(world, 3);
    assert_string_equal(again, "i:1 i:1 i:2");
}

/* 1.36 never moves currentRevision on OnDelete; 1.37 does when all pods were replaced. */
static void on_delete_replaces_what_is_deleted(void **state)
{
    (void)state;
    for (int newer = 0; newer < 2; newer++) {
        WORLD world = make(newer);
        assert_int_equal(post_set(world, 2, "i:1", ON_DELETE), 201);
        run(world, 6);
        set_image(world, "i:2");
        run(world, 10);
        CLEANUP_FREE char *old = images(world, 2);
        assert_string_equal(old, "i:1 i:1");
        for (int i = 0; i < 2; i++) {
            CLEANUP_FREE char *path = xasprintf(PODS "/db-%d", i);
            assert_int_equal(ask(world, "DELETE", path, NULL), 200);
            run(world, 40);
        }
        CLEANUP_FREE char *replaced = images(world, 2);
        assert_string_equal(replaced, "i:2 i:2");
        CLEANUP_FREE char *current = status_text(world, "currentRevision");
        CLEANUP_FREE char *update = status_text(world, "updateRevision");
        assert_int_equal(strcmp(current, update) == 0, newer);
    }
}

static void an_old_revision_that_is_wanted_again_gets_the_next_number(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 1, "i:1", ",\"revisionHistoryLimit\":1"), 201);
    run(world, 4);
    CLEANUP_FREE char *first = status_text(world, "updateRevision");
    set_image(world, "i:2");
    run(world, 60);
    set_image(world, "i:1");
    run(world, 60);
    CLEANUP_FREE char *again = status_text(world, "updateRevision");
    assert_string_equal(again, first);
    CLEANUP_FREE char *path = xasprintf(REVISIONS "/%s", first);
    assert_int_equal(ask(world, "GET", path, NULL), 200);
    assert_int_equal(json_int64_or(world->body, "revision", 0), 3);
    set_image(world, "i:3");
    run(world, 60);
    set_image(world, "i:4");
    run(world, 60);
    assert_int_equal(count_of(world, REVISIONS), 2);
}

/* A stuck rollout stays stuck when the template is mended (OrderedReady): the broken pod is not replaced. */
static void a_stuck_ordered_rollout_stays_stuck(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 2, "i:1", ""), 201);
    run(world, 6);
    set_image(world, "broken");
    run_alone(world, 40);
    set_image(world, "i:3");
    run_alone(world, 60);
    CLEANUP_FREE char *stuck = images(world, 2);
    assert_string_equal(stuck, "i:1 broken");
}

/* --- deleted without its pods, and made again ----------------------------------------------------------- */

static void a_set_made_again_adopts_pods_and_revision(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 2, "i:1", ""), 201);
    run(world, 6);
    CLEANUP_FREE char *pod = uid_of(world, PODS "/db-1");
    CLEANUP_FREE char *revision = status_text(world, "updateRevision");
    orphan(world);
    assert_int_equal(post_set(world, 2, "i:1", ""), 201);
    run_alone(world, 2);
    CLEANUP_FREE char *uid = uid_of(world, SETS "/db");
    CLEANUP_FREE char *same = uid_of(world, PODS "/db-1");
    assert_string_equal(same, pod);
    assert_string_equal(json_str(json_path(world->body, "metadata", "ownerReferences", NULL)->child, "uid"),
                        uid);
    CLEANUP_FREE char *adopted = status_text(world, "updateRevision");
    assert_string_equal(adopted, revision);
    assert_int_equal(count_of(world, REVISIONS), 1);
    assert_int_equal(status_number(world, "readyReplicas"), 2);
}

/* currentRevision is the updated one at once: below the partition a pod that dies comes back as the new. */
static void a_canary_is_lost_by_making_it_again_in_one_step(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 3, "i:1", PARTITION("2")), 201);
    run(world, 8);
    set_image(world, "i:2");
    run(world, 60);
    orphan(world);
    assert_int_equal(post_set(world, 3, "i:2", PARTITION("2")), 201);
    run(world, 3);
    CLEANUP_FREE char *current = status_text(world, "currentRevision");
    CLEANUP_FREE char *update = status_text(world, "updateRevision");
    assert_string_equal(current, update);
    CLEANUP_FREE char *stay = images(world, 3);
    assert_string_equal(stay, "i:1 i:1 i:2");
    assert_int_equal(ask(world, "DELETE", PODS "/db-0", NULL), 200);
    run(world, 40);
    CLEANUP_FREE char *lost = images(world, 3);
    assert_string_equal(lost, "i:2 i:1 i:2");
}

static void a_canary_is_kept_in_two_steps(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 3, "i:1", PARTITION("2")), 201);
    run(world, 8);
    set_image(world, "i:2");
    run(world, 60);
    CLEANUP_FREE char *current = status_text(world, "currentRevision");
    CLEANUP_FREE char *update = status_text(world, "updateRevision");
    orphan(world);
    assert_int_equal(post_set(world, 3, "i:1", ON_DELETE), 201);
    run(world, 2);
    CLEANUP_FREE char *settled = status_text(world, "currentRevision");
    assert_string_equal(settled, current);
    CLEANUP_FREE char *version = now_of(world, SETS "/db", "resourceVersion");
    CLEANUP_FREE char *target = xasprintf(SET_FORMAT, 3, "i:2", PARTITION("2"));
    CLEANUP_JSON cJSON *put = NULL;
    assert_int_equal(json_parse(target, strlen(target), &put, NULL), 0);
    json_set_str(json_get(put, "metadata"), "resourceVersion", version);
    CLEANUP_FREE char *body = json_print(put);
    assert_int_equal(ask(world, "PUT", SETS "/db", body), 200);
    run(world, 30);
    CLEANUP_FREE char *kept = status_text(world, "currentRevision");
    CLEANUP_FREE char *wanted = status_text(world, "updateRevision");
    assert_string_equal(kept, current);
    assert_string_equal(wanted, update);
    assert_int_equal(ask(world, "DELETE", PODS "/db-0", NULL), 200);
    run(world, 40);
    CLEANUP_FREE char *all = images(world, 3);
    assert_string_equal(all, "i:1 i:1 i:2");
}

/* Made again without replicas: one, and the claims of the others go with them when the set says so.
 * Acceptance 13: what happens without the guard. */
static void a_forgotten_number_of_replicas_kills_pods_and_claims(void **state)
{
    (void)state;
    static const int claims_left[] = {3, 1};
    for (int deletes = 0; deletes < 2; deletes++) {
        WORLD world = make(false);
        const char *policy = deletes ? "," RETAIN_DELETE : "";
        assert_int_equal(post_set(world, 3, "i:1", policy), 201);
        run(world, 8);
        orphan(world);
        assert_int_equal(post_set(world, 1, "i:1", policy), 201);
        run(world, 90);
        assert_int_equal(count_of(world, PODS), 1);
        assert_int_equal(count_of(world, CLAIMS), claims_left[deletes]);
    }
}

static void claims_change_hands_with_their_set(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 1, "i:1", "," RETAIN_DELETE), 201);
    run(world, 4);
    CLEANUP_FREE char *first = uid_of(world, SETS "/db");
    assert_int_equal(ask(world, "GET", CLAIMS "/data-db-0", NULL), 200);
    const cJSON *owner = json_path(world->body, "metadata", "ownerReferences", NULL)->child;
    assert_string_equal(json_str(owner, "uid"), first);
    assert_true(json_bool_or(owner, "controller", false));
    orphan(world);
    assert_int_equal(ask(world, "GET", CLAIMS "/data-db-0", NULL), 200);
    assert_null(json_path(world->body, "metadata", "ownerReferences", NULL));
    assert_int_equal(post_set(world, 1, "i:1", "," RETAIN_DELETE), 201);
    run(world, 2);
    CLEANUP_FREE char *second = uid_of(world, SETS "/db");
    assert_int_equal(ask(world, "GET", CLAIMS "/data-db-0", NULL), 200);
    owner = json_path(world->body, "metadata", "ownerReferences", NULL)->child;
    assert_string_equal(json_str(owner, "uid"), second);
    assert_int_equal(ask(world, "DELETE", SETS "/db", NULL), 200);
    run_alone(world, 60);
    assert_int_equal(count_of(world, CLAIMS), 0);
}

/* --- the collector -------------------------------------------------------------------------------------- */

static void with_the_collector_off_a_dying_set_does_nothing(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 2, "i:1", ""), 201);
    run(world, 6);
    kubesim_set_gc(world->sim, false, 0, 0);
    assert_int_equal(ask(world, "DELETE", SETS "/db", ORPHAN), 200);
    assert_int_equal(ask(world, "DELETE", PODS "/db-1?gracePeriodSeconds=0", NULL), 200);
    run_alone(world, 10);
    assert_int_equal(count_of(world, PODS), 1);
    assert_int_equal(patch(world, SETS "/db/scale", MERGE, "{\"spec\":{\"replicas\":5}}"), 200);
    CLEANUP_FREE char *apply = xasprintf(SET_FORMAT, 2, "i:1", "");
    assert_int_equal(patch(world, SETS "/db?fieldManager=a&force=true", APPLY, apply), 200);
    assert_non_null(meta(world, "deletionTimestamp"));
    assert_int_equal(post_set(world, 2, "i:1", ""), 409);
    assert_string_equal(message(world), "object is being deleted: statefulsets.apps \"db\" already exists");
    kubesim_set_gc(world->sim, true, 0, 0);
    run_alone(world, 2);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
    assert_int_equal(count_of(world, PODS), 1);
}

/* A background delete while `orphan` waits: the pods still name the dead uid, nobody adopts them, and when
 * the collector looks they die. */
static void a_second_delete_in_the_background_kills_the_pods(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 2, "i:1", ""), 201);
    run(world, 6);
    CLEANUP_FREE char *pod = uid_of(world, PODS "/db-1");
    kubesim_set_gc(world->sim, false, 0, 0);
    assert_int_equal(ask(world, "DELETE", SETS "/db", ORPHAN), 200);
    assert_int_equal(
        ask(world, "DELETE", SETS "/db", "{\"kind\":\"DeleteOptions\",\"propagationPolicy\":\"Background\"}"),
        200);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
    assert_int_equal(post_set(world, 2, "i:1", ""), 201);
    run_alone(world, 3);
    assert_int_equal(status_number(world, "replicas"), 0);
    kubesim_set_gc(world->sim, true, 0, 0);
    run(world, 60);
    CLEANUP_FREE char *another = uid_of(world, PODS "/db-1");
    assert_string_not_equal(another, pod);
}

/* The collector's picture is old: pods that are younger still name the dead set, and are killed. Trace g5. */
static void fresh_pods_are_lost_to_the_collector(void **state)
{
    (void)state;
    WORLD world = make(false);
    assert_int_equal(post_set(world, 2, "i:1", ",\"podManagementPolicy\":\"Parallel\""), 201);
    run(world, 30);
    CLEANUP_FREE char *old = uid_of(world, PODS "/db-0");
    kubesim_set_gc(world->sim, true, 0, 5 * US_PER_S);
    assert_int_equal(patch(world, SETS "/db/scale", MERGE, "{\"spec\":{\"replicas\":4}}"), 200);
    pass(world, 1);
    CLEANUP_FREE char *fresh = uid_of(world, PODS "/db-3");
    orphan(world);
    assert_int_equal(post_set(world, 4, "i:1", ",\"podManagementPolicy\":\"Parallel\""), 201);
    run(world, 60);
    CLEANUP_FREE char *old_now = uid_of(world, PODS "/db-0");
    CLEANUP_FREE char *fresh_now = uid_of(world, PODS "/db-3");
    assert_string_equal(old_now, old);
    assert_string_not_equal(fresh_now, fresh);
}

static void another_finalizer_holds_a_set_whose_pods_are_orphans_already(void **state)
{
    (void)state;
    for (int newer = 0; newer < 2; newer++) {
        WORLD world = make(newer);
        assert_int_equal(post_set(world, 1, "i:1", ""), 201);
        run(world, 4);
        assert_int_equal(
            patch(world, SETS "/db", MERGE, "{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}"), 200);
        assert_int_equal(ask(world, "DELETE", SETS "/db", ORPHAN), 200);
        run_alone(world, 3);
        assert_int_equal(ask(world, "GET", SETS "/db", NULL), 200);
        CLEANUP_FREE char *left = json_print(json_path(world->body, "metadata", "finalizers", NULL));
        assert_string_equal(left, "[\"example.com/hold\"]");
        assert_int_equal(status_number(world, "replicas"), newer ? 0 : 1);
        assert_int_equal(ask(world, "GET", PODS "/db-0", NULL), 200);
        assert_null(json_path(world->body, "metadata", "ownerReferences", NULL));
        assert_int_equal(patch(world, SETS "/db", MERGE, "{\"metadata\":{\"finalizers\":null}}"), 200);
        assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
    }
}

/* Trace t2. */
static void a_set_whose_owner_is_gone_is_collected(void **state)
{
    (void)state;
    WORLD world = make(true);
    CLEANUP_FREE char *body = xasprintf(SET_FORMAT, 1, "i:1", "");
    CLEANUP_JSON cJSON *set = NULL;
    assert_int_equal(json_parse(body, strlen(body), &set, NULL), 0);
    cJSON *owner = json_new_object();
    json_add_str(owner, "apiVersion", "v1");
    json_add_str(owner, "kind", "ConfigMap");
    json_add_str(owner, "name", "gone");
    json_add_str(owner, "uid", "11111111-1111-1111-1111-111111111111");
    json_append_item(json_add_array(json_get(set, "metadata"), "ownerReferences"), owner);
    CLEANUP_FREE char *text = json_print(set);
    assert_int_equal(ask(world, "POST", SETS, text), 201);
    run_alone(world, 60);
    assert_int_equal(ask(world, "GET", SETS "/db", NULL), 404);
    assert_int_equal(count_of(world, PODS), 0);
}

/* A body without a policy, or with a misspelt one, is a background delete whatever the query says. Trace s7.
 */
static void a_body_silences_the_query(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *body;
    } cases[] = {{SETS "/db?propagationPolicy=Orphan", "{\"kind\":\"DeleteOptions\"}"},
                 {SETS "/db?propagationPolicy=Orphan", "{\"propagationpolicy\":\"Orphan\"}"},
                 {SETS "/db?dryRun=All", "{\"propagationPolicy\":\"Background\"}"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        WORLD world = make(false);
        assert_int_equal(post_set(world, 2, "i:1", ""), 201);
        run(world, 6);
        assert_int_equal(ask(world, "DELETE", cases[i].path, cases[i].body), 200);
        assert_string_equal(json_str(world->body, "kind"), "Status");
        run_alone(world, 60);
        assert_int_equal(count_of(world, PODS), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_come_one_after_another_or_all_at_once),
        cmocka_unit_test(status_comes_after_a_while),
        cmocka_unit_test(an_update_goes_from_the_highest_ordinal_down),
        cmocka_unit_test(a_partition_holds_the_rest),
        cmocka_unit_test(on_delete_replaces_what_is_deleted),
        cmocka_unit_test(an_old_revision_that_is_wanted_again_gets_the_next_number),
        cmocka_unit_test(a_stuck_ordered_rollout_stays_stuck),
        cmocka_unit_test(a_set_made_again_adopts_pods_and_revision),
        cmocka_unit_test(a_canary_is_lost_by_making_it_again_in_one_step),
        cmocka_unit_test(a_canary_is_kept_in_two_steps),
        cmocka_unit_test(a_forgotten_number_of_replicas_kills_pods_and_claims),
        cmocka_unit_test(claims_change_hands_with_their_set),
        cmocka_unit_test(with_the_collector_off_a_dying_set_does_nothing),
        cmocka_unit_test(a_second_delete_in_the_background_kills_the_pods),
        cmocka_unit_test(fresh_pods_are_lost_to_the_collector),
        cmocka_unit_test(another_finalizer_holds_a_set_whose_pods_are_orphans_already),
        cmocka_unit_test(a_set_whose_owner_is_gone_is_collected),
        cmocka_unit_test(a_body_silences_the_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
