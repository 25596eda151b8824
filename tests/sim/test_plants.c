/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of planted bugs: every invariant has at least two, and each one has a hook in the product. */
#include "plants.h"
#include "whole_file.h"

#include "base/buf.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { PLANTS_LEAST = 2 };

static void every_invariant_has_two_plants(void **state)
{
    (void)state;
    int counts[INVARIANTS + 1] = {0};
    for (size_t i = 0; i < plant_count(); i++) {
        assert_in_range(plant_at(i)->invariant, 1, INVARIANTS);
        counts[plant_at(i)->invariant]++;
    }
    for (int i = 1; i <= INVARIANTS; i++)
        if (counts[i] < PLANTS_LEAST)
            fail_msg("invariant %d has %d planted bugs, and needs %d", i, counts[i], PLANTS_LEAST);
}

static void each_name_is_there_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < plant_count(); i++)
        assert_ptr_equal(plant_find(plant_at(i)->name), plant_at(i));
    assert_null(plant_find("no-such-plant"));
}

static void read_sources(struct buf *ret)
{
    glob_t files = {0};
    assert_int_equal(glob("src/*/*.c", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        CLEANUP_FREE char *text = whole_file(files.gl_pathv[i], NULL);
        assert_int_equal(buf_add_text(ret, text), 0);
    }
    globfree(&files);
}

static void each_plant_has_its_hook(void **state)
{
    (void)state;
    CLEANUP_BUF struct buf sources = BUF_INIT(64 << 20);
    read_sources(&sources);
    for (size_t i = 0; i < plant_count(); i++) {
        CLEANUP_FREE char *hook = xasprintf("PLANT(\"%s\")", plant_at(i)->name);
        if (!strstr(buf_text(&sources), hook))
            fail_msg("%s is nowhere in src/", hook);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_invariant_has_two_plants),
        cmocka_unit_test(each_name_is_there_once),
        cmocka_unit_test(each_plant_has_its_hook),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
