/* SPDX-License-Identifier: Apache-2.0
 *
 * When templates mean the same, what changes between two, how revisions are named and cut, what selectors
 * match. */
#include "neoset/defaults.h"
#include "neoset/revision.h"
#include "neoset/selector.h"
#include "neoset/template.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    if (json_parse(text, strlen(text), &tree, NULL) < 0)
        fail_msg("not JSON: %s", text);
    return tree;
}

static bool same(const char *a, const char *b)
{
    CLEANUP_JSON cJSON *first = parse(a);
    CLEANUP_JSON cJSON *second = parse(b);
    char digest_a[65], digest_b[65];
    defaults_digest_template(first, digest_a);
    defaults_digest_template(second, digest_b);
    return strcmp(digest_a, digest_b) == 0;
}

static char *pod(const char *spec)
{
    return xasprintf("{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":%s}", spec);
}

static void noise_makes_no_new_revision(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"}]}",
         "{\"containers\":[{\"image\":\"i:1\",\"name\":\"m\"}]}"},
        {"{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"}]}",
         "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\",\"env\":null,\"args\":[],\"resources\":{}}]}"},
        {"{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"}]}",
         "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\",\"imagePullPolicy\":\"IfNotPresent\","
         "\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\"}],"
         "\"restartPolicy\":\"Always\",\"dnsPolicy\":\"ClusterFirst\",\"securityContext\":{},"
         "\"terminationGracePeriodSeconds\":30,\"schedulerName\":\"default-scheduler\"}"},
        {"{\"containers\":[{\"name\":\"m\",\"image\":\"i\"}]}",
         "{\"containers\":[{\"name\":\"m\",\"image\":\"i\",\"imagePullPolicy\":\"Always\"}]}"},
        {"{\"containers\":[{\"name\":\"m\",\"image\":\"r:5000/i@sha256:1\"}]}",
         "{\"containers\":[{\"name\":\"m\",\"image\":\"r:5000/"
         "i@sha256:1\",\"imagePullPolicy\":\"IfNotPresent\"}]}"},
        {"{\"containers\":[{\"name\":\"m\",\"image\":\"r:5000/i\"}]}",
         "{\"containers\":[{\"name\":\"m\",\"image\":\"r:5000/i\",\"imagePullPolicy\":\"Always\"}]}"},
        {"{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\",\"ports\":[{\"containerPort\":80}],"
         "\"readinessProbe\":{"
         "\"httpGet\":{\"port\":80}}}]}",
         "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\",\"ports\":[{\"containerPort\":80,\"protocol\":"
         "\"TCP\"}],"
         "\"readinessProbe\":{\"httpGet\":{\"port\":80,\"path\":\"/"
         "\",\"scheme\":\"HTTP\"},\"timeoutSeconds\":1,"
         "\"periodSeconds\":10,\"successThreshold\":1,\"failureThreshold\":3}}]}"},
        {"{\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"s\"}}],\"containers\":[{\"name\":\"m\","
         "\"image\":\"i:1\"}]}",
         "{\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"s\",\"defaultMode\":420}}],"
         "\"containers\":[{\"name\":"
         "\"m\",\"image\":\"i:1\"}]}"},
        {"{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\",\"resources\":{\"limits\":{\"cpu\":\"1\","
         "\"memory\":\"1Gi\"}}}]}",
         "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\",\"resources\":{\"limits\":{\"cpu\":\"1\","
         "\"memory\":\"1Gi\"},"
         "\"requests\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}}}]}"},
        {"{\"serviceAccountName\":\"a\",\"containers\":[]}",
         "{\"serviceAccountName\":\"a\",\"serviceAccount\":\"a\",\"containers\":[]}"},
        {"{\"hostNetwork\":true,\"containers\":[{\"name\":\"m\",\"image\":\"i:1\",\"ports\":[{"
         "\"containerPort\":80}]}]}",
         "{\"hostNetwork\":true,\"containers\":[{\"name\":\"m\",\"image\":\"i:1\",\"ports\":[{"
         "\"containerPort\":80,"
         "\"hostPort\":80}]}]}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        CLEANUP_FREE char *a = pod(pairs[i][0]);
        CLEANUP_FREE char *b = pod(pairs[i][1]);
        if (!same(a, b))
            fail_msg("these mean the same:\n%s\n%s", a, b);
    }
    assert_true(same("{\"metadata\":{\"creationTimestamp\":null,\"annotations\":{}},\"spec\":{}}",
                     "{\"metadata\":{},"
                     "\"spec\":{}}"));
}

static void what_matters_makes_a_new_revision(void **state)
{
    (void)state;
    static const char *const base = "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"}]}";
    static const char *const others[] = {
        "{\"containers\":[{\"name\":\"m\",\"image\":\"i:2\"}]}",
        "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\",\"imagePullPolicy\":\"Always\"}]}",
        "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"}],\"terminationGracePeriodSeconds\":31}",
        "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"}],\"automountServiceAccountToken\":false}",
        "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"}],\"enableServiceLinks\":false}",
        ("{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"}],\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]"
         "}"),
        "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\",\"args\":[\"\"]}]}",
        "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\",\"securityContext\":{\"runAsNonRoot\":false}}]}",
        "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"}],\"somethingNew\":true}",
        "{\"containers\":[{\"name\":\"n\",\"image\":\"i:1\"}]}",
        "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"},{\"name\":\"n\",\"image\":\"i:1\"}]}",
    };
    CLEANUP_FREE char *a = pod(base);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        CLEANUP_FREE char *b = pod(others[i]);
        if (same(a, b))
            fail_msg("these differ:\n%s\n%s", a, b);
    }
    /* An empty source of a volume says which kind it is. */
    assert_false(same("{\"spec\":{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]}}",
                      "{\"spec\":{\"volumes\":[{\"name\":"
                      "\"v\"}]}}"));
}

/* Recorded from a real API server by tests/schema/record-defaults. */
static void what_the_server_fills_in_makes_no_new_revision(void **state)
{
    (void)state;
    FILE *inputs = fopen("tests/schema/defaults/inputs.jsonl", "re");
    FILE *answers = fopen("tests/schema/defaults/answers.jsonl", "re");
    assert_non_null(inputs);
    assert_non_null(answers);
    char *asked = NULL, *answered = NULL;
    size_t asked_room = 0, answered_room = 0;
    int lines = 0;
    while (getline(&asked, &asked_room, inputs) > 0) {
        assert_true(getline(&answered, &answered_room, answers) > 0);
        asked[strcspn(asked, "\n")] = answered[strcspn(answered, "\n")] = '\0';
        if (!same(asked, answered))
            fail_msg("these mean the same:\n%s\n%s", asked, answered);
        lines++;
    }
    assert_true(lines >= 20);
    free(asked);
    free(answered);
    fclose(inputs);
    fclose(answers);
}

/* --- what changes --------------------------------------------------------------------------------------- */

#define TEMPLATE(metadata, spec) "{\"metadata\":" metadata ",\"spec\":" spec "}"
#define LABELS "{\"labels\":{\"a\":\"b\"}}"

struct change {
    const char *from, *to;
    const char *recreate; /* NULL: none */
    int images;
    bool metadata;
};

static void a_change_is_an_image_or_metadata_or_a_new_pod(void **state)
{
    (void)state;
    static const char *const one =
        "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"},{\"name\":\"s\",\"image\":\"s:1\"}]}";
    struct change changes[] = {
        {TEMPLATE(LABELS, "%s"), NULL, NULL, 0, true},
        {NULL, "{\"containers\":[{\"name\":\"m\",\"image\":\"i:2\"},{\"name\":\"s\",\"image\":\"s:1\"}]}",
         NULL, 1, false},
        {NULL, "{\"containers\":[{\"name\":\"m\",\"image\":\"i:2\"},{\"name\":\"s\",\"image\":\"s:2\"}]}",
         NULL, 2, false},
        {NULL, "{\"containers\":[{\"name\":\"s\",\"image\":\"s:1\"},{\"name\":\"m\",\"image\":\"i:1\"}]}",
         "spec.containers[m].name", 0, false},
        {NULL, "{\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"}]}", "spec.containers[s]", 0, false},
        {NULL,
         "{\"containers\":[{\"name\":\"m\",\"image\":\"i:2\",\"env\":[{\"name\":\"X\",\"value\":\"1\"}]},{"
         "\"name\":\"s\","
         "\"image\":\"s:1\"}]}",
         "spec.containers[m].env", 1, false},
        {NULL,
         "{\"nodeSelector\":{\"x\":\"y\"},\"containers\":[{\"name\":\"m\",\"image\":\"i:1\"},{\"name\":\"s\","
         "\"image\":"
         "\"s:1\"}]}",
         "spec.nodeSelector", 0, false},
        {NULL,
         "{\"initContainers\":[{\"name\":\"i\",\"image\":\"x\"}],\"containers\":[{\"name\":\"m\",\"image\":"
         "\"i:1\"},{"
         "\"name\":\"s\",\"image\":\"s:1\"}]}",
         "spec.initContainers", 0, false},
    };
    CLEANUP_FREE char *from = xasprintf(TEMPLATE(LABELS, "%s"), one);
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        CLEANUP_FREE char *to = xasprintf(TEMPLATE(LABELS, "%s"), changes[i].to ? changes[i].to : one);
        struct template_diff diff;
        template_diff_make(from, to, &diff);
        if (changes[i].recreate)
            assert_string_equal(diff.recreate, changes[i].recreate);
        else
            assert_null(diff.recreate);
        assert_int_equal(diff.image_count, changes[i].images);
        assert_int_equal(template_diff_is_metadata(&diff), changes[i].metadata);
        template_diff_done(&diff);
    }
}

/* Whether labels change besides, which is compared in another way, or not. */
static void a_pull_policy_that_stays_is_no_change_whatever_the_tag(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        const char *recreate;
    } cases[] = {
        {"\"i:latest\",\"imagePullPolicy\":\"Always\"", "\"i:1\",\"imagePullPolicy\":\"Always\"", NULL},
        {"\"i:1\",\"imagePullPolicy\":\"IfNotPresent\"", "\"i:latest\",\"imagePullPolicy\":\"IfNotPresent\"",
         NULL},
        {"\"i:latest\"", "\"i:1\",\"imagePullPolicy\":\"Always\"", NULL},
        {"\"i:latest\"", "\"i:1\"", NULL},
        {"\"i:1\"", "\"i:2\",\"imagePullPolicy\":\"Always\"", "spec.containers[m].imagePullPolicy"},
        {"\"i:1\",\"imagePullPolicy\":\"Never\"", "\"i:2\"", "spec.containers[m].imagePullPolicy"},
    };
    static const char *const labels[] = {"{\"labels\":{\"a\":\"b\"}}", "{\"labels\":{\"a\":\"c\"}}"};
    for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *from = xasprintf(
            TEMPLATE("%s", "{\"containers\":[{\"name\":\"m\",\"image\":%s}]}"), labels[0], cases[i / 2].from);
        CLEANUP_FREE char *to = xasprintf(TEMPLATE("%s", "{\"containers\":[{\"name\":\"m\",\"image\":%s}]}"),
                                          labels[i % 2], cases[i / 2].to);
        struct template_diff diff;
        template_diff_make(from, to, &diff);
        if (!str_equal(diff.recreate, cases[i / 2].recreate))
            fail_msg("%s -> %s: %s", from, to, diff.recreate ? diff.recreate : "in place");
        assert_int_equal(diff.image_count, 1);
        template_diff_done(&diff);
    }
}

static void metadata_says_which_keys_go_and_which_come(void **state)
{
    (void)state;
    struct template_diff diff;
    template_diff_make(TEMPLATE("{\"labels\":{\"a\":\"b\",\"old\":\"1\",\"x\":\"1\"}}", "{}"),
                       TEMPLATE("{\"labels\":{\"a\":\"b\",\"x\":\"2\"},\"annotations\":{\"n\":\"1\"}}", "{}"),
                       &diff);
    CLEANUP_FREE char *labels = json_print_sorted(diff.labels);
    CLEANUP_FREE char *annotations = json_print_sorted(diff.annotations);
    assert_string_equal(labels, "{\"old\":null,\"x\":\"2\"}");
    assert_string_equal(annotations, "{\"n\":\"1\"}");
    assert_true(template_diff_is_metadata(&diff));
    template_diff_done(&diff);
}

static void metadata_that_means_a_restart_means_a_new_pod(void **state)
{
    (void)state;
    static const struct {
        const char *annotations, *spec, *field;
    } cases[] = {
        {"{\"kubectl.kubernetes.io/restartedAt\":\"x\"}", "{}",
         "metadata.annotations[kubectl.kubernetes.io/restartedAt]"},
        {"{\"checksum/config\":\"x\"}", "{}", "metadata.annotations[checksum/config]"},
        {"{\"note\":\"x\"}", "{}", NULL},
        {"{\"note\":\"x\"}",
         "{\"containers\":[{\"name\":\"m\",\"env\":[{\"name\":\"N\",\"valueFrom\":{\"fieldRef\":{"
         "\"fieldPath\":"
         "\"metadata.annotations['note']\"}}}]}]}",
         "metadata.annotations (taken by the downward API)"},
        {"{\"note\":\"x\"}",
         "{\"containers\":[{\"name\":\"m\",\"env\":[{\"name\":\"N\",\"valueFrom\":{\"fieldRef\":{"
         "\"fieldPath\":"
         "\"metadata.annotations['other']\"}}}]}]}",
         NULL},
        {"{\"note\":\"x\"}",
         "{\"volumes\":[{\"name\":\"v\",\"downwardAPI\":{\"items\":[{\"path\":\"p\",\"fieldRef\":{"
         "\"fieldPath\":"
         "\"metadata.annotations\"}}]}}]}",
         "metadata.annotations (taken by the downward API)"},
        {"{\"note\":\"x\"}",
         "{\"volumes\":[{\"name\":\"v\",\"downwardAPI\":{\"items\":[{\"path\":\"p\",\"fieldRef\":{"
         "\"fieldPath\":"
         "\"metadata.labels\"}}]}}]}",
         NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *from = xasprintf("{\"spec\":%s}", cases[i].spec);
        CLEANUP_FREE char *to =
            xasprintf("{\"metadata\":{\"annotations\":%s},\"spec\":%s}", cases[i].annotations, cases[i].spec);
        struct template_diff diff;
        template_diff_make(from, to, &diff);
        if (cases[i].field)
            assert_string_equal(diff.recreate, cases[i].field);
        else
            assert_null(diff.recreate);
        template_diff_done(&diff);
    }
}

/* --- revisions ------------------------------------------------------------------------------------------ */

static void a_revision_is_named_after_its_set_within_a_label(void **state)
{
    (void)state;
    char digest[65];
    CLEANUP_JSON cJSON *template = parse("{\"spec\":{}}");
    defaults_digest_template(template, digest);
    CLEANUP_FREE char *name = revision_name("mysql", digest, 0);
    CLEANUP_FREE char *again = revision_name("mysql", digest, 0);
    CLEANUP_FREE char *other = revision_name("mysql", digest, 1);
    assert_string_equal(name, again);
    assert_string_not_equal(name, other);
    assert_true(str_starts_with(name, "mysql-"));
    assert_int_equal(strlen(name), strlen("mysql-") + REVISION_HASH_LENGTH);
    assert_int_equal(strspn(name + 6, "bcdfghjklmnpqrstvwxz2456789"), REVISION_HASH_LENGTH);
    CLEANUP_FREE char *long_name =
        revision_name("a234567890123456789012345678901234567890123456789012", digest, 0);
    assert_int_equal(strlen(long_name), 63);
}

static bool is_even(void *context, const char *name)
{
    (void)context;
    return (name[1] - '0') % 2 == 0;
}

static void history_keeps_the_newest_and_what_is_used(void **state)
{
    (void)state;
    struct revision_fact facts[8];
    const struct revision_fact *revisions[8];
    static char names[8][4];
    for (int i = 0; i < 8; i++) {
        snprintf(names[i], sizeof(names[i]), "r%d", i);
        facts[i] = (struct revision_fact){.name = names[i], .number = 100 - i};
        revisions[i] = &facts[i];
    }
    /* 1, 3, 5, 7 are unused; 7 is the oldest. */
    assert_ptr_equal(revision_to_cut(revisions, 8, 3, is_even, NULL), &facts[7]);
    assert_null(revision_to_cut(revisions, 8, 4, is_even, NULL));
    facts[7].deleting = true;
    assert_null(revision_to_cut(revisions, 8, 3, is_even, NULL));
    assert_int_equal(revision_highest(revisions, 8), 100);
    assert_ptr_equal(revision_find(revisions, 8, "r5"), &facts[5]);
    assert_null(revision_find(revisions, 8, NULL));
}

/* --- selectors ------------------------------------------------------------------------------------------ */

static void selectors_match_as_the_server_has_it(void **state)
{
    (void)state;
    static const struct {
        const char *selector;
        bool matches;
        const char *text; /* NULL: cannot be read */
    } cases[] = {
        {"{\"matchLabels\":{\"b\":\"2\",\"a\":\"1\"}}", true, "a=1,b=2"},
        {"{\"matchLabels\":{\"a\":\"2\"}}", false, "a=2"},
        {"{\"matchLabels\":{\"z\":\"1\"}}", false, "z=1"},
        {"{}", false, ""},
        {"null", false, ""},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"1\",\"2\"]}]}", true,
         "a in (1,2)"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"1\"]}]}", false,
         "a notin (1)"},
        {"{\"matchExpressions\":[{\"key\":\"z\",\"operator\":\"NotIn\",\"values\":[\"1\"]}]}", true,
         "z notin (1)"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}", true, "a"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"DoesNotExist\"}]}", false, "!a"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Like\"}]}", false, NULL},
        {"{\"matchExpressions\":[{}]}", false, NULL},
    };
    CLEANUP_JSON cJSON *labels = parse("{\"a\":\"1\",\"b\":\"2\"}");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_JSON cJSON *selector = parse(cases[i].selector);
        assert_int_equal(selector_matches(selector, labels), cases[i].matches);
        CLEANUP_FREE char *text = selector_print(selector);
        if (cases[i].text)
            assert_string_equal(text, cases[i].text);
        else
            assert_null(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_makes_no_new_revision),
        cmocka_unit_test(what_the_server_fills_in_makes_no_new_revision),
        cmocka_unit_test(what_matters_makes_a_new_revision),
        cmocka_unit_test(a_change_is_an_image_or_metadata_or_a_new_pod),
        cmocka_unit_test(a_pull_policy_that_stays_is_no_change_whatever_the_tag),
        cmocka_unit_test(metadata_says_which_keys_go_and_which_come),
        cmocka_unit_test(metadata_that_means_a_restart_means_a_new_pod),
        cmocka_unit_test(a_revision_is_named_after_its_set_within_a_label),
        cmocka_unit_test(history_keeps_the_newest_and_what_is_used),
        cmocka_unit_test(selectors_match_as_the_server_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
