/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list_split.h"

#include <ctype.h>

void list_split_begin(struct list_split *split, list_split_item *item, void *context)
{
    *split = (struct list_split){
        .item = item,
        .context = context,
        .element = BUF_INIT(LIST_ITEM_MAX),
        .envelope = BUF_INIT(LIST_ENVELOPE_MAX),
    };
}

void list_split_done(struct list_split *split)
{
    buf_done(&split->element);
    buf_done(&split->envelope);
}

const char *list_split_envelope(const struct list_split *split, size_t *ret_length)
{
    PRE(split->complete);
    *ret_length = split->envelope.length;
    return buf_text(&split->envelope);
}

static bool is_separator(const struct list_split *split)
{
    return split->in_items && !split->in_element;
}

/* The bytes belong to the present element, to the envelope, or (between elements) to nobody. */
static int keep(struct list_split *split, const char *bytes, size_t length)
{
    if (is_separator(split))
        return 0;
    return buf_add(split->in_element ? &split->element : &split->envelope, bytes, length);
}

static void in_string(struct list_split *split, char byte)
{
    if (split->escaped) {
        split->escaped = false;
    } else if (byte == '\\') {
        split->escaped = true;
    } else if (byte == '"') {
        split->in_string = false;
        if (split->depth == 1)
            split->expects_key = false;
        return;
    }
    if (split->depth != 1 || !split->expects_key)
        return;
    if (split->key_length < sizeof(split->key))
        split->key[split->key_length] = byte;
    split->key_length++;
}

static bool key_is_items(const struct list_split *split)
{
    return split->key_length == 5 && memcmp(split->key, "items", 5) == 0;
}

/* An opening bracket. *ret_boundary: bytes from here on belong elsewhere; 1 when it is itself the last of the
 * old. */
static int open_bracket(struct list_split *split, char byte, int *ret_boundary)
{
    *ret_boundary = -1;
    if (is_separator(split)) {
        if (byte != '{' || split->after_element)
            return -ERROR_INVALID;
        *ret_boundary = 0;
    } else if (split->depth == 0 && (byte != '{' || split->complete)) {
        return -ERROR_INVALID;
    } else if (split->depth == 1 && byte == '[' && !split->expects_key && key_is_items(split)) {
        *ret_boundary = 1;
    }
    split->depth++;
    split->expects_key = split->depth == 1;
    return 0;
}

static int feed_open(struct list_split *split, const char *at, const char **from)
{
    int boundary;
    int result = open_bracket(split, *at, &boundary);
    if (result < 0 || boundary < 0)
        return result;
    if (boundary == 0) {
        split->in_element = true;
        *from = at;
        return 0;
    }
    result = keep(split, *from, (size_t)(at + 1 - *from));
    split->in_items = true;
    split->after_element = false;
    return result;
}

static int feed_close(struct list_split *split, const char *at, const char **from)
{
    if (split->depth == 0)
        return -ERROR_INVALID;
    split->depth--;
    if (split->in_element && split->depth == 2) {
        int result = keep(split, *from, (size_t)(at + 1 - *from));
        if (result < 0)
            return result;
        split->in_element = false;
        split->after_element = true;
        bool more = split->item(split->context, buf_text(&split->element), split->element.length);
        buf_clear(&split->element);
        return more ? 0 : -ERROR_CANCELLED;
    }
    if (split->in_items && split->depth == 1) {
        split->in_items = false;
        *from = at;
    }
    split->complete = split->complete || split->depth == 0;
    return 0;
}

static int feed_other(struct list_split *split, char byte)
{
    if (byte == '"') {
        if (is_separator(split))
            return -ERROR_INVALID;
        split->in_string = true;
        if (split->depth == 1 && split->expects_key)
            split->key_length = 0;
        return 0;
    }
    if (is_separator(split)) {
        bool comma = byte == ',' && split->after_element;
        split->after_element = split->after_element && !comma;
        return comma || isspace((unsigned char)byte) ? 0 : -ERROR_INVALID;
    }
    if (byte == ',' && split->depth == 1)
        split->expects_key = true;
    return 0;
}

int list_split_feed(struct list_split *split, const char *bytes, size_t length)
{
    const char *from = bytes; /* bytes from here to the present one are not kept yet */
    for (const char *at = bytes; at < bytes + length; at++) {
        int result = 0;
        if (split->in_string)
            in_string(split, *at);
        else if (*at == '{' || *at == '[')
            result = feed_open(split, at, &from);
        else if (*at == '}' || *at == ']')
            result = feed_close(split, at, &from);
        else
            result = feed_other(split, *at);
        if (result < 0)
            return result;
        if (is_separator(split))
            from = at + 1;
    }
    return keep(split, from, (size_t)(bytes + length - from));
}
