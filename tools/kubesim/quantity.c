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
