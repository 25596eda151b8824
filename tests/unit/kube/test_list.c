/* SPDX-License-Identifier: Apache-2.0
 *
 * A collection read once, in chunks: whole, or not at all. */
#include "kube/list.h"

#include "base/time_text.h"
#include "env_sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* A server whose list has so many chunks of one object each. */
struct scene {
    struct env *env;
    struct kube_client *client;
    int chunks;
    int asked;
    int fails_at;   /* this chunk is refused; 0: none */
    int fails_with; /* 0: 500 */
    int expires;    /* so many times the second chunk is not remembered any more */
    int chunk;      /* of the list that is being read */
    /* What the owner was told: */
    int done;
    int count; /* of items; -1: none */
    char problem[128];
};

static void on_request(void *context, struct env_sim_call *call)
{
    struct scene *scene = context;
    scene->asked++;
    scene->chunk = strstr(call->path, "continue=") ? scene->chunk + 1 : 1;
    if (scene->chunk == 2 && scene->expires > 0) {
        scene->expires--;
        static const char gone[] =
            "{\"kind\":\"Status\",\"reason\":\"Expired\",\"message\":\"too old\",\"code\":410}";
        env_sim_http_begin(call, 410, NULL, 0);
        env_sim_http_data(call, gone, strlen(gone));
        env_sim_http_end(call);
        return;
    }
    bool is_last = scene->chunk >= scene->chunks || !strstr(call->path, "limit=");
    CLEANUP_FREE char *text = xasprintf(
        "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"%s\"},\"items\":"
        "[{\"metadata\":{\"name\":\"p%d\"}}]}",
        is_last ? "" : "next", scene->chunk);
    bool fails = scene->asked == scene->fails_at;
    int status = scene->fails_with ? scene->fails_with : 500;
    env_sim_http_begin(call, fails ? status : 200, NULL, 0);
    if (!fails)
        env_sim_http_data(call, text, strlen(text));
    env_sim_http_end(call);
}

static void on_done(void *context, cJSON *items, const struct kube_answer *answer)
{
    struct scene *scene = context;
    scene->done++;
    scene->count = items ? cJSON_GetArraySize(items) : -1;
    snprintf(scene->problem, sizeof(scene->problem), "%s", answer->message ? answer->message : "");
    json_delete(items);
}

static void read_list(struct scene *scene)
{
    static const struct env_sim_http_ops ops = {.request = on_request};
    scene->env = env_sim_make(5);
    env_sim_http(scene->env, &ops, scene);
    scene->client = kube_client_make(scene->env, kube_config_of_url("http://api"));
    kube_list_start(scene->client, KUBE_POD, "db", NULL, 10 * US_PER_S, on_done, scene);
    env_sim_run_for(scene->env, 600 * US_PER_S);
    kube_client_free(scene->client);
    env_free(scene->env);
    assert_int_equal(scene->done, 1);
}

static void chunks_are_put_together(void **state)
{
    (void)state;
    struct scene scene = {.chunks = 3};
    read_list(&scene);
    assert_int_equal(scene.count, 3);
    assert_int_equal(scene.asked, 3);
}

static void a_chunk_that_fails_fails_the_list(void **state)
{
    (void)state;
    struct scene scene = {.chunks = 3, .fails_at = 2};
    read_list(&scene);
    assert_int_equal(scene.count, -1);
}

static void a_list_that_is_forgotten_in_the_middle_is_begun_anew(void **state)
{
    (void)state;
    struct scene scene = {.chunks = 3, .expires = 1};
    read_list(&scene);
    assert_int_equal(scene.count, 3); /* and no object twice */
    assert_int_equal(scene.asked, 2 + 3);
}

/* In the end in one piece: here of one object. */
static void a_list_that_is_always_forgotten_is_asked_for_in_one_piece(void **state)
{
    (void)state;
    struct scene scene = {.chunks = 3, .expires = INT32_MAX};
    read_list(&scene);
    assert_int_equal(scene.count, 1);
    assert_in_range(scene.asked, 5, 10);
}

static void a_first_chunk_is_never_forgotten(void **state)
{
    (void)state;
    struct scene scene = {.chunks = 3, .fails_at = 1, .fails_with = 410};
    read_list(&scene);
    assert_int_equal(scene.count, -1);
    assert_int_equal(scene.asked, 1);
}

static void a_list_without_an_end_is_not_taken_for_a_whole_one(void **state)
{
    (void)state;
    struct scene scene = {.chunks = INT32_MAX};
    read_list(&scene);
    assert_int_equal(scene.count, -1);
    assert_string_equal(scene.problem, "the list has no end");
    assert_in_range(scene.asked, 1000, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_put_together),
        cmocka_unit_test(a_chunk_that_fails_fails_the_list),
        cmocka_unit_test(a_list_that_is_forgotten_in_the_middle_is_begun_anew),
        cmocka_unit_test(a_list_that_is_always_forgotten_is_asked_for_in_one_piece),
        cmocka_unit_test(a_first_chunk_is_never_forgotten),
        cmocka_unit_test(a_list_without_an_end_is_not_taken_for_a_whole_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
