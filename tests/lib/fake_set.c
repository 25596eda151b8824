/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_set_parts.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#define WALL_US (1800000000 * US_PER_S)

int64_t fake_wall_us(const struct fake *fake)
{
    return WALL_US + fake->boot_us;
}

void fake_touch(struct fake *fake, cJSON *object)
{
    CLEANUP_FREE char *version = xasprintf("%lld", (long long)++fake->serial);
    json_set_str(json_ensure_object(object, "metadata"), "resourceVersion", version);
}

cJSON *fake_find(const cJSON *list, const char *name)
{
    cJSON *object = NULL;
    cJSON_ArrayForEach (object, list) {
        if (str_equal(json_path_str(object, "metadata", "name", NULL), name))
            return object;
    }
    return NULL;
}

const char *fake_label(const cJSON *pod)
{
    return json_path_str(pod, "metadata", "labels", NEOSET_REVISION_LABEL, NULL);
}

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    assert_int_equal(json_parse(text, strlen(text), &tree, NULL), 0);
    return tree;
}

struct fake *fake_make(int replicas, const char *image)
{
    struct fake *fake = xcalloc(1, sizeof(*fake));
    fake->boot_us = 1000 * US_PER_S;
    fake->pods = json_new_array();
    fake->prefetches = json_new_array();
    fake->waits = xstrdup("");
    fake->claims = json_new_array();
    fake->revisions = json_new_array();
    fake->pool = intern_make();
    fake->memory = neoset_memory_make();
    fake->events = xstrdup("");
    fake->patched = xstrdup("");
    fake->operations = xstrdup("");
    fake->can_probe = true;
    CLEANUP_FREE char *text = xasprintf(
        "{\"metadata\":{\"name\":\"db\",\"namespace\":\"default\",\"uid\":\"set-uid\",\"generation\":1},"
        "\"spec\":{\"replicas\":%d,\"serviceName\":\"db\",\"selector\":{\"matchLabels\":{\"app\":\"db\"}},"
        "\"template\":{\"metadata\":{\"labels\":{\"app\":\"db\"}},\"spec\":{"
        "\"terminationGracePeriodSeconds\":2,"
        "\"containers\":[{\"name\":\"main\",\"image\":\"%s\"}]}},"
        "\"updateStrategy\":{\"inPlaceUpdateStrategy\":{}}}}",
        replicas, image);
    fake->set = parse(text);
    fake_touch(fake, fake->set);
    return fake;
}

void fake_free(struct fake *fake)
{
    if (!fake)
        return;
    json_delete(fake->set);
    json_delete(fake->pods);
    json_delete(fake->prefetches);
    free(fake->waits);
    json_delete(fake->claims);
    json_delete(fake->rival);
    json_delete(fake->revisions);
    json_delete(fake->status);
    neoset_memory_free(fake->memory);
    intern_free(fake->pool);
    free(fake->events);
    free(fake->patched);
    free(fake->last);
    free(fake->operations);
    free(fake);
}

void fake_edit(struct fake *fake, const char *value, ...)
{
    cJSON *at = json_get(fake->set, "spec");
    va_list keys;
    va_start(keys, value);
    const char *key = va_arg(keys, const char *);
    for (const char *next = va_arg(keys, const char *); next; next = va_arg(keys, const char *)) {
        at = json_ensure_object(at, key);
        key = next;
    }
    va_end(keys);
    json_set_item(at, key, parse(value));
    cJSON *metadata = json_get(fake->set, "metadata");
    json_set_item(metadata, "generation", json_new_int64(json_int64_or(metadata, "generation", 0) + 1));
    fake_touch(fake, fake->set);
}

static void edit_number(struct fake *fake, const char *key, int number)
{
    CLEANUP_FREE char *text = xasprintf("%d", number);
    fake_edit(fake, text, "updateStrategy", key, NULL);
}

void fake_set_image(struct fake *fake, const char *image)
{
    CLEANUP_FREE char *text = xasprintf("[{\"name\":\"main\",\"image\":\"%s\"}]", image);
    fake_edit(fake, text, "template", "spec", "containers", NULL);
}

void fake_set_fence(struct fake *fake, int partition)
{
    edit_number(fake, "partition", partition);
}

void fake_set_budget(struct fake *fake, int max_unavailable)
{
    edit_number(fake, "maxUnavailable", max_unavailable);
}

void fake_scale(struct fake *fake, int replicas)
{
    CLEANUP_FREE char *text = xasprintf("%d", replicas);
    fake_edit(fake, text, "replicas", NULL);
}

void fake_pause(struct fake *fake, bool pause)
{
    fake_edit(fake, pause ? "true" : "false", "updateStrategy", "pause", NULL);
}

void fake_restart(struct fake *fake)
{
    neoset_memory_free(fake->memory);
    fake->memory = neoset_memory_make();
}

cJSON *fake_pod(const struct fake *fake, const char *name)
{
    return fake_find(fake->pods, name);
}

const char *fake_image(const struct fake *fake, const char *pod)
{
    const cJSON *containers = json_path(fake_pod(fake, pod), "spec", "containers", NULL);
    return json_str(containers ? containers->child : NULL, "image");
}

const char *fake_revision(const struct fake *fake, const char *pod)
{
    return fake_label(fake_pod(fake, pod));
}

void fake_delete_pod(struct fake *fake, const char *name)
{
    cJSON *pod = fake_pod(fake, name);
    if (!pod)
        return;
    char text[TIME_TEXT_SIZE];
    time_format_seconds(fake_wall_us(fake), text);
    json_set_str(json_get(pod, "metadata"), "deletionTimestamp", text);
    fake_touch(fake, pod);
}

void fake_lose_status(struct fake *fake)
{
    json_remove(fake->set, "status");
    fake_touch(fake, fake->set);
}

void fake_delete_revision(struct fake *fake, unsigned index)
{
    int count = cJSON_GetArraySize(fake->revisions);
    if (count > 0)
        json_delete(cJSON_DetachItemFromArray(fake->revisions, (int)(index % (unsigned)count)));
}

const char *fake_text(const struct fake *fake, const char *key)
{
    return json_path_str(fake->set, "status", key, NULL);
}

int64_t fake_number(const struct fake *fake, const char *key)
{
    return json_int64_or(json_get(fake->set, "status"), key, -1);
}

bool fake_condition_is(const struct fake *fake, const char *type, const char *status)
{
    return str_equal(json_str(kube_object_condition(fake->set, type), "status"), status);
}
