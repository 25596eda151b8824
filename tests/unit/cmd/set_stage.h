/* SPDX-License-Identifier: Apache-2.0
 *
 * A StatefulSet db of three pods on a stage, what is seen of its pods, and what must hold of the history
 * afterwards: for commands that take the set from its pods and give it back. */
#pragma once

#include "stage.h"

#include <time.h>

#define SETS "/apis/apps/v1/namespaces/default/statefulsets"
#define PODS "/api/v1/namespaces/default/pods"

enum { REPLICAS = 3, WAIT_S = 60 };

static inline char *audit_log_of(const struct stage *stage)
{
    return xasprintf("%s/audit.log", stage->folder);
}

/* What is seen of the pods: "db-0 <uid> <restarts> <owner>\n" each; the caller's. */
static inline char *pods_text(const struct stage *stage, bool with_owner)
{
    CLEANUP_JSON cJSON *list = stage_get(stage, PODS);
    struct buf text = BUF_INIT(65536);
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, json_get(list, "items")) {
        const cJSON *owners = json_path(pod, "metadata", "ownerReferences", NULL);
        const cJSON *statuses = json_path(pod, "status", "containerStatuses", NULL);
        buf_addf(&text, "%s %s %lld %s\n", json_path_str(pod, "metadata", "name", NULL),
                 json_path_str(pod, "metadata", "uid", NULL),
                 (long long)json_int64_or(statuses ? statuses->child : NULL, "restartCount", -1),
                 !with_owner                       ? ""
                 : cJSON_GetArraySize(owners) == 1 ? json_str(owners->child, "kind")
                                                   : "nobody, or too many");
    }
    return buf_take(&text);
}

static inline void let_pass(int64_t ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

typedef bool is_so(const struct stage *stage);

static inline void wait_until(const struct stage *stage, const char *what, is_so *so)
{
    for (int i = 0; i < WAIT_S * 20; i++) {
        if (so(stage))
            return;
        let_pass(50);
    }
    CLEANUP_FREE char *pods = pods_text(stage, true);
    fail_msg("not in time: %s; pods:\n%s", what, pods);
}

static inline bool status_is(const struct stage *stage, const char *path, const char *field, int64_t number)
{
    CLEANUP_JSON cJSON *set = stage_get(stage, path);
    return json_int64_or(json_get(set, "status"), field, -1) == number;
}

static inline bool set_is_ready(const struct stage *stage)
{
    return status_is(stage, SETS "/db", "readyReplicas", REPLICAS);
}

static inline int count_owned(const struct stage *stage, const char *owner)
{
    CLEANUP_FREE char *owners = pods_text(stage, true);
    int count = 0;
    for (const char *at = owners; (at = strstr(at, owner)); at += strlen(owner))
        count++;
    return count;
}

/* The same pods as before, all of this owner. */
static inline void assert_pods(const struct stage *stage, const char *before, const char *owner)
{
    CLEANUP_FREE char *now = pods_text(stage, false);
    assert_string_equal(now, before);
    if (count_owned(stage, owner) != REPLICAS) {
        CLEANUP_FREE char *owners = pods_text(stage, true);
        fail_msg("not all are of a %s:\n%s", owner, owners);
    }
}

/* Each step that the server took was taken once, and nothing is left open. */
static inline void assert_history(struct stage *stage)
{
    CLEANUP_FREE char *line = xasprintf("in-doubt --check --journal %s", stage->journal);
    program_run(&stage->run, "neoset-audit", line);
    if (stage->run.exit_code != 0)
        fail_msg("in doubt: %s %s", stage->run.output, stage->run.errors);
    CLEANUP_FREE char *verify = xasprintf("verify --journal %s", stage->journal);
    program_run(&stage->run, "neoset-audit", verify);
    assert_int_equal(stage->run.exit_code, 0);
    CLEANUP_FREE char *audit_log = audit_log_of(stage);
    CLEANUP_FREE char *command = xasprintf(
        "grep -o '\"auditID\":\"neo-[0-9a-f]*-[0-9]*-[0-9]*\".*\"responseStatus\":{[^}]*\"code\":2' '%s' | "
        "sed 's/\"auditID\":\"neo-\\([0-9a-f]*-[0-9]*\\)-.*/\\1/' | sort | uniq -d | grep -q .",
        audit_log);
    assert_int_not_equal(system(command), 0);
}

static inline void wait_for_old_pods(void)
{
    let_pass(5500);
}