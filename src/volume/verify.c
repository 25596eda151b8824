/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/verify.h"

#include "kube/object.h"

enum { TEXT_MAX = 1 << 16 };

static int64_t restarts_of(const cJSON *pod)
{
    int64_t restarts = 0;
    const cJSON *status = NULL;
    cJSON_ArrayForEach (status, json_path(pod, "status", "containerStatuses", NULL))
        restarts += json_int64_or(status, "restartCount", 0);
    return restarts;
}

cJSON *verify_picture(const cJSON *pods)
{
    cJSON *picture = json_new_object();
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, pods) {
        if (!kube_object_name(pod) || !kube_object_uid(pod) || kube_object_is_deleting(pod))
            continue;
        cJSON *seen = json_new_object();
        json_add_str(seen, "uid", kube_object_uid(pod));
        json_add_int64(seen, "restarts", restarts_of(pod));
        json_set_item(picture, kube_object_name(pod), seen);
    }
    return picture;
}

char *verify_compare(const cJSON *picture, const cJSON *pods)
{
    int same = 0;
    const cJSON *pod = NULL;
    CLEANUP_BUF struct buf others = BUF_INIT(TEXT_MAX);
    cJSON_ArrayForEach (pod, pods) {
        const char *name = kube_object_name(pod);
        const cJSON *seen = name ? json_get(picture, name) : NULL;
        if (seen && !str_equal(json_str(seen, "uid"), kube_object_uid(pod)))
            buf_addf(&others, "; %s was made anew meanwhile", name);
        else if (seen && restarts_of(pod) != json_int64_or(seen, "restarts", 0))
            buf_addf(&others, "; a container of %s restarted meanwhile", name);
        else
            same++;
    }
    const cJSON *seen = NULL;
    cJSON_ArrayForEach (seen, picture)
        if (!kube_object_find(pods, seen->string))
            buf_addf(&others, "; %s is gone", seen->string);
    return picture && others.length == 0
               ? xasprintf("the same %d pods, none restarted", same)
               : xasprintf("%d pods%s", cJSON_GetArraySize(pods), buf_text(&others));
}

const cJSON *verify_find_dead_owner(const cJSON *pods, const char *kind, const char *name, const char *uid,
                                    const char **ret_uid)
{
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, pods) {
        if (kube_object_is_deleting(pod) || !kube_object_name(pod))
            continue;
        const cJSON *owner = NULL;
        cJSON_ArrayForEach (owner, json_path(pod, "metadata", "ownerReferences", NULL)) {
            if (!str_equal(json_str(owner, "kind"), kind) ||
                !(uid ? str_equal(json_str(owner, "uid"), uid) : str_equal(json_str(owner, "name"), name)))
                continue;
            *ret_uid = json_str(owner, "uid");
            return pod;
        }
    }
    return NULL;
}

cJSON *verify_release_patch(const char *owner_uid)
{
    cJSON *body = json_new_object();
    cJSON *gone = json_new_object();
    json_add_str(gone, "$patch", "delete");
    json_add_str(gone, "uid", owner_uid);
    json_append_item(json_add_array(json_add_object(body, "metadata"), "ownerReferences"), gone);
    return body;
}
