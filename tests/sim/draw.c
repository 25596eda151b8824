/* SPDX-License-Identifier: Apache-2.0 */
#include "draw.h"

#include "base/time_text.h"

#include <stdio.h>

static bool avoided[OPERATION_KIND_COUNT];

/* Combinations that are known to break something which is not mended yet: left out unless --with names them.
 */
static struct {
    const char *name;
    bool with;
} known[] = {{NULL, false}}; /* none at present */

bool draw_with(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (!str_equal(known[i].name, name))
            continue;
        known[i].with = true;
        return true;
    }
    return false;
}

uint32_t dice_below(struct dice *dice, uint32_t bound)
{
    uint64_t z = dice->state += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % bound;
}

bool dice_one_in(struct dice *dice, uint32_t bound)
{
    return dice_below(dice, bound) == 0;
}

const char *set_name(int set)
{
    static const char *const names[SETS_MAX] = {"db", "web"};
    return names[set];
}

/* --- the world ------------------------------------------------------------------------------------------ */

static const char *draw_budget(struct dice *dice)
{
    static const char *const budgets[] = {"1", "1", "1", "2", "2", "3", "\"34%\"", "\"50%\"", "\"10%\""};
    return budgets[dice_below(dice, ARRAY_SIZE(budgets))];
}

static void draw_set(struct dice *dice, struct set_draw *set)
{
    static const char *const prefetches[] = {"Never", "Never", "IfPossible", "Required"};
    set->replicas = 1 + (int)dice_below(dice, 5);
    set->start = dice_one_in(dice, 8) ? 3 : 0;
    set->fence = dice_one_in(dice, 6) ? (int)dice_below(dice, 4) : 0;
    set->min_ready_s = dice_one_in(dice, 4) ? 3 : 0;
    set->timeout_s = dice_one_in(dice, 2) ? 20 : 60;
    set->grace_s = dice_one_in(dice, 5) ? 2 : 0;
    set->history = dice_one_in(dice, 3) ? (int)dice_below(dice, 3) : 10;
    set->containers = dice_one_in(dice, 3) ? 2 : 1;
    set->budget = draw_budget(dice);
    set->policy = dice_one_in(dice, 2) ? "Parallel" : "OrderedReady";
    set->strategy = dice_one_in(dice, 8) ? "Recreate" : "InPlace";
    set->readiness = dice_one_in(dice, 3) ? "Ready" : "Probe";
    set->prefetch = prefetches[dice_below(dice, ARRAY_SIZE(prefetches))];
    set->claims = dice_one_in(dice, 3);
    set->probes = !dice_one_in(dice, 4);
    set->startup = dice_one_in(dice, 6);
    set->init = dice_one_in(dice, 6);
}

static void draw_world(struct dice *dice, struct draw *ret)
{
    static const char *const behaviours[] = {"", "", "", "", "same-digest", "rename", "slow-stop", "old"};
    ret->set_count = dice_one_in(dice, 6) ? 2 : 1;
    for (int i = 0; i < ret->set_count; i++)
        draw_set(dice, &ret->sets[i]);
    ret->behaviour = behaviours[dice_below(dice, ARRAY_SIZE(behaviours))];
    ret->relist_ms = dice_one_in(dice, 3) ? 1000 : 200;
    ret->jitter_percent = dice_one_in(dice, 3) ? -1 : 50;
    ret->nodes = 1 + (int)dice_below(dice, 3);
    ret->network_us = dice_one_in(dice, 4) ? 20000 : 500;
    ret->disk_ms = dice_one_in(dice, 3) ? 5 : 0;
    ret->with_lease = dice_one_in(dice, 2);
    ret->standby = ret->with_lease && dice_one_in(dice, 4);
}

/* --- operations ----------------------------------------------------------------------------------------- */

static const char *draw_image(struct dice *dice)
{
    static const char *const images[] = {"db:v1",      "db:v2",    "db:v3",   "db:v4",        "db:v5",
                                         "db:v2",      "db:v3",    "db:v6",   "db:none1",     "db:none2",
                                         "db:unready", "db:crash", "db:slow", "mirror/db:v2", "db:unready2"};
    return images[dice_below(dice, ARRAY_SIZE(images))];
}

static const char *draw_fault(struct dice *dice)
{
    static const char *const faults[] = {
        "409,verb=patch,resource=pods,times=2",
        "409,verb=patch,resource=neosets/status,times=2",
        "422,verb=patch,resource=pods",
        "422,verb=create,resource=pods",
        "403,verb=patch,resource=pods,times=2",
        "429,retry=2,verb=write,times=4",
        "500,verb=patch,resource=pods,times=2",
        "500,verb=write,times=3",
        "503,verb=any,times=5",
        "503,verb=write,resource=pods/status,times=4",
        "lost,verb=write",
        "lost,verb=write,times=3",
        "lost,verb=patch,resource=pods",
        "lost,verb=delete,resource=pods",
        "lost,verb=create,resource=pods",
        "lost,verb=patch,resource=pods/status,times=2",
        "lost,verb=patch,resource=neosets/status",
        "lost,verb=create,resource=controllerrevisions",
        "drop,verb=write,times=2",
        "drop,verb=patch,resource=pods",
        "late=3s,verb=patch,resource=pods",
        "late=8s,verb=write",
        "late=12s,verb=patch,resource=pods",
        "late=3s,verb=delete,resource=pods",
        "late=3s,verb=create,resource=pods",
        "late=14s,verb=create,resource=pods",
        "late=3s,verb=patch,resource=pods/status",
        "late=5s,verb=patch,resource=neosets/status",
        "slow=4s,verb=write",
        "slow=2s,verb=patch,resource=pods",
        "cut=3,resource=pods",
        "cut=2,resource=neosets",
        "freeze=2,resource=pods",
        "freeze=3s,resource=neosets",
        "freeze=1,resource=controllerrevisions",
        "gone,resource=pods",
        "gone,resource=neosets",
        "cut=0,resource=pods;stale=4,resource=pods",
        "503,verb=list,times=3",
        "500,verb=get,times=2",
        "503,verb=watch,times=3",
    };
    return faults[dice_below(dice, ARRAY_SIZE(faults))];
}

static const char *draw_behaviour(struct dice *dice)
{
    static const char *const words[] = {"",      "never-ready", "",          "slow-stop", "slow-pull",
                                        "evict", "crash",       "node-lost", "fail-pull", "same-digest"};
    return words[dice_below(dice, ARRAY_SIZE(words))];
}

static const char *draw_weather(struct dice *dice)
{
    static const char *const words[] = {"",          "",       "pending", "slow-pull", "never-ready",
                                        "slow-stop", "pending"};
    return words[dice_below(dice, ARRAY_SIZE(words))];
}

/* How often each is drawn. */
static const struct kind_weight weights[] = {
    {DO_IMAGE, 30},         {DO_ENVIRONMENT, 3},  {DO_LABEL, 4},           {DO_ANNOTATION, 4},
    {DO_RESTART, 2},        {DO_SCALE, 8},        {DO_FENCE, 7},           {DO_PAUSE, 8},
    {DO_BUDGET, 3},         {DO_PATIENCE, 2},     {DO_GRACE, 1},           {DO_POLICY, 2},
    {DO_STRATEGY, 2},       {DO_NOISE, 2},        {DO_DELETE_SET, 1},      {DO_CREATE_SET, 1},
    {DO_DELETE_POD, 7},     {DO_DELETE_CLAIM, 1}, {DO_DELETE_REVISION, 1}, {DO_EVICT, 2},
    {DO_KILL_CONTAINER, 4}, {DO_BEHAVE, 7},       {DO_FAULT, 16},          {DO_COMPACT, 1},
    {DO_CRASH, 14},         {DO_STOP, 2},         {DO_LOSE_JOURNAL, 1},    {DO_BACKUP, 1},
    {DO_RESTORE, 1},        {DO_JUMP_CLOCK, 2},   {DO_STEAL_LEASE, 1},     {DO_DISK, 2},
    {DO_WEATHER, 4},        {DO_LOSE_STATUS, 1},
};

bool draw_tolerates(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (str_equal(known[i].name, name))
            return !known[i].with;
    UNREACHABLE();
}

enum operation_kind dice_kind(struct dice *dice, const struct kind_weight *kinds, size_t count)
{
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += avoided[kinds[i].kind] ? 0 : kinds[i].weight;
    ENSURE(sum > 0); /* --avoid leaves something */
    unsigned at = dice_below(dice, sum);
    for (size_t i = 0; i < count; i++) {
        unsigned weight = avoided[kinds[i].kind] ? 0 : kinds[i].weight;
        if (at < weight)
            return kinds[i].kind;
        at -= weight;
    }
    UNREACHABLE();
}

void operation_say(struct operation *operation, const char *text)
{
    snprintf(operation->text, sizeof(operation->text), "%s", text);
}

int64_t dice_pause(struct dice *dice)
{
    switch (dice_below(dice, 8)) {
    case 0:
        return 0;
    case 1:
    case 2:
        return (int64_t)dice_below(dice, 60) * US_PER_MS;
    case 3:
    case 4:
        return (int64_t)dice_below(dice, 2000) * US_PER_MS;
    case 5:
    case 6:
        return (int64_t)dice_below(dice, 20000) * US_PER_MS;
    default:
        return (int64_t)(20 + dice_below(dice, 90)) * US_PER_S;
    }
}

static void set_text(struct operation *operation, const char *text)
{
    snprintf(operation->text, sizeof(operation->text), "%s", text);
}

static void draw_operation(struct dice *dice, const struct draw *world, struct operation *ret)
{
    static const int crash_steps[] = {0, 0, 1, 2, 3, 5, 8, 13, 30, 60};
    static const int clock_jumps[] = {-3600, -60, -5, 5, 60, 3600};
    static const int disk_ms[] = {0, 0, 5, 50, 1000, 7000};
    static const char *const cascades[] = {"Background", "Orphan", "Foreground"};
    *ret = (struct operation){.after_us = dice_pause(dice),
                              .kind = dice_kind(dice, weights, ARRAY_SIZE(weights))};
    ret->set = (int)dice_below(dice, (uint32_t)world->set_count);
    const struct set_draw *set = &world->sets[ret->set];
    ret->a = (int)dice_below(dice, 6);
    ret->b = (int)dice_below(dice, 3);
    switch (ret->kind) {
    case DO_IMAGE:
        set_text(ret, draw_image(dice));
        ret->a = (int)dice_below(dice, (uint32_t)set->containers);
        break;
    case DO_SCALE:
        ret->a = dice_one_in(dice, 8) ? 0 : 1 + (int)dice_below(dice, 6);
        break;
    case DO_FENCE:
        ret->a = dice_one_in(dice, 2) ? 0 : (int)dice_below(dice, 6);
        break;
    case DO_PAUSE:
        ret->a = (int)dice_below(dice, 2);
        break;
    case DO_LABEL:
    case DO_ANNOTATION:
        ret->a = (int)dice_below(dice, 4);
        break;
    case DO_BUDGET:
        set_text(ret, draw_budget(dice));
        break;
    case DO_PATIENCE:
        ret->a = dice_one_in(dice, 2) ? 20 : 60;
        ret->b = dice_one_in(dice, 2) ? 0 : 5;
        break;
    case DO_GRACE:
        ret->a = dice_one_in(dice, 2) ? 0 : 3;
        break;
    case DO_POLICY:
        set_text(ret, dice_one_in(dice, 2) ? "Parallel" : "OrderedReady");
        break;
    case DO_STRATEGY:
        set_text(ret, dice_one_in(dice, 2) ? "Recreate" : "InPlace");
        break;
    case DO_DELETE_SET:
        set_text(ret, cascades[dice_below(dice, ARRAY_SIZE(cascades))]);
        break;
    case DO_DELETE_POD:
        ret->b = dice_one_in(dice, 6);
        break;
    case DO_BEHAVE:
        set_text(ret, draw_behaviour(dice));
        break;
    case DO_WEATHER:
        set_text(ret, draw_weather(dice));
        break;
    case DO_FAULT:
        set_text(ret, draw_fault(dice));
        break;
    case DO_CRASH:
    case DO_LOSE_JOURNAL:
    case DO_RESTORE:
        ret->a = crash_steps[dice_below(dice, ARRAY_SIZE(crash_steps))];
        ret->b = dice_one_in(dice, 3) ? (int)dice_below(dice, 60000) : (int)dice_below(dice, 300);
        break;
    case DO_STOP:
        ret->b = (int)dice_below(dice, 1000);
        break;
    case DO_JUMP_CLOCK:
        ret->a = clock_jumps[dice_below(dice, ARRAY_SIZE(clock_jumps))];
        break;
    case DO_DISK:
        ret->a = disk_ms[dice_below(dice, ARRAY_SIZE(disk_ms))];
        break;
    default:
        break;
    }
}

/* --- stories that single draws rarely tell ---------------------------------------------------------------
 */

enum { PATTERN_MAX = 6 };

static void put(struct operation *operation, enum operation_kind kind, int set, int after_s, int a, int b,
                const char *text)
{
    *operation = (struct operation){.kind = kind, .set = set, .after_us = after_s * US_PER_S, .a = a, .b = b};
    set_text(operation, text);
}

static const char *draw_bad_image(struct dice *dice)
{
    static const char *const images[] = {"db:none3", "db:unready3", "db:crash2", "db:none4"};
    return images[dice_below(dice, ARRAY_SIZE(images))];
}

/* A bad image whose deadline goes through a pause, or through restarts. */
static int draw_deadline(struct dice *dice, int set, struct operation *ret)
{
    bool pause = dice_one_in(dice, 2);
    int some_s = 5 + (int)dice_below(dice, 10);
    put(&ret[0], DO_PATIENCE, set, 1, pause ? 20 : 120, 0, "");
    put(&ret[1], DO_IMAGE, set, 2, 0, 0, draw_bad_image(dice));
    put(&ret[2], pause ? DO_PAUSE : DO_CRASH, set, pause ? some_s : 60 + some_s, pause, 100, "");
    put(&ret[3], pause ? DO_PAUSE : DO_NOISE, set, pause ? 40 : 1, 0, 0, "");
    put(&ret[4], DO_NOISE, set, pause ? 60 : 130, 0, 0, "");
    return 5;
}

/* Pods are taken away in the middle of a rollout. */
static int draw_losses(struct dice *dice, int set, struct operation *ret)
{
    put(&ret[0], DO_IMAGE, set, 5, 0, 0, dice_one_in(dice, 2) ? "db:v7" : draw_bad_image(dice));
    put(&ret[1], DO_DELETE_POD, set, (int)dice_below(dice, 20), (int)dice_below(dice, 5), 0, "");
    put(&ret[2], dice_one_in(dice, 2) ? DO_DELETE_POD : DO_KILL_CONTAINER, set, (int)dice_below(dice, 3),
        (int)dice_below(dice, 5), 0, "");
    return 3;
}

/* A broken revision meets another template, with a fence, a pause or a scale in between. */
static int draw_undo(struct dice *dice, int set, struct operation *ret)
{
    static const enum operation_kind kinds[] = {DO_FENCE, DO_PAUSE, DO_SCALE, DO_ENVIRONMENT, DO_STOP};
    put(&ret[0], DO_IMAGE, set, 5, 0, 0, draw_bad_image(dice));
    put(&ret[1], kinds[dice_below(dice, ARRAY_SIZE(kinds))], set, (int)dice_below(dice, 30),
        1 + (int)dice_below(dice, 4), 100, "");
    put(&ret[2], DO_IMAGE, set, (int)dice_below(dice, 10), 0, 0, dice_one_in(dice, 2) ? "db:v1" : "db:v8");
    put(&ret[3], DO_PAUSE, set, (int)dice_below(dice, 40), 0, 0, "");
    return 4;
}

/* A rollout that a fence holds, and what is below the fence goes or breaks. */
static int draw_fenced(struct dice *dice, int set, struct operation *ret)
{
    int fence = 1 + (int)dice_below(dice, 3);
    bool bad = dice_one_in(dice, 2);
    put(&ret[0], bad ? DO_IMAGE : DO_FENCE, set, 5, bad ? 0 : fence, 0, bad ? "db:unready4" : "");
    put(&ret[1], bad ? DO_FENCE : DO_IMAGE, set, 8, bad ? fence : 0, 0, bad ? "" : "db:v9");
    put(&ret[2], bad ? DO_IMAGE : DO_DELETE_POD, set, (int)dice_below(dice, 30), 0, 0, bad ? "db:v9" : "");
    put(&ret[3], dice_one_in(dice, 2) ? DO_DELETE_POD : DO_SCALE, set, (int)dice_below(dice, 20),
        1 + (int)dice_below(dice, 3), 0, "");
    return 4;
}

/* A pause in the moment between a drain and its patch, or while a pod is made; and then a long time. */
static int draw_held(struct dice *dice, int set, struct operation *ret)
{
    put(&ret[0], DO_GRACE, set, 1, 3, 0, "");
    put(&ret[1], DO_IMAGE, set, 2, 0, 0, "db:v10");
    put(&ret[2], DO_PAUSE, set, 1 + (int)dice_below(dice, 2), 1, 0, "");
    put(&ret[3], DO_DELETE_POD, set, 1, (int)dice_below(dice, 3), 0, "");
    put(&ret[4], DO_PAUSE, set, 260, 0, 0, "");
    return 5;
}

static int draw_pattern(struct dice *dice, const struct draw *world, struct operation *ret)
{
    int set = (int)dice_below(dice, (uint32_t)world->set_count);
    switch (dice_below(dice, 5)) {
    case 0:
        return draw_deadline(dice, set, ret);
    case 2:
        return draw_fenced(dice, set, ret);
    case 1:
        return draw_losses(dice, set, ret);
    case 3:
        return draw_held(dice, set, ret);
    default:
        return draw_undo(dice, set, ret);
    }
}

/* Calm worlds find what needs a long undisturbed time, wild ones what needs much at once. */
void draw_make(uint64_t seed, struct draw *ret)
{
    struct dice dice = {.state = seed * 0x2545F4914F6CDD1DULL + 1};
    *ret = (struct draw){.seed = seed, .is_resize = draw_is_resize(seed)};
    if (ret->is_resize) {
        draw_resize(ret);
        return;
    }
    draw_world(&dice, ret);
    ret->count = 2 + (int)dice_below(&dice, dice_one_in(&dice, 4) ? OPERATIONS_MAX - 2 : 16);
    for (int i = 0; i < ret->count;) {
        struct operation pattern[PATTERN_MAX];
        int length = 1;
        if (dice_one_in(&dice, 6))
            length = draw_pattern(&dice, ret, pattern);
        else
            draw_operation(&dice, ret, &pattern[0]);
        for (int k = 0; k < length && i < ret->count; k++)
            ret->operations[i++] = pattern[k];
    }
    draw_more(ret);
}

void draw_keep(struct draw *draw, uint64_t bits)
{
    int kept = 0;
    int64_t pause_us = 0;
    for (int i = 0; i < draw->count; i++) {
        struct operation operation = draw->operations[i];
        operation.after_us += pause_us;
        pause_us = operation.after_us;
        if (!(bits >> i & 1))
            continue;
        draw->operations[kept++] = operation;
        pause_us = 0;
    }
    draw->count = kept;
}

/* --- in words ------------------------------------------------------------------------------------------- */

static const char *const kind_names[OPERATION_KIND_COUNT] = {
    [DO_IMAGE] = "image",
    [DO_ENVIRONMENT] = "environment",
    [DO_LABEL] = "label",
    [DO_ANNOTATION] = "annotation",
    [DO_RESTART] = "restart",
    [DO_SCALE] = "scale",
    [DO_FENCE] = "fence",
    [DO_PAUSE] = "pause",
    [DO_BUDGET] = "budget",
    [DO_PATIENCE] = "patience",
    [DO_GRACE] = "grace",
    [DO_POLICY] = "policy",
    [DO_STRATEGY] = "strategy",
    [DO_NOISE] = "noise",
    [DO_DELETE_SET] = "delete-set",
    [DO_CREATE_SET] = "create-set",
    [DO_DELETE_POD] = "delete-pod",
    [DO_DELETE_CLAIM] = "delete-claim",
    [DO_DELETE_REVISION] = "delete-revision",
    [DO_EVICT] = "evict",
    [DO_KILL_CONTAINER] = "kill-container",
    [DO_BEHAVE] = "behave",
    [DO_WEATHER] = "weather",
    [DO_LOSE_STATUS] = "lose-status",
    [DO_FAULT] = "fault",
    [DO_COMPACT] = "compact",
    [DO_CRASH] = "crash",
    [DO_STOP] = "stop",
    [DO_LOSE_JOURNAL] = "lose-journal",
    [DO_BACKUP] = "backup",
    [DO_RESTORE] = "restore",
    [DO_JUMP_CLOCK] = "jump-clock",
    [DO_STEAL_LEASE] = "steal-lease",
    [DO_DISK] = "disk",
    [DO_RUSTLE] = "rustle",
    [DO_DEFAULTS] = "defaults",
    [DO_READINESS] = "readiness",
    [DO_PREFETCH] = "prefetch",
    [DO_HISTORY] = "history",
    [DO_ORDINALS] = "ordinals",
    [DO_RETENTION] = "retention",
    [DO_INIT_IMAGE] = "init-image",
    [DO_TERMINATION] = "termination",
    [DO_SNAPSHOT] = "snapshot",
    [DO_REWIND] = "rewind",
    [DO_STRANGER] = "stranger",
    [DO_CONVERGE] = "converge",
    [DO_CONTINUE] = "continue",
    [DO_RECOVER] = "recover",
    [DO_COMMAND_DIES] = "command-dies",
    [DO_USER_FORGETS] = "user-forgets",
    [DO_SET_SCALE] = "set-scale",
    [DO_SET_RESTART] = "set-restart",
    [DO_SET_IMAGE] = "set-image",
    [DO_SET_AGAIN] = "set-again",
    [DO_SET_BY_HAND] = "set-by-hand",
    [DO_SET_HOLD] = "set-hold",
    [DO_CLAIM_BY_HAND] = "claim-by-hand",
    [DO_STORAGE] = "storage",
    [DO_CLASS] = "class",
    [DO_QUOTA] = "quota",
    [DO_COLLECTOR] = "collector",
};

const char *retention_text(int bits)
{
    static const char *const texts[] = {
        "{\"whenDeleted\":\"Retain\",\"whenScaled\":\"Retain\"}",
        "{\"whenDeleted\":\"Delete\",\"whenScaled\":\"Retain\"}",
        "{\"whenDeleted\":\"Retain\",\"whenScaled\":\"Delete\"}",
        "{\"whenDeleted\":\"Delete\",\"whenScaled\":\"Delete\"}",
    };
    return texts[bits & 3];
}

const char *operation_kind_name(enum operation_kind kind)
{
    return kind_names[kind];
}

bool draw_avoid(const char *name)
{
    for (int kind = 0; kind < OPERATION_KIND_COUNT; kind++) {
        if (strcmp(kind_names[kind], name) != 0)
            continue;
        avoided[kind] = true;
        return true;
    }
    return false;
}

char *operation_tell(const struct operation *operation)
{
    const char *set = set_name(operation->set);
    int a = operation->a, b = operation->b;
    switch (operation->kind) {
    case DO_IMAGE:
        return xasprintf("a person sets the image of container %d of %s to %s", a, set, operation->text);
    case DO_ENVIRONMENT:
        return xasprintf("a person changes a variable in the template of %s", set);
    case DO_LABEL:
        return xasprintf("a person sets label tier=%d in the template of %s", a, set);
    case DO_ANNOTATION:
        return xasprintf("a person sets annotation note=%d in the template of %s", a, set);
    case DO_RESTART:
        return xasprintf("a person asks for a restart of %s", set);
    case DO_SCALE:
        return xasprintf("a person scales %s to %d", set, a);
    case DO_FENCE:
        return xasprintf("a person sets the fence of %s to %d", set, a);
    case DO_PAUSE:
        return xasprintf("a person %s %s", a ? "pauses" : "resumes", set);
    case DO_BUDGET:
        return xasprintf("a person sets maxUnavailable of %s to %s", set, operation->text);
    case DO_PATIENCE:
        return xasprintf("a person sets readinessTimeoutSeconds %d and minReadySeconds %d of %s", a, b, set);
    case DO_GRACE:
        return xasprintf("a person sets gracePeriodSeconds of %s to %d", set, a);
    case DO_POLICY:
    case DO_STRATEGY:
        return xasprintf("a person makes %s %s", set, operation->text);
    case DO_NOISE:
        return xasprintf("somebody annotates the NeoSet %s", set);
    case DO_DELETE_SET:
        return xasprintf("a person deletes the NeoSet %s (%s)", set, operation->text);
    case DO_CREATE_SET:
        return xasprintf("a person creates the NeoSet %s again", set);
    case DO_DELETE_POD:
        return xasprintf("a person deletes pod %s-+%d%s", set, a, b ? " without grace" : "");
    case DO_DELETE_CLAIM:
        return xasprintf("a person deletes the claim of %s-+%d", set, a);
    case DO_DELETE_REVISION:
        return xasprintf("a person deletes revision #%d of %s", a, set);
    case DO_EVICT:
        return xasprintf("pod %s-+%d is evicted", set, a);
    case DO_KILL_CONTAINER:
        return xasprintf("a container of %s-+%d dies", set, a);
    case DO_BEHAVE:
        return xasprintf("pod %s-+%d behaves: %s", set, a, *operation->text ? operation->text : "well");
    case DO_WEATHER:
        return xasprintf("from now on new pods behave: %s", *operation->text ? operation->text : "as before");
    case DO_LOSE_STATUS:
        return xasprintf("somebody removes the status of %s", set);
    case DO_FAULT:
        return xasprintf("the network: %s", operation->text);
    case DO_COMPACT:
        return xstrdup("the server compacts its history");
    case DO_CRASH:
        return xasprintf("the controller dies after %d more events, for %d ms", a, b);
    case DO_STOP:
        return xasprintf("the controller is stopped for %d ms", b);
    case DO_LOSE_JOURNAL:
        return xasprintf("the controller dies after %d more events, and its journal is lost", a);
    case DO_BACKUP:
        return xstrdup("a copy of the journal is kept");
    case DO_RESTORE:
        return xasprintf(
            "the controller dies after %d more events, and an older copy of its journal comes back", a);
    case DO_JUMP_CLOCK:
        return xasprintf("the wall clock jumps by %d s", a);
    case DO_STEAL_LEASE:
        return xstrdup("somebody takes the lease");
    case DO_DISK:
        return xasprintf("each commit takes %d ms", a);
    case DO_RUSTLE:
        return xasprintf("somebody writes the template of %s with its keys in another order", set);
    case DO_DEFAULTS:
        return xasprintf("a person %s defaults in the template of %s", a ? "leaves out" : "spells out", set);
    case DO_READINESS:
        return xasprintf("a person sets readiness of %s to %s", set, operation->text);
    case DO_PREFETCH:
        return xasprintf("a person sets prefetch of %s to %s", set, operation->text);
    case DO_HISTORY:
        return xasprintf("a person sets revisionHistoryLimit of %s to %d", set, a);
    case DO_ORDINALS:
        return xasprintf("a person lets the ordinals of %s start at %d", set, a);
    case DO_RETENTION:
        return xasprintf("a person sets the claims' retention of %s: %s", set, retention_text(a));
    case DO_INIT_IMAGE:
        return xasprintf("a person sets the init image of %s to %s", set, operation->text);
    case DO_TERMINATION:
        return xasprintf("a person sets terminationGracePeriodSeconds of %s to %d", set, a);
    case DO_SNAPSHOT:
        return xstrdup("a copy of the server's storage is kept");
    case DO_REWIND:
        return xstrdup(
            "the server's storage is restored from its copy, and the controllers are started anew");
    case DO_STRANGER:
        return xasprintf("somebody makes a pod %s-+%d of kind %d", set, a, b);
    default:
        return resize_operation_tell(operation);
    }
}
