/* SPDX-License-Identifier: Apache-2.0
 *
 * What src/kube reads from outside, under libFuzzer; FUZZ_MODE (kubeconfig, status, line, list, plugin)
 * chooses which. */
#include "modes.h"

#include "kube/answer.h"
#include "kube/event.h"
#include "kube/kubeconfig.h"
#include "kube/list_split.h"
#include "kube/object.h"
#include "kube/plugin.h"

/* A world whose every file is a certificate and a key. */
static int read_any_file(struct env *env, const char *path, struct buf *ret, struct error **err)
{
    (void)env;
    if (strstr(path, "missing"))
        return error_set(err, ERROR_NOT_FOUND, "%s does not exist", path);
    return buf_add_text(ret, "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n");
}
static const struct env_ops ops = {.read_file = read_any_file};
static struct env world = {.ops = &ops};

static void check_error(int result, const struct error *err)
{
    ENSURE((result < 0) == (err != NULL));
    ENSURE(ERGO(err, *error_text(err)));
}

/* Two files: the text up to the first NUL byte, and the rest. */
static void fuzz_kubeconfig(const char *text, size_t length)
{
    CLEANUP_KUBECONFIG struct kubeconfig *merged = kubeconfig_make();
    CLEANUP_ERROR struct error *err = NULL;
    size_t first = strnlen(text, length);
    int result = kubeconfig_add(merged, "/a/config", text, first, &err);
    if (result == 0 && first < length)
        result = kubeconfig_add(merged, "config", text + first + 1, length - first - 1, &err);
    CLEANUP_FREE char *names = kubeconfig_names_text(merged, KUBECONFIG_CONTEXT);
    ENSURE(names);
    CLEANUP_KUBE_CONFIG struct kube_config *config = NULL;
    if (result == 0)
        result = kubeconfig_resolve(merged, &world, &(struct kube_config_options){0}, &config, &err);
    check_error(result, err);
    if (!config)
        return;
    ENSURE(config->server.base_url && config->namespace);
    ENSURE(!config->server.certificate_pem == !config->server.key_pem);
    if (config->exec) {
        CLEANUP_FREE char *info = kube_plugin_info(config);
        ENSURE(config->exec->argv[0] && str_starts_with(info, "KUBERNETES_EXEC_INFO={"));
    }
}

static void check_summary(const struct kube_answer *answer)
{
    size_t length = strlen(answer->summary);
    ENSURE(length > 0 && length < KUBE_SUMMARY_SIZE);
    for (size_t i = 0; i < length; i++)
        ENSURE((unsigned char)answer->summary[i] >= 0x20 && answer->summary[i] != 0x7F);
    ENSURE(answer->reason && answer->message);
    CLEANUP_FREE char *sentence = kube_answer_sentence(answer, "asking");
    ENSURE(str_starts_with(sentence, "asking: "));
}

static void fuzz_status(const char *text, size_t length)
{
    static const int statuses[] = {200, 201, 301, 401, 404, 409, 410, 422, 429, 500, 503};
    int status = length ? statuses[(unsigned char)text[0] % ARRAY_SIZE(statuses)] : 500;
    for (int mode = KUBE_DECODE_READ; mode <= KUBE_DECODE_STREAM; mode++) {
        struct http_answer http = {.outcome = HTTP_ANSWERED,
                                   .status = status,
                                   .body_whole = true,
                                   .body = length ? text + 1 : text,
                                   .body_length = length ? length - 1 : 0,
                                   .retry_after_us = -1};
        struct kube_decoded decoded;
        kube_decode(&http, (enum kube_decode_mode)mode, &decoded);
        check_summary(&decoded.answer);
        ENSURE(ERGO(mode == KUBE_DECODE_READ && decoded.answer.outcome == KUBE_OK, decoded.answer.body));
        kube_decoded_add_note(&decoded, "a note");
        check_summary(&decoded.answer);
        kube_decoded_done(&decoded);
    }
}

static void read_members(const cJSON *object)
{
    (void)kube_object_generation(object);
    (void)kube_object_is_deleting(object);
    (void)kube_object_controller(object);
    (void)kube_object_condition_is_true(object, "Ready");
    (void)kube_object_created_us(object);
    (void)kube_object_annotation(object, "a");
}

static void fuzz_line(const char *text, size_t length)
{
    struct kube_event event;
    CLEANUP_ERROR struct error *err = NULL;
    int result = kube_event_parse(text, length, &event, &err);
    check_error(result, err);
    if (result < 0)
        return;
    ENSURE(ERGO(event.type != KUBE_EVENT_ERROR, event.version && *event.version));
    read_members(event.object);
    if (event.type == KUBE_EVENT_ERROR) {
        struct kube_decoded decoded;
        kube_decode_status(json_copy(event.object), &decoded);
        check_summary(&decoded.answer);
        kube_decoded_done(&decoded);
    }
    kube_event_done(&event);
}

struct split_seen {
    size_t count;
    size_t bytes;
};

static bool on_item(void *context, const char *text, size_t length)
{
    struct split_seen *seen = context;
    ENSURE(length >= 2 && text[0] == '{' && text[length] == '\0');
    seen->count++;
    seen->bytes += length;
    return true;
}

/* The same text in one piece and byte by byte gives the same elements. */
static void fuzz_list(const char *text, size_t length)
{
    struct split_seen whole_seen = {0};
    struct split_seen bytes_seen = {0};
    struct list_split whole;
    struct list_split bytes;
    list_split_begin(&whole, on_item, &whole_seen);
    list_split_begin(&bytes, on_item, &bytes_seen);
    int whole_result = list_split_feed(&whole, text, length);
    int bytes_result = 0;
    for (size_t i = 0; i < length && bytes_result == 0; i++)
        bytes_result = list_split_feed(&bytes, text + i, 1);
    ENSURE(whole_result == bytes_result);
    ENSURE(whole_seen.count == bytes_seen.count && whole_seen.bytes == bytes_seen.bytes);
    ENSURE(whole.complete == bytes.complete);
    /* A text that is JSON with a list in it is taken apart without a rest. */
    CLEANUP_JSON cJSON *tree = NULL;
    if (whole_result == 0 && json_parse(text, length, &tree, NULL) == 0 && cJSON_IsObject(tree)) {
        size_t envelope_length;
        CLEANUP_JSON cJSON *envelope = NULL;
        ENSURE(whole.complete);
        const char *envelope_text = list_split_envelope(&whole, &envelope_length);
        ENSURE(json_parse(envelope_text, envelope_length, &envelope, NULL) == 0);
    }
    list_split_done(&whole);
    list_split_done(&bytes);
}

static void fuzz_plugin(const char *text, size_t length)
{
    struct kube_exec_plugin plugin = {.api_version = (char *)"client.authentication.k8s.io/v1"};
    struct kube_plugin_answer answer;
    CLEANUP_ERROR struct error *err = NULL;
    int result = kube_plugin_parse(&plugin, text, length, &answer, &err);
    check_error(result, err);
    if (result < 0)
        return;
    ENSURE(answer.token || answer.certificate_pem);
    ENSURE(!answer.certificate_pem == !answer.key_pem);
    kube_plugin_answer_done(&answer);
}

typedef void fuzz_mode(const char *text, size_t length);

static fuzz_mode *mode;

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    static const char *const names[] = {"kubeconfig", "status", "line", "list", "plugin"};
    static fuzz_mode *const modes[] = {fuzz_kubeconfig, fuzz_status, fuzz_line, fuzz_list, fuzz_plugin};
    mode = modes[fuzz_mode_of(names, ARRAY_SIZE(names))];
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = xmemdup0(data, size);
    mode(text, size);
    return 0;
}
