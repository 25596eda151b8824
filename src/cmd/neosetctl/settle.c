/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/settle.h"
#include "cmd/neosetctl/session.h"
#include "journal/reader.h"
#include "kube/object.h"

#include <ctype.h>

/* What the controller keeps of it in its journal. */
enum { REASON_BYTES_MAX = 150, NONCE_DIGITS = 16, SEQ_DIGITS_MAX = 18 };

int ctl_object_parse(const char *text, enum kube_resource *ret_resource, const char **ret_name,
                     struct error **err)
{
    const char *slash = strchr(text, '/');
    if (!slash || slash == text || slash[1] == '\0' || strchr(slash + 1, '/'))
        return error_set(err, ERROR_USAGE, "%s is not KIND/NAME: say pod/mysql-2, or neoset/mysql", text);
    CLEANUP_FREE char *kind = xstrndup(text, (size_t)(slash - text));
    if (kube_resource_by_name(kind, ret_resource) < 0 || *ret_resource == KUBE_SELF_REVIEW)
        return error_set(
            err, ERROR_USAGE,
            "no steps are written to %s: it is one of pod, neoset, statefulset, persistentvolumeclaim, "
            "controllerrevision, lease",
            kind);
    *ret_name = slash + 1;
    return 0;
}

static bool is_key(const char *text)
{
    size_t digits = strspn(text, "0123456789abcdef");
    const char *seq = text + digits + 1;
    if (digits != NONCE_DIGITS || text[digits] != '-' || *seq == '0')
        return false;
    size_t length = strspn(seq, "0123456789");
    return length > 0 && length <= SEQ_DIGITS_MAX && seq[length] == '\0';
}

int ctl_settle_check(const struct ctl_settle *settle, struct error **err)
{
    if (!settle->key || !is_key(settle->key))
        return error_set(
            err, ERROR_USAGE,
            "%s is not the key of a step: the condition Stalled of the set names it, and `neosetctl "
            "why`, and neoset-audit in-doubt",
            settle->key ? settle->key : "--step");
    if (!str_equal(settle->as, "applied") && !str_equal(settle->as, "absent"))
        return error_set(err, ERROR_USAGE,
                         "--as says what became of the step: applied (it was done) or absent (it never was)");
    if (!settle->reason || settle->reason[strspn(settle->reason, " \t")] == '\0')
        return error_set(err, ERROR_USAGE, "--reason is missing: say how you know; it stays in the journal");
    if (str_has_control_character(settle->reason))
        return error_set(err, ERROR_USAGE, "--reason is one line of text");
    if (strlen(settle->reason) > REASON_BYTES_MAX)
        return error_set(err, ERROR_USAGE, "--reason is too long: at most %d bytes", REASON_BYTES_MAX);
    return 0;
}

/* --- the step ------------------------------------------------------------------------------------------- */

struct step_search {
    const char *key;
    bool is_found;
    char *object; /* "Pod" */
    char *namespace, *name;
};

static bool take_step(void *context, const struct journal_step_record *step)
{
    struct step_search *search = context;
    if (!str_equal(step->key, search->key))
        return true;
    search->is_found = true;
    search->object = xstrdup_or_null(step->intent.object);
    search->namespace = xstrdup_or_null(step->intent.namespace);
    search->name = xstrdup_or_null(step->intent.name);
    return false;
}

/* One word of a shell, whatever stands in it; the caller's. */
static char *shell_word(const char *text)
{
    struct buf word = BUF_INIT(8L * REASON_BYTES_MAX);
    buf_add_char(&word, '\'');
    for (; *text; text++)
        if (*text == '\'')
            buf_add_text(&word, "'\\''");
        else
            buf_add_char(&word, *text);
    buf_add_char(&word, '\'');
    return buf_take(&word);
}

static int check_object(const struct step_search *search, const char *namespace,
                        const struct ctl_settle *settle, struct error **err)
{
    enum kube_resource resource = KUBE_POD;
    const char *name = NULL;
    int r = ctl_object_parse(settle->object, &resource, &name, err);
    if (r < 0)
        return r;
    if (str_equal(search->object, kube_resource_info(resource)->kind) && str_equal(search->name, name) &&
        str_equal(search->namespace, namespace))
        return 0;
    CLEANUP_FREE char *reason = shell_word(settle->reason);
    return error_set(
        err, ERROR_REFUSED,
        "step %s was not written to %s in namespace %s: say `neosetctl settle %s/%s -n %s --step %s "
        "--as %s --reason %s`",
        settle->key, settle->object, namespace, search->object, search->name, search->namespace, settle->key,
        settle->as, reason);
}

int ctl_settle_find(struct audit *journals, const char *namespace, const struct ctl_settle *settle,
                    struct error **err)
{
    struct step_search search = {.key = settle->key};
    int r = 0;
    for (size_t i = 0; r == 0 && i < journals->count && !search.is_found; i++)
        r = journal_read_open_steps(journals->journals[i].reader, take_step, &search, err);
    if (r == 0 && search.is_found)
        r = check_object(&search, namespace, settle, err);
    else if (r == 0 && journals->count > 0)
        r = error_set(
            err, ERROR_REFUSED,
            "no open step of %s%s has the key %s: it was settled already, or is of another journal. "
            "What is in doubt: `neoset-audit in-doubt --journal %s`",
            journals->journals[0].meta->path, journals->count > 1 ? " or the others" : "", settle->key,
            journals->journals[0].meta->path);
    free(search.object);
    free(search.namespace);
    free(search.name);
    return r;
}

/* --- the word ------------------------------------------------------------------------------------------- */

char *ctl_settle_text(const struct ctl_settle *settle)
{
    CLEANUP_FREE char *who = ctl_identity();
    return xasprintf("%s=%s; %s: %s", settle->key, settle->as, who, settle->reason);
}

static bool is_said(void *context, const cJSON *object)
{
    CLEANUP_FREE char *text = ctl_settle_text(context);
    return str_equal(kube_object_annotation(object, STEP_SETTLE_ANNOTATION), text);
}

static int fill(void *context, const cJSON *object, struct step_request *request, struct error **err)
{
    (void)object;
    (void)err;
    const struct ctl_settle *settle = context;
    CLEANUP_FREE char *text = ctl_settle_text(settle);
    request->body = json_new_object();
    cJSON *annotations = json_add_object(json_add_object(request->body, "metadata"), "annotations");
    json_add_str(annotations, STEP_SETTLE_ANNOTATION, text);
    request->fingerprint = xasprintf("settle=%s", text);
    request->reason = xasprintf("%s: step %s is %s", request->name, settle->key, settle->as);
    request->come_from = xstrdup("in doubt");
    request->go_to = xasprintf("step %s: %s", settle->key, settle->as);
    return 0;
}

int ctl_settle(struct ctl_server *server, const struct ctl_settle *settle, enum ctl_written *ret,
               struct error **err)
{
    struct ctl_change change = {
        .kind = "settle", .is_done = is_said, .fill = fill, .context = (void *)settle};
    const char *name = NULL;
    int r = ctl_object_parse(settle->object, &change.resource, &name, err);
    if (r == 0)
        r = ctl_settle_check(settle, err);
    return r < 0 ? r : ctl_write(server, name, &change, ret, err);
}
