/* SPDX-License-Identifier: Apache-2.0
 *
 * neosetctl resize plan and converge: a running StatefulSet whose volumes are to grow, with the real program
 * against the simulated API server. The same pods all the time, none restarted, also when the command is
 * killed at any edge of any of its steps and somebody goes on. */
#include "converge_stage.h"

static int setup(void **state)
{
    return setup_with(state, 1, NULL);
}

static int setup_by_field(void **state)
{
    static const char *const options[] = {"--refuse-by-field", NULL};
    return setup_with(state, 1, options);
}

static int setup_with_definition(void **state)
{
    static const char *const options[] = {"--crd", "deploy/crd.yaml", NULL};
    return setup_with(state, 1, options);
}

static int setup_three(void **state)
{
    return setup_with(state, 3, NULL);
}

static int teardown(void **state)
{
    return stage_teardown(state);
}

/* Of neosetctl's. */
static int count_requests(const struct stage *stage)
{
    CLEANUP_FREE char *line = xasprintf("grep -c '\"userAgent\":\"neoset/' %s/audit.log", stage->folder);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    int count = -1;
    assert_int_equal(fscanf(pipe, "%d", &count), 1);
    pclose(pipe);
    return count;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* Report 1, acceptance 1. */
static void volumes_grow_and_the_next_apply_changes_nothing(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    CLEANUP_FREE char *pods = pods_text(stage, false);
    CLEANUP_FREE char *before = set_text(stage);
    expect_resize(stage, "plan", "", 0, "data-db-1  std    1Gi   2Gi", NULL);
    expect_resize(stage, "plan", " -o json", 0, "\"outcome\":\"grow\"", NULL);
    struct stat status;
    assert_int_not_equal(stat(stage->journal, &status), 0);
    CLEANUP_FREE char *planned = set_text(stage);
    assert_string_equal(planned, before);
    int before_it = count_requests(stage);
    expect_resize(stage, "converge", IN_TIME, 0, "the same 3 pods, none restarted", NULL);
    int requests = count_requests(stage) - before_it;
    print_message("    %d requests for 3 claims, waiting included\n", requests);
    assert_in_range(requests, 20, 2 * 3 + 40 + 30);
    assert_converged(stage, pods, "2Gi");
    CLEANUP_FREE char *after = set_text(stage);
    kubectl_apply(stage, "me");
    let_pass(500);
    CLEANUP_FREE char *applied = set_text(stage);
    assert_string_equal(applied, after);
    expect_resize(stage, "converge", IN_TIME, 0, "nothing to converge", NULL);
    assert_converged(stage, pods, "2Gi");
    assert_history(stage);
}

/* What was changed by hand and is not in the manifest stays: replicas, and a restart's annotation. Report 22,
 * report 23, acceptance 14. */
static void what_others_changed_stays(void **state)
{
    struct stage *stage = *state;
    write_manifest(stage, 1, "1Gi", "");
    kubectl_apply(stage, "me");
    stage_write(
        stage, "PATCH", SETS "/db",
        "{'spec':{'replicas':3,'template':{'metadata':{'annotations':{'kubectl.kubernetes.io/restartedAt':"
        "'now'}}}}}");
    let_pass(500);
    wait_until(stage, "restarted", set_is_ready);
    write_manifest(stage, 1, "2Gi", "");
    expect_resize(stage, "converge", IN_TIME, 0, "the same 3 pods, none restarted", NULL);
    CLEANUP_FREE char *after = set_text(stage);
    kubectl_apply(stage, "me");
    let_pass(500);
    CLEANUP_FREE char *applied = set_text(stage);
    assert_string_equal(applied, after);
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/db");
    assert_int_equal(json_int64_or(json_get(set, "spec"), "replicas", 0), 3);
    assert_string_equal(json_path_str(set, "spec", "template", "metadata", "annotations",
                                      "kubectl.kubernetes.io/restartedAt", NULL),
                        "now");
}

/* --- refusals ------------------------------------------------------------------------------------------- */

static void replace_in_manifest(const struct stage *stage, const char *from, const char *to)
{
    CLEANUP_FREE char *line = xasprintf("sed -i 's|%s|%s|' %s/db.yaml", from, to, stage->folder);
    assert_int_equal(system(line), 0);
}

/* Report 46: the set is still there. */
static void what_cannot_be_is_refused_and_nothing_is_written(void **state)
{
    struct stage *stage = *state;
    static const struct {
        const char *from, *to;
        int exit_code;
        const char *words;
    } table[] = {
        {"\"serviceName\":\"db\"", "\"serviceName\":\"other\"", 2, "spec.serviceName"},
        {"\"image\":\"mysql:8.0\"", "\"image\":\"\"", 2, "containers[0].image"},
        {"\"2Gi\"", "\"500Mi\"", 2, "a volume cannot shrink"},
        {"\"2Gi\"", "\"2GiB\"", 2, "2GiB"},
        {"\"storageClassName\":\"std\"", "\"storageClassName\":\"fixed\"", 2, "storageClassName"},
        {"\"name\":\"data\"", "\"name\":\"other\"", 2, "other"},
        {"\"serviceName\":\"db\"", "\"nonsense\":1,\"serviceName\":\"db\"", 2, "cannot read the manifest"},
    };
    wait_for_old_pods();
    CLEANUP_FREE char *set = set_text(stage);
    CLEANUP_FREE char *claims = claims_text(stage);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        write_manifest(stage, 1, "2Gi", THREE);
        replace_in_manifest(stage, table[i].from, table[i].to);
        expect_resize(stage, "converge", IN_TIME, table[i].exit_code, "", table[i].words);
        expect_resize(stage, "plan", "", table[i].exit_code, "", table[i].words);
    }
    CLEANUP_FREE char *set_after = set_text(stage);
    CLEANUP_FREE char *claims_after = claims_text(stage);
    assert_string_equal(set_after, set);
    assert_string_equal(claims_after, claims);
    struct stat status;
    assert_int_not_equal(stat(stage->journal, &status), 0);
}

/* "Nothing to converge" is true of a namespace that is not there, and no help. */
static void a_namespace_that_is_not_there_is_named(void **state)
{
    struct stage *stage = *state;
    write_manifest(stage, 1, "2Gi", THREE);
    static const char *const words[] = {"converge", "plan"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        expect_resize(stage, words[i], " -n nowhere" IN_TIME, 2, "", "there is no namespace nowhere");
        replace_in_manifest(stage, "\"name\":\"db\",\"labels\"", "\"name\":\"dc\",\"labels\"");
        expect_resize(stage, words[i], IN_TIME, 0, "there is no StatefulSet dc in namespace default", NULL);
        write_manifest(stage, 1, "2Gi", THREE);
    }
}

/* What another tool applied is taken over only when that is asked for: acceptance 7. */
static void apply_takes_sizes_of_another_over_only_when_it_is_forced(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    CLEANUP_FREE char *pods = pods_text(stage, false);
    CLEANUP_FREE char *before = set_text(stage);
    CLEANUP_FREE char *line = xasprintf("apply -f %s/db.yaml --field-manager flux" IN_TIME, stage->folder);
    expect_run(stage, line, 2, "", "--force-conflicts");
    expect_resize(stage, "converge", " --field-manager flux" IN_TIME, 2, "", "--force-conflicts");
    expect_resize(stage, "plan", " --field-manager flux", 2, "", "--force-conflicts");
    CLEANUP_FREE char *after = set_text(stage);
    CLEANUP_FREE char *claims = claims_text(stage);
    assert_string_equal(after, before);
    assert_string_equal(claims, "data-db-0 1Gi\ndata-db-1 1Gi\ndata-db-2 1Gi\n");
    CLEANUP_FREE char *forced = xasprintf("%s --force-conflicts", line);
    expect_run(stage, forced, 0, "statefulset.apps/db  default    converged", "the same 3 pods");
    assert_converged(stage, pods, "2Gi");
}

/* --- other people in the middle of it ------------------------------------------------------------------- */

static void it_waits_for_quiet_pods_says_so_and_is_gone_on_with(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *pods = pods_text(stage, false);
    expect_resize(stage, "converge", " --timeout 2s", 1, "waiting: db-", "goes on");
    CLEANUP_FREE char *claims = claims_text(stage);
    assert_string_equal(claims, "data-db-0 2Gi\ndata-db-1 2Gi\ndata-db-2 2Gi\n");
    wait_for_old_pods();
    expect_resize(stage, "converge", IN_TIME, 0, "the same 3 pods, none restarted", NULL);
    assert_converged(stage, pods, "2Gi");
}

/* The journal may not become larger than it is: a disk that fails in the middle of it. */
static void a_journal_that_dies_ends_it_at_once_with_its_reason(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *pods = pods_text(stage, false);
    expect_resize(stage, "converge", " --timeout 2s", 1, "waiting: db-", "goes on");
    wait_for_old_pods();
    CLEANUP_FREE char *line = command(stage, "converge", IN_TIME);
    CLEANUP_FREE char *path = program_path("neosetctl");
    CLEANUP_FREE char *script =
        xasprintf("exec >%s/out 2>&1; ulimit -f $(($(stat -c %%s %s/neoset/neosetctl.db) / 512)); %s "
                  "timeout 20 '%s' %s --kubeconfig %s; test $? -eq 1",
                  stage->folder, stage->folder, stage->state_variable, path, line, stage->kubeconfig);
    assert_int_equal(system(script), 0);
    CLEANUP_FREE char *grep = xasprintf("grep -q 'StatefulSet db in namespace default: your journal takes "
                                        "nothing any more.*disk I/O error.*neosetctl continue -n default' "
                                        "%s/out || { cat %s/out; false; }",
                                        stage->folder, stage->folder);
    assert_int_equal(system(grep), 0);
    expect_run(stage, "continue" IN_TIME, 0, "the same 3 pods, none restarted", NULL);
    assert_converged(stage, pods, "2Gi");
}

static void on_ctrl_c_it_says_how_to_go_on(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *pods = pods_text(stage, false);
    CLEANUP_FREE char *line = command(stage, "converge", IN_TIME);
    CLEANUP_FREE char *path = program_path("neosetctl");
    CLEANUP_FREE char *script =
        xasprintf("exec >%s/out 2>&1; %s '%s' %s --kubeconfig %s & for i in $(seq 100); do grep "
                  "-q waiting: %s/out && break; sleep 0.05; done; kill -INT $!; wait $!; "
                  "test $? -eq 1",
                  stage->folder, stage->state_variable, path, line, stage->kubeconfig, stage->folder);
    assert_int_equal(system(script), 0);
    CLEANUP_FREE char *grep =
        xasprintf("grep -q 'interrupted: .*neosetctl continue -n default' %s/out", stage->folder);
    assert_int_equal(system(grep), 0);
    wait_for_old_pods();
    expect_run(stage, "continue --dry-run", 0, "its volumes are half grown to data=2Gi", NULL);
    expect_run(stage, "continue" IN_TIME, 0, "the same 3 pods, none restarted", NULL);
    assert_converged(stage, pods, "2Gi");
    expect_run(stage, "continue", 0, "", "nothing is half done");
}

/* Who began it never comes back: the controller makes the set again, from what is kept in the cluster. */
static bool set_is_there(const struct stage *stage)
{
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/db");
    return set && count_kept(stage) == 0;
}

static void an_abandoned_set_is_made_again_by_the_controller(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *program = crash_program();
    if (!program)
        skip();
    wait_for_old_pods();
    CLEANUP_FREE char *pods = pods_text(stage, false);
    CLEANUP_FREE char *words = command(stage, "converge", IN_TIME);
    stage->run.environment[3] = "NEOSET_CRASH=done:orphan-delete";
    stage_run(stage, program, words);
    stage->run.environment[3] = NULL;
    assert_int_equal(stage->run.exit_code, -1);
    CLEANUP_FREE char *journal = xasprintf("%s/controller.db", stage->folder);
    CLEANUP_FREE char *log = xasprintf("%s/controller.log", stage->folder);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    stage->controller = stage_spawn(
        (const char *const[]){"neoset-controller", "--kubeconfig", stage->kubeconfig, "--journal", journal,
                              "--no-lease", "--listen", "none", "--resize-abandoned", "2s", NULL},
        fd, fd);
    close(fd);
    wait_until(stage, "made again", set_is_there);
    assert_converged(stage, pods, "2Gi");
    /* Who comes back late finds it done. */
    expect_resize(stage, "converge", IN_TIME, 0, "nothing to converge", NULL);
    assert_history(stage);
}

/* Acceptance 19. */
static void a_growth_that_failed_is_led_back(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    CLEANUP_FREE char *pods = pods_text(stage, false);
    CLEANUP_FREE char *set = set_text(stage);
    write_manifest(stage, 1, TOO_LARGE, THREE);
    expect_resize(stage, "converge", IN_TIME, 1, NULL, "neosetctl resize recover -n default -f FILE");
    /* The first claim alone: the others, and the set, are as they were. */
    CLEANUP_FREE char *claims = claims_text(stage);
    assert_string_equal(claims, "data-db-0 " TOO_LARGE "\ndata-db-1 1Gi\ndata-db-2 1Gi\n");
    CLEANUP_FREE char *after = set_text(stage);
    assert_string_equal(after, set);
    write_manifest(stage, 1, "1Gi", THREE);
    expect_resize(stage, "recover", IN_TIME, 2, "", "declare more than any of them has");
    write_manifest(stage, 1, "3Gi", THREE);
    expect_resize(stage, "recover", " --wait-for-filesystem" IN_TIME, 0, "the same 3 pods, none restarted",
                  NULL);
    assert_converged(stage, pods, "3Gi");
    assert_history(stage);
}

/* Nothing but an Event of the claim says that the pool is full: while it is waited for, and in the end. */
static void what_the_resizer_says_is_shown_while_it_is_waited_for(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    stage_write(stage, "PATCH", CLASSES "/std",
                "{'metadata':{'annotations':{'kubesim.neo.io/resizer':'pool-full'}}}");
    expect_resize(stage, "converge", " --timeout 12s", 1, "ResourceExhausted desc = pool is full",
                  "ResourceExhausted desc = pool is full; nothing is lost");
}

/* Two pods are held on the version before. */
static const char canary[] =
    ",\"replicas\":3,\"updateStrategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"partition\":2}}";

static bool canary_is_out(const struct stage *stage)
{
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/db");
    const cJSON *status = json_get(set, "status");
    return json_int64_or(status, "updatedReplicas", 0) == 1 &&
           json_int64_or(status, "readyReplicas", 0) == REPLICAS &&
           json_int64_or(status, "observedGeneration", -1) ==
               json_int64_or(json_get(set, "metadata"), "generation", -2);
}

static char *image_of(const struct stage *stage, const char *pod)
{
    CLEANUP_FREE char *path = xasprintf(PODS "/%s", pod);
    CLEANUP_JSON cJSON *object = stage_get(stage, path);
    const cJSON *containers = json_path(object, "spec", "containers", NULL);
    return xstrdup(containers ? json_str(containers->child, "image") : "none");
}

static bool first_pod_is_back(const struct stage *stage)
{
    CLEANUP_FREE char *image = image_of(stage, "db-0");
    return strcmp(image, "none") != 0 && set_is_ready(stage);
}

static bool last_pod_is_new(const struct stage *stage)
{
    CLEANUP_FREE char *image = image_of(stage, "db-2");
    return strcmp(image, "mysql:8.1") == 0;
}

static char *apply_command(const struct stage *stage)
{
    return xasprintf("apply -f %s/db.yaml --field-manager me" IN_TIME, stage->folder);
}

static void let_canary_out(struct stage *stage)
{
    write_manifest(stage, 1, "1Gi", canary);
    replace_in_manifest(stage, "mysql:8.0", "mysql:8.1");
    kubectl_apply(stage, "me");
    wait_until(stage, "a canary", canary_is_out);
}

/* A partition holds the others on the version before; a pod of theirs that is lost afterwards comes back on
 * it. Acceptance 17. */
static void a_canary_stays_one(void **state)
{
    struct stage *stage = *state;
    let_canary_out(stage);
    CLEANUP_JSON cJSON *before = stage_get(stage, SETS "/db");
    CLEANUP_FREE char *pods = pods_text(stage, false);
    write_manifest(stage, 1, "2Gi", canary);
    replace_in_manifest(stage, "mysql:8.0", "mysql:8.1");
    expect_resize(stage, "converge", IN_TIME, 0, "its newest template and its partition are back", NULL);
    assert_converged(stage, pods, "2Gi");
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/db");
    static const char *const revisions[] = {"currentRevision", "updateRevision"};
    for (size_t i = 0; i < ARRAY_SIZE(revisions); i++)
        assert_string_equal(json_path_str(set, "status", revisions[i], NULL),
                            json_path_str(before, "status", revisions[i], NULL));
    stage_write(stage, "DELETE", PODS "/db-0", "{}");
    let_pass(500);
    wait_until(stage, "db-0 is back", first_pod_is_back);
    CLEANUP_FREE char *image = image_of(stage, "db-0");
    assert_string_equal(image, "mysql:8.0");
    CLEANUP_FREE char *after = set_text(stage);
    kubectl_apply(stage, "me");
    CLEANUP_JSON cJSON *again = stage_get(stage, SETS "/db");
    assert_int_equal(json_int64_or(json_get(again, "metadata"), "generation", -1),
                     json_int64_or(json_get(set, "metadata"), "generation", -2));
    assert_history(stage);
}

/* What else the manifest changes is for the apply after it: no pod is made anew while the volumes grow. */
static void a_new_image_is_for_the_next_apply(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    CLEANUP_FREE char *pods = pods_text(stage, false);
    replace_in_manifest(stage, "mysql:8.0", "mysql:8.1");
    expect_resize(stage, "converge", IN_TIME, 0, "the same 3 pods, none restarted", NULL);
    let_pass(500);
    assert_converged(stage, pods, "2Gi");
    CLEANUP_FREE char *image = image_of(stage, "db-2");
    assert_string_equal(image, "mysql:8.0");
    kubectl_apply(stage, "me");
    wait_until(stage, "the image", last_pod_is_new);
}

/* A set that is made again with a new template has no version before it: a pod below the partition that is
 * lost would come back on the new one. */
static void apply_leaves_a_new_image_behind_its_partition(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    write_manifest(stage, 1, "2Gi", canary);
    replace_in_manifest(stage, "mysql:8.0", "mysql:8.1");
    CLEANUP_FREE char *line = apply_command(stage);
    expect_run(stage, line, 0, "statefulset.apps/db  default    converged",
               "the same 3 pods, none restarted");
    wait_until(stage, "a canary", canary_is_out);
    stage_write(stage, "DELETE", PODS "/db-0", "{}");
    let_pass(500);
    wait_until(stage, "db-0 is back", first_pod_is_back);
    CLEANUP_FREE char *image = image_of(stage, "db-0");
    assert_string_equal(image, "mysql:8.0");
    CLEANUP_FREE char *newest = image_of(stage, "db-2");
    assert_string_equal(newest, "mysql:8.1");
}

/* --- killed at each edge -------------------------------------------------------------------------------- */

struct edge_count {
    int died, lived;
};

/* goes_on: the command for that. */
static void kill_and_go_on(struct stage *stage, const char *program, const char *words, const char *goes_on,
                           const char *edge, const char *kind, struct edge_count *count)
{
    CLEANUP_FREE char *crash = xasprintf("NEOSET_CRASH=%s:%s", edge, kind);
    stage->run.environment[3] = crash;
    stage_run(stage, program, words);
    bool died = stage->run.exit_code == -1;
    if (!died && stage->run.exit_code != 0)
        fail_msg("%s %s: exit %d: %s %s", edge, kind, stage->run.exit_code, stage->run.output,
                 stage->run.errors);
    count->died += died;
    count->lived += !died;
    if (died) {
        /* And once more, as soon as it looks at what it left. */
        CLEANUP_FREE char *again = xasprintf("NEOSET_CRASH=recover:%s", kind);
        stage->run.environment[3] = again;
        stage_run(stage, program, goes_on);
    }
    stage->run.environment[3] = NULL;
    if (died && stage->run.exit_code != 0) {
        stage_run(stage, "neosetctl", goes_on);
        if (stage->run.exit_code != 0)
            fail_msg("after %s %s: exit %d: %s %s", edge, kind, stage->run.exit_code, stage->run.output,
                     stage->run.errors);
    }
}

/* The program ends with its last step: whether its outcome is durable before that is the disk's affair. */
static bool may_run_through(const char *edge, const char *kind)
{
    return strcmp(edge, "done") == 0 && strcmp(kind, "delete") == 0;
}

static void grow_claims_by_hand(const struct stage *stage, const char *size)
{
    CLEANUP_JSON cJSON *list = stage_get(stage, CLAIMS);
    const cJSON *claim = NULL;
    cJSON_ArrayForEach (claim, json_get(list, "items")) {
        CLEANUP_FREE char *path = xasprintf(CLAIMS "/%s", json_path_str(claim, "metadata", "name", NULL));
        CLEANUP_FREE char *body = xasprintf("{'spec':{'resources':{'requests':{'storage':'%s'}}}}", size);
        stage_write(stage, "PATCH", path, body);
    }
}

static char *converge_command(const struct stage *stage)
{
    return command(stage, "converge", IN_TIME);
}

/* Gone on with by the same command, or by `continue`, which is told of nothing. */
static void killed_at_any_edge_of(struct stage *stage, int templates, bool are_grown, const char *more,
                                  char *(*command_of)(const struct stage *stage))
{
    static const char *const edges[] = {"intent-commit", "send", "answer", "outcome", "done"};
    static const char *const kinds[] = {"grow-claim",         "create-revision",  "orphan-delete",
                                        "create-statefulset", "restore-managers", "delete",
                                        "restore-template"};
    bool is_canary = strcmp(more, canary) == 0;
    size_t kind_count = ARRAY_SIZE(kinds) - !is_canary;
    CLEANUP_FREE char *program = crash_program();
    if (!program)
        skip(); /* never comes back: nothing may be the caller's by now */
    CLEANUP_FREE char *words = command_of(stage);
    struct edge_count count = {0};
    wait_for_old_pods();
    CLEANUP_FREE char *pods = pods_text(stage, false);
    int size = are_grown ? 100 : 2;
    for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
        for (size_t k = are_grown; k < kind_count; k++) {
            CLEANUP_FREE char *text = xasprintf("%dGi", size++);
            int lived = count.lived;
            write_manifest(stage, templates, text, more);
            if (is_canary)
                replace_in_manifest(stage, "mysql:8.0", "mysql:8.1");
            if (are_grown)
                grow_claims_by_hand(stage, text);
            /* Of a first intent that never reached the disk nobody knows. */
            bool is_unknown = i == 0 && k == are_grown;
            const char *goes_on = (i + k) % 2 == 0 || is_unknown ? words : "continue" IN_TIME;
            kill_and_go_on(stage, program, words, goes_on, edges[i], kinds[k], &count);
            if (count.lived > lived && !may_run_through(edges[i], kinds[k]))
                fail_msg("%s %s: it ran through", edges[i], kinds[k]);
            assert_converged(stage, pods, text);
            assert_history(stage);
        }
    }
    print_message("    %d templates, claims %s%s: killed %d times, %d ran through\n", templates,
                  are_grown ? "grown before" : "to grow", is_canary ? ", a canary" : "", count.died,
                  count.lived);
}

static void killed_at_any_edge(struct stage *stage, int templates, bool are_grown, const char *more)
{
    killed_at_any_edge_of(stage, templates, are_grown, more, converge_command);
}

/* --- as a part of apply --------------------------------------------------------------------------------- */

/* Report 41, report 44: no other set in its place, as other tools propose. */
static void apply_converges_what_grew(void **state)
{
    struct stage *stage = *state;
    wait_for_old_pods();
    CLEANUP_FREE char *pods = pods_text(stage, false);
    CLEANUP_FREE char *line = apply_command(stage);
    CLEANUP_FREE char *trial = xasprintf("%s --dry-run", line);
    CLEANUP_FREE char *before = set_text(stage);
    expect_run(stage, trial, 0, "statefulset.apps/db  default    converged",
               "nothing was written (--dry-run)");
    CLEANUP_FREE char *planned = set_text(stage);
    assert_string_equal(planned, before);
    expect_run(stage, line, 0, "statefulset.apps/db  default    converged",
               "the same 3 pods, none restarted");
    assert_converged(stage, pods, "2Gi");
    CLEANUP_FREE char *after = set_text(stage);
    expect_run(stage, line, 0, "statefulset.apps/db  default    unchanged", NULL);
    CLEANUP_FREE char *applied = set_text(stage);
    assert_string_equal(applied, after);
    write_manifest(stage, 1, "1Gi", ",\"replicas\":3");
    expect_run(stage, line, 2, "", "a volume cannot shrink");
    assert_converged(stage, pods, "2Gi");
}

static void apply_goes_on_with_a_converge_that_was_killed(void **state)
{
    killed_at_any_edge_of(*state, 1, false, THREE, apply_command);
}

/* --- the tests ------------------------------------------------------------------------------------------ */

static void killed_at_any_edge_it_is_gone_on_with(void **state)
{
    killed_at_any_edge(*state, 1, false, THREE);
    killed_at_any_edge(*state, 1, true, THREE);
}

static void killed_at_any_edge_with_three_templates_it_is_gone_on_with(void **state)
{
    killed_at_any_edge(*state, 3, false, THREE);
    killed_at_any_edge(*state, 3, true, THREE);
}

static void killed_at_any_edge_a_canary_stays_one(void **state)
{
    let_canary_out(*state);
    killed_at_any_edge(*state, 1, false, canary);
}

#define SCENE(name, begin) cmocka_unit_test_setup_teardown(name, begin, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(volumes_grow_and_the_next_apply_changes_nothing, setup),
        SCENE(what_others_changed_stays, setup),
        SCENE(what_cannot_be_is_refused_and_nothing_is_written, setup),
        SCENE(what_cannot_be_is_refused_and_nothing_is_written, setup_by_field),
        SCENE(a_namespace_that_is_not_there_is_named, setup),
        SCENE(apply_takes_sizes_of_another_over_only_when_it_is_forced, setup),
        SCENE(it_waits_for_quiet_pods_says_so_and_is_gone_on_with, setup),
        SCENE(a_journal_that_dies_ends_it_at_once_with_its_reason, setup),
        SCENE(on_ctrl_c_it_says_how_to_go_on, setup),
        SCENE(an_abandoned_set_is_made_again_by_the_controller, setup_with_definition),
        SCENE(a_growth_that_failed_is_led_back, setup),
        SCENE(what_the_resizer_says_is_shown_while_it_is_waited_for, setup),
        SCENE(a_canary_stays_one, setup),
        SCENE(a_new_image_is_for_the_next_apply, setup),
        SCENE(apply_leaves_a_new_image_behind_its_partition, setup),
        SCENE(apply_converges_what_grew, setup),
        SCENE(apply_converges_what_grew, setup_by_field),
        SCENE(apply_goes_on_with_a_converge_that_was_killed, setup),
        SCENE(killed_at_any_edge_it_is_gone_on_with, setup),
        SCENE(killed_at_any_edge_a_canary_stays_one, setup),
        SCENE(killed_at_any_edge_with_three_templates_it_is_gone_on_with, setup_three),
    };
    return cmocka_run_group_tests_name("converge", tests, NULL, NULL);
}
