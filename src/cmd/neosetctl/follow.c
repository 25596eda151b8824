/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/follow.h"

#include "audit/escape.h"
#include "base/time_text.h"
#include "cmd/look.h"
#include "cmd/neosetctl/picture.h"
#include "cmd/neosetctl/report.h"

#define LOOK_AGAIN_US (1 * US_PER_S)

enum { FRAME_BYTES_MAX = 16 * 1024 * 1024 };

struct follower {
    const struct ctl_follow *what;
    bool is_stopped;
    bool is_due;
    char *line;  /* the last one that was appended */
    size_t rows; /* of the frame on the terminal */
};

static void stop(void *context)
{
    struct follower *follower = context;
    follower->is_stopped = true;
    env_stop(follower->what->server->env);
}

static void due(void *context)
{
    struct follower *follower = context;
    follower->is_due = true;
    env_stop(follower->what->server->env);
}

static void pause_between(struct follower *follower)
{
    struct env *env = follower->what->server->env;
    follower->is_due = false;
    struct env_timer *timer = env_timer_start(env, LOOK_AGAIN_US, due, follower);
    while (!follower->is_due && !follower->is_stopped)
        env_run(env);
    if (follower->is_due)
        timer = NULL;
    env_timer_cancel(env, &timer);
}

bool ctl_is_settled(const struct ctl_picture *picture)
{
    const struct set_view *set = &picture->set;
    if (set->is_deleting || !set->has_status || set->observed_generation < set->generation ||
        str_equal(set->target_revision, "-"))
        return false;
    for (size_t i = 0; i < picture->pods.count; i++) {
        enum pod_state state = picture->pods.items[i].state;
        if (state != POD_DONE && state != POD_HELD)
            return false;
    }
    /* A rollout of no pods does not complete, and nobody waits for it. */
    if (set->wanted == 0 && picture->pods.count == 0)
        return true;
    /* All pods may be done a moment before the controller says that the rollout is. */
    return !set->is_rolling || set->fence > 0;
}

/* --- on a terminal --- */

/* Without the colours. */
static size_t width_of_line(const char *line, size_t length)
{
    CLEANUP_BUF struct buf plain = BUF_INIT(FRAME_BYTES_MAX);
    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\x1b') {
            while (i < length && line[i] != 'm')
                i++;
            continue;
        }
        buf_add_char(&plain, line[i]);
    }
    return text_width(buf_text(&plain));
}

size_t ctl_rows_of(const char *text, size_t columns)
{
    size_t rows = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        size_t width = width_of_line(text, length);
        rows += width == 0 ? 1 : (width + columns - 1) / columns;
        text += length + (text[length] == '\n');
    }
    return rows;
}

/* Draws text over the last frame. What a terminal has no room for is left out: its upper lines would scroll
 * away and could not be redrawn. */
static void draw(struct follower *follower, const char *text)
{
    struct buf *out = &follower->what->out->text;
    size_t columns = MAX(follower->what->look->columns, 1);
    size_t height = look_rows();
    if (follower->rows > 0)
        buf_addf(out, "\x1b[%zuA\r", follower->rows);
    follower->rows = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        CLEANUP_FREE char *line = xstrndup(text, length);
        size_t rows = MAX(ctl_rows_of(line, columns), 1);
        /* The cursor takes the line below the last. */
        if (height > 0 && follower->rows + rows + 1 > height)
            break;
        buf_addf(out, "%s\x1b[K\n", line);
        follower->rows += rows;
        text += length + (text[length] == '\n');
    }
    buf_add_text(out, "\x1b[J");
}

/* --- each look --- */

/* What was written since the look before. */
static int refresh(const struct ctl_follow *what, int64_t now_us, struct error **err)
{
    int r = 0;
    if (what->journal)
        what->journal->now_us = now_us;
    for (size_t i = 0; r == 0 && what->journal && i < what->journal->count; i++) {
        bool moved;
        r = journal_reader_refresh(what->journal->journals[i].reader, &moved, err);
    }
    return r;
}

static int report(const struct ctl_follow *what, const struct ctl_picture *picture, char **ret,
                  struct error **err)
{
    /* The report is made apart from what was written already. */
    struct out apart;
    out_init(&apart, -1);
    struct out *before = NULL;
    if (what->journal) {
        before = what->journal->out;
        what->journal->out = &apart;
    }
    int r = ctl_report_status(&apart, what->look, &picture->set, &picture->pods, picture->at_us,
                              what->journal, err);
    if (what->journal)
        what->journal->out = before;
    if (r == 0)
        *ret = buf_take(&apart.text);
    out_done(&apart);
    return r;
}

/* Who watches need not be told to watch. */
static void drop_own_command(const struct set_view *set, char *text)
{
    CLEANUP_FREE char *own = xasprintf("\nNext: neosetctl status %s -n %s -w\n", set->name, set->namespace);
    if (str_ends_with(text, own))
        text[strlen(text) - strlen(own)] = '\0';
}

/* The line of a log; the caller's. */
static int line_of(const struct ctl_follow *what, const struct ctl_picture *picture, char **ret,
                   struct error **err)
{
    CLEANUP_FREE struct findings *findings = xcalloc(1, sizeof *findings);
    int r = what->journal ? ctl_find_controller(what->journal, &picture->set, findings, err) : 0;
    if (r == 0)
        *ret = ctl_status_line(&picture->set, &findings->journals);
    findings_done(findings);
    return r;
}

/* What is drawn, the caller's. On a terminal too low for the report the line of a log stands above it: what
 * is waited for and why is seen in any case. */
static int frame_of(const struct ctl_follow *what, const struct ctl_picture *picture, char **ret,
                    struct error **err)
{
    CLEANUP_FREE char *text = NULL;
    CLEANUP_FREE char *line = NULL;
    look_refresh(what->look);
    int r = report(what, picture, &text, err);
    if (r < 0)
        return r;
    drop_own_command(&picture->set, text);
    size_t height = look_rows();
    bool fits = height == 0 || ctl_rows_of(text, MAX(what->look->columns, 1)) < height;
    if (!fits)
        r = line_of(what, picture, &line, err);
    if (r == 0)
        *ret = fits ? STEAL(text) : xasprintf("%s\n%s", line, text);
    return r;
}

static int show_picture(struct follower *follower, const struct ctl_picture *picture, struct error **err)
{
    const struct ctl_follow *what = follower->what;
    int r = refresh(what, picture->at_us, err);
    if (r < 0)
        return r;
    if (look_redraws(what->look)) {
        CLEANUP_FREE char *text = NULL;
        r = frame_of(what, picture, &text, err);
        if (r < 0)
            return r;
        draw(follower, text);
        return out_flush(what->out, err);
    }
    CLEANUP_FREE char *line = NULL;
    r = line_of(what, picture, &line, err);
    if (r < 0)
        return r;
    if (str_equal(line, follower->line))
        return 0;
    str_replace(&follower->line, line);
    char at[TIME_TEXT_SIZE];
    time_format_seconds(picture->at_us, at);
    buf_addf(&what->out->text, "%s %s\n", at, line);
    return out_flush(what->out, err);
}

/* The server is away, or does not let us look: that is told once, and tried again. */
static void show_problem(struct follower *follower, const struct error *problem)
{
    const struct ctl_follow *what = follower->what;
    CLEANUP_FREE char *sentence = xasprintf("%s; trying again", error_text(problem));
    if (str_equal(sentence, follower->line))
        return;
    str_replace(&follower->line, sentence);
    what->say(what->context, sentence);
    /* The line stands below the picture: the next one is drawn beneath it. */
    follower->rows = 0;
}

/* A rollout that failed may come up after all, and nobody should wait for that. */
static enum ctl_end end_of(const struct ctl_picture *picture)
{
    if (set_view_has_failed(&picture->set))
        return CTL_FAILED;
    return ctl_is_settled(picture) ? CTL_SETTLED : CTL_NOT_OVER;
}

static int look(struct follower *follower, bool is_first, enum ctl_end *ret_end, struct error **err)
{
    struct ctl_picture picture;
    CLEANUP_ERROR struct error *problem = NULL;
    int r = ctl_picture_read(follower->what->server, follower->what->name, &picture, &problem);
    if (r < 0 && !is_first && r != -ERROR_NOT_FOUND && r != -ERROR_FORBIDDEN && r != -ERROR_UNSUPPORTED) {
        show_problem(follower, problem);
        r = 0;
    } else if (r < 0 && err) {
        *err = STEAL(problem);
    } else if (r == 0) {
        r = show_picture(follower, &picture, err);
        *ret_end = end_of(&picture);
    }
    ctl_picture_done(&picture);
    return r;
}

int ctl_follow(const struct ctl_follow *follow, enum ctl_end *ret, struct error **err)
{
    struct follower follower = {.what = follow};
    env_on_stop_signal(follow->server->env, stop, &follower);
    *ret = CTL_NOT_OVER;
    int r = look(&follower, true, ret, err);
    while (r == 0 && *ret == CTL_NOT_OVER && !follower.is_stopped && !follow->out->closed) {
        pause_between(&follower);
        if (!follower.is_stopped)
            r = look(&follower, false, ret, err);
    }
    free(follower.line);
    if (r == 0 && *ret == CTL_NOT_OVER && follower.is_stopped)
        return error_set(err, ERROR_CANCELLED, "no longer watched; what goes on in the cluster goes on");
    return r;
}
