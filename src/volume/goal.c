/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/goal.h"

#include <stddef.h>

enum { GOAL_MAX = 1 << 16 };

/* A comma stands in older journals, and parts the sizes for programs that know no words: one of them would
 * take the words behind it for a size without a name, and the whole for nothing to be done. */
#define WORD_ENDS " (,;)"

/* Named as the options and the command that ask for them. */
static const struct {
    const char *word;
    size_t flag;
} words[] = {
    {"recover", offsetof(struct converge_goal, recovers)},
    {"allow-degraded", offsetof(struct converge_goal, unready_will_do)},
    {"wait-for-filesystem", offsetof(struct converge_goal, waits_for_file_system)},
};

static bool is_set(const struct converge_goal *goal, size_t i)
{
    return *(const bool *)((const char *)goal + words[i].flag);
}

char *converge_goal_text(const struct converge_goal *goal)
{
    struct buf text = BUF_INIT(GOAL_MAX);
    bool is_first = true;
    buf_add_text(&text, goal->sizes ? goal->sizes : "");
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (!is_set(goal, i))
            continue;
        buf_addf(&text, "%s%s", is_first ? " (" : "; ", words[i].word);
        is_first = false;
    }
    if (!is_first)
        buf_add_char(&text, ')');
    return buf_take(&text);
}

void converge_goal_read(const char *text, struct converge_goal *ret)
{
    size_t length = strcspn(text, " ");
    *ret = (struct converge_goal){.sizes = xstrndup(text, length)};
    CLEANUP_FREE char *rest = xstrdup(text + length);
    char *at = NULL;
    for (char *word = strtok_r(rest, WORD_ENDS, &at); word; word = strtok_r(NULL, WORD_ENDS, &at))
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
            if (str_equal(word, words[i].word))
                *(bool *)((char *)ret + words[i].flag) = true;
}

void converge_goal_done(struct converge_goal *goal)
{
    free(goal->sizes);
    *goal = (struct converge_goal){0};
}
