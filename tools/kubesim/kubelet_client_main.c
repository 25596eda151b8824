/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kubelet_client.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>

enum { EXIT_USAGE = 64, NODES_MAX = 5000 };

struct arguments {
    struct kube_config_options config;
    struct kubelet_options kubelet;
    bool no_bind;
};

static void print_help(FILE *out)
{
    fprintf(out,
            "usage: kubesim kubelet [OPTION]...\n"
            "Plays the nodes of a cluster: registers them, binds and runs pods. Serves until SIGTERM.\n\n"
            "  --kubeconfig FILE      how to reach the API server (else as kubectl finds it)\n"
            "  --context NAME\n"
            "  --behaviour WORDS      of pods without the annotation kubesim.neo.io/behaviour, separated by "
            "commas:\n"
            "                         %s\n"
            "  --nodes N              how many nodes (1)\n"
            "  --node-prefix NAME     they are NAME-0, NAME-1 ... (kubesim-node)\n"
            "  --all-nodes            also runs pods of nodes that are not its own\n"
            "  --no-bind              a scheduler binds pods\n"
            "  --real                 with the durations of a real node, not faster\n"
            "  --seed N               of its random numbers (the clock)\n"
            "  --help\n\n%s",
            kubelet_behaviour_words(), kubelet_behaviour_help());
}

static int read_count(const char *option, const char *text, unsigned long max, unsigned long *ret)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || value > max) {
        fprintf(stderr, "kubesim kubelet: --%s: '%s' is no number up to %lu\n", option, text, max);
        return -1;
    }
    *ret = value;
    return 0;
}

static int take_option(int option, struct arguments *arguments)
{
    unsigned long number = 0;
    switch (option) {
    case 'k':
        arguments->config.kubeconfig = optarg;
        return 0;
    case 'c':
        arguments->config.context = optarg;
        return 0;
    case 'b':
        if (kubelet_behaviour_is_known(optarg)) {
            arguments->kubelet.behaviour = optarg;
            return 0;
        }
        fprintf(stderr, "kubesim kubelet: --behaviour: '%s' is none of %s\n", optarg,
                kubelet_behaviour_words());
        return -1;
    case 'n':
        if (read_count("nodes", optarg, NODES_MAX, &number) < 0)
            return -1;
        arguments->kubelet.node_count = (unsigned)number;
        return 0;
    case 'p':
        arguments->kubelet.node_prefix = optarg;
        return 0;
    case 'a':
        arguments->kubelet.all_nodes = true;
        return 0;
    case 'B':
        arguments->no_bind = true;
        return 0;
    case 'r':
        kubelet_options_real(&arguments->kubelet);
        return 0;
    case 's':
        if (read_count("seed", optarg, ULONG_MAX, &number) < 0)
            return -1;
        arguments->kubelet.seed = number;
        return 0;
    default:
        return -1;
    }
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
    static const struct option table[] = {{"kubeconfig", required_argument, NULL, 'k'},
                                          {"context", required_argument, NULL, 'c'},
                                          {"behaviour", required_argument, NULL, 'b'},
                                          {"nodes", required_argument, NULL, 'n'},
                                          {"node-prefix", required_argument, NULL, 'p'},
                                          {"all-nodes", no_argument, NULL, 'a'},
                                          {"no-bind", no_argument, NULL, 'B'},
                                          {"real", no_argument, NULL, 'r'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    for (int option; (option = getopt_long(argc, argv, "h", table, NULL)) != -1;) {
        if (option == 'h') {
            print_help(stdout);
            exit(EXIT_SUCCESS);
        }
        if (take_option(option, arguments) < 0)
            return -1;
    }
    if (optind == argc)
        return 0;
    fprintf(stderr, "kubesim kubelet: '%s' is no option (see --help)\n", argv[optind]);
    return -1;
}

static void on_stop(void *context)
{
    env_stop(context);
}

int kubelet_client_main(int argc, char **argv)
{
    struct arguments arguments = {0};
    if (parse(argc, argv, &arguments) < 0)
        return EXIT_USAGE;
    CLEANUP_ENV struct env *env = env_real_make();
    CLEANUP_ERROR struct error *err = NULL;
    struct kube_config *config = NULL;
    if (kube_config_load(env, &arguments.config, &config, &err) < 0) {
        fprintf(stderr, "kubesim kubelet: %s\n", error_text(err));
        return EXIT_FAILURE;
    }
    if (!arguments.kubelet.seed)
        arguments.kubelet.seed = (uint64_t)env_wall_us(env);
    struct kube_client *client = kube_client_make(env, config);
    struct kubelet_client *kubelet = kubelet_client_start(client, &arguments.kubelet, !arguments.no_bind);
    env_on_stop_signal(env, on_stop, env);
    env_run(env);
    kubelet_client_stop(kubelet);
    kube_client_free(client);
    return EXIT_SUCCESS;
}
