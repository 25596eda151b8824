/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/controller_options.h"

#include "base/time_text.h"
#include "cmd/library_text.h"
#include "cmd/state_path.h"
#include "env/address.h"
#include "journal/journal.h"

static const struct option_spec specs[] = {
    {.name = "journal",
     .value = "FILE",
     .help = "the journal; one controller writes it, neoset-audit reads it",
     .variable = "NEOSET_JOURNAL",
     .fallback_text = "$STATE_DIRECTORY/journal.db, /var/lib/neoset/journal.db as root, else "
                      "$XDG_STATE_HOME/neoset/journal.db",
     .is_file = true},
    {.name = "namespace",
     .letter = 'n',
     .value = "NS",
     .help = "look after the NeoSets of one namespace only"},
    {.name = "all-namespaces",
     .letter = 'A',
     .help = "look after the NeoSets of all namespaces (the default)"},
    {.name = "listen",
     .value = "ADDR:PORT",
     .help = "serve /healthz, /readyz and /metrics there; none: do not listen",
     .fallback = "127.0.0.1:9780"},
    {.name = "lease",
     .value = "NAMESPACE/NAME",
     .help = "the Lease that elects one writer",
     .fallback_text = "<own namespace>/neoset"},
    {.name = "no-lease",
     .help = "run without a Lease: nobody else may run, and the journal's head is not published"},
    {.name = "kubeconfig",
     .value = "FILE",
     .help = "how to reach the API server",
     .fallback_text = "KUBECONFIG, ~/.kube/config, then in-cluster",
     .is_file = true},
    {.name = "context", .value = "NAME", .help = "a context of the kubeconfig"},
    {.name = "as", .value = "USER", .help = "impersonate this user"},
    {.name = "log-format",
     .value = "FORMAT",
     .help = "how the log on stderr looks",
     .fallback = "text",
     .choices = "text|json"},
    {.name = "log-level",
     .value = "LEVEL",
     .help = "what is shown",
     .fallback = "info",
     .choices = "debug|info|warning|error"},
    {.name = "journal-retention",
     .value = "AGE,SIZE",
     .help = "how much history is kept; 0 for either: no limit",
     .fallback = "400d,4Gi"},
    {.name = "journal-unsafe-fs",
     .help = "accept a journal on a network file system, where locks may not hold"},
    {.name = "resize-abandoned",
     .value = "TIME",
     .help = "a StatefulSet that was taken from its pods to grow its volumes (neosetctl resize), and that "
             "nobody made again for so long, is made again; 0: never",
     .fallback = "2m"},
    {.name = "once",
     .help = "converge what is there, then exit; with 1 when a set stands still, or when for 2 minutes the "
             "server cannot be reached, refuses to list (a longer Retry-After is not waited for), or the "
             "Lease cannot be had"},
    {0},
};

static const struct option_example examples[] = {
    {.what = "In the cluster, or with the current context of kubectl",
     .line = "neoset-controller --journal /var/lib/neoset/journal.db"},
    {.what = "One namespace, without a Lease, for a try",
     .line = "neoset-controller -n demo --journal ./journal.db --no-lease"},
    {.what = "Converge and exit", .line = "neoset-controller --journal ./journal.db --no-lease --once"},
    {0},
};

static const struct option_exit exits[] = {
    {0, "stopped as asked (SIGTERM, SIGINT, SIGHUP, or --once is done)", 0},
    {1, "failure: the last line of the log says what and what to do", 0},
    {64, "wrong usage", 0},
    {0},
};

const struct option_program controller_program = {
    .name = "neoset-controller",
    .summary = "rolls NeoSets, and journals every step before it is sent",
    .description =
        "Every cluster write that moves a rollout is a row in the journal before it is sent and after it is "
        "answered. Kill the controller anywhere: it starts again, asks the API server about what is in "
        "doubt, "
        "and carries on. On SIGTERM it starts no new step, waits for answers, gives the Lease back and "
        "exits.",
    .examples = examples,
    .options = specs,
    .exits = exits,
    .usage_exit = 64,
    .details = library_text,
    .see_also = "neoset-audit(1), neosetctl(1)",
};

/* --- values --------------------------------------------------------------------------------------------- */

static const struct size_unit {
    const char *suffix;
    int64_t bytes;
} size_units[] = {
    {"Ki", 1LL << 10}, {"Mi", 1LL << 20}, {"Gi", 1LL << 30}, {"Ti", 1LL << 40},
    {"k", 1000},       {"M", 1000000},    {"G", 1000000000}, {"T", 1000000000000},
};

/* "4Gi"; false: no size. */
static bool read_size(const char *text, int64_t *ret_bytes)
{
    int64_t number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && at - text < 9; at++)
        number = number * 10 + (*at - '0');
    if (at == text)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(size_units); i++) {
        if (strcmp(at, size_units[i].suffix) != 0)
            continue;
        if (number > INT64_MAX / size_units[i].bytes)
            return false;
        *ret_bytes = number * size_units[i].bytes;
        return true;
    }
    return false;
}

static int read_retention_part(const char *part, int64_t *ret_us, int64_t *ret_bytes, struct error **err)
{
    if (strcmp(part, "0") == 0)
        return 0;
    if (read_size(part, ret_bytes) || duration_parse(part, ret_us, NULL) == 0)
        return 0;
    return error_set(err, ERROR_USAGE,
                     "--journal-retention: \"%s\" is neither an age (400d) nor a size (4Gi)", part);
}

int controller_read_retention(const char *text, int64_t *ret_us, int64_t *ret_bytes, struct error **err)
{
    CLEANUP_FREE char *copy = xstrdup(text);
    int64_t age_us = 0, bytes = 0;
    char *rest = NULL;
    char *second = strchr(copy, ',');
    if (second)
        *second++ = '\0';
    rest = second ? strchr(second, ',') : NULL;
    if (rest)
        return error_set(err, ERROR_USAGE, "--journal-retention takes AGE,SIZE, not \"%s\"", text);
    int result = read_retention_part(copy, &age_us, &bytes, err);
    if (result == 0 && second)
        result = read_retention_part(second, &age_us, &bytes, err);
    if (result < 0)
        return result;
    *ret_us = age_us;
    *ret_bytes = bytes;
    return 0;
}

/* A variable that is not set must not become all namespaces. */
static int read_namespace(const struct options *options, struct controller_settings *settings,
                          struct error **err)
{
    const char *namespace = option_text(options, "namespace");
    bool all = option_flag(options, "all-namespaces");
    if (all && namespace)
        return error_set(err, ERROR_USAGE,
                         "--all-namespaces and --namespace %.63s contradict each other: give one", namespace);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    enum { NAMESPACE_MAX = 63 };
    size_t length = namespace ? strlen(namespace) : 0;
    if (namespace && (length == 0 || length > NAMESPACE_MAX || strspn(namespace, letters) != length ||
                      namespace[0] == '-' || namespace[length - 1] == '-'))
        return error_set(
            err, ERROR_USAGE,
            "--namespace \"%.63s\" is no name of a namespace: small letters, digits and dashes; for all "
            "of them leave it out",
            namespace);
    settings->namespace = namespace;
    return 0;
}

static int read_lease(const struct options *options, struct controller_settings *settings, struct error **err)
{
    const char *lease = option_text(options, "lease");
    settings->no_lease = option_flag(options, "no-lease");
    if (lease && settings->no_lease)
        return error_set(err, ERROR_USAGE, "--lease and --no-lease contradict each other");
    if (!lease) {
        settings->lease_name = xstrdup("neoset");
        return 0;
    }
    const char *slash = strchr(lease, '/');
    if (!slash || slash == lease || !slash[1] || strchr(slash + 1, '/'))
        return error_set(err, ERROR_USAGE, "--lease takes NAMESPACE/NAME, not \"%s\"", lease);
    settings->lease_namespace = xstrndup(lease, (size_t)(slash - lease));
    settings->lease_name = xstrdup(slash + 1);
    return 0;
}

static int read_journal(const struct options *options, bool is_root, struct controller_settings *settings,
                        struct error **err)
{
    const char *path = option_text(options, "journal");
    settings->journal_path = path ? xstrdup(path) : state_path_controller(NULL, is_root);
    settings->journal_path_is_default = !path;
    settings->unsafe_file_system = option_flag(options, "journal-unsafe-fs");
    if (!settings->journal_path || !*settings->journal_path)
        return error_set(err, ERROR_USAGE, "no place for the journal: give --journal FILE");
    return controller_read_retention(option_text(options, "journal-retention"), &settings->retention_us,
                                     &settings->retention_bytes, err);
}

static int read_abandoned(const struct options *options, struct controller_settings *settings,
                          struct error **err)
{
    const char *text = option_text(options, "resize-abandoned");
    if (str_equal(text, "0"))
        return 0;
    int r = duration_parse(text, &settings->resize_abandoned_us, err);
    return r < 0 ? error_wrap(err, -ERROR_USAGE, "--resize-abandoned") : 0;
}

static int read_listen(const struct options *options, struct controller_settings *settings,
                       struct error **err)
{
    const char *listen = option_text(options, "listen");
    struct sockaddr_storage address;
    if (str_equal(listen, "none") || str_equal(listen, ""))
        return 0;
    if (!env_address_parse(listen, &address))
        return error_set(err, ERROR_USAGE,
                         "--listen \"%.100s\" is not an address to listen on, like 127.0.0.1:8080, nor none",
                         listen);
    settings->listen = listen;
    return 0;
}

int controller_settings_read(const struct options *options, bool is_root, struct controller_settings *ret,
                             struct error **err)
{
    struct controller_settings settings = {0};
    int result = read_namespace(options, &settings, err);
    if (result == 0)
        result = read_journal(options, is_root, &settings, err);
    if (result == 0)
        result = read_lease(options, &settings, err);
    if (result == 0)
        result = read_abandoned(options, &settings, err);
    if (result == 0)
        result = read_listen(options, &settings, err);
    if (result < 0) {
        controller_settings_done(&settings);
        return result;
    }
    settings.kubeconfig = option_text(options, "kubeconfig");
    settings.context = option_text(options, "context");
    settings.impersonate = option_text(options, "as");
    settings.once = option_flag(options, "once");
    settings.log.format = str_equal(option_text(options, "log-format"), "json") ? LOG_JSON : LOG_TEXT;
    ENSURE(log_level_of_text(option_text(options, "log-level"), &settings.log.lowest));
    *ret = settings;
    return 0;
}

void controller_settings_done(struct controller_settings *settings)
{
    free(settings->journal_path);
    free(settings->lease_namespace);
    free(settings->lease_name);
    *settings = (struct controller_settings){0};
}
