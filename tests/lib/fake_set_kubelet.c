/* SPDX-License-Identifier: Apache-2.0
 *
 * A kubelet that posts status only when a sync begins; and time, which makes it sync. */
#include "fake_set_parts.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

/* What runs, kept on the pod where no plan looks. */
static cJSON *runtime_of(cJSON *pod)
{
    return json_ensure_object(pod, "test-runtime");
}

static void put_condition(struct fake *fake, cJSON *status, const char *type, bool value)
{
    cJSON *conditions = json_get(status, "conditions");
    if (!conditions)
        conditions = json_add_array(status, "conditions");
    cJSON *found = NULL, *item = NULL;
    cJSON_ArrayForEach (item, conditions) {
        if (str_equal(json_str(item, "type"), type))
            found = item;
    }
    if (!found) {
        found = json_new_object();
        json_add_str(found, "type", type);
        json_append_item(conditions, found);
    }
    const char *text = value ? "True" : "False";
    if (str_equal(json_str(found, "status"), text))
        return;
    char now[TIME_TEXT_SIZE];
    time_format_seconds(fake_wall_us(fake), now);
    json_set_str(found, "status", text);
    json_set_str(found, "lastTransitionTime", now);
}

static cJSON *container_status(const cJSON *name, const cJSON *run)
{
    cJSON *status = json_new_object();
    json_add_str(status, "name", name->valuestring);
    const char *id = json_str(run, "id"), *waiting = json_str(run, "waiting");
    const char *image = json_str(run, "image");
    json_add_str(status, "image", image ? image : "");
    if (id)
        json_add_str(status, "containerID", id);
    CLEANUP_FREE char *digest = xasprintf("sha256:%s", image ? image : "");
    json_add_str(status, "imageID", id ? digest : "");
    json_add_int64(status, "restartCount", json_int64_or(run, "restarts", 0));
    json_add_bool(status, "ready", json_bool_or(run, "ready", false));
    json_add_bool(status, "started", id && !waiting);
    cJSON *state = json_add_object(status, "state");
    if (waiting || !id)
        json_add_str(json_add_object(state, "waiting"), "reason", waiting ? waiting : "ContainerCreating");
    else
        json_add_object(state, "running");
    return status;
}

static void post_status(struct fake *fake, cJSON *pod)
{
    cJSON *status = json_ensure_object(pod, "status");
    cJSON *list = json_new_array();
    bool ready = true;
    const cJSON *container = NULL;
    cJSON_ArrayForEach (container, json_path(pod, "spec", "containers", NULL)) {
        const char *name = json_str(container, "name");
        cJSON *run = json_ensure_object(runtime_of(pod), name);
        ready = ready && json_bool_or(run, "ready", false);
        json_append_item(list, container_status(json_get(container, "name"), run));
    }
    json_set_item(status, "containerStatuses", list);
    json_set_str(status, "phase", "Running");
    if (!fake->old_kubelet)
        json_set_item(status, "observedGeneration",
                      json_copy(json_path(pod, "metadata", "generation", NULL)));
    put_condition(fake, status, "PodScheduled", true);
    put_condition(fake, status, "ContainersReady", ready);
    const cJSON *gate = NULL;
    cJSON_ArrayForEach (gate, json_path(pod, "spec", "readinessGates", NULL))
        ready = ready && kube_object_condition_is_true(pod, json_str(gate, "conditionType"));
    put_condition(fake, status, "Ready", ready);
}

static void start_container(struct fake *fake, cJSON *run, const char *image)
{
    bool first = !json_str(run, "id");
    CLEANUP_FREE char *id = xasprintf("containerd://%lld", (long long)++fake->serial);
    json_remove(run, "waiting");
    json_set_str(run, "id", id);
    json_set_str(run, "image", image);
    json_set_item(run, "restarts", json_new_int64(first ? 0 : json_int64_or(run, "restarts", 0) + 1));
    json_set_item(run, "ready", cJSON_CreateBool(false));
}

/* A container that was ready crashes, and is started again after a while that doubles. */
static void crash_on(struct fake *fake, cJSON *run, const char *image)
{
    int64_t restarts = MIN(json_int64_or(run, "restarts", 0), 5);
    int64_t waited = json_int64_or(run, "waited", 0) + 1;
    json_set_item(run, "waited", json_new_int64(waited));
    if (json_str(run, "waiting")) {
        if (waited >= 1 << restarts)
            start_container(fake, run, image);
        return;
    }
    bool ready = json_bool_or(run, "ready", false);
    json_set_item(run, "ready", cJSON_CreateBool(!ready));
    if (ready) {
        json_set_str(run, "waiting", "CrashLoopBackOff");
        json_set_item(run, "waited", json_new_int64(0));
    }
}

/* Behaviour by the image's name: "none" is not there, "unready" never becomes ready, "crash" crashes. */
static void act(struct fake *fake, cJSON *pod)
{
    const cJSON *container = NULL;
    cJSON_ArrayForEach (container, json_path(pod, "spec", "containers", NULL)) {
        const char *image = json_str(container, "image");
        cJSON *run = json_ensure_object(runtime_of(pod), json_str(container, "name"));
        bool asked = str_equal(json_str(run, "asked"), image);
        json_set_str(run, "asked", image);
        if (strstr(image, "none")) {
            json_set_item(run, "ready", cJSON_CreateBool(false));
            json_set_str(run, "waiting", "ErrImagePull");
        } else if (!asked) {
            start_container(fake, run, image);
        } else if (strstr(image, "crash")) {
            crash_on(fake, run, image);
        } else {
            json_set_item(run, "ready", cJSON_CreateBool(!strstr(image, "unready")));
        }
    }
}

static void sync_pod(struct fake *fake, cJSON *pod)
{
    CLEANUP_JSON cJSON *before = json_copy(json_ensure_object(pod, "status"));
    post_status(fake, pod);
    if (!json_equal(before, json_get(pod, "status")))
        fake_touch(fake, pod);
    act(fake, pod);
}

/* A pod that fetches: "none" is not there, "slow" is being pulled, "odd" ends it without an answer, and
 * "mute" is not even taken up. */
static void sync_prefetch(struct fake *fake, cJSON *pod)
{
    CLEANUP_JSON cJSON *before = json_copy(json_get(pod, "status"));
    cJSON *status = json_get(pod, "status");
    cJSON *list = json_new_array();
    const cJSON *container = NULL;
    bool all = true, mute = false, odd = false;
    cJSON_ArrayForEach (container, json_path(pod, "spec", "containers", NULL)) {
        const char *image = json_str(container, "image");
        bool none = strstr(image, "none"), slow = strstr(image, "slow");
        cJSON *item = json_new_object();
        json_append_item(list, item);
        json_add_str(item, "name", json_str(container, "name"));
        json_add_str(item, "image", image);
        json_add_str(item, "imageID", none || slow ? "" : "sha256:there");
        cJSON *state = json_add_object(item, "state");
        cJSON *detail = json_add_object(state, none || slow ? "waiting" : "terminated");
        json_add_str(detail, "reason", none ? "ErrImagePull" : slow ? "ContainerCreating" : "StartError");
        if (none)
            json_add_str(detail, "message", "registry.example/db: not found");
        all = all && !none && !slow;
        mute = mute || strstr(image, "mute");
        odd = odd || strstr(image, "odd");
    }
    if (!mute && !odd)
        json_set_item(status, "containerStatuses", STEAL(list));
    json_delete(list);
    if (odd)
        json_set_str(status, "reason", "OutOfpods");
    if ((all && !mute) || odd)
        json_set_str(status, "phase", "Failed");
    if (!json_equal(before, status))
        fake_touch(fake, pod);
}

void fake_sync(struct fake *fake)
{
    for (cJSON *prefetch = fake->prefetches->child; prefetch && !fake->no_kubelet; prefetch = prefetch->next)
        sync_prefetch(fake, prefetch);
    cJSON *pod = fake->pods->child;
    while (pod && !fake->no_kubelet) {
        cJSON *next = pod->next;
        if (kube_object_is_deleting(pod)) {
            neoset_forget_pod(fake->memory, fake_ordinal_of(json_path_str(pod, "metadata", "name", NULL)));
            json_delete(cJSON_DetachItemViaPointer(fake->pods, pod));
        } else {
            sync_pod(fake, pod);
        }
        pod = next;
    }
}

void fake_run(struct fake *fake, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        fake_settle(fake);
        fake->boot_us += US_PER_S;
        fake_sync(fake);
    }
    fake_settle(fake);
}

bool fake_run_until(struct fake *fake, const char *phase, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        fake_run(fake, 1);
        if (str_equal(fake_text(fake, "phase"), phase))
            return true;
    }
    return false;
}
