/* SPDX-License-Identifier: Apache-2.0
 *
 * What people, nodes, the network and the disk do to a world. */
#include "world.h"

#include "judge.h"
#include "resize.h"
#include "strangers.h"

#include "base/time_text.h"

#include <stdio.h>
#include <unistd.h>

#define SETS_PATH "/apis/apps.neo.io/v1alpha1/namespaces/default/neosets"
#define PODS_PATH "/api/v1/namespaces/default/pods"
#define CLAIMS_PATH "/api/v1/namespaces/default/persistentvolumeclaims"
#define REVISIONS_PATH "/apis/apps/v1/namespaces/default/controllerrevisions"
#define LEASE_PATH "/apis/coordination.k8s.io/v1/namespaces/neo/leases/neoset"

int world_ask(struct world *world, const char *method, const char *path, const char *type, const char *body)
{
    CLEANUP_JSON cJSON *answer = NULL;
    int status = sim_server_ask(world->server, method, path, type, body, &answer);
    if (status >= 300)
        report_tell(world->report, "  the server answers %d: %s", status,
                    answer && json_str(answer, "message") ? json_str(answer, "message") : "");
    return status;
}

static char *set_path(int set)
{
    return xasprintf(SETS_PATH "/%s", set_name(set));
}

static char *pod_path(const struct world *world, int set, int nth)
{
    return xasprintf(PODS_PATH "/%s-%d", set_name(set), world->draw->sets[set].start + nth);
}

cJSON *world_set(struct world *world, int set)
{
    CLEANUP_FREE char *path = set_path(set);
    return sim_server_get(world->server, path);
}

/* --- sets ----------------------------------------------------------------------------------------------- */

static cJSON *make_container(const struct set_draw *set, int index)
{
    cJSON *container = json_new_object();
    json_add_str(container, "name", index == 0 ? "db" : "log");
    json_add_str(container, "image", index == 0 ? "db:v1" : "log:v1");
    if (set->probes) {
        cJSON *probe = json_add_object(container, "readinessProbe");
        json_add_int64(json_add_object(probe, "tcpSocket"), "port", 3306);
        json_add_int64(probe, "periodSeconds", 1);
    }
    if (set->startup && index == 0) {
        cJSON *probe = json_add_object(container, "startupProbe");
        json_add_int64(json_add_object(probe, "tcpSocket"), "port", 3306);
        json_add_int64(probe, "periodSeconds", 1);
    }
    return container;
}

const char *world_label(const struct world *world, int set)
{
    return set_name(world->draw->sets[set].shares ? 0 : set);
}

cJSON *world_template(const struct world *world, int index)
{
    const struct set_draw *set = &world->draw->sets[index];
    cJSON *template = json_new_object();
    cJSON *labels = json_add_object(json_add_object(template, "metadata"), "labels");
    json_add_str(labels, "app", world_label(world, index));
    cJSON *pod = json_add_object(template, "spec");
    json_add_int64(pod, "terminationGracePeriodSeconds", 2);
    if (set->init) {
        cJSON *init = json_new_object();
        json_add_str(init, "name", "prepare");
        json_add_str(init, "image", "init:v1");
        json_append_item(json_add_array(pod, "initContainers"), init);
    }
    cJSON *containers = json_add_array(pod, "containers");
    for (int i = 0; i < set->containers; i++)
        json_append_item(containers, make_container(set, i));
    return template;
}

static void add_strategy(cJSON *spec, const struct set_draw *set, int fence)
{
    cJSON *strategy = json_add_object(spec, "updateStrategy");
    json_add_str(strategy, "type", set->strategy);
    json_add_int64(strategy, "partition", fence);
    cJSON *budget = NULL;
    ENSURE(json_parse(set->budget, strlen(set->budget), &budget, NULL) == 0);
    json_add_item(strategy, "maxUnavailable", budget);
    cJSON *in_place = json_add_object(strategy, "inPlaceUpdateStrategy");
    json_add_str(in_place, "readiness", set->readiness);
    json_add_str(in_place, "prefetch", set->prefetch);
    json_add_int64(in_place, "readinessTimeoutSeconds", set->timeout_s);
    json_add_int64(in_place, "gracePeriodSeconds", set->grace_s);
}

static void add_claims(cJSON *spec)
{
    cJSON *claim = json_new_object();
    json_add_str(json_add_object(claim, "metadata"), "name", "data");
    cJSON *claim_spec = json_add_object(claim, "spec");
    json_append_str(json_add_array(claim_spec, "accessModes"), "ReadWriteOnce");
    json_add_str(json_add_object(json_add_object(claim_spec, "resources"), "requests"), "storage", "1Gi");
    json_append_item(json_add_array(spec, "volumeClaimTemplates"), claim);
}

void world_create_set(struct world *world, int index)
{
    const struct set_draw *set = &world->draw->sets[index];
    const char *name = set_name(index);
    CLEANUP_JSON cJSON *object = json_new_object();
    json_add_str(object, "apiVersion", "apps.neo.io/v1alpha1");
    json_add_str(object, "kind", "NeoSet");
    json_add_str(json_add_object(object, "metadata"), "name", name);
    cJSON *spec = json_add_object(object, "spec");
    json_add_int64(spec, "replicas", set->replicas);
    json_add_str(spec, "serviceName", name);
    json_add_str(json_add_object(json_add_object(spec, "selector"), "matchLabels"), "app",
                 world_label(world, index));
    json_add_str(spec, "podManagementPolicy", set->policy);
    json_add_int64(spec, "minReadySeconds", set->min_ready_s);
    json_add_int64(spec, "revisionHistoryLimit", set->history);
    json_add_int64(json_add_object(spec, "ordinals"), "start", set->start);
    json_add_item(spec, "template", world_template(world, index));
    /* Nobody fences off what is to come home. */
    int fence = world->calm ? 0 : set->fence;
    add_strategy(spec, set, fence);
    if (set->claims)
        add_claims(spec);
    CLEANUP_FREE char *text = json_print(object);
    report_tell(world->report,
                "* a person creates the NeoSet %s: %d replicas, maxUnavailable %s, %s, %s, fence %d", name,
                set->replicas, set->budget, set->policy, set->strategy, fence);
    (void)world_ask(world, "POST", SETS_PATH, "application/json", text);
}

static int merge(struct world *world, int set, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int merge(struct world *world, int set, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *text = xvasprintf(format, args);
    va_end(args);
    CLEANUP_FREE char *path = set_path(set);
    return world_ask(world, "PATCH", path, "application/merge-patch+json", text);
}

static void json_patch(struct world *world, int set, const char *op, const char *path, const char *value)
{
    CLEANUP_FREE char *where = set_path(set);
    CLEANUP_FREE char *text = xasprintf("[{\"op\":\"%s\",\"path\":\"%s\",\"value\":%s}]", op, path, value);
    (void)world_ask(world, "PATCH", where, "application/json-patch+json", text);
}

static void set_image(struct world *world, int set, int container, const char *image)
{
    CLEANUP_FREE char *path = xasprintf("/spec/template/spec/containers/%d/image", container);
    CLEANUP_FREE char *value = xasprintf("\"%s\"", image);
    json_patch(world, set, "replace", path, value);
}

static void set_variable(struct world *world, int set, int value)
{
    CLEANUP_FREE char *text = xasprintf("[{\"name\":\"MODE\",\"value\":\"%d\"}]", value);
    json_patch(world, set, "add", "/spec/template/spec/containers/0/env", text);
}

static void set_metadata(struct world *world, int set, const char *of, const char *key, int value)
{
    if (value == 0)
        (void)merge(world, set, "{\"spec\":{\"template\":{\"metadata\":{\"%s\":{\"%s\":null}}}}}", of, key);
    else
        (void)merge(world, set, "{\"spec\":{\"template\":{\"metadata\":{\"%s\":{\"%s\":\"%d\"}}}}}", of, key,
                    value);
}

/* The same tree with the members of each object in the opposite order. */
static void turn_round(cJSON *tree)
{
    cJSON *child = NULL;
    cJSON_ArrayForEach (child, tree)
        turn_round(child);
    if (!cJSON_IsObject(tree))
        return;
    for (cJSON *node = tree->child, *next = NULL; node; node = next) {
        next = node->next;
        ENSURE(cJSON_InsertItemInArray(tree, 0, cJSON_DetachItemViaPointer(tree, node)));
    }
}

void world_rustle(struct world *world, int set)
{
    CLEANUP_JSON cJSON *object = world_set(world, set);
    if (!object)
        return;
    cJSON *metadata = json_get(object, "metadata");
    CLEANUP_FREE char *noise = xasprintf("%lld", (long long)world_now_us(world));
    json_set_str(json_ensure_object(metadata, "annotations"), "noise", noise);
    turn_round(json_path(object, "spec", "template", NULL));
    CLEANUP_FREE char *path = set_path(set);
    CLEANUP_FREE char *text = json_print(object);
    (void)world_ask(world, "PUT", path, "application/json", text);
}

static void lose_status(struct world *world, int set)
{
    CLEANUP_FREE char *path = set_path(set);
    CLEANUP_FREE char *where = xasprintf("%s/status", path);
    (void)world_ask(world, "PATCH", where, "application/merge-patch+json", "{\"status\":null}");
}

/* The same by meaning: what the server would fill in anyway. */
static void spell_out(struct world *world, int set, bool out)
{
    const char *op = out ? "add" : "remove";
    json_patch(world, set, op, "/spec/template/spec/restartPolicy", "\"Always\"");
    json_patch(world, set, op, "/spec/template/spec/containers/0/terminationMessagePath",
               "\"/dev/termination-log\"");
}

/* More of what a person may change in a spec. */
static bool edit(struct world *world, const struct operation *operation)
{
    int set = operation->set, a = operation->a;
    switch (operation->kind) {
    case DO_RUSTLE:
        world_rustle(world, set);
        return true;
    case DO_DEFAULTS:
        spell_out(world, set, !a);
        return true;
    case DO_READINESS:
    case DO_PREFETCH:
        (void)merge(world, set, "{\"spec\":{\"updateStrategy\":{\"inPlaceUpdateStrategy\":{\"%s\":\"%s\"}}}}",
                    operation->kind == DO_READINESS ? "readiness" : "prefetch", operation->text);
        return true;
    case DO_HISTORY:
        (void)merge(world, set, "{\"spec\":{\"revisionHistoryLimit\":%d}}", a);
        return true;
    case DO_ORDINALS:
        (void)merge(world, set, "{\"spec\":{\"ordinals\":{\"start\":%d}}}", a);
        return true;
    case DO_RETENTION:
        (void)merge(world, set, "{\"spec\":{\"persistentVolumeClaimRetentionPolicy\":%s}}",
                    retention_text(a));
        return true;
    case DO_INIT_IMAGE:
        if (world->draw->sets[set].init) {
            CLEANUP_FREE char *image = xasprintf("\"%s\"", operation->text);
            json_patch(world, set, "replace", "/spec/template/spec/initContainers/0/image", image);
        }
        return true;
    case DO_TERMINATION: {
        CLEANUP_FREE char *seconds = xasprintf("%d", a);
        json_patch(world, set, "add", "/spec/template/spec/terminationGracePeriodSeconds", seconds);
        return true;
    }
    default:
        return false;
    }
}

static bool do_to_set(struct world *world, const struct operation *operation)
{
    int set = operation->set, a = operation->a;
    switch (operation->kind) {
    case DO_IMAGE:
        set_image(world, set, a, operation->text);
        return true;
    case DO_ENVIRONMENT:
        set_variable(world, set, a);
        return true;
    case DO_LABEL:
        set_metadata(world, set, "labels", "tier", a);
        return true;
    case DO_ANNOTATION:
        set_metadata(world, set, "annotations", "note", a);
        return true;
    case DO_RESTART:
        set_metadata(world, set, "annotations", "kubectl.kubernetes.io/restartedAt", 1 + a);
        return true;
    case DO_SCALE:
        (void)merge(world, set, "{\"spec\":{\"replicas\":%d}}", a);
        return true;
    case DO_FENCE:
        (void)merge(world, set, "{\"spec\":{\"updateStrategy\":{\"partition\":%d}}}", a);
        return true;
    case DO_PAUSE:
        (void)merge(world, set, "{\"spec\":{\"updateStrategy\":{\"pause\":%s}}}", a ? "true" : "false");
        return true;
    case DO_BUDGET:
        (void)merge(world, set, "{\"spec\":{\"updateStrategy\":{\"maxUnavailable\":%s}}}", operation->text);
        return true;
    case DO_PATIENCE:
        (void)merge(world, set,
                    "{\"spec\":{\"minReadySeconds\":%d,\"updateStrategy\":{\"inPlaceUpdateStrategy\":{"
                    "\"readinessTimeoutSeconds\":%d}}}}",
                    operation->b, a);
        return true;
    case DO_GRACE:
        (void)merge(world, set,
                    "{\"spec\":{\"updateStrategy\":{\"inPlaceUpdateStrategy\":{\"gracePeriodSeconds\":%d}}}}",
                    a);
        return true;
    case DO_POLICY:
        (void)merge(world, set, "{\"spec\":{\"podManagementPolicy\":\"%s\"}}", operation->text);
        return true;
    case DO_STRATEGY:
        (void)merge(world, set, "{\"spec\":{\"updateStrategy\":{\"type\":\"%s\"}}}", operation->text);
        return true;
    case DO_LOSE_STATUS:
        lose_status(world, set);
        return true;
    case DO_NOISE:
        (void)merge(world, set, "{\"metadata\":{\"annotations\":{\"noise\":\"%d\"}}}", a);
        return true;
    default:
        return false;
    }
}

/* --- pods and what belongs to them ---------------------------------------------------------------------- */

static void behave(struct world *world, int set, int nth, const char *words)
{
    CLEANUP_FREE char *path = pod_path(world, set, nth);
    CLEANUP_FREE char *value = *words ? xasprintf("\"%s\"", words) : xstrdup("null");
    CLEANUP_FREE char *text =
        xasprintf("{\"metadata\":{\"annotations\":{\"kubesim.neo.io/behaviour\":%s}}}", value);
    (void)world_ask(world, "PATCH", path, "application/merge-patch+json", text);
}

static void delete_revision(struct world *world, int set, int nth)
{
    CLEANUP_JSON cJSON *list = sim_server_get(world->server, REVISIONS_PATH);
    const cJSON *item = NULL;
    int count = 0;
    CLEANUP_FREE char *prefix = xasprintf("%s-", set_name(set));
    cJSON_ArrayForEach (item, json_get(list, "items")) {
        const char *name = json_path_str(item, "metadata", "name", NULL);
        if (!str_starts_with(name, prefix) || count++ != nth % 3)
            continue;
        CLEANUP_FREE char *path = xasprintf(REVISIONS_PATH "/%s", name);
        (void)world_ask(world, "DELETE", path, NULL, NULL);
        return;
    }
}

static void delete_pod(struct world *world, int set, int nth, bool force)
{
    CLEANUP_FREE char *path = pod_path(world, set, nth);
    (void)world_ask(world, "DELETE", path, "application/json", force ? "{\"gracePeriodSeconds\":0}" : "{}");
}

static void evict(struct world *world, int set, int nth)
{
    CLEANUP_FREE char *path = pod_path(world, set, nth);
    CLEANUP_FREE char *where = xasprintf("%s/eviction", path);
    CLEANUP_FREE char *text =
        xasprintf("{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"%s-%d\"}}",
                  set_name(set), world->draw->sets[set].start + nth);
    (void)world_ask(world, "POST", where, "application/json", text);
}

static void kill_container(struct world *world, int set, int nth)
{
    CLEANUP_FREE char *name = xasprintf("%s-%d", set_name(set), world->draw->sets[set].start + nth);
    struct kubelet *kubelet = sim_server_kubelet(world->server);
    if (kubelet_kill_container(kubelet, "default", name, "db",
                               kubesim_now_us(sim_server_kubesim(world->server))))
        sim_server_poke(world->server);
}

static bool do_to_pod(struct world *world, const struct operation *operation)
{
    int set = operation->set, a = operation->a;
    CLEANUP_FREE char *claim = NULL;
    switch (operation->kind) {
    case DO_DELETE_POD:
        delete_pod(world, set, a, operation->b);
        return true;
    case DO_DELETE_CLAIM:
        claim = xasprintf(CLAIMS_PATH "/data-%s-%d", set_name(set), world->draw->sets[set].start + a);
        (void)world_ask(world, "DELETE", claim, NULL, NULL);
        return true;
    case DO_DELETE_REVISION:
        delete_revision(world, set, a);
        return true;
    case DO_EVICT:
        evict(world, set, a);
        return true;
    case DO_KILL_CONTAINER:
        kill_container(world, set, a);
        return true;
    case DO_BEHAVE:
        behave(world, set, a, operation->text);
        return true;
    case DO_WEATHER:
        ENSURE(kubelet_set_behaviour(sim_server_kubelet(world->server),
                                     *operation->text ? operation->text : world->draw->behaviour));
        return true;
    default:
        return false;
    }
}

/* --- programs, disk, clock, network --------------------------------------------------------------------- */

void world_copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb");
    if (!in) {
        unlink(to);
        return;
    }
    FILE *out = fopen(to, "wb");
    ENSURE(out != NULL);
    char bytes[65536];
    size_t length = 0;
    while ((length = fread(bytes, 1, sizeof(bytes), in)) > 0)
        ENSURE(fwrite(bytes, 1, length, out) == length);
    fclose(in);
    fclose(out);
}

static const char *const journal_parts[] = {"", "-wal"};

static void copy_journal(const struct program *program, bool back)
{
    for (size_t i = 0; i < ARRAY_SIZE(journal_parts); i++) {
        CLEANUP_FREE char *file = xasprintf("%s%s", program->journal_path, journal_parts[i]);
        CLEANUP_FREE char *copy = xasprintf("%s.copy%s", program->journal_path, journal_parts[i]);
        world_copy_file(back ? copy : file, back ? file : copy);
    }
}

static void remove_journal(const struct program *program)
{
    static const char *const parts[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        CLEANUP_FREE char *file = xasprintf("%s%s", program->journal_path, parts[i]);
        unlink(file);
    }
}

static void crash(struct world *world, const struct operation *operation)
{
    struct program *program = &world->programs[0];
    world_run_events(world, operation->a);
    program_kill(program);
    if (operation->kind == DO_LOSE_JOURNAL) {
        judge_take_lost_journal(world->judge, program);
        remove_journal(program);
    }
    CLEANUP_FREE char *copy = xasprintf("%s.copy", program->journal_path);
    if (operation->kind == DO_RESTORE && access(copy, R_OK) == 0) {
        judge_take_lost_journal(world->judge, program);
        remove_journal(program);
        copy_journal(program, true);
    }
    program->start_due_us = world_now_us(world) + operation->b * US_PER_MS;
}

/* A copy of a live file is no backup: it is taken while the controller is down for a moment. */
static void backup(struct world *world)
{
    struct program *program = &world->programs[0];
    if (!program->env)
        return;
    program_kill(program);
    copy_journal(program, false);
    program->start_due_us = world_now_us(world);
}

static void fault(struct world *world, const char *spec)
{
    CLEANUP_ERROR struct error *err = NULL;
    judge_take_fault(world->judge, spec);
    if (kubesim_fault_add(sim_server_kubesim(world->server), spec, &err) < 0)
        report_tell(world->report, "  %s", error_text(err));
}

/* Who restores etcd starts all that watched it anew: a watch that goes on by a number of the other history
 * misses what got that number again. */
static void rewind_storage(struct world *world)
{
    if (!kubesim_rewind(sim_server_kubesim(world->server)))
        return;
    judge_take_rewind(world->judge);
    sim_server_poke(world->server);
    for (int i = 0; i < world->program_count; i++) {
        program_kill(&world->programs[i]);
        world->programs[i].start_due_us = world_now_us(world) + 100 * US_PER_MS;
    }
}

void world_do(struct world *world, const struct operation *operation)
{
    if (world->draw->is_resize && resize_do(world, operation))
        return;
    if (do_to_set(world, operation) || edit(world, operation) || do_to_pod(world, operation))
        return;
    CLEANUP_FREE char *path = set_path(operation->set);
    switch (operation->kind) {
    case DO_DELETE_SET: {
        CLEANUP_FREE char *body = xasprintf("{\"propagationPolicy\":\"%s\"}", operation->text);
        (void)world_ask(world, "DELETE", path, "application/json", body);
        break;
    }
    case DO_CREATE_SET:
        world_create_set(world, operation->set);
        break;
    case DO_FAULT:
        fault(world, operation->text);
        break;
    case DO_COMPACT:
        kubesim_compact(sim_server_kubesim(world->server));
        break;
    case DO_CRASH:
    case DO_LOSE_JOURNAL:
    case DO_RESTORE:
        crash(world, operation);
        break;
    case DO_STOP:
        program_stop(&world->programs[0]);
        world->programs[0].start_due_us = world_now_us(world) + operation->b * US_PER_MS;
        break;
    case DO_BACKUP:
        backup(world);
        break;
    case DO_JUMP_CLOCK:
        judge_take_clock_jump(world->judge);
        env_sim_jump_wall(world->env, operation->a * US_PER_S);
        world->clock_off_us += operation->a * US_PER_S;
        break;
    case DO_STEAL_LEASE:
        judge_take_fault(world->judge, "lease");
        if (world->draw->with_lease)
            (void)world_ask(world, "PATCH", LEASE_PATH, "application/merge-patch+json",
                            "{\"spec\":{\"holderIdentity\":\"thief\"}}");
        judge_take_theft(world->judge);
        break;
    case DO_SNAPSHOT:
        kubesim_snapshot(sim_server_kubesim(world->server));
        break;
    case DO_REWIND:
        rewind_storage(world);
        break;
    case DO_STRANGER:
        strangers_come(world, operation->set, operation->a, (enum stranger_kind)operation->b);
        break;
    case DO_DISK:
        world->disk_us = operation->a * US_PER_MS;
        break;
    default:
        UNREACHABLE();
    }
}

/* --- healing -------------------------------------------------------------------------------------------- */

/* A claim that is being deleted while its pod uses it: its data goes with the pod, and only a person may say
 * so. */
static bool claim_is_going(struct world *world, const char *pod)
{
    CLEANUP_FREE char *path = xasprintf(CLAIMS_PATH "/data-%s", pod);
    CLEANUP_JSON cJSON *claim = sim_server_get(world->server, path);
    return json_path_str(claim, "metadata", "deletionTimestamp", NULL) != NULL;
}

static void heal_pods(struct world *world)
{
    CLEANUP_JSON cJSON *list = sim_server_get(world->server, PODS_PATH);
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, json_get(list, "items")) {
        const char *name = json_path_str(item, "metadata", "name", NULL);
        const char *words = json_path_str(item, "metadata", "annotations", "kubesim.neo.io/behaviour", NULL);
        CLEANUP_FREE char *path = xasprintf(PODS_PATH "/%s", name);
        /* A lost node is gone for good: a person says so, as the message of the set asks. */
        if (words && strstr(words, "node-lost"))
            (void)world_ask(world, "DELETE", path, "application/json", "{\"gracePeriodSeconds\":0}");
        else if (claim_is_going(world, name))
            (void)world_ask(world, "DELETE", path, "application/json", "{}");
        else /* an event, so that its kubelet looks how it is to behave */
            (void)world_ask(
                world, "PATCH", path, "application/merge-patch+json",
                "{\"metadata\":{\"annotations\":{\"kubesim.neo.io/behaviour\":null,\"healed\":\"1\"}}}");
    }
}

static void heal_set(struct world *world, int set)
{
    CLEANUP_JSON cJSON *there = world_set(world, set);
    if (!there) {
        world_create_set(world, set);
        return;
    }
    int replicas = (int)json_int64_or(json_get(there, "spec"), "replicas", 1);
    for (int i = 0; i < world->draw->sets[set].containers; i++)
        set_image(world, set, i, i == 0 ? "db:good" : "log:good");
    if (world->draw->sets[set].init)
        json_patch(world, set, "replace", "/spec/template/spec/initContainers/0/image", "\"init:v1\"");
    (void)merge(world, set,
                "{\"spec\":{\"replicas\":%d,\"updateStrategy\":{\"partition\":0,\"pause\":false}}}",
                MAX(replicas, 1));
}

void world_heal(struct world *world)
{
    kubesim_fault_clear(sim_server_kubesim(world->server));
    env_sim_jump_wall(world->env, -world->clock_off_us);
    world->clock_off_us = 0;
    world->disk_us = 0;
    world->calm = true;
    judge_take_heal(world->judge);
    (void)kubelet_set_behaviour(sim_server_kubelet(world->server), world->draw->behaviour);
    strangers_go(world);
    heal_pods(world);
    for (int i = 0; i < world->draw->set_count; i++)
        heal_set(world, i);
    for (int i = 0; i < world->program_count; i++)
        if (!world->programs[i].env && !world->programs[i].wish && world->programs[i].started_us > 0)
            world->programs[i].start_due_us = world_now_us(world);
}
