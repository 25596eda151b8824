/* SPDX-License-Identifier: Apache-2.0
 *
 * What a YAML scalar means: the YAML 1.1 subset that kubectl reads (null, bool, integers in four bases with
 * underscores, decimal floats, everything else text; no base 60, dates stay text). Only yaml.c includes this.
 */
#pragma once

#include "base/json.h"

enum yaml_kind { YAML_NULL, YAML_BOOL, YAML_INT, YAML_FLOAT, YAML_TEXT };

/* A plain scalar's meaning, as a new node of the caller's. *ret_kind tells which kind it was found to be. The
 * node is NULL for what JSON cannot hold (.inf, .nan). text is NUL-terminated. */
cJSON *yaml_resolve(const char *text, enum yaml_kind *ret_kind);
/* The key that kubectl makes of a float (through 32 bits, with an exponent from 1e6); the caller's. */
char *yaml_float_key(const char *text);
/* Decodes base64 (white space allowed); NULL when it is none or does not decode to UTF-8 text without zeros.
 * The caller's. */
char *yaml_decode_binary(const char *text);
