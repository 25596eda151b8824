/* SPDX-License-Identifier: Apache-2.0
 *
 * The patch formats on trees. */
#include "world.h"

#include "kubesim/patch.h"

struct row {
    const char *target;
    const char *patch;
    const char *result; /* NULL: refused */
};

static cJSON *tree(const char *text)
{
    cJSON *node = NULL;
    assert_int_equal(json_parse(text, strlen(text), &node, NULL), 0);
    return node;
}

static void expect(const struct row *row, int result, const cJSON *target)
{
    if (!row->result) {
        if (result >= 0)
            fail_msg("%s + %s was not refused", row->target, row->patch);
        return;
    }
    CLEANUP_FREE char *text = json_print(target);
    if (result < 0 || strcmp(text, row->result) != 0)
        fail_msg("%s + %s: %d %s, not %s", row->target, row->patch, result, text, row->result);
}

static void merge_patches_follow_rfc_7386(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
        {"{\"a\":\"foo\"}", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_JSON cJSON *target = tree(rows[i].target);
        CLEANUP_JSON cJSON *change = tree(rows[i].patch);
        patch_merge(target, change);
        expect(&rows[i], 0, target);
    }
}

static void json_patches_follow_rfc_6902(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}"},
        {"{\"a\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":2}]", "{\"a\":[1,2,3]}"},
        {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":2}]", "{\"a\":[1,2]}"},
        {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":2}]", NULL},
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b/c\",\"value\":2}]", NULL},
        {"{\"a/b\":1,\"c~d\":2}",
         "[{\"op\":\"remove\",\"path\":\"/a~1b\"},{\"op\":\"replace\",\"path\":\"/c~0d\",\"value\":3}]",
         "{\"c~d\":3}"},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", NULL},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":1}]", NULL},
        {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]", "{\"a\":1}"},
        {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL},
        {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":2}]", NULL},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/c\"}]", "{\"a\":{},\"c\":1}"},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"}]",
         "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
        {"{\"a\":[0,1,2]}", "[{\"op\":\"remove\",\"path\":\"/a/01\"}]", NULL},
        {"{\"a\":[0,1,2]}", "[{\"op\":\"remove\",\"path\":\"/a/1\"}]", "{\"a\":[0,2]}"},
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":{\"z\":1}}]", "{\"z\":1}"},
        {"{\"a\":1}", "[{\"op\":\"frob\",\"path\":\"/a\"}]", NULL},
        {"{\"a\":1}", "[{\"path\":\"/a\"}]", NULL},
        {"{\"a\":1}", "{\"op\":\"add\"}", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        cJSON *target = tree(rows[i].target);
        CLEANUP_JSON cJSON *change = tree(rows[i].patch);
        int result = patch_json(&target, change, NULL);
        expect(&rows[i], result, target);
        json_delete(target);
    }
}

#define C(name, rest) "{\"name\":\"" name "\"" rest "}"

static void strategic_patches_merge_lists_by_their_keys(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{\"containers\":[" C("a", ",\"image\":\"1\"") "," C("b", ",\"image\":\"1\"") "]}",
         "{\"containers\":[" C("b", ",\"image\":\"2\"") "]}",
         "{\"containers\":[" C("a", ",\"image\":\"1\"") "," C("b", ",\"image\":\"2\"") "]}"},
        /* What is new comes before what it is not compared with (measured). */
        {"{\"containers\":[" C("a", "") "]}", "{\"containers\":[" C("c", ",\"image\":\"2\"") "]}",
         "{\"containers\":[" C("c", ",\"image\":\"2\"") "," C("a", "") "]}"},
        {"{\"containers\":[" C("a", "") "," C("b", "") "," C("c", "") "]}",
         "{\"containers\":[" C("c", "") "," C("e", "") "]}",
         "{\"containers\":[" C("a", "") "," C("b", "") "," C("c", "") "," C("e", "") "]}"},
        {"{\"containers\":[" C("a", "") "," C("b", "") "]}",
         "{\"containers\":[" C("a", ",\"$patch\":\"delete\"") "]}", "{\"containers\":[" C("b", "") "]}"},
        {"{\"containers\":[" C("a", "") "," C("b", "") "]}",
         "{\"containers\":[{\"$patch\":\"replace\"}," C("z", "") "]}", "{\"containers\":[" C("z", "") "]}"},
        {"{\"containers\":[" C("a", "") "]}", "{\"containers\":[{\"image\":\"1\"}]}", NULL},
        {"{\"containers\":[" C("a", "") "," C("b", "") "]}",
         "{\"$setElementOrder/containers\":[" C("b", "") "," C("a", "") "]}",
         "{\"containers\":[" C("b", "") "," C("a", "") "]}"},
        {"{\"containers\":[" C("d", "") "," C("a", "") "," C("b", "") "," C("c", "") "]}",
         "{\"containers\":[" C("z", "") "],\"$setElementOrder/containers\":[" C("z", "") "," C("a", "") "]}",
         "{\"containers\":[" C("z", "") "," C("d", "") "," C("a", "") "," C("b", "") "," C("c", "") "]}"},
        {"{\"containers\":[" C("a", ",\"args\":[\"1\"]") "]}",
         "{\"containers\":[" C("a", ",\"args\":[\"2\"]") "]}",
         "{\"containers\":[" C("a", ",\"args\":[\"2\"]") "]}"},
        {"{\"containers\":[" C("a", ",\"env\":[" C("x", ",\"value\":\"1\"") "]") "]}",
         "{\"containers\":[" C("a", ",\"env\":[" C("y", ",\"value\":\"2\"") "]") "]}",
         "{\"containers\":[" C(
             "a", ",\"env\":[" C("y", ",\"value\":\"2\"") "," C("x", ",\"value\":\"1\"") "]") "]}"},
        {"{\"nodeSelector\":{\"a\":\"1\"}}", "{\"nodeSelector\":{\"b\":\"2\",\"a\":null}}",
         "{\"nodeSelector\":{\"b\":\"2\"}}"},
        {"{\"nodeSelector\":{\"a\":\"1\"}}", "{\"nodeSelector\":{\"$patch\":\"replace\",\"b\":\"2\"}}",
         "{\"nodeSelector\":{\"b\":\"2\"}}"},
        {"{\"nodeSelector\":{\"a\":\"1\"},\"nodeName\":\"n\"}", "{\"nodeSelector\":{\"$patch\":\"delete\"}}",
         "{\"nodeName\":\"n\"}"},
        {"{\"tolerations\":[{\"key\":\"a\"}]}", "{\"tolerations\":[{\"key\":\"b\"}]}",
         "{\"tolerations\":[{\"key\":\"b\"}]}"},
        {"{\"volumes\":[" C("v", ",\"emptyDir\":{}") "]}",
         "{\"volumes\":[" C("v",
                            ",\"$retainKeys\":[\"name\",\"hostPath\"],\"hostPath\":{\"path\":\"/x\"}") "]}",
         "{\"volumes\":[" C("v", ",\"hostPath\":{\"path\":\"/x\"}") "]}"},
        {"{}", "{\"containers\":[" C("a", ",\"$patch\":\"delete\"") "," C("b", "") "]}",
         "{\"containers\":[" C("b", "") "]}"},
        {"{}", "{\"$patch\":\"frob\"}", NULL},
    };
    struct schema_set *set = schema_set_builtin();
    const struct schema *schema = schema_set_find(set, "io.k8s.api.core.v1.PodSpec");
    assert_non_null(schema);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_JSON cJSON *target = tree(rows[i].target);
        CLEANUP_JSON cJSON *change = tree(rows[i].patch);
        int result = patch_strategic(schema, target, change, NULL);
        expect(&rows[i], result, target);
    }
    schema_set_free(set);
}

static void finalizers_merge_as_a_set(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"{\"finalizers\":[\"a\",\"b\"]}", "{\"finalizers\":[\"b\",\"c\"]}",
         "{\"finalizers\":[\"a\",\"b\",\"c\"]}"},
        {"{\"finalizers\":[\"a\",\"b\"]}", "{\"$deleteFromPrimitiveList/finalizers\":[\"a\"]}",
         "{\"finalizers\":[\"b\"]}"},
        {"{\"ownerReferences\":[{\"uid\":\"1\"},{\"uid\":\"2\"}]}",
         "{\"ownerReferences\":[{\"$patch\":\"delete\",\"uid\":\"1\"}]}",
         "{\"ownerReferences\":[{\"uid\":\"2\"}]}"},
    };
    struct schema_set *set = schema_set_builtin();
    const struct schema *schema = schema_set_find(set, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_JSON cJSON *target = tree(rows[i].target);
        CLEANUP_JSON cJSON *change = tree(rows[i].patch);
        int result = patch_strategic(schema, target, change, NULL);
        expect(&rows[i], result, target);
    }
    schema_set_free(set);
}

static void a_patch_without_its_list_key_is_500_without_reason(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_pod(world, "p", NULL);
    assert_int_equal(patch(world, PODS "/p", STRATEGIC, "{\"spec\":{\"containers\":[{\"image\":\"x\"}]}}"),
                     500);
    assert_string_equal(reason(world), "");
}

static void custom_kinds_have_no_strategic_patch(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_widgets(world);
    make_widget(world, "w", "\"word\":\"ab\"");
    assert_int_equal(patch(world, WIDGETS "/w", STRATEGIC, "{}"), 415);
    assert_int_equal(patch(world, WIDGETS "/w?force=true", MERGE, "{}"), 422);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_patches_follow_rfc_7386),
        cmocka_unit_test(json_patches_follow_rfc_6902),
        cmocka_unit_test(strategic_patches_merge_lists_by_their_keys),
        cmocka_unit_test(finalizers_merge_as_a_set),
        cmocka_unit_test(a_patch_without_its_list_key_is_500_without_reason),
        cmocka_unit_test(custom_kinds_have_no_strategic_patch),
    };
    return cmocka_run_group_tests_name("kubesim patches", tests, NULL, NULL);
}
