/* SPDX-License-Identifier: Apache-2.0
 *
 * Worlds of a StatefulSet whose volumes grow: how it is made, and what people, tools, storage, the collector
 * and the network do while somebody converges it. Everything by dice of its own. */
#include "draw.h"

#include "base/time_text.h"

#include <stdio.h>

static const char *const template_names[TEMPLATES_MAX] = {"data", "logs", "wal"};

static enum world_kind only = WORLDS_ALL;

void draw_only(enum world_kind kind)
{
    only = kind;
}

bool draw_is_resize(uint64_t seed)
{
    struct dice dice = {.state = seed * 0xD1342543DE82EF95ULL + 11};
    return only == WORLDS_RESIZE || (only == WORLDS_ALL && dice_one_in(&dice, 4));
}

/* --- sizes ---------------------------------------------------------------------------------------------- */

/* What was declared last, in Gi. */
struct sizes {
    int count;
    int gi[TEMPLATES_MAX];
};

static void print_sizes(const struct sizes *sizes, char *text)
{
    int at = 0;
    for (int i = 0; i < sizes->count; i++)
        at += snprintf(text + at, (size_t)(TEXT_MAX - at), "%s%s=%dGi", i > 0 ? "," : "", template_names[i],
                       sizes->gi[i]);
}

/* At least one becomes larger. */
static void grow(struct dice *dice, struct sizes *sizes)
{
    int first = (int)dice_below(dice, (uint32_t)sizes->count);
    for (int i = 0; i < sizes->count; i++)
        if (i == first || dice_one_in(dice, 2))
            sizes->gi[i] += 1 + (int)dice_below(dice, 3);
}

/* --- the world ------------------------------------------------------------------------------------------ */

static void draw_set(struct dice *dice, struct resize_draw *ret)
{
    ret->templates = dice_one_in(dice, 2) ? 1 : 1 + (int)dice_below(dice, TEMPLATES_MAX);
    ret->replicas = 1 + (int)dice_below(dice, 4);
    ret->start = dice_one_in(dice, 6) ? 2 : 0;
    ret->on_delete = dice_one_in(dice, 6);
    ret->partition = !ret->on_delete && dice_one_in(dice, 3) ? 1 + (int)dice_below(dice, 3) : 0;
    ret->canary = ret->partition > 0 && ret->partition < ret->replicas && !dice_one_in(dice, 3);
    ret->newer = dice_one_in(dice, 2);
    ret->parallel = dice_one_in(dice, 2);
    ret->declares_replicas = dice_one_in(dice, 3);
    ret->with_controller = !dice_one_in(dice, 3);
    ret->retention = dice_one_in(dice, 4) ? 1 + (int)dice_below(dice, 3) : 0;
}

static void draw_rest(struct dice *dice, struct draw *ret)
{
    ret->behaviour = "";
    ret->relist_ms = dice_one_in(dice, 3) ? 1000 : 200;
    ret->jitter_percent = 50;
    ret->nodes = 1 + (int)dice_below(dice, 3);
    ret->network_us = dice_one_in(dice, 4) ? 20000 : 500;
    ret->disk_ms = dice_one_in(dice, 3) ? 5 : 0;
}

/* --- operations ----------------------------------------------------------------------------------------- */

static const char *draw_fault(struct dice *dice)
{
    /* A first and a last proof come before what is meant: the third of its kind. */
    static const char *const faults[] = {
        "lost,verb=delete,resource=statefulsets,nth=3",
        "late=3s,verb=delete,resource=statefulsets,nth=3",
        "late=12s,verb=delete,resource=statefulsets,nth=3",
        "drop,verb=delete,resource=statefulsets,nth=3",
        "lost,verb=create,resource=statefulsets,nth=3",
        "late=4s,verb=create,resource=statefulsets,nth=3",
        "late=13s,verb=create,resource=statefulsets,nth=3",
        "drop,verb=create,resource=statefulsets,nth=3",
        "409,verb=patch,resource=persistentvolumeclaims,times=2",
        "403,verb=patch,resource=persistentvolumeclaims",
        "409,verb=delete,resource=statefulsets,times=2",
        "429,retry=1,verb=write,times=3",
        "429,retry=1,verb=create,resource=statefulsets,times=2",
        "500,verb=write,times=2",
        "503,verb=any,times=4",
        "503,verb=write,resource=statefulsets,times=3",
        "lost,verb=write",
        "lost,verb=write,times=3",
        "lost,verb=delete,resource=statefulsets",
        "lost,verb=create,resource=statefulsets",
        "lost,verb=create,resource=controllerrevisions",
        "lost,verb=delete,resource=controllerrevisions",
        "lost,verb=patch,resource=persistentvolumeclaims",
        "lost,verb=patch,resource=statefulsets",
        "drop,verb=write,times=2",
        "drop,verb=delete,resource=statefulsets",
        "drop,verb=create,resource=statefulsets",
        "late=3s,verb=delete,resource=statefulsets",
        "late=12s,verb=delete,resource=statefulsets",
        "late=3s,verb=create,resource=statefulsets",
        "late=13s,verb=create,resource=statefulsets",
        "late=13s,verb=create,resource=controllerrevisions",
        "late=3s,verb=delete,resource=controllerrevisions",
        "late=5s,verb=patch,resource=statefulsets",
        "late=8s,verb=patch,resource=persistentvolumeclaims",
        "slow=4s,verb=write",
        "slow=2s,verb=delete,resource=statefulsets",
        "503,verb=list,times=3",
        "500,verb=get,times=2",
        "cut=2,resource=controllerrevisions",
    };
    return faults[dice_below(dice, ARRAY_SIZE(faults))];
}

static const char *draw_storage(struct dice *dice)
{
    static const char *const words[] = {
        "ok",           "ok",     "never",   "slow",           "pool-full",
        "node-pending", "in-use", "max=4Gi", "node-transient", "node-infeasible"};
    return words[dice_below(dice, ARRAY_SIZE(words))];
}

/* How often each is drawn. */
static const struct kind_weight weights[] = {
    {DO_CONVERGE, 24}, {DO_CONTINUE, 6},      {DO_RECOVER, 2},    {DO_COMMAND_DIES, 16}, {DO_USER_FORGETS, 2},
    {DO_SET_SCALE, 8}, {DO_SET_RESTART, 3},   {DO_SET_IMAGE, 3},  {DO_SET_AGAIN, 3},     {DO_SET_BY_HAND, 4},
    {DO_SET_HOLD, 2},  {DO_CLAIM_BY_HAND, 3}, {DO_STORAGE, 6},    {DO_CLASS, 3},         {DO_QUOTA, 3},
    {DO_COLLECTOR, 8}, {DO_DELETE_POD, 6},    {DO_BEHAVE, 2},     {DO_FAULT, 18},        {DO_CRASH, 4},
    {DO_STOP, 1},      {DO_LOSE_JOURNAL, 1},  {DO_JUMP_CLOCK, 1}, {DO_DISK, 1},
};

/* Most declare more; some less, or another immutable field besides. */
static void draw_converge(struct dice *dice, struct sizes *sizes, struct operation *ret)
{
    struct sizes wanted = *sizes;
    ret->b = dice_one_in(dice, 5) ? CONVERGE_DEGRADED : 0;
    ret->b |= dice_one_in(dice, 5) ? CONVERGE_WAITS : 0;
    if (dice_one_in(dice, 8)) {
        wanted.gi[dice_below(dice, (uint32_t)wanted.count)] -= 1;
        if (wanted.count > 1 && dice_one_in(dice, 2))
            wanted.gi[dice_below(dice, (uint32_t)wanted.count)] += 3;
    } else if (dice_one_in(dice, 8)) {
        grow(dice, &wanted);
        ret->b |= CONVERGE_OTHER_SERVICE;
    } else {
        if (!dice_one_in(dice, 4))
            grow(dice, sizes);
        wanted = *sizes;
    }
    print_sizes(&wanted, ret->text);
}

static void draw_death(struct dice *dice, struct operation *ret)
{
    static const char *const ways[] = {"same", "same", "continue", "continue", "never"};
    ret->b = (int)dice_below(dice, 12);
    snprintf(ret->text, sizeof(ret->text), "%u %u %s",
             dice_one_in(dice, 3) ? dice_below(dice, 40) : dice_below(dice, 8),
             dice_one_in(dice, 3) ? dice_below(dice, 60000) : dice_below(dice, 500),
             ways[dice_below(dice, ARRAY_SIZE(ways))]);
}

static void draw_operation(struct dice *dice, struct sizes *sizes, struct operation *ret)
{
    static const char *const classes[] = {"fixed", "gone", "grows"};
    static const char *const quotas[] = {"1Gi", "5Gi", "12Gi", ""};
    static const char *const collectors[] = {"off", "slow", "blind", "on"};
    static const char *const images[] = {"db:v2", "db:v3", "db:v4"};
    static const char *const behaviours[] = {"never-ready", "slow-stop", "", "node-lost"};
    *ret = (struct operation){.after_us = dice_pause(dice),
                              .kind = dice_kind(dice, weights, ARRAY_SIZE(weights))};
    ret->a = (int)dice_below(dice, USERS_MAX);
    switch (ret->kind) {
    case DO_CONVERGE:
        draw_converge(dice, sizes, ret);
        break;
    case DO_RECOVER: {
        struct sizes wanted = *sizes;
        wanted.gi[0] = MAX(1, wanted.gi[0] - 1);
        print_sizes(&wanted, ret->text);
        break;
    }
    case DO_COMMAND_DIES:
        draw_death(dice, ret);
        break;
    case DO_SET_SCALE:
        ret->a = 1 + (int)dice_below(dice, 5);
        break;
    case DO_SET_IMAGE:
        operation_say(ret, images[dice_below(dice, ARRAY_SIZE(images))]);
        break;
    case DO_CLAIM_BY_HAND:
        ret->a = (int)dice_below(dice, 3);
        ret->b = (int)dice_below(dice, (uint32_t)sizes->count);
        snprintf(ret->text, sizeof(ret->text), "%dGi", sizes->gi[ret->b] + (int)dice_below(dice, 4));
        break;
    case DO_STORAGE:
        operation_say(ret, draw_storage(dice));
        break;
    case DO_CLASS:
        operation_say(ret, classes[dice_below(dice, ARRAY_SIZE(classes))]);
        break;
    case DO_QUOTA:
        operation_say(ret, quotas[dice_below(dice, ARRAY_SIZE(quotas))]);
        break;
    case DO_COLLECTOR:
        operation_say(ret, collectors[dice_below(dice, ARRAY_SIZE(collectors))]);
        break;
    case DO_DELETE_POD:
        ret->a = (int)dice_below(dice, 4);
        ret->b = dice_one_in(dice, 4);
        break;
    case DO_BEHAVE:
        ret->a = (int)dice_below(dice, 4);
        operation_say(ret, behaviours[dice_below(dice, ARRAY_SIZE(behaviours))]);
        break;
    case DO_FAULT:
        operation_say(ret, draw_fault(dice));
        break;
    case DO_CRASH:
    case DO_LOSE_JOURNAL:
        ret->a = (int)dice_below(dice, 60);
        ret->b = (int)dice_below(dice, 3000);
        break;
    case DO_STOP:
        ret->b = (int)dice_below(dice, 1000);
        break;
    case DO_JUMP_CLOCK:
        ret->a = dice_one_in(dice, 2) ? 60 : -60;
        break;
    case DO_DISK:
        ret->a = dice_one_in(dice, 2) ? 50 : 1000;
        break;
    default:
        break;
    }
}

/* --- stories that single draws rarely tell -------------------------------------------------------------- */

enum { STORY_MAX = 5 };

static void put(struct operation *operation, enum operation_kind kind, int64_t after_us, int a, int b,
                const char *text)
{
    *operation = (struct operation){.kind = kind, .after_us = after_us, .a = a, .b = b};
    operation_say(operation, text);
}

/* Somebody converges, and dies at some step. */
static int draw_interrupted(struct dice *dice, struct sizes *sizes, struct operation *ret)
{
    char text[TEXT_MAX];
    int user = (int)dice_below(dice, USERS_MAX);
    grow(dice, sizes);
    print_sizes(sizes, text);
    put(&ret[0], DO_CONVERGE, dice_pause(dice), user, 0, text);
    put(&ret[1], DO_COMMAND_DIES, 0, user, 0, "");
    draw_death(dice, &ret[1]);
    return 2;
}

/* A size that the storage cannot have, and the way back. */
static int draw_infeasible(struct dice *dice, struct sizes *sizes, struct operation *ret)
{
    char text[TEXT_MAX];
    char most[TEXT_MAX];
    struct sizes wanted = *sizes;
    int user = (int)dice_below(dice, USERS_MAX);
    for (int i = 0; i < sizes->count; i++)
        sizes->gi[i] += 2;
    snprintf(most, sizeof(most), "max=%dGi", sizes->gi[0]);
    for (int i = 0; i < wanted.count; i++)
        wanted.gi[i] += 10;
    print_sizes(&wanted, text);
    put(&ret[0], DO_STORAGE, dice_pause(dice), 0, 0, most);
    put(&ret[1], DO_CONVERGE, US_PER_S, user, 0, text);
    print_sizes(sizes, text);
    int at = 2;
    if (dice_one_in(dice, 2)) /* is refused */
        put(&ret[at++], DO_CONVERGE, 20 * US_PER_S, user, 0, text);
    put(&ret[at++], DO_RECOVER, dice_pause(dice) + 20 * US_PER_S, user, CONVERGE_WAITS, text);
    put(&ret[at++], DO_STORAGE, dice_pause(dice) + 20 * US_PER_S, 0, 0, "ok");
    return at;
}

/* While the set is away somebody scales, deletes a pod, makes it by hand, or goes on. */
static int draw_in_the_gap(struct dice *dice, struct sizes *sizes, struct operation *ret)
{
    static const enum operation_kind kinds[] = {DO_SET_SCALE, DO_DELETE_POD, DO_SET_BY_HAND,
                                                DO_CONTINUE,  DO_SET_SCALE,  DO_CONVERGE};
    char text[TEXT_MAX];
    int user = (int)dice_below(dice, USERS_MAX);
    grow(dice, sizes);
    print_sizes(sizes, text);
    put(&ret[0], DO_COLLECTOR, US_PER_S, 0, 0, dice_one_in(dice, 2) ? "slow" : "off");
    put(&ret[1], DO_CONVERGE, US_PER_S, user, 0, text);
    enum operation_kind kind = kinds[dice_below(dice, ARRAY_SIZE(kinds))];
    int a = kind == DO_SET_SCALE ? 1 + (int)dice_below(dice, 5) : (int)dice_below(dice, 2);
    put(&ret[2], kind, (int64_t)(5 + dice_below(dice, 40)) * US_PER_S, a, 0, kind == DO_CONVERGE ? text : "");
    put(&ret[3], DO_COLLECTOR, dice_pause(dice), 0, 0, "on");
    return 4;
}

/* Pods are made while it grows, and the collector has not heard of them. */
static int draw_young_pods(struct dice *dice, struct sizes *sizes, struct operation *ret)
{
    char text[TEXT_MAX];
    int user = (int)dice_below(dice, USERS_MAX);
    grow(dice, sizes);
    print_sizes(sizes, text);
    put(&ret[0], DO_COLLECTOR, US_PER_S, 0, 0, "blind");
    put(&ret[1], dice_one_in(dice, 2) ? DO_SET_SCALE : DO_DELETE_POD, dice_pause(dice), 3, 1, "");
    put(&ret[2], DO_CONVERGE, (int64_t)dice_below(dice, 4000) * US_PER_MS, user, CONVERGE_DEGRADED, text);
    put(&ret[3], dice_one_in(dice, 2) ? DO_SET_SCALE : DO_DELETE_POD,
        (int64_t)dice_below(dice, 9000) * US_PER_MS, 4, 1, "");
    return 4;
}

/* Less of the last template, or another immutable field, and more of the first: nothing is to be written. */
static int draw_refused(struct dice *dice, const struct sizes *sizes, struct operation *ret)
{
    char text[TEXT_MAX];
    struct sizes wanted = *sizes;
    bool smaller = dice_one_in(dice, 2);
    wanted.gi[0] += 2;
    if (smaller)
        wanted.gi[wanted.count - 1] = sizes->gi[wanted.count - 1] - 1;
    print_sizes(&wanted, text);
    put(&ret[0], DO_CONVERGE, dice_pause(dice), (int)dice_below(dice, USERS_MAX),
        smaller ? 0 : CONVERGE_OTHER_SERVICE, text);
    put(&ret[1], DO_SET_AGAIN, 20 * US_PER_S, 0, 0, "");
    return 2;
}

/* Who deletes the set is killed while the network still holds his delete, and somebody else begins. */
static int draw_late_delete(struct dice *dice, struct sizes *sizes, struct operation *ret)
{
    char text[TEXT_MAX], how[TEXT_MAX];
    int user = (int)dice_below(dice, USERS_MAX);
    grow(dice, sizes);
    print_sizes(sizes, text);
    snprintf(how, sizeof(how), "%u 0 never", dice_below(dice, 6));
    put(&ret[0], DO_FAULT, US_PER_S, 0, 0, "late=9s,verb=delete,resource=statefulsets,nth=3");
    put(&ret[1], DO_CONVERGE, US_PER_S, user, 0, text);
    put(&ret[2], DO_COMMAND_DIES, 0, user, 3 + (int)dice_below(dice, 6), how);
    put(&ret[3], dice_one_in(dice, 3) ? DO_CONVERGE : DO_CONTINUE,
        (int64_t)dice_below(dice, 3000) * US_PER_MS, 1 - user, 0, text);
    return 4;
}

static int draw_story(struct dice *dice, struct sizes *sizes, struct operation *ret)
{
    switch (dice_below(dice, 8)) {
    case 3:
        return draw_refused(dice, sizes, ret);
    case 4:
        return draw_late_delete(dice, sizes, ret);
    case 0:
        return draw_infeasible(dice, sizes, ret);
    case 1:
        return draw_in_the_gap(dice, sizes, ret);
    case 2:
        return draw_young_pods(dice, sizes, ret);
    default:
        return draw_interrupted(dice, sizes, ret);
    }
}

void draw_resize(struct draw *draw)
{
    struct dice dice = {.state = draw->seed * 0xA24BAED4963EE407ULL + 3};
    draw_set(&dice, &draw->resize);
    draw_rest(&dice, draw);
    draw->sets[0].start = draw->resize.start;
    struct sizes sizes = {.count = draw->resize.templates};
    for (int i = 0; i < sizes.count; i++)
        sizes.gi[i] = 2;
    int count = 2 + (int)dice_below(&dice, 14);
    while (draw->count < count) {
        struct operation story[STORY_MAX];
        int length = 1;
        if (draw->count == 0 || dice_one_in(&dice, 4))
            length = draw_story(&dice, &sizes, story);
        else
            draw_operation(&dice, &sizes, &story[0]);
        for (int i = 0; i < length; i++)
            draw->operations[draw->count++] = story[i];
    }
}

/* --- in words ------------------------------------------------------------------------------------------- */

char *resize_operation_tell(const struct operation *operation)
{
    int a = operation->a, b = operation->b;
    const char *text = operation->text;
    switch (operation->kind) {
    case DO_CONVERGE:
        return xasprintf("user %d converges to %s%s%s%s", a, text, b & CONVERGE_DEGRADED ? ", degraded" : "",
                         b & CONVERGE_WAITS ? ", waiting for the file systems" : "",
                         b & CONVERGE_OTHER_SERVICE ? ", with another serviceName" : "");
    case DO_CONTINUE:
        return xasprintf("user %d continues what is half done", a);
    case DO_RECOVER:
        return xasprintf("user %d recovers to %s", a, text);
    case DO_COMMAND_DIES:
        return xasprintf("the command of user %d dies after %d more steps (events, ms, way on: %s)", a, b,
                         text);
    case DO_USER_FORGETS:
        return xasprintf("the journal of user %d is lost", a);
    case DO_SET_SCALE:
        return xasprintf("the StatefulSet is scaled to %d", a);
    case DO_SET_RESTART:
        return xasprintf("a person asks for a restart of the StatefulSet");
    case DO_SET_IMAGE:
        return xasprintf("a person applies the StatefulSet with image %s", text);
    case DO_SET_AGAIN:
        return xstrdup("another tool applies the StatefulSet as it is");
    case DO_SET_BY_HAND:
        return xasprintf("a person makes the StatefulSet, if it is gone, with %s sizes",
                         a ? "the new" : "its old");
    case DO_SET_HOLD:
        return xasprintf("somebody %s the StatefulSet by a finalizer", a ? "holds" : "lets go of");
    case DO_CLAIM_BY_HAND:
        return xasprintf("a person asks for %s for claim %s of +%d", text, template_names[b], a);
    case DO_STORAGE:
        return xasprintf("the storage's resizer: %s", text);
    case DO_CLASS:
        return xasprintf("the storage class is %s", text);
    case DO_QUOTA:
        return *text ? xasprintf("a quota of %s comes", text) : xstrdup("the quota goes");
    case DO_COLLECTOR:
        return xasprintf("the garbage collector is %s", text);
    default:
        UNREACHABLE();
    }
}
