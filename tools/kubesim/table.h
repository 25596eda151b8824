/* SPDX-License-Identifier: Apache-2.0
 *
 * Server-side printing: the columns and cells that kubectl get shows. */
#pragma once

#include "kubesim/model.h"

struct table_column {
    char *name;
    char *type; /* "string", "integer", "date" ... */
    char *format;
    char *description;
    int priority;
    char *path; /* JSONPath of a custom column (".status.phase"); NULL: built in */
};
void table_columns_free(struct table_column *columns, size_t count);
/* additionalPrinterColumns of a definition's version; Name is put in front. A path that kubesim cannot follow
 * is an error. */
int table_columns_from_definition(const cJSON *list, struct table_column **ret, size_t *ret_count,
                                  struct error **err);

/* An empty Table of a kind; list metadata and rows are the caller's to fill. */
cJSON *table_make(const struct kind *kind, bool columns);
/* include: "Metadata" (NULL too), "Object", "None". */
void table_add_row(const struct kubesim *sim, const struct kind *kind, cJSON *table, const cJSON *object,
                   const char *include);

/* Columns and cells of the built-in kinds (table_builtin.c). */
struct table_builtin {
    const char *plural;
    const char *columns; /* "Name|string;Ready|string;..." with "*" behind the type for the wide ones */
    void (*cells)(const struct kubesim *sim, const cJSON *object, cJSON *cells);
};
const struct table_builtin *table_builtin_find(const struct kind *kind);
/* kubectl's short age: "5s", "3m20s", "4h", "12d". The caller's. */
char *table_age(const struct kubesim *sim, const char *timestamp);
