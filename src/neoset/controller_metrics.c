/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/controller_parts.h"

static void write_metric(struct buf *text, const char *name, const char *type, const char *help,
                         int64_t value)
{
    buf_addf(text, "# HELP %s %s\n# TYPE %s %s\n%s %lld\n", name, help, name, type, name, (long long)value);
}

static void write_gateway(const struct controller *controller, struct buf *text)
{
    struct gateway_metrics metrics;
    gateway_metrics_get(controller->gateway, &metrics);
    write_metric(text, "neoset_steps_submitted_total", "counter", "Steps whose intent was journaled.",
                 metrics.submitted);
    write_metric(text, "neoset_steps_sent_total", "counter", "Attempts that may have left.", metrics.sent);
    write_metric(text, "neoset_steps_applied_total", "counter", "Steps that were applied.", metrics.applied);
    write_metric(text, "neoset_steps_rejected_total", "counter", "Steps that the server refused.",
                 metrics.rejected);
    write_metric(text, "neoset_steps_in_doubt_total", "counter", "Times that a step fell in doubt.",
                 metrics.in_doubt);
    write_metric(text, "neoset_steps_resent_total", "counter", "Attempts after the first.", metrics.resent);
    write_metric(text, "neoset_steps_not_sent_total", "counter", "Steps that provably never left.",
                 metrics.not_sent);
    write_metric(text, "neoset_steps_late_total", "counter", "Closed steps whose key turned up later.",
                 metrics.late);
    write_metric(text, "neoset_steps_recovered_total", "counter", "Open steps taken over from ended runs.",
                 metrics.recovered);
    write_metric(text, "neoset_steps_open", "gauge", "Steps without an outcome.", metrics.open);
    write_metric(text, "neoset_steps_parked", "gauge", "Open steps that cannot be decided for now.",
                 metrics.parked + metrics.unreadable);
}

static void write_journal(const struct controller *controller, struct buf *text)
{
    struct journal_metrics metrics;
    journal_metrics_get(controller->journal, &metrics);
    write_metric(text, "neoset_journal_entries", "gauge", "Entries in the journal.", metrics.entries);
    write_metric(text, "neoset_journal_commits_total", "counter", "Commits.", metrics.commits);
    write_metric(text, "neoset_journal_commit_microseconds_total", "counter", "Time spent in commits.",
                 metrics.commit_us_total);
    write_metric(text, "neoset_journal_commit_microseconds_max", "gauge", "The slowest commit.",
                 metrics.commit_us_max);
    write_metric(text, "neoset_journal_wal_bytes", "gauge", "Size of the write-ahead log.",
                 metrics.wal_bytes);
    write_metric(text, "neoset_journal_file_bytes", "gauge", "Size of the file.", metrics.file_bytes);
    write_metric(text, "neoset_journal_pruned_seq", "gauge", "Entries up to here were removed by retention.",
                 metrics.pruned_seq);
    write_metric(text, "neoset_journal_open_operations", "gauge", "Operations without an end.",
                 metrics.open_operations);
    write_metric(text, "neoset_journal_open_waits", "gauge", "Waits without an end.", metrics.open_waits);
    write_metric(text, "neoset_journal_well", "gauge", "1: the journal takes intents.",
                 journal_health(controller->journal) == JOURNAL_WELL);
    write_metric(text, "neoset_journal_went_back", "gauge",
                 "1: the journal went back or forked before this run.", controller->went_back);
}

/* By the phase that was written last, for an alert on Failed. */
static void write_phases(const struct controller *controller, struct buf *text)
{
    static const char *const phases[] = {"Idle", "Canary", "RollingOut", "Paused", "Failed", "Completed"};
    int64_t counts[ARRAY_SIZE(phases)] = {0};
    for (const struct set_group *group = controller->store->groups; group; group = group->hh.next) {
        const struct turn *turn = group->turn;
        for (size_t i = 0; group->set && turn && i < ARRAY_SIZE(phases); i++)
            counts[i] += str_equal(turn->phase, phases[i]);
    }
    buf_addf(text,
             "# HELP neoset_sets_in_phase NeoSets by their phase.\n# TYPE neoset_sets_in_phase gauge\n");
    for (size_t i = 0; i < ARRAY_SIZE(phases); i++)
        buf_addf(text, "neoset_sets_in_phase{phase=\"%s\"} %lld\n", phases[i], (long long)counts[i]);
}

void controller_write_metrics(const struct controller *controller, struct buf *text)
{
    write_gateway(controller, text);
    write_journal(controller, text);
    write_metric(text, "neoset_leading", "gauge", "1: this controller leads.", controller->leads);
    write_metric(text, "neoset_epoch", "gauge", "The epoch of its entries.",
                 journal_epoch(controller->journal));
    write_metric(text, "neoset_sets", "gauge", "NeoSets known.", (int64_t)controller->store->set_count);
    write_phases(controller, text);
    write_metric(text, "neoset_pods", "gauge", "Pods known.", (int64_t)controller->store->pod_count);
    int64_t went_back = 0;
    for (size_t i = 0; i < WATCHED_COUNT; i++)
        went_back += controller->watched[i].went_back;
    write_metric(text, "neoset_watch_went_back_total", "counter",
                 "Lists that were older than what was seen before: the server's storage was restored.",
                 went_back);
    write_metric(text, "neoset_turns_total", "counter", "Turns planned.", controller->turns);
    write_metric(text, "neoset_queue_length", "gauge", "Keys that wait for a turn.",
                 (int64_t)loop_waiting(controller->loop));
    buf_addf(text, "# HELP neoset_exempt_writes_total Writes that are not journaled.\n"
                   "# TYPE neoset_exempt_writes_total counter\n");
    for (int kind = 0; kind < EXEMPT_KIND_COUNT; kind++)
        buf_addf(text, "neoset_exempt_writes_total{kind=\"%s\"} %lld\n",
                 exempt_kind_text((enum exempt_kind)kind),
                 (long long)exempt_count(controller->exempt, (enum exempt_kind)kind));
}
