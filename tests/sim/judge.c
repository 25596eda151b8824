/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_parts.h"

#include <stdio.h>

/* A watch's line takes two ways of the network and a turn; more than that is a bug, or a fault was drawn. */
#define TOLD_WITHIN_US (300 * US_PER_MS)
/* A watch that fell silent is noticed at the latest when its bookmarks are missed. */
#define BLIND_US (600 * US_PER_S)

struct judge *judge_make(struct world *world)
{
    struct judge *judge = xcalloc(1, sizeof(*judge));
    judge->world = world;
    judge->report = world->report;
    judge->blind_until_us = NEVER_US;
    for (int i = 0; i < SETS_MAX; i++)
        judge->sets[i].index = i;
    return judge;
}

int64_t judge_now_us(const struct judge *judge)
{
    return world_now_us(judge->world);
}

void judge_break(struct judge *judge, int invariant, const char *format, ...)
{
    if (!report_seeks(judge->report, invariant))
        return;
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *sentence = xvasprintf(format, args);
    va_end(args);
    report_break(judge->report, invariant, "%s", sentence);
}

int64_t judge_since_us(const struct judge *judge, int64_t decided_us)
{
    if (decided_us <= judge->blind_until_us)
        return NEVER_US;
    return decided_us - TOLD_WITHIN_US - 4 * judge->world->draw->network_us;
}

struct seen_set *judge_set_of(struct judge *judge, const char *name)
{
    for (int i = 0; i < judge->world->draw->set_count; i++)
        if (str_equal(name, set_name(i)))
            return &judge->sets[i];
    return NULL;
}

/* --- histories ------------------------------------------------------------------------------------------ */

const struct seen_spec *seen_spec_now(const struct seen_set *set)
{
    return set->spec_count ? &set->specs[(set->spec_count - 1) % SPECS_MAX] : NULL;
}

const struct seen_status *seen_status_now(const struct seen_set *set)
{
    return set->status_count ? &set->statuses[(set->status_count - 1) % STATUSES_MAX] : NULL;
}

const struct seen_spec *seen_spec_since(const struct seen_set *set, int64_t since_us, unsigned *at)
{
    if (*at >= MIN(set->spec_count, (unsigned)SPECS_MAX))
        return NULL;
    const struct seen_spec *spec = &set->specs[(set->spec_count - 1 - *at) % SPECS_MAX];
    bool newer_is_older = *at > 0 && set->specs[(set->spec_count - *at) % SPECS_MAX].at_us <= since_us;
    (*at)++;
    return newer_is_older ? NULL : spec;
}

const struct seen_status *seen_status_since(const struct seen_set *set, int64_t since_us, unsigned *at)
{
    if (*at >= MIN(set->status_count, (unsigned)STATUSES_MAX))
        return NULL;
    const struct seen_status *status = &set->statuses[(set->status_count - 1 - *at) % STATUSES_MAX];
    bool newer_is_older =
        *at > 0 && set->statuses[(set->status_count - *at) % STATUSES_MAX].at_us <= since_us;
    (*at)++;
    return newer_is_older ? NULL : status;
}

const struct seen_status *seen_status_at(const struct seen_set *set, int64_t at_us, int64_t since_us)
{
    for (unsigned i = 0; i < MIN(set->status_count, (unsigned)STATUSES_MAX); i++) {
        const struct seen_status *status = &set->statuses[(set->status_count - 1 - i) % STATUSES_MAX];
        if (status->at_us <= at_us && (status->by_us || status->at_us <= since_us))
            return status;
    }
    return NULL;
}

/* --- what it is told ------------------------------------------------------------------------------------ */

/* By one of the controllers. */
static bool by_key(const struct kubesim_change *change)
{
    return change->audit_id && str_starts_with(change->audit_id, "neo-");
}

static void tell_change(struct judge *judge, const struct kubesim_change *change)
{
    if (str_equal(change->kind, "Lease") || str_equal(change->kind, "Node") ||
        str_equal(change->kind, "Event"))
        return;
    const char *who = by_key(change) ? change->audit_id : change->user ? change->user : "the server";
    const char *what = !change->before ? "made" : !change->after ? "gone" : "changed";
    bool status = change->path && strstr(change->path, "/status");
    report_tell(judge->report, "  %s %s is %s%s by %s", change->kind, change->name, what,
                status ? " (status)" : "", who);
}

static void take_resize_change(struct judge *judge, const struct kubesim_change *change)
{
    if (str_equal(change->kind, "StatefulSet"))
        judge_take_statefulset(judge, change);
    else if (str_equal(change->kind, "PersistentVolumeClaim"))
        judge_take_claim(judge, change);
    else if (str_equal(change->kind, "Pod"))
        judge_take_set_pod(judge, change);
}

void judge_take_change(struct judge *judge, const struct kubesim_change *change)
{
    int64_t now_us = judge_now_us(judge);
    report_mix(judge->report, &now_us, sizeof(now_us));
    report_mix_text(judge->report, change->kind);
    report_mix_text(judge->report, change->name);
    report_mix_text(judge->report, json_path_str(change->after, "metadata", "resourceVersion", NULL));
    report_mix_text(judge->report, change->audit_id);
    judge_pass_time(judge);
    tell_change(judge, change);
    judge->changed = true;
    struct seen_key *key = judge_key_of(judge, change->audit_id);
    /* What was made and is gone may be made again by the same step: nobody can tell that from never made. */
    if (key && key->accepted && change->before)
        judge_break(judge, 11, "step %s was accepted twice: %s %s", key->key, change->kind, change->name);
    if (judge->quiet && by_key(change) && !str_equal(change->kind, "Lease")) {
        judge->report->idle_writes++;
        judge_break(judge, 6, "nothing has changed, and yet %s %s is written (%s, %s)", change->kind,
                    change->name, change->audit_id, change->path ? change->path : "");
    }
    /* Whoever leads anew looks at everything anew, as after a start. */
    if (str_equal(change->kind, "Lease") &&
        !str_equal(json_path_str(change->before, "spec", "acquireTime", NULL),
                   json_path_str(change->after, "spec", "acquireTime", NULL)))
        judge->disturbed_us = now_us;
    if (judge->world->draw->is_resize) {
        take_resize_change(judge, change);
        return;
    }
    if (str_equal(change->kind, "Pod"))
        judge_take_pod(judge, change);
    else if (str_equal(change->kind, "NeoSet"))
        judge_take_set(judge, change);
    else if (str_equal(change->kind, "ControllerRevision"))
        judge_take_revision(judge, change);
}

void judge_take_start(struct judge *judge, struct program *program)
{
    judge_close_reader(judge, program->index);
    judge->started_us = judge->disturbed_us = judge_now_us(judge);
    ENSURE(judge->run_count < RUNS_MAX);
    struct seen_run *run = &judge->runs[judge->run_count++];
    snprintf(run->nonce, sizeof(run->nonce), "%s", journal_nonce(program->journal));
    run->program = program->index;
}

void judge_take_end(struct judge *judge, struct program *program)
{
    judge_close_reader(judge, program->index);
    judge->disturbed_us = judge_now_us(judge);
}

void judge_take_lost_journal(struct judge *judge, struct program *program)
{
    judge_close_reader(judge, program->index);
    judge->journal_lost = true;
}

bool judge_has_lost_journal(const struct judge *judge)
{
    return judge->journal_lost;
}

void judge_take_fault(struct judge *judge, const char *spec)
{
    judge->disturbed_us = judge_now_us(judge);
    judge->fault_pending = judge->fault_pending || !str_equal(spec, "lease");
    if (str_starts_with(spec, "freeze") || strstr(spec, "stale") || str_starts_with(spec, "cut") ||
        str_starts_with(spec, "gone") || strstr(spec, "verb=list") || strstr(spec, "verb=watch"))
        judge->blind_until_us = judge_now_us(judge) + BLIND_US;
}

void judge_take_rewind(struct judge *judge)
{
    judge->rewound_us = judge_now_us(judge);
    judge->disturbed_us = judge_now_us(judge);
    judge->blind_until_us = judge_now_us(judge) + BLIND_US;
    for (int i = 0; i < judge->world->draw->set_count; i++)
        judge_begin_epoch(&judge->sets[i]);
    /* What was accepted since the copy never was. */
    for (struct seen_key *key = judge->keys; key; key = key->hh.next)
        key->accepted = false;
}

void judge_take_theft(struct judge *judge)
{
    judge->thefts++;
}

void judge_take_clock_jump(struct judge *judge)
{
    judge->clock_jumped = true;
}

void judge_take_heal(struct judge *judge)
{
    judge->healed = true;
    judge->fault_pending = false;
    judge->disturbed_us = judge_now_us(judge);
}

void judge_expect_quiet(struct judge *judge, bool quiet)
{
    judge->quiet = quiet;
}

void judge_look(struct judge *judge)
{
    judge_look_at_time(judge);
}
