/* SPDX-License-Identifier: Apache-2.0 */
#include "control/gateway_parts.h"

static int64_t horizon_of(const struct flight *flight, int64_t left_boot_us)
{
    return MAX(left_boot_us, flight->recovered ? flight->gateway->made_boot_us : 0) + HORIZON_US;
}

int64_t flight_horizon_boot_us(const struct flight *flight)
{
    return horizon_of(flight, flight->left_boot_us);
}

/* --- verdicts ------------------------------------------------------------------------------------------- */

static void reread(void *context)
{
    struct flight *flight = context;
    flight->timer = NULL;
    if (env_boot_us(flight->gateway->options.env) - flight->open_since_boot_us >= PARK_AFTER_US)
        flight_park(flight);
    flight_read(flight, 0);
}

void flight_set_open(struct flight *flight)
{
    struct gateway *gateway = flight->gateway;
    struct env *env = gateway->options.env;
    if (!flight->open_since_boot_us)
        flight->open_since_boot_us = env_boot_us(env);
    flight->state = FLIGHT_OPEN;
    gateway_note_decided(gateway, flight);
    if (flight->kind == STEP_BLOCK && flight->body && gateway_has_room(gateway)) {
        flight_send_again(flight);
        return;
    }
    env_timer_cancel(env, &flight->timer);
    flight->timer = env_timer_start(env, REREAD_US, reread, flight);
    flight_wake_operation(flight);
}

/* A verdict that closes: the outcome of the same name. */
static enum journal_kind kind_of_verdict(enum step_verdict verdict)
{
    switch (verdict) {
    case STEP_APPLIED:
        return JOURNAL_APPLIED;
    case STEP_OVERTAKEN:
        return JOURNAL_OVERTAKEN;
    case STEP_REJECTED:
        return JOURNAL_REJECTED;
    case STEP_ABSENT:
        return JOURNAL_ABSENT;
    case STEP_OPEN:
        break;
    }
    UNREACHABLE();
}

/* A person's word: annotation apps.neo.io/settle = "KEY=applied|absent; why". True: it settles this step. */
static bool settled_by_person(const struct flight *flight, const cJSON *object, enum step_verdict *ret,
                              char **ret_reason)
{
    const char *text = json_path_str(object, "metadata", "annotations", STEP_SETTLE_ANNOTATION, NULL);
    size_t length = strlen(flight->key);
    if (!text || strncmp(text, flight->key, length) != 0 || text[length] != '=')
        return false;
    const char *verdict = text + length + 1;
    if (str_starts_with(verdict, "applied"))
        *ret = STEP_APPLIED;
    else if (str_starts_with(verdict, "absent"))
        *ret = STEP_ABSENT;
    else
        return false;
    const char *why = strchr(verdict, ';');
    while (why && (*why == ';' || *why == ' '))
        why++;
    *ret_reason = xasprintf("settled by a person%s%.200s", why && *why ? ": " : "", why ? why : "");
    return true;
}

static enum step_verdict resolve(const struct flight *flight, const cJSON *object)
{
    CLEANUP_JSON cJSON *sent = NULL;
    if (flight->body)
        (void)json_parse(flight->body, strlen(flight->body), &sent, NULL);
    struct step_doubt doubt = {
        .kind = flight->kind,
        .key = flight->key,
        .uid = flight->uid,
        .version = flight->version,
        .sent = sent,
        .owner = flight->owner,
        .horizon_passed = flight->read_boot_us >= flight_horizon_boot_us(flight),
    };
    return step_kind_info(flight->kind)->resolve(&doubt, object);
}

static const char *verdict_reason(const struct flight *flight, enum step_verdict verdict, const cJSON *object)
{
    if (verdict == STEP_APPLIED)
        return NULL;
    if (flight->last_summary && *flight->last_summary)
        return flight->last_summary;
    if (verdict == STEP_OVERTAKEN)
        return object ? "as wanted, but not by this step, or another object" : "gone";
    return verdict == STEP_ABSENT ? "can never be applied any more" : NULL;
}

/* What a step needs has not moved: an orphaning delete under way is open and has moved its object. */
static bool is_unmoved(const struct flight *flight, const cJSON *object)
{
    if (!object)
        return flight->uid == NULL;
    return str_equal(json_path_str(object, "metadata", "resourceVersion", NULL), flight->version);
}

/* The step is open. A reading that was begun after the horizon of the attempts that nobody answered, and that
 * shows what the step needs unmoved, says that they were not applied and never will be: what was answered to
 * the others counts again. */
static void end_old_doubt(struct flight *flight, const cJSON *object)
{
    if (flight->unanswered && is_unmoved(flight, object) &&
        flight->read_boot_us >= horizon_of(flight, flight->unanswered_boot_us))
        flight->unanswered = false;
}

static void take_verdict(struct flight *flight, const cJSON *object)
{
    enum step_verdict verdict = resolve(flight, object);
    CLEANUP_FREE char *settled = NULL;
    enum step_verdict word;
    /* The word itself moved the version, so that what was open looks as if it could never be any more. */
    bool may_settle = verdict == STEP_OPEN || verdict == STEP_ABSENT;
    if (may_settle && settled_by_person(flight, object, &word, &settled))
        verdict = word;
    if (verdict == STEP_OPEN)
        end_old_doubt(flight, object);
    if (verdict == STEP_OPEN && flight->refused && !flight->unanswered) {
        flight_close(flight, JOURNAL_REJECTED, flight->last_http, NULL, flight->last_summary);
        return;
    }
    if (verdict == STEP_OPEN) {
        /* Whoever is woken by it may give the step up in the same breath: that waits for a reading of its
         * own. */
        bool block_wanted = flight->block_wanted;
        flight_set_open(flight);
        if (block_wanted)
            flight_give_up(flight);
        return;
    }
    flight_close(flight, kind_of_verdict(verdict), 0, object,
                 settled ? settled : verdict_reason(flight, verdict, object));
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* The API server itself says that the object is not there: not a proxy, and not a missing definition. */
static bool says_not_found(const struct kube_answer *answer)
{
    return answer->http == 404 && str_equal(json_str(answer->body, "kind"), "Status") &&
           str_equal(answer->reason, "NotFound");
}

static void read_done(void *context, const struct kube_answer *answer)
{
    struct flight *flight = context;
    flight->call = NULL;
    ENSURE(flight->state == FLIGHT_READING);
    struct answer_target target = flight_target(flight);
    bool found = answer->outcome == KUBE_OK && answer_is_target(answer->body, &target);
    if (found || says_not_found(answer)) {
        flight->reads_failed = 0;
        take_verdict(flight, found ? answer->body : NULL);
        return;
    }
    flight->reads_failed++;
    if (flight->reads_failed >= PARK_AFTER_READS) {
        flight_park(flight);
        gateway_note_decided(flight->gateway, flight);
    }
    flight_read(flight, kube_backoff_us(flight->gateway->options.env, flight->reads_failed - 1,
                                        answer->retry_after_us));
}

static void read_now(void *context)
{
    struct flight *flight = context;
    struct kube_client *client = flight->gateway->options.client;
    flight->timer = NULL;
    flight->state = FLIGHT_READING;
    flight->read_boot_us = env_boot_us(flight->gateway->options.env);
    CLEANUP_FREE char *path = kube_path(flight->resource, flight->namespace, flight->name, NULL);
    flight->call = kube_get(client, path, READ_TIMEOUT_US, read_done, flight);
}

void flight_read(struct flight *flight, int64_t delay_us)
{
    struct env *env = flight->gateway->options.env;
    env_timer_cancel(env, &flight->timer);
    PRE(flight->call == NULL);
    flight->state = FLIGHT_PAUSE;
    if (delay_us == 0)
        read_now(flight);
    else
        flight->timer = env_timer_start(env, delay_us, read_now, flight);
}
