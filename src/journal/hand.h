/* SPDX-License-Identifier: Apache-2.0
 *
 * Hands the store to the environment's worker and takes it back. It is handed over, never shared: one job at
 * a time. A job that has not begun can be taken back (a simulated worker may never begin it), one that runs
 * is waited for. */
#pragma once

#include "env/env.h"

struct hand;

struct hand *hand_make(struct env *env);
/* Nothing may be out. */
void hand_free(struct hand *hand);
bool hand_is_out(const struct hand *hand);
/* job on the worker, then done on the loop. */
void hand_give(struct hand *hand, env_callback *job, env_callback *done, void *context);
/* Nothing is out afterwards, and done is not called any more. true: the job has run to its end; false: it
 * will not. */
bool hand_take_back(struct hand *hand);
/* Between these no job runs. For a short look, at start only: a running job is waited for. */
void hand_hold(struct hand *hand);
void hand_release(struct hand *hand);
