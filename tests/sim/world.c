/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "judge.h"
#include "resize.h"
#include "strangers.h"

#include "base/time_text.h"
#include "kube/client.h"
#include "neoset/controller.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define HOME_WITHIN_US (4 * 3600 * US_PER_S)
#define QUIET_US (75 * US_PER_S)

int64_t world_now_us(const struct world *world)
{
    return env_boot_us(world->env);
}

/* --- what the world tells its judge --------------------------------------------------------------------- */

static void changed(void *context, const struct kubesim_change *change)
{
    struct world *world = context;
    if (!world->judge)
        return;
    world->report->changes++;
    judge_take_change(world->judge, change);
}

static void answered(void *context, const struct env_sim_call *call, int status, bool told)
{
    struct world *world = context;
    if (world->judge)
        judge_take_answer(world->judge, call, status, told);
}

static void mutate_pod(void *context, cJSON *object, const cJSON *old)
{
    const struct world *world = context;
    if (world->draw && world->draw->webhook)
        webhook_mutate(object, !old);
}

static void route(void *context, const struct env_sim_call *call, struct env_sim_route *ret)
{
    struct world *world = context;
    ret->request_us = world->draw ? world->draw->network_us : 500;
    ret->answer_us = ret->request_us;
    if (world->judge)
        judge_take_request(world->judge, call);
}

static int64_t commit_time(void *context)
{
    const struct world *world = context;
    return world->disk_us;
}

/* --- programs ------------------------------------------------------------------------------------------- */

static void report_line(void *context, enum report_level level, const char *object, const char *sentence)
{
    struct program *program = context;
    (void)level;
    report_tell(program->world->report, "controller %d: %s%s%s", program->index, object ? object : "",
                object ? ": " : "", sentence);
}

static void program_ended(void *context, int exit_code, const char *sentence)
{
    struct program *program = context;
    report_tell(program->world->report, "controller %d ends with %d: %s", program->index, exit_code,
                sentence);
    program->ended = true;
}

static void put_ballast(const struct program *program)
{
    /* One file serves all: it only has to be there. */
    CLEANUP_FREE char *shared = xasprintf("%s/../ballast", program->world->folder);
    CLEANUP_FREE char *own = xasprintf("%s-ballast", program->journal_path);
    (void)!link(shared, own);
}

void program_open(struct program *program)
{
    struct world *world = program->world;
    program->env = env_sim_process(world->env);
    env_sim_on_work(program->env, commit_time, world);
    program->ended = program->stopped = false;
    program->start_due_us = INT64_MAX;
    program->started_us = world_now_us(world);
    struct kube_config *config = xcalloc(1, sizeof(*config));
    config->server.base_url = xstrdup("http://sim");
    config->namespace = xstrdup("default");
    program->client = kube_client_make(program->env, config);
    put_ballast(program);
}

void program_start(struct program *program)
{
    struct world *world = program->world;
    if (program->wish) {
        resize_start_again(program);
        return;
    }
    program_open(program);
    CLEANUP_FREE char *identity = xasprintf("pod-%d", program->index);
    CLEANUP_ERROR struct error *err = NULL;
    if (journal_open(program->env,
                     &(struct journal_options){
                         .path = program->journal_path, .identity = identity, .version = "simulated"},
                     &program->journal, &err) < 0)
        report_break(world->report, INVARIANT_NONE_OF_THEM, "the journal cannot be opened: %s",
                     error_text(err));
    report_tell(world->report, "controller %d starts", program->index);
    judge_take_start(world->judge, program);
    program->controller = controller_start(&(struct controller_options){
        .env = program->env,
        .client = program->client,
        .journal = program->journal,
        .lease_namespace = world->draw->with_lease ? "neo" : NULL,
        .lease_name = "neoset",
        .identity = identity,
        .resize_abandoned_us = world->resize ? 120 * US_PER_S : 0,
        .report = report_line,
        .ended = program_ended,
        .context = program,
    });
}

static void drop(struct program *program, const char *stop_reason)
{
    judge_take_end(program->world->judge, program);
    controller_free(STEAL(program->controller));
    command_free(STEAL(program->command));
    kube_client_free(STEAL(program->client));
    journal_close(STEAL(program->journal), stop_reason);
    env_free(STEAL(program->env));
}

void program_kill(struct program *program)
{
    if (!program->env)
        return;
    report_tell(program->world->report, "%s %d is killed",
                program->wish ? "the command of user" : "controller",
                program->wish ? program->user : program->index);
    program->left_undone = true;
    drop(program, NULL);
}

static void note_stopped(void *context)
{
    struct program *program = context;
    program->stopped = true;
}

void program_stop(struct program *program)
{
    if (!program->env)
        return;
    report_tell(program->world->report, "controller %d is asked to stop", program->index);
    int64_t until_us = world_now_us(program->world) + 20 * US_PER_S;
    controller_stop(program->controller, note_stopped, program);
    while (!program->stopped && world_now_us(program->world) < until_us)
        world_run_events(program->world, 1);
    drop(program, program->stopped ? "stopped as asked" : NULL);
}

/* --- time ----------------------------------------------------------------------------------------------- */

/* Programs that are due, or that ended by themselves, are started (again). */
static void look_after_programs(struct world *world)
{
    for (int i = 0; i < world->program_count; i++) {
        struct program *program = &world->programs[i];
        if (program->env && program->ended) {
            drop(program, program->wish ? "done" : NULL);
            program->start_due_us = program->wish ? INT64_MAX : world_now_us(world) + US_PER_S;
        }
        if (!program->env && program->start_due_us <= world_now_us(world))
            program_start(program);
    }
}

static int64_t next_start_us(const struct world *world)
{
    int64_t next_us = INT64_MAX;
    for (int i = 0; i < world->program_count; i++)
        if (!world->programs[i].env)
            next_us = MIN(next_us, world->programs[i].start_due_us);
    return next_us;
}

static void step(struct world *world)
{
    int64_t start_us = next_start_us(world);
    world->report->now_us = MIN(env_sim_next_us(world->env), start_us) - world->begun_us;
    if (start_us <= env_sim_next_us(world->env)) {
        env_sim_run_until(world->env, MAX(start_us, world_now_us(world)));
        look_after_programs(world);
    } else {
        env_sim_step(world->env);
    }
    world->report->events++;
    look_after_programs(world);
    judge_look(world->judge);
}

void world_run_events(struct world *world, int count)
{
    for (int i = 0; i < count && env_sim_next_us(world->env) != INT64_MAX; i++)
        step(world);
}

void world_run_for(struct world *world, int64_t duration_us)
{
    int64_t until_us = world_now_us(world) + duration_us;
    while (MIN(env_sim_next_us(world->env), next_start_us(world)) <= until_us)
        step(world);
    env_sim_run_until(world->env, MAX(until_us, world_now_us(world)));
    world->report->now_us = world_now_us(world) - world->begun_us;
}

/* --- a run ---------------------------------------------------------------------------------------------- */

/* A number would not do: what a process left behind that was killed is there when its number comes again. */
static char *make_folder(void)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    char *folder = xasprintf("%s/neoset-sim-XXXXXX", base);
    ENSURE(mkdtemp(folder) != NULL);
    return folder;
}

struct world *world_prepare(void)
{
    struct world *world = xcalloc(1, sizeof(*world));
    world->env = env_sim_make(1);
    env_sim_on_route(world->env, route, world);
    world->server = sim_server_make_watched(world->env, &(struct sim_server_hooks){.changed = changed,
                                                                                   .answered = answered,
                                                                                   .mutate_pod = mutate_pod,
                                                                                   .context = world});
    sim_server_apply_file(world->server, "deploy/crd.yaml");
    ENSURE(sim_server_ask(world->server, "POST", "/api/v1/namespaces", "application/json",
                          "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"neo\"}}",
                          NULL) == 201);
    world->folder = make_folder();
    return world;
}

void world_prepare_journal(struct world *world)
{
    CLEANUP_FREE char *path = xasprintf("%s/template.db", world->folder);
    struct env *env = env_sim_process(world->env);
    struct journal *journal = NULL;
    ENSURE(journal_open(env,
                        &(struct journal_options){.path = path, .identity = "pod", .version = "simulated"},
                        &journal, NULL) == 0);
    journal_close(journal, "made for others");
    env_free(env);
}

/* Making the tables takes as long as a rollout: the first journal begins as a copy. */
static void put_template(const struct program *program)
{
    static const char *const parts[] = {"", "-wal"};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        CLEANUP_FREE char *template = xasprintf("%s/../template.db%s", program->world->folder, parts[i]);
        CLEANUP_FREE char *own = xasprintf("%s%s", program->journal_path, parts[i]);
        world_copy_file(template, own);
    }
}

static void attach_kubelet(struct world *world)
{
    const struct draw *draw = world->draw;
    sim_server_attach_kubelet(world->server, &(struct kubelet_options){
                                                 .seed = draw->seed,
                                                 .behaviour = *draw->behaviour ? draw->behaviour : NULL,
                                                 .node_count = (unsigned)draw->nodes,
                                                 .jitter_percent = draw->jitter_percent,
                                                 .relist_us = draw->relist_ms * US_PER_MS,
                                             });
}

void program_make(struct world *world, int index)
{
    struct program *program = &world->programs[index];
    *program = (struct program){.world = world, .index = index, .start_due_us = INT64_MAX};
    program->journal_path = xasprintf("%s/journal-%d.db", world->folder, index);
    if (index == 0)
        put_template(program);
}

static void make_programs(struct world *world)
{
    world->program_count = world->draw->standby ? CONTROLLERS_MAX : 1;
    for (int i = 0; i < world->program_count; i++) {
        program_make(world, i);
        program_start(&world->programs[i]);
    }
}

void world_play(struct world *world, int operations)
{
    for (int i = 0; i < operations && i < world->draw->count; i++) {
        const struct operation *operation = &world->draw->operations[i];
        world_run_for(world, operation->after_us);
        CLEANUP_FREE char *told = operation_tell(operation);
        report_tell(world->report, "* %s", told);
        world->report->operations = i + 1;
        world_do(world, operation);
    }
    /* A prefix breaks as the whole does: also in the pause before the operation that it leaves out. */
    if (operations < world->draw->count)
        world_run_for(world, world->draw->operations[operations].after_us);
}

/* A set that was being deleted when the world was healed. */
static void make_missing_sets(struct world *world)
{
    for (int i = 0; i < world->draw->set_count; i++) {
        CLEANUP_JSON cJSON *set = world_set(world, i);
        if (!set)
            world_create_set(world, i);
    }
}

/* With fair kubelets and a good template every set comes home by itself (7); then nothing is written (6). */
static void come_home(struct world *world)
{
    report_tell(world->report, "* the world is healed: a good template, no faults, fair kubelets");
    world_heal(world);
    int64_t until_us = world_now_us(world) + HOME_WITHIN_US;
    char why[SENTENCE_MAX] = "";
    while (!judge_is_home(world->judge, why, sizeof(why))) {
        if (world_now_us(world) > until_us)
            judge_tell_open(world->judge);
        if (world_now_us(world) > until_us)
            report_break(world->report, 7, "a good template does not complete within %lld min: %s",
                         (long long)(HOME_WITHIN_US / US_PER_S / 60), why);
        world_run_for(world, US_PER_S);
        make_missing_sets(world);
    }
    report_tell(world->report, "* everything is home");
}

static void restart_programs(struct world *world)
{
    for (int i = 0; i < world->program_count; i++) {
        program_stop(&world->programs[i]);
        world->programs[i].start_due_us = world_now_us(world) + US_PER_S;
    }
}

/* How often the controllers have planned since they were started. */
static uint64_t turns_of(const struct world *world)
{
    static const char name[] = "\nneoset_turns_total ";
    uint64_t turns = 0;
    for (int i = 0; i < world->program_count; i++) {
        CLEANUP_BUF struct buf text = BUF_INIT(1 << 20);
        if (!world->programs[i].controller)
            continue;
        controller_write_metrics(world->programs[i].controller, &text);
        const char *line = strstr(buf_text(&text), name);
        ENSURE(line);
        turns += strtoull(line + strlen(name), NULL, 10);
    }
    return turns;
}

/* Somebody touches what does not concern a pod: turns come of it, and no write (6). */
static void be_idle(struct world *world)
{
    judge_expect_quiet(world->judge, true);
    for (int i = 0; i < world->draw->set_count; i++)
        world_rustle(world, i);
    world_run_for(world, QUIET_US);
    judge_expect_quiet(world->judge, false);
    world->report->idle_turns += turns_of(world);
}

static void stay_quiet(struct world *world)
{
    /* That the journal is another one is said until the next start, and taken back then. */
    if (judge_has_lost_journal(world->judge))
        restart_programs(world);
    world_run_for(world, 40 * US_PER_S);
    uint64_t turns_before = turns_of(world);
    be_idle(world);
    world->report->idle_turns -= turns_before;
    report_tell(world->report, "* the controllers are started anew; nothing else changes");
    restart_programs(world);
    be_idle(world);
    judge_look_at_end(world->judge);
}

static void run_neosets(struct world *world, int operations)
{
    const struct draw *draw = world->draw;
    for (int i = 0; i < draw->set_count; i++)
        if (draw->sets[i].handed_over)
            strangers_leave_pods(world, i);
    if (draw->sets[0].handed_over || draw->sets[SETS_MAX - 1].handed_over)
        world_run_for(world, 5 * US_PER_S);
    for (int i = 0; i < draw->set_count; i++)
        world_create_set(world, i);
    make_programs(world);
    world_run_for(world, 20 * US_PER_S);
    world_play(world, operations);
    come_home(world);
    stay_quiet(world);
}

static void run_resize(struct world *world, int operations)
{
    resize_begin(world);
    world_play(world, operations);
    resize_come_home(world);
}

_Noreturn void world_run(struct world *world, const struct draw *draw, int operations, struct report *report)
{
    world->draw = draw;
    world->report = report;
    world->disk_us = draw->disk_ms * US_PER_MS;
    world->begun_us = world_now_us(world);
    report->hash = 0xCBF29CE484222325ULL;
    env_sim_reseed(world->env, draw->seed);
    world->judge = judge_make(world);
    attach_kubelet(world);
    if (draw->is_resize)
        run_resize(world, operations);
    else
        run_neosets(world, operations);
    report->finished = true;
    fflush(stdout);
    _exit(0);
}
