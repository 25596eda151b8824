/* SPDX-License-Identifier: Apache-2.0
 *
 * A kubesim with a clock that stands still and a random that repeats, and a client of it that reads like
 * prose: ask(world, "POST", PODS, body) sends, the answer stays in the world until the next one. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/time_text.h"
#include "kubesim/kubesim.h"

#define PODS "/api/v1/namespaces/default/pods"
#define CLAIMS "/api/v1/namespaces/default/persistentvolumeclaims"
#define CONFIGMAPS "/api/v1/namespaces/default/configmaps"
#define EVENTS "/api/v1/namespaces/default/events"
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"
#define REVISIONS "/apis/apps/v1/namespaces/default/controllerrevisions"
#define SETS "/apis/apps/v1/namespaces/default/statefulsets"
#define CLASSES "/apis/storage.k8s.io/v1/storageclasses"
#define DEFINITIONS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define WIDGETS "/apis/ex.io/v1/namespaces/default/widgets"

#define MERGE "application/merge-patch+json"
#define STRATEGIC "application/strategic-merge-patch+json"
#define JSON_PATCH "application/json-patch+json"
#define APPLY "application/apply-patch+yaml"

struct world {
    struct kubesim *sim;
    int64_t now_us;
    uint64_t seed;
    struct kubesim_response response; /* the last one */
    cJSON *body;                      /* its body, or NULL */
    struct buf audit;
};

static inline int64_t world_now_us(void *context)
{
    return ((struct world *)context)->now_us;
}

static inline void world_random(void *context, void *bytes, size_t length)
{
    struct world *world = context;
    for (size_t i = 0; i < length; i++) {
        world->seed = world->seed * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)bytes)[i] = (uint8_t)(world->seed >> 56);
    }
}

static inline void world_audit(void *context, const char *line, size_t length)
{
    struct world *world = context;
    buf_add(&world->audit, line, length);
    buf_add_char(&world->audit, '\n');
}

static inline struct kubesim_options world_options(struct world *world)
{
    return (struct kubesim_options){
        .now_us = world_now_us, .random = world_random, .audit = world_audit, .context = world};
}

static inline struct world *world_make_with(const struct kubesim_options *options, struct world *world)
{
    world->now_us = 1800000000 * US_PER_S;
    world->audit = BUF_INIT(64 * 1024 * 1024);
    world->sim = kubesim_make(options);
    return world;
}

static inline struct world *world_make(void)
{
    struct world *world = xcalloc(1, sizeof(*world));
    const struct kubesim_options options = world_options(world);
    return world_make_with(&options, world);
}

static inline void world_free(struct world *world)
{
    kubesim_response_done(&world->response);
    json_delete(world->body);
    buf_done(&world->audit);
    kubesim_free(world->sim);
    free(world);
}
DEFINE_CLEANUP(cleanup_world, struct world, world_free);
#define WORLD __attribute__((cleanup(cleanup_world))) struct world *

/* Time passes; what is due happens. */
static inline void pass(struct world *world, int64_t seconds)
{
    world->now_us += seconds * US_PER_S;
    kubesim_tick(world->sim);
}

static inline int ask_raw(struct world *world, const struct kubesim_request *request)
{
    kubesim_response_done(&world->response);
    json_delete(STEAL(world->body));
    kubesim_handle(world->sim, request, &world->response);
    if (world->response.body)
        json_parse(world->response.body, world->response.body_length, &world->body, NULL);
    return world->response.status;
}

/* The status; the answer's tree is world->body. type and body may be NULL. */
static inline int ask_as(struct world *world, const char *method, const char *path, const char *type,
                         const char *body)
{
    const struct kubesim_request request = {.method = method,
                                            .path = path,
                                            .content_type = type,
                                            .accept = "application/json",
                                            .user_agent = "tester/1",
                                            .body = body,
                                            .body_length = body ? strlen(body) : 0};
    return ask_raw(world, &request);
}

static inline int ask(struct world *world, const char *method, const char *path, const char *body)
{
    return ask_as(world, method, path, body ? "application/json" : NULL, body);
}

static inline int patch(struct world *world, const char *path, const char *type, const char *body)
{
    return ask_as(world, "PATCH", path, type, body);
}

static inline const char *reason(const struct world *world)
{
    const char *text = json_str(world->body, "reason");
    return text ? text : "";
}

/* The words of the last answer. */
static inline const char *message(const struct world *world)
{
    const char *text = json_str(world->body, "message");
    return text ? text : "";
}

/* "FieldValueInvalid@metadata.uid,..." of the last answer; owned by the world. */
static inline const char *causes(struct world *world)
{
    CLEANUP_BUF struct buf text = BUF_INIT(64 * 1024);
    const cJSON *cause;
    cJSON_ArrayForEach (cause, json_path(world->body, "details", "causes", NULL))
        buf_addf(&text, "%s%s@%s", text.length ? "," : "", json_str(cause, "reason"),
                 json_str(cause, "field"));
    json_set_str(world->body, "#causes", buf_text(&text));
    return json_str(world->body, "#causes");
}

/* A string below metadata of the last answer. */
static inline const char *meta(const struct world *world, const char *key)
{
    return json_path_str(world->body, "metadata", key, NULL);
}

/* The uid or resourceVersion of an object now; the caller's. */
static inline char *now_of(struct world *world, const char *path, const char *key)
{
    assert_int_equal(ask(world, "GET", path, NULL), 200);
    return xstrdup(meta(world, key));
}

/* Replaces UID and VERSION in a template by what the object at path has now; the caller's. */
static inline char *fill_in(struct world *world, const char *path, const char *template)
{
    CLEANUP_FREE char *uid = now_of(world, path, "uid");
    CLEANUP_FREE char *version = now_of(world, path, "resourceVersion");
    CLEANUP_BUF struct buf text = BUF_INIT(1024 * 1024);
    for (const char *at = template; *at;) {
        bool is_uid = str_starts_with(at, "UID");
        bool is_version = str_starts_with(at, "VERSION");
        if (is_uid || is_version) {
            buf_add_text(&text, is_uid ? uid : version);
            at += is_uid ? 3 : 7;
        } else {
            buf_add_char(&text, *at++);
        }
    }
    return buf_take(&text);
}

static inline void make_pod(struct world *world, const char *name, const char *node)
{
    CLEANUP_FREE char *body =
        xasprintf("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"labels\":"
                  "{\"app\":\"db\"}},\"spec\":{%s%s%s\"containers\":[{\"name\":\"a\",\"image\":\"i:1\"},"
                  "{\"name\":\"b\",\"image\":\"j:1\"}]}}",
                  name, node ? "\"nodeName\":\"" : "", node ? node : "", node ? "\"," : "");
    assert_int_equal(ask(world, "POST", PODS, body), 201);
}

/* extra: members behind name, with a leading comma, or "". */
static inline void make_config(struct world *world, const char *name, const char *extra)
{
    CLEANUP_FREE char *body = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"%s}}", name, extra);
    assert_int_equal(ask(world, "POST", CONFIGMAPS, body), 201);
}

/* A definition with every kind of check that neoset's own has. */
static inline void make_widgets(struct world *world)
{
    static const char definition[] =
        "{\"apiVersion\":\"apiextensions.k8s.io/"
        "v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":"
        "\"widgets.ex.io\"},\"spec\":{\"group\":\"ex.io\",\"scope\":\"Namespaced\",\"names\":{\"kind\":"
        "\"Widget\",\"plural\":"
        "\"widgets\",\"shortNames\":[\"wd\"]},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":"
        "true,"
        "\"subresources\":{\"status\":{},\"scale\":{\"specReplicasPath\":\".spec.replicas\","
        "\"statusReplicasPath\":"
        "\".status.replicas\",\"labelSelectorPath\":\".status.selector\"}},\"additionalPrinterColumns\":["
        "{\"name\":\"Replicas\",\"type\":\"integer\",\"jsonPath\":\".status.replicas\"},"
        "{\"name\":\"Word\",\"type\":\"string\",\"jsonPath\":\".spec.word\"},"
        "{\"name\":\"Age\",\"type\":\"date\",\"jsonPath\":\".metadata.creationTimestamp\"}],"
        "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"required\":[\"spec\"],\"properties\":{"
        "\"spec\":{\"type\":"
        "\"object\",\"required\":[\"word\"],\"properties\":{"
        "\"word\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":5,\"pattern\":\"^[a-z]+$\"},"
        "\"replicas\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":100,\"default\":1},"
        "\"type\":{\"type\":\"string\",\"enum\":[\"A\",\"B\"],\"default\":\"A\"},"
        "\"many\":{\"x-kubernetes-int-or-string\":true},"
        "\"free\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true},"
        "\"list\":{\"type\":\"array\",\"maxItems\":2,\"minItems\":1,\"items\":{\"type\":\"object\","
        "\"required\":[\"name\"],"
        "\"properties\":{\"name\":{\"type\":\"string\"},\"v\":{\"type\":\"integer\",\"default\":7}}},"
        "\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"name\"]},"
        "\"map\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},"
        "\"nested\":{\"type\":\"object\",\"default\":{},\"properties\":{\"a\":{\"type\":\"integer\","
        "\"default\":3}}},"
        "\"maybe\":{\"type\":\"string\",\"nullable\":true},\"flag\":{\"type\":\"boolean\"},"
        "\"fixed\":{\"type\":\"string\",\"x-kubernetes-validations\":[{\"rule\":\"self == "
        "oldSelf\",\"message\":"
        "\"fixed is immutable\"}]}},"
        "\"x-kubernetes-validations\":[{\"rule\":\"self.replicas < 50 || self.type == 'B'\",\"message\":"
        "\"many replicas need B\"},{\"rule\":\"!has(self.map) || self.map.size() < 2\",\"message\":\"map is "
        "too big\","
        "\"fieldPath\":\".map\"}]},"
        "\"status\":{\"type\":\"object\",\"properties\":{\"replicas\":{\"type\":\"integer\"},\"selector\":{"
        "\"type\":"
        "\"string\"}}}}}}}]}}";
    assert_int_equal(ask(world, "POST", DEFINITIONS, definition), 201);
}

/* spec: its members. */
static inline int make_widget(struct world *world, const char *name, const char *spec)
{
    CLEANUP_FREE char *body = xasprintf(
        "{\"apiVersion\":\"ex.io/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"%s\"},\"spec\":{%s}}",
        name, spec);
    return ask(world, "POST", WIDGETS, body);
}

/* What a watch was told. */
struct told {
    struct kubesim_watch *watch;
    struct buf lines; /* "ADDED name\n" ... */
    cJSON *last;      /* the last event */
    bool ended;
    bool clean;
    bool names_only;
};

static inline void told_line(void *context, const char *line, size_t length)
{
    struct told *told = context;
    json_delete(STEAL(told->last));
    assert_int_equal(line[length - 1], '\n');
    assert_int_equal(json_parse(line, length - 1, &told->last, NULL), 0);
    const char *name = json_path_str(told->last, "object", "metadata", "name", NULL);
    buf_addf(&told->lines, "%s %s\n", json_str(told->last, "type"), name ? name : "-");
}

static inline void told_end(void *context, bool clean)
{
    struct told *told = context;
    told->ended = true;
    told->clean = clean;
}

static inline int watch(struct world *world, struct told *told, const char *path)
{
    static const struct kubesim_watch_callbacks callbacks = {.on_line = told_line, .on_end = told_end};
    const struct kubesim_request request = {.method = "GET", .path = path, .accept = "application/json"};
    *told = (struct told){.lines = BUF_INIT(16 * 1024 * 1024)};
    assert_true(kubesim_is_watch(&request));
    kubesim_response_done(&world->response);
    told->watch = kubesim_watch_open(world->sim, &request, &callbacks, told, &world->response);
    return world->response.status;
}

static inline void told_done(struct told *told)
{
    kubesim_watch_close(STEAL(told->watch));
    buf_done(&told->lines);
    json_delete(STEAL(told->last));
}
#define TOLD __attribute__((cleanup(told_done))) struct told
