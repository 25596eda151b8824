/* SPDX-License-Identifier: Apache-2.0
 *
 * Converge as a plan: the claims, how they grow, and how they are led back from what cannot be. */
#include "converge_scene.h"

/* --- claims --------------------------------------------------------------------------------------------- */

static void a_claim_that_may_not_grow_is_asked_why(void **state)
{
    static const struct {
        int same, more;
        bool knows_classes;
        enum error_code code;
        const char *words;
    } table[] = {
        {403, 403, true, ERROR_FORBIDDEN, "you may not patch it"},
        {200, 403, true, ERROR_FAILED, "a quota or a limit range"},
        {200, 403, false, ERROR_FAILED, "its storage class lets no volume grow, or a quota"},
        {200, 200, true, ERROR_FAILED, "a quota or a limit range"},
    };
    struct scene *scene = *state;
    cJSON *classes = scene->classes;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        scene->classes = table[i].knows_classes ? classes : NULL;
        begin_desired(scene);
        look(scene);
        prove(scene);
        expect(scene, CONVERGE_PROBE);
        refuse(scene, 403, "Forbidden", "");
        expect(scene, CONVERGE_PROBE);
        assert_string_equal(
            json_path_str(scene->turn.ask.body, "spec", "resources", "requests", "storage", NULL), "1Gi");
        table[i].same == 200 ? agree(scene) : refuse(scene, 403, "Forbidden", "");
        assert_string_equal(
            json_path_str(scene->turn.ask.body, "spec", "resources", "requests", "storage", NULL),
            "1073741825");
        table[i].more == 200 ? agree(scene) : refuse(scene, 403, "Forbidden", "");
        expect_end(scene, table[i].code, table[i].words);
        expect_phrase(scene, "data-db-0");
        assert_false(converge_has_written(scene->converge));
        converge_free(STEAL(scene->converge));
    }
    scene->classes = classes;
}

static void every_claim_is_probed_before_the_first_grows(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    look(scene);
    prove(scene);
    expect(scene, CONVERGE_PROBE);
    agree(scene);
    expect(scene, CONVERGE_PROBE);
    assert_string_equal(scene->turn.ask.name, "data-db-1");
    refuse(scene, 422, "Invalid", "{\"reason\":\"FieldValueForbidden\",\"field\":\"spec\"}");
    expect_end(scene, ERROR_FAILED, "data-db-1");
    expect_phrase(scene, "nothing was written");
}

static void expect_spec(const cJSON *body, const char *text)
{
    CLEANUP_JSON cJSON *wanted = parse(text);
    CLEANUP_FREE char *is = json_print_sorted(json_get(body, "spec"));
    CLEANUP_FREE char *is_to_be = json_print_sorted(wanted);
    assert_string_equal(is, is_to_be);
}

/* Report 10: a server refuses whatever else of a claim's spec would change, a volumeName that a manifest
 * lacks. */
static void of_a_claim_only_the_request_is_written(void **state)
{
    static const char request[] = "{'resources':{'requests':{'storage':'2Gi'}}}";
    struct scene *scene = *state;
    begin_desired(scene);
    look(scene);
    prove(scene);
    expect(scene, CONVERGE_PROBE);
    assert_string_equal(scene->turn.ask.method, "PATCH");
    expect_spec(scene->turn.ask.body, request);
    agree(scene);
    agree(scene);
    expect(scene, CONVERGE_GROW);
    expect_spec(scene->turn.step->body, request);
}

/* Report 29: "waiting for a pod to be restarted" is said of every healthy growth, and no reason to wait. */
static void a_file_system_that_is_to_be_resized_holds_up_nothing(void **state)
{
    struct scene *scene = *state;
    grow_all(scene);
    for (cJSON *claim = scene->claims->child; claim; claim = claim->next)
        change(claim, "{'status':{'conditions':[{'type':'FileSystemResizePending','status':'True'}]}}");
    look(scene);
    prove(scene);
    expect(scene, CONVERGE_KEEP);
}

/* Report 28: nobody resizes, and that holds up nothing for ever. */
static void the_first_claim_of_a_class_is_looked_at_alone(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    look(scene);
    prove(scene);
    agree(scene);
    agree(scene);
    expect(scene, CONVERGE_GROW);
    assert_string_equal(scene->turn.step->uid, "c-data-db-0");
    assert_string_equal(scene->turn.step->version, "4");
    apply(scene);
    cJSON *claim = named(scene->claims, "data-db-0");
    change(claim, "{'status':{'allocatedResources':null,'allocatedResourceStatuses':null}}");
    look(scene);
    expect(scene, CONVERGE_LOOK);
    expect_phrase(scene, "no storage controller has taken it up yet");
    scene->boot_us += 29 * US_PER_S;
    look(scene);
    expect(scene, CONVERGE_LOOK);
    /* Nobody says anything: it goes on after thirty seconds. */
    scene->boot_us += 2 * US_PER_S;
    look(scene);
    expect(scene, CONVERGE_GROW);
    assert_string_equal(scene->turn.step->name, "data-db-1");
}

/* Proven, probed, and the first of its claims was asked for. */
static void grow_first(struct scene *scene)
{
    begin_desired(scene);
    look(scene);
    prove(scene);
    agree(scene);
    agree(scene);
    apply(scene);
}

/* Two commands that want different sizes would answer each other for ever. */
static void a_claim_that_somebody_sets_to_another_size_is_left_alone(void **state)
{
    struct scene *scene = *state;
    grow_all(scene);
    cJSON *claim = named(scene->claims, "data-db-0");
    change(claim, "{'spec':{'resources':{'requests':{'storage':'1536Mi'}}}}");
    look(scene);
    expect_end(scene, ERROR_FAILED,
               "claim data-db-0 is left to others: this command has set it to 2Gi, and "
               "somebody has set it to 1536Mi since");
}

static void a_claim_that_was_made_anew_is_another_one(void **state)
{
    struct scene *scene = *state;
    grow_all(scene);
    change(named(scene->claims, "data-db-0"),
           "{'metadata':{'uid':'another'},'spec':{'resources':{'requests':{'storage':'1Gi'}}}}");
    look(scene);
    expect(scene, CONVERGE_GROW);
    assert_string_equal(scene->turn.step->name, "data-db-0");
}

/* A run that was broken off has asked for one, and nobody has answered: the next run waits for that one, and
 * takes no other for the first. */
static void what_an_earlier_run_asked_for_is_the_first_of_its_class_still(void **state)
{
    struct scene *scene = *state;
    grow_first(scene);
    change(named(scene->claims, "data-db-0"),
           "{'status':{'allocatedResources':null,'allocatedResourceStatuses':null}}");
    for (int run = 0; run < 3; run++) {
        converge_free(STEAL(scene->converge));
        begin_desired(scene);
        look(scene);
        expect(scene, CONVERGE_LOOK);
        expect_phrase(scene, "claim data-db-0, the first of its class");
        scene->boot_us += 29 * US_PER_S;
        look(scene);
        expect(scene, CONVERGE_LOOK);
    }
    /* What it answers to this run is believed at once. */
    change(named(scene->claims, "data-db-0"),
           "{'status':{'allocatedResourceStatuses':{'storage':'ControllerResizeInfeasible'},"
           "'allocatedResources':{'storage':'2Gi'}}}");
    look(scene);
    expect_end(scene, ERROR_FAILED, "infeasible: claim data-db-0 asks for 2Gi and has 1Gi");
    assert_string_equal(growth_request(named(scene->claims, "data-db-1")), "1Gi");
}

/* Acceptance 19. */
static void a_size_that_is_infeasible_stops_it_before_the_set_is_touched(void **state)
{
    struct scene *scene = *state;
    grow_first(scene);
    change(named(scene->claims, "data-db-0"),
           "{'status':{'allocatedResourceStatuses':{'storage':'ControllerResizeInfeasible'}}}");
    look(scene);
    expect_end(scene, ERROR_FAILED, "infeasible: claim data-db-0 asks for 2Gi and has 1Gi");
    expect_phrase(scene, "neosetctl resize recover");
    /* Also when it is begun anew. */
    converge_free(STEAL(scene->converge));
    begin_desired(scene);
    look(scene);
    expect_end(scene, ERROR_FAILED, "infeasible");
    assert_false(converge_has_written(scene->converge));
}

static void a_growth_that_is_refused_leaves_the_others_grown(void **state)
{
    struct scene *scene = *state;
    grow_first(scene);
    look(scene);
    expect(scene, CONVERGE_GROW);
    tell(scene, JOURNAL_REJECTED);
    expect_end(scene, ERROR_FAILED,
               "claim data-db-1 may not grow from 1Gi to 2Gi although its dry run was well");
    expect_phrase(scene, "1 claims are grown and stay so");
}

/* Claims that were grown already, by an earlier run or by a person, are left alone. Report 38. */
static void grown_claims_are_not_grown_again(void **state)
{
    struct scene *scene = *state;
    change(named(scene->claims, "data-db-0"),
           "{'spec':{'resources':{'requests':{'storage':'2Gi'}}},'status':{"
           "'capacity':{'storage':'2Gi'}}}");
    change(named(scene->claims, "data-db-1"),
           "{'spec':{'resources':{'requests':{'storage':'3Gi'}}},'status':{"
           "'capacity':{'storage':'3Gi'}}}");
    begin_desired(scene);
    look(scene);
    prove(scene);
    look(scene);
    prove(scene);
    expect(scene, CONVERGE_KEEP);
}

/* Also not those that were made while all that was asked: they are judged by what is there then. */
static void pods_that_came_during_the_proof_are_seen(void **state)
{
    struct scene *scene = *state;
    for (cJSON *claim = scene->claims->child; claim; claim = claim->next)
        change(claim, "{'spec':{'resources':{'requests':{'storage':'2Gi'}}},'status':{'capacity':{'storage':"
                      "'2Gi'}}}");
    begin_desired(scene);
    look(scene);
    prove(scene);
    expect(scene, CONVERGE_LOOK);
    change(named(scene->pods, "db-1"), "{'metadata':{'creationTimestamp':'" YOUNG "'}}");
    look(scene);
    expect(scene, CONVERGE_LOOK);
    expect_phrase(scene, "db-1");
}

/* Each dry run would pass. */
static void quotas_are_asked_for_the_sum(void **state)
{
    static const struct {
        const char *quota, *words; /* NULL: there is room */
    } table[] = {
        {"{'requests.storage':'3Gi'},'used':{'requests.storage':'2Gi'}",
         "quota q has 1073741824 bytes of requests.storage left"},
        {"{'requests.storage':'4Gi'},'used':{'requests.storage':'2Gi'}", NULL},
        {"{'std.storageclass.storage.k8s.io/requests.storage':'3Gi'},'used':{"
         "'std.storageclass.storage.k8s.io/requests.storage':'2Gi'}",
         "the claims need 2147483648 more"},
        {"{'other.storageclass.storage.k8s.io/requests.storage':'0'},'used':{"
         "'other.storageclass.storage.k8s.io/requests.storage':'0'}",
         NULL},
        {"{'count/pods':'0'},'used':{'count/pods':'0'}", NULL},
    };
    struct scene *scene = *state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *text =
            xasprintf("[{'metadata':{'name':'q'},'status':{'hard':%s}}]", table[i].quota);
        json_delete(scene->quotas);
        scene->quotas = parse(text);
        begin_desired(scene);
        look(scene);
        prove(scene);
        agree(scene);
        agree(scene);
        if (table[i].words)
            expect_end(scene, ERROR_FAILED, table[i].words);
        else
            expect(scene, CONVERGE_GROW);
        assert_false(converge_has_written(scene->converge));
        converge_free(STEAL(scene->converge));
    }
}

/* --- the way back --------------------------------------------------------------------------------------- */

/* 10Gi cannot be; the set and one claim ask for it. */
static void fail_to_grow(struct scene *scene)
{
    set_size(scene->set, "10Gi");
    change(named(scene->claims, "data-db-0"),
           "{'spec':{'resources':{'requests':{'storage':'10Gi'}}},'status':{'allocatedResources':{'storage':'"
           "10Gi'},"
           "'allocatedResourceStatuses':{'storage':'ControllerResizeInfeasible'}}}");
}

static void back_from_what_cannot_be_claims_are_lowered_above_what_they_have(void **state)
{
    struct scene *scene = *state;
    fail_to_grow(scene);
    set_size(scene->desired, "3Gi");
    begin_desired(scene);
    look(scene);
    expect_end(scene, ERROR_REFUSED, "recover");
    converge_free(STEAL(scene->converge));
    begin(scene, (struct converge_options){.desired = scene->desired, .recovers = true});
    look(scene);
    prove(scene);
    while (scene->turn.stage == CONVERGE_PROBE)
        agree(scene);
    expect(scene, CONVERGE_GROW);
    assert_string_equal(scene->turn.step->name, "data-db-0");
    assert_string_equal(
        json_path_str(scene->turn.step->body, "spec", "resources", "requests", "storage", NULL), "3Gi");
    merge(named(scene->claims, "data-db-0"), scene->turn.step->body);
    change(named(scene->claims, "data-db-0"),
           "{'status':{'allocatedResources':{'storage':'3Gi'},"
           "'allocatedResourceStatuses':{'storage':'NodeResizePending'}}}");
    tell(scene, JOURNAL_APPLIED);
    look(scene);
    expect(scene, CONVERGE_GROW);
    assert_string_equal(scene->turn.step->name, "data-db-1");
    merge(named(scene->claims, "data-db-1"), scene->turn.step->body);
    tell(scene, JOURNAL_APPLIED);
    look(scene);
    prove(scene);
    expect(scene, CONVERGE_KEEP);
    apply(scene);
    apply(scene);
    set_goes(scene);
    look(scene);
    expect(scene, CONVERGE_MAKE);
    assert_string_equal(
        json_path_str(json_path(scene->turn.step->body, "spec", "volumeClaimTemplates", NULL)->child, "spec",
                      "resources", "requests", "storage", NULL),
        "3Gi");
}

static void a_volume_never_shrinks(void **state)
{
    static const struct {
        const char *capacity, *declared;
    } table[] = {{"3Gi", "3Gi"}, {"4Gi", "3Gi"}, {"10Gi", "3Gi"}};
    struct scene *scene = *state;
    fail_to_grow(scene);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *patch = xasprintf("{'status':{'capacity':{'storage':'%s'}}}", table[i].capacity);
        change(named(scene->claims, "data-db-0"), patch);
        set_size(scene->desired, table[i].declared);
        begin(scene, (struct converge_options){.desired = scene->desired, .recovers = true});
        look(scene);
        expect_end(scene, ERROR_REFUSED, "declare more than any of them has");
        expect_phrase(scene, "data-db-0");
        converge_free(STEAL(scene->converge));
    }
}

/* Declared is less than what failed and more than there is: the claim that failed is not overtaken by those
 * that were never asked. */
static void claims_are_led_back_in_the_order_of_their_names(void **state)
{
    struct scene *scene = *state;
    fail_to_grow(scene);
    set_size(scene->set, "1Gi");
    set_size(scene->desired, "3Gi");
    begin(scene, (struct converge_options){.desired = scene->desired, .recovers = true});
    look(scene);
    prove(scene);
    while (scene->turn.stage == CONVERGE_PROBE)
        agree(scene);
    expect(scene, CONVERGE_GROW);
    assert_string_equal(scene->turn.step->name, "data-db-0");
}

/* It was stopped before the set was touched: its template never changed. */
static void where_only_claims_failed_the_set_is_left_alone(void **state)
{
    struct scene *scene = *state;
    fail_to_grow(scene);
    set_size(scene->set, "2Gi");
    change(named(scene->claims, "data-db-1"), "{'spec':{'resources':{'requests':{'storage':'2Gi'}}}}");
    begin(scene, (struct converge_options){.desired = scene->desired, .recovers = true});
    look(scene);
    prove(scene);
    while (scene->turn.stage == CONVERGE_PROBE)
        agree(scene);
    expect(scene, CONVERGE_GROW);
    merge(named(scene->claims, "data-db-0"), scene->turn.step->body);
    tell(scene, JOURNAL_APPLIED);
    scene->boot_us += 31 * US_PER_S;
    look(scene);
    expect_end(scene, ERROR_NONE, "converged to data=2Gi");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_claim_that_may_not_grow_is_asked_why),
        RULE(every_claim_is_probed_before_the_first_grows),
        RULE(of_a_claim_only_the_request_is_written),
        RULE(a_file_system_that_is_to_be_resized_holds_up_nothing),
        RULE(the_first_claim_of_a_class_is_looked_at_alone),
        RULE(what_an_earlier_run_asked_for_is_the_first_of_its_class_still),
        RULE(a_claim_that_somebody_sets_to_another_size_is_left_alone),
        RULE(a_claim_that_was_made_anew_is_another_one),
        RULE(a_size_that_is_infeasible_stops_it_before_the_set_is_touched),
        RULE(a_growth_that_is_refused_leaves_the_others_grown),
        RULE(grown_claims_are_not_grown_again),
        RULE(pods_that_came_during_the_proof_are_seen),
        RULE(quotas_are_asked_for_the_sum),
        RULE(back_from_what_cannot_be_claims_are_lowered_above_what_they_have),
        RULE(a_volume_never_shrinks),
        RULE(claims_are_led_back_in_the_order_of_their_names),
        RULE(where_only_claims_failed_the_set_is_left_alone),
    };
    return cmocka_run_group_tests_name("converge: claims", tests, NULL, NULL);
}
