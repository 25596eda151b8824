/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator for stories: the real controller code, kubesim and its kubelet in one process under virtual
 * time, with kubesim behind HTTP for the person of the story. Time passes only when the story says so;
 * requests of the person take none. Commands come on stdin, a line each, and are answered with a line on
 * stdout:
 *
 *   run MILLISECONDS     that much time passes; the answer is the clock, in milliseconds since the start
 *   start | kill | stop  the controller; stop answers "stopped" or "killed"
 *   die-at EDGE          the controller dies at this edge of each of its writes from now on (see below)
 *   plant BUG            it has a bug from now on (tests/sim/plants.c)
 *   deaths               the answer is how often it did
 *   end                  everything ends, as at the end of stdin
 *
 * It dies at the first passage of the edge (control/crash.h) by each write, and is started again a moment
 * later. A write that had not left by then comes once more, and goes through. "recover" means at "answer",
 * and again when it takes that step up. Where two writes make each other necessary by their deaths, there is
 * an end to it: one object's writes of one kind cost DEATHS_MAX lives. Only in a build with crash points.
 *
 * Usage: story-sim FOLDER [FAULTS]: kubeconfig, audit.log, journal.db and controller.log are put there. */
#include "sim_server.h"

#include "base/plant.h"
#include "base/time_text.h"
#include "control/crash.h"
#include "kube/client.h"
#include "kubesim/http.h"
#include "neoset/controller.h"

#include <stdio.h>
#include <unistd.h>
#include <uthash.h>

enum { LINE_MAX_BYTES = 256, DEATHS_MAX = 50 };

struct story {
    uv_loop_t loop;
    uv_poll_t commands;
    struct http_front *front;
    struct env *env; /* the world's; the controller has a process of its own */
    struct sim_server *server;
    FILE *audit;
    FILE *log;
    char *journal_path;
    int64_t began_us;
    struct buf line;
    /* The controller: */
    struct env *process; /* NULL: it does not run */
    struct kube_client *client;
    struct journal *journal;
    struct controller *controller;
    bool stopped;
    bool ended;
    /* Its deaths: */
    char *edge; /* NULL: it does not die by itself */
    struct written *writes;
    bool dies; /* when this event is over */
    bool is_due;
    int64_t due_us; /* it is started again then */
    int deaths;
};

/* Writes of one kind to one object. */
struct written {
    char *what;
    bool was_crossed; /* the one that has not left yet */
    bool was_crossed_in_recovery;
    int deaths;
    UT_hash_handle hh;
};

#define DEAD_FOR_US (100 * US_PER_MS)

/* --- the controller ---------------------------------------------------------------------------------------
 */

static void write_log(void *context, enum report_level level, const char *object, const char *sentence)
{
    struct story *story = context;
    if (level == REPORT_DEBUG)
        return;
    fprintf(story->log, "%.3f %s%s%s\n",
            (double)(env_boot_us(story->env) - story->began_us) / (double)US_PER_S, object ? object : "",
            object ? ": " : "", sentence);
    fflush(story->log);
}

static void note_ended(void *context, int exit_code, const char *sentence)
{
    struct story *story = context;
    (void)exit_code;
    write_log(story, REPORT_ERROR, NULL, sentence);
    story->ended = true;
}

static void note_stopped(void *context)
{
    struct story *story = context;
    story->stopped = true;
}

static void start_controller(struct story *story)
{
    PRE(!story->process);
    story->process = env_sim_process(story->env);
    story->stopped = story->ended = false;
    struct kube_config *config = xcalloc(1, sizeof(*config));
    config->server.base_url = xstrdup("http://sim");
    config->namespace = xstrdup("default");
    story->client = kube_client_make(story->process, config);
    CLEANUP_ERROR struct error *err = NULL;
    const struct journal_options journal = {
        .path = story->journal_path, .identity = "story", .version = "simulated"};
    if (journal_open(story->process, &journal, &story->journal, &err) < 0) {
        fprintf(stderr, "story-sim: %s\n", error_text(err));
        exit(EXIT_FAILURE);
    }
    write_log(story, REPORT_INFO, NULL, "the controller starts");
    story->controller = controller_start(&(struct controller_options){.env = story->process,
                                                                      .client = story->client,
                                                                      .journal = story->journal,
                                                                      .namespace = "default",
                                                                      .lease_namespace = "default",
                                                                      .lease_name = "neoset",
                                                                      .identity = "story",
                                                                      .report = write_log,
                                                                      .ended = note_ended,
                                                                      .context = story});
}

static void end_controller(struct story *story, const char *stop_reason)
{
    if (!story->process)
        return;
    controller_free(STEAL(story->controller));
    kube_client_free(STEAL(story->client));
    journal_close(STEAL(story->journal), stop_reason);
    env_free(STEAL(story->process));
    write_log(story, REPORT_INFO, NULL, stop_reason ? stop_reason : "the controller is killed");
}

static void start_what_is_due(struct story *story)
{
    story->is_due = false;
    if (!story->process)
        start_controller(story);
}

/* One that is asked to stop lives no shorter for it. */
static const char *stop_controller(struct story *story)
{
    if (story->is_due)
        start_what_is_due(story);
    str_replace(&story->edge, "");
    if (!story->process)
        return "killed";
    int64_t until_us = env_boot_us(story->env) + 20 * US_PER_S;
    controller_stop(story->controller, note_stopped, story);
    while (!story->stopped && env_boot_us(story->env) < until_us && env_sim_step(story->env)) {
    }
    end_controller(story, story->stopped ? "stopped as asked" : NULL);
    return story->stopped ? "stopped" : "killed";
}

/* --- deaths ------------------------------------------------------------------------------------------------
 */

static struct written *find_written(struct story *story, const char *step_kind, const char *name)
{
    struct written *written = NULL;
    CLEANUP_FREE char *what = xasprintf("%s %s", step_kind, name);
    HASH_FIND_STR(story->writes, what, written);
    if (!written) {
        written = xcalloc(1, sizeof(*written));
        written->what = STEAL(what);
        HASH_ADD_KEYPTR(hh, story->writes, written->what, strlen(written->what), written);
    }
    return written;
}

static void free_writes(struct story *story)
{
    struct written *written, *next;
    HASH_ITER (hh, story->writes, written, next) {
        HASH_DEL(story->writes, written);
        free(written->what);
        free(written);
    }
}

static void pass_edge(void *context, const char *edge, const char *step_kind, const char *name)
{
    struct story *story = context;
    struct written *written = find_written(story, step_kind, name);
    bool recovers = str_equal(edge, "recover");
    bool leaves = str_equal(edge, "answer");
    if (leaves) /* what comes after it is another write */
        written->was_crossed = written->was_crossed_in_recovery = false;
    bool *was_crossed = recovers ? &written->was_crossed_in_recovery : &written->was_crossed;
    bool is_wanted = str_equal(edge, story->edge) || (leaves && str_equal(story->edge, "recover"));
    if (!is_wanted || story->dies || *was_crossed || written->deaths == DEATHS_MAX)
        return;
    *was_crossed = story->dies = true;
    written->deaths++;
    CLEANUP_FREE char *line = xasprintf("the controller dies at %s of %s", edge, written->what);
    write_log(story, REPORT_INFO, NULL, line);
}

/* False: there is no such edge. */
static bool die_at(struct story *story, const char *edge)
{
#ifdef NEOSET_CRASH_POINTS
#define COMPARE(known) || str_equal(edge, known)
    if (!(false CRASH_EDGES(COMPARE)))
        return false;
    str_replace(&story->edge, edge);
    crash_tell(pass_edge, story);
    return true;
#else
    (void)story;
    (void)edge;
    (void)pass_edge;
    return false;
#endif
}

static bool plant(const char *name)
{
#ifdef PLANTED
    plant_choose(xstrdup(name)); /* for as long as the process lives */
    return true;
#else
    (void)name;
    return false;
#endif
}

static void look_after_controller(struct story *story)
{
    if (story->dies) {
        story->dies = false;
        story->deaths++;
        end_controller(story, NULL);
        story->is_due = true;
        story->due_us = env_boot_us(story->env) + DEAD_FOR_US;
    }
    if (story->ended)
        end_controller(story, NULL);
}

/* Time passes until then, event by event. */
static void live_until(struct story *story, int64_t until_us)
{
    for (;;) {
        int64_t next_us = env_sim_next_us(story->env);
        if (story->is_due && story->due_us <= MIN(next_us, until_us)) {
            env_sim_run_until(story->env, MAX(story->due_us, env_boot_us(story->env)));
            start_what_is_due(story);
        } else if (next_us <= until_us) {
            env_sim_step(story->env);
        } else {
            break;
        }
        look_after_controller(story);
    }
    env_sim_run_until(story->env, until_us);
}

/* --- commands ---------------------------------------------------------------------------------------------
 */

static void run_for(struct story *story, double duration_ms)
{
    sim_server_poke(story->server); /* the person may have done something */
    live_until(story, env_boot_us(story->env) + (int64_t)(duration_ms * (double)US_PER_MS));
    printf("%lld\n", (long long)((env_boot_us(story->env) - story->began_us) / US_PER_MS));
}

static void do_command(struct story *story, const char *command)
{
    if (str_starts_with(command, "run "))
        run_for(story, strtod(command + 4, NULL));
    else if (str_equal(command, "start"))
        start_what_is_due(story), puts("started");
    else if (str_equal(command, "kill"))
        story->is_due = false, end_controller(story, NULL), puts("killed");
    else if (str_starts_with(command, "die-at "))
        puts(die_at(story, command + strlen("die-at ")) ? "it will" : "this build has no such crash point");
    else if (str_starts_with(command, "plant "))
        puts(plant(command + strlen("plant ")) ? "planted" : "this build has no planted bugs");
    else if (str_equal(command, "deaths"))
        printf("%d\n", story->deaths);
    else if (str_equal(command, "stop"))
        puts(stop_controller(story));
    else if (str_equal(command, "end"))
        uv_stop(&story->loop), puts("ended");
    else
        printf("'%s' is no command\n", command);
    fflush(stdout);
    http_front_pump(story->front);
}

static void on_commands(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct story *story = poll->data;
    char block[LINE_MAX_BYTES];
    ssize_t got = read(STDIN_FILENO, block, sizeof(block));
    if (got <= 0) { /* the story is over */
        uv_stop(&story->loop);
        return;
    }
    for (ssize_t i = 0; i < got; i++) {
        if (block[i] != '\n') {
            ENSURE(buf_add_char(&story->line, block[i]) == 0);
            continue;
        }
        do_command(story, buf_text(&story->line));
        buf_clear(&story->line);
    }
}

/* --- life -------------------------------------------------------------------------------------------------
 */

static void write_audit(void *context, const char *line, size_t length)
{
    struct story *story = context;
    fwrite(line, 1, length, story->audit);
    fputc('\n', story->audit);
    fflush(story->audit);
}

static void set_route(void *context, const struct env_sim_call *call, struct env_sim_route *ret)
{
    (void)context;
    (void)call;
    ret->request_us = ret->answer_us = 500;
}

static FILE *open_in(const char *folder, const char *name)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "ae");
    if (!file) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    return file;
}

static void write_kubeconfig(const struct story *story, const char *folder)
{
    CLEANUP_FREE char *path = xasprintf("%s/kubeconfig", folder);
    CLEANUP_FREE char *temporary = xasprintf("%s.new", path);
    FILE *file = open_in(folder, "kubeconfig.new");
    fprintf(
        file,
        "apiVersion: v1\nkind: Config\ncurrent-context: sim\n"
        "clusters:\n- name: sim\n  cluster:\n    server: http://%s\n"
        "users:\n- name: person\n  user:\n    token: user:person\n"
        "contexts:\n- name: sim\n  context:\n    cluster: sim\n    user: person\n    namespace: default\n",
        http_front_address(story->front));
    fclose(file);
    ENSURE(rename(temporary, path) == 0);
}

static void make_world(struct story *story, const char *faults)
{
    story->env = env_sim_make((uint64_t)getpid());
    story->began_us = env_boot_us(story->env);
    env_sim_on_route(story->env, set_route, story);
    story->server = sim_server_make_watched(
        story->env, &(struct sim_server_hooks){.audited = write_audit, .context = story});
    sim_server_apply_file(story->server, "deploy/crd.yaml");
    sim_server_attach_kubelet(story->server, &(struct kubelet_options){.seed = (uint64_t)getpid()});
    CLEANUP_ERROR struct error *err = NULL;
    if (faults && kubesim_fault_add(sim_server_kubesim(story->server), faults, &err) < 0) {
        fprintf(stderr, "story-sim: %s\n", error_text(err));
        exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: story-sim FOLDER [FAULTS]\n");
        return 64;
    }
    struct story story = {.line = BUF_INIT(LINE_MAX_BYTES)};
    CLEANUP_ERROR struct error *err = NULL;
    uv_loop_init(&story.loop);
    story.audit = open_in(argv[1], "audit.log");
    story.log = open_in(argv[1], "controller.log");
    story.journal_path = xasprintf("%s/journal.db", argv[1]);
    make_world(&story, argc == 3 ? argv[2] : NULL);
    if (http_front_start(&story.loop, sim_server_kubesim(story.server), "127.0.0.1:0", &story.front, &err) <
        0) {
        fprintf(stderr, "story-sim: %s\n", error_text(err));
        return EXIT_FAILURE;
    }
    uv_poll_init(&story.loop, &story.commands, STDIN_FILENO);
    story.commands.data = &story;
    uv_poll_start(&story.commands, UV_READABLE, on_commands);
    write_kubeconfig(&story, argv[1]);
    uv_run(&story.loop, UV_RUN_DEFAULT);

    end_controller(&story, NULL);
    http_front_stop(STEAL(story.front));
    uv_close((uv_handle_t *)&story.commands, NULL);
    uv_run(&story.loop, UV_RUN_DEFAULT);
    uv_loop_close(&story.loop);
    sim_server_free(story.server);
    env_free(story.env);
    fclose(story.audit);
    fclose(story.log);
    free(story.journal_path);
    free(story.edge);
    free_writes(&story);
    buf_done(&story.line);
    return EXIT_SUCCESS;
}
