/* SPDX-License-Identifier: Apache-2.0
 *
 * What the wire alone costs: as many writes a pod as the controller sends for an update in place, with two
 * watches that are read and thrown away, by libcurl on the same loop. Nothing is parsed, planned or
 * journaled: whoever writes so often through this library spends at least so much. The controller must not
 * run meanwhile. Prints the milliseconds of CPU a pod. */
#include "base/time_text.h"
#include "control/step.h"
#include "kube/client.h"
#include "kube/resource.h"

#include <stdio.h>
#include <sys/resource.h>

enum { UNDER_WAY_MAX = 32, EXIT_USAGE = 64 };
#define REQUEST_TIMEOUT_US (60 * US_PER_S)
#define PATIENCE_US (600 * US_PER_S)

struct wire {
    struct env *env;
    struct kube_config *config;
    const char *prefix;
    int sets, replicas;
    int writes; /* a pod: half of them to its set */
    int sent, answered, under_way;
    int streams; /* watches that stand */
    struct env_http *watches[2];
    int64_t begun_us;
};

static int64_t cpu_us(void)
{
    struct rusage used;
    ENSURE(getrusage(RUSAGE_SELF, &used) == 0);
    return (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * US_PER_S + used.ru_utime.tv_usec +
           used.ru_stime.tv_usec;
}

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "transport: %s\n", what);
    exit(1);
}

static int count_of(const struct wire *wire)
{
    return wire->sets * wire->replicas * wire->writes;
}

static void send_more(struct wire *wire);

static void answered(void *context, const struct http_answer *answer)
{
    struct wire *wire = context;
    if (answer->outcome != HTTP_ANSWERED || answer->status / 100 != 2)
        fail(answer->problem ? answer->problem : answer->body);
    wire->under_way--;
    if (++wire->answered == count_of(wire))
        env_stop(wire->env);
    send_more(wire);
}

/* Each write changes something, so that both watches hear of it. */
static void send_one(struct wire *wire)
{
    static const struct http_callbacks callbacks = {.on_done = answered};
    int number = wire->sent++;
    bool to_set = number % 2 == 1;
    int pod = number % (wire->sets * wire->replicas);
    CLEANUP_FREE char *name =
        to_set ? xasprintf("%s-%d", wire->prefix, pod / wire->replicas)
               : xasprintf("%s-%d-%d", wire->prefix, pod / wire->replicas, pod % wire->replicas);
    CLEANUP_FREE char *path = kube_path(to_set ? KUBE_NEOSET : KUBE_POD, "default", name, "status");
    CLEANUP_FREE char *body =
        to_set ? xasprintf("{\"status\":{\"message\":\"write %d of the bench\"}}", number)
               : xasprintf("{\"status\":{\"conditions\":[{\"type\":\"apps.neo.io/bench\",\"status\":\"True\","
                           "\"message\":\"write %d of the bench\"}]}}",
                           number);
    const struct http_header type = {"Content-Type", to_set ? KUBE_MERGE : KUBE_STRATEGIC};
    wire->under_way++;
    env_http_submit(wire->env,
                    &(struct http_request){.server = &wire->config->server,
                                           .method = "PATCH",
                                           .path = path,
                                           .headers = &type,
                                           .header_count = 1,
                                           .body = body,
                                           .body_length = strlen(body),
                                           .pool = HTTP_POOL_REQUEST,
                                           .timeout_us = REQUEST_TIMEOUT_US,
                                           .once = true},
                    &callbacks, wire);
}

static void send_more(struct wire *wire)
{
    while (wire->sent < count_of(wire) && wire->under_way < UNDER_WAY_MAX)
        send_one(wire);
}

/* --- the watches ---------------------------------------------------------------------------------------- */

static void stands(void *context, int status)
{
    struct wire *wire = context;
    if (status != 200)
        fail("a watch is refused");
    if (++wire->streams < (int)ARRAY_SIZE(wire->watches))
        return;
    wire->begun_us = cpu_us();
    send_more(wire);
}

static bool throw_away(void *context, const char *bytes, size_t length)
{
    (void)context;
    (void)bytes;
    (void)length;
    return true;
}

static void ended(void *context, const struct http_answer *answer)
{
    (void)context;
    fail(answer->problem ? answer->problem : "a watch ended");
}

static void watch(struct wire *wire, int which, enum kube_resource resource)
{
    static const struct http_callbacks callbacks = {
        .on_status = stands, .on_data = throw_away, .on_done = ended};
    CLEANUP_FREE char *base = kube_path(resource, NULL, NULL, NULL);
    CLEANUP_FREE char *path = xasprintf("%s?watch=1", base);
    wire->watches[which] = env_http_submit(
        wire->env,
        &(struct http_request){
            .server = &wire->config->server, .method = "GET", .path = path, .pool = HTTP_POOL_WATCH},
        &callbacks, wire);
}

static void out_of_patience(void *context)
{
    (void)context;
    fail("ten minutes are over: giving up");
}

int main(int count, char **arguments)
{
    enum { WORDS = 6 };
    struct wire wire = {0};
    if (count == WORDS)
        wire = (struct wire){.prefix = arguments[2],
                             .sets = (int)strtol(arguments[3], NULL, 10),
                             .replicas = (int)strtol(arguments[4], NULL, 10),
                             .writes = (int)strtol(arguments[5], NULL, 10)};
    if (wire.sets < 1 || wire.replicas < 1 || wire.writes < 1) {
        fprintf(stderr, "usage: transport KUBECONFIG PREFIX SETS REPLICAS WRITES\n"
                        "prints: milliseconds of CPU a pod, for so many writes a pod\n");
        return EXIT_USAGE;
    }
    CLEANUP_ERROR struct error *err = NULL;
    wire.env = env_real_make();
    if (kube_config_load(wire.env, &(struct kube_config_options){.kubeconfig = arguments[1]}, &wire.config,
                         &err) < 0)
        fail(error_text(err));
    struct env_timer *patience = env_timer_start(wire.env, PATIENCE_US, out_of_patience, &wire);
    watch(&wire, 0, KUBE_POD);
    watch(&wire, 1, KUBE_NEOSET);
    env_run(wire.env);
    double pods = (double)wire.sets * wire.replicas;
    printf("%.2f\n", (double)(cpu_us() - wire.begun_us) / 1000 / pods);
    for (size_t i = 0; i < ARRAY_SIZE(wire.watches); i++)
        env_http_cancel(wire.env, &wire.watches[i]);
    env_timer_cancel(wire.env, &patience);
    env_free(wire.env);
    kube_config_free(wire.config);
    return 0;
}
