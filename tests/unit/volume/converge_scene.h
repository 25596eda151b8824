/* SPDX-License-Identifier: Apache-2.0
 *
 * Converge as a plan: what is shown to it, what it is told, what it wants next. Each rule of the procedure by
 * itself; no server, no clock. */
#pragma once

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
static inline cJSON *parse(const char *text)
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
static inline void merge(cJSON *target, const cJSON *patch)
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

static inline void add_pod(struct scene *scene, const char *name, const char *patch)
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

static inline void add_claim(struct scene *scene, const char *name, const char *patch)
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

static inline cJSON *named(cJSON *list, const char *name)
{
    cJSON *item = NULL;
    cJSON_ArrayForEach (item, list)
        if (str_equal(kube_object_name(item), name))
            return item;
    fail_msg("no %s", name);
    return NULL;
}

static inline void change(cJSON *object, const char *patch)
{
    CLEANUP_JSON cJSON *tree = parse(patch);
    merge(object, tree);
}

static inline void set_size(cJSON *set, const char *size)
{
    cJSON *template = json_path(set, "spec", "volumeClaimTemplates", NULL)->child;
    json_set_str(json_path(template, "spec", "resources", "requests", NULL), "storage", size);
}

/* A set with two pods and two claims of 1Gi; 2Gi are declared. */
static inline int setup(void **state)
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

static inline int teardown(void **state)
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

static inline void begin(struct scene *scene, struct converge_options options)
{
    options.namespace = "prod";
    options.name = "db";
    options.field_manager = "me";
    scene->converge = converge_make(&options);
}

static inline void begin_desired(struct scene *scene)
{
    begin(scene, (struct converge_options){.desired = scene->desired});
}

static inline void next(struct scene *scene)
{
    if (scene->turn.step)
        step_request_free(scene->turn.step);
    converge_next(scene->converge, &scene->turn);
}

static inline void look(struct scene *scene)
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

static inline void expect(const struct scene *scene, enum converge_stage stage)
{
    if (scene->turn.stage != stage)
        fail_msg("%s (%s), not %s", converge_stage_text(scene->turn.stage),
                 scene->turn.phrase ? scene->turn.phrase : "", converge_stage_text(stage));
}

static inline void expect_phrase(const struct scene *scene, const char *words)
{
    if (!scene->turn.phrase || !strstr(scene->turn.phrase, words))
        fail_msg("%s: \"%s\", not \"%s\"", converge_stage_text(scene->turn.stage),
                 scene->turn.phrase ? scene->turn.phrase : "", words);
}

static inline void expect_end(const struct scene *scene, enum error_code code, const char *words)
{
    expect(scene, CONVERGE_END);
    expect_phrase(scene, words);
    assert_int_equal(scene->turn.code, code);
}

/* The server's answer to what is asked, as text. */
static inline void answer(struct scene *scene, int http, const char *body)
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
static inline void agree(struct scene *scene)
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

static inline void refuse(struct scene *scene, int http, const char *reason, const char *cause)
{
    CLEANUP_FREE char *text = xasprintf(
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"no\",\"reason\":\"%s\",\"details\":{"
        "\"causes\":[%s]},\"code\":%d}",
        reason, cause, http);
    answer(scene, http, text);
}

static inline void tell(struct scene *scene, enum journal_kind kind)
{
    assert_int_equal(scene->turn.next, CONVERGE_NEXT_STEP);
    converge_take_outcome(scene->converge, &(struct converge_outcome){.kind = kind,
                                                                      .http = 403,
                                                                      .summary = "the server's words",
                                                                      .boot_us = scene->boot_us});
    next(scene);
}

/* What an applied step does to what will be seen. */
static inline void apply(struct scene *scene)
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
static inline void expect_drop_of_what_never_went(struct scene *scene)
{
    expect(scene, CONVERGE_FORESTALL);
    apply(scene);
    look(scene);
    expect(scene, CONVERGE_DROP);
}

static inline void prove(struct scene *scene)
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

static inline void probe_and_grow(struct scene *scene)
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

/* From the beginning until all claims are grown. */
static inline void grow_all(struct scene *scene)
{
    begin_desired(scene);
    look(scene);
    prove(scene);
    probe_and_grow(scene);
}

/* Until the delete is to be sent. */
static inline void reach_delete(struct scene *scene)
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

static inline void set_goes(struct scene *scene)
{
    json_delete(STEAL(scene->set));
    cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, scene->pods)
        json_remove(json_get(pod, "metadata"), "ownerReferences");
    json_remove(json_get(scene->revisions->child, "metadata"), "ownerReferences");
}

/* The new set, as its controller has it. */
static inline void set_comes(struct scene *scene, const cJSON *body, const char *uid)
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

/* It is made, of uid u2, and its controller has taken its pods over. */
static inline void make_again(struct scene *scene)
{
    CLEANUP_JSON cJSON *body = json_copy(scene->turn.step->body);
    expect(scene, CONVERGE_MAKE);
    apply(scene);
    set_comes(scene, body, "u2");
}

/* Until the set is gone and is to be made again. */
static inline void reach_gap(struct scene *scene)
{
    reach_delete(scene);
    apply(scene);
    expect(scene, CONVERGE_LOOK);
    set_goes(scene);
    look(scene);
}

#define RULE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
