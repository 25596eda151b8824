/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/entry.h"

static const char *const texts[JOURNAL_KIND_COUNT] = {
#define X(name, text) [JOURNAL_##name] = text,
    JOURNAL_KINDS(X)
#undef X
};

const char *journal_kind_text(enum journal_kind kind)
{
    PRE(kind < JOURNAL_KIND_COUNT);
    return texts[kind];
}

int journal_kind_of_text(const char *text)
{
    if (!text)
        return -1;
    for (int kind = 0; kind < JOURNAL_KIND_COUNT; kind++)
        if (texts[kind][0] == text[0] && strcmp(texts[kind], text) == 0)
            return kind;
    return -1;
}

bool journal_kind_is_outcome(enum journal_kind kind)
{
    return kind == JOURNAL_APPLIED || kind == JOURNAL_REJECTED || kind == JOURNAL_OVERTAKEN ||
           kind == JOURNAL_NOT_SENT || kind == JOURNAL_ABSENT;
}
