/* SPDX-License-Identifier: Apache-2.0 */
#include "control/lease.h"

#include "base/time_text.h"
#include "control/answer.h"
#include "control/step.h"
#include "kube/manifest.h"

#define LEASE_US (30 * US_PER_S)
#define RENEW_DEADLINE_US (15 * US_PER_S)
#define RENEW_EVERY_US (5 * US_PER_S)
/* The first one is early: it publishes the journal's head, which the taking could not have. */
#define FIRST_RENEWAL_US (100 * US_PER_MS)
#define RETRY_US (2 * US_PER_S)
#define REQUEST_TIMEOUT_US (5 * US_PER_S)
#define GIVE_BACK_TIMEOUT_US (3 * US_PER_S)

/*   LOOKING --free, over, or our dead predecessor's--> TAKING --2xx--> HOLDING --renewed every 5 s--+
 *      ^  ^                                               |              |   ^-----------------------+
 *      |  +----------------- anything else ---------------+              |
 *      +---------- another holder, or 15 s without a renewal ------------+
 *   LET_GO: on purpose, until lease_resume(). GIVING_BACK: the end. */
enum lease_state { LOOKING, TAKING, HOLDING, LET_GO, GIVING_BACK };

struct lease {
    struct lease_options options;
    enum lease_state state;
    char *identity;
    struct env_timer *timer; /* the next look or renewal */
    struct env_timer *deadline;
    struct kube_call *reading;
    bool writing;
    int64_t asked_boot_us;   /* when the write under way was handed over */
    int64_t renewed_boot_us; /* when the newest accepted renewal was handed over */

    /* The Lease as it was read or answered last. */
    char *version;
    char *uid;
    char *holder;
    int64_t transitions;
    int64_t length_us;
    char *head;
    int64_t seen_boot_us; /* since when it did not change */
    int64_t taking_epoch;

    env_callback *given_back;
    void *given_back_context;
};

static void look(void *context);
static void renew(void *context);
static bool leave_after_write(struct lease *lease, const struct kube_answer *answer);

static int64_t now_us(const struct lease *lease)
{
    return env_boot_us(lease->options.env);
}

static void report(const struct lease *lease, bool is_trouble, const char *sentence)
{
    if (lease->options.report)
        lease->options.report(lease->options.context, is_trouble, sentence);
}

static void schedule(struct lease *lease, int64_t delay_us, env_callback *what)
{
    env_timer_cancel(lease->options.env, &lease->timer);
    lease->timer = env_timer_start(lease->options.env, delay_us, what, lease);
}

/* A little later each time, not in step with the others. */
static int64_t jittered_us(const struct lease *lease, int64_t delay_us)
{
    uint8_t noise = 0;
    env_random(lease->options.env, &noise, 1);
    return delay_us + delay_us * noise / 1024;
}

/* --- what the Lease says -------------------------------------------------------------------------------- */

static void take_object(struct lease *lease, const cJSON *object)
{
    const char *version = json_path_str(object, "metadata", "resourceVersion", NULL);
    const cJSON *spec = json_get(object, "spec");
    if (!str_equal(version, lease->version))
        lease->seen_boot_us = now_us(lease);
    str_replace(&lease->version, version);
    str_replace(&lease->uid, json_path_str(object, "metadata", "uid", NULL));
    const char *holder = json_str(spec, "holderIdentity");
    str_replace(&lease->holder, holder ? holder : "");
    str_replace(&lease->head, json_path_str(object, "metadata", "annotations", LEASE_HEAD_ANNOTATION, NULL));
    lease->transitions = MAX(0, json_int64_or(spec, "leaseTransitions", 0));
    int64_t length_s = json_int64_or(spec, "leaseDurationSeconds", LEASE_US / US_PER_S);
    lease->length_us = MIN(MAX(length_s, 1), 3600) * US_PER_S;
}

/* "<name>_<nonce>" of the run before this one on the very file that we hold the lock of: that process is
 * dead. */
static bool holder_is_our_dead_run(const struct lease *lease)
{
    const char *nonce = journal_previous_nonce(lease->options.journal);
    CLEANUP_FREE char *suffix = nonce ? xasprintf("_%s", nonce) : NULL;
    return suffix && str_ends_with(lease->holder, suffix);
}

static bool may_take(const struct lease *lease)
{
    return !*lease->holder || strcmp(lease->holder, lease->identity) == 0 || holder_is_our_dead_run(lease) ||
           now_us(lease) - lease->seen_boot_us >= lease->length_us;
}

/* --- writing -------------------------------------------------------------------------------------------- */

static void lose(struct lease *lease, enum lease_state next, const char *why)
{
    bool held = lease->state == HOLDING;
    lease->state = next;
    env_timer_cancel(lease->options.env, &lease->deadline);
    if (held)
        lease->options.lost(lease->options.context, why);
}

static void deadline_passed(void *context)
{
    struct lease *lease = context;
    lease->deadline = NULL;
    lose(lease, LOOKING, "the lease could not be renewed in time");
    if (!lease->writing && !lease->reading)
        schedule(lease, 0, look);
}

static void hold(struct lease *lease)
{
    lease->renewed_boot_us = lease->asked_boot_us;
    struct env *env = lease->options.env;
    env_timer_cancel(env, &lease->deadline);
    lease->deadline = env_timer_start(env, MAX(0, lease->renewed_boot_us + RENEW_DEADLINE_US - now_us(lease)),
                                      deadline_passed, lease);
    schedule(lease, RENEW_EVERY_US, renew);
}

/* The epoch is in the journal before anything that carries it. */
static void gain(struct lease *lease, enum journal_head_verdict head)
{
    struct journal *journal = lease->options.journal;
    lease->state = HOLDING;
    hold(lease);
    schedule(lease, FIRST_RENEWAL_US, renew);
    journal_set_epoch(journal, lease->taking_epoch);
    journal_append(journal, &(struct journal_entry){.kind = JOURNAL_EPOCH, .reason = lease->identity});
    journal_commit(journal);
    lease->options.gained(lease->options.context, head);
}

/* A 409 is somebody else's turn; the network speaks up when the Lease is read. */
static void take_refusal(struct lease *lease, const struct kube_answer *answer)
{
    bool by_proxy = answer->outcome == KUBE_NO_ANSWER && answer->http != 0;
    if (by_proxy || (answer->outcome == KUBE_REFUSED && answer->http != 409)) {
        CLEANUP_FREE char *what =
            xasprintf("cannot write the lease %s/%s", lease->options.namespace, lease->options.name);
        CLEANUP_FREE char *sentence = kube_answer_sentence(answer, what);
        report(lease, true, sentence);
    }
}

static void taken(void *context, const struct kube_answer *answer)
{
    struct lease *lease = context;
    lease->writing = false;
    if (leave_after_write(lease, answer))
        return;
    if (lease->state != TAKING) {
        /* Let go and resumed meanwhile: who holds it now is to be read. */
        schedule(lease, 0, look);
        return;
    }
    if (answer->outcome == KUBE_OK && cJSON_IsObject(answer->body)) {
        enum journal_head_verdict head =
            lease->head ? journal_check_head(lease->options.journal, lease->head) : JOURNAL_HEAD_GOES_ON;
        take_object(lease, answer->body);
        gain(lease, head);
        return;
    }
    lease->state = LOOKING;
    take_refusal(lease, answer);
    schedule(lease, answer->http == 409 ? 0 : jittered_us(lease, RETRY_US), look);
}

static void renewed(void *context, const struct kube_answer *answer)
{
    struct lease *lease = context;
    lease->writing = false;
    if (leave_after_write(lease, answer))
        return;
    if (answer->outcome == KUBE_OK && cJSON_IsObject(answer->body)) {
        take_object(lease, answer->body);
        if (lease->state == HOLDING) {
            hold(lease);
            return;
        }
    }
    /* Somebody changed it, or the server does not answer: look who holds it. */
    take_refusal(lease, answer);
    schedule(lease, answer->http == 409 || answer->http == 404 ? 0 : jittered_us(lease, RETRY_US), look);
}

/* spec and annotation as we want them; guarded by what was read when it exists. The caller's. */
static cJSON *lease_body(const struct lease *lease, bool takes)
{
    char now_text[TIME_TEXT_SIZE];
    time_format_micros(env_wall_us(lease->options.env), now_text);
    const struct lease_options *options = &lease->options;
    cJSON *body =
        lease->version ? json_new_object() : kube_manifest(KUBE_LEASE, options->namespace, options->name);
    cJSON *metadata = json_ensure_object(body, "metadata");
    if (lease->version) {
        json_add_str(metadata, "uid", lease->uid ? lease->uid : "");
        json_add_str(metadata, "resourceVersion", lease->version);
    }
    if (!takes) {
        CLEANUP_FREE char *head = journal_head_text(lease->options.journal);
        json_add_str(json_add_object(metadata, "annotations"), LEASE_HEAD_ANNOTATION, head);
    }
    cJSON *spec = json_add_object(body, "spec");
    json_add_str(spec, "holderIdentity", lease->identity);
    json_add_int64(spec, "leaseDurationSeconds", LEASE_US / US_PER_S);
    json_add_str(spec, "renewTime", now_text);
    if (takes) {
        json_add_str(spec, "acquireTime", now_text);
        json_add_int64(spec, "leaseTransitions", lease->taking_epoch);
    }
    return body;
}

static void write_lease(struct lease *lease, const cJSON *body, int64_t timeout_us, kube_done *done)
{
    lease->writing = true;
    lease->asked_boot_us = now_us(lease);
    bool exists = lease->version != NULL;
    exempt_write(lease->options.exempt,
                 &(struct exempt_request){.kind = EXEMPT_LEASE,
                                          .method = exists ? "PATCH" : "POST",
                                          .resource = KUBE_LEASE,
                                          .namespace = lease->options.namespace,
                                          .name = exists ? lease->options.name : NULL,
                                          .content_type = exists ? KUBE_MERGE : KUBE_JSON,
                                          .body = body,
                                          .timeout_us = timeout_us},
                 done, lease);
}

static void take(struct lease *lease)
{
    lease->state = TAKING;
    lease->taking_epoch =
        MAX(journal_epoch(lease->options.journal), lease->version ? lease->transitions : 0) + 1;
    CLEANUP_JSON cJSON *body = lease_body(lease, true);
    write_lease(lease, body, REQUEST_TIMEOUT_US, taken);
}

static void renew(void *context)
{
    struct lease *lease = context;
    lease->timer = NULL;
    if (lease->state != HOLDING || lease->writing)
        return;
    CLEANUP_JSON cJSON *body = lease_body(lease, false);
    write_lease(lease, body, REQUEST_TIMEOUT_US, renewed);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static void report_holder(const struct lease *lease)
{
    CLEANUP_FREE char *sentence = xasprintf("waiting: the lease %s/%s is held by %s",
                                            lease->options.namespace, lease->options.name, lease->holder);
    report(lease, false, sentence);
}

static void take_reading(struct lease *lease)
{
    bool ours = lease->version && strcmp(lease->holder, lease->identity) == 0;
    if (lease->state == HOLDING && ours) {
        schedule(lease, 0, renew);
        return;
    }
    if (lease->state == HOLDING) {
        lose(lease, LOOKING, lease->version ? "another holder took the lease" : "the lease was deleted");
    }
    if (!lease->version || may_take(lease)) {
        take(lease);
        return;
    }
    report_holder(lease);
    int64_t over_us = lease->seen_boot_us + lease->length_us - now_us(lease);
    schedule(lease, MIN(MAX(over_us, 0), jittered_us(lease, RENEW_EVERY_US)), look);
}

static void read_done(void *context, const struct kube_answer *answer)
{
    struct lease *lease = context;
    lease->reading = NULL;
    if (lease->state != LOOKING && lease->state != HOLDING)
        return;
    struct answer_target target = {
        .resource = KUBE_LEASE, .namespace = lease->options.namespace, .name = lease->options.name};
    if (answer->outcome == KUBE_OK && answer_is_target(answer->body, &target)) {
        take_object(lease, answer->body);
        take_reading(lease);
    } else if (answer->http == 404 && str_equal(answer->reason, "NotFound")) {
        str_replace(&lease->version, NULL);
        str_replace(&lease->uid, NULL);
        str_replace(&lease->holder, "");
        str_replace(&lease->head, NULL);
        take_reading(lease);
    } else {
        CLEANUP_FREE char *what =
            xasprintf("cannot read the lease %s/%s", lease->options.namespace, lease->options.name);
        CLEANUP_FREE char *foreign =
            answer->outcome == KUBE_OK ? answer_foreign_sentence(answer, &target) : NULL;
        CLEANUP_FREE char *sentence =
            foreign ? xasprintf("%s: %s", what, foreign) : kube_answer_sentence(answer, what);
        report(lease, true, sentence);
        schedule(lease, jittered_us(lease, RETRY_US), look);
    }
}

static void look(void *context)
{
    struct lease *lease = context;
    lease->timer = NULL;
    if ((lease->state != LOOKING && lease->state != HOLDING) || lease->reading || lease->writing)
        return;
    CLEANUP_FREE char *path = kube_path(KUBE_LEASE, lease->options.namespace, lease->options.name, NULL);
    lease->reading = kube_get(lease->options.client, path, REQUEST_TIMEOUT_US, read_done, lease);
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct lease *lease_start(const struct lease_options *options)
{
    PRE(options->gained && options->lost && options->namespace && options->name && options->identity);
    struct lease *lease = xcalloc(1, sizeof(*lease));
    lease->options = *options;
    lease->identity = xasprintf("%s_%s", options->identity, journal_nonce(options->journal));
    lease->holder = xstrdup("");
    schedule(lease, 0, look);
    return lease;
}

void lease_free(struct lease *lease)
{
    if (!lease)
        return;
    env_timer_cancel(lease->options.env, &lease->timer);
    env_timer_cancel(lease->options.env, &lease->deadline);
    if (lease->reading)
        kube_call_cancel(lease->options.client, &lease->reading);
    free(lease->identity);
    free(lease->version);
    free(lease->uid);
    free(lease->holder);
    free(lease->head);
    free(lease);
}

bool lease_is_ours(const struct lease *lease)
{
    return lease->state == HOLDING && now_us(lease) < lease->renewed_boot_us + RENEW_DEADLINE_US;
}

int64_t lease_left_us(const struct lease *lease)
{
    return lease_is_ours(lease) ? lease->renewed_boot_us + LEASE_US - now_us(lease) : 0;
}

/* An empty holder: whoever waits may take it at once. */
static cJSON *release_body(const struct lease *lease)
{
    cJSON *body = json_new_object();
    cJSON *metadata = json_add_object(body, "metadata");
    json_add_str(metadata, "uid", lease->uid ? lease->uid : "");
    json_add_str(metadata, "resourceVersion", lease->version);
    CLEANUP_FREE char *head = journal_head_text(lease->options.journal);
    json_add_str(json_add_object(metadata, "annotations"), LEASE_HEAD_ANNOTATION, head);
    json_add_str(json_add_object(body, "spec"), "holderIdentity", "");
    return body;
}

static void tell_given_back(void *context)
{
    struct lease *lease = context;
    lease->deadline = NULL;
    env_callback *given_back = STEAL(lease->given_back);
    if (given_back)
        given_back(lease->given_back_context);
}

static void released(void *context, const struct kube_answer *answer)
{
    struct lease *lease = context;
    lease->writing = false;
    if (answer->outcome == KUBE_OK && cJSON_IsObject(answer->body))
        take_object(lease, answer->body);
    if (lease->state == LOOKING)
        schedule(lease, 0, look); /* resumed meanwhile */
    if (lease->state != GIVING_BACK)
        return;
    env_timer_cancel(lease->options.env, &lease->deadline);
    tell_given_back(lease);
}

static void release(struct lease *lease)
{
    CLEANUP_JSON cJSON *body = release_body(lease);
    write_lease(lease, body, GIVE_BACK_TIMEOUT_US, released);
}

/* A renewal or the taking was under way when we were told to leave: now it can be released. */
static bool leave_after_write(struct lease *lease, const struct kube_answer *answer)
{
    if (lease->state != LET_GO && lease->state != GIVING_BACK)
        return false;
    if (answer->outcome == KUBE_OK && cJSON_IsObject(answer->body)) {
        take_object(lease, answer->body);
        release(lease);
    }
    return true;
}

void lease_let_go(struct lease *lease, const char *why)
{
    if (lease->state == LET_GO || lease->state == GIVING_BACK)
        return;
    bool held = lease->state == HOLDING;
    lose(lease, LET_GO, why);
    env_timer_cancel(lease->options.env, &lease->timer);
    if (held && !lease->writing)
        release(lease);
}

void lease_resume(struct lease *lease)
{
    if (lease->state != LET_GO)
        return;
    lease->state = LOOKING;
    schedule(lease, lease->writing ? RETRY_US : 0, look);
}

void lease_give_back(struct lease *lease, env_callback *done, void *context)
{
    PRE(lease->state != GIVING_BACK);
    bool held = lease->state == HOLDING;
    struct env *env = lease->options.env;
    lease->state = GIVING_BACK;
    lease->given_back = done;
    lease->given_back_context = context;
    env_timer_cancel(env, &lease->timer);
    env_timer_cancel(env, &lease->deadline);
    bool waits = held || lease->writing;
    lease->deadline = env_timer_start(env, waits ? GIVE_BACK_TIMEOUT_US : 0, tell_given_back, lease);
    if (held && !lease->writing)
        release(lease);
}
