/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/cel_parts.h"

#include <errno.h>

enum { TEXT_MAX = 256 * 1024 };

struct parser {
    const char *start;
    const char *at;
    int depth;
    bool old; /* oldSelf was mentioned */
    const char *variables[CEL_VARIABLES_MAX];
    size_t variable_count;
    struct error **err;
};

static struct cel_node *parse_expression(struct parser *parser);

void cel_node_free(struct cel_node *node)
{
    if (!node)
        return;
    for (size_t i = 0; i < node->count; i++)
        cel_node_free(node->children[i]);
    free(node->text);
    free(node->name);
    free(node);
}
DEFINE_CLEANUP(cleanup_node, struct cel_node, cel_node_free);
#define CLEANUP_NODE __attribute__((cleanup(cleanup_node)))

static struct cel_node *new_node(enum cel_node_type type, const char *text)
{
    struct cel_node *node = xcalloc(1, sizeof(*node));
    node->type = type;
    node->text = xstrdup_or_null(text);
    return node;
}

static struct cel_node *fail(struct parser *parser, const char *what)
{
    if (parser->err && !*parser->err)
        error_set(parser->err, ERROR_UNSUPPORTED, "kubesim cannot evaluate the rule '%s': %s at character %d",
                  parser->start, what, (int)(parser->at - parser->start) + 1);
    return NULL;
}

static void skip_space(struct parser *parser)
{
    for (;;) {
        parser->at += strspn(parser->at, " \t\r\n");
        if (!str_starts_with(parser->at, "//"))
            return;
        parser->at += strcspn(parser->at, "\n");
    }
}

static bool accept(struct parser *parser, const char *token)
{
    skip_space(parser);
    if (!str_starts_with(parser->at, token))
        return false;
    parser->at += strlen(token);
    return true;
}

static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_';
}

/* A keyword as an operator: "in" but not "index". */
static bool accept_word(struct parser *parser, const char *word)
{
    skip_space(parser);
    size_t length = strlen(word);
    if (!str_starts_with(parser->at, word) || is_name_byte(parser->at[length]))
        return false;
    parser->at += length;
    return true;
}

/* NULL when there is no name here; the caller's. */
static char *read_name(struct parser *parser)
{
    skip_space(parser);
    size_t length = 0;
    while (is_name_byte(parser->at[length]))
        length++;
    if (length == 0 || (parser->at[0] >= '0' && parser->at[0] <= '9'))
        return NULL;
    char *name = xstrndup(parser->at, length);
    parser->at += length;
    return name;
}

/* Property names that CEL cannot say are escaped: __dash__, __dot__, __in__ ... */
static char *unescape_property(char *name)
{
    static const char *const pairs[][2] = {
        {"__underscores__", "__"}, {"__dot__", "."}, {"__dash__", "-"}, {"__slash__", "/"}};
    static const char *const keywords[] = {"true",   "false",    "null", "in",      "as",        "break",
                                           "const",  "continue", "else", "for",     "function",  "if",
                                           "import", "let",      "loop", "package", "namespace", "return",
                                           "var",    "void",     "while"};
    for (size_t i = 0; i < ARRAY_SIZE(keywords); i++) {
        CLEANUP_FREE char *escaped = xasprintf("__%s__", keywords[i]);
        if (strcmp(escaped, name) == 0) {
            free(name);
            return xstrdup(keywords[i]);
        }
    }
    CLEANUP_BUF struct buf text = BUF_INIT(TEXT_MAX);
    for (const char *at = name; *at;) {
        size_t i = 0;
        while (i < ARRAY_SIZE(pairs) && !str_starts_with(at, pairs[i][0]))
            i++;
        if (i < ARRAY_SIZE(pairs)) {
            buf_add_text(&text, pairs[i][1]);
            at += strlen(pairs[i][0]);
        } else {
            buf_add_char(&text, *at++);
        }
    }
    free(name);
    return buf_take(&text);
}

static bool add_child(struct cel_node *node, struct cel_node *child)
{
    if (!child || node->count == CEL_CHILDREN_MAX) {
        cel_node_free(child);
        return false;
    }
    node->children[node->count++] = child;
    return true;
}

/* --- literals
 * ------------------------------------------------------------------------------------------------- */

static struct cel_node *parse_string(struct parser *parser, bool raw)
{
    char quote = *parser->at++;
    CLEANUP_BUF struct buf text = BUF_INIT(TEXT_MAX);
    for (; *parser->at && *parser->at != quote; parser->at++) {
        char byte = *parser->at;
        if (byte == '\\' && !raw) {
            static const char from[] = "\\'\"`?nrt";
            static const char to[] = "\\'\"`?\n\r\t";
            const char *escape = strchr(from, *++parser->at);
            if (!escape || !*parser->at)
                return fail(parser, "an escape it does not know");
            byte = to[escape - from];
        }
        buf_add_char(&text, byte);
    }
    if (!*parser->at)
        return fail(parser, "a string without an end");
    parser->at++;
    struct cel_node *node = new_node(CEL_LITERAL, buf_text(&text));
    node->literal = (struct cel_value){.type = CEL_STRING, .text = node->text};
    return node;
}

static struct cel_node *parse_number(struct parser *parser)
{
    char *end;
    errno = 0;
    struct cel_node *node = new_node(CEL_LITERAL, NULL);
    node->literal = (struct cel_value){.type = CEL_INT, .number = strtoll(parser->at, &end, 0)};
    if (*end == '.' || *end == 'e' || *end == 'E')
        node->literal = (struct cel_value){.type = CEL_DOUBLE, .real = strtod(parser->at, &end)};
    if (errno || is_name_byte(*end)) {
        cel_node_free(node);
        return fail(parser, "a number it cannot read");
    }
    parser->at = end;
    return node;
}

static struct cel_node *parse_list(struct parser *parser)
{
    CLEANUP_NODE struct cel_node *node = new_node(CEL_LIST, NULL);
    while (!accept(parser, "]")) {
        if (node->count > 0 && !accept(parser, ","))
            return fail(parser, "a list without ']'");
        if (!add_child(node, parse_expression(parser)))
            return fail(parser, "a list element");
    }
    return STEAL(node);
}

static struct cel_node *parse_map(struct parser *parser)
{
    CLEANUP_NODE struct cel_node *node = new_node(CEL_MAP, NULL);
    while (!accept(parser, "}")) {
        if (node->count > 0 && !accept(parser, ","))
            return fail(parser, "a map without '}'");
        if (!add_child(node, parse_expression(parser)) || !accept(parser, ":") ||
            !add_child(node, parse_expression(parser)))
            return fail(parser, "a map entry");
    }
    return STEAL(node);
}

/* --- names, calls, macros
 * ------------------------------------------------------------------------------------- */

static bool is_variable(struct parser *parser, const char *name)
{
    if (strcmp(name, "oldSelf") == 0)
        parser->old = true;
    if (strcmp(name, "self") == 0 || strcmp(name, "oldSelf") == 0 || strcmp(name, "optional") == 0 ||
        cel_is_type_name(name))
        return true;
    for (size_t i = 0; i < parser->variable_count; i++)
        if (strcmp(parser->variables[i], name) == 0)
            return true;
    return false;
}

static bool parse_arguments(struct parser *parser, struct cel_node *node)
{
    bool first = true;
    while (!accept(parser, ")")) {
        if (!first && !accept(parser, ","))
            return false;
        first = false;
        if (!add_child(node, parse_expression(parser)))
            return false;
    }
    return true;
}

static struct cel_node *parse_has(struct parser *parser)
{
    CLEANUP_NODE struct cel_node *argument = parse_expression(parser);
    if (!argument || !accept(parser, ")"))
        return fail(parser, "has() without its argument");
    if (argument->type != CEL_SELECT)
        return fail(parser, "has() of something that is no field");
    argument->type = CEL_HAS;
    return STEAL(argument);
}

static bool is_macro(const char *name)
{
    static const char *const names[] = {"all", "exists", "exists_one", "map", "filter"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* range.all(x, expression): the variable is known inside. Takes range. */
static struct cel_node *parse_macro(struct parser *parser, const char *name, struct cel_node *range)
{
    CLEANUP_NODE struct cel_node *node = new_node(CEL_MACRO, name);
    add_child(node, range);
    node->name = read_name(parser);
    if (!node->name || !accept(parser, ",") || parser->variable_count == CEL_VARIABLES_MAX)
        return fail(parser, "a macro without its variable");
    parser->variables[parser->variable_count++] = node->name;
    bool good = parse_arguments(parser, node);
    parser->variable_count--;
    bool arity = node->count == 2 || (node->count == 3 && strcmp(name, "map") == 0);
    if (!good || !arity)
        return fail(parser, "a macro it cannot read");
    return STEAL(node);
}

static struct cel_node *parse_call(struct parser *parser, const char *name, struct cel_node *receiver)
{
    CLEANUP_NODE struct cel_node *node = new_node(CEL_CALL, name);
    node->literal.boolean = receiver != NULL;
    if (receiver)
        add_child(node, receiver);
    if (!parse_arguments(parser, node))
        return fail(parser, "a call without ')'");
    if (!cel_function_is_known(name, receiver != NULL, node->count - (receiver != NULL))) {
        CLEANUP_FREE char *what = xasprintf("the function %s()", name);
        return fail(parser, what);
    }
    return STEAL(node);
}

static struct cel_node *parse_name(struct parser *parser)
{
    if ((parser->at[0] == 'r' || parser->at[0] == 'R') && (parser->at[1] == '"' || parser->at[1] == '\'')) {
        parser->at++;
        return parse_string(parser, true);
    }
    CLEANUP_FREE char *name = read_name(parser);
    if (!name)
        return fail(parser, "something it does not know");
    bool truth = strcmp(name, "true") == 0;
    if (truth || strcmp(name, "false") == 0 || strcmp(name, "null") == 0) {
        struct cel_node *node = new_node(CEL_LITERAL, NULL);
        node->literal = (struct cel_value){.type = *name == 'n' ? CEL_NULL : CEL_BOOL, .boolean = truth};
        return node;
    }
    if (accept(parser, "("))
        return strcmp(name, "has") == 0 ? parse_has(parser) : parse_call(parser, name, NULL);
    if (!is_variable(parser, name)) {
        CLEANUP_FREE char *what = xasprintf("the name %s", name);
        return fail(parser, what);
    }
    return new_node(CEL_NAME, name);
}

static struct cel_node *parse_primary(struct parser *parser)
{
    skip_space(parser);
    char byte = *parser->at;
    if (byte == '"' || byte == '\'')
        return parse_string(parser, false);
    if (byte >= '0' && byte <= '9')
        return parse_number(parser);
    if (accept(parser, "["))
        return parse_list(parser);
    if (accept(parser, "{"))
        return parse_map(parser);
    if (!accept(parser, "("))
        return parse_name(parser);
    CLEANUP_NODE struct cel_node *node = parse_expression(parser);
    if (!node || !accept(parser, ")"))
        return fail(parser, "a parenthesis without its other half");
    return STEAL(node);
}

/* Takes object. */
static struct cel_node *parse_member(struct parser *parser, struct cel_node *object)
{
    CLEANUP_NODE struct cel_node *owned = object;
    bool maybe = accept(parser, "?");
    char *name = read_name(parser);
    if (!name)
        return fail(parser, "a field without a name");
    CLEANUP_FREE char *called = xstrdup(name);
    if (!maybe && accept(parser, "(")) {
        free(name);
        return is_macro(called) ? parse_macro(parser, called, STEAL(owned))
                                : parse_call(parser, called, STEAL(owned));
    }
    struct cel_node *node = new_node(maybe ? CEL_MAYBE : CEL_SELECT, NULL);
    node->text = unescape_property(name);
    add_child(node, STEAL(owned));
    return node;
}

/* Takes object. */
static struct cel_node *parse_index(struct parser *parser, struct cel_node *object)
{
    bool maybe = accept(parser, "?");
    CLEANUP_NODE struct cel_node *node = new_node(maybe ? CEL_MAYBE_INDEX : CEL_INDEX, NULL);
    add_child(node, object);
    if (!add_child(node, parse_expression(parser)) || !accept(parser, "]"))
        return fail(parser, "an index without ']'");
    return STEAL(node);
}

static struct cel_node *parse_postfix(struct parser *parser)
{
    struct cel_node *node = parse_primary(parser);
    while (node) {
        if (accept(parser, "."))
            node = parse_member(parser, node);
        else if (accept(parser, "["))
            node = parse_index(parser, node);
        else
            break;
    }
    return node;
}

/* --- operators
 * ------------------------------------------------------------------------------------------------ */

static struct cel_node *parse_unary(struct parser *parser)
{
    skip_space(parser);
    bool negation = parser->at[0] == '!' && parser->at[1] != '=';
    if (!negation && parser->at[0] != '-')
        return parse_postfix(parser);
    parser->at++;
    CLEANUP_NODE struct cel_node *node = new_node(CEL_UNARY, negation ? "!" : "-");
    if (++parser->depth > CEL_DEPTH_MAX || !add_child(node, parse_unary(parser)))
        return fail(parser, "an operator without its operand");
    parser->depth--;
    return STEAL(node);
}

/* Levels from loose to tight; a level's longer tokens come first. */
static const char *const levels[][8] = {
    {"||", NULL},     {"&&", NULL},          {"==", "!=", "<=", ">=", "<", ">", "in", NULL},
    {"+", "-", NULL}, {"*", "/", "%", NULL},
};

static const char *accept_operator(struct parser *parser, size_t level)
{
    for (const char *const *token = levels[level]; *token; token++)
        if (strcmp(*token, "in") == 0 ? accept_word(parser, "in") : accept(parser, *token))
            return *token;
    return NULL;
}

static struct cel_node *parse_binary(struct parser *parser, size_t level)
{
    if (level == ARRAY_SIZE(levels))
        return parse_unary(parser);
    struct cel_node *left = parse_binary(parser, level + 1);
    const char *operator;
    while (left && (operator= accept_operator(parser, level))) {
        struct cel_node *node = new_node(CEL_BINARY, operator);
        add_child(node, left);
        if (!add_child(node, parse_binary(parser, level + 1))) {
            cel_node_free(node);
            return fail(parser, "an operator without its operand");
        }
        left = node;
    }
    return left;
}

static struct cel_node *parse_expression(struct parser *parser)
{
    if (++parser->depth > CEL_DEPTH_MAX)
        return fail(parser, "an expression that is too deep");
    CLEANUP_NODE struct cel_node *condition = parse_binary(parser, 0);
    if (condition && accept(parser, "?")) {
        struct cel_node *node = new_node(CEL_CONDITION, NULL);
        add_child(node, STEAL(condition));
        condition = node;
        if (!add_child(node, parse_expression(parser)) || !accept(parser, ":") ||
            !add_child(node, parse_expression(parser)))
            return fail(parser, "a condition without both branches");
    }
    parser->depth--;
    return STEAL(condition);
}

int cel_parse(const char *text, struct cel_node **ret, bool *ret_old, struct error **err)
{
    CLEANUP_ERROR struct error *first = NULL;
    struct parser parser = {.start = text, .at = text, .err = &first};
    struct cel_node *node = parse_expression(&parser);
    skip_space(&parser);
    if (node && *parser.at) {
        fail(&parser, "something behind its end");
        cel_node_free(node);
        node = NULL;
    }
    if (!node) {
        if (!first)
            fail(&parser, "an unreadable expression");
        return error_set(err, ERROR_UNSUPPORTED, "%s", error_text(first));
    }
    *ret = node;
    *ret_old = parser.old;
    return 0;
}
