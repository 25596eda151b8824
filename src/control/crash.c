/* SPDX-License-Identifier: Apache-2.0 */
#include "control/crash.h"

#ifdef NEOSET_CRASH_POINTS

#include <signal.h>

/* Passages of the one edge and kind that NEOSET_CRASH names, and who is told of all. The only mutable globals
 * of the tree, in test builds only: a crash is a property of the process. */
static unsigned passages;
static crash_hook *told;
static void *told_context;

void crash_tell(crash_hook *hook, void *context)
{
    told = hook;
    told_context = context;
}

bool crash_is_due(struct env *env, const char *edge, const char *step_kind, const char *name)
{
    if (told) {
        told(told_context, edge, step_kind, name);
        return false;
    }
    const char *wanted = env_variable(env, "NEOSET_CRASH");
    if (!wanted)
        return false;
    CLEANUP_FREE char *copy = xstrdup(wanted);
    char *kind = strchr(copy, ':');
    if (!kind)
        return false;
    *kind++ = '\0';
    char *count = strchr(kind, ':');
    if (count)
        *count++ = '\0';
    if (strcmp(copy, edge) != 0 || (strcmp(kind, "*") != 0 && strcmp(kind, step_kind) != 0))
        return false;
    unsigned long n = count ? strtoul(count, NULL, 10) : 1;
    return ++passages == n;
}

_Noreturn void crash_now(void)
{
    for (;;)
        raise(SIGKILL);
}

void crash_point(struct env *env, const char *edge, const char *step_kind, const char *name)
{
    if (crash_is_due(env, edge, step_kind, name))
        crash_now();
}

#endif
