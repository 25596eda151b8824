/* SPDX-License-Identifier: Apache-2.0
 *
 * A StatefulSet whose volumes grow: its claims (16), its pods (17), how it is taken from them (18), what a
 * refusal wrote (20), whose it all is afterwards (21), how many pods others want (22). That it is there again
 * at the end (19) sees resize.c. */
#include "judge_parts.h"

#include "resize.h"

#include "control/step.h"
#include "kube/object.h"
#include "volume/converge.h"
#include "volume/decide.h"
#include "volume/keep.h"
#include "volume/quantity.h"
#include "volume/recreate.h"

#include <stdio.h>

/* What somebody asks of a set on its way out is looked for so often by who makes it again (and a write). */
#define NOTED_WITHIN_US (1 * US_PER_S)
/* The set's controller works off what it was told a moment ago. */
#define SCALED_WITHIN_US (10 * US_PER_S)
/* A claim goes with its pod, which may have been scaled away a while ago. */
#define CLAIM_GOES_WITHIN_US (180 * US_PER_S)
/* The pods were looked at so long ago at the most when their set is deleted. */
#define FRESH_WITHIN_US (2 * US_PER_S)
/* So often a run may ask one claim for its size, where its answers are lost. */
enum { ASKS_MAX = 3 };

static struct seen_statefulset *seen(struct judge *judge)
{
    return &judge->statefulset;
}

static bool by_us(const struct kubesim_change *change)
{
    return change->audit_id && str_starts_with(change->audit_id, "neo-");
}

static const char *who(const struct kubesim_change *change)
{
    return by_us(change) ? change->audit_id : change->user ? change->user : "the server";
}

static const struct resize_draw *draw_of(const struct judge *judge)
{
    return &judge->world->draw->resize;
}

/* --- replicas ------------------------------------------------------------------------------------------- */

int judge_wanted_replicas(const struct judge *judge)
{
    const struct seen_statefulset *set = &judge->statefulset;
    return set->wanted_count ? set->wanted[(set->wanted_count - 1) % WANTED_MAX].number : 1;
}

static void want_replicas(struct judge *judge, int number)
{
    struct seen_statefulset *set = seen(judge);
    if (set->wanted_count && judge_wanted_replicas(judge) == number)
        return;
    set->wanted[set->wanted_count++ % WANTED_MAX] =
        (struct wanted_replicas){.at_us = judge_now_us(judge), .number = number};
}

/* This many were wanted at some moment since then. */
static bool was_wanted_since(const struct judge *judge, int64_t since_us, int number, int *ret_least)
{
    const struct seen_statefulset *set = &judge->statefulset;
    bool was = false;
    *ret_least = judge_wanted_replicas(judge);
    for (unsigned i = 0; i < MIN(set->wanted_count, (unsigned)WANTED_MAX); i++) {
        const struct wanted_replicas *wanted = &set->wanted[(set->wanted_count - 1 - i) % WANTED_MAX];
        was |= wanted->number == number;
        *ret_least = MIN(*ret_least, wanted->number);
        if (wanted->at_us <= since_us)
            break;
    }
    return was;
}

static int least_since(const struct judge *judge, int64_t since_us)
{
    int least = 0;
    (void)was_wanted_since(judge, since_us, 0, &least);
    return least;
}

static int replicas_of(const cJSON *set)
{
    return (int)json_int64_or(json_get(set, "spec"), "replicas", 1);
}

/* --- the set itself ------------------------------------------------------------------------------------- */

static const cJSON *template_of(const cJSON *set)
{
    return json_path(set, "spec", "template", NULL);
}

/* What others do to it is how it is to be. */
static void take_others_word(struct judge *judge, const struct kubesim_change *change)
{
    struct seen_statefulset *set = seen(judge);
    const cJSON *before = change->before, *after = change->after;
    if (!before || replicas_of(before) != replicas_of(after)) {
        want_replicas(judge, replicas_of(after));
        set->wanted_while_dying = kube_object_is_deleting(after);
    }
    if (!before || !json_equal(template_of(before), template_of(after))) {
        /* A canary that is made again stands with its old template for a moment: what is changed then is
         * meant of the newest. */
        if (before && set->template)
            json_carry(set->template, template_of(before), template_of(after));
        else
            set->template = json_copy(template_of(after));
        *set->canary_revision = '\0';
    }
    const char *current = json_path_str(after, "status", "currentRevision", NULL);
    const char *update = json_path_str(after, "status", "updateRevision", NULL);
    bool is_settled =
        json_int64_or(json_get(after, "status"), "observedGeneration", 0) == kube_object_generation(after);
    if (is_settled && current && !str_equal(current, update))
        snprintf(set->canary_revision, sizeof(set->canary_revision), "%s", current);
    else if (is_settled && current)
        *set->canary_revision = '\0';
}

/* It is made again by one of us. */
static void judge_made(struct judge *judge, const struct kubesim_change *change)
{
    const struct seen_statefulset *set = seen(judge);
    judge->report->remade++;
    int number = replicas_of(change->after), least = 0;
    /* Nobody can see any more what was asked of it right before it went, however long its create then takes.
     */
    int64_t since_us = set->gone_us - NOTED_WITHIN_US - 8 * judge->world->draw->network_us;
    int64_t wanted_us =
        set->wanted_count ? set->wanted[(set->wanted_count - 1) % WANTED_MAX].at_us : NEVER_US;
    bool is_excused = judge->fault_pending || judge->disturbed_us >= wanted_us;
    if (number != judge_wanted_replicas(judge) &&
        !(set->wanted_while_dying && (is_excused || was_wanted_since(judge, since_us, number, &least))))
        judge_break(judge, 22, "%s makes StatefulSet %s again with %d replicas, and others wanted %d",
                    change->audit_id, change->name, number, judge_wanted_replicas(judge));
    /* What was asked of it in its last moment is lost; whose manifest says so sees that. */
    want_replicas(judge, number);
    judge->world->resize->replicas = number;
}

/* It is on its way out by one of us: its pods stay, and whoever finds it gone can make it again. */
static void judge_taken_away(struct judge *judge, const struct kubesim_change *change)
{
    const cJSON *after = change->after;
    if (!after || !kube_object_has_finalizer(after, "orphan")) {
        judge_break(judge, 18, "%s deletes StatefulSet %s and does not leave its pods behind",
                    change->audit_id, change->name);
        return;
    }
    CLEANUP_FREE char *name = keep_name(change->before);
    const cJSON *manifest = keep_manifest(judge_find(judge, "apps", "controllerrevisions", name));
    if (!manifest) {
        judge_break(judge, 18, "%s deletes StatefulSet %s, and its manifest is not kept as %s",
                    change->audit_id, change->name, name);
        return;
    }
    CLEANUP_JSON cJSON *again = keep_recreation(judge_find(judge, "apps", "controllerrevisions", name));
    if (replicas_of(again) != judge_wanted_replicas(judge))
        judge_break(judge, 22, "%s deletes StatefulSet %s of %d, and what is kept says %d replicas",
                    change->audit_id, change->name, judge_wanted_replicas(judge), replicas_of(again));
    if (!json_equal(template_of(again), template_of(change->before)))
        judge_break(judge, 18, "%s deletes StatefulSet %s, and what is kept has another pod template",
                    change->audit_id, change->name);
}

static void forget_nothing(struct judge *judge, const cJSON *before)
{
    struct seen_statefulset *set = seen(judge);
    free(set->sizes);
    set->sizes = recreate_sizes_text(before);
}

/* Somebody else's manifest is kept, and its delete may be under way: whoever comes next moves the set from
 * the version that it names before anything is decided, and changes nothing else. */
static bool is_forestalled(struct judge *judge, const struct kubesim_change *change)
{
    CLEANUP_FREE char *name = change->before && change->after ? keep_name(change->before) : NULL;
    return name && judge_find(judge, "apps", "controllerrevisions", name) &&
           json_equal(json_get(change->before, "spec"), json_get(change->after, "spec"));
}

/* A user's command that is refused writes nothing (20). */
static void judge_refused(struct judge *judge, const struct kubesim_change *change)
{
    const struct seen_key *key = judge_key_of(judge, change->audit_id);
    if (!key || key->program < FIRST_USER)
        return;
    int user = key->program - FIRST_USER;
    const struct journal *journal = judge->world->programs[key->program].journal;
    bool is_of_this_run = journal && str_starts_with(key->key, journal_nonce(journal));
    if (seen(judge)->refuses[user] && is_of_this_run && !is_forestalled(judge, change))
        judge_break(judge, 20, "user %d's command is to be refused, and changes %s %s", user, change->kind,
                    change->name);
}

static void note_maker(struct judge *judge, const struct kubesim_change *change)
{
    const struct seen_key *key = judge_key_of(judge, change->audit_id);
    if (key)
        snprintf(judge->world->programs[key->program].has_made_uid,
                 sizeof(judge->world->programs[0].has_made_uid), "%s", kube_object_uid(change->after));
}

void judge_take_statefulset(struct judge *judge, const struct kubesim_change *change)
{
    struct seen_statefulset *set = seen(judge);
    const cJSON *before = change->before, *after = change->after;
    set->there = after != NULL;
    if (by_us(change)) {
        judge_refused(judge, change);
        if (!before) {
            judge_made(judge, change);
            note_maker(judge, change);
        } else if (!after || (kube_object_is_deleting(after) && !kube_object_is_deleting(before))) {
            judge_taken_away(judge, change);
        }
    } else if (after) {
        take_others_word(judge, change);
    }
    if (!after) {
        forget_nothing(judge, before);
        set->gone_us = judge_now_us(judge);
    }
    if (!before)
        set->wanted_while_dying = false;
    snprintf(set->uid, sizeof(set->uid), "%s", after ? kube_object_uid(after) : "");
}

/* --- claims (16) ---------------------------------------------------------------------------------------- */

static bool read_size(const cJSON *node, struct quantity *ret)
{
    CLEANUP_FREE char *text = NULL;
    return node && quantity_read(node, ret, &text, NULL) == 0;
}

static const cJSON *request_of(const cJSON *claim)
{
    return json_path(claim, "spec", "resources", "requests", "storage", NULL);
}

/* Ordinal of "<any>-db-<ordinal>" or "db-<ordinal>"; -1: none. */
static int ordinal_of(const char *name)
{
    const char *dash = strrchr(name, '-');
    return dash ? (int)strtol(dash + 1, NULL, 10) : -1;
}

/* Smaller, and not led back to something above what the volume has. */
static bool is_shrunk(const struct judge *judge, const cJSON *claim, const cJSON *size)
{
    struct quantity was, is, capacity;
    if (!read_size(request_of(claim), &was) || !read_size(size, &is) || quantity_compare(&is, &was) >= 0)
        return false;
    bool is_above = read_size(json_path(claim, "status", "capacity", "storage", NULL), &capacity) &&
                    quantity_compare(&is, &capacity) > 0;
    return !(judge->statefulset.recovers && is_above);
}

/* A run asks a claim for its size once; where an answer was lost it may have to ask again, but whoever wants
 * another size is not answered for ever. */
static void judge_asking(struct judge *judge, const struct kubesim_change *change)
{
    const struct seen_key *key = judge_key_of(judge, change->audit_id);
    if (!key || key->program < FIRST_USER || !change->before || !change->after ||
        json_equal(request_of(change->before), request_of(change->after)))
        return;
    struct seen_statefulset *set = seen(judge);
    set->asked = set->asked ? set->asked : json_new_object();
    CLEANUP_FREE char *asking =
        xasprintf("%.*s %s", (int)strcspn(key->key, "-"), key->key, kube_object_uid(change->after));
    int64_t times = json_int64_or(set->asked, asking, 0) + 1;
    json_set_item(set->asked, asking, json_new_int64(times));
    if (times > ASKS_MAX)
        judge_break(judge, 16, "claim %s is asked for another size by one run %lld times", change->name,
                    (long long)times);
}

void judge_take_claim(struct judge *judge, const struct kubesim_change *change)
{
    const cJSON *before = change->before, *after = change->after;
    if (by_us(change)) {
        judge_refused(judge, change);
        judge_asking(judge, change);
    }
    if (!before)
        return;
    bool goes = !after || (kube_object_is_deleting(after) && !kube_object_is_deleting(before));
    int index = ordinal_of(change->name) - draw_of(judge)->start;
    int64_t since_us = judge_now_us(judge) - CLAIM_GOES_WITHIN_US;
    bool is_persons = str_equal(change->user, "person");
    if (goes && !is_persons && (by_us(change) || index < least_since(judge, since_us)))
        judge_break(judge, 16, "claim %s of a pod that is wanted is deleted by %s", change->name,
                    who(change));
    if (after && by_us(change) && is_shrunk(judge, before, request_of(after)))
        judge_break(judge, 16, "claim %s asks for less by %s", change->name, change->audit_id);
}

static void judge_claim_step(struct judge *judge, const struct seen_key *key, const struct env_sim_call *call)
{
    CLEANUP_JSON cJSON *body = NULL;
    if (!call->body || json_parse(call->body, call->body_length, &body, NULL) < 0)
        return;
    const cJSON *claim = judge_find(judge, "", "persistentvolumeclaims", key->name);
    /* Of another version it is refused. */
    if (claim && str_equal(kube_object_version(body), kube_object_version(claim)) && request_of(body) &&
        is_shrunk(judge, claim, request_of(body)))
        judge_break(judge, 16, "step %s asks for less for claim %s", key->key, key->name);
}

/* --- pods (17) ------------------------------------------------------------------------------------------ */

static const cJSON *find_set(struct judge *judge)
{
    return judge_find(judge, "apps", "statefulsets", "db");
}

/* By what people change in these worlds. */
static bool runs(const cJSON *pod, const cJSON *template)
{
    static const char restarted_at[] = "kubectl.kubernetes.io/restartedAt";
    const cJSON *containers = json_path(pod, "spec", "containers", NULL);
    const cJSON *wanted = json_path(template, "spec", "containers", NULL);
    return containers && wanted &&
           str_equal(json_str(containers->child, "image"), json_str(wanted->child, "image")) &&
           str_equal(kube_object_annotation(pod, restarted_at),
                     kube_object_annotation(template, restarted_at));
}

/* The set's controller takes it: it is too many, ended, or there is a version that others asked for. */
static bool is_due(struct judge *judge, const cJSON *pod, int index)
{
    const struct seen_statefulset *seen_set = seen(judge);
    const struct resize_draw *draw = draw_of(judge);
    const cJSON *set = find_set(judge);
    const char *phase = json_path_str(pod, "status", "phase", NULL);
    if (index >= least_since(judge, judge_now_us(judge) - SCALED_WITHIN_US) || str_equal(phase, "Failed") ||
        str_equal(phase, "Succeeded"))
        return true;
    return set && !draw->on_delete && index >= draw->partition &&
           json_equal(template_of(set), seen_set->template) && !runs(pod, template_of(set));
}

static void judge_loss(struct judge *judge, const struct kubesim_change *change, int index)
{
    const char *user = change->user ? change->user : "the collector";
    /* Born between the last look and the delete, which nobody can tell the server to look for. */
    int64_t age_us = judge_now_us(judge) - seen(judge)->born_us[index];
    bool is_newborn = age_us < FRESH_WITHIN_US + 8 * judge->world->draw->network_us;
    if (by_us(change))
        judge_break(judge, 17, "pod %s is deleted by us: %s", change->name, change->audit_id);
    bool is_controllers = strstr(user, "statefulset-controller") != NULL;
    bool is_collectors = !change->user;
    if ((is_controllers && !is_due(judge, change->before, index)) ||
        (is_collectors && !is_newborn && index < least_since(judge, judge_now_us(judge) - SCALED_WITHIN_US)))
        judge_break(judge, 17, "pod %s is deleted by %s, and nobody asked for that", change->name, user);
}

/* What is lost below the partition comes back as it was. */
static void judge_birth(struct judge *judge, const struct kubesim_change *change, int index)
{
    struct seen_statefulset *set = seen(judge);
    set->born_us[index] = judge_now_us(judge);
    const char *revision = kube_object_label(change->after, KUBE_REVISION_LABEL);
    if (*set->canary_revision && index < draw_of(judge)->partition && index < judge_wanted_replicas(judge) &&
        !str_equal(revision, set->canary_revision))
        judge_break(judge, 17, "pod %s below the partition comes back as %s, and was %s", change->name,
                    revision, set->canary_revision);
}

void judge_take_set_pod(struct judge *judge, const struct kubesim_change *change)
{
    const cJSON *before = change->before, *after = change->after;
    int ordinal = ordinal_of(change->name), index = ordinal - draw_of(judge)->start;
    if (!str_starts_with(change->name, "db-") || index < 0 || index >= POD_ORDINALS_MAX)
        return;
    if (by_us(change))
        judge_refused(judge, change);
    bool was_going = before && kube_object_is_deleting(before);
    if (before && !was_going && (!after || kube_object_is_deleting(after)))
        judge_loss(judge, change, index);
    if (!before)
        judge_birth(judge, change, index);
}

/* --- what leaves (18) ----------------------------------------------------------------------------------- */

static bool is_guarded_orphan_delete(const struct env_sim_call *call)
{
    CLEANUP_JSON cJSON *body = NULL;
    if (!call->body || json_parse(call->body, call->body_length, &body, NULL) < 0)
        return false;
    const cJSON *preconditions = json_get(body, "preconditions");
    const char *query = strchr(call->path, '?');
    return str_equal(json_str(body, "propagationPolicy"), "Orphan") && json_str(preconditions, "uid") &&
           json_str(preconditions, "resourceVersion") && (!query || str_equal(query, "?timeout=10s"));
}

void judge_take_resize_step(struct judge *judge, const struct seen_key *key, const struct env_sim_call *call)
{
    if (strcmp(call->method, "DELETE") == 0 && strstr(call->path, "/statefulsets/") &&
        !is_guarded_orphan_delete(call))
        judge_break(judge, 18,
                    "step %s leaves as a delete that would not leave the pods behind, or another set's: %s",
                    key->key, call->body ? call->body : "");
    if (strcmp(call->method, "DELETE") == 0 &&
        (strstr(call->path, "/pods/") || strstr(call->path, "/persistentvolumeclaims/")))
        judge_break(judge, strstr(call->path, "/pods/") ? 17 : 16, "step %s leaves to delete %s", key->key,
                    call->path);
    if (strcmp(call->method, "PATCH") == 0 && strstr(call->path, "/persistentvolumeclaims/"))
        judge_claim_step(judge, key, call);
}

/* --- commands (20, 21) ---------------------------------------------------------------------------------- */

static bool anything_is_kept(struct judge *judge)
{
    CLEANUP_JSON cJSON *list =
        sim_server_get(judge->world->server,
                       "/apis/apps/v1/namespaces/default/controllerrevisions?labelSelector=" KEEP_LABEL);
    const cJSON *items = json_get(list, "items");
    return items && items->child;
}

/* One template of the set has more than is declared now. */
static bool is_smaller(const cJSON *set, const char *sizes)
{
    CLEANUP_JSON cJSON *declared = json_copy(set);
    if (!recreate_take_sizes(declared, sizes))
        return false;
    const cJSON *was = json_path(set, "spec", "volumeClaimTemplates", NULL)->child;
    const cJSON *is = json_path(declared, "spec", "volumeClaimTemplates", NULL)->child;
    for (; was && is; was = was->next, is = is->next) {
        struct quantity before, after;
        if (read_size(request_of(was), &before) && read_size(request_of(is), &after) &&
            quantity_compare(&after, &before) < 0)
            return true;
    }
    return false;
}

/* Less of a template than the set has, or another immutable field. */
static bool is_to_be_refused(struct judge *judge, const struct command_wish *wish)
{
    const cJSON *set = find_set(judge);
    if (wish->kind != COMMAND_CONVERGE || !set || kube_object_is_deleting(set))
        return false;
    return (wish->flags & CONVERGE_OTHER_SERVICE) || is_smaller(set, wish->sizes);
}

static bool another_runs(const struct judge *judge, const struct program *program)
{
    for (int i = FIRST_USER; i < PROGRAMS_MAX; i++)
        if (&judge->world->programs[i] != program && judge->world->programs[i].env)
            return true;
    return false;
}

void judge_take_command_start(struct judge *judge, const struct program *program)
{
    struct seen_statefulset *set = seen(judge);
    set->recovers |= program->wish->kind == COMMAND_RECOVER;
    for (int i = 0; i < USERS_MAX; i++)
        set->refuses[i] = false;
    set->refuses[program->user] = !another_runs(judge, program) && !anything_is_kept(judge) &&
                                  !program->left_undone && is_to_be_refused(judge, program->wish);
}

static bool is_owned(const cJSON *object, const char *uid)
{
    return kube_object_is_controlled_by(object, uid);
}

/* No pod that lives is another's, and nothing of ours is left on the set. */
static void judge_whose(struct judge *judge, const char *when)
{
    const cJSON *set = find_set(judge);
    const char *uid = kube_object_uid(set);
    for (int i = 0; i < POD_ORDINALS_MAX; i++) {
        CLEANUP_FREE char *name = xasprintf("db-%d", draw_of(judge)->start + i);
        const cJSON *pod = judge_find(judge, "", "pods", name);
        if (pod && !kube_object_is_deleting(pod) && !is_owned(pod, uid))
            judge_break(judge, 21, "%s: pod %s does not belong to the StatefulSet", when, name);
    }
    const char *revision = json_path_str(set, "status", "updateRevision", NULL);
    const cJSON *object = revision ? judge_find(judge, "apps", "controllerrevisions", revision) : NULL;
    if (object && !is_owned(object, uid))
        judge_break(judge, 21, "%s: revision %s does not belong to the StatefulSet", when, revision);
    if (kube_object_annotation(set, STEP_ANNOTATION))
        judge_break(judge, 21, "%s: the StatefulSet carries the key of a step, and is not the user's", when);
}

void judge_take_command_end(struct judge *judge, struct program *program, int code)
{
    struct seen_statefulset *set = seen(judge);
    const cJSON *live = find_set(judge);
    set->refuses[program->user] = false;
    if (code == 0)
        program->left_undone = false;
    else if (code != ERROR_REFUSED && code != ERROR_INVALID && code != ERROR_FORBIDDEN)
        program->left_undone = true;
    if (code == 0 && live && !kube_object_is_deleting(live) && !another_runs(judge, program) &&
        program->has_made_uid[0] && str_equal(program->has_made_uid, kube_object_uid(live)))
        judge_whose(judge, "the command is done");
}

char *judge_old_sizes(const struct judge *judge)
{
    return xstrdup_or_null(judge->statefulset.sizes);
}

/* --- home ----------------------------------------------------------------------------------------------- */

static void judge_sizes(struct judge *judge, const cJSON *set)
{
    static const char claims_path[] = "/api/v1/namespaces/default/persistentvolumeclaims";
    CLEANUP_JSON cJSON *list = sim_server_get(judge->world->server, claims_path);
    CLEANUP_JSON cJSON *pods = sim_server_get(judge->world->server, "/api/v1/namespaces/default/pods");
    struct volume_decision decision CLEANUP_VOLUME_DECISION = {0};
    volume_decide(
        &(struct volume_input){
            .desired = set, .live = set, .claims = json_get(list, "items"), .pods = json_get(pods, "items")},
        &decision);
    for (size_t i = 0; i < decision.lagging.count; i++)
        judge_break(judge, 19, "at the end claim %s asks for less than its template says",
                    decision.lagging.items[i].name);
}

void judge_look_at_statefulset(struct judge *judge, const char *sizes)
{
    const cJSON *set = find_set(judge);
    if (!set) {
        judge_break(judge, 19, "at the end there is no StatefulSet");
        return;
    }
    CLEANUP_FREE char *has = recreate_sizes_text(set);
    if (!str_equal(has, sizes))
        judge_break(judge, 19, "at the end the StatefulSet says %s, and %s was declared", has, sizes);
    if (anything_is_kept(judge))
        judge_break(judge, 19, "at the end a manifest is still kept");
    if (replicas_of(set) != judge_wanted_replicas(judge))
        judge_break(judge, 22, "at the end the StatefulSet has %d replicas, and others wanted %d",
                    replicas_of(set), judge_wanted_replicas(judge));
    if (!judge->statefulset.recovers) /* half a way back leaves claims below their template */
        judge_sizes(judge, set);
    judge_whose(judge, "at the end");
}
