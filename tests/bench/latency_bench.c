/* SPDX-License-Identifier: Apache-2.0
 *
 * How long from an event that allows a write to its request, with one durable commit between: the real
 * controller against an API server model in this process. A pod's gate is closed by a stranger; the
 * controller's gate upkeep opens it. Measured from the moment the watch line is handed to the socket to the
 * moment the request was taken in: an upper bound of "line read -> request handed to the transport" (two
 * passages through the loopback, and the server's own work on the request, are in it). Beside it, on the same
 * disk and in the same seconds, the least that a commit can take: one write of 4 KiB in place and fdatasync.
 */
#include "bench_server.h"

#include "base/time_text.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
    /* Each gate is closed once: the second time within a minute the controller would take it for a quarrel
       and rest. */
    PODS = 250,
    PAUSE_MS = 3,
    SETUP_MS = 60000,
    SAMPLE_MS = 5000,
    BLOCK = 4096,
    SYNC_BLOCKS = 256,
    EXIT_USAGE = 64,
};

struct bench {
    struct bench_server server;
    uv_timer_t timer;
    int disk_fd;
    int samples;
    int taken;
    bool waits;
    int64_t event_us;
    int64_t *latency_us;
    int64_t *sync_us;
};

static void on_step(void *context, int64_t boot_us)
{
    struct bench *bench = context;
    if (!bench->waits)
        return;
    bench->waits = false;
    bench->latency_us[bench->taken] = boot_us - bench->event_us;
}

static bool everything_is_ready(struct bench *bench)
{
    CLEANUP_FREE char *text = bench_server_ask(
        &bench->server, "GET", "/apis/apps.neo.io/v1alpha1/namespaces/default/neosets/db", NULL, NULL);
    CLEANUP_JSON cJSON *set = NULL;
    ENSURE(json_parse(text, strlen(text), &set, NULL) == 0);
    const cJSON *status = json_get(set, "status");
    return json_int64_or(status, "readyReplicas", 0) == PODS && str_equal(json_str(status, "phase"), "Idle");
}

static int64_t time_sync(struct bench *bench)
{
    static const char block[BLOCK];
    off_t place = (off_t)(bench->taken % SYNC_BLOCKS) * BLOCK;
    int64_t begin_us = bench_clock_us();
    ENSURE(pwrite(bench->disk_fd, block, BLOCK, place) == BLOCK && fdatasync(bench->disk_fd) == 0);
    return bench_clock_us() - begin_us;
}

static void close_a_gate(struct bench *bench)
{
    CLEANUP_FREE char *path =
        xasprintf("/api/v1/namespaces/default/pods/db-%d/status?fieldManager=stranger", bench->taken % PODS);
    CLEANUP_FREE char *body =
        xasprintf("{\"status\":{\"conditions\":[{\"type\":\"apps.neo.io/in-place-ready\","
                  "\"status\":\"False\",\"message\":\"sample %d\"}]}}",
                  bench->taken);
    free(bench_server_ask(&bench->server, "PATCH", path, "application/strategic-merge-patch+json", body));
    bench->waits = true;
    bench->event_us = bench_clock_us();
    http_front_pump(bench->server.front);
}

static void check_sample(uv_timer_t *timer);

static void take_sample(uv_timer_t *timer)
{
    struct bench *bench = timer->data;
    bench->sync_us[bench->taken] = time_sync(bench);
    close_a_gate(bench);
    uv_timer_start(timer, check_sample, 1, 1);
}

static void check_sample(uv_timer_t *timer)
{
    struct bench *bench = timer->data;
    if (bench->waits) {
        if (bench_clock_us() - bench->event_us > SAMPLE_MS * US_PER_MS)
            bench_fail("the controller did not react; its log is in", bench->server.folder);
        return;
    }
    uv_timer_stop(timer);
    if (++bench->taken == bench->samples)
        uv_close((uv_handle_t *)timer, NULL);
    else
        uv_timer_start(timer, take_sample, (uint64_t)(PAUSE_MS + bench->taken % PODS), 0);
}

static void check_setup(uv_timer_t *timer)
{
    struct bench *bench = timer->data;
    if (bench_clock_us() - bench->server.started_us > SETUP_MS * US_PER_MS)
        bench_fail("the set did not become ready; the controller's log is in", bench->server.folder);
    if (!everything_is_ready(bench))
        return;
    /* From now on nothing changes but what a sample changes. */
    kubelet_loop_stop(STEAL(bench->server.kubelet));
    uv_timer_start(timer, take_sample, 1000, 0);
}

/* --- the figures --------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static void print_percentiles(int64_t *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), by_size);
    printf("%.2f %.2f ", (double)values[count / 2] / (double)US_PER_MS,
           (double)values[(int64_t)count * 99 / 100] / (double)US_PER_MS);
}

static void open_disk(struct bench *bench, const char *folder)
{
    CLEANUP_FREE char *path = xasprintf("%s/sync", folder);
    bench->disk_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (bench->disk_fd < 0)
        bench_fail(path, "cannot be written");
    /* As a write-ahead log mostly is: there already, written anew in place. */
    static const char block[BLOCK];
    for (int i = 0; i < SYNC_BLOCKS; i++)
        ENSURE(pwrite(bench->disk_fd, block, BLOCK, (off_t)i * BLOCK) == BLOCK);
    ENSURE(fsync(bench->disk_fd) == 0);
}

int main(int count, char **arguments)
{
    struct bench bench = {.samples = count == 5 ? (int)strtol(arguments[4], NULL, 10) : 0};
    if (bench.samples < 1) {
        fprintf(stderr, "usage: latency_bench CONTROLLER DEFINITION FOLDER SAMPLES\n"
                        "prints: event to request p50 and p99, write and fdatasync p50 and p99, in ms\n");
        return EXIT_USAGE;
    }
    struct bench_server *server = &bench.server;
    bench.latency_us = xcalloc((size_t)bench.samples, sizeof(int64_t));
    bench.sync_us = xcalloc((size_t)bench.samples, sizeof(int64_t));
    open_disk(&bench, arguments[3]);
    server->on_step = on_step;
    server->context = &bench;
    bench_server_start(server, arguments[3], arguments[2]);
    server->kubelet =
        kubelet_loop_start(&server->loop, server->sim, server->front, &(struct kubelet_options){.seed = 1});
    bench_server_create_set(server, "db", PODS);
    CLEANUP_FREE char *journal = xasprintf("%s/journal.db", arguments[3]);
    bench_server_start_controller(server, arguments[1],
                                  (const char *const[]){"--journal", journal, "--no-lease", NULL});
    uv_timer_init(&server->loop, &bench.timer);
    bench.timer.data = &bench;
    uv_timer_start(&bench.timer, check_setup, 100, 100);
    while (bench.taken < bench.samples)
        uv_run(&server->loop, UV_RUN_ONCE);
    bench_server_stop_controller(server);
    bench_server_stop(server);
    print_percentiles(bench.latency_us, bench.samples);
    print_percentiles(bench.sync_us, bench.samples);
    printf("\n");
    free(bench.latency_us);
    free(bench.sync_us);
    close(bench.disk_fd);
    return 0;
}
