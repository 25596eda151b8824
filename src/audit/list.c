/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands that are one sheet each: list, export, in-doubt, runs. */
#include "audit/parts.h"
#include "audit/words.h"

/* Where the rows of one command go. */
struct printing {
    struct audit *audit;
    struct sheet *sheet;
    struct audit_row row;
};

static struct printing begin(struct audit *audit, const struct audit_sheet *sheet)
{
    return (struct printing){.audit = audit,
                             .sheet = sheet_begin(audit->out, &audit->look, sheet->columns, sheet->count)};
}

/* Writes what is left; nothing_text is said when there was no row. */
static int finish(struct printing *printing, int result, const char *nothing_text, struct error **err)
{
    int64_t rows = sheet_end(printing->sheet);
    audit_row_done(&printing->row);
    if (result < 0)
        return result;
    if (rows == 0 && nothing_text)
        audit_say(printing->audit, "%s", nothing_text);
    return out_flush(printing->audit->out, err);
}

static bool print_record(void *context, const struct record *record)
{
    struct printing *printing = context;
    if (record->kind == RECORD_ENTRY)
        audit_row_of_entry(printing->audit, record->journal, record->entry, &printing->row);
    else if (record->kind == RECORD_OPERATION)
        audit_row_of_operation(printing->audit, record->journal, record->operation, &printing->row);
    else
        audit_row_of_step(printing->audit, record->journal, record->step, &printing->row);
    return sheet_row(printing->sheet, printing->row.cells);
}

/* A typing error in a filter must not look like an empty history. */
static const char *nothing_of(const struct audit_filter *filter)
{
    bool is_filtered = filter->object || filter->namespace || filter->kind || filter->outcome ||
                       filter->since_us || filter->until_us;
    return is_filtered ? "no operations that fit: `neoset-audit list` without filters shows all"
                       : "no operations";
}

int audit_list(struct audit *audit, const struct audit_filter *filter, struct error **err)
{
    struct printing printing = begin(audit, &audit_operation_sheet);
    int r = records_read(audit, RECORD_OPERATION, filter, true, print_record, &printing, err);
    return finish(&printing, r, nothing_of(filter), err);
}

int audit_export_operations(struct audit *audit, const struct audit_filter *filter, struct error **err)
{
    struct printing printing = begin(audit, &audit_operation_sheet);
    int r = records_read(audit, RECORD_OPERATION, filter, false, print_record, &printing, err);
    return finish(&printing, r, nothing_of(filter), err);
}

int audit_export_entries(struct audit *audit, const struct audit_filter *filter, struct error **err)
{
    struct printing printing = begin(audit, &audit_entry_sheet);
    int r = records_read(audit, RECORD_ENTRY, filter, false, print_record, &printing, err);
    return finish(&printing, r, "no entries", err);
}

int audit_export_steps(struct audit *audit, const struct audit_filter *filter, struct error **err)
{
    struct printing printing = begin(audit, &audit_step_sheet);
    int r = records_read(audit, RECORD_STEP, filter, false, print_record, &printing, err);
    return finish(&printing, r, "no steps", err);
}

/* --- in doubt --------------------------------------------------------------------------------------- */

/* One open step with the journal that it is in. */
struct open_step {
    const struct audit_journal *journal;
    struct journal_step_record *step;
};

struct open_steps {
    struct audit *audit;
    const struct audit_filter *filter;
    const struct audit_journal *journal; /* being read */
    struct open_step *items;
    size_t count;
};

static bool keep_open(void *context, const struct journal_step_record *step)
{
    struct open_steps *open = context;
    const struct audit_filter *filter = open->filter;
    const struct journal_entry *intent = &step->intent;
    if ((filter->namespace && !str_equal(filter->namespace, intent->namespace ? intent->namespace : "")) ||
        (filter->kind && !str_equal(filter->kind, intent->action)) ||
        (filter->object &&
         (!str_equal(filter->object, intent->object) || !str_equal(filter->name, intent->name))))
        return true;
    open->items = xreallocarray(open->items, open->count + 1, sizeof *open->items);
    open->items[open->count++] = (struct open_step){.journal = open->journal, .step = record_copy_step(step)};
    return true;
}

static int compare_age(const void *a, const void *b)
{
    const struct journal_step_record *left = ((const struct open_step *)a)->step;
    const struct journal_step_record *right = ((const struct open_step *)b)->step;
    if (left->intent.at_us != right->intent.at_us)
        return left->intent.at_us < right->intent.at_us ? -1 : 1;
    return (left->intent.seq > right->intent.seq) - (left->intent.seq < right->intent.seq);
}

int audit_in_doubt(struct audit *audit, const struct audit_filter *filter, int64_t older_than_us,
                   int64_t *ret_found, struct error **err)
{
    struct open_steps open = {.audit = audit, .filter = filter};
    int r = audit_check_words(audit, RECORD_STEP, filter, err);
    for (size_t i = 0; r == 0 && i < audit->count; i++) {
        open.journal = &audit->journals[i];
        r = journal_read_open_steps(open.journal->reader, keep_open, &open, err);
    }
    if (open.count > 1)
        qsort(open.items, open.count, sizeof *open.items, compare_age);
    struct sheet_column columns[AUDIT_COLUMNS_MAX];
    struct audit_sheet sheet = audit_open_step_sheet(columns);
    struct printing printing = begin(audit, &sheet);
    int64_t found = 0;
    int64_t shown = 0;
    bool goes_on = true;
    for (size_t i = 0; i < open.count; i++) {
        const struct journal_step_record *step = open.items[i].step;
        bool is_old = audit->now_us - step->intent.at_us >= older_than_us;
        found += is_old && !step->in_flight;
        bool is_wanted = is_old && (filter->limit == 0 || shown < filter->limit);
        if (is_wanted && goes_on) {
            shown++;
            audit_row_of_step(audit, open.items[i].journal, step, &printing.row);
            goes_on = sheet_row(printing.sheet, printing.row.cells);
        }
        free(open.items[i].step);
    }
    free(open.items);
    r = finish(&printing, r, older_than_us > 0 ? "no step is in doubt for that long" : "no step is in doubt",
               err);
    if (r == 0)
        *ret_found = found;
    return r;
}

/* --- runs ------------------------------------------------------------------------------------------- */

/* The runs of one journal, newest first. */
struct run_list {
    const struct audit_filter *filter;
    struct journal_run_record **items;
    size_t count;
    size_t room;
    size_t next;
};

static bool keep_run(void *context, const struct journal_run_record *run)
{
    struct run_list *list = context;
    if (list->filter->until_us != 0 && run->begun_us >= list->filter->until_us)
        return true;
    if (list->filter->since_us != 0 && run->last_us < list->filter->since_us)
        return true;
    if (list->count == list->room) {
        list->room = list->room ? list->room * 2 : 64;
        list->items = xreallocarray(list->items, list->room, sizeof(struct journal_run_record *));
    }
    list->items[list->count++] = record_copy_run(run);
    return true;
}

/* The journal whose next run is the newest, or count. */
static size_t choose_run(const struct run_list *lists, size_t count)
{
    size_t best = count;
    for (size_t i = 0; i < count; i++) {
        if (lists[i].next == lists[i].count)
            continue;
        if (best == count ||
            lists[i].items[lists[i].next]->begun_us > lists[best].items[lists[best].next]->begun_us)
            best = i;
    }
    return best;
}

int audit_runs(struct audit *audit, const struct audit_filter *filter, struct error **err)
{
    struct run_list lists[AUDIT_JOURNALS_MAX] = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < audit->count; i++) {
        lists[i].filter = filter;
        r = journal_read_runs(audit->journals[i].reader, 0, keep_run, &lists[i], err);
    }
    struct printing printing = begin(audit, &audit_run_sheet);
    bool goes_on = r == 0;
    for (int64_t shown = 0; goes_on && (filter->limit == 0 || shown < filter->limit); shown++) {
        size_t i = choose_run(lists, audit->count);
        if (i == audit->count)
            break;
        struct run_list *list = &lists[i];
        ENSURE(list->items);
        audit_row_of_run(audit, &audit->journals[i], list->items[list->next++], &printing.row);
        goes_on = sheet_row(printing.sheet, printing.row.cells);
    }
    for (size_t i = 0; i < audit->count; i++) {
        for (size_t j = 0; j < lists[i].count; j++)
            free(lists[i].items[j]);
        free(lists[i].items);
    }
    return finish(&printing, r, "no runs", err);
}
