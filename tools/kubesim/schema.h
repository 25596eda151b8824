/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenAPI v3 schemas, compiled once: of the built-in kinds (schemas.inc, the real server's own) and of a
 * CustomResourceDefinition (structural schemas). Used for pruning, defaults, validation, and for what lists
 * merge by. */
#pragma once

#include "base/json.h"

#include <regex.h>

struct cel_rule; /* cel.h */

enum schema_type {
    SCHEMA_ANY,
    SCHEMA_OBJECT,
    SCHEMA_ARRAY,
    SCHEMA_STRING,
    SCHEMA_INTEGER,
    SCHEMA_NUMBER,
    SCHEMA_BOOLEAN,
    SCHEMA_INT_OR_STRING,
    SCHEMA_QUANTITY, /* string or number */
};

enum schema_list { SCHEMA_LIST_ATOMIC, SCHEMA_LIST_SET, SCHEMA_LIST_MAP };

enum { SCHEMA_MAP_KEYS_MAX = 4, SCHEMA_RULES_MAX = 64 };

struct schema_property {
    char *name;
    struct schema *schema;
};

struct schema {
    const struct schema *own_metadata; /* of a custom kind: what its definition asks of metadata, or NULL */
    const struct schema *reference;    /* a named schema that this one stands for; see schema_follow() */
    enum schema_type type;
    struct schema_property *properties; /* sorted by name */
    size_t property_count;
    uint16_t *slots; /* where a name is looked for: 0, or 1 + the place of a property; open addressing */
    size_t slot_mask;
    struct schema *additional; /* values of a map; NULL: none declared */
    struct schema *items;
    cJSON *required; /* array of names, or NULL */
    cJSON *default_value;
    cJSON *enumeration;
    cJSON *value_checks; /* allOf, anyOf, oneOf, not: an object of these, or NULL */
    char *format;
    char *pattern;
    regex_t regex; /* compiled pattern, when pattern is set */
    bool has_minimum, has_maximum, exclusive_minimum, exclusive_maximum;
    double minimum, maximum;
    double multiple_of;                                                                   /* 0: none */
    int64_t min_length, max_length, min_items, max_items, min_properties, max_properties; /* -1: none */
    bool unique_items;
    bool builtin;    /* of a built-in kind */
    bool micro_time; /* metav1.MicroTime */
    bool nullable;
    bool preserve_unknown;
    bool embedded;   /* x-kubernetes-embedded-resource */
    bool atomic_map; /* x-kubernetes-map-type: atomic */
    enum schema_list list;
    char *map_keys[SCHEMA_MAP_KEYS_MAX]; /* of SCHEMA_LIST_MAP */
    size_t map_key_count;
    char *merge_key;  /* x-kubernetes-patch-merge-key; "" for a merged list of scalars; NULL: replace */
    bool retain_keys; /* x-kubernetes-patch-strategy has retainKeys */
    struct cel_rule *rules[SCHEMA_RULES_MAX];
    size_t rule_count;
};

struct schema_set;

/* The schemas of the built-in kinds. */
struct schema_set *schema_set_builtin(void);
/* One root from openAPIV3Schema of a definition; meta: the schema of ObjectMeta, or NULL. An unknown
 * construct, a bad pattern or a CEL rule that kubesim cannot evaluate is an error with the place and a
 * sentence. */
int schema_set_custom(const cJSON *tree, const struct schema *meta, struct schema_set **ret,
                      const struct schema **ret_root, struct error **err);
/* NULL when there is no such definition. */
const struct schema *schema_set_find(const struct schema_set *set, const char *name);
void schema_set_free(struct schema_set *set);

static inline const struct schema *schema_follow(const struct schema *schema)
{
    while (schema && schema->reference)
        schema = schema->reference;
    return schema;
}
/* The schema of a member: property, else additional; NULL when unknown. schema may be NULL. */
const struct schema *schema_member(const struct schema *schema, const char *name);
/* The wrapper of a property, with its own merge settings. */
const struct schema *schema_member_raw(const struct schema *schema, const char *name);

/* True when a rule stands anywhere in it. */
bool schema_has_rules(const struct schema *schema);

/* The built-in definitions as JSON text, for /openapi/v3: calls visit for each. */
void schema_visit_builtin(void (*visit)(void *context, const char *name, const char *json), void *context);
