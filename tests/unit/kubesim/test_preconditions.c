/* SPDX-License-Identifier: Apache-2.0
 *
 * What each kind of write can carry, and what the real server answered to it (measured on
 * kube-apiserver 1.36.3). */
#include "world.h"

#define POD PODS "/p"
#define WIDGET WIDGETS "/w"

struct precondition {
    const char *what;
    const char *method;
    const char *path;
    const char *type;
    const char *body; /* UID and VERSION are filled in */
    int status;
    const char *reason;
    const char *causes;
    bool moves; /* the resourceVersion moved */
};

#define IMAGE "\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i:2\"}]}"
#define UID_TWICE "FieldValueInvalid@metadata.uid,FieldValueInvalid@metadata.uid"

static const struct precondition table[] = {
    {"image with uid and version", "PATCH", POD, STRATEGIC,
     "{\"metadata\":{\"uid\":\"UID\",\"resourceVersion\":\"VERSION\"}," IMAGE "}", 200, "", "", true},
    {"a stale version", "PATCH", POD, STRATEGIC,
     "{\"metadata\":{\"uid\":\"UID\",\"resourceVersion\":\"1\"}," IMAGE "}", 409, "Conflict", "", false},
    {"a wrong uid, strategic", "PATCH", POD, STRATEGIC, "{\"metadata\":{\"uid\":\"x\"}," IMAGE "}", 422,
     "Invalid", UID_TWICE, false},
    {"a wrong uid, merge", "PATCH", POD, MERGE, "{\"metadata\":{\"uid\":\"x\"}}", 422, "Invalid", UID_TWICE,
     false},
    {"a wrong uid, apply", "PATCH", POD "?fieldManager=m&force=true", APPLY,
     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"uid\":\"x\"}}", 422, "Invalid",
     UID_TWICE, false},
    {"a wrong uid, custom", "PATCH", WIDGET, MERGE, "{\"metadata\":{\"uid\":\"x\"}}", 422, "Invalid",
     UID_TWICE, false},
    {"wrong uid and stale version: the version is looked at first", "PATCH", POD, MERGE,
     "{\"metadata\":{\"uid\":\"x\",\"resourceVersion\":\"1\"}}", 409, "Conflict", "", false},
    {"nothing to do, stale version", "PATCH", POD, MERGE, "{\"metadata\":{\"resourceVersion\":\"1\"}}", 409,
     "Conflict", "", false},
    {"nothing to do, right version", "PATCH", POD, MERGE, "{\"metadata\":{\"resourceVersion\":\"VERSION\"}}",
     200, "", "", false},
    {"empty version, core: unconditional", "PATCH", POD, MERGE,
     "{\"metadata\":{\"resourceVersion\":\"\",\"labels\":{\"k\":\"1\"}}}", 200, "", "", true},
    {"version 0, core: unconditional", "PATCH", POD, MERGE,
     "{\"metadata\":{\"resourceVersion\":\"0\",\"labels\":{\"k\":\"1\"}}}", 200, "", "", true},
    {"version null, core: unconditional", "PATCH", POD, MERGE,
     "{\"metadata\":{\"resourceVersion\":null,\"labels\":{\"k\":\"1\"}}}", 200, "", "", true},
    {"empty version, custom", "PATCH", WIDGET, MERGE, "{\"metadata\":{\"resourceVersion\":\"\"}}", 422,
     "Invalid", "FieldValueInvalid@metadata.resourceVersion", false},
    {"version 0, custom", "PATCH", WIDGET, MERGE, "{\"metadata\":{\"resourceVersion\":\"0\"}}", 422,
     "Invalid", "FieldValueInvalid@metadata.resourceVersion", false},
    {"version null, custom", "PATCH", WIDGET, MERGE, "{\"metadata\":{\"resourceVersion\":null}}", 422,
     "Invalid", "FieldValueInvalid@metadata.resourceVersion", false},
    {"version 0, apply: unconditional", "PATCH", POD "?fieldManager=m&force=true", APPLY,
     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"resourceVersion\":\"0\","
     "\"labels\":{\"k\":\"1\"}}}",
     200, "", "", true},
    {"a version that is no number", "PATCH", POD, MERGE, "{\"metadata\":{\"resourceVersion\":\"abc\"}}", 500,
     "", "", false},
    {"a JSON patch whose test fails", "PATCH", POD, JSON_PATCH,
     "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"x\"}]", 422, "Invalid", "", false},
    {"a JSON patch of a missing path", "PATCH", POD, JSON_PATCH,
     "[{\"op\":\"remove\",\"path\":\"/metadata/nothing\"}]", 422, "Invalid", "", false},
    {"a JSON patch that replaces a stale version", "PATCH", POD, JSON_PATCH,
     "[{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":\"1\"}]", 409, "Conflict", "",
     false},
    {"a stale version, apply with force", "PATCH", POD "?fieldManager=m&force=true", APPLY,
     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"resourceVersion\":\"1\"}}", 409,
     "Conflict", "", false},
    {"pod status, wrong uid", "PATCH", POD "/status", STRATEGIC,
     "{\"metadata\":{\"uid\":\"x\"},\"status\":{\"phase\":\"Running\"}}", 422, "Invalid", UID_TWICE, false},
    {"pod status, stale version", "PATCH", POD "/status", STRATEGIC,
     "{\"metadata\":{\"resourceVersion\":\"1\"},\"status\":{\"phase\":\"Running\"}}", 409, "Conflict", "",
     false},
    {"custom status, wrong uid: not looked at", "PATCH", WIDGET "/status", MERGE,
     "{\"metadata\":{\"uid\":\"x\"},\"status\":{\"replicas\":2}}", 200, "", "", true},
    {"custom status, stale version", "PATCH", WIDGET "/status", MERGE,
     "{\"metadata\":{\"resourceVersion\":\"1\"},\"status\":{\"replicas\":2}}", 409, "Conflict", "", false},
    {"PUT, wrong uid: 409 where a patch gets 422", "PUT", WIDGET, "application/json",
     "{\"apiVersion\":\"ex.io/"
     "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w\",\"uid\":\"x\",\"resourceVersion\":\"VERSION\"},"
     "\"spec\":{\"word\":\"ab\"}}",
     409, "Conflict", "", false},
    {"PUT without a version, custom", "PUT", WIDGET, "application/json",
     "{\"apiVersion\":\"ex.io/"
     "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w\"},\"spec\":{\"word\":\"ab\"}}",
     422, "Invalid", "FieldValueInvalid@metadata.resourceVersion", false},
    {"delete, wrong uid", "DELETE", POD, "application/json", "{\"preconditions\":{\"uid\":\"x\"}}", 409,
     "Conflict", "", false},
    {"delete, stale version", "DELETE", POD, "application/json",
     "{\"preconditions\":{\"resourceVersion\":\"1\"}}", 409, "Conflict", "", false},
    {"delete, empty strings never hold", "DELETE", POD, "application/json",
     "{\"preconditions\":{\"uid\":\"\",\"resourceVersion\":\"\"}}", 409, "Conflict", "", false},
    {"eviction, wrong uid", "POST", POD "/eviction", "application/json",
     "{\"apiVersion\":\"policy/"
     "v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"p\"},\"deleteOptions\":{\"preconditions\":"
     "{\"uid\":\"x\"}}}",
     409, "Conflict", "", false},
};

static void answer_as_the_real_server(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct precondition *row = &table[i];
        WORLD world = world_make();
        make_widgets(world);
        make_pod(world, "p", "n1");
        assert_int_equal(make_widget(world, "w", "\"word\":\"ab\""), 201);
        const char *object = str_starts_with(row->path, WIDGET) ? WIDGET : POD;
        CLEANUP_FREE char *before = now_of(world, object, "resourceVersion");
        CLEANUP_FREE char *body = fill_in(world, object, row->body);
        int status = ask_as(world, row->method, row->path, row->type, body);
        if (status != row->status || strcmp(reason(world), row->reason) != 0 ||
            strcmp(causes(world), row->causes) != 0)
            fail_msg("%s: %d '%s' '%s': %s", row->what, status, reason(world), causes(world), message(world));
        CLEANUP_FREE char *after = now_of(world, object, "resourceVersion");
        if ((strcmp(before, after) != 0) != row->moves)
            fail_msg("%s: the version went from %s to %s", row->what, before, after);
    }
}

static void a_patch_of_an_absent_object_is_404(void **state)
{
    (void)state;
    WORLD world = world_make();
    assert_int_equal(patch(world, PODS "/none", MERGE, "{}"), 404);
    assert_string_equal(message(world), "pods \"none\" not found");
    assert_string_equal(json_path_str(world->body, "details", "kind", NULL), "pods");
}

static void an_apply_with_a_version_creates_an_absent_object(void **state)
{
    (void)state;
    WORLD world = world_make();
    const char *path = CONFIGMAPS "/c?fieldManager=m";
    assert_int_equal(patch(world, path, APPLY,
                           "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\","
                           "\"resourceVersion\":\"7\"}}"),
                     201);
}

static void an_apply_with_a_uid_does_not(void **state)
{
    (void)state;
    WORLD world = world_make();
    const char *path = CONFIGMAPS "/c?fieldManager=m";
    assert_int_equal(
        patch(world, path, APPLY,
              "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"uid\":\"u-1\"}}"),
        409);
    assert_string_equal(message(world),
                        "Operation cannot be fulfilled on configmaps \"c\": uid mismatch: the provided "
                        "object specified uid u-1, and no existing object was found");
}

static void an_apply_on_a_dying_object_is_accepted_and_lost(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(world, "c", ",\"finalizers\":[\"example.com/hold\"]");
    assert_int_equal(ask(world, "DELETE", CONFIGMAPS "/c", NULL), 200);
    assert_int_equal(patch(world, CONFIGMAPS "/c?fieldManager=m", APPLY,
                           "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},"
                           "\"data\":{\"a\":\"b\"}}"),
                     200);
    assert_non_null(meta(world, "deletionTimestamp"));
    assert_int_equal(ask(world, "POST", CONFIGMAPS,
                         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"}}"),
                     409);
    assert_string_equal(reason(world), "AlreadyExists");
    assert_string_equal(message(world), "object is being deleted: configmaps \"c\" already exists");
    assert_int_equal(patch(world, CONFIGMAPS "/c", MERGE, "{\"metadata\":{\"finalizers\":null}}"), 200);
    assert_int_equal(ask(world, "GET", CONFIGMAPS "/c", NULL), 404);
}

static void a_uid_chosen_by_the_client_is_replaced(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(world, "c", ",\"uid\":\"11111111-2222-3333-4444-555555555555\",\"generation\":9");
    assert_string_not_equal(meta(world, "uid"), "11111111-2222-3333-4444-555555555555");
    assert_int_equal(strlen(meta(world, "uid")), 36);
}

static void the_delete_conflict_names_which_precondition_failed(void **state)
{
    (void)state;
    WORLD world = world_make();
    make_config(world, "c", "");
    CLEANUP_FREE char *uid = now_of(world, CONFIGMAPS "/c", "uid");
    ask(world, "DELETE", CONFIGMAPS "/c", "{\"preconditions\":{\"uid\":\"x\",\"resourceVersion\":\"1\"}}");
    CLEANUP_FREE char *expected =
        xasprintf("Operation cannot be fulfilled on ConfigMap \"c\": the UID in the precondition (x) does "
                  "not match the UID "
                  "in record (%s). The object might have been deleted and then recreated",
                  uid);
    assert_string_equal(message(world), expected);
    CLEANUP_FREE char *body =
        xasprintf("{\"preconditions\":{\"uid\":\"%s\",\"resourceVersion\":\"1\"}}", uid);
    ask(world, "DELETE", CONFIGMAPS "/c", body);
    assert_non_null(strstr(message(world), "the ResourceVersion in the precondition (1) does not match"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answer_as_the_real_server),
        cmocka_unit_test(a_patch_of_an_absent_object_is_404),
        cmocka_unit_test(an_apply_with_a_version_creates_an_absent_object),
        cmocka_unit_test(an_apply_with_a_uid_does_not),
        cmocka_unit_test(an_apply_on_a_dying_object_is_accepted_and_lost),
        cmocka_unit_test(a_uid_chosen_by_the_client_is_replaced),
        cmocka_unit_test(the_delete_conflict_names_which_precondition_failed),
    };
    return cmocka_run_group_tests_name("kubesim preconditions", tests, NULL, NULL);
}
