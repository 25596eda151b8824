/* SPDX-License-Identifier: Apache-2.0
 *
 * crash-matrix [--parallel N] [--keep] [PATTERN...]: the matrix of README.md. NEOSET_BUILD says where the
 * programs are (build/gcc); the controller with crash points is expected beside it (build/gcc-crash), without
 * it only runs that need none are played. The last line is "N passed, N failed". */
#include "lab.h"

#include <dirent.h>
#include <getopt.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLANS_MAX = 400, PARALLEL_MAX = 100 };

struct matrix {
    struct lab lab;
    struct plan plans[PLANS_MAX];
    size_t count;
    size_t next;
    unsigned parallel;
    bool keeps_files;
    unsigned under_way;
    struct run *runs[PLANS_MAX]; /* begun and not judged yet */
    bool ended[PLANS_MAX];
    unsigned passed;
    unsigned failed;
    unsigned deaths;
    unsigned accepted;
    unsigned doubts;
    unsigned resent;
    char *wanted_state; /* of the uninterrupted run of the whole story */
    char *wanted_steps;
};

static const char *const kinds[] = {"create-revision", "create-claim", "create-pod", "update-in-place",
                                    "patch",           "gate",         "advance",    "delete",
                                    "adopt",           "release"};
static const char *const edges[] = {"intent-commit", "send", "answer", "outcome", "done"};
/* After these a restart finds the step open. */
static const char *const open_edges[] = {"send", "answer", "outcome"};

/* --- the plans
 * -------------------------------------------------------------------------------------------------- */

static struct plan *add_plan(struct matrix *matrix, const struct story *story, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static struct plan *add_plan(struct matrix *matrix, const struct story *story, const char *format, ...)
{
    ENSURE(matrix->count < PLANS_MAX);
    struct plan *plan = &matrix->plans[matrix->count++];
    va_list args;
    va_start(args, format);
    vsnprintf(plan->name, sizeof(plan->name), format, args);
    va_end(args);
    plan->story = story;
    plan->seed = matrix->count;
    return plan;
}

static void crash_at(struct plan *plan, const char *edge, const char *kind)
{
    for (size_t i = 0; i < CRASHES_MAX; i++) {
        if (*plan->crashes[i])
            continue;
        snprintf(plan->crashes[i], sizeof(plan->crashes[i]), "%s:%s", edge, kind);
        return;
    }
    UNREACHABLE();
}

static void plan_edges(struct matrix *matrix)
{
    for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++)
        for (size_t edge = 0; edge < ARRAY_SIZE(edges); edge++)
            crash_at(add_plan(matrix, &story_whole, "edge %s:%s", edges[edge], kinds[kind]), edges[edge],
                     kinds[kind]);
}

static void plan_recoveries(struct matrix *matrix)
{
    for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
        for (size_t edge = 0; edge < ARRAY_SIZE(open_edges); edge++) {
            struct plan *plan =
                add_plan(matrix, &story_whole, "recover after %s:%s", open_edges[edge], kinds[kind]);
            crash_at(plan, open_edges[edge], kinds[kind]);
            crash_at(plan, "recover", kinds[kind]);
        }
    }
}

static void plan_blocks(struct matrix *matrix)
{
    for (size_t edge = 0; edge < ARRAY_SIZE(edges); edge++) {
        struct plan *plan = add_plan(matrix, &story_not_wanted_any_more, "block %s:block", edges[edge]);
        crash_at(plan, "send", "update-in-place");
        crash_at(plan, edges[edge], "block");
    }
    for (size_t edge = 0; edge < ARRAY_SIZE(open_edges); edge++) {
        struct plan *plan =
            add_plan(matrix, &story_not_wanted_any_more, "block recover after %s:block", open_edges[edge]);
        crash_at(plan, "send", "update-in-place");
        crash_at(plan, open_edges[edge], "block");
        crash_at(plan, "recover", "block");
    }
}

/* The controller may die of an act of the story before the answer to it is heard, on a busy machine by
 * itself. */
static void plan_late_act(struct matrix *matrix)
{
    struct plan *plan =
        add_plan(matrix, &story_not_wanted_any_more, "block send:block, the act answered late");
    crash_at(plan, "send", "update-in-place");
    crash_at(plan, "send", "block");
    plan->faults = "slow=2s,verb=patch,resource=neosets,user=story";
}

/* user=kubesim: the controller's. The n-th write of its kind, from the first. */
static const struct {
    const char *name;
    const char *faults;
    bool brings_doubt;
} faults[] = {
    {"answers to creates lost", "lost,verb=create,user=kubesim,times=4", true},
    {"answers to patches of pods lost", "lost,verb=patch,resource=pods/,user=kubesim,times=3", true},
    {"answers to gates lost", "lost,verb=patch,resource=pods/status,user=kubesim,times=4", true},
    {"answers to advances lost", "lost,verb=patch,resource=neosets/status,user=kubesim,times=4", true},
    {"answers to deletes lost", "lost,verb=delete,user=kubesim,times=2", true},
    {"requests dropped", "drop,verb=write,user=kubesim,nth=3,times=4", true},
    {"500 to creates and patches",
     "500,verb=create,user=kubesim,nth=2,times=2;500,verb=patch,user=kubesim,nth=3,times=3", true},
    {"503 to everything for a while", "503,verb=write,user=kubesim,nth=5,times=6", true},
    {"429 to everything for a while", "429,retry=1,verb=write,user=kubesim,nth=4,times=4", true},
    {"conflicts", "409,verb=patch,user=kubesim,nth=2,times=3", false},
    {"watches cut", "cut=3,verb=watch,user=kubesim,times=6", false},
    {"watches too old, lists stale",
     "gone,verb=watch,user=kubesim,nth=4,times=2;stale=3,verb=list,user=kubesim,nth=6", false},
};

static void plan_faults(struct matrix *matrix)
{
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        struct plan *plan = add_plan(matrix, &story_whole, "fault %s", faults[i].name);
        plan->faults = faults[i].faults;
        plan->brings_doubt = faults[i].brings_doubt;
    }
}

/* A request that is under way when the controller dies, and lands two seconds after its restart. */
static const struct {
    const char *kind;
    const char *fault;
} late[] = {
    {"create-revision", "late=2s,verb=create,resource=controllerrevisions,user=kubesim"},
    {"create-claim", "late=2s,verb=create,resource=persistentvolumeclaims,user=kubesim"},
    {"create-pod", "late=2s,verb=create,resource=pods,user=kubesim"},
    {"update-in-place", "late=2s,verb=patch,resource=pods/,user=kubesim"},
    {"gate", "late=2s,verb=patch,resource=pods/status,user=kubesim"},
    {"patch", "late=2s,verb=patch,resource=controllerrevisions,user=kubesim"},
    {"delete", "late=2s,verb=delete,resource=pods,user=kubesim"},
};

static void plan_late(struct matrix *matrix)
{
    for (size_t i = 0; i < ARRAY_SIZE(late); i++) {
        struct plan *plan = add_plan(matrix, &story_whole, "late %s lands after the restart", late[i].kind);
        plan->faults = late[i].fault;
        crash_at(plan, "answer", late[i].kind);
    }
}

static void plan_kills(struct matrix *matrix)
{
    for (unsigned i = 1; i <= 6; i++)
        add_plan(matrix, &story_whole, "kills at random, %u", i)->kills = 5;
    add_plan(matrix, &story_whole, "kills at random, answers lost")->kills = 5;
    matrix->plans[matrix->count - 1].faults = "lost,verb=write,user=kubesim,nth=4,times=8";
}

static bool has_crash_build(const struct matrix *matrix)
{
    return access(matrix->lab.crash_controller, X_OK) == 0;
}

static bool is_wanted(const struct plan *plan, char *const *patterns, int count)
{
    for (int i = 0; i < count; i++)
        if (strstr(plan->name, patterns[i]))
            return true;
    return count == 0;
}

/* The uninterrupted run comes first, for it says what the others are compared with. */
static void make_plans(struct matrix *matrix, char *const *patterns, int pattern_count)
{
    add_plan(matrix, &story_whole, "uninterrupted");
    if (has_crash_build(matrix)) {
        plan_edges(matrix);
        plan_recoveries(matrix);
        plan_blocks(matrix);
        plan_late_act(matrix);
        plan_late(matrix);
    } else {
        printf("there is no %s: without the runs that need crash points\n", matrix->lab.crash_controller);
    }
    plan_faults(matrix);
    plan_kills(matrix);
    size_t kept = 1;
    for (size_t i = 1; i < matrix->count; i++)
        if (is_wanted(&matrix->plans[i], patterns, pattern_count))
            matrix->plans[kept++] = matrix->plans[i];
    matrix->count = kept;
}

/* --- playing
 * ---------------------------------------------------------------------------------------------------- */

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    rmdir(path);
}

/* The first difference of two texts by line; the caller's. */
static char *difference(const char *what, const char *wanted, const char *got)
{
    while (*wanted && *got) {
        size_t wanted_length = strcspn(wanted, "\n");
        size_t got_length = strcspn(got, "\n");
        if (wanted_length != got_length || strncmp(wanted, got, wanted_length) != 0)
            break;
        wanted += wanted_length + (wanted[wanted_length] != '\0');
        got += got_length + (got[got_length] != '\0');
    }
    if (!*wanted && !*got)
        return NULL;
    return xasprintf("%s differs:\n    wanted %.*s\n    got    %.*s", what, (int)strcspn(wanted, "\n"),
                     wanted, (int)strcspn(got, "\n"), got);
}

static char *compare(const struct matrix *matrix, const struct run *run)
{
    const struct run_result *result = run_result(run);
    if (result->problem)
        return xstrdup(result->problem);
    if (run_plan(run)->story != &story_whole)
        return NULL;
    if (!matrix->wanted_state)
        return xstrdup("the uninterrupted run failed: there is nothing to compare with");
    char *problem = difference("the end state", matrix->wanted_state, result->state);
    return problem ? problem : difference("what was applied", matrix->wanted_steps, result->steps);
}

static void judge(struct matrix *matrix, size_t index)
{
    struct run *run = STEAL(matrix->runs[index]);
    const struct run_result *result = run_result(run);
    CLEANUP_FREE char *problem = compare(matrix, run);
    matrix->deaths += result->deaths;
    matrix->accepted += result->accepted;
    matrix->doubts += result->doubts;
    matrix->resent += result->resent;
    if (problem) {
        matrix->failed++;
        printf("FAIL %s: %s\n     files: %s\n", run_plan(run)->name, problem, run_folder(run));
    } else {
        matrix->passed++;
        printf("ok   %s (killed %u times, %u writes accepted, %u sent again, %u attempts in doubt)\n",
               run_plan(run)->name, result->deaths, result->accepted, result->resent, result->doubts);
        if (!matrix->keeps_files)
            remove_folder(run_folder(run));
    }
    fflush(stdout);
    run_free(run);
}

/* The first run is the uninterrupted one: the others wait for it. */
static void judge_what_ended(struct matrix *matrix)
{
    if (!matrix->ended[0])
        return;
    for (size_t i = 0; i < matrix->count; i++)
        if (matrix->runs[i] && matrix->ended[i])
            judge(matrix, i);
}

static void start_more(struct matrix *matrix);

static void on_run_done(void *context, struct run *run)
{
    struct matrix *matrix = context;
    size_t index = 0;
    while (matrix->runs[index] != run)
        index++;
    matrix->ended[index] = true;
    matrix->under_way--;
    const struct run_result *result = run_result(run);
    if (index == 0 && !result->problem) {
        matrix->wanted_state = xstrdup(result->state);
        matrix->wanted_steps = xstrdup(result->steps);
    }
    judge_what_ended(matrix);
    start_more(matrix);
}

static void start_more(struct matrix *matrix)
{
    while (matrix->next < matrix->count && matrix->under_way < matrix->parallel) {
        size_t index = matrix->next++;
        matrix->under_way++;
        matrix->runs[index] = run_start(&matrix->lab, &matrix->plans[index], on_run_done, matrix);
    }
    if (matrix->under_way == 0)
        env_stop(matrix->lab.env);
}

static void on_signal(void *context)
{
    struct matrix *matrix = context;
    matrix->failed++;
    printf("interrupted\n");
    for (size_t i = 0; i < PLANS_MAX; i++) {
        if (!matrix->runs[i])
            continue;
        CLEANUP_FREE char *folder = xstrdup(run_folder(matrix->runs[i]));
        run_free(STEAL(matrix->runs[i]));
        remove_folder(folder);
    }
    env_stop(matrix->lab.env);
}

/* --- the program
 * ------------------------------------------------------------------------------------------------ */

static int parse(struct matrix *matrix, int argc, char **argv)
{
    static const struct option table[] = {
        {"parallel", required_argument, NULL, 'p'}, {"keep", no_argument, NULL, 'k'}, {0}};
    for (int option; (option = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        if (option == 'k') {
            matrix->keeps_files = true;
            continue;
        }
        unsigned long parallel = option == 'p' ? strtoul(optarg, NULL, 10) : 0;
        if (parallel < 1 || parallel > PARALLEL_MAX) {
            fprintf(stderr, "usage: crash-matrix [--parallel 1..%d] [--keep] [PATTERN...]\n", PARALLEL_MAX);
            return -1;
        }
        matrix->parallel = (unsigned)parallel;
    }
    return 0;
}

static int make_root(struct matrix *matrix)
{
    const char *folder = env_variable(matrix->lab.env, "TMPDIR");
    matrix->lab.root = xasprintf("%s/neoset-crash-XXXXXX", folder ? folder : "/tmp");
    if (mkdtemp(matrix->lab.root))
        return 0;
    fprintf(stderr, "crash-matrix: no folder like %s can be made\n", matrix->lab.root);
    return -1;
}

int main(int argc, char **argv)
{
    static struct matrix matrix = {.parallel = 50};
    if (parse(&matrix, argc, argv) < 0)
        return 64;
    CLEANUP_ENV struct env *env = env_real_make();
    const char *build = env_variable(env, "NEOSET_BUILD");
    matrix.lab.env = env;
    matrix.lab.build = build ? build : "build/gcc";
    matrix.lab.crash_controller = xasprintf("%s-crash/neoset-controller", matrix.lab.build);
    if (make_root(&matrix) < 0)
        return EXIT_FAILURE;
    make_plans(&matrix, argv + optind, argc - optind);
    env_on_stop_signal(env, on_signal, &matrix);
    start_more(&matrix);
    env_run(env);
    rmdir(matrix.lab.root);
    printf("%zu runs; the controller was killed %u times; %u writes accepted%s, %u sent again; %u attempts "
           "were in "
           "doubt%s\n",
           matrix.count, matrix.deaths, matrix.accepted, matrix.failed ? "" : ", each once", matrix.resent,
           matrix.doubts, matrix.failed ? "" : ", none is any more");
    printf("%u passed, %u failed\n", matrix.passed, matrix.failed);
    free(matrix.wanted_state);
    free(matrix.wanted_steps);
    free(matrix.lab.crash_controller);
    free(matrix.lab.root);
    return matrix.failed || matrix.passed != matrix.count ? EXIT_FAILURE : EXIT_SUCCESS;
}
