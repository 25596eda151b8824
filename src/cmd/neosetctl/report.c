/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/report.h"
#include "audit/escape.h"
#include "base/time_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

enum { FINDING_BYTES_MAX = 64 * 1024, WRAP_MIN = 20, FIELD_INDENT = 13 };

/* --- parts of texts --- */

bool ctl_is_text(const struct sheet_look *look)
{
    return look->format == SHEET_TABLE || look->format == SHEET_WIDE;
}

enum sheet_tone ctl_tone_of_phase(const char *phase)
{
    if (str_equal(phase, "Completed") || str_equal(phase, "Idle"))
        return TONE_GOOD;
    return str_equal(phase, "Failed") ? TONE_BAD : TONE_WARN;
}

void ctl_add_wrapped(struct buf *text, const struct sheet_look *look, size_t indent, const char *value)
{
    CLEANUP_BUF struct buf escaped = BUF_INIT(FINDING_BYTES_MAX);
    escape_plain(&escaped, *value ? value : "-");
    size_t room = look->columns > indent + WRAP_MIN ? look->columns - indent : WRAP_MIN;
    const char *rest = buf_text(&escaped);
    while (look->is_terminal && text_width(rest) > room) {
        size_t fits = text_fit(rest, room);
        size_t cut = fits;
        while (cut > 0 && rest[cut] != ' ')
            cut--;
        if (cut == 0)
            cut = MAX(fits, 1);
        buf_add(text, rest, cut);
        buf_addf(text, "\n%*s", (int)indent, "");
        rest += cut + strspn(rest + cut, " ");
    }
    buf_add_text(text, rest);
    buf_add_char(text, '\n');
}

void ctl_add_field(struct buf *text, const struct sheet_look *look, const char *name, const char *value)
{
    buf_addf(text, "  %-10s ", name);
    ctl_add_wrapped(text, look, FIELD_INDENT, value);
}

void ctl_add_command(struct buf *text, const char *name, const char *command)
{
    buf_addf(text, "  %-10s ", name);
    escape_plain(text, command);
    buf_add_char(text, '\n');
}

void ctl_add_away(struct buf *text, const struct sheet_look *look, const struct set_view *set,
                  const struct journals_view *journals, int64_t now_us)
{
    CLEANUP_FREE char *away = set_view_away(set, journals);
    if (!away)
        return;
    char age[TIME_TEXT_SIZE];
    duration_format(MAX(now_us - set->seen_us, 0), age);
    CLEANUP_FREE char *sentence = set->away
                                      ? xasprintf("%s, %s ago. What follows is as it left it.", away, age)
                                      : xasprintf("%s. What follows is as it left it.", away);
    sentence[0] = (char)toupper((unsigned char)sentence[0]);
    buf_add_text(text, sheet_tone_on(look, TONE_BAD));
    ctl_add_wrapped(text, look, 0, sentence);
    buf_add_text(text, sheet_tone_off(look, TONE_BAD));
}

char *ctl_outdated_text(const struct set_view *set)
{
    if (!set->has_status || set->is_deleting || set_view_is_observed(set))
        return NULL;
    return xasprintf("%s, %" PRId64 " of %" PRId64 " updated, %" PRId64 " ready%s%s", set->phase,
                     set->updated, set->replicas, set->ready, *set->message ? ": " : "", set->message);
}

static const char *phase_text(const struct set_view *set)
{
    if (set->is_deleting)
        return "being deleted";
    return set->has_status ? set->phase : "not looked at yet";
}

void ctl_add_head(struct buf *text, const struct sheet_look *look, const struct set_view *set)
{
    CLEANUP_FREE char *title = xasprintf("NeoSet %s in %s: ", set->name, set->namespace);
    CLEANUP_FREE char *outdated = ctl_outdated_text(set);
    enum sheet_tone tone = outdated ? TONE_WARN : ctl_tone_of_phase(set->phase);
    escape_plain(text, title);
    buf_add_text(text, sheet_tone_on(look, tone));
    escape_plain(text, outdated ? "changed, and no controller has seen that yet" : phase_text(set));
    buf_add_text(text, sheet_tone_off(look, tone));
    if (!outdated)
        buf_addf(text, ", %" PRId64 " of %" PRId64 " updated, %" PRId64 " ready", set->updated, set->wanted,
                 set->ready);
    buf_add_char(text, '\n');
}

/* On a terminal that is too narrow for it, a command goes on behind a backslash, and its remark on a line of
 * its own: what people copy stays one command. */
void ctl_add_next(struct buf *text, const struct sheet_look *look, const char *next)
{
    const char *remark = strstr(next, "   (");
    CLEANUP_FREE char *command = remark ? xstrndup(next, (size_t)(remark - next)) : xstrdup(next);
    bool is_narrow = look->is_terminal && text_width(next) + strlen("Next: ") > look->columns;
    buf_add_text(text, "\nNext: ");
    const char *rest = command;
    const char *parameter = strstr(command, " -p '");
    if (is_narrow && parameter) {
        CLEANUP_FREE char *first = xstrndup(command, (size_t)(parameter - command));
        escape_plain(text, first);
        buf_add_text(text, " \\\n     ");
        rest = parameter;
    }
    escape_plain(text, rest);
    if (remark && is_narrow) {
        buf_add_text(text, "\n      ");
        ctl_add_wrapped(text, look, strlen("Next: "), remark + strlen("   "));
        return;
    }
    escape_plain(text, remark ? remark : "");
    buf_add_char(text, '\n');
}

/* --- get
 * ---------------------------------------------------------------------------------------------------- */

enum {
    SET_NAME,
    SET_NAMESPACE,
    SET_WANTED,
    SET_REPLICAS,
    SET_READY,
    SET_UPDATED,
    SET_AVAILABLE,
    SET_PHASE,
    SET_CURRENT,
    SET_TARGET,
    SET_FENCE,
    SET_STAGE,
    SET_PAUSED,
    SET_AGE,
    SET_MESSAGE,
    SET_COLUMNS
};

static const struct sheet_column set_columns[SET_COLUMNS] = {
    [SET_NAME] = {"name", "NAME", SHEET_TEXT, IN_ALL, 2, 0},
    [SET_NAMESPACE] = {"namespace", "NAMESPACE", SHEET_TEXT, IN_ALL, 1, 0},
    [SET_WANTED] = {"wanted", "WANTED", SHEET_NUMBER, IN_WIDE | IN_DATA, 3, 0},
    [SET_REPLICAS] = {"replicas", "REPLICAS", SHEET_NUMBER, IN_ALL, 4, 0},
    [SET_READY] = {"ready", "READY", SHEET_NUMBER, IN_ALL, 5, 0},
    [SET_UPDATED] = {"updated", "UPDATED", SHEET_NUMBER, IN_ALL, 6, 0},
    [SET_AVAILABLE] = {"available", "AVAILABLE", SHEET_NUMBER, IN_WIDE | IN_DATA, 7, 0},
    [SET_PHASE] = {"phase", "PHASE", SHEET_TEXT, IN_ALL, 8, 0},
    [SET_CURRENT] = {"current_image", "CURRENT", SHEET_TEXT, IN_ALL, 9, NARROW_CUT},
    [SET_TARGET] = {"target_image", "TARGET", SHEET_TEXT, IN_ALL, 10, NARROW_CUT},
    [SET_FENCE] = {"fence", "FENCE", SHEET_NUMBER, IN_WIDE | IN_DATA, 11, 0},
    [SET_STAGE] = {"stage", "STAGE", SHEET_NUMBER, IN_WIDE | IN_DATA, 12, 0},
    [SET_PAUSED] = {"paused", "PAUSED", SHEET_BOOL, IN_WIDE | IN_DATA, 13, 0},
    [SET_AGE] = {"age_s", "AGE", SHEET_DURATION, IN_ALL, 14, 0},
    [SET_MESSAGE] = {"message", "MESSAGE", SHEET_TEXT, IN_WIDE | IN_DATA, 15, NARROW_CUT},
};

static void set_cells(const struct set_view *set, int64_t now_us, struct sheet_cell *cells)
{
    cells[SET_NAME] = cell_text(set->name);
    cells[SET_NAMESPACE] = cell_text(set->namespace);
    cells[SET_WANTED] = cell_number(set->wanted);
    cells[SET_REPLICAS] = cell_number(set->replicas);
    cells[SET_READY] = cell_number(set->ready);
    cells[SET_UPDATED] = cell_number(set->updated);
    cells[SET_AVAILABLE] = cell_number(set->available);
    cells[SET_PHASE] = cell_text(set->phase);
    cells[SET_PHASE].tone = ctl_tone_of_phase(set->phase);
    cells[SET_CURRENT] = cell_text(set->current_image);
    cells[SET_TARGET] = cell_text(set->target_image);
    cells[SET_FENCE] = cell_number(set->fence);
    cells[SET_STAGE] = cell_number(set->stage);
    cells[SET_PAUSED] = cell_number(set->is_paused);
    cells[SET_AGE] = set->created_us < 0 ? cell_null() : cell_number(MAX(now_us - set->created_us, 0));
    cells[SET_MESSAGE] = cell_text(set->message);
}

int64_t ctl_report_sets(struct out *out, const struct sheet_look *look, const cJSON *objects, int64_t now_us,
                        bool has_namespaces)
{
    struct sheet_column columns[SET_COLUMNS];
    memcpy(columns, set_columns, sizeof columns);
    if (!has_namespaces)
        columns[SET_NAMESPACE].where = IN_DATA;
    struct sheet *sheet = sheet_begin(out, look, columns, SET_COLUMNS);
    sheet_set_name_prefix(sheet, "neoset.apps.neo.io/");
    const cJSON *object = NULL;
    cJSON_ArrayForEach (object, objects) {
        struct set_view set;
        struct sheet_cell cells[SET_COLUMNS];
        set_view_make(object, &set);
        set_cells(&set, now_us, cells);
        if (!sheet_row(sheet, cells))
            break;
    }
    return sheet_end(sheet);
}

void ctl_add_set_json(struct buf *text, const struct sheet_look *look, const struct set_view *set)
{
    struct sheet_cell cells[SET_COLUMNS];
    set_cells(set, set->created_us, cells);
    cells[SET_AGE] = cell_null();
    sheet_add_json_row(text, look, set_columns, SET_COLUMNS, cells);
}

/* --- history
 * ------------------------------------------------------------------------------------------------ */

enum {
    REVISION_NUMBER,
    REVISION_NAME,
    REVISION_IMAGES,
    REVISION_IS,
    REVISION_PODS,
    REVISION_AGE,
    REVISION_CREATED,
    REVISION_COLUMNS
};

static const struct sheet_column revision_columns[REVISION_COLUMNS] = {
    [REVISION_NUMBER] = {"revision", "REVISION", SHEET_NUMBER, IN_ALL, 1, 0},
    [REVISION_NAME] = {"name", "NAME", SHEET_TEXT, IN_ALL, 2, 0},
    [REVISION_IMAGES] = {"images", "IMAGES", SHEET_TEXT, IN_ALL, 3, NARROW_CUT},
    [REVISION_IS] = {"is", "IS", SHEET_TEXT, IN_ALL, 4, 0},
    [REVISION_PODS] = {"pods", "PODS", SHEET_NUMBER, IN_ALL, 5, 0},
    [REVISION_AGE] = {"age_s", "AGE", SHEET_DURATION, IN_ALL, 6, 0},
    [REVISION_CREATED] = {"created", "CREATED", SHEET_TIME, IN_WIDE | IN_DATA, 7, 0},
};

/* What is known of it; NULL: nothing. A status without the names says nothing of the others, and one that has
 * them nothing of what was before it began to list them. */
static const char *standing_of(const struct set_view *set, const char *revision)
{
    if (str_equal(revision, set->stable_revision))
        return "stable";
    if (str_equal(revision, set->target_revision))
        return set_view_has_failed(set) ? "target, failed" : "target";
    if (json_has_str(set->proven, revision))
        return "was stable";
    return cJSON_IsArray(set->proven) ? "not seen stable" : NULL;
}

void ctl_report_history(struct out *out, const struct sheet_look *look, const struct set_view *set,
                        const struct revision_views *revisions, int64_t now_us)
{
    /* The name is the name, also where the number stands first. */
    bool is_names = look->format == SHEET_NAME;
    size_t first = is_names ? REVISION_NAME : 0;
    struct sheet *sheet = sheet_begin(out, look, revision_columns + first, REVISION_COLUMNS - first);
    sheet_set_name_prefix(sheet, "controllerrevision.apps/");
    for (size_t i = 0; i < revisions->count; i++) {
        const struct revision_view *revision = &revisions->items[i];
        struct sheet_cell cells[REVISION_COLUMNS] = {
            [REVISION_NUMBER] = cell_number(revision->number),
            [REVISION_NAME] = cell_text(revision->name),
            [REVISION_IMAGES] = cell_text(revision->images),
            [REVISION_IS] = cell_text(standing_of(set, revision->name)),
            [REVISION_PODS] = cell_number(revision->pods),
            [REVISION_AGE] =
                revision->created_us < 0 ? cell_null() : cell_number(MAX(now_us - revision->created_us, 0)),
            [REVISION_CREATED] = revision->created_us < 0 ? cell_null() : cell_number(revision->created_us),
        };
        if (!sheet_row(sheet, cells + first))
            break;
    }
    sheet_end(sheet);
}
