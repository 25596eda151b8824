/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "journal/verify.h"

enum { ID_DIGITS = 32 };

static int refuse(const char *text, struct error **err)
{
    return error_set(
        err, ERROR_INVALID,
        "\"%.120s\" is no head of a journal: expected ID:SEQ:HASH (32 hexadecimal digits, a number, 64 "
        "hexadecimal digits)",
        text);
}

static bool fill(const char *id, int64_t seq, const char *hash, struct journal_head *ret)
{
    uint8_t id_bytes[ID_DIGITS / 2];
    struct journal_head head = {.seq = seq};
    if (seq < 0 || !hex_decode(id, id_bytes, sizeof(id_bytes)) || !hex_decode(hash, head.hash, SHA256_SIZE))
        return false;
    memcpy(head.journal_id, id, ID_DIGITS);
    *ret = head;
    return true;
}

int journal_head_parse(const char *text, struct journal_head *ret, struct error **err)
{
    const char *first = strchr(text, ':');
    const char *second = first ? strchr(first + 1, ':') : NULL;
    if (!second || first - text != ID_DIGITS || second - first < 2 || second - first > 20)
        return refuse(text, err);
    CLEANUP_FREE char *id = xstrndup(text, ID_DIGITS);
    char *end = NULL;
    if (first[1] < '0' || first[1] > '9')
        return refuse(text, err);
    long long seq = strtoll(first + 1, &end, 10);
    if (end != second || !fill(id, seq, second + 1, ret))
        return refuse(text, err);
    return 0;
}

int journal_head_parse_json(const char *text, struct journal_head *ret, struct error **err)
{
    CLEANUP_JSON cJSON *tree = NULL;
    int result = json_parse(text, strlen(text), &tree, err);
    if (result < 0)
        return error_wrap(err, result, "head of a journal");
    const char *id = json_str(tree, "journal_id");
    const char *hash = json_str(tree, "hash");
    int64_t seq = 0;
    if (!id || !hash || !json_int64(tree, "seq", &seq) || !fill(id, seq, hash, ret))
        return refuse(text, err);
    return 0;
}

char *journal_head_format(const struct journal_meta *meta)
{
    CLEANUP_FREE char *hash = hex_encode(meta->head_hash, SHA256_SIZE);
    return xasprintf("%s:%lld:%s", meta->journal_id, (long long)meta->head_seq, hash);
}
