/* SPDX-License-Identifier: Apache-2.0
 *
 * Which revision an undo goes back to, what it writes, and what it refuses. */
#include "set_objects.h"

#include "cmd/neosetctl/undo.h"

#define TEMPLATE(image) TEMPLATE_WITH(image, "")
#define TEMPLATE_WITH(image, more)                                                                           \
    "{'metadata':{'labels':{'app':'mysql'}},'spec':{'containers':[{'name':'mysql','image':'" image           \
    "'}]" more "}}"

static cJSON *set_with(const char *template, const char *status, const char *metadata)
{
    return tree_of(
        "{'metadata':{'name':'mysql','namespace':'prod','uid':'u1','resourceVersion':'7'%s},'spec':{"
        "'replicas':3,'serviceName':'mysql','selector':{'matchLabels':{'app':'mysql'}},"
        "'template':%s},'status':{%s}}",
        metadata, template, status);
}

static void add_revision(cJSON *revisions, int number, const char *name, const char *template)
{
    json_append_item(revisions, tree_of("{'metadata':{'name':'%s','namespace':'prod','uid':'r%d',%s},"
                                        "'revision':%d,'data':{'spec':{'template':%s}}}",
                                        name, number, owner, number, template));
}

/* 1: mysql:8.0, 2: mysql:8.1, 4: mysql:8.2 with another field; and one that is not ours. */
static cJSON *three_revisions(void)
{
    cJSON *revisions = json_new_array();
    add_revision(
        revisions, 4, "mysql-c",
        "{'$patch':'replace','metadata':{'labels':{'app':'mysql'}},'spec':{'containers':[{'name':'mysql',"
        "'image':'mysql:8.2'}],'priorityClassName':'high'}}");
    add_revision(revisions, 1, "mysql-a", TEMPLATE("mysql:8.0"));
    add_revision(revisions, 2, "mysql-b", TEMPLATE("mysql:8.1"));
    json_append_item(revisions,
                     tree_of("{'metadata':{'name':'other','ownerReferences':[{'kind':'NeoSet','uid':"
                             "'u2','controller':true}]},'revision':9,'data':{'spec':{'template':{}}}}"));
    return revisions;
}

#define SET_C                                                                                                \
    "{'spec':{'containers':[{'image':'mysql:8.2','name':'mysql'}],'priorityClassName':'high'},"              \
    "'metadata':{'labels':{'app':'mysql'}}}"
#define STATUS(stable, target)                                                                               \
    "'currentRevisionName':'" stable "','currentRevisionProven':true,'updateRevisionName':'" target "'"
#define PROVEN(names) ",'provenRevisionNames':[" names "]"

static void chooses_the_revision_that_people_mean(void **state)
{
    (void)state;
    static const struct {
        const char *template, *status;
        int64_t number;
        const char *name, *choice, *change;
        bool is_there, recreates;
    } table[] = {
        /* at rest: the one before */
        {TEMPLATE("mysql:8.1"), STATUS("mysql-b", "mysql-b") PROVEN("'mysql-b','mysql-c'"), 0, "mysql-c",
         "the one before", "spec.priorityClassName", false, true},
        {SET_C, STATUS("mysql-c", "mysql-c") PROVEN("'mysql-a','mysql-b','mysql-c'"), 0, "mysql-b",
         "the one before", "spec.priorityClassName", false, true},
        /* what failed, and was taken back, is passed over */
        {TEMPLATE("mysql:8.1"), STATUS("mysql-b", "mysql-b") PROVEN("'mysql-a','mysql-b'"), 0, "mysql-a",
         "the newest other one that was stable", "image mysql:8.1 -> mysql:8.0", false, false},
        /* in mid-rollout: what every pod ran */
        {SET_C, STATUS("mysql-a", "mysql-c"), 0, "mysql-a", "the stable revision", "spec.priorityClassName",
         false, true},
        {TEMPLATE("mysql:8.1"), STATUS("mysql-a", "mysql-b"), 0, "mysql-a", "the stable revision",
         "image mysql:8.1 -> mysql:8.0", false, false},
        /* asked again, before the controller saw it and while it is on its way: it is there */
        {TEMPLATE("mysql:8.0"), STATUS("mysql-a", "mysql-b"), 0, "mysql-a", "the stable revision", NULL, true,
         false},
        {TEMPLATE("mysql:8.0"), STATUS("mysql-a", "mysql-a") ",'phase':'RollingOut'", 0, "mysql-a",
         "the stable revision", NULL, true, false},
        /* also when the way back stands still */
        {TEMPLATE("mysql:8.0"),
         STATUS("mysql-a",
                "mysql-a") ",'phase':'Failed','leftStableOrdinals':[2]" PROVEN("'mysql-a','mysql-b'"),
         0, "mysql-a", "the stable revision", NULL, true, false},
        /* the way back to one before the stable one, before the controller saw it, on its way, and failed */
        {TEMPLATE("mysql:8.0"),
         STATUS("mysql-b", "mysql-b") ",'phase':'Completed'" PROVEN("'mysql-a','mysql-b'"), 0, "mysql-a",
         "one that was stable", NULL, true, false},
        {TEMPLATE("mysql:8.0"),
         STATUS("mysql-b", "mysql-a") ",'phase':'RollingOut'" PROVEN("'mysql-a','mysql-b'"), 0, "mysql-a",
         "one that was stable", NULL, true, false},
        {TEMPLATE("mysql:8.0"),
         STATUS("mysql-b", "mysql-a") ",'phase':'Failed'" PROVEN("'mysql-a','mysql-b'"), 0, "mysql-a",
         "one that was stable", NULL, true, false},
        /* and another one, as asked */
        {TEMPLATE("mysql:8.0"), STATUS("mysql-b", "mysql-a") PROVEN("'mysql-a','mysql-b'"), 2, "mysql-b",
         "as asked", "image mysql:8.0 -> mysql:8.1", false, false},
        /* a template that no controller has seen yet: back to what every pod runs */
        {TEMPLATE("mysql:9"), STATUS("mysql-b", "mysql-b") ",'phase':'Completed'", 0, "mysql-b",
         "the stable revision", "image mysql:9 -> mysql:8.1", false, false},
        /* as asked; also the one that is there, by its meaning */
        {SET_C, STATUS("mysql-c", "mysql-c"), 1, "mysql-a", "as asked", "spec.priorityClassName", false,
         true},
        {SET_C, STATUS("mysql-c", "mysql-c"), 4, "mysql-c", "as asked", NULL, true, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_JSON cJSON *set = set_with(table[i].template, table[i].status, "");
        CLEANUP_JSON cJSON *revisions = three_revisions();
        struct ctl_undo undo;
        CLEANUP_ERROR struct error *err = NULL;
        if (ctl_undo_choose(set, revisions, table[i].number, &undo, &err) < 0)
            fail_msg("%zu: %s", i, error_text(err));
        assert_string_equal(undo.name, table[i].name);
        assert_string_equal(undo.choice, table[i].choice);
        assert_int_equal(undo.is_there, table[i].is_there);
        assert_int_equal(undo.recreates, table[i].recreates);
        if (table[i].change && !strstr(undo.change, table[i].change))
            fail_msg("%zu: %s", i, undo.change);
        ctl_undo_done(&undo);
    }
}

static void refuses_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *template, *metadata;
        bool has_revisions;
        int64_t number;
        int result;
        const char *says;
    } table[] = {
        {SET_C, "", false, 0, -ERROR_REFUSED, "NeoSet mysql has no earlier revision to go back to"},
        {SET_C, "", false, 2, -ERROR_REFUSED, "NeoSet mysql has no revision 2, nor any other"},
        {SET_C, "", true, 3, -ERROR_REFUSED, "NeoSet mysql has no revision 3: there are 1, 2 and 4"},
        {SET_C, "", true, 9, -ERROR_REFUSED, "no revision 9"},
        {SET_C, ",'deletionTimestamp':'2026-11-30T07:00:00Z'", true, 1, -ERROR_REFUSED, "is being deleted"},
        {"7", "", true, 1, -ERROR_INVALID, "no pod template"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_JSON cJSON *set = set_with(table[i].template, "", table[i].metadata);
        CLEANUP_JSON cJSON *revisions = table[i].has_revisions ? three_revisions() : json_new_array();
        struct ctl_undo undo;
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(ctl_undo_choose(set, revisions, table[i].number, &undo, &err), table[i].result);
        if (!strstr(error_text(err), table[i].says))
            fail_msg("%zu: %s", i, error_text(err));
        ctl_undo_done(&undo);
    }
    CLEANUP_JSON cJSON *only = json_new_array();
    CLEANUP_JSON cJSON *set = set_with(TEMPLATE("mysql:8.0"), "", "");
    add_revision(only, 1, "mysql-a", TEMPLATE("mysql:8.0"));
    struct ctl_undo undo;
    assert_int_equal(ctl_undo_choose(set, only, 0, &undo, NULL), -ERROR_REFUSED);
    ctl_undo_done(&undo);
    add_revision(only, 2, "mysql-b", "7");
    CLEANUP_ERROR struct error *err = NULL;
    assert_int_equal(ctl_undo_choose(set, only, 2, &undo, &err), -ERROR_REFUSED);
    assert_non_null(strstr(error_text(err), "revision 2 (mysql-b) of NeoSet mysql holds no pod template"));
    ctl_undo_done(&undo);
}

/* It goes to what every pod ran, or not at all; where people ask for more, they are told. */
static void what_was_not_seen_stable_is_gone_to_only_when_asked(void **state)
{
    (void)state;
    static const struct {
        const char *template, *status, *says;
        bool is_unproven_as_asked; /* revision 4 */
    } table[] = {
        {TEMPLATE("mysql:8.0"), STATUS("mysql-a", "mysql-a") PROVEN("'mysql-a'"),
         "none of the others was seen stable, with all pods on it and available, since its status lists "
         "those "
         "(`neosetctl history mysql -n "
         "prod`). If revision 4 (mysql-c) is meant: neosetctl undo mysql -n prod --to-revision 4",
         true},
        {TEMPLATE("mysql:8.0"), STATUS("mysql-a", "mysql-a") PROVEN("'mysql-a','gone',7"), "seen stable",
         true},
        /* an older controller, or a definition that drops the field */
        {TEMPLATE("mysql:8.0"), STATUS("mysql-a", "mysql-a"),
         "its status does not tell which of the others were stable", false},
        /* the first revision never came up, the second is on its way */
        {TEMPLATE("mysql:8.1"),
         "'currentRevisionName':'mysql-a','currentRevisionProven':false,'updateRevisionName':'mysql-"
         "b'" PROVEN(""),
         "seen stable", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_JSON cJSON *set = set_with(table[i].template, table[i].status, "");
        CLEANUP_JSON cJSON *revisions = three_revisions();
        struct ctl_undo undo;
        CLEANUP_ERROR struct error *err = NULL;
        assert_int_equal(ctl_undo_choose(set, revisions, 0, &undo, &err), -ERROR_REFUSED);
        if (!strstr(error_text(err), table[i].says))
            fail_msg("%zu: %s", i, error_text(err));
        ctl_undo_done(&undo);
        assert_int_equal(ctl_undo_choose(set, revisions, 4, &undo, NULL), 0);
        assert_string_equal(undo.name, "mysql-c");
        assert_int_equal(undo.is_unproven, table[i].is_unproven_as_asked);
        ctl_undo_done(&undo);
    }
}

/* As a server applies a merge patch (RFC 7386). */
static void apply(cJSON *object, const cJSON *patch)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, patch) {
        if (cJSON_IsNull(member))
            json_remove(object, member->string);
        else if (cJSON_IsObject(member))
            apply(json_ensure_object(object, member->string), member);
        else
            json_set_item(object, member->string, json_copy(member));
    }
}

static void the_patch_makes_the_template_that_of_the_revision(void **state)
{
    (void)state;
    static const char *const templates[] = {
        TEMPLATE("mysql:8.0"),
        SET_C,
        TEMPLATE_WITH("mysql:8.0",
                      ",'nodeSelector':{'disk':'ssd','zone':'a'},'volumes':[{'name':'x','emptyDir':{}}]"),
        TEMPLATE_WITH("mysql:8.0", ",'nodeSelector':{'disk':'hdd'},'securityContext':{'runAsUser':0}"),
        "{'metadata':{'labels':{'app':'mysql'},'annotations':{'a':'1'}},'spec':{'containers':[{'name':'mysql'"
        ",'image':"
        "'mysql:8.0','resources':{'limits':{'memory':'9007199254740993'}}}],'terminationGracePeriodSeconds':"
        "9007199254740993,'hostUsers':false}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(templates); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(templates); j++) {
            CLEANUP_JSON cJSON *set = set_with(templates[i], "", "");
            CLEANUP_JSON cJSON *revisions = json_new_array();
            add_revision(revisions, 5, "mysql-x", templates[j]);
            struct ctl_undo undo;
            assert_int_equal(ctl_undo_choose(set, revisions, 5, &undo, NULL), 0);
            assert_int_equal(ctl_undo_is_done(&undo, set), i == j);
            assert_true(ctl_undo_is_as_seen(&undo, set));
            CLEANUP_JSON cJSON *patch = ctl_undo_patch(&undo, set);
            apply(set, patch);
            CLEANUP_JSON cJSON *wanted = tree_of("%s", templates[j]);
            assert_true(json_equal(json_path(set, "spec", "template", NULL), wanted));
            assert_true(ctl_undo_is_done(&undo, set));
            assert_int_equal(ctl_undo_is_as_seen(&undo, set), i == j);
            assert_int_equal(json_int64_or(json_get(set, "spec"), "replicas", 0), 3);
            ctl_undo_done(&undo);
        }
    }
}

static void only_what_differs_is_sent(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *set = set_with(SET_C, "", "");
    CLEANUP_JSON cJSON *revisions = three_revisions();
    struct ctl_undo undo;
    assert_int_equal(ctl_undo_choose(set, revisions, 1, &undo, NULL), 0);
    CLEANUP_JSON cJSON *patch = ctl_undo_patch(&undo, set);
    CLEANUP_FREE char *text = json_print_sorted(patch);
    assert_string_equal(text, "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"image\":\"mysql:8.0\","
                              "\"name\":\"mysql\"}],\"priorityClassName\":null}}}}");
    ctl_undo_done(&undo);
}

static void malformed_objects_do_no_harm(void **state)
{
    (void)state;
    static const char *const objects[] = {
        "{}", "[]", "null", "{'metadata':{'name':'x','uid':'u1'}}",
        "{'metadata':{'name':'x','uid':'u1'},'spec':{'template':{}},'status':{'updateRevisionName':7}}"};
    for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
        CLEANUP_JSON cJSON *set = tree_of("%s", objects[i]);
        CLEANUP_JSON cJSON *revisions =
            tree_of("[{},7,null,{'metadata':{'name':'r',%s},'revision':'x'}]", owner);
        struct ctl_undo undo;
        assert_true(ctl_undo_choose(set, revisions, 0, &undo, NULL) < 0);
        ctl_undo_done(&undo);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses_the_revision_that_people_mean),
        cmocka_unit_test(refuses_with_a_sentence),
        cmocka_unit_test(what_was_not_seen_stable_is_gone_to_only_when_asked),
        cmocka_unit_test(the_patch_makes_the_template_that_of_the_revision),
        cmocka_unit_test(only_what_differs_is_sent),
        cmocka_unit_test(malformed_objects_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
