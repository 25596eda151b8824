/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml.h"

#include "base/yaml_scalar.h"

#include <uthash.h>
#include <yaml.h>

enum {
    INPUT_MAX = 64 << 20,
    /* Of one stream, aliases and merges expanded: a few lines of YAML can ask for billions. */
    NODES_MAX = 2000000,
    TEXT_MAX = 128 << 20,
};

#define TAG(name) "tag:yaml.org,2002:" name

struct anchor {
    char *name;
    cJSON *node; /* a copy of ours: the original may be changed by its owner */
    UT_hash_handle hh;
};

struct reader {
    yaml_parser_t parser;
    const char *name;
    struct error **err;
    struct anchor *anchors; /* of the present document */
    size_t nodes;
    size_t text_bytes;
    int depth;
};

/* What a subtree costs. */
struct extent {
    size_t nodes;
    size_t text_bytes;
    int height;
};

static int bad(const struct reader *reader, const yaml_event_t *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int bad(const struct reader *reader, const yaml_event_t *event, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *what = xvasprintf(format, args);
    va_end(args);
    return error_set(reader->err, ERROR_INVALID, "%s, line %zu: %s", reader->name, event->start_mark.line + 1,
                     what);
}

static int too_large(const struct reader *reader, const yaml_event_t *event)
{
    return error_set(reader->err, ERROR_TOO_LARGE,
                     "%s, line %zu: more than %d values or %d MiB of text once aliases are expanded",
                     reader->name, event->start_mark.line + 1, NODES_MAX, TEXT_MAX >> 20);
}

static int charge(struct reader *reader, const yaml_event_t *event, size_t nodes, size_t text_bytes)
{
    reader->nodes += nodes;
    reader->text_bytes += text_bytes;
    return reader->nodes > NODES_MAX || reader->text_bytes > TEXT_MAX ? too_large(reader, event) : 0;
}

static int next_event(struct reader *reader, yaml_event_t *event)
{
    if (yaml_parser_parse(&reader->parser, event))
        return 0;
    const yaml_parser_t *parser = &reader->parser;
    ENSURE(parser->error != YAML_MEMORY_ERROR);
    const char *problem = parser->problem ? parser->problem : "not YAML";
    if (parser->error == YAML_READER_ERROR)
        return error_set(reader->err, ERROR_INVALID, "%s, at byte %zu: %s", reader->name,
                         parser->problem_offset, problem);
    return error_set(reader->err, ERROR_INVALID, "%s, line %zu: %s%s%s", reader->name,
                     parser->problem_mark.line + 1, problem, parser->context ? " " : "",
                     parser->context ? parser->context : "");
}

static void measure(const cJSON *node, int height, struct extent *extent)
{
    extent->nodes++;
    height += cJSON_IsObject(node) || cJSON_IsArray(node);
    extent->height = MAX(extent->height, height);
    if (node->valuestring)
        extent->text_bytes += strlen(node->valuestring);
    if (node->string)
        extent->text_bytes += strlen(node->string);
    const cJSON *child;
    cJSON_ArrayForEach (child, node)
        measure(child, height, extent);
}

static void forget_anchors(struct reader *reader)
{
    struct anchor *anchor = reader->anchors;
    HASH_CLEAR(hh, reader->anchors);
    while (anchor) {
        struct anchor *next = anchor->hh.next;
        json_delete(anchor->node);
        free(anchor->name);
        free(anchor);
        anchor = next;
    }
}

/* A later anchor of the same name takes its place. */
static int keep_anchor(struct reader *reader, const yaml_event_t *event, const yaml_char_t *name,
                       const cJSON *node)
{
    if (!name)
        return 0;
    struct extent extent = {0};
    measure(node, 0, &extent);
    int result = charge(reader, event, extent.nodes, extent.text_bytes);
    if (result < 0)
        return result;
    struct anchor *anchor;
    HASH_FIND_STR(reader->anchors, (const char *)name, anchor);
    if (!anchor) {
        anchor = xcalloc(1, sizeof(*anchor));
        anchor->name = xstrdup((const char *)name);
        HASH_ADD_KEYPTR(hh, reader->anchors, anchor->name, strlen(anchor->name), anchor);
    }
    json_delete(anchor->node);
    anchor->node = json_copy(node);
    return 0;
}

static int read_alias(struct reader *reader, const yaml_event_t *event, cJSON **ret)
{
    const char *name = (const char *)event->data.alias.anchor;
    struct anchor *anchor;
    HASH_FIND_STR(reader->anchors, name, anchor);
    if (!anchor)
        return bad(reader, event, "alias *%.60s names no anchor that is complete here", name);
    struct extent extent = {0};
    measure(anchor->node, 0, &extent);
    if (reader->depth + extent.height > JSON_DEPTH_MAX)
        return bad(reader, event, "nested more than %d deep", JSON_DEPTH_MAX);
    int result = charge(reader, event, extent.nodes, extent.text_bytes);
    if (result < 0)
        return result;
    *ret = json_copy(anchor->node);
    return 0;
}

/* The meaning of a scalar that carries one of YAML's own tags. */
static int read_tagged(const struct reader *reader, const yaml_event_t *event, const char *tag,
                       const char *text, cJSON **ret)
{
    if (strcmp(tag, TAG("str")) == 0 || strcmp(tag, "!") == 0 || strcmp(tag, TAG("timestamp")) == 0) {
        *ret = json_new_str(text);
        return 0;
    }
    if (strcmp(tag, TAG("binary")) == 0) {
        CLEANUP_FREE char *decoded = yaml_decode_binary(text);
        if (!decoded)
            return bad(reader, event, "!!binary that is not the base64 of text");
        *ret = json_new_str(decoded);
        return 0;
    }
    static const struct {
        const char *tag;
        enum yaml_kind kind;
    } known[] = {{TAG("null"), YAML_NULL},
                 {TAG("bool"), YAML_BOOL},
                 {TAG("int"), YAML_INT},
                 {TAG("float"), YAML_FLOAT}};
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (strcmp(tag, known[i].tag) != 0)
            continue;
        enum yaml_kind kind;
        CLEANUP_JSON cJSON *node = yaml_resolve(text, &kind);
        bool fits = kind == known[i].kind || (kind == YAML_INT && known[i].kind == YAML_FLOAT);
        if (!node || !fits)
            return bad(reader, event, "'%.60s' is not what its tag says", text);
        *ret = STEAL(node);
        return 0;
    }
    return bad(reader, event, "tag %.80s is not known", tag);
}

static int read_scalar(struct reader *reader, const yaml_event_t *event, cJSON **ret)
{
    const char *text = (const char *)event->data.scalar.value;
    const char *tag = (const char *)event->data.scalar.tag;
    if (strlen(text) != event->data.scalar.length)
        return bad(reader, event, "a zero byte in text");
    int result = charge(reader, event, 1, event->data.scalar.length);
    if (result < 0)
        return result;
    cJSON *node = NULL;
    enum yaml_kind kind;
    if (!tag && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        node = yaml_resolve(text, &kind);
    else if (!tag)
        node = json_new_str(text);
    else if ((result = read_tagged(reader, event, tag, text, &node)) < 0)
        return result;
    if (!node)
        return bad(reader, event, "%.60s has no place in JSON", text);
    result = keep_anchor(reader, event, event->data.scalar.anchor, node);
    if (result < 0) {
        json_delete(node);
        return result;
    }
    *ret = node;
    return 0;
}

static int read_node(struct reader *reader, const yaml_event_t *event, cJSON **ret);

static int enter(struct reader *reader, const yaml_event_t *event, const char *tag, const char *own_tag)
{
    if (tag && strcmp(tag, own_tag) != 0 && strcmp(tag, "!") != 0)
        return bad(reader, event, "tag %.80s is not known", tag);
    if (++reader->depth > JSON_DEPTH_MAX)
        return bad(reader, event, "nested more than %d deep", JSON_DEPTH_MAX);
    return charge(reader, event, 1, 0);
}

static int read_items(struct reader *reader, cJSON *array)
{
    for (;;) {
        yaml_event_t event;
        int result = next_event(reader, &event);
        if (result < 0)
            return result;
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return 0;
        }
        cJSON *item = NULL;
        result = read_node(reader, &event, &item);
        yaml_event_delete(&event);
        if (result < 0)
            return result;
        json_append_item(array, item);
    }
}

static int read_sequence(struct reader *reader, const yaml_event_t *event, cJSON **ret)
{
    int result = enter(reader, event, (const char *)event->data.sequence_start.tag, TAG("seq"));
    if (result < 0)
        return result;
    CLEANUP_JSON cJSON *array = json_new_array();
    result = read_items(reader, array);
    reader->depth--;
    if (result == 0)
        result = keep_anchor(reader, event, event->data.sequence_start.anchor, array);
    if (result == 0)
        *ret = STEAL(array);
    return result;
}

/* A mapping while it is read: its members by key, so that a mapping of a million keys stays linear. */
struct member {
    cJSON *node;   /* its key is node->string */
    bool explicit; /* written out, not only merged: may not be written again */
    UT_hash_handle hh;
};

struct mapping {
    cJSON *object;
    struct member *members;
};

static void forget_members(struct mapping *mapping)
{
    struct member *member = mapping->members;
    HASH_CLEAR(hh, mapping->members);
    while (member) {
        struct member *next = member->hh.next;
        free(member);
        member = next;
    }
}

static struct member *find_member(const struct mapping *mapping, const char *key)
{
    struct member *member;
    HASH_FIND_STR(mapping->members, key, member);
    return member;
}

/* Adds or replaces. */
static void set_member(struct mapping *mapping, const char *key, cJSON *node, bool explicit)
{
    struct member *member = find_member(mapping, key);
    if (member) {
        explicit = explicit || member->explicit;
        HASH_DEL(mapping->members, member);
        json_delete(cJSON_DetachItemViaPointer(mapping->object, member->node));
    } else {
        member = xcalloc(1, sizeof(*member));
    }
    ENSURE(cJSON_AddItemToObject(mapping->object, key, node));
    member->node = node;
    member->explicit = explicit;
    HASH_ADD_KEYPTR(hh, mapping->members, node->string, strlen(node->string), member);
}

/* kubectl's order, not the YAML page's: what is merged replaces what stands before it, and is replaced by
 * what is written after it. */
static void merge_object(struct mapping *mapping, cJSON *source)
{
    while (source->child) {
        cJSON *node = cJSON_DetachItemViaPointer(source, source->child);
        CLEANUP_FREE char *key = xstrdup(node->string);
        set_member(mapping, key, node, false);
    }
}

static int merge(struct reader *reader, const yaml_event_t *event, struct mapping *mapping, cJSON *source)
{
    if (cJSON_IsObject(source)) {
        merge_object(mapping, source);
        return 0;
    }
    bool good = cJSON_IsArray(source);
    cJSON *item;
    cJSON_ArrayForEach (item, source)
        good = good && cJSON_IsObject(item);
    if (!good)
        return bad(reader, event, "<< needs a mapping or a list of mappings");
    /* Backwards: of several the first wins. */
    while (source->child) {
        CLEANUP_JSON cJSON *last = cJSON_DetachItemViaPointer(source, source->child->prev);
        merge_object(mapping, last);
    }
    return 0;
}

/* The key of a member as text: integers and booleans by their JSON spelling; the caller's. */
static int read_key(struct reader *reader, const yaml_event_t *event, char **ret, bool *ret_merge)
{
    *ret_merge = false;
    if (event->type != YAML_SCALAR_EVENT && event->type != YAML_ALIAS_EVENT)
        return bad(reader, event, "a key that is a mapping or a list");
    CLEANUP_JSON cJSON *node = NULL;
    int result = read_node(reader, event, &node);
    if (result < 0)
        return result;
    POST(node);
    if (cJSON_IsString(node)) {
        const char *tag = event->type == YAML_SCALAR_EVENT ? (const char *)event->data.scalar.tag : NULL;
        *ret_merge = event->type == YAML_SCALAR_EVENT && strcmp(node->valuestring, "<<") == 0 &&
                     (event->data.scalar.plain_implicit || (tag && strcmp(tag, TAG("merge")) == 0));
        *ret = xstrdup(node->valuestring);
        return 0;
    }
    if (cJSON_IsObject(node) || cJSON_IsArray(node) || cJSON_IsNull(node))
        return bad(reader, event, "a key that is null, a mapping or a list");
    enum yaml_kind kind = YAML_INT;
    if (event->type == YAML_SCALAR_EVENT)
        json_delete(yaml_resolve((const char *)event->data.scalar.value, &kind));
    *ret = kind == YAML_FLOAT ? yaml_float_key((const char *)event->data.scalar.value) : json_print(node);
    return 0;
}

static int read_member(struct reader *reader, const yaml_event_t *key_event, struct mapping *mapping)
{
    CLEANUP_FREE char *key = NULL;
    bool is_merge;
    int result = read_key(reader, key_event, &key, &is_merge);
    if (result < 0)
        return result;
    yaml_event_t event;
    result = next_event(reader, &event);
    if (result < 0)
        return result;
    CLEANUP_JSON cJSON *value = NULL;
    result = read_node(reader, &event, &value);
    if (result == 0 && is_merge)
        result = merge(reader, &event, mapping, value);
    yaml_event_delete(&event);
    if (result < 0 || is_merge)
        return result;
    struct member *twin = find_member(mapping, key);
    if (twin && twin->explicit)
        return bad(reader, key_event, "the key %.200s is there twice", key);
    set_member(mapping, key, STEAL(value), true);
    return 0;
}

static int read_members(struct reader *reader, struct mapping *mapping)
{
    for (;;) {
        yaml_event_t event;
        int result = next_event(reader, &event);
        if (result < 0)
            return result;
        bool end = event.type == YAML_MAPPING_END_EVENT;
        if (!end)
            result = read_member(reader, &event, mapping);
        yaml_event_delete(&event);
        if (end || result < 0)
            return result;
    }
}

static int read_mapping(struct reader *reader, const yaml_event_t *event, cJSON **ret)
{
    int result = enter(reader, event, (const char *)event->data.mapping_start.tag, TAG("map"));
    if (result < 0)
        return result;
    CLEANUP_JSON cJSON *object = json_new_object();
    struct mapping mapping = {.object = object};
    result = read_members(reader, &mapping);
    forget_members(&mapping);
    reader->depth--;
    if (result == 0)
        result = keep_anchor(reader, event, event->data.mapping_start.anchor, object);
    if (result == 0)
        *ret = STEAL(object);
    return result;
}

static int read_node(struct reader *reader, const yaml_event_t *event, cJSON **ret)
{
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return read_alias(reader, event, ret);
    case YAML_SCALAR_EVENT:
        return read_scalar(reader, event, ret);
    case YAML_SEQUENCE_START_EVENT:
        return read_sequence(reader, event, ret);
    case YAML_MAPPING_START_EVENT:
        return read_mapping(reader, event, ret);
    default:
        UNREACHABLE(); /* libyaml's grammar */
    }
}

static void add_document(struct yaml_documents *documents, cJSON *tree, int line)
{
    size_t count = documents->count + 1;
    documents->items = xreallocarray(documents->items, count, sizeof(documents->items[0]));
    documents->lines = xreallocarray(documents->lines, count, sizeof(documents->lines[0]));
    documents->items[documents->count] = tree;
    documents->lines[documents->count] = line;
    documents->count = count;
}

/* The node of a document, after its start. */
static int read_document(struct reader *reader, struct yaml_documents *documents)
{
    yaml_event_t event;
    int result = next_event(reader, &event);
    if (result < 0)
        return result;
    cJSON *tree = NULL;
    int line = (int)event.start_mark.line + 1;
    if (documents->count >= YAML_DOCUMENTS_MAX)
        result = error_set(reader->err, ERROR_TOO_LARGE, "%s, line %d: more than %d documents", reader->name,
                           line, YAML_DOCUMENTS_MAX);
    else
        result = read_node(reader, &event, &tree);
    yaml_event_delete(&event);
    forget_anchors(reader);
    if (result < 0)
        return result;
    if (cJSON_IsNull(tree))
        json_delete(tree); /* nothing, or comments only */
    else
        add_document(documents, tree, line);
    return 0;
}

static int read_stream(struct reader *reader, struct yaml_documents *documents)
{
    for (;;) {
        yaml_event_t event;
        int result = next_event(reader, &event);
        if (result < 0)
            return result;
        yaml_event_type_t type = event.type;
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return 0;
        if (type == YAML_DOCUMENT_START_EVENT && (result = read_document(reader, documents)) < 0)
            return result;
    }
}

int yaml_parse(const char *text, size_t length, const char *name, struct yaml_documents *ret,
               struct error **err)
{
    PRE(text && name && ret);
    if (length > INPUT_MAX)
        return error_set(err, ERROR_TOO_LARGE, "%s is larger than %d MiB", name, INPUT_MAX >> 20);
    struct reader reader = {.name = name, .err = err};
    struct yaml_documents documents = {0};
    ENSURE(yaml_parser_initialize(&reader.parser));
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, length);
    int result = read_stream(&reader, &documents);
    yaml_parser_delete(&reader.parser);
    forget_anchors(&reader);
    if (result < 0) {
        yaml_documents_done(&documents);
        return result;
    }
    *ret = documents;
    return 0;
}

int yaml_parse_one(const char *text, size_t length, const char *name, cJSON **ret_tree, struct error **err)
{
    PRE(ret_tree);
    struct yaml_documents documents = {0};
    int result = yaml_parse(text, length, name, &documents, err);
    if (result < 0)
        return result;
    if (documents.count == 0) {
        yaml_documents_done(&documents);
        return error_set(err, ERROR_NOT_FOUND, "%s holds no document", name);
    }
    *ret_tree = STEAL(documents.items[0]);
    yaml_documents_done(&documents);
    return 0;
}

void yaml_documents_done(struct yaml_documents *documents)
{
    PRE(documents);
    for (size_t i = 0; i < documents->count; i++)
        json_delete(documents->items[i]);
    free(documents->items);
    free(documents->lines);
    *documents = (struct yaml_documents){0};
}
