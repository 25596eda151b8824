/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of cel: the tree of an expression, values, and the three parts (parse, evaluate, functions). */
#pragma once

#include "kubesim/cel.h"
#include "kubesim/quantity.h"

enum cel_node_type {
    CEL_LITERAL,     /* value in the literal fields */
    CEL_LIST,        /* children */
    CEL_MAP,         /* children: key, value, key, value ... */
    CEL_NAME,        /* text */
    CEL_SELECT,      /* child 0 . text */
    CEL_MAYBE,       /* child 0 .? text */
    CEL_INDEX,       /* child 0 [ child 1 ] */
    CEL_MAYBE_INDEX, /* child 0 [? child 1 ] */
    CEL_HAS,         /* has(child 0 . text) */
    CEL_CALL,        /* text(children), or child 0 . text(other children) */
    CEL_MACRO, /* text = all, exists ...; child 0: the range, name: the variable, children from 1: expressions
                */
    CEL_UNARY, /* text = "!" or "-" */
    CEL_BINARY,    /* text = the operator */
    CEL_CONDITION, /* child 0 ? child 1 : child 2 */
};

enum cel_type {
    CEL_NULL,
    CEL_BOOL,
    CEL_INT,
    CEL_DOUBLE,
    CEL_STRING,
    CEL_VALUES, /* a list made by an expression */
    CEL_PAIRS,  /* a map made by an expression: values[2i], values[2i+1] */
    CEL_JSON,   /* an array or object of the data */
    CEL_OPTIONAL,
    CEL_QUANTITY,
    CEL_TYPE, /* text names it */
};

struct cel_value {
    enum cel_type type;
    bool boolean; /* BOOL; OPTIONAL: has a value */
    int64_t number;
    double real;
    const char *text;
    const cJSON *json;
    struct cel_value *values; /* VALUES, PAIRS (2 * count); OPTIONAL: one */
    size_t count;
    struct quantity quantity;
};

enum { CEL_CHILDREN_MAX = 64, CEL_STEPS_MAX = 300000, CEL_DEPTH_MAX = 100, CEL_VARIABLES_MAX = 16 };

struct cel_node {
    enum cel_node_type type;
    char *text;
    char *name;
    struct cel_value literal; /* its text is owned through `text` */
    struct cel_node *children[CEL_CHILDREN_MAX];
    size_t count;
};

/* The whole expression; -ERROR_UNSUPPORTED with the place for what cannot be read. */
int cel_parse(const char *text, struct cel_node **ret, bool *ret_old, struct error **err);
void cel_node_free(struct cel_node *node);

/* One evaluation: variables, memory that lives as long as it, a bound on steps. */
struct cel_run {
    struct {
        const char *name;
        struct cel_value value;
    } variables[CEL_VARIABLES_MAX];
    size_t variable_count;
    void **memory;
    size_t memory_count;
    size_t memory_room;
    size_t steps;
    char *problem; /* why it failed */
};
void cel_run_done(struct cel_run *run);
void *cel_alloc(struct cel_run *run, size_t size);
const char *cel_text(struct cel_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns -1 and keeps the first problem. */
int cel_fail(struct cel_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

int cel_evaluate(struct cel_run *run, const struct cel_node *node, struct cel_value *ret);
struct cel_value cel_from_json(const cJSON *node);
bool cel_equal(const struct cel_value *a, const struct cel_value *b);
/* False when the two cannot be ordered. */
bool cel_order(const struct cel_value *a, const struct cel_value *b, int *ret);
/* Elements of a list, or keys of a map; -1 when the value is neither. */
int cel_length(const struct cel_value *value, size_t *ret);
struct cel_value cel_element(const struct cel_value *value, size_t index);
bool cel_is_list(const struct cel_value *value);
bool cel_is_map(const struct cel_value *value);
/* The member of a map; false when absent. */
bool cel_member(const struct cel_value *map, const struct cel_value *key, struct cel_value *ret);

/* True when a function (receiver false) or method with so many arguments is known. */
bool cel_function_is_known(const char *name, bool receiver, size_t arguments);
int cel_call(struct cel_run *run, const char *name, bool receiver, const struct cel_value *arguments,
             size_t count, struct cel_value *ret);
/* "int", "string", "map" ... */
const char *cel_type_name(const struct cel_value *value);
bool cel_is_type_name(const char *name);
