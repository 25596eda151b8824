/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzzers share: one program holds several parsers, and FUZZ_MODE names the one that is fuzzed. */
#pragma once

#include "base/buf.h"

#include <stdio.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* The index in names (count of them) of what FUZZ_MODE says; ends the program when it says none of them. */
static inline size_t fuzz_mode_of(const char *const *names, size_t count)
{
    const char *name = getenv("FUZZ_MODE");
    for (size_t i = 0; i < count; i++)
        if (name && strcmp(name, names[i]) == 0)
            return i;
    fprintf(stderr, "FUZZ_MODE must be one of:");
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, " %s", names[i]);
    fprintf(stderr, "\n");
    exit(2);
}
