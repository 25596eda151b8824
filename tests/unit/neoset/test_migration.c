/* SPDX-License-Identifier: Apache-2.0
 *
 * From a StatefulSet to a NeoSet and back, as objects: what is refused, what the NeoSet looks like, what goes
 * back, when the pods are quiet. */
#include "neoset/migration.h"

#include "base/time_text.h"
#include "kube/object.h"
#include "neoset/revision.h"
#include "volume/keep.h"
#include "volume/quiet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define NOW_US (1700000000LL * US_PER_S)
#define OLD "2023-11-14T22:13:00Z"
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

static const char whole[] =
    "{'apiVersion':'apps/"
    "v1','kind':'StatefulSet','metadata':{'name':'db','namespace':'prod','uid':'u-123456789',"
    "'resourceVersion':'7','generation':3,'creationTimestamp':'" OLD "','labels':{'app':'db',"
    "'app.kubernetes.io/instance':'x'},'annotations':{'a':'b','kubectl.kubernetes.io/"
    "last-applied-configuration':'{}'},"
    "'managedFields':[{'manager':'kubectl'}]},'spec':{'replicas':3,'selector':{'matchLabels':{'app':'db'}},"
    "'serviceName':'db','podManagementPolicy':'Parallel','minReadySeconds':4,'ordinals':{'start':2},"
    "'persistentVolumeClaimRetentionPolicy':{'whenDeleted':'Retain','whenScaled':'Delete'},'"
    "revisionHistoryLimit':5,"
    "'template':{'metadata':{'labels':{'app':'db'},'creationTimestamp':null},'spec':{'containers':[{'name':'"
    "db',"
    "'image':'mysql:8.0'}]}},'volumeClaimTemplates':[{'apiVersion':'v1','kind':'PersistentVolumeClaim','"
    "metadata':"
    "{'name':'data','creationTimestamp':null},'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests'"
    ":"
    "{'storage':'1Gi'}},'volumeMode':'Filesystem'},'status':{'phase':'Pending'}}],'updateStrategy':{'type':"
    "'RollingUpdate','rollingUpdate':{'partition':1,'maxUnavailable':2}}},'status':{'observedGeneration':3,"
    "'updateRevision':'db-1'}}";

static void the_neoset_has_all_that_the_statefulset_had_and_is_paused(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *set = parse(whole);
    CLEANUP_JSON cJSON *neoset = migration_neoset(set);
    CLEANUP_JSON cJSON *wanted = parse(
        "{'apiVersion':'apps.neo.io/"
        "v1alpha1','kind':'NeoSet','metadata':{'name':'db','namespace':'prod','labels':"
        "{'app':'db'},'annotations':{'apps.neo.io/adopts':'u-123456789'}},'spec':{'replicas':3,'selector':"
        "{'matchLabels':{'app':'db'}},'serviceName':'db','podManagementPolicy':'Parallel','minReadySeconds':"
        "4,"
        "'ordinals':{'start':2},'persistentVolumeClaimRetentionPolicy':{'whenDeleted':'Retain','whenScaled':'"
        "Delete'},"
        "'revisionHistoryLimit':5,'template':{'metadata':{'labels':{'app':'db'}},'spec':{'containers':[{'"
        "name':'db',"
        "'image':'mysql:8.0'}]}},'volumeClaimTemplates':[{'apiVersion':'v1','kind':'PersistentVolumeClaim','"
        "metadata':"
        "{'name':'data'},'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}},"
        "'volumeMode':'Filesystem'}}],'updateStrategy':{'type':'InPlace','partition':1,'maxUnavailable':2,'"
        "pause':true}}}");
    CLEANUP_FREE char *text = json_print_sorted(neoset);
    CLEANUP_FREE char *expected = json_print_sorted(wanted);
    assert_string_equal(text, expected);
    assert_null(migration_neoset_patch(neoset, set));
}

/* --- refusals ------------------------------------------------------------------------------------------- */

static void merge(cJSON *to, const cJSON *patch)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, patch) {
        cJSON *there = json_get(to, member->string);
        if (cJSON_IsObject(member) && cJSON_IsObject(there))
            merge(there, member);
        else
            json_set_item(to, member->string, json_copy(member));
    }
}

static void what_a_neoset_has_not_is_named_with_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *patch;
        const char *refusal; /* NULL: none */
    } table[] = {
        {"{}", NULL},
        {"{'spec':{'updateStrategy':{'type':'OnDelete','rollingUpdate':null}}}",
         "spec.updateStrategy.type: OnDelete"},
        {"{'spec':{'updateStrategy':{'rollingUpdate':{'surge':1}}}}",
         "spec.updateStrategy.rollingUpdate.surge"},
        {"{'spec':{'newField':{'x':1}}}", "spec.newField: a NeoSet has no such field"},
        {"{'spec':{'newField':{}}}", NULL},
        {"{'spec':{'newField':null}}", NULL},
        {"{'spec':{'ordinals':{'step':2}}}", "spec.ordinals.step"},
        {"{'spec':{'persistentVolumeClaimRetentionPolicy':{'whenMoved':'Delete'}}}",
         "spec.persistentVolumeClaimRetentionPolicy.whenMoved"},
        {"{'spec':{'replicas':100001}}", "spec.replicas: a NeoSet has at most 100000"},
        {"{'spec':{'template':{'metadata':{'finalizers':['a/b']}}}}", "spec.template.metadata.finalizers"},
        {"{'spec':{'volumeClaimTemplates':[{'metadata':{'name':'data','finalizers':['a/"
         "b']},'spec':{'resources':"
         "{'requests':{'storage':'1Gi'}}}}]}}",
         "spec.volumeClaimTemplates[data].metadata.finalizers"},
        {"{'spec':{'volumeClaimTemplates':[{'metadata':{'name':'data'},'spec':{'newField':1,'resources':{'"
         "requests':"
         "{'storage':'1Gi'}}}}]}}",
         "spec.volumeClaimTemplates[data].spec.newField"},
        {"{'spec':{'volumeClaimTemplates':[{'metadata':{'name':'data'},'spec':{'resources':{'requests':{'"
         "storage':"
         "'1Gi','files':'7'}}}}]}}",
         "spec.volumeClaimTemplates[data].spec.resources.requests.files"},
        {"{'metadata':{'name':'db.one'}}", "metadata.name: db.one has a dot"},
        {"{'metadata':{'name':'a123456789012345678901234567890123456789012345678901234'}}",
         "is longer than the 52"},
        {"{'metadata':{'finalizers':['a.b/c']}}", "metadata.finalizers: a.b/c would hold it"},
        {"{'metadata':{'ownerReferences':[{'kind':'MySQL','name':'x'}]}}", "it belongs to MySQL x"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_JSON cJSON *set = parse(whole);
        CLEANUP_JSON cJSON *patch = parse(table[i].patch);
        merge(set, patch);
        struct migration_list list;
        migration_refuse(set, &list);
        CLEANUP_FREE char *text = migration_list_text(&list);
        if (table[i].refusal ? list.count != 1 || !strstr(text, table[i].refusal) : list.count != 0)
            fail_msg("%s: %zu: %s", table[i].patch, list.count, text);
        migration_list_done(&list);
    }
}

static void every_offence_is_named_at_once(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *set = parse(whole);
    CLEANUP_JSON cJSON *patch = parse(
        "{'metadata':{'finalizers':['a/b']},'spec':{'one':1,'two':2,'updateStrategy':{'type':'OnDelete'}}}");
    merge(set, patch);
    struct migration_list list;
    migration_refuse(set, &list);
    assert_int_equal(list.count, 4);
    migration_list_done(&list);
}

static void a_field_that_the_server_prunes_is_named(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *set = parse(whole);
    CLEANUP_JSON cJSON *sent = migration_neoset(set);
    CLEANUP_JSON cJSON *answered = json_copy(sent);
    json_add_str(json_path(answered, "spec", "template", "spec", NULL), "restartPolicy",
                 "Always"); /* a default */
    struct migration_list list;
    migration_not_kept(sent, answered, &list);
    assert_int_equal(list.count, 0);
    json_remove(json_get(answered, "spec"), "minReadySeconds");
    json_remove(json_path(answered, "spec", "volumeClaimTemplates", NULL)->child, "spec");
    migration_not_kept(sent, answered, &list);
    CLEANUP_FREE char *text = migration_list_text(&list);
    assert_non_null(strstr(text, "spec.minReadySeconds: the server does not keep it"));
    assert_non_null(strstr(text, "spec.volumeClaimTemplates[0].spec"));
    migration_list_done(&list);
}

static void the_neoset_follows_what_the_statefulset_became(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *set = parse(whole);
    CLEANUP_JSON cJSON *neoset = migration_neoset(set);
    CLEANUP_JSON cJSON *patch =
        parse("{'spec':{'replicas':5,'template':{'spec':{'containers':[{'name':'db','image':"
              "'mysql:8.1'}]}}}}");
    merge(set, patch);
    CLEANUP_JSON cJSON *body = migration_neoset_patch(neoset, set);
    assert_int_equal(cJSON_GetArraySize(json_get(body, "spec")), 2);
    assert_int_equal(json_int64_or(json_get(body, "spec"), "replicas", -1), 5);
    assert_non_null(json_path(body, "spec", "template", "spec", NULL));
}

/* --- kept, and back ------------------------------------------------------------------------------------- */

static cJSON *keep(const cJSON *set)
{
    cJSON *kept = migration_kept(set, NULL);
    /* As the server gives it back. */
    CLEANUP_FREE char *text = json_print(kept);
    json_delete(kept);
    assert_int_equal(json_parse(text, strlen(text), &kept, NULL), 0);
    return kept;
}

static void the_manifest_is_kept_whole_and_under_no_label_of_the_set(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *set = parse(whole);
    CLEANUP_JSON cJSON *neoset = migration_neoset(set);
    json_set_str(json_get(neoset, "metadata"), "uid", "n1");
    CLEANUP_JSON cJSON *kept = migration_kept(set, neoset);
    assert_string_equal(kube_object_name(kept), "db-kept-u-123456");
    const cJSON *labels = json_path(kept, "metadata", "labels", NULL);
    assert_int_equal(cJSON_GetArraySize(labels), 1);
    assert_string_equal(json_str(labels, "apps.neo.io/resize-of"), "u-123456789");
    assert_string_equal(kube_object_annotation(kept, "apps.neo.io/adopted-by"), "db");
    assert_null(kube_object_controller(kept));
    assert_true(kube_object_is_owned_by(kept, "n1"));
    CLEANUP_JSON cJSON *again = keep(set);
    assert_true(json_equal(keep_manifest(again), set));
}

static void it_is_created_again_without_what_the_server_gives(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *set = parse(whole);
    CLEANUP_JSON cJSON *patch = parse("{'metadata':{'finalizers':['orphan'],'deletionTimestamp':'" OLD "',"
                                      "'deletionGracePeriodSeconds':0}}");
    merge(set, patch);
    CLEANUP_JSON cJSON *kept = keep(set);
    CLEANUP_JSON cJSON *made = keep_recreation(kept);
    CLEANUP_JSON cJSON *wanted = parse(whole);
    static const char *const servers[] = {"uid", "resourceVersion", "generation", "creationTimestamp",
                                          "managedFields"};
    for (size_t i = 0; i < ARRAY_SIZE(servers); i++)
        json_remove(json_get(wanted, "metadata"), servers[i]);
    json_remove(wanted, "status");
    CLEANUP_FREE char *text = json_print_sorted(made);
    CLEANUP_FREE char *expected = json_print_sorted(wanted);
    assert_string_equal(text, expected);
}

static void replicas_and_grown_claims_go_back_with_it(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *set = parse(whole);
    CLEANUP_JSON cJSON *neoset = migration_neoset(set);
    assert_null(migration_return(neoset, set));
    json_set_item(json_get(neoset, "spec"), "replicas", json_new_int64(0));
    json_set_str(json_path(json_path(neoset, "spec", "volumeClaimTemplates", NULL)->child, "spec",
                           "resources", "requests", NULL),
                 "storage", "2Gi");
    CLEANUP_JSON cJSON *patch = migration_return(neoset, set);
    CLEANUP_JSON cJSON *kept = keep(set);
    CLEANUP_FREE char *text = json_print(patch);
    json_set_str(json_path(kept, "metadata", "annotations", NULL), "apps.neo.io/return", text);
    CLEANUP_JSON cJSON *made = keep_recreation(kept);
    assert_int_equal(json_int64_or(json_get(made, "spec"), "replicas", -1), 0);
    const cJSON *claim = json_path(made, "spec", "volumeClaimTemplates", NULL)->child;
    assert_string_equal(json_path_str(claim, "spec", "resources", "requests", "storage", NULL), "2Gi");
    assert_string_equal(json_path_str(claim, "status", "phase", NULL), "Pending");
}

static void there_is_no_way_back_from_another_template_or_other_names(void **state)
{
    (void)state;
    static const struct {
        const char *patch, *refusal;
    } table[] = {
        {"{}", NULL},
        {"{'spec':{'replicas':9,'minReadySeconds':0,'updateStrategy':{'partition':0}}}", NULL},
        /* What the server would put in by itself. */
        {"{'spec':{'template':{'spec':{'restartPolicy':'Always','dnsPolicy':'ClusterFirst'}}}}", NULL},
        {"{'spec':{'template':{'spec':{'containers':[{'name':'db','image':'mysql:8.1'}]}}}}",
         "a rollout has begun"},
        {"{'spec':{'template':{'metadata':{'annotations':{'a':'b'}}}}}", "a rollout has begun"},
        {"{'spec':{'ordinals':{'start':0}}}", "spec.ordinals.start was 2 and is 0"},
        {"{'metadata':{'deletionTimestamp':'" OLD "'}}", "is being deleted"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_JSON cJSON *set = parse(whole);
        CLEANUP_JSON cJSON *neoset = migration_neoset(set);
        CLEANUP_JSON cJSON *patch = parse(table[i].patch);
        merge(neoset, patch);
        struct migration_list list;
        migration_refuse_return(neoset, set, &list);
        CLEANUP_FREE char *text = migration_list_text(&list);
        if (table[i].refusal ? list.count != 1 || !strstr(text, table[i].refusal) : list.count != 0)
            fail_msg("%s: %zu: %s", table[i].patch, list.count, text);
        migration_list_done(&list);
    }
}

/* --- revisions ------------------------------------------------------------------------------------------ */

static void revisions_are_known_by_what_they_mean_and_by_their_names(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *set = parse(whole);
    CLEANUP_JSON cJSON *neoset = migration_neoset(set);
    struct intern *pool = intern_make();
    struct neoset_fact *fact = neoset_fact_make(pool, neoset);
    CLEANUP_FREE char *name = revision_name("db", fact->template_digest, 0);
    CLEANUP_FREE char *collided = revision_name("db", fact->template_digest, 3);
    neoset_fact_free(fact);
    intern_free(pool);
    CLEANUP_JSON cJSON *revision = parse(
        "{'metadata':{'name':'db-5687fcdc5b'},'data':{'spec':{'template':{'$patch':'replace','metadata':"
        "{'creationTimestamp':null,'labels':{'app':'db'}},'spec':{'containers':[{'image':'mysql:8.0','name':'"
        "db'}"
        "],'restartPolicy':'Always'}}}}}");
    assert_true(migration_means(revision, neoset));
    assert_false(migration_is_left_over(revision, "db"));
    json_set_str(json_get(revision, "metadata"), "name", name);
    assert_true(migration_is_left_over(revision, "db"));
    assert_false(migration_is_left_over(revision, "other"));
    json_set_str(json_get(revision, "metadata"), "name", collided);
    assert_true(migration_is_left_over(revision, "db"));
    CLEANUP_JSON cJSON *owned = parse("[{'kind':'StatefulSet','uid':'s','controller':true}]");
    json_set_item(json_get(revision, "metadata"), "ownerReferences", json_copy(owned));
    assert_false(migration_is_left_over(revision, "db"));
    json_set_str(json_path(revision, "data", "spec", "template", "spec", "containers", NULL)->child, "image",
                 "x");
    assert_false(migration_means(revision, neoset));
}

/* --- quiet ---------------------------------------------------------------------------------------------- */

#define POD(name, more, created, ready)                                                                      \
    "{'metadata':{'name':'" name "','creationTimestamp':'" created                                           \
    "','labels':{'controller-revision-hash':'db-1'},"                                                        \
    "'ownerReferences':[{'uid':'u-123456789','controller':true}]" more                                       \
    "},'status':{'conditions':[{'type':'Ready',"                                                             \
    "'status':'" ready "'}]}}"
#define PODS_2 POD("db-2", "", OLD, "True") "," POD("db-3", "", OLD, "True")

static void pods_are_quiet_when_all_are_there_old_ready_and_of_one_revision(void **state)
{
    (void)state;
    static const struct {
        const char *pods, *patch, *phrase;
    } table[] = {
        {"[" PODS_2 "," POD("db-4", "", OLD, "True") "]", "{}", NULL},
        {"[" PODS_2 "]", "{}", "2 of 3 pods are there"},
        {"[" PODS_2 "]", "{'spec':{'replicas':2}}", NULL},
        {"[]", "{'spec':{'replicas':0}}", NULL},
        {"[" PODS_2 "," POD("db-4", ",'deletionTimestamp':'x'", OLD, "True") "]", "{}",
         "db-4 is terminating"},
        {"[" PODS_2 "," POD("db-4", "", OLD, "False") "]", "{}", "db-4 is not ready"},
        {"[" PODS_2 "," POD("db-4", "", YOUNG, "True") "]", "{}", "db-4 is younger than five seconds"},
        {"[" PODS_2 "," POD("db-4", "", OLD, "True") "]", "{'status':{'updateRevision':'db-2'}}",
         "db-2 runs db-1, not db-2"},
        {"[" PODS_2 "," POD("db-4", "", OLD, "True") "]", "{'metadata':{'generation':4}}",
         "its controller has not seen the newest StatefulSet yet"},
        {"[" PODS_2 ",{'metadata':{'name':'db-4','creationTimestamp':'" OLD "'}}]", "{}",
         "2 of 3 pods are there"},
        {"[" PODS_2 "," POD("db-4", "", OLD, "True") "," POD("db-5", "", OLD, "True") "]", "{}",
         "4 of 3 pods are there"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_JSON cJSON *set = parse(whole);
        CLEANUP_JSON cJSON *patch = parse(table[i].patch);
        CLEANUP_JSON cJSON *pods = parse(table[i].pods);
        merge(set, patch);
        CLEANUP_FREE char *phrase = quiet_phrase(
            &(struct quiet_wish){.set = set,
                                 .pods = pods,
                                 .revision = json_path_str(set, "status", "updateRevision", NULL),
                                 .now_us = NOW_US});
        if (table[i].phrase ? !phrase || !strstr(phrase, table[i].phrase) : phrase != NULL)
            fail_msg("%zu: %s", i, phrase ? phrase : "quiet");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_neoset_has_all_that_the_statefulset_had_and_is_paused),
        cmocka_unit_test(what_a_neoset_has_not_is_named_with_its_path),
        cmocka_unit_test(every_offence_is_named_at_once),
        cmocka_unit_test(a_field_that_the_server_prunes_is_named),
        cmocka_unit_test(the_neoset_follows_what_the_statefulset_became),
        cmocka_unit_test(the_manifest_is_kept_whole_and_under_no_label_of_the_set),
        cmocka_unit_test(it_is_created_again_without_what_the_server_gives),
        cmocka_unit_test(replicas_and_grown_claims_go_back_with_it),
        cmocka_unit_test(there_is_no_way_back_from_another_template_or_other_names),
        cmocka_unit_test(revisions_are_known_by_what_they_mean_and_by_their_names),
        cmocka_unit_test(pods_are_quiet_when_all_are_there_old_ready_and_of_one_revision),
    };
    return cmocka_run_group_tests_name("migration", tests, NULL, NULL);
}
