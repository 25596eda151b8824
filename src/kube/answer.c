/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/answer.h"

#include "base/time_text.h"
#include "base/utf8.h"
#include "kube/object.h"

#include <ctype.h>
#include <stdio.h>

enum { LINE_SIZE = 513 };

/* What a status code means when the Status does not say more. Reasons are the API's (metav1.StatusReason). */
static enum error_code code_of_status(int http, const char *reason)
{
    if (http == 409)
        return strcmp(reason, "AlreadyExists") == 0 ? ERROR_EXISTS : ERROR_CONFLICT;
    switch (http) {
    case 400:
    case 422:
        return ERROR_INVALID;
    case 401:
        return ERROR_UNAUTHORIZED;
    case 403:
        return ERROR_FORBIDDEN;
    case 404:
        return ERROR_NOT_FOUND;
    case 405:
    case 406:
    case 415:
        return ERROR_UNSUPPORTED;
    case 408:
    case 504:
        return ERROR_TIMED_OUT;
    case 410:
        return ERROR_GONE;
    case 413:
        return ERROR_TOO_LARGE;
    case 429:
        return ERROR_REFUSED;
    case 502:
    case 503:
        return ERROR_UNREACHABLE;
    default:
        return http < 400 ? ERROR_REFUSED : ERROR_FAILED;
    }
}

/* C1 controls (U+0080 to U+009F) are two bytes; terminals obey them too. */
static bool is_control(const unsigned char *at, size_t sequence)
{
    return (sequence == 1 && (at[0] < 0x20 || at[0] == 0x7F)) ||
           (sequence == 2 && at[0] == 0xC2 && at[1] < 0xA0);
}

void kube_first_line(const char *text, char *line, size_t size)
{
    PRE(text && size > 0);
    size_t end = strcspn(text, "\r\n");
    size_t length = 0;
    size_t sequence;
    for (size_t at = 0; at < end; at += MAX(sequence, 1)) {
        sequence = utf8_sequence_length(text + at, end - at);
        if (length + MAX(sequence, 1) > size - 1)
            break;
        if (sequence == 0 || is_control((const unsigned char *)text + at, sequence)) {
            line[length++] = sequence ? ' ' : '?';
        } else {
            memcpy(line + length, text + at, sequence);
            length += sequence;
        }
    }
    line[length] = '\0';
}

/* May the first line of the message be kept? Only where the server composes it of names, verbs and fields.
 * Texts of validation and of reading a manifest (422, 400, a 500 without a reason) echo values, in their
 * first line too: 'Pod "x" is invalid: spec.containers[0].env[0].value: Invalid value: "hunter2"'. */
static bool message_is_safe(const char *reason)
{
    static const char *const safe[] = {
        "NotFound",
        "AlreadyExists",
        "Conflict",
        "Forbidden",
        "Unauthorized",
        "Expired",
        "Gone",
        "TooManyRequests",
        "Timeout",
        "ServerTimeout",
        "ServiceUnavailable",
        "InternalError",
        "MethodNotAllowed",
        "NotAcceptable",
        "UnsupportedMediaType",
        "RequestEntityTooLarge",
    };
    for (size_t i = 0; i < ARRAY_SIZE(safe); i++)
        if (strcmp(reason, safe[i]) == 0)
            return true;
    return false;
}

static void add_causes(const struct kube_answer *answer, struct buf *summary)
{
    for (size_t i = 0; i < answer->cause_count; i++) {
        char field[LINE_SIZE];
        char reason[LINE_SIZE];
        kube_first_line(answer->causes[i].field, field, sizeof(field));
        kube_first_line(answer->causes[i].reason, reason, sizeof(reason));
        if (!*field && !*reason)
            continue;
        buf_addf(summary, "%s%s%s%s%s", i ? ", " : ": ", field, *field && *reason ? " (" : "", reason,
                 *field && *reason ? ")" : "");
    }
}

/* "409 Conflict: metadata.uid (FieldValueInvalid): first line", cut. */
static void summarise(struct kube_answer *answer)
{
    CLEANUP_BUF struct buf summary = BUF_INIT(64 * 1024);
    char line[LINE_SIZE];
    if (answer->http >= 300) {
        kube_first_line(answer->reason, line, sizeof(line));
        buf_addf(&summary, "%d%s%s", answer->http, *line ? " " : "", line);
        add_causes(answer, &summary);
        kube_first_line(answer->message, line, sizeof(line));
        if (message_is_safe(answer->reason) && *line)
            buf_addf(&summary, ": %s", line);
    } else if (answer->outcome != KUBE_OK) {
        kube_first_line(answer->message, line, sizeof(line));
        buf_addf(&summary, "%s: %s", answer->outcome == KUBE_NOT_SENT ? "not sent" : "no answer", line);
    } else {
        kube_first_line(answer->message, line, sizeof(line));
        buf_addf(&summary, "%d%s%s", answer->http, answer->body_cut ? ", but its body was cut: " : "", line);
    }
    kube_first_line(buf_text(&summary), answer->summary, sizeof(answer->summary));
}

static void take_causes(const cJSON *status, struct kube_answer *answer)
{
    const cJSON *cause;
    cJSON_ArrayForEach (cause, json_path(status, "details", "causes", NULL)) {
        if (answer->cause_count == KUBE_CAUSES_MAX)
            break;
        const char *reason = json_str(cause, "reason");
        const char *field = json_str(cause, "field");
        answer->causes[answer->cause_count++] = (struct kube_cause){.reason = xstrdup(reason ? reason : ""),
                                                                    .field = xstrdup(field ? field : "")};
    }
}

static bool is_status(const cJSON *tree)
{
    return str_equal(json_str(tree, "kind"), "Status");
}

/* Reason, message, causes and waiting time of a Status body. */
static void take_status(const cJSON *status, struct kube_answer *answer)
{
    const char *reason = json_str(status, "reason");
    const char *message = json_str(status, "message");
    answer->reason = reason ? reason : "";
    answer->message = message ? message : "";
    take_causes(status, answer);
    int64_t seconds = json_int64_or(json_get(status, "details"), "retryAfterSeconds", 0);
    if (answer->retry_after_us < 0 && seconds > 0)
        answer->retry_after_us = MIN(seconds, 86400) * US_PER_S;
}

/* --- who is no API server --- */

#define CHECK_SERVER "check `server` in the kubeconfig"

const char *kube_stranger_of_body(const char *bytes, size_t length)
{
    size_t at = 0;
    while (at < length && isspace((unsigned char)bytes[at]))
        at++;
    if (at == length || bytes[at] != '<')
        return NULL;
    return "the answer is a web page, not an API server's: the address is another service's, or a proxy or a "
           "login page stands in front of it; " CHECK_SERVER;
}

/* What servers answer to plain HTTP on their TLS port: Go's (kube-apiserver), nginx, Apache. */
static bool is_wrong_protocol(const struct http_answer *http)
{
    static const char *const words[] = {"HTTP request to an HTTPS server",
                                        "HTTP request was sent to HTTPS port",
                                        "plain HTTP to an SSL-enabled server port"};
    for (size_t i = 0; http->status == 400 && http->body && i < ARRAY_SIZE(words); i++)
        if (memmem(http->body, http->body_length, words[i], strlen(words[i])))
            return true;
    return false;
}

static const char *stranger_of_refusal(const struct http_answer *http)
{
    if (is_wrong_protocol(http))
        return "the server speaks TLS there: write https:// instead of http:// for `server` in the "
               "kubeconfig";
    if (http->status >= 300 && http->status < 400)
        return "that is a redirect, which API servers do not send and which is not followed: the address is "
               "another service's, or a proxy or a login page stands in front of it; " CHECK_SERVER;
    return http->body ? kube_stranger_of_body(http->body, http->body_length) : NULL;
}

static void start(struct kube_decoded *ret)
{
    *ret = (struct kube_decoded){
        .answer = {.reason = "", .message = "", .retry_after_us = -1},
    };
}

static void take_text(struct kube_decoded *ret, char *text)
{
    ret->text = text;
    ret->answer.message = text;
}

void kube_decode_none(enum kube_outcome outcome, enum error_code code, const char *sentence,
                      struct kube_decoded *ret)
{
    PRE(outcome == KUBE_NO_ANSWER || outcome == KUBE_NOT_SENT);
    start(ret);
    ret->answer.outcome = outcome;
    ret->answer.code = code == ERROR_NONE ? ERROR_FAILED : code;
    take_text(ret, xstrdup(sentence));
    summarise(&ret->answer);
}

/* The body of a 2xx that cannot be read. One that begins as an object is an API server's, damaged. */
static const char *stranger_of_success(const struct http_answer *http)
{
    const char *page = kube_stranger_of_body(http->body, http->body_length);
    if (page || (http->body_length > 0 && http->body[0] == '{'))
        return page;
    return "the answer is not JSON, so it is hardly an API server's; " CHECK_SERVER;
}

/* Who writes knows what it asked for; who reads may want all. */
static int parse_body(const struct http_answer *http, enum kube_decode_mode mode, cJSON **ret_tree,
                      struct error **problem)
{
    return mode == KUBE_DECODE_WRITE
               ? kube_object_parse_unmanaged(http->body, http->body_length, 1, ret_tree, problem)
               : kube_object_parse(http->body, http->body_length, ret_tree, problem);
}

static void decode_success(const struct http_answer *http, enum kube_decode_mode mode,
                           struct kube_decoded *ret)
{
    struct kube_answer *answer = &ret->answer;
    answer->outcome = KUBE_OK;
    answer->body_cut = !http->body_whole;
    if (http->body_whole && mode != KUBE_DECODE_STREAM) {
        CLEANUP_ERROR struct error *problem = NULL;
        if (parse_body(http, mode, &ret->tree, &problem) < 0) {
            answer->body_cut = true;
            answer->stranger = stranger_of_success(http);
            take_text(ret, xasprintf("the answer to be read is %s", error_text(problem)));
        }
        answer->body = ret->tree;
    } else if (!http->body_whole && (mode == KUBE_DECODE_WRITE || mode == KUBE_DECODE_ASK) && http->body) {
        answer->stranger = kube_stranger_of_body(http->body, http->body_length);
    }
    if (!answer->body_cut)
        return;
    answer->code = http->code == ERROR_NONE ? ERROR_CORRUPT : http->code;
    if (!ret->text)
        take_text(ret, xstrdup(http->problem ? http->problem : "the answer was cut"));
    if (mode == KUBE_DECODE_READ)
        answer->outcome = KUBE_NO_ANSWER;
}

static void decode_refusal(const struct http_answer *http, struct kube_decoded *ret)
{
    struct kube_answer *answer = &ret->answer;
    answer->outcome = KUBE_REFUSED;
    if (http->body_whole && http->body_length &&
        kube_object_parse(http->body, http->body_length, &ret->tree, NULL) == 0)
        answer->body = ret->tree;
    if (is_status(ret->tree)) {
        take_status(ret->tree, answer);
    } else if (http->body) {
        /* A proxy's page, or "404 page not found". */
        char line[LINE_SIZE];
        kube_first_line(http->body, line, sizeof(line));
        take_text(ret, xstrdup(line));
    }
    if (!is_status(ret->tree))
        answer->stranger = stranger_of_refusal(http);
    answer->code = code_of_status(http->status, answer->reason);
}

void kube_decode(const struct http_answer *http, enum kube_decode_mode mode, struct kube_decoded *ret)
{
    PRE(http && ret);
    if (http->outcome != HTTP_ANSWERED) {
        enum kube_outcome outcome = http->outcome == HTTP_NOT_SENT ? KUBE_NOT_SENT : KUBE_NO_ANSWER;
        kube_decode_none(outcome, http->code, http->problem ? http->problem : "no answer", ret);
        return;
    }
    start(ret);
    ret->answer.http = http->status;
    ret->answer.retry_after_us = http->retry_after_us;
    ret->answer.audit_id = http->audit_id;
    if (http->status >= 200 && http->status <= 299)
        decode_success(http, mode, ret);
    else
        decode_refusal(http, ret);
    summarise(&ret->answer);
}

void kube_decode_status(cJSON *status, struct kube_decoded *ret)
{
    start(ret);
    ret->tree = status;
    ret->answer.outcome = KUBE_REFUSED;
    ret->answer.body = status;
    take_status(status, &ret->answer);
    int64_t http = json_int64_or(status, "code", 500);
    ret->answer.http = http >= 300 && http <= 599 ? (int)http : 500;
    ret->answer.code = code_of_status(ret->answer.http, ret->answer.reason);
    summarise(&ret->answer);
}

void kube_decoded_add_note(struct kube_decoded *decoded, const char *note)
{
    char *longer = xasprintf("%s (%s)", decoded->answer.message, note);
    free(decoded->text);
    take_text(decoded, longer);
    summarise(&decoded->answer);
}

void kube_decoded_done(struct kube_decoded *decoded)
{
    for (size_t i = 0; i < decoded->answer.cause_count; i++) {
        free(decoded->answer.causes[i].reason);
        free(decoded->answer.causes[i].field);
    }
    json_delete(decoded->tree);
    free(decoded->text);
    *decoded = (struct kube_decoded){0};
}

bool kube_answer_has_cause_field(const struct kube_answer *answer, const char *field)
{
    for (size_t i = 0; i < answer->cause_count; i++)
        if (strcmp(answer->causes[i].field, field) == 0)
            return true;
    return false;
}

bool kube_answer_is_unreadable(const struct kube_answer *answer)
{
    static const char *const words[] = {"failed to ", "resourceVersion should not be set "};
    if (answer->http != 500 || !is_status(answer->body) || *answer->reason)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_starts_with(answer->message, words[i]))
            return true;
    return false;
}

/* A 404 that speaks of no object: the server has no such collection. */
static bool is_missing_collection(const struct kube_answer *answer)
{
    const char *name = json_path_str(answer->body, "details", "name", NULL);
    return answer->http == 404 && !(name && *name);
}

/* The transport says itself what to do about the network and about certificates. */
static const char *advice(const struct kube_answer *answer)
{
    PRE(!answer->stranger);
    if (answer->http == 401)
        return "; the token or certificate is wrong or has expired: log in again, or renew it";
    if (answer->http == 403)
        return "; grant it to this user, or use another context (kubectl auth can-i tells)";
    if (is_missing_collection(answer))
        return "; the server does not have this resource: is its definition installed? (NeoSet: kubectl "
               "apply "
               "-f deploy/crd.yaml)";
    if (answer->http == 429)
        return "; the server has too much to do: try again";
    return "";
}

char *kube_answer_words(const struct kube_answer *answer)
{
    PRE(answer);
    const char *message = *answer->message ? answer->message : answer->summary;
    struct buf words = BUF_INIT(2 * strlen(message) + 1);
    for (const char *at = message; *at; at++) {
        bool is_item = str_starts_with(at, "\n- ");
        if (*at != '\n')
            buf_add_char(&words, *at);
        else if (is_item)
            buf_add_text(&words, at > message && at[-1] == ':' ? " " : ", ");
        else
            buf_add_text(&words, "; ");
        at += is_item ? 2 : 0;
    }
    return buf_take(&words);
}

char *kube_answer_sentence(const struct kube_answer *answer, const char *what)
{
    PRE(answer && what);
    if (answer->stranger && answer->http >= 300)
        return xasprintf("%s: %d: %s", what, answer->http, answer->stranger);
    if (answer->stranger)
        return xasprintf("%s: %s", what, answer->stranger);
    return xasprintf("%s: %s%s", what, answer->summary, advice(answer));
}

int64_t kube_backoff_us(struct env *env, unsigned attempt, int64_t retry_after_us)
{
    enum { FIRST_MS = 250, LAST_MS = 30000 };
    int64_t ceiling_us = LAST_MS * US_PER_MS;
    if (attempt < 7) /* 0.25 s * 2^7 = 32 s */
        ceiling_us = ((int64_t)FIRST_MS << attempt) * US_PER_MS;
    uint64_t random;
    env_random(env, &random, sizeof(random));
    int64_t wait_us = (int64_t)(random % (uint64_t)(ceiling_us + 1));
    return MAX(wait_us, MIN(retry_after_us, KUBE_ASKED_MAX_US));
}
