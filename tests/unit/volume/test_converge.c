/* SPDX-License-Identifier: Apache-2.0
 *
 * Converge as a plan: the whole way, what is refused before the first write, the pause before the delete, and
 * plans that write nothing. */
#include "converge_scene.h"

/* --- the whole way -------------------------------------------------------------------------------------- */

static void nothing_is_done_when_nothing_grows(void **state)
{
    struct scene *scene = *state;
    set_size(scene->desired, "1024Mi");
    begin_desired(scene);
    look(scene);
    expect_end(scene, ERROR_NONE, "nothing to converge");
    assert_false(converge_has_written(scene->converge));
}

/* Report 25: the claims first. Report 37: made again when it is gone, not when that was asked for. Trace s13:
 * without a resourceVersion, which a dry run takes and a create does not. */
static void the_whole_way(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_delete(scene);
    const struct step_request *step = scene->turn.step;
    assert_int_equal(step->kind, STEP_ORPHAN_DELETE);
    assert_string_equal(step->uid, "u1-abcdefgh");
    assert_string_equal(step->version, "7");
    assert_null(step->body);
    assert_string_equal(step->go_to, "data=2Gi");
    assert_string_equal(step->come_from, "data=1Gi (uid u1-abcdefgh)");
    apply(scene);
    change(scene->set, "{'metadata':{'deletionTimestamp':'" OLD "','finalizers':['orphan']}}");
    look(scene);
    expect(scene, CONVERGE_LOOK);
    expect_phrase(scene, "on its way out (finalizers: orphan)");
    set_goes(scene);
    look(scene);
    expect(scene, CONVERGE_MAKE);
    CLEANUP_JSON cJSON *body = json_copy(scene->turn.step->body);
    assert_string_equal(json_path_str(json_path(body, "spec", "volumeClaimTemplates", NULL)->child, "spec",
                                      "resources", "requests", "storage", NULL),
                        "2Gi");
    assert_null(kube_object_uid(body));
    assert_null(kube_object_version(body));
    assert_null(json_path(body, "metadata", "managedFields", NULL));
    assert_null(json_get(body, "status"));
    apply(scene);
    set_comes(scene, body, "u2");
    look(scene);
    expect(scene, CONVERGE_MANAGERS);
    assert_string_equal(
        json_path_str(json_path(scene->turn.step->body, "metadata", "managedFields", NULL)->child, "manager",
                      NULL),
        "me");
    change(scene->set, "{'metadata':{'annotations':null}}");
    apply(scene);
    look(scene);
    expect(scene, CONVERGE_DROP);
    apply(scene);
    expect_end(scene, ERROR_NONE, "the same 2 pods, none restarted");
    expect_phrase(scene, "converged to data=2Gi, claims grown, made again");
}

/* --- refusals before the first write -------------------------------------------------------------------- */

/* Report 7: what is immutable on this server, as revisionHistoryLimit was, it says in the proof. Acceptance
 * 5, acceptance 7. */
static void a_refused_proof_ends_it_and_nothing_is_written(void **state)
{
    static const struct {
        int ask, http;
        const char *reason, *cause;
        enum error_code code;
        const char *words;
    } table[] = {
        {0, 422, "Invalid", "{\"reason\":\"FieldValueForbidden\",\"field\":\"spec\"}", ERROR_REFUSED,
         "immutable field"},
        {0, 422, "Invalid", "{\"reason\":\"FieldValueInvalid\",\"field\":\"spec.selector\"}", ERROR_REFUSED,
         "spec.selector"},
        {0, 422, "Invalid",
         "{\"reason\":\"FieldValueRequired\",\"field\":\"spec.template.spec.containers[0].image\"}",
         ERROR_INVALID, "containers[0].image"},
        {0, 409, "Conflict", "{\"reason\":\"FieldManagerConflict\",\"field\":\".spec.replicas\"}",
         ERROR_REFUSED, "--force-conflicts"},
        {0, 403, "Forbidden", "", ERROR_FORBIDDEN, "you may not"},
        {1, 422, "Invalid", "{\"reason\":\"FieldValueRequired\",\"field\":\"spec.volumeClaimTemplates[0]\"}",
         ERROR_INVALID, "spec.volumeClaimTemplates[0]"},
        {1, 403, "Forbidden", "", ERROR_FORBIDDEN, "you may not"},
        {2, 403, "Forbidden", "", ERROR_FORBIDDEN, "you may not"},
    };
    struct scene *scene = *state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        begin_desired(scene);
        look(scene);
        for (int ask = 0; ask < table[i].ask; ask++)
            agree(scene);
        refuse(scene, table[i].http, table[i].reason, table[i].cause);
        expect_end(scene, table[i].code, table[i].words);
        assert_false(converge_has_written(scene->converge));
        converge_free(STEAL(scene->converge));
    }
}

/* All that is written later, before anything is. */
static void a_permission_that_is_missing_is_found_before_the_first_write(void **state)
{
    struct scene *scene = *state;
    static const char *const permissions[] = {"create controllerrevisions.apps",
                                              "patch controllerrevisions.apps",
                                              "delete controllerrevisions.apps", "patch pods"};
    for (size_t i = 0; i < ARRAY_SIZE(permissions); i++) {
        begin_desired(scene);
        look(scene);
        for (int ask = 0; ask < 3; ask++)
            agree(scene);
        for (size_t k = 0; k <= i; k++) {
            expect(scene, CONVERGE_PROVE_RIGHTS);
            bool is_pod = k == 3;
            assert_int_equal(scene->turn.ask.resource, is_pod ? KUBE_POD : KUBE_REVISION);
            if (k > 0)
                assert_string_equal(scene->turn.ask.name, is_pod ? "db-0" : "db-kept-u1-abcde");
            if (k == i)
                refuse(scene, 403, "Forbidden", "");
            else if (k == 0)
                agree(scene);
            else
                refuse(scene, 404, "NotFound", "");
        }
        expect_end(scene, ERROR_FORBIDDEN, permissions[i]);
        assert_false(converge_has_written(scene->converge));
        converge_free(STEAL(scene->converge));
    }
}

static void reach_right_to_patch_pods(struct scene *scene)
{
    begin(scene, (struct converge_options){.sizes = "data=2Gi"});
    look(scene);
    for (int ask = 0; ask < 3; ask++)
        agree(scene);
    for (int i = 0; i < 2; i++)
        refuse(scene, 404, "NotFound", "");
    expect(scene, CONVERGE_PROVE_RIGHTS);
    assert_int_equal(scene->turn.ask.resource, KUBE_POD);
}

static void refuse_saying(struct scene *scene, int http, const char *reason, const char *message)
{
    CLEANUP_JSON cJSON *status = parse("{'kind':'Status','status':'Failure'}");
    json_add_str(status, "message", message);
    json_add_str(status, "reason", reason);
    json_add_int64(status, "code", http);
    CLEANUP_FREE char *text = json_print(status);
    answer(scene, http, text);
}

/* The right is there; what a webhook says of a dry run is not about it. */
static void a_pod_that_takes_no_dry_run_is_no_missing_permission(void **state)
{
    static const struct {
        int http;
        const char *reason, *message;
    } table[] = {
        {400, "BadRequest", "admission webhook \"x\" does not support dry run"},
        {422, "Invalid", "no"},
        {403, "Forbidden", "admission webhook \"validation.gatekeeper.sh\" denied the request: [x] no root"},
    };
    struct scene *scene = *state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        reach_right_to_patch_pods(scene);
        refuse_saying(scene, table[i].http, table[i].reason, table[i].message);
        expect(scene, CONVERGE_PROVE_RIGHTS);
        assert_int_equal(scene->turn.ask.resource, KUBE_STATEFULSET);
        converge_free(STEAL(scene->converge));
    }
}

/* Nor is the right taken from a sentence that only speaks of one, or from what a webhook has against what is
 * kept. */
static void only_a_webhook_of_the_pod_is_overlooked(void **state)
{
    struct scene *scene = *state;
    reach_right_to_patch_pods(scene);
    refuse_saying(scene, 403, "Forbidden",
                  "pods \"db-0\" is forbidden: User \"admission webhook \" cannot patch resource \"pods\"");
    expect_end(scene, ERROR_FORBIDDEN, "patch pods");
    converge_free(STEAL(scene->converge));
    begin(scene, (struct converge_options){.sizes = "data=2Gi"});
    look(scene);
    for (int ask = 0; ask < 2; ask++)
        agree(scene);
    expect(scene, CONVERGE_PROVE_RIGHTS);
    assert_int_equal(scene->turn.ask.resource, KUBE_REVISION);
    refuse_saying(scene, 403, "Forbidden", "admission webhook \"x\" denied the request");
    expect_end(scene, ERROR_FORBIDDEN, "create controllerrevisions.apps");
}

/* Without a manifest there is no apply that would show it. */
static void without_a_manifest_the_permission_to_patch_the_set_is_asked_for(void **state)
{
    struct scene *scene = *state;
    begin(scene, (struct converge_options){.sizes = "data=2Gi"});
    look(scene);
    expect(scene, CONVERGE_PROVE_CREATE);
    agree(scene);
    agree(scene);
    agree(scene);
    for (int i = 0; i < 3; i++)
        refuse(scene, 404, "NotFound", "");
    expect(scene, CONVERGE_PROVE_RIGHTS);
    assert_int_equal(scene->turn.ask.resource, KUBE_STATEFULSET);
    assert_string_equal(scene->turn.ask.name, "db");
    refuse(scene, 403, "Forbidden", "");
    expect_end(scene, ERROR_FORBIDDEN, "patch statefulsets.apps");
}

/* What got no answer is asked again before anything is written. */
static void a_proof_that_got_no_answer_is_not_taken_for_one(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    look(scene);
    for (int ask = 0; ask < 3; ask++)
        agree(scene);
    expect(scene, CONVERGE_PROVE_RIGHTS);
    refuse(scene, 503, "ServiceUnavailable", "");
    expect(scene, CONVERGE_LOOK);
    look(scene);
    prove(scene);
    expect(scene, CONVERGE_PROBE);
    converge_free(STEAL(scene->converge));
    begin_desired(scene);
    look(scene);
    for (int ask = 0; ask < 4; ask++)
        agree(scene);
    for (int i = 0; i < 3; i++)
        refuse(scene, 404, "NotFound", "");
    expect(scene, CONVERGE_PROVE_SIZES);
    refuse(scene, 503, "ServiceUnavailable", "");
    look(scene);
    expect(scene, CONVERGE_PROVE_APPLY);
}

static void a_manifest_that_cannot_be_read_is_tried_once_more(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    for (int i = 0; i < 2; i++) {
        look(scene);
        expect(scene, CONVERGE_PROVE_APPLY);
        answer(scene, 500,
               "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"failed to create typed patch "
               "object\",\"code\":500}");
    }
    expect_end(scene, ERROR_INVALID, "cannot read the manifest");
}

static void a_server_that_cannot_say_is_asked_again_but_not_for_ever(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    int asks = 0;
    for (; asks < 100; asks++) {
        look(scene);
        if (scene->turn.next != CONVERGE_NEXT_ASK)
            break;
        refuse(scene, 503, "ServiceUnavailable", "");
        if (scene->turn.stage == CONVERGE_END)
            break;
        assert_true(scene->turn.wait_us > 0);
        expect_phrase(scene, "the server cannot say now: 503 ServiceUnavailable");
    }
    expect(scene, CONVERGE_END);
    assert_int_equal(scene->turn.code, ERROR_UNREACHABLE);
    assert_in_range(asks, 2, 20);
}

/* As everywhere else: not a whole day. */
static void a_server_that_asks_for_a_day_is_asked_again_in_minutes(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    look(scene);
    answer(scene, 503,
           "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"ServiceUnavailable\",\"details\":{"
           "\"retryAfterSeconds\":86400},\"code\":503}");
    expect(scene, CONVERGE_LOOK);
    assert_int_equal(scene->turn.wait_us, KUBE_ASKED_MAX_US);
    look(scene);
    answer(scene, 503,
           "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"ServiceUnavailable\",\"details\":{"
           "\"retryAfterSeconds\":7},\"code\":503}");
    assert_int_equal(scene->turn.wait_us, 7 * US_PER_S);
}

/* The questions before it are answered each time anew. */
static void a_question_that_is_never_answered_is_not_asked_for_ever(void **state)
{
    struct scene *scene = *state;
    int rounds = 0;
    begin_desired(scene);
    for (; rounds < 100 && scene->turn.stage != CONVERGE_END; rounds++) {
        look(scene);
        for (int ask = 0; ask < 3; ask++)
            agree(scene);
        expect(scene, CONVERGE_PROVE_RIGHTS);
        refuse(scene, 503, "ServiceUnavailable", "");
    }
    expect_end(scene, ERROR_UNREACHABLE, "a dry run gets no answer");
    assert_in_range(rounds, 2, 20);
    assert_false(converge_has_written(scene->converge));
}

static void what_the_decision_refuses_is_not_asked_for(void **state)
{
    struct scene *scene = *state;
    set_size(scene->desired, "500Mi");
    begin_desired(scene);
    look(scene);
    expect(scene, CONVERGE_END);
    assert_int_equal(scene->turn.code, ERROR_REFUSED);
}

static void a_trial_whose_name_is_taken_takes_another(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    look(scene);
    agree(scene);
    CLEANUP_FREE char *first = xstrdup(kube_object_name(scene->turn.ask.body));
    assert_int_equal(strlen(first), strlen("db"));
    assert_string_not_equal(first, "db");
    refuse(scene, 409, "AlreadyExists", "");
    look(scene);
    agree(scene);
    assert_string_not_equal(kube_object_name(scene->turn.ask.body), first);
    assert_int_equal(strlen(kube_object_name(scene->turn.ask.body)), strlen("db"));
}

/* --- quiet ---------------------------------------------------------------------------------------------- */

/* Trace g5: also not fresh. */
static void the_pods_must_be_quiet(void **state)
{
    struct scene *scene = *state;
    grow_all(scene);
    cJSON *pod = named(scene->pods, "db-1");
    static const struct {
        const char *patch, *back, *words;
    } table[] = {
        {"{'metadata':{'creationTimestamp':'" YOUNG "'}}", "{'metadata':{'creationTimestamp':'" OLD "'}}",
         "db-1 is younger than five seconds"},
        {"{'metadata':{'deletionTimestamp':'" OLD "'}}", "{'metadata':{'deletionTimestamp':null}}",
         "db-1 is terminating"},
        {"{'metadata':{'labels':{'controller-revision-hash':'db-0'}}}",
         "{'metadata':{'labels':{'controller-revision-hash':'db-1'}}}", "db-1 runs db-0"},
        {"{'status':{'conditions':[]}}", "{'status':{'conditions':[{'type':'Ready','status':'True'}]}}",
         "db-1 is not ready"},
        {"{'metadata':{'ownerReferences':[]}}",
         "{'metadata':{'ownerReferences':[{'uid':'u1-abcdefgh','controller':true}]}}",
         "1 of 2 pods are there"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        change(pod, table[i].patch);
        look(scene);
        expect(scene, CONVERGE_LOOK);
        expect_phrase(scene, table[i].words);
        assert_true(scene->turn.wait_us > 0);
        change(pod, table[i].back);
    }
    look(scene);
    expect(scene, CONVERGE_PROVE_APPLY);
}

/* An hour off, or set meanwhile: how old a pod is the server says, and a clock that nobody sets. */
static void a_wall_clock_that_is_off_makes_no_pod_older(void **state)
{
    struct scene *scene = *state;
    grow_all(scene);
    cJSON *pod = named(scene->pods, "db-1");
    change(pod, "{'metadata':{'creationTimestamp':'" YOUNG "'}}");
    scene->wall_off_us = 3600 * US_PER_S;
    look(scene);
    expect_phrase(scene, "db-1 is younger than five seconds");
    scene->wall_off_us = -3600 * US_PER_S;
    scene->boot_us += 4 * US_PER_S;
    look(scene);
    expect(scene, CONVERGE_PROVE_APPLY);
    change(pod, "{'metadata':{'creationTimestamp':'" OLD "'}}");
}

static void pods_below_the_partition_may_run_the_revision_before(void **state)
{
    struct scene *scene = *state;
    change(
        scene->set,
        "{'spec':{'updateStrategy':{'rollingUpdate':{'partition':1}}},'status':{'currentRevision':'db-0'}}");
    change(named(scene->pods, "db-0"), "{'metadata':{'labels':{'controller-revision-hash':'db-0'}}}");
    grow_all(scene);
    look(scene);
    expect(scene, CONVERGE_PROVE_APPLY);
    change(scene->set, "{'spec':{'updateStrategy':{'rollingUpdate':{'partition':0}}}}");
}

/* 1.36 never moves currentRevision of such a set. */
static void on_delete_no_revision_is_asked_for(void **state)
{
    struct scene *scene = *state;
    change(scene->set, "{'spec':{'updateStrategy':{'type':'OnDelete','rollingUpdate':null}},'status':{"
                       "'currentRevision':'db-0'}}");
    change(named(scene->pods, "db-0"), "{'metadata':{'labels':{'controller-revision-hash':'db-0'}}}");
    grow_all(scene);
    look(scene);
    expect(scene, CONVERGE_PROVE_APPLY);
}

static void unready_pods_are_waited_for_three_minutes_when_they_may_be_unready(void **state)
{
    struct scene *scene = *state;
    begin(scene, (struct converge_options){.desired = scene->desired, .unready_will_do = true});
    look(scene);
    prove(scene);
    probe_and_grow(scene);
    change(named(scene->pods, "db-1"), "{'status':{'conditions':[]}}");
    look(scene);
    expect_phrase(scene, "db-1 is not ready");
    scene->boot_us += 179 * US_PER_S;
    look(scene);
    expect(scene, CONVERGE_LOOK);
    scene->boot_us += 2 * US_PER_S;
    look(scene);
    expect(scene, CONVERGE_PROVE_APPLY);
    /* Nothing but readiness is overlooked. */
    prove(scene);
    expect(scene, CONVERGE_KEEP);
}

/* Its claims are grown; the proof before the delete, whose last answer takes so long. */
static void prove_for(struct scene *scene, int64_t last_answer_us)
{
    look(scene);
    expect(scene, CONVERGE_PROVE_APPLY);
    agree(scene);
    agree(scene);
    expect(scene, CONVERGE_PROVE_DELETE);
    scene->boot_us += last_answer_us;
    agree(scene);
}

/* Of a pod that was born since the look the collector may not know yet. */
static void pods_that_were_looked_at_long_ago_are_looked_at_again(void **state)
{
    struct scene *scene = *state;
    grow_all(scene);
    prove_for(scene, 3 * US_PER_S);
    expect(scene, CONVERGE_LOOK);
    prove_for(scene, 1 * US_PER_S);
    expect(scene, CONVERGE_KEEP);
    /* The same of the write that keeps the manifest: the set may go nowhere by then. */
    scene->boot_us += 3 * US_PER_S;
    apply(scene);
    expect(scene, CONVERGE_LOOK);
    look(scene);
    expect(scene, CONVERGE_FORESTALL);
}

static void a_server_that_is_always_slow_holds_it_up_for_a_while_only(void **state)
{
    struct scene *scene = *state;
    grow_all(scene);
    int times = 0;
    for (prove_for(scene, 3 * US_PER_S); scene->turn.stage == CONVERGE_LOOK; prove_for(scene, 3 * US_PER_S))
        times++;
    expect(scene, CONVERGE_KEEP);
    assert_int_equal(times, 3);
    apply(scene);
    expect(scene, CONVERGE_DELETE);
}

/* --- only a plan ---------------------------------------------------------------------------------------- */

static void a_plan_ends_before_the_first_write(void **state)
{
    struct scene *scene = *state;
    begin(scene, (struct converge_options){.desired = scene->desired, .plans_only = true});
    look(scene);
    prove(scene);
    agree(scene);
    agree(scene);
    expect(scene, CONVERGE_END);
    assert_int_equal(scene->turn.code, ERROR_NONE);
    assert_non_null(converge_decision(scene->converge));
}

/* Half done by somebody who is gone: a plan says what to type. */
static void a_plan_of_what_is_half_done_names_the_command(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_gap(scene);
    CLEANUP_JSON cJSON *body = json_copy(scene->turn.step->body);
    converge_free(STEAL(scene->converge));
    begin(scene, (struct converge_options){.desired = scene->desired, .plans_only = true});
    look(scene);
    expect_end(scene, ERROR_FAILED, "is gone and not made again yet: `neosetctl continue -n prod` goes on");
    converge_free(STEAL(scene->converge));
    set_comes(scene, body, "u2");
    begin(scene, (struct converge_options){.desired = scene->desired, .plans_only = true});
    look(scene);
    expect_end(scene, ERROR_FAILED, "not looked after yet: `neosetctl continue -n prod` goes on");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(nothing_is_done_when_nothing_grows),
        RULE(the_whole_way),
        RULE(a_refused_proof_ends_it_and_nothing_is_written),
        RULE(a_permission_that_is_missing_is_found_before_the_first_write),
        RULE(a_pod_that_takes_no_dry_run_is_no_missing_permission),
        RULE(only_a_webhook_of_the_pod_is_overlooked),
        RULE(without_a_manifest_the_permission_to_patch_the_set_is_asked_for),
        RULE(a_proof_that_got_no_answer_is_not_taken_for_one),
        RULE(a_manifest_that_cannot_be_read_is_tried_once_more),
        RULE(a_server_that_asks_for_a_day_is_asked_again_in_minutes),
        RULE(a_server_that_cannot_say_is_asked_again_but_not_for_ever),
        RULE(a_question_that_is_never_answered_is_not_asked_for_ever),
        RULE(what_the_decision_refuses_is_not_asked_for),
        RULE(a_trial_whose_name_is_taken_takes_another),
        RULE(the_pods_must_be_quiet),
        RULE(a_wall_clock_that_is_off_makes_no_pod_older),
        RULE(pods_below_the_partition_may_run_the_revision_before),
        RULE(on_delete_no_revision_is_asked_for),
        RULE(unready_pods_are_waited_for_three_minutes_when_they_may_be_unready),
        RULE(pods_that_were_looked_at_long_ago_are_looked_at_again),
        RULE(a_server_that_is_always_slow_holds_it_up_for_a_while_only),
        RULE(a_plan_ends_before_the_first_write),
        RULE(a_plan_of_what_is_half_done_names_the_command),
    };
    return cmocka_run_group_tests_name("converge", tests, NULL, NULL);
}
