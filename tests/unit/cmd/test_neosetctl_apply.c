/* SPDX-License-Identifier: Apache-2.0
 *
 * neosetctl apply against the simulated API server: tried first, written in order and journaled, told as a
 * table; what cannot be applied keeps everything from being written. */
#include "ctl_stage.h"

/* A manifest with ' for ", in the stage's folder; the path is the caller's. */
static char *put(const struct stage *stage, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", stage->folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
    return path;
}

static void expect_apply(struct stage *stage, const char *text, const char *options, int code,
                         const char *output, const char *errors)
{
    CLEANUP_FREE char *path = put(stage, "a.yaml", text);
    CLEANUP_FREE char *line = xasprintf("apply -f %s%s%s", path, *options ? " " : "", options);
    expect_run(stage, line, code, output, errors);
}

/* How many steps the user's journal has, and how many of them are open. */
static void expect_steps(struct stage *stage, const char *what)
{
    CLEANUP_FREE char *line = xasprintf("export steps -o jsonl --journal %s", stage->journal);
    struct program_run audit = {0};
    struct buf text = BUF_INIT(65536);
    program_run(&audit, "neoset-audit", line);
    char *rest = NULL;
    for (char *row = strtok_r(audit.output, "\n", &rest); row; row = strtok_r(NULL, "\n", &rest)) {
        CLEANUP_JSON cJSON *step = NULL;
        assert_int_equal(json_parse(row, strlen(row), &step, NULL), 0);
        buf_addf(&text, "%s %s/%s %s\n", json_str(step, "action"), json_str(step, "object"),
                 json_str(step, "name"), json_str(step, "outcome"));
    }
    program_run_done(&audit);
    assert_string_equal(buf_text(&text), what);
    buf_done(&text);
}

static bool is_there(const struct stage *stage, const char *path)
{
    int code = stage_ask(stage, "GET", path, JSON_TYPE, "", NULL);
    return code == 200;
}

static bool has_journal(const struct stage *stage)
{
    struct stat status;
    return stat(stage->journal, &status) == 0;
}

#define MAP(name, value)                                                                                     \
    "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: " name "}, data: {key: " value "}}\n"
#define MAPS "/api/v1/namespaces/default/configmaps"
#define STATEFULSET(size)                                                                                    \
    "---\n{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 1, serviceName: "  \
    "db, selector: "                                                                                         \
    "{matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, "    \
    "image: x}]}}, "                                                                                         \
    "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: "       \
    "{requests: "                                                                                            \
    "{storage: " size "}}}}]}}\n"

static void it_says_of_each_what_became_of_it(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, false);
    expect_apply(stage, MAP("a", "x") MAP("b", "x") STATEFULSET("1Gi"), "", 0,
                 "OBJECT               NAMESPACE  RESULT\n"
                 "configmap/a          default    created\n"
                 "configmap/b          default    created\n"
                 "statefulset.apps/db  default    created\n",
                 NULL);
    expect_steps(stage, "apply-new ConfigMap/a applied\napply-new ConfigMap/b applied\n"
                        "apply-new StatefulSet/db applied\n");
    expect_apply(stage, MAP("a", "x") MAP("b", "z") STATEFULSET("1024Mi"), "", 0,
                 "configmap/a          default    unchanged\n"
                 "configmap/b          default    configured\n"
                 "statefulset.apps/db  default    unchanged\n",
                 NULL);
    expect_steps(stage, "apply-new ConfigMap/a applied\napply-new ConfigMap/b applied\n"
                        "apply-new StatefulSet/db applied\napply ConfigMap/b applied\n");
    expect_apply(stage, MAP("a", "x"), "-o json", 0, "\"result\":\"unchanged\"", NULL);
}

static void what_would_change_nothing_is_not_written(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, false);
    stage_write(stage, "POST", MAPS, "{'metadata':{'name':'a'},'data':{'key':'x'}}");
    expect_apply(stage, MAP("a", "x"), "--dry-run", 0, "configmap/a", "nothing was written (--dry-run)");
    assert_false(has_journal(stage));
    expect_apply(stage, MAP("a", "x"), "", 0, "configured", NULL); /* its fields are owned now */
    expect_apply(stage, MAP("a", "x"), "", 0, "unchanged", NULL);
    expect_steps(stage, "apply ConfigMap/a applied\n");
}

static void a_dry_run_writes_nothing(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, false);
    expect_apply(stage, MAP("a", "x"), "--dry-run", 0, "configmap/a  default    created",
                 "nothing was written");
    assert_false(is_there(stage, MAPS "/a"));
    assert_false(has_journal(stage));
}

static void one_that_is_refused_keeps_all_from_being_written(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, false);
    expect_apply(
        stage,
        MAP("a", "x") "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {key: [x]}}\n", "",
        2, "", "ConfigMap b in namespace default");
    assert_non_null(strstr(stage->run.errors, "a.yaml, line 4"));
    assert_non_null(strstr(stage->run.errors, "1 of 2 objects are refused, so nothing was written"));
    assert_false(is_there(stage, MAPS "/a"));
    assert_false(has_journal(stage));
}

/* Report 49. */
static void a_set_whose_volumes_shrank_keeps_all_from_being_written(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, false);
    expect_apply(stage, STATEFULSET("2Gi"), "", 0, "created", NULL);
    expect_apply(stage, MAP("a", "x") STATEFULSET("1Gi"), "", 2, "", "a volume cannot shrink");
    assert_false(is_there(stage, MAPS "/a"));
}

static void fields_of_others_are_taken_over_only_when_asked(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, false);
    expect_apply(stage, MAP("a", "x"), "--field-manager other", 0, "created", NULL);
    expect_apply(stage, MAP("a", "z"), "", 2, "", "--force-conflicts");
    assert_non_null(strstr(stage->run.errors, "the one object is refused, so nothing was written"));
    expect_apply(stage, MAP("a", "z"), "--force-conflicts", 0, "configured", NULL);
    CLEANUP_JSON cJSON *map = stage_get(stage, MAPS "/a");
    assert_string_equal(json_path_str(map, "data", "key", NULL), "z");
    static const char two[] =
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {one: \"%s\", two: \"%s\"}}\n";
    CLEANUP_FREE char *before = xasprintf(two, "x", "x"), *after = xasprintf(two, "y", "y");
    expect_apply(stage, before, "--field-manager other", 0, "created", NULL);
    expect_apply(stage, after, "", 2, "",
                 "conflicts with \"other\": .data.one, .data.two; leave these fields out");
}

static void namespaces_and_definitions_come_first(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, false);
    static const char text[] =
        "{apiVersion: example.com/v1, kind: Toy, metadata: {name: car, namespace: shop}, spec: {wheels: 4}}\n"
        "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}\n"
        "---\n{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: "
        "toys.example.com}, "
        "spec: {group: example.com, scope: Namespaced, names: {kind: Toy, plural: toys, singular: toy, "
        "listKind: "
        "ToyList}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: "
        "object, "
        "properties: {spec: {type: object, properties: {wheels: {type: integer}}}}}}}]}}\n"
        "---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n";
    expect_apply(stage, text, "--dry-run", 0, "toy.example.com/car", "nothing was written");
    assert_non_null(strstr(stage->run.output, "not tried"));
    expect_apply(stage, text, "", 0, "toy.example.com/car", NULL);
    assert_true(is_there(stage, "/apis/example.com/v1/namespaces/shop/toys/car"));
    assert_true(is_there(stage, "/api/v1/namespaces/shop/configmaps/a"));
    expect_steps(
        stage,
        "apply-new CustomResourceDefinition/toys.example.com applied\napply-new Namespace/shop applied\n"
        "apply-new Toy/car applied\napply-new ConfigMap/a applied\n");
}

static void what_cannot_be_used_is_named_before_anything_is_asked_for(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, false);
    expect_apply(stage, MAP("a", "x") MAP("a", "z"), "", 2, "", "is there twice");
    expect_apply(
        stage,
        MAP("a", "x") "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}", "",
        2, "", "ConfigMap a in namespace default");
    expect_apply(
        stage,
        "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}", "",
        0, "configmap/a", NULL);
    expect_apply(stage, "{apiVersion: toys/v1, kind: Toy, metadata: {name: car}}", "", 2, "", "Toy car (");
    assert_non_null(strstr(stage->run.errors, "the server has no Toy in toys/v1"));
    expect_apply(stage, "{apiVersion: v1, kind: Toy, metadata: {name: car}}", "", 2, "",
                 "the server has no Toy in v1");
    expect_apply(stage, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}",
                 "-n default", 2, "", "is not in namespace default: leave -n away, or say -n other");
    expect_apply(stage, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nowhere}}", "", 2,
                 "", "create the namespace first, or put it into -f");
    stage_write(stage, "POST", "/api/v1/namespaces", "{'metadata':{'name':'going'}}");
    stage_write(stage, "POST", "/api/v1/namespaces/going/configmaps",
                "{'metadata':{'name':'holds','finalizers':['a.b/c']}}");
    stage_ask(stage, "DELETE", "/api/v1/namespaces/going", JSON_TYPE, "", NULL);
    expect_apply(stage, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: going}}", "", 2, "",
                 "because it is being terminated: once it is gone, create it anew");
    expect_apply(stage, "kind: [", "", 2, "", "a.yaml, line");
    expect_apply(stage, MAP("a", "x"), "--field-manager=", 64, "", "--field-manager is empty");
    expect_run(stage, "apply", 64, "", "apply needs -f FILE");
    expect_run(stage, "apply -f /nowhere.yaml", 1, "", "cannot open /nowhere.yaml");
}

static void an_answer_that_is_lost_is_found_out(void **state)
{
    struct stage *stage = *state;
    start_server(stage, "lost,verb=patch,resource=configmaps,nth=2", false);
    expect_apply(stage, MAP("a", "x"), "", 0, "configmap/a  default    created", NULL);
    assert_true(is_there(stage, MAPS "/a"));
    expect_steps(stage, "apply-new ConfigMap/a overtaken\n");
}

static void no_permission_is_told_with_the_command_that_tells(void **state)
{
    struct stage *stage = *state;
    start_server(stage, "403,verb=patch,resource=configmaps,times=0", false);
    expect_apply(stage, MAP("a", "x"), "", 2, "", "kubectl auth can-i patch configmaps -n default");
    assert_false(has_journal(stage));
}

/* Of a Secret not even a digest is kept. */
static void nothing_of_a_secret_is_in_the_journal(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, false);
    expect_apply(stage,
                 "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: hunter2}}", "",
                 0, "secret/s", NULL);
    CLEANUP_FREE char *line = xasprintf("export -o jsonl --journal %s", stage->journal);
    struct program_run audit = {0};
    program_run(&audit, "neoset-audit", line);
    assert_non_null(strstr(audit.output, "\"intent\""));
    assert_null(strstr(audit.output, "hunter2"));
    char *rest = NULL;
    for (char *row = strtok_r(audit.output, "\n", &rest); row; row = strtok_r(NULL, "\n", &rest)) {
        CLEANUP_JSON cJSON *entry = NULL;
        assert_int_equal(json_parse(row, strlen(row), &entry, NULL), 0);
        if (str_equal(json_str(entry, "kind"), "intent"))
            assert_null(json_str(entry, "digest"));
    }
    program_run_done(&audit);
}

/* Each time another value, so that each run has something to write: first what is not there, then a change.
 */
static void killed_at_any_edge_it_is_gone_on_with(void **state)
{
    static const char *const edges[] = {"intent-commit", "send", "answer", "outcome", "done"};
    struct stage *stage = *state;
    CLEANUP_FREE char *program = crash_program();
    if (!program)
        skip();
    start_server(stage, NULL, false);
    int died = 0;
    for (size_t i = 0; i < ARRAY_SIZE(edges) * 2; i++) {
        bool is_new = i < ARRAY_SIZE(edges);
        const char *edge = edges[i % ARRAY_SIZE(edges)];
        CLEANUP_FREE char *text =
            xasprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: m%zu}, data: {key: v%zu}}\n---\n"
                      "{apiVersion: v1, kind: ConfigMap, metadata: {name: last}, data: {key: v%zu}}\n",
                      i % ARRAY_SIZE(edges), i, i);
        CLEANUP_FREE char *path = put(stage, "a.yaml", text);
        CLEANUP_FREE char *line = xasprintf("apply -f %s", path);
        CLEANUP_FREE char *crash = xasprintf("NEOSET_CRASH=%s:%s", edge, is_new ? "apply-new" : "apply");
        stage->run.environment[3] = crash;
        stage_run(stage, program, line);
        died += stage->run.exit_code == -1;
        stage->run.environment[3] = NULL;
        expect_run(stage, line, 0, "configmap/last", NULL);
        expect_run(stage, line, 0, "configmap/last  default    unchanged", NULL);
    }
    assert_in_range(died, ARRAY_SIZE(edges) * 2 - 2, ARRAY_SIZE(edges) * 2);
    CLEANUP_FREE char *doubt = xasprintf("in-doubt --check --journal %s", stage->journal);
    CLEANUP_FREE char *verify = xasprintf("verify --journal %s", stage->journal);
    struct program_run audit = {0};
    program_run(&audit, "neoset-audit", doubt);
    assert_int_equal(audit.exit_code, 0);
    program_run(&audit, "neoset-audit", verify);
    assert_int_equal(audit.exit_code, 0);
    program_run_done(&audit);
}

/* count ConfigMaps, named prefix and a number; the caller's. */
static char *maps_text(const char *prefix, int count)
{
    struct buf text = BUF_INIT(1 << 20);
    for (int i = 0; i < count; i++)
        buf_addf(&text, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: %s%d}, data: {key: x}}\n",
                 prefix, i);
    return buf_take(&text);
}

/* How often neosetctl has read a single ConfigMap. */
static int count_reads(const struct stage *stage)
{
    CLEANUP_FREE char *line = xasprintf("grep '\"userAgent\":\"neoset/' %s/audit.log | grep "
                                        "'\"verb\":\"get\"' | grep -c '\"resource\":\"configmaps\"'",
                                        stage->folder);
    FILE *pipe = popen(line, "r");
    int count = -1;
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%d", &count), 1);
    pclose(pipe);
    return count;
}

static void serve_with_audit_log(struct stage *stage, const char *faults)
{
    CLEANUP_FREE char *path = xasprintf("%s/audit.log", stage->folder);
    stage_serve(stage, (const char *const[]){"--audit-log", path, faults ? "--faults" : NULL, faults, NULL});
}

/* Many are tried at a time, and what is there of them is read in one list. */
static void many_are_looked_at_in_one_list(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *text = maps_text("m", 300);
    serve_with_audit_log(stage, NULL);
    expect_apply(stage, text, "-o csv", 0, "configmap/m299", NULL);
    expect_apply(stage, text, "-o csv", 0, "configmap/m299", NULL);
    assert_null(strstr(stage->run.output, "created"));
    assert_null(strstr(stage->run.output, "configured"));
    assert_int_equal(count_reads(stage), 0);
    stage_write(stage, "PATCH", MAPS "/m7", "{'data':{'key':'y'}}");
    stage_write(stage, "DELETE", MAPS "/m8", "{}");
    expect_apply(stage, text, "--force-conflicts -o csv", 0, "\"configmap/m7\",\"default\",\"configured\"",
                 NULL);
    assert_non_null(strstr(stage->run.output, "\"configmap/m8\",\"default\",\"created\""));
    assert_non_null(strstr(stage->run.output, "\"configmap/m9\",\"default\",\"unchanged\""));
}

/* Their own are not looked for among all of the others. */
static void among_many_others_they_are_asked_for_one_by_one(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *others = maps_text("a", 600);
    CLEANUP_FREE char *own = maps_text("z", 10);
    serve_with_audit_log(stage, NULL);
    expect_apply(stage, others, "-o csv", 0, "configmap/a599", NULL);
    int before = count_reads(stage);
    expect_apply(stage, own, "-o csv", 0, "\"configmap/z9\",\"default\",\"created\"", NULL);
    expect_apply(stage, own, "-o csv", 0, "\"configmap/z9\",\"default\",\"unchanged\"", NULL);
    assert_null(strstr(stage->run.output, "created"));
    assert_int_equal(count_reads(stage) - before, 20);
}

static void who_may_not_list_asks_one_by_one(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *text = maps_text("m", 10);
    serve_with_audit_log(stage, "403,verb=list,resource=configmaps,times=0");
    expect_apply(stage, text, "-o csv", 0, "\"configmap/m9\",\"default\",\"created\"", NULL);
    expect_apply(stage, text, "-o csv", 0, "\"configmap/m9\",\"default\",\"unchanged\"", NULL);
    assert_int_equal(count_reads(stage), 20);
}

/* What the list showed was older than what the dry run was about: that is no difference of ours. */
static void what_moves_meanwhile_is_looked_at_again(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *text = maps_text("m", 10);
    CLEANUP_FREE char *changed = xasprintf("%s" MAP("m10", "x"), text);
    *(strstr(changed, "key: x") + strlen("key: ")) = 'z';
    serve_with_audit_log(stage, "stale=2,verb=list,resource=configmaps,nth=3");
    expect_apply(stage, text, "", 0, "configmap/m9  default    created", NULL);
    expect_apply(stage, changed, "", 0, "configmap/m0   default    configured", NULL);
    int before = count_reads(stage);
    expect_apply(stage, changed, "", 0, "configmap/m0   default    unchanged", NULL);
    assert_non_null(strstr(stage->run.output, "configmap/m10  default    unchanged"));
    assert_int_equal(count_reads(stage) - before, 2);
}

static void what_is_being_deleted_is_refused_in_a_list_too(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *text = maps_text("m", 10);
    serve_with_audit_log(stage, NULL);
    expect_apply(stage, text, "-o csv", 0, "\"configmap/m9\",\"default\",\"created\"", NULL);
    stage_write(stage, "PATCH", MAPS "/m3", "{'metadata':{'finalizers':['example.com/hold']}}");
    stage_write(stage, "DELETE", MAPS "/m3", "{}");
    expect_apply(stage, text, "-o csv", 2, "", "ConfigMap m3 in namespace default");
    assert_non_null(strstr(stage->run.errors, "it is being deleted: wait until it is gone"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        stage_test(it_says_of_each_what_became_of_it),
        stage_test(what_would_change_nothing_is_not_written),
        stage_test(a_dry_run_writes_nothing),
        stage_test(one_that_is_refused_keeps_all_from_being_written),
        stage_test(a_set_whose_volumes_shrank_keeps_all_from_being_written),
        stage_test(fields_of_others_are_taken_over_only_when_asked),
        stage_test(namespaces_and_definitions_come_first),
        stage_test(what_cannot_be_used_is_named_before_anything_is_asked_for),
        stage_test(an_answer_that_is_lost_is_found_out),
        stage_test(no_permission_is_told_with_the_command_that_tells),
        stage_test(nothing_of_a_secret_is_in_the_journal),
        stage_test(killed_at_any_edge_it_is_gone_on_with),
        stage_test(many_are_looked_at_in_one_list),
        stage_test(among_many_others_they_are_asked_for_one_by_one),
        stage_test(who_may_not_list_asks_one_by_one),
        stage_test(what_moves_meanwhile_is_looked_at_again),
        stage_test(what_is_being_deleted_is_refused_in_a_list_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
