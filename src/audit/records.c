/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/records.h"
#include "audit/belonging.h"
#include "audit/steps.h"
#include "audit/words.h"

enum { PAGE_ROWS = 1000 };

/* A deep copy of one row. */
struct held {
    int64_t seq;
    int64_t at_us;
    void *copy;
};

struct held_list {
    struct held *items;
    size_t count;
    size_t room;
};

/* What one read asks for, with the filter's words translated once. */
struct query {
    enum record_kind kind;
    const struct audit_filter *filter;
    unsigned entry_kinds;
    bool newest_first;
    bool walks_object;         /* by the operations of an object, else straight by seq */
    const int64_t *after_seqs; /* a journal each; NULL: from the beginning */
};

/* Rows on their way from one journal's reader to where they go. */
struct flow {
    const struct query *query;
    const struct audit_journal *journal;
    record_each *each;
    void *context;
    bool stopped;
    int64_t last_seq; /* of the row handed on last */
    struct belonging *belonging;
    struct error *err; /* of a look-up inside a callback */
};

static struct record record_of(enum record_kind kind, const struct audit_journal *journal,
                               const struct held *held)
{
    struct record record = {.kind = kind, .journal = journal, .seq = held->seq, .at_us = held->at_us};
    if (kind == RECORD_ENTRY)
        record.entry = held->copy;
    else if (kind == RECORD_OPERATION)
        record.operation = held->copy;
    else
        record.step = held->copy;
    return record;
}

static void hold(struct held_list *list, const struct record *record)
{
    if (list->count == list->room) {
        list->room = list->room ? list->room * 2 : 64;
        list->items = xreallocarray(list->items, list->room, sizeof *list->items);
    }
    void *copy = NULL;
    if (record->kind == RECORD_ENTRY)
        copy = record_copy_entry(record->entry);
    else if (record->kind == RECORD_OPERATION)
        copy = record_copy_operation(record->operation);
    else
        copy = record_copy_step(record->step);
    list->items[list->count++] = (struct held){.seq = record->seq, .at_us = record->at_us, .copy = copy};
}

static void forget(struct held_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].copy);
    free(list->items);
    *list = (struct held_list){0};
}

/* --- what a row must be ----------------------------------------------------------------------------- */

static bool is_in_time(const struct audit_filter *filter, int64_t at_us)
{
    return (filter->since_us == 0 || at_us >= filter->since_us) &&
           (filter->until_us == 0 || at_us < filter->until_us);
}

static bool fits_text(const char *wanted, const char *text)
{
    return !wanted || str_equal(wanted, text ? text : "");
}

static bool fits_operation(const struct audit_filter *filter,
                           const struct journal_operation_record *operation)
{
    if (filter->outcome && !str_equal(filter->outcome, operation->outcome ? operation->outcome : "open"))
        return false;
    return fits_text(filter->kind, operation->kind) && fits_text(filter->namespace, operation->namespace) &&
           is_in_time(filter, operation->begun_us);
}

static bool fits_step(const struct audit_filter *filter, const struct journal_step_record *step)
{
    const char *outcome = step->has_outcome ? journal_kind_text(step->outcome.kind) : "open";
    return (!filter->outcome || str_equal(filter->outcome, outcome)) &&
           fits_text(filter->kind, step->intent.action) &&
           fits_text(filter->namespace, step->intent.namespace) && is_in_time(filter, step->intent.at_us);
}

static bool names_object(const struct audit_filter *filter, const struct journal_entry *entry)
{
    return str_equal(filter->object, entry->object) && str_equal(filter->name, entry->name) &&
           fits_text(filter->namespace, entry->namespace);
}

/* --- one journal, straight -------------------------------------------------------------------------- */

static bool pass(struct flow *flow, const struct record *record)
{
    flow->last_seq = record->seq;
    if (!flow->each(flow->context, record))
        flow->stopped = true;
    return !flow->stopped;
}

static bool pass_entry(void *context, const struct journal_entry *entry)
{
    struct flow *flow = context;
    flow->last_seq = entry->seq;
    bool belongs = true;
    if (flow->belonging && belonging_check(flow->belonging, entry, &belongs, &flow->err) < 0)
        return false;
    if (!belongs)
        return true;
    struct record record = {.kind = RECORD_ENTRY, .journal = flow->journal, .entry = entry};
    record.seq = entry->seq;
    record.at_us = entry->at_us;
    return pass(flow, &record);
}

static bool pass_operation(void *context, const struct journal_operation_record *operation)
{
    struct flow *flow = context;
    struct record record = {.kind = RECORD_OPERATION, .journal = flow->journal, .operation = operation};
    record.seq = operation->id;
    record.at_us = operation->begun_us;
    return pass(flow, &record);
}

static bool pass_step(void *context, const struct journal_step_record *step)
{
    struct flow *flow = context;
    flow->last_seq = step->intent.seq;
    if (!fits_step(flow->query->filter, step))
        return true;
    struct record record = {.kind = RECORD_STEP, .journal = flow->journal, .step = step};
    record.seq = step->intent.seq;
    record.at_us = step->intent.at_us;
    return pass(flow, &record);
}

static int read_entries(struct flow *flow, int64_t after_seq, int64_t limit, struct error **err)
{
    const struct audit_filter *wanted = flow->query->filter;
    if ((wanted->namespace || wanted->object) && !flow->belonging)
        flow->belonging = belonging_make(flow->journal, wanted);
    struct journal_entry_filter filter = {.after_seq = after_seq,
                                          .since_us = wanted->since_us,
                                          .until_us = wanted->until_us,
                                          .kinds = flow->query->entry_kinds,
                                          .limit = limit};
    int r = journal_read_entries(flow->journal->reader, &filter, pass_entry, flow, err);
    if (r < 0 || !flow->err)
        return r;
    r = -(int)flow->err->code;
    if (err)
        *err = STEAL(flow->err);
    return r;
}

/* At most limit rows (0: all) of one journal behind after_seq; operations have no such place to begin. */
static int read_straight(struct flow *flow, int64_t after_seq, int64_t limit, struct error **err)
{
    const struct query *query = flow->query;
    const struct audit_filter *wanted = query->filter;
    struct journal_reader *reader = flow->journal->reader;
    if (query->kind == RECORD_ENTRY)
        return read_entries(flow, after_seq, limit, err);
    if (query->kind == RECORD_STEP)
        return steps_read(flow->journal, after_seq, wanted->since_us, wanted->until_us, limit, pass_step,
                          flow, err);
    struct journal_operation_filter filter = {.kind = wanted->kind,
                                              .object = wanted->object,
                                              .name = wanted->name,
                                              .namespace = wanted->namespace,
                                              .outcome = wanted->outcome,
                                              .since_us = wanted->since_us,
                                              .until_us = wanted->until_us,
                                              .oldest_first = !query->newest_first};
    return journal_read_operations(reader, &filter, pass_operation, flow, err);
}

/* --- one journal, one object ------------------------------------------------------------------------ */

/* The operations that have to do with an object, ascending. */
struct id_list {
    int64_t *ids;
    size_t count;
    size_t room;
};

static void add_id(struct id_list *list, int64_t id)
{
    if (id == 0 || (list->count > 0 && list->ids[list->count - 1] == id))
        return;
    if (list->count == list->room) {
        list->room = list->room ? list->room * 2 : 64;
        list->ids = xreallocarray(list->ids, list->room, sizeof *list->ids);
    }
    list->ids[list->count++] = id;
}

static bool note_operation(void *context, const struct journal_operation_record *operation)
{
    add_id(context, operation->id);
    return true;
}

static bool note_entry(void *context, const struct journal_entry *entry)
{
    add_id(context, entry->operation);
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static void sort_ids(struct id_list *list)
{
    if (list->count == 0)
        return;
    qsort(list->ids, list->count, sizeof *list->ids, compare_ids);
    size_t kept = 1;
    for (size_t i = 1; i < list->count; i++)
        if (list->ids[i] != list->ids[kept - 1])
            list->ids[kept++] = list->ids[i];
    list->count = kept;
}

/* An object either has operations of its own (a NeoSet) or is the target of other objects' steps and waits (a
 * Pod). */
static int find_own_operations(const struct flow *flow, int64_t limit, struct id_list *ret,
                               struct error **err)
{
    const struct audit_filter *wanted = flow->query->filter;
    struct journal_operation_filter own = {.object = wanted->object,
                                           .name = wanted->name,
                                           .namespace = wanted->namespace,
                                           .limit = limit,
                                           .oldest_first = true};
    return journal_read_operations(flow->journal->reader, &own, note_operation, ret, err);
}

static int find_operations_on_target(const struct flow *flow, struct id_list *ret, struct error **err)
{
    const struct audit_filter *wanted = flow->query->filter;
    unsigned kinds = JOURNAL_KIND_BIT(JOURNAL_INTENT) | JOURNAL_KIND_BIT(JOURNAL_WAIT_BEGIN);
    struct journal_entry_filter target = {
        .object = wanted->object, .name = wanted->name, .namespace = wanted->namespace, .kinds = kinds};
    int r = journal_read_entries(flow->journal->reader, &target, note_entry, ret, err);
    sort_ids(ret);
    return r;
}

/* Collects what one operation has for an object. */
struct gather {
    struct flow *flow;
    struct held_list *list;
    bool is_own;          /* the operation is the object's own: all of it */
    struct id_list steps; /* of this operation that target the object */
};

static bool has_id(const struct id_list *list, int64_t id)
{
    return list->count > 0 && bsearch(&id, list->ids, list->count, sizeof id, compare_ids) != NULL;
}

static bool gather_entry(void *context, const struct journal_entry *entry)
{
    struct gather *gather = context;
    const struct query *query = gather->flow->query;
    bool names = entry->object && names_object(query->filter, entry);
    if (names && entry->kind == JOURNAL_INTENT)
        add_id(&gather->steps, entry->seq);
    bool belongs = gather->is_own || names || (entry->step != 0 && has_id(&gather->steps, entry->step));
    bool fits =
        query->entry_kinds == JOURNAL_KIND_ALL || (query->entry_kinds & JOURNAL_KIND_BIT(entry->kind)) != 0;
    if (!belongs || !fits || !is_in_time(query->filter, entry->at_us))
        return true;
    struct record record = {.kind = RECORD_ENTRY, .entry = entry, .seq = entry->seq, .at_us = entry->at_us};
    hold(gather->list, &record);
    return true;
}

static bool gather_step(void *context, const struct journal_step_record *step)
{
    struct gather *gather = context;
    const struct audit_filter *filter = gather->flow->query->filter;
    if ((!gather->is_own && !names_object(filter, &step->intent)) || !fits_step(filter, step))
        return true;
    struct record record = {
        .kind = RECORD_STEP, .step = step, .seq = step->intent.seq, .at_us = step->intent.at_us};
    hold(gather->list, &record);
    return true;
}

static bool gather_operation(void *context, const struct journal_operation_record *operation)
{
    struct gather *gather = context;
    const struct query *query = gather->flow->query;
    gather->is_own = str_equal(operation->object, query->filter->object) &&
                     str_equal(operation->name, query->filter->name);
    if (query->kind != RECORD_OPERATION || !fits_operation(query->filter, operation))
        return true;
    struct record record = {.kind = RECORD_OPERATION, .operation = operation};
    record.seq = operation->id;
    record.at_us = operation->begun_us;
    hold(gather->list, &record);
    return true;
}

static int gather_one(struct gather *gather, int64_t id, struct error **err)
{
    struct journal_reader *reader = gather->flow->journal->reader;
    struct journal_operation_filter one = {.id = id};
    int r = journal_read_operations(reader, &one, gather_operation, gather, err);
    gather->steps.count = 0;
    if (r == 0 && gather->flow->query->kind == RECORD_ENTRY) {
        struct journal_entry_filter entries = {.operation = id};
        r = journal_read_entries(reader, &entries, gather_entry, gather, err);
    } else if (r == 0 && gather->flow->query->kind == RECORD_STEP) {
        struct journal_step_filter steps = {.operation = id};
        r = journal_read_steps(reader, &steps, gather_step, gather, err);
    }
    return r;
}

static int compare_held(const void *a, const void *b)
{
    int64_t left = ((const struct held *)a)->seq;
    int64_t right = ((const struct held *)b)->seq;
    return (left > right) - (left < right);
}

/* Hands on the rows below seq, in order, and forgets them. Operations overlap: the rows of one may lie
 * between those of another, but none of a later operation lies below its begin entry. */
static void release_below(struct flow *flow, struct held_list *list, int64_t seq)
{
    if (list->count == 0)
        return;
    qsort(list->items, list->count, sizeof *list->items, compare_held);
    size_t done = 0;
    for (; done < list->count && list->items[done].seq < seq; done++) {
        struct record record = record_of(flow->query->kind, flow->journal, &list->items[done]);
        if (!flow->stopped)
            pass(flow, &record);
        free(list->items[done].copy);
    }
    memmove(list->items, list->items + done, (list->count - done) * sizeof *list->items);
    list->count -= done;
}

static int read_operations_of_object(struct flow *flow, const struct id_list *operations, struct error **err)
{
    struct held_list list = {0};
    struct gather gather = {.flow = flow, .list = &list};
    int r = 0;
    for (size_t i = 0; r == 0 && i < operations->count && !flow->stopped; i++) {
        bool backwards = flow->query->newest_first;
        size_t at = backwards ? operations->count - 1 - i : i;
        r = gather_one(&gather, operations->ids[at], err);
        bool is_last = i + 1 == operations->count;
        release_below(flow, &list, backwards || is_last ? INT64_MAX : operations->ids[at + 1]);
    }
    forget(&list);
    free(gather.steps.ids);
    return r;
}

static int read_object(struct flow *flow, struct error **err)
{
    struct id_list operations = {0};
    bool is_list = flow->query->kind == RECORD_OPERATION;
    int r = find_own_operations(flow, is_list ? 1 : 0, &operations, err);
    if (r == 0 && operations.count > 0 && is_list) {
        r = read_straight(flow, 0, 0, err);
    } else if (r == 0) {
        if (operations.count == 0)
            r = find_operations_on_target(flow, &operations, err);
        if (r == 0)
            r = read_operations_of_object(flow, &operations, err);
    }
    free(operations.ids);
    return r;
}

/* --- several journals ------------------------------------------------------------------------------- */

/* One journal's rows, a page at a time. */
struct source {
    struct flow flow;
    struct held_list page;
    size_t next;
    bool is_at_end;
};

static bool keep(void *context, const struct record *record)
{
    hold(context, record);
    return true;
}

static int fill(struct source *source, struct error **err)
{
    struct flow *flow = &source->flow;
    bool is_whole = flow->query->walks_object || flow->query->kind == RECORD_OPERATION;
    int r = 0;
    /* A page whose rows were all filtered out is not the end. */
    while (r == 0 && source->next == source->page.count && !source->is_at_end) {
        forget(&source->page);
        source->next = 0;
        flow->each = keep;
        flow->context = &source->page;
        int64_t before = flow->last_seq;
        r = flow->query->walks_object ? read_object(flow, err)
                                      : read_straight(flow, before, is_whole ? 0 : PAGE_ROWS, err);
        source->is_at_end = is_whole || flow->last_seq == before;
    }
    return r;
}

/* The source whose next row comes next; NULL when all are at their ends. */
static struct source *choose(struct source *sources, size_t count, bool newest_first)
{
    struct source *best = NULL;
    for (size_t i = 0; i < count; i++) {
        struct source *source = &sources[i];
        if (source->next == source->page.count)
            continue;
        int64_t at_us = source->page.items[source->next].at_us;
        int64_t best_us = best ? best->page.items[best->next].at_us : 0;
        if (!best || (newest_first ? at_us > best_us : at_us < best_us))
            best = source;
    }
    return best;
}

static int read_merged(struct audit *audit, const struct query *query, record_each *each, void *context,
                       struct error **err)
{
    struct source sources[AUDIT_JOURNALS_MAX] = {0};
    int r = 0;
    for (size_t i = 0; i < audit->count; i++)
        sources[i].flow = (struct flow){.query = query,
                                        .journal = &audit->journals[i],
                                        .last_seq = query->after_seqs ? query->after_seqs[i] : 0};
    for (;;) {
        for (size_t i = 0; r == 0 && i < audit->count; i++)
            r = fill(&sources[i], err);
        struct source *source = r == 0 ? choose(sources, audit->count, query->newest_first) : NULL;
        if (!source)
            break;
        struct record record =
            record_of(query->kind, source->flow.journal, &source->page.items[source->next++]);
        if (!each(context, &record))
            break;
    }
    for (size_t i = 0; i < audit->count; i++) {
        forget(&sources[i].page);
        belonging_free(sources[i].flow.belonging);
    }
    return r;
}

/* --- the whole -------------------------------------------------------------------------------------- */

int record_entry_kinds(const char *text, unsigned *ret, struct error **err)
{
    *ret = JOURNAL_KIND_ALL;
    while (text && *text) {
        size_t length = strcspn(text, ",");
        CLEANUP_FREE char *word = xstrndup(text, length);
        int kind = journal_kind_of_text(word);
        if (kind < 0) {
            CLEANUP_BUF struct buf names = BUF_INIT(4096);
            for (int i = 0; i < JOURNAL_KIND_COUNT; i++)
                buf_addf(&names, "%s%s", i ? ", " : "", journal_kind_text((enum journal_kind)i));
            return error_set(err, ERROR_USAGE, "no entry is of kind \"%s\": the kinds are %s", word,
                             buf_text(&names));
        }
        *ret |= JOURNAL_KIND_BIT(kind);
        text += length + (text[length] == ',');
    }
    return 0;
}

struct limited {
    record_each *each;
    void *context;
    int64_t left;
};

static bool count_down(void *context, const struct record *record)
{
    struct limited *limited = context;
    return limited->each(limited->context, record) && --limited->left > 0;
}

static int read_query(struct audit *audit, const struct query *query, record_each *each, void *context,
                      struct error **err)
{
    const struct audit_filter *filter = query->filter;
    struct limited limited = {.each = each, .context = context, .left = filter->limit};
    if (filter->limit > 0) {
        each = count_down;
        context = &limited;
    }
    if (audit->count != 1)
        return read_merged(audit, query, each, context, err);
    struct flow flow = {.query = query, .journal = &audit->journals[0], .each = each, .context = context};
    int64_t after = query->after_seqs ? query->after_seqs[0] : 0;
    int r = query->walks_object ? read_object(&flow, err) : read_straight(&flow, after, 0, err);
    belonging_free(flow.belonging);
    return r;
}

int records_read(struct audit *audit, enum record_kind kind, const struct audit_filter *filter,
                 bool newest_first, record_each *each, void *context, struct error **err)
{
    PRE(!newest_first || kind == RECORD_OPERATION);
    struct query query = {
        .kind = kind, .filter = filter, .newest_first = newest_first, .walks_object = filter->object != NULL};
    if (kind == RECORD_ENTRY && filter->outcome)
        return error_set(err, ERROR_USAGE, "entries have no outcome: use --kind applied,rejected");
    int r = kind == RECORD_ENTRY ? record_entry_kinds(filter->kind, &query.entry_kinds, err)
                                 : audit_check_words(audit, kind, filter, err);
    return r < 0 ? r : read_query(audit, &query, each, context, err);
}

int records_read_after(struct audit *audit, const int64_t *after_seqs, const struct audit_filter *filter,
                       record_each *each, void *context, struct error **err)
{
    struct query query = {.kind = RECORD_ENTRY, .filter = filter, .after_seqs = after_seqs};
    int r = record_entry_kinds(filter->kind, &query.entry_kinds, err);
    return r < 0 ? r : read_query(audit, &query, each, context, err);
}
