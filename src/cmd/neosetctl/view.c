/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/view.h"
#include "base/time_text.h"
#include "kube/object.h"
#include "neoset/fact.h"
#include "neoset/selector.h"
#include "volume/keep.h"

#include <inttypes.h>

enum {
    PODS_MAX = 10000,
    PHRASE_MAX = 4096,
    PATIENCE_DEFAULT_S = 300,
    GRACE_DEFAULT_S = 30,
    SECONDS_MAX = 1000000000
};

static const char *text_or(const char *text, const char *fallback)
{
    return text && *text ? text : fallback;
}

/* Bounded, whatever stands there: times are added to it. */
static int64_t seconds_us(const cJSON *object, const char *key, int64_t fallback_s)
{
    int64_t seconds = json_int64_or(object, key, fallback_s);
    return MIN(MAX(seconds, 0), (int64_t)SECONDS_MAX) * US_PER_S;
}

void set_view_make(const cJSON *object, struct set_view *ret)
{
    const cJSON *spec = json_get(object, "spec");
    const cJSON *status = json_get(object, "status");
    const cJSON *strategy = json_get(spec, "updateStrategy");
    int64_t fence = json_int64_or(strategy, "partition", 0);
    *ret = (struct set_view){
        .namespace = text_or(kube_object_namespace(object), ""),
        .name = text_or(kube_object_name(object), ""),
        .uid = kube_object_uid(object),
        .version = kube_object_version(object),
        .generation = kube_object_generation(object),
        .observed_generation = json_int64_or(status, "observedGeneration", 0),
        .created_us = kube_object_created_us(object),
        .is_deleting = kube_object_is_deleting(object),
        .has_status = status != NULL && status->child != NULL,
        .wanted = json_int64_or(spec, "replicas", 1),
        .first_ordinal = json_int64_or(json_get(spec, "ordinals"), "start", 0),
        .replicas = json_int64_or(status, "replicas", 0),
        .ready = json_int64_or(status, "readyReplicas", 0),
        .updated = json_int64_or(status, "updatedReplicas", 0),
        .available = json_int64_or(status, "availableReplicas", 0),
        .phase = text_or(json_str(status, "phase"), "-"),
        .current_image = text_or(json_str(status, "currentImage"), "-"),
        .target_image = text_or(json_str(status, "targetImage"), "-"),
        .stable_revision = text_or(json_str(status, "currentRevisionName"), "-"),
        .target_revision = text_or(json_str(status, "updateRevisionName"), "-"),
        .message = text_or(json_str(status, "message"), ""),
        .proven = json_get(status, "provenRevisionNames"),
        .done_ordinals = json_get(status, "doneOrdinals"),
        .fence = fence,
        .stage = MAX(json_int64_or(status, "currentPartition", 0), fence),
        .budget =
            json_int64_or(status, "effectiveMaxUnavailable", json_int64_or(strategy, "maxUnavailable", 1)),
        .is_paused = json_bool_or(strategy, "pause", false),
        .is_adopting = kube_object_annotation(object, NEOSET_ADOPTS_ANNOTATION) != NULL,
        .conditions = json_get(status, "conditions"),
        .waited_for = text_or(json_str(status, "currentUpdatePod"), ""),
        .recreates =
            str_equal(json_str(strategy, "type"), "Recreate") ? "the update strategy is Recreate" : NULL,
        .patience_us = seconds_us(json_get(strategy, "inPlaceUpdateStrategy"), "readinessTimeoutSeconds",
                                  PATIENCE_DEFAULT_S),
    };
    bool differs = !str_equal(ret->target_revision, ret->stable_revision);
    /* Going back to stable is a rollout too, and only the phase tells it. */
    ret->is_way_back = !differs && !str_equal(ret->target_revision, "-") &&
                       (str_equal(ret->phase, "RollingOut") || str_equal(ret->phase, "Canary"));
    ret->is_rolling = differs || ret->is_way_back;
}

bool set_view_is_observed(const struct set_view *set)
{
    return set->has_status && set->observed_generation >= set->generation;
}

bool set_view_has_failed(const struct set_view *set)
{
    return !set->is_deleting && set_view_is_observed(set) && str_equal(set->phase, "Failed");
}

char *set_view_selector(const cJSON *object)
{
    return selector_print(json_path(object, "spec", "selector", NULL));
}

/* --- images ----------------------------------------------------------------------------------------- */

/* One container: its image; several: each with its name. The caller's. */
static char *images_of(const cJSON *pod_spec)
{
    const cJSON *containers = json_get(pod_spec, "containers");
    int count = cJSON_GetArraySize(containers);
    struct buf text = BUF_INIT((size_t)1024 * 1024);
    const cJSON *container = NULL;
    cJSON_ArrayForEach (container, containers) {
        if (text.length > 0)
            buf_add_text(&text, ", ");
        if (count > 1)
            buf_addf(&text, "%s=", text_or(json_str(container, "name"), "?"));
        buf_add_text(&text, text_or(json_str(container, "image"), "?"));
    }
    if (text.length == 0)
        buf_add_char(&text, '-');
    return buf_take(&text);
}

/* --- what a pod waits for --------------------------------------------------------------------------- */

/* "REASON: message", what there is of it; first line only. */
static void add_reason(struct buf *text, const cJSON *state)
{
    const char *message = text_or(json_str(state, "message"), "");
    /* What programs tell each other, as our own gate does. */
    if (*message == '{')
        message = "";
    buf_add_text(text, text_or(json_str(state, "reason"), "no reason given"));
    size_t length = MIN(strcspn(message, "\n"), (size_t)512);
    if (length > 0) {
        buf_add_text(text, ": ");
        buf_add(text, message, length);
    }
}

/* Starting is no trouble; everything else that a kubelet gives as a reason for waiting is. */
static bool is_starting(const char *reason)
{
    return !reason || str_equal(reason, "ContainerCreating") || str_equal(reason, "PodInitializing");
}

static bool container_phrase(const cJSON *status, struct buf *text, bool *ret_trouble)
{
    const cJSON *waiting = json_path(status, "state", "waiting", NULL);
    const cJSON *terminated = json_path(status, "state", "terminated", NULL);
    const char *name = text_or(json_str(status, "name"), "?");
    if (waiting) {
        buf_addf(text, "container %s: ", name);
        add_reason(text, waiting);
        *ret_trouble = !is_starting(json_str(waiting, "reason"));
        return true;
    }
    if (terminated) {
        buf_addf(text, "container %s ended with exit code %" PRId64 ": ", name,
                 json_int64_or(terminated, "exitCode", -1));
        add_reason(text, terminated);
        *ret_trouble = true;
        return true;
    }
    if (!json_bool_or(status, "ready", false)) {
        bool is_started = json_bool_or(status, "started", true);
        buf_addf(text, "container %s runs and is not %s yet", name, is_started ? "ready" : "started");
        return true;
    }
    return false;
}

static bool condition_phrase(const cJSON *pod, const char *type, const char *lead, struct buf *text)
{
    const cJSON *condition = kube_object_condition(pod, type);
    if (!condition || !str_equal(json_str(condition, "status"), "False"))
        return false;
    buf_addf(text, "%s: ", lead);
    add_reason(text, condition);
    return true;
}

static void phrase_of_pod(const cJSON *pod, int64_t now_us, struct buf *text, bool *ret_trouble)
{
    const cJSON *status = json_get(pod, "status");
    const char *phase = text_or(json_str(status, "phase"), "");
    if (kube_object_is_deleting(pod)) {
        char age[TIME_TEXT_SIZE];
        int64_t beyond_us = now_us - kube_object_deleting_us(pod);
        duration_format(MAX(beyond_us, 0), age);
        buf_add_text(text, "terminating");
        if (beyond_us > 0)
            buf_addf(text, ", for %s beyond its grace period", age);
        return;
    }
    if (str_equal(phase, "Failed") || str_equal(phase, "Succeeded")) {
        buf_addf(text, "%s: ", phase);
        add_reason(text, status);
        *ret_trouble = true;
        return;
    }
    if (condition_phrase(pod, "PodScheduled", "no node for it", text)) {
        *ret_trouble = true;
        return;
    }
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        const cJSON *container = NULL;
        cJSON_ArrayForEach (container, json_get(status, lists[i])) {
            /* An init container that did its work is done. */
            bool is_done = i == 0 && json_int64_or(json_path(container, "state", "terminated", NULL),
                                                   "exitCode", 1) == 0;
            bool is_init_running = i == 0 && json_path(container, "state", "running", NULL);
            if (!is_done && !is_init_running && container_phrase(container, text, ret_trouble))
                return;
        }
    }
    if (condition_phrase(pod, NEOSET_GATE, "its gate is closed", text))
        return;
    if (!kube_object_condition_is_true(pod, "Ready") && !condition_phrase(pod, "Ready", "not ready", text))
        buf_add_text(text, "not ready yet");
}

/* A healthy pod that is not on the target: why not. */
static void phrase_of_old(const struct set_view *set, const struct pod_view *pod, struct buf *text)
{
    int64_t index = pod->ordinal - set->first_ordinal;
    if (str_equal(set->target_revision, "-") || !set->is_rolling)
        return;
    if (index < set->fence)
        buf_addf(text, "held back by partition %" PRId64, set->fence);
    else if (set->is_paused)
        buf_add_text(text, "to be updated; the set is paused");
    else if (index < set->stage)
        buf_addf(text, "its turn comes when stage %" PRId64 " is done", set->stage);
    else
        buf_add_text(text, "to be updated next");
}

/* An ordinal that the controller counts as done; also where it keeps no count. */
static bool is_done(const struct set_view *set, int64_t pod_ordinal)
{
    if (!set->is_rolling || !cJSON_IsArray(set->done_ordinals))
        return true;
    const cJSON *ordinal = NULL;
    cJSON_ArrayForEach (ordinal, set->done_ordinals) {
        if (cJSON_IsNumber(ordinal) && ordinal->valuedouble == (double)pod_ordinal)
            return true;
    }
    return false;
}

/* A ready pod on the target that the controller does not count as done yet. */
static void phrase_of_new(const struct set_view *set, const struct pod_view *pod, struct buf *text)
{
    if (!is_done(set, pod->ordinal))
        buf_add_text(text, "ready; it must stay so for some seconds to count as done");
}

/* --- at one glance ---------------------------------------------------------------------------------- */

static enum pod_state state_of_old(const struct set_view *set, const cJSON *object,
                                   const struct pod_view *pod)
{
    const cJSON *gate = kube_object_condition(object, NEOSET_GATE);
    bool is_drained = gate && str_equal(json_str(gate, "status"), "False");
    if (!pod->is_ready)
        return is_drained ? POD_UPDATING : POD_STARTING;
    if (!set->is_rolling)
        return str_equal(set->target_revision, "-") ? POD_DONE : POD_WAITING;
    return pod->ordinal - set->first_ordinal < set->fence ? POD_HELD : POD_WAITING;
}

static enum pod_state state_of_pod(const struct set_view *set, const cJSON *object,
                                   const struct pod_view *pod)
{
    int64_t index = pod->ordinal - set->first_ordinal;
    if (pod->is_terminating)
        return POD_TERMINATING;
    if (index < 0 || index >= set->wanted)
        return POD_EXTRA;
    if (pod->is_trouble)
        return POD_BROKEN;
    if (pod->version != POD_ON_TARGET)
        return state_of_old(set, object, pod);
    if (!is_done(set, pod->ordinal))
        return POD_UPDATING;
    return pod->is_ready ? POD_DONE : POD_STARTING;
}

static int64_t changed_us(const cJSON *object, const char *condition)
{
    const char *text = json_str(kube_object_condition(object, condition), "lastTransitionTime");
    int64_t at_us = 0;
    return text && time_parse_rfc3339(text, &at_us, NULL) == 0 ? at_us : 0;
}

/* As the controller counts (neoset.md, "When it does not become ready"): from the patch, with the time that
 * the old containers may take to stop; of a pod that was made anew from when it had a node. */
static void time_of_update(const struct set_view *set, const cJSON *object, struct pod_view *pod)
{
    struct intern *pool = intern_make();
    const char *annotation = kube_object_annotation(object, NEOSET_STATE_ANNOTATION);
    struct in_place_state *state = in_place_state_parse(pool, annotation);
    int64_t grace_us = seconds_us(json_get(object, "spec"), "terminationGracePeriodSeconds", GRACE_DEFAULT_S);
    if (state && state->at_us > 0 && str_equal(state->target, pod->revision)) {
        pod->since_us = state->at_us;
        pod->until_us = state->at_us + set->patience_us + state->container_count * grace_us;
    } else {
        pod->since_us = MAX(kube_object_created_us(object), 0);
        int64_t scheduled_us = changed_us(object, "PodScheduled");
        if (scheduled_us > 0 && kube_object_condition_is_true(object, "PodScheduled"))
            pod->until_us = scheduled_us + set->patience_us;
    }
    in_place_state_free(state);
    intern_free(pool);
}

static void time_of_pod(const struct set_view *set, const cJSON *object, struct pod_view *pod)
{
    bool is_moved = set->is_rolling && pod->version == POD_ON_TARGET && !is_done(set, pod->ordinal) &&
                    !pod->is_terminating;
    if (is_moved)
        time_of_update(set, object, pod);
    else if (pod->state == POD_TERMINATING)
        pod->until_us = MAX(kube_object_deleting_us(object), 0);
    else if (pod->state == POD_UPDATING)
        pod->since_us = changed_us(object, NEOSET_GATE);
    else if (!pod->is_ready)
        pod->since_us = changed_us(object, "Ready");
}

/* --- pods ------------------------------------------------------------------------------------------- */

/* In a crash loop: the log of what ended last tells why, and `kubectl logs` alone shows the next try's. */
static const char *crashing_container(const cJSON *pod)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        const cJSON *container = NULL;
        cJSON_ArrayForEach (container, json_path(pod, "status", lists[i], NULL)) {
            const cJSON *state = json_get(container, "state");
            bool waits = str_equal(json_path_str(state, "waiting", "reason", NULL), "CrashLoopBackOff");
            bool ended = i > 0 && json_get(state, "terminated");
            if ((waits || ended) && json_int64_or(container, "restartCount", 0) > 0)
                return json_str(container, "name");
        }
    }
    return NULL;
}

static void view_of_pod(const struct set_view *set, const cJSON *object, int64_t now_us, struct pod_view *ret)
{
    size_t set_length;
    int ordinal = -1;
    const char *name = text_or(kube_object_name(object), "");
    neoset_split_pod_name(name, &set_length, &ordinal);
    const char *revision = text_or(kube_object_label(object, NEOSET_REVISION_LABEL), "-");
    *ret = (struct pod_view){
        .name = name,
        .ordinal = ordinal,
        .crashing = crashing_container(object),
        .is_ready = kube_object_condition_is_true(object, "Ready"),
        .is_terminating = kube_object_is_deleting(object),
        .version = POD_ON_OTHER,
        .revision = revision,
        .images = images_of(json_get(object, "spec")),
    };
    if (str_equal(revision, set->target_revision))
        ret->version = POD_ON_TARGET;
    else if (str_equal(revision, set->stable_revision))
        ret->version = POD_ON_STABLE;
    const cJSON *container = NULL;
    cJSON_ArrayForEach (container, json_path(object, "status", "containerStatuses", NULL)) {
        ret->restarts += json_int64_or(container, "restartCount", 0);
    }
    struct buf text = BUF_INIT(PHRASE_MAX);
    if (!ret->is_ready || ret->is_terminating)
        phrase_of_pod(object, now_us, &text, &ret->is_trouble);
    else if (ordinal - set->first_ordinal >= set->wanted)
        buf_addf(&text, "not one of the %" PRId64 " wanted: to be deleted", set->wanted);
    else if (ret->version != POD_ON_TARGET)
        phrase_of_old(set, ret, &text);
    else
        phrase_of_new(set, ret, &text);
    ret->waits_for = buf_take(&text);
    ret->state = state_of_pod(set, object, ret);
    time_of_pod(set, object, ret);
}

/* During an adoption: a pod that is to be the set's, and is still the StatefulSet's, or nobody's. */
static bool is_to_come(const struct set_view *set, const cJSON *object, const cJSON **ret_owner)
{
    size_t length = 0;
    int ordinal = -1;
    const char *name = text_or(kube_object_name(object), "");
    *ret_owner = kube_object_controller(object);
    bool is_of_set = str_equal(json_str(*ret_owner, "kind"), "StatefulSet") &&
                     str_equal(json_str(*ret_owner, "name"), set->name);
    return set->is_adopting && (!*ret_owner || is_of_set) && neoset_split_pod_name(name, &length, &ordinal) &&
           length == strlen(set->name) && str_starts_with(name, set->name);
}

static void view_of_foreign(const struct set_view *set, const cJSON *object, const cJSON *old_owner,
                            int64_t now_us, struct pod_view *ret)
{
    view_of_pod(set, object, now_us, ret);
    if (ret->is_trouble || ret->is_terminating)
        return;
    free(ret->waits_for);
    ret->waits_for = old_owner ? xasprintf("StatefulSet %s still has it", set->name)
                               : xstrdup("it belongs to nobody: to be taken over");
    ret->state = POD_FOREIGN;
}

static void add_missing(const struct set_view *set, struct pod_views *pods, size_t room)
{
    size_t found = pods->count;
    for (int64_t index = 0; index < set->wanted && index < PODS_MAX && pods->count < room; index++) {
        int64_t ordinal = set->first_ordinal + index;
        bool is_there = false;
        for (size_t i = 0; i < found && !is_there; i++)
            is_there = pods->items[i].ordinal == ordinal;
        if (is_there)
            continue;
        struct pod_view *pod = &pods->items[pods->count++];
        *pod = (struct pod_view){.memory = xasprintf("%s-%" PRId64, set->name, ordinal),
                                 .ordinal = ordinal,
                                 .is_missing = true,
                                 .state = POD_MISSING,
                                 .version = POD_ON_OTHER,
                                 .revision = "-",
                                 .images = xstrdup("-"),
                                 .waits_for = xstrdup("missing: to be created")};
        pod->name = pod->memory;
    }
}

static int compare_pods(const void *a, const void *b)
{
    const struct pod_view *left = a;
    const struct pod_view *right = b;
    if (left->ordinal != right->ordinal)
        return left->ordinal > right->ordinal ? -1 : 1;
    return strcmp(left->name, right->name);
}

void pod_views_make(const struct set_view *set, const cJSON *objects, int64_t now_us, struct pod_views *ret)
{
    int64_t wanted = MIN(MAX(set->wanted, 0), (int64_t)PODS_MAX);
    size_t room = (size_t)cJSON_GetArraySize(objects) + (size_t)wanted;
    *ret = (struct pod_views){.items = xcalloc(room + 1, sizeof *ret->items)};
    const cJSON *object = NULL;
    const cJSON *old_owner = NULL;
    cJSON_ArrayForEach (object, objects) {
        if (set->uid && kube_object_is_controlled_by(object, set->uid))
            view_of_pod(set, object, now_us, &ret->items[ret->count++]);
        else if (is_to_come(set, object, &old_owner))
            view_of_foreign(set, object, old_owner, now_us, &ret->items[ret->count++]);
    }
    if (!set->is_deleting)
        add_missing(set, ret, room);
    qsort(ret->items, ret->count, sizeof *ret->items, compare_pods);
}

void pod_views_done(struct pod_views *pods)
{
    for (size_t i = 0; i < pods->count; i++) {
        free(pods->items[i].memory);
        free(pods->items[i].images);
        free(pods->items[i].waits_for);
    }
    free(pods->items);
    *pods = (struct pod_views){0};
}

const struct pod_view *pod_views_waited_for(const struct set_view *set, const struct pod_views *pods)
{
    static const enum pod_state order[] = {POD_BROKEN, POD_UPDATING, POD_STARTING, POD_TERMINATING,
                                           POD_FOREIGN};
    for (size_t i = 0; i < pods->count; i++)
        if (str_equal(pods->items[i].name, set->waited_for) && pods->items[i].state != POD_DONE)
            return &pods->items[i];
    for (size_t i = 0; i < ARRAY_SIZE(order); i++)
        for (size_t j = 0; j < pods->count; j++)
            if (pods->items[j].state == order[i])
                return &pods->items[j];
    /* Pods are created from the lowest ordinal up. */
    for (size_t i = pods->count; i > 0; i--)
        if (pods->items[i - 1].state == POD_MISSING)
            return &pods->items[i - 1];
    return NULL;
}

/* --- revisions -------------------------------------------------------------------------------------- */

static int compare_revisions(const void *a, const void *b)
{
    const struct revision_view *left = a;
    const struct revision_view *right = b;
    if (left->number != right->number)
        return left->number > right->number ? -1 : 1;
    return strcmp(left->name, right->name);
}

void revision_views_make(const struct set_view *set, const cJSON *objects, const struct pod_views *pods,
                         struct revision_views *ret)
{
    size_t room = (size_t)cJSON_GetArraySize(objects);
    *ret = (struct revision_views){.items = xcalloc(room + 1, sizeof *ret->items)};
    const cJSON *object = NULL;
    cJSON_ArrayForEach (object, objects) {
        /* The manifest of a StatefulSet that was adopted is kept as one, too. */
        if (!set->uid || !kube_object_is_owned_by(object, set->uid) || kube_object_label(object, KEEP_LABEL))
            continue;
        struct revision_view *revision = &ret->items[ret->count++];
        *revision = (struct revision_view){
            .name = text_or(kube_object_name(object), ""),
            .number = json_int64_or(object, "revision", 0),
            .created_us = kube_object_created_us(object),
            .images = images_of(json_path(object, "data", "spec", "template", "spec", NULL)),
        };
        for (size_t i = 0; i < pods->count; i++)
            revision->pods += str_equal(pods->items[i].revision, revision->name);
    }
    qsort(ret->items, ret->count, sizeof *ret->items, compare_revisions);
}

void revision_views_done(struct revision_views *revisions)
{
    for (size_t i = 0; i < revisions->count; i++)
        free(revisions->items[i].images);
    free(revisions->items);
    *revisions = (struct revision_views){0};
}
