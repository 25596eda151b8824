/* SPDX-License-Identifier: Apache-2.0
 *
 * What src/volume reads, under libFuzzer; FUZZ_MODE (quantity) chooses which. A text is a quantity or it is
 * none; the server's echo of it means the same. */
#include "volume/quantity.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
int LLVMFuzzerInitialize(int *count, char ***arguments);

typedef void fuzz_mode(const char *text, size_t length);

static struct quantity parsed(const char *text)
{
    struct quantity quantity;
    ENSURE(quantity_parse(text, strlen(text), &quantity, NULL) == 0);
    return quantity;
}

static void fuzz_quantity(const char *text, size_t length)
{
    struct quantity quantity;
    int result = quantity_parse(text, length, &quantity, NULL);
    ENSURE(result == 0 || result == -ERROR_INVALID || result == -ERROR_TOO_LARGE);
    if (result < 0)
        return;
    ENSURE(strlen(text) == length && ERGO(quantity.negative, quantity.nano != 0));
    CLEANUP_FREE char *echo = quantity_echo(text);
    CLEANUP_FREE char *again = quantity_echo(echo);
    CLEANUP_FREE char *exact = quantity_exact_text(&quantity);
    struct quantity of_echo = parsed(echo), of_exact = parsed(exact);
    ENSURE(quantity_compare(&quantity, &of_echo) == 0 && quantity_compare(&of_exact, &quantity) == 0);
    ENSURE(strcmp(echo, again) == 0);
}

static fuzz_mode *mode;

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    static const struct {
        const char *name;
        fuzz_mode *mode;
    } modes[] = {{"quantity", fuzz_quantity}};
    const char *name = getenv("FUZZ_MODE");
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
        if (name && strcmp(name, modes[i].name) == 0)
            mode = modes[i].mode;
    if (!mode) {
        fprintf(stderr, "FUZZ_MODE must be quantity\n");
        exit(2);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    CLEANUP_FREE char *text = xmemdup0(bytes, length);
    mode(text, length);
    return 0;
}
