/* SPDX-License-Identifier: Apache-2.0
 *
 * What -f brings: documents, Lists, folders; and a sentence that names the object for what is wrong. */
#include "cmd/manifest.h"
#include "kube/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct option_command commands[] = {{.name = "read", .help = "reads"}, {0}};
static const struct option_spec specs[] = {
    {.name = "filename", .letter = 'f', .value = "FILE", .help = "files", .repeats = true}, {0}};
static const struct option_program program = {
    .name = "try", .summary = "tries", .commands = commands, .options = specs, .usage_exit = 64};

/* A folder of its own for each test; what is written there goes with it. */
static int make_folder(void **state)
{
    char *folder = xstrdup("/tmp/neoset-manifest.XXXXXX");
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

static int remove_folder(void **state)
{
    CLEANUP_FREE char *folder = *state;
    CLEANUP_FREE char *line = xasprintf("rm -rf '%s'", folder);
    return system(line);
}

static char *put(const char *folder, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
    return path;
}

static int read_paths(struct manifests *ret, struct error **err, const char *a, const char *b)
{
    const char *argv[] = {"try", "read", "-f", a, b ? "-f" : NULL, b, NULL};
    CLEANUP_OPTIONS struct options *options = NULL;
    assert_int_equal(option_parse(&program, b ? 6 : (a ? 4 : 2), (char *const *)argv, NULL, &options, NULL),
                     0);
    return manifests_read(options, ret, err);
}

static void documents_come_in_their_order_and_lists_as_their_items(void **state)
{
    CLEANUP_FREE char *one =
        put(*state, "one.yaml",
            "kind: A\napiVersion: v1\nmetadata: {name: a}\n---\n---\n"
            "kind: List\napiVersion: v1\nitems:\n- {kind: B, apiVersion: v1, metadata: {name: b}}\n"
            "- {kind: C, apiVersion: v1, metadata: {name: c, namespace: prod}}\n");
    CLEANUP_FREE char *two =
        put(*state, "two.json", "{\"kind\":\"D\",\"apiVersion\":\"g/v1\",\"metadata\":{\"name\":\"d\"}}");
    CLEANUP_MANIFESTS struct manifests manifests = {0};
    assert_int_equal(read_paths(&manifests, NULL, one, two), 0);
    assert_int_equal(manifests.count, 4);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(kube_object_name(manifests.items[i].object), names[i]);
    CLEANUP_FREE char *third = manifest_text(&manifests.items[2]);
    CLEANUP_FREE char *wanted = xasprintf("C c in namespace prod (%s, line 6, item 2)", one);
    assert_string_equal(third, wanted);
}

static void a_folder_is_its_manifests_by_name(void **state)
{
    free(put(*state, "b.yml", "{kind: B, apiVersion: v1, metadata: {name: b}}"));
    free(put(*state, "a.json", "{\"kind\":\"A\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}"));
    free(put(*state, ".c.yaml", "not: one"));
    free(put(*state, "notes.txt", "not one"));
    CLEANUP_MANIFESTS struct manifests manifests = {0};
    assert_int_equal(read_paths(&manifests, NULL, *state, NULL), 0);
    assert_int_equal(manifests.count, 2);
    assert_string_equal(kube_object_name(manifests.items[0].object), "a");
}

static void a_thousand_documents_are_read(void **state)
{
    struct buf text = BUF_INIT(1 << 20);
    for (int i = 0; i < 1000; i++)
        buf_addf(&text, "---\n{kind: A, apiVersion: v1, metadata: {name: a%d}}\n", i);
    CLEANUP_FREE char *path = put(*state, "many.yaml", buf_text(&text));
    CLEANUP_MANIFESTS struct manifests manifests = {0};
    assert_int_equal(read_paths(&manifests, NULL, path, NULL), 0);
    assert_int_equal(manifests.count, 1000);
    assert_int_equal(manifests_check_unique(&manifests, NULL), 0);
    buf_done(&text);
}

static void what_is_wrong_is_a_sentence_with_the_place(void **state)
{
    static const struct {
        const char *text, *says;
        int code;
    } table[] = {
        {"a: [", "line 2", ERROR_INVALID},
        {"just words", "line 1: not an object, but a single value", ERROR_INVALID},
        {"- {kind: A}", "line 1: not an object, but a list", ERROR_INVALID},
        {"apiVersion: v1\nmetadata: {name: a}", "the object has no kind", ERROR_INVALID},
        {"kind: A\nmetadata: {name: a}", "the object has no apiVersion", ERROR_INVALID},
        {"kind: A\napiVersion: v1", "the A has no metadata.name", ERROR_INVALID},
        {"kind: A\napiVersion: v1\nmetadata: {generateName: a-}", "the A has generateName", ERROR_INVALID},
        {"kind: A\napiVersion: v1\nmetadata: {name: 5}",
         "metadata.name that is no text: 5: put it into quotes", ERROR_INVALID},
        {"kind: A\napiVersion: v1\nmetadata: {name: a, namespace: 2024}",
         "metadata.namespace that is no text: 2024: put it into quotes", ERROR_INVALID},
        {"kind: A\napiVersion: v1\nmetadata: {name: a, namespace: {}}",
         "metadata.namespace that is no text: {}", ERROR_INVALID},
        {"kind: List\napiVersion: v1", "the items of a List are a list", ERROR_INVALID},
        {"kind: List\napiVersion: v1\nitems: [{kind: B}]", "line 1, item 1: the object has no apiVersion",
         ERROR_INVALID},
        {"kind: List\napiVersion: v1\nitems: 3", "the items of a List are a list", ERROR_INVALID},
        {"# nothing\n", "there is no object in", ERROR_INVALID},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *path = put(*state, "bad.yaml", table[i].text);
        CLEANUP_ERROR struct error *err = NULL;
        struct manifests manifests = {0};
        assert_int_equal(read_paths(&manifests, &err, path, NULL), -table[i].code);
        if (!strstr(error_text(err), table[i].says) || !strstr(error_text(err), "bad.yaml"))
            fail_msg("%s: says \"%s\", not \"%s\"", table[i].text, error_text(err), table[i].says);
        assert_int_equal(manifests.count, 0);
    }
}

static void what_cannot_be_read_is_said(void **state)
{
    static const struct {
        const char *path, *says;
        int code;
    } table[] = {
        {NULL, "read needs -f FILE", ERROR_USAGE},
        {"/nowhere/at/all.yaml", "cannot open /nowhere/at/all.yaml", ERROR_NOT_FOUND},
        {"https://example.com/a.yaml", "no address is fetched", ERROR_USAGE},
        {"", "cannot open", ERROR_NOT_FOUND},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_ERROR struct error *err = NULL;
        struct manifests manifests = {0};
        assert_int_equal(read_paths(&manifests, &err, table[i].path, NULL), -table[i].code);
        assert_non_null(strstr(error_text(err), table[i].says));
    }
    CLEANUP_ERROR struct error *err = NULL;
    struct manifests manifests = {0};
    assert_int_equal(read_paths(&manifests, &err, *state, NULL), -ERROR_INVALID);
    assert_non_null(strstr(error_text(err), "has no *.yaml, *.yml or *.json"));
}

static void two_objects_of_one_name_are_refused_with_both_places(void **state)
{
    CLEANUP_FREE char *one = put(*state, "one.yaml", "{kind: A, apiVersion: g/v1, metadata: {name: a}}");
    CLEANUP_FREE char *other = put(*state, "other.yaml", "{kind: A, apiVersion: g/v2, metadata: {name: a}}");
    CLEANUP_MANIFESTS struct manifests manifests = {0};
    CLEANUP_ERROR struct error *err = NULL;
    assert_int_equal(read_paths(&manifests, NULL, one, other), 0);
    assert_int_equal(manifests_check_unique(&manifests, &err), -ERROR_INVALID);
    assert_non_null(strstr(error_text(err), "A a ("));
    assert_non_null(strstr(error_text(err), "one.yaml, line 1"));
    assert_non_null(strstr(error_text(err), "other.yaml, line 1"));
    json_set_str(json_get(manifests.items[0].object, "metadata"), "namespace", "elsewhere");
    assert_int_equal(manifests_check_unique(&manifests, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(documents_come_in_their_order_and_lists_as_their_items, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_is_its_manifests_by_name, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_thousand_documents_are_read, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_a_sentence_with_the_place, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_said, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(two_objects_of_one_name_are_refused_with_both_places, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
