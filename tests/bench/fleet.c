/* SPDX-License-Identifier: Apache-2.0
 *
 * The user of the benches: makes many NeoSets (or, for comparison, StatefulSets) at once, changes all their
 * images at once, and waits until every one of them says that it is done. Prints the seconds that took, and
 * the CPU seconds that the processes given by id spent meanwhile. */
#include "base/time_text.h"
#include "kube/object.h"
#include "kube/watch.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { UNDER_WAY_MAX = 32, PIDS_MAX = 8, PATH_BYTES_MAX = 64, EXIT_USAGE = 64 };
#define REQUEST_TIMEOUT_US (60 * US_PER_S)
#define WAIT_US (1800 * US_PER_S)

enum goal { GOAL_CREATED, GOAL_ROLLED };

struct fleet {
    struct env *env;
    struct kube_client *client;
    struct kube_watch *watch;
    struct env_timer *patience;
    enum goal goal;
    enum kube_resource resource;
    const char *prefix;
    const char *image;
    int sets;
    int replicas;
    int sent; /* requests so far */
    int under_way;
    bool *is_done; /* by number of the set */
    int done;
    int64_t begun_us;
    int64_t ended_us;
};

/* What a process spent, user and system, in seconds. */
static double cpu_s_of(int pid)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    unsigned long user = 0;
    unsigned long system = 0;
    if (!file || fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                        &system) != 2) {
        fprintf(stderr, "fleet: there is no process %d\n", pid);
        exit(1);
    }
    fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "fleet: %s\n", what);
    exit(1);
}

/* --- requests ------------------------------------------------------------------------------------------ */

static char *set_text(const struct fleet *fleet, int number)
{
    CLEANUP_FREE char *version = kube_resource_api_version(fleet->resource);
    bool is_neoset = fleet->resource == KUBE_NEOSET;
    return xasprintf(
        "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s-%d\"},"
        "\"spec\":{\"replicas\":%d,\"serviceName\":\"%s\",\"podManagementPolicy\":\"Parallel\","
        "\"selector\":{\"matchLabels\":{\"app\":\"%s-%d\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":"
        "\"%s-%d\"}},\"spec\":{\"containers\":[{\"name\":\"db\",\"image\":\"%s\",\"ports\":[{"
        "\"containerPort\":3306}]}]}},\"updateStrategy\":%s}}",
        version, kube_resource_info(fleet->resource)->kind, fleet->prefix, number, fleet->replicas,
        fleet->prefix, fleet->prefix, number, fleet->prefix, number, fleet->image,
        is_neoset ? "{\"maxUnavailable\":2,\"inPlaceUpdateStrategy\":{\"prefetch\":\"Never\"}}"
                  : "{\"type\":\"RollingUpdate\"}");
}

static char *patch_text(const struct fleet *fleet)
{
    return xasprintf(
        "[{\"op\":\"replace\",\"path\":\"/spec/template/spec/containers/0/image\",\"value\":\"%s\"}]",
        fleet->image);
}

static void send_more(struct fleet *fleet);

static void answered(void *context, const struct http_answer *answer)
{
    struct fleet *fleet = context;
    fleet->under_way--;
    if (answer->outcome != HTTP_ANSWERED || answer->status / 100 != 2) {
        fprintf(stderr, "fleet: %d %s\n", answer->status, answer->problem ? answer->problem : answer->body);
        exit(1);
    }
    send_more(fleet);
}

static void send_one(struct fleet *fleet)
{
    const bool creates = fleet->goal == GOAL_CREATED;
    const int number = fleet->sent++;
    CLEANUP_FREE char *name = xasprintf("%s-%d", fleet->prefix, number);
    CLEANUP_FREE char *path = kube_path(fleet->resource, "default", creates ? NULL : name, NULL);
    CLEANUP_FREE char *body = creates ? set_text(fleet, number) : patch_text(fleet);
    const struct http_header type = {"Content-Type",
                                     creates ? "application/json" : "application/json-patch+json"};
    static const struct http_callbacks callbacks = {.on_done = answered};
    fleet->under_way++;
    env_http_submit(fleet->env,
                    &(struct http_request){.server = &kube_client_config(fleet->client)->server,
                                           .method = creates ? "POST" : "PATCH",
                                           .path = path,
                                           .headers = &type,
                                           .header_count = 1,
                                           .body = body,
                                           .body_length = strlen(body),
                                           .pool = HTTP_POOL_REQUEST,
                                           .timeout_us = REQUEST_TIMEOUT_US},
                    &callbacks, fleet);
}

static void send_more(struct fleet *fleet)
{
    while (fleet->sent < fleet->sets && fleet->under_way < UNDER_WAY_MAX)
        send_one(fleet);
}

/* --- what the sets say --------------------------------------------------------------------------------- */

static bool has_image(const cJSON *set, const char *image)
{
    const cJSON *containers = json_path(set, "spec", "template", "spec", "containers", NULL);
    return containers && str_equal(json_str(containers->child, "image"), image);
}

static bool is_reached(const struct fleet *fleet, const cJSON *set)
{
    const cJSON *status = json_get(set, "status");
    const char *phase = json_str(status, "phase");
    if (json_int64_or(status, "observedGeneration", 0) != kube_object_generation(set) ||
        json_int64_or(status, "readyReplicas", 0) != fleet->replicas)
        return false;
    if (fleet->resource == KUBE_STATEFULSET)
        return fleet->goal == GOAL_CREATED ||
               (has_image(set, fleet->image) &&
                json_int64_or(status, "updatedReplicas", 0) == fleet->replicas &&
                str_equal(json_str(status, "currentRevision"), json_str(status, "updateRevision")));
    if (fleet->goal == GOAL_CREATED)
        return str_equal(phase, "Idle") || str_equal(phase, "Completed");
    return str_equal(phase, "Completed") && str_equal(json_str(status, "currentImage"), fleet->image);
}

/* The number behind the prefix, or -1: another set. */
static int number_of(const struct fleet *fleet, const char *name)
{
    size_t length = strlen(fleet->prefix);
    if (!name || strncmp(name, fleet->prefix, length) != 0 || name[length] != '-')
        return -1;
    char *end = NULL;
    long number = strtol(name + length + 1, &end, 10);
    return *end == '\0' && number >= 0 && number < fleet->sets ? (int)number : -1;
}

static void on_object(void *context, const cJSON *object)
{
    struct fleet *fleet = context;
    int number = number_of(fleet, kube_object_name(object));
    if (number < 0 || fleet->is_done[number] || !is_reached(fleet, object))
        return;
    fleet->is_done[number] = true;
    if (++fleet->done < fleet->sets)
        return;
    fleet->ended_us = env_boot_us(fleet->env);
    env_stop(fleet->env);
}

static void on_deleted(void *context, const cJSON *last_state)
{
    (void)context;
    (void)last_state;
}

static void on_list_begin(void *context)
{
    (void)context;
}

/* Only once the watch stands: nothing of what follows is missed. */
static void on_list_end(void *context)
{
    struct fleet *fleet = context;
    if (fleet->begun_us)
        return;
    fleet->begun_us = env_boot_us(fleet->env);
    send_more(fleet);
}

static void out_of_patience(void *context)
{
    struct fleet *fleet = context;
    fleet->patience = NULL;
    CLEANUP_FREE char *what = xasprintf("%d of %d sets were done in %lld s: giving up", fleet->done,
                                        fleet->sets, (long long)(WAIT_US / US_PER_S));
    fail(what);
}

/* --- the run ------------------------------------------------------------------------------------------- */

static void connect_to(struct fleet *fleet, const char *kubeconfig)
{
    CLEANUP_ERROR struct error *err = NULL;
    struct kube_config *config = NULL;
    fleet->env = env_real_make();
    if (kube_config_load(fleet->env, &(struct kube_config_options){.kubeconfig = kubeconfig}, &config, &err) <
        0)
        fail(error_text(err));
    fleet->client = kube_client_make(fleet->env, config);
}

static void run(struct fleet *fleet)
{
    static const struct kube_watch_callbacks callbacks = {
        .list_begin = on_list_begin, .list_end = on_list_end, .object = on_object, .deleted = on_deleted};
    fleet->is_done = xcalloc((size_t)fleet->sets, sizeof(bool));
    fleet->patience = env_timer_start(fleet->env, WAIT_US, out_of_patience, fleet);
    fleet->watch = kube_watch_start(fleet->client, &(struct kube_watch_spec){.resource = fleet->resource},
                                    &callbacks, fleet);
    env_run(fleet->env);
    kube_watch_stop(fleet->watch);
    kube_client_free(fleet->client);
    env_free(fleet->env);
    free(fleet->is_done);
}

static int usage(void)
{
    fprintf(
        stderr,
        "usage: fleet KUBECONFIG create PREFIX SETS REPLICAS IMAGE [PID]...     Parallel, without claims\n"
        "       fleet KUBECONFIG roll PREFIX SETS REPLICAS IMAGE [PID]...\n"
        "       create-statefulsets, roll-statefulsets: the same with StatefulSets\n"
        "prints: seconds, and the CPU seconds of each PID meanwhile\n");
    return EXIT_USAGE;
}

int main(int count, char **arguments)
{
    enum { FIRST_PID = 7 };
    if (count < FIRST_PID || count > FIRST_PID + PIDS_MAX)
        return usage();
    struct fleet fleet = {.prefix = arguments[3],
                          .sets = (int)strtol(arguments[4], NULL, 10),
                          .replicas = (int)strtol(arguments[5], NULL, 10),
                          .image = arguments[6]};
    static const struct {
        const char *word;
        enum goal goal;
        enum kube_resource resource;
    } words[] = {{"create", GOAL_CREATED, KUBE_NEOSET},
                 {"roll", GOAL_ROLLED, KUBE_NEOSET},
                 {"create-statefulsets", GOAL_CREATED, KUBE_STATEFULSET},
                 {"roll-statefulsets", GOAL_ROLLED, KUBE_STATEFULSET}};
    size_t word = 0;
    while (word < ARRAY_SIZE(words) && strcmp(arguments[2], words[word].word) != 0)
        word++;
    if (word == ARRAY_SIZE(words))
        return usage();
    fleet.goal = words[word].goal;
    fleet.resource = words[word].resource;
    if (fleet.sets < 1 || fleet.replicas < 1)
        return usage();
    double cpu_s[PIDS_MAX];
    for (int i = FIRST_PID; i < count; i++)
        cpu_s[i - FIRST_PID] = cpu_s_of((int)strtol(arguments[i], NULL, 10));
    connect_to(&fleet, arguments[1]);
    run(&fleet);
    printf("%.3f", (double)(fleet.ended_us - fleet.begun_us) / (double)US_PER_S);
    for (int i = FIRST_PID; i < count; i++)
        printf(" %.2f", cpu_s_of((int)strtol(arguments[i], NULL, 10)) - cpu_s[i - FIRST_PID]);
    printf("\n");
    return 0;
}
