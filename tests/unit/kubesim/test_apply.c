/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

static int apply(struct world *world, const char *manager, bool force, const char *members)
{
    CLEANUP_FREE char *path = xasprintf(WIDGETS "/w?fieldManager=%s%s", manager, force ? "&force=true" : "");
    CLEANUP_FREE char *body = xasprintf(
        "{\"apiVersion\":\"ex.io/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w\"},\"spec\":{%s}}",
        members);
    return patch(world, path, APPLY, body);
}

/* The fieldsV1 of a manager as text, or ""; the caller's. */
static char *fields_of(const struct world *world, const char *manager, const char *operation)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, json_path(world->body, "metadata", "managedFields", NULL))
        if (str_equal(json_str(entry, "manager"), manager) &&
            str_equal(json_str(entry, "operation"), operation))
            return json_print_sorted(json_get(entry, "fieldsV1"));
    return xstrdup("");
}

static struct world *world_with_widgets(void)
{
    struct world *world = world_make();
    make_widgets(world);
    return world;
}

static void an_apply_owns_what_it_names(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    assert_int_equal(apply(world, "a", false, "\"word\":\"ab\",\"list\":[{\"name\":\"x\"}]"), 201);
    CLEANUP_FREE char *fields = fields_of(world, "a", "Apply");
    assert_string_equal(
        fields,
        "{\"f:spec\":{\"f:list\":{\"k:{\\\"name\\\":\\\"x\\\"}\":{\".\":{},\"f:name\":{}}},\"f:word\":{}}}");
    assert_int_equal(json_int64_or(json_get(world->body, "spec"), "replicas", 0), 1);
}

static void the_same_apply_again_changes_nothing(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    apply(world, "a", false, "\"word\":\"ab\"");
    CLEANUP_FREE char *version = xstrdup(meta(world, "resourceVersion"));
    pass(world, 10);
    assert_int_equal(apply(world, "a", false, "\"word\":\"ab\""), 200);
    assert_string_equal(meta(world, "resourceVersion"), version);
}

static void another_manager_is_in_conflict(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    apply(world, "a", false, "\"word\":\"ab\"");
    assert_int_equal(apply(world, "b", false, "\"word\":\"cd\""), 409);
    assert_string_equal(reason(world), "Conflict");
    assert_string_equal(message(world), "Apply failed with 1 conflict: conflict with \"a\": .spec.word");
    assert_string_equal(causes(world), "FieldManagerConflict@.spec.word");
    assert_int_equal(apply(world, "b", true, "\"word\":\"cd\""), 200);
    CLEANUP_FREE char *fields = fields_of(world, "a", "Apply");
    assert_string_equal(fields, "");
}

static void equal_values_are_owned_together(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    apply(world, "a", false, "\"word\":\"ab\",\"flag\":true");
    assert_int_equal(apply(world, "b", false, "\"word\":\"ab\",\"flag\":true"), 200);
    assert_int_equal(apply(world, "a", false, "\"word\":\"ab\""), 200);
    assert_true(json_bool_or(json_get(world->body, "spec"), "flag", false)); /* b still owns it */
    assert_int_equal(apply(world, "b", false, "\"word\":\"ab\""), 200);
    assert_null(json_path(world->body, "spec", "flag", NULL));
}

static void an_update_takes_ownership(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    apply(world, "a", false, "\"word\":\"ab\",\"replicas\":3");
    patch(world, WIDGETS "/w?fieldManager=editor", MERGE, "{\"spec\":{\"replicas\":4}}");
    CLEANUP_FREE char *fields = fields_of(world, "editor", "Update");
    assert_string_equal(fields, "{\"f:spec\":{\"f:replicas\":{}}}");
    assert_int_equal(apply(world, "a", false, "\"word\":\"ab\",\"replicas\":3"), 409);
    assert_string_equal(message(world),
                        "Apply failed with 1 conflict: conflict with \"editor\" using ex.io/v1: "
                        ".spec.replicas");
    assert_int_equal(apply(world, "a", false, "\"word\":\"ab\""), 200);
    assert_int_equal(json_int64_or(json_get(world->body, "spec"), "replicas", 0), 4);
}

static void list_items_belong_to_who_applied_them(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    apply(world, "a", false, "\"word\":\"ab\",\"list\":[{\"name\":\"x\"},{\"name\":\"y\"}]");
    assert_int_equal(apply(world, "a", false, "\"word\":\"ab\",\"list\":[{\"name\":\"y\"}]"), 200);
    assert_int_equal(cJSON_GetArraySize(json_path(world->body, "spec", "list", NULL)), 1);
    assert_int_equal(apply(world, "b", false, "\"word\":\"ab\",\"list\":[{\"name\":\"z\"}]"), 200);
    assert_int_equal(cJSON_GetArraySize(json_path(world->body, "spec", "list", NULL)), 2);
    assert_int_equal(apply(world, "b", false, "\"word\":\"ab\",\"list\":[{\"name\":\"y\",\"v\":8}]"), 200);
    assert_int_equal(cJSON_GetArraySize(json_path(world->body, "spec", "list", NULL)), 1);
}

static void several_conflicts_are_listed_by_manager(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    apply(world, "a", false, "\"word\":\"ab\",\"type\":\"A\"");
    assert_int_equal(apply(world, "b", false, "\"word\":\"cd\",\"type\":\"B\""), 409);
    assert_string_equal(message(world),
                        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.word\n- .spec.type");
}

static void a_manifest_that_cannot_be_read_is_500_without_reason(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    assert_int_equal(apply(world, "a", false, "\"word\":\"ab\",\"foo\":1"), 500);
    assert_string_equal(reason(world), "");
    assert_string_equal(message(world),
                        "failed to create typed patch object (/w; ex.io/v1, Kind=Widget): .spec.foo: field "
                        "not declared in schema");
    assert_int_equal(apply(world, "a", false, "\"word\":\"ab\",\"list\":[{\"name\":\"x\"},{\"name\":\"x\"}]"),
                     500);
    assert_int_equal(
        patch(
            world, PODS "/p?fieldManager=a", APPLY,
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":"
            "[{\"name\":\"a\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"x\"}}}]}}"),
        500);
    assert_string_equal(reason(world), "");
    assert_int_equal(ask(world, "GET", PODS "/p", NULL), 404);
    assert_int_equal(ask(world, "GET", WIDGETS "/w", NULL), 404);
}

static void an_apply_needs_its_manager_and_its_kind(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    assert_int_equal(patch(world, WIDGETS "/w", APPLY, "{}"), 422);
    assert_string_equal(causes(world), "FieldValueRequired@fieldManager");
    assert_int_equal(patch(world, WIDGETS "/w?fieldManager=a", APPLY, "{}"), 400);
    assert_int_equal(
        patch(world, WIDGETS "/w?fieldManager=a", APPLY,
              "{\"apiVersion\":\"ex.io/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"other\"}}"),
        400);
    assert_int_equal(
        patch(
            world, WIDGETS "/w?fieldManager=a", APPLY,
            "{\"apiVersion\":\"ex.io/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w\",\"managedFields\":"
            "[{\"manager\":\"x\"}]}}"),
        400);
}

static void an_apply_may_be_yaml(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    assert_int_equal(patch(world, WIDGETS "/w?fieldManager=a", APPLY,
                           "apiVersion: ex.io/v1\nkind: Widget\nmetadata: {name: w}\nspec:\n  word: ab\n"),
                     201);
}

static void scale_leaves_a_trace_only_where_somebody_owned_it(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    apply(world, "a", false, "\"word\":\"ab\"");
    patch(world, WIDGETS "/w/scale?fieldManager=hpa", MERGE, "{\"spec\":{\"replicas\":4}}");
    ask(world, "GET", WIDGETS "/w", NULL);
    CLEANUP_FREE char *none = fields_of(world, "hpa", "Update");
    assert_string_equal(none, "");
    apply(world, "a", true, "\"word\":\"ab\",\"replicas\":2");
    patch(world, WIDGETS "/w/scale?fieldManager=hpa", MERGE, "{\"spec\":{\"replicas\":5}}");
    ask(world, "GET", WIDGETS "/w", NULL);
    CLEANUP_FREE char *some = fields_of(world, "hpa", "Update");
    assert_string_equal(some, "{\"f:spec\":{\"f:replicas\":{}}}");
}

static void posted_managed_fields_become_an_update(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    apply(world, "a", false, "\"word\":\"ab\"");
    cJSON *copy = json_copy(world->body);
    json_remove(json_get(copy, "metadata"), "resourceVersion");
    CLEANUP_FREE char *body = json_print(copy);
    json_delete(copy);
    ask(world, "DELETE", WIDGETS "/w", NULL);
    assert_int_equal(ask(world, "POST", WIDGETS "?fieldManager=a", body), 201);
    CLEANUP_FREE char *applied = fields_of(world, "a", "Apply");
    assert_string_equal(applied, "");
    assert_int_equal(apply(world, "a", false, "\"word\":\"cd\""), 409); /* against ourselves */
}

static void managed_fields_can_be_patched_and_forgotten(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    apply(world, "a", false, "\"word\":\"ab\"");
    patch(world, WIDGETS "/w", MERGE, "{\"metadata\":{\"managedFields\":[{}]}}");
    assert_null(json_path(world->body, "metadata", "managedFields", NULL));
    assert_int_equal(apply(world, "b", false, "\"word\":\"cd\""), 409);
    assert_string_equal(message(world), "Apply failed with 1 conflict: conflict with \"before-first-apply\" "
                                        "using ex.io/v1: .spec.word");
    assert_int_equal(apply(world, "b", true, "\"word\":\"cd\""), 200);
}

static void status_is_owned_apart(void **state)
{
    (void)state;
    WORLD world = world_with_widgets();
    apply(world, "a", false, "\"word\":\"ab\"");
    CLEANUP_FREE char *before = fields_of(world, "a", "Apply");
    patch(world, WIDGETS "/w/status?fieldManager=c", MERGE, "{\"status\":{\"replicas\":2}}");
    CLEANUP_FREE char *own = fields_of(world, "c", "Update");
    assert_string_equal(own, "{\"f:status\":{\".\":{},\"f:replicas\":{}}}");
    patch(world, WIDGETS "/w?fieldManager=d", MERGE, "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}");
    CLEANUP_FREE char *after = fields_of(world, "a", "Apply");
    assert_string_equal(before, after);
}

static void without_managed_fields_an_apply_is_not_modelled(void **state)
{
    (void)state;
    struct world *bare = xcalloc(1, sizeof(*bare));
    struct kubesim_options options = world_options(bare);
    options.no_managed_fields = true;
    WORLD world = world_make_with(&options, bare);
    make_config(world, "c", "");
    assert_null(json_path(world->body, "metadata", "managedFields", NULL));
    assert_int_equal(patch(world, CONFIGMAPS "/c?fieldManager=a", APPLY,
                           "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"}}"),
                     501);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_apply_owns_what_it_names),
        cmocka_unit_test(the_same_apply_again_changes_nothing),
        cmocka_unit_test(another_manager_is_in_conflict),
        cmocka_unit_test(equal_values_are_owned_together),
        cmocka_unit_test(an_update_takes_ownership),
        cmocka_unit_test(list_items_belong_to_who_applied_them),
        cmocka_unit_test(several_conflicts_are_listed_by_manager),
        cmocka_unit_test(a_manifest_that_cannot_be_read_is_500_without_reason),
        cmocka_unit_test(an_apply_needs_its_manager_and_its_kind),
        cmocka_unit_test(an_apply_may_be_yaml),
        cmocka_unit_test(scale_leaves_a_trace_only_where_somebody_owned_it),
        cmocka_unit_test(posted_managed_fields_become_an_update),
        cmocka_unit_test(managed_fields_can_be_patched_and_forgotten),
        cmocka_unit_test(status_is_owned_apart),
        cmocka_unit_test(without_managed_fields_an_apply_is_not_modelled),
    };
    return cmocka_run_group_tests_name("kubesim apply", tests, NULL, NULL);
}
