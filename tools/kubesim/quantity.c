/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/quantity.h"

bool quantity_from_text(const char *text, struct quantity *ret)
{
    return text && quantity_parse(text, strlen(text), ret, NULL) == 0;
}

bool quantity_from_node(const cJSON *node, struct quantity *ret)
{
    CLEANUP_FREE char *text = NULL;
    return quantity_read(node, ret, &text, NULL) == 0;
}

char *quantity_canonical(const cJSON *node)
{
    struct quantity quantity;
    CLEANUP_FREE char *text = NULL;
    return quantity_read(node, &quantity, &text, NULL) == 0 ? quantity_echo(text) : NULL;
}

bool quantity_integer(const struct quantity *quantity, int64_t *ret)
{
    const unsigned __int128 unit = 1000000000;
    if (quantity->nano % unit != 0 || quantity->nano / unit > INT64_MAX)
        return false;
    int64_t value = (int64_t)(quantity->nano / unit);
    *ret = quantity->negative ? -value : value;
    return true;
}

char *quantity_text(const struct quantity *quantity, bool binary)
{
    const unsigned __int128 kibi = (unsigned __int128)1024 * 1000000000;
    if (quantity->nano % 1000000000 != 0) { /* at most thousandths, see quantity_round_list() */
        const struct quantity millis = {.nano = quantity->nano * 1000, .negative = quantity->negative};
        CLEANUP_FREE char *exact = quantity_exact_text(&millis);
        return xasprintf("%sm", exact);
    }
    if (!binary || quantity->nano < kibi || quantity->nano % kibi != 0) {
        CLEANUP_FREE char *exact = quantity_exact_text(quantity);
        return quantity_echo(exact);
    }
    const struct quantity kibis = {.nano = quantity->nano / 1024, .negative = quantity->negative};
    CLEANUP_FREE char *exact = quantity_exact_text(&kibis);
    CLEANUP_FREE char *text = xasprintf("%sKi", exact);
    return quantity_echo(text);
}

void quantity_add(struct quantity *sum, const struct quantity *more)
{
    PRE(!sum->negative && !more->negative);
    sum->nano = more->nano > ~sum->nano ? ~(unsigned __int128)0 : sum->nano + more->nano;
}

void quantity_round_list(cJSON *list)
{
    const unsigned milli = 1000000;
    cJSON *next = NULL;
    for (cJSON *node = list ? list->child : NULL; node; node = next) {
        next = node->next;
        struct quantity quantity;
        if (!quantity_from_node(node, &quantity) || quantity.nano % milli == 0)
            continue;
        quantity.nano += quantity.negative ? 0 : milli;
        quantity.nano -= quantity.nano % milli;
        CLEANUP_FREE char *text = quantity_text(&quantity, false);
        json_set_str(list, node->string, text);
    }
}
