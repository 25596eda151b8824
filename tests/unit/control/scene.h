/* SPDX-License-Identifier: Apache-2.0
 *
 * A gateway above a journal in a folder of its own and a server that the test plays by hand, in virtual time.
 */
#pragma once

#include "control/gateway.h"

#include "../../lib/env_sim.h"
#include "../../lib/journal_fixture.h"

#include "base/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { CALLS_MAX = 512, TOLD_MAX = 64 };

struct told {
    enum journal_kind kind;
    int http;
    bool has_object;
    char reason[64];
};

struct scene {
    struct journal_fixture journal;
    struct env *env;
    struct kube_client *client;
    struct gateway *gateway;
    struct env_sim_call *calls[CALLS_MAX];
    size_t arrived;
    size_t taken;
    struct told told[TOLD_MAX]; /* what done was called with */
    size_t told_count;
    int woken;
    int resumed;
    bool leads;
    bool refuse; /* the network refuses connections */
    bool recovered;
    char key[128];   /* of the step that scene_send() sent last */
    char sent[1024]; /* and its body */
};

/* --- the server ----------------------------------------------------------------------------------------- */

static inline void scene_arrive(void *context, struct env_sim_call *call)
{
    struct scene *scene = context;
    assert_true(scene->arrived < CALLS_MAX);
    scene->calls[scene->arrived++] = call;
}

static inline void scene_route(void *context, const struct env_sim_call *call, struct env_sim_route *route)
{
    const struct scene *scene = context;
    (void)call;
    if (scene->refuse)
        route->fate = ENV_SIM_REFUSE;
}

/* The next request, which must come within ten minutes of the world. */
static inline struct env_sim_call *scene_next(struct scene *scene)
{
    int64_t end_us = env_boot_us(scene->env) + 600 * US_PER_S;
    while (scene->taken == scene->arrived) {
        assert_true(env_sim_next_us(scene->env) <= end_us);
        assert_true(env_sim_step(scene->env));
    }
    return scene->calls[scene->taken++];
}

static inline struct env_sim_call *scene_expect(struct scene *scene, const char *method,
                                                const char *path_part)
{
    struct env_sim_call *call = scene_next(scene);
    assert_string_equal(call->method, method);
    if (path_part && !strstr(call->path, path_part))
        fail_msg("the path is %s, not %s", call->path, path_part);
    return call;
}

static inline void scene_settle(struct scene *scene)
{
    env_sim_run_for(scene->env, 0);
}

static inline void scene_expect_none_for(struct scene *scene, int64_t duration_us)
{
    env_sim_run_for(scene->env, duration_us);
    if (scene->taken != scene->arrived)
        fail_msg("%s %s came", scene->calls[scene->taken]->method, scene->calls[scene->taken]->path);
}

/* What an API server answers to a write of this object, and to a finished delete. */
#define OBJECT(kind, namespace, name, uid)                                                                   \
    "{\"kind\":\"" kind "\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name                            \
    "\",\"namespace\":\"" namespace "\",\"uid\":\"" uid "\",\"resourceVersion\":\"11\"}}"
#define SUCCESS(name, uid)                                                                                   \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\",\"details\":{"        \
    "\"name\":\"" name "\",\"kind\":\"pods\",\"uid\":\"" uid "\"}}"
#define STATUS_OF(code, reason)                                                                              \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\",\"reason\":"        \
    "\"" reason "\",\"code\":" #code "}"
#define NOT_FOUND STATUS_OF(404, "NotFound")
#define CONFLICT STATUS_OF(409, "Conflict")
#define WRONG_UID                                                                                            \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\",\"reason\":"        \
    "\"Invalid\","                                                                                           \
    "\"details\":{\"causes\":[{\"reason\":\"FieldValueInvalid\",\"message\":\"field is "                     \
    "immutable\",\"field\":"                                                                                 \
    "\"metadata.uid\"}]},\"code\":422}"

static inline void scene_answer(struct scene *scene, struct env_sim_call *call, int status, const char *body)
{
    env_sim_http_answer(call, status, NULL, 0, body, strlen(body));
    scene_settle(scene);
}

/* The next request reads, and this is there. */
static inline void scene_show(struct scene *scene, const char *body)
{
    scene_answer(scene, scene_expect(scene, "GET", NULL), 200, body);
}

/* The next request reads, and nothing is there. */
static inline void scene_show_none(struct scene *scene)
{
    scene_answer(scene, scene_expect(scene, "GET", NULL), 404, NOT_FOUND);
}

static inline void scene_cut(struct scene *scene, struct env_sim_call *call)
{
    env_sim_http_cut(call);
    scene_settle(scene);
}

/* The status line and these bytes come, then the connection dies. */
static inline void scene_cut_after(struct scene *scene, struct env_sim_call *call, int status,
                                   const char *bytes)
{
    env_sim_http_begin(call, status, NULL, 0);
    env_sim_http_data(call, bytes, strlen(bytes));
    scene_cut(scene, call);
}

/* A pod as the server shows it; key NULL: without our annotation. Static storage. */
static inline const char *pod_text(const char *uid, const char *version, const char *key)
{
    static char text[1024];
    snprintf(text, sizeof(text),
             "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"mysql-4\",\"namespace\":\"db\",\"uid\":\"%s\","
             "\"resourceVersion\":"
             "\"%s\",\"annotations\":{%s%s%s}}}",
             uid, version, key ? "\"apps.neo.io/step\":\"" : "", key ? key : "", key ? "\"" : "");
    return text;
}

/* --- who asks ------------------------------------------------------------------------------------------- */

static inline void scene_told(void *context, const struct step_outcome *outcome)
{
    struct scene *scene = context;
    assert_true(scene->told_count < TOLD_MAX);
    struct told *told = &scene->told[scene->told_count++];
    told->kind = outcome->kind;
    told->http = outcome->http;
    told->has_object = outcome->object != NULL;
    snprintf(told->reason, sizeof(told->reason), "%s", outcome->reason);
}

static inline void scene_woken(void *context, enum kube_resource resource, const char *namespace,
                               const char *name)
{
    struct scene *scene = context;
    assert_int_equal(resource, KUBE_NEOSET);
    assert_string_equal(namespace, "db");
    assert_string_equal(name, "mysql");
    scene->woken++;
}

static inline void scene_resumed(void *context)
{
    struct scene *scene = context;
    scene->resumed++;
}

static inline bool scene_leads(void *context)
{
    const struct scene *scene = context;
    return scene->leads;
}

static inline void scene_recovered(void *context)
{
    struct scene *scene = context;
    scene->recovered = true;
}

static inline void scene_health(void *context)
{
    struct scene *scene = context;
    if (scene->gateway)
        gateway_health_changed(scene->gateway);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static inline void scene_start(struct scene *scene)
{
    struct kube_config *config = xcalloc(1, sizeof(*config));
    config->server.base_url = xstrdup("http://sim");
    config->namespace = xstrdup("default");
    scene->client = kube_client_make(scene->env, config);
    journal_fixture_open(&scene->journal);
    scene->gateway = gateway_make(&(struct gateway_options){.env = scene->env,
                                                            .client = scene->client,
                                                            .journal = scene->journal.journal,
                                                            .field_manager = "neoset",
                                                            .may_write = scene_leads,
                                                            .resume = scene_resumed,
                                                            .wake = scene_woken,
                                                            .context = scene});
    journal_on_health(scene->journal.journal, scene_health, scene);
}

static inline void scene_crash(struct scene *scene)
{
    gateway_free(scene->gateway);
    scene->gateway = NULL;
    kube_client_free(scene->client);
    journal_fixture_crash(&scene->journal);
}

/* kill -9, and a new process that recovers what is open. */
static inline void scene_restart(struct scene *scene)
{
    scene_crash(scene);
    scene->told_count = 0;
    scene->woken = 0;
    scene->recovered = false;
    scene_start(scene);
    gateway_recover(scene->gateway, false, scene_recovered, scene);
    scene_settle(scene);
}

static inline int scene_setup(void **state)
{
    static const struct env_sim_http_ops ops = {.request = scene_arrive};
    struct scene *scene = xcalloc(1, sizeof(*scene));
    journal_fixture_setup(&scene->journal);
    scene->env = scene->journal.env;
    scene->leads = true;
    env_sim_http(scene->env, &ops, scene);
    env_sim_on_route(scene->env, scene_route, scene);
    scene_start(scene);
    *state = scene;
    return 0;
}

static inline int scene_teardown(void **state)
{
    struct scene *scene = *state;
    gateway_free(scene->gateway);
    kube_client_free(scene->client);
    journal_fixture_teardown(&scene->journal);
    free(scene);
    return 0;
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static inline void scene_of_rollout(struct step_request *request)
{
    request->operation_kind = xstrdup("rollout");
    request->operation_resource = KUBE_NEOSET;
    request->operation_namespace = xstrdup("db");
    request->operation_name = xstrdup("mysql");
    request->come_from = xstrdup("mysql-1");
    request->go_to = xstrdup("mysql-2");
    request->reason = xasprintf("%s: a step", request->name);
}

/* An update of a pod at version 10 of uid u1. */
static inline struct step_request *scene_patch(const char *pod, const char *image)
{
    struct step_request *request = step_request_make(STEP_UPDATE_IN_PLACE, KUBE_POD, "db", pod);
    request->uid = xstrdup("u1");
    request->version = xstrdup("10");
    request->body = json_new_object();
    json_add_str(json_add_object(request->body, "spec"), "image", image);
    request->fingerprint = xasprintf("update %s", image);
    request->lowers_availability = true;
    scene_of_rollout(request);
    return request;
}

static inline struct step_request *scene_create(const char *pod, const char *image)
{
    struct step_request *request = step_request_make(STEP_CREATE_POD, KUBE_POD, "db", pod);
    request->body = json_new_object();
    json_add_str(json_add_object(request->body, "metadata"), "name", pod);
    json_add_str(json_add_object(request->body, "spec"), "image", image);
    request->fingerprint = xasprintf("create %s", pod);
    scene_of_rollout(request);
    return request;
}

static inline struct step_request *scene_gate(const char *pod)
{
    struct step_request *request = step_request_make(STEP_GATE, KUBE_POD, "db", pod);
    request->subresource = xstrdup("status");
    request->uid = xstrdup("u1");
    request->version = xstrdup("10");
    request->body = json_new_object();
    cJSON *conditions = json_add_array(json_add_object(request->body, "status"), "conditions");
    cJSON *condition = json_new_object();
    json_add_str(condition, "type", STEP_GATE_CONDITION);
    json_add_str(condition, "status", "False");
    json_append_item(conditions, condition);
    request->fingerprint = xstrdup("gate");
    scene_of_rollout(request);
    return request;
}

static inline struct step_request *scene_delete(const char *pod)
{
    struct step_request *request = step_request_make(STEP_DELETE, KUBE_POD, "db", pod);
    request->uid = xstrdup("u1");
    request->version = xstrdup("10");
    request->fingerprint = xstrdup("delete");
    request->lowers_availability = true;
    scene_of_rollout(request);
    return request;
}

static inline int scene_submit(struct scene *scene, struct step_request *request)
{
    int result = gateway_submit(scene->gateway, request, scene_told, scene);
    journal_commit(scene->journal.journal);
    return result;
}

static inline void scene_settle_unwanted(struct scene *scene)
{
    gateway_settle_unwanted(scene->gateway, KUBE_NEOSET, "db", "mysql");
    journal_commit(scene->journal.journal);
}

/* The step's key is in the header Audit-ID: neo-KEY-ATTEMPT. Static storage. */
static inline const char *key_of_call(const struct env_sim_call *call)
{
    static char key[128];
    const char *audit_id = env_sim_http_header(call, "Audit-ID");
    assert_non_null(audit_id);
    assert_true(str_starts_with(audit_id, "neo-"));
    snprintf(key, sizeof(key), "%s", audit_id + 4);
    *strrchr(key, '-') = '\0';
    return key;
}

static inline void assert_told(const struct scene *scene, size_t index, enum journal_kind kind)
{
    if (index >= scene->told_count)
        fail_msg("done was called %zu times only", scene->told_count);
    assert_string_equal(journal_kind_text(scene->told[index].kind), journal_kind_text(kind));
}

/* The kinds of all entries but the journal's own, in order: "begin intent applied". */
static inline void assert_history(struct scene *scene, const char *wanted)
{
    journal_fixture_settle(&scene->journal);
    const char *kinds = journal_fixture_sql(
        scene->journal.path,
        "SELECT coalesce(group_concat(kind, ' '), '') FROM (SELECT kind FROM entry WHERE kind NOT IN "
        "('start', 'epoch', 'stop', 'checkpoint', 'note') ORDER BY seq)");
    assert_string_equal(kinds, wanted);
}

static inline const char *scene_sql(struct scene *scene, const char *sql)
{
    journal_fixture_settle(&scene->journal);
    return journal_fixture_sql(scene->journal.path, sql);
}

/* A commit takes two seconds. */
static inline int64_t scene_slow_disk(void *context)
{
    (void)context;
    return 2 * US_PER_S;
}

/* Submits the request, which arrives; scene->key and scene->sent are its. */
static inline struct env_sim_call *scene_send(struct scene *scene, struct step_request *request)
{
    const char *method = step_kind_info(request->kind)->method;
    assert_int_equal(scene_submit(scene, request), 0);
    struct env_sim_call *call = scene_expect(scene, method, NULL);
    snprintf(scene->key, sizeof(scene->key), "%s", key_of_call(call));
    snprintf(scene->sent, sizeof(scene->sent), "%.*s", (int)call->body_length, call->body);
    return call;
}

/* It brings the bytes that scene_send() sent. */
static inline void assert_sent_again(const struct scene *scene, const struct env_sim_call *call)
{
    assert_int_equal(call->body_length, strlen(scene->sent));
    assert_memory_equal(call->body, scene->sent, call->body_length);
}

/* Leaves an update of mysql-4 in doubt and open. */
static inline void scene_leave_open(struct scene *scene)
{
    scene_cut(scene, scene_send(scene, scene_patch("mysql-4", "b")));
    scene_show(scene, pod_text("u1", "10", NULL));
    assert_int_equal(scene->woken, 1);
}

#define scene_test(function) cmocka_unit_test_setup_teardown(function, scene_setup, scene_teardown)
