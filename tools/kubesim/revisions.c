/* SPDX-License-Identifier: Apache-2.0
 *
 * ControllerRevisions, and a trap of theirs: data is immutable as bytes, while every update takes it through
 * the server's JSON encoder. Data that was posted with blanks, or with < > & in a string that is not escaped,
 * can never be updated again, not even a label of it; data whose keys are not sorted (or which the encoder
 * would spell otherwise) cannot be updated by a strategic merge patch or an apply. Measured on 1.36.3. */
#include "kubesim/kinds.h"

#include <uthash.h>

enum spelling { SPELLING_CANONICAL, SPELLING_LOOSE, SPELLING_FROZEN };

struct revision_note {
    char *uid;
    enum spelling spelling;
    UT_hash_handle hh;
};

enum { NOTES_MAX = 100000 };

static void forget(struct kubesim *sim, const char *uid)
{
    struct revision_note *note = NULL;
    HASH_FIND_STR(sim->revision_notes, uid, note);
    if (!note)
        return;
    HASH_DEL(sim->revision_notes, note);
    free(note->uid);
    free(note);
}

void revisions_done(struct kubesim *sim)
{
    struct revision_note *note;
    struct revision_note *next;
    HASH_ITER (hh, sim->revision_notes, note, next)
        forget(sim, note->uid);
}

/* Behind one JSON value (of text that was parsed before). */
static const char *skip_value(const char *at)
{
    int depth = 0;
    bool quoted = false;
    for (; *at; at++) {
        if (quoted && *at == '\\' && at[1])
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted && strchr("{[", *at))
            depth++;
        else if (!quoted && depth > 0 && strchr("}]", *at))
            depth--;
        else if (!quoted && depth == 0 && strchr(",}] \t\r\n:", *at))
            return at;
        if (!quoted && depth == 0 && strchr("}]\"", *at))
            return at + 1;
    }
    return at;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* The text of the member "data" as it was sent; NULL when there is none (a YAML body). The caller's. */
static char *data_text(const char *body)
{
    const char *at = body ? skip_blanks(body) : "";
    if (*at != '{')
        return NULL;
    for (at = skip_blanks(at + 1); *at == '"';) {
        bool data = str_starts_with(at, "\"data\"");
        at = skip_blanks(skip_value(at));
        at = skip_blanks(at + (*at == ':'));
        const char *end = skip_value(at);
        if (data)
            return xstrndup(at, (size_t)(end - at));
        at = skip_blanks(end);
        at = skip_blanks(at + (*at == ','));
    }
    return NULL;
}

/* Go's encoder escapes what HTML would take for its own. */
static char *escape_for_html(const char *text)
{
    CLEANUP_BUF struct buf escaped = BUF_INIT(BODY_MAX * 2);
    for (; *text; text++) {
        if (strchr("<>&", *text))
            buf_addf(&escaped, "\\u%04x", (unsigned char)*text);
        else
            buf_add_char(&escaped, *text);
    }
    return buf_take(&escaped);
}

static bool has_blanks_or_html(const char *text)
{
    bool quoted = false;
    for (; *text; text++) {
        if (quoted && *text == '\\' && text[1])
            text++;
        else if (*text == '"')
            quoted = !quoted;
        else if (strchr(quoted ? "<>&" : " \t\r\n", *text))
            return true;
    }
    return false;
}

static enum spelling spelling_of(const char *text, const cJSON *data)
{
    if (has_blanks_or_html(text))
        return SPELLING_FROZEN;
    CLEANUP_FREE char *sorted = json_print_sorted(data);
    CLEANUP_FREE char *canonical = escape_for_html(sorted);
    return strcmp(canonical, text) == 0 ? SPELLING_CANONICAL : SPELLING_LOOSE;
}

static void prepare_create(struct call *call, cJSON *object)
{
    const char *uid = meta_str(object, "uid");
    const cJSON *data = json_get(object, "data");
    CLEANUP_FREE char *text = call->applied ? NULL : data_text(call->request->body);
    enum spelling spelling = text && data ? spelling_of(text, data) : SPELLING_CANONICAL;
    if (call->dry_run || spelling == SPELLING_CANONICAL || HASH_COUNT(call->sim->revision_notes) >= NOTES_MAX)
        return;
    struct revision_note *note = xcalloc(1, sizeof(*note));
    note->uid = xstrdup(uid);
    note->spelling = spelling;
    HASH_ADD_KEYPTR(hh, call->sim->revision_notes, note->uid, strlen(note->uid), note);
}

static bool bytes_change(struct call *call, const cJSON *old)
{
    struct revision_note *note = NULL;
    const char *uid = meta_str(old, "uid");
    HASH_FIND_STR(call->sim->revision_notes, uid, note);
    const char *type = call->request->content_type;
    bool strategic = type && (str_starts_with(type, "application/strategic-merge-patch+json") ||
                              str_starts_with(type, "application/apply-patch+yaml"));
    return note && (note->spelling == SPELLING_FROZEN || strategic);
}

static void validate(struct call *call, const cJSON *object, const cJSON *old, struct causes *causes)
{
    const cJSON *data = json_get(object, "data");
    int64_t revision = json_int64_or(object, "revision", 0);
    if (!data)
        causes_add(causes, CAUSE_REQUIRED, "data", NULL, "data is mandatory");
    if (revision < 0)
        causes_add_node(causes, CAUSE_INVALID, "revision", json_get(object, "revision"),
                        "must be greater than or equal to 0");
    if (old && (!json_equal(data, json_get(old, "data")) || bytes_change(call, old)))
        causes_add_node(causes, CAUSE_INVALID, "data", data, "field is immutable");
}

static void committed(struct kubesim *sim, const cJSON *object, bool removed)
{
    if (removed)
        forget(sim, meta_str(object, "uid"));
}

const struct kind_hooks revision_hooks = {
    .prepare_create = prepare_create, .validate = validate, .committed = committed};
