/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of neoset-controller: defaults, values, and what is refused with which sentence. */
#include "cmd/controller_options.h"

#include "base/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char *no_variable(const char *name)
{
    (void)name;
    return NULL;
}

/* Parses and checks; fails the test when the command line is refused. */
static struct options *parse(const char *const *arguments, struct controller_settings *settings)
{
    const char *argv[16] = {"neoset-controller"};
    int argc = 1;
    for (; arguments[argc - 1]; argc++)
        argv[argc] = arguments[argc - 1];
    CLEANUP_ERROR struct error *err = NULL;
    struct options *options = NULL;
    if (option_parse(&controller_program, argc, (char *const *)argv, no_variable, &options, &err) < 0)
        fail_msg("%s", error_text(err));
    if (controller_settings_read(options, true, settings, &err) < 0)
        fail_msg("%s", error_text(err));
    return options;
}

static void without_options_the_defaults_hold(void **state)
{
    (void)state;
    struct controller_settings settings;
    CLEANUP_OPTIONS struct options *options = parse((const char *const[]){NULL}, &settings);
    assert_string_equal(settings.journal_path, "/var/lib/neoset/journal.db");
    assert_true(settings.journal_path_is_default);
    assert_string_equal(settings.listen, "127.0.0.1:9780");
    assert_false(settings.no_lease);
    assert_null(settings.lease_namespace);
    assert_string_equal(settings.lease_name, "neoset");
    assert_null(settings.namespace);
    assert_true(settings.retention_us == 400 * 24 * 3600 * US_PER_S);
    assert_true(settings.retention_bytes == 4LL << 30);
    assert_int_equal(settings.log.format, LOG_TEXT);
    assert_int_equal(settings.log.lowest, LOG_INFO);
    assert_false(settings.once);
    controller_settings_done(&settings);
}

static void what_is_given_counts(void **state)
{
    (void)state;
    struct controller_settings settings;
    static const char *const arguments[] = {"--journal=/tmp/j.db",
                                            "-n",
                                            "db",
                                            "--lease",
                                            "kube-system/neo",
                                            "--listen",
                                            "none",
                                            "--log-format",
                                            "json",
                                            "--log-level=debug",
                                            "--journal-retention",
                                            "30d,512Mi",
                                            "--once",
                                            NULL};
    CLEANUP_OPTIONS struct options *options = parse(arguments, &settings);
    assert_string_equal(settings.journal_path, "/tmp/j.db");
    assert_false(settings.journal_path_is_default);
    assert_string_equal(settings.namespace, "db");
    assert_string_equal(settings.lease_namespace, "kube-system");
    assert_string_equal(settings.lease_name, "neo");
    assert_null(settings.listen);
    assert_int_equal(settings.log.format, LOG_JSON);
    assert_int_equal(settings.log.lowest, LOG_DEBUG);
    assert_true(settings.retention_us == 30 * 24 * 3600 * US_PER_S);
    assert_true(settings.retention_bytes == 512LL << 20);
    assert_true(settings.once);
    controller_settings_done(&settings);
}

static const struct {
    const char *first;
    const char *second; /* or NULL */
    const char *says;   /* part of the sentence */
} refused[] = {
    {"--lease=neo", NULL, "NAMESPACE/NAME"},
    {"--lease=/neo", NULL, "NAMESPACE/NAME"},
    {"--lease=a/b/c", NULL, "NAMESPACE/NAME"},
    {"--lease=a/", NULL, "NAMESPACE/NAME"},
    {"--lease=a/b", "--no-lease", "contradict"},
    {"--journal-retention=5x", NULL, "neither an age"},
    {"--journal-retention=1d,2Gi,3", NULL, "AGE,SIZE"},
    {"--journal-retention=,", NULL, "neither an age"},
    {"--journal-retention=99999999999999Gi", NULL, "neither an age"},
    {"--journal=", NULL, "--journal FILE"},
    {"--namespace=", NULL, "no name of a namespace"},
    {"--namespace=../x", NULL, "no name of a namespace"},
    {"--listen=foo", NULL, "127.0.0.1:8080"},
    {"--listen=localhost", NULL, "127.0.0.1:8080"},
    {"--namespace=db", "--all-namespaces", "contradict"},
};

static void what_makes_no_sense_is_refused_with_a_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        const char *argv[] = {"neoset-controller", refused[i].first, refused[i].second, NULL};
        CLEANUP_ERROR struct error *err = NULL;
        CLEANUP_OPTIONS struct options *options = NULL;
        assert_int_equal(option_parse(&controller_program, refused[i].second ? 3 : 2, (char *const *)argv,
                                      no_variable, &options, &err),
                         0);
        struct controller_settings settings;
        assert_int_equal(controller_settings_read(options, true, &settings, &err), -ERROR_USAGE);
        if (!strstr(error_text(err), refused[i].says))
            fail_msg("%s: %s", refused[i].first, error_text(err));
    }
}

static void retention_is_read_in_either_order(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t age_us;
        int64_t bytes;
    } cases[] = {
        {"400d,4Gi", 400 * 86400 * US_PER_S, 4LL << 30},
        {"4Gi,400d", 400 * 86400 * US_PER_S, 4LL << 30},
        {"12h", 12 * 3600 * US_PER_S, 0},
        {"100Mi", 0, 100 << 20},
        {"0", 0, 0},
        {"0,1G", 0, 1000000000},
        {"1d,0", 86400 * US_PER_S, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t age_us = -1, bytes = -1;
        assert_int_equal(controller_read_retention(cases[i].text, &age_us, &bytes, NULL), 0);
        if (age_us != cases[i].age_us || bytes != cases[i].bytes)
            fail_msg("%s: %lld us, %lld bytes", cases[i].text, (long long)age_us, (long long)bytes);
    }
}

static void levels_have_names(void **state)
{
    (void)state;
    enum log_level level = LOG_INFO;
    assert_true(log_level_of_text("warning", &level));
    assert_int_equal(level, LOG_WARNING);
    assert_false(log_level_of_text("loud", &level));
    assert_false(log_level_of_text(NULL, &level));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_options_the_defaults_hold),
        cmocka_unit_test(what_is_given_counts),
        cmocka_unit_test(what_makes_no_sense_is_refused_with_a_sentence),
        cmocka_unit_test(retention_is_read_in_either_order),
        cmocka_unit_test(levels_have_names),
    };
    return cmocka_run_group_tests_name("neoset-controller's options", tests, NULL, NULL);
}
