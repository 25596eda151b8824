/* SPDX-License-Identifier: Apache-2.0
 *
 * What neosetctl prints: tables, pictures and reports made of views, and of what the controller's journal
 * says where one is given. Talks to nobody. */
#pragma once

#include "audit/audit.h"
#include "cmd/neosetctl/view.h"

/* A table (or any other format) of sets; objects is an array. Returns how many. */
int64_t ctl_report_sets(struct out *out, const struct sheet_look *look, const cJSON *objects, int64_t now_us,
                        bool has_namespaces);
/* Phase, stage and fence as a picture of the pods; which pod is waited for, since when, until when and why;
 * the next command. journal NULL: from the cluster alone. */
int ctl_report_status(struct out *out, const struct sheet_look *look, const struct set_view *set,
                      const struct pod_views *pods, int64_t now_us, struct audit *journal,
                      struct error **err);
/* The same on one line, for a log: "RollingOut, 1 of 3 updated, 2 ready: waiting for mysql-1 ..."; the
 * caller's. Says the same as long as nothing happens. journals NULL: none was named. */
char *ctl_status_line(const struct set_view *set, const struct journals_view *journals);
void ctl_report_history(struct out *out, const struct sheet_look *look, const struct set_view *set,
                        const struct revision_views *revisions, int64_t now_us);
/* Why it stands where it stands: the cause in one sentence, the facts, the next command. journal NULL: from
 * the cluster alone. */
int ctl_report_why(struct out *out, const struct sheet_look *look, const struct set_view *set,
                   const struct pod_views *pods, int64_t now_us, struct audit *journal, struct error **err);

/* --- parts --- */

bool ctl_is_text(const struct sheet_look *look);
enum sheet_tone ctl_tone_of_phase(const char *phase);
/* That no controller is at work, where that is known: people read it first. */
void ctl_add_away(struct buf *text, const struct sheet_look *look, const struct set_view *set,
                  const struct journals_view *journals, int64_t now_us);
/* As ctl_add_field, on one line however long: what people copy stays one command. */
void ctl_add_command(struct buf *text, const char *name, const char *command);
/* Phase, numbers and message, where they are of the time before the set's newest change, which no controller
 * has seen: not those of the rollout that will come. The caller's; NULL: they are current, or there are none.
 */
char *ctl_outdated_text(const struct set_view *set);
/* "NeoSet mysql in prod: RollingOut, 1 of 3 updated, 2 ready" */
void ctl_add_head(struct buf *text, const struct sheet_look *look, const struct set_view *set);
/* value, escaped, on as many lines as a terminal needs, each but the first indented; "" is shown as "-". */
void ctl_add_wrapped(struct buf *text, const struct sheet_look *look, size_t indent, const char *value);
/* "  fence      4" */
void ctl_add_field(struct buf *text, const struct sheet_look *look, const char *name, const char *value);
void ctl_add_next(struct buf *text, const struct sheet_look *look, const char *next);
/* The set as a JSON object on one line. */
void ctl_add_set_json(struct buf *text, const struct sheet_look *look, const struct set_view *set);
/* "since TIME (5m), until TIME (25m left)"; "" when nothing is known. The caller's. */
char *ctl_times_text(const struct set_view *set, const struct pod_view *pod, int64_t now_us);

/* What was found, in the order of weight, and from where: "status", "condition", "pod", "journal". */
enum { FINDINGS_MAX = 200 };
struct findings {
    char *texts[FINDINGS_MAX];
    const char *sources[FINDINGS_MAX];
    size_t count;
    int64_t left_out;
    char *doubt; /* a sentence about a step whose fate is in doubt, or NULL */
    struct journals_view journals;
};
void findings_done(struct findings *findings);
/* Who is at work, as the journals tell: fills findings->journals, and finds what the Lease tells otherwise.
 */
int ctl_find_controller(struct audit *audit, const struct set_view *set, struct findings *findings,
                        struct error **err);
/* What the journals know of the set: open operations, waits with their budgets, steps in doubt, refusals. */
int ctl_find_in_journal(struct audit *audit, const struct set_view *set, struct findings *findings,
                        struct error **err);
void ctl_add_findings(struct buf *text, const struct sheet_look *look, const struct findings *findings);
