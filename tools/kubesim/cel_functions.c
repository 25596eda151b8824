/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/cel_parts.h"

#include <errno.h>
#include <regex.h>

typedef int cel_function(struct cel_run *run, const struct cel_value *arguments, size_t count,
                         struct cel_value *ret);

static const char *const type_names[] = {"null_type", "bool", "int", "double",
                                         "string",    "list", "map", "uint"};

bool cel_is_type_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(type_names); i++)
        if (strcmp(type_names[i], name) == 0)
            return true;
    return false;
}

const char *cel_type_name(const struct cel_value *value)
{
    if (cel_is_list(value))
        return "list";
    if (cel_is_map(value))
        return "map";
    switch (value->type) {
    case CEL_NULL:
        return "null_type";
    case CEL_BOOL:
        return "bool";
    case CEL_INT:
        return "int";
    case CEL_DOUBLE:
        return "double";
    case CEL_STRING:
        return "string";
    case CEL_OPTIONAL:
        return "optional_type";
    case CEL_QUANTITY:
        return "kubernetes.Quantity";
    default:
        return "type";
    }
}

static struct cel_value make_bool(bool value)
{
    return (struct cel_value){.type = CEL_BOOL, .boolean = value};
}

static struct cel_value make_int(int64_t value)
{
    return (struct cel_value){.type = CEL_INT, .number = value};
}

static struct cel_value make_text(const char *text)
{
    return (struct cel_value){.type = CEL_STRING, .text = text};
}

static int overload(struct cel_run *run)
{
    return cel_fail(run, "no such overload");
}

static int64_t code_points(const char *text)
{
    int64_t length = 0;
    for (; *text; text++)
        length += ((unsigned char)*text & 0xC0) != 0x80;
    return length;
}

static int f_size(struct cel_run *run, const struct cel_value *arguments, size_t count, struct cel_value *ret)
{
    (void)count;
    size_t length;
    if (arguments->type == CEL_STRING)
        *ret = make_int(code_points(arguments->text));
    else if (cel_length(arguments, &length) == 0)
        *ret = make_int((int64_t)length);
    else
        return overload(run);
    return 0;
}

static int f_type(struct cel_run *run, const struct cel_value *arguments, size_t count, struct cel_value *ret)
{
    (void)run;
    (void)count;
    *ret = (struct cel_value){.type = CEL_TYPE, .text = cel_type_name(arguments)};
    return 0;
}

static int f_int(struct cel_run *run, const struct cel_value *arguments, size_t count, struct cel_value *ret)
{
    (void)count;
    char *end;
    if (arguments->type == CEL_INT) {
        *ret = *arguments;
    } else if (arguments->type == CEL_DOUBLE) {
        *ret = make_int((int64_t)arguments->real);
    } else if (arguments->type == CEL_STRING) {
        errno = 0;
        long long number = strtoll(arguments->text, &end, 10);
        if (errno || *end || end == arguments->text)
            return cel_fail(run, "strconv.ParseInt: parsing \"%s\": invalid syntax", arguments->text);
        *ret = make_int(number);
    } else {
        return overload(run);
    }
    return 0;
}

static int f_double(struct cel_run *run, const struct cel_value *arguments, size_t count,
                    struct cel_value *ret)
{
    (void)count;
    if (arguments->type != CEL_INT && arguments->type != CEL_DOUBLE)
        return overload(run);
    *ret = (struct cel_value){
        .type = CEL_DOUBLE, .real = arguments->type == CEL_INT ? (double)arguments->number : arguments->real};
    return 0;
}

static int f_string(struct cel_run *run, const struct cel_value *arguments, size_t count,
                    struct cel_value *ret)
{
    (void)count;
    if (arguments->type == CEL_STRING)
        *ret = *arguments;
    else if (arguments->type == CEL_INT)
        *ret = make_text(cel_text(run, "%lld", (long long)arguments->number));
    else if (arguments->type == CEL_DOUBLE)
        *ret = make_text(cel_text(run, "%.17g", arguments->real));
    else if (arguments->type == CEL_BOOL)
        *ret = make_text(arguments->boolean ? "true" : "false");
    else
        return overload(run);
    return 0;
}

static int f_dyn(struct cel_run *run, const struct cel_value *arguments, size_t count, struct cel_value *ret)
{
    (void)run;
    (void)count;
    *ret = *arguments;
    return 0;
}

/* --- strings
 * -------------------------------------------------------------------------------------------------- */

static bool are_texts(const struct cel_value *arguments, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (arguments[i].type != CEL_STRING)
            return false;
    return true;
}

static int f_starts_with(struct cel_run *run, const struct cel_value *arguments, size_t count,
                         struct cel_value *ret)
{
    if (!are_texts(arguments, count))
        return overload(run);
    *ret = make_bool(str_starts_with(arguments[0].text, arguments[1].text));
    return 0;
}

static int f_ends_with(struct cel_run *run, const struct cel_value *arguments, size_t count,
                       struct cel_value *ret)
{
    if (!are_texts(arguments, count))
        return overload(run);
    *ret = make_bool(str_ends_with(arguments[0].text, arguments[1].text));
    return 0;
}

static int f_contains(struct cel_run *run, const struct cel_value *arguments, size_t count,
                      struct cel_value *ret)
{
    if (!are_texts(arguments, count))
        return overload(run);
    *ret = make_bool(strstr(arguments[0].text, arguments[1].text) != NULL);
    return 0;
}

static int f_matches(struct cel_run *run, const struct cel_value *arguments, size_t count,
                     struct cel_value *ret)
{
    if (!are_texts(arguments, count))
        return overload(run);
    regex_t regex;
    if (regcomp(&regex, arguments[1].text, REG_EXTENDED | REG_NOSUB) != 0)
        return cel_fail(run, "error parsing regexp: '%s' (kubesim knows POSIX extended expressions)",
                        arguments[1].text);
    *ret = make_bool(regexec(&regex, arguments[0].text, 0, NULL, 0) == 0);
    regfree(&regex);
    return 0;
}

static int f_lower(struct cel_run *run, const struct cel_value *arguments, size_t count,
                   struct cel_value *ret)
{
    if (!are_texts(arguments, count))
        return overload(run);
    const char *text = cel_text(run, "%s", arguments[0].text);
    for (char *at = (char *)text; *at; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at);
    *ret = make_text(text);
    return 0;
}

static int f_trim(struct cel_run *run, const struct cel_value *arguments, size_t count, struct cel_value *ret)
{
    if (!are_texts(arguments, count))
        return overload(run);
    const char *start = arguments[0].text + strspn(arguments[0].text, " \t\r\n");
    size_t length = strlen(start);
    while (length > 0 && strchr(" \t\r\n", start[length - 1]))
        length--;
    *ret = make_text(cel_text(run, "%.*s", (int)length, start));
    return 0;
}

static int f_split(struct cel_run *run, const struct cel_value *arguments, size_t count,
                   struct cel_value *ret)
{
    if (!are_texts(arguments, count) || !*arguments[1].text)
        return overload(run);
    const char *separator = arguments[1].text;
    struct cel_value *values = cel_alloc(run, (strlen(arguments[0].text) + 1) * sizeof(values[0]));
    size_t used = 0;
    for (const char *at = arguments[0].text;;) {
        const char *end = strstr(at, separator);
        size_t length = end ? (size_t)(end - at) : strlen(at);
        values[used++] = make_text(cel_text(run, "%.*s", (int)length, at));
        if (!end)
            break;
        at = end + strlen(separator);
    }
    *ret = (struct cel_value){.type = CEL_VALUES, .values = values, .count = used};
    return 0;
}

static int f_join(struct cel_run *run, const struct cel_value *arguments, size_t count, struct cel_value *ret)
{
    size_t length;
    CLEANUP_BUF struct buf text = BUF_INIT(1024 * 1024);
    if (!cel_is_list(arguments) || cel_length(arguments, &length) < 0 ||
        (count == 2 && arguments[1].type != CEL_STRING))
        return overload(run);
    for (size_t i = 0; i < length; i++) {
        struct cel_value element = cel_element(arguments, i);
        if (element.type != CEL_STRING)
            return overload(run);
        if (i > 0 && count == 2)
            buf_add_text(&text, arguments[1].text);
        buf_add_text(&text, element.text);
    }
    *ret = make_text(cel_text(run, "%s", buf_text(&text)));
    return 0;
}

/* --- quantities and optionals
 * --------------------------------------------------------------------------------- */

static bool to_quantity(const struct cel_value *value, struct quantity *ret)
{
    if (value->type == CEL_QUANTITY) {
        *ret = value->quantity;
        return true;
    }
    return value->type == CEL_STRING && quantity_from_text(value->text, ret);
}

static int f_quantity(struct cel_run *run, const struct cel_value *arguments, size_t count,
                      struct cel_value *ret)
{
    (void)count;
    struct quantity quantity;
    if (arguments->type != CEL_STRING)
        return overload(run);
    if (!to_quantity(arguments, &quantity))
        return cel_fail(run, "quantities must match the regular expression "
                             "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    *ret = (struct cel_value){.type = CEL_QUANTITY, .quantity = quantity};
    return 0;
}

static int f_is_quantity(struct cel_run *run, const struct cel_value *arguments, size_t count,
                         struct cel_value *ret)
{
    (void)run;
    (void)count;
    struct quantity ignored;
    *ret = make_bool(arguments->type == CEL_STRING && to_quantity(arguments, &ignored));
    return 0;
}

static int compare(struct cel_run *run, const struct cel_value *arguments, int *ret)
{
    if (arguments[0].type != CEL_QUANTITY || arguments[1].type != CEL_QUANTITY)
        return overload(run);
    *ret = quantity_compare(&arguments[0].quantity, &arguments[1].quantity);
    return 0;
}

static int f_compare_to(struct cel_run *run, const struct cel_value *arguments, size_t count,
                        struct cel_value *ret)
{
    (void)count;
    int order = 0;
    int result = compare(run, arguments, &order);
    *ret = make_int(order);
    return result;
}

static int f_is_greater(struct cel_run *run, const struct cel_value *arguments, size_t count,
                        struct cel_value *ret)
{
    (void)count;
    int order = 0;
    int result = compare(run, arguments, &order);
    *ret = make_bool(order > 0);
    return result;
}

static int f_is_less(struct cel_run *run, const struct cel_value *arguments, size_t count,
                     struct cel_value *ret)
{
    (void)count;
    int order = 0;
    int result = compare(run, arguments, &order);
    *ret = make_bool(order < 0);
    return result;
}

static int f_sign(struct cel_run *run, const struct cel_value *arguments, size_t count, struct cel_value *ret)
{
    (void)count;
    if (arguments->type != CEL_QUANTITY)
        return overload(run);
    *ret = make_int(quantity_sign(&arguments->quantity));
    return 0;
}

static int f_as_integer(struct cel_run *run, const struct cel_value *arguments, size_t count,
                        struct cel_value *ret)
{
    (void)count;
    int64_t value = 0;
    if (arguments->type != CEL_QUANTITY)
        return overload(run);
    if (!quantity_integer(&arguments->quantity, &value))
        return cel_fail(run, "cannot convert value to integer");
    *ret = make_int(value);
    return 0;
}

static int f_or_value(struct cel_run *run, const struct cel_value *arguments, size_t count,
                      struct cel_value *ret)
{
    (void)count;
    if (arguments->type != CEL_OPTIONAL)
        return overload(run);
    *ret = arguments->boolean ? *arguments->values : arguments[1];
    return 0;
}

static int f_has_value(struct cel_run *run, const struct cel_value *arguments, size_t count,
                       struct cel_value *ret)
{
    (void)count;
    if (arguments->type != CEL_OPTIONAL)
        return overload(run);
    *ret = make_bool(arguments->boolean);
    return 0;
}

static int f_value(struct cel_run *run, const struct cel_value *arguments, size_t count,
                   struct cel_value *ret)
{
    (void)count;
    if (arguments->type != CEL_OPTIONAL)
        return overload(run);
    if (!arguments->boolean)
        return cel_fail(run, "optional.none() dereference");
    *ret = *arguments->values;
    return 0;
}

static const struct {
    const char *name;
    bool receiver;
    size_t least; /* arguments without the receiver */
    size_t most;
    cel_function *function;
} functions[] = {
    {"size", false, 1, 1, f_size},
    {"size", true, 0, 0, f_size},
    {"type", false, 1, 1, f_type},
    {"int", false, 1, 1, f_int},
    {"double", false, 1, 1, f_double},
    {"string", false, 1, 1, f_string},
    {"dyn", false, 1, 1, f_dyn},
    {"startsWith", true, 1, 1, f_starts_with},
    {"endsWith", true, 1, 1, f_ends_with},
    {"contains", true, 1, 1, f_contains},
    {"matches", true, 1, 1, f_matches},
    {"lowerAscii", true, 0, 0, f_lower},
    {"trim", true, 0, 0, f_trim},
    {"split", true, 1, 1, f_split},
    {"join", true, 0, 1, f_join},
    {"quantity", false, 1, 1, f_quantity},
    {"isQuantity", false, 1, 1, f_is_quantity},
    {"compareTo", true, 1, 1, f_compare_to},
    {"isGreaterThan", true, 1, 1, f_is_greater},
    {"isLessThan", true, 1, 1, f_is_less},
    {"sign", true, 0, 0, f_sign},
    {"asInteger", true, 0, 0, f_as_integer},
    {"orValue", true, 1, 1, f_or_value},
    {"hasValue", true, 0, 0, f_has_value},
    {"value", true, 0, 0, f_value},
};

static cel_function *find(const char *name, bool receiver, size_t arguments)
{
    for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
        if (functions[i].receiver == receiver && strcmp(functions[i].name, name) == 0 &&
            arguments >= functions[i].least && arguments <= functions[i].most)
            return functions[i].function;
    return NULL;
}

bool cel_function_is_known(const char *name, bool receiver, size_t arguments)
{
    return find(name, receiver, arguments) != NULL;
}

int cel_call(struct cel_run *run, const char *name, bool receiver, const struct cel_value *arguments,
             size_t count, struct cel_value *ret)
{
    cel_function *function = find(name, receiver, count - receiver);
    ENSURE(function);
    return function(run, arguments, count, ret);
}
