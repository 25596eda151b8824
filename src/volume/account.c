/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/decide_parts.h"

#include "kube/object.h"

static const struct {
    const char *word;
    const char *reason;
    bool refused;
} outcomes[] = {
#define X(name, word, reason, refused) {word, reason, refused},
    VOLUME_OUTCOMES(X)
#undef X
};

const char *volume_outcome_word(enum volume_outcome outcome)
{
    return outcomes[outcome].word;
}

const char *volume_outcome_reason(enum volume_outcome outcome)
{
    return outcomes[outcome].reason;
}

bool volume_outcome_is_refused(enum volume_outcome outcome)
{
    return outcomes[outcome].refused;
}

/* --- one line for people -------------------------------------------------------------------------------- */

/* Absent and "" must not look alike. */
static const char *shown(const char *value)
{
    return !value ? "none" : !*value ? "\"\"" : value;
}

static void add_size(struct buf *text, const char *spelling, const struct quantity *size, bool in_bytes)
{
    CLEANUP_FREE char *bytes = in_bytes ? quantity_exact_text(size) : NULL;
    buf_add_text(text, shown(spelling));
    if (bytes && !str_equal(bytes, spelling))
        buf_addf(text, " (%s bytes)", bytes);
}

static void add_item(struct buf *text, const struct volume_item *item, bool in_bytes)
{
    buf_add_text(text, item->name);
    if (item->field)
        buf_addf(text, " %s", item->field);
    /* A problem with a field speaks of its value itself. */
    if ((item->from || item->to) && !(item->field && item->problem)) {
        buf_add_char(text, ' ');
        add_size(text, item->from, &item->from_size, in_bytes);
        buf_add_text(text, " -> ");
        add_size(text, item->to, &item->to_size, in_bytes);
    }
    if (item->problem)
        buf_addf(text, "%s %s", item->field || item->from || item->to ? ":" : "", item->problem);
}

static void add_items(struct buf *text, const struct volume_items *items, const char *separator,
                      bool in_bytes)
{
    for (size_t i = 0; i < items->count; i++) {
        buf_add_text(text, i ? separator : "");
        add_item(text, &items->items[i], in_bytes);
    }
}

static void add_count(struct buf *text, size_t count, const char *one, const char *many)
{
    if (count == 1)
        buf_addf(text, "1 claim %s", one);
    else if (count == 0)
        buf_addf(text, "no claim %s", one);
    else
        buf_addf(text, "%zu claims %s", count, many);
}

static void add_plan(struct buf *text, const struct volume_decision *decision)
{
    if (decision->outcome == VOLUME_GROW) {
        add_items(text, &decision->grown, ", ", false);
        buf_add_text(text, decision->grown.count > 0 ? "; " : "");
        add_count(text, decision->claims.count, "grows", "grow");
        if (decision->recreate)
            buf_add_text(text, ", then the StatefulSet is re-created around its pods");
    } else {
        buf_add_text(text, volume_outcome_reason(decision->outcome));
    }
    if (decision->terminating.count > 0) {
        buf_add_text(text, "; ");
        add_count(text, decision->terminating.count, "is being deleted and left alone",
                  "are being deleted and left alone");
    }
    if (decision->lagging.count > 0) {
        buf_add_text(text, "; ");
        add_count(text, decision->lagging.count,
                  "is smaller than its template says: ", "are smaller than their templates say: ");
        add_items(text, &decision->lagging, ", ", false);
    }
}

static void add_refusal(struct buf *text, const struct volume_decision *decision)
{
    buf_addf(text, "%s: ", volume_outcome_reason(decision->outcome));
    add_items(text, &decision->refused, "; ", decision->outcome == VOLUME_SHRINK);
    if (decision->recoverable)
        buf_add_text(text,
                     "; no volume has reached the smaller size yet: if a growth failed, `neosetctl resize "
                     "recover` leads back");
}

/* Names and values are other people's: a line break in one would make two lines of the account. */
static char *one_line(char *text)
{
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
    return text;
}

char *volume_decision_words(const struct volume_decision *decision)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    if (decision->refused.count == 0)
        add_plan(&text, decision);
    else
        add_refusal(&text, decision);
    return one_line(buf_take(&text));
}

char *volume_decision_text(const struct volume_decision *decision)
{
    CLEANUP_FREE char *ref =
        kube_object_ref_text(KUBE_STATEFULSET, decision->namespace, decision->name ? decision->name : "");
    CLEANUP_FREE char *words = volume_decision_words(decision);
    return one_line(xasprintf("%s: %s", ref, words));
}

/* --- JSON ----------------------------------------------------------------------------------------------- */

static void add_member(cJSON *object, const char *key, const char *value)
{
    if (value)
        json_add_str(object, key, value);
}

static void add_array(cJSON *tree, const char *key, const struct volume_items *items)
{
    cJSON *array = json_add_array(tree, key);
    for (size_t i = 0; i < items->count; i++) {
        const struct volume_item *item = &items->items[i];
        cJSON *object = json_new_object();
        json_add_str(object, "name", item->name);
        add_member(object, "template", item->template);
        add_member(object, "storageClassName", item->class);
        add_member(object, "field", item->field);
        add_member(object, "from", item->from);
        add_member(object, "to", item->to);
        add_member(object, "problem", item->problem);
        json_append_item(array, object);
    }
}

cJSON *volume_decision_json(const struct volume_decision *decision)
{
    cJSON *tree = json_new_object();
    add_member(tree, "namespace", decision->namespace);
    add_member(tree, "name", decision->name);
    json_add_str(tree, "outcome", volume_outcome_word(decision->outcome));
    json_add_str(tree, "reason", volume_outcome_reason(decision->outcome));
    json_add_bool(tree, "recreate", decision->recreate);
    json_add_bool(tree, "recoverable", decision->recoverable);
    add_array(tree, "grown", &decision->grown);
    add_array(tree, "claims", &decision->claims);
    add_array(tree, "refused", &decision->refused);
    add_array(tree, "lagging", &decision->lagging);
    add_array(tree, "terminating", &decision->terminating);
    return tree;
}
