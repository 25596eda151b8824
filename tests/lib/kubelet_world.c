/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet_world.h"

#include "kube/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int64_t world_now_us(void *context)
{
    return ((struct world *)context)->now_us;
}

static void world_fill_random(void *context, void *bytes, size_t length)
{
    struct world *world = context;
    for (size_t i = 0; i < length; i++) {
        world->random = world->random * 6364136223846793005ULL + 1442695040888963407ULL;
        ((uint8_t *)bytes)[i] = (uint8_t)(world->random >> 56);
    }
}

static void world_on_line(void *context, const char *line, size_t length)
{
    struct world *world = context;
    cJSON *event = NULL;
    assert_int_equal(json_parse(line, length, &event, NULL), 0);
    if (!str_equal(json_str(event, "type"), "BOOKMARK")) {
        assert_true(world->seen_count < WORLD_SEEN_MAX);
        struct seen *seen = &world->seen[world->seen_count++];
        seen->at_us = world->now_us - WORLD_EPOCH_US;
        strncpy(seen->type, json_str(event, "type"), sizeof(seen->type) - 1);
        seen->pod = json_copy(json_get(event, "object"));
    }
    json_delete(event);
}

static void world_on_end(void *context, bool broken)
{
    (void)context;
    (void)broken;
}

struct world *world_make(const struct kubelet_options *options)
{
    struct world *world = xcalloc(1, sizeof(*world));
    world->now_us = WORLD_EPOCH_US;
    world->random = 1;
    world->seen = xcalloc(WORLD_SEEN_MAX, sizeof(*world->seen));
    const struct kubesim_options sim_options = {
        .now_us = world_now_us, .random = world_fill_random, .context = world};
    world->sim = kubesim_make(&sim_options);
    world->kubelet = kubelet_attach_make(world->sim, options, world->now_us, NULL, NULL);
    static const struct kubesim_watch_callbacks callbacks = {.on_line = world_on_line,
                                                             .on_end = world_on_end};
    const struct kubesim_request request = {.method = "GET", .path = "/api/v1/pods?watch=true"};
    struct kubesim_response response;
    world->watch = kubesim_watch_open(world->sim, &request, &callbacks, world, &response);
    assert_non_null(world->watch);
    kubesim_response_done(&response);
    return world;
}

void world_free(struct world *world)
{
    kubesim_watch_close(world->watch);
    kubelet_attach_free(world->kubelet);
    kubesim_free(world->sim);
    for (size_t i = 0; i < world->seen_count; i++)
        json_delete(world->seen[i].pod);
    free(world->seen);
    free(world);
}

void world_run_until(struct world *world, int64_t at_us)
{
    int64_t end_us = WORLD_EPOCH_US + at_us;
    for (;;) {
        int64_t next_us = MIN(kubelet_attach_next_us(world->kubelet), kubesim_next_tick_us(world->sim));
        if (next_us > end_us)
            break;
        world->now_us = MAX(world->now_us, next_us);
        kubesim_tick(world->sim);
        kubelet_attach_tick(world->kubelet, world->now_us);
    }
    world->now_us = MAX(world->now_us, end_us);
}

int world_ask(struct world *world, const char *method, const char *path, const char *content_type,
              const char *body, cJSON **ret_body)
{
    const struct kubesim_request request = {.method = method,
                                            .path = path,
                                            .content_type = content_type,
                                            .body = body,
                                            .body_length = body ? strlen(body) : 0};
    struct kubesim_response response;
    kubesim_handle(world->sim, &request, &response);
    int status = response.status;
    if (ret_body)
        assert_int_equal(json_parse(response.body, response.body_length, ret_body, NULL), 0);
    kubesim_response_done(&response);
    return status;
}

void world_create_pod(struct world *world, const char *body)
{
    assert_int_equal(
        world_ask(world, "POST", "/api/v1/namespaces/default/pods", "application/json", body, NULL), 201);
}

void world_patch(struct world *world, const char *pod, const char *subresource, const char *body)
{
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/default/pods/%s%s", pod, subresource);
    assert_int_equal(world_ask(world, "PATCH", path, "application/strategic-merge-patch+json", body, NULL),
                     200);
}

void world_set_image(struct world *world, const char *pod, const char *list, const char *container,
                     const char *image)
{
    CLEANUP_FREE char *body =
        xasprintf("{\"spec\":{\"%s\":[{\"name\":\"%s\",\"image\":\"%s\"}]}}", list, container, image);
    world_patch(world, pod, "", body);
}

void world_set_gate(struct world *world, const char *pod, const char *status)
{
    CLEANUP_FREE char *body = xasprintf(
        "{\"status\":{\"conditions\":[{\"type\":\"apps.neo.io/in-place-ready\",\"status\":\"%s\"}]}}",
        status);
    world_patch(world, pod, "/status", body);
}

cJSON *world_pod(struct world *world, const char *pod)
{
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/default/pods/%s", pod);
    cJSON *body = NULL;
    if (world_ask(world, "GET", path, NULL, NULL, &body) == 200)
        return body;
    json_delete(body);
    return NULL;
}

const char *world_condition_status(const cJSON *pod, const char *type)
{
    return json_str(kube_object_condition(pod, type), "status");
}

const cJSON *world_container(const cJSON *pod)
{
    const cJSON *list = json_path(pod, "status", "containerStatuses", NULL);
    return list ? list->child : NULL;
}

/* --- as a trace
 * ------------------------------------------------------------------------------------------------ */

static void add_images(cJSON *tree, const char *key, const cJSON *containers)
{
    cJSON *images = json_add_object(tree, key);
    const cJSON *container;
    cJSON_ArrayForEach (container, containers)
        json_add_str(images, json_str(container, "name"), json_str(container, "image"));
}

static void copy_member(cJSON *to, const cJSON *from, const char *key)
{
    const cJSON *member = json_get(from, key);
    if (member)
        json_add_item(to, key, json_copy(member));
}

static cJSON *cut_pod(const cJSON *pod)
{
    cJSON *tree = json_new_object();
    const cJSON *meta = json_get(pod, "metadata");
    copy_member(tree, meta, "generation");
    copy_member(tree, meta, "resourceVersion");
    copy_member(tree, meta, "deletionTimestamp");
    add_images(tree, "images", json_path(pod, "spec", "containers", NULL));
    add_images(tree, "initImages", json_path(pod, "spec", "initContainers", NULL));
    static const char *const members[] = {"phase", "observedGeneration", "conditions", "containerStatuses",
                                          "initContainerStatuses"};
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        copy_member(tree, json_get(pod, "status"), members[i]);
    return tree;
}

static void add_line(struct buf *text, int64_t at_us, const char *key, cJSON *member, int64_t generation)
{
    CLEANUP_FREE char *body = json_print(member);
    json_delete(member);
    buf_addf(text, "{\"t\":%lld.%06lld,\"%s\":%s", (long long)(at_us / US_PER_S),
             (long long)(at_us % US_PER_S), key, body);
    if (generation)
        buf_addf(text, ",\"generation\":%lld", (long long)generation);
    buf_addf(text, "}\n");
}

char *world_trace(const struct world *world, const char *pod, size_t *ret_length)
{
    struct buf text = BUF_INIT(64 << 20);
    const cJSON *before = NULL;
    for (size_t i = 0; i < world->seen_count; i++) {
        const struct seen *seen = &world->seen[i];
        if (!str_equal(json_path_str(seen->pod, "metadata", "name", NULL), pod) ||
            strcmp(seen->type, "DELETED") == 0)
            continue;
        cJSON *cut = cut_pod(seen->pod);
        CLEANUP_JSON cJSON *images = json_copy(json_get(cut, "images"));
        add_line(&text, seen->at_us, "pod", cut, 0);
        const cJSON *now = json_path(seen->pod, "spec", "containers", NULL);
        if (before && !json_equal(json_path(before, "spec", "containers", NULL), now))
            add_line(&text, seen->at_us, "patched", STEAL(images),
                     json_int64_or(json_get(seen->pod, "metadata"), "generation", 0));
        before = seen->pod;
    }
    *ret_length = text.length;
    return buf_take(&text);
}
