/* SPDX-License-Identifier: Apache-2.0
 *
 * A tree as YAML that kubectl reads back as the same tree: block style, keys in their order, texts quoted
 * wherever a reader could take them for anything else. */
#pragma once

#include "base/json.h"

void ctl_yaml_print(struct buf *out, const cJSON *tree);
