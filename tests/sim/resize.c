/* SPDX-License-Identifier: Apache-2.0 */
#include "resize.h"

#include "judge.h"

#include "base/time_text.h"
#include "kube/object.h"
#include "volume/keep.h"
#include "volume/recreate.h"

#include <stdio.h>
#include <unistd.h>

#define SETS_PATH "/apis/apps/v1/namespaces/default/statefulsets"
#define SET_PATH SETS_PATH "/" RESIZE_NAME
#define CLAIMS_PATH "/api/v1/namespaces/default/persistentvolumeclaims"
#define CLASSES_PATH "/apis/storage.k8s.io/v1/storageclasses"
#define QUOTAS_PATH "/api/v1/namespaces/default/resourcequotas"
#define CLASS "{\"metadata\":{\"name\":\"std\"},\"provisioner\":\"x\",\"allowVolumeExpansion\":true}"
#define MERGE "application/merge-patch+json"
#define HOLD "example.com/hold"

/* No command takes longer, whatever it waits for. */
#define DEATH_WITHIN_US (600 * US_PER_S)

static const char *const template_names[TEMPLATES_MAX] = {"data", "logs", "wal"};

/* --- the manifest --------------------------------------------------------------------------------------- */

/* "2Gi" of "data" in "logs=1Gi,data=2Gi"; the caller's. */
static char *size_in(const char *sizes, const char *name)
{
    CLEANUP_FREE char *words = xstrdup(sizes);
    char *rest = NULL;
    for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char *size = strchr(word, '=');
        ENSURE(size);
        *size++ = '\0';
        if (strcmp(word, name) == 0)
            return xstrdup(size);
    }
    return xstrdup("1Gi");
}

static void add_claim_templates(cJSON *spec, int count, const char *sizes)
{
    cJSON *templates = json_add_array(spec, "volumeClaimTemplates");
    for (int i = 0; i < count; i++) {
        CLEANUP_FREE char *size = size_in(sizes, template_names[i]);
        cJSON *template = json_new_object();
        json_add_str(json_add_object(template, "metadata"), "name", template_names[i]);
        cJSON *claim = json_add_object(template, "spec");
        json_append_str(json_add_array(claim, "accessModes"), "ReadWriteOnce");
        json_add_str(claim, "storageClassName", "std");
        json_add_str(json_add_object(json_add_object(claim, "resources"), "requests"), "storage", size);
        json_append_item(templates, template);
    }
}

static void add_template(cJSON *spec, const char *image)
{
    cJSON *template = json_add_object(spec, "template");
    json_add_str(json_add_object(json_add_object(template, "metadata"), "labels"), "app", RESIZE_NAME);
    cJSON *pod = json_add_object(template, "spec");
    json_add_int64(pod, "terminationGracePeriodSeconds", 2);
    cJSON *container = json_new_object();
    json_add_str(container, "name", "db");
    json_add_str(container, "image", image);
    json_append_item(json_add_array(pod, "containers"), container);
}

static void add_strategy(cJSON *spec, const struct resize_draw *draw)
{
    cJSON *strategy = json_add_object(spec, "updateStrategy");
    json_add_str(strategy, "type", draw->on_delete ? "OnDelete" : "RollingUpdate");
    if (draw->partition > 0)
        json_add_int64(json_add_object(strategy, "rollingUpdate"), "partition", draw->partition);
}

cJSON *resize_manifest(const struct world *world, const char *sizes, bool other_service)
{
    const struct resize_draw *draw = &world->draw->resize;
    cJSON *object = json_new_object();
    json_add_str(object, "apiVersion", "apps/v1");
    json_add_str(object, "kind", "StatefulSet");
    cJSON *metadata = json_add_object(object, "metadata");
    json_add_str(metadata, "name", RESIZE_NAME);
    json_add_str(metadata, "namespace", RESIZE_NAMESPACE);
    cJSON *spec = json_add_object(object, "spec");
    json_add_str(spec, "serviceName", other_service ? "other" : RESIZE_NAME);
    json_add_str(spec, "podManagementPolicy", draw->parallel ? "Parallel" : "OrderedReady");
    if (draw->declares_replicas)
        json_add_int64(spec, "replicas", world->resize->replicas);
    if (draw->start > 0)
        json_add_int64(json_add_object(spec, "ordinals"), "start", draw->start);
    json_add_str(json_add_object(json_add_object(spec, "selector"), "matchLabels"), "app", RESIZE_NAME);
    if (draw->retention) {
        cJSON *policy = NULL;
        const char *text = retention_text(draw->retention);
        ENSURE(json_parse(text, strlen(text), &policy, NULL) == 0);
        json_add_item(spec, "persistentVolumeClaimRetentionPolicy", policy);
    }
    add_strategy(spec, draw);
    add_template(spec, world->resize->image);
    add_claim_templates(spec, draw->templates, sizes);
    return object;
}

/* What the live set has, or what was declared last; the caller's. */
static char *live_sizes(struct world *world)
{
    CLEANUP_JSON cJSON *set = sim_server_get(world->server, SET_PATH);
    return set ? recreate_sizes_text(set) : xstrdup(world->resize->sizes);
}

static int apply(struct world *world, const char *sizes)
{
    CLEANUP_JSON cJSON *manifest = resize_manifest(world, sizes, false);
    CLEANUP_FREE char *text = json_print(manifest);
    return world_ask(world, "PATCH", SET_PATH "?fieldManager=me", "application/apply-patch+yaml", text);
}

/* Whether it was taken. */
static bool apply_as_live(struct world *world)
{
    CLEANUP_FREE char *sizes = live_sizes(world);
    return apply(world, sizes) / 100 == 2;
}

/* --- what is so ------------------------------------------------------------------------------------------
 */

static bool no_command_runs(struct world *world)
{
    for (int i = FIRST_USER; i < PROGRAMS_MAX; i++)
        if (world->programs[i].env || world->programs[i].start_due_us != INT64_MAX)
            return false;
    return true;
}

static cJSON *find_kept(struct world *world)
{
    CLEANUP_JSON cJSON *list = sim_server_get(
        world->server, "/apis/apps/v1/namespaces/default/controllerrevisions?labelSelector=" KEEP_LABEL);
    const cJSON *items = json_get(list, "items");
    return items && items->child ? json_copy(items->child) : NULL;
}

static bool is_whole(struct world *world)
{
    CLEANUP_JSON cJSON *set = sim_server_get(world->server, SET_PATH);
    CLEANUP_JSON cJSON *kept = find_kept(world);
    return set && !kube_object_is_deleting(set) && !kept;
}

/* --- its beginning -------------------------------------------------------------------------------------- */

static void scale(struct world *world, int replicas)
{
    CLEANUP_FREE char *text = xasprintf("{\"spec\":{\"replicas\":%d}}", replicas);
    if (!world->draw->resize.declares_replicas) {
        (void)world_ask(world, "PATCH", SET_PATH "/scale", MERGE, text);
    } else if (no_command_runs(world)) { /* else two manifests would say different things */
        int before = world->resize->replicas;
        world->resize->replicas = replicas;
        if (!apply_as_live(world)) /* a person who reads that puts the manifest back */
            world->resize->replicas = before;
    }
}

static void begin_set(struct world *world)
{
    const struct resize_draw *draw = &world->draw->resize;
    (void)world_ask(world, "POST", CLASSES_PATH, "application/json", CLASS);
    (void)apply(world, world->resize->sizes);
    scale(world, draw->replicas);
    world_run_for(world, 30 * US_PER_S);
    if (!draw->canary)
        return;
    snprintf(world->resize->image, TEXT_MAX, "db:canary");
    (void)apply_as_live(world);
    world_run_for(world, 20 * US_PER_S);
}

void resize_begin(struct world *world)
{
    const struct resize_draw *draw = &world->draw->resize;
    struct kubesim *sim = sim_server_kubesim(world->server);
    world->resize = xcalloc(1, sizeof(*world->resize));
    *world->resize =
        (struct resize){.image = "db:v1", .sizes = "data=2Gi,logs=2Gi,wal=2Gi", .replicas = draw->replicas};
    kubesim_keep_managed_fields(sim);
    if (draw->newer)
        kubesim_answer_newer(sim);
    kubesim_run_volumes(sim);
    kubesim_run_statefulsets(sim);
    sim_server_poke(world->server);
    world->program_count = PROGRAMS_MAX;
    for (int i = 0; i < PROGRAMS_MAX; i++) {
        program_make(world, i);
        if (i < FIRST_USER)
            continue;
        world->programs[i].user = i - FIRST_USER;
        world->programs[i].wish = xcalloc(1, sizeof(struct command_wish));
    }
    report_tell(world->report, "* a StatefulSet of %d, %d templates, partition %d%s%s%s, on a 1.%d",
                draw->replicas, draw->templates, draw->partition, draw->canary ? ", a canary" : "",
                draw->on_delete ? ", OnDelete" : "", draw->with_controller ? ", with a controller" : "",
                draw->newer ? 37 : 36);
    begin_set(world);
    if (draw->with_controller)
        program_start(&world->programs[0]);
    world_run_for(world, 10 * US_PER_S);
}

/* --- commands ------------------------------------------------------------------------------------------- */

void resize_start_again(struct program *program)
{
    static const char *const words[] = {"nothing", "resize converge", "resize recover", "continue"};
    program_open(program);
    report_tell(program->world->report, "user %d runs %s %s", program->user, words[program->wish->kind],
                program->wish->sizes);
    judge_take_command_start(program->world->judge, program);
    (void)command_start(program, program->wish);
}

static struct program *program_of(struct world *world, int user)
{
    return &world->programs[FIRST_USER + user];
}

static void begin_command(struct world *world, int user, enum command_kind kind, const char *sizes, int flags)
{
    struct program *program = program_of(world, user);
    if (program->env) {
        report_tell(world->report, "  it still runs");
        return;
    }
    *program->wish = (struct command_wish){.kind = kind, .flags = flags};
    snprintf(program->wish->sizes, sizeof(program->wish->sizes), "%s", sizes);
    program_start(program);
}

static bool is_under_way(const struct program *program)
{
    return program->env && !program->ended;
}

static void die(struct world *world, int user, int steps, const char *how)
{
    struct program *program = program_of(world, user);
    unsigned events = 0, ms = 0;
    char way[16] = "";
    ENSURE(sscanf(how, "%u %u %15s", &events, &ms, way) == 3);
    if (!program->env)
        return;
    uint64_t enough = program->steps + (uint64_t)steps;
    int64_t until_us = world_now_us(world) + DEATH_WITHIN_US;
    while (is_under_way(program) && program->steps < enough && world_now_us(world) < until_us)
        world_run_events(world, 1);
    world_run_events(world, (int)events);
    program_kill(program);
    if (strcmp(way, "never") == 0)
        return;
    if (strcmp(way, "continue") == 0)
        program->wish->kind = COMMAND_CONTINUE;
    program->start_due_us = world_now_us(world) + ms * US_PER_MS;
}

static void forget_journal(struct world *world, int user)
{
    static const char *const parts[] = {"", "-wal", "-shm"};
    struct program *program = program_of(world, user);
    if (program->env)
        return;
    judge_take_lost_journal(world->judge, program);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        CLEANUP_FREE char *file = xasprintf("%s%s", program->journal_path, parts[i]);
        unlink(file);
    }
}

static bool do_to_command(struct world *world, const struct operation *operation)
{
    switch (operation->kind) {
    case DO_CONVERGE:
    case DO_RECOVER:
        if (!(operation->b & CONVERGE_OTHER_SERVICE))
            snprintf(world->resize->sizes, TEXT_MAX, "%s", operation->text);
        begin_command(world, operation->a,
                      operation->kind == DO_CONVERGE ? COMMAND_CONVERGE : COMMAND_RECOVER, operation->text,
                      operation->b);
        return true;
    case DO_CONTINUE:
        begin_command(world, operation->a, COMMAND_CONTINUE, "", 0);
        return true;
    case DO_COMMAND_DIES:
        die(world, operation->a, operation->b, operation->text);
        return true;
    case DO_USER_FORGETS:
        forget_journal(world, operation->a);
        return true;
    default:
        return false;
    }
}

/* --- others and the set --------------------------------------------------------------------------------- */

static void restart(struct world *world)
{
    CLEANUP_FREE char *text =
        xasprintf("{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"kubectl.kubernetes.io/"
                  "restartedAt\":\"%d\"}}}}}",
                  ++world->resize->restarts);
    (void)world_ask(world, "PATCH", SET_PATH "?fieldManager=kubectl-rollout", MERGE, text);
}

/* Who makes it by hand looks how many pods there are. */
static void make_by_hand(struct world *world, bool with_new_sizes)
{
    CLEANUP_JSON cJSON *set = sim_server_get(world->server, SET_PATH);
    if (set)
        return;
    char *old = judge_old_sizes(world->judge);
    CLEANUP_FREE char *sizes = old;
    CLEANUP_JSON cJSON *manifest =
        resize_manifest(world, with_new_sizes || !old ? world->resize->sizes : old, false);
    json_set_item(json_get(manifest, "spec"), "replicas",
                  json_new_int64(judge_wanted_replicas(world->judge)));
    CLEANUP_FREE char *text = json_print(manifest);
    (void)world_ask(world, "POST", SETS_PATH, "application/json", text);
}

static void hold(struct world *world, bool on)
{
    CLEANUP_JSON cJSON *set = sim_server_get(world->server, SET_PATH);
    if (!set || (on && kube_object_is_deleting(set)) || kube_object_has_finalizer(set, HOLD) == on)
        return;
    CLEANUP_JSON cJSON *body = json_new_object();
    cJSON *finalizers = json_add_array(json_add_object(body, "metadata"), "finalizers");
    const cJSON *finalizer = NULL;
    cJSON_ArrayForEach (finalizer, json_path(set, "metadata", "finalizers", NULL))
        if (!str_equal(finalizer->valuestring, HOLD))
            json_append_str(finalizers, finalizer->valuestring);
    if (on)
        json_append_str(finalizers, HOLD);
    CLEANUP_FREE char *text = json_print(body);
    (void)world_ask(world, "PATCH", SET_PATH "?fieldManager=holder", MERGE, text);
}

/* Two manifests that say different things are no riddle for a judge: nobody converges to another meanwhile.
 */
static void change_image(struct world *world, const char *image)
{
    if (!no_command_runs(world) || !is_whole(world))
        return;
    CLEANUP_FREE char *before = xstrdup(world->resize->image);
    snprintf(world->resize->image, TEXT_MAX, "%s", image);
    if (!apply_as_live(world)) /* a person who reads that puts the manifest back */
        snprintf(world->resize->image, TEXT_MAX, "%s", before);
}

static bool do_to_statefulset(struct world *world, const struct operation *operation)
{
    switch (operation->kind) {
    case DO_SET_SCALE:
        scale(world, operation->a);
        return true;
    case DO_SET_RESTART:
        restart(world);
        return true;
    case DO_SET_IMAGE:
        change_image(world, operation->text);
        return true;
    case DO_SET_AGAIN:
        (void)apply_as_live(world);
        return true;
    case DO_SET_BY_HAND:
        make_by_hand(world, operation->a);
        return true;
    case DO_SET_HOLD:
        hold(world, operation->a);
        return true;
    default:
        return false;
    }
}

/* --- storage, collector --------------------------------------------------------------------------------- */

static void grow_claim(struct world *world, int nth, int template, const char *size)
{
    CLEANUP_FREE char *path = xasprintf(CLAIMS_PATH "/%s-%s-%d", template_names[template], RESIZE_NAME,
                                        world->draw->resize.start + nth);
    CLEANUP_FREE char *text =
        xasprintf("{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"%s\"}}}}", size);
    (void)world_ask(world, "PATCH", path, MERGE, text);
}

static void set_class(struct world *world, const char *word)
{
    if (strcmp(word, "gone") == 0) {
        (void)world_ask(world, "DELETE", CLASSES_PATH "/std", NULL, NULL);
        return;
    }
    CLEANUP_JSON cJSON *class = sim_server_get(world->server, CLASSES_PATH "/std");
    if (!class)
        (void)world_ask(world, "POST", CLASSES_PATH, "application/json", CLASS);
    (void)world_ask(world, "PATCH", CLASSES_PATH "/std", MERGE,
                    strcmp(word, "fixed") == 0 ? "{\"allowVolumeExpansion\":false}"
                                               : "{\"allowVolumeExpansion\":true}");
}

static void set_storage(struct world *world, const char *words)
{
    CLEANUP_FREE char *text =
        xasprintf("{\"metadata\":{\"annotations\":{\"kubesim.neo.io/resizer\":\"%s\"}}}", words);
    (void)world_ask(world, "PATCH", CLASSES_PATH "/std", MERGE, text);
}

static void set_quota(struct world *world, const char *hard)
{
    (void)sim_server_ask(world->server, "DELETE", QUOTAS_PATH "/room", NULL, NULL, NULL);
    if (!*hard)
        return;
    CLEANUP_FREE char *text = xasprintf(
        "{\"metadata\":{\"name\":\"room\"},\"spec\":{\"hard\":{\"requests.storage\":\"%s\"}}}", hard);
    (void)world_ask(world, "POST", QUOTAS_PATH, "application/json", text);
}

static void set_collector(struct world *world, const char *word)
{
    struct kubesim *sim = sim_server_kubesim(world->server);
    if (strcmp(word, "slow") == 0)
        kubesim_set_gc(sim, true, 20 * US_PER_S, 0);
    else if (strcmp(word, "blind") == 0)
        kubesim_set_gc(sim, true, 0, 3 * US_PER_S);
    else
        kubesim_set_gc(sim, strcmp(word, "on") == 0, 0, 0);
    sim_server_poke(world->server);
}

static bool do_to_storage(struct world *world, const struct operation *operation)
{
    switch (operation->kind) {
    case DO_CLAIM_BY_HAND:
        grow_claim(world, operation->a, operation->b, operation->text);
        return true;
    case DO_STORAGE:
        set_storage(world, operation->text);
        return true;
    case DO_CLASS:
        set_class(world, operation->text);
        return true;
    case DO_QUOTA:
        set_quota(world, operation->text);
        return true;
    case DO_COLLECTOR:
        set_collector(world, operation->text);
        return true;
    case DO_CRASH:
    case DO_STOP:
    case DO_LOSE_JOURNAL:
        return !world->draw->resize.with_controller; /* there is none that could */
    default:
        return false;
    }
}

bool resize_do(struct world *world, const struct operation *operation)
{
    return do_to_command(world, operation) || do_to_statefulset(world, operation) ||
           do_to_storage(world, operation);
}

/* --- coming home ---------------------------------------------------------------------------------------- */

#define ENDS_WITHIN_US (40 * 60 * US_PER_S)
#define MADE_WITHIN_US (10 * 60 * US_PER_S)
#define READY_WITHIN_US (20 * 60 * US_PER_S)
#define QUIET_US (60 * US_PER_S)
/* What failed for a while is tried again by the storage's controllers. */
#define RETRIED_WITHIN_US (100 * US_PER_S)
enum { TRIES_MAX = 3 };

typedef bool resize_so(struct world *world);

/* In so much time; false: it did not come. */
static bool wait_until(struct world *world, resize_so *so, int64_t within_us)
{
    int64_t until_us = world_now_us(world) + within_us;
    while (!so(world)) {
        if (world_now_us(world) > until_us)
            return false;
        world_run_for(world, US_PER_S);
    }
    return true;
}

/* Somebody kept its manifest and died: that is for whoever converges it next. */
static bool has_never_gone(struct world *world)
{
    CLEANUP_JSON cJSON *set = sim_server_get(world->server, SET_PATH);
    CLEANUP_JSON cJSON *kept = find_kept(world);
    return set && kept && !kube_object_is_deleting(set) && keep_is_of(kept, set);
}

static void heal(struct world *world)
{
    report_tell(world->report, "* the world is healed: no faults, storage for all, a fair collector");
    hold(world, false);
    set_quota(world, "");
    set_class(world, "grows");
    set_storage(world, "ok");
    set_collector(world, "on");
    world_heal(world);
}

static void wait_for_commands(struct world *world)
{
    if (!wait_until(world, no_command_runs, ENDS_WITHIN_US))
        report_break(world->report, 19, "a command does not end within %d min",
                     (int)(ENDS_WITHIN_US / US_PER_S / 60));
}

/* Whoever began it may never come back: a controller makes the set again, and without one a person goes on.
 */
static void see_it_whole(struct world *world)
{
    if (has_never_gone(world) || is_whole(world))
        return;
    hold(world, false);
    if (!world->draw->resize.with_controller) {
        begin_command(world, 0, COMMAND_CONTINUE, "", 0);
        wait_for_commands(world);
    }
    if (!wait_until(world, is_whole, MADE_WITHIN_US)) {
        judge_tell_open(world->judge);
        judge_break(world->judge, 19,
                    "a StatefulSet that was taken from its pods is not there again, or what was kept "
                    "of it still is, %d min after all was healed",
                    (int)(MADE_WITHIN_US / US_PER_S / 60));
    }
}

/* Of each template what was declared last, and not less than there is. */
static char *final_sizes(struct world *world)
{
    CLEANUP_JSON cJSON *set = sim_server_get(world->server, SET_PATH);
    CLEANUP_JSON cJSON *declared = resize_manifest(world, world->resize->sizes, false);
    recreate_raise_sizes(declared, set);
    return recreate_sizes_text(declared);
}

static void converge_for_good(struct world *world)
{
    /* What held the set when it went holds the one that was made again. */
    hold(world, false);
    CLEANUP_FREE char *sizes = final_sizes(world);
    const struct program *program = program_of(world, 0);
    for (int i = 0; i < TRIES_MAX; i++) {
        world_run_for(world, RETRIED_WITHIN_US);
        begin_command(world, 0, COMMAND_CONVERGE, sizes, CONVERGE_WAITS);
        wait_for_commands(world);
        if (program->last_code == 0)
            break;
    }
    if (program->last_code != 0)
        judge_break(world->judge, 19, "nothing is in the way, and it does not converge: %s",
                    program->last_sentence);
    snprintf(world->resize->sizes, TEXT_MAX, "%s", sizes);
}

static bool all_is_ready(struct world *world)
{
    CLEANUP_JSON cJSON *set = sim_server_get(world->server, SET_PATH);
    const cJSON *status = json_get(set, "status");
    return set &&
           json_int64_or(status, "readyReplicas", 0) == json_int64_or(json_get(set, "spec"), "replicas", 1) &&
           json_int64_or(status, "observedGeneration", 0) == kube_object_generation(set);
}

/* An apply by whoever applied it last changes nothing (21). */
static void apply_once_more(struct world *world)
{
    CLEANUP_JSON cJSON *before = sim_server_get(world->server, SET_PATH);
    int status = apply(world, world->resize->sizes);
    CLEANUP_JSON cJSON *after = sim_server_get(world->server, SET_PATH);
    bool is_his = false;
    const cJSON *entry = NULL;
    cJSON_ArrayForEach (entry, json_path(before, "metadata", "managedFields", NULL))
        is_his |=
            str_equal(json_str(entry, "manager"), "me") && str_equal(json_str(entry, "operation"), "Apply");
    bool is_same = status < 300 && str_equal(kube_object_version(before), kube_object_version(after));
    /* Of one that a person made by hand an apply may have to take fields over. */
    if (is_his && !is_same)
        judge_break(world->judge, 21,
                    "the user's next apply is answered %d and changes the StatefulSet (generation %lld -> "
                    "%lld, version %s -> %s)",
                    status, (long long)kube_object_generation(before),
                    (long long)kube_object_generation(after), kube_object_version(before),
                    kube_object_version(after));
}

void resize_come_home(struct world *world)
{
    heal(world);
    wait_for_commands(world);
    see_it_whole(world);
    converge_for_good(world);
    if (!wait_until(world, all_is_ready, READY_WITHIN_US))
        judge_break(world->judge, 19, "its pods do not become ready within %d min",
                    (int)(READY_WITHIN_US / US_PER_S / 60));
    world_run_for(world, 5 * US_PER_S);
    judge_look_at_statefulset(world->judge, world->resize->sizes);
    apply_once_more(world);
    world_run_for(world, 5 * US_PER_S);
    judge_expect_quiet(world->judge, true);
    world_run_for(world, QUIET_US);
    judge_expect_quiet(world->judge, false);
}
