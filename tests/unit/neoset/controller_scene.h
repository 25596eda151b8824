/* SPDX-License-Identifier: Apache-2.0
 *
 * A world for tests of the whole controller: kubesim with its kubelet, one controller with its journal, and a
 * person, in virtual time. */
#pragma once

#include "neoset/controller.h"

#include "../../lib/journal_fixture.h"
#include "../../lib/sim_server.h"

#include "base/time_text.h"
#include "control/gateway.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define SET_PATH "/apis/apps.neo.io/v1alpha1/namespaces/default/neosets/mysql"
#define SETS_PATH "/apis/apps.neo.io/v1alpha1/namespaces/default/neosets"
#define PODS_PATH "/api/v1/namespaces/default/pods"
#define LEASE_PATH "/apis/coordination.k8s.io/v1/namespaces/neo/leases/neoset"

/* One program: what a process of the world runs. */
struct program {
    struct scene *scene;
    struct env *env;
    struct kube_client *client;
    struct journal *journal;
    struct controller *controller;
    int ended; /* times */
    int exit_code;
    bool stopped;
    char said[256];
};

struct scene {
    struct journal_fixture files; /* a folder, and the world's first process */
    struct env *world;
    struct sim_server *server;
    struct program program;
    bool with_lease;
    bool once;
    bool server_is_away; /* for a route that a test makes */
};

/* --- programs ------------------------------------------------------------------------------------------- */

static inline void report(void *context, enum report_level level, const char *object, const char *sentence)
{
    struct program *program = context;
    if (getenv("NEOSET_TEST_LOG"))
        fprintf(stderr, "%10.3f %d %s: %s\n", (double)env_boot_us(program->env) / 1e6, level,
                object ? object : "-", sentence);
    if (level >= REPORT_WARNING)
        snprintf(program->said, sizeof(program->said), "%s", sentence);
}

static inline void ended(void *context, int exit_code, const char *sentence)
{
    struct program *program = context;
    program->ended++;
    program->exit_code = exit_code;
    snprintf(program->said, sizeof(program->said), "%s", sentence);
}

static inline void start_program(struct scene *scene, struct program *program, const char *journal_path,
                                 const char *identity)
{
    *program = (struct program){.scene = scene, .env = env_sim_process(scene->world)};
    struct kube_config *config = xcalloc(1, sizeof(*config));
    config->server.base_url = xstrdup("http://sim");
    config->namespace = xstrdup("default");
    program->client = kube_client_make(program->env, config);
    CLEANUP_ERROR struct error *err = NULL;
    if (journal_open(program->env,
                     &(struct journal_options){.path = journal_path, .identity = identity, .version = "test"},
                     &program->journal, &err) < 0)
        fail_msg("%s", error_text(err));
    program->controller = controller_start(&(struct controller_options){
        .env = program->env,
        .client = program->client,
        .journal = program->journal,
        .lease_namespace = scene->with_lease ? "neo" : NULL,
        .lease_name = "neoset",
        .identity = identity,
        .resize_abandoned_us = 120 * US_PER_S,
        .once = scene->once,
        .report = report,
        .ended = ended,
        .context = program,
    });
}

/* kill -9: nothing more is written; what left still arrives. */
static inline void kill_program(struct program *program)
{
    controller_free(program->controller);
    kube_client_free(program->client);
    journal_close(program->journal, NULL);
    env_free(program->env);
    program->controller = NULL;
}

static inline void note_stopped(void *context)
{
    struct program *program = context;
    program->stopped = true;
}

/* SIGTERM. */
static inline void stop_program(struct scene *scene, struct program *program)
{
    controller_stop(program->controller, note_stopped, program);
    env_sim_run_for(scene->world, 15 * US_PER_S);
    assert_true(program->stopped);
    controller_free(program->controller);
    kube_client_free(program->client);
    journal_close(program->journal, "stopped as asked");
    env_free(program->env);
    program->controller = NULL;
}

/* --- the world ------------------------------------------------------------------------------------------ */

static inline void latency(void *context, const struct env_sim_call *call, struct env_sim_route *route)
{
    (void)context;
    (void)call;
    route->request_us = 500;
    route->answer_us = 500;
}

static inline int setup(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    journal_fixture_setup(&scene->files);
    scene->world = scene->files.env;
    env_sim_on_route(scene->world, latency, NULL);
    scene->server = sim_server_make(scene->world, &(struct kubelet_options){.seed = 1});
    sim_server_apply_file(scene->server, "deploy/crd.yaml");
    assert_int_equal(
        sim_server_ask(scene->server, "POST", "/api/v1/namespaces", "application/json",
                       "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"neo\"}}",
                       NULL),
        201);
    *state = scene;
    return 0;
}

static inline int teardown(void **state)
{
    struct scene *scene = *state;
    if (scene->program.controller)
        kill_program(&scene->program);
    sim_server_free(scene->server);
    journal_fixture_teardown(&scene->files);
    free(scene);
    return 0;
}

static inline void start(struct scene *scene)
{
    start_program(scene, &scene->program, scene->files.path, "pod-0");
}

static inline void pass(struct scene *scene, int64_t duration_us)
{
    env_sim_run_for(scene->world, duration_us);
}

static inline void create_set(struct scene *scene, int replicas, int budget, const char *image)
{
    CLEANUP_FREE char *text = xasprintf(
        "{\"apiVersion\":\"apps.neo.io/"
        "v1alpha1\",\"kind\":\"NeoSet\",\"metadata\":{\"name\":\"mysql\"},\"spec\":{"
        "\"replicas\":%d,\"serviceName\":\"mysql\",\"selector\":{\"matchLabels\":{\"app\":\"mysql\"}},"
        "\"podManagementPolicy\":\"Parallel\","
        "\"template\":{\"metadata\":{\"labels\":{\"app\":\"mysql\"}},\"spec\":{\"containers\":[{\"name\":"
        "\"mysql\","
        "\"image\":\"%s\",\"readinessProbe\":{\"tcpSocket\":{\"port\":3306}}}]}},"
        "\"updateStrategy\":{\"maxUnavailable\":%d}}}",
        replicas, image, budget);
    CLEANUP_JSON cJSON *answer = NULL;
    int status = sim_server_ask(scene->server, "POST", SETS_PATH, "application/json", text, &answer);
    if (status != 201)
        fail_msg("POST of the set: %d %s", status, json_str(answer, "message"));
}

static inline void set_image(struct scene *scene, const char *image)
{
    CLEANUP_FREE char *text = xasprintf(
        "[{\"op\":\"replace\",\"path\":\"/spec/template/spec/containers/0/image\",\"value\":\"%s\"}]", image);
    assert_int_equal(
        sim_server_ask(scene->server, "PATCH", SET_PATH, "application/json-patch+json", text, NULL), 200);
}

/* Somebody else merges text into the object at path. */
static inline void merge(struct scene *scene, const char *path, const char *text)
{
    assert_int_equal(sim_server_ask(scene->server, "PATCH", path, "application/merge-patch+json", text, NULL),
                     200);
}

static inline void patch_set(struct scene *scene, const char *text)
{
    merge(scene, SET_PATH, text);
}

/* --- what is seen --------------------------------------------------------------------------------------- */

static inline bool set_has(struct scene *scene, const char *phase, const char *current_image, int updated)
{
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    const cJSON *status = json_get(set, "status");
    return str_equal(json_str(status, "phase"), phase) &&
           str_equal(json_str(status, "currentImage"), current_image) &&
           json_int64_or(status, "updatedReplicas", -1) == updated;
}

static inline bool set_condition_is(struct scene *scene, const char *type, const char *status)
{
    CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
    const cJSON *condition = NULL;
    cJSON_ArrayForEach (condition, json_path(set, "status", "conditions", NULL)) {
        if (str_equal(json_str(condition, "type"), type))
            return str_equal(json_str(condition, "status"), status);
    }
    return false;
}

static inline void wait_for(struct scene *scene, const char *phase, const char *current_image, int updated,
                            int64_t limit_us)
{
    int64_t end_us = env_boot_us(scene->world) + limit_us;
    while (!set_has(scene, phase, current_image, updated)) {
        if (env_boot_us(scene->world) >= end_us) {
            CLEANUP_JSON cJSON *set = sim_server_get(scene->server, SET_PATH);
            const cJSON *status = json_get(set, "status");
            CLEANUP_FREE char *text = status ? json_print(status) : xstrdup("no status");
            fail_msg("not %s with %s and %d updated: %s", phase, current_image, updated, text);
        }
        pass(scene, 50 * US_PER_MS);
    }
}

/* A set of mysql:8.0 comes up under a controller, until there is nothing to do. */
static inline void start_idle_set(struct scene *scene, int replicas, int budget)
{
    create_set(scene, replicas, budget, "mysql:8.0");
    start(scene);
    wait_for(scene, "Idle", "mysql:8.0", replicas, 60 * US_PER_S);
}

/* Every pod of the set restarted so many times. */
static inline void assert_restarts(struct scene *scene, int replicas, int restarts)
{
    for (int i = 0; i < replicas; i++) {
        CLEANUP_FREE char *path = xasprintf(PODS_PATH "/mysql-%d", i);
        CLEANUP_JSON cJSON *pod = sim_server_get(scene->server, path);
        const cJSON *containers = json_path(pod, "status", "containerStatuses", NULL);
        assert_non_null(containers);
        assert_int_equal(json_int64_or(containers->child, "restartCount", -1), restarts);
    }
}

static inline const char *sql(struct scene *scene, const char *text)
{
    return journal_fixture_sql(scene->files.path, text);
}

/* The server's log is the oracle: every accepted write that is not exempt has an earlier intent, none twice;
 * and every `applied` with an answer is in its log. */
static inline void assert_history_agrees(struct scene *scene)
{
    size_t steps = 0;
    for (size_t i = 0; i < sim_server_write_count(scene->server); i++) {
        const struct sim_write *write = sim_server_write(scene->server, i);
        if (!str_starts_with(write->audit_id, "neo-") || str_starts_with(write->audit_id, "neo-x-"))
            continue;
        steps++;
        CLEANUP_FREE char *key = xstrdup(write->audit_id + 4);
        *strrchr(key, '-') = '\0';
        const char *seq = strrchr(key, '-') + 1;
        CLEANUP_FREE char *query =
            xasprintf("SELECT count(*) FROM entry WHERE kind = 'intent' AND seq = %s AND at_us <= %lld", seq,
                      (long long)write->at_us);
        if (strcmp(sql(scene, query), "1") != 0)
            fail_msg("%s %s has no earlier intent (%s)", write->verb, write->path, write->audit_id);
        for (size_t k = 0; k < i; k++) {
            const char *other = sim_server_write(scene->server, k)->audit_id;
            if (strncmp(other, write->audit_id, strlen(key) + 5) == 0)
                fail_msg("step %s was accepted twice: %s and %s", key, other, write->audit_id);
        }
    }
    CLEANUP_FREE char *count = xasprintf("%zu", steps);
    CLEANUP_FREE char *applied =
        xstrdup(sql(scene, "SELECT count(*) FROM entry WHERE kind = 'applied' AND action IS NULL"));
    /* A delete that was accepted and not answered is overtaken when the pod is gone. */
    CLEANUP_FREE char *doubtful = xstrdup(sql(scene, "SELECT count(*) FROM entry WHERE kind = 'overtaken'"));
    long accepted = strtol(count, NULL, 10), known = strtol(applied, NULL, 10);
    if (accepted < known || accepted > known + strtol(doubtful, NULL, 10))
        fail_msg("%ld writes were accepted, %ld are applied", accepted, known);
}

static inline void assert_nothing_is_open(struct scene *scene)
{
    assert_string_equal(sql(scene, "SELECT count(*) FROM open_step"), "0");
    assert_string_equal(sql(scene, "SELECT count(*) FROM open_wait"), "0");
    assert_string_equal(sql(scene, "SELECT count(*) FROM operation WHERE ended_us IS NULL"), "0");
}

#define scene_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

/* Hundreds of journals: what the disk really keeps does not matter here. */
static inline void use_memory_for_journals(void)
{
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
}
