/* SPDX-License-Identifier: Apache-2.0
 *
 * One set as a picture of its pods, highest ordinal first, as a rollout goes: a line a pod, or of a large set
 * a bar with a sign a pod. Stage and fence are drawn where they are. */
#include "audit/escape.h"
#include "base/time_text.h"
#include "cmd/neosetctl/report.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    LINES_MAX = 20,  /* pods of a set that gets a line a pod */
    TROUBLE_MAX = 8, /* pods that are told of below a bar */
    BAR_GROUP = 10,
    BAR_ROW = 50,
    BAR_ROW_NARROW = 20,
    BAR_WIDTH = 72, /* what a row of BAR_ROW needs with its marks */
    BAR_PODS_MAX = 10000,
};

/* --- a pod --- */

enum {
    POD_NAME,
    POD_ORDINAL,
    POD_REVISION,
    POD_VERSION,
    POD_IMAGES,
    POD_READY,
    POD_RESTARTS,
    POD_WAITS_FOR,
    POD_TROUBLE,
    POD_STATE,
    POD_SINCE,
    POD_UNTIL,
    POD_COLUMNS
};

static const struct sheet_column pod_columns[POD_COLUMNS] = {
    [POD_NAME] = {"pod", "POD", SHEET_TEXT, IN_ALL, 1, 0},
    [POD_ORDINAL] = {"ordinal", "ORDINAL", SHEET_NUMBER, IN_WIDE | IN_DATA, 2, 0},
    [POD_REVISION] = {"revision", "REVISION", SHEET_TEXT, IN_WIDE | IN_DATA, 3, 0},
    [POD_VERSION] = {"is", "IS", SHEET_TEXT, IN_ALL, 4, 0},
    [POD_IMAGES] = {"images", "IMAGE", SHEET_TEXT, IN_ALL, 6, NARROW_CUT},
    [POD_READY] = {"ready", "READY", SHEET_BOOL, IN_ALL, 7, 0},
    [POD_RESTARTS] = {"restarts", "RESTARTS", SHEET_NUMBER, IN_ALL, 8, 0},
    [POD_WAITS_FOR] = {"waits_for", "WAITS FOR", SHEET_TEXT, IN_ALL, 9, NARROW_CUT},
    [POD_TROUBLE] = {"trouble", "TROUBLE", SHEET_BOOL, IN_DATA, 10, 0},
    [POD_STATE] = {"state", "STATE", SHEET_TEXT, IN_ALL, 5, 0},
    [POD_SINCE] = {"since", "SINCE", SHEET_TIME, IN_WIDE | IN_DATA, 11, 0},
    [POD_UNTIL] = {"until", "UNTIL", SHEET_TIME, IN_WIDE | IN_DATA, 12, 0},
};

static const char *version_text(const struct set_view *set, const struct pod_view *pod)
{
    if (pod->is_missing)
        return "missing";
    if (pod->version == POD_ON_TARGET)
        return set->is_rolling && !set->is_way_back ? "target" : "stable";
    return pod->version == POD_ON_STABLE ? "stable" : "other";
}

static const char *state_text(const struct set_view *set, enum pod_state state)
{
    static const char *const texts[POD_STATE_COUNT] = {
#define X(name, text, sign) [POD_##name] = text,
        POD_STATES(X)
#undef X
    };
    PRE(state < POD_STATE_COUNT);
    return state == POD_DONE && !set->is_rolling ? "ready" : texts[state];
}

static char state_sign(enum pod_state state)
{
    static const char signs[POD_STATE_COUNT] = {
#define X(name, text, sign) [POD_##name] = sign,
        POD_STATES(X)
#undef X
    };
    PRE(state < POD_STATE_COUNT);
    return signs[state];
}

static enum sheet_tone state_tone(enum pod_state state)
{
    switch (state) {
    case POD_DONE:
        return TONE_GOOD;
    case POD_BROKEN:
        return TONE_BAD;
    case POD_WAITING:
        return TONE_NONE;
    case POD_HELD:
        return TONE_DIM;
    default:
        return TONE_WARN;
    }
}

static void pod_cells(const struct set_view *set, const struct pod_view *pod, struct sheet_cell *cells)
{
    enum sheet_tone tone = pod->is_trouble ? TONE_BAD : TONE_WARN;
    cells[POD_NAME] = cell_text(pod->name);
    cells[POD_ORDINAL] = cell_number(pod->ordinal);
    cells[POD_REVISION] = cell_text(pod->revision);
    cells[POD_VERSION] = cell_text(version_text(set, pod));
    cells[POD_IMAGES] = cell_text(pod->images);
    cells[POD_READY] = cell_number(pod->is_ready);
    cells[POD_READY].tone = pod->is_ready ? TONE_GOOD : tone;
    cells[POD_RESTARTS] = cell_number(pod->restarts);
    cells[POD_WAITS_FOR] = cell_text(pod->waits_for);
    cells[POD_WAITS_FOR].tone = pod->is_ready ? TONE_NONE : tone;
    cells[POD_TROUBLE] = cell_number(pod->is_trouble);
    cells[POD_STATE] = cell_text(state_text(set, pod->state));
    cells[POD_STATE].tone = state_tone(pod->state);
    cells[POD_SINCE] = cell_number_or_null(pod->since_us);
    cells[POD_UNTIL] = cell_number_or_null(pod->until_us);
}

/* --- marks --- */

/* What is drawn below the pod with this index; NULL: nothing. The caller's. */
static char *mark_below(const struct set_view *set, int64_t index, bool is_short)
{
    bool is_fence = set->fence > 0 && index == set->fence;
    bool is_stage = set->is_rolling && set->stage > 0 && index == set->stage;
    int64_t start = set->first_ordinal;
    if (is_fence && is_stage)
        return xasprintf(is_short ? "stage and partition %" PRId64
                                  : "stage and partition %" PRId64 ": the pods below are held back",
                         start + set->fence);
    if (is_fence)
        return xasprintf(is_short ? "partition %" PRId64
                                  : "partition %" PRId64 ": the pods below are held back",
                         start + set->fence);
    if (is_stage)
        return xasprintf(is_short ? "stage %" PRId64 : "stage %" PRId64 ": opened down to here",
                         start + set->stage);
    return NULL;
}

static void add_rule(struct sheet *sheet, const struct set_view *set, int64_t index)
{
    CLEANUP_FREE char *mark = mark_below(set, index, false);
    if (!mark)
        return;
    bool is_fence = set->fence > 0 && index == set->fence;
    CLEANUP_FREE char *line = xasprintf(is_fence ? "==== %s ====" : "---- %s ----", mark);
    sheet_rule(sheet, line, TONE_WARN);
}

/* --- a line a pod --- */

static void add_pods(struct out *out, const struct sheet_look *look, const struct set_view *set,
                     const struct pod_views *pods)
{
    struct sheet *sheet = sheet_begin(out, look, pod_columns, POD_COLUMNS);
    sheet_set_name_prefix(sheet, "pod/");
    bool has_marks = pods->count > 0 && !set->is_deleting;
    if (has_marks && set->fence >= set->wanted)
        add_rule(sheet, set, set->fence);
    for (size_t i = 0; i < pods->count; i++) {
        struct sheet_cell cells[POD_COLUMNS];
        int64_t index = pods->items[i].ordinal - set->first_ordinal;
        pod_cells(set, &pods->items[i], cells);
        if (!sheet_row(sheet, cells))
            break;
        /* Once, where two pods claim one ordinal. */
        bool is_last = i + 1 == pods->count || pods->items[i + 1].ordinal != pods->items[i].ordinal;
        if (has_marks && is_last && index < set->wanted)
            add_rule(sheet, set, index);
    }
    sheet_end(sheet);
}

/* --- a sign a pod --- */

struct bar {
    uint8_t *states; /* of each index */
    int64_t count;
    int label;   /* digits of the highest ordinal */
    int64_t row; /* pods a row */
};

static void bar_make(const struct sheet_look *look, const struct set_view *set, const struct pod_views *pods,
                     struct bar *ret)
{
    *ret = (struct bar){.count = MIN(set->wanted, (int64_t)BAR_PODS_MAX)};
    ret->states = xcalloc((size_t)ret->count + 1, 1);
    memset(ret->states, POD_MISSING, (size_t)ret->count);
    for (size_t i = 0; i < pods->count; i++) {
        int64_t index = pods->items[i].ordinal - set->first_ordinal;
        if (index >= 0 && index < ret->count)
            ret->states[index] = (uint8_t)pods->items[i].state;
    }
    CLEANUP_FREE char *highest = xasprintf("%" PRId64, set->first_ordinal + ret->count - 1);
    ret->label = (int)strlen(highest);
    ret->row = look->columns >= BAR_WIDTH || !look->is_terminal ? BAR_ROW : BAR_ROW_NARROW;
}

static size_t bar_column(const struct bar *bar, int64_t place)
{
    return (size_t)(2 + bar->label + 2 + place + place / BAR_GROUP);
}

/* The mark of index, under its sign, to whichever side there is room. */
static void add_bar_mark(struct buf *text, const struct sheet_look *look, const struct set_view *set,
                         const struct bar *bar, int64_t index, int64_t place)
{
    CLEANUP_FREE char *mark = mark_below(set, index, true);
    if (!mark)
        return;
    int column = (int)bar_column(bar, place);
    int length = (int)strlen(mark);
    buf_add_text(text, sheet_tone_on(look, TONE_WARN));
    if (column > length + 1)
        buf_addf(text, "%*s%s ^", column - length - 1, "", mark);
    else
        buf_addf(text, "%*s^ %s", column, "", mark);
    buf_add_text(text, sheet_tone_off(look, TONE_WARN));
    buf_add_char(text, '\n');
}

static void add_bar_row(struct buf *text, const struct sheet_look *look, const struct set_view *set,
                        const struct bar *bar, int64_t highest)
{
    buf_addf(text, "  %*" PRId64 "  ", bar->label, set->first_ordinal + highest);
    int64_t count = MIN(bar->row, highest + 1);
    for (int64_t place = 0; place < count; place++) {
        enum pod_state state = bar->states[highest - place];
        if (place > 0 && place % BAR_GROUP == 0)
            buf_add_char(text, ' ');
        buf_add_text(text, sheet_tone_on(look, state_tone(state)));
        buf_add_char(text, state_sign(state));
        buf_add_text(text, sheet_tone_off(look, state_tone(state)));
    }
    buf_add_char(text, '\n');
    for (int64_t place = 0; place < count; place++)
        add_bar_mark(text, look, set, bar, highest - place, place);
}

/* "  # done 48   . its turn comes 52" */
static void add_legend(struct buf *text, const struct sheet_look *look, const struct set_view *set,
                       const struct bar *bar)
{
    int64_t counts[POD_STATE_COUNT] = {0};
    for (int64_t i = 0; i < bar->count; i++)
        counts[bar->states[i]]++;
    buf_add_char(text, '\n');
    size_t width = 0;
    for (enum pod_state state = 0; state < POD_STATE_COUNT; state++) {
        if (counts[state] == 0)
            continue;
        CLEANUP_FREE char *entry =
            xasprintf("%c %s %" PRId64, state_sign(state), state_text(set, state), counts[state]);
        if (width > 0 && width + 3 + strlen(entry) > look->columns) {
            buf_add_char(text, '\n');
            width = 0;
        }
        buf_addf(text, "%s%s%s%s", width > 0 ? "   " : "  ", sheet_tone_on(look, state_tone(state)), entry,
                 sheet_tone_off(look, state_tone(state)));
        width += 3 + strlen(entry);
    }
    buf_add_char(text, '\n');
}

static bool is_worth_telling(const struct pod_view *pod)
{
    return pod->state != POD_DONE && pod->state != POD_WAITING && pod->state != POD_HELD;
}

/* The pods that are in the way, those that will not come by themselves first. */
static void add_troubles(struct out *out, const struct sheet_look *look, const struct set_view *set,
                         const struct pod_views *pods)
{
    int64_t count = 0;
    struct sheet *sheet = NULL;
    for (int trouble = 1; trouble >= 0; trouble--) {
        for (size_t i = 0; i < pods->count; i++) {
            const struct pod_view *pod = &pods->items[i];
            if (pod->is_trouble != (trouble == 1) || !is_worth_telling(pod) || count++ >= TROUBLE_MAX)
                continue;
            if (!sheet) {
                buf_add_char(&out->text, '\n');
                sheet = sheet_begin(out, look, pod_columns, POD_COLUMNS);
            }
            struct sheet_cell cells[POD_COLUMNS];
            pod_cells(set, pod, cells);
            sheet_row(sheet, cells);
        }
    }
    if (count > TROUBLE_MAX) {
        CLEANUP_FREE char *more =
            xasprintf("... and %" PRId64 " more: -o wide shows each pod", count - TROUBLE_MAX);
        sheet_rule(sheet, more, TONE_NONE);
    }
    if (sheet)
        sheet_end(sheet);
}

/* Of a mark beyond the highest pod. */
static void add_mark_above(struct buf *text, const struct set_view *set, int64_t index)
{
    CLEANUP_FREE char *mark = mark_below(set, index, true);
    if (mark)
        buf_addf(text, "  %s\n", mark);
}

static void add_bar(struct out *out, const struct sheet_look *look, const struct set_view *set,
                    const struct pod_views *pods)
{
    struct bar bar;
    bar_make(look, set, pods, &bar);
    if (set->fence >= bar.count)
        add_mark_above(&out->text, set, set->fence);
    if (set->stage >= bar.count && set->stage != set->fence)
        add_mark_above(&out->text, set, set->stage);
    for (int64_t highest = bar.count - 1; highest >= 0; highest -= bar.row)
        add_bar_row(&out->text, look, set, &bar, highest);
    add_legend(&out->text, look, set, &bar);
    free(bar.states);
    add_troubles(out, look, set, pods);
}

/* --- the summary --- */

static char *from_to(bool differs, const char *from, const char *to)
{
    return differs ? xasprintf("%s -> %s", from, to) : xstrdup(to);
}

static char *fence_text(const struct set_view *set)
{
    int64_t held = MIN(set->fence, set->wanted);
    if (set->fence <= 0)
        return xstrdup("none (partition 0): no pod is held back");
    if (held == 1)
        return xasprintf("partition %" PRId64 ": pod %" PRId64 " is held back", set->fence,
                         set->first_ordinal);
    return xasprintf("partition %" PRId64 ": the %" PRId64 " pods below ordinal %" PRId64 " are held back",
                     set->fence, held, set->first_ordinal + set->fence);
}

/* " (5m00s ago)" or " (25m left)" behind the time. */
static void add_moment(struct buf *text, const char *word, int64_t at_us, int64_t now_us)
{
    char at[TIME_TEXT_SIZE];
    char distance[TIME_TEXT_SIZE];
    time_format_seconds(at_us, at);
    duration_format(at_us > now_us ? at_us - now_us : now_us - at_us, distance);
    buf_addf(text, "%s%s %s (%s %s)", text->length > 0 ? ", " : "", word, at, distance,
             at_us > now_us ? "left" : "ago");
}

char *ctl_times_text(const struct set_view *set, const struct pod_view *pod, int64_t now_us)
{
    struct buf text = BUF_INIT(1024);
    if (pod->since_us > 0)
        add_moment(&text, "since", pod->since_us, now_us);
    if (pod->until_us > 0 && set->is_paused && pod->state != POD_TERMINATING)
        buf_addf(&text, "%sits clock stands still while paused", text.length > 0 ? ", " : "");
    else if (pod->until_us > 0)
        add_moment(&text, pod->until_us > now_us ? "until" : "its time was over at", pod->until_us, now_us);
    return buf_take(&text);
}

static void add_waited_for(struct buf *text, const struct sheet_look *look, const struct set_view *set,
                           const struct pod_views *pods, int64_t now_us)
{
    const struct pod_view *pod = pod_views_waited_for(set, pods);
    if (!pod)
        return;
    CLEANUP_FREE char *what = xasprintf("%s: %s", pod->name, *pod->waits_for ? pod->waits_for : "-");
    CLEANUP_FREE char *times = ctl_times_text(set, pod, now_us);
    ctl_add_field(text, look, "waits for", what);
    if (*times)
        ctl_add_field(text, look, "", times);
    CLEANUP_FREE char *logs = pod_view_logs(set, pod);
    if (logs)
        ctl_add_command(text, "its log", logs);
}

static void add_summary(struct buf *text, const struct sheet_look *look, const struct set_view *set,
                        const struct pod_views *pods, int64_t now_us)
{
    bool differs = set->is_rolling && !set->is_way_back;
    CLEANUP_FREE char *image = from_to(differs, set->current_image, set->target_image);
    CLEANUP_FREE char *revision = set->is_way_back
                                      ? xasprintf("back to %s", set->stable_revision)
                                      : from_to(differs, set->stable_revision, set->target_revision);
    CLEANUP_FREE char *recreated =
        differs && set->recreates ? xasprintf("pods are re-created: %s", set->recreates) : NULL;
    CLEANUP_FREE char *fence = fence_text(set);
    CLEANUP_FREE char *stage = set->stage > 0 ? xasprintf("%" PRId64 ": opened down to this ordinal",
                                                          set->first_ordinal + set->stage)
                                              : xstrdup("0: open for every pod");
    CLEANUP_FREE char *budget =
        xasprintf("%" PRId64 " may be unavailable; %" PRId64 " of %" PRId64 " are available", set->budget,
                  set->available, set->wanted);
    CLEANUP_FREE char *outdated = ctl_outdated_text(set);
    if (outdated)
        ctl_add_field(text, look, "before", outdated);
    else if (*set->message)
        ctl_add_field(text, look, "message", set->message);
    ctl_add_field(text, look, "image", image);
    ctl_add_field(text, look, "revision", revision);
    if (recreated)
        ctl_add_field(text, look, "", recreated);
    ctl_add_field(text, look, "fence", fence);
    if (set->is_rolling)
        ctl_add_field(text, look, "stage", stage);
    ctl_add_field(text, look, "budget", budget);
    if (set->is_paused)
        ctl_add_field(text, look, "paused", "yes: no update is started");
    add_waited_for(text, look, set, pods, now_us);
}

/* --- the whole --- */

/* {"set": {...}, "next": ..., "pods": [...], "waits_for": ...}; YAML takes the same text. */
static void status_document(struct out *out, const struct sheet_look *look, const struct set_view *set,
                            const struct pod_views *pods, const char *next)
{
    struct sheet_cell cells[POD_COLUMNS];
    buf_add_text(&out->text, "{\"set\": ");
    ctl_add_set_json(&out->text, look, set);
    buf_add_text(&out->text, ",\n \"next\": ");
    escape_json(&out->text, next);
    buf_add_text(&out->text, ",\n \"pods\": [");
    for (size_t i = 0; i < pods->count; i++) {
        pod_cells(set, &pods->items[i], cells);
        buf_add_text(&out->text, i > 0 ? ",\n  " : "\n  ");
        sheet_add_json_row(&out->text, look, pod_columns, POD_COLUMNS, cells);
    }
    buf_add_text(&out->text, pods->count > 0 ? "\n ]" : "]");
    const struct pod_view *pod = pod_views_waited_for(set, pods);
    buf_add_text(&out->text, ",\n \"waits_for\": ");
    if (pod)
        escape_json(&out->text, pod->name);
    else
        buf_add_text(&out->text, "null");
    buf_add_text(&out->text, "}\n");
}

static void status_text(struct out *out, const struct sheet_look *look, const struct set_view *set,
                        const struct pod_views *pods, int64_t now_us, const struct findings *findings,
                        const char *next)
{
    ctl_add_away(&out->text, look, set, &findings->journals, now_us);
    ctl_add_head(&out->text, look, set);
    add_summary(&out->text, look, set, pods, now_us);
    ctl_add_findings(&out->text, look, findings);
    buf_add_char(&out->text, '\n');
    if (pods->count == 0)
        buf_add_text(&out->text,
                     set->wanted == 0 ? "no pods: none are asked for (replicas is 0)\n" : "no pods\n");
    else if (pods->count > LINES_MAX && look->format == SHEET_TABLE)
        add_bar(out, look, set, pods);
    else
        add_pods(out, look, set, pods);
    ctl_add_next(&out->text, look, next);
}

int ctl_report_status(struct out *out, const struct sheet_look *look, const struct set_view *set,
                      const struct pod_views *pods, int64_t now_us, struct audit *journal, struct error **err)
{
    CLEANUP_FREE struct findings *findings = xcalloc(1, sizeof *findings);
    int r = journal ? ctl_find_controller(journal, set, findings, err) : 0;
    if (r == 0 && journal)
        r = ctl_find_in_journal(journal, set, findings, err);
    CLEANUP_FREE char *next = set_view_next(set, pods, &findings->journals);
    if (r < 0)
        ;
    else if (look->format == SHEET_JSON || look->format == SHEET_YAML)
        status_document(out, look, set, pods, next);
    else if (!ctl_is_text(look))
        add_pods(out, look, set, pods);
    else
        status_text(out, look, set, pods, now_us, findings, next);
    findings_done(findings);
    return r;
}

char *ctl_status_line(const struct set_view *set, const struct journals_view *journals)
{
    struct sheet_look plain = {.format = SHEET_TABLE, .columns = 100};
    struct buf text = BUF_INIT((size_t)64 * 1024);
    CLEANUP_FREE char *away = set_view_away(set, journals);
    if (away) {
        escape_plain(&text, away);
        buf_add_text(&text, "; ");
    }
    ctl_add_head(&text, &plain, set);
    buf_trim_end(&text);
    if (!set_view_is_observed(set))
        return buf_take(&text);
    if (set->is_rolling)
        buf_addf(&text, ", stage %" PRId64, set->first_ordinal + set->stage);
    if (*set->message) {
        buf_add_text(&text, ": ");
        escape_plain(&text, set->message);
    }
    return buf_take(&text);
}
