/* SPDX-License-Identifier: Apache-2.0
 *
 * Images are fetched to a pod's node before anything is touched: what the fetching pod looks like, what its
 * status means, and when an update waits for it. */
#include "fake_set.h"

#include "neoset/prefetch.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#define US 1000000

static struct fake *make_running(int replicas, const char *mode)
{
    struct fake *fake = fake_make(replicas, "db:1");
    fake->node = "node-a";
    CLEANUP_FREE char *text = xasprintf("\"%s\"", mode);
    fake_edit(fake, text, "updateStrategy", "inPlaceUpdateStrategy", "prefetch", NULL);
    fake_run(fake, 4 * replicas + 4);
    assert_int_equal(fake_number(fake, "availableReplicas"), replicas);
    return fake;
}

static void assert_untouched(const struct fake *fake)
{
    assert_int_equal(fake->counts.drains, 0);
    assert_int_equal(fake->counts.patches, 0);
    assert_int_equal(fake->counts.deletes, 0);
}

static void assert_says(const struct fake *fake, const char *words)
{
    const char *message = fake_text(fake, "message");
    if (!strstr(message ? message : "", words))
        fail_msg("it says '%s', not '%s'", message ? message : "", words);
}

/* --- names and statuses --------------------------------------------------------------------------------- */

static void a_fetching_pod_is_never_taken_for_one_of_the_set(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool good;
        size_t length;
    } cases[] = {
        {"db-prefetch-bcdfghjklm", true, 2},
        {"my-sql-prefetch-zzzzzzzzzz", true, 6},
        {"x-prefetch-y-prefetch-zzzzzzzzzz", true, 12},
        {"-prefetch-bcdfghjklm", false, 0},
        {"db-prefetch-bcdfghjkl", false, 0},
        {"db-prefetch-bcdfghjklmn", false, 0},
        {"db-prefetch-0123456789", false, 0},
        {"db-prefetch-bcdfghjkla", false, 0},
        {"db-prefetch-0", false, 0},
        {"db-0", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t length = 0;
        int ordinal = 0;
        assert_int_equal(neoset_split_prefetch_name(cases[i].name, &length), cases[i].good);
        assert_int_equal(length, cases[i].length);
        if (cases[i].good)
            assert_false(neoset_split_pod_name(cases[i].name, &length, &ordinal));
    }
}

static void its_name_is_the_same_for_the_same_set_node_and_images_only(void **state)
{
    (void)state;
    struct neoset_fact set = {.name = (char *)"db", .uid = (char *)"u1"};
    struct neoset_fact other = {.name = (char *)"db", .uid = (char *)"u2"};
    const struct prefetch_image images[] = {{"a", "x:1", PULL_UNSAID}, {"b", "y:1", PULL_ALWAYS}};
    const struct prefetch_image policy[] = {{"a", "x:1", PULL_UNSAID}, {"b", "y:1", PULL_NEVER}};
    const struct prefetch_image tag[] = {{"a", "x:2", PULL_UNSAID}, {"b", "y:1", PULL_ALWAYS}};
    char *const names[] = {
        prefetch_name(&set, "n1", images, 2), prefetch_name(&other, "n1", images, 2),
        prefetch_name(&set, "n2", images, 2), prefetch_name(&set, "n1", policy, 2),
        prefetch_name(&set, "n1", tag, 2),    prefetch_name(&set, "n1", images, 1),
    };
    CLEANUP_FREE char *again = prefetch_name(&set, "n1", images, 2);
    assert_string_equal(names[0], again);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t length = 0;
        assert_true(neoset_split_prefetch_name(names[i], &length));
        for (size_t k = i + 1; k < ARRAY_SIZE(names); k++)
            assert_string_not_equal(names[i], names[k]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        free(names[i]);
}

static void its_status_tells_whether_the_images_are_there(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        enum prefetch_state expected;
        const char *words;
    } cases[] = {
        {"{}", PREFETCH_UNSEEN, NULL},
        {"{\"phase\":\"Pending\"}", PREFETCH_UNSEEN, NULL},
        {"{\"phase\":\"Failed\",\"reason\":\"OutOfpods\"}", PREFETCH_ENDED, NULL},
        {"{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"m\",\"imageID\":\"\",\"state\":{"
         "\"waiting\":{\"reason\":\"ContainerCreating\"}}}]}",
         PREFETCH_UNDER_WAY, NULL},
        {"{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"m\",\"imageID\":\"sha256:x\",\"state\":{"
         "\"terminated\":{\"reason\":\"StartError\",\"exitCode\":128}}}]}",
         PREFETCH_FOUND, NULL},
        {"{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"m\",\"imageID\":\"sha256:x\",\"state\":{"
         "\"terminated\":{\"reason\":\"ContainerCannotRun\",\"exitCode\":127}}}]}",
         PREFETCH_FOUND, NULL},
        {"{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"containerStatuses\":[{\"name\":\"m\",\"imageID\":"
         "\"\",\"state\":{\"terminated\":{\"reason\":\"ContainerStatusUnknown\",\"exitCode\":137}}}]}",
         PREFETCH_ENDED, NULL},
        {"{\"containerStatuses\":[{\"name\":\"m\",\"imageID\":\"\",\"state\":{\"waiting\":{\"reason\":"
         "\"CreateContainerError\"}}}]}",
         PREFETCH_FOUND, NULL},
        {"{\"containerStatuses\":[{\"name\":\"m\",\"imageID\":\"sha256:x\",\"state\":{\"running\":{}}}]}",
         PREFETCH_FOUND, NULL},
        {"{\"containerStatuses\":[{\"name\":\"m\",\"imageID\":\"\",\"state\":{\"waiting\":{\"reason\":"
         "\"ErrImagePull\",\"message\":\"db:none: not found\"}}}]}",
         PREFETCH_UNDER_WAY, "db:none: not found"},
        {"{\"containerStatuses\":[{\"name\":\"m\",\"imageID\":\"\",\"state\":{\"waiting\":{\"reason\":"
         "\"ImagePullBackOff\",\"message\":\"Back-off pulling image \\\"db:none\\\"\"}}}]}",
         PREFETCH_UNDER_WAY, NULL},
        {"{\"containerStatuses\":[{\"name\":\"m\",\"imageID\":\"\",\"state\":{\"waiting\":{\"reason\":"
         "\"ImagePullBackOff\",\"message\":\"Back-off pulling image \\\"db:none\\\": ErrImagePull: db:none: "
         "not found\"}}}]}",
         PREFETCH_UNDER_WAY, "db:none: not found"},
        {"{\"containerStatuses\":[{\"name\":\"m\",\"imageID\":\"\",\"state\":{\"waiting\":{\"reason\":"
         "\"ErrImageNeverPull\"}}}]}",
         PREFETCH_UNDER_WAY, "ErrImageNeverPull"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf("{\"metadata\":{\"name\":\"db-prefetch-bcdfghjklm\"},\"spec\":{"
                                            "\"containers\":[{\"name\":\"m\",\"image\":\"db:none\"}]},"
                                            "\"status\":%s}",
                                            cases[i].status);
        CLEANUP_JSON cJSON *object = NULL;
        assert_int_equal(json_parse(text, strlen(text), &object, NULL), 0);
        struct intern *pool = intern_make();
        struct pod_fact *pod = pod_fact_make(pool, object);
        if (prefetch_judge(pod) != cases[i].expected)
            fail_msg("%s: %d, not %d", cases[i].status, prefetch_judge(pod), cases[i].expected);
        if (cases[i].words)
            assert_string_equal(pod->words, cases[i].words);
        else
            assert_null(pod->words);
        pod_fact_free(pod);
        intern_free(pool);
    }
}

static void of_several_images_all_must_be_there(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1, "IfPossible");
    fake_edit(fake, "[{\"name\":\"main\",\"image\":\"db:1\"},{\"name\":\"log\",\"image\":\"log:1\"}]",
              "template", "spec", "containers", NULL);
    assert_true(fake_run_until(fake, "Completed", 60)); /* made anew: nothing is fetched for that */
    assert_int_equal(fake->counts.prefetches, 0);
    int drains = fake->counts.drains;
    fake_edit(fake, "[{\"name\":\"main\",\"image\":\"db:2\"},{\"name\":\"log\",\"image\":\"log:none\"}]",
              "template", "spec", "containers", NULL);
    fake_run(fake, 20);
    assert_int_equal(fake->counts.prefetches, 1);
    assert_int_equal(fake->counts.drains, drains);
    assert_int_equal(cJSON_GetArraySize(json_path(fake->prefetches->child, "spec", "containers", NULL)), 2);
}

/* --- what is asked for ---------------------------------------------------------------------------------- */

static void the_fetching_pod_can_do_nothing_else(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(1, "db:1");
    fake->node = "node-a";
    fake_edit(fake, "[{\"name\":\"pull-me\"}]", "template", "spec", "imagePullSecrets", NULL);
    fake_edit(fake, "\"robot\"", "template", "spec", "serviceAccountName", NULL);
    fake_edit(fake, "[{\"name\":\"data\",\"emptyDir\":{}}]", "template", "spec", "volumes", NULL);
    fake_edit(fake,
              "[{\"name\":\"main\",\"image\":\"db:1\",\"imagePullPolicy\":\"Always\",\"command\":[\"run\"]},"
              "{\"name\":\"log\",\"image\":\"log:1\"}]",
              "template", "spec", "containers", NULL);
    fake_run(fake, 8);
    fake_edit(
        fake,
        "[{\"name\":\"main\",\"image\":\"db:slow\",\"imagePullPolicy\":\"Always\",\"command\":[\"run\"]},"
        "{\"name\":\"log\",\"image\":\"log:1\"}]",
        "template", "spec", "containers", NULL);
    fake_run(fake, 5);
    const cJSON *pod = fake->prefetches->child;
    assert_non_null(pod);
    const cJSON *metadata = json_get(pod, "metadata"), *spec = json_get(pod, "spec");
    assert_true(str_starts_with(json_str(metadata, "name"), "db-prefetch-"));
    CLEANUP_FREE char *labels = json_print_sorted(json_get(metadata, "labels"));
    assert_string_equal(labels, "{\"apps.neo.io/prefetch-for\":\"db\"}");
    const cJSON *owner = json_get(metadata, "ownerReferences")->child;
    assert_string_equal(json_str(owner, "uid"), "set-uid");
    CLEANUP_FREE char *text = json_print_sorted(spec);
    assert_string_equal(
        text, "{\"automountServiceAccountToken\":false,\"containers\":[{\"command\":[\"/neoset-prefetch\"],"
              "\"image\":\"db:slow\",\"imagePullPolicy\":\"Always\",\"name\":\"main\",\"securityContext\":{"
              "\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]},"
              "\"readOnlyRootFilesystem\":true}}],\"enableServiceLinks\":false,\"hostname\":\"prefetch\","
              "\"imagePullSecrets\":[{\"name\":\"pull-me\"}],\"nodeName\":\"node-a\",\"restartPolicy\":"
              "\"Never\",\"securityContext\":{\"runAsGroup\":65534,\"runAsNonRoot\":true,\"runAsUser\":65534,"
              "\"seccompProfile\":{\"type\":\"RuntimeDefault\"}},\"serviceAccountName\":\"robot\","
              "\"terminationGracePeriodSeconds\":0,\"tolerations\":[{\"operator\":\"Exists\"}]}");
}

static void one_pod_a_node_fetches_for_all_and_is_gone_when_it_found(void **state)
{
    (void)state;
    static const char *const modes[] = {"IfPossible", "Required"};
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        CLEANUP_FAKE struct fake *fake = make_running(3, modes[i]);
        fake_set_image(fake, "db:2");
        assert_true(fake_run_until(fake, "Completed", 90));
        assert_int_equal(fake->counts.prefetches, 1);
        assert_int_equal(fake->counts.prefetch_deletes, 1);
        assert_int_equal(cJSON_GetArraySize(fake->prefetches), 0);
        assert_string_equal(fake->waits, "");
        assert_null(strstr(fake->events, "Prefetch"));
        assert_int_equal(fake->counts.patches, 3);
    }
}

static void never_writes_what_it_wrote_before_there_was_any(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "Never");
    int before = fake->counts.writes;
    fake_set_image(fake, "db:2");
    assert_true(fake_run_until(fake, "Completed", 90));
    assert_int_equal(fake->counts.prefetches, 0);
    int plain = fake->counts.writes - before;
    assert_true(plain <= 3 * 6);
    /* With it: two more in all, and the first pod's own decision. */
    CLEANUP_FAKE struct fake *other = make_running(3, "IfPossible");
    before = other->counts.writes;
    fake_set_image(other, "db:2");
    assert_true(fake_run_until(other, "Completed", 90));
    assert_in_range(other->counts.writes - before, plain + 2, plain + 3);
}

static void nothing_is_fetched_where_no_image_changes(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        const char *keys[3];
    } edits[] = {
        {"{\"app\":\"db\",\"tier\":\"x\"}", {"template", "metadata", "labels"}},
        {"7", {"template", "spec", "terminationGracePeriodSeconds"}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(edits); i++) {
        CLEANUP_FAKE struct fake *fake = make_running(2, "Required");
        fake_edit(fake, edits[i].value, edits[i].keys[0], edits[i].keys[1], edits[i].keys[2], NULL);
        assert_true(fake_run_until(fake, "Completed", 60));
        assert_int_equal(fake->counts.prefetches, 0);
    }
    CLEANUP_FAKE struct fake *fake = make_running(2, "Required");
    fake_edit(fake, "\"Recreate\"", "updateStrategy", "type", NULL);
    fake_set_image(fake, "db:2");
    assert_true(fake_run_until(fake, "Completed", 60));
    assert_int_equal(fake->counts.prefetches, 0);
}

static void the_canary_alone_is_fetched_for_then_as_many_as_the_budget_lets_go(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(4, "IfPossible");
    fake_set_budget(fake, 2);
    /* Each pod on a node of its own. */
    for (int i = 0; i < 4; i++) {
        CLEANUP_FREE char *name = xasprintf("db-%d", i);
        CLEANUP_FREE char *node = xasprintf("node-%d", i);
        json_set_str(json_get(fake_pod(fake, name), "spec"), "nodeName", node);
    }
    fake->node = NULL;
    fake_set_image(fake, "db:2");
    for (int turn = 0; turn < 400 && fake->counts.prefetches == 0; turn++)
        if (fake_turn(fake) == 0)
            fake_run(fake, 1);
    fake_settle(fake);
    assert_int_equal(fake->counts.prefetches, 1);
    for (int i = 0; i < 60 && fake->counts.prefetches < 2; i++)
        fake_run(fake, 1);
    assert_int_equal(fake->counts.prefetches, 3); /* both at once */
    assert_true(fake_run_until(fake, "Completed", 60));
    assert_int_equal(fake->counts.prefetches, 4);
    assert_int_equal(fake->counts.prefetch_deletes, 4);
}

/* --- waiting, and failing ------------------------------------------------------------------------------- */

static void a_missing_image_touches_nothing_and_fails_with_the_registrys_words(void **state)
{
    (void)state;
    static const char *const modes[] = {"IfPossible", "Required"};
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        CLEANUP_FAKE struct fake *fake = make_running(3, modes[i]);
        fake_set_image(fake, "db:none");
        fake_run(fake, 20);
        assert_untouched(fake);
        assert_non_null(strstr(fake->waits, "prefetch db-prefetch-"));
        assert_says(fake, "registry.example/db: not found");
        assert_string_equal(fake_text(fake, "phase"), "Canary");
        fake->wait_expired = "prefetch";
        fake_run(fake, 2);
        assert_string_equal(fake_text(fake, "phase"), "Failed");
        assert_says(fake, "db-2 was not touched: db:none could not be fetched to node node-a within 300 s: "
                          "registry.example/db: not found.");
        assert_true(fake_condition_is(fake, "Stalled", "True"));
        assert_non_null(strstr(fake->events, "PrefetchFailed"));
        assert_untouched(fake);
        assert_int_equal(fake->counts.prefetches, 1);
        /* And then it is quiet. */
        int writes = fake->counts.writes + fake->counts.status_writes;
        fake_run(fake, 100);
        assert_int_equal(fake->counts.writes + fake->counts.status_writes, writes);
    }
}

static void it_clears_when_the_image_appears(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "IfPossible");
    fake_set_image(fake, "db:none");
    fake_run(fake, 10);
    fake->wait_expired = "prefetch";
    fake_run(fake, 2);
    assert_string_equal(fake_text(fake, "phase"), "Failed");
    /* Somebody pushed it: the kubelet tries again by itself. */
    cJSON *pod = fake->prefetches->child;
    CLEANUP_JSON cJSON *status = NULL;
    static const char found[] = "{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"main\",\"imageID\":"
                                "\"sha256:x\",\"state\":{\"terminated\":{\"reason\":\"StartError\"}}}]}";
    assert_int_equal(json_parse(found, strlen(found), &status, NULL), 0);
    json_set_item(pod, "status", STEAL(status));
    fake_turn(fake);
    fake_settle(fake);
    assert_string_not_equal(fake_text(fake, "phase"), "Failed");
    assert_int_equal(cJSON_GetArraySize(fake->prefetches), 0);
    assert_int_equal(fake->counts.drains, 1);
}

static void it_clears_by_a_new_template_an_undo_and_by_never(void **state)
{
    (void)state;
    static const char *const ways[] = {"db:2", "db:1", NULL};
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        CLEANUP_FAKE struct fake *fake = make_running(2, "IfPossible");
        fake_set_image(fake, "db:none");
        fake_run(fake, 10);
        fake->wait_expired = "prefetch";
        fake_run(fake, 2);
        assert_string_equal(fake_text(fake, "phase"), "Failed");
        assert_untouched(fake);
        fake->wait_expired = NULL;
        if (!ways[i]) {
            fake_edit(fake, "\"Never\"", "updateStrategy", "inPlaceUpdateStrategy", "prefetch", NULL);
            fake_run(fake, 3);
            assert_int_equal(fake->counts.drains, 1); /* as the person asked */
        } else {
            fake_set_image(fake, ways[i]);
            assert_true(fake_run_until(fake, "Completed", 60));
        }
        assert_int_equal(cJSON_GetArraySize(fake->prefetches), 0);
        assert_null(strstr(fake->waits, "prefetch"));
    }
}

static void a_pause_ends_what_failed_and_holds_what_waits(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "IfPossible");
    fake_set_image(fake, "db:none");
    fake_run(fake, 10);
    fake_pause(fake, true);
    fake_run(fake, 5);
    assert_string_equal(fake_text(fake, "phase"), "Paused");
    assert_int_equal(cJSON_GetArraySize(fake->prefetches), 1);
    assert_non_null(strstr(fake->waits, "prefetch"));
    fake_pause(fake, false);
    fake_run(fake, 5);
    assert_int_equal(fake->counts.prefetches, 1);
    fake->wait_expired = "prefetch";
    fake_run(fake, 2);
    assert_string_equal(fake_text(fake, "phase"), "Failed");
    fake_pause(fake, true);
    fake_run(fake, 2);
    assert_int_equal(cJSON_GetArraySize(fake->prefetches), 0);
    fake->wait_expired = NULL;
    fake_pause(fake, false);
    fake_run(fake, 2);
    assert_int_equal(fake->counts.prefetches, 2);
    assert_string_equal(fake_text(fake, "phase"), "Canary");
    assert_untouched(fake);
}

/* --- hindrances ----------------------------------------------------------------------------------------- */

/* The pod that fetched is gone, and the one that it is for has to be available again before there is another:
 * that is no time in which an image could come. */
static void time_in_which_nobody_fetches_does_not_count(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(3, "Required");
    fake_set_image(fake, "db:none");
    fake_run(fake, 20);
    assert_non_null(strstr(fake->waits, "prefetch db-prefetch-"));
    assert_null(strstr(fake->waits, "held"));
    cJSON *container = json_path(fake_pod(fake, "db-2"), "spec", "containers", NULL)->child;
    json_set_str(container, "image", "db:unready");
    fake_run(fake, 3);
    assert_null(strstr(fake->waits, "held"));
    json_delete(cJSON_DetachItemFromArray(fake->prefetches, 0));
    fake_turn(fake);
    assert_int_equal(fake_number(fake, "availableReplicas"), 2);
    assert_non_null(strstr(fake->waits, "prefetch db-prefetch-"));
    assert_non_null(strstr(fake->waits, "held"));
    json_set_str(container, "image", "db:1");
    fake_run(fake, 60);
    assert_int_equal(fake_number(fake, "availableReplicas"), 3);
    assert_int_equal(fake->counts.prefetches, 2);
    assert_null(strstr(fake->waits, "held"));
}

static void if_possible_goes_on_without_what_cannot_be_had(void **state)
{
    (void)state;
    static const char *const images[] = {"db:2", "db:mute", "db:odd"};
    for (size_t i = 0; i < ARRAY_SIZE(images); i++) {
        CLEANUP_FAKE struct fake *fake = make_running(2, "IfPossible");
        fake->refuse_prefetches = i == 0 ? 403 : 0;
        fake_set_image(fake, images[i]);
        assert_true(fake_run_until(fake, "Completed", 90));
        assert_non_null(strstr(fake->events, "PrefetchSkipped"));
        assert_int_equal(fake->counts.prefetches, 1); /* then a pod of the set runs the image there */
        assert_int_equal(cJSON_GetArraySize(fake->prefetches), 0);
    }
}

static void required_waits_and_says_so(void **state)
{
    (void)state;
    static const struct {
        const char *image;
        const char *words;
    } cases[] = {
        {"db:2", "refused by the test"},
        {"db:mute", "the node does not take up"},
        {"db:odd", "OutOfpods"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FAKE struct fake *fake = make_running(2, "Required");
        fake->refuse_prefetches = i == 0 ? 403 : 0;
        fake_set_image(fake, cases[i].image);
        fake_run(fake, 100);
        assert_untouched(fake);
        assert_says(fake, "prefetch is Required");
        assert_says(fake, cases[i].words);
        assert_in_range(fake->counts.prefetches, 1, 8); /* with patience */
        fake->wait_expired = "prefetch";
        fake_run(fake, 2);
        assert_string_equal(fake_text(fake, "phase"), "Failed");
        assert_says(fake, cases[i].words);
        /* The quota was raised: nobody else has to do anything. */
        fake->refuse_prefetches = 0;
        if (i == 0)
            assert_true(fake_run_until(fake, "Completed", 400));
    }
}

static void a_name_that_is_taken_is_left_alone(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1, "IfPossible");
    fake_set_image(fake, "db:slow");
    fake_run(fake, 3);
    assert_int_equal(fake->counts.prefetches, 1);
    cJSON *owner = json_path(fake->prefetches->child, "metadata", "ownerReferences", NULL)->child;
    json_set_str(owner, "uid", "someone-else");
    assert_true(fake_run_until(fake, "Completed", 60));
    assert_int_equal(fake->counts.prefetch_deletes, 0);
    assert_int_equal(cJSON_GetArraySize(fake->prefetches), 1);
}

/* --- edges ---------------------------------------------------------------------------------------------- */

static void a_pod_that_was_drained_for_another_target_serves_until_the_new_image_is_there(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(1, "IfPossible");
    fake_edit(fake, "60", "updateStrategy", "inPlaceUpdateStrategy", "gracePeriodSeconds", NULL);
    fake_set_image(fake, "db:2");
    for (int i = 0; i < 20 && fake->counts.drains == 0; i++)
        fake_run(fake, 1);
    fake_run(fake, 5);
    assert_int_equal(fake_number(fake, "readyReplicas"), 0);
    fake_set_image(fake, "db:none");
    fake_run(fake, 10);
    assert_int_equal(fake->counts.patches, 0);
    assert_int_equal(fake->counts.drains, 1);
    assert_int_equal(fake_number(fake, "readyReplicas"), 1);
    fake_set_image(fake, "db:2");
    assert_true(fake_run_until(fake, "Completed", 150));
}

static void a_broken_pod_is_not_waited_for(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "Required");
    fake_set_image(fake, "db:unready");
    fake_run(fake, 30);
    assert_int_equal(fake->counts.prefetches, 1);
    assert_int_equal(fake->counts.patches, 1);
    fake_set_image(fake, "db:3");
    fake_run(fake, 2);
    assert_int_equal(fake->counts.patches, 2);
    assert_int_equal(fake->counts.prefetches, 1);
    assert_true(fake_run_until(fake, "Completed", 60));
}

static void what_is_left_over_is_removed_at_start_and_when_the_set_goes(void **state)
{
    (void)state;
    static const char *const ways[] = {"restart", "deleted", "fence"};
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        CLEANUP_FAKE struct fake *fake = make_running(2, "IfPossible");
        fake_set_image(fake, "db:none");
        fake_run(fake, 5);
        assert_int_equal(cJSON_GetArraySize(fake->prefetches), 1);
        if (i == 0) { /* while the controller was away somebody went back */
            fake_set_image(fake, "db:1");
            fake_restart(fake);
        } else if (i == 1) {
            json_set_str(json_get(fake->set, "metadata"), "deletionTimestamp", "2026-11-30T07:00:00Z");
        } else {
            fake_set_fence(fake, 2);
        }
        fake_run(fake, 3);
        assert_int_equal(cJSON_GetArraySize(fake->prefetches), 0);
        assert_untouched(fake);
        assert_null(strstr(fake->waits, "prefetch"));
    }
}

static void a_restart_goes_on_with_the_pod_that_is_there(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(2, "IfPossible");
    fake_set_image(fake, "db:slow");
    fake_run(fake, 5);
    for (int i = 0; i < 5; i++) {
        fake_restart(fake);
        fake_run(fake, 2);
    }
    assert_int_equal(fake->counts.prefetches, 1);
    assert_untouched(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fetching_pod_is_never_taken_for_one_of_the_set),
        cmocka_unit_test(its_name_is_the_same_for_the_same_set_node_and_images_only),
        cmocka_unit_test(its_status_tells_whether_the_images_are_there),
        cmocka_unit_test(of_several_images_all_must_be_there),
        cmocka_unit_test(the_fetching_pod_can_do_nothing_else),
        cmocka_unit_test(one_pod_a_node_fetches_for_all_and_is_gone_when_it_found),
        cmocka_unit_test(never_writes_what_it_wrote_before_there_was_any),
        cmocka_unit_test(nothing_is_fetched_where_no_image_changes),
        cmocka_unit_test(the_canary_alone_is_fetched_for_then_as_many_as_the_budget_lets_go),
        cmocka_unit_test(a_missing_image_touches_nothing_and_fails_with_the_registrys_words),
        cmocka_unit_test(it_clears_when_the_image_appears),
        cmocka_unit_test(it_clears_by_a_new_template_an_undo_and_by_never),
        cmocka_unit_test(a_pause_ends_what_failed_and_holds_what_waits),
        cmocka_unit_test(time_in_which_nobody_fetches_does_not_count),
        cmocka_unit_test(if_possible_goes_on_without_what_cannot_be_had),
        cmocka_unit_test(required_waits_and_says_so),
        cmocka_unit_test(a_name_that_is_taken_is_left_alone),
        cmocka_unit_test(a_pod_that_was_drained_for_another_target_serves_until_the_new_image_is_there),
        cmocka_unit_test(a_broken_pod_is_not_waited_for),
        cmocka_unit_test(what_is_left_over_is_removed_at_start_and_when_the_set_goes),
        cmocka_unit_test(a_restart_goes_on_with_the_pod_that_is_there),
    };
    return cmocka_run_group_tests_name("prefetch", tests, NULL, NULL);
}
