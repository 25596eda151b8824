/* SPDX-License-Identifier: Apache-2.0 */
#include "lab.h"

#include <uthash.h>

enum { TEXT_MAX = 16 * 1024 * 1024 };

/* --- the end state
 * ---------------------------------------------------------------------------------------------- */

static void add_sorted(struct buf *text, const char *what, const cJSON *tree)
{
    CLEANUP_FREE char *printed = tree ? json_print_sorted(tree) : xstrdup("-");
    buf_addf(text, " %s=%s", what, printed);
}

static void add_set(struct buf *text, const cJSON *set)
{
    static const char *const members[] = {"phase",
                                          "replicas",
                                          "readyReplicas",
                                          "updatedReplicas",
                                          "currentImage",
                                          "targetImage",
                                          "currentRevisionName",
                                          "updateRevisionName",
                                          "currentPartition",
                                          "doneOrdinals",
                                          "leftStableOrdinals",
                                          "collisionCount",
                                          "currentRevision"};
    buf_addf(text, "set");
    for (size_t i = 0; i < ARRAY_SIZE(members); i++)
        add_sorted(text, members[i], json_path(set, "status", members[i], NULL));
    buf_add_char(text, '\n');
}

static const char *condition_status(const cJSON *pod, const char *type)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, json_path(pod, "status", "conditions", NULL))
        if (str_equal(json_str(item, "type"), type))
            return json_str(item, "status");
    return "-";
}

static void add_pod(struct buf *text, const cJSON *pod)
{
    const cJSON *meta = json_get(pod, "metadata");
    buf_addf(text, "pod %s Ready=%s gate=%s deleting=%d", json_str(meta, "name"),
             condition_status(pod, "Ready"), condition_status(pod, "apps.neo.io/in-place-ready"),
             json_str(meta, "deletionTimestamp") != NULL);
    add_sorted(text, "labels", json_get(meta, "labels"));
    const cJSON *container;
    cJSON_ArrayForEach (container, json_path(pod, "spec", "containers", NULL)) {
        add_sorted(text, "image", json_get(container, "image"));
        add_sorted(text, "env", json_get(container, "env"));
    }
    buf_add_char(text, '\n');
}

char *judge_state(const cJSON *set, const cJSON *pods, const cJSON *claims, const cJSON *revisions)
{
    struct buf text = BUF_INIT(TEXT_MAX);
    const cJSON *item;
    add_set(&text, set);
    cJSON_ArrayForEach (item, json_get(pods, "items"))
        add_pod(&text, item);
    cJSON_ArrayForEach (item, json_get(claims, "items")) {
        buf_addf(&text, "claim %s", json_path_str(item, "metadata", "name", NULL));
        add_sorted(&text, "requests", json_path(item, "spec", "resources", "requests", NULL));
        buf_add_char(&text, '\n');
    }
    cJSON_ArrayForEach (item, json_get(revisions, "items"))
        buf_addf(&text, "revision %s %lld\n", json_path_str(item, "metadata", "name", NULL),
                 (long long)json_int64_or(item, "revision", 0));
    return buf_take(&text);
}

/* --- the journal against the server's audit log
 * ------------------------------------------------------------------ */

struct step {
    char *key;
    char *action;
    char *outcome; /* "" while open */
    char *name;
    unsigned accepted; /* 2xx in the audit log */
    UT_hash_handle hh;
};

static void steps_free(struct step **steps)
{
    struct step *step = *steps;
    HASH_CLEAR(hh, *steps);
    while (step) {
        struct step *next = step->hh.next;
        free(step->key);
        free(step->action);
        free(step->outcome);
        free(step->name);
        free(step);
        step = next;
    }
}

static char *copy_or_empty(const char *text)
{
    return xstrdup(text ? text : "");
}

typedef char *line_reader(struct step **steps, const cJSON *line, struct run_result *result);

static char *read_lines(const char *text, line_reader *read, struct step **steps, struct run_result *result)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        CLEANUP_JSON cJSON *line = NULL;
        if (length && json_parse(text, length, &line, NULL) < 0)
            return xasprintf("cannot read the line %.200s", text);
        char *problem = line ? read(steps, line, result) : NULL;
        if (problem)
            return problem;
        text += length;
        text += *text == '\n';
    }
    return NULL;
}

static char *read_step(struct step **steps, const cJSON *line, struct run_result *result)
{
    const char *key = json_str(line, "key");
    if (!key)
        return xstrdup("a step of the journal has no key");
    struct step *step = xcalloc(1, sizeof(*step));
    step->key = xstrdup(key);
    step->action = copy_or_empty(json_str(line, "action"));
    step->outcome = copy_or_empty(json_str(line, "outcome"));
    step->name = copy_or_empty(json_str(line, "name"));
    int64_t attempts = json_int64_or(line, "attempts", 1);
    result->resent += attempts > 1 ? (unsigned)(attempts - 1) : 0;
    HASH_ADD_KEYPTR(hh, *steps, step->key, strlen(step->key), step);
    return NULL;
}

/* "neo-<nonce>-<seq>-<attempt>" -> "<nonce>-<seq>"; NULL for what is no step of ours. */
static char *key_of(const char *audit_id)
{
    if (!audit_id || !str_starts_with(audit_id, "neo-") || str_starts_with(audit_id, "neo-x-"))
        return NULL;
    const char *end = strrchr(audit_id, '-');
    return xstrndup(audit_id + strlen("neo-"), (size_t)(end - audit_id) - strlen("neo-"));
}

static bool is_write(const char *verb)
{
    static const char *const reads[] = {"get", "list", "watch"};
    for (size_t i = 0; i < ARRAY_SIZE(reads); i++)
        if (str_equal(verb, reads[i]))
            return false;
    return verb != NULL;
}

static char *read_audit(struct step **steps, const cJSON *line, struct run_result *result)
{
    int64_t code = json_int64_or(json_get(line, "responseStatus"), "code", 0);
    CLEANUP_FREE char *key = key_of(json_str(line, "auditID"));
    if (!key || !is_write(json_str(line, "verb")) || code < 200 || code > 299)
        return NULL;
    struct step *step;
    HASH_FIND_STR(*steps, key, step);
    if (!step)
        return xasprintf("the server accepted step %s, of which the journal has no intent", key);
    result->accepted++;
    if (++step->accepted > 1)
        return xasprintf("step %s (%s %s) was accepted %u times", key, step->action, step->name,
                         step->accepted);
    return NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What was applied, sorted; gates and status advances depend on timing, and a rejected or blocked try is no
 * step. */
static char *applied_steps(struct step *steps)
{
    size_t count = 0;
    char **lines = xcalloc(HASH_COUNT(steps) + 1, sizeof(*lines));
    for (const struct step *step = steps; step; step = step->hh.next) {
        /* A run that did not see that an image was found asks again; its name is of the set's uid. */
        bool timing = strstr(step->name, "-prefetch-") || str_equal(step->action, "gate") ||
                      str_equal(step->action, "advance") || str_equal(step->action, "block");
        if (!timing && step->accepted)
            lines[count++] = xasprintf("%s %s\n", step->action, step->name);
    }
    qsort(lines, count, sizeof(*lines), by_text);
    struct buf text = BUF_INIT(TEXT_MAX);
    for (size_t i = 0; i < count; i++) {
        buf_add_text(&text, lines[i]);
        free(lines[i]);
    }
    free(lines);
    return buf_take(&text);
}

static char *check_outcome(const struct step *step)
{
    bool applied = str_equal(step->outcome, "applied");
    if (!*step->outcome)
        return xasprintf("step %s (%s %s) is still open", step->key, step->action, step->name);
    if (applied && !step->accepted)
        return xasprintf("the journal says that %s (%s %s) was applied; the server's log does not", step->key,
                         step->action, step->name);
    /* What was accepted may have been undone or repeated by others before its answer was known, but never
     * denied. */
    if (step->accepted && !applied && !str_equal(step->outcome, "overtaken"))
        return xasprintf("the server accepted %s (%s %s); the journal says %s", step->key, step->action,
                         step->name, step->outcome);
    return NULL;
}

char *judge_journal(const char *steps_text, const char *audit_text, struct run_result *result)
{
    struct step *steps = NULL;
    char *problem = read_lines(steps_text, read_step, &steps, result);
    if (!problem)
        problem = read_lines(audit_text, read_audit, &steps, result);
    for (const struct step *step = steps; step && !problem; step = step->hh.next)
        problem = check_outcome(step);
    if (!problem && !result->accepted)
        problem = xstrdup("the server's audit log shows no step at all");
    result->steps = applied_steps(steps);
    steps_free(&steps);
    return problem;
}

static char *count_doubt(struct step **steps, const cJSON *line, struct run_result *result)
{
    (void)steps;
    const char *kind = json_str(line, "kind");
    int64_t http;
    bool found_out = str_equal(kind, "applied") || str_equal(kind, "overtaken") || str_equal(kind, "absent");
    result->doubts += str_equal(kind, "unknown") || (found_out && !json_int64(line, "http", &http));
    return NULL;
}

char *judge_doubts(const char *entries, struct run_result *result)
{
    return read_lines(entries, count_doubt, NULL, result);
}
