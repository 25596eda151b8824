/* SPDX-License-Identifier: Apache-2.0
 *
 * neoset-controller: the long-running program. Options, wiring, the log, exit codes. */
#include "base/time_text.h"
#include "cmd/controller_options.h"
#include "cmd/open_files.h"
#include "neoset/controller.h"
#include "version.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_USAGE = 64, IDENTITY_MAX = 256 };

#define SLOW_OPEN_US (2 * US_PER_S)
/* How often what a burst needed (a relist, a thousand rollouts at once) goes back to the system. */
#define GIVE_BACK_US (10 * US_PER_S)

struct program {
    struct controller_settings settings;
    struct env *env;
    struct kube_client *client;
    struct journal *journal;
    struct controller *controller;
    struct env_timer *give_back;
    char *identity;
    char *lease_namespace;
    int exit_code;
    bool stopping;
    const char *stop_reason;
};

static void say(const struct program *program, enum log_level level, const char *sentence)
{
    log_line(&program->settings.log, env_wall_us(program->env), level, NULL, sentence);
}

static void report(void *context, enum report_level level, const char *object, const char *sentence)
{
    static const enum log_level levels[] = {
        [REPORT_DEBUG] = LOG_DEBUG,
        [REPORT_INFO] = LOG_INFO,
        [REPORT_WARNING] = LOG_WARNING,
        [REPORT_ERROR] = LOG_ERROR,
    };
    const struct program *program = context;
    log_line(&program->settings.log, env_wall_us(program->env), levels[level], object, sentence);
}

/* --- the end -------------------------------------------------------------------------------------------- */

static void stopped(void *context)
{
    struct program *program = context;
    env_stop(program->env);
}

static void begin_to_stop(struct program *program, const char *reason)
{
    program->stop_reason = reason;
    program->stopping = true;
    controller_stop(program->controller, stopped, program);
}

static void on_signal(void *context)
{
    struct program *program = context;
    if (program->stopping) {
        say(program, LOG_WARNING, "told to stop again: leaving at once");
        env_stop(program->env);
        return;
    }
    say(program, LOG_INFO, "told to stop: no new step, waiting for answers");
    begin_to_stop(program, "stopped as asked");
}

static void ended(void *context, int exit_code, const char *sentence)
{
    struct program *program = context;
    say(program, exit_code == 0 ? LOG_INFO : LOG_ERROR, sentence);
    program->exit_code = exit_code;
    if (journal_health(program->journal) == JOURNAL_DEAD)
        env_stop(program->env);
    else if (!program->stopping)
        begin_to_stop(program, "done");
}

/* --- /healthz, /readyz, /metrics ------------------------------------------------------------------------ */

static int answer_get(void *context, const char *path, struct buf *body, const char **ret_content_type)
{
    struct program *program = context;
    const char *why = NULL;
    *ret_content_type = "text/plain; charset=utf-8";
    if (strcmp(path, "/healthz") == 0 || strcmp(path, "/livez") == 0) {
        bool lives = journal_health(program->journal) != JOURNAL_DEAD;
        buf_add_text(body, lives ? "ok\n" : "the journal failed\n");
        return lives ? 200 : 503;
    }
    if (strcmp(path, "/readyz") == 0) {
        if (controller_is_ready(program->controller, &why)) {
            buf_add_text(body, "ok\n");
            return 200;
        }
        buf_addf(body, "%s\n", why);
        return 503;
    }
    if (strcmp(path, "/metrics") == 0) {
        *ret_content_type = "text/plain; version=0.0.4; charset=utf-8";
        controller_write_metrics(program->controller, body);
        return 200;
    }
    buf_add_text(body, "there are /healthz, /readyz and /metrics\n");
    return 404;
}

/* --- the parts ------------------------------------------------------------------------------------------ */

/* The folder of the default journal, for this user alone. */
static int make_folders(const char *path, struct error **err)
{
    CLEANUP_FREE char *copy = xstrdup(path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0700) < 0 && errno != EEXIST)
            return error_set_errno(err, errno,
                                   "cannot make the folder %s for the journal; give --journal FILE", copy);
        *slash = '/';
    }
    return 0;
}

/* The pod's name in a cluster, else the host's: with the run's nonce it says who holds the Lease. */
static char *own_identity(struct env *env)
{
    const char *pod = env_variable(env, "POD_NAME");
    if (pod)
        return xstrdup(pod);
    char host[IDENTITY_MAX];
    if (gethostname(host, sizeof(host)) < 0)
        return xstrdup("neoset-controller");
    host[sizeof(host) - 1] = '\0';
    return xstrdup(host);
}

static int open_client(struct program *program, struct error **err)
{
    const struct controller_settings *settings = &program->settings;
    struct kube_config *config = NULL;
    int result = kube_config_load(program->env,
                                  &(struct kube_config_options){.kubeconfig = settings->kubeconfig,
                                                                .context = settings->context,
                                                                .impersonate_user = settings->impersonate},
                                  &config, err);
    if (result < 0)
        return result;
    const char *own = env_variable(program->env, "POD_NAMESPACE");
    if (settings->lease_namespace)
        own = settings->lease_namespace;
    program->lease_namespace = xstrdup(own ? own : config->namespace);
    program->client = kube_client_make(program->env, config);
    return 0;
}

/* Every decision waits for one sync, and whoever watches should know why. */
static void warn_of_slow_disk(const struct program *program, int64_t took_us)
{
    if (took_us < SLOW_OPEN_US)
        return;
    char took[TIME_TEXT_SIZE];
    duration_format(took_us, took);
    CLEANUP_FREE char *sentence = xasprintf("the journal took %s to open: its disk is slow to sync, and each "
                                            "step waits for that; a local SSD is faster",
                                            took);
    say(program, LOG_WARNING, sentence);
}

static int open_journal(struct program *program, struct error **err)
{
    const struct controller_settings *settings = &program->settings;
    if (settings->journal_path_is_default) {
        int result = make_folders(settings->journal_path, err);
        if (result < 0)
            return result;
    }
    /* Said before: on a disk that takes seconds to sync, this takes several of them. */
    CLEANUP_FREE char *opening = xasprintf("opens the journal %s", settings->journal_path);
    say(program, LOG_INFO, opening);
    int64_t begun_us = env_boot_us(program->env);
    int result = journal_open(program->env,
                              &(struct journal_options){.path = settings->journal_path,
                                                        .identity = program->identity,
                                                        .version = NEOSET_VERSION,
                                                        .retention_us = settings->retention_us,
                                                        .retention_bytes = settings->retention_bytes,
                                                        .unsafe_file_system = settings->unsafe_file_system},
                              &program->journal, err);
    if (result == 0)
        warn_of_slow_disk(program, env_boot_us(program->env) - begun_us);
    return result;
}

static int listen_on(struct program *program, struct error **err)
{
    if (!program->settings.listen)
        return 0;
    int result = env_listen(program->env, program->settings.listen, answer_get, program, err);
    return result < 0 ? error_wrap(err, result, "--listen %s (give another address, or none)",
                                   program->settings.listen)
                      : 0;
}

static void start_controller(struct program *program)
{
    const struct controller_settings *settings = &program->settings;
    program->controller = controller_start(&(struct controller_options){
        .env = program->env,
        .client = program->client,
        .journal = program->journal,
        .namespace = settings->namespace,
        .lease_namespace = settings->no_lease ? NULL : program->lease_namespace,
        .lease_name = settings->lease_name,
        .identity = program->identity,
        .resize_abandoned_us = settings->resize_abandoned_us,
        .once = settings->once,
        .report = report,
        .ended = ended,
        .context = program,
    });
}

static void give_back(void *context)
{
    struct program *program = context;
    memory_give_back();
    program->give_back = env_timer_start(program->env, GIVE_BACK_US, give_back, program);
}

static int run(struct program *program, struct error **err)
{
    program->identity = own_identity(program->env);
    int result = open_client(program, err);
    if (result == 0)
        result = listen_on(program, err);
    if (result == 0)
        result = open_journal(program, err);
    if (result < 0)
        return result;
    start_controller(program);
    CLEANUP_FREE char *sentence = xasprintf("neoset-controller %s, journal %s, run %s", NEOSET_VERSION,
                                            program->settings.journal_path, journal_nonce(program->journal));
    say(program, LOG_INFO, sentence);
    env_on_stop_signal(program->env, on_signal, program);
    give_back(program);
    env_run(program->env);
    return 0;
}

static void close_all(struct program *program)
{
    env_timer_cancel(program->env, &program->give_back);
    controller_free(program->controller);
    if (program->journal)
        journal_close(program->journal, program->stop_reason);
    if (program->client)
        kube_client_free(program->client);
    free(program->identity);
    free(program->lease_namespace);
}

int main(int argc, char **argv)
{
    standard_files_ensure();
    int exit_code = 0;
    CLEANUP_OPTIONS struct options *options = option_main(&controller_program, argc, argv, &exit_code);
    if (!options)
        return exit_code;
    umask(077);
    CLEANUP_ERROR struct error *err = NULL;
    struct program program = {0};
    if (controller_settings_read(options, geteuid() == 0, &program.settings, &err) < 0) {
        fprintf(stderr, "%s: %s\n", controller_program.name, error_text(err));
        return EXIT_USAGE;
    }
    if (open_files_ensure(controller_program.name, &err) < 0) {
        fprintf(stderr, "%s: %s\n", controller_program.name, error_text(err));
        controller_settings_done(&program.settings);
        return 1;
    }
    program.env = env_real_make();
    if (run(&program, &err) < 0) {
        say(&program, LOG_ERROR, error_text(err));
        program.exit_code = 1;
    }
    exit_code = program.exit_code;
    close_all(&program);
    controller_settings_done(&program.settings);
    env_free(program.env);
    return exit_code;
}
