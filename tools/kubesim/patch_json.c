/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/patch.h"

#include "kubesim/model.h"

/* One step of a JSON pointer, decoded; *at moves behind it. The caller's. */
static char *next_token(const char **at)
{
    size_t length = strcspn(*at + 1, "/");
    char *token = xstrndup(*at + 1, length);
    *at += length + 1;
    char *out = token;
    for (const char *in = token; *in; in++) {
        if (in[0] == '~' && (in[1] == '0' || in[1] == '1')) {
            *out++ = in[1] == '0' ? '~' : '/';
            in++;
        } else {
            *out++ = *in;
        }
    }
    *out = '\0';
    return token;
}

/* An array index; "-" and the size itself only where a new item may go. -1: none. */
static int array_index(const cJSON *array, const char *token, bool insert)
{
    PRE(token);
    int size = cJSON_GetArraySize(array);
    if (insert && strcmp(token, "-") == 0)
        return size;
    size_t digits = strspn(token, "0123456789");
    if (digits == 0 || digits > 6 || token[digits] || (token[0] == '0' && digits > 1))
        return -1;
    int index = (int)strtol(token, NULL, 10);
    return index < size + insert ? index : -1;
}

static cJSON *child_of(cJSON *node, const char *token)
{
    if (cJSON_IsArray(node)) {
        int index = array_index(node, token, false);
        return index < 0 ? NULL : cJSON_GetArrayItem(node, index);
    }
    return json_get(node, token);
}

/* The parent of what the pointer names and its last token (the caller's); NULL when a step is missing. */
static cJSON *find_parent(cJSON *root, const char *pointer, char **ret_token)
{
    cJSON *node = root;
    const char *at = pointer;
    if (*at != '/')
        return NULL;
    for (;;) {
        CLEANUP_FREE char *token = next_token(&at);
        if (!*at) {
            *ret_token = STEAL(token);
            return node;
        }
        node = child_of(node, token);
        if (!node)
            return NULL;
    }
}

static cJSON *find(cJSON *root, const char *pointer)
{
    if (!*pointer)
        return root;
    CLEANUP_FREE char *token = NULL;
    cJSON *parent = find_parent(root, pointer, &token);
    return parent ? child_of(parent, token) : NULL;
}

static int missing(const char *operation, const char *pointer, struct error **err)
{
    return error_set(err, ERROR_REFUSED,
                     "%s operation does not apply: doc is missing path: %s: missing value", operation,
                     pointer);
}

/* Takes value. */
static int add(cJSON **target, const char *pointer, cJSON *value, struct error **err)
{
    if (!*pointer) {
        json_delete(*target);
        *target = value;
        return 0;
    }
    CLEANUP_FREE char *token = NULL;
    cJSON *parent = find_parent(*target, pointer, &token);
    int index = cJSON_IsArray(parent) ? array_index(parent, token, true) : 0;
    if ((!cJSON_IsObject(parent) && !cJSON_IsArray(parent)) || index < 0) {
        json_delete(value);
        return missing("add", pointer, err);
    }
    if (cJSON_IsObject(parent))
        json_set_item(parent, token, value);
    else
        tree_insert(parent, index, value);
    return 0;
}

static int remove_at(cJSON *target, const char *pointer, const char *operation, cJSON **ret_removed,
                     struct error **err)
{
    CLEANUP_FREE char *token = NULL;
    cJSON *parent = *pointer ? find_parent(target, pointer, &token) : NULL;
    cJSON *node = parent ? child_of(parent, token) : NULL;
    if (!node)
        return missing(operation, pointer, err);
    cJSON_DetachItemViaPointer(parent, node);
    *ret_removed = node;
    return 0;
}

static int replace(cJSON **target, const char *pointer, const cJSON *value, struct error **err)
{
    if (!*pointer)
        return add(target, pointer, json_copy(value), err);
    CLEANUP_FREE char *token = NULL;
    cJSON *parent = find_parent(*target, pointer, &token);
    cJSON *node = parent ? child_of(parent, token) : NULL;
    if (!node)
        return missing("replace", pointer, err);
    cJSON *copy = json_copy(value);
    if (cJSON_IsObject(parent))
        json_set_item(parent, token, copy);
    else
        ENSURE(cJSON_ReplaceItemViaPointer(parent, node, copy));
    return 0;
}

static int apply_operation(cJSON **target, const cJSON *operation, struct error **err)
{
    const char *name = json_str(operation, "op");
    const char *pointer = json_str(operation, "path");
    const char *from = json_str(operation, "from");
    const cJSON *value = json_get(operation, "value");
    if (!name || !pointer)
        return error_set(err, ERROR_REFUSED, "an operation needs op and path");
    CLEANUP_JSON cJSON *moved = NULL;
    int result;
    if (strcmp(name, "remove") == 0)
        return remove_at(*target, pointer, name, &moved, err);
    if (strcmp(name, "move") == 0 || strcmp(name, "copy") == 0) {
        const cJSON *source = from ? find(*target, from) : NULL;
        if (!source)
            return missing(name, from ? from : "", err);
        CLEANUP_JSON cJSON *copy = json_copy(source);
        result = *name == 'm' ? remove_at(*target, from, name, &moved, err) : 0;
        return result < 0 ? result : add(target, pointer, STEAL(copy), err);
    }
    if (!value)
        return error_set(err, ERROR_REFUSED, "the operation %s needs a value", name);
    if (strcmp(name, "add") == 0)
        return add(target, pointer, json_copy(value), err);
    if (strcmp(name, "replace") == 0)
        return replace(target, pointer, value, err);
    if (strcmp(name, "test") == 0)
        return json_equal(find(*target, pointer), value)
                   ? 0
                   : error_set(err, ERROR_REFUSED, "testing value %s failed: test failed", pointer);
    return error_set(err, ERROR_REFUSED, "Unexpected kind: %s", name);
}

int patch_json(cJSON **target, const cJSON *patch, struct error **err)
{
    if (!cJSON_IsArray(patch))
        return error_set(err, ERROR_INVALID,
                         "error decoding patch: json: cannot unmarshal object into Go value of type "
                         "[]handlers.jsonPatchOp");
    if (cJSON_GetArraySize(patch) > PATCH_OPERATIONS_MAX)
        return error_set(err, ERROR_INVALID, "The allowed maximum operations in a JSON patch is %d",
                         PATCH_OPERATIONS_MAX);
    const cJSON *operation;
    cJSON_ArrayForEach (operation, patch) {
        int result = apply_operation(target, operation, err);
        if (result < 0)
            return result;
    }
    return 0;
}
