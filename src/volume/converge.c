/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/converge_parts.h"

#include "base/plant.h"
#include "base/time_text.h"
#include "volume/goal.h"

/* A server that cannot say now is asked again after so long. */
#define LATER_US (1 * US_PER_S)

/* --- the table ------------------------------------------------------------------------------------------ */

#define TO(name) (UINT32_C(1) << CONVERGE_##name)

/* Where a stage may lead. Every stage may look again and end. */
static const struct {
    const char *text;
    uint32_t successors;
} stages[CONVERGE_STAGE_COUNT] = {
#define X(name, text_) [CONVERGE_##name].text = text_,
    CONVERGE_STAGES(X)
#undef X
        [CONVERGE_LOOK]
            .successors = TO(PROVE_APPLY) | TO(PROVE_CREATE) | TO(PROBE) | TO(GROW) | TO(NOTE) | TO(RELEASE) |
                          TO(MAKE) | TO(SECOND) | TO(MANAGERS) | TO(CATCH_UP) | TO(DROP) | TO(FORESTALL) |
                          TO(CLEAN),
    [CONVERGE_PROVE_APPLY].successors = TO(PROVE_CREATE),
    [CONVERGE_PROVE_CREATE].successors = TO(PROVE_DELETE),
    [CONVERGE_PROVE_DELETE].successors = TO(PROVE_RIGHTS) | TO(PROVE_SIZES) | TO(PROBE) | TO(GROW) |
                                         TO(PROVE_APPLY) | TO(PROVE_CREATE) | TO(KEEP) | TO(CLEAN),
    [CONVERGE_PROVE_RIGHTS].successors =
        TO(PROVE_SIZES) | TO(PROBE) | TO(GROW) | TO(PROVE_APPLY) | TO(PROVE_CREATE) | TO(CLEAN),
    [CONVERGE_PROVE_SIZES].successors = TO(PROBE) | TO(GROW) | TO(PROVE_APPLY) | TO(PROVE_CREATE) | TO(CLEAN),
    [CONVERGE_PROBE].successors = TO(GROW) | TO(CLEAN),
    [CONVERGE_DROP].successors = TO(CLEAN),
    [CONVERGE_KEEP].successors = TO(DELETE),
};

const char *converge_stage_text(enum converge_stage stage)
{
    PRE(stage < CONVERGE_STAGE_COUNT);
    return stages[stage].text;
}

void converge_go(struct converge *converge, enum converge_stage stage)
{
    bool always = stage == CONVERGE_LOOK || stage == CONVERGE_END || stage == converge->stage;
    ENSURE(always || (stages[converge->stage].successors & (UINT32_C(1) << stage)));
    converge->stage = stage;
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct converge *converge_make(const struct converge_options *options)
{
    struct converge *converge = xcalloc(1, sizeof(*converge));
    converge->options = *options;
    converge->namespace = xstrdup(options->namespace);
    converge->name = xstrdup(options->name);
    converge->field_manager = xstrdup_or_null(options->field_manager);
    converge->desired = options->desired ? json_copy(options->desired) : NULL;
    converge->has_manifest = options->desired != NULL;
    converge->wanted_sizes = xstrdup_or_null(options->sizes);
    converge->sizes =
        converge->desired ? recreate_sizes_text(converge->desired) : xstrdup_or_null(options->sizes);
    converge->probed = json_new_object();
    converge->answered = json_new_object();
    converge->raised = json_new_object();
    converge->refused_claims = json_new_object();
    return converge;
}

void converge_free(struct converge *converge)
{
    if (!converge)
        return;
    char *const texts[] = {
        converge->namespace,    converge->name,          converge->field_manager, converge->proven_uid,
        converge->proof_uid,    converge->proof_version, converge->probe_words,   converge->first_claim,
        converge->first_class,  converge->made_of,       converge->sizes,         converge->account,
        converge->why,          converge->phrase,        converge->ask_name,      converge->told,
        converge->wanted_sizes, converge->forestalled,   converge->asks_about};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free(texts[i]);
    cJSON *const trees[] = {converge->desired,  converge->manifest,      converge->probed,
                            converge->answered, converge->picture,       converge->body,
                            converge->raised,   converge->refused_claims};
    for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
        json_delete(trees[i]);
    if (converge->is_decided)
        volume_decision_done(&converge->decision);
    free(converge);
}

bool converge_has_written(const struct converge *converge)
{
    return converge->has_written;
}

const struct volume_decision *converge_decision(const struct converge *converge)
{
    return converge->is_decided ? &converge->decision : NULL;
}

const char *converge_asks_about(const struct converge *converge)
{
    return converge->asks_about;
}

/* --- saying --------------------------------------------------------------------------------------------- */

static void say(struct converge *converge, char *phrase)
{
    free(converge->phrase);
    converge->phrase = phrase;
}

void converge_wait(struct converge *converge, int64_t wait_us, char *phrase)
{
    converge_go(converge, CONVERGE_LOOK);
    converge->wait_us = wait_us;
    say(converge, phrase);
}

void converge_end(struct converge *converge, enum error_code code, char *phrase)
{
    converge_go(converge, CONVERGE_END);
    converge->code = code;
    say(converge, phrase);
}

void converge_end_after_drop(struct converge *converge, enum error_code code, char *why)
{
    free(converge->why);
    converge->why = why;
    converge->code = code;
    converge_wait(converge, 0, NULL);
}

void converge_note(struct converge *converge, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *line = xvasprintf(format, args);
    va_end(args);
    /* What is decided anew, or for a second round, is said once. */
    if (converge->told && strstr(converge->told, line))
        return;
    char *all = converge->told ? xasprintf("%s; %s", converge->told, line) : xstrdup(line);
    free(converge->told);
    converge->told = all;
}

/* --- looking -------------------------------------------------------------------------------------------- */

static void decide(struct converge *converge, const cJSON *declared)
{
    const struct converge_look *look = converge->look;
    struct volume_input input = {.desired = declared,
                                 .live = look->set,
                                 .claims = look->claims,
                                 .others = look->sets,
                                 .pods = look->pods,
                                 .classes = look->classes};
    if (converge->is_decided)
        volume_decision_done(&converge->decision);
    volume_decide(&input, &converge->decision);
    converge->is_decided = true;
}

const struct volume_decision *converge_decide(struct converge *converge, const cJSON *declared)
{
    decide(converge, declared);
    return &converge->decision;
}

/* The delete was not taken, or not sent: nothing is decided beside what is kept. It may also be under way, by
 * whoever kept it: then the set would be gone, and nothing left to make it from. Moved from the version that
 * the delete names, the set cannot be deleted by it any more. */
static void choose_never_went(struct converge *converge)
{
    const char *uid = kube_object_uid(converge->kept);
    bool is_forestalled = (uid && str_equal(converge->forestalled, uid)) || PLANT("kept-is-dropped-at-once");
    converge->is_complete = false; /* the mark that this leaves on the set is to be taken off, too */
    converge->object = is_forestalled ? converge->kept : converge->look->set;
    converge_go(converge, is_forestalled ? CONVERGE_DROP : CONVERGE_FORESTALL);
}

void converge_choose(struct converge *converge)
{
    const struct converge_look *look = converge->look;
    const cJSON *kept = keep_find_growing(look->revisions, NULL, converge->name, look->set);
    if (kept && keep_is_of(kept, look->set) && converge->options.plans_only)
        kept = NULL; /* a plan drops nothing */
    converge->kept = kept;
    if (look->set && kube_object_is_deleting(look->set)) {
        choose_leaving(converge);
    } else if (!look->set) {
        choose_gap(converge);
    } else if (kept && keep_is_of(kept, look->set)) {
        choose_never_went(converge);
    } else if (converge->why) {
        converge_end(converge, converge->code, STEAL(converge->why));
    } else if (kept) {
        choose_after(converge);
    } else {
        choose_before(converge);
    }
}

void converge_take_look(struct converge *converge, const struct converge_look *look)
{
    PRE(converge->stage == CONVERGE_LOOK);
    converge->look = look;
    free(STEAL(converge->asks_about)); /* the look may tell that it got on */
    converge_choose(converge);
}

/* --- steps ---------------------------------------------------------------------------------------------- */

struct step_request *converge_step(const struct converge *converge, enum step_kind kind,
                                   enum kube_resource resource, const char *name, const cJSON *object,
                                   char *reason)
{
    const struct converge_options *options = &converge->options;
    struct step_request *request = step_request_make(kind, resource, converge->namespace, name);
    request->uid = xstrdup_or_null(object ? kube_object_uid(object) : NULL);
    request->version = xstrdup_or_null(object ? kube_object_version(object) : NULL);
    request->fingerprint = xstrdup(stages[converge->stage].text);
    request->reason = reason;
    request->operation_kind = xstrdup(CONVERGE_OPERATION);
    request->operation_resource = KUBE_STATEFULSET;
    request->operation_namespace = xstrdup(converge->namespace);
    request->operation_name = xstrdup(converge->name);
    request->come_from = xstrdup(converge->made_of ? converge->made_of : "");
    request->go_to =
        converge_goal_text(&(struct converge_goal){.sizes = converge->sizes,
                                                   .waits_for_file_system = options->waits_for_file_system,
                                                   .unready_will_do = options->unready_will_do,
                                                   .recovers = options->recovers});
    return request;
}

char *converge_permission_hint(const struct converge *converge, int http)
{
    static const char *const permissions[CONVERGE_STAGE_COUNT] = {
        [CONVERGE_PROVE_APPLY] = "patch statefulsets.apps",
        [CONVERGE_PROVE_SIZES] = "patch statefulsets.apps",
        [CONVERGE_PROVE_CREATE] = "create statefulsets.apps",
        [CONVERGE_PROVE_DELETE] = "delete statefulsets.apps",
        [CONVERGE_KEEP] = "create controllerrevisions.apps",
        [CONVERGE_DELETE] = "delete statefulsets.apps",
        [CONVERGE_NOTE] = "patch controllerrevisions.apps",
        [CONVERGE_RELEASE] = "patch pods",
        [CONVERGE_MAKE] = "create statefulsets.apps",
        [CONVERGE_SECOND] = "patch statefulsets.apps",
        [CONVERGE_MANAGERS] = "patch statefulsets.apps",
        [CONVERGE_DROP] = "delete controllerrevisions.apps",
    };
    const char *permission =
        converge->stage == CONVERGE_PROVE_RIGHTS ? right_permission(converge) : permissions[converge->stage];
    return http == 403 && permission
               ? xasprintf("; you need the permission: `kubectl auth can-i %s -n %s` tells", permission,
                           converge->namespace)
               : xstrdup("");
}

static void take_rejected(struct converge *converge, const struct converge_outcome *outcome)
{
    const char *words = outcome->summary ? outcome->summary : "";
    CLEANUP_FREE char *hint = NULL;
    switch (converge->stage) {
    case CONVERGE_GROW:
    case CONVERGE_CATCH_UP:
        claim_rejected(converge, outcome);
        return;
    case CONVERGE_DELETE:
        converge_end_after_drop(
            converge, ERROR_FAILED,
            xasprintf("the server does not delete StatefulSet %s: %s; its claims are grown, "
                      "it is as it was",
                      converge->name, words));
        return;
    default:
        hint = converge_permission_hint(converge, outcome->http);
        converge_end(
            converge, outcome->http == 403 ? ERROR_FORBIDDEN : ERROR_FAILED,
            xasprintf("StatefulSet %s: the server refuses (\"%s\"): %s%s; nothing is lost: when that is "
                      "mended, `neosetctl continue -n %s` goes on",
                      converge->name, stages[converge->stage].text, words, hint, converge->namespace));
    }
}

static void take_applied(struct converge *converge, int64_t boot_us)
{
    converge->has_written = true;
    converge->later = 0;
    switch (converge->stage) {
    case CONVERGE_GROW:
        claim_grown(converge);
        return;
    case CONVERGE_KEEP:
        if (quiet_is_outdated(converge->look->pods_boot_us, boot_us, &converge->outdated))
            break;
        converge_go(converge, CONVERGE_DELETE);
        return;
    case CONVERGE_FORESTALL:
        str_replace(&converge->forestalled, kube_object_uid(converge->kept));
        break;
    case CONVERGE_DELETE:
        converge->went = true;
        break;
    case CONVERGE_MAKE:
        converge->was_made = true;
        break;
    case CONVERGE_CATCH_UP:
        caught_up(converge);
        break;
    case CONVERGE_DROP:
        if (converge->is_complete) {
            choose_done(converge);
            return;
        }
        break;
    default:
        break;
    }
    converge_wait(converge, 0, NULL);
}

static void take_unclear(struct converge *converge)
{
    bool counts = converge->stage == CONVERGE_DELETE || converge->stage == CONVERGE_FORESTALL;
    if (!counts || ++converge->conflicts < CONFLICTS_MAX) {
        converge_wait(converge, 0, NULL);
        return;
    }
    char *why = xasprintf("StatefulSet %s keeps changing: it was looked at anew %d times; who writes to it?",
                          converge->name, CONFLICTS_MAX);
    if (converge->stage == CONVERGE_DELETE)
        converge_end_after_drop(converge, ERROR_FAILED, why);
    else
        converge_end(converge, ERROR_FAILED, why);
}

static void take_not_sent(struct converge *converge, const struct converge_outcome *outcome)
{
    if (++converge->later < LATER_MAX)
        converge_wait(converge, LATER_US, xstrdup("the server cannot be reached"));
    else
        converge_end(converge, ERROR_UNREACHABLE,
                     xasprintf("StatefulSet %s: nothing leaves: %s", converge->name,
                               outcome->summary ? outcome->summary : "the server cannot be reached"));
}

void converge_look_again(struct converge *converge)
{
    converge_wait(converge, 0, NULL);
}

void converge_take_outcome(struct converge *converge, const struct converge_outcome *outcome)
{
    switch (outcome->kind) {
    case JOURNAL_APPLIED:
        take_applied(converge, outcome->boot_us);
        break;
    case JOURNAL_REJECTED:
        take_rejected(converge, outcome);
        break;
    case JOURNAL_NOT_SENT:
        take_not_sent(converge, outcome);
        break;
    default:
        take_unclear(converge);
    }
}

/* --- questions ------------------------------------------------------------------------------------------ */

void converge_ask(struct converge *converge, struct exempt_request *ret, const char *method, const char *name,
                  const char *content_type, cJSON *body)
{
    json_delete(converge->body);
    converge->body = body;
    str_replace(&converge->ask_name, name);
    *ret = (struct exempt_request){.kind = EXEMPT_DRY_RUN,
                                   .method = method,
                                   .resource = KUBE_STATEFULSET,
                                   .namespace = converge->namespace,
                                   .name = converge->ask_name,
                                   .content_type = content_type,
                                   .body = converge->body};
}

/* --- answers -------------------------------------------------------------------------------------------- */

/* The same question again after a while, but not for ever. */
void converge_ask_later(struct converge *converge, const struct kube_answer *answer)
{
    if (++converge->later < LATER_MAX)
        converge_wait(converge, MAX(LATER_US, MIN(answer->retry_after_us, KUBE_ASKED_MAX_US)),
                      xasprintf("the server cannot say now: %s", answer->summary));
    else
        converge_end(
            converge, answer->code != ERROR_NONE ? answer->code : ERROR_FAILED,
            xasprintf("StatefulSet %s: a dry run gets no answer: %s", converge->name, answer->summary));
}

void converge_take_answer(struct converge *converge, const struct kube_answer *answer, int64_t boot_us)
{
    if (converge->stage == CONVERGE_PROBE)
        take_probe(converge, answer);
    else
        take_proof(converge, answer, boot_us);
}

/* --- turns ---------------------------------------------------------------------------------------------- */

void converge_next(struct converge *converge, struct converge_turn *ret)
{
    *ret = (struct converge_turn){.stage = converge->stage};
    switch (converge->stage) {
    case CONVERGE_LOOK:
        ret->next = CONVERGE_NEXT_LOOK;
        ret->wait_us = converge->wait_us;
        ret->phrase = converge->phrase;
        return;
    case CONVERGE_END:
        ret->next = CONVERGE_NEXT_END;
        ret->code = converge->code;
        ret->phrase = converge->phrase;
        return;
    case CONVERGE_PROVE_APPLY:
    case CONVERGE_PROVE_CREATE:
    case CONVERGE_PROVE_DELETE:
    case CONVERGE_PROVE_RIGHTS:
    case CONVERGE_PROVE_SIZES:
        ret->next = CONVERGE_NEXT_ASK;
        ask_proof(converge, &ret->ask);
        return;
    case CONVERGE_PROBE:
        ret->next = CONVERGE_NEXT_ASK;
        ask_probe(converge, &ret->ask);
        return;
    case CONVERGE_GROW:
    case CONVERGE_KEEP:
    case CONVERGE_DELETE:
        ret->next = CONVERGE_NEXT_STEP;
        ret->step = step_before(converge);
        return;
    default:
        ret->next = CONVERGE_NEXT_STEP;
        ret->step = step_after(converge);
    }
}
