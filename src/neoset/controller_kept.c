/* SPDX-License-Identifier: Apache-2.0
 *
 * Manifests of StatefulSets that somebody keeps in the cluster while he takes a set from its pods
 * (volume.md, "When the caller never comes back"): where the set has been away for --resize-abandoned, the
 * caller is taken for dead, and the set is made again from what he kept. Deletes no set, ever; does nothing
 * for one that was handed to a NeoSet. Needs no journal of an earlier run. */
#include "neoset/controller_parts.h"

#include "base/plant.h"
#include "kube/object.h"
#include "volume/drive.h"
#include "volume/keep.h"

#include <utlist.h>

#define CHECK_US (5 * US_PER_S)
#define READ_US (10 * US_PER_S)

/* What is under the set's name, as far as it matters who looks after it. */
enum presence { PRESENT, AWAY, MADE_AGAIN };

struct kept_manifest {
    struct controller *controller;
    char *namespace, *revision; /* the ControllerRevision */
    char *name, *uid;           /* the set that it keeps */
    enum presence presence;
    int64_t since_boot_us; /* since when it is so */
    struct env_timer *timer;
    struct kube_call *call;
    struct drive *drive; /* it is being made again */
    bool is_gone;        /* to be forgotten when it is not being made again */
    uint32_t mark;       /* of the newest list that showed it, or that was there before it was seen */
    struct kept_manifest *prev, *next;
};

static void check(void *context);

/* --- life ----------------------------------------------------------------------------------------------- */

static void kept_free(struct kept_manifest *kept)
{
    struct controller *controller = kept->controller;
    DL_DELETE(controller->kept, kept);
    env_timer_cancel(controller->env, &kept->timer);
    if (kept->call)
        kube_call_cancel(controller->client, &kept->call);
    drive_free(kept->drive);
    char *const texts[] = {kept->namespace, kept->revision, kept->name, kept->uid};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free(texts[i]);
    free(kept);
}

void kept_free_all(struct controller *controller)
{
    while (controller->kept)
        kept_free(controller->kept);
}

static struct kept_manifest *find(const struct controller *controller, const char *namespace,
                                  const char *revision)
{
    struct kept_manifest *kept = NULL;
    DL_FOREACH (controller->kept, kept) {
        if (str_equal(kept->namespace, namespace) && str_equal(kept->revision, revision))
            return kept;
    }
    return NULL;
}

static void check_after(struct kept_manifest *kept, int64_t delay_us)
{
    struct env *env = kept->controller->env;
    env_timer_cancel(env, &kept->timer);
    kept->timer = env_timer_start(env, delay_us, check, kept);
}

static void forget(struct kept_manifest *kept)
{
    kept->is_gone = true;
    if (!kept->drive)
        kept_free(kept);
}

void kept_seen(struct controller *controller, const cJSON *revision, uint32_t mark)
{
    const cJSON *manifest = keep_manifest(revision);
    bool is_ours = controller->options.resize_abandoned_us > 0 && manifest &&
                   !kube_object_annotation(revision, KEEP_ADOPTED_BY) && kube_object_namespace(revision);
    struct kept_manifest *kept =
        find(controller, kube_object_namespace(revision), kube_object_name(revision));
    if (kept && is_ours) {
        kept->mark = mark;
        kept->is_gone = false;
    } else if (kept) {
        forget(kept);
    }
    if (kept || !is_ours)
        return;
    kept = xcalloc(1, sizeof(*kept));
    kept->mark = mark;
    kept->controller = controller;
    kept->namespace = xstrdup(kube_object_namespace(revision));
    kept->revision = xstrdup(kube_object_name(revision));
    kept->name = xstrdup(kube_object_name(manifest));
    kept->uid = xstrdup(kube_object_label(revision, KEEP_LABEL));
    DL_APPEND(controller->kept, kept);
    /* Most are dropped by then: who keeps one is at work on it. */
    check_after(kept, CHECK_US);
}

void kept_gone(struct controller *controller, const cJSON *revision)
{
    struct kept_manifest *kept =
        find(controller, kube_object_namespace(revision), kube_object_name(revision));
    if (kept)
        forget(kept);
}

void kept_sweep(struct controller *controller, uint32_t mark)
{
    struct kept_manifest *kept = NULL, *next = NULL;
    DL_FOREACH_SAFE (controller->kept, kept, next) {
        if (kept->mark != mark)
            forget(kept);
    }
}

void kept_wake(struct controller *controller, const char *namespace, const char *name)
{
    struct kept_manifest *kept = NULL;
    DL_FOREACH (controller->kept, kept) {
        if (kept->drive && str_equal(kept->namespace, namespace) && str_equal(kept->name, name)) {
            drive_wake(kept->drive);
            return;
        }
    }
}

/* --- is somebody there? --------------------------------------------------------------------------------- */

static enum presence presence_of(const struct kept_manifest *kept, const cJSON *set)
{
    if (!set)
        return AWAY;
    return kube_object_is_deleting(set) || str_equal(kube_object_uid(set), kept->uid) ? PRESENT : MADE_AGAIN;
}

static void note_presence(struct kept_manifest *kept, const cJSON *set)
{
    enum presence presence = presence_of(kept, set);
    if (presence != kept->presence)
        kept->since_boot_us = env_boot_us(kept->controller->env);
    kept->presence = presence;
}

static bool is_abandoned(const struct kept_manifest *kept)
{
    const struct controller *controller = kept->controller;
    return kept->presence != PRESENT && !PLANT("abandoned-stays-so") &&
           env_boot_us(controller->env) - kept->since_boot_us >= controller->options.resize_abandoned_us;
}

/* --- making it again ------------------------------------------------------------------------------------ */

static bool may_go_on(void *context, const char *phrase)
{
    const struct kept_manifest *kept = context;
    (void)phrase;
    return kept->controller->leads && !kept->controller->stopping;
}

static bool is_in_the_way(enum error_code code)
{
    return code == ERROR_CANCELLED || code == ERROR_UNREACHABLE || code == ERROR_TIMED_OUT;
}

/* What failed is tried again when it has been abandoned as long once more; at once, where nobody could be
 * asked or we led no longer. */
static void ended(void *context, enum error_code code, const char *sentence)
{
    struct kept_manifest *kept = context;
    struct controller *controller = kept->controller;
    bool is_done = code == ERROR_NONE;
    bool is_let_go = code == ERROR_CANCELLED;
    const char *said =
        is_let_go ? "this controller does not lead any more, or stops: whoever leads goes on" : sentence;
    CLEANUP_FREE char *object = kube_object_ref_text(KUBE_STATEFULSET, kept->namespace, kept->name);
    controller_report(controller, is_done || is_let_go ? REPORT_INFO : REPORT_ERROR, object, "%s", said);
    gateway_end_operation(controller->gateway, CONVERGE_OPERATION, KUBE_STATEFULSET, kept->namespace,
                          kept->name,
                          is_done     ? "completed"
                          : is_let_go ? "cancelled"
                                      : "failed",
                          is_done ? NULL : said);
    gateway_settle_unwanted(controller->gateway, KUBE_STATEFULSET, kept->namespace, kept->name);
    journal_commit(controller->journal);
    drive_free(STEAL(kept->drive));
    if (!is_in_the_way(code))
        kept->since_boot_us = env_boot_us(controller->env);
    if (is_done || kept->is_gone)
        kept_free(kept);
    else
        check_after(kept, CHECK_US);
}

static void begin(struct kept_manifest *kept)
{
    struct controller *controller = kept->controller;
    CLEANUP_FREE char *object = kube_object_ref_text(KUBE_STATEFULSET, kept->namespace, kept->name);
    controller_report(
        controller, REPORT_WARNING, object,
        kept->presence == AWAY
            ? "nobody made it again, whose manifest is kept as ControllerRevision %s: it is made again"
            : "it was made again, and nobody looked after it: ControllerRevision %s is still kept",
        kept->revision);
    kept->drive = drive_start(&(struct drive_options){
        .env = controller->env,
        .client = controller->client,
        .writer = "neoset",
        .timeout_us = READ_US,
        .converge = {.namespace = kept->namespace, .name = kept->name, .never_deletes = true},
        .gateway = controller->gateway,
        .journal = controller->journal,
        .looks = may_go_on,
        .ended = ended,
        .context = kept});
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* The set alone tells whether anything is to be done. */
static void set_read(void *context, const struct kube_answer *answer)
{
    struct kept_manifest *kept = context;
    kept->call = NULL;
    bool is_absent = answer->http == 404 && str_equal(answer->reason, "NotFound");
    if (is_absent || (answer->outcome == KUBE_OK && answer->body)) {
        note_presence(kept, is_absent ? NULL : answer->body);
    } else {
        CLEANUP_FREE char *object = kube_object_ref_text(KUBE_STATEFULSET, kept->namespace, kept->name);
        CLEANUP_FREE char *sentence =
            kube_answer_sentence(answer, "cannot see to it that it is made again (its manifest is kept)");
        controller_report(kept->controller, REPORT_WARNING, object, "%s", sentence);
        check_after(kept, CHECK_US);
        return;
    }
    if (is_abandoned(kept))
        begin(kept);
    else
        check_after(kept, CHECK_US);
}

static void check(void *context)
{
    struct kept_manifest *kept = context;
    struct controller *controller = kept->controller;
    kept->timer = NULL;
    if (controller->stopping || !controller->leads || !controller->recovered) {
        check_after(kept, CHECK_US);
        return;
    }
    CLEANUP_FREE char *path = kube_path(KUBE_STATEFULSET, kept->namespace, kept->name, NULL);
    kept->call = kube_get(controller->client, path, READ_US, set_read, kept);
}
