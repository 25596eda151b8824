/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kubelet_client.h"

#include "base/sha256.h"
#include "base/time_text.h"
#include "kube/watch.h"
#include "kubesim/kubelet_write.h"

#include <uthash.h>
#include <utlist.h>

enum { FLIGHTS_MAX = 64, ATTEMPTS_MAX = 8, WRITE_TIMEOUT_S = 10 };

/* What is to be said of one pod. */
struct outgoing {
    struct kubelet_client *kubelet;
    char *uid;
    char *namespace;
    char *name;
    cJSON *status;    /* NULL: nothing new */
    char *node;       /* to bind to */
    bool deletes;     /* after the status */
    cJSON *sent;      /* what is under way: the status */
    char *sent_node;  /* or the binding */
    bool sent_delete; /* or the deletion */
    struct kube_call *call;
    struct env_timer *retry;
    unsigned attempt;
    bool is_queued;
    struct outgoing *prev;
    struct outgoing *next;
    UT_hash_handle hh;
};

struct kubelet_client {
    struct kube_client *client;
    struct env *env;
    struct kubelet *kubelet;
    struct kube_watch *watch;
    struct env_timer *timer;
    int64_t timer_due_us;
    struct outgoing *outgoing;
    struct outgoing *queue; /* those that have something to send, in turn */
    unsigned flights;
    unsigned next_node; /* nodes before it are registered */
    struct kube_call *node_call;
    struct env_timer *node_retry;
    unsigned node_attempt;
    bool is_listed;
};

/* --- writes --- */

static void send_next(struct kubelet_client *kubelet);

static bool has_news(const struct outgoing *outgoing)
{
    return outgoing->status || outgoing->node || outgoing->deletes;
}

static void outgoing_free(struct outgoing *outgoing)
{
    struct kubelet_client *kubelet = outgoing->kubelet;
    HASH_DEL(kubelet->outgoing, outgoing);
    if (outgoing->is_queued)
        DL_DELETE(kubelet->queue, outgoing);
    kube_call_cancel(kubelet->client, &outgoing->call);
    env_timer_cancel(kubelet->env, &outgoing->retry);
    json_delete(outgoing->status);
    json_delete(outgoing->sent);
    free(outgoing->node);
    free(outgoing->sent_node);
    free(outgoing->uid);
    free(outgoing->namespace);
    free(outgoing->name);
    free(outgoing);
}

static void enqueue(struct outgoing *outgoing)
{
    if (outgoing->is_queued || outgoing->call || outgoing->retry)
        return;
    outgoing->is_queued = true;
    DL_APPEND(outgoing->kubelet->queue, outgoing);
}

/* What was under way is to be sent again, unless something newer has come. */
static void put_back(struct outgoing *outgoing)
{
    if (outgoing->sent && !outgoing->status)
        outgoing->status = STEAL(outgoing->sent);
    if (outgoing->sent_node && !outgoing->node)
        outgoing->node = STEAL(outgoing->sent_node);
    outgoing->deletes = outgoing->deletes || outgoing->sent_delete;
}

static void on_retry(void *context)
{
    struct outgoing *outgoing = context;
    outgoing->retry = NULL;
    enqueue(outgoing);
    send_next(outgoing->kubelet);
}

/* The object has gone, or is another one now; or the server will never take this. */
static bool is_final(const struct outgoing *outgoing, const struct kube_answer *answer)
{
    if (answer->outcome == KUBE_OK || answer->code == ERROR_NOT_FOUND || answer->code == ERROR_INVALID)
        return true;
    if (answer->code == ERROR_CONFLICT && !outgoing->sent)
        return true;
    return outgoing->attempt >= ATTEMPTS_MAX;
}

static void on_written(void *context, const struct kube_answer *answer)
{
    struct outgoing *outgoing = context;
    struct kubelet_client *kubelet = outgoing->kubelet;
    outgoing->call = NULL;
    kubelet->flights--;
    bool final = is_final(outgoing, answer);
    if (!final)
        put_back(outgoing);
    json_delete(STEAL(outgoing->sent));
    free(STEAL(outgoing->sent_node));
    outgoing->sent_delete = false;
    if (!final) {
        int64_t wait_us = kube_backoff_us(kubelet->env, outgoing->attempt++, answer->retry_after_us);
        outgoing->retry = env_timer_start(kubelet->env, wait_us, on_retry, outgoing);
    } else if (has_news(outgoing)) {
        outgoing->attempt = 0;
        enqueue(outgoing);
    } else {
        outgoing_free(outgoing);
    }
    send_next(kubelet);
}

static struct kube_call *send(struct kubelet_client *kubelet, struct kubelet_write *write, kube_done *done,
                              void *context)
{
    uint8_t id[16];
    env_random(kubelet->env, id, sizeof(id));
    CLEANUP_FREE char *audit_id = hex_encode(id, sizeof(id));
    const struct kube_write request = {.method = write->method,
                                       .audit_id = audit_id,
                                       .path = write->path,
                                       .content_type = write->content_type,
                                       .body = write->body,
                                       .body_length = strlen(write->body),
                                       .pool = HTTP_POOL_REQUEST,
                                       .timeout_us = WRITE_TIMEOUT_S * US_PER_S};
    struct kube_call *call =
        kube_write(kubelet->client, kube_permit_issue(kubelet->client), &request, done, context);
    kubelet_write_done(write);
    return call;
}

/* One thing at a time: the binding, the status, the deletion. */
static void send_one(struct outgoing *outgoing)
{
    struct kubelet_write write;
    if (outgoing->node) {
        outgoing->sent_node = STEAL(outgoing->node);
        kubelet_write_bind(&write, outgoing->namespace, outgoing->name, outgoing->uid, outgoing->sent_node);
    } else if (outgoing->status) {
        outgoing->sent = STEAL(outgoing->status);
        kubelet_write_status(&write, outgoing->namespace, outgoing->name, outgoing->uid, outgoing->sent);
    } else {
        outgoing->sent_delete = true;
        outgoing->deletes = false;
        kubelet_write_delete(&write, outgoing->namespace, outgoing->name, outgoing->uid);
    }
    outgoing->kubelet->flights++;
    outgoing->call = send(outgoing->kubelet, &write, on_written, outgoing);
}

static void send_next(struct kubelet_client *kubelet)
{
    while (kubelet->queue && kubelet->flights < FLIGHTS_MAX) {
        struct outgoing *outgoing = kubelet->queue;
        DL_DELETE(kubelet->queue, outgoing);
        outgoing->is_queued = false;
        send_one(outgoing);
    }
}

/* --- what the model says --- */

static struct outgoing *outgoing_of(struct kubelet_client *kubelet, const char *namespace, const char *name,
                                    const char *uid)
{
    struct outgoing *outgoing;
    HASH_FIND_STR(kubelet->outgoing, uid, outgoing);
    if (!outgoing) {
        outgoing = xcalloc(1, sizeof(*outgoing));
        outgoing->kubelet = kubelet;
        outgoing->uid = xstrdup(uid);
        outgoing->namespace = xstrdup(namespace);
        outgoing->name = xstrdup(name);
        HASH_ADD_KEYPTR(hh, kubelet->outgoing, outgoing->uid, strlen(outgoing->uid), outgoing);
    }
    enqueue(outgoing);
    return outgoing;
}

static void patch_status(void *context, const char *namespace, const char *name, const char *uid,
                         const cJSON *status)
{
    struct outgoing *outgoing = outgoing_of(context, namespace, name, uid);
    json_delete(outgoing->status);
    outgoing->status = json_copy(status);
}

static void delete_pod(void *context, const char *namespace, const char *name, const char *uid)
{
    outgoing_of(context, namespace, name, uid)->deletes = true;
}

static void bind_pod(void *context, const char *namespace, const char *name, const char *uid,
                     const char *node)
{
    struct outgoing *outgoing = outgoing_of(context, namespace, name, uid);
    if (!outgoing->sent_node)
        str_replace(&outgoing->node, node);
}

/* --- time --- */

static void set_timer(struct kubelet_client *kubelet);

static void on_timer(void *context)
{
    struct kubelet_client *kubelet = context;
    kubelet->timer = NULL;
    kubelet_tick(kubelet->kubelet, env_wall_us(kubelet->env));
    send_next(kubelet);
    set_timer(kubelet);
}

static void set_timer(struct kubelet_client *kubelet)
{
    int64_t next_us = kubelet_next_us(kubelet->kubelet);
    if (next_us == INT64_MAX || (kubelet->timer && kubelet->timer_due_us <= next_us))
        return;
    env_timer_cancel(kubelet->env, &kubelet->timer);
    kubelet->timer_due_us = next_us;
    int64_t wait_us = MAX(next_us - env_wall_us(kubelet->env), 0);
    kubelet->timer = env_timer_start(kubelet->env, wait_us, on_timer, kubelet);
}

/* --- the watch --- */

static void on_list_begin(void *context)
{
    struct kubelet_client *kubelet = context;
    kubelet_list_begin(kubelet->kubelet);
}

static void on_list_end(void *context)
{
    struct kubelet_client *kubelet = context;
    kubelet_list_end(kubelet->kubelet, env_wall_us(kubelet->env));
    kubelet->is_listed = true;
    set_timer(kubelet);
}

static void on_object(void *context, const cJSON *object)
{
    struct kubelet_client *kubelet = context;
    kubelet_pod(kubelet->kubelet, object, env_wall_us(kubelet->env));
    set_timer(kubelet);
}

static void on_deleted(void *context, const cJSON *object)
{
    struct kubelet_client *kubelet = context;
    kubelet_pod_deleted(kubelet->kubelet, object, env_wall_us(kubelet->env));
}

static void start_watch(struct kubelet_client *kubelet)
{
    static const struct kube_watch_callbacks callbacks = {
        .list_begin = on_list_begin, .list_end = on_list_end, .object = on_object, .deleted = on_deleted};
    const struct kube_watch_spec spec = {.resource = KUBE_POD};
    kubelet->watch = kube_watch_start(kubelet->client, &spec, &callbacks, kubelet);
}

/* --- nodes --- */

static void register_node(struct kubelet_client *kubelet);

static void on_node_retry(void *context)
{
    struct kubelet_client *kubelet = context;
    kubelet->node_retry = NULL;
    register_node(kubelet);
}

static void on_node(void *context, const struct kube_answer *answer)
{
    struct kubelet_client *kubelet = context;
    kubelet->node_call = NULL;
    if (answer->outcome == KUBE_OK || answer->code == ERROR_EXISTS) {
        kubelet->next_node++;
        kubelet->node_attempt = 0;
        register_node(kubelet);
        return;
    }
    int64_t wait_us = kube_backoff_us(kubelet->env, kubelet->node_attempt++, answer->retry_after_us);
    kubelet->node_retry = env_timer_start(kubelet->env, wait_us, on_node_retry, kubelet);
}

/* One after another; pods are looked at when all are there, for a pod without its node is collected. */
static void register_node(struct kubelet_client *kubelet)
{
    if (kubelet->next_node == kubelet_node_count(kubelet->kubelet)) {
        start_watch(kubelet);
        return;
    }
    CLEANUP_JSON cJSON *node =
        kubelet_node_object(kubelet->kubelet, kubelet->next_node, env_wall_us(kubelet->env));
    struct kubelet_write write;
    kubelet_write_node(&write, node);
    kubelet->node_call = send(kubelet, &write, on_node, kubelet);
}

/* --- the front --- */

struct kubelet_client *kubelet_client_start(struct kube_client *client, const struct kubelet_options *given,
                                            bool binds)
{
    struct kubelet_client *kubelet = xcalloc(1, sizeof(*kubelet));
    struct kubelet_options options = *given;
    options.callbacks = (struct kubelet_callbacks){
        .patch_status = patch_status, .delete_pod = delete_pod, .bind_pod = binds ? bind_pod : NULL};
    options.context = kubelet;
    kubelet->client = client;
    kubelet->env = kube_client_env(client);
    kubelet->kubelet = kubelet_make(&options, env_wall_us(kubelet->env));
    register_node(kubelet);
    return kubelet;
}

void kubelet_client_stop(struct kubelet_client *kubelet)
{
    if (!kubelet)
        return;
    kube_watch_stop(kubelet->watch);
    kube_call_cancel(kubelet->client, &kubelet->node_call);
    env_timer_cancel(kubelet->env, &kubelet->node_retry);
    env_timer_cancel(kubelet->env, &kubelet->timer);
    struct outgoing *outgoing, *next;
    HASH_ITER (hh, kubelet->outgoing, outgoing, next) {
        outgoing_free(outgoing);
    }
    kubelet_free(kubelet->kubelet);
    free(kubelet);
}

bool kubelet_client_is_ready(const struct kubelet_client *kubelet)
{
    return kubelet->is_listed;
}
