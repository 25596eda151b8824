/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML through libyaml, into the JSON trees of base/json.h, as kubectl reads it (YAML 1.1 scalars). Anchors
 * and merge keys are expanded, bounded in total size; depth and input size are bounded; documents keep their
 * order. A key that is a number or a boolean becomes the text that kubectl makes of it. Duplicate keys, tags
 * we do not know, and keys that are null, a mapping or a list are refused with the line. Never writes YAML.
 */
#pragma once

#include "base/json.h"

enum { YAML_DOCUMENTS_MAX = 10000 };

struct yaml_documents {
    cJSON **items; /* in the order of the stream; empty documents are left out */
    int *lines;    /* 1-based line where each begins */
    size_t count;
};

/* Reads a whole stream. name is for messages (a file name). On failure nothing is returned. */
int yaml_parse(const char *text, size_t length, const char *name, struct yaml_documents *ret,
               struct error **err);
/* The first document, or -ERROR_NOT_FOUND when there is none. The tree is the caller's. */
int yaml_parse_one(const char *text, size_t length, const char *name, cJSON **ret_tree, struct error **err);
void yaml_documents_done(struct yaml_documents *documents);
