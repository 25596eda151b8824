/* SPDX-License-Identifier: Apache-2.0
 *
 * A turn of the plan on what is there. */
#include "fake_set_parts.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

enum { TURNS_MAX = 200 };

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
        neoset_observe_pod(fake->memory, facts->pods[i], fake_wall_us(fake), fake->boot_us);
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
        char *all =
            xasprintf("%s%s %s\n%s", fake->waits, wait->action, wait->name, wait->held ? "held\n" : "");
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
    fake_touch(fake, fake->set);
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
            in_use = in_use || str_equal(fake_label(pod), name);
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
                        fake_wall_us(fake), fake->boot_us);
    struct neoset_snapshot snapshot = {
        .wall_us = fake_wall_us(fake),
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
        fake_do_step(fake, decision.steps[i]);
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
