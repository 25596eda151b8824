/* SPDX-License-Identifier: Apache-2.0 */
#include "lab.h"

#define SETS "/apis/apps.neo.io/v1alpha1/namespaces/default/neosets"
#define PODS "/api/v1/namespaces/default/pods"
#define SET SETS "/db"
#define POD_1 PODS "/db-1"
#define MERGE "application/merge-patch+json"
#define JSON_PATCH "application/json-patch+json"
#define IMAGE "/spec/template/spec/containers/0/image"

static const char set_body[] =
    "{\"apiVersion\":\"apps.neo.io/v1alpha1\",\"kind\":\"NeoSet\",\"metadata\":{\"name\":\"db\"},\"spec\":{"
    "\"replicas\":2,\"serviceName\":\"db\",\"selector\":{\"matchLabels\":{\"app\":\"db\"}},"
    "\"template\":{\"metadata\":{\"labels\":{\"app\":\"db\"}},\"spec\":{\"terminationGracePeriodSeconds\":1,"
    "\"containers\":[{\"name\":\"db\",\"image\":\"db:v1\"}]}},"
    "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"data\"},\"spec\":{\"accessModes\":["
    "\"ReadWriteOnce\"],"
    "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}]}}";

/* --- what is waited for
 * ----------------------------------------------------------------------------------------- */

static int64_t status_number(const cJSON *set, const char *key)
{
    return json_int64_or(json_get(set, "status"), key, -1);
}

static bool is_at(const cJSON *set, const char *phase, const char *other_phase)
{
    int64_t replicas = json_int64_or(json_get(set, "spec"), "replicas", -1);
    const char *now = json_path_str(set, "status", "phase", NULL);
    return status_number(set, "observedGeneration") ==
               json_int64_or(json_get(set, "metadata"), "generation", -2) &&
           (str_equal(now, phase) || str_equal(now, other_phase)) &&
           status_number(set, "replicas") == replicas && status_number(set, "readyReplicas") == replicas;
}

/* All pods run the newest template, and nothing is to be done. */
static bool is_settled(const cJSON *set)
{
    const char *current = json_path_str(set, "status", "currentRevisionName", NULL);
    const char *target = json_path_str(set, "status", "updateRevisionName", NULL);
    return is_at(set, "Completed", "Idle") && current && str_equal(current, target) &&
           status_number(set, "updatedReplicas") == status_number(set, "replicas");
}

static bool is_paused_and_ready(const cJSON *set)
{
    return is_at(set, "Paused", NULL);
}

static bool runs_version_2(const cJSON *pod)
{
    const cJSON *containers = json_path(pod, "spec", "containers", NULL);
    return containers && str_equal(json_str(containers->child, "image"), "db:v2");
}

static bool belongs_to_the_set(const cJSON *pod)
{
    const cJSON *owners = json_path(pod, "metadata", "ownerReferences", NULL);
    return owners && owners->child && str_equal(json_str(owners->child, "kind"), "NeoSet");
}

static bool belongs_to_nobody(const cJSON *pod)
{
    return pod && !belongs_to_the_set(pod);
}

/* --- the stories --------------------------------------------------------------------------------------- */

/* What is asked for, and what is then waited for. */
#define CREATE_SET .method = "POST", .path = SETS, .content_type = "application/json", .body = set_body
#define PATCH_SET(text) .method = "PATCH", .path = SET, .content_type = JSON_PATCH, .body = (text)
#define SET_IMAGE(image) PATCH_SET("[{\"op\":\"replace\",\"path\":\"" IMAGE "\",\"value\":\"" image "\"}]")
#define MERGE_INTO(object, text) .method = "PATCH", .path = (object), .content_type = MERGE, .body = (text)
#define UNTIL(object, state) .look_at = (object), .is_over = (state)

/* Every kind of step but `block`, with one canary's window of ten seconds. */
static const struct stage whole[] = {
    {.what = "create", CREATE_SET, UNTIL(SET, is_settled)},
    {.what = "roll to v2, up to the canary", SET_IMAGE("db:v2"), UNTIL(POD_1, runs_version_2)},
    {.what = "undo", SET_IMAGE("db:v1"), UNTIL(SET, is_settled)},
    {.what = "a pod's label is taken away: release",
     MERGE_INTO(POD_1, "{\"metadata\":{\"labels\":{\"app\":\"other\"}}}"),
     UNTIL(POD_1, belongs_to_nobody)},
    {.what = "and given back: adopt",
     MERGE_INTO(POD_1, "{\"metadata\":{\"labels\":{\"app\":\"db\"}}}"),
     UNTIL(POD_1, belongs_to_the_set)},
    {.what = "pause, and scale to three",
     MERGE_INTO(SET, "{\"spec\":{\"replicas\":3,\"updateStrategy\":{\"pause\":true}}}"),
     UNTIL(SET, is_paused_and_ready)},
    {.what = "resume, and scale to one",
     MERGE_INTO(SET, "{\"spec\":{\"replicas\":1,\"updateStrategy\":{\"pause\":false}}}"),
     UNTIL(SET, is_settled)},
    {.what = "another template: re-create",
     PATCH_SET("[{\"op\":\"add\",\"path\":\"/spec/template/spec/containers/0/env\","
               "\"value\":[{\"name\":\"A\",\"value\":\"1\"}]}]"),
     UNTIL(SET, is_settled)},
};
const struct story story_whole = {whole, ARRAY_SIZE(whole)};

/* The patch to v2 is journaled, the controller dies before it leaves, and it is not wanted any more: a block.
 */
static const struct stage not_wanted[] = {
    {.what = "create", CREATE_SET, UNTIL(SET, is_settled)},
    {.what = "roll to v2, up to the death", SET_IMAGE("db:v2"), .awaits_crash = true},
    {.what = "undo while it is dead", SET_IMAGE("db:v1"), UNTIL(SET, is_settled)},
};
const struct story story_not_wanted_any_more = {not_wanted, ARRAY_SIZE(not_wanted)};
