/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps and entries a second through the whole gateway: real journal, real loop, real gateway and kube
 * client; only the server is none: every request is answered 200 in the next turn of the loop, without a
 * socket. Operations of 12 steps, as a rollout of a set makes them. */
#include "base/time_text.h"
#include "control/gateway.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STEPS_AN_OPERATION = 12, PADDING = 330 };

struct bench {
    struct env *env;
    struct journal *journal;
    struct gateway *gateway;
    struct env_timer *commit;
    int64_t wanted;
    int64_t submitted;
    int64_t done;
    char padding[PADDING + 1]; /* bodies of about 450 bytes */
};

_Noreturn static void fail(const char *what, const char *text)
{
    fprintf(stderr, "gateway_bench: %s: %s\n", what, text);
    exit(1);
}

/* --- the server that answers at once ------------------------------------------------------------------- */

struct env_http {
    struct env *env;
    struct http_callbacks callbacks;
    void *context;
    struct env_timer *timer;
    char body[256];
};

static void answer_now(void *context)
{
    struct env_http *http = context;
    bool leaves = http->callbacks.before_send(http->context);
    struct http_answer answer = {.outcome = leaves ? HTTP_ANSWERED : HTTP_NOT_SENT,
                                 .status = leaves ? 200 : 0,
                                 .body_whole = leaves,
                                 .body = http->body,
                                 .body_length = strlen(http->body),
                                 .retry_after_us = -1,
                                 .problem = leaves ? NULL : "refused",
                                 .code = leaves ? ERROR_NONE : ERROR_CANCELLED};
    http->callbacks.on_done(http->context, &answer);
    free(http);
}

static struct env_http *submit_http(struct env *env, const struct http_request *request,
                                    const struct http_callbacks *callbacks, void *context)
{
    struct env_http *http = xcalloc(1, sizeof(*http));
    *http = (struct env_http){.env = env, .callbacks = *callbacks, .context = context};
    const char *name = strrchr(request->path, '/') + 1;
    snprintf(http->body, sizeof(http->body),
             "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"%.*s\",\"namespace\":\"default\",\"uid\":"
             "\"0a1b2c3d-0000-4000-8000-000000000000\",\"resourceVersion\":\"11\"}}",
             (int)strcspn(name, "?"), name);
    http->timer = env_timer_start(env, 0, answer_now, http);
    return http;
}

static void cancel_http(struct env_http *http)
{
    env_timer_cancel(http->env, &http->timer);
    free(http);
}

/* --- steps --------------------------------------------------------------------------------------------- */

static struct step_request *make_step(const struct bench *bench, int64_t number)
{
    CLEANUP_FREE char *set = xasprintf("db-%lld", (long long)(number / STEPS_AN_OPERATION));
    CLEANUP_FREE char *pod = xasprintf("%s-%lld", set, (long long)(number % STEPS_AN_OPERATION));
    struct step_request *request = step_request_make(STEP_UPDATE_IN_PLACE, KUBE_POD, "default", pod);
    request->uid = xstrdup("0a1b2c3d-0000-4000-8000-000000000000");
    request->version = xasprintf("%lld", (long long)(1000000 + number));
    request->body = json_new_object();
    json_add_str(json_add_object(request->body, "spec"), "padding", bench->padding);
    request->fingerprint = xstrdup("update mysql:8.1");
    request->reason = xasprintf("%s: image mysql:8.0 -> mysql:8.1", pod);
    request->operation_kind = xstrdup("rollout");
    request->operation_resource = KUBE_NEOSET;
    request->operation_namespace = xstrdup("default");
    request->operation_name = STEAL(set);
    request->come_from = xstrdup("mysql:8.0");
    request->go_to = xstrdup("mysql:8.1");
    request->lowers_availability = true;
    return request;
}

static void fill(struct bench *bench);

static void commit_turn(void *context)
{
    struct bench *bench = context;
    bench->commit = NULL;
    fill(bench);
    journal_commit(bench->journal);
}

static void step_is_done(void *context, const struct step_outcome *outcome)
{
    struct bench *bench = context;
    if (outcome->kind != JOURNAL_APPLIED)
        fail("a step was not applied", journal_kind_text(outcome->kind));
    if (++bench->done == bench->wanted)
        env_stop(bench->env);
    else if (!bench->commit)
        bench->commit = env_timer_start(bench->env, 0, commit_turn, bench); /* the turn's end */
}

static void fill(struct bench *bench)
{
    while (bench->submitted < bench->wanted && !gateway_is_busy(bench->gateway)) {
        struct step_request *step = make_step(bench, bench->submitted);
        if (gateway_submit(bench->gateway, step, step_is_done, bench) < 0)
            fail("submit", "refused");
        bench->submitted++;
        if (bench->submitted % STEPS_AN_OPERATION == 0) {
            CLEANUP_FREE char *set =
                xasprintf("db-%lld", (long long)(bench->submitted / STEPS_AN_OPERATION - 1));
            gateway_end_operation(bench->gateway, "rollout", KUBE_NEOSET, "default", set, "completed", NULL);
        }
    }
}

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(
            stderr,
            "usage: gateway_bench JOURNAL STEPS\nprints: steps a second, entries a second, CPU us a step\n");
        return 64;
    }
    struct bench bench = {.env = env_real_make(), .wanted = strtoll(arguments[2], NULL, 10)};
    struct env_ops ops = *bench.env->ops;
    ops.http_submit = submit_http;
    ops.http_cancel = cancel_http;
    bench.env->ops = &ops;
    memset(bench.padding, 'x', PADDING);
    CLEANUP_ERROR struct error *err = NULL;
    struct journal_options options = {.path = arguments[1], .identity = "bench", .version = "bench"};
    if (journal_open(bench.env, &options, &bench.journal, &err) < 0)
        fail("open", error_text(err));
    struct kube_client *client = kube_client_make(bench.env, kube_config_of_url("http://127.0.0.1:1"));
    bench.gateway = gateway_make(&(struct gateway_options){
        .env = bench.env, .client = client, .journal = bench.journal, .field_manager = "neoset"});
    int64_t begin_us = env_boot_us(bench.env);
    int64_t first = journal_next_seq(bench.journal);
    double cpu = cpu_s();
    bench.commit = env_timer_start(bench.env, 0, commit_turn, &bench);
    env_run(bench.env);
    double took_s = (double)(env_boot_us(bench.env) - begin_us) / (double)US_PER_S;
    cpu = cpu_s() - cpu;
    int64_t entries = journal_next_seq(bench.journal) - first;
    printf("%.0f %.0f %.1f\n", (double)bench.wanted / took_s, (double)entries / took_s,
           cpu * 1e6 / (double)bench.wanted);
    env_timer_cancel(bench.env, &bench.commit);
    gateway_free(bench.gateway);
    kube_client_free(client);
    journal_close(bench.journal, "bench");
    env_free(bench.env);
    return 0;
}
