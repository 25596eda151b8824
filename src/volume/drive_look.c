/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/drive_parts.h"

#include "volume/keep.h"

/* A server that has a bad moment is asked again so often before it ends; not before the first look, when
 * nothing was begun. */
enum { READS_MAX = 5 };

static const struct {
    enum kube_resource resource;
    /* Who may not read them, or has none, goes on without: the server's own admission is asked. */
    bool is_optional;
    bool is_survey; /* hardly changes while a run lasts; what of it counts, the server checks at each write */
} parts[SIGHT_PARTS] = {
    [SIGHT_SETS] = {.resource = KUBE_STATEFULSET, .is_survey = true},
    [SIGHT_SET] = {.resource = KUBE_STATEFULSET},
    [SIGHT_REVISIONS] = {.resource = KUBE_REVISION},
    [SIGHT_PODS] = {.resource = KUBE_POD},
    [SIGHT_CLAIMS] = {.resource = KUBE_CLAIM},
    [SIGHT_CLASSES] = {.resource = KUBE_CLASS, .is_optional = true, .is_survey = true},
    [SIGHT_QUOTAS] = {.resource = KUBE_QUOTA, .is_optional = true, .is_survey = true},
    [SIGHT_OWNERS] = {.resource = KUBE_STATEFULSET},
    [SIGHT_EVENTS] = {.resource = KUBE_EVENT, .is_optional = true},
};

static void forget(struct drive *drive, bool is_survey)
{
    for (int i = 0; i < SIGHT_PARTS; i++)
        if (parts[i].is_survey == is_survey)
            json_delete(STEAL(drive->trees[i]));
}

void drive_forget_look(struct drive *drive)
{
    forget(drive, false);
    drive->look = (struct converge_look){0};
}

void drive_forget_survey(struct drive *drive)
{
    forget(drive, true);
}

static bool is_leaving(const cJSON *set)
{
    return kube_object_is_deleting(set) && kube_object_has_finalizer(set, "orphan");
}

/* On its way out with its finalizer nothing but the set and what is kept of it counts. */
static bool is_wanted(const struct drive *drive, enum sight_part part)
{
    const cJSON *set = drive->trees[SIGHT_SET];
    switch (part) {
    case SIGHT_SETS:
        return !drive->is_surveyed;
    case SIGHT_SET:
        return !set; /* it was among them */
    case SIGHT_REVISIONS:
        return true;
    case SIGHT_PODS:
        return !is_leaving(set);
    case SIGHT_OWNERS:
        return !set;
    case SIGHT_EVENTS:
        return drive->converge && converge_asks_about(drive->converge);
    default:
        return set && !is_leaving(set) && !(parts[part].is_survey && drive->is_surveyed);
    }
}

static void finish(struct drive *drive)
{
    struct env *env = drive->options.env;
    cJSON *const *trees = drive->trees;
    drive->reads_failed = 0;
    drive->is_surveyed = drive->is_surveyed || (trees[SIGHT_SET] && !is_leaving(trees[SIGHT_SET]));
    drive->look = (struct converge_look){.set = trees[SIGHT_SET],
                                         .revisions = trees[SIGHT_REVISIONS],
                                         .pods = trees[SIGHT_PODS],
                                         .claims = trees[SIGHT_CLAIMS],
                                         .sets = trees[SIGHT_SETS],
                                         .classes = trees[SIGHT_CLASSES],
                                         .quotas = trees[SIGHT_QUOTAS],
                                         .events = trees[SIGHT_EVENTS],
                                         .gone_owners = trees[SIGHT_OWNERS],
                                         .wall_us = env_wall_us(env),
                                         .boot_us = env_boot_us(env),
                                         .pods_boot_us = drive->pods_boot_us};
    drive_saw(drive);
}

static void read_part(struct drive *drive);

static void read_next(struct drive *drive)
{
    do
        drive->part++;
    while (drive->part < SIGHT_PARTS && !is_wanted(drive, drive->part));
    if (drive->part == SIGHT_PARTS)
        finish(drive);
    else
        read_part(drive);
}

/* --- failures ------------------------------------------------------------------------------------------- */

static void read_again(void *context)
{
    struct drive *drive = context;
    drive->timer = NULL;
    read_part(drive);
}

static bool is_transient(const struct kube_answer *answer)
{
    return answer->outcome == KUBE_NO_ANSWER || answer->outcome == KUBE_NOT_SENT || answer->http >= 500 ||
           answer->http == 429;
}

/* A 404 of a collection: the server does not know the resource. */
static bool is_absent(const struct kube_answer *answer)
{
    return answer->http == 403 || answer->http == 404;
}

static char *name_part(const struct drive *drive)
{
    const struct converge_options *wanted = &drive->options.converge;
    const struct kube_resource_info *info = kube_resource_info(parts[drive->part].resource);
    if (drive->part == SIGHT_SET)
        return xasprintf("StatefulSet %s in namespace %s", wanted->name, wanted->namespace);
    return info->namespaced ? xasprintf("%ss in namespace %s", info->kind, wanted->namespace)
                            : xstrdup(info->plural);
}

static void failed(struct drive *drive, const struct kube_answer *answer)
{
    struct env *env = drive->options.env;
    if (parts[drive->part].is_optional && is_absent(answer)) {
        read_next(drive);
        return;
    }
    if (drive->converge && is_transient(answer) && ++drive->reads_failed < READS_MAX) {
        int64_t pause_us = kube_backoff_us(env, drive->reads_failed, answer->retry_after_us);
        drive->timer = env_timer_start(env, pause_us, read_again, drive);
        return;
    }
    CLEANUP_FREE char *what = name_part(drive);
    CLEANUP_FREE char *sentence = kube_answer_sentence(answer, what);
    drive_failed_to_read(drive, answer->code != ERROR_NONE ? answer->code : ERROR_FAILED, sentence);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static void set_read(void *context, const struct kube_answer *answer)
{
    struct drive *drive = context;
    drive->call = NULL;
    const char *named = json_path_str(answer->body, "details", "name", NULL);
    bool is_gone = !answer->stranger && answer->http == 404 && named && *named;
    if (answer->outcome == KUBE_OK && answer->body)
        drive->trees[SIGHT_SET] = json_copy(answer->body);
    else if (!is_gone) {
        failed(drive, answer);
        return;
    }
    read_next(drive);
}

/* The items of a list do not say their kind. */
static void take_set(struct drive *drive)
{
    const cJSON *item = kube_object_find(drive->trees[SIGHT_SETS], drive->options.converge.name);
    if (!item)
        return; /* that there is none the server says of the name itself */
    cJSON *set = json_copy(item);
    json_set_str(set, "apiVersion", "apps/v1");
    json_set_str(set, "kind", kube_resource_info(KUBE_STATEFULSET)->kind);
    drive->trees[SIGHT_SET] = set;
}

static void listed(void *context, cJSON *items, const struct kube_answer *answer)
{
    struct drive *drive = context;
    drive->list = NULL;
    json_delete(drive->trees[drive->part]);
    drive->trees[drive->part] = items;
    if (drive->part == SIGHT_SETS && items)
        take_set(drive);
    if (items)
        read_next(drive);
    else
        failed(drive, answer);
}

/* They only tell: who cannot have them goes on without. */
static void events_read(void *context, const struct kube_answer *answer)
{
    struct drive *drive = context;
    drive->call = NULL;
    const cJSON *items = json_get(answer->body, "items");
    if (answer->outcome == KUBE_OK && cJSON_IsArray(items))
        drive->trees[SIGHT_EVENTS] = json_copy(items);
    read_next(drive);
}

/* One page: of one claim there are no more that count. */
static void ask_events(struct drive *drive)
{
    const struct drive_options *options = &drive->options;
    CLEANUP_FREE char *selector = xasprintf(
        "involvedObject.kind=PersistentVolumeClaim,involvedObject.name=%s,reason=VolumeResizeFailed",
        converge_asks_about(drive->converge));
    CLEANUP_FREE char *path = kube_path(KUBE_EVENT, options->converge.namespace, NULL, NULL);
    kube_path_add_query(&path, "fieldSelector", selector);
    kube_path_add_query(&path, "limit", "500");
    drive->call = kube_get(options->client, path, options->timeout_us, events_read, drive);
}

static void owners_asked(void *context, cJSON *gone)
{
    struct drive *drive = context;
    drive->owners = NULL;
    drive->trees[SIGHT_OWNERS] = gone;
    read_next(drive);
}

static void read_part(struct drive *drive)
{
    const struct drive_options *options = &drive->options;
    const char *namespace = options->converge.namespace;
    enum kube_resource resource = parts[drive->part].resource;
    const cJSON *kept = NULL;
    if (drive->part == SIGHT_PODS)
        drive->pods_boot_us = env_boot_us(options->env);
    switch (drive->part) {
    case SIGHT_SET: {
        CLEANUP_FREE char *path = kube_path(resource, namespace, options->converge.name, NULL);
        drive->call = kube_get(options->client, path, options->timeout_us, set_read, drive);
        return;
    }
    case SIGHT_OWNERS:
        kept = keep_manifest(
            keep_find_growing(drive->trees[SIGHT_REVISIONS], NULL, options->converge.name, NULL));
        drive->owners = kube_owners_ask(options->client, kept, options->timeout_us, owners_asked, drive);
        if (!drive->owners)
            read_next(drive);
        return;
    case SIGHT_EVENTS:
        ask_events(drive);
        return;
    default:
        drive->list = kube_list_start(options->client, resource,
                                      kube_resource_info(resource)->namespaced ? namespace : NULL, NULL,
                                      options->timeout_us, listed, drive);
    }
}

void drive_read(struct drive *drive)
{
    drive_forget_look(drive);
    drive->part = SIGHT_SETS;
    if (is_wanted(drive, drive->part))
        read_part(drive);
    else
        read_next(drive);
}
