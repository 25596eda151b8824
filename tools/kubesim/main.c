/* SPDX-License-Identifier: Apache-2.0
 *
 * The program: an API server model on a port. */
#include "kubesim/http.h"
#include "kubesim/kubelet_client.h"
#include "kubesim/kubelet_loop.h"

#include "base/time_text.h"
#include "base/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 64, FILE_MAX = 16 * 1024 * 1024 };

struct options {
    const char *listen;
    const char *kubeconfig_out;
    const char *audit_log;
    const char *definition;
    const char *kubelet;
    const char *faults;
    const char *git_version;
    bool newer; /* 1.37 */
    bool volumes;
    bool gc_off;
    int64_t gc_delay_us, gc_blind_us;
    bool statefulsets;
};

struct program {
    struct options options;
    uv_loop_t loop;
    uv_signal_t signals[2];
    struct kubesim *sim;
    struct http_front *front;
    struct kubelet_loop *kubelet;
    FILE *audit;
};

static void print_help(FILE *out)
{
    fprintf(out,
            "usage: kubesim [OPTION]...\n"
            "       kubesim kubelet [OPTION]...   only the kubelet, for any API server (see its --help)\n"
            "A Kubernetes API server model in memory. Prints its address and serves until SIGTERM.\n\n"
            "  --listen ADDRESS:PORT   where to listen (127.0.0.1:0: a free port)\n"
            "  --kubeconfig-out FILE   write a kubeconfig for kubectl\n"
            "  --crd FILE              apply these manifests at the start\n"
            "  --kubelet BEHAVIOUR     run a kubelet for every node inside\n"
            "  --faults SPEC           what goes wrong (below)\n"
            "  --audit-log FILE        append one audit.k8s.io/v1 line a request\n"
            "  --git-version VERSION   what /version says\n"
            "  --generation 1.36|1.37  whose answers (1.36)\n"
            "  --refuse-by-field       the same as --generation 1.37\n"
            "  --gc-off                no garbage collector\n"
            "  --gc-delay SECONDS      it looks so long after a change (0)\n"
            "  --gc-blind SECONDS      it overlooks dependents that are younger when their owner is "
            "orphaned, and\n"
            "                          takes them for abandoned later (0)\n"
            "  --statefulsets          run StatefulSets\n"
            "  --volumes               bind claims of dynamic classes, and grow volumes\n"
            "  --help\n\n%s\n%s\n%s",
            kubesim_fault_help(), kubelet_behaviour_help(), kubesim_volumes_help());
}

static int64_t wall_us(void *context)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void fill_random(void *context, void *bytes, size_t length)
{
    (void)context;
    ENSURE(getrandom(bytes, length, 0) == (ssize_t)length);
}

static void write_audit(void *context, const char *line, size_t length)
{
    struct program *program = context;
    if (!program->audit)
        return;
    fwrite(line, 1, length, program->audit);
    fputc('\n', program->audit);
    fflush(program->audit);
}

static int read_seconds(const char *option, const char *text, int64_t *ret_us)
{
    enum { SECONDS_MAX = 86400 };
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end || !(seconds >= 0 && seconds <= SECONDS_MAX)) {
        fprintf(stderr, "kubesim: --%s: '%s' is no number of seconds up to a day\n", option, text);
        return -1;
    }
    *ret_us = (int64_t)(seconds * US_PER_S);
    return 0;
}

static int parse_options(int argc, char **argv, struct options *options)
{
    enum {
        LISTEN = 256,
        KUBECONFIG,
        CRD,
        KUBELET,
        FAULTS,
        AUDIT,
        VERSION,
        GENERATION,
        BY_FIELD,
        GC_OFF,
        GC_DELAY,
        GC_BLIND,
        SETS,
        VOLUMES
    };
    static const struct option table[] = {{"listen", required_argument, NULL, LISTEN},
                                          {"kubeconfig-out", required_argument, NULL, KUBECONFIG},
                                          {"crd", required_argument, NULL, CRD},
                                          {"kubelet", required_argument, NULL, KUBELET},
                                          {"faults", required_argument, NULL, FAULTS},
                                          {"audit-log", required_argument, NULL, AUDIT},
                                          {"git-version", required_argument, NULL, VERSION},
                                          {"generation", required_argument, NULL, GENERATION},
                                          {"refuse-by-field", no_argument, NULL, BY_FIELD},
                                          {"gc-off", no_argument, NULL, GC_OFF},
                                          {"gc-delay", required_argument, NULL, GC_DELAY},
                                          {"gc-blind", required_argument, NULL, GC_BLIND},
                                          {"statefulsets", no_argument, NULL, SETS},
                                          {"volumes", no_argument, NULL, VOLUMES},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    for (int option; (option = getopt_long(argc, argv, "h", table, NULL)) != -1;) {
        switch (option) {
        case LISTEN:
            options->listen = optarg;
            break;
        case KUBECONFIG:
            options->kubeconfig_out = optarg;
            break;
        case CRD:
            options->definition = optarg;
            break;
        case KUBELET:
            options->kubelet = optarg;
            break;
        case FAULTS:
            options->faults = optarg;
            break;
        case AUDIT:
            options->audit_log = optarg;
            break;
        case VERSION:
            options->git_version = optarg;
            break;
        case GENERATION:
            options->newer = strcmp(optarg, "1.37") == 0;
            if (!options->newer && strcmp(optarg, "1.36") != 0) {
                fprintf(stderr, "kubesim: --generation: '%s' is neither 1.36 nor 1.37\n", optarg);
                return -1;
            }
            break;
        case BY_FIELD:
            options->newer = true;
            break;
        case GC_DELAY:
            if (read_seconds("gc-delay", optarg, &options->gc_delay_us) < 0)
                return -1;
            break;
        case GC_BLIND:
            if (read_seconds("gc-blind", optarg, &options->gc_blind_us) < 0)
                return -1;
            break;
        case GC_OFF:
            options->gc_off = true;
            break;
        case SETS:
            options->statefulsets = true;
            break;
        case VOLUMES:
            options->volumes = true;
            break;
        case 'h':
            print_help(stdout);
            exit(EXIT_SUCCESS);
        default:
            return -1;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "kubesim: '%s' is no option (see --help)\n", argv[optind]);
        return -1;
    }
    return 0;
}

static int read_file(const char *path, struct buf *ret, struct error **err)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "%s", path);
    char block[65536];
    for (ssize_t got; (got = read(fd, block, sizeof(block))) != 0;) {
        if (got < 0)
            return error_set_errno(err, errno, "%s", path);
        if (buf_add(ret, block, (size_t)got) < 0)
            return error_set(err, ERROR_TOO_LARGE, "%s is larger than %d bytes", path, FILE_MAX);
    }
    return 0;
}

/* POST of one manifest to the collection of its kind; only cluster-scoped definitions are expected here. */
static int create_definition(struct kubesim *sim, const cJSON *tree, struct error **err)
{
    if (!str_equal(json_str(tree, "kind"), "CustomResourceDefinition"))
        return error_set(err, ERROR_INVALID, "--crd: a %s is no CustomResourceDefinition",
                         json_str(tree, "kind"));
    CLEANUP_FREE char *body = json_print(tree);
    const struct kubesim_request request = {.method = "POST",
                                            .path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                                            .content_type = "application/json",
                                            .user_agent = "kubesim",
                                            .body = body,
                                            .body_length = strlen(body),
                                            .no_faults = true};
    struct kubesim_response response;
    kubesim_handle(sim, &request, &response);
    int result = response.status == 201
                     ? 0
                     : error_set(err, ERROR_INVALID, "--crd: %d %s", response.status, response.body);
    kubesim_response_done(&response);
    return result;
}

static int load_definitions(struct kubesim *sim, const char *path, struct error **err)
{
    CLEANUP_BUF struct buf text = BUF_INIT(FILE_MAX);
    struct yaml_documents documents = {0};
    int result = read_file(path, &text, err);
    if (result == 0)
        result = yaml_parse(buf_text(&text), text.length, path, &documents, err);
    for (size_t i = 0; result == 0 && i < documents.count; i++)
        result = create_definition(sim, documents.items[i], err);
    yaml_documents_done(&documents);
    return result;
}

static int write_kubeconfig(const char *path, const char *address, struct error **err)
{
    CLEANUP_FREE char *text =
        xasprintf("apiVersion: v1\nkind: Config\ncurrent-context: kubesim\n"
                  "clusters:\n- name: kubesim\n  cluster:\n    server: http://%s\n"
                  "users:\n- name: kubesim\n  user:\n    token: user:kubesim\n"
                  "contexts:\n- name: kubesim\n  context:\n    cluster: kubesim\n    user: kubesim\n"
                  "    namespace: default\n",
                  address);
    CLEANUP_FREE char *temporary = xasprintf("%s.new", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "%s", temporary);
    bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    written = close(fd) == 0 && written;
    if (!written || rename(temporary, path) < 0)
        return error_set_errno(err, errno, "%s", path);
    return 0;
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    struct program *program = handle->data;
    if (!program->front)
        return;
    kubelet_loop_stop(STEAL(program->kubelet));
    http_front_stop(STEAL(program->front));
    for (size_t i = 0; i < ARRAY_SIZE(program->signals); i++)
        uv_close((uv_handle_t *)&program->signals[i], NULL);
}

static int open_audit(struct program *program, struct error **err)
{
    if (!program->options.audit_log)
        return 0;
    program->audit = fopen(program->options.audit_log, "ae");
    return program->audit ? 0 : error_set_errno(err, errno, "%s", program->options.audit_log);
}

static int make_sim(struct program *program, struct error **err)
{
    const struct kubesim_options sim_options = {.now_us = wall_us,
                                                .random = fill_random,
                                                .audit = program->options.audit_log ? write_audit : NULL,
                                                .context = program,
                                                .gc_off = program->options.gc_off,
                                                .statefulsets = program->options.statefulsets,
                                                .git_version = program->options.git_version,
                                                .volumes = program->options.volumes,
                                                .newer = program->options.newer};
    program->sim = kubesim_make(&sim_options);
    kubesim_set_gc(program->sim, !program->options.gc_off, program->options.gc_delay_us,
                   program->options.gc_blind_us);
    int result = program->options.faults ? kubesim_fault_add(program->sim, program->options.faults, err) : 0;
    if (result == 0 && program->options.definition)
        result = load_definitions(program->sim, program->options.definition, err);
    return result;
}

static int start_kubelet(struct program *program, struct error **err)
{
    const char *behaviour = program->options.kubelet;
    if (!behaviour)
        return 0;
    if (!kubelet_behaviour_is_known(behaviour))
        return error_set(err, ERROR_USAGE, "--kubelet: '%s' is none of %s", behaviour,
                         kubelet_behaviour_words());
    const struct kubelet_options options = {.seed = (uint64_t)wall_us(NULL), .behaviour = behaviour};
    program->kubelet = kubelet_loop_start(&program->loop, program->sim, program->front, &options);
    return 0;
}

static int start(struct program *program, struct error **err)
{
    int result = open_audit(program, err);
    if (result == 0)
        result = make_sim(program, err);
    if (result == 0)
        result =
            http_front_start(&program->loop, program->sim, program->options.listen, &program->front, err);
    if (result == 0)
        result = start_kubelet(program, err);
    if (result == 0 && program->options.kubeconfig_out)
        result = write_kubeconfig(program->options.kubeconfig_out, http_front_address(program->front), err);
    return result;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "kubelet") == 0)
        return kubelet_client_main(argc - 1, argv + 1);
    struct program program = {.options = {.listen = "127.0.0.1:0"}};
    if (parse_options(argc, argv, &program.options) < 0)
        return EXIT_USAGE;
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&program.loop);
    const int numbers[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        uv_signal_init(&program.loop, &program.signals[i]);
        program.signals[i].data = &program;
        uv_signal_start(&program.signals[i], on_signal, numbers[i]);
    }
    CLEANUP_ERROR struct error *err = NULL;
    int result = start(&program, &err);
    if (result < 0) {
        fprintf(stderr, "kubesim: %s\n", error_text(err));
        return result == -ERROR_USAGE ? EXIT_USAGE : EXIT_FAILURE;
    }
    printf("%s\n", http_front_address(program.front));
    fflush(stdout);
    uv_run(&program.loop, UV_RUN_DEFAULT);
    uv_loop_close(&program.loop);
    kubesim_free(program.sim);
    if (program.audit)
        fclose(program.audit);
    return EXIT_SUCCESS;
}
