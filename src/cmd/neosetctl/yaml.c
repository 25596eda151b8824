/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/yaml.h"

#include <ctype.h>
#include <strings.h>

enum { INDENT = 2 };

/* Letters, digits and a few signs, beginning with a letter or a slash, and no word that means something: no
 * reader takes it for anything but text. Everything else is quoted as JSON is, which YAML reads too. */
static bool is_plain(const char *text)
{
    static const char *const words[] = {"true", "false", "yes", "no",  "on", "off",
                                        "null", "y",     "n",   "nan", "inf"};
    if (!isalpha((unsigned char)*text) && *text != '/')
        return false;
    for (const char *at = text; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("-_./", *at) && !(*at == ':' && at[1] && at[1] != ' '))
            return false;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return false;
    return true;
}

/* Lines that a literal block gives back as they are: more than one, the last one ended, none of blanks alone,
 * the first without an indentation of its own, and nothing in them that YAML does not print. */
static bool is_lines(const char *text)
{
    size_t length = strlen(text);
    const char *first_end = strchr(text, '\n');
    if (!first_end || first_end == text + length - 1 || !str_ends_with(text, "\n") ||
        strchr(" \t\n", *text) || text[length - 2] == '\n')
        return false;
    for (const char *at = text; *at; at++)
        if ((*at < ' ' && *at != '\n' && *at != '\t') || *at == 0x7f)
            return false;
    return true;
}

static void add_indent(struct buf *out, int depth)
{
    for (int i = 0; i < depth * INDENT; i++)
        buf_add_char(out, ' ');
}

static void add_lines(struct buf *out, const char *text, int depth)
{
    buf_add_text(out, "|\n");
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (length > 0)
            add_indent(out, depth);
        buf_add(out, text, length + 1);
        text += length + 1;
    }
}

static void add_text(struct buf *out, const char *text)
{
    if (is_plain(text)) {
        buf_add_text(out, text);
        return;
    }
    CLEANUP_JSON cJSON *node = json_new_str(text);
    CLEANUP_FREE char *quoted = json_print(node);
    buf_add_text(out, quoted);
}

static bool is_block(const cJSON *node)
{
    return (cJSON_IsObject(node) || cJSON_IsArray(node)) && node->child;
}

/* The parser bounds the depth. in_line: the first key stands behind a dash. */
static void add_block(struct buf *out, const cJSON *tree, int depth, bool in_line)
{
    bool is_list = cJSON_IsArray(tree);
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, tree) {
        if (!in_line)
            add_indent(out, depth);
        in_line = false;
        if (is_list)
            buf_add_char(out, '-');
        else
            add_text(out, item->string);
        if (!is_list)
            buf_add_char(out, ':');
        if (is_block(item)) {
            /* A list may stand at its key's own depth; one deeper reads better. */
            buf_add_char(out, is_list ? ' ' : '\n');
            add_block(out, item, depth + 1, is_list);
            continue;
        }
        buf_add_char(out, ' ');
        if (cJSON_IsString(item) && is_lines(item->valuestring)) {
            add_lines(out, item->valuestring, depth + 1);
            continue;
        }
        if (cJSON_IsString(item)) {
            add_text(out, item->valuestring);
        } else {
            CLEANUP_FREE char *text = json_print(item);
            buf_add_text(out, text);
        }
        buf_add_char(out, '\n');
    }
}

void ctl_yaml_print(struct buf *out, const cJSON *tree)
{
    if (is_block(tree)) {
        add_block(out, tree, 0, false);
        return;
    }
    CLEANUP_FREE char *text = json_print(tree);
    buf_add_text(out, text);
    buf_add_char(out, '\n');
}
