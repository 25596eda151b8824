/* SPDX-License-Identifier: Apache-2.0
 *
 * Crash points for the crash matrix. The product contains none: without -DNEOSET_CRASH_POINTS every macro is
 * empty and nothing reads NEOSET_CRASH. In the test build NEOSET_CRASH=<edge>:<step kind>[:n] ends the
 * process with SIGKILL at the n-th passage (1 when n is left out) of that edge by a step of that kind ("*":
 * any kind).
 *
 * The edges, in the order in which a step passes them:
 *   intent-commit  its intent is appended; the commit has not begun
 *   send           the intent is durable; the request has not been handed over
 *   answer         the bytes have left; the answer has not been looked at
 *   outcome        the answer was read; its outcome is not appended
 *   done           the outcome is durable
 *   recover        a restart took the open step up; nothing of it is decided */
#pragma once

#ifdef NEOSET_CRASH_POINTS

#include "env/env.h"

#define CRASH_EDGES(X) X("intent-commit") X("send") X("answer") X("outcome") X("done") X("recover")

/* Ends the process when this passage is the one that was asked for. name: of the object. */
void crash_point(struct env *env, const char *edge, const char *step_kind, const char *name);
/* The same question without the end: counts the passage. */
bool crash_is_due(struct env *env, const char *edge, const char *step_kind, const char *name);
_Noreturn void crash_now(void);

/* For simulated processes: the hook is told of each passage, and whoever set it ends the process when the
 * event that it is in is over. Until then nothing leaves that had not left, and no commit begins.
 * NEOSET_CRASH does not count. NULL: nobody is told. */
typedef void crash_hook(void *context, const char *edge, const char *step_kind, const char *name);
void crash_tell(crash_hook *hook, void *context);

#define CRASH_POINT(env, edge, step_kind, name) crash_point(env, edge, step_kind, name)

#else

#define CRASH_POINT(env, edge, step_kind, name) ((void)0)

#endif
