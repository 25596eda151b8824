/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/cel_parts.h"

#include <math.h>

/* Freed with the run. */
static void *keep(struct cel_run *run, void *memory)
{
    if (run->memory_count == run->memory_room) {
        run->memory_room = MAX(run->memory_room * 2, 64);
        run->memory = xreallocarray(run->memory, run->memory_room, sizeof(run->memory[0]));
    }
    return run->memory[run->memory_count++] = memory;
}

void *cel_alloc(struct cel_run *run, size_t size)
{
    return keep(run, xcalloc(1, MAX(size, 1)));
}

const char *cel_text(struct cel_run *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = xvasprintf(format, args);
    va_end(args);
    return keep(run, text);
}

int cel_fail(struct cel_run *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *text = xvasprintf(format, args);
    va_end(args);
    if (!run->problem)
        run->problem = STEAL(text);
    return -1;
}

void cel_run_done(struct cel_run *run)
{
    for (size_t i = 0; i < run->memory_count; i++)
        free(run->memory[i]);
    free(STEAL(run->memory));
    free(STEAL(run->problem));
}

/* --- values
 * --------------------------------------------------------------------------------------------------- */

struct cel_value cel_from_json(const cJSON *node)
{
    int64_t number;
    if (!node || cJSON_IsNull(node))
        return (struct cel_value){.type = CEL_NULL};
    if (cJSON_IsBool(node))
        return (struct cel_value){.type = CEL_BOOL, .boolean = cJSON_IsTrue(node)};
    if (cJSON_IsString(node))
        return (struct cel_value){.type = CEL_STRING, .text = node->valuestring};
    if (json_node_int64(node, &number))
        return (struct cel_value){.type = CEL_INT, .number = number};
    if (cJSON_IsNumber(node))
        return (struct cel_value){.type = CEL_DOUBLE, .real = node->valuedouble};
    if (cJSON_IsRaw(node)) /* a literal that a double cannot hold exactly */
        return (struct cel_value){.type = CEL_DOUBLE, .real = strtod(node->valuestring, NULL)};
    return (struct cel_value){.type = CEL_JSON, .json = node};
}

bool cel_is_list(const struct cel_value *value)
{
    return value->type == CEL_VALUES || (value->type == CEL_JSON && cJSON_IsArray(value->json));
}

bool cel_is_map(const struct cel_value *value)
{
    return value->type == CEL_PAIRS || (value->type == CEL_JSON && cJSON_IsObject(value->json));
}

int cel_length(const struct cel_value *value, size_t *ret)
{
    if (value->type == CEL_JSON)
        *ret = (size_t)cJSON_GetArraySize(value->json);
    else if (value->type == CEL_VALUES || value->type == CEL_PAIRS)
        *ret = value->count;
    else
        return -1;
    return 0;
}

struct cel_value cel_element(const struct cel_value *value, size_t index)
{
    if (value->type == CEL_VALUES)
        return value->values[index];
    if (value->type == CEL_PAIRS)
        return value->values[2 * index];
    const cJSON *node = cJSON_GetArrayItem(value->json, (int)index);
    if (cJSON_IsObject(value->json))
        return (struct cel_value){.type = CEL_STRING, .text = node->string};
    return cel_from_json(node);
}

bool cel_member(const struct cel_value *map, const struct cel_value *key, struct cel_value *ret)
{
    if (map->type == CEL_JSON) {
        const cJSON *node = key->type == CEL_STRING ? json_get(map->json, key->text) : NULL;
        if (node)
            *ret = cel_from_json(node);
        return node != NULL;
    }
    for (size_t i = 0; map->type == CEL_PAIRS && i < map->count; i++) {
        if (cel_equal(&map->values[2 * i], key)) {
            *ret = map->values[2 * i + 1];
            return true;
        }
    }
    return false;
}

static bool lists_equal(const struct cel_value *a, const struct cel_value *b)
{
    size_t left;
    size_t right;
    if (cel_length(a, &left) < 0 || cel_length(b, &right) < 0 || left != right)
        return false;
    for (size_t i = 0; i < left; i++) {
        struct cel_value x = cel_element(a, i);
        struct cel_value y = cel_element(b, i);
        struct cel_value other;
        if (cel_is_map(a)) {
            struct cel_value mine;
            if (!cel_member(a, &x, &mine) || !cel_member(b, &x, &other) || !cel_equal(&mine, &other))
                return false;
        } else if (!cel_equal(&x, &y)) {
            return false;
        }
    }
    return true;
}

bool cel_equal(const struct cel_value *a, const struct cel_value *b)
{
    int order;
    if (a->type == CEL_NULL || b->type == CEL_NULL)
        return a->type == b->type;
    if (a->type == CEL_BOOL || b->type == CEL_BOOL)
        return a->type == b->type && a->boolean == b->boolean;
    if (a->type == CEL_TYPE || b->type == CEL_TYPE)
        return a->type == b->type && strcmp(a->text, b->text) == 0;
    if (a->type == CEL_OPTIONAL || b->type == CEL_OPTIONAL)
        return a->type == b->type && a->boolean == b->boolean &&
               (!a->boolean || cel_equal(a->values, b->values));
    if (cel_is_list(a) || cel_is_map(a))
        return cel_is_list(a) == cel_is_list(b) && cel_is_map(a) == cel_is_map(b) && lists_equal(a, b);
    return cel_order(a, b, &order) && order == 0;
}

static double as_real(const struct cel_value *value)
{
    return value->type == CEL_INT ? (double)value->number : value->real;
}

bool cel_order(const struct cel_value *a, const struct cel_value *b, int *ret)
{
    bool numbers =
        (a->type == CEL_INT || a->type == CEL_DOUBLE) && (b->type == CEL_INT || b->type == CEL_DOUBLE);
    if (a->type == CEL_INT && b->type == CEL_INT)
        *ret = a->number < b->number ? -1 : a->number > b->number;
    else if (numbers)
        *ret = as_real(a) < as_real(b) ? -1 : as_real(a) > as_real(b);
    else if (a->type == CEL_STRING && b->type == CEL_STRING)
        *ret = strcmp(a->text, b->text);
    else if (a->type == CEL_BOOL && b->type == CEL_BOOL)
        *ret = (int)a->boolean - (int)b->boolean;
    else if (a->type == CEL_QUANTITY && b->type == CEL_QUANTITY)
        *ret = quantity_compare(&a->quantity, &b->quantity);
    else
        return false;
    return true;
}

/* --- expressions
 * ---------------------------------------------------------------------------------------------- */

static struct cel_value truth(bool value)
{
    return (struct cel_value){.type = CEL_BOOL, .boolean = value};
}

static struct cel_value some(struct cel_run *run, struct cel_value value)
{
    struct cel_value *inner = cel_alloc(run, sizeof(*inner));
    *inner = value;
    return (struct cel_value){.type = CEL_OPTIONAL, .boolean = true, .values = inner, .count = 1};
}

static int evaluate_bool(struct cel_run *run, const struct cel_node *node, bool *ret)
{
    struct cel_value value;
    if (cel_evaluate(run, node, &value) < 0)
        return -1;
    if (value.type != CEL_BOOL)
        return cel_fail(run, "no such overload");
    *ret = value.boolean;
    return 0;
}

/* && and ||: a side that decides makes up for an error on the other. */
static int evaluate_logic(struct cel_run *run, const struct cel_node *node, bool conjunction,
                          struct cel_value *ret)
{
    bool value = false;
    bool failed = false;
    for (size_t i = 0; i < 2; i++) {
        if (evaluate_bool(run, node->children[i], &value) < 0)
            failed = true;
        else if (value != conjunction) {
            free(STEAL(run->problem));
            *ret = truth(!conjunction);
            return 0;
        }
    }
    *ret = truth(conjunction);
    return failed ? -1 : 0;
}

static int index_value(struct cel_run *run, const struct cel_value *object, const struct cel_value *key,
                       struct cel_value *ret, bool *ret_there)
{
    size_t length = 0;
    *ret_there = false;
    if (cel_is_list(object) && key->type == CEL_INT) {
        cel_length(object, &length);
        *ret_there = key->number >= 0 && (uint64_t)key->number < length;
        if (*ret_there)
            *ret = cel_element(object, (size_t)key->number);
        return 0;
    }
    if (!cel_is_map(object))
        return cel_fail(run, "no such overload");
    *ret_there = cel_member(object, key, ret);
    return 0;
}

/* Fields and indexes, plain and optional; an optional object stays optional. */
static int evaluate_access(struct cel_run *run, const struct cel_node *node, struct cel_value *ret)
{
    struct cel_value object;
    struct cel_value key = {.type = CEL_STRING, .text = node->text};
    bool maybe = node->type == CEL_MAYBE || node->type == CEL_MAYBE_INDEX;
    if (cel_evaluate(run, node->children[0], &object) < 0)
        return -1;
    if ((node->type == CEL_INDEX || node->type == CEL_MAYBE_INDEX) &&
        cel_evaluate(run, node->children[1], &key) < 0)
        return -1;
    if (object.type == CEL_OPTIONAL) {
        maybe = true;
        if (!object.boolean) {
            *ret = object;
            return 0;
        }
        object = *object.values;
    }
    struct cel_value member = {.type = CEL_NULL};
    bool there;
    if (index_value(run, &object, &key, &member, &there) < 0)
        return -1;
    if (maybe)
        *ret = there ? some(run, member) : (struct cel_value){.type = CEL_OPTIONAL};
    else if (there)
        *ret = member;
    else
        return key.type == CEL_STRING ? cel_fail(run, "no such key: %s", key.text)
                                      : cel_fail(run, "index out of bounds");
    return 0;
}

static int evaluate_has(struct cel_run *run, const struct cel_node *node, struct cel_value *ret)
{
    struct cel_value object;
    struct cel_value ignored;
    if (cel_evaluate(run, node->children[0], &object) < 0)
        return -1;
    if (object.type == CEL_OPTIONAL && object.boolean)
        object = *object.values;
    const struct cel_value key = {.type = CEL_STRING, .text = node->text};
    *ret = truth(cel_is_map(&object) && cel_member(&object, &key, &ignored));
    return 0;
}

static int evaluate_children(struct cel_run *run, const struct cel_node *node, struct cel_value **ret)
{
    *ret = cel_alloc(run, node->count * sizeof(**ret));
    for (size_t i = 0; i < node->count; i++)
        if (cel_evaluate(run, node->children[i], &(*ret)[i]) < 0)
            return -1;
    return 0;
}

static int arithmetic(struct cel_run *run, char operator, const struct cel_value * a,
                      const struct cel_value *b, struct cel_value *ret)
{
    if (a->type == CEL_DOUBLE && b->type == CEL_DOUBLE && operator!= '%') {
        double value = operator== '+' ? a->real + b->real :
                       operator== '-' ? a->real - b->real
                       :
                       operator== '*' ? a->real * b->real
                                      : a->real / b->real;
        *ret = (struct cel_value){.type = CEL_DOUBLE, .real = value};
        return 0;
    }
    if (a->type != CEL_INT || b->type != CEL_INT)
        return cel_fail(run, "no such overload");
    if ((operator== '/' || operator== '%') && b->number == 0)
        return cel_fail(run, operator== '/' ? "division by zero" : "modulus by zero");
    *ret = (struct cel_value){.type = CEL_INT};
    bool overflow = false;
    if (operator== '+')
        overflow = __builtin_add_overflow(a->number, b->number, &ret->number);
    else if (operator== '-')
        overflow = __builtin_sub_overflow(a->number, b->number, &ret->number);
    else if (operator== '*')
        overflow = __builtin_mul_overflow(a->number, b->number, &ret->number);
    else if (a->number == INT64_MIN && b->number == -1)
        overflow = true;
    else
        ret->number = operator== '/' ? a->number / b->number : a->number % b->number;
    return overflow ? cel_fail(run, "integer overflow") : 0;
}

static int add_values(struct cel_run *run, const struct cel_value *a, const struct cel_value *b,
                      struct cel_value *ret)
{
    if (a->type == CEL_STRING && b->type == CEL_STRING) {
        *ret = (struct cel_value){.type = CEL_STRING, .text = cel_text(run, "%s%s", a->text, b->text)};
        return 0;
    }
    if (!cel_is_list(a) || !cel_is_list(b))
        return arithmetic(run, '+', a, b, ret);
    size_t left = 0;
    size_t right = 0;
    cel_length(a, &left);
    cel_length(b, &right);
    struct cel_value *values = cel_alloc(run, (left + right) * sizeof(values[0]));
    for (size_t i = 0; i < left + right; i++)
        values[i] = i < left ? cel_element(a, i) : cel_element(b, i - left);
    *ret = (struct cel_value){.type = CEL_VALUES, .values = values, .count = left + right};
    return 0;
}

static int is_in(struct cel_run *run, const struct cel_value *value, const struct cel_value *range,
                 struct cel_value *ret)
{
    size_t length;
    if (cel_length(range, &length) < 0)
        return cel_fail(run, "no such overload");
    *ret = truth(false);
    for (size_t i = 0; i < length && !ret->boolean; i++) {
        struct cel_value element = cel_element(range, i);
        ret->boolean = cel_equal(value, &element);
    }
    return 0;
}

static int evaluate_binary(struct cel_run *run, const struct cel_node *node, struct cel_value *ret)
{
    const char *operator= node->text;
    if (strcmp(operator, "&&") == 0 || strcmp(operator, "||") == 0)
        return evaluate_logic(run, node, *operator== '&', ret);
    struct cel_value *sides;
    if (evaluate_children(run, node, &sides) < 0)
        return -1;
    if (strcmp(operator, "in") == 0)
        return is_in(run, &sides[0], &sides[1], ret);
    if (strcmp(operator, "==") == 0 || strcmp(operator, "!=") == 0) {
        *ret = truth(cel_equal(&sides[0], &sides[1]) == (*operator== '='));
        return 0;
    }
    if (*operator== '+')
        return add_values(run, &sides[0], &sides[1], ret);
    if (*operator!= '<' && * operator!= '>')
        return arithmetic(run, *operator, & sides[0], &sides[1], ret);
    int order;
    if (!cel_order(&sides[0], &sides[1], &order))
        return cel_fail(run, "no such overload");
    bool equal = operator[1] == '=' && order == 0;
    *ret = truth(equal || (*operator== '<' ? order < 0 : order> 0));
    return 0;
}

static int evaluate_unary(struct cel_run *run, const struct cel_node *node, struct cel_value *ret)
{
    struct cel_value value;
    if (cel_evaluate(run, node->children[0], &value) < 0)
        return -1;
    if (*node->text == '!' && value.type == CEL_BOOL)
        *ret = truth(!value.boolean);
    else if (*node->text == '-' && value.type == CEL_INT && value.number != INT64_MIN)
        *ret = (struct cel_value){.type = CEL_INT, .number = -value.number};
    else if (*node->text == '-' && value.type == CEL_DOUBLE)
        *ret = (struct cel_value){.type = CEL_DOUBLE, .real = -value.real};
    else
        return cel_fail(run, "no such overload");
    return 0;
}

/* --- macros
 * --------------------------------------------------------------------------------------------------- */

static int evaluate_with(struct cel_run *run, const struct cel_node *macro, struct cel_value element,
                         size_t child, struct cel_value *ret)
{
    if (run->variable_count == CEL_VARIABLES_MAX)
        return cel_fail(run, "too many variables");
    run->variables[run->variable_count].name = macro->name;
    run->variables[run->variable_count].value = element;
    run->variable_count++;
    int result = cel_evaluate(run, macro->children[child], ret);
    run->variable_count--;
    return result;
}

/* all, exists, exists_one: count the elements for which it holds; an error counts only when nothing decides.
 */
static int evaluate_quantifier(struct cel_run *run, const struct cel_node *node,
                               const struct cel_value *range, size_t length, struct cel_value *ret)
{
    size_t held = 0;
    bool failed = false;
    bool all = strcmp(node->text, "all") == 0;
    bool one = strcmp(node->text, "exists_one") == 0;
    for (size_t i = 0; i < length; i++) {
        struct cel_value value = {.type = CEL_NULL};
        if (evaluate_with(run, node, cel_element(range, i), 1, &value) < 0 || value.type != CEL_BOOL) {
            failed = true;
            if (one)
                return cel_fail(run, "no such overload");
            continue;
        }
        held += value.boolean;
        if (!one && value.boolean != all) {
            free(STEAL(run->problem));
            *ret = truth(!all);
            return 0;
        }
    }
    if (failed)
        return cel_fail(run, "no such overload");
    *ret = truth(all || (one && held == 1));
    return 0;
}

/* map and filter; map with three arguments filters first. */
static int evaluate_collector(struct cel_run *run, const struct cel_node *node, const struct cel_value *range,
                              size_t length, struct cel_value *ret)
{
    bool filter = strcmp(node->text, "filter") == 0;
    struct cel_value *values = cel_alloc(run, length * sizeof(values[0]));
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        struct cel_value element = cel_element(range, i);
        struct cel_value kept = truth(true);
        if ((filter || node->count == 3) && evaluate_with(run, node, element, 1, &kept) < 0)
            return -1;
        if (kept.type != CEL_BOOL)
            return cel_fail(run, "no such overload");
        if (!kept.boolean)
            continue;
        values[count] = element;
        if (!filter && evaluate_with(run, node, element, node->count - 1, &values[count]) < 0)
            return -1;
        count++;
    }
    *ret = (struct cel_value){.type = CEL_VALUES, .values = values, .count = count};
    return 0;
}

static int evaluate_macro(struct cel_run *run, const struct cel_node *node, struct cel_value *ret)
{
    struct cel_value range;
    size_t length;
    if (cel_evaluate(run, node->children[0], &range) < 0)
        return -1;
    if (cel_length(&range, &length) < 0)
        return cel_fail(run, "no such overload");
    bool collects = strcmp(node->text, "map") == 0 || strcmp(node->text, "filter") == 0;
    return collects ? evaluate_collector(run, node, &range, length, ret)
                    : evaluate_quantifier(run, node, &range, length, ret);
}

static int evaluate_name(struct cel_run *run, const char *name, struct cel_value *ret)
{
    for (size_t i = run->variable_count; i-- > 0;) {
        if (strcmp(run->variables[i].name, name) == 0) {
            *ret = run->variables[i].value;
            return 0;
        }
    }
    if (!cel_is_type_name(name))
        return cel_fail(run, "undeclared reference to '%s'", name);
    *ret = (struct cel_value){.type = CEL_TYPE, .text = name};
    return 0;
}

static int evaluate_call(struct cel_run *run, const struct cel_node *node, struct cel_value *ret)
{
    struct cel_value *arguments;
    if (evaluate_children(run, node, &arguments) < 0)
        return -1;
    return cel_call(run, node->text, node->literal.boolean, arguments, node->count, ret);
}

static int evaluate_literal_collection(struct cel_run *run, const struct cel_node *node,
                                       struct cel_value *ret)
{
    struct cel_value *values;
    if (evaluate_children(run, node, &values) < 0)
        return -1;
    bool map = node->type == CEL_MAP;
    *ret = (struct cel_value){
        .type = map ? CEL_PAIRS : CEL_VALUES, .values = values, .count = map ? node->count / 2 : node->count};
    return 0;
}

int cel_evaluate(struct cel_run *run, const struct cel_node *node, struct cel_value *ret)
{
    bool condition = false;
    *ret = (struct cel_value){.type = CEL_NULL};
    if (++run->steps > CEL_STEPS_MAX)
        return cel_fail(run, "the rule costs too much");
    switch (node->type) {
    case CEL_LITERAL:
        *ret = node->literal;
        return 0;
    case CEL_LIST:
    case CEL_MAP:
        return evaluate_literal_collection(run, node, ret);
    case CEL_NAME:
        return evaluate_name(run, node->text, ret);
    case CEL_SELECT:
    case CEL_MAYBE:
    case CEL_INDEX:
    case CEL_MAYBE_INDEX:
        return evaluate_access(run, node, ret);
    case CEL_HAS:
        return evaluate_has(run, node, ret);
    case CEL_CALL:
        return evaluate_call(run, node, ret);
    case CEL_MACRO:
        return evaluate_macro(run, node, ret);
    case CEL_UNARY:
        return evaluate_unary(run, node, ret);
    case CEL_BINARY:
        return evaluate_binary(run, node, ret);
    case CEL_CONDITION:
        if (evaluate_bool(run, node->children[0], &condition) < 0)
            return -1;
        return cel_evaluate(run, node->children[condition ? 1 : 2], ret);
    }
    UNREACHABLE();
}
