/* SPDX-License-Identifier: Apache-2.0
 *
 * A pod that carries a revision's name is what a fresh pod of that revision would be (13). */
#include "judge_parts.h"
#include "strangers.h"

static void expect_text(struct judge *judge, const char *pod, const char *revision, const char *what,
                        const char *is, const char *should)
{
    if (!str_equal(is ? is : "", should ? should : ""))
        judge_break(judge, 13, "%s carries %s, and %s is '%s' instead of '%s'", pod, revision, what,
                    is ? is : "", should ? should : "");
}

static void expect_number(struct judge *judge, const char *pod, const char *revision, const char *key,
                          const cJSON *is, const cJSON *should)
{
    int64_t left = json_int64_or(is, key, -1), right = json_int64_or(should, key, -1);
    if (left != right)
        judge_break(judge, 13, "%s carries %s, and %s is %lld instead of %lld", pod, revision, key,
                    (long long)left, (long long)right);
}

/* Keys that templates of these worlds may have. */
static void compare_metadata(struct judge *judge, const char *pod, const char *revision, const cJSON *is,
                             const cJSON *should)
{
    static const char *const keys[][2] = {
        {"labels", "app"},
        {"labels", "tier"},
        {"annotations", "note"},
        {"annotations", "kubectl.kubernetes.io/restartedAt"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        expect_text(judge, pod, revision, keys[i][1],
                    json_path_str(is, "metadata", keys[i][0], keys[i][1], NULL),
                    json_path_str(should, "metadata", keys[i][0], keys[i][1], NULL));
}

/* The webhook puts its own container behind those of the template. */
static const cJSON *of_template(const cJSON *container)
{
    return container && webhook_is_injected(json_str(container, "name")) ? container->next : container;
}

static void compare_containers(struct judge *judge, const char *pod, const char *revision, const cJSON *is,
                               const cJSON *should)
{
    const cJSON *one = of_template(is ? is->child : NULL), *two = should ? should->child : NULL;
    for (; one && two; one = of_template(one->next), two = two->next) {
        expect_text(judge, pod, revision, "a container", json_str(one, "name"), json_str(two, "name"));
        expect_text(judge, pod, revision, "an image", webhook_original_image(json_str(one, "image")),
                    json_str(two, "image"));
        const cJSON *env_is = json_get(one, "env"), *env_should = json_get(two, "env");
        CLEANUP_FREE char *left = env_is ? json_print(env_is) : xstrdup("");
        CLEANUP_FREE char *right = env_should ? json_print(env_should) : xstrdup("");
        expect_text(judge, pod, revision, "an environment", left, right);
    }
    if (one || two)
        judge_break(judge, 13, "%s carries %s, and has not as many containers", pod, revision);
}

void judge_equals_template(struct judge *judge, const struct seen_set *set, const cJSON *pod,
                           const char *revision)
{
    const cJSON *object = judge_find(judge, "apps", "controllerrevisions", revision);
    const char *name = json_path_str(pod, "metadata", "name", NULL);
    (void)set;
    if (!object)
        return; /* a person deleted it meanwhile */
    const cJSON *template = json_path(object, "data", "spec", "template", NULL);
    if (!template)
        report_break(judge->report, INVARIANT_NONE_OF_THEM, "revision %s has no template", revision);
    compare_metadata(judge, name, revision, pod, template);
    expect_number(judge, name, revision, "terminationGracePeriodSeconds", json_get(pod, "spec"),
                  json_get(template, "spec"));
    compare_containers(judge, name, revision, json_path(pod, "spec", "containers", NULL),
                       json_path(template, "spec", "containers", NULL));
    compare_containers(judge, name, revision, json_path(pod, "spec", "initContainers", NULL),
                       json_path(template, "spec", "initContainers", NULL));
}

/* Without what the server would fill in anyway (DO_DEFAULTS), and without StatefulSet's directive. */
static cJSON *meaning_of(const cJSON *template)
{
    cJSON *copy = json_copy(template);
    json_remove(copy, "$patch");
    json_remove(json_get(copy, "spec"), "restartPolicy");
    cJSON *container = NULL;
    cJSON_ArrayForEach (container, json_path(copy, "spec", "containers", NULL))
        json_remove(container, "terminationMessagePath");
    return copy;
}

bool judge_same_template(const cJSON *a, const cJSON *b)
{
    const cJSON *left = json_path(a, "data", "spec", "template", NULL);
    const cJSON *right = json_path(b, "data", "spec", "template", NULL);
    if (!left || !right)
        return false;
    CLEANUP_JSON cJSON *one = meaning_of(left);
    CLEANUP_JSON cJSON *two = meaning_of(right);
    return json_equal(one, two);
}
