/* SPDX-License-Identifier: Apache-2.0 */
#include "quantity_table.h"

#include "volume/quantity.h"

enum { FIELDS_MAX = 5, LINES_MAX = 1000000 };

/* How a row differs, or NULL; the caller's. */
typedef char *row_check(char **fields, size_t count);

static size_t split(char *line, char **fields)
{
    size_t count = 0;
    while (line && count < FIELDS_MAX)
        fields[count++] = strsep(&line, "\t");
    return line ? 0 : count;
}

/* "2.500" -> "2.5", "0.00" -> "0" */
static char *plain_number(const char *text)
{
    char *plain = xstrdup(text);
    size_t length = strlen(plain);
    if (strchr(plain, '.')) {
        while (plain[length - 1] == '0')
            length--;
        if (plain[length - 1] == '.')
            length--;
    }
    plain[length] = '\0';
    return plain;
}

static char *check_value(const char *text, const char *exact, const char *canonical,
                         const struct quantity *quantity)
{
    CLEANUP_FREE char *want = plain_number(exact);
    CLEANUP_FREE char *got = quantity_exact_text(quantity);
    if (strcmp(want, got) != 0)
        return xasprintf("%s is %s, got %s", text, want, got);
    CLEANUP_FREE char *echo = quantity_echo(text);
    if (!str_equal(echo, canonical))
        return xasprintf("%s is echoed as %s, got %s", text, canonical, echo ? echo : "none");
    return NULL;
}

static const char *verdict_of(int result)
{
    return result == 0 ? "ok" : result == -ERROR_TOO_LARGE ? "large" : "invalid";
}

static char *check_parse(char **fields, size_t count)
{
    CLEANUP_JSON cJSON *node = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    if (count != FIELDS_MAX || json_parse(fields[1], strlen(fields[1]), &node, &err) < 0 ||
        !cJSON_IsString(node))
        return xasprintf("a parse row has a JSON string, a verdict, a value and a text behind it");
    const char *text = node->valuestring;
    struct quantity quantity;
    const char *got = verdict_of(quantity_parse(text, strlen(text), &quantity, NULL));
    if (strcmp(got, fields[2]) != 0)
        return xasprintf("%s is %s, got %s", fields[1], fields[2], got);
    return strcmp(got, "ok") == 0 ? check_value(text, fields[3], fields[4], &quantity) : NULL;
}

static char *check_compare(char **fields, size_t count)
{
    struct quantity a, b;
    if (count != 4 || quantity_parse(fields[1], strlen(fields[1]), &a, NULL) < 0 ||
        quantity_parse(fields[2], strlen(fields[2]), &b, NULL) < 0)
        return xasprintf("a compare row has two quantities and a number behind it");
    int order = quantity_compare(&a, &b);
    int back = quantity_compare(&b, &a);
    CLEANUP_FREE char *got = xasprintf("%d", (order > 0) - (order < 0));
    if (strcmp(got, fields[3]) != 0)
        return xasprintf("%s to %s is %s, got %s", fields[1], fields[2], fields[3], got);
    if ((back > 0) - (back < 0) != (order < 0) - (order > 0))
        return xasprintf("%s to %s is not the contrary of the way back", fields[1], fields[2]);
    return NULL;
}

void quantity_table_check(char *text, void (*differs)(void *context, size_t line, const char *sentence),
                          void *context, struct quantity_table_result *ret)
{
    *ret = (struct quantity_table_result){0};
    size_t number = 0;
    for (char *line; number < LINES_MAX && (line = strsep(&text, "\n"));) {
        number++;
        if (line[0] == '\0' || line[0] == '#')
            continue;
        char *fields[FIELDS_MAX];
        size_t count = split(line, fields);
        row_check *check = count == 0                        ? NULL
                           : str_equal(fields[0], "parse")   ? check_parse
                           : str_equal(fields[0], "compare") ? check_compare
                                                             : NULL;
        CLEANUP_FREE char *difference =
            check ? check(fields, count) : xstrdup("a row begins with parse or compare");
        *(difference ? &ret->failed : &ret->passed) += 1;
        if (difference)
            differs(context, number, difference);
    }
}
