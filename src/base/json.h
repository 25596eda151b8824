/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON through cJSON, with its traps closed: parsing is bounded by length and depth and rejects trailing
 * bytes, invalid UTF-8, control characters and \u0000; of a key that is there twice the last value counts, as
 * on the server; look-ups are case-sensitive; every number that a double cannot hold exactly keeps its
 * literal text (as a cJSON_Raw node), so that it prints as it came. Code outside src/base reads and builds
 * trees only through these functions (plus cJSON's own iteration macros). */
#pragma once

#include "base/buf.h"

#include <cjson/cJSON.h>

enum { JSON_DEPTH_MAX = 200 };

/* The tree is the caller's (cJSON_Delete, or CLEANUP_JSON). */
int json_parse(const char *text, size_t length, cJSON **ret_tree, struct error **err);
/* A member that is checked as all else and not kept: in objects that are the member `parent` of another one,
 * depth levels deep (the text's own value is the first). A key that is written with escapes is kept. */
struct json_omission {
    const char *parent;
    const char *key;
    int depth;
};
int json_parse_without(const char *text, size_t length, const struct json_omission *omission,
                       cJSON **ret_tree, struct error **err);
/* An object with one member of the text alone: the one at path (keys, NULL at the end), under its own key,
 * without what omission names below it (depth: as in the text). Reads no further than its end, so that what
 * follows may be anything. -ERROR_NOT_FOUND: there is no such member. */
int json_parse_part(const char *text, size_t length, const char *const *path,
                    const struct json_omission *omission, cJSON **ret_tree, struct error **err);
/* Compact text of a tree, the caller's. */
char *json_print(const cJSON *tree);
/* The same with object keys sorted at every level: equal trees print equal bytes. null members stay. */
char *json_print_sorted(const cJSON *tree);

/* The same of an object with these members of object alone; keys are sorted, those that are absent or null
 * are left out. object: NULL and what is no object have none. */
char *json_print_members(const cJSON *object, const char *const *keys, size_t count);

/* Member by exact key, or NULL when object is NULL, not an object, or lacks it, or key is NULL (that of an
 * array's item). */
cJSON *json_get(const cJSON *object, const char *key);
/* Nested members: json_path(pod, "metadata", "labels", NULL). */
cJSON *json_path(const cJSON *object, ...) __attribute__((sentinel));
/* The string at key, owned by the tree; NULL when absent or not a string. */
const char *json_str(const cJSON *object, const char *key);
/* Nested: the string at the path, or NULL. */
const char *json_path_str(const cJSON *object, ...) __attribute__((sentinel));
/* True and *ret set when key holds an integer in the range of int64 (also above 2^53). */
bool json_int64(const cJSON *object, const char *key, int64_t *ret);
/* The integer at key, or fallback when absent or not an integer. */
int64_t json_int64_or(const cJSON *object, const char *key, int64_t fallback);
bool json_bool_or(const cJSON *object, const char *key, bool fallback);
/* Is that text among the items? Also of NULL, or of what is no array. */
bool json_has_str(const cJSON *array, const char *text);
/* The value of a node itself. */
bool json_node_int64(const cJSON *node, int64_t *ret);

/* Builders: add a member; the object owns it. Keys must not be there yet (json_set_* replace). */
cJSON *json_add_object(cJSON *object, const char *key);
cJSON *json_add_array(cJSON *object, const char *key);
void json_add_str(cJSON *object, const char *key, const char *text);
void json_add_int64(cJSON *object, const char *key, int64_t number);
void json_add_bool(cJSON *object, const char *key, bool value);
/* Takes ownership of item. */
void json_add_item(cJSON *object, const char *key, cJSON *item);
void json_append_item(cJSON *array, cJSON *item);
void json_append_str(cJSON *array, const char *text);
void json_append_int64(cJSON *array, int64_t number);
/* Replaces or adds; takes ownership of item. */
void json_set_item(cJSON *object, const char *key, cJSON *item);
void json_set_str(cJSON *object, const char *key, const char *text);
/* The object at key, made when absent or not an object. */
cJSON *json_ensure_object(cJSON *object, const char *key);
void json_remove(cJSON *object, const char *key);
/* Changes object as was was changed to become is: members that changed are set, those that went are removed,
 * and the rest stays. All three are objects; an array changes as a whole. */
void json_carry(cJSON *object, const cJSON *was, const cJSON *is);
cJSON *json_new_object(void);
cJSON *json_new_array(void);
cJSON *json_new_str(const char *text);
cJSON *json_new_int64(int64_t number);
/* text is JSON, and printed as it is. */
cJSON *json_new_raw(const char *text);
cJSON *json_copy(const cJSON *tree);
/* Equal by meaning: key order does not matter; null and absent differ; 1 and 1.0 differ as text only when
 * raw. */
bool json_equal(const cJSON *a, const cJSON *b);

void json_delete(cJSON *tree);
DEFINE_CLEANUP(cleanup_json, cJSON, json_delete);
#define CLEANUP_JSON __attribute__((cleanup(cleanup_json)))
