/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_set.h"

#include "base/time_text.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#define WALL_US (1800000000 * US_PER_S)
enum { TURNS_MAX = 200 };

static int64_t wall_us(const struct fake *fake)
{
    return WALL_US + fake->boot_us;
}

static void touch(struct fake *fake, cJSON *object)
{
    CLEANUP_FREE char *version = xasprintf("%lld", (long long)++fake->serial);
    json_set_str(json_ensure_object(object, "metadata"), "resourceVersion", version);
}

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    assert_int_equal(json_parse(text, strlen(text), &tree, NULL), 0);
    return tree;
}

static cJSON *find(const cJSON *list, const char *name)
{
    cJSON *object = NULL;
    cJSON_ArrayForEach (object, list) {
        if (str_equal(json_path_str(object, "metadata", "name", NULL), name))
            return object;
    }
    return NULL;
}

static const char *label(const cJSON *pod)
{
    return json_path_str(pod, "metadata", "labels", NEOSET_REVISION_LABEL, NULL);
}

static bool is_deleting(const cJSON *object)
{
    return json_path_str(object, "metadata", "deletionTimestamp", NULL) != NULL;
}

static const cJSON *condition(const cJSON *object, const char *type)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_path(object, "status", "conditions", NULL)) {
        if (str_equal(json_str(item, "type"), type))
            return item;
    }
    return NULL;
}

static bool is_true(const cJSON *object, const char *type)
{
    return str_equal(json_str(condition(object, type), "status"), "True");
}

/* --- the set -------------------------------------------------------------------------------------------- */

struct fake *fake_make(int replicas, const char *image)
{
    struct fake *fake = xcalloc(1, sizeof(*fake));
    fake->boot_us = 1000 * US_PER_S;
    fake->pods = json_new_array();
    fake->prefetches = json_new_array();
    fake->waits = xstrdup("");
    fake->claims = json_new_array();
    fake->revisions = json_new_array();
    fake->pool = intern_make();
    fake->memory = neoset_memory_make();
    fake->events = xstrdup("");
    fake->patched = xstrdup("");
    fake->operations = xstrdup("");
    fake->can_probe = true;
    CLEANUP_FREE char *text = xasprintf(
        "{\"metadata\":{\"name\":\"db\",\"namespace\":\"default\",\"uid\":\"set-uid\",\"generation\":1},"
        "\"spec\":{\"replicas\":%d,\"serviceName\":\"db\",\"selector\":{\"matchLabels\":{\"app\":\"db\"}},"
        "\"template\":{\"metadata\":{\"labels\":{\"app\":\"db\"}},\"spec\":{"
        "\"terminationGracePeriodSeconds\":2,"
        "\"containers\":[{\"name\":\"main\",\"image\":\"%s\"}]}},"
        "\"updateStrategy\":{\"inPlaceUpdateStrategy\":{}}}}",
        replicas, image);
    fake->set = parse(text);
    touch(fake, fake->set);
    return fake;
}

void fake_free(struct fake *fake)
{
    if (!fake)
        return;
    json_delete(fake->set);
    json_delete(fake->pods);
    json_delete(fake->prefetches);
    free(fake->waits);
    json_delete(fake->claims);
    json_delete(fake->rival);
    json_delete(fake->revisions);
    json_delete(fake->status);
    neoset_memory_free(fake->memory);
    intern_free(fake->pool);
    free(fake->events);
    free(fake->patched);
    free(fake->last);
    free(fake->operations);
    free(fake);
}

void fake_edit(struct fake *fake, const char *value, ...)
{
    cJSON *at = json_get(fake->set, "spec");
    va_list keys;
    va_start(keys, value);
    const char *key = va_arg(keys, const char *);
    for (const char *next = va_arg(keys, const char *); next; next = va_arg(keys, const char *)) {
        at = json_ensure_object(at, key);
        key = next;
    }
    va_end(keys);
    json_set_item(at, key, parse(value));
    cJSON *metadata = json_get(fake->set, "metadata");
    json_set_item(metadata, "generation", json_new_int64(json_int64_or(metadata, "generation", 0) + 1));
    touch(fake, fake->set);
}

static void edit_number(struct fake *fake, const char *key, int number)
{
    CLEANUP_FREE char *text = xasprintf("%d", number);
    fake_edit(fake, text, "updateStrategy", key, NULL);
}

void fake_set_image(struct fake *fake, const char *image)
{
    CLEANUP_FREE char *text = xasprintf("[{\"name\":\"main\",\"image\":\"%s\"}]", image);
    fake_edit(fake, text, "template", "spec", "containers", NULL);
}

void fake_set_fence(struct fake *fake, int partition)
{
    edit_number(fake, "partition", partition);
}

void fake_set_budget(struct fake *fake, int max_unavailable)
{
    edit_number(fake, "maxUnavailable", max_unavailable);
}

void fake_scale(struct fake *fake, int replicas)
{
    CLEANUP_FREE char *text = xasprintf("%d", replicas);
    fake_edit(fake, text, "replicas", NULL);
}

void fake_pause(struct fake *fake, bool pause)
{
    fake_edit(fake, pause ? "true" : "false", "updateStrategy", "pause", NULL);
}

void fake_restart(struct fake *fake)
{
    neoset_memory_free(fake->memory);
    fake->memory = neoset_memory_make();
}

cJSON *fake_pod(const struct fake *fake, const char *name)
{
    return find(fake->pods, name);
}

const char *fake_image(const struct fake *fake, const char *pod)
{
    const cJSON *containers = json_path(fake_pod(fake, pod), "spec", "containers", NULL);
    return json_str(containers ? containers->child : NULL, "image");
}

const char *fake_revision(const struct fake *fake, const char *pod)
{
    return label(fake_pod(fake, pod));
}

void fake_delete_pod(struct fake *fake, const char *name)
{
    cJSON *pod = fake_pod(fake, name);
    if (!pod)
        return;
    char text[TIME_TEXT_SIZE];
    time_format_seconds(wall_us(fake), text);
    json_set_str(json_get(pod, "metadata"), "deletionTimestamp", text);
    touch(fake, pod);
}

void fake_lose_status(struct fake *fake)
{
    json_remove(fake->set, "status");
    touch(fake, fake->set);
}

void fake_delete_revision(struct fake *fake, unsigned index)
{
    int count = cJSON_GetArraySize(fake->revisions);
    if (count > 0)
        json_delete(cJSON_DetachItemFromArray(fake->revisions, (int)(index % (unsigned)count)));
}

const char *fake_text(const struct fake *fake, const char *key)
{
    return json_path_str(fake->set, "status", key, NULL);
}

int64_t fake_number(const struct fake *fake, const char *key)
{
    return json_int64_or(json_get(fake->set, "status"), key, -1);
}

bool fake_condition_is(const struct fake *fake, const char *type, const char *status)
{
    return str_equal(json_str(condition(fake->set, type), "status"), status);
}

/* --- the invariants ------------------------------------------------------------------------------------- */

static int replicas_of(const struct fake *fake)
{
    return (int)json_int64_or(json_get(fake->set, "spec"), "replicas", 1);
}

static int ordinal_of(const char *pod)
{
    size_t length = 0;
    int ordinal = -1;
    assert_true(neoset_split_pod_name(pod, &length, &ordinal));
    return ordinal;
}

static int start_of(const struct fake *fake)
{
    return (int)json_int64_or(json_path(fake->set, "spec", "ordinals", NULL), "start", 0);
}

static int fence_of(const struct fake *fake)
{
    return (int)json_int64_or(json_path(fake->set, "spec", "updateStrategy", NULL), "partition", 0);
}

static int budget_of(const struct fake *fake)
{
    return (int)json_int64_or(json_path(fake->set, "spec", "updateStrategy", NULL), "maxUnavailable", 1);
}

static bool list_has(const struct fake *fake, const char *key, int ordinal)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_path(fake->set, "status", key, NULL)) {
        int64_t number = -1;
        if (json_node_int64(item, &number) && number == ordinal)
            return true;
    }
    return false;
}

static int serving(const struct fake *fake)
{
    int count = 0;
    const cJSON *pod = NULL;
    cJSON_ArrayForEach (pod, fake->pods) {
        const char *name = json_path_str(pod, "metadata", "name", NULL);
        count += is_true(pod, "Ready") && !is_deleting(pod) &&
                 ordinal_of(name) < start_of(fake) + replicas_of(fake);
    }
    return count;
}

/* Of the ordinals that were moved to the target, or are on the way, those that do not serve; but for one. */
static int moved_and_down(const struct fake *fake, const char *but)
{
    const char *target = fake_text(fake, "updateRevisionName");
    int down = 0;
    for (int i = start_of(fake); i < start_of(fake) + replicas_of(fake); i++) {
        CLEANUP_FREE char *name = xasprintf("db-%d", i);
        const cJSON *pod = fake_pod(fake, name);
        bool moved = list_has(fake, "leftStableOrdinals", i) && !str_equal(name, but);
        bool draining = pod && str_equal(json_str(condition(pod, NEOSET_GATE), "status"), "False");
        bool there = pod && (str_equal(label(pod), target) || draining || is_deleting(pod));
        down += moved && (!pod || (there && !is_true(pod, "Ready")));
    }
    return down;
}

/* A write that moves a pod to the target: what is stored allows it, and enough pods are left. */
static void check_moves(struct fake *fake, const struct step_request *step, const cJSON *pod)
{
    const char *target = fake_text(fake, "updateRevisionName");
    int ordinal = ordinal_of(step->name);
    assert_string_not_equal(label(pod), target);
    assert_true(ordinal - start_of(fake) >= fence_of(fake));
    assert_true(list_has(fake, "leftStableOrdinals", ordinal));
    assert_false(json_bool_or(json_path(fake->set, "spec", "updateStrategy", NULL), "pause", false));
    bool begins =
        is_true(pod, "Ready") && !str_equal(json_str(condition(pod, NEOSET_GATE), "status"), "False");
    if (begins && step->lowers_availability && serving(fake) - 1 < replicas_of(fake) - budget_of(fake))
        fail_msg("%s: only %d pods serve, and there must be %d", step->reason, serving(fake),
                 replicas_of(fake) - budget_of(fake));
    if (begins && step->lowers_availability && moved_and_down(fake, step->name) >= budget_of(fake))
        fail_msg("%s: %d moved pods are down already", step->reason, moved_and_down(fake, step->name));
    bool done = list_has(fake, "doneOrdinals", ordinal);
    assert_false(done);
}

/* Once a pod and change of target. */
static void check_once(struct fake *fake, const struct step_request *step)
{
    if (step->kind == STEP_GATE)
        return;
    CLEANUP_FREE char *line =
        xasprintf("%s/%d/%s\n", step->uid, fake->target_changes, step_kind_info(step->kind)->text);
    if (strstr(fake->patched, line))
        fail_msg("%s: %s a second time for one target", step->name, step_kind_info(step->kind)->text);
    char *all = xasprintf("%s%s", fake->patched, line);
    free(fake->patched);
    fake->patched = all;
}

static bool is_move(const struct step_request *step)
{
    if (step->resource != KUBE_POD)
        return false;
    return step->kind == STEP_UPDATE_IN_PLACE || (step->kind == STEP_DELETE && step->lowers_availability) ||
           (step->kind == STEP_GATE && step->lowers_availability);
}

/* A created pod runs stable, unless what is stored says that its ordinal left it. */
static void check_create(struct fake *fake, const struct step_request *step)
{
    assert_null(find(fake->pods, step->name));
    int ordinal = ordinal_of(step->name);
    bool proven = json_bool_or(json_get(fake->set, "status"), "currentRevisionProven", false);
    bool target = ordinal - start_of(fake) >= fence_of(fake) &&
                  (!proven || list_has(fake, "leftStableOrdinals", ordinal));
    assert_string_equal(label(step->body),
                        fake_text(fake, target ? "updateRevisionName" : "currentRevisionName"));
    assert_int_equal(is_true(step->body, NEOSET_GATE), 0);
}

/* --- writes --------------------------------------------------------------------------------------------- */

static void merge(cJSON *to, const cJSON *patch);

/* Lists of a pod that merge by a key. */
static bool merges_by_key(const char *list, const char **ret_key)
{
    if (str_equal(list, "containers"))
        *ret_key = "name";
    else if (str_equal(list, "conditions"))
        *ret_key = "type";
    else
        return false;
    return true;
}

static void merge_list(cJSON *to, const cJSON *patch, const char *key)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, patch) {
        cJSON *found = NULL, *there = NULL;
        cJSON_ArrayForEach (there, to) {
            if (str_equal(json_str(there, key), json_str(item, key)))
                found = there;
        }
        if (found)
            merge(found, item);
        else
            json_append_item(to, json_copy(item));
    }
}

static void merge(cJSON *to, const cJSON *patch)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, patch) {
        cJSON *there = json_get(to, item->string);
        const char *key = NULL;
        if (cJSON_IsNull(item))
            json_remove(to, item->string);
        else if (cJSON_IsObject(item) && cJSON_IsObject(there))
            merge(there, item);
        else if (cJSON_IsArray(item) && cJSON_IsArray(there) && merges_by_key(item->string, &key))
            merge_list(there, item, key);
        else
            json_set_item(to, item->string, json_copy(item));
    }
}

static bool is_prefetch(const char *name)
{
    size_t length = 0;
    return neoset_split_prefetch_name(name, &length);
}

static cJSON *list_of(const struct fake *fake, enum kube_resource resource, const char *name)
{
    if (resource == KUBE_POD && is_prefetch(name))
        return fake->prefetches;
    return resource == KUBE_POD ? fake->pods : resource == KUBE_CLAIM ? fake->claims : fake->revisions;
}

static void create(struct fake *fake, const struct step_request *step)
{
    /* As the wire has it: some of it may be raw text. */
    CLEANUP_FREE char *text = json_print(step->body);
    cJSON *object = NULL;
    assert_int_equal(json_parse(text, strlen(text), &object, NULL), 0);
    cJSON *metadata = json_get(object, "metadata");
    CLEANUP_FREE char *uid = xasprintf("uid-%lld", (long long)++fake->serial);
    json_set_str(metadata, "uid", uid);
    json_set_item(metadata, "generation", json_new_int64(1));
    char now[TIME_TEXT_SIZE];
    time_format_seconds(wall_us(fake), now);
    json_set_str(metadata, "creationTimestamp", now);
    if (step->resource == KUBE_POD)
        json_set_str(json_ensure_object(object, "status"), "phase", "Pending");
    if (step->resource == KUBE_POD && fake->node)
        json_set_str(json_get(object, "spec"), "nodeName", fake->node);
    touch(fake, object);
    json_append_item(list_of(fake, step->resource, step->name), object);
}

static void patch_object(struct fake *fake, cJSON *object, const cJSON *body)
{
    CLEANUP_JSON cJSON *before = json_copy(object);
    merge(object, body);
    if (json_equal(before, object))
        return;
    cJSON *metadata = json_get(object, "metadata");
    if (object == fake->set && !str_equal(json_path_str(before, "status", "updateRevisionName", NULL),
                                          fake_text(fake, "updateRevisionName")))
        fake->target_changes++;
    const cJSON *old_spec = json_get(before, "spec");
    if (old_spec && !json_equal(old_spec, json_get(object, "spec")))
        json_set_item(metadata, "generation", json_new_int64(json_int64_or(metadata, "generation", 0) + 1));
    touch(fake, object);
}

static void delete_object(struct fake *fake, enum kube_resource resource, cJSON *object)
{
    const char *name = json_path_str(object, "metadata", "name", NULL);
    if (resource == KUBE_POD && !is_prefetch(name))
        fake_delete_pod(fake, name);
    else
        json_delete(cJSON_DetachItemViaPointer(list_of(fake, resource, name), object));
}

static void count(struct fake *fake, const struct step_request *step)
{
    struct fake_counts *counts = &fake->counts;
    counts->writes++;
    if (step->resource == KUBE_POD && is_prefetch(step->name)) {
        counts->prefetches += step->kind == STEP_CREATE_POD;
        counts->prefetch_deletes += step->kind == STEP_DELETE;
        return;
    }
    counts->advances += step->kind == STEP_ADVANCE;
    counts->creates += step->kind == STEP_CREATE_POD;
    counts->deletes += step->kind == STEP_DELETE && step->resource == KUBE_POD;
    counts->patches += step->kind == STEP_UPDATE_IN_PLACE;
    counts->drains += step->kind == STEP_GATE && step->lowers_availability;
    counts->opens += step->kind == STEP_GATE && !step->lowers_availability;
    counts->revisions += step->kind == STEP_CREATE_REVISION;
}

static void tell(struct fake *fake, const struct step_request *step, enum journal_kind kind, int http)
{
    struct step_outcome outcome = {
        .step_kind = step->kind,
        .target = {step->resource, step->namespace, step->name},
        .fingerprint = step->fingerprint,
        .kind = kind,
        .http = http,
        .summary = http ? "refused by the test" : "",
        .reason = "",
    };
    neoset_note_outcome(fake->memory, &outcome, fake->boot_us);
}

static void do_step(struct fake *fake, struct step_request *step)
{
    const struct step_kind_info *info = step_kind_info(step->kind);
    CLEANUP_FREE char *key = xasprintf("0123456789abcdef-%lld", (long long)++fake->serial);
    assert_non_null(step->fingerprint);
    str_replace(&fake->last, step->reason);
    CLEANUP_FREE char *operation =
        xasprintf("%s->%s\n", step->operation_kind, step->go_to ? step->go_to : "");
    if (!str_ends_with(fake->operations, operation)) {
        char *all = xasprintf("%s%s", fake->operations, operation);
        free(fake->operations);
        fake->operations = all;
    }
    assert_non_null(step->operation_kind);
    count(fake, step);
    if (step->body)
        info->stamp(step->body, key);
    if (str_equal(info->method, "POST")) {
        bool prefetch = is_prefetch(step->name);
        if (prefetch && fake->refuse_prefetches) {
            tell(fake, step, JOURNAL_REJECTED, fake->refuse_prefetches);
            return;
        }
        if (step->resource == KUBE_POD && !prefetch)
            check_create(fake, step);
        create(fake, step);
        tell(fake, step, JOURNAL_APPLIED, 0);
        return;
    }
    cJSON *object = step->resource == KUBE_NEOSET
                        ? fake->set
                        : find(list_of(fake, step->resource, step->name), step->name);
    assert_non_null(object);
    assert_string_equal(step->uid, json_path_str(object, "metadata", "uid", NULL));
    if (!str_equal(step->version, json_path_str(object, "metadata", "resourceVersion", NULL)))
        return; /* 409: overtaken by an earlier write of this turn */
    if (is_move(step))
        check_moves(fake, step, object);
    int refused = step->kind == STEP_UPDATE_IN_PLACE ? fake->refuse_patches
                  : step->kind == STEP_GROW_CLAIM    ? fake->refuse_growth
                                                     : 0;
    if (refused) {
        tell(fake, step, JOURNAL_REJECTED, refused);
        return;
    }
    if (is_move(step))
        check_once(fake, step);
    if (step->kind == STEP_DELETE)
        delete_object(fake, step->resource, object);
    else
        patch_object(fake, object, step->body);
    tell(fake, step, JOURNAL_APPLIED, 0);
}

/* --- a turn --------------------------------------------------------------------------------------------- */

struct facts {
    struct fake *fake;
    struct neoset_fact *set;
    struct neoset_fact *rival; /* or NULL */
    struct pod_fact *pods[FAKE_PODS_MAX];
    size_t pod_count;
    struct pod_fact *prefetches[FAKE_PODS_MAX];
    size_t prefetch_count;
    struct claim_fact *claims[FAKE_PODS_MAX * 4];
    size_t claim_count;
    struct revision_fact *revisions[FAKE_PODS_MAX];
    size_t revision_count;
};

static void make_facts(struct fake *fake, struct facts *facts)
{
    *facts = (struct facts){.fake = fake, .set = neoset_fact_make(fake->pool, fake->set)};
    facts->rival = fake->rival ? neoset_fact_make(fake->pool, fake->rival) : NULL;
    const cJSON *object = NULL;
    cJSON_ArrayForEach (object, fake->pods)
        facts->pods[facts->pod_count++] = pod_fact_make(fake->pool, object);
    cJSON_ArrayForEach (object, fake->prefetches)
        facts->prefetches[facts->prefetch_count++] = pod_fact_make(fake->pool, object);
    cJSON_ArrayForEach (object, fake->claims)
        facts->claims[facts->claim_count++] = claim_fact_make(fake->pool, object);
    cJSON_ArrayForEach (object, fake->revisions)
        facts->revisions[facts->revision_count++] = revision_fact_make(fake->pool, object);
    for (size_t i = 0; i < facts->pod_count; i++)
        neoset_observe_pod(fake->memory, facts->pods[i], wall_us(fake), fake->boot_us);
    for (size_t i = 0; i < facts->prefetch_count; i++)
        neoset_observe_prefetch(fake->memory, facts->prefetches[i], fake->boot_us);
}

static void free_facts(struct facts *facts)
{
    neoset_fact_free(facts->set);
    neoset_fact_free(facts->rival);
    for (size_t i = 0; i < facts->pod_count; i++)
        pod_fact_free(facts->pods[i]);
    for (size_t i = 0; i < facts->prefetch_count; i++)
        pod_fact_free(facts->prefetches[i]);
    for (size_t i = 0; i < facts->claim_count; i++)
        claim_fact_free(facts->claims[i]);
    for (size_t i = 0; i < facts->revision_count; i++)
        revision_fact_free(facts->revisions[i]);
}

static const struct claim_fact *look_claim(void *context, const char *name)
{
    const struct facts *facts = context;
    for (size_t i = 0; i < facts->claim_count; i++)
        if (str_equal(facts->claims[i]->name, name))
            return facts->claims[i];
    return NULL;
}

static bool look_open(void *context, enum kube_resource resource, const char *name,
                      struct neoset_open_step *ret)
{
    const struct facts *facts = context;
    if (resource != KUBE_POD || !str_equal(facts->fake->open_pod, name))
        return false;
    *ret = (struct neoset_open_step){.in_doubt = true, .lowers_availability = true};
    return true;
}

static bool look_doubt(void *context)
{
    const struct facts *facts = context;
    return facts->fake->open_pod != NULL;
}

static bool look_wait(void *context, const char *action, enum kube_resource resource, const char *name,
                      int64_t budget_us, struct neoset_wait_view *ret)
{
    const struct facts *facts = context;
    (void)resource;
    (void)budget_us;
    if (str_equal(action, "prefetch")) {
        CLEANUP_FREE char *line = xasprintf("prefetch %s\n", name);
        ret->expired = str_equal(facts->fake->wait_expired, "prefetch");
        return strstr(facts->fake->waits, line) != NULL;
    }
    if (str_equal(action, "grow")) {
        CLEANUP_FREE char *line = xasprintf("grow %s\n", name);
        ret->expired = str_equal(facts->fake->wait_expired, "grow");
        return strstr(facts->fake->waits, line) != NULL;
    }
    if (!str_equal(action, "ready"))
        return false;
    ret->expired = str_equal(facts->fake->wait_expired, name);
    return true;
}

static void note_events(struct fake *fake, const struct neoset_decision *decision)
{
    for (size_t i = 0; i < decision->event_count; i++) {
        char *all = xasprintf("%s%s\n", fake->events, decision->events[i].reason);
        free(fake->events);
        fake->events = all;
    }
}

static void note_waits(struct fake *fake, const struct neoset_decision *decision)
{
    free(fake->waits);
    fake->waits = xstrdup("");
    for (size_t i = 0; i < decision->wait_count; i++) {
        const struct neoset_wait *wait = &decision->waits[i];
        char *all = xasprintf("%s%s %s\n", fake->waits, wait->action, wait->name);
        free(fake->waits);
        fake->waits = all;
    }
}

static void write_status(struct fake *fake, const struct neoset_decision *decision)
{
    json_delete(fake->status);
    fake->status = decision->status ? json_copy(decision->status) : NULL;
    if (!decision->status_patch)
        return;
    fake->counts.status_writes++;
    const cJSON *member = NULL;
    cJSON *status = json_ensure_object(fake->set, "status");
    cJSON_ArrayForEach (member, json_get(decision->status_patch, "status"))
        json_set_item(status, member->string, json_copy(member));
    touch(fake, fake->set);
}

static int revisions_in_use(const struct fake *fake)
{
    int used = 0;
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, fake->revisions) {
        const char *name = json_path_str(revision, "metadata", "name", NULL);
        bool in_use = str_equal(name, fake_text(fake, "currentRevisionName")) ||
                      str_equal(name, fake_text(fake, "updateRevisionName"));
        const cJSON *pod = NULL;
        cJSON_ArrayForEach (pod, fake->pods)
            in_use = in_use || str_equal(label(pod), name);
        used += in_use;
    }
    return used;
}

/* At rest: no pod is out of service for nothing, and history is cut. */
static void check_rest(const struct fake *fake)
{
    int limit = (int)json_int64_or(json_get(fake->set, "spec"), "revisionHistoryLimit", 10);
    assert_true(cJSON_GetArraySize(fake->revisions) <= limit + revisions_in_use(fake));
    int64_t budget = fake_number(fake, "effectiveMaxUnavailable");
    assert_true(budget >= 1);
}

int fake_turn(struct fake *fake)
{
    struct facts facts;
    make_facts(fake, &facts);
    neoset_observe_time(fake->memory, (const struct pod_fact *const *)facts.pods, facts.pod_count,
                        wall_us(fake), fake->boot_us);
    struct neoset_snapshot snapshot = {
        .wall_us = wall_us(fake),
        .boot_us = fake->boot_us,
        .fresh = true,
        .can_probe = fake->can_probe,
        .set = facts.set,
        .pods = (const struct pod_fact *const *)facts.pods,
        .pod_count = facts.pod_count,
        .prefetches = (const struct pod_fact *const *)facts.prefetches,
        .prefetch_count = facts.prefetch_count,
        .claims = (const struct claim_fact *const *)facts.claims,
        .claim_count = facts.claim_count,
        .rivals = (const struct neoset_fact *const *)&facts.rival,
        .rival_count = facts.rival ? 1 : 0,
        .has_waits = strstr(fake->waits, "prefetch ") != NULL,
        .revisions = (const struct revision_fact *const *)facts.revisions,
        .revision_count = facts.revision_count,
        .memory = fake->memory,
        .claim = look_claim,
        .open_step = look_open,
        .availability_in_doubt = look_doubt,
        .wait = look_wait,
        .context = &facts,
    };
    struct neoset_decision decision;
    neoset_plan(&snapshot, &decision);
    fake->wake_boot_us = decision.wake_boot_us;
    int steps = (int)decision.step_count;
    for (size_t i = 0; i < decision.step_count; i++)
        do_step(fake, decision.steps[i]);
    write_status(fake, &decision);
    note_events(fake, &decision);
    note_waits(fake, &decision);
    if (decision.probe_pod) {
        neoset_note_probe(fake->memory, decision.probe_revision, !fake->probe_refused,
                          fake->probe_refused ? "422 Invalid" : NULL, fake->boot_us);
        steps++; /* ask again */
    }
    if (steps == 0 && !decision.status_patch)
        check_rest(fake);
    neoset_decision_done(&decision);
    free_facts(&facts);
    return steps;
}

void fake_settle(struct fake *fake)
{
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        int status_writes = fake->counts.status_writes;
        if (fake_turn(fake) == 0 && fake->counts.status_writes == status_writes)
            return;
    }
    fail_msg("after %d turns there is still something to write: %s", TURNS_MAX, fake->last);
}

/* --- the kubelet ---------------------------------------------------------------------------------------- */

/* What runs, kept on the pod where no plan looks. */
static cJSON *runtime_of(cJSON *pod)
{
    return json_ensure_object(pod, "test-runtime");
}

static void put_condition(struct fake *fake, cJSON *status, const char *type, bool value)
{
    cJSON *conditions = json_get(status, "conditions");
    if (!conditions)
        conditions = json_add_array(status, "conditions");
    cJSON *found = NULL, *item = NULL;
    cJSON_ArrayForEach (item, conditions) {
        if (str_equal(json_str(item, "type"), type))
            found = item;
    }
    if (!found) {
        found = json_new_object();
        json_add_str(found, "type", type);
        json_append_item(conditions, found);
    }
    const char *text = value ? "True" : "False";
    if (str_equal(json_str(found, "status"), text))
        return;
    char now[TIME_TEXT_SIZE];
    time_format_seconds(wall_us(fake), now);
    json_set_str(found, "status", text);
    json_set_str(found, "lastTransitionTime", now);
}

static cJSON *container_status(const cJSON *name, const cJSON *run)
{
    cJSON *status = json_new_object();
    json_add_str(status, "name", name->valuestring);
    const char *id = json_str(run, "id"), *waiting = json_str(run, "waiting");
    const char *image = json_str(run, "image");
    json_add_str(status, "image", image ? image : "");
    if (id)
        json_add_str(status, "containerID", id);
    CLEANUP_FREE char *digest = xasprintf("sha256:%s", image ? image : "");
    json_add_str(status, "imageID", id ? digest : "");
    json_add_int64(status, "restartCount", json_int64_or(run, "restarts", 0));
    json_add_bool(status, "ready", json_bool_or(run, "ready", false));
    json_add_bool(status, "started", id && !waiting);
    cJSON *state = json_add_object(status, "state");
    if (waiting || !id)
        json_add_str(json_add_object(state, "waiting"), "reason", waiting ? waiting : "ContainerCreating");
    else
        json_add_object(state, "running");
    return status;
}

static void post_status(struct fake *fake, cJSON *pod)
{
    cJSON *status = json_ensure_object(pod, "status");
    cJSON *list = json_new_array();
    bool ready = true;
    const cJSON *container = NULL;
    cJSON_ArrayForEach (container, json_path(pod, "spec", "containers", NULL)) {
        const char *name = json_str(container, "name");
        cJSON *run = json_ensure_object(runtime_of(pod), name);
        ready = ready && json_bool_or(run, "ready", false);
        json_append_item(list, container_status(json_get(container, "name"), run));
    }
    json_set_item(status, "containerStatuses", list);
    json_set_str(status, "phase", "Running");
    if (!fake->old_kubelet)
        json_set_item(status, "observedGeneration",
                      json_copy(json_path(pod, "metadata", "generation", NULL)));
    put_condition(fake, status, "PodScheduled", true);
    put_condition(fake, status, "ContainersReady", ready);
    const cJSON *gate = NULL;
    cJSON_ArrayForEach (gate, json_path(pod, "spec", "readinessGates", NULL))
        ready = ready && is_true(pod, json_str(gate, "conditionType"));
    put_condition(fake, status, "Ready", ready);
}

static void start_container(struct fake *fake, cJSON *run, const char *image)
{
    bool first = !json_str(run, "id");
    CLEANUP_FREE char *id = xasprintf("containerd://%lld", (long long)++fake->serial);
    json_remove(run, "waiting");
    json_set_str(run, "id", id);
    json_set_str(run, "image", image);
    json_set_item(run, "restarts", json_new_int64(first ? 0 : json_int64_or(run, "restarts", 0) + 1));
    json_set_item(run, "ready", cJSON_CreateBool(false));
}

/* A container that was ready crashes, and is started again after a while that doubles. */
static void crash_on(struct fake *fake, cJSON *run, const char *image)
{
    int64_t restarts = MIN(json_int64_or(run, "restarts", 0), 5);
    int64_t waited = json_int64_or(run, "waited", 0) + 1;
    json_set_item(run, "waited", json_new_int64(waited));
    if (json_str(run, "waiting")) {
        if (waited >= 1 << restarts)
            start_container(fake, run, image);
        return;
    }
    bool ready = json_bool_or(run, "ready", false);
    json_set_item(run, "ready", cJSON_CreateBool(!ready));
    if (ready) {
        json_set_str(run, "waiting", "CrashLoopBackOff");
        json_set_item(run, "waited", json_new_int64(0));
    }
}

/* Behaviour by the image's name: "none" is not there, "unready" never becomes ready, "crash" crashes. */
static void act(struct fake *fake, cJSON *pod)
{
    const cJSON *container = NULL;
    cJSON_ArrayForEach (container, json_path(pod, "spec", "containers", NULL)) {
        const char *image = json_str(container, "image");
        cJSON *run = json_ensure_object(runtime_of(pod), json_str(container, "name"));
        bool asked = str_equal(json_str(run, "asked"), image);
        json_set_str(run, "asked", image);
        if (strstr(image, "none")) {
            json_set_item(run, "ready", cJSON_CreateBool(false));
            json_set_str(run, "waiting", "ErrImagePull");
        } else if (!asked) {
            start_container(fake, run, image);
        } else if (strstr(image, "crash")) {
            crash_on(fake, run, image);
        } else {
            json_set_item(run, "ready", cJSON_CreateBool(!strstr(image, "unready")));
        }
    }
}

static void sync_pod(struct fake *fake, cJSON *pod)
{
    CLEANUP_JSON cJSON *before = json_copy(json_ensure_object(pod, "status"));
    post_status(fake, pod);
    if (!json_equal(before, json_get(pod, "status")))
        touch(fake, pod);
    act(fake, pod);
}

/* A pod that fetches: "none" is not there, "slow" is being pulled, "odd" ends it without an answer, and
 * "mute" is not even taken up. */
static void sync_prefetch(struct fake *fake, cJSON *pod)
{
    CLEANUP_JSON cJSON *before = json_copy(json_get(pod, "status"));
    cJSON *status = json_get(pod, "status");
    cJSON *list = json_new_array();
    const cJSON *container = NULL;
    bool all = true, mute = false, odd = false;
    cJSON_ArrayForEach (container, json_path(pod, "spec", "containers", NULL)) {
        const char *image = json_str(container, "image");
        bool none = strstr(image, "none"), slow = strstr(image, "slow");
        cJSON *item = json_new_object();
        json_append_item(list, item);
        json_add_str(item, "name", json_str(container, "name"));
        json_add_str(item, "image", image);
        json_add_str(item, "imageID", none || slow ? "" : "sha256:there");
        cJSON *state = json_add_object(item, "state");
        cJSON *detail = json_add_object(state, none || slow ? "waiting" : "terminated");
        json_add_str(detail, "reason", none ? "ErrImagePull" : slow ? "ContainerCreating" : "StartError");
        if (none)
            json_add_str(detail, "message", "registry.example/db: not found");
        all = all && !none && !slow;
        mute = mute || strstr(image, "mute");
        odd = odd || strstr(image, "odd");
    }
    if (!mute && !odd)
        json_set_item(status, "containerStatuses", STEAL(list));
    json_delete(list);
    if (odd)
        json_set_str(status, "reason", "OutOfpods");
    if ((all && !mute) || odd)
        json_set_str(status, "phase", "Failed");
    if (!json_equal(before, status))
        touch(fake, pod);
}

void fake_sync(struct fake *fake)
{
    for (cJSON *prefetch = fake->prefetches->child; prefetch && !fake->no_kubelet; prefetch = prefetch->next)
        sync_prefetch(fake, prefetch);
    cJSON *pod = fake->pods->child;
    while (pod && !fake->no_kubelet) {
        cJSON *next = pod->next;
        if (is_deleting(pod)) {
            neoset_forget_pod(fake->memory, ordinal_of(json_path_str(pod, "metadata", "name", NULL)));
            json_delete(cJSON_DetachItemViaPointer(fake->pods, pod));
        } else {
            sync_pod(fake, pod);
        }
        pod = next;
    }
}

void fake_run(struct fake *fake, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        fake_settle(fake);
        fake->boot_us += US_PER_S;
        fake_sync(fake);
    }
    fake_settle(fake);
}

bool fake_run_until(struct fake *fake, const char *phase, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        fake_run(fake, 1);
        if (str_equal(fake_text(fake, "phase"), phase))
            return true;
    }
    return false;
}
