/* SPDX-License-Identifier: Apache-2.0
 *
 * From exec() of the controller to its first decision at the server: the first request of a step, which had
 * to find the journal, win the lease, list everything, be planned, and have its intent on disk. A NeoSet
 * without pods waits in an API server model in this process. An upper bound: the server's work and the way
 * through the loopback are in it. */
#include "bench_server.h"

#include "base/time_text.h"

#include <stdio.h>

enum { PATIENCE_MS = 30000, EXIT_USAGE = 64 };

struct bench {
    struct bench_server server;
    int64_t first_step_us;
};

static void on_step(void *context, int64_t boot_us)
{
    struct bench *bench = context;
    if (!bench->first_step_us)
        bench->first_step_us = boot_us;
}

static void out_of_patience(uv_timer_t *timer)
{
    const struct bench *bench = timer->data;
    bench_fail("no decision came; the controller's log is in", bench->server.folder);
}

int main(int count, char **arguments)
{
    if (count != 6) {
        fprintf(stderr, "usage: start_bench CONTROLLER DEFINITION FOLDER JOURNAL SET\n"
                        "prints: ms from exec to the first request of a step. SET is a name that the journal "
                        "does not know\n");
        return EXIT_USAGE;
    }
    struct bench bench = {0};
    struct bench_server *server = &bench.server;
    server->on_step = on_step;
    server->context = &bench;
    bench_server_start(server, arguments[3], arguments[2]);
    bench_server_create_set(server, arguments[5], 3);
    uv_timer_t patience;
    uv_timer_init(&server->loop, &patience);
    patience.data = &bench;
    uv_timer_start(&patience, out_of_patience, PATIENCE_MS, 0);
    bench_server_start_controller(
        server, arguments[1],
        (const char *const[]){"--journal", arguments[4], "--lease", "default/neoset", NULL});
    while (!bench.first_step_us)
        uv_run(&server->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&patience, NULL);
    bench_server_stop_controller(server);
    bench_server_stop(server);
    printf("%.1f\n", (double)(bench.first_step_us - server->started_us) / (double)US_PER_MS);
    return 0;
}
