/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's path taken apart: decoded segments and query parameters. Bounded; knows no resources. */
#pragma once

#include "base/buf.h"

enum { PATH_SEGMENTS_MAX = 12, QUERY_PARAMETERS_MAX = 32 };

struct path {
    char *text; /* the decoded bytes all strings below point into */
    const char *segments[PATH_SEGMENTS_MAX];
    size_t segment_count;
    struct {
        const char *name;
        const char *value;
    } parameters[QUERY_PARAMETERS_MAX];
    size_t parameter_count;
};

/* Takes an encoded path with its query apart. -ERROR_INVALID: no leading slash, a bad escape, a NUL, too
 * long. */
int path_parse(const char *encoded, struct path *ret, struct error **err);
void path_done(struct path *path);
/* The first value of a parameter, or NULL. */
const char *path_parameter(const struct path *path, const char *name);
/* True for "true" and "1". */
bool path_parameter_true(const struct path *path, const char *name);
/* The path without its query, joined again from its decoded segments; the caller's. */
char *path_join(const struct path *path);
