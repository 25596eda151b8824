/* SPDX-License-Identifier: Apache-2.0
 *
 * People edit, pods die, images are bad, the controller forgets: in any order. Every write is checked by the
 * fake cluster; at the end a good template must complete without anyone's help, and then nothing is written
 * any more. */
#include "fake_set.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

enum { SEEDS = 60, EVENTS = 40 };

/* A small generator of our own: the same seeds everywhere. */
static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*state >> 33) % below;
}

static const char *const images[] = {"db:1", "db:2", "db:3", "db:none", "db:unready", "db:crash"};

static void change_something(struct fake *fake, uint64_t *random)
{
    CLEANUP_FREE char *pod = xasprintf("db-%u", draw(random, 6));
    switch (draw(random, 19)) {
    case 0:
    case 1:
    case 2:
        fake_set_image(fake, images[draw(random, ARRAY_SIZE(images))]);
        break;
    case 3:
        fake_set_fence(fake, (int)draw(random, 6));
        break;
    case 4:
        fake_set_budget(fake, 1 + (int)draw(random, 3));
        break;
    case 5:
        fake_scale(fake, (int)draw(random, 7));
        break;
    case 6:
        fake_pause(fake, draw(random, 2) == 0);
        break;
    case 7:
    case 8:
        fake_delete_pod(fake, pod);
        break;
    case 9:
        fake_restart(fake);
        break;
    case 10:
        fake_edit(fake, draw(random, 2) ? "{\"note\":\"a\"}" : "{}", "template", "metadata", "annotations",
                  NULL);
        break;
    case 11:
        fake_edit(fake, draw(random, 2) ? "\"Parallel\"" : "\"OrderedReady\"", "podManagementPolicy", NULL);
        break;
    case 12:
        fake_edit(fake, draw(random, 2) ? "\"fast\"" : "\"slow\"", "template", "spec", "priorityClassName",
                  NULL);
        break;
    case 13:
        fake->no_kubelet = draw(random, 3) == 0;
        break;
    case 14:
        fake_lose_status(fake);
        break;
    case 15:
        fake_delete_revision(fake, draw(random, 8));
        break;
    case 16:
        fake->refuse_patches = draw(random, 3) == 0 ? 403 : draw(random, 2) == 0 ? 422 : 0;
        break;
    case 17:
        fake_turn(fake);
        fake_sync(fake);
        fake_turn(fake);
        break;
    case 18:
        fake->old_kubelet = draw(random, 3) == 0;
        break;
    default:
        break;
    }
}

static void go_home(struct fake *fake)
{
    fake->no_kubelet = fake->old_kubelet = false;
    fake->refuse_patches = 0;
    fake_pause(fake, false);
    fake_set_fence(fake, 0);
    fake_scale(fake, 5);
    fake_set_image(fake, "db:good");
}

static void play(uint64_t seed, bool parallel)
{
    uint64_t random = seed * 2654435761U + 17;
    CLEANUP_FAKE struct fake *fake = fake_make(5, "db:1");
    if (parallel)
        fake_edit(fake, "\"Parallel\"", "podManagementPolicy", NULL);
    fake_run(fake, (int)draw(&random, 40));
    for (int i = 0; i < EVENTS; i++) {
        change_something(fake, &random);
        for (uint32_t turns = draw(&random, 4); turns > 0; turns--)
            fake_turn(fake);
        fake_run(fake, (int)draw(&random, 12));
    }
    go_home(fake);
    bool home = fake_run_until(fake, "Completed", 2500);
    if (!home) {
        char *status = json_print(json_get(fake->set, "status"));
        fail_msg("seed %llu does not complete: %s", (unsigned long long)seed, status);
    }
    assert_int_equal(fake_number(fake, "availableReplicas"), 5);
    /* Nothing changed, so nothing is written - also by a controller that remembers nothing. */
    fake_run(fake, 3);
    int writes = fake->counts.writes, status_writes = fake->counts.status_writes;
    fake_restart(fake);
    fake_run(fake, 5);
    assert_int_equal(fake->counts.writes, writes);
    assert_int_equal(fake->counts.status_writes, status_writes);
}

static void a_good_template_completes_from_anywhere(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        play(seed, seed % 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_template_completes_from_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
