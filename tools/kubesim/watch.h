/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches: what is told to whom, and when they end. */
#pragma once

#include "kubesim/fault.h"
#include "kubesim/model.h"

/* NULL with the call's answer filled when it is refused. */
struct kubesim_watch *watch_open(struct call *call, const struct fault_effect *effect,
                                 const struct kubesim_watch_callbacks *callbacks, void *context);
/* Ends the watches of a kind whose definition goes. */
/* Every connection breaks, as when the server starts anew. */
void watches_cut(struct kubesim *sim);
void watches_end_kind(struct kubesim *sim, const struct kind *kind);
/* Bookmarks, ends, faults that are due. */
void watches_tick(struct kubesim *sim, int64_t now_us);
int64_t watches_next_us(const struct kubesim *sim);
