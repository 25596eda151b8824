/* SPDX-License-Identifier: Apache-2.0
 *
 * Converge as a plan: what is shown to it, what it is told, what it wants next. Each rule of the procedure by
 * itself; no server, no clock. */
#include "base/time_text.h"
#include "control/preconditions.h"
#include "kube/answer.h"
#include "kube/object.h"
#include "volume/converge.h"
#include "volume/goal.h"
#include "volume/grow.h"
#include "volume/keep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define NOW_US (1700000000LL * US_PER_S)
#define OLD "2023-11-14T22:10:00Z"
#define YOUNG "2023-11-14T22:13:18Z" /* two seconds before */

/* text with ' for ". */
static cJSON *parse(const char *text)
{
    CLEANUP_FREE char *copy = xstrdup(text);
    for (char *at = copy; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    cJSON *tree = NULL;
    if (json_parse(copy, strlen(copy), &tree, NULL) < 0)
        fail_msg("not JSON: %s", copy);
    return tree;
}

/* RFC 7386, on text with ' for ". */
static void merge(cJSON *target, const cJSON *patch)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, patch) {
        if (cJSON_IsNull(member))
            json_remove(target, member->string);
        else if (cJSON_IsObject(member))
            merge(json_ensure_object(target, member->string), member);
        else
            json_set_item(target, member->string, json_copy(member));
    }
}

/* --- the scene ------------------------------------------------------------------------------------------ */

struct scene {
    cJSON *set, *desired, *revisions, *pods, *claims, *sets, *classes, *gone_owners, *quotas, *events;
    struct converge *converge;
    struct converge_look look;
    struct converge_turn turn;
    int64_t boot_us;
    int64_t wall_off_us; /* of our wall clock, to the server's */
    int kept_count;      /* so far */
};

static const char set_text[] =
    "{'apiVersion':'apps/"
    "v1','kind':'StatefulSet','metadata':{'name':'db','namespace':'prod','uid':'u1-abcdefgh',"
    "'resourceVersion':'7','generation':3,'managedFields':[{'manager':'me','operation':'Apply'}]},'spec':{"
    "'replicas':2,'selector':{'matchLabels':{'app':'db'}},'serviceName':'db','template':{'metadata':{'labels'"
    ":"
    "{'app':'db'}},'spec':{'containers':[{'name':'db','image':'mysql:8.1'}]}},'volumeClaimTemplates':[{'"
    "metadata':"
    "{'name':'data'},'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}},"
    "'storageClassName':'std','volumeMode':'Filesystem'}}],'updateStrategy':{'type':'RollingUpdate',"
    "'rollingUpdate':{'partition':0}}},'status':{'observedGeneration':3,'currentRevision':'db-1',"
    "'updateRevision':'db-1'}}";

static void add_pod(struct scene *scene, const char *name, const char *patch)
{
    CLEANUP_FREE char *text =
        xasprintf("{'metadata':{'name':'%s','namespace':'prod','uid':'p-%s','resourceVersion':'3','"
                  "creationTimestamp':'" OLD "','labels':{'app':'db','controller-revision-hash':'db-1'},'"
                  "ownerReferences':[{'kind':'StatefulSet','name':"
                  "'db','uid':'u1-abcdefgh','controller':true}]},'status':{'conditions':[{'type':'Ready','"
                  "status':'True'}],"
                  "'containerStatuses':[{'restartCount':0}]}}",
                  name, name);
    cJSON *pod = parse(text);
    CLEANUP_JSON cJSON *change = parse(patch);
    merge(pod, change);
    json_append_item(scene->pods, pod);
}

static void add_claim(struct scene *scene, const char *name, const char *patch)
{
    CLEANUP_FREE char *text = xasprintf("{'metadata':{'name':'%s','namespace':'prod','uid':'c-%s','"
                                        "resourceVersion':'4'},'spec':{'accessModes':["
                                        "'ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}},'"
                                        "storageClassName':'std','volumeName':'v'},"
                                        "'status':{'phase':'Bound','capacity':{'storage':'1Gi'}}}",
                                        name, name);
    cJSON *claim = parse(text);
    CLEANUP_JSON cJSON *change = parse(patch);
    merge(claim, change);
    json_append_item(scene->claims, claim);
}

static cJSON *named(cJSON *list, const char *name)
{
    cJSON *item = NULL;
    cJSON_ArrayForEach (item, list)
        if (str_equal(kube_object_name(item), name))
            return item;
    fail_msg("no %s", name);
    return NULL;
}

static void change(cJSON *object, const char *patch)
{
    CLEANUP_JSON cJSON *tree = parse(patch);
    merge(object, tree);
}

static void set_size(cJSON *set, const char *size)
{
    cJSON *template = json_path(set, "spec", "volumeClaimTemplates", NULL)->child;
    json_set_str(json_path(template, "spec", "resources", "requests", NULL), "storage", size);
}

/* A set with two pods and two claims of 1Gi; 2Gi are declared. */
static int setup(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    scene->set = parse(set_text);
    scene->desired =
        parse("{'apiVersion':'apps/"
              "v1','kind':'StatefulSet','metadata':{'name':'db','namespace':'prod'},'spec':{'replicas':"
              "2,'selector':{'matchLabels':{'app':'db'}},'serviceName':'db','template':{'metadata':{'labels':"
              "{'app':'db'}},"
              "'spec':{'containers':[{'name':'db','image':'mysql:8.1'}]}},'volumeClaimTemplates':[{'metadata'"
              ":{'name':"
              "'data'},'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'2Gi'}},"
              "'storageClassName':'std'}}]}}");
    scene->revisions =
        parse("[{'metadata':{'name':'db-1','namespace':'prod','uid':'r1','ownerReferences':[{'uid':"
              "'u1-abcdefgh','controller':true}]},'data':{'spec':{'template':{'$patch':'replace',"
              "'metadata':{'labels':{'app':'db'}},'spec':{'containers':[{'name':'db','image':"
              "'mysql:8.0'}]}}}}}]");
    scene->pods = json_new_array();
    scene->claims = json_new_array();
    scene->sets = parse("[{'metadata':{'name':'db','namespace':'prod'}}]");
    scene->classes = parse("[{'metadata':{'name':'std'},'allowVolumeExpansion':true}]");
    scene->boot_us = 1000 * US_PER_S;
    add_pod(scene, "db-0", "{}");
    add_pod(scene, "db-1", "{}");
    add_claim(scene, "data-db-0", "{}");
    add_claim(scene, "data-db-1", "{}");
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    converge_free(scene->converge);
    cJSON *const trees[] = {scene->set,  scene->desired, scene->revisions,   scene->pods,   scene->claims,
                            scene->sets, scene->classes, scene->gone_owners, scene->quotas, scene->events};
    for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
        json_delete(trees[i]);
    if (scene->turn.step)
        step_request_free(scene->turn.step);
    free(scene);
    return 0;
}

static void begin(struct scene *scene, struct converge_options options)
{
    options.namespace = "prod";
    options.name = "db";
    options.field_manager = "me";
    scene->converge = converge_make(&options);
}

static void begin_desired(struct scene *scene)
{
    begin(scene, (struct converge_options){.desired = scene->desired});
}

static void next(struct scene *scene)
{
    if (scene->turn.step)
        step_request_free(scene->turn.step);
    converge_next(scene->converge, &scene->turn);
}

static void look(struct scene *scene)
{
    scene->look = (struct converge_look){.set = scene->set,
                                         .revisions = scene->revisions,
                                         .pods = scene->pods,
                                         .claims = scene->claims,
                                         .sets = scene->sets,
                                         .classes = scene->classes,
                                         .gone_owners = scene->gone_owners,
                                         .quotas = scene->quotas,
                                         .events = scene->events,
                                         .wall_us = NOW_US + scene->wall_off_us,
                                         .boot_us = scene->boot_us,
                                         .pods_boot_us = scene->boot_us};
    converge_take_look(scene->converge, &scene->look);
    next(scene);
}

static void expect(const struct scene *scene, enum converge_stage stage)
{
    if (scene->turn.stage != stage)
        fail_msg("%s (%s), not %s", converge_stage_text(scene->turn.stage),
                 scene->turn.phrase ? scene->turn.phrase : "", converge_stage_text(stage));
}

static void expect_phrase(const struct scene *scene, const char *words)
{
    if (!scene->turn.phrase || !strstr(scene->turn.phrase, words))
        fail_msg("%s: \"%s\", not \"%s\"", converge_stage_text(scene->turn.stage),
                 scene->turn.phrase ? scene->turn.phrase : "", words);
}

static void expect_end(const struct scene *scene, enum error_code code, const char *words)
{
    expect(scene, CONVERGE_END);
    expect_phrase(scene, words);
    assert_int_equal(scene->turn.code, code);
}

/* The server's answer to what is asked, as text. */
static void answer(struct scene *scene, int http, const char *body)
{
    struct http_answer answered = {.outcome = HTTP_ANSWERED,
                                   .status = http,
                                   .body_whole = true,
                                   .body = body,
                                   .body_length = strlen(body),
                                   .retry_after_us = -1};
    struct kube_decoded decoded;
    kube_decode(&answered, KUBE_DECODE_ASK, &decoded);
    assert_int_equal(scene->turn.next, CONVERGE_NEXT_ASK);
    converge_take_answer(scene->converge, &decoded.answer, scene->boot_us);
    kube_decoded_done(&decoded);
    next(scene);
}

/* As a server that agrees answers: with the object. */
static void agree(struct scene *scene)
{
    CLEANUP_JSON cJSON *object =
        json_copy(scene->turn.stage == CONVERGE_PROVE_APPLY || scene->turn.stage == CONVERGE_PROVE_DELETE
                      ? scene->set
                      : scene->turn.ask.body);
    if (scene->turn.stage == CONVERGE_PROVE_CREATE)
        change(object, "{'metadata':{'creationTimestamp':'2023-11-14T22:13:20Z'}}");
    if (scene->turn.stage == CONVERGE_PROVE_DELETE)
        change(object, "{'metadata':{'finalizers':['orphan']}}");
    CLEANUP_FREE char *text = json_print(object);
    answer(scene, 200, text);
}

static void refuse(struct scene *scene, int http, const char *reason, const char *cause)
{
    CLEANUP_FREE char *text = xasprintf(
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"no\",\"reason\":\"%s\",\"details\":{"
        "\"causes\":[%s]},\"code\":%d}",
        reason, cause, http);
    answer(scene, http, text);
}

static void tell(struct scene *scene, enum journal_kind kind)
{
    assert_int_equal(scene->turn.next, CONVERGE_NEXT_STEP);
    converge_take_outcome(scene->converge, &(struct converge_outcome){.kind = kind,
                                                                      .http = 403,
                                                                      .summary = "the server's words",
                                                                      .boot_us = scene->boot_us});
    next(scene);
}

/* What an applied step does to what will be seen. */
static void apply(struct scene *scene)
{
    const struct step_request *step = scene->turn.step;
    assert_int_equal(scene->turn.next, CONVERGE_NEXT_STEP);
    if (step->kind == STEP_GROW_CLAIM) {
        merge(named(scene->claims, step->name), step->body);
        change(named(scene->claims, step->name),
               "{'status':{'allocatedResources':{'storage':'2Gi'},'allocatedResourceStatuses':{'storage':"
               "'NodeResizePending'}}}");
    } else if (step->kind == STEP_CREATE_REVISION) {
        CLEANUP_FREE char *text = json_print(step->body);
        cJSON *kept = NULL;
        assert_int_equal(json_parse(text, strlen(text), &kept, NULL), 0);
        CLEANUP_FREE char *servers =
            xasprintf("{'metadata':{'uid':'k%d','resourceVersion':'9','creationTimestamp':'" OLD "'}}",
                      ++scene->kept_count);
        change(kept, servers);
        json_append_item(scene->revisions, kept);
    } else if (step->kind == STEP_DELETE) {
        cJSON *gone = named(scene->revisions, step->name);
        cJSON_Delete(cJSON_DetachItemViaPointer(scene->revisions, gone));
    } else if (step->kind == STEP_PATCH && step->resource == KUBE_STATEFULSET) {
        CLEANUP_FREE char *moved = xasprintf("{'metadata':{'resourceVersion':'%s0','annotations':{'"
                                             "apps.neo.io/step':'k-1'}}}",
                                             step->version);
        assert_string_equal(step->uid, kube_object_uid(scene->set));
        assert_string_equal(step->version, kube_object_version(scene->set));
        change(scene->set, moved);
    }
    tell(scene, JOURNAL_APPLIED);
}

/* It never went: a delete that may be under way is made impossible before what is kept is dropped. */
static void expect_drop_of_what_never_went(struct scene *scene)
{
    expect(scene, CONVERGE_FORESTALL);
    apply(scene);
    look(scene);
    expect(scene, CONVERGE_DROP);
}

static void prove(struct scene *scene)
{
    expect(scene, CONVERGE_PROVE_APPLY);
    agree(scene);
    expect(scene, CONVERGE_PROVE_CREATE);
    agree(scene);
    expect(scene, CONVERGE_PROVE_DELETE);
    agree(scene);
    /* What is not there may be changed and dropped. */
    while (scene->turn.stage == CONVERGE_PROVE_RIGHTS)
        if (str_equal(scene->turn.ask.method, "POST"))
            agree(scene);
        else
            refuse(scene, 404, "NotFound", "");
    /* The first one asks for the sizes, too, which the set cannot have: they are immutable. */
    if (scene->turn.stage == CONVERGE_PROVE_SIZES)
        refuse(scene, 422, "Invalid", "");
}

static void probe_and_grow(struct scene *scene)
{
    while (scene->turn.stage == CONVERGE_PROBE)
        agree(scene);
    expect(scene, CONVERGE_GROW);
    assert_string_equal(scene->turn.step->name, "data-db-0");
    apply(scene);
    expect(scene, CONVERGE_LOOK);
    look(scene);
    expect(scene, CONVERGE_GROW);
    apply(scene);
    expect(scene, CONVERGE_LOOK);
}

/* Until the delete is to be sent. */
static void reach_delete(struct scene *scene)
{
    look(scene);
    prove(scene);
    probe_and_grow(scene);
    look(scene);
    prove(scene);
    expect(scene, CONVERGE_KEEP);
    apply(scene);
    expect(scene, CONVERGE_DELETE);
}

static void set_goes(struct scene *scene)
{
    json_delete(STEAL(scene->set));
    cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, scene->pods)
        json_remove(json_get(pod, "metadata"), "ownerReferences");
    json_remove(json_get(scene->revisions->child, "metadata"), "ownerReferences");
}

/* The new set, as its controller has it. */
static void set_comes(struct scene *scene, const cJSON *body, const char *uid)
{
    json_delete(scene->set);
    scene->set = json_copy(body);
    CLEANUP_FREE char *meta = xasprintf(
        "{'metadata':{'uid':'%s','resourceVersion':'20','generation':1,'annotations':{'apps.neo.io/step':'k'}"
        "},'status':{'observedGeneration':1,'currentRevision':'db-1','updateRevision':'db-1'}}",
        uid);
    change(scene->set, meta);
    CLEANUP_FREE char *owner = xasprintf(
        "{'metadata':{'ownerReferences':[{'kind':'StatefulSet','name':'db','uid':'%s','controller':true}]}}",
        uid);
    cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, scene->pods)
        change(pod, owner);
    change(scene->revisions->child, owner);
}

/* Until the set is gone and is to be made again. */
static void reach_gap(struct scene *scene)
{
    reach_delete(scene);
    apply(scene);
    expect(scene, CONVERGE_LOOK);
    set_goes(scene);
    look(scene);
}

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
    begin_desired(scene);
    look(scene);
    prove(scene);
    probe_and_grow(scene);
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

/* All is grown; the proof before the delete, whose last answer takes so long. */
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
    begin_desired(scene);
    look(scene);
    prove(scene);
    probe_and_grow(scene);
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
    begin_desired(scene);
    look(scene);
    prove(scene);
    probe_and_grow(scene);
    int times = 0;
    for (prove_for(scene, 3 * US_PER_S); scene->turn.stage == CONVERGE_LOOK; prove_for(scene, 3 * US_PER_S))
        times++;
    expect(scene, CONVERGE_KEEP);
    assert_int_equal(times, 3);
    apply(scene);
    expect(scene, CONVERGE_DELETE);
}

/* Two commands that want different sizes would answer each other for ever. */
static void a_claim_that_somebody_sets_to_another_size_is_left_to_him(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    look(scene);
    prove(scene);
    probe_and_grow(scene);
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
    begin_desired(scene);
    look(scene);
    prove(scene);
    probe_and_grow(scene);
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

/* --- quiet ---------------------------------------------------------------------------------------------- */

static void reach_quiet(struct scene *scene)
{
    begin_desired(scene);
    look(scene);
    prove(scene);
    probe_and_grow(scene);
}

/* Trace g5: also not fresh. */
static void the_pods_must_be_quiet(void **state)
{
    struct scene *scene = *state;
    reach_quiet(scene);
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
    reach_quiet(scene);
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
    reach_quiet(scene);
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
    reach_quiet(scene);
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

/* --- the delete ----------------------------------------------------------------------------------------- */

/* Acceptance 13. */
static void a_set_that_moves_between_look_and_proof_is_looked_at_anew(void **state)
{
    struct scene *scene = *state;
    reach_quiet(scene);
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
    reach_quiet(scene);
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
    reach_quiet(scene);
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
    reach_quiet(scene);
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

/* Somebody else's, who is about to delete the set, or whose delete is late: with another object that is kept
 * it begins anew. The mark of it is taken off at the end. */
static void reach_drop(struct scene *scene)
{
    reach_gap(scene);
    CLEANUP_JSON cJSON *body = json_copy(scene->turn.step->body);
    apply(scene);
    set_comes(scene, body, "u2");
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

static void a_canary_is_kept_by_two_steps(void **state)
{
    struct scene *scene = *state;
    change(
        scene->set,
        "{'spec':{'updateStrategy':{'rollingUpdate':{'partition':1}}},'status':{'updateRevision':'db-2'}}");
    change(named(scene->pods, "db-1"), "{'metadata':{'labels':{'controller-revision-hash':'db-2'}}}");
    begin_desired(scene);
    reach_gap(scene);
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
    change(
        scene->set,
        "{'spec':{'updateStrategy':{'rollingUpdate':{'partition':1}}},'status':{'updateRevision':'db-2'}}");
    change(named(scene->pods, "db-1"), "{'metadata':{'labels':{'controller-revision-hash':'db-2'}}}");
    begin_desired(scene);
    reach_gap(scene);
    CLEANUP_JSON cJSON *body = json_copy(scene->turn.step->body);
    apply(scene);
    set_comes(scene, body, "u2");
    change(scene->set, "{'spec':{'template':{'metadata':{'annotations':{'restartedAt':'now'}}}},"
                       "'status':{'observedGeneration':1,'currentRevision':'db-1','updateRevision':'db-3'}}");
    look(scene);
    expect(scene, CONVERGE_SECOND);
    CLEANUP_FREE char *second = json_print(scene->turn.step->body);
    assert_non_null(strstr(second, "mysql:8.1"));
    assert_null(strstr(second, "mysql:8.0"));
    assert_non_null(strstr(second, "\"annotations\":{\"restartedAt\":\"now\"}"));
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
    CLEANUP_JSON cJSON *body = json_copy(scene->turn.step->body);
    apply(scene);
    set_comes(scene, body, "u2");
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

static void a_late_claim_that_somebody_sets_to_another_size_is_left_to_him(void **state)
{
    struct scene *scene = *state;
    begin_desired(scene);
    reach_gap(scene);
    CLEANUP_JSON cJSON *body = json_copy(scene->turn.step->body);
    apply(scene);
    set_comes(scene, body, "u2");
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
    CLEANUP_JSON cJSON *body = json_copy(scene->turn.step->body);
    apply(scene);
    set_comes(scene, body, "u2");
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
    CLEANUP_JSON cJSON *body = json_copy(scene->turn.step->body);
    apply(scene);
    set_comes(scene, body, "u2");
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

#define RULE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
        RULE(a_claim_that_may_not_grow_is_asked_why),
        RULE(every_claim_is_probed_before_the_first_grows),
        RULE(of_a_claim_only_the_request_is_written),
        RULE(a_file_system_that_is_to_be_resized_holds_up_nothing),
        RULE(the_first_claim_of_a_class_is_looked_at_alone),
        RULE(what_an_earlier_run_asked_for_is_the_first_of_its_class_still),
        RULE(pods_that_were_looked_at_long_ago_are_looked_at_again),
        RULE(a_server_that_is_always_slow_holds_it_up_for_a_while_only),
        RULE(a_claim_that_somebody_sets_to_another_size_is_left_to_him),
        RULE(a_claim_that_was_made_anew_is_another_one),
        RULE(a_late_claim_that_somebody_sets_to_another_size_is_left_to_him),
        RULE(a_size_that_is_infeasible_stops_it_before_the_set_is_touched),
        RULE(a_growth_that_is_refused_leaves_the_others_grown),
        RULE(grown_claims_are_not_grown_again),
        RULE(pods_that_came_during_the_proof_are_seen),
        RULE(quotas_are_asked_for_the_sum),
        RULE(the_pods_must_be_quiet),
        RULE(a_wall_clock_that_is_off_makes_no_pod_older),
        RULE(pods_below_the_partition_may_run_the_revision_before),
        RULE(on_delete_no_revision_is_asked_for),
        RULE(unready_pods_are_waited_for_three_minutes_when_they_may_be_unready),
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
        RULE(back_from_what_cannot_be_claims_are_lowered_above_what_they_have),
        RULE(a_volume_never_shrinks),
        RULE(claims_are_led_back_in_the_order_of_their_names),
        RULE(where_only_claims_failed_the_set_is_left_alone),
        RULE(a_plan_ends_before_the_first_write),
        RULE(a_plan_of_what_is_half_done_names_the_command),
    };
    return cmocka_run_group_tests_name("converge", tests, NULL, NULL);
}
