/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes a List apart while it arrives: each element of "items" is handed over as soon as it is whole, the
 * rest (kind, metadata) is kept. So a page costs the memory of its largest object, however large the page is.
 * Finds boundaries only: elements and envelope are checked by who parses them. */
#pragma once

#include "base/buf.h"

enum {
    /* Bytes of one object. etcd takes 1.5 MiB in a request as it comes, which is twice as much as JSON, and
     * five where somebody raised that. */
    LIST_ITEM_MAX = 8 * 1024 * 1024,
    LIST_ENVELOPE_MAX = 1 * 1024 * 1024, /* bytes of everything else */
};

/* text is the element's JSON, valid during the call. False ends the feeding. */
typedef bool list_split_item(void *context, const char *text, size_t length);

struct list_split {
    list_split_item *item;
    void *context;
    struct buf element;
    struct buf envelope;
    char key[8]; /* the member's name at the top, cut; key_length is its true length */
    size_t key_length;
    int depth;
    bool in_string;
    bool escaped;
    bool expects_key;
    bool in_items;
    bool in_element;
    bool after_element; /* a comma is due */
    bool complete;      /* the document's last brace was seen */
};

void list_split_begin(struct list_split *split, list_split_item *item, void *context);
/* 0; -ERROR_TOO_LARGE; -ERROR_INVALID: this is no List; -ERROR_CANCELLED: item said so. */
int list_split_feed(struct list_split *split, const char *bytes, size_t length);
/* The document without its elements, once complete. */
const char *list_split_envelope(const struct list_split *split, size_t *ret_length);
void list_split_done(struct list_split *split);
