/* SPDX-License-Identifier: Apache-2.0
 *
 * The seed's table of a rollout, field by field, and the rules of fence, stage, budget and pause. */
#include "../../lib/fake_set.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static struct fake *make_running(int replicas, const char *image)
{
    struct fake *fake = fake_make(replicas, image);
    fake_run(fake, 4 * replicas + 4);
    assert_int_equal(fake_number(fake, "availableReplicas"), replicas);
    return fake;
}

static void a_new_set_comes_up_in_order_and_is_idle(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = fake_make(5, "db:8.0");
    fake_settle(fake);
    assert_int_equal(cJSON_GetArraySize(fake->pods), 1);
    assert_non_null(fake_pod(fake, "db-0"));
    fake_run(fake, 30);
    assert_int_equal(cJSON_GetArraySize(fake->pods), 5);
    assert_string_equal(fake_text(fake, "phase"), "Idle");
    assert_string_equal(fake_text(fake, "currentImage"), "db:8.0");
    assert_string_equal(fake_text(fake, "targetImage"), "db:8.0");
    assert_int_equal(fake_number(fake, "replicas"), 5);
    assert_int_equal(fake_number(fake, "readyReplicas"), 5);
    assert_int_equal(fake_number(fake, "updatedReplicas"), 5);
    assert_int_equal(fake_number(fake, "currentRevision"), 1);
    assert_string_equal(fake_text(fake, "message"), "all 5 pods run db:8.0.");
    assert_true(fake_condition_is(fake, "Available", "True"));
    assert_true(fake_condition_is(fake, "Stalled", "False"));
}

struct row {
    const char *phase;
    const char *current_image;
    const char *target_image;
    int updated;
    int partition;
};

static bool is_row(const struct fake *fake, const struct row *row)
{
    return str_equal(fake_text(fake, "phase"), row->phase) &&
           str_equal(fake_text(fake, "currentImage"), row->current_image) &&
           str_equal(fake_text(fake, "targetImage"), row->target_image) &&
           fake_number(fake, "updatedReplicas") == row->updated &&
           fake_number(fake, "currentPartition") == row->partition;
}

static void the_seed_tells_the_rollout(void **state)
{
    (void)state;
    CLEANUP_FAKE struct fake *fake = make_running(5, "mysql:8.0");
    fake_set_budget(fake, 2);
    fake_run(fake, 2);
    static const struct row rows[] = {
        {"Idle", "mysql:8.0", "mysql:8.0", 5, 0},
        {"Canary", "mysql:8.0", "mysql:8.1", 0, 4},
        {"RollingOut", "mysql:8.0", "mysql:8.1", 1, 2},
        {"RollingOut", "mysql:8.0", "mysql:8.1", 3, 0},
        {"Completed", "mysql:8.1", "mysql:8.1", 5, 0},
    };
    size_t at = 0;
    assert_true(is_row(fake, &rows[at]));
    fake_set_image(fake, "mysql:8.1");
    int last_partition = 4;
    for (int second = 0; second < 120 && at + 1 < ARRAY_SIZE(rows); second++) {
        fake_settle(fake);
        int partition = (int)fake_number(fake, "currentPartition");
        assert_true(partition == 4 || partition == 2 || partition == 0);
        assert_true(partition <= last_partition);
        last_partition = partition;
        while (at + 1 < ARRAY_SIZE(rows) && is_row(fake, &rows[at + 1]))
            at++;
        fake->boot_us += 1000000;
        fake_sync(fake);
    }
    if (at + 1 < ARRAY_SIZE(rows))
        fail_msg("stopped before row %zu: %s", at + 1, json_print(json_get(fake->set, "status")));
    assert_int_equal(fake->counts.patches, 5);
    assert_int_equal(fake->counts.deletes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_set_comes_up_in_order_and_is_idle),
        cmocka_unit_test(the_seed_tells_the_rollout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
