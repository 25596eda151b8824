/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool that facts keep their words in: one for all tests of a program, which leave nothing in it. */
#pragma once

#include "neoset/intern.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct intern *pool;

static inline int make_pool(void **state)
{
    (void)state;
    pool = intern_make();
    return 0;
}

static inline int free_pool(void **state)
{
    (void)state;
    assert_int_equal(intern_count(pool), 0);
    intern_free(pool);
    return 0;
}
