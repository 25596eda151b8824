/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a run:
 *
 *   BOOTING --kubesim listens--> PLAYING --last stage over--> SETTLING --a second--> STOPPING --controller
 * ended well--> READING (end state, journal, audit log) --> OVER
 *
 * The controller is started again whenever it dies by SIGKILL while the story is played. */
#include "lab.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    POLL_US = 120000,
    RESTART_US = 30000,
    SETTLE_US = 600000,
    REQUEST_TIMEOUT_US = 10000000,
    CHILD_TIMEOUT_US = 600000000,
    FILE_MAX = 64 * 1024 * 1024,
};
/* A story takes about half a minute, a horizon of the gateway 15 s, a canary's window 10 s. */
#define RUN_TIMEOUT_US (240 * US_PER_S)

enum run_state { BOOTING, PLAYING, SETTLING, STOPPING, READING, OVER };

struct run {
    struct lab *lab;
    struct plan plan;
    struct run_result result;
    run_done *done;
    void *context;
    char *folder;
    enum run_state state;
    int64_t begun_us;
    int64_t since_us; /* in this state */
    struct http_server server;
    struct env_child *kubesim;
    struct env_child *controller;
    struct env_child *tool; /* kill, neoset-audit */
    struct env_timer *tick;
    struct env_timer *restart;
    struct env_timer *kill;
    struct env_http *http;
    unsigned starts;
    unsigned kills_left;
    uint64_t random;
    size_t stage;
    bool stage_begun;
    bool stays_dead; /* until the next act */
    int reading;     /* what is read next */
    cJSON *read[4];  /* the set, pods, claims, revisions */
    char *steps;
};

static void tick_later(struct run *run, int64_t delay_us);

static char *file_in(const struct run *run, const char *name)
{
    return xasprintf("%s/%s", run->folder, name);
}

static uint64_t below(struct run *run, uint64_t bound)
{
    run->random = run->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (run->random >> 33) % bound;
}

static void set_state(struct run *run, enum run_state state)
{
    run->state = state;
    run->since_us = env_boot_us(run->lab->env);
}

/* --- the end
 * ---------------------------------------------------------------------------------------------------- */

static void end_children(struct run *run)
{
    struct env *env = run->lab->env;
    env_timer_cancel(env, &run->restart);
    env_timer_cancel(env, &run->kill);
    env_http_cancel(env, &run->http);
    env_child_cancel(env, &run->tool);
    env_child_cancel(env, &run->controller);
    env_child_cancel(env, &run->kubesim);
}

static void over(struct run *run, char *problem)
{
    if (run->state == OVER) {
        free(problem);
        return;
    }
    end_children(run);
    env_timer_cancel(run->lab->env, &run->tick);
    run->result.problem = problem;
    set_state(run, OVER);
    run->done(run->context, run);
}

static const char *stage_name(const struct run *run)
{
    return run->stage < run->plan.story->count ? run->plan.story->stages[run->stage].what : "the end";
}

/* --- processes
 * -------------------------------------------------------------------------------------------------- */

/* Through a shell, for its pid and its log; exec: the shell is gone then. */
static struct env_child *start_child(struct run *run, const char *const *words, size_t count, const char *log,
                                     const char *const *environment, env_child_done *done)
{
    CLEANUP_FREE char *script =
        xasprintf("echo $$ >'%s/%s.pid'; exec \"$@\" >>'%s/%s.log' 2>&1", run->folder, log, run->folder, log);
    const char **argv = xcalloc(count + 5, sizeof(*argv));
    const char *const shell[] = {"/bin/sh", "-c", script, "sh"};
    memcpy(argv, shell, sizeof(shell));
    memcpy(argv + ARRAY_SIZE(shell), words, count * sizeof(*words));
    const struct child_spec spec = {
        .argv = argv, .environment = environment, .output_max = 65536, .timeout_us = CHILD_TIMEOUT_US};
    struct env_child *child = env_child_start(run->lab->env, &spec, done, run);
    free(argv);
    return child;
}

static void on_kubesim_end(void *context, const struct child_result *result)
{
    struct run *run = context;
    run->kubesim = NULL;
    over(run, xasprintf("kubesim ended: %s", result->problem ? result->problem : "by itself"));
}

static void start_kubesim(struct run *run)
{
    CLEANUP_FREE char *program = xasprintf("%s/kubesim", run->lab->build);
    CLEANUP_FREE char *kubeconfig = file_in(run, "kubeconfig");
    CLEANUP_FREE char *audit = file_in(run, "audit.log");
    const char *words[] = {
        program,     "--listen", "127.0.0.1:0", "--kubeconfig-out", kubeconfig, "--audit-log",   audit,
        "--kubelet", "ok",       "--crd",       "deploy/crd.yaml",  "--faults", run->plan.faults};
    size_t count = ARRAY_SIZE(words) - (run->plan.faults ? 0 : 2);
    run->kubesim = start_child(run, words, count, "kubesim", NULL, on_kubesim_end);
}

static void start_controller(struct run *run);

static void on_restart(void *context)
{
    struct run *run = context;
    run->restart = NULL;
    start_controller(run);
}

static bool awaits_crash(const struct run *run)
{
    return run->stage < run->plan.story->count && run->plan.story->stages[run->stage].awaits_crash;
}

static void controller_died(struct run *run)
{
    run->result.deaths++;
    run->stays_dead = awaits_crash(run);
    if (!run->stays_dead)
        run->restart = env_timer_start(run->lab->env, RESTART_US, on_restart, run);
}

static void on_controller_end(void *context, const struct child_result *result)
{
    struct run *run = context;
    run->controller = NULL;
    if (run->state == STOPPING && result->exit_code == 0) {
        set_state(run, READING);
        tick_later(run, 0);
    } else if (run->state == PLAYING && result->problem && strstr(result->problem, "signal 9")) {
        controller_died(run);
    } else {
        CLEANUP_FREE char *how = result->problem ? xstrdup(result->problem)
                                                 : xasprintf("it ended with exit code %d", result->exit_code);
        over(run, xasprintf("the controller: %s, during: %s (controller.log)", how, stage_name(run)));
    }
}

static void on_kill(void *context);

static void start_controller(struct run *run)
{
    bool crashes = run->starts < CRASHES_MAX && *run->plan.crashes[run->starts];
    CLEANUP_FREE char *plain = xasprintf("%s/neoset-controller", run->lab->build);
    CLEANUP_FREE char *kubeconfig = file_in(run, "kubeconfig");
    CLEANUP_FREE char *journal = file_in(run, "journal.db");
    CLEANUP_FREE char *crash = xasprintf("NEOSET_CRASH=%s", crashes ? run->plan.crashes[run->starts] : "");
    const char *environment[] = {crash, NULL};
    const char *words[] = {crashes ? run->lab->crash_controller : plain,
                           "--kubeconfig",
                           kubeconfig,
                           "--journal",
                           journal,
                           "--listen",
                           "none",
                           "--lease",
                           "default/neoset"};
    run->starts++;
    run->controller = start_child(run, words, ARRAY_SIZE(words), "controller", crashes ? environment : NULL,
                                  on_controller_end);
    if (run->kills_left)
        run->kill = env_timer_start(run->lab->env, (int64_t)below(run, 3 * US_PER_S), on_kill, run);
}

static void on_kill(void *context)
{
    struct run *run = context;
    run->kill = NULL;
    if (run->state != PLAYING || !run->controller)
        return;
    env_child_cancel(run->lab->env, &run->controller);
    run->kills_left--;
    controller_died(run);
}

static void on_stop_sent(void *context, const struct child_result *result)
{
    struct run *run = context;
    run->tool = NULL;
    if (result->exit_code != 0)
        over(run, xasprintf("kill: %s%s", result->errors, result->problem ? result->problem : ""));
}

static void stop_controller(struct run *run)
{
    CLEANUP_FREE char *script = xasprintf("kill -TERM $(cat '%s/controller.pid')", run->folder);
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    const struct child_spec spec = {.argv = argv, .output_max = 4096, .timeout_us = 10 * US_PER_S};
    set_state(run, STOPPING);
    run->tool = env_child_start(run->lab->env, &spec, on_stop_sent, run);
}

/* --- requests
 * --------------------------------------------------------------------------------------------------- */

typedef void answer_reader(struct run *run, int status, const cJSON *body);

struct question {
    struct run *run;
    answer_reader *reader;
};

static void on_answer(void *context, const struct http_answer *answer)
{
    struct question question = *(struct question *)context;
    free(context);
    question.run->http = NULL;
    CLEANUP_JSON cJSON *body = NULL;
    if (answer->outcome == HTTP_ANSWERED && answer->body_whole)
        json_parse(answer->body, answer->body_length, &body, NULL);
    question.reader(question.run, answer->status, body);
}

/* As a user of its own: the faults are for the controller. */
static void ask(struct run *run, const char *method, const char *path, const char *content_type,
                const char *body, answer_reader *reader)
{
    const struct http_header headers[] = {{"Authorization", "Bearer user:story"},
                                          {"Content-Type", content_type ? content_type : "application/json"}};
    const struct http_request request = {.server = &run->server,
                                         .method = method,
                                         .path = path,
                                         .headers = headers,
                                         .header_count = ARRAY_SIZE(headers),
                                         .body = body,
                                         .body_length = body ? strlen(body) : 0,
                                         .timeout_us = REQUEST_TIMEOUT_US,
                                         .answer_max = FILE_MAX};
    const struct http_callbacks callbacks = {.on_done = on_answer};
    struct question *question = xmalloc(sizeof(*question));
    *question = (struct question){run, reader};
    run->http = env_http_submit(run->lab->env, &request, &callbacks, question);
}

/* --- the story
 * -------------------------------------------------------------------------------------------------- */

static const struct stage *stage_now(const struct run *run)
{
    return &run->plan.story->stages[run->stage];
}

static void next_stage(struct run *run)
{
    run->stage++;
    run->stage_begun = false;
    if (run->stage == run->plan.story->count)
        set_state(run, SETTLING);
}

static void stage_was_begun(struct run *run, int status, const cJSON *body)
{
    if (status < 200 || status > 299) {
        const char *words = json_str(body, "message");
        over(run, xasprintf("%s: %d %s", stage_name(run), status, words ? words : ""));
        return;
    }
    run->stage_begun = true;
    /* It may have died of this very act before the answer to it was heard: then it is the next act that it
     * stays dead for. */
    if (run->stays_dead && !stage_now(run)->awaits_crash) {
        run->stays_dead = false;
        start_controller(run);
    }
    tick_later(run, POLL_US);
}

static void stage_was_seen(struct run *run, int status, const cJSON *body)
{
    if (status == 200 && stage_now(run)->is_over(body))
        next_stage(run);
    tick_later(run, POLL_US);
}

static void play(struct run *run)
{
    const struct stage *stage = stage_now(run);
    if (!run->stage_begun) {
        ask(run, stage->method, stage->path, stage->content_type, stage->body, stage_was_begun);
    } else if (stage->awaits_crash) {
        if (run->stays_dead)
            next_stage(run);
        tick_later(run, POLL_US);
    } else {
        ask(run, "GET", stage->look_at, NULL, NULL, stage_was_seen);
    }
}

/* --- reading
 * ---------------------------------------------------------------------------------------------------- */

static char *read_file(struct run *run, const char *name)
{
    CLEANUP_FREE char *path = file_in(run, name);
    struct buf text = BUF_INIT(FILE_MAX);
    if (env_read_file(run->lab->env, path, &text, NULL) < 0) {
        buf_done(&text);
        return NULL;
    }
    return buf_take(&text);
}

static void judge(struct run *run)
{
    CLEANUP_FREE char *audit = read_file(run, "audit.log");
    run->result.state = judge_state(run->read[0], run->read[1], run->read[2], run->read[3]);
    char *problem = audit ? judge_journal(run->steps, audit, &run->result) : xstrdup("there is no audit.log");
    unsigned expected = run->plan.kills;
    for (size_t i = 0; i < CRASHES_MAX && *run->plan.crashes[i]; i++)
        expected++;
    if (!problem && run->result.deaths != expected)
        problem = xasprintf("the controller died %u times instead of %u: that edge was not passed",
                            run->result.deaths, expected);
    if (!problem && run->plan.brings_doubt && run->result.doubts == 0)
        problem = xstrdup("the faults hit nothing");
    over(run, problem);
}

static const char *const verify_words[] = {"verify"};
static const char *const in_doubt_words[] = {"in-doubt", "--check"};
static const char *const entries_words[] = {"export", "entries", "-o", "jsonl"};
static const char *const export_words[] = {"export", "steps", "-o", "jsonl"};
static const struct {
    const char *const *words;
    size_t count;
} audits[] = {{verify_words, ARRAY_SIZE(verify_words)},
              {in_doubt_words, ARRAY_SIZE(in_doubt_words)},
              {entries_words, ARRAY_SIZE(entries_words)},
              {export_words, ARRAY_SIZE(export_words)}};

static void read_next(struct run *run);

static void on_audit_end(void *context, const struct child_result *result)
{
    struct run *run = context;
    run->tool = NULL;
    size_t index = (size_t)run->reading - ARRAY_SIZE(run->read);
    if (result->exit_code != 0) {
        over(run,
             xasprintf("neoset-audit %s: exit code %d: %s%s%s", audits[index].words[0], result->exit_code,
                       result->output, result->errors, result->problem ? result->problem : ""));
        return;
    }
    char *problem = audits[index].words == entries_words ? judge_doubts(result->output, &run->result) : NULL;
    if (problem) {
        over(run, problem);
        return;
    }
    if (audits[index].words == export_words)
        run->steps = xstrdup(result->output);
    run->reading++;
    read_next(run);
}

static void run_audit(struct run *run, size_t index)
{
    CLEANUP_FREE char *program = xasprintf("%s/neoset-audit", run->lab->build);
    CLEANUP_FREE char *journal = file_in(run, "journal.db");
    const char *argv[12] = {program};
    size_t count = 1;
    for (size_t i = 0; i < audits[index].count; i++)
        argv[count++] = audits[index].words[i];
    argv[count++] = "--journal";
    argv[count] = journal;
    const struct child_spec spec = {.argv = argv, .output_max = FILE_MAX, .timeout_us = 60 * US_PER_S};
    run->tool = env_child_start(run->lab->env, &spec, on_audit_end, run);
}

static void list_was_read(struct run *run, int status, const cJSON *body)
{
    if (status != 200 || !body) {
        over(run, xasprintf("the end state cannot be read: %d", status));
        return;
    }
    run->read[run->reading++] = json_copy(body);
    read_next(run);
}

static void read_next(struct run *run)
{
    static const char *const paths[] = {"/apis/apps.neo.io/v1alpha1/namespaces/default/neosets/db",
                                        "/api/v1/namespaces/default/pods",
                                        "/api/v1/namespaces/default/persistentvolumeclaims",
                                        "/apis/apps/v1/namespaces/default/controllerrevisions"};
    size_t index = (size_t)run->reading;
    if (index < ARRAY_SIZE(paths))
        ask(run, "GET", paths[index], NULL, NULL, list_was_read);
    else if (index < ARRAY_SIZE(paths) + ARRAY_SIZE(audits))
        run_audit(run, index - ARRAY_SIZE(paths));
    else
        judge(run);
}

/* --- the beat
 * --------------------------------------------------------------------------------------------------- */

/* kubesim listens when its kubeconfig is there. */
static void boot(struct run *run)
{
    CLEANUP_FREE char *text = read_file(run, "kubeconfig");
    const char *server = text ? strstr(text, "server: ") : NULL;
    if (server) {
        server += strlen("server: ");
        run->server.base_url = xstrndup(server, strcspn(server, "\n"));
        set_state(run, PLAYING);
        start_controller(run);
    }
    tick_later(run, POLL_US);
}

static void settle(struct run *run)
{
    bool settled = env_boot_us(run->lab->env) - run->since_us >= SETTLE_US;
    if (settled && run->controller)
        stop_controller(run);
    else
        tick_later(run, POLL_US);
}

static void on_tick(void *context)
{
    struct run *run = context;
    run->tick = NULL;
    if (env_boot_us(run->lab->env) - run->begun_us > RUN_TIMEOUT_US) {
        over(run, xasprintf("ran out of time during: %s", stage_name(run)));
        return;
    }
    switch (run->state) {
    case BOOTING:
        boot(run);
        break;
    case PLAYING:
        play(run);
        break;
    case SETTLING:
        settle(run);
        break;
    case READING:
        read_next(run);
        break;
    case STOPPING:
    case OVER:
        break;
    }
}

static void tick_later(struct run *run, int64_t delay_us)
{
    if (!run->tick && run->state != OVER)
        run->tick = env_timer_start(run->lab->env, delay_us, on_tick, run);
}

/* --- the run
 * ---------------------------------------------------------------------------------------------------- */

static void make_folder(struct run *run)
{
    run->folder = xasprintf("%s/%s", run->lab->root, run->plan.name);
    for (char *letter = run->folder + strlen(run->lab->root) + 1; *letter; letter++)
        if (strchr(" :*/,", *letter))
            *letter = '-';
    ENSURE(mkdir(run->folder, 0700) == 0);
}

struct run *run_start(struct lab *lab, const struct plan *plan, run_done *done, void *context)
{
    struct run *run = xcalloc(1, sizeof(*run));
    run->lab = lab;
    run->plan = *plan;
    run->done = done;
    run->context = context;
    run->random = plan->seed;
    run->kills_left = plan->kills;
    run->begun_us = env_boot_us(lab->env);
    make_folder(run);
    set_state(run, BOOTING);
    start_kubesim(run);
    tick_later(run, POLL_US);
    return run;
}

const struct plan *run_plan(const struct run *run)
{
    return &run->plan;
}

const struct run_result *run_result(const struct run *run)
{
    return &run->result;
}

const char *run_folder(const struct run *run)
{
    return run->folder;
}

void run_free(struct run *run)
{
    end_children(run);
    env_timer_cancel(run->lab->env, &run->tick);
    http_server_done(&run->server);
    for (size_t i = 0; i < ARRAY_SIZE(run->read); i++)
        json_delete(run->read[i]);
    free(run->steps);
    free(run->result.problem);
    free(run->result.state);
    free(run->result.steps);
    free(run->folder);
    free(run);
}
