/* SPDX-License-Identifier: Apache-2.0
 *
 * People and servers who do what nobody should: labels taken off, permissions lost in mid-way, annotations
 * and revisions full of nonsense. Nothing loops at the speed of the network, nothing ends the program. */
#include "controller_scene.h"

#include "neoset/body.h"
#include "neoset/revision.h"

static long entries(struct scene *scene)
{
    return atol(sql(scene, "SELECT count(*) FROM entry"));
}

/* How many entries the next seconds bring. */
static long entries_in(struct scene *scene, int seconds)
{
    long before = entries(scene);
    pass(scene, seconds * US_PER_S);
    return entries(scene) - before;
}

static void fault(struct scene *scene, const char *spec)
{
    assert_int_equal(kubesim_fault_add(sim_server_kubesim(scene->server), spec, NULL), 0);
}

static char *prefetch_path(struct scene *scene)
{
    CLEANUP_JSON cJSON *list = sim_server_get(scene->server, PODS_PATH);
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, json_get(list, "items")) {
        size_t length = 0;
        const char *name = json_path_str(pod, "metadata", "name", NULL);
        if (neoset_split_prefetch_name(name, &length))
            return xasprintf(PODS_PATH "/%s", name);
    }
    fail_msg("no pod fetches an image");
    return NULL;
}

/* --- permissions lost in mid-way ------------------------------------------------------------------------ */

static void two_refused_kinds_of_write_are_not_sent_in_turns(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 2, 1, "mysql:8.0");
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"inPlaceUpdateStrategy\":{\"gracePeriodSeconds\":5,"
                     "\"prefetch\":\"Never\"}}}}");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 2, 60 * US_PER_S);
    pass(scene, 20 * US_PER_S);
    set_image(scene, "mysql:8.1");
    pass(scene, 2 * US_PER_S); /* drained, and in its grace period */
    fault(scene, "403,verb=patch,resource=pods/,times=0;403,verb=patch,resource=pods/status,times=0");
    assert_in_range(entries_in(scene, 60), 1, 60);
    assert_true(set_condition_is(scene, "Stalled", "True"));
}

static void a_set_goes_on_without_what_cannot_be_read(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 2, 1);
    fault(scene, "403,verb=get,resource=neosets,times=0");
    /* An orphan asks for the set to be read before it is adopted. */
    merge(scene, PODS_PATH "/mysql-1", "{\"metadata\":{\"ownerReferences\":null}}");
    pass(scene, 30 * US_PER_S);
    assert_non_null(strstr(scene->program.said, "cannot read it"));
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"pause\":true}}}");
    pass(scene, 10 * US_PER_S);
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    assert_string_equal(json_path_str(set, "status", "phase", NULL), "Paused");
    assert_in_range(entries_in(scene, 60), 0, 20);
}

static void a_status_that_always_conflicts_is_written_with_patience_and_told(void **state)
{
    struct scene *scene = *state;
    start_idle_set(scene, 2, 1);
    pass(scene, 5 * US_PER_S);
    fault(scene, "409,verb=patch,resource=neosets/status,times=0");
    uint64_t before = kubesim_fault_hits(sim_server_kubesim(scene->server));
    patch_set(scene, "{\"spec\":{\"updateStrategy\":{\"pause\":true}}}");
    pass(scene, 120 * US_PER_S);
    assert_in_range(kubesim_fault_hits(sim_server_kubesim(scene->server)) - before, 3, 40);
    assert_non_null(strstr(scene->program.said, "cannot write the status"));
}

/* --- pods that fetch images ----------------------------------------------------------------------------- */

/* A set whose next image is nowhere; the path of the pod that fetches it, the caller's. */
static char *start_fetching_in_vain(struct scene *scene)
{
    start_idle_set(scene, 2, 1);
    pass(scene, 5 * US_PER_S);
    set_image(scene, "mysql:none1");
    pass(scene, 10 * US_PER_S);
    return prefetch_path(scene);
}

static void a_prefetch_pod_that_lost_its_label_is_nobodys(void **state)
{
    struct scene *scene = *state;
    CLEANUP_FREE char *path = start_fetching_in_vain(scene);
    merge(scene, path, "{\"metadata\":{\"labels\":{\"apps.neo.io/prefetch-for\":null}}}");
    pass(scene, 2 * US_PER_S);
    set_image(scene, "mysql:8.1");
    assert_in_range(entries_in(scene, 10), 1, 100);
    wait_for(scene, "Completed", "mysql:8.1", 2, 240 * US_PER_S);
}

static void the_delete_of_an_orphaned_prefetch_pod_is_asked_for_with_patience(void **state)
{
    struct scene *scene = *state;
    CLEANUP_FREE char *path = start_fetching_in_vain(scene);
    fault(scene, "403,verb=delete,resource=pods,times=40");
    assert_int_equal(sim_server_ask(scene->server, "DELETE", SET_PATH, "application/json",
                                    "{\"propagationPolicy\":\"Orphan\"}", NULL),
                     200);
    assert_in_range(entries_in(scene, 60), 1, 120);
    pass(scene, 1800 * US_PER_S);
    CLEANUP_JSON cJSON *left = sim_server_get(scene->server, path);
    assert_null(left);
    assert_nothing_is_open(scene);
}

/* --- nonsense ------------------------------------------------------------------------------------------- */

static void an_annotation_full_of_containers_that_the_pod_has_not_is_survived(void **state)
{
    struct scene *scene = *state;
    create_set(scene, 3, 1, "mysql:8.0");
    patch_set(scene,
              "{\"spec\":{\"updateStrategy\":{\"inPlaceUpdateStrategy\":{\"readinessTimeoutSeconds\":600,"
              "\"prefetch\":\"Never\"}}}}");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", 3, 60 * US_PER_S);
    set_image(scene, "mysql:none1");
    pass(scene, 60 * US_PER_S);
    CLEANUP_BUF struct buf text = BUF_INIT(1 << 20);
    buf_add_text(&text, "{\\\"target\\\":\\\"x\\\",\\\"step\\\":\\\"k-1\\\",\\\"containers\\\":{");
    for (int i = 0; i < 255; i++)
        buf_addf(&text, "%s\\\"c%d\\\":{\\\"image\\\":\\\"i\\\"}", i ? "," : "", i);
    buf_add_text(&text, "}}");
    CLEANUP_FREE char *body = xasprintf(
        "{\"metadata\":{\"annotations\":{\"apps.neo.io/in-place-state\":\"%s\"}}}", buf_text(&text));
    merge(scene, PODS_PATH "/mysql-2", body);
    set_image(scene, "mysql:8.1");
    wait_for(scene, "Completed", "mysql:8.1", 3, 900 * US_PER_S);
}

static void a_template_that_is_nonsense_can_be_compared_and_made_into_objects(void **state)
{
    (void)state;
    static const char *const templates[] = {
        "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"m\",\"image\":\"i\","
        "\"resources\":{\"limits\":[\"x\"],\"requests\":{\"x\":1}}}]}}",
        "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"m\",\"image\":\"i\","
        "\"ports\":{\"a\":1}}],\"volumes\":{\"x\":{\"name\":7}},\"readinessGates\":{\"a\":1},"
        "\"initContainers\":\"x\"}}",
        "{\"metadata\":{\"labels\":[\"a\"],\"annotations\":[\"b\",1]},\"spec\":{\"containers\":[{\"name\":"
        "\"m\","
        "\"image\":\"j\"}]}}",
        "{\"metadata\":[1],\"spec\":[{\"containers\":1}]}",
        "{\"metadata\":\"x\",\"spec\":\"y\"}",
        "{\"spec\":{\"containers\":{\"a\":{\"name\":\"m\",\"image\":\"i\"}}}}",
    };
    struct intern *pool = intern_make();
    for (size_t i = 0; i < ARRAY_SIZE(templates); i++) {
        CLEANUP_FREE char *text = xasprintf("{\"metadata\":{\"name\":\"s\",\"namespace\":\"n\",\"uid\":\"u\","
                                            "\"resourceVersion\":\"1\"},\"spec\":{"
                                            "\"replicas\":1,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"
                                            "\"volumeClaimTemplates\":[{\"metadata\":{"
                                            "\"name\":\"d\",\"labels\":[1]},\"spec\":[1]}],\"template\":%s}}",
                                            templates[i]);
        CLEANUP_JSON cJSON *object = NULL;
        assert_int_equal(json_parse(text, strlen(text), &object, NULL), 0);
        struct neoset_fact *set = neoset_fact_make(pool, object);
        for (size_t k = 0; k < ARRAY_SIZE(templates); k++) {
            struct template_diff diff = {0};
            template_diff_make(templates[i], templates[k], &diff);
            template_diff_done(&diff);
            json_delete(body_pod(set, templates[k], "r", 0, NULL));
        }
        if (set->template_text)
            json_delete(revision_object(set, "r", 1));
        if (set->claim_template_count > 0)
            json_delete(body_claim(set, &set->claim_templates[0], 0));
        neoset_fact_free(set);
    }
    intern_free(pool);
}

int main(void)
{
    use_memory_for_journals();
    const struct CMUnitTest tests[] = {
        scene_test(two_refused_kinds_of_write_are_not_sent_in_turns),
        scene_test(a_status_that_always_conflicts_is_written_with_patience_and_told),
        scene_test(a_set_goes_on_without_what_cannot_be_read),
        scene_test(a_prefetch_pod_that_lost_its_label_is_nobodys),
        scene_test(the_delete_of_an_orphaned_prefetch_pod_is_asked_for_with_patience),
        scene_test(an_annotation_full_of_containers_that_the_pod_has_not_is_survived),
        cmocka_unit_test(a_template_that_is_nonsense_can_be_compared_and_made_into_objects),
    };
    return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
