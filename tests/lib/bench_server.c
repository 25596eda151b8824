/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_server.h"
#include "whole_file.h"

#include "base/time_text.h"
#include "base/yaml.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 32 };

_Noreturn void bench_fail(const char *what, const char *text)
{
    fprintf(stderr, "bench: %s: %s\n", what, text);
    exit(1);
}

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

int64_t bench_clock_us(void)
{
    return clock_us(CLOCK_BOOTTIME);
}

static int64_t wall_us(void *context)
{
    (void)context;
    return clock_us(CLOCK_REALTIME);
}

static void fill_random(void *context, void *bytes, size_t length)
{
    (void)context;
    ENSURE(getrandom(bytes, length, 0) == (ssize_t)length);
}

/* One line a request: a step of the controller carries Audit-ID neo-<key>-<attempt>, exempt writes neo-x-. */
static void on_audit(void *context, const char *line, size_t length)
{
    struct bench_server *server = context;
    static const char step[] = "\"auditID\":\"neo-";
    const char *found = memmem(line, length, step, sizeof(step) - 1);
    if (found && !str_starts_with(found + sizeof(step) - 1, "x-") && server->on_step)
        server->on_step(server->context, bench_clock_us());
}

char *bench_server_ask(struct bench_server *server, const char *method, const char *path,
                       const char *content_type, const char *body)
{
    const struct kubesim_request request = {.method = method,
                                            .path = path,
                                            .content_type = content_type,
                                            .accept = "application/json",
                                            .user_agent = "bench",
                                            .body = body,
                                            .body_length = body ? strlen(body) : 0};
    struct kubesim_response response;
    kubesim_handle(server->sim, &request, &response);
    if (response.status / 100 != 2)
        bench_fail(path, response.body);
    char *answer = xstrdup(response.body);
    kubesim_response_done(&response);
    return answer;
}

static void load_definition(struct bench_server *server, const char *path)
{
    CLEANUP_ERROR struct error *err = NULL;
    size_t length = 0;
    CLEANUP_FREE char *text = whole_file(path, &length);
    struct yaml_documents documents = {0};
    if (yaml_parse(text, length, path, &documents, &err) < 0)
        bench_fail(path, error_text(err));
    for (size_t i = 0; i < documents.count; i++) {
        CLEANUP_FREE char *body = json_print(documents.items[i]);
        free(bench_server_ask(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                              "application/json", body));
    }
    yaml_documents_done(&documents);
}

void bench_server_start(struct bench_server *server, const char *folder, const char *definition)
{
    CLEANUP_ERROR struct error *err = NULL;
    signal(SIGPIPE, SIG_IGN);
    server->folder = folder;
    uv_loop_init(&server->loop);
    server->sim = kubesim_make(&(struct kubesim_options){
        .now_us = wall_us, .random = fill_random, .audit = on_audit, .context = server});
    load_definition(server, definition);
    if (http_front_start(&server->loop, server->sim, "127.0.0.1:0", &server->front, &err) < 0)
        bench_fail("listen", error_text(err));
}

void bench_server_create_set(struct bench_server *server, const char *name, int replicas)
{
    CLEANUP_FREE char *body =
        xasprintf("{\"apiVersion\":\"apps.neo.io/"
                  "v1alpha1\",\"kind\":\"NeoSet\",\"metadata\":{\"name\":\"%s\"},\"spec\":{"
                  "\"replicas\":%d,\"serviceName\":\"db\",\"podManagementPolicy\":\"Parallel\",\"selector\":{"
                  "\"matchLabels\":{"
                  "\"app\":\"%s\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"%s\"}},\"spec\":{"
                  "\"containers\":[{\"name\":"
                  "\"db\",\"image\":\"mysql:8.0\"}]}}}}",
                  name, replicas, name, name);
    free(bench_server_ask(server, "POST", "/apis/apps.neo.io/v1alpha1/namespaces/default/neosets",
                          "application/json", body));
}

/* --- the controller ------------------------------------------------------------------------------------ */

static void on_controller_exit(uv_process_t *process, int64_t status, int signal_number)
{
    struct bench_server *server = process->data;
    server->controller_runs = false;
    uv_close((uv_handle_t *)process, NULL);
    if (status != 0 || signal_number != 0)
        bench_fail("the controller ended; its log is in", server->folder);
}

static char *write_kubeconfig(const struct bench_server *server)
{
    char *path = xasprintf("%s/kubeconfig", server->folder);
    FILE *file = fopen(path, "we");
    if (!file)
        bench_fail(path, "cannot be written");
    fprintf(file,
            "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: "
            "'http://%s'}}]\n"
            "users: [{name: a, user: {token: 'user:a'}}]\ncontexts: [{name: a, context: {cluster: a, user: "
            "a}}]\n",
            http_front_address(server->front));
    fclose(file);
    return path;
}

void bench_server_start_controller(struct bench_server *server, const char *program,
                                   const char *const arguments[])
{
    CLEANUP_FREE char *kubeconfig = write_kubeconfig(server);
    CLEANUP_FREE char *log = xasprintf("%s/controller.log", server->folder);
    const char *all[ARGUMENTS_MAX] = {program, "--kubeconfig", kubeconfig, "--listen",
                                      "none",  "--log-level",  "warning"};
    size_t count = 7;
    for (size_t i = 0; arguments[i]; i++) {
        ENSURE(count < ARGUMENTS_MAX - 1);
        all[count++] = arguments[i];
    }
    int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0)
        bench_fail(log, "cannot be written");
    uv_stdio_container_t streams[] = {{.flags = UV_IGNORE},
                                      {.flags = UV_INHERIT_FD, .data.fd = log_fd},
                                      {.flags = UV_INHERIT_FD, .data.fd = log_fd}};
    const uv_process_options_t options = {.exit_cb = on_controller_exit,
                                          .file = program,
                                          .args = (char **)all,
                                          .stdio_count = ARRAY_SIZE(streams),
                                          .stdio = streams};
    server->controller.data = server;
    server->started_us = bench_clock_us();
    int result = uv_spawn(&server->loop, &server->controller, &options);
    if (result < 0)
        bench_fail(program, uv_strerror(result));
    close(log_fd);
    server->controller_runs = true;
}

void bench_server_stop_controller(struct bench_server *server)
{
    if (server->controller_runs)
        uv_process_kill(&server->controller, SIGTERM);
    while (server->controller_runs)
        uv_run(&server->loop, UV_RUN_ONCE);
}

void bench_server_stop(struct bench_server *server)
{
    kubelet_loop_stop(STEAL(server->kubelet));
    http_front_stop(server->front);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    uv_loop_close(&server->loop);
    kubesim_free(server->sim);
}
