/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/client.h"

#include "kube/answer.h"
#include "kube/call.h"
#include "kube/credential.h"
#include "version.h"

#include <utlist.h>

#define USER_AGENT "neoset/" NEOSET_VERSION

enum { ERROR_BODY_MAX = 1024 * 1024 };

struct kube_client {
    struct env *env;
    struct kube_config *config;
    struct kube_credential *credential;
    uint64_t cookie;
    struct kube_call *calls;
};

/* waiting for credentials --> under way --> done
 *                                 +--401 of a read, once--> waiting */
struct kube_call {
    struct kube_client *client;
    struct kube_request request; /* strings owned */
    char *body;
    kube_done *done;
    void *context;
    int64_t deadline_us; /* boot clock; INT64_MAX: none */
    bool waiting;        /* wait is in the credential's list */
    struct kube_credential_wait wait;
    struct env_timer *deadline; /* while waiting */
    struct env_timer *begin;    /* the second try begins in a turn of its own */
    struct kube_identity *identity;
    struct env_http *http;
    bool tried_again; /* after a 401 */
    struct kube_call *prev, *next;
};

static void call_free(struct kube_call *call)
{
    struct kube_client *client = call->client;
    if (call->waiting)
        kube_credential_wait_cancel(client->credential, &call->wait);
    env_timer_cancel(client->env, &call->deadline);
    env_timer_cancel(client->env, &call->begin);
    env_http_cancel(client->env, &call->http);
    DL_DELETE(client->calls, call);
    kube_identity_release(call->identity);
    free((char *)call->request.method);
    free((char *)call->request.path);
    free((char *)call->request.accept);
    free((char *)call->request.content_type);
    free((char *)call->request.audit_id);
    free(call->body);
    free(call);
}

/* Tells the caller, who may start new calls, cancel others, or free the client: call and client are not
 * touched after. */
static void finish(struct kube_call *call, struct kube_decoded *decoded)
{
    kube_done *done = call->done;
    void *context = call->context;
    call_free(call);
    done(context, &decoded->answer);
    kube_decoded_done(decoded);
}

static void finish_unsent(struct kube_call *call, enum error_code code, const char *sentence)
{
    struct kube_decoded decoded;
    kube_decode_none(KUBE_NOT_SENT, code, sentence, &decoded);
    finish(call, &decoded);
}

static void begin(struct kube_call *call);

static void begin_again(void *context)
{
    struct kube_call *call = context;
    call->begin = NULL;
    begin(call);
}

/* A read that was refused with a 401 is tried once more, with new credentials if there are any. */
static bool try_again(struct kube_call *call, const struct http_answer *http)
{
    if (http->outcome != HTTP_ANSWERED || http->status != 401)
        return false;
    kube_credential_refused(call->client->credential, call->identity->generation);
    if (call->request.write || call->tried_again)
        return false;
    call->tried_again = true;
    kube_identity_release(STEAL(call->identity));
    call->begin = env_timer_start(call->client->env, 0, begin_again, call);
    return true;
}

/* Where the credentials could not be renewed, the server's "Unauthorized" alone would mislead. */
static void add_credential_problem(const struct kube_call *call, struct kube_decoded *decoded)
{
    const char *problem = kube_credential_problem(call->client->credential);
    if (decoded->answer.http == 401 && problem)
        kube_decoded_add_note(decoded, problem);
}

static void on_http_done(void *context, const struct http_answer *http)
{
    struct kube_call *call = context;
    struct kube_client *client = call->client;
    call->http = NULL;
    /* A certificate that is not trusted (any more): its authority may have been replaced in the file. */
    if (http->outcome != HTTP_ANSWERED && http->code == ERROR_FORBIDDEN)
        kube_credential_refused(client->credential, call->identity->generation);
    if (try_again(call, http))
        return;
    enum kube_decode_mode mode = call->request.is_dry    ? KUBE_DECODE_ASK
                                 : call->request.write   ? KUBE_DECODE_WRITE
                                 : call->request.on_data ? KUBE_DECODE_STREAM
                                                         : KUBE_DECODE_READ;
    struct kube_decoded decoded;
    kube_decode(http, mode, &decoded);
    add_credential_problem(call, &decoded);
    finish(call, &decoded);
}

/* The owner may cancel the call in each of these: it is not touched after theirs. */
static bool on_http_before_send(void *context)
{
    struct kube_call *call = context;
    return call->request.before_send(call->context);
}

static void on_http_status(void *context, int status)
{
    struct kube_call *call = context;
    if (status >= 200 && status <= 299 && call->request.on_status)
        call->request.on_status(call->context);
}

static bool on_http_data(void *context, const char *bytes, size_t length)
{
    struct kube_call *call = context;
    return call->request.on_data(call->context, bytes, length);
}

/* The headers of a request; the array is the caller's and borrows. */
static struct http_header *make_headers(const struct kube_call *call, size_t *ret_count)
{
    const struct kube_request *request = &call->request;
    const struct kube_config *config = call->client->config;
    const struct http_header wanted[] = {
        {"Accept", request->accept ? request->accept : "application/json"},
        {"User-Agent", USER_AGENT},
        {"Authorization", call->identity->authorization},
        {"Content-Type", request->content_type},
        {"Audit-ID", request->audit_id},
        {"Impersonate-User", config->impersonate_user},
        {"Impersonate-Uid", config->impersonate_uid},
    };
    size_t group_count = 0;
    while (config->impersonate_groups && config->impersonate_groups[group_count])
        group_count++;
    struct http_header *headers = xcalloc(ARRAY_SIZE(wanted) + group_count, sizeof(*headers));
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        if (wanted[i].value)
            headers[count++] = wanted[i];
    for (size_t i = 0; i < group_count; i++)
        headers[count++] = (struct http_header){"Impersonate-Group", config->impersonate_groups[i]};
    *ret_count = count;
    return headers;
}

/* What is left of the call's time; INT64_MAX without a bound. */
static int64_t left_us(const struct kube_call *call)
{
    if (call->deadline_us == INT64_MAX)
        return INT64_MAX;
    return call->deadline_us - env_boot_us(call->client->env);
}

static void send_request(struct kube_call *call)
{
    struct kube_client *client = call->client;
    const struct kube_request *request = &call->request;
    size_t header_count;
    CLEANUP_FREE struct http_header *headers = make_headers(call, &header_count);
    struct http_request http = {
        .server = &call->identity->server,
        .method = request->method,
        .path = request->path,
        .headers = headers,
        .header_count = header_count,
        .body = call->body,
        .body_length = request->body_length,
        .pool = request->pool,
        .timeout_us = call->deadline_us == INT64_MAX ? 0 : MAX(left_us(call), 1),
        .idle_timeout_us = request->idle_timeout_us,
        .answer_max = request->on_data ? ERROR_BODY_MAX : KUBE_ANSWER_MAX,
        .once = request->write,
        .fresh_connection = request->fresh_connection,
    };
    struct http_callbacks callbacks = {
        .before_send = request->before_send ? on_http_before_send : NULL,
        .on_status = on_http_status,
        .on_data = request->on_data ? on_http_data : NULL,
        .on_done = on_http_done,
    };
    call->http = env_http_submit(client->env, &http, &callbacks, call);
}

static void on_credential(void *context, struct kube_identity *identity, const char *problem)
{
    struct kube_call *call = context;
    call->waiting = false;
    env_timer_cancel(call->client->env, &call->deadline);
    call->identity = identity;
    if (!identity)
        finish_unsent(call, ERROR_UNAUTHORIZED, problem);
    else if (left_us(call) <= 0)
        finish_unsent(call, ERROR_TIMED_OUT, "its time was over before it could be sent");
    else
        send_request(call);
}

static void on_deadline(void *context)
{
    struct kube_call *call = context;
    call->deadline = NULL;
    finish_unsent(call, ERROR_TIMED_OUT, "its time was over while the credentials were waited for");
}

static void begin(struct kube_call *call)
{
    struct kube_client *client = call->client;
    call->identity = kube_credential_now(client->credential);
    if (call->identity) {
        send_request(call);
        return;
    }
    if (call->deadline_us != INT64_MAX)
        call->deadline = env_timer_start(client->env, MAX(left_us(call), 0), on_deadline, call);
    call->wait = (struct kube_credential_wait){.ready = on_credential, .context = call};
    call->waiting = true;
    kube_credential_wait(client->credential, &call->wait);
}

struct kube_call *kube_call_start(struct kube_client *client, const struct kube_request *request,
                                  kube_done *done, void *context)
{
    PRE(client && request && done);
    PRE(request->method && request->path && request->path[0] == '/');
    PRE(ERGO(request->write, !request->on_data && request->timeout_us > 0));
    struct kube_call *call = xcalloc(1, sizeof(*call));
    call->client = client;
    call->request = *request;
    call->request.method = xstrdup(request->method);
    call->request.path = xstrdup(request->path);
    call->request.accept = xstrdup_or_null(request->accept);
    call->request.content_type = xstrdup_or_null(request->content_type);
    call->request.audit_id = xstrdup_or_null(request->audit_id);
    call->request.body = NULL;
    call->body = request->body ? xmemdup0(request->body, request->body_length) : NULL;
    call->done = done;
    call->context = context;
    call->deadline_us = request->timeout_us ? env_boot_us(client->env) + request->timeout_us : INT64_MAX;
    DL_APPEND(client->calls, call);
    begin(call);
    return call;
}

void kube_call_cancel(struct kube_client *client, struct kube_call **slot)
{
    PRE(slot);
    struct kube_call *call = STEAL(*slot);
    if (!call)
        return;
    PRE(call->client == client);
    call_free(call);
}

struct kube_client *kube_client_make(struct env *env, struct kube_config *config)
{
    PRE(env && config && config->server.base_url);
    struct kube_client *client = xcalloc(1, sizeof(*client));
    client->env = env;
    client->config = config;
    client->credential = kube_credential_make(env, config);
    while (client->cookie == 0)
        env_random(env, &client->cookie, sizeof(client->cookie));
    return client;
}

void kube_client_free(struct kube_client *client)
{
    if (!client)
        return;
    for (struct kube_call *call = client->calls, *next; call; call = next) {
        next = call->next;
        call_free(call);
    }
    kube_credential_free(client->credential);
    kube_config_free(client->config);
    free(client);
}

const struct kube_config *kube_client_config(const struct kube_client *client)
{
    return client->config;
}

struct env *kube_client_env(const struct kube_client *client)
{
    return client->env;
}

struct kube_call *kube_get(struct kube_client *client, const char *path, int64_t timeout_us, kube_done *done,
                           void *context)
{
    PRE(timeout_us > 0);
    struct kube_request request = {
        .method = "GET", .path = path, .pool = HTTP_POOL_REQUEST, .timeout_us = timeout_us};
    return kube_call_start(client, &request, done, context);
}

struct kube_permit kube_permit_issue(struct kube_client *client)
{
    return (struct kube_permit){.cookie = client->cookie};
}

struct kube_call *kube_write(struct kube_client *client, struct kube_permit permit,
                             const struct kube_write *write, kube_done *done, void *context)
{
    PRE(permit.cookie == client->cookie);
    PRE(write && strcmp(write->method, "GET") != 0);
    PRE(!write->body == !write->content_type);
    PRE(write->audit_id && *write->audit_id);
    struct kube_request request = {
        .method = write->method,
        .path = write->path,
        .content_type = write->content_type,
        .body = write->body,
        .body_length = write->body_length,
        .audit_id = write->audit_id,
        .pool = write->pool,
        .timeout_us = write->timeout_us,
        .write = true,
        .is_dry = write->is_dry,
        .before_send = write->before_send,
    };
    return kube_call_start(client, &request, done, context);
}

void kube_client_refresh_credentials(struct kube_client *client)
{
    kube_credential_refresh(client->credential);
}
