/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists (utlist.h) that remember so much and no more: the oldest comes first, and goes first. */
#pragma once

#include <utlist.h>

/* Appends item, which the list owns from now on. With max items there already the oldest is let go:
 * let_go(item) frees it. count is the list's own, and is kept. */
#define BOUNDED_LIST_APPEND(list, count, max, item, let_go)                                                  \
    do {                                                                                                     \
        if ((count) == (max)) {                                                                              \
            __typeof__(item) oldest_ = (list);                                                               \
            LL_DELETE((list), oldest_);                                                                      \
            let_go(oldest_);                                                                                 \
            (count)--;                                                                                       \
        }                                                                                                    \
        LL_APPEND((list), (item));                                                                           \
        (count)++;                                                                                           \
    } while (0)
