/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets and pods as a server shows them, for what neosetctl makes of them. */
#pragma once

#include "../audit/history.h"

#define NOW_US LOOK_AT_US

static inline cJSON *tree_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* JSON with ' for ". */
static inline cJSON *tree_of(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *text = xvasprintf(format, args);
    va_end(args);
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    cJSON *tree = NULL;
    struct error *err = NULL;
    if (json_parse(text, strlen(text), &tree, &err) < 0)
        fail_msg("%s: %s", error_text(err), text);
    return tree;
}

/* Members of spec.updateStrategy and of status. */
static inline cJSON *set_of(const char *strategy, const char *status)
{
    return tree_of(
        "{'metadata':{'name':'mysql','namespace':'prod','uid':'u1','resourceVersion':'7','generation':2,"
        "'creationTimestamp':'2026-11-30T05:00:00Z'},"
        "'spec':{'replicas':3,'selector':{'matchLabels':{'app':'mysql'}},'updateStrategy':{%s}},"
        "'status':{%s}}",
        strategy, status);
}

#define ROLLING                                                                                              \
    "'observedGeneration':2,'replicas':3,'readyReplicas':2,'updatedReplicas':1,'availableReplicas':2,"       \
    "'phase':'RollingOut','currentImage':'mysql:8.0','targetImage':'mysql:8.1','currentPartition':1,"        \
    "'currentRevisionName':'mysql-old','updateRevisionName':'mysql-new','effectiveMaxUnavailable':1,"        \
    "'message':'waiting for mysql-1 to become ready (12s of 5m0s)'"
#define COMPLETED                                                                                            \
    "'observedGeneration':2,'replicas':3,'readyReplicas':3,'updatedReplicas':3,'availableReplicas':3,"       \
    "'phase':'Completed','currentImage':'mysql:8.1','targetImage':'mysql:8.1','currentPartition':0,"         \
    "'currentRevisionName':'mysql-new','updateRevisionName':'mysql-new'"

static const char owner[] =
    "'ownerReferences':[{'apiVersion':'apps.neo.io/v1alpha1','kind':'NeoSet','name':'mysql',"
    "'uid':'u1','controller':true}]";

static inline cJSON *pod_of(int ordinal, const char *revision, const char *image, const char *metadata,
                            const char *status)
{
    return tree_of("{'metadata':{'name':'mysql-%d','namespace':'prod','uid':'p%d','labels':{"
                   "'controller-revision-hash':'mysql-%s'},%s%s},"
                   "'spec':{'containers':[{'name':'mysql','image':'%s'}]},'status':{%s}}",
                   ordinal, ordinal, revision, owner, metadata, image, status);
}

#define READY_POD                                                                                            \
    "'phase':'Running','conditions':[{'type':'Ready','status':'True'}],"                                     \
    "'containerStatuses':[{'name':'mysql','ready':true,'restartCount':1,'state':{'running':{}}}]"

static inline cJSON *three_pods(const char *status_of_the_middle)
{
    cJSON *pods = json_new_array();
    json_append_item(pods, pod_of(2, "new", "mysql:8.1", "", READY_POD));
    json_append_item(pods, pod_of(1, "new", "mysql:8.1", "", status_of_the_middle));
    json_append_item(pods, pod_of(0, "old", "mysql:8.0", "", READY_POD));
    return pods;
}
