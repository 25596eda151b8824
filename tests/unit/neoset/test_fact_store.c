/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts that the controller keeps: the newest version wins, whoever brings it; what a full list does not
 * show is gone; whose facts changed is told. */
#include "neoset/fact_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct scene {
    struct fact_store *store;
    char changed[256]; /* keys of groups, in the order told */
    int dropped;
};

static void changed(void *context, struct set_group *group)
{
    struct scene *scene = context;
    size_t length = strlen(scene->changed);
    snprintf(scene->changed + length, sizeof(scene->changed) - length, "%s ", group->key);
}

static void dropped(void *context, struct set_group *group)
{
    struct scene *scene = context;
    assert_null(group->turn);
    scene->dropped++;
}

static int setup(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    scene->store = fact_store_make(changed, dropped, scene);
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    fact_store_free(scene->store);
    free(scene);
    return 0;
}

static void assert_changed(struct scene *scene, const char *wanted)
{
    assert_string_equal(scene->changed, wanted);
    scene->changed[0] = '\0';
}

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    if (json_parse(text, strlen(text), &tree, NULL) < 0)
        fail_msg("not JSON: %s", text);
    return tree;
}

static void take(struct scene *scene, enum kube_resource resource, const char *text, uint32_t mark)
{
    CLEANUP_JSON cJSON *object = parse(text);
    fact_store_take(scene->store, resource, object, mark, 1000, 1000);
}

static void answer(struct scene *scene, enum kube_resource resource, const char *text,
                   const char *watch_version)
{
    cJSON *object = NULL;
    assert_int_equal(json_parse(text, strlen(text), &object, NULL), 0);
    fact_store_take_answer(scene->store, resource, object, watch_version, 0, 0);
    json_delete(object);
}

static void drop(struct scene *scene, enum kube_resource resource, const char *text)
{
    CLEANUP_JSON cJSON *object = parse(text);
    fact_store_drop(scene->store, resource, object);
}

#define META(name, uid, version, more)                                                                       \
    "{\"metadata\":{\"namespace\":\"db\",\"name\":\"" name "\",\"uid\":\"" uid                               \
    "\",\"resourceVersion\":\"" version "\"" more "}"
#define POD(name, uid, version) META(name, uid, version, "") "}"
#define PREFETCH(uid, version)                                                                               \
    META("mysql-prefetch-bcdfghjklm", uid, version, ",\"labels\":{\"apps.neo.io/prefetch-for\":\"mysql\"}")  \
    "}"
#define SET(uid, version)                                                                                    \
    META("mysql", uid, version, "")                                                                          \
    ",\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"mysql\"}},\"template\":{\"metadata\":{\"labels\":{" \
    "\"app\":"                                                                                               \
    "\"mysql\"}},\"spec\":{\"containers\":[{\"name\":\"mysql\",\"image\":\"a\"}]}}}}"
#define REVISION(name, version, kind, owner)                                                                 \
    META(name, "r", version,                                                                                 \
         ",\"ownerReferences\":[{\"apiVersion\":\"apps.neo.io/v1alpha1\",\"kind\":\"" kind                   \
         "\",\"name\":\"mysql\",\"uid\":\"" owner "\",\"controller\":true}]")                                \
    ",\"revision\":1,\"data\":{}}"

static const struct pod_fact *pod(const struct scene *scene, int ordinal)
{
    const struct set_group *group = fact_store_find_group(scene->store, "db", "mysql");
    for (size_t i = 0; group && i < group->pod_count; i++)
        if (group->pods[i].fact->ordinal == ordinal)
            return group->pods[i].fact;
    return NULL;
}

static void an_older_version_never_replaces_a_newer_one(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_POD, POD("mysql-4", "u1", "99"), 1);
    /* The answer to a write, then what the watch still had to say. */
    take(scene, KUBE_POD, POD("mysql-4", "u1", "101"), 1);
    take(scene, KUBE_POD, POD("mysql-4", "u1", "100"), 1);
    assert_string_equal(pod(scene, 4)->version, "101");
    take(scene, KUBE_POD, POD("mysql-4", "u1", "1000"), 1);
    assert_string_equal(pod(scene, 4)->version, "1000");
    take(scene, KUBE_NEOSET, SET("s", "10"), 1);
    take(scene, KUBE_NEOSET, SET("s", "9"), 1);
    assert_string_equal(fact_store_find_group(scene->store, "db", "mysql")->set->version, "10");
}

static void another_pod_of_the_name_replaces_the_one_before(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_NEOSET, SET("s", "1"), 1);
    take(scene, KUBE_POD, POD("mysql-4", "u1", "10"), 1);
    take(scene, KUBE_POD, POD("mysql-4", "u2", "12"), 1);
    assert_string_equal(pod(scene, 4)->uid, "u2");
    /* The end of the first one is not the end of the second. */
    drop(scene, KUBE_POD, POD("mysql-4", "u1", "11"));
    assert_non_null(pod(scene, 4));
    drop(scene, KUBE_POD, POD("mysql-4", "u2", "13"));
    assert_null(pod(scene, 4));
}

static void what_an_answer_says_is_gone_does_not_come_back_by_a_late_line(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_NEOSET, SET("s", "1"), 1);
    take(scene, KUBE_POD, POD("mysql-4", "u1", "10"), 1);
    fact_store_drop_name(scene->store, KUBE_POD, "db", "mysql-4", "10");
    take(scene, KUBE_POD, POD("mysql-4", "u1", "11"), 1);
    assert_null(pod(scene, 4));
    take(scene, KUBE_POD, POD("mysql-4", "u2", "12"), 1);
    assert_non_null(pod(scene, 4));
}

static bool knows(const struct scene *scene, enum kube_resource resource, const char *text)
{
    CLEANUP_JSON cJSON *object = parse(text);
    bool knows = fact_store_knows(scene->store, resource, object);
    /* The guess never says no to what is known from an answer. */
    assert_true(!knows || fact_store_may_know(scene->store,
                                              json_path_str(object, "metadata", "resourceVersion", NULL)));
    return knows;
}

static void what_an_answer_brought_is_known_by_its_metadata(void **state)
{
    struct scene *scene = *state;
    assert_false(fact_store_may_know(scene->store, "11"));
    answer(scene, KUBE_POD, POD("mysql-4", "u1", "11"), "10");
    answer(scene, KUBE_NEOSET, SET("s", "12"), "10");
    assert_true(knows(scene, KUBE_POD, POD("mysql-4", "u1", "11")));
    assert_true(knows(scene, KUBE_NEOSET, META("mysql", "s", "12", "") "}"));
    static const struct {
        enum kube_resource resource;
        const char *text;
    } news[] = {
        {KUBE_POD, POD("mysql-4", "u1", "13")},          {KUBE_POD, POD("mysql-4", "u2", "11")},
        {KUBE_POD, POD("mysql-5", "u1", "11")},          {KUBE_POD, POD("mysql", "u1", "11")},
        {KUBE_NEOSET, META("mysql", "t", "12", "") "}"}, {KUBE_NEOSET, META("other", "s", "12", "") "}"},
        {KUBE_CLAIM, META("mysql", "s", "12", "") "}"},  {KUBE_NEOSET, "{}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(news); i++)
        assert_false(knows(scene, news[i].resource, news[i].text));
}

/* The stream has told of the end of the object before the answer to a write came. */
static void an_answer_that_the_watch_has_passed_brings_nothing_back(void **state)
{
    struct scene *scene = *state;
    static const struct {
        enum kube_resource resource;
        const char *text;
    } objects[] = {
        {KUBE_POD, POD("mysql-4", "u1", "10")},
        {KUBE_NEOSET, SET("s", "10")},
    };
    for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
        take(scene, objects[i].resource, objects[i].text, 1);
        drop(scene, objects[i].resource, objects[i].text);
        answer(scene, objects[i].resource, objects[i].text, "12");
        answer(scene, objects[i].resource, objects[i].text, "10");
    }
    assert_null(pod(scene, 4));
    const struct set_group *group = fact_store_find_group(scene->store, "db", "mysql");
    assert_true(!group || !group->set);
    /* What the watch has not come to is new. */
    answer(scene, KUBE_POD, POD("mysql-4", "u2", "13"), "12");
    assert_string_equal(pod(scene, 4)->uid, "u2");
}

static void a_list_does_not_judge_what_is_newer_than_it(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_NEOSET, SET("s", "1"), 1);
    answer(scene, KUBE_POD, POD("mysql-3", "u3", "9"), NULL);
    answer(scene, KUBE_POD, POD("mysql-4", "u4", "11"), NULL);
    fact_store_sweep(scene->store, KUBE_POD, 2, "10");
    assert_null(pod(scene, 3));
    assert_string_equal(pod(scene, 4)->uid, "u4");
}

/* The watch was faster than the answer to the delete, which shows the pod's last state. */
static void what_the_watch_says_is_gone_does_not_come_back_by_a_late_answer(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_NEOSET, SET("s", "1"), 1);
    take(scene, KUBE_POD, POD("mysql-4", "u1", "10"), 1);
    take(scene, KUBE_POD, PREFETCH("u2", "11"), 1);
    assert_int_equal(fact_store_find_group(scene->store, "db", "mysql")->prefetch_count, 1);
    drop(scene, KUBE_POD, POD("mysql-4", "u1", "12"));
    drop(scene, KUBE_POD, PREFETCH("u2", "13"));
    take(scene, KUBE_POD, POD("mysql-4", "u1", "11"), 1);
    take(scene, KUBE_POD, PREFETCH("u2", "12"), 1);
    assert_null(pod(scene, 4));
    assert_int_equal(fact_store_find_group(scene->store, "db", "mysql")->prefetch_count, 0);
}

static void pods_that_fetch_are_kept_beside_the_pods_of_the_set(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_POD, PREFETCH("u2", "11"), 1);
    const struct set_group *group = fact_store_find_group(scene->store, "db", "mysql");
    assert_int_equal(group->prefetch_count, 1);
    assert_int_equal(group->pod_count, 0);
    take(scene, KUBE_POD, PREFETCH("u2", "10"), 1);
    assert_string_equal(group->prefetches[0].fact->version, "11");
    /* Without our label it is somebody else's, whatever its name. */
    take(scene, KUBE_POD, POD("mysql-prefetch-zzzzzzzzzz", "u3", "12"), 1);
    assert_int_equal(group->prefetch_count, 1);
    assert_changed(scene, "db/mysql ");
    fact_store_sweep(scene->store, KUBE_POD, 2, "15");
    assert_null(fact_store_find_group(scene->store, "db", "mysql"));
    assert_int_equal(scene->dropped, 1);
    take(scene, KUBE_POD, PREFETCH("u4", "20"), 2);
    fact_store_drop_name(scene->store, KUBE_POD, "db", "mysql-prefetch-bcdfghjklm", "20");
    assert_null(fact_store_find_group(scene->store, "db", "mysql"));
}

/* It was made while the answer was on its way; the watch has told of it already and will not again. */
static void an_answer_that_nothing_is_there_takes_nothing_that_came_since(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_NEOSET, SET("s", "1"), 1);
    assert_null(fact_store_version(scene->store, KUBE_POD, "db", "mysql-4"));
    take(scene, KUBE_POD, POD("mysql-4", "u1", "10"), 1);
    fact_store_drop_name(scene->store, KUBE_POD, "db", "mysql-4", NULL);
    assert_non_null(pod(scene, 4));
    assert_string_equal(fact_store_version(scene->store, KUBE_POD, "db", "mysql-4"), "10");
    fact_store_drop_name(scene->store, KUBE_POD, "db", "mysql-4", "9");
    assert_non_null(pod(scene, 4));
    fact_store_drop_name(scene->store, KUBE_POD, "db", "mysql-4", "10");
    assert_null(pod(scene, 4));
}

static void pods_are_kept_in_order_by_name_whoever_owns_them(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_POD, POD("mysql-10", "a", "1"), 1);
    take(scene, KUBE_POD, POD("mysql-2", "b", "2"), 1);
    take(scene, KUBE_POD, POD("mysql-0", "c", "3"), 1);
    take(scene, KUBE_POD, POD("mysql-01", "d", "4"), 1); /* no ordinal */
    take(scene, KUBE_POD, POD("mysql", "e", "5"), 1);
    take(scene, KUBE_POD, POD("my-sql-3", "f", "6"), 1); /* another set's */
    const struct set_group *group = fact_store_find_group(scene->store, "db", "mysql");
    assert_int_equal(group->pod_count, 3);
    assert_int_equal(group->pods[0].fact->ordinal, 0);
    assert_int_equal(group->pods[1].fact->ordinal, 2);
    assert_int_equal(group->pods[2].fact->ordinal, 10);
    assert_int_equal(scene->store->pod_count, 4);
}

static void what_a_full_list_does_not_show_is_gone(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_NEOSET, SET("s", "1"), 1);
    take(scene, KUBE_POD, POD("mysql-0", "a", "1"), 1);
    take(scene, KUBE_POD, POD("mysql-1", "b", "2"), 1);
    take(scene, KUBE_POD, POD("other-0", "c", "3"), 1);
    /* The next list: one is unchanged, and one came by an answer in between. */
    take(scene, KUBE_POD, POD("mysql-0", "a", "1"), 2);
    take(scene, KUBE_POD, POD("mysql-2", "d", "9"), 2);
    fact_store_sweep(scene->store, KUBE_POD, 2, NULL);
    assert_non_null(pod(scene, 0));
    assert_null(pod(scene, 1));
    assert_non_null(pod(scene, 2));
    assert_null(fact_store_find_group(scene->store, "db", "other"));
    assert_int_equal(scene->dropped, 1);
    fact_store_sweep(scene->store, KUBE_NEOSET, 2, NULL);
    assert_null(fact_store_find_group(scene->store, "db", "mysql")->set);
    assert_int_equal(scene->store->set_count, 0);
}

static void revisions_belong_to_the_uid_that_controls_them(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_NEOSET, SET("s1", "1"), 1);
    take(scene, KUBE_REVISION, REVISION("mysql-a", "1", "NeoSet", "s1"), 1);
    take(scene, KUBE_REVISION, REVISION("mysql-b", "2", "NeoSet", "s1"), 1);
    take(scene, KUBE_REVISION, REVISION("web-c", "3", "StatefulSet", "s1"), 1);
    assert_int_equal(fact_store_find_revisions(scene->store, "s1")->count, 2);
    /* A set of the same name, born anew. */
    take(scene, KUBE_REVISION, REVISION("mysql-b", "4", "NeoSet", "s2"), 1);
    assert_int_equal(fact_store_find_revisions(scene->store, "s1")->count, 1);
    assert_int_equal(fact_store_find_revisions(scene->store, "s2")->count, 1);
    drop(scene, KUBE_REVISION, META("mysql-a", "r", "5", "") "}");
    assert_null(fact_store_find_revisions(scene->store, "s1"));
    fact_store_sweep(scene->store, KUBE_REVISION, 2, NULL);
    assert_null(fact_store_find_revisions(scene->store, "s2"));
}

static void who_is_concerned_is_told(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_NEOSET, SET("s", "1"), 1);
    assert_changed(scene, "db/mysql ");
    take(scene, KUBE_POD, POD("mysql-0", "a", "2"), 1);
    assert_changed(scene, "db/mysql ");
    take(scene, KUBE_POD, POD("mysql-0", "a", "1"), 1);
    assert_changed(scene, "");
    take(scene, KUBE_CLAIM, META("data-mysql-0", "c", "3", "") ",\"spec\":{}}", 1);
    assert_changed(scene, "db/mysql ");
    assert_non_null(fact_store_find_claim(scene->store, "db", "data-mysql-0"));
    take(scene, KUBE_CLAIM, META("data-other-0", "c", "3", "") ",\"spec\":{}}", 1);
    assert_changed(scene, "");
    take(scene, KUBE_REVISION, REVISION("mysql-a", "4", "NeoSet", "s"), 1);
    assert_changed(scene, "db/mysql ");
    drop(scene, KUBE_CLAIM, META("data-mysql-0", "c", "5", "") "}");
    assert_changed(scene, "db/mysql ");
    assert_null(fact_store_find_claim(scene->store, "db", "data-mysql-0"));
    drop(scene, KUBE_NEOSET, SET("another", "9"));
    assert_changed(scene, "");
    drop(scene, KUBE_NEOSET, SET("s", "9"));
    assert_changed(scene, "db/mysql ");
}

static size_t claims_of(const struct scene *scene, const char *set)
{
    const struct claimant_slot *claimant = fact_store_find_claims(scene->store, "db", set);
    return claimant ? claimant->count : 0;
}

/* By its name a claim may be of several sets; also of one that is not there yet. */
static void claims_are_found_by_each_set_that_may_have_named_them(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_CLAIM, META("data-my-sql-0", "a", "1", "") "}", 1);
    take(scene, KUBE_CLAIM, META("data-sql-7", "b", "2", "") "}", 1);
    take(scene, KUBE_CLAIM, META("backup", "c", "3", "") "}", 1);
    assert_int_equal(claims_of(scene, "my-sql"), 1);
    assert_int_equal(claims_of(scene, "sql"), 2);
    assert_int_equal(claims_of(scene, "data"), 0);
    take(scene, KUBE_CLAIM, META("data-sql-7", "b", "4", "") "}", 1);
    assert_int_equal(claims_of(scene, "sql"), 2);
    drop(scene, KUBE_CLAIM, META("data-my-sql-0", "a", "5", "") "}");
    assert_int_equal(claims_of(scene, "my-sql"), 0);
    assert_int_equal(claims_of(scene, "sql"), 1);
    fact_store_sweep(scene->store, KUBE_CLAIM, 2, NULL);
    assert_int_equal(claims_of(scene, "sql"), 0);
}

#define SEEN(generation, version, image, phase)                                                              \
    META("mysql", "s", version, ",\"generation\":" generation)                                               \
    ",\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"mysql\"}},\"template\":{\"metadata\":{\"labels\":{" \
    "\"app\":\"mysql\"}},\"spec\":{\"containers\":[{\"name\":\"mysql\",\"image\":\"" image                   \
    "\"}]}}},\"status\":{\"phase\":\"" phase "\",\"updateRevisionName\":\"" phase "\"}}"

/* The answer to our own write, then the same state by the watch. */
static void a_state_that_is_known_is_no_news(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_NEOSET, SET("s", "1"), 1);
    take(scene, KUBE_POD, POD("mysql-0", "a", "2"), 1);
    take(scene, KUBE_POD, PREFETCH("p", "3"), 1);
    take(scene, KUBE_CLAIM, META("data-mysql-0", "c", "4", "") ",\"spec\":{}}", 1);
    take(scene, KUBE_REVISION, REVISION("mysql-a", "5", "NeoSet", "s"), 1);
    assert_changed(scene, "db/mysql db/mysql db/mysql db/mysql db/mysql ");
    take(scene, KUBE_NEOSET, SET("s", "1"), 2);
    take(scene, KUBE_POD, POD("mysql-0", "a", "2"), 2);
    take(scene, KUBE_POD, PREFETCH("p", "3"), 2);
    take(scene, KUBE_CLAIM, META("data-mysql-0", "c", "4", "") ",\"spec\":{}}", 2);
    take(scene, KUBE_REVISION, REVISION("mysql-a", "5", "NeoSet", "s"), 2);
    assert_changed(scene, "");
    /* But it was seen: a list that shows it keeps it. */
    static const enum kube_resource resources[] = {KUBE_NEOSET, KUBE_POD, KUBE_CLAIM, KUBE_REVISION};
    for (size_t i = 0; i < ARRAY_SIZE(resources); i++)
        fact_store_sweep(scene->store, resources[i], 2, "9");
    const struct set_group *group = fact_store_find_group(scene->store, "db", "mysql");
    assert_non_null(group->set);
    assert_int_equal(group->pod_count + group->prefetch_count, 2);
    assert_non_null(fact_store_find_claim(scene->store, "db", "data-mysql-0"));
    assert_non_null(fact_store_find_revisions(scene->store, "s"));
    /* Another object is another state, whatever its version says; so is one that says none. */
    take(scene, KUBE_POD, POD("mysql-0", "b", "2"), 2);
    assert_string_equal(pod(scene, 0)->uid, "b");
    assert_changed(scene, "db/mysql ");
    for (int i = 0; i < 2; i++)
        take(scene, KUBE_POD, "{\"metadata\":{\"namespace\":\"db\",\"name\":\"mysql-0\",\"uid\":\"b\"}}", 2);
    assert_changed(scene, "db/mysql db/mysql ");
}

/* What follows from the spec is worked out once a generation. */
static void only_a_new_generation_brings_another_spec(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_NEOSET, SEEN("1", "1", "a", "Idle"), 1);
    const struct set_group *group = fact_store_find_group(scene->store, "db", "mysql");
    const char *spec = group->set->template_text;
    take(scene, KUBE_NEOSET, SEEN("1", "2", "a", "Paused"), 1);
    assert_ptr_equal(group->set->template_text, spec);
    assert_string_equal(group->set->version, "2");
    assert_string_equal(group->set->described, "{\"phase\":\"Paused\"}");
    assert_string_equal(group->set->deciding.target, "Paused");
    assert_changed(scene, "db/mysql db/mysql ");
    take(scene, KUBE_NEOSET, SEEN("2", "3", "b", "Paused"), 1);
    assert_string_equal(group->set->first_image, "b");
    assert_int_equal(group->set->generation, 2);
}

/* A backup was restored: what is older by its version is what there is. */
static void what_is_forgotten_may_come_back_older(void **state)
{
    struct scene *scene = *state;
    take(scene, KUBE_NEOSET, SET("s", "20"), 1);
    take(scene, KUBE_POD, POD("mysql-0", "a", "21"), 1);
    take(scene, KUBE_POD, POD("mysql-1", "b", "22"), 1);
    take(scene, KUBE_POD, PREFETCH("p", "23"), 1);
    take(scene, KUBE_POD, POD("other-0", "o", "23"), 1);
    drop(scene, KUBE_POD, POD("mysql-1", "b", "24"));
    take(scene, KUBE_REVISION, REVISION("mysql-a", "25", "NeoSet", "s"), 1);
    drop(scene, KUBE_REVISION, META("mysql-a", "r", "26", "") "}");
    take(scene, KUBE_CLAIM, META("data-mysql-0", "c", "27", "") ",\"spec\":{}}", 1);
    struct set_group *group = fact_store_find_group(scene->store, "db", "mysql");
    assert_non_null(group->lost[0]);
    static const enum kube_resource resources[] = {KUBE_POD, KUBE_REVISION, KUBE_CLAIM};
    for (size_t i = 0; i < ARRAY_SIZE(resources); i++)
        fact_store_forget(scene->store, resources[i]);
    assert_int_equal(group->pod_count + group->prefetch_count, 0);
    assert_null(group->lost[0]);
    assert_null(fact_store_find_claim(scene->store, "db", "data-mysql-0"));
    assert_null(fact_store_find_group(scene->store, "db", "other"));
    take(scene, KUBE_POD, POD("mysql-0", "a", "11"), 2);
    take(scene, KUBE_POD, POD("mysql-1", "b", "12"), 2);
    assert_string_equal(pod(scene, 0)->version, "11");
    assert_string_equal(pod(scene, 1)->version, "12");
    assert_string_equal(group->set->version, "20");
    fact_store_forget(scene->store, KUBE_NEOSET);
    assert_null(group->set);
    take(scene, KUBE_NEOSET, SET("s", "10"), 2);
    assert_string_equal(group->set->version, "10");
    assert_int_equal(scene->store->set_count, 1);
}

static void objects_without_a_name_are_left_out(void **state)
{
    struct scene *scene = *state;
    static const char *const texts[] = {"{}", "{\"metadata\":null}", "{\"metadata\":{\"name\":\"\"}}",
                                        "{\"metadata\":{\"name\":7}}"};
    static const enum kube_resource resources[] = {KUBE_NEOSET, KUBE_POD, KUBE_CLAIM, KUBE_REVISION};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(resources); k++) {
            take(scene, resources[k], texts[i], 1);
            drop(scene, resources[k], texts[i]);
        }
    }
    assert_int_equal(scene->store->set_count, 0);
    assert_int_equal(scene->store->pod_count, 0);
}

#define scene_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene_test(an_older_version_never_replaces_a_newer_one),
        scene_test(another_pod_of_the_name_replaces_the_one_before),
        scene_test(what_an_answer_says_is_gone_does_not_come_back_by_a_late_line),
        scene_test(what_the_watch_says_is_gone_does_not_come_back_by_a_late_answer),
        scene_test(pods_that_fetch_are_kept_beside_the_pods_of_the_set),
        scene_test(an_answer_that_nothing_is_there_takes_nothing_that_came_since),
        scene_test(pods_are_kept_in_order_by_name_whoever_owns_them),
        scene_test(an_answer_that_the_watch_has_passed_brings_nothing_back),
        scene_test(a_list_does_not_judge_what_is_newer_than_it),
        scene_test(what_a_full_list_does_not_show_is_gone),
        scene_test(revisions_belong_to_the_uid_that_controls_them),
        scene_test(who_is_concerned_is_told),
        scene_test(claims_are_found_by_each_set_that_may_have_named_them),
        scene_test(a_state_that_is_known_is_no_news),
        scene_test(what_an_answer_brought_is_known_by_its_metadata),
        scene_test(only_a_new_generation_brings_another_spec),
        scene_test(what_is_forgotten_may_come_back_older),
        scene_test(objects_without_a_name_are_left_out),
    };
    return cmocka_run_group_tests_name("the controller's facts", tests, NULL, NULL);
}
