/* SPDX-License-Identifier: Apache-2.0
 *
 * The real environment without HTTP: clocks, timers, the worker, children, files, signals. */
#include "env/env.h"
#include "env/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define US_PER_S 1000000LL

/* What the callbacks of a test wrote down, in order. */
struct scene {
    struct env *env;
    char log[256];
    int left; /* the loop stops at zero */
};

struct mark {
    struct scene *scene;
    const char *text;
    struct env_timer *timer;
    struct env_timer **cancels;
};

static void log_mark(struct scene *scene, const char *text)
{
    ENSURE(strlen(scene->log) + strlen(text) < sizeof(scene->log));
    strcat(scene->log, text);
    if (--scene->left == 0)
        env_stop(scene->env);
}

static void on_mark(void *context)
{
    struct mark *mark = context;
    mark->timer = NULL;
    if (mark->cancels)
        env_timer_cancel(mark->scene->env, mark->cancels);
    log_mark(mark->scene, mark->text);
}

/* --- clocks and timers --- */

static void clocks_tell_the_time(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    int64_t boot_us = env_boot_us(env);
    assert_true(env_boot_us(env) >= boot_us);
    assert_true(env_wall_us(env) > 1700000000LL * US_PER_S);
    uint8_t first[32] = {0};
    uint8_t second[32] = {0};
    env_random(env, first, sizeof(first));
    env_random(env, second, sizeof(second));
    assert_memory_not_equal(first, second, sizeof(first));
}

static void timers_fire_in_order_and_never_early(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct scene scene = {.env = env, .left = 4};
    struct mark marks[] = {{&scene, "d", NULL, NULL},
                           {&scene, "b", NULL, NULL},
                           {&scene, "c", NULL, NULL},
                           {&scene, "a", NULL, NULL}};
    int64_t begun_us = env_boot_us(env);
    static const int64_t delays_us[] = {30500, 10000, 20000, 0};
    for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
        marks[i].timer = env_timer_start(env, delays_us[i], on_mark, &marks[i]);
    env_run(env);
    assert_string_equal(scene.log, "abcd");
    assert_true(env_boot_us(env) - begun_us >= 30500);
}

static void a_cancelled_timer_does_not_fire(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct scene scene = {.env = env, .left = 2};
    struct mark never = {&scene, "never", NULL, NULL};
    struct mark nor = {&scene, "nor", NULL, NULL};
    struct mark first = {&scene, "a", NULL, &never.timer};
    struct mark last = {&scene, "b", NULL, &nor.timer};
    first.timer = env_timer_start(env, 0, on_mark, &first);
    never.timer = env_timer_start(env, 0, on_mark, &never);
    nor.timer = env_timer_start(env, INT64_MAX, on_mark, &nor);
    last.timer = env_timer_start(env, 2000, on_mark, &last);
    env_run(env);
    assert_string_equal(scene.log, "ab");
    env_timer_cancel(env, &never.timer); /* NULL by now: harmless */
}

struct chain {
    struct env *env;
    unsigned links;
    struct env_timer *timer;
};

static void next_link(void *context)
{
    struct chain *chain = context;
    chain->links++;
    chain->timer = env_timer_start(chain->env, 0, next_link, chain);
}

static void a_chain_of_immediate_timers_does_not_starve_the_loop(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct scene scene = {.env = env, .left = 1};
    struct chain chain = {.env = env};
    struct mark mark = {&scene, "x", NULL, NULL};
    next_link(&chain);
    mark.timer = env_timer_start(env, 2000, on_mark, &mark);
    env_run(env);
    assert_string_equal(scene.log, "x");
    assert_true(chain.links > 1);
}

static void the_loop_can_be_stopped_and_run_again(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct scene scene = {.env = env};
    for (int i = 0; i < 2; i++) {
        struct mark mark = {&scene, "x", NULL, NULL};
        scene.left = 1;
        mark.timer = env_timer_start(env, 0, on_mark, &mark);
        env_run(env);
    }
    assert_string_equal(scene.log, "xx");
    env_stop(env);
    env_run(env); /* returns at once */
}

/* --- the worker --- */

struct job {
    struct scene *scene;
    char name;
    pthread_t ran_on;
    char *order;
};

static void run_job(void *context)
{
    struct job *job = context;
    job->ran_on = pthread_self();
    if (job->name == 'a')
        usleep(20000); /* the slowest is first: order is not luck */
    size_t length = strlen(job->order);
    job->order[length] = job->name;
}

static void job_done(void *context)
{
    struct job *job = context;
    char text[] = {job->name, '\0'};
    assert_true(strlen(job->order) > 0);
    log_mark(job->scene, text);
}

static void jobs_run_in_order_on_one_other_thread(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct scene scene = {.env = env, .left = 8};
    char order[16] = "";
    struct job jobs[8];
    for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
        jobs[i] = (struct job){.scene = &scene, .name = (char)('a' + i), .order = order};
        env_work(env, run_job, job_done, &jobs[i]);
    }
    env_run(env);
    assert_string_equal(order, "abcdefgh");
    assert_string_equal(scene.log, "abcdefgh");
    for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
        assert_false(pthread_equal(jobs[i].ran_on, pthread_self()));
        assert_true(pthread_equal(jobs[i].ran_on, jobs[0].ran_on));
    }
}

static void a_blocked_job_does_not_hold_up_the_loop(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct scene scene = {.env = env, .left = 2};
    char order[4] = "";
    struct job slow = {.scene = &scene, .name = 'a', .order = order};
    struct mark mark = {&scene, "x", NULL, NULL};
    env_work(env, run_job, job_done, &slow);
    mark.timer = env_timer_start(env, 0, on_mark, &mark);
    env_run(env);
    assert_string_equal(scene.log, "xa");
}

struct held_job {
    sem_t begun;
    bool ended;
};

static void run_held(void *context)
{
    struct held_job *job = context;
    sem_post(&job->begun);
    usleep(20000);
    job->ended = true;
}

static void never_done(void *context)
{
    (void)context;
    fail_msg("a callback after env_free");
}

static void do_nothing(void *context)
{
    (void)context;
}

static void count_dropped(void *context)
{
    int *count = context;
    ++*count;
}

static void the_end_drops_what_was_not_done(void **state)
{
    (void)state;
    struct env *env = env_real_make();
    struct held_job job = {.ended = false};
    int dropped = 0;
    assert_int_equal(sem_init(&job.begun, 0, 0), 0);
    env_work(env, run_held, never_done, &job);
    env_work_or_drop(env, do_nothing, never_done, count_dropped, &dropped);
    while (sem_wait(&job.begun) < 0)
        ;
    env_free(env);
    assert_int_equal(dropped, 1);
    sem_destroy(&job.begun);
}

static void the_end_waits_for_the_running_job(void **state)
{
    (void)state;
    struct env *env = env_real_make();
    struct held_job job = {.ended = false};
    assert_int_equal(sem_init(&job.begun, 0, 0), 0);
    env_work(env, run_held, never_done, &job);
    while (sem_wait(&job.begun) < 0)
        ;
    env_free(env);
    assert_true(job.ended);
    sem_destroy(&job.begun);
}

/* --- children --- */

struct child_scene {
    struct env *env;
    struct env_child *child;
    int done_count;
    int exit_code;
    char output[256];
    size_t output_length;
    char *errors;
    char *problem;
    bool cancel_inside;
};

static void child_done(void *context, const struct child_result *result)
{
    struct child_scene *scene = context;
    scene->done_count++;
    scene->exit_code = result->exit_code;
    scene->output_length = result->output_length;
    snprintf(scene->output, sizeof(scene->output), "%s", result->output);
    scene->errors = xstrdup(result->errors);
    scene->problem = xstrdup_or_null(result->problem);
    if (scene->cancel_inside)
        env_child_cancel(scene->env, &scene->child);
    scene->child = NULL;
    env_stop(scene->env);
}

static void run_shell(struct child_scene *scene, const char *script, struct child_spec spec)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    spec.argv = argv;
    if (!spec.output_max)
        spec.output_max = 1 << 20;
    if (!spec.timeout_us)
        spec.timeout_us = 20 * US_PER_S;
    scene->child = env_child_start(scene->env, &spec, child_done, scene);
    env_run(scene->env);
}

static void forget(struct child_scene *scene)
{
    free(scene->errors);
    free(scene->problem);
    scene->errors = NULL;
    scene->problem = NULL;
}

static void a_child_gets_its_input_and_hands_back_what_it_wrote(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct child_scene scene = {.env = env};
    assert_int_equal(setenv("NEOSET_TEST_KEPT", "kept", 1), 0);
    assert_int_equal(setenv("NEOSET_TEST_OLD", "old", 1), 0);
    static const char *const added[] = {"NEOSET_TEST_OLD=new", "NEOSET_TEST_MORE=more", NULL};
    run_shell(&scene,
              "cat; echo \"$NEOSET_TEST_KEPT $NEOSET_TEST_OLD $NEOSET_TEST_MORE\"; echo oops >&2; exit 3",
              (struct child_spec){.input = "in\n", .environment = added});
    assert_int_equal(scene.done_count, 1);
    assert_int_equal(scene.exit_code, 3);
    assert_string_equal(scene.output, "in\nkept new more\n");
    assert_string_equal(scene.errors, "oops\n");
    assert_null(scene.problem);
    forget(&scene);
}

static void a_large_input_does_not_block(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct child_scene scene = {.env = env};
    size_t length = 1 << 20;
    CLEANUP_FREE char *input = xmalloc(length + 1);
    memset(input, 'i', length);
    input[length] = '\0';
    run_shell(&scene, "cat", (struct child_spec){.input = input, .output_max = 2 << 20});
    assert_int_equal(scene.exit_code, 0);
    assert_int_equal(scene.output_length, length);
    forget(&scene);
    /* And one that never reads it. */
    run_shell(&scene, "exit 0", (struct child_spec){.input = input});
    assert_int_equal(scene.exit_code, 0);
    forget(&scene);
}

static void a_child_that_cannot_be_started_says_so(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct child_scene scene = {.env = env};
    const char *const argv[] = {"no-such-program-here", NULL};
    struct child_spec spec = {.argv = argv, .output_max = 10, .timeout_us = US_PER_S};
    scene.child = env_child_start(env, &spec, child_done, &scene);
    assert_int_equal(scene.done_count, 0); /* never inside the call that started it */
    env_run(env);
    assert_int_equal(scene.exit_code, -1);
    assert_non_null(strstr(scene.problem, "no-such-program-here could not be started"));
    forget(&scene);
}

static void time_and_output_are_bounded(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    static const struct {
        const char *script;
        const char *words;
    } rows[] = {
        {"sleep 100", "did not finish within 0.2 s"},
        {"trap '' TERM INT; sleep 100", "did not finish within 0.2 s"},
        {"sleep 100 & sleep 100", "did not finish within 0.2 s"},
        {"while :; do echo more and more and more; done", "wrote more than 1000 bytes"},
        {"while :; do echo more and more and more >&2; done", "wrote more than 1000 bytes"},
        {"kill -9 $$", "ended by signal 9"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct child_scene scene = {.env = env};
        int64_t timeout_us = i < 3 ? 200000 : 20 * US_PER_S;
        run_shell(&scene, rows[i].script, (struct child_spec){.output_max = 1000, .timeout_us = timeout_us});
        assert_int_equal(scene.exit_code, -1);
        assert_non_null(strstr(scene.problem, rows[i].words));
        forget(&scene);
    }
}

/* Dead counts, whether or not somebody has asked for its exit code yet. */
static bool is_gone(pid_t pid)
{
    CLEANUP_FREE char *path = xasprintf("/proc/%d/stat", (int)pid);
    for (int i = 0; i < 1000; i++) {
        CLEANUP_BUF struct buf text = BUF_INIT(4096);
        int result = real_read_file(NULL, path, &text, NULL);
        const char *name_end = result == 0 ? strrchr(buf_text(&text), ')') : NULL;
        if (!name_end || name_end[2] == 'Z' || name_end[2] == 'X')
            return true;
        usleep(10000);
    }
    return false;
}

static void what_a_child_leaves_behind_is_killed(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct child_scene scene = {.env = env};
    run_shell(&scene, "sleep 100 & echo $!", (struct child_spec){0});
    assert_int_equal(scene.exit_code, 0);
    pid_t pid = (pid_t)atoi(scene.output);
    assert_true(pid > 1);
    assert_true(is_gone(pid));
    forget(&scene);
}

static void a_cancelled_child_is_killed_without_a_word(void **state)
{
    (void)state;
    struct env *env = env_real_make();
    struct child_scene scene = {.env = env};
    const char *const argv[] = {"sleep", "100", NULL};
    struct child_spec spec = {.argv = argv, .output_max = 10, .timeout_us = 100 * US_PER_S};
    scene.child = env_child_start(env, &spec, child_done, &scene);
    env_child_cancel(env, &scene.child);
    scene.child = env_child_start(env, &spec, child_done, &scene);
    struct child_scene other = {.env = env, .cancel_inside = true};
    run_shell(&other, "exit 0", (struct child_spec){0});
    assert_int_equal(other.done_count, 1);
    forget(&other);
    env_free(env); /* with one under way */
    assert_int_equal(scene.done_count, 0);
}

static void a_child_inherits_no_descriptor(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct child_scene scene = {.env = env};
    CLEANUP_CLOSE int fd = open("/dev/null", O_RDONLY); /* without O_CLOEXEC, as some library might */
    assert_true(fd > 2);
    CLEANUP_FREE char *script = xasprintf("test -e /proc/self/fd/%d && echo open; true", fd);
    run_shell(&scene, script, (struct child_spec){0});
    assert_string_equal(scene.output, "");
    forget(&scene);
}

/* --- files, variables, signals --- */

static void files_are_read_within_their_bound(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    char folder[] = "/tmp/neoset-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    CLEANUP_FREE char *path = xasprintf("%s/file", folder);
    CLEANUP_BUF struct buf content = BUF_INIT(5);
    CLEANUP_ERROR struct error *err = NULL;
    assert_int_equal(env_read_file(env, path, &content, &err), -ERROR_NOT_FOUND);
    assert_non_null(strstr(err->text, path));
    assert_int_equal(env_write_file(env, path, 0600, "first", 5, NULL), 0);
    assert_int_equal(env_write_file(env, path, 0640,
                                    "12\0"
                                    "45",
                                    5, NULL),
                     0);
    assert_int_equal(env_read_file(env, path, &content, NULL), 0);
    assert_int_equal(content.length, 5);
    assert_memory_equal(content.data,
                        "12\0"
                        "45",
                        5);
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 07777, 0640);
    assert_int_equal(env_write_file(env, path, 0600, "123456", 6, NULL), 0);
    buf_clear(&content);
    assert_int_equal(env_read_file(env, path, &content, NULL), -ERROR_TOO_LARGE);
    assert_true(env_read_file(env, folder, &content, NULL) < 0);
    /* Nothing else is left in the folder. */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void a_file_that_cannot_be_written_is_left_alone(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    char folder[] = "/tmp/neoset-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    CLEANUP_ERROR struct error *err = NULL;
    /* The target is a folder: the rename fails, and the temporary file goes away. */
    CLEANUP_FREE char *path = xasprintf("%s/target", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(env_write_file(env, path, 0600, "x", 1, &err) < 0);
    assert_non_null(strstr(err->text, path));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(env_write_file(env, path, 0600, "x", 1, NULL), -ERROR_NOT_FOUND);
}

static void an_empty_variable_is_none(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    assert_int_equal(setenv("NEOSET_TEST_SET", "value", 1), 0);
    assert_int_equal(setenv("NEOSET_TEST_EMPTY", "", 1), 0);
    assert_string_equal(env_variable(env, "NEOSET_TEST_SET"), "value");
    assert_null(env_variable(env, "NEOSET_TEST_EMPTY"));
    assert_null(env_variable(env, "NEOSET_TEST_UNSET"));
}

static void on_stop(void *context)
{
    log_mark(context, "s");
    struct scene *scene = context;
    if (scene->left > 0)
        raise(SIGINT);
}

static void stop_signals_are_told_each_time(void **state)
{
    (void)state;
    CLEANUP_ENV struct env *env = env_real_make();
    struct scene scene = {.env = env, .left = 2};
    env_on_stop_signal(env, on_stop, &scene);
    raise(SIGTERM);
    env_run(env);
    assert_string_equal(scene.log, "ss");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_tell_the_time),
        cmocka_unit_test(timers_fire_in_order_and_never_early),
        cmocka_unit_test(a_cancelled_timer_does_not_fire),
        cmocka_unit_test(a_chain_of_immediate_timers_does_not_starve_the_loop),
        cmocka_unit_test(the_loop_can_be_stopped_and_run_again),
        cmocka_unit_test(jobs_run_in_order_on_one_other_thread),
        cmocka_unit_test(a_blocked_job_does_not_hold_up_the_loop),
        cmocka_unit_test(the_end_drops_what_was_not_done),
        cmocka_unit_test(the_end_waits_for_the_running_job),
        cmocka_unit_test(a_child_gets_its_input_and_hands_back_what_it_wrote),
        cmocka_unit_test(a_large_input_does_not_block),
        cmocka_unit_test(a_child_that_cannot_be_started_says_so),
        cmocka_unit_test(time_and_output_are_bounded),
        cmocka_unit_test(what_a_child_leaves_behind_is_killed),
        cmocka_unit_test(a_cancelled_child_is_killed_without_a_word),
        cmocka_unit_test(a_child_inherits_no_descriptor),
        cmocka_unit_test(files_are_read_within_their_bound),
        cmocka_unit_test(a_file_that_cannot_be_written_is_left_alone),
        cmocka_unit_test(an_empty_variable_is_none),
        cmocka_unit_test(stop_signals_are_told_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
