/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kubelet_attach.h"

#include "kubesim/kubelet_write.h"
#include "kubesim/model.h"

#include <utlist.h>

struct event {
    struct event *prev;
    struct event *next;
    const char *type;
    struct version *version; /* held: more may be written before it is taken */
};

struct kubelet_attach {
    struct kubesim *sim;
    struct kubelet *kubelet;
    struct kubesim_watch *watch;
    bool ended; /* the watch is over: a new list is due */
    struct event *events;
    void (*wake)(void *context);
    void *wake_context;
};

/* --- writes --- */

static void send(struct kubelet_attach *attach, struct kubelet_write *write)
{
    const struct kubesim_request request = {
        .method = write->method,
        .path = write->path,
        .content_type = write->content_type,
        .accept = "application/json",
        .user_agent = "kubelet/kubesim",
        .user = "system:node:kubesim",
        .body = write->body,
        .body_length = strlen(write->body),
        .no_faults = true,
    };
    struct kubesim_response response;
    kubesim_handle(attach->sim, &request, &response);
    kubesim_response_done(&response);
    kubelet_write_done(write);
}

static void patch_status(void *context, const char *namespace, const char *name, const char *uid,
                         const cJSON *status)
{
    struct kubelet_write write;
    kubelet_write_status(&write, namespace, name, uid, status);
    send(context, &write);
}

static void delete_pod(void *context, const char *namespace, const char *name, const char *uid)
{
    struct kubelet_write write;
    kubelet_write_delete(&write, namespace, name, uid);
    send(context, &write);
}

static void bind_pod(void *context, const char *namespace, const char *name, const char *uid,
                     const char *node)
{
    struct kubelet_write write;
    kubelet_write_bind(&write, namespace, name, uid, node);
    send(context, &write);
}

static void register_nodes(struct kubelet_attach *attach, int64_t now_us)
{
    for (unsigned i = 0; i < kubelet_node_count(attach->kubelet); i++) {
        CLEANUP_JSON cJSON *node = kubelet_node_object(attach->kubelet, i, now_us);
        struct kubelet_write write;
        kubelet_write_node(&write, node);
        send(attach, &write);
    }
}

/* --- the watch --- */

static void wake(struct kubelet_attach *attach)
{
    if (attach->wake)
        attach->wake(attach->wake_context);
}

static void on_version(void *context, const char *type, struct version *version)
{
    struct kubelet_attach *attach = context;
    struct event *event = xcalloc(1, sizeof(*event));
    event->type = type;
    event->version = version_hold(version);
    bool first = !attach->events;
    DL_APPEND(attach->events, event);
    if (first)
        wake(attach);
}

/* An error, before the end. */
static void on_line(void *context, const char *text, size_t length)
{
    (void)context;
    (void)text;
    (void)length;
}

static void on_end(void *context, bool broken)
{
    (void)broken;
    struct kubelet_attach *attach = context;
    attach->ended = true;
    wake(attach);
}

static void drop_event(struct kubelet_attach *attach, struct event *event)
{
    DL_DELETE(attach->events, event);
    version_release(event->version);
    free(event);
}

static void take_events(struct kubelet_attach *attach, int64_t now_us)
{
    while (attach->events) {
        struct event *event = attach->events;
        const cJSON *object = version_tree(event->version);
        if (strcmp(event->type, "DELETED") == 0)
            kubelet_pod_deleted(attach->kubelet, object, now_us);
        else
            kubelet_pod(attach->kubelet, object, now_us);
        drop_event(attach, event);
    }
}

/* A watch without a resourceVersion begins with what is there: that is the list. */
static void watch_anew(struct kubelet_attach *attach, int64_t now_us)
{
    static const struct kubesim_watch_callbacks callbacks = {
        .on_line = on_line, .on_version = on_version, .on_end = on_end};
    const struct kubesim_request request = {.method = "GET",
                                            .path = "/api/v1/pods?watch=true",
                                            .accept = "application/json",
                                            .user_agent = "kubelet/kubesim",
                                            .user = "system:node:kubesim",
                                            .no_faults = true};
    kubesim_watch_close(attach->watch);
    take_events(attach, now_us);
    attach->ended = false;
    struct kubesim_response response;
    kubelet_list_begin(attach->kubelet);
    attach->watch = kubesim_watch_open(attach->sim, &request, &callbacks, attach, &response);
    ENSURE(attach->watch);
    kubesim_response_done(&response);
    take_events(attach, now_us);
    kubelet_list_end(attach->kubelet, now_us);
}

/* --- the front --- */

struct kubelet_attach *kubelet_attach_make(struct kubesim *sim, const struct kubelet_options *given,
                                           int64_t now_us, void (*on_wake)(void *context), void *wake_context)
{
    struct kubelet_attach *attach = xcalloc(1, sizeof(*attach));
    struct kubelet_options options = *given;
    options.callbacks = (struct kubelet_callbacks){
        .patch_status = patch_status, .delete_pod = delete_pod, .bind_pod = bind_pod};
    options.context = attach;
    attach->sim = sim;
    attach->kubelet = kubelet_make(&options, now_us);
    register_nodes(attach, now_us);
    watch_anew(attach, now_us);
    attach->wake = on_wake;
    attach->wake_context = wake_context;
    return attach;
}

void kubelet_attach_free(struct kubelet_attach *attach)
{
    if (!attach)
        return;
    kubesim_watch_close(attach->watch);
    while (attach->events)
        drop_event(attach, attach->events);
    kubelet_free(attach->kubelet);
    free(attach);
}

void kubelet_attach_tick(struct kubelet_attach *attach, int64_t now_us)
{
    take_events(attach, now_us);
    if (attach->ended)
        watch_anew(attach, now_us);
    kubelet_tick(attach->kubelet, now_us);
}

int64_t kubelet_attach_next_us(const struct kubelet_attach *attach)
{
    return attach->events || attach->ended ? 0 : kubelet_next_us(attach->kubelet);
}

struct kubelet *kubelet_attach_kubelet(struct kubelet_attach *attach)
{
    return attach->kubelet;
}
