/* SPDX-License-Identifier: Apache-2.0
 *
 * One copy of each string that thousands of pods share (images, nodes, revision names, owners). Counted: what
 * no fact holds any more is gone. Not for strings that differ from pod to pod. */
#pragma once

#include "base/alloc.h"

struct intern;

struct intern *intern_make(void);
/* Every string must have been given back. */
void intern_free(struct intern *pool);
/* The pool's copy, counted; NULL stays NULL. Equal texts of one pool are equal pointers. */
const char *intern_get(struct intern *pool, const char *text);
/* Gives one count back; NULL is fine. */
void intern_put(struct intern *pool, const char *text);
size_t intern_count(const struct intern *pool);
