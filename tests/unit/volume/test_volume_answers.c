/* SPDX-License-Identifier: Apache-2.0
 *
 * What real API servers 1.36.3 and 1.37.2 answered (answers.jsonl: status and body, as they came), and what
 * converge makes of it. Both generations mean the same, in other words. */
#include "kube/answer.h"
#include "volume/probe.h"
#include "volume/prove.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { FILE_MAX = 4 << 20 };

static cJSON *answers;

static int setup(void **state)
{
    (void)state;
    FILE *file = fopen("tests/unit/volume/answers.jsonl", "r");
    assert_non_null(file);
    char *line = NULL;
    size_t room = 0;
    answers = json_new_array();
    ssize_t length = 0;
    while ((length = getline(&line, &room, file)) > 0) {
        cJSON *tree = NULL;
        assert_int_equal(json_parse(line, (size_t)length, &tree, NULL), 0);
        json_append_item(answers, tree);
    }
    free(line);
    fclose(file);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    json_delete(answers);
    return 0;
}

static const char *const versions[] = {"1.36.3", "1.37.2"};

/* What a client makes of the recorded answer; false: there is none of this version. */
static bool decode(const char *version, const char *name, struct kube_decoded *ret)
{
    const cJSON *row = NULL;
    cJSON_ArrayForEach (row, answers) {
        if (!str_equal(json_str(row, "name"), name) || !str_equal(json_str(row, "version"), version))
            continue;
        CLEANUP_FREE char *body = json_print(json_get(row, "answer"));
        struct http_answer http = {.outcome = HTTP_ANSWERED,
                                   .status = (int)json_int64_or(row, "http", 0),
                                   .body_whole = true,
                                   .body = body,
                                   .body_length = strlen(body),
                                   .retry_after_us = -1};
        kube_decode(&http, KUBE_DECODE_ASK, ret);
        return true;
    }
    return false;
}

enum trial { APPLY, CREATE, DELETE };

static const struct {
    enum trial trial;
    const char *name;
    enum prove_verdict verdict;
} proofs[] = {
    {APPLY, "r01-vct-bigger", PROVE_OTHER_IMMUTABLE},
    {APPLY, "r02-vct-same-value-other-spelling", PROVE_WELL},
    {APPLY, "r03-swap-live-templates-echoed", PROVE_WELL},
    {APPLY, "r04-serviceName", PROVE_OTHER_IMMUTABLE},
    {APPLY, "r04b-serviceName-omitted", PROVE_OTHER_IMMUTABLE},
    {APPLY, "r05-selector-with-labels", PROVE_OTHER_IMMUTABLE},
    {APPLY, "r05b-selector-only", PROVE_OTHER_IMMUTABLE},
    {APPLY, "r06-podManagementPolicy", PROVE_OTHER_IMMUTABLE},
    {APPLY, "r07-all-four", PROVE_OTHER_IMMUTABLE},
    {APPLY, "r07b-swap-of-all-four", PROVE_OTHER_IMMUTABLE},
    {APPLY, "r08b-swap-and-empty-image", PROVE_BAD_MANIFEST},
    {APPLY, "r08c-swap-and-unknown-mount", PROVE_BAD_MANIFEST},
    {APPLY, "r09-vct-reordered", PROVE_OTHER_IMMUTABLE},
    {APPLY, "r10-vct-added", PROVE_OTHER_IMMUTABLE},
    {APPLY, "r14-all-mutable", PROVE_WELL},
    {APPLY, "r14b-onDelete", PROVE_BAD_MANIFEST},
    {APPLY, "r15-other-manager-noforce-vct", PROVE_MANAGERS},
    {APPLY, "r15b-other-manager-force-vct", PROVE_OTHER_IMMUTABLE},
    {APPLY, "r15c-other-manager-noforce-swap", PROVE_WELL},
    {APPLY, "r15d-other-manager-noforce-swap-replicas", PROVE_MANAGERS},
    {APPLY, "r17-vct-size-junk", PROVE_UNREADABLE},
    {APPLY, "r17-vct-size-empty", PROVE_UNREADABLE},
    {APPLY, "r22-unknown-field-strict", PROVE_UNREADABLE},
    {APPLY, "r20-ssa-wrong-uid", PROVE_ANOTHER},
    {APPLY, "r20b-ssa-wrong-rv", PROVE_MOVED},
    {APPLY, "r21-ssa-absent-with-uid", PROVE_MOVED},
    {APPLY, "p4-swap-dry-run", PROVE_WELL},
    {CREATE, "r23-create-proof-other-name", PROVE_WELL},
    /* A template without accessModes, as older servers took it: the swap passes, the create does not. */
    {CREATE, "t8-create-proof-other-name", PROVE_BAD_MANIFEST},
    /* A quota for as many sets as there are: the set itself makes room. */
    {CREATE, "p9-create-proof-other-name-0", PROVE_WELL},
    {CREATE, "s12-patch-only-user-post", PROVE_FORBIDDEN},
    {DELETE, "o02d-delete-dryrun", PROVE_WELL},
    {DELETE, "o02-delete-wrong-uid", PROVE_MOVED},
    {DELETE, "o02b-delete-wrong-rv", PROVE_MOVED},
    {DELETE, "o02g-background-dryrun", PROVE_NOT_ORPHANED},
    {DELETE, "o02h-delete-absent", PROVE_MOVED},
};

static enum prove_verdict judge(enum trial trial, const struct kube_answer *answer)
{
    const char *uid = json_path_str(answer->body, "metadata", "uid", NULL);
    return trial == APPLY    ? prove_apply(answer)
           : trial == CREATE ? prove_create(answer)
                             : prove_delete(answer, uid);
}

/* Acceptance 5, acceptance 7. Trace s7: another delete than the orphaning one is told by its answer. */
static void each_proof_means_the_same_in_both_generations(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(proofs); i++)
        for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
            struct kube_decoded decoded;
            assert_true(decode(versions[v], proofs[i].name, &decoded));
            enum prove_verdict verdict = judge(proofs[i].trial, &decoded.answer);
            if (verdict != proofs[i].verdict)
                fail_msg("%s %s: %s, not %s", versions[v], proofs[i].name, prove_text(verdict),
                         prove_text(proofs[i].verdict));
            kube_decoded_done(&decoded);
        }
}

/* What the releases before 1.37 say can be changed. The releases after write it of each field. */
static const char *const sentences[] = {
    "'replicas'",
    "'replicas' and 'containers'",
    "'replicas', 'template', and 'updateStrategy'",
    "'replicas', 'template', 'updateStrategy' and 'minReadySeconds'",
    "'replicas', 'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'",
    "'replicas', 'ordinals', 'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds'",
    "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'",
};

static enum prove_verdict judge_sentence(const char *sentence, const char *reason)
{
    CLEANUP_FREE char *body = xasprintf(
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Invalid\",\"code\":422,\"message\":\"spec: "
        "Forbidden: updates to statefulset spec for fields other than %s are forbidden\",\"details\":{"
        "\"causes\":[{\"reason\":\"%s\",\"field\":\"spec\"}]}}",
        sentence, reason);
    struct http_answer http = {.outcome = HTTP_ANSWERED,
                               .status = 422,
                               .body_whole = true,
                               .body = body,
                               .body_length = strlen(body),
                               .retry_after_us = -1};
    struct kube_decoded decoded;
    kube_decode(&http, KUBE_DECODE_ASK, &decoded);
    enum prove_verdict verdict = prove_apply(&decoded.answer);
    kube_decoded_done(&decoded);
    return verdict;
}

/* Report 8, report 40: each release has another sentence, and the causes count alone. */
static void the_sentence_of_a_refusal_is_not_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sentences); i++) {
        assert_int_equal(judge_sentence(sentences[i], "FieldValueForbidden"), PROVE_OTHER_IMMUTABLE);
        assert_int_equal(judge_sentence(sentences[i], "FieldValueRequired"), PROVE_BAD_MANIFEST);
    }
}

static void a_delete_that_answers_for_another_set_is_none(void **state)
{
    (void)state;
    struct kube_decoded decoded;
    assert_true(decode("1.36.3", "o02d-delete-dryrun", &decoded));
    assert_int_equal(prove_delete(&decoded.answer, "another"), PROVE_ANOTHER);
    kube_decoded_done(&decoded);
}

/* All that the server names: acceptance 4, acceptance 5. */
static void all_fields_that_the_server_names_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *version, *name, *fields;
    } table[] = {
        {"1.37.2", "r07-all-four",
         "spec.selector, spec.volumeClaimTemplates, spec.serviceName, spec.podManagementPolicy"},
        {"1.36.3", "r07-all-four", "spec"},
        {"1.36.3", "r20-ssa-wrong-uid", "metadata.uid"},
        {"1.36.3", "r08b-swap-and-empty-image", "spec.template.spec.containers[0].image"},
        {"1.36.3", "c03-class-not-expandable", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct kube_decoded decoded;
        assert_true(decode(table[i].version, table[i].name, &decoded));
        CLEANUP_FREE char *fields = prove_fields(&decoded.answer);
        assert_string_equal(fields, table[i].fields);
        kube_decoded_done(&decoded);
    }
}

static void without_an_answer_nobody_knows(void **state)
{
    (void)state;
    struct kube_answer answer = {.outcome = KUBE_NO_ANSWER, .reason = "", .message = ""};
    assert_int_equal(prove_apply(&answer), PROVE_LATER);
    assert_int_equal(probe_judge(&answer), PROBE_LATER);
    answer = (struct kube_answer){.outcome = KUBE_REFUSED, .http = 503, .reason = "", .message = ""};
    assert_int_equal(prove_create(&answer), PROVE_LATER);
    answer.http = 429;
    assert_int_equal(prove_delete(&answer, "u"), PROVE_LATER);
    assert_int_equal(probe_judge(&answer), PROBE_LATER);
    /* A page of a proxy with status 500 is not the server's word on the manifest. */
    answer.http = 500;
    assert_int_equal(prove_apply(&answer), PROVE_LATER);
    /* Nor is what its store says. */
    CLEANUP_JSON cJSON *status = json_new_object();
    json_add_str(status, "kind", "Status");
    answer.body = status;
    answer.message = "rpc error: code = Unavailable desc = error reading from server: EOF";
    assert_int_equal(prove_apply(&answer), PROVE_LATER);
}

static const struct {
    const char *name;
    enum probe_verdict verdict;
    bool only_newer; /* the recorded world of 1.36 was not ready */
} probes[] = {
    {"c01-bound-expandable", PROBE_WELL, false},
    {"c02-unbound", PROBE_NOT_BOUND, false},
    {"c03-class-not-expandable", PROBE_REFUSED, false},
    {"c04-no-class", PROBE_REFUSED, false},
    {"c05-class-empty", PROBE_REFUSED, false},
    {"c06-class-deleted", PROBE_REFUSED, false},
    {"c07-same-size", PROBE_WELL, false},
    {"c08d-junk", PROBE_BAD_SIZE, false},
    {"c09b-rv-guard-stale", PROBE_MOVED, false},
    {"c09d-uid-guard-wrong", PROBE_MOVED, false},
    {"c12-absent", PROBE_MOVED, false},
    {"c15b-terminating", PROBE_WELL, false},
    {"c16-lost", PROBE_NOT_BOUND, true},
    {"c20b-quota-one-too-big", PROBE_REFUSED, false},
    {"c21-limitrange", PROBE_REFUSED, false},
    {"c22-rbac", PROBE_REFUSED, false},
};

/* Acceptance 10. */
static void each_probe_means_the_same_in_both_generations(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(probes); i++)
        for (size_t v = probes[i].only_newer; v < ARRAY_SIZE(versions); v++) {
            struct kube_decoded decoded;
            assert_true(decode(versions[v], probes[i].name, &decoded));
            enum probe_verdict verdict = probe_judge(&decoded.answer);
            if (verdict != probes[i].verdict)
                fail_msg("%s %s: %s, not %s", versions[v], probes[i].name, probe_text(verdict),
                         probe_text(probes[i].verdict));
            kube_decoded_done(&decoded);
        }
}

static int http_of(const char *version, const char *world, const char *size)
{
    CLEANUP_FREE char *name = xasprintf("k2-%s-%s", world, size);
    struct kube_decoded decoded;
    assert_true(decode(version, name, &decoded));
    int http = decoded.answer.http;
    kube_decoded_done(&decoded);
    return http;
}

/* A 403 says nothing; two more dry runs do. Acceptance 8. */
static void two_more_dry_runs_tell_why_a_claim_may_not_grow(void **state)
{
    (void)state;
    static const struct {
        const char *world;
        enum probe_verdict unknown, known; /* whether the class was read */
    } table[] = {
        {"class-not-expandable", PROBE_EITHER, PROBE_QUOTA}, {"quota-exhausted", PROBE_EITHER, PROBE_QUOTA},
        {"quota-some-room", PROBE_QUOTA, PROBE_QUOTA},       {"limitrange", PROBE_QUOTA, PROBE_QUOTA},
        {"rbac", PROBE_PERMISSION, PROBE_PERMISSION},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
            const char *version = versions[v];
            int same = http_of(version, table[i].world, "1Gi");
            int more = http_of(version, table[i].world, "1073741825");
            assert_int_equal(http_of(version, table[i].world, "2Gi"), 403);
            assert_int_equal(probe_why(same, more, false), table[i].unknown);
            assert_int_equal(probe_why(same, more, true), table[i].known);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_proof_means_the_same_in_both_generations),
        cmocka_unit_test(the_sentence_of_a_refusal_is_not_read),
        cmocka_unit_test(a_delete_that_answers_for_another_set_is_none),
        cmocka_unit_test(all_fields_that_the_server_names_are_named),
        cmocka_unit_test(without_an_answer_nobody_knows),
        cmocka_unit_test(each_probe_means_the_same_in_both_generations),
        cmocka_unit_test(two_more_dry_runs_tell_why_a_claim_may_not_grow),
    };
    return cmocka_run_group_tests_name("answers", tests, setup, teardown);
}
