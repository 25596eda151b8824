/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose the pods, revisions and claims are: adoption, release, other people's names, and the four claim
 * retention policies. */
#include "controller_scene.h"

#include "neoset/revision.h"

#define REVISIONS_PATH "/apis/apps/v1/namespaces/default/controllerrevisions"
#define CLAIMS_PATH "/api/v1/namespaces/default/persistentvolumeclaims"

static cJSON *get(struct scene *scene, const char *base, const char *name)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s", base, name);
    return sim_server_get(scene->server, path);
}

static void person(struct scene *scene, const char *method, const char *path, const char *type,
                   const char *body)
{
    int status = sim_server_ask(scene->server, method, path, type, body, NULL);
    if (status != 200 && status != 201 && status != 202)
        fail_msg("%s %s: %d", method, path, status);
}

#define MERGE "application/merge-patch+json"

static char *owner_of(const cJSON *object, const char *kind)
{
    const cJSON *owner = NULL;
    cJSON_ArrayForEach (owner, json_path(object, "metadata", "ownerReferences", NULL)) {
        if (str_equal(json_str(owner, "kind"), kind))
            return xstrdup(json_str(owner, "uid"));
    }
    return NULL;
}

static char *uid_at(struct scene *scene, const char *base, const char *name)
{
    CLEANUP_JSON cJSON *object = get(scene, base, name);
    return xstrdup_or_null(json_path_str(object, "metadata", "uid", NULL));
}

/* --- pods ----------------------------------------------------------------------------------------------- */

/* The set is deleted, its pods and revisions left behind, and made again: it takes all of them back, and
 * nothing restarts. */
static void a_set_that_is_made_again_takes_its_pods_back(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 3, 1);
    CLEANUP_FREE char *pod_before = uid_at(scene, PODS_PATH, "mysql-1");
    person(scene, "DELETE", SET_PATH, "application/json", "{\"propagationPolicy\":\"Orphan\"}");
    pass(scene, 5 * US_PER_S);
    {
        CLEANUP_JSON cJSON *pod = get(scene, PODS_PATH, "mysql-1");
        CLEANUP_FREE char *owner = owner_of(pod, "NeoSet");
        assert_null(owner);
    }
    create_set(scene, 3, 1, "mysql:8.0");
    pass(scene, 30 * US_PER_S);
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    for (int i = 0; i < 3; i++) {
        CLEANUP_FREE char *name = xasprintf("mysql-%d", i);
        CLEANUP_JSON cJSON *pod = get(scene, PODS_PATH, name);
        CLEANUP_FREE char *owner = owner_of(pod, "NeoSet");
        assert_string_equal(owner, json_path_str(set, "metadata", "uid", NULL));
    }
    CLEANUP_FREE char *pod_after = uid_at(scene, PODS_PATH, "mysql-1");
    assert_string_equal(pod_after, pod_before);
    assert_restarts(scene, 3, 0);
    CLEANUP_JSON cJSON *list = sim_server_get(scene->server, REVISIONS_PATH);
    assert_int_equal(cJSON_GetArraySize(json_get(list, "items")), 1);
    pass(scene, US_PER_S);
    assert_true(set_has(scene, "Idle", "mysql:8.0", 3));
    assert_nothing_is_open(scene);
    assert_history_agrees(scene);
    /* And they are rolled like any other. */
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 120 * US_PER_S);
    assert_restarts(scene, 3, 1);
}

/* A StatefulSet's pods and revision: no gate, no state annotation, a label of another revision's name. */
static void make_left_behind(struct scene *scene, const char *revision_label, const char *image)
{
    for (int i = 0; i < 2; i++) {
        CLEANUP_FREE char *text = xasprintf(
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"mysql-%d\",\"labels\":{\"app\":"
            "\"mysql\","
            "\"controller-revision-hash\":\"%s\",\"statefulset.kubernetes.io/pod-name\":\"mysql-%d\"}},"
            "\"spec\":{\"hostname\":\"mysql-%d\",\"subdomain\":\"mysql\",\"containers\":[{\"name\":\"mysql\","
            "\"image\":\"%s\",\"readinessProbe\":{\"tcpSocket\":{\"port\":3306}}}]}}",
            i, revision_label, i, i, image);
        person(scene, "POST", PODS_PATH, "application/json", text);
    }
}

static void make_revision(struct scene *scene, const char *name, const char *image, const char *owner)
{
    CLEANUP_FREE char *text = xasprintf(
        "{\"apiVersion\":\"apps/"
        "v1\",\"kind\":\"ControllerRevision\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
        "\"app\":\"mysql\"}%s},\"revision\":4,\"data\":{\"spec\":{\"template\":{\"$patch\":\"replace\","
        "\"metadata\":{\"labels\":{\"app\":\"mysql\"}},\"spec\":{\"containers\":[{\"image\":\"%s\","
        "\"imagePullPolicy\":"
        "\"IfNotPresent\",\"name\":\"mysql\",\"readinessProbe\":{\"failureThreshold\":3,\"periodSeconds\":10,"
        "\"successThreshold\":1,\"tcpSocket\":{\"port\":3306},\"timeoutSeconds\":1}}],\"restartPolicy\":"
        "\"Always\"}}}}}",
        name, owner, image);
    person(scene, "POST", REVISIONS_PATH, "application/json", text);
}

static void assert_adopted_without_a_restart(struct scene *scene, const char *const uids[2])
{
    for (int i = 0; i < 2; i++) {
        CLEANUP_FREE char *name = xasprintf("mysql-%d", i);
        CLEANUP_JSON cJSON *pod = get(scene, PODS_PATH, name);
        CLEANUP_FREE char *owner = owner_of(pod, "NeoSet");
        assert_non_null(owner);
        assert_string_equal(json_path_str(pod, "metadata", "uid", NULL), uids[i]);
        CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
        assert_string_equal(json_path_str(pod, "metadata", "labels", "controller-revision-hash", NULL),
                            json_path_str(set, "status", "updateRevisionName", NULL));
    }
    assert_restarts(scene, 2, 0);
}

static void pods_of_a_statefulset_that_left_its_revision_are_adopted_as_they_are(void **state)
{
    struct scene *scene = *state;
    make_left_behind(scene, "mysql-5f6d8c9b7", "mysql:8.0");
    make_revision(scene, "mysql-5f6d8c9b7", "mysql:8.0", "");
    CLEANUP_FREE char *first = uid_at(scene, PODS_PATH, "mysql-0");
    CLEANUP_FREE char *second = uid_at(scene, PODS_PATH, "mysql-1");
    create_set(scene, 2, 1, "mysql:8.0");
    start(scene);
    pass(scene, 60 * US_PER_S);
    assert_adopted_without_a_restart(scene, (const char *const[]){first, second});
    /* Its number tells of a history. */
    assert_true(set_has(scene, "Completed", "mysql:8.0", 2));
    /* Its revision is the set's now, and no second one of the same meaning was made. */
    CLEANUP_JSON cJSON *list = sim_server_get(scene->server, REVISIONS_PATH);
    assert_int_equal(cJSON_GetArraySize(json_get(list, "items")), 1);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 2, 120 * US_PER_S);
    CLEANUP_FREE char *after = uid_at(scene, PODS_PATH, "mysql-0");
    assert_string_equal(after, first); /* in place, also without the gate */
    assert_restarts(scene, 2, 1);
}

/* The pods are free before their revision is: nobody takes them for strangers meanwhile. */
static void pods_wait_for_their_revision_to_be_free(void **state)
{
    struct scene *scene = *state;
    kubesim_set_gc(sim_server_kubesim(scene->server), false, 0, 0); /* the owner is a name only */
    create_set(scene, 2, 1, "mysql:8.0");
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"pause\":true}}}");
    make_left_behind(scene, "mysql-5f6d8c9b7", "mysql:8.0");
    make_revision(
        scene, "mysql-5f6d8c9b7", "mysql:8.0",
        ",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\",\"name\":\"mysql\","
        "\"uid\":\"11111111-2222-3333-4444-555555555555\",\"controller\":true}]");
    CLEANUP_FREE char *first = uid_at(scene, PODS_PATH, "mysql-0");
    CLEANUP_FREE char *second = uid_at(scene, PODS_PATH, "mysql-1");
    start(scene);
    pass(scene, 20 * US_PER_S);
    {
        CLEANUP_JSON cJSON *pod = get(scene, PODS_PATH, "mysql-0");
        CLEANUP_FREE char *owner = owner_of(pod, "NeoSet");
        assert_null(owner);
        CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
        assert_non_null(strstr(json_path_str(set, "status", "message", NULL), "paused"));
    }
    person(scene, "PATCH", REVISIONS_PATH "/mysql-5f6d8c9b7", MERGE,
           "{\"metadata\":{\"ownerReferences\":null}}");
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"pause\":false}}}");
    pass(scene, 60 * US_PER_S);
    assert_adopted_without_a_restart(scene, (const char *const[]){first, second});
    assert_true(set_has(scene, "Completed", "mysql:8.0", 2));
    assert_nothing_is_open(scene);
}

/* Data with blanks: the server takes it once, and never an update of it. */
static void a_revision_that_cannot_be_updated_holds_no_adoption_back(void **state)
{
    struct scene *scene = *state;
    make_left_behind(scene, "mysql-5f6d8c9b7", "mysql:8.0");
    person(scene, "POST", REVISIONS_PATH, "application/json",
           "{\"apiVersion\":\"apps/"
           "v1\",\"kind\":\"ControllerRevision\",\"metadata\":{\"name\":\"mysql-5f6d8c9b7\","
           "\"labels\":{\"app\":\"mysql\"}},\"revision\":4,\"data\": {\"spec\": {\"template\": "
           "{\"$patch\":\"replace\","
           "\"metadata\":{\"labels\":{\"app\":\"mysql\"}},\"spec\":{\"containers\":[{\"image\":\"mysql:8.0\","
           "\"name\":\"mysql\",\"readinessProbe\":{\"tcpSocket\":{\"port\":3306}}}]}}}}}");
    CLEANUP_FREE char *first = uid_at(scene, PODS_PATH, "mysql-0");
    CLEANUP_FREE char *second = uid_at(scene, PODS_PATH, "mysql-1");
    create_set(scene, 2, 1, "mysql:8.0");
    start(scene);
    pass(scene, 60 * US_PER_S);
    assert_true(atoi(sql(scene, "SELECT count(*) FROM entry WHERE kind = 'rejected'")) > 0);
    assert_adopted_without_a_restart(scene, (const char *const[]){first, second});
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 2, 120 * US_PER_S);
    assert_restarts(scene, 2, 1);
}

/* The history of the new set keeps nothing, but what a pod runs, also one that is only being adopted. */
static void what_an_orphan_runs_is_not_cut_from_history(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 2, 1);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 2, 120 * US_PER_S);
    CLEANUP_FREE char *before = uid_at(scene, PODS_PATH, "mysql-1");
    person(scene, "DELETE", SET_PATH, "application/json", "{\"propagationPolicy\":\"Orphan\"}");
    pass(scene, 5 * US_PER_S);
    kill_program(&scene->program);
    create_set(scene, 2, 1, "mysql:8.2");
    patch_set(scene, "{\"spec\":{\"revisionHistoryLimit\":0}}");
    start(scene);
    wait_for(scene, "Completed", "mysql:8.2", 2, 240 * US_PER_S);
    CLEANUP_FREE char *after = uid_at(scene, PODS_PATH, "mysql-1");
    assert_string_equal(after, before); /* in place: its revision was known */
    assert_nothing_is_open(scene);
}

static void pods_of_another_version_are_adopted_and_brought_to_the_target(void **state)
{
    struct scene *scene = *state;
    make_left_behind(scene, "mysql-5f6d8c9b7", "mysql:5.7");
    create_set(scene, 2, 1, "mysql:8.0");
    start(scene);
    pass(scene, 240 * US_PER_S);
    CLEANUP_JSON cJSON *pod = get(scene, PODS_PATH, "mysql-0");
    const cJSON *containers = json_path(pod, "spec", "containers", NULL);
    assert_string_equal(json_str(containers->child, "image"), "mysql:8.0");
    assert_nothing_is_open(scene);
    assert_history_agrees(scene);
}

static void a_pod_whose_labels_stop_matching_is_released_and_not_deleted(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 2, 1);
    CLEANUP_FREE char *before = uid_at(scene, PODS_PATH, "mysql-1");
    person(scene, "PATCH", PODS_PATH "/mysql-1", MERGE, "{\"metadata\":{\"labels\":{\"app\":\"debug\"}}}");
    pass(scene, 20 * US_PER_S);
    {
        CLEANUP_JSON cJSON *pod = get(scene, PODS_PATH, "mysql-1");
        CLEANUP_FREE char *owner = owner_of(pod, "NeoSet");
        assert_null(owner);
        assert_string_equal(json_path_str(pod, "metadata", "uid", NULL), before);
        CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
        assert_non_null(strstr(json_path_str(set, "status", "message", NULL), "labels do not match"));
    }
    person(scene, "PATCH", PODS_PATH "/mysql-1", MERGE, "{\"metadata\":{\"labels\":{\"app\":\"mysql\"}}}");
    pass(scene, 20 * US_PER_S);
    assert_true(set_has(scene, "Idle", "mysql:8.0", 2));
    CLEANUP_FREE char *after = uid_at(scene, PODS_PATH, "mysql-1");
    assert_string_equal(after, before);
    assert_nothing_is_open(scene);
    assert_history_agrees(scene);
}

/* The set is deleted with its pods left behind while the watch of sets hears nothing: what was just set free
 * is not taken back for a set that is gone. */
static void nothing_is_adopted_for_a_set_that_is_gone(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 2, 1, "mysql:8.0");
    assert_int_equal(
        kubesim_fault_add(sim_server_kubesim(scene->server), "freeze=30s,resource=neosets", NULL), 0);
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 2, 25 * US_PER_S);
    pass(scene, 31 * US_PER_S);
    size_t before = sim_server_write_count(scene->server);
    person(scene, "DELETE", SET_PATH, "application/json", "{\"propagationPolicy\":\"Orphan\"}");
    pass(scene, 120 * US_PER_S);
    for (size_t i = before; i < sim_server_write_count(scene->server); i++)
        assert_null(strstr(sim_server_write(scene->server, i)->audit_id, "neo-"));
    for (int i = 0; i < 2; i++) {
        CLEANUP_FREE char *name = xasprintf("mysql-%d", i);
        CLEANUP_JSON cJSON *pod = get(scene, PODS_PATH, name);
        assert_non_null(pod);
    }
}

static void two_sets_with_one_selector_say_so_and_do_not_fight(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 2, 1);
    person(scene, "POST", SETS_PATH, "application/json",
           "{\"apiVersion\":\"apps.neo.io/"
           "v1alpha1\",\"kind\":\"NeoSet\",\"metadata\":{\"name\":\"other\"},\"spec\":{"
           "\"replicas\":2,\"serviceName\":\"other\",\"selector\":{\"matchLabels\":{\"app\":\"mysql\"}},"
           "\"template\":{\"metadata\":{\"labels\":{\"app\":\"mysql\"}},\"spec\":{\"containers\":[{\"name\":"
           "\"m\","
           "\"image\":\"mysql:8.0\"}]}}}}");
    pass(scene, 60 * US_PER_S);
    assert_true(set_condition_is(scene, "SelectorShared", "True"));
    CLEANUP_JSON cJSON *other = get(scene, SETS_PATH, "other");
    assert_int_equal(json_int64_or(json_get(other, "status"), "readyReplicas", -1), 2);
    assert_true(set_has(scene, "Idle", "mysql:8.0", 2));
    uint64_t before = kubesim_count(sim_server_kubesim(scene->server)).writes;
    pass(scene, 120 * US_PER_S);
    assert_int_equal(kubesim_count(sim_server_kubesim(scene->server)).writes, before);
    person(scene, "DELETE", SETS_PATH "/other", NULL, NULL);
    pass(scene, 60 * US_PER_S);
    assert_true(set_condition_is(scene, "SelectorShared", "False"));
    assert_nothing_is_open(scene);
}

/* Somebody has a revision of the name that ours would have. */
static void a_revision_name_that_is_taken_is_counted_around(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 1, 1, "mysql:8.0");
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    struct intern *pool = intern_make();
    struct neoset_fact *fact = neoset_fact_make(pool, set);
    CLEANUP_FREE char *name = revision_name("mysql", fact->template_digest, 0);
    neoset_fact_free(fact);
    intern_free(pool);
    CLEANUP_FREE char *text = xasprintf(
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"ControllerRevision\",\"metadata\":{\"name\":\"%s\"},"
        "\"revision\":1,\"data\":{\"mine\":true}}",
        name);
    person(scene, "POST", REVISIONS_PATH, "application/json", text);
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 1, 60 * US_PER_S);
    CLEANUP_JSON cJSON *after = sim_server_get(scene->server, SET_PATH);
    assert_int_equal(json_int64_or(json_get(after, "status"), "collisionCount", 0), 1);
    assert_string_not_equal(json_path_str(after, "status", "updateRevisionName", NULL), name);
}

/* All of them, in mid-canary: nothing is taken for stable that never proved itself, and the fence holds. */
static void revisions_that_are_deleted_in_a_canary_are_made_again(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 3, 1, "mysql:8.0");
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"partition\":1}}}");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    CLEANUP_FREE char *second = uid_at(scene, PODS_PATH, "mysql-1");
    set_image(scene, "mysql:8.1");
    pass(scene, 3 * US_PER_S); /* the canary is up, and in its window */
    CLEANUP_JSON cJSON *list = sim_server_get(scene->server, REVISIONS_PATH);
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, json_get(list, "items")) {
        CLEANUP_FREE char *path =
            xasprintf(REVISIONS_PATH "/%s", json_path_str(revision, "metadata", "name", NULL));
        person(scene, "DELETE", path, NULL, NULL);
    }
    pass(scene, 2 * US_PER_S);
    CLEANUP_JSON cJSON *made = sim_server_get(scene->server, REVISIONS_PATH);
    assert_int_equal(cJSON_GetArraySize(json_get(made, "items")), 2);
    /* Still the canary alone; a lost pod below the fence comes back on what is stable. */
    person(scene, "DELETE", PODS_PATH "/mysql-0", NULL, NULL);
    pass(scene, 3 * US_PER_S);
    CLEANUP_JSON cJSON *back = get(scene, PODS_PATH, "mysql-0");
    const cJSON *containers = json_path(back, "spec", "containers", NULL);
    assert_string_equal(json_str(containers->child, "image"), "mysql:8.0");
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"partition\":0}}}");
    wait_for(scene, "Completed", "mysql:8.1", 3, 240 * US_PER_S);
    CLEANUP_FREE char *same = uid_at(scene, PODS_PATH, "mysql-1");
    assert_string_equal(same, second); /* in place */
    assert_nothing_is_open(scene);
    assert_history_agrees(scene);
}

/* It bears a name of the StatefulSet's, which our own naming would not give it: no second one is made. */
static void an_adopted_revision_that_is_deleted_comes_back_alone(void **state)
{
    struct scene *scene = *state;
    make_left_behind(scene, "mysql-5f6d8c9b7", "mysql:8.0");
    make_revision(scene, "mysql-5f6d8c9b7", "mysql:8.0", "");
    create_set(scene, 2, 1, "mysql:8.0");
    start(scene);
    pass(scene, 60 * US_PER_S);
    person(scene, "DELETE", REVISIONS_PATH "/mysql-5f6d8c9b7", NULL, NULL);
    pass(scene, 5 * US_PER_S);
    CLEANUP_JSON cJSON *list = sim_server_get(scene->server, REVISIONS_PATH);
    const cJSON *items = json_get(list, "items");
    assert_int_equal(cJSON_GetArraySize(items), 1);
    assert_string_equal(json_path_str(items->child, "metadata", "name", NULL), "mysql-5f6d8c9b7");
    assert_true(set_has(scene, "Completed", "mysql:8.0", 2));
    assert_restarts(scene, 2, 0);
    assert_nothing_is_open(scene);
}

/* Another set of that selector left it behind: it is that one's history, and not ours to adopt or cut. */
static void a_revision_of_another_name_is_left_alone(void **state)
{
    struct scene *scene = *state;
    make_revision(scene, "other-6f7d9c8b5d", "mysql:7.0", "");
    create_set(scene, 2, 1, "mysql:8.0");
    patch_set(scene, "{\"spec\":{\"revisionHistoryLimit\":0}}");
    start(scene);
    pass(scene, 60 * US_PER_S);
    CLEANUP_JSON cJSON *other = get(scene, REVISIONS_PATH, "other-6f7d9c8b5d");
    assert_non_null(other);
    assert_null(json_path(other, "metadata", "ownerReferences", NULL));
}

/* --- claims --------------------------------------------------------------------------------------------- */

static void create_set_with_claims(struct scene *scene, const char *when_deleted, const char *when_scaled)
{
    CLEANUP_FREE char *text = xasprintf(
        "{\"apiVersion\":\"apps.neo.io/"
        "v1alpha1\",\"kind\":\"NeoSet\",\"metadata\":{\"name\":\"mysql\"},\"spec\":{"
        "\"replicas\":3,\"serviceName\":\"mysql\",\"selector\":{\"matchLabels\":{\"app\":\"mysql\"}},"
        "\"persistentVolumeClaimRetentionPolicy\":{\"whenDeleted\":\"%s\",\"whenScaled\":\"%s\"},"
        "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"data\"},\"spec\":{\"accessModes\":["
        "\"ReadWriteOnce\"],"
        "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}],"
        "\"template\":{\"metadata\":{\"labels\":{\"app\":\"mysql\"}},\"spec\":{\"containers\":[{\"name\":"
        "\"mysql\","
        "\"image\":\"mysql:8.0\",\"readinessProbe\":{\"tcpSocket\":{\"port\":3306}}}]}}}}",
        when_deleted, when_scaled);
    person(scene, "POST", SETS_PATH, "application/json", text);
}

static bool is_there(struct scene *scene, const char *base, const char *name)
{
    CLEANUP_JSON cJSON *object = get(scene, base, name);
    return object && !json_path_str(object, "metadata", "deletionTimestamp", NULL);
}

static void each_retention_policy_keeps_and_drops_what_it_says(void **state)
{
    (void)state;
    static const char *const words[] = {"Retain", "Delete"};
    for (int deleted = 0; deleted < 2; deleted++) {
        for (int scaled = 0; scaled < 2; scaled++) {
            print_message("    whenDeleted %s, whenScaled %s\n", words[deleted], words[scaled]);
            void *at = NULL;
            setup(&at);
            struct scene *scene = at;
            create_set_with_claims(scene, words[deleted], words[scaled]);
            start(scene);
            wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
            patch_set(scene, "{\"spec\":{\"replicas\":2}}");
            pass(scene, 60 * US_PER_S);
            assert_int_equal(is_there(scene, CLAIMS_PATH, "data-mysql-2"), !scaled);
            assert_true(is_there(scene, CLAIMS_PATH, "data-mysql-1"));
            assert_nothing_is_open(scene);
            person(scene, "DELETE", SET_PATH, NULL, NULL);
            pass(scene, 60 * US_PER_S);
            assert_int_equal(is_there(scene, CLAIMS_PATH, "data-mysql-1"), !deleted);
            if (!scaled)
                assert_true(is_there(scene, CLAIMS_PATH, "data-mysql-2") == !deleted);
            assert_history_agrees(scene);
            teardown(&at);
        }
    }
}

static void a_policy_that_changes_is_followed_and_costs_nothing_afterwards(void **state)
{
    struct scene *scene = *state;
    create_set_with_claims(scene, "Retain", "Retain");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    static const char *const policies[] = {"Delete", "Retain"};
    for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
        CLEANUP_FREE char *text = xasprintf(
            "{\"spec\":{\"persistentVolumeClaimRetentionPolicy\":{\"whenDeleted\":\"%s\"}}}", policies[i]);
        patch_set(scene, text);
        pass(scene, 10 * US_PER_S);
        CLEANUP_JSON cJSON *claim = get(scene, CLAIMS_PATH, "data-mysql-0");
        CLEANUP_FREE char *owner = owner_of(claim, "NeoSet");
        assert_int_equal(owner != NULL, i == 0);
        assert_nothing_is_open(scene);
        uint64_t before = kubesim_count(sim_server_kubesim(scene->server)).writes;
        pass(scene, 60 * US_PER_S);
        assert_int_equal(kubesim_count(sim_server_kubesim(scene->server)).writes, before);
    }
}

static int64_t slow_disk(void *context)
{
    (void)context;
    return 2 * US_PER_S;
}

/* The claims are being given to the set when its policy says again that they outlive it: else the data would
 * go with a set that says "Retain". */
static void a_policy_that_changes_back_while_claims_are_on_their_way_holds(void **state)
{
    struct scene *scene = *state;
    create_set_with_claims(scene, "Retain", "Retain");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    /* The intents take a moment to be durable. */
    env_sim_on_work(scene->program.env, slow_disk, NULL);
    patch_set(scene, "{\"spec\":{\"persistentVolumeClaimRetentionPolicy\":{\"whenDeleted\":\"Delete\"}}}");
    pass(scene, US_PER_S);
    patch_set(scene, "{\"spec\":{\"persistentVolumeClaimRetentionPolicy\":{\"whenDeleted\":\"Retain\"}}}");
    pass(scene, 60 * US_PER_S);
    env_sim_on_work(scene->program.env, NULL, NULL);
    static const char *const claims[] = {"data-mysql-0", "data-mysql-1", "data-mysql-2"};
    for (size_t i = 0; i < ARRAY_SIZE(claims); i++) {
        CLEANUP_JSON cJSON *claim = get(scene, CLAIMS_PATH, claims[i]);
        CLEANUP_FREE char *owner = owner_of(claim, "NeoSet");
        if (owner)
            fail_msg("%s still belongs to the set", claims[i]);
    }
    assert_nothing_is_open(scene);
    person(scene, "DELETE", SET_PATH, NULL, NULL);
    pass(scene, 60 * US_PER_S);
    for (size_t i = 0; i < ARRAY_SIZE(claims); i++)
        assert_true(is_there(scene, CLAIMS_PATH, claims[i]));
}

static void a_claim_of_someone_else_is_never_touched(void **state)
{
    struct scene *scene = *state;
    kubesim_set_gc(sim_server_kubesim(scene->server), false, 0, 0); /* the owner is a name only */
    person(
        scene, "POST", CLAIMS_PATH, "application/json",
        "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"data-mysql-0\","
        "\"ownerReferences\":[{\"apiVersion\":\"example.com/v1\",\"kind\":\"Backup\",\"name\":\"nightly\","
        "\"uid\":\"11111111-2222-3333-4444-555555555555\",\"controller\":true}]},\"spec\":{\"accessModes\":["
        "\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}");
    create_set_with_claims(scene, "Delete", "Delete");
    start(scene);
    pass(scene, 60 * US_PER_S);
    CLEANUP_JSON cJSON *claim = get(scene, CLAIMS_PATH, "data-mysql-0");
    CLEANUP_FREE char *owner = owner_of(claim, "NeoSet");
    assert_null(owner);
}

int main(void)
{
    use_memory_for_journals();
    const struct CMUnitTest tests[] = {
        scene_test(a_set_that_is_made_again_takes_its_pods_back),
        scene_test(pods_of_a_statefulset_that_left_its_revision_are_adopted_as_they_are),
        scene_test(pods_wait_for_their_revision_to_be_free),
        scene_test(a_revision_that_cannot_be_updated_holds_no_adoption_back),
        scene_test(what_an_orphan_runs_is_not_cut_from_history),
        scene_test(pods_of_another_version_are_adopted_and_brought_to_the_target),
        scene_test(a_pod_whose_labels_stop_matching_is_released_and_not_deleted),
        scene_test(a_revision_name_that_is_taken_is_counted_around),
        scene_test(revisions_that_are_deleted_in_a_canary_are_made_again),
        scene_test(an_adopted_revision_that_is_deleted_comes_back_alone),
        scene_test(a_revision_of_another_name_is_left_alone),
        scene_test(two_sets_with_one_selector_say_so_and_do_not_fight),
        scene_test(nothing_is_adopted_for_a_set_that_is_gone),
        cmocka_unit_test(each_retention_policy_keeps_and_drops_what_it_says),
        scene_test(a_policy_that_changes_is_followed_and_costs_nothing_afterwards),
        scene_test(a_policy_that_changes_back_while_claims_are_on_their_way_holds),
        scene_test(a_claim_of_someone_else_is_never_touched),
    };
    return cmocka_run_group_tests_name("owners", tests, NULL, NULL);
}
