/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/sim: draws worlds from seeds, plays them, and says what broke. --help tells how. */
#include "draw.h"
#include "plants.h"
#include "world.h"

#include "base/time_text.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RUN_SECONDS_MAX = 600, PLANT_RUNS_MAX = 2000 };

struct options {
    uint64_t seed;
    bool has_seed;
    int operations; /* of the seed: only the first so many */
    uint64_t keep;  /* of those, the ones whose bit is set */
    int64_t runs;
    double minutes;
    bool aloud;
    bool print_hash;
    const char *plant;
    bool planted; /* each plant until it is found */
    bool list, list_operations;
    bool go_on;
};

/* Distinct states over all runs: open addressing, doubled when half full. */
struct states {
    uint64_t *slots;
    size_t room, count;
};

static struct options options = {.operations = OPERATIONS_MAX, .keep = UINT64_MAX};
static struct report *report;
static int sought; /* the only invariant that is judged; 0: all */
static struct states states;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* What this process and the lives that ended have spent of a core. */
static double core_s(void)
{
    double seconds = 0;
    static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    for (size_t i = 0; i < ARRAY_SIZE(whose); i++) {
        struct rusage spent;
        getrusage(whose[i], &spent);
        seconds += (double)(spent.ru_utime.tv_sec + spent.ru_stime.tv_sec) +
                   (double)(spent.ru_utime.tv_usec + spent.ru_stime.tv_usec) / 1e6;
    }
    return seconds;
}

/* --- distinct states ------------------------------------------------------------------------------------ */

static void states_add(uint64_t hash)
{
    if (states.count * 2 >= states.room) {
        struct states old = states;
        states.room = MAX(1 << 16, old.room * 2);
        states.slots = xcalloc(states.room, sizeof(uint64_t));
        states.count = 0;
        for (size_t i = 0; i < old.room; i++)
            if (old.slots[i])
                states_add(old.slots[i]);
        free(old.slots);
    }
    hash = hash ? hash : 1;
    size_t at = hash & (states.room - 1);
    while (states.slots[at] && states.slots[at] != hash)
        at = (at + 1) & (states.room - 1);
    states.count += !states.slots[at];
    states.slots[at] = hash;
}

/* --- one run in a process of its own -------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    (void)remove(path);
    return 0;
}

static void remove_folder(const char *folder)
{
    enum { OPEN_FOLDERS_MAX = 8 };
    (void)nftw(folder, remove_entry, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS);
}

static void run_child(struct world *world, const struct draw *draw, int operations)
{
    alarm(RUN_SECONDS_MAX);
    CLEANUP_FREE char *base = world->folder;
    world->folder = xasprintf("%s/run", base);
    ENSURE(mkdir(world->folder, 0700) == 0);
    CLEANUP_FREE char *errors = xasprintf("%s/stderr", base);
    int fd = open(errors, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    ENSURE(fd >= 0);
    dup2(fd, STDERR_FILENO);
    world_run(world, draw, operations, report);
}

static void read_errors(const struct world *world, char *text, size_t size)
{
    CLEANUP_FREE char *path = xasprintf("%s/stderr", world->folder);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    text[length] = '\0';
    for (char *at = text; *at; at++)
        if (*at == '\n')
            *at = ' ';
    if (file)
        fclose(file);
}

static void run(struct world *world, const struct draw *draw, int operations, bool aloud)
{
    *report = (struct report){.aloud = aloud, .sought = sought};
    fflush(stdout);
    pid_t child = fork();
    ENSURE(child >= 0);
    if (child == 0)
        run_child(world, draw, operations);
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        ENSURE(errno == EINTR);
    CLEANUP_FREE char *folder = xasprintf("%s/run", world->folder);
    remove_folder(folder);
    if (report->finished || report->invariant)
        return;
    char errors[400];
    read_errors(world, errors, sizeof(errors));
    report->invariant = INVARIANT_NONE_OF_THEM;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(report->sentence, sizeof(report->sentence), "the run does not end within %d s",
                 RUN_SECONDS_MAX);
    else
        snprintf(report->sentence, sizeof(report->sentence), "the process died (%s %d): %s",
                 WIFSIGNALED(status) ? "signal" : "exit",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), errors);
}

/* --- a seed that fails ---------------------------------------------------------------------------------- */

/* The shortest prefix of the operations that breaks the same invariant. */
static int shortest(struct world *world, const struct draw *draw)
{
    int invariant = report->invariant;
    int most = report->operations;
    for (int count = 0; count < most; count++) {
        run(world, draw, count, false);
        if (report->invariant == invariant)
            return count;
    }
    run(world, draw, most, false);
    return most;
}

/* Of these operations, those without which it does not break; report is of the last run that broke. */
static uint64_t fewest(struct world *world, const struct draw *draw, int count)
{
    int invariant = report->invariant;
    uint64_t bits = count >= 64 ? UINT64_MAX : (1ULL << count) - 1;
    /* The pause before the first operation that is left out counts, so that one stays in the count. */
    for (int i = count; i-- > 0;) {
        struct draw less = *draw;
        draw_keep(&less, (bits & ~(1ULL << i)) | (~0ULL << count));
        int kept = __builtin_popcountll(bits) - 1;
        run(world, &less, kept, false);
        if (report->invariant == invariant)
            bits &= ~(1ULL << i);
    }
    struct draw less = *draw;
    draw_keep(&less, bits | (count >= 64 ? 0 : ~0ULL << count));
    run(world, &less, __builtin_popcountll(bits), false);
    return bits;
}

static void tell_failure(struct world *world, const struct draw *draw)
{
    unsigned long long seed = draw->seed;
    printf("seed %llu breaks invariant %d: %s\n", seed, report->invariant, report->sentence);
    int count = shortest(world, draw);
    printf("the shortest prefix that breaks it has %d operations: sim --seed %llu --operations %d\n", count,
           seed, count);
    uint64_t bits = fewest(world, draw, count);
    printf("of these it needs %d: sim --seed %llu --operations %d --keep 0x%llx\n",
           __builtin_popcountll(bits), seed, count, (unsigned long long)bits);
    for (int i = 0; i < count; i++) {
        CLEANUP_FREE char *told = operation_tell(&draw->operations[i]);
        printf("  %c %2d. after %.3f s %s\n", bits >> i & 1 ? '*' : ' ', i + 1,
               (double)draw->operations[i].after_us / 1e6, told);
    }
    printf("the last events:\n");
    report_print_story(report);
    printf("broken: invariant %d: %s\n", report->invariant, report->sentence);
}

/* --- many runs ------------------------------------------------------------------------------------------ */

struct totals {
    uint64_t runs, resize_runs, events, changes, rollouts, remade, failures, idle_turns, idle_writes;
    double seconds, core_seconds;
};

static void add(struct totals *totals, const struct draw *draw)
{
    totals->runs++;
    totals->resize_runs += draw->is_resize;
    totals->remade += report->remade;
    totals->events += report->events;
    totals->changes += report->changes;
    totals->rollouts += report->rollouts;
    totals->idle_turns += report->idle_turns;
    totals->idle_writes += report->idle_writes;
    for (uint32_t i = 0; i < report->state_count; i++)
        states_add(report->states[i]);
}

static void print_totals(const struct totals *totals)
{
    printf(
        "%llu runs, %llu events, %llu changes of the server, %zu distinct states, %llu rollouts in %.1f s; "
        "in each second of a core %.1f runs, %.1f rollouts\n",
        (unsigned long long)totals->runs, (unsigned long long)totals->events,
        (unsigned long long)totals->changes, states.count, (unsigned long long)totals->rollouts,
        totals->seconds, (double)totals->runs / totals->core_seconds,
        (double)totals->rollouts / totals->core_seconds);
    printf("%llu of the runs were of a StatefulSet, which was made again %llu times\n",
           (unsigned long long)totals->resize_runs, (unsigned long long)totals->remade);
    printf("writes in %llu turns in which nothing had changed: %llu\n",
           (unsigned long long)totals->idle_turns, (unsigned long long)totals->idle_writes);
}

static int run_many(struct world *world)
{
    struct totals totals = {0};
    double begun = now_s();
    double spent = core_s();
    uint64_t seed = options.has_seed ? options.seed : (uint64_t)time(NULL) * 100000;
    while ((options.runs == 0 || (int64_t)totals.runs < options.runs) &&
           (options.minutes <= 0 || now_s() - begun < options.minutes * 60)) {
        struct draw draw;
        draw_make(seed++, &draw);
        run(world, &draw, OPERATIONS_MAX, options.aloud);
        add(&totals, &draw);
        if (!report->invariant)
            continue;
        totals.failures++;
        if (!options.go_on) {
            tell_failure(world, &draw);
            break;
        }
        printf("seed %llu breaks invariant %d: %s\n", (unsigned long long)draw.seed, report->invariant,
               report->sentence);
        fflush(stdout);
    }
    totals.seconds = now_s() - begun;
    totals.core_seconds = core_s() - spent;
    print_totals(&totals);
    return totals.failures > 0;
}

/* Each planted bug, until the check of its own invariant finds it: what another one sees first proves nothing
 * of this one. */
static bool find_plant(struct world *world, const struct plant *plant)
{
    double begun = now_s();
    plant_set(plant->name);
    sought = plant->invariant;
    draw_only(sought < RESIZE_INVARIANTS_FIRST ? WORLDS_NEOSET : WORLDS_RESIZE);
    for (int runs = 1; runs <= PLANT_RUNS_MAX; runs++) {
        struct draw draw;
        draw_make((uint64_t)runs, &draw);
        run(world, &draw, OPERATIONS_MAX, false);
        if (report->invariant != sought)
            continue;
        printf("ok   invariant %2d  %-32s %5d runs %6.1f s: %s\n", plant->invariant, plant->name, runs,
               now_s() - begun, report->sentence);
        fflush(stdout);
        return true;
    }
    printf("FAIL invariant %2d  %-32s survives %d runs: %s\n", plant->invariant, plant->name, PLANT_RUNS_MAX,
           plant->sentence);
    return false;
}

static int run_planted(struct world *world)
{
    size_t failed = 0;
    for (size_t i = 0; i < plant_count(); i++)
        if (!options.plant || strcmp(options.plant, plant_at(i)->name) == 0)
            failed += !find_plant(world, plant_at(i));
    printf("%zu passed, %zu failed\n", (options.plant ? 1 : plant_count()) - failed, failed);
    return failed > 0;
}

static int run_seed(struct world *world)
{
    struct draw draw;
    draw_make(options.seed, &draw);
    int operations = MIN(options.operations, draw.count);
    if (options.keep != UINT64_MAX) {
        draw_keep(&draw, options.keep | (operations >= 64 ? 0 : ~0ULL << operations));
        operations = __builtin_popcountll(options.keep & ((1ULL << operations) - 1));
    }
    run(world, &draw, operations, options.aloud);
    if (report->invariant && options.aloud)
        printf("seed %llu breaks invariant %d: %s\n", (unsigned long long)draw.seed, report->invariant,
               report->sentence);
    else if (report->invariant)
        tell_failure(world, &draw);
    printf("seed %llu: %llu events, %llu rollouts, history %016llx\n", (unsigned long long)draw.seed,
           (unsigned long long)report->events,
           (unsigned long long)(draw.is_resize ? report->remade : report->rollouts),
           (unsigned long long)report->hash);
    return report->invariant != 0;
}

/* --- options -------------------------------------------------------------------------------------------- */

static const char help[] =
    "usage: sim [--seed N [--operations K] [--aloud]] [--runs N] [--minutes M] [--avoid OPERATION]...\n"
    "Plays simulated worlds with the real controller code, checks the invariants after every event.\n"
    "  --seed N         this world (with --runs or --minutes: this one and those after it)\n"
    "  --operations K   only its first K operations\n"
    "  --aloud          print the whole story\n"
    "  --runs N         so many worlds; --minutes M: for so long\n"
    "  --go-on          do not stop at the first seed that breaks, and tell each in one line\n"
    "  --worlds KIND    all, neoset: only those of NeoSets, resize: only those of a StatefulSet that grows\n"
    "  --avoid NAME     draw no operations of this name (--list-operations lists them)\n"
    "  --plain          draw nothing of what only half of all worlds have (draw_more.c), and only NeoSets\n"
    "  --plant NAME     with this planted bug (--list-plants lists them)\n"
    "  --planted        each planted bug, or the one of --plant, until it is found\n"
    "  --with NAME      draw what is known to break under this name, too\n";

static bool take_worlds(const char *word)
{
    static const char *const words[] = {
        [WORLDS_ALL] = "all", [WORLDS_NEOSET] = "neoset", [WORLDS_RESIZE] = "resize"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcmp(words[i], word) == 0) {
            draw_only((enum world_kind)i);
            return true;
        }
    return false;
}

static bool take_option(const char *name, const char *value)
{
    if (strcmp(name, "--seed") == 0) {
        options.seed = strtoull(value, NULL, 0);
        options.has_seed = true;
    } else if (strcmp(name, "--operations") == 0) {
        options.operations = atoi(value);
    } else if (strcmp(name, "--keep") == 0) {
        options.keep = strtoull(value, NULL, 0);
    } else if (strcmp(name, "--runs") == 0) {
        options.runs = atoll(value);
    } else if (strcmp(name, "--minutes") == 0) {
        options.minutes = atof(value);
    } else if (strcmp(name, "--avoid") == 0) {
        return draw_avoid(value);
    } else if (strcmp(name, "--plant") == 0) {
        options.plant = value;
        return plant_find(value) && plant_set(value);
    } else if (strcmp(name, "--worlds") == 0) {
        return take_worlds(value);
    } else if (strcmp(name, "--with") == 0) {
        return draw_with(value);
    } else {
        return false;
    }
    return true;
}

/* Worlds as they were first. */
static void be_plain(void)
{
    draw_plain();
    draw_only(WORLDS_NEOSET);
}

static bool take_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--aloud") == 0)
            options.aloud = true;
        else if (strcmp(argv[i], "--list-plants") == 0)
            options.list = true;
        else if (strcmp(argv[i], "--plain") == 0)
            be_plain();
        else if (strcmp(argv[i], "--list-operations") == 0)
            options.list_operations = true;
        else if (strcmp(argv[i], "--go-on") == 0)
            options.go_on = true;
        else if (strcmp(argv[i], "--planted") == 0)
            options.planted = true;
        else if (i + 1 >= argc || !take_option(argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
    return true;
}

static void make_base(const struct world *world)
{
    CLEANUP_FREE char *ballast = xasprintf("%s/ballast", world->folder);
    int fd = open(ballast, O_CREAT | O_WRONLY, 0600);
    ENSURE(fd >= 0 && posix_fallocate(fd, 0, 16 << 20) == 0);
    close(fd);
}

/* A life takes and gives back small memory all the time: glibc's quick lists shall hold all of it, and new
 * memory shall come in large pages, for a process that lives so shortly pays for each. They are set before a
 * process begins. */
static void keep_memory_at_hand(char **argv)
{
    if (getenv("GLIBC_TUNABLES"))
        return;
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=65535:glibc.malloc.hugetlb=1", 1);
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    keep_memory_at_hand(argv);
    if (!take_options(argc, argv)) {
        fputs(help, stderr);
        return 2;
    }
    if (options.planted && !plant_set(NULL)) {
        fputs("sim: this build has no planted bugs: make planted\n", stderr);
        return 2;
    }
    for (size_t i = 0; i < plant_count() && options.list; i++)
        printf("%2d %-32s %s\n", plant_at(i)->invariant, plant_at(i)->name, plant_at(i)->sentence);
    for (int kind = 0; kind < OPERATION_KIND_COUNT && options.list_operations; kind++)
        puts(operation_kind_name((enum operation_kind)kind));
    if (options.list || options.list_operations)
        return 0;
    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ENSURE(report != MAP_FAILED);
    struct world *world = world_prepare();
    make_base(world);
    world_prepare_journal(world);
    bool one = options.has_seed && options.runs == 0 && options.minutes <= 0;
    int result = options.planted ? run_planted(world) : one ? run_seed(world) : run_many(world);
    remove_folder(world->folder);
    return result;
}
