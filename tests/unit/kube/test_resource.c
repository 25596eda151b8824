/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/resource.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_path_names_group_version_namespace_and_name(void **state)
{
    (void)state;
    static const struct {
        enum kube_resource resource;
        const char *namespace;
        const char *name;
        const char *subresource;
        const char *path;
    } cases[] = {
        {KUBE_POD, "default", "mysql-0", NULL, "/api/v1/namespaces/default/pods/mysql-0"},
        {KUBE_POD, "default", "mysql-0", "status", "/api/v1/namespaces/default/pods/mysql-0/status"},
        {KUBE_POD, "default", NULL, NULL, "/api/v1/namespaces/default/pods"},
        {KUBE_POD, NULL, NULL, NULL, "/api/v1/pods"},
        {KUBE_POD, "", NULL, NULL, "/api/v1/pods"},
        {KUBE_NEOSET, "db", "mysql", "scale", "/apis/apps.neo.io/v1alpha1/namespaces/db/neosets/mysql/scale"},
        {KUBE_REVISION, "db", "mysql-5f", NULL, "/apis/apps/v1/namespaces/db/controllerrevisions/mysql-5f"},
        {KUBE_DEFINITION, NULL, "neosets.apps.neo.io", NULL,
         "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/neosets.apps.neo.io"},
        {KUBE_DEFINITION, "ignored", NULL, NULL, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *path =
            kube_path(cases[i].resource, cases[i].namespace, cases[i].name, cases[i].subresource);
        assert_string_equal(path, cases[i].path);
    }
}

static void everything_in_a_path_is_percent_encoded(void **state)
{
    (void)state;
    CLEANUP_FREE char *path = kube_path(KUBE_POD, "a/b", "x?y#z%\xC3\xA9 ", NULL);
    assert_string_equal(path, "/api/v1/namespaces/a%2Fb/pods/x%3Fy%23z%25%C3%A9%20");
}

/* Someone in between may resolve "..": DELETE .../pods/.. must not become DELETE of the namespace. */
static void dots_alone_are_no_way_up(void **state)
{
    (void)state;
    CLEANUP_FREE char *up = kube_path(KUBE_POD, "default", "..", NULL);
    CLEANUP_FREE char *here = kube_path(KUBE_POD, "default", ".", NULL);
    CLEANUP_FREE char *inside = kube_path(KUBE_POD, "default", "a..b", NULL);
    assert_string_equal(up, "/api/v1/namespaces/default/pods/%2E%2E");
    assert_string_equal(here, "/api/v1/namespaces/default/pods/%2E");
    assert_string_equal(inside, "/api/v1/namespaces/default/pods/a..b");
}

static void a_kind_of_a_users_manifest_is_known_once_it_was_met(void **state)
{
    (void)state;
    struct kube_resource_info toy = {"Toy", "example.com", "v1", "toys", true};
    enum kube_resource resource, again;
    assert_int_equal(kube_resource_by_name("toys", &resource), -ERROR_NOT_FOUND);
    assert_int_equal(kube_resource_intern(&toy, &resource), 0);
    assert_true((size_t)resource >= KUBE_RESOURCE_COUNT);
    assert_int_equal(kube_resource_intern(&toy, &again), 0);
    assert_int_equal(resource, again);
    toy.version = "v2";
    assert_int_equal(kube_resource_intern(&toy, &again), 0);
    assert_int_not_equal(resource, again);
    CLEANUP_FREE char *path = kube_path(resource, "shop", "car", NULL);
    assert_string_equal(path, "/apis/example.com/v1/namespaces/shop/toys/car");
    assert_int_equal(kube_resource_by_name("Toy", &again), 0);
    assert_int_equal(resource, again);
    /* Those of the table are what they were. */
    struct kube_resource_info pod = {"Pod", "", "v1", "pods", true};
    assert_int_equal(kube_resource_intern(&pod, &resource), 0);
    assert_int_equal(resource, KUBE_POD);
}

static void a_resource_is_told_to_another_process(void **state)
{
    (void)state;
    CLEANUP_FREE char *set = kube_resource_text(KUBE_STATEFULSET);
    CLEANUP_FREE char *definition = kube_resource_text(KUBE_DEFINITION);
    CLEANUP_FREE char *pod = kube_resource_text(KUBE_POD);
    assert_string_equal(set, "apps/v1/statefulsets/namespaced");
    assert_string_equal(definition, "apiextensions.k8s.io/v1/customresourcedefinitions/cluster");
    assert_string_equal(pod, "/v1/pods/namespaced");
    enum kube_resource resource;
    assert_int_equal(kube_resource_of_text(set, "StatefulSet", &resource), 0);
    assert_int_equal(resource, KUBE_STATEFULSET);
    static const char *const bad[] = {"", "apps/v1", "apps/v1/sets/", "apps/v1/sets/somewhere",
                                      "//sets/cluster"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(kube_resource_of_text(bad[i], "Set", &resource), -ERROR_INVALID);
}

static void a_path_has_no_fixed_size(void **state)
{
    (void)state;
    char name[5000];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    CLEANUP_FREE char *path = kube_path(KUBE_POD, "default", name, NULL);
    assert_int_equal(strlen(path), strlen("/api/v1/namespaces/default/pods/") + sizeof(name) - 1);
    assert_true(str_ends_with(path, name));
}

static void a_query_is_encoded_and_appended(void **state)
{
    (void)state;
    char *path = kube_path(KUBE_POD, NULL, NULL, NULL);
    kube_path_add_query(&path, "labelSelector", "app in (a,b),x!=1&y");
    kube_path_add_query(&path, "continue", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLC+/=");
    assert_string_equal(path, "/api/v1/pods?labelSelector=app%20in%20%28a%2Cb%29%2Cx%21%3D1%26y"
                              "&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLC%2B%2F%3D");
    free(path);
}

static void unreserved_characters_stay(void **state)
{
    (void)state;
    CLEANUP_FREE char *same = kube_percent_encode("azAZ09-._~");
    CLEANUP_FREE char *high = kube_percent_encode("\x01\x7F\xFF");
    assert_string_equal(same, "azAZ09-._~");
    assert_string_equal(high, "%01%7F%FF");
}

static void resources_are_found_by_the_names_that_kubectl_takes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int result;
        enum kube_resource resource;
    } cases[] = {
        {"NeoSet", 0, KUBE_NEOSET},    {"neosets", 0, KUBE_NEOSET},
        {"neoset", 0, KUBE_NEOSET},    {"neo", 0, KUBE_NEOSET},
        {"pod", 0, KUBE_POD},          {"po", 0, KUBE_POD},
        {"pvc", 0, KUBE_CLAIM},        {"StatefulSet", 0, KUBE_STATEFULSET},
        {"crd", 0, KUBE_DEFINITION},   {"", -ERROR_NOT_FOUND, 0},
        {"podz", -ERROR_NOT_FOUND, 0}, {"neose", -ERROR_NOT_FOUND, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        enum kube_resource found = KUBE_RESOURCE_COUNT;
        assert_int_equal(kube_resource_by_name(cases[i].name, &found), cases[i].result);
        assert_int_equal(found, cases[i].result == 0 ? cases[i].resource : KUBE_RESOURCE_COUNT);
    }
}

static void the_core_group_has_no_name(void **state)
{
    (void)state;
    CLEANUP_FREE char *core = kube_resource_api_version(KUBE_POD);
    CLEANUP_FREE char *ours = kube_resource_api_version(KUBE_NEOSET);
    CLEANUP_FREE char *core_root = kube_resource_root(KUBE_POD);
    CLEANUP_FREE char *our_root = kube_resource_root(KUBE_NEOSET);
    assert_string_equal(core, "v1");
    assert_string_equal(ours, "apps.neo.io/v1alpha1");
    assert_string_equal(core_root, "/api/v1");
    assert_string_equal(our_root, "/apis/apps.neo.io/v1alpha1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_names_group_version_namespace_and_name),
        cmocka_unit_test(everything_in_a_path_is_percent_encoded),
        cmocka_unit_test(dots_alone_are_no_way_up),
        cmocka_unit_test(a_kind_of_a_users_manifest_is_known_once_it_was_met),
        cmocka_unit_test(a_resource_is_told_to_another_process),
        cmocka_unit_test(a_path_has_no_fixed_size),
        cmocka_unit_test(a_query_is_encoded_and_appended),
        cmocka_unit_test(unreserved_characters_stay),
        cmocka_unit_test(resources_are_found_by_the_names_that_kubectl_takes),
        cmocka_unit_test(the_core_group_has_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
