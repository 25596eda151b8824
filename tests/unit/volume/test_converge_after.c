/* SPDX-License-Identifier: Apache-2.0
 *
 * Converge as a plan: the delete, a set that is on its way out, gone, and there again. */
#include "converge_scene.h"

/* --- the delete ----------------------------------------------------------------------------------------- */

/* Acceptance 13. */
static void a_set_that_moves_between_look_and_proof_is_looked_at_anew(void **state)
{
    struct scene *scene = *state;
    grow_all(scene);
    look(scene);
    expect(scene, CONVERGE_PROVE_APPLY);
    CLEANUP_JSON cJSON *moved = json_copy(scene->set);
    change(moved, "{'metadata':{'resourceVersion':'8','generation':4},'spec':{'replicas':4}}");
    CLEANUP_FREE char *text = json_print(moved);
    answer(scene, 200, text);
    expect(scene, CONVERGE_LOOK);
    assert_int_equal(scene->turn.wait_us, 0);
}

/* The answer to the proof of the apply: the set, so changed. */
static void answer_with_set(struct scene *scene, const char *patch)
{
    CLEANUP_JSON cJSON *answered = json_copy(scene->set);
    change(answered, patch);
    CLEANUP_FREE char *text = json_print(answered);
    expect(scene, CONVERGE_PROVE_APPLY);
    answer(scene, 200, text);
}

static void assert_guarded_by(const cJSON *body, const char *version)
{
    const cJSON *preconditions = json_get(body, "preconditions");
    assert_string_equal(json_str(preconditions, "uid"), "u1-abcdefgh");
    assert_string_equal(json_str(preconditions, "resourceVersion"), version);
    assert_string_equal(json_str(body, "propagationPolicy"), "Orphan");
}

/* From the proof of the create on: the delete that is tried, what is kept, and the delete. */
static void expect_delete_of(struct scene *scene, const char *version)
{
    expect(scene, CONVERGE_PROVE_CREATE);
    agree(scene);
    expect(scene, CONVERGE_PROVE_DELETE);
    assert_guarded_by(scene->turn.ask.body, version);
    agree(scene);
    expect(scene, CONVERGE_KEEP);
    apply(scene);
    const cJSON *kept = keep_manifest(scene->revisions->child->next);
    assert_string_equal(kube_object_version(kept), version);
    assert_string_equal(
        json_path_str(json_path(kept, "spec", "template", "spec", "containers", NULL)->child, "image", NULL),
        "mysql:8.1");
    expect(scene, CONVERGE_DELETE);
    assert_string_equal(scene->turn.step->version, version);
    CLEANUP_FREE char *bytes = preconditions_make_bytes(scene->turn.step, "k");
    CLEANUP_JSON cJSON *body = NULL;
    assert_int_equal(json_parse(bytes, strlen(bytes), &body, NULL), 0);
    assert_guarded_by(body, version);
}

/* A pod that flaps moves its set's status all the time. */
static void a_set_whose_status_moves_is_deleted_as_its_proof_saw_it(void **state)
{
    struct scene *scene = *state;
    change(scene->set, "{'metadata':{'managedFields':[{'manager':'me','operation':'Apply'},{'manager':'c','"
                       "subresource':'status','time':'1'}]}}");
    grow_all(scene);
    look(scene);
    answer_with_set(scene, "{'metadata':{'resourceVersion':'8','managedFields':[{'manager':'c','subresource':"
                           "'status','time':'2'},{'manager':'me','operation':'Apply'}]},'status':{"
                           "'currentRevision':'db-0'}}");
    expect_delete_of(scene, "8");
    const cJSON *kept = keep_manifest(scene->revisions->child->next);
    assert_string_equal(json_path_str(kept, "status", "currentRevision", NULL), "db-0");
}

/* Already the first proof tries the delete. */
static void the_first_proof_is_guarded_as_it_saw_the_set(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    look(scene);
    answer_with_set(scene, "{'metadata':{'resourceVersion':'8'}}");
    expect(scene, CONVERGE_PROVE_CREATE);
    agree(scene);
    expect(scene, CONVERGE_PROVE_DELETE);
    assert_guarded_by(scene->turn.ask.body, "8");
}

/* What the manifest changes besides is in the answer, with the version of what is there: nothing moved. */
static void what_the_proof_would_change_is_not_kept(void **state)
{
    struct scene *scene = *state;
    grow_all(scene);
    look(scene);
    answer_with_set(scene,
                    "{'metadata':{'generation':4,'labels':{'new':'yes'},'managedFields':[{'manager':'me','"
                    "operation':'Apply','time':'2'}]},'spec':{'template':{'spec':{'containers':[{'name':'db',"
                    "'image':'mysql:9'}]}}}}");
    expect_delete_of(scene, "7");
    assert_null(kube_object_label(keep_manifest(scene->revisions->child->next), "new"));
}

/* It would be made again without. */
static void a_set_whose_metadata_moves_is_looked_at_anew(void **state)
{
    static const char *const patches[] = {
        "{'metadata':{'resourceVersion':'8','labels':{'new':'yes'}}}",
        "{'metadata':{'resourceVersion':'8','finalizers':['example.com/hold']}}",
        "{'metadata':{'resourceVersion':'8','ownerReferences':[{'uid':'o1'}]}}",
        "{'metadata':{'resourceVersion':'8','managedFields':[{'manager':'other','operation':'Update'}]}}",
        "{'metadata':{'resourceVersion':'8','uid':'u2'}}",
    };
    struct scene *scene = *state;
    grow_all(scene);
    for (size_t i = 0; i < ARRAY_SIZE(patches); i++) {
        look(scene);
        answer_with_set(scene, patches[i]);
        expect(scene, CONVERGE_LOOK);
        assert_int_equal(scene->turn.wait_us, 0);
    }
}

/* Acceptance 13: overtaken by a scale, say. */
static void a_delete_that_is_not_taken_drops_the_manifest_before_anything_else(void **state)
{
    static const enum journal_kind kinds[] = {JOURNAL_ABSENT, JOURNAL_OVERTAKEN, JOURNAL_NOT_SENT,
                                              JOURNAL_UNKNOWN};
    struct scene *scene = *state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        begin_desired(scene);
        if (i == 0) {
            reach_delete(scene);
        } else {
            look(scene);
            prove(scene);
            look(scene);
            prove(scene);
            apply(scene);
        }
        expect(scene, CONVERGE_DELETE);
        tell(scene, kinds[i]);
        expect(scene, CONVERGE_LOOK);
        look(scene);
        expect_drop_of_what_never_went(scene);
        assert_string_equal(scene->turn.step->name, "db-kept-u1-abcde");
        apply(scene);
        look(scene);
        expect(scene, CONVERGE_PROVE_APPLY);
        converge_free(STEAL(scene->converge));
    }
}

static void reach_drop(struct scene *scene)
{
    reach_gap(scene);
    make_again(scene);
    change(scene->set, "{'metadata':{'annotations':null}}");
    look(scene);
    expect(scene, CONVERGE_DROP);
}

/* When all is done but the drop, another command drops what is kept, keeps its own, and dies: the mark that
 * is left on the set with which his delete was made impossible is taken off, too. */
static void what_another_keeps_at_the_very_end_leaves_no_mark(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_drop(scene);
    cJSON *gone = named(scene->revisions, scene->turn.step->name);
    cJSON_Delete(cJSON_DetachItemViaPointer(scene->revisions, gone));
    CLEANUP_JSON cJSON *written = keep_object(scene->set);
    CLEANUP_FREE char *text = json_print(written);
    cJSON *anothers = parse(text);
    change(anothers, "{'metadata':{'uid':'another','resourceVersion':'9','creationTimestamp':'" OLD "'}}");
    json_append_item(scene->revisions, anothers);
    tell(scene, JOURNAL_ABSENT);
    look(scene);
    expect_drop_of_what_never_went(scene);
    apply(scene);
    look(scene);
    expect(scene, CONVERGE_CLEAN);
}

/* Somebody else's, who is about to delete the set, or whose delete is late: with another object that is kept
 * it begins anew. The mark of it is taken off at the end. */
static void what_another_keeps_is_dropped_when_his_delete_cannot_come_any_more(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_delete(scene);
    converge_free(STEAL(scene->converge));
    begin(scene, (struct converge_options){.desired = scene->set});
    look(scene);
    expect(scene, CONVERGE_FORESTALL);
    tell(scene, JOURNAL_ABSENT);
    look(scene);
    expect(scene, CONVERGE_FORESTALL);
    apply(scene);
    change(named(scene->revisions, "db-kept-u1-abcde"), "{'metadata':{'uid':'another'}}");
    look(scene);
    expect_drop_of_what_never_went(scene);
    change(scene->set,
           "{'metadata':{'managedFields':[{'manager':'me','operation':'Apply'},{'manager':'neosetctl','"
           "operation':'Update','fieldsV1':{'f:metadata':{'f:annotations':{'.':{},'f:apps.neo.io/"
           "step':{}}}}}]}}");
    apply(scene);
    look(scene);
    expect(scene, CONVERGE_CLEAN);
    const cJSON *metadata = json_get(scene->turn.step->body, "metadata");
    assert_int_equal(cJSON_GetArraySize(json_get(metadata, "managedFields")), 1);
    assert_true(cJSON_IsNull(json_path(metadata, "annotations", "apps.neo.io/step", NULL)));
    change(scene->set, "{'metadata':{'annotations':null}}");
    apply(scene);
    look(scene);
    expect(scene, CONVERGE_END);
    assert_int_equal(scene->turn.code, ERROR_NONE);
}

static void a_plan_drops_nothing(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_delete(scene);
    converge_free(STEAL(scene->converge));
    begin(scene, (struct converge_options){.desired = scene->desired, .plans_only = true});
    look(scene);
    expect(scene, CONVERGE_PROVE_APPLY);
}

/* Who applied the set is looked at when it is asked: just made again it is nobody's. */
static void sizes_are_declared_in_the_name_of_whoever_applied_them(void **state)
{
    struct scene *scene = *state;
    scene->converge = converge_make(
        &(struct converge_options){.namespace = "prod", .name = "db", .desired = scene->desired});
    look(scene);
    expect(scene, CONVERGE_PROVE_APPLY);
    assert_null(scene->turn.ask.field_manager);
    change(scene->set,
           "{'metadata':{'managedFields':[{'manager':'flux','operation':'Apply','fieldsV1':{'f:spec':{'"
           "f:volumeClaimTemplates':{}}}}]}}");
    next(scene);
    assert_string_equal(scene->turn.ask.field_manager, "flux");
}

static void a_delete_that_is_refused_ends_it_without_a_kept_manifest(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_delete(scene);
    tell(scene, JOURNAL_REJECTED);
    look(scene);
    expect_drop_of_what_never_went(scene);
    apply(scene);
    look(scene);
    expect_end(scene, ERROR_FAILED, "the server does not delete StatefulSet db: the server's words");
}

static void a_set_that_keeps_changing_is_given_up(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_delete(scene);
    int tries = 0;
    for (; tries < 100 && scene->turn.stage != CONVERGE_END; tries++) {
        tell(scene, JOURNAL_ABSENT);
        look(scene);
        expect_drop_of_what_never_went(scene);
        apply(scene);
        look(scene);
        if (scene->turn.stage == CONVERGE_END)
            break;
        prove(scene);
        apply(scene);
    }
    expect_end(scene, ERROR_FAILED, "keeps changing: it was looked at anew 10 times");
}

/* --- on its way out, and gone --------------------------------------------------------------------------- */

static void a_scale_on_its_way_out_is_noted_and_carried(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_delete(scene);
    apply(scene);
    change(scene->set,
           "{'metadata':{'deletionTimestamp':'" OLD "','finalizers':['orphan']},'spec':{'replicas':4}}");
    look(scene);
    expect(scene, CONVERGE_NOTE);
    merge(named(scene->revisions, scene->turn.step->name), scene->turn.step->body);
    tell(scene, JOURNAL_APPLIED);
    look(scene);
    expect(scene, CONVERGE_LOOK);
    set_goes(scene);
    look(scene);
    expect(scene, CONVERGE_MAKE);
    assert_int_equal(json_int64_or(json_get(scene->turn.step->body, "spec"), "replicas", 0), 4);
}

static void a_set_that_goes_with_its_pods_is_an_alarm(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_delete(scene);
    apply(scene);
    change(scene->set, "{'metadata':{'deletionTimestamp':'" OLD "','finalizers':['a.b/c']}}");
    look(scene);
    expect_end(scene, ERROR_FAILED, "ALARM: StatefulSet db is being deleted together with its pods");
    expect_phrase(scene, "db-kept-u1-abcde");
}

/* Acceptance 16. */
static void another_finalizer_is_waited_for_by_name(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_delete(scene);
    apply(scene);
    change(scene->set, "{'metadata':{'deletionTimestamp':'" OLD "','finalizers':['example.com/hold']}}");
    cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, scene->pods)
        json_remove(json_get(pod, "metadata"), "ownerReferences");
    look(scene);
    expect(scene, CONVERGE_LOOK);
    expect_phrase(scene, "finalizers: example.com/hold");
    /* No second delete, however long it takes; then it goes on. */
    scene->boot_us += 600 * US_PER_S;
    look(scene);
    expect(scene, CONVERGE_LOOK);
    set_goes(scene);
    look(scene);
    expect(scene, CONVERGE_MAKE);
}

/* Trace g5. */
static void a_pod_that_names_the_set_that_is_gone_is_let_go_first(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_gap(scene);
    expect(scene, CONVERGE_MAKE);
    tell(scene, JOURNAL_UNKNOWN);
    change(named(scene->pods, "db-1"),
           "{'metadata':{'ownerReferences':[{'kind':'StatefulSet','name':'db','uid':'u1-abcdefgh'}]}}");
    look(scene);
    expect(scene, CONVERGE_RELEASE);
    assert_string_equal(scene->turn.step->name, "db-1");
    CLEANUP_FREE char *text = json_print(scene->turn.step->body);
    assert_string_equal(
        text, "{\"metadata\":{\"ownerReferences\":[{\"$patch\":\"delete\",\"uid\":\"u1-abcdefgh\"}]}}");
}

/* Trace t2. */
static void an_owner_that_is_gone_does_not_come_back_with_it(void **state)
{
    struct scene *scene = *state;
    change(scene->set,
           "{'metadata':{'ownerReferences':[{'kind':'A','name':'a','uid':'gone'},{'kind':'B','name':'b',"
           "'uid':'there'}]}}");
    scene->gone_owners = parse("['gone']");
    begin_desired(scene);
    reach_gap(scene);
    expect(scene, CONVERGE_MAKE);
    const cJSON *owners = json_path(scene->turn.step->body, "metadata", "ownerReferences", NULL);
    assert_int_equal(cJSON_GetArraySize(owners), 1);
    assert_string_equal(json_str(owners->child, "uid"), "there");
}

/* Nobody but what is in the cluster remembers: another process, without the manifest. */
static void another_process_makes_it_again_from_what_is_kept(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_gap(scene);
    converge_free(STEAL(scene->converge));
    begin(scene, (struct converge_options){0});
    look(scene);
    expect(scene, CONVERGE_MAKE);
    assert_string_equal(scene->turn.step->go_to, "data=2Gi");
    CLEANUP_JSON cJSON *body = json_copy(scene->turn.step->body);
    apply(scene);
    set_comes(scene, body, "u2");
    change(scene->set, "{'metadata':{'annotations':null}}");
    look(scene);
    expect(scene, CONVERGE_DROP);
    apply(scene);
    expect_end(scene, ERROR_NONE, "the same 2 pods, none restarted");
}

/* The kept manifest is read again and again while its drop waits: what its pods became is said once. */
static void what_is_decided_again_is_said_once(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_gap(scene);
    converge_free(STEAL(scene->converge));
    begin(scene, (struct converge_options){0});
    look(scene);
    CLEANUP_JSON cJSON *body = json_copy(scene->turn.step->body);
    apply(scene);
    set_comes(scene, body, "u2");
    change(scene->set, "{'metadata':{'annotations':null}}");
    look(scene);
    expect(scene, CONVERGE_DROP);
    tell(scene, JOURNAL_NOT_SENT);
    look(scene);
    expect(scene, CONVERGE_DROP);
    apply(scene);
    expect_end(scene, ERROR_NONE, "the same 2 pods, none restarted");
    if (strstr(strstr(scene->turn.phrase, "the same 2") + 1, "the same 2"))
        fail_msg("said twice: %s", scene->turn.phrase);
}

static void a_larger_manifest_raises_what_is_kept(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_gap(scene);
    converge_free(STEAL(scene->converge));
    set_size(scene->desired, "3Gi");
    begin_desired(scene);
    look(scene);
    expect(scene, CONVERGE_MAKE);
    assert_string_equal(
        json_path_str(json_path(scene->turn.step->body, "spec", "volumeClaimTemplates", NULL)->child, "spec",
                      "resources", "requests", "storage", NULL),
        "3Gi");
}

static void a_set_that_was_handed_to_a_neoset_is_not_made_again(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_gap(scene);
    converge_free(STEAL(scene->converge));
    change(named(scene->revisions, "db-kept-u1-abcde"),
           "{'metadata':{'annotations':{'apps.neo.io/adopted-by':'db'}}}");
    begin_desired(scene);
    look(scene);
    expect_end(scene, ERROR_NONE, "there is no StatefulSet db in namespace prod: nothing to converge");
}

static void a_kept_manifest_that_somebody_deleted_is_an_alarm(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_delete(scene);
    apply(scene);
    set_goes(scene);
    cJSON *kept = named(scene->revisions, "db-kept-u1-abcde");
    cJSON_Delete(cJSON_DetachItemViaPointer(scene->revisions, kept));
    look(scene);
    expect_end(scene, ERROR_FAILED, "ALARM: StatefulSet db is gone, and so is its kept manifest");
}

/* --- the canary ----------------------------------------------------------------------------------------- */

/* A set whose pod above the partition runs the newest version, gone and to be made again. */
static void reach_gap_of_canary(struct scene *scene)
{
    change(
        scene->set,
        "{'spec':{'updateStrategy':{'rollingUpdate':{'partition':1}}},'status':{'updateRevision':'db-2'}}");
    change(named(scene->pods, "db-1"), "{'metadata':{'labels':{'controller-revision-hash':'db-2'}}}");
    begin_desired(scene);
    reach_gap(scene);
}

static void a_canary_is_kept_by_two_steps(void **state)
{
    struct scene *scene = *state;
    reach_gap_of_canary(scene);
    expect(scene, CONVERGE_MAKE);
    CLEANUP_JSON cJSON *body = json_copy(scene->turn.step->body);
    CLEANUP_FREE char *first = json_print(json_get(body, "spec"));
    assert_non_null(strstr(first, "mysql:8.0"));
    assert_null(strstr(first, "mysql:8.1"));
    assert_null(strstr(first, "$patch"));
    assert_non_null(strstr(first, "\"updateStrategy\":{\"type\":\"OnDelete\"}"));
    apply(scene);
    set_comes(scene, body, "u2");
    change(scene->set, "{'status':null}");
    look(scene);
    expect(scene, CONVERGE_LOOK);
    change(scene->set,
           "{'status':{'observedGeneration':1,'currentRevision':'db-1','updateRevision':'db-1'}}");
    look(scene);
    expect(scene, CONVERGE_SECOND);
    CLEANUP_FREE char *second = json_print(scene->turn.step->body);
    assert_non_null(strstr(second, "mysql:8.1"));
    assert_non_null(strstr(second, "\"partition\":1"));
    assert_non_null(strstr(second, "\"$patch\":\"replace\""));
    assert_string_equal(scene->turn.step->uid, "u2");
    change(scene->set,
           "{'spec':{'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{'partition':1}}}}");
    apply(scene);
    look(scene);
    expect(scene, CONVERGE_MANAGERS);
}

/* A restart that somebody asks for while the set stands at the first of the two steps is not lost. */
static void what_is_changed_between_the_two_steps_stays(void **state)
{
    struct scene *scene = *state;
    reach_gap_of_canary(scene);
    make_again(scene);
    change(scene->set, "{'spec':{'template':{'metadata':{'annotations':{'restartedAt':'now'}}}},"
                       "'status':{'observedGeneration':1,'currentRevision':'db-1','updateRevision':'db-3'}}");
    look(scene);
    expect(scene, CONVERGE_SECOND);
    CLEANUP_FREE char *second = json_print(scene->turn.step->body);
    assert_non_null(strstr(second, "mysql:8.1"));
    assert_null(strstr(second, "mysql:8.0"));
    assert_non_null(strstr(second, "\"annotations\":{\"restartedAt\":\"now\"}"));
}

/* A create of another command, from a manifest that was kept before: it was long on its way. What is kept now
 * is all that knows the newest template. */
static void half_a_canary_with_old_sizes_is_made_whole_before_it_starts_over(void **state)
{
    struct scene *scene = *state;
    reach_gap_of_canary(scene);
    CLEANUP_JSON cJSON *late = json_copy(scene->turn.step->body);
    set_size(late, "1Gi");
    tell(scene, JOURNAL_OVERTAKEN);
    set_comes(scene, late, "u2-bcdefghi");
    change(scene->set,
           "{'status':{'observedGeneration':1,'currentRevision':'db-1','updateRevision':'db-1'}}");
    look(scene);
    expect(scene, CONVERGE_SECOND);
    CLEANUP_FREE char *second = json_print(scene->turn.step->body);
    assert_non_null(strstr(second, "mysql:8.1"));
    change(scene->set,
           "{'spec':{'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{'partition':1}}}}");
    apply(scene);
    look(scene);
    expect(scene, CONVERGE_MANAGERS);
    change(scene->set, "{'metadata':{'annotations':null}}");
    apply(scene);
    look(scene);
    expect(scene, CONVERGE_DROP);
}

static void a_set_that_a_person_made_again_is_not_taken_for_half_a_canary(void **state)
{
    struct scene *scene = *state;
    reach_gap_of_canary(scene);
    CLEANUP_JSON cJSON *own = json_copy(scene->turn.step->body);
    set_size(own, "1Gi");
    tell(scene, JOURNAL_OVERTAKEN);
    set_comes(scene, own, "u2-bcdefghi");
    change(scene->set, "{'metadata':{'annotations':null},"
                       "'status':{'observedGeneration':1,'currentRevision':'db-1','updateRevision':'db-1'}}");
    look(scene);
    expect(scene, CONVERGE_DROP);
}

static void without_its_revision_a_canary_is_made_again_whole(void **state)
{
    struct scene *scene = *state;
    change(scene->set,
           "{'spec':{'updateStrategy':{'rollingUpdate':{'partition':2}}},'status':{'currentRevision':"
           "'db-9'}}");
    begin_desired(scene);
    reach_gap(scene);
    expect(scene, CONVERGE_MAKE);
    CLEANUP_FREE char *text = json_print(scene->turn.step->body);
    assert_non_null(strstr(text, "mysql:8.1"));
}

/* --- there again ---------------------------------------------------------------------------------------- */

/* Report 11. */
static void somebody_who_makes_it_again_with_the_old_sizes_is_overcome_three_times(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_gap(scene);
    CLEANUP_JSON cJSON *old = json_copy(scene->turn.step->body);
    set_size(old, "1Gi");
    int times = 0;
    for (; times < 100; times++) {
        tell(scene, JOURNAL_OVERTAKEN);
        CLEANUP_FREE char *uid = xasprintf("u%d-bcdefghi", times + 2);
        set_comes(scene, old, uid);
        change(scene->set, "{'metadata':{'annotations':null},'spec':{'replicas':2}}");
        look(scene);
        if (scene->turn.stage == CONVERGE_END)
            break;
        expect(scene, CONVERGE_DROP);
        apply(scene);
        look(scene);
        prove(scene);
        look(scene);
        prove(scene);
        expect(scene, CONVERGE_KEEP);
        apply(scene);
        apply(scene);
        set_goes(scene);
        look(scene);
        expect(scene, CONVERGE_MAKE);
    }
    assert_int_equal(times, 3);
    expect_end(scene, ERROR_FAILED, "was made again with its old sizes 3 times by somebody else");
}

static void a_claim_that_was_made_meanwhile_is_grown_at_the_end(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_gap(scene);
    make_again(scene);
    change(scene->set, "{'metadata':{'annotations':null}}");
    add_claim(scene, "data-db-2", "{}");
    look(scene);
    expect(scene, CONVERGE_CATCH_UP);
    assert_string_equal(scene->turn.step->name, "data-db-2");
    tell(scene, JOURNAL_REJECTED);
    look(scene);
    expect_end(scene, ERROR_FAILED,
               "claim data-db-2 may not grow: the server's words: mend that, and run it");
    /* The next run finds what is kept, and begins there. */
    converge_free(STEAL(scene->converge));
    begin_desired(scene);
    look(scene);
    expect(scene, CONVERGE_CATCH_UP);
    apply(scene);
    change(named(scene->claims, "data-db-2"), "{'spec':{'resources':{'requests':{'storage':'2Gi'}}}}");
    look(scene);
    expect(scene, CONVERGE_DROP);
}

static void a_late_claim_that_somebody_sets_to_another_size_is_left_alone(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_gap(scene);
    make_again(scene);
    change(scene->set, "{'metadata':{'annotations':null}}");
    add_claim(scene, "data-db-2", "{}");
    look(scene);
    expect(scene, CONVERGE_CATCH_UP);
    apply(scene);
    change(named(scene->claims, "data-db-2"), "{'spec':{'resources':{'requests':{'storage':'1Gi'}}}}");
    look(scene);
    expect_end(scene, ERROR_FAILED,
               "StatefulSet db has its sizes, and claim data-db-2 may not grow: this "
               "command has set it to 2Gi, and somebody has set it to 1Gi since");
}

static void a_claim_that_may_not_grow_and_goes_is_in_nobodys_way(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_gap(scene);
    make_again(scene);
    change(scene->set, "{'metadata':{'annotations':null}}");
    add_claim(scene, "data-db-2", "{}");
    add_claim(scene, "data-db-3", "{}");
    for (int i = 0; i < 2; i++) {
        look(scene);
        expect(scene, CONVERGE_CATCH_UP);
        tell(scene, JOURNAL_REJECTED);
    }
    change(scene->set, "{'status':{'observedGeneration':0}}");
    look(scene);
    expect_phrase(scene, "has not seen db yet");
    change(scene->set, "{'status':{'observedGeneration':1}}");
    cJSON_Delete(cJSON_DetachItemViaPointer(scene->claims, named(scene->claims, "data-db-2")));
    change(named(scene->claims, "data-db-3"), "{'spec':{'resources':{'requests':{'storage':'2Gi'}}}}");
    look(scene);
    expect(scene, CONVERGE_DROP);
}

/* Report 5: also the revisions. Acceptance 20: a pod that somebody deleted in the gap. */
static void it_is_done_when_the_new_set_has_what_the_old_one_had(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_gap(scene);
    make_again(scene);
    change(scene->set, "{'metadata':{'annotations':null},'status':{'observedGeneration':0}}");
    look(scene);
    expect_phrase(scene, "has not seen db yet");
    change(scene->set, "{'status':{'observedGeneration':1}}");
    cJSON *pod = named(scene->pods, "db-1");
    change(pod, "{'metadata':{'ownerReferences':[]}}");
    look(scene);
    expect_phrase(scene, "has not taken db-1 over yet");
    change(pod, "{'metadata':{'ownerReferences':[{'uid':'u2','controller':true}]}}");
    change(scene->revisions->child, "{'metadata':{'ownerReferences':[]}}");
    look(scene);
    expect_phrase(scene, "has not taken revision db-1 over yet");
    change(scene->revisions->child, "{'metadata':{'ownerReferences':[{'uid':'u2','controller':true}]}}");
    change(named(scene->claims, "data-db-0"), "{'metadata':{'ownerReferences':[{'uid':'u1-abcdefgh'}]}}");
    look(scene);
    expect_phrase(scene, "claims still name the StatefulSet db that is gone");
    change(named(scene->claims, "data-db-0"), "{'metadata':{'ownerReferences':[]}}");
    /* One that a person deleted meanwhile is named, and no error. */
    change(pod, "{'metadata':{'uid':'another'}}");
    look(scene);
    expect(scene, CONVERGE_DROP);
    apply(scene);
    expect_end(scene, ERROR_NONE, "db-1 was made anew meanwhile");
}

/* Report 28, trace b11. */
static void the_file_systems_are_waited_for_when_that_is_wanted(void **state)
{
    struct scene *scene = *state;
    set_size(scene->set, "2Gi");
    for (cJSON *claim = scene->claims->child; claim; claim = claim->next)
        change(claim, "{'spec':{'resources':{'requests':{'storage':'2Gi'}}}}");
    begin(scene, (struct converge_options){.desired = scene->desired, .waits_for_file_system = true});
    look(scene);
    expect_phrase(scene, "2 claims do not have their size yet; data-db-0: no storage controller");
    scene->boot_us += 31 * US_PER_S;
    look(scene);
    expect_phrase(scene, "is the external-resizer of its driver running?");
    change(scene->claims->child, "{'status':{'capacity':{'storage':'2Gi'}}}");
    look(scene);
    expect_phrase(scene, "claim data-db-1 does not have its size yet: nobody takes it up");
    for (cJSON *claim = scene->claims->child; claim; claim = claim->next)
        change(claim, "{'status':{'capacity':{'storage':'2Gi'}}}");
    look(scene);
    expect(scene, CONVERGE_END);
    assert_int_equal(scene->turn.code, ERROR_NONE);
}

/* What an interrupted run was asked for is read from its journal by whoever goes on. */
static void what_is_asked_for_stands_in_the_journal(void **state)
{
    (void)state;
    const struct {
        const char *text;
        struct converge_goal goal;
    } table[] = {
        {"data=2Gi", {(char[]){"data=2Gi"}, false, false, false}},
        {"data=2Gi,logs=1Gi (wait-for-filesystem)", {(char[]){"data=2Gi,logs=1Gi"}, true, false, false}},
        {"data=2Gi (allow-degraded; wait-for-filesystem)", {(char[]){"data=2Gi"}, true, true, false}},
        {"data=3Gi (recover)", {(char[]){"data=3Gi"}, false, false, true}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct converge_goal goal;
        CLEANUP_FREE char *text = converge_goal_text(&table[i].goal);
        assert_string_equal(text, table[i].text);
        converge_goal_read(text, &goal);
        assert_string_equal(goal.sizes, table[i].goal.sizes);
        assert_int_equal(goal.waits_for_file_system, table[i].goal.waits_for_file_system);
        assert_int_equal(goal.unready_will_do, table[i].goal.unready_will_do);
        assert_int_equal(goal.recovers, table[i].goal.recovers);
        converge_goal_done(&goal);
    }
    struct converge_goal newer;
    converge_goal_read("data=2Gi (wait-for-filesystem; sing)", &newer);
    assert_string_equal(newer.sizes, "data=2Gi");
    assert_true(newer.waits_for_file_system);
    converge_goal_done(&newer);
    converge_goal_read("data=2Gi (allow-degraded, wait-for-filesystem)", &newer); /* an older text */
    assert_true(newer.unready_will_do && newer.waits_for_file_system);
    converge_goal_done(&newer);
}

/* It took the whole text for sizes: what it does not understand it must refuse, not call done. */
static void an_older_program_refuses_what_it_does_not_understand(void **state)
{
    struct scene *scene = *state;
    const struct converge_goal goals[] = {
        {(char[]){"data=2Gi"}, false, false, true},
        {(char[]){"data=2Gi"}, true, true, true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(goals); i++) {
        CLEANUP_FREE char *text = converge_goal_text(&goals[i]);
        begin(scene, (struct converge_options){.sizes = text});
        look(scene);
        expect_end(scene, ERROR_INVALID, "2Gi (");
        converge_free(STEAL(scene->converge));
    }
}

/* Trace b3: the pool is full, and nothing but Events says so. */
static void what_the_resizer_says_is_shown_while_it_does_not_get_on(void **state)
{
    struct scene *scene = *state;
    set_size(scene->set, "2Gi");
    for (cJSON *claim = scene->claims->child; claim; claim = claim->next)
        change(claim,
               "{'spec':{'resources':{'requests':{'storage':'2Gi'}}},'status':{'allocatedResources':{"
               "'storage':'2Gi'},'allocatedResourceStatuses':{'storage':'ControllerResizeInProgress'}}}");
    begin(scene, (struct converge_options){.desired = scene->desired, .waits_for_file_system = true});
    look(scene);
    assert_null(converge_asks_about(scene->converge)); /* it may be done in a second */
    scene->boot_us += 6 * US_PER_S;
    look(scene);
    assert_string_equal(converge_asks_about(scene->converge), "data-db-0");
    scene->events = parse("[{'reason':'VolumeResizeFailed','involvedObject':{'uid':'c-data-db-0'},"
                          "'lastTimestamp':'" YOUNG "','message':'pool is full'}]");
    look(scene);
    expect_phrase(scene, "data-db-0: its storage controller resizes it; it said: pool is full");
    scene->boot_us += 120 * US_PER_S;
    look(scene);
    expect_phrase(scene, "its storage controller does not get on");
    expect_phrase(scene, "it said: pool is full");
    for (cJSON *claim = scene->claims->child; claim; claim = claim->next)
        change(claim, "{'status':{'capacity':{'storage':'2Gi'}}}");
    look(scene);
    expect(scene, CONVERGE_END);
    assert_null(converge_asks_about(scene->converge));
}

/* Where no pod uses a volume its file system grows when one does: nobody waits for that. Trace b7. */
static void the_file_system_of_an_unused_claim_is_not_waited_for(void **state)
{
    struct scene *scene = *state;
    static const char on_its_node[] = "{'spec':{'resources':{'requests':{'storage':'2Gi'}}},'status':{'"
                                      "allocatedResources':{'storage':'2Gi'},"
                                      "'allocatedResourceStatuses':{'storage':'NodeResizePending'}}}";
    add_claim(scene, "data-db-7", "{}");
    add_claim(scene, "data-db-8", "{'status':{'phase':'Pending','capacity':null}}");
    set_size(scene->set, "2Gi");
    for (cJSON *claim = scene->claims->child; claim; claim = claim->next)
        change(claim, on_its_node);
    /* Its node failed while a pod still used it. */
    add_claim(scene, "data-db-9", on_its_node);
    change(named(scene->claims, "data-db-9"),
           "{'status':{'allocatedResourceStatuses':{'storage':'NodeResizeInfeasible'}}}");
    begin(scene, (struct converge_options){.desired = scene->desired, .waits_for_file_system = true});
    look(scene);
    expect_phrase(scene, "2 claims do not have their size yet; data-db-0: its node");
    change(named(scene->claims, "data-db-0"), "{'status':{'capacity':{'storage':'2Gi'}}}");
    change(named(scene->claims, "data-db-1"), "{'status':{'capacity':{'storage':'2Gi'}}}");
    look(scene);
    expect(scene, CONVERGE_END);
    assert_int_equal(scene->turn.code, ERROR_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_late_claim_that_somebody_sets_to_another_size_is_left_alone),
        RULE(a_set_that_moves_between_look_and_proof_is_looked_at_anew),
        RULE(a_set_whose_status_moves_is_deleted_as_its_proof_saw_it),
        RULE(the_first_proof_is_guarded_as_it_saw_the_set),
        RULE(what_the_proof_would_change_is_not_kept),
        RULE(a_set_whose_metadata_moves_is_looked_at_anew),
        RULE(a_delete_that_is_not_taken_drops_the_manifest_before_anything_else),
        RULE(what_another_keeps_at_the_very_end_leaves_no_mark),
        RULE(what_another_keeps_is_dropped_when_his_delete_cannot_come_any_more),
        RULE(a_plan_drops_nothing),
        RULE(sizes_are_declared_in_the_name_of_whoever_applied_them),
        RULE(a_delete_that_is_refused_ends_it_without_a_kept_manifest),
        RULE(a_set_that_keeps_changing_is_given_up),
        RULE(a_scale_on_its_way_out_is_noted_and_carried),
        RULE(a_set_that_goes_with_its_pods_is_an_alarm),
        RULE(another_finalizer_is_waited_for_by_name),
        RULE(a_pod_that_names_the_set_that_is_gone_is_let_go_first),
        RULE(an_owner_that_is_gone_does_not_come_back_with_it),
        RULE(another_process_makes_it_again_from_what_is_kept),
        RULE(what_is_decided_again_is_said_once),
        RULE(a_larger_manifest_raises_what_is_kept),
        RULE(a_set_that_was_handed_to_a_neoset_is_not_made_again),
        RULE(a_kept_manifest_that_somebody_deleted_is_an_alarm),
        RULE(a_canary_is_kept_by_two_steps),
        RULE(what_is_changed_between_the_two_steps_stays),
        RULE(half_a_canary_with_old_sizes_is_made_whole_before_it_starts_over),
        RULE(a_set_that_a_person_made_again_is_not_taken_for_half_a_canary),
        RULE(without_its_revision_a_canary_is_made_again_whole),
        RULE(somebody_who_makes_it_again_with_the_old_sizes_is_overcome_three_times),
        RULE(a_claim_that_was_made_meanwhile_is_grown_at_the_end),
        RULE(a_claim_that_may_not_grow_and_goes_is_in_nobodys_way),
        RULE(it_is_done_when_the_new_set_has_what_the_old_one_had),
        RULE(the_file_systems_are_waited_for_when_that_is_wanted),
        RULE(what_is_asked_for_stands_in_the_journal),
        RULE(an_older_program_refuses_what_it_does_not_understand),
        RULE(what_the_resizer_says_is_shown_while_it_does_not_get_on),
        RULE(the_file_system_of_an_unused_claim_is_not_waited_for),
    };
    return cmocka_run_group_tests_name("converge: the delete, and after", tests, NULL, NULL);
}
