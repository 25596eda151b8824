/* SPDX-License-Identifier: Apache-2.0
 *
 * neosetctl before a kubesim that its test makes, with NeoSets to look at. */
#pragma once

#include "stage.h"

/* --- the server
 * --------------------------------------------------------------------------------------------- */

static inline void start_server(struct stage *stage, const char *faults, bool has_definition)
{
    const char *options[8] = {NULL};
    size_t count = 0;
    if (has_definition) {
        options[count++] = "--crd";
        options[count++] = "deploy/crd.yaml";
    }
    if (faults) {
        options[count++] = "--faults";
        options[count++] = faults;
    }
    stage_serve(stage, options);
}

static inline int request(const struct stage *stage, const char *method, const char *path, const char *type,
                          const char *body)
{
    return stage_ask(stage, method, path, type, body, NULL);
}

#define SETS "/apis/apps.neo.io/v1alpha1/namespaces/default/neosets"

static inline void make_set(const struct stage *stage, const char *namespace, const char *name)
{
    if (strcmp(namespace, "default") != 0) {
        CLEANUP_FREE char *object = xasprintf(
            "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"%s\"}}", namespace);
        assert_int_equal(request(stage, "POST", "/api/v1/namespaces", "application/json", object), 201);
    }
    CLEANUP_FREE char *path = xasprintf("/apis/apps.neo.io/v1alpha1/namespaces/%s/neosets", namespace);
    CLEANUP_FREE char *body = xasprintf(
        "{\"apiVersion\":\"apps.neo.io/"
        "v1alpha1\",\"kind\":\"NeoSet\",\"metadata\":{\"name\":\"%s\"},\"spec\":{"
        "\"replicas\":2,\"serviceName\":\"x\",\"selector\":{\"matchLabels\":{\"app\":\"x\"}},\"template\":{"
        "\"metadata\":{\"labels\":{\"app\":\"x\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i:"
        "1\"}]}}}}",
        name);
    assert_int_equal(request(stage, "POST", path, "application/json", body), 201);
}

/* The controller, until there is nothing to do for it. */
static inline void converge(struct stage *stage)
{
    CLEANUP_FREE char *line =
        xasprintf("--once --no-lease --listen none --journal %s/controller.db --kubeconfig %s", stage->folder,
                  stage->kubeconfig);
    struct program_run controller = {0};
    program_run(&controller, "neoset-controller", line);
    if (controller.exit_code != 0)
        fail_msg("%s", controller.errors);
    program_run_done(&controller);
}

/* A set of no pods with two revisions, i:1 (stable) and i:2 (the target). */
static inline void make_two_revisions(struct stage *stage)
{
    make_set(stage, "default", "mysql");
    stage_write(stage, "PATCH", SETS "/mysql", "{'spec':{'replicas':0}}");
    converge(stage);
    stage_write(
        stage, "PATCH", SETS "/mysql",
        "{'spec':{'template':{'metadata':{'annotations':{'a':'1'}},'spec':{'containers':[{'name':'c','image':"
        "'i:2'}]}}}}");
    converge(stage);
}

#define stage_test(function) cmocka_unit_test_setup_teardown(function, stage_setup, stage_teardown)
