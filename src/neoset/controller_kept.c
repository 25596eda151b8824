/* SPDX-License-Identifier: Apache-2.0
 *
 * Manifests of StatefulSets that somebody keeps in the cluster while he takes a set from its pods
 * (volume.md, "When the caller never comes back"): where the set has been away for --resize-abandoned, the
 * caller is taken for dead, and the set is made again from what he kept. Deletes no set, ever; does nothing
 * for one that was handed to a NeoSet. Needs no journal of an earlier run. */
#include "neoset/controller_parts.h"

#include "kube/object.h"
#include "neoset/selector.h"
#include "volume/converge.h"
#include "volume/keep.h"

#include <utlist.h>

#define CHECK_US (5 * US_PER_S)
#define AGAIN_US (1 * US_PER_S)
#define READ_US (10 * US_PER_S)

/* What is under the set's name, as far as it matters who looks after it. */
enum presence { PRESENT, AWAY, MADE_AGAIN };

/* What is read for a turn of converge, in this order. */
enum { READ_SET, READ_REVISIONS, READ_PODS, READ_CLAIMS, READ_SETS, READ_COUNT };
static const enum kube_resource read_resources[READ_COUNT] = {KUBE_STATEFULSET, KUBE_REVISION, KUBE_POD,
                                                              KUBE_CLAIM, KUBE_STATEFULSET};

struct kept_manifest {
    struct controller *controller;
    char *namespace, *revision; /* the ControllerRevision */
    char *name, *uid;           /* the set that it keeps */
    char *selector;             /* of its pods */
    enum presence presence;
    int64_t since_boot_us; /* since when it is so */
    struct env_timer *timer;
    struct kube_call *call;
    int reading;
    cJSON *trees[READ_COUNT];
    struct converge_look look;
    struct converge *converge; /* it is being made again */
    bool waits_for_step;
    bool is_gone; /* to be forgotten when no step is waited for */
    struct kept_manifest *prev, *next;
};

static void check(void *context);
static void drive(struct kept_manifest *kept);

/* --- life ----------------------------------------------------------------------------------------------- */

static void forget_trees(struct kept_manifest *kept)
{
    for (int i = 0; i < READ_COUNT; i++)
        json_delete(STEAL(kept->trees[i]));
}

static void kept_free(struct kept_manifest *kept)
{
    struct controller *controller = kept->controller;
    DL_DELETE(controller->kept, kept);
    env_timer_cancel(controller->env, &kept->timer);
    if (kept->call)
        kube_call_cancel(controller->client, &kept->call);
    converge_free(kept->converge);
    forget_trees(kept);
    char *const texts[] = {kept->namespace, kept->revision, kept->name, kept->uid, kept->selector};
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

void kept_seen(struct controller *controller, const cJSON *revision)
{
    const cJSON *manifest = keep_manifest(revision);
    if (controller->options.resize_abandoned_us == 0 || !manifest ||
        kube_object_annotation(revision, KEEP_ADOPTED_BY) || !kube_object_namespace(revision) ||
        find(controller, kube_object_namespace(revision), kube_object_name(revision)))
        return;
    struct kept_manifest *kept = xcalloc(1, sizeof(*kept));
    kept->controller = controller;
    kept->namespace = xstrdup(kube_object_namespace(revision));
    kept->revision = xstrdup(kube_object_name(revision));
    kept->name = xstrdup(kube_object_name(manifest));
    kept->uid = xstrdup(kube_object_label(revision, KEEP_LABEL));
    kept->selector = selector_print(json_path(manifest, "spec", "selector", NULL));
    DL_APPEND(controller->kept, kept);
    check_after(kept, 0);
}

void kept_gone(struct controller *controller, const cJSON *revision)
{
    struct kept_manifest *kept =
        find(controller, kube_object_namespace(revision), kube_object_name(revision));
    if (!kept)
        return;
    kept->is_gone = true;
    if (!kept->waits_for_step && !kept->converge)
        kept_free(kept);
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
    return kept->presence != PRESENT &&
           env_boot_us(controller->env) - kept->since_boot_us >= controller->options.resize_abandoned_us;
}

static void begin(struct kept_manifest *kept)
{
    CLEANUP_FREE char *object = kube_object_ref_text(KUBE_STATEFULSET, kept->namespace, kept->name);
    controller_report(
        kept->controller, REPORT_WARNING, object,
        kept->presence == AWAY
            ? "nobody made it again, whose manifest is kept as ControllerRevision %s: it is made again"
            : "it was made again, and nobody looked after it: ControllerRevision %s is still kept",
        kept->revision);
    kept->converge = converge_make(
        &(struct converge_options){.namespace = kept->namespace, .name = kept->name, .never_deletes = true});
}

/* --- reading -------------------------------------------------------------------------------------------- */

static void read_next(struct kept_manifest *kept);

static void take_all(struct kept_manifest *kept)
{
    struct controller *controller = kept->controller;
    kept->look = (struct converge_look){.set = kept->trees[READ_SET],
                                        .revisions = kept->trees[READ_REVISIONS],
                                        .pods = kept->trees[READ_PODS],
                                        .claims = kept->trees[READ_CLAIMS],
                                        .sets = kept->trees[READ_SETS],
                                        .wall_us = env_wall_us(controller->env),
                                        .boot_us = env_boot_us(controller->env)};
    converge_take_look(kept->converge, &kept->look);
    drive(kept);
}

/* The set alone tells whether anything is to be done. */
static void take_set(struct kept_manifest *kept)
{
    if (kept->converge) {
        read_next(kept);
        return;
    }
    note_presence(kept, kept->trees[READ_SET]);
    if (is_abandoned(kept)) {
        begin(kept);
        read_next(kept);
    } else {
        check_after(kept, CHECK_US);
    }
}

static void read_done(void *context, const struct kube_answer *answer)
{
    struct kept_manifest *kept = context;
    kept->call = NULL;
    bool is_list = kept->reading != READ_SET;
    bool is_absent = !is_list && answer->http == 404 && str_equal(answer->reason, "NotFound");
    if (!is_absent && (answer->outcome != KUBE_OK || !answer->body)) {
        CLEANUP_FREE char *object = kube_object_ref_text(KUBE_STATEFULSET, kept->namespace, kept->name);
        CLEANUP_FREE char *sentence =
            kube_answer_sentence(answer, "cannot see to it that it is made again (its manifest is kept)");
        controller_report(kept->controller, REPORT_WARNING, object, "%s", sentence);
        check_after(kept, CHECK_US);
        return;
    }
    const cJSON *tree = is_list ? json_get(answer->body, "items") : is_absent ? NULL : answer->body;
    kept->trees[kept->reading] = tree ? json_copy(tree) : NULL;
    kept->reading++;
    if (kept->reading == READ_SET + 1)
        take_set(kept);
    else if (kept->reading == READ_COUNT)
        take_all(kept);
    else
        read_next(kept);
}

static void read_next(struct kept_manifest *kept)
{
    struct kube_client *client = kept->controller->client;
    enum kube_resource resource = read_resources[kept->reading];
    CLEANUP_FREE char *path =
        kube_path(resource, kept->namespace, kept->reading == READ_SET ? kept->name : NULL, NULL);
    if (kept->reading == READ_PODS && kept->selector)
        kube_path_add_query(&path, "labelSelector", kept->selector);
    kept->call = kube_get(client, path, READ_US, read_done, kept);
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
    forget_trees(kept);
    kept->reading = READ_SET;
    read_next(kept);
}

/* --- making it again ------------------------------------------------------------------------------------ */

static void step_ended(void *context, const struct step_outcome *outcome)
{
    struct kept_manifest *kept = context;
    if (outcome->kind == JOURNAL_UNKNOWN)
        return;
    kept->waits_for_step = false;
    converge_take_outcome(kept->converge, &(struct converge_outcome){.kind = outcome->kind,
                                                                     .http = outcome->http,
                                                                     .summary = outcome->summary});
    drive(kept);
}

static void send(struct kept_manifest *kept, struct step_request *step)
{
    struct controller *controller = kept->controller;
    int r = gateway_submit(controller->gateway, step, step_ended, kept);
    if (r == 0) {
        kept->waits_for_step = true;
    } else {
        if (r == -ERROR_CONFLICT)
            gateway_settle_unwanted(controller->gateway, KUBE_STATEFULSET, kept->namespace, kept->name);
        converge_look_again(kept->converge);
        check_after(kept, AGAIN_US);
    }
    journal_commit(controller->journal);
}

/* What failed is tried again when it has been abandoned as long once more. */
static void end(struct kept_manifest *kept, const struct converge_turn *turn)
{
    struct controller *controller = kept->controller;
    bool is_done = turn->code == ERROR_NONE;
    CLEANUP_FREE char *object = kube_object_ref_text(KUBE_STATEFULSET, kept->namespace, kept->name);
    controller_report(controller, is_done ? REPORT_INFO : REPORT_ERROR, object, "%s", turn->phrase);
    gateway_end_operation(controller->gateway, CONVERGE_OPERATION, KUBE_STATEFULSET, kept->namespace,
                          kept->name, is_done ? "completed" : "failed", is_done ? NULL : turn->phrase);
    journal_commit(controller->journal);
    converge_free(STEAL(kept->converge));
    kept->since_boot_us = env_boot_us(controller->env);
    if (is_done || kept->is_gone)
        kept_free(kept);
    else
        check_after(kept, CHECK_US);
}

static void drive(struct kept_manifest *kept)
{
    struct converge_turn turn;
    converge_next(kept->converge, &turn);
    switch (turn.next) {
    case CONVERGE_NEXT_LOOK:
        check_after(kept, turn.wait_us);
        return;
    case CONVERGE_NEXT_STEP:
        send(kept, turn.step);
        return;
    case CONVERGE_NEXT_END:
        end(kept, &turn);
        return;
    case CONVERGE_NEXT_ASK:
        break; /* it proves only what it would delete */
    }
    UNREACHABLE();
}
