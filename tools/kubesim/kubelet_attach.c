/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kubelet_attach.h"

#include "kubesim/kubelet_write.h"

#include <utlist.h>

struct line {
    struct line *prev;
    struct line *next;
    size_t length;
    char text[];
};

struct kubelet_attach {
    struct kubesim *sim;
    struct kubelet *kubelet;
    struct kubesim_watch *watch;
    bool ended; /* the watch is over: a new list is due */
    struct line *lines;
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

static void on_line(void *context, const char *text, size_t length)
{
    struct kubelet_attach *attach = context;
    struct line *line = xmalloc(sizeof(*line) + length);
    line->length = length;
    memcpy(line->text, text, length);
    bool first = !attach->lines;
    DL_APPEND(attach->lines, line);
    if (first)
        wake(attach);
}

static void on_end(void *context, bool broken)
{
    (void)broken;
    struct kubelet_attach *attach = context;
    attach->ended = true;
    wake(attach);
}

static void take_line(struct kubelet_attach *attach, const struct line *line, int64_t now_us)
{
    CLEANUP_JSON cJSON *event = NULL;
    if (json_parse(line->text, line->length, &event, NULL) < 0)
        return;
    const char *type = json_str(event, "type");
    const cJSON *object = json_get(event, "object");
    if (str_equal(type, "ADDED") || str_equal(type, "MODIFIED"))
        kubelet_pod(attach->kubelet, object, now_us);
    else if (str_equal(type, "DELETED"))
        kubelet_pod_deleted(attach->kubelet, object, now_us);
}

static void take_lines(struct kubelet_attach *attach, int64_t now_us)
{
    while (attach->lines) {
        struct line *line = attach->lines;
        DL_DELETE(attach->lines, line);
        take_line(attach, line, now_us);
        free(line);
    }
}

/* A watch without a resourceVersion begins with what is there: that is the list. */
static void watch_anew(struct kubelet_attach *attach, int64_t now_us)
{
    static const struct kubesim_watch_callbacks callbacks = {.on_line = on_line, .on_end = on_end};
    const struct kubesim_request request = {.method = "GET",
                                            .path = "/api/v1/pods?watch=true",
                                            .accept = "application/json",
                                            .user_agent = "kubelet/kubesim",
                                            .user = "system:node:kubesim",
                                            .no_faults = true};
    kubesim_watch_close(attach->watch);
    take_lines(attach, now_us);
    attach->ended = false;
    struct kubesim_response response;
    kubelet_list_begin(attach->kubelet);
    attach->watch = kubesim_watch_open(attach->sim, &request, &callbacks, attach, &response);
    ENSURE(attach->watch);
    kubesim_response_done(&response);
    take_lines(attach, now_us);
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
    struct line *line, *next;
    DL_FOREACH_SAFE (attach->lines, line, next) {
        DL_DELETE(attach->lines, line);
        free(line);
    }
    kubelet_free(attach->kubelet);
    free(attach);
}

void kubelet_attach_tick(struct kubelet_attach *attach, int64_t now_us)
{
    take_lines(attach, now_us);
    if (attach->ended)
        watch_anew(attach, now_us);
    kubelet_tick(attach->kubelet, now_us);
}

int64_t kubelet_attach_next_us(const struct kubelet_attach *attach)
{
    return attach->lines || attach->ended ? 0 : kubelet_next_us(attach->kubelet);
}

struct kubelet *kubelet_attach_kubelet(struct kubelet_attach *attach)
{
    return attach->kubelet;
}
