/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/quiet.h"

#include "base/plant.h"
#include "base/time_text.h"
#include "kube/object.h"

#include <inttypes.h>

/* The collector kills pods of which it has not heard yet when their owner goes: measured, up to seconds. */
#define YOUNGEST_US (5 * US_PER_S)
#define FRESH_US (2 * US_PER_S)
enum { OUTDATED_MAX = 3 };

/* Counted from the set's first. A name without an ordinal is above every partition. */
static int64_t index_of(const struct quiet_wish *wish, const cJSON *pod)
{
    const char *dash = strrchr(kube_object_name(pod), '-');
    if (!dash || !dash[1] || dash[1 + strspn(dash + 1, "0123456789")] != '\0')
        return INT64_MAX;
    int64_t start = json_int64_or(json_path(wish->set, "spec", "ordinals", NULL), "start", 0);
    return strtoll(dash + 1, NULL, 10) - start;
}

static bool runs_another(const struct quiet_wish *wish, const cJSON *pod)
{
    return wish->revision && index_of(wish, pod) >= wish->partition &&
           !str_equal(kube_object_label(pod, KUBE_REVISION_LABEL), wish->revision);
}

/* A phrase, or NULL. */
static char *pod_phrase(const struct quiet_wish *wish, const cJSON *pod)
{
    const char *name = kube_object_name(pod);
    if (kube_object_is_deleting(pod))
        return xasprintf("%s is terminating", name);
    const char *carries = kube_object_label(pod, KUBE_REVISION_LABEL);
    if (runs_another(wish, pod))
        return xasprintf("%s runs %s, not %s: let the rollout end first", name,
                         carries ? carries : "no revision", wish->revision);
    if (!wish->unready_will_do && !kube_object_condition_is_true(pod, "Ready"))
        return xasprintf("%s is not ready", name);
    if (PLANT("young-pods-do-not-matter"))
        return NULL;
    int64_t created_us = kube_object_created_us(pod);
    if (created_us < 0 || wish->now_us - created_us < YOUNGEST_US)
        return xasprintf("%s is younger than five seconds", name);
    return NULL;
}

char *quiet_phrase(const struct quiet_wish *wish)
{
    const char *uid = kube_object_uid(wish->set);
    const char *kind = json_str(wish->set, "kind");
    int64_t generation = kube_object_generation(wish->set);
    if (json_int64_or(json_get(wish->set, "status"), "observedGeneration", 0) < generation)
        return xasprintf("its controller has not seen the newest %s yet", kind ? kind : "set");
    int64_t wanted = json_int64_or(json_get(wish->set, "spec"), "replicas", 1);
    int64_t there = 0;
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, wish->pods) {
        if (!kube_object_name(pod) || !kube_object_is_controlled_by(pod, uid))
            continue;
        there++;
        char *phrase = pod_phrase(wish, pod);
        if (phrase)
            return phrase;
    }
    return there == wanted ? NULL : xasprintf("%" PRId64 " of %" PRId64 " pods are there", there, wanted);
}

bool quiet_is_outdated(int64_t asked_us, int64_t now_us, int *times)
{
    return now_us - asked_us > FRESH_US && ++*times <= OUTDATED_MAX;
}

int quiet_count_owned(const cJSON *pods, const char *uid)
{
    int count = 0;
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, pods)
        count += kube_object_is_owned_by(pod, uid);
    return count;
}
