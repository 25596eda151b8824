/* SPDX-License-Identifier: Apache-2.0
 *
 * What src/volume reads, under libFuzzer; FUZZ_MODE (quantity, decide) chooses which. A text is a quantity or
 * it is none; the server's echo of it means the same. Whatever objects look like, a decision is made, and a
 * plan raises what it names. */
#include "volume/decide.h"

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

/* The text is a whole input: {"desired", "live", "claims", "others", "pods", "classes"}. */
static void fuzz_decide(const char *text, size_t length)
{
    CLEANUP_JSON cJSON *tree = NULL;
    if (json_parse(text, length, &tree, NULL) < 0 || !json_get(tree, "desired"))
        return;
    CLEANUP_VOLUME_DECISION struct volume_decision decision = {0};
    volume_decide(&(struct volume_input){json_get(tree, "desired"), json_get(tree, "live"),
                                         json_get(tree, "claims"), json_get(tree, "others"),
                                         json_get(tree, "pods"), json_get(tree, "classes")},
                  &decision);
    bool plan = decision.outcome == VOLUME_GROW;
    ENSURE(plan == (decision.grown.count > 0) && plan == decision.recreate);
    ENSURE((plan || decision.outcome == VOLUME_NOTHING) == (decision.refused.count == 0));
    ENSURE(ERGO(decision.claims.count > 0, plan));
    for (size_t i = 0; i < decision.claims.count; i++)
        ENSURE(quantity_compare(&decision.claims.items[i].from_size, &decision.claims.items[i].to_size) < 0);
    CLEANUP_FREE char *line = volume_decision_text(&decision);
    ENSURE(!str_has_control_character(line));
    CLEANUP_JSON cJSON *json = volume_decision_json(&decision);
    ENSURE(json);
}

static fuzz_mode *mode;

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    static const struct {
        const char *name;
        fuzz_mode *mode;
    } modes[] = {{"quantity", fuzz_quantity}, {"decide", fuzz_decide}};
    const char *name = getenv("FUZZ_MODE");
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
        if (name && strcmp(name, modes[i].name) == 0)
            mode = modes[i].mode;
    if (!mode) {
        fprintf(stderr, "FUZZ_MODE must be quantity or decide\n");
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
