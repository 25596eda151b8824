/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/options.h"
#include "audit/sheet.h"
#include "base/time_text.h"
#include "cmd/library_text.h"

enum {
    INDEX_GET,
    INDEX_STATUS,
    INDEX_WHY,
    INDEX_HISTORY,
    INDEX_UNDO,
    INDEX_PAUSE,
    INDEX_RESUME,
    INDEX_ADOPT,
    INDEX_CONTINUE,
    INDEX_SETTLE,
    INDEX_APPLY,
    INDEX_RESIZE_JOB,
    INDEX_RESIZE_DECLARED,
    INDEX_RESIZE_SCRIPT,
    INDEX_RESIZE_PLAN,
    INDEX_RESIZE_CONVERGE,
    INDEX_RESIZE_RECOVER,
};
enum { TIMEOUT_MAX_S = 600 };

#define OF(name) (UINT64_C(1) << INDEX_##name)

static const struct option_command commands[] = {
    [INDEX_GET] = {.name = "get", .arguments = "[NAME]", .help = "NeoSets as a table", .arguments_max = 1},
    [INDEX_STATUS] =
        {.name = "status",
         .arguments = "NAME",
         .help = "one set and its pods: what is done, what is waited for, what to type next",
         .more = "Ends with 3 where the rollout has failed; so does -w, which ends as soon as it has, "
                 "or when nothing is waited for any more.",
         .arguments_min = 1,
         .arguments_max = 1},
    [INDEX_WHY] =
        {.name = "why",
         .arguments = "NAME",
         .help = "why it stands where it stands, and what unblocks it",
         .more =
             "Reads the cluster and, where --journal names the controller's journal (or a copy of it), what "
             "the journal knows of open steps and waits. Ends with 3 where the rollout has failed.",
         .arguments_min = 1,
         .arguments_max = 1},
    [INDEX_HISTORY] = {.name = "history",
                       .arguments = "NAME",
                       .help = "the revisions of a set; with --journal also its rollouts",
                       .arguments_min = 1,
                       .arguments_max = 1},
    [INDEX_UNDO] =
        {.name = "undo",
         .arguments = "NAME",
         .help = "go back to an earlier revision of the pod template",
         .more = "Without --to-revision: to the stable revision while a rollout is under way or has failed, "
                 "else to "
                 "the newest other one that was stable once. One that was not seen stable since the status "
                 "lists those is passed over; "
                 "`neosetctl history` shows which these are. A set whose template is one that was stable, "
                 "while another is, goes back already: nothing is written.\nOnly the pod template is written "
                 "back; "
                 "replicas, partition, pause and volumes stay. "
                 "Pods that never left the revision are not touched. The manifest in your repository is not: "
                 "the next `kubectl apply` of it rolls forward again.",
         .arguments_min = 1,
         .arguments_max = 1},
    [INDEX_PAUSE] = {.name = "pause",
                     .arguments = "NAME",
                     .help = "start no further updates (those under way are finished)",
                     .arguments_min = 1,
                     .arguments_max = 1},
    [INDEX_RESUME] = {.name = "resume",
                      .arguments = "NAME",
                      .help = "go on with a paused rollout",
                      .arguments_min = 1,
                      .arguments_max = 1},
    [INDEX_ADOPT] =
        {.name = "adopt",
         .arguments = "statefulset/NAME",
         .help = "turn a running StatefulSet into a NeoSet that owns the same pods, without a restart",
         .more = "Proven by dry runs first; then the NeoSet is created, paused, the StatefulSet's manifest "
                 "is kept in "
                 "the cluster, the StatefulSet is deleted with its pods left behind, and neoset-controller "
                 "adopts them. "
                 "What a NeoSet has not is refused before anything is written. Stopped anywhere, the same "
                 "command goes "
                 "on.\nWith --undo NAME a NeoSet goes back to the StatefulSet that it was, until its first "
                 "rollout.",
         .arguments_min = 1,
         .arguments_max = 1},
    [INDEX_CONTINUE] =
        {.name = "continue",
         .help = "what was begun and not ended: go on with it",
         .more = "Volumes that are half grown are grown to the end. Of an adoption, the commands that go "
                 "on and back are shown: which one is yours to say, and until then this ends with 1."},
    [INDEX_SETTLE] =
        {.name = "settle",
         .arguments = "KIND/NAME",
         .help = "say what became of a step that nobody else can decide",
         .more = "The object is the one that the step was written to. `applied`: it was done; `absent`: "
                 "it never was, nor will be. Your word is written as the annotation apps.neo.io/settle on "
                 "the object; the controller reads it there and journals it, with who and why. Where "
                 "--journal names the controller's journal, a step that it has not, or that is not open, is "
                 "refused.",
         .arguments_min = 1,
         .arguments_max = 1},
    [INDEX_APPLY] =
        {.name = "apply",
         .help = "apply manifests of any kind by server-side apply, through your journal",
         .more =
             "All of them are tried by dry runs first: one that the server refuses keeps all of them from "
             "being written, and what would change nothing is not written. Namespaces and definitions come "
             "first, the rest in its order. A StatefulSet that is refused because its volumes grew is "
             "converged. Nothing is ever deleted."},
    [INDEX_RESIZE_JOB] =
        {.name = "resize job",
         .help = "the Job that makes the StatefulSets in -f ready for larger volumes, and what it needs",
         .more =
             "For appliers that try every object before they apply any, as Flux does: the Job is to run "
             "before the rest is applied. Printed are a ServiceAccount, a Role with what the Job does and "
             "no more, a RoleBinding, a NetworkPolicy and the Job, in this order. The Job's name has a "
             "hash of its pod spec: the same input gives the same bytes, a changed size another Job. The "
             "context is not asked: a StatefulSet that names no namespace needs -n."},
    [INDEX_RESIZE_DECLARED] =
        {.name = "resize declared",
         .help = "what the resize script is told of the StatefulSets in -f: its RESIZE_DECLARED"},
    [INDEX_RESIZE_SCRIPT] = {.name = "resize script",
                             .help = "the script that does without neoset what a Job needs: sh, kubectl, jq",
                             .more = "Its first lines say what it reads and how it ends. `neosetctl resize "
                                     "job` prints a Job that runs it."},
    [INDEX_RESIZE_PLAN] = {.name = "resize plan",
                           .help = "what growing the volumes of the StatefulSets in -f would do",
                           .more = "Asks the API server by dry runs, and writes nothing. Refused: exit 2."},
    [INDEX_RESIZE_CONVERGE] =
        {.name = "resize converge",
         .help = "grow the volumes of running StatefulSets to what -f declares, without a restart",
         .more =
             "All is proven by dry runs first. Then the claims grow, the StatefulSet's manifest is kept in "
             "the cluster, "
             "the StatefulSet is deleted with its pods left behind and made again with the larger "
             "templates, as it was. "
             "Any other change of its claim templates is refused before anything is written. Stopped "
             "anywhere, "
             "`neosetctl continue` "
             "or the same command goes on. Nothing else of the manifest is applied: do that afterwards, as "
             "ever."},
    [INDEX_RESIZE_RECOVER] =
        {.name = "resize recover",
         .help = "the way back from a growth that failed, to the smaller size that -f declares",
         .more = "Claims that ask for more than their storage can give are asked for less again: for the "
                 "declared "
                 "size, which must be above what any of them has. Then the StatefulSet is made again with "
                 "it. What has "
                 "become as large already is not lowered: a volume never shrinks."},
    {0},
};

static const struct option_spec specs[] = {
    {.name = "namespace",
     .letter = 'n',
     .value = "NS",
     .help = "the namespace",
     .fallback_text = "the context's"},
    {.name = "filename",
     .letter = 'f',
     .value = "FILE",
     .help = "the manifests: a file, a folder's *.yaml, *.yml and *.json, or - for the standard input",
     .commands = OF(APPLY) | OF(RESIZE_DECLARED) | OF(RESIZE_JOB) | OF(RESIZE_PLAN) | OF(RESIZE_CONVERGE) |
                 OF(RESIZE_RECOVER),
     .repeats = true,
     .is_file = true},
    {.name = "all-namespaces",
     .letter = 'A',
     .help = "sets of all namespaces",
     .commands = OF(GET) | OF(CONTINUE)},
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .help = "how to show it",
     .fallback = "table",
     .choices = SHEET_FORMATS,
     .commands = OF(GET) | OF(STATUS) | OF(WHY) | OF(HISTORY) | OF(ADOPT) | OF(CONTINUE) | OF(APPLY) |
                 OF(RESIZE_PLAN)},
    {.name = "watch",
     .letter = 'w',
     .help = "show it again and again until the rollout is over: redrawn in place on a terminal, else a line "
             "for each change",
     .commands = OF(STATUS)},
    {.name = "to-revision",
     .value = "N",
     .help = "the number that `neosetctl history` shows",
     .fallback_text = "the stable or the previous one",
     .commands = OF(UNDO)},
    {.name = "dry-run",
     .help = "say what would be done, and write nothing",
     .commands = OF(UNDO) | OF(ADOPT) | OF(APPLY) | OF(CONTINUE)},
    {.name = "undo", .help = "go back: the argument is the NeoSet's NAME", .commands = OF(ADOPT)},
    {.name = "unit",
     .value = "NAME",
     .help = "the delivery unit that the Job is for, a part of its names",
     .fallback_text = "none",
     .commands = OF(RESIZE_JOB)},
    {.name = "image",
     .value = "IMAGE",
     .help = "an image with sh, kubectl and jq",
     .fallback_text = "alpine/k8s, by digest",
     .commands = OF(RESIZE_JOB)},
    {.name = "label",
     .value = "NAME=VALUE",
     .help = "a label for each object",
     .commands = OF(RESIZE_JOB),
     .repeats = true},
    {.name = "pull-secret",
     .value = "NAME",
     .help = "a Secret of the namespace to pull the image with",
     .commands = OF(RESIZE_JOB),
     .repeats = true},
    {.name = "yes", .help = "do not ask", .commands = OF(ADOPT)},
    {.name = "timeout",
     .value = "TIME",
     .help = "end after so long, to be gone on with",
     .fallback = "5m",
     .commands =
         OF(ADOPT) | OF(APPLY) | OF(RESIZE_CONVERGE) | OF(RESIZE_RECOVER) | OF(RESIZE_PLAN) | OF(CONTINUE)},
    {.name = "field-manager",
     .value = "NAME",
     .help = "in whose name the manifest is applied",
     .fallback_text = "neosetctl; to converge: who applied the running one",
     .commands = OF(APPLY) | OF(RESIZE_PLAN) | OF(RESIZE_CONVERGE) | OF(RESIZE_RECOVER)},
    {.name = "force-conflicts",
     .help = "take fields of other field managers over",
     .commands = OF(APPLY) | OF(RESIZE_PLAN) | OF(RESIZE_CONVERGE) | OF(RESIZE_RECOVER)},
    {.name = "allow-degraded",
     .help = "pods need not be ready (a full disk may be why): they are waited for three minutes only",
     .commands = OF(RESIZE_CONVERGE) | OF(RESIZE_RECOVER)},
    {.name = "wait-for-filesystem",
     .help = "done only when every claim has its size",
     .commands = OF(RESIZE_CONVERGE) | OF(RESIZE_RECOVER)},
    {.name = "journal",
     .value = "FILE",
     .help = "the controller's journal, or a copy, to tell more",
     .variable = "NEOSET_JOURNAL",
     .commands = OF(STATUS) | OF(WHY) | OF(HISTORY) | OF(SETTLE),
     .repeats = true,
     .is_file = true},
    {.name = "kubeconfig",
     .value = "FILE",
     .help = "how to reach the server",
     .fallback_text = "$KUBECONFIG, ~/.kube/config, then in-cluster",
     .is_file = true},
    {.name = "context",
     .value = "NAME",
     .help = "the context of the kubeconfig",
     .fallback_text = "its current one"},
    {.name = "step",
     .value = "KEY",
     .help = "the step, as the set's condition Stalled names it",
     .commands = OF(SETTLE)},
    {.name = "reason", .value = "TEXT", .help = "how you know", .commands = OF(SETTLE)},
    {.name = "as", .value = "USER", .help = "act as this user", .commands = ~OF(SETTLE)},
    {.name = "as",
     .value = "OUTCOME",
     .help = "what became of the step: applied or absent",
     .commands = OF(SETTLE)},
    {.name = "request-timeout",
     .value = "TIME",
     .help = "how long to wait for the server; 0: ten minutes, as with anything longer",
     .fallback = "30s"},
    {.name = "color", .value = "WHEN", .help = "colours", .fallback = "auto", .choices = "auto|always|never"},
    {0},
};

static const struct option_example examples[] = {
    {"get", "All sets", "neosetctl get -A"},
    {"get", "What a script may want", "neosetctl get mysql -n prod -o json"},
    {"status", "How far is the rollout?", "neosetctl status mysql -n prod"},
    {"status", "Watch it until it is over", "neosetctl status mysql -n prod -w"},
    {"why", "Why does it stand still, and what unblocks it?", "neosetctl why mysql -n prod"},
    {"why", "The same, with what the controller's journal knows",
     "neosetctl why mysql -n prod --journal /var/lib/neoset/journal.db"},
    {"history", "Which versions were there?", "neosetctl history mysql -n prod"},
    {"history", "And its rollouts, from the controller's journal",
     "neosetctl history mysql --journal /var/lib/neoset/journal.db"},
    {"undo", "Take the rollout back, and watch", "neosetctl undo mysql && neosetctl status mysql -w"},
    {"undo", "What would revision 3 change?", "neosetctl undo mysql --to-revision 3 --dry-run"},
    {"pause", "Stop here", "neosetctl pause mysql -n prod"},
    {"resume", "Go on", "neosetctl resume mysql -n prod"},
    {"adopt", "What would become of it, as a table and as the NeoSet",
     "neosetctl adopt statefulset/db --dry-run && neosetctl adopt statefulset/db --dry-run -o yaml"},
    {"adopt", "There, and back", "neosetctl adopt statefulset/db && neosetctl adopt --undo db"},
    {"continue", "What is half done, and how it is gone on with", "neosetctl continue -A --dry-run"},
    {"continue", "Go on with it", "neosetctl continue -n prod"},
    {"settle", "A node died with the answer: say that the step was never done",
     "neosetctl settle pod/mysql-2 --step 0123456789abcdef-46 --as absent --reason \"the node was gone\""},
    {"apply", "What would it change?", "neosetctl apply -f deploy/ -n prod --dry-run"},
    {"apply", "Apply it", "helm template db ./chart | neosetctl apply -n prod -f -"},
    {"resize job", "Before a rollout by Flux",
     "neosetctl resize job -f render.yaml -n prod > pre/resize.yaml"},
    {"resize declared", "Is it what was meant?", "neosetctl resize declared -f render.yaml | jq ."},
    {"resize script", "Without a Job",
     "neosetctl resize script > resize.sh && RESIZE_NAMESPACE=prod RESIZE_DECLARED=$(neosetctl resize "
     "declared -f "
     "render.yaml) sh resize.sh"},
    {"resize plan", "Which claims would grow, and may they?", "neosetctl resize plan -f db.yaml -n prod"},
    {"resize converge", "Grow them, then apply the rest",
     "neosetctl resize converge -f db.yaml -n prod && kubectl apply -f db.yaml -n prod"},
    {"resize converge", "A full disk keeps the pods from being ready",
     "neosetctl resize converge -f db.yaml -n prod --allow-degraded --wait-for-filesystem"},
    {"resize recover", "The storage cannot become that large: declare less, and",
     "neosetctl resize recover -f db.yaml -n prod"},
    {0},
};

static const struct option_exit exits[] = {
    {NEOSETCTL_EXIT_DONE, "done", 0},
    {NEOSETCTL_EXIT_FAILED, "failure", 0},
    {NEOSETCTL_EXIT_REFUSED, "refused: nothing was written", 0},
    {NEOSETCTL_EXIT_ROLLOUT_FAILED, "status, status -w, why: the rollout has failed", OF(STATUS) | OF(WHY)},
    {NEOSETCTL_EXIT_USAGE, "wrong usage", 0},
    {0},
};

const struct option_program neosetctl_program = {
    .name = "neosetctl",
    .summary = "look at NeoSets, and steer their rollouts",
    .description = "Talks to the API server with your own identity. What it writes is first written to a "
                   "journal of your "
                   "own, $XDG_STATE_HOME/neoset/neosetctl.db (default ~/.local/state/neoset/neosetctl.db).\n"
                   "kubectl finds it as `kubectl neoset` when it is installed as kubectl-neoset.",
    .examples = examples,
    .commands = commands,
    .options = specs,
    .exits = exits,
    .usage_exit = NEOSETCTL_EXIT_USAGE,
    .details = library_text,
    .see_also = "neoset-controller(1), neoset-audit(1), kubectl(1)",
};

int neosetctl_timeout(const struct options *options, int64_t *ret_us, struct error **err)
{
    const char *text = option_text(options, "request-timeout");
    bool is_number = *text != '\0' && text[strspn(text, "0123456789")] == '\0';
    CLEANUP_FREE char *with_unit = xasprintf("%s%s", text, is_number ? "s" : "");
    int64_t timeout_us = 0;
    int r = duration_parse(with_unit, &timeout_us, err);
    if (r < 0)
        return error_wrap(err, -ERROR_USAGE, "--request-timeout");
    if (timeout_us == 0 || timeout_us > TIMEOUT_MAX_S * US_PER_S)
        timeout_us = TIMEOUT_MAX_S * US_PER_S;
    *ret_us = timeout_us;
    return 0;
}
