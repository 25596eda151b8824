/* SPDX-License-Identifier: Apache-2.0
 *
 * A StatefulSet that somebody took from its pods to grow its volumes, and who never comes back: after two
 * minutes the controller makes it again from the manifest that is kept in the cluster, without any journal of
 * his. kubesim runs the StatefulSet. */
#include "controller_scene.h"

#include "kube/object.h"
#include "neoset/controller_parts.h"
#include "volume/drive.h"
#include "volume/keep.h"
#include "volume/verify.h"

#define STATEFULSETS_PATH "/apis/apps/v1/namespaces/default/statefulsets"
#define REVISIONS_PATH "/apis/apps/v1/namespaces/default/controllerrevisions"

static void person(struct scene *scene, const char *method, const char *path, const char *body)
{
    CLEANUP_JSON cJSON *answer = NULL;
    int status = sim_server_ask(scene->server, method, path, "application/json", body, &answer);
    if (status != 200 && status != 201)
        fail_msg("%s %s: %d %s", method, path, status, json_str(answer, "message"));
}

static cJSON *statefulset(struct scene *scene)
{
    return sim_server_get(scene->server, STATEFULSETS_PATH "/mysql");
}

static cJSON *kept(struct scene *scene)
{
    CLEANUP_JSON cJSON *list = sim_server_get(scene->server, REVISIONS_PATH "?labelSelector=" KEEP_LABEL);
    const cJSON *items = json_get(list, "items");
    return items && items->child ? json_copy(items->child) : NULL;
}

static char *pods_text(struct scene *scene)
{
    CLEANUP_JSON cJSON *list = sim_server_get(scene->server, PODS_PATH);
    CLEANUP_JSON cJSON *picture = verify_picture(json_get(list, "items"));
    return json_print_sorted(picture);
}

/* As the caller leaves it: the manifest is kept, with the larger size, and the set is gone. more: in front of
 * the manifest's annotations. */
static void leave_it(struct scene *scene, const char *adopted_by)
{
    kubesim_run_statefulsets(sim_server_kubesim(scene->server));
    person(scene, "POST", STATEFULSETS_PATH,
           "{\"metadata\":{\"name\":\"mysql\"},\"spec\":{\"replicas\":3,\"serviceName\":\"mysql\","
           "\"podManagementPolicy\":"
           "\"Parallel\",\"selector\":{\"matchLabels\":{\"app\":\"mysql\"}},\"template\":{\"metadata\":{"
           "\"labels\":{"
           "\"app\":\"mysql\"}},\"spec\":{\"containers\":[{\"name\":\"mysql\",\"image\":\"mysql:8.0\"}]}},"
           "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"data\"},\"spec\":{\"accessModes\":["
           "\"ReadWriteOnce\"],"
           "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}]}}");
    pass(scene, 20 * US_PER_S);
    CLEANUP_JSON cJSON *set = statefulset(scene);
    cJSON *template = json_path(set, "spec", "volumeClaimTemplates", NULL)->child;
    json_set_str(json_path(template, "spec", "resources", "requests", NULL), "storage", "2Gi");
    CLEANUP_JSON cJSON *object = keep_object(set);
    if (adopted_by)
        json_set_str(json_ensure_object(json_get(object, "metadata"), "annotations"), KEEP_ADOPTED_BY,
                     adopted_by);
    CLEANUP_FREE char *text = json_print(object);
    person(scene, "POST", REVISIONS_PATH, text);
    person(scene, "DELETE", STATEFULSETS_PATH "/mysql",
           "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Orphan\"}");
    pass(scene, 5 * US_PER_S);
    assert_null(statefulset(scene));
}

static const char *size_of(const cJSON *set)
{
    const cJSON *templates = json_path(set, "spec", "volumeClaimTemplates", NULL);
    return templates ? json_path_str(templates->child, "spec", "resources", "requests", "storage", NULL)
                     : NULL;
}

static void assert_made_again(struct scene *scene, const char *pods_before)
{
    CLEANUP_JSON cJSON *set = statefulset(scene);
    assert_non_null(set);
    assert_string_equal(size_of(set), "2Gi");
    assert_null(kube_object_annotation(set, "apps.neo.io/step"));
    CLEANUP_FREE char *pods = pods_text(scene);
    assert_string_equal(pods, pods_before);
    CLEANUP_JSON cJSON *list = sim_server_get(scene->server, PODS_PATH);
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, json_get(list, "items"))
        assert_true(kube_object_is_controlled_by(pod, kube_object_uid(set)));
    CLEANUP_JSON cJSON *left = kept(scene);
    assert_null(left);
    assert_nothing_is_open(scene);
    assert_history_agrees(scene);
}

static void after_two_minutes_it_is_made_again(void **state)
{
    struct scene *scene = *state;
    leave_it(scene, NULL);
    CLEANUP_FREE char *pods = pods_text(scene);
    start(scene);
    pass(scene, 115 * US_PER_S);
    assert_null(statefulset(scene));
    pass(scene, 25 * US_PER_S);
    assert_made_again(scene, pods);
}

/* Nothing of an earlier run is needed: neither its memory nor its journal. */
static void another_controller_with_another_journal_does_it_too(void **state)
{
    struct scene *scene = *state;
    leave_it(scene, NULL);
    CLEANUP_FREE char *pods = pods_text(scene);
    start(scene);
    pass(scene, 60 * US_PER_S);
    kill_program(&scene->program);
    CLEANUP_FREE char *path = xasprintf("%s-other", scene->files.path);
    start_program(scene, &scene->program, path, "pod-1");
    pass(scene, 115 * US_PER_S);
    assert_null(statefulset(scene));
    pass(scene, 25 * US_PER_S);
    CLEANUP_JSON cJSON *set = statefulset(scene);
    assert_non_null(set);
    CLEANUP_FREE char *now = pods_text(scene);
    assert_string_equal(now, pods);
}

static void one_that_was_handed_to_a_neoset_is_not_made_again(void **state)
{
    struct scene *scene = *state;
    leave_it(scene, "mysql");
    start(scene);
    pass(scene, 600 * US_PER_S);
    assert_null(statefulset(scene));
}

/* The set is there, and what is kept is of this very one. */
static void as_if_it_never_went(struct scene *scene)
{
    leave_it(scene, NULL);
    CLEANUP_JSON cJSON *revision = kept(scene);
    CLEANUP_JSON cJSON *again = keep_recreation(revision);
    CLEANUP_FREE char *text = json_print(again);
    person(scene, "POST", STATEFULSETS_PATH, text);
    CLEANUP_JSON cJSON *set = statefulset(scene);
    CLEANUP_FREE char *label =
        xasprintf("{\"metadata\":{\"labels\":{\"" KEEP_LABEL "\":\"%s\"}}}", kube_object_uid(set));
    CLEANUP_FREE char *path = xasprintf(REVISIONS_PATH "/%s", kube_object_name(revision));
    merge(scene, path, label);
}

static void a_set_that_never_went_is_left_alone(void **state)
{
    struct scene *scene = *state;
    as_if_it_never_went(scene);
    start(scene);
    pass(scene, 600 * US_PER_S);
    CLEANUP_JSON cJSON *left = kept(scene);
    assert_non_null(left);
}

static void assert_nobody_is_missed(struct scene *scene)
{
    pass(scene, 300 * US_PER_S);
    assert_null(statefulset(scene));
    if (strstr(scene->program.said, "made it again"))
        fail_msg("%s", scene->program.said);
}

static void one_that_is_handed_to_a_neoset_later_is_forgotten(void **state)
{
    struct scene *scene = *state;
    leave_it(scene, NULL);
    start(scene);
    pass(scene, 60 * US_PER_S);
    CLEANUP_JSON cJSON *revision = kept(scene);
    CLEANUP_FREE char *path = xasprintf(REVISIONS_PATH "/%s", kube_object_name(revision));
    merge(scene, path, "{\"metadata\":{\"annotations\":{\"" KEEP_ADOPTED_BY "\":\"mysql\"}}}");
    assert_nobody_is_missed(scene);
}

/* Nobody tells of what goes while there is no watch: the list that follows does not show it. */
static void one_that_a_list_does_not_show_is_forgotten(void **state)
{
    struct scene *scene = *state;
    as_if_it_never_went(scene);
    struct kubesim *sim = sim_server_kubesim(scene->server);
    assert_int_equal(kubesim_fault_add(sim, "freeze,resource=controllerrevisions", NULL), 0);
    start(scene);
    pass(scene, 30 * US_PER_S);
    CLEANUP_JSON cJSON *revision = kept(scene);
    CLEANUP_FREE char *path = xasprintf(REVISIONS_PATH "/%s", kube_object_name(revision));
    person(scene, "DELETE", path, NULL);
    kubesim_compact(sim);
    pass(scene, 700 * US_PER_S);
    person(scene, "DELETE", STATEFULSETS_PATH "/mysql",
           "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Orphan\"}");
    assert_nobody_is_missed(scene);
}

/* The caller comes back in time, makes it again, and dies once more. */
static void what_its_caller_made_again_is_looked_after(void **state)
{
    struct scene *scene = *state;
    leave_it(scene, NULL);
    CLEANUP_FREE char *pods = pods_text(scene);
    start(scene);
    pass(scene, 100 * US_PER_S);
    CLEANUP_JSON cJSON *revision = kept(scene);
    CLEANUP_JSON cJSON *again = keep_recreation(revision);
    CLEANUP_FREE char *text = json_print(again);
    person(scene, "POST", STATEFULSETS_PATH, text);
    CLEANUP_JSON cJSON *made = statefulset(scene);
    pass(scene, 100 * US_PER_S);
    CLEANUP_JSON cJSON *left = kept(scene);
    assert_non_null(left);
    pass(scene, 40 * US_PER_S);
    CLEANUP_JSON cJSON *set = statefulset(scene);
    assert_string_equal(kube_object_uid(set), kube_object_uid(made));
    assert_made_again(scene, pods);
}

/* No set is deleted by a controller. */
static void one_that_somebody_made_with_the_old_sizes_stays_so(void **state)
{
    struct scene *scene = *state;
    leave_it(scene, NULL);
    start(scene);
    CLEANUP_JSON cJSON *revision = kept(scene);
    CLEANUP_JSON cJSON *again = keep_recreation(revision);
    cJSON *template = json_path(again, "spec", "volumeClaimTemplates", NULL)->child;
    json_set_str(json_path(template, "spec", "resources", "requests", NULL), "storage", "1Gi");
    CLEANUP_FREE char *text = json_print(again);
    person(scene, "POST", STATEFULSETS_PATH, text);
    CLEANUP_JSON cJSON *made = statefulset(scene);
    pass(scene, 200 * US_PER_S);
    CLEANUP_JSON cJSON *set = statefulset(scene);
    assert_string_equal(kube_object_uid(set), kube_object_uid(made));
    assert_string_equal(size_of(set), "1Gi");
    CLEANUP_JSON cJSON *left = kept(scene);
    assert_null(left);
    assert_history_agrees(scene);
}

static void a_server_that_does_not_answer_is_asked_again(void **state)
{
    struct scene *scene = *state;
    leave_it(scene, NULL);
    CLEANUP_FREE char *pods = pods_text(scene);
    struct error *err = NULL;
    assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server),
                                       "500,verb=create,resource=statefulsets,times=2", &err),
                     0);
    assert_int_equal(
        kubesim_fault_add(sim_server_kubesim(scene->server), "lost,verb=create,resource=statefulsets", &err),
        0);
    start(scene);
    pass(scene, 300 * US_PER_S);
    assert_made_again(scene, pods);
}

/* "Too many requests" is no outcome: it is sent again, by whoever wants it. */
static void what_is_refused_for_now_is_sent_again(void **state)
{
    struct scene *scene = *state;
    leave_it(scene, NULL);
    CLEANUP_FREE char *pods = pods_text(scene);
    assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server),
                                       "429,retry=1,verb=create,resource=statefulsets,times=2", NULL),
                     0);
    start(scene);
    pass(scene, 160 * US_PER_S);
    assert_made_again(scene, pods);
}

static void count_reads(void *context, const struct env_sim_call *call, struct env_sim_route *route)
{
    int *reads = context;
    latency(NULL, call, route);
    *reads += strcmp(call->method, "GET") == 0 && strstr(call->path, "/statefulsets/db") != NULL;
}

/* Most manifests are kept for a moment: whether somebody is there is asked when one has been there for a
 * while. */
static void a_manifest_that_is_kept_for_a_moment_costs_no_request(void **state)
{
    static const char object[] =
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"ControllerRevision\",\"metadata\":{\"name\":\"db-kept-u\","
        "\"labels\":{\"apps.neo.io/resize-of\":\"u\"}},\"revision\":1,\"data\":{\"apiVersion\":\"apps/v1\","
        "\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"db\",\"namespace\":\"default\",\"uid\":\"u\"},"
        "\"spec\":{\"replicas\":1}}}";
    struct scene *scene = *state;
    int reads = 0;
    env_sim_on_route(scene->world, count_reads, &reads);
    start(scene);
    pass(scene, US_PER_S);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            sim_server_ask(scene->server, "POST", REVISIONS_PATH, "application/json", object, NULL), 201);
        pass(scene, 4 * US_PER_S);
        assert_int_equal(reads, 0);
        if (i == 0)
            assert_int_equal(
                sim_server_ask(scene->server, "DELETE", REVISIONS_PATH "/db-kept-u", NULL, NULL, NULL), 200);
        pass(scene, 3 * US_PER_S);
        assert_int_equal(reads, i);
    }
    env_sim_on_route(scene->world, latency, NULL);
}

/* A lease that is lost in the middle of it is no failure: whoever leads then goes on, perhaps we again. */
static void a_lost_lease_is_no_failure(void **state)
{
    struct scene *scene = *state;
    leave_it(scene, NULL);
    CLEANUP_FREE char *pods = pods_text(scene);
    assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server),
                                       "slow=5s,verb=create,resource=statefulsets", NULL),
                     0);
    start(scene);
    pass(scene, 127 * US_PER_S);
    struct controller *controller = scene->program.controller;
    snprintf(scene->program.said, sizeof(scene->program.said), "nothing");
    controller->leads = false;
    pass(scene, 30 * US_PER_S);
    assert_string_equal(scene->program.said, "nothing"); /* that is a warning or worse */
    assert_string_equal(journal_fixture_sql(scene->files.path, "SELECT outcome FROM operation"), "cancelled");
    assert_non_null(
        strstr(journal_fixture_sql(scene->files.path, "SELECT reason FROM entry WHERE kind='end'"),
               "whoever leads goes on"));
    controller->leads = true;
    pass(scene, 150 * US_PER_S);
    assert_made_again(scene, pods);
}

struct watched_drive {
    bool may_not_look;
    bool is_ended;
};

static bool looks(void *context, const char *phrase)
{
    (void)phrase;
    return !((const struct watched_drive *)context)->may_not_look;
}

static void drive_ended(void *context, enum error_code code, const char *sentence)
{
    (void)code;
    (void)sentence;
    ((struct watched_drive *)context)->is_ended = true;
}

/* The gateway wakes a drive with a step of it in its hands: the turn, at whose end steps are given up, waits.
 */
static void a_drive_that_is_woken_takes_its_turn_from_the_loop(void **state)
{
    struct scene *scene = *state;
    leave_it(scene, NULL);
    start(scene);
    pass(scene, 10 * US_PER_S);
    assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server),
                                       "late=12s,verb=create,resource=statefulsets", NULL),
                     0);
    struct watched_drive watched = {0};
    struct program *program = &scene->program;
    struct drive *drive = drive_start(
        &(struct drive_options){.env = program->env,
                                .client = program->client,
                                .writer = "neoset",
                                .timeout_us = 10 * US_PER_S,
                                .converge = {.namespace = "default", .name = "mysql", .never_deletes = true},
                                .gateway = program->controller->gateway,
                                .journal = program->journal,
                                .looks = looks,
                                .ended = drive_ended,
                                .context = &watched});
    pass(scene, 5 * US_PER_S);
    watched.may_not_look = true;
    drive_wake(drive);
    assert_false(watched.is_ended);
    pass(scene, 1 * US_PER_MS);
    assert_true(watched.is_ended);
    drive_free(drive);
}

/* An owner that is gone would have the set collected as soon as it is made, and its pods with it. */
static void an_owner_that_is_gone_is_left_out(void **state)
{
    struct scene *scene = *state;
    leave_it(scene, NULL);
    CLEANUP_FREE char *pods = pods_text(scene);
    CLEANUP_JSON cJSON *revision = kept(scene);
    CLEANUP_FREE char *path = xasprintf(REVISIONS_PATH "/%s", kube_object_name(revision));
    person(scene, "DELETE", path, NULL);
    cJSON *owner = json_new_object();
    json_add_str(owner, "apiVersion", "v1");
    json_add_str(owner, "kind", "ConfigMap");
    json_add_str(owner, "name", "gone");
    json_add_str(owner, "uid", "0a0a0a0a-1b1b-4c4c-8d8d-2e2e2e2e2e2e");
    json_append_item(json_add_array(json_path(revision, "data", "metadata", NULL), "ownerReferences"), owner);
    json_remove(json_get(revision, "metadata"), "resourceVersion");
    json_remove(json_get(revision, "metadata"), "uid");
    CLEANUP_FREE char *text = json_print(revision);
    person(scene, "POST", REVISIONS_PATH, text);
    start(scene);
    pass(scene, 200 * US_PER_S);
    assert_made_again(scene, pods);
    CLEANUP_JSON cJSON *set = statefulset(scene);
    assert_null(json_path(set, "metadata", "ownerReferences", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene_test(after_two_minutes_it_is_made_again),
        scene_test(another_controller_with_another_journal_does_it_too),
        scene_test(one_that_was_handed_to_a_neoset_is_not_made_again),
        scene_test(a_set_that_never_went_is_left_alone),
        scene_test(one_that_is_handed_to_a_neoset_later_is_forgotten),
        scene_test(one_that_a_list_does_not_show_is_forgotten),
        scene_test(what_its_caller_made_again_is_looked_after),
        scene_test(one_that_somebody_made_with_the_old_sizes_stays_so),
        scene_test(a_server_that_does_not_answer_is_asked_again),
        scene_test(what_is_refused_for_now_is_sent_again),
        scene_test(a_manifest_that_is_kept_for_a_moment_costs_no_request),
        scene_test(a_lost_lease_is_no_failure),
        scene_test(a_drive_that_is_woken_takes_its_turn_from_the_loop),
        scene_test(an_owner_that_is_gone_is_left_out),
    };
    use_memory_for_journals();
    return cmocka_run_group_tests_name("kept", tests, NULL, NULL);
}
