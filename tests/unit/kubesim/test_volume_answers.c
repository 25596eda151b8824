/* SPDX-License-Identifier: Apache-2.0
 *
 * kubesim against what kube-apiserver 1.36.3 and 1.37.2 answered when volumes of StatefulSets were grown on
 * them: each recorded request is sent to a kubesim in the same state, and the two answers are compared
 * (tests/golden/kubesim/volume-answers.jsonl, a case a line; README.md there says what its lines mean).
 * VOLUME_ANSWERS=part-of-a-name runs some of them and prints both answers where they differ. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

enum { FILE_MAX = 16 << 20 };
static const char path[] = "tests/golden/kubesim/volume-answers.jsonl";
static const char zero_uid[] = "00000000-0000-0000-0000-000000000000";

/* --- the file ------------------------------------------------------------------------------------------- */

struct recorded {
    cJSON *lines;
    cJSON *names; /* "#12" -> what it stands for */
};

static struct recorded read_recorded(void)
{
    struct recorded recorded = {json_new_array(), json_new_object()};
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    char *line = NULL;
    size_t room = 0;
    for (ssize_t length; (length = getline(&line, &room, file)) > 0;) {
        cJSON *tree = NULL;
        assert_int_equal(json_parse(line, (size_t)length, &tree, NULL), 0);
        if (json_str(tree, "name")) {
            json_add_item(recorded.names, json_str(tree, "name"), json_copy(json_get(tree, "value")));
            json_delete(tree);
        } else {
            json_append_item(recorded.lines, tree);
        }
    }
    free(line);
    fclose(file);
    return recorded;
}

/* A copy with each "#12" replaced by what it stands for. The caller's. */
static cJSON *spelt_out(const struct recorded *recorded, const cJSON *tree)
{
    if (cJSON_IsString(tree) && *tree->valuestring == '#')
        return spelt_out(recorded, json_get(recorded->names, tree->valuestring));
    if (!cJSON_IsObject(tree) && !cJSON_IsArray(tree))
        return json_copy(tree);
    cJSON *copy = cJSON_IsObject(tree) ? json_new_object() : json_new_array();
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, tree) {
        cJSON *value = spelt_out(recorded, member);
        if (cJSON_IsObject(tree))
            json_add_item(copy, member->string, value);
        else
            json_append_item(copy, value);
    }
    return copy;
}

/* "given", "request" or "answer" of a case in a generation; NULL: not recorded. The caller's. */
static cJSON *part_of(const struct recorded *recorded, const cJSON *line, const char *generation,
                      const char *part)
{
    const cJSON *node = json_path(line, generation, part, NULL);
    if (!node)
        node = json_path(line, "both", part, NULL);
    return node ? spelt_out(recorded, node) : NULL;
}

/* --- masking what varies -------------------------------------------------------------------------------- */

static bool is_uid(const char *text)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '-' ? text[i] != '-' : !text[i] || !strchr("0123456789abcdef", text[i]))
            return false;
    return true;
}

/* Behind a JSON or Go value that begins with a bracket or a quote. */
static const char *skip_value(const char *at)
{
    int depth = 0;
    bool quoted = false;
    for (; *at; at++) {
        if (quoted && *at == '\\' && at[1])
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted && strchr("[{", *at))
            depth++;
        else if (!quoted && strchr("]}", *at))
            depth--;
        if (!quoted && depth == 0)
            return at + 1;
    }
    return at;
}

/* The lines of a difference in Go's spelling, which kubesim does not print. */
static const char *skip_difference(const char *at)
{
    while (*at == '\n' && at[1] && strchr("@ +-", at[1]))
        at += 1 + strcspn(at + 1, "\n");
    return at + (*at == '\n');
}

static cJSON *masked_text(const char *text)
{
    static const char invalid[] = "Invalid value: ";
    static const char parser[] = "json parse error: ";
    CLEANUP_BUF struct buf out = BUF_INIT(FILE_MAX);
    for (const char *at = text; *at;) {
        bool behind_value = at - text >= (ptrdiff_t)strlen(invalid) &&
                            strncmp(at - strlen(invalid), invalid, strlen(invalid)) == 0;
        if (behind_value && (strchr("[{", *at) || str_starts_with(at, "\"{"))) {
            buf_add_text(&out, "...");
            at = skip_value(at);
        } else if (is_uid(at)) {
            buf_add_text(&out, str_starts_with(at, zero_uid) ? zero_uid : "UID");
            at += strlen(zero_uid);
        } else if (str_starts_with(at, "record (") || str_starts_with(at, "precondition (")) {
            size_t word = strcspn(at, "(") + 1;
            size_t digits = strspn(at + word, "0123456789");
            buf_addf(&out, "%.*s", (int)word, at);
            bool version = digits > 0 && at[word + digits] == ')';
            buf_add_text(&out, version ? "N" : "");
            at += word + (version ? digits : 0);
        } else if (str_starts_with(at, parser)) { /* what a parser says of junk */
            buf_add_text(&out, parser);
            break;
        } else if (str_starts_with(at, "\n@@")) {
            at = skip_difference(at);
        } else {
            buf_add_char(&out, *at++);
        }
    }
    return json_new_str(buf_text(&out));
}

static void copy_members(cJSON *to, const cJSON *from, const char *const *keys)
{
    for (; *keys; keys++) {
        const cJSON *member = json_get(from, *keys);
        bool message = strcmp(*keys, "message") == 0;
        if (member)
            json_add_item(to, *keys, message ? masked_text(member->valuestring) : json_copy(member));
    }
}

static cJSON *masked_status(const cJSON *body)
{
    cJSON *status = json_new_object();
    copy_members(status, body, (const char *const[]){"status", "reason", "message", NULL});
    const cJSON *details = json_get(body, "details");
    if (!details)
        return status;
    cJSON *copy = json_add_object(status, "details");
    copy_members(copy, details, (const char *const[]){"name", "group", "kind", NULL});
    const cJSON *cause = NULL;
    cJSON *causes = json_get(details, "causes") ? json_add_array(copy, "causes") : NULL;
    cJSON_ArrayForEach (cause, json_get(details, "causes")) {
        cJSON *one = json_new_object();
        copy_members(one, cause, (const char *const[]){"reason", "message", "field", NULL});
        json_append_item(causes, one);
    }
    return status;
}

/* Without ".": whether an emptied map is still owned is kubesim's only difference, and nobody's matter. */
static void drop_dots(cJSON *fields)
{
    json_remove(fields, ".");
    cJSON *member = NULL;
    cJSON_ArrayForEach (member, fields)
        drop_dots(member);
}

/* By what they are, for their order is that of the seconds. */
static void insert_sorted(cJSON *managers, cJSON *one)
{
    CLEANUP_FREE char *key = xasprintf("%s %s", json_str(one, "operation"), json_str(one, "manager"));
    int at = 0;
    for (; at < cJSON_GetArraySize(managers); at++) {
        const cJSON *other = cJSON_GetArrayItem(managers, at);
        CLEANUP_FREE char *present =
            xasprintf("%s %s", json_str(other, "operation"), json_str(other, "manager"));
        if (strcmp(key, present) < 0)
            break;
    }
    cJSON *sorted = json_new_array();
    for (int i = 0; cJSON_GetArraySize(managers) > 0; i++)
        json_append_item(sorted, i == at ? STEAL(one) : cJSON_DetachItemFromArray(managers, 0));
    if (one)
        json_append_item(sorted, one);
    while (cJSON_GetArraySize(sorted) > 0)
        json_append_item(managers, cJSON_DetachItemFromArray(sorted, 0));
    json_delete(sorted);
}

static void mask_managers(cJSON *to, const cJSON *meta)
{
    cJSON *managers = json_new_array();
    const cJSON *entry = NULL;
    cJSON_ArrayForEach (entry, json_get(meta, "managedFields")) {
        if (str_equal(json_str(entry, "subresource"), "status"))
            continue;
        cJSON *one = json_new_object();
        copy_members(one, entry,
                     (const char *const[]){"manager", "operation", "subresource", "fieldsV1", NULL});
        drop_dots(json_get(one, "fieldsV1"));
        insert_sorted(managers, one);
    }
    if (cJSON_GetArraySize(managers) > 0)
        json_add_item(to, "managedFields", managers);
    else
        json_delete(managers);
}

/* Without status: that is other tests' matter. */
static cJSON *masked_object(const cJSON *body)
{
    static const char *const kept[] = {"name",
                                       "namespace",
                                       "generation",
                                       "finalizers",
                                       "labels",
                                       "annotations",
                                       "deletionGracePeriodSeconds",
                                       NULL};
    cJSON *object = json_new_object();
    copy_members(object, body, (const char *const[]){"kind", "spec", NULL});
    const cJSON *meta = json_get(body, "metadata");
    cJSON *copy = json_add_object(object, "metadata");
    copy_members(copy, meta, kept);
    if (json_get(meta, "deletionTimestamp"))
        json_add_str(copy, "deletionTimestamp", "T");
    const cJSON *owner = NULL;
    cJSON *owners = json_get(meta, "ownerReferences") ? json_add_array(copy, "ownerReferences") : NULL;
    cJSON_ArrayForEach (owner, json_get(meta, "ownerReferences")) {
        cJSON *one = json_copy(owner);
        json_remove(one, "uid");
        json_append_item(owners, one);
    }
    mask_managers(copy, meta);
    return object;
}

static cJSON *masked_answer(const struct world *world)
{
    cJSON *answer = json_new_object();
    json_add_int64(answer, "http", world->response.status);
    if (world->response.warning)
        json_add_item(answer, "warning", masked_text(world->response.warning));
    bool status = str_equal(json_str(world->body, "kind"), "Status");
    if (world->body)
        json_add_item(answer, status ? "status" : "object",
                      status ? masked_status(world->body) : masked_object(world->body));
    return answer;
}

/* --- sending -------------------------------------------------------------------------------------------- */

/* The text of a body with $UID and $RV of the object that the request is about. The caller's. */
static char *filled_in(struct world *world, const cJSON *request)
{
    const cJSON *body = json_get(request, "body");
    if (!body)
        return NULL;
    CLEANUP_FREE char *text = cJSON_IsString(body) ? xstrdup(body->valuestring) : json_print(body);
    if (!strstr(text, "$UID") && !strstr(text, "$RV"))
        return STEAL(text);
    CLEANUP_FREE char *object = xstrdup(json_str(request, "path"));
    object[strcspn(object, "?")] = '\0';
    bool there = ask(world, "GET", object, NULL) == 200;
    CLEANUP_FREE char *uid = xstrdup(there ? meta(world, "uid") : "11111111-1111-1111-1111-111111111111");
    CLEANUP_FREE char *version = xstrdup(there ? meta(world, "resourceVersion") : "1");
    CLEANUP_BUF struct buf out = BUF_INIT(FILE_MAX);
    for (const char *at = text; *at;) {
        bool is_version = str_starts_with(at, "$RV");
        if (is_version || str_starts_with(at, "$UID")) {
            buf_add_text(&out, is_version ? version : uid);
            at += is_version ? strlen("$RV") : strlen("$UID");
        } else {
            buf_add_char(&out, *at++);
        }
    }
    return buf_take(&out);
}

static int submit(struct world *world, const cJSON *request)
{
    CLEANUP_FREE char *body = filled_in(world, request);
    const struct kubesim_request real = {.method = json_str(request, "method"),
                                         .path = json_str(request, "path"),
                                         .content_type = json_str(request, "type"),
                                         .accept = "application/json",
                                         .body = body,
                                         .body_length = body ? strlen(body) : 0};
    return ask_raw(world, &real);
}

static void prepare(struct world *world, const char *name, const cJSON *given)
{
    const cJSON *step = NULL;
    cJSON_ArrayForEach (step, given) {
        if (cJSON_IsString(step)) { /* "gc": the collector looks */
            pass(world, 1);
            continue;
        }
        int http = submit(world, step);
        if (http >= 300)
            fail_msg("%s: what is given cannot be made: %d %s", name, http, message(world));
    }
}

/* Each place where two trees differ, a line each. */
static void print_difference(const char *place, const cJSON *recorded, const cJSON *here)
{
    bool same_kind = recorded && here && recorded->type == here->type;
    if (json_equal(recorded, here))
        return;
    if (same_kind && (cJSON_IsObject(here) || cJSON_IsArray(here)) &&
        (cJSON_IsObject(here) || cJSON_GetArraySize(here) == cJSON_GetArraySize(recorded))) {
        CLEANUP_JSON cJSON *keys = json_copy(here);
        const cJSON *member = NULL;
        cJSON_ArrayForEach (member, recorded)
            if (cJSON_IsObject(here) && !json_get(keys, member->string))
                json_add_item(keys, member->string, cJSON_CreateNull());
        int index = 0;
        cJSON_ArrayForEach (member, keys) {
            CLEANUP_FREE char *next = member->string ? xasprintf("%s.%s", place, member->string)
                                                     : xasprintf("%s[%d]", place, index);
            const cJSON *left =
                member->string ? json_get(recorded, member->string) : cJSON_GetArrayItem(recorded, index);
            const cJSON *right =
                member->string ? json_get(here, member->string) : cJSON_GetArrayItem(here, index);
            print_difference(next, left, right);
            index++;
        }
        return;
    }
    CLEANUP_FREE char *left = recorded ? json_print_sorted(recorded) : xstrdup("nothing");
    CLEANUP_FREE char *right = here ? json_print_sorted(here) : xstrdup("nothing");
    print_error("  %s: recorded %.400s\n", place, left);
    print_error("  %s: kubesim  %.400s\n", place, right);
}

static bool replay(const struct recorded *recorded, const cJSON *line, const char *generation)
{
    const char *name = json_str(line, "case");
    CLEANUP_JSON cJSON *given = part_of(recorded, line, generation, "given");
    CLEANUP_JSON cJSON *request = part_of(recorded, line, generation, "request");
    CLEANUP_JSON cJSON *expected = part_of(recorded, line, generation, "answer");
    struct world *unused = xcalloc(1, sizeof(*unused));
    struct kubesim_options options = world_options(unused);
    options.newer = strcmp(generation, "37") == 0;
    WORLD world = world_make_with(&options, unused);
    prepare(world, name, given);
    submit(world, request);
    CLEANUP_JSON cJSON *answer = masked_answer(world);
    if (json_equal(answer, expected))
        return true;
    print_error("%s on 1.%s:\n", name, generation);
    print_difference("", expected, answer);
    return false;
}

/* What is left out is said, and answered so that nobody takes it for the real thing. */
static void check_left_out(const struct recorded *recorded, const cJSON *line)
{
    print_message("not modelled: %s (%s)\n", json_str(line, "left out"), json_str(line, "why"));
    if (!json_get(line, "request"))
        return;
    CLEANUP_JSON cJSON *request = spelt_out(recorded, json_get(line, "request"));
    WORLD world = world_make();
    submit(world, request);
    if (!strstr(message(world), "kubesim does not model"))
        fail_msg("%s: not refused loudly: %d %s", json_str(line, "left out"), world->response.status,
                 message(world));
}

static void kubesim_answers_as_recorded(void **state)
{
    (void)state;
    static const char *const generations[] = {"36", "37"};
    const char *only = getenv("VOLUME_ANSWERS");
    struct recorded recorded = read_recorded();
    unsigned compared = 0, equal = 0, left_out = 0;
    const cJSON *line = NULL;
    cJSON_ArrayForEach (line, recorded.lines) {
        const char *name = json_str(line, "case");
        if (!name) {
            check_left_out(&recorded, line);
            left_out++;
            continue;
        }
        for (size_t i = 0; i < ARRAY_SIZE(generations); i++) {
            CLEANUP_JSON cJSON *there = part_of(&recorded, line, generations[i], "answer");
            if (!there || (only && !strstr(name, only)))
                continue;
            compared++;
            equal += replay(&recorded, line, generations[i]);
        }
    }
    json_delete(recorded.lines);
    json_delete(recorded.names);
    print_message("%u of %u recorded answers are kubesim's; %u requests are not modelled\n", equal, compared,
                  left_out);
    assert_true(compared > 0);
    assert_int_equal(equal, compared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kubesim_answers_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
