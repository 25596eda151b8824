/* SPDX-License-Identifier: Apache-2.0
 *
 * A running StatefulSet db whose volumes are to grow, on a stage with storage that can: what the tests of
 * `resize converge` share. */
#pragma once

#include "set_stage.h"

#define CLAIMS "/api/v1/namespaces/default/persistentvolumeclaims"
/* More than the storage of class std can give. */
#define TOO_LARGE "999Gi"
#define THREE ",\"replicas\":3"
#define CLASSES "/apis/storage.k8s.io/v1/storageclasses"

/* --- the stage ------------------------------------------------------------------------------------------ */

/* The StatefulSet db, with so many claim templates of this size, as a manifest; the caller's. */
static inline char *manifest_text(int templates, const char *size, const char *more)
{
    struct buf claims = BUF_INIT(65536);
    static const char *const names[] = {"data", "logs", "wal"};
    for (int i = 0; i < templates; i++)
        buf_addf(&claims,
                 "%s{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
                 "\"storageClassName\":"
                 "\"std\",\"resources\":{\"requests\":{\"storage\":\"%s\"}}}}",
                 i > 0 ? "," : "", names[i], size);
    char *text =
        xasprintf("{\"apiVersion\":\"apps/"
                  "v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"db\",\"labels\":{\"app\":\"db\"}},"
                  "\"spec\":{\"serviceName\":\"db\",\"podManagementPolicy\":\"Parallel\",\"selector\":{"
                  "\"matchLabels\":{\"app\":"
                  "\"db\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"db\"}},\"spec\":{"
                  "\"containers\":[{\"name\":\"db\","
                  "\"image\":\"mysql:8.0\",\"env\":[{\"name\":\"A\",\"value\":\"<1&2>\"}]}]}},"
                  "\"volumeClaimTemplates\":[%s]%s}}\n",
                  buf_text(&claims), more);
    buf_done(&claims);
    return text;
}

static inline void write_manifest(const struct stage *stage, int templates, const char *size,
                                  const char *more)
{
    CLEANUP_FREE char *path = xasprintf("%s/db.yaml", stage->folder);
    CLEANUP_FREE char *text = manifest_text(templates, size, more);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static inline bool claims_are_bound(const struct stage *stage)
{
    CLEANUP_JSON cJSON *list = stage_get(stage, CLAIMS);
    const cJSON *claim = NULL;
    cJSON_ArrayForEach (claim, json_get(list, "items"))
        if (!str_equal(json_path_str(claim, "status", "phase", NULL), "Bound"))
            return false;
    return json_get(list, "items") && json_get(list, "items")->child;
}

static inline void kubectl_apply(const struct stage *stage, const char *manager)
{
    CLEANUP_FREE char *path = xasprintf("%s/db.yaml", stage->folder);
    CLEANUP_FREE char *manifest = NULL;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t room = 0;
    assert_true(getline(&manifest, &room, file) > 0);
    fclose(file);
    CLEANUP_FREE char *target = xasprintf(SETS "/db?fieldManager=%s", manager);
    CLEANUP_FREE char *answer = NULL;
    int status = stage_ask(stage, "PATCH", target, "application/apply-patch+yaml", manifest, &answer);
    if (status != 200 && status != 201)
        fail_msg("apply: %d %s", status, answer);
}

static inline int setup_with(void **state, int templates, const char *const *options)
{
    stage_setup(state);
    struct stage *stage = *state;
    CLEANUP_FREE char *audit_log = audit_log_of(stage);
    const char *words[16] = {"--statefulsets", "--volumes", "--kubelet", "ok", "--audit-log", audit_log};
    for (size_t i = 0; options && options[i]; i++)
        words[i + 6] = options[i];
    stage_serve(stage, words);
    stage_write(
        stage, "POST", CLASSES,
        "{'metadata':{'name':'std','annotations':{'kubesim.neo.io/resizer':'max=500Gi'}},'provisioner':'x',"
        "'allowVolumeExpansion':true}");
    stage_write(stage, "POST", CLASSES, "{'metadata':{'name':'fixed'},'provisioner':'x'}");
    write_manifest(stage, templates, "1Gi", THREE);
    kubectl_apply(stage, "me");
    wait_until(stage, "three ready pods", set_is_ready);
    wait_until(stage, "claims are bound", claims_are_bound);
    write_manifest(stage, templates, "2Gi", THREE);
    return 0;
}

static inline char *command(const struct stage *stage, const char *words, const char *more)
{
    return xasprintf("resize %s -f %s/db.yaml%s", words, stage->folder, more);
}

static inline void expect_resize(struct stage *stage, const char *words, const char *more, int exit_code,
                                 const char *output, const char *errors)
{
    CLEANUP_FREE char *line = command(stage, words, more);
    expect_run(stage, line, exit_code, output, errors);
}

#define IN_TIME " --timeout 60s"

/* --- what is seen --------------------------------------------------------------------------------------- */

/* "name request\n" of each claim; the caller's. */
static inline char *claims_text(const struct stage *stage)
{
    CLEANUP_JSON cJSON *list = stage_get(stage, CLAIMS);
    struct buf text = BUF_INIT(65536);
    const cJSON *claim = NULL;
    cJSON_ArrayForEach (claim, json_get(list, "items"))
        buf_addf(&text, "%s %s\n", json_path_str(claim, "metadata", "name", NULL),
                 json_path_str(claim, "spec", "resources", "requests", "storage", NULL));
    return buf_take(&text);
}

/* The set's uid and version; the caller's. */
static inline char *set_text(const struct stage *stage)
{
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/db");
    assert_non_null(set);
    return xasprintf("%s %s", json_path_str(set, "metadata", "uid", NULL),
                     json_path_str(set, "metadata", "resourceVersion", NULL));
}

static inline int count_kept(const struct stage *stage)
{
    CLEANUP_JSON cJSON *list = stage_get(stage, REVISIONS "?labelSelector=apps.neo.io/resize-of");
    return cJSON_GetArraySize(json_get(list, "items"));
}

static inline void assert_converged(struct stage *stage, const char *pods_before, const char *size)
{
    assert_pods(stage, pods_before, "StatefulSet");
    CLEANUP_FREE char *claims = claims_text(stage);
    CLEANUP_JSON cJSON *list = stage_get(stage, CLAIMS);
    const cJSON *claim = NULL;
    cJSON_ArrayForEach (claim, json_get(list, "items"))
        if (!str_equal(json_path_str(claim, "spec", "resources", "requests", "storage", NULL), size))
            fail_msg("not all are %s:\n%s", size, claims);
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/db");
    const cJSON *template = NULL;
    cJSON_ArrayForEach (template, json_path(set, "spec", "volumeClaimTemplates", NULL))
        assert_string_equal(json_path_str(template, "spec", "resources", "requests", "storage", NULL), size);
    assert_null(json_path(set, "metadata", "annotations", "apps.neo.io/step", NULL));
    assert_int_equal(count_kept(stage), 0);
}
