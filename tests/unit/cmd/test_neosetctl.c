/* SPDX-License-Identifier: Apache-2.0
 *
 * neosetctl against the simulated API server over HTTP: reads, pause and resume with a journal of the user's
 * own, errors that name the way out, exit codes. */
#include "ctl_stage.h"

#include "journal/journal.h"

#include <inttypes.h>

/* The steps of the user's own journal, "patch applied 1\n": kind, outcome, attempts. The caller's. */
static char *journaled_steps(struct stage *stage)
{
    CLEANUP_FREE char *line = xasprintf("export steps -o csv --csv-raw --journal %s", stage->journal);
    struct program_run audit = {0};
    program_run(&audit, "neoset-audit", line);
    assert_int_equal(audit.exit_code, 0);
    CLEANUP_BUF struct buf text = BUF_INIT(65536);
    char *rest = NULL;
    strtok_r(audit.output, "\r\n", &rest);
    for (char *row = strtok_r(NULL, "\r\n", &rest); row; row = strtok_r(NULL, "\r\n", &rest)) {
        char *cells[32] = {0};
        size_t count = 0;
        for (char *cell = strsep(&row, ","); cell && count < ARRAY_SIZE(cells); cell = strsep(&row, ","))
            cells[count++] = cell;
        buf_addf(&text, "%s %s %s\n", cells[5], *cells[14] ? cells[14] : "open", cells[16]);
    }
    program_run_done(&audit);
    return buf_take(&text);
}

static void expect_journaled(struct stage *stage, const char *wanted)
{
    CLEANUP_FREE char *steps = journaled_steps(stage);
    assert_string_equal(steps, wanted);
}

/* --- reading
 * ------------------------------------------------------------------------------------------------ */

static void shows_what_is_there(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    expect_run(stage, "get", 0, "", "there are no NeoSets in namespace default: -A");
    expect_run(stage, "get -A", 0, "", "there are no NeoSets");
    make_set(stage, "default", "mysql");
    make_set(stage, "other", "clickhouse");
    expect_run(stage, "get", 0, "mysql", NULL);
    assert_null(strstr(stage->run.output, "clickhouse"));
    expect_run(stage, "get -A", 0, "clickhouse", NULL);
    expect_run(stage, "get clickhouse -n other -o name", 0, "neoset.apps.neo.io/clickhouse\n", NULL);
    expect_run(stage, "get mysql -o json", 0, "\"wanted\":2", NULL);
    expect_run(stage, "status mysql", 0, "missing: to be created", NULL);
    expect_run(stage, "why mysql", 0, "is neoset-controller running?", NULL);
    expect_run(stage, "history mysql", 0, "", "no revisions yet");
    expect_run(stage, "get -n default --as someone", 0, "mysql", NULL);
    struct stat status;
    assert_int_not_equal(stat(stage->journal, &status), 0);
}

static void errors_name_the_thing_and_the_way_out(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_set(stage, "default", "mysql");
    expect_run(stage, "get mysq", 1, NULL, "no NeoSet mysq in namespace default: there is mysql");
    expect_run(stage, "status mysql -n empty", 1, NULL, "elsewhere there is default/mysql (-n NAMESPACE)");
    expect_run(stage, "pause nobody", 1, NULL, "there is mysql");
    expect_run(stage, "get --context nope", 1, NULL, "nope");
    expect_run(stage, "why mysql --journal /nowhere/x.db", 1, NULL, "/nowhere");
    expect_run(stage, "get mysql -A", 64, NULL, "give -n instead of -A");
    expect_run(stage, "get -A -n default", 64, NULL, "contradict");
    expect_run(stage, "get --request-timeout soon", 64, NULL, "--request-timeout");
    expect_run(stage, "pause", 64, NULL, "needs NAME");
    expect_run(stage, "pauze mysql", 64, NULL, "did you mean pause?");
    expect_run(stage, "status mysql -A", 64, NULL, "--all-namespaces is not an option of status");
    stage_end(&stage->server);
    expect_run(stage, "get", 1, NULL, "Connection refused");
    expect_run(stage, "pause mysql", 1, NULL, "Connection refused");
    program_run(&stage->run, "neosetctl", "get --kubeconfig /nowhere/config");
    assert_int_equal(stage->run.exit_code, 1);
    assert_non_null(strstr(stage->run.errors, "/nowhere/config"));
}

static void a_missing_definition_and_missing_permissions_are_told(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, false);
    expect_run(stage, "get", 1, NULL,
               "the server does not know neosets (apps.neo.io/v1alpha1): kubectl apply -f deploy/crd.yaml");
    expect_run(stage, "status mysql", 1, NULL, "the server does not know neosets");
    expect_run(stage, "undo mysql", 1, NULL, "the server does not know neosets");
    expect_run(stage, "pause mysql", 1, NULL, "the server does not know neosets");
    stage_end(&stage->server);
    start_server(stage, "403,verb=list,resource=neosets,times=0;403,verb=patch,resource=neosets,times=0",
                 true);
    make_set(stage, "default", "mysql");
    expect_run(stage, "get", 1, NULL, "403");
    expect_run(stage, "pause mysql", 2, NULL, "kubectl auth can-i patch neosets.apps.neo.io");
    expect_journaled(stage, "\"patch\" \"rejected\" 1\n");
}

/* One answer to every request, HTTP head and all. */
static pid_t serve_always(struct stage *stage, const char *answer)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    FILE *file = fopen(stage->kubeconfig, "we");
    assert_non_null(file);
    fprintf(
        file,
        "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:%d'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\nusers: [{name: u, user: "
        "{}}]\n",
        ntohs(address.sin_port));
    fclose(file);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            int connection = accept(fd, NULL, NULL);
            char request[8192];
            if (read(connection, request, sizeof request) > 0)
                (void)!write(connection, answer, strlen(answer));
            close(connection);
        }
    }
    close(fd);
    return pid;
}

static void a_server_that_is_no_api_server_is_told_from_one(void **state)
{
    static const struct {
        const char *answer, *errors;
    } table[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>", "the answer is a web page"},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 13\r\n\r\n<html></html>", "the answer is a web page"},
        {"HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n", "redirect"},
        {"HTTP/1.1 400 Bad Request\r\nContent-Length: 48\r\n\r\nClient sent an HTTP request to an HTTPS "
         "server.\n",
         "write https:// instead of http://"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"hello\": \"a\"}", "the answer is no list"},
    };
    struct stage *stage = *state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        stage->server = serve_always(stage, table[i].answer);
        expect_run(stage, "get", 1, "", table[i].errors);
        assert_non_null(strstr(stage->run.errors, "kubeconfig"));
        stage_end(&stage->server);
    }
}

static void kubectl_finds_it_as_a_plugin(void **state)
{
    struct stage *stage = *state;
    CLEANUP_FREE char *program = program_path("neosetctl");
    CLEANUP_FREE char *real = realpath(program, NULL);
    CLEANUP_FREE char *link = xasprintf("%s/kubectl-neoset", stage->folder);
    assert_int_equal(symlink(real, link), 0);
    CLEANUP_FREE char *command = xasprintf("%s gett 2>&1", link);
    FILE *pipe = popen(command, "re");
    char line[256] = "";
    assert_non_null(fgets(line, sizeof line, pipe));
    assert_int_equal(WEXITSTATUS(pclose(pipe)), 64);
    assert_string_equal(line, "kubectl neoset: unknown command gett: did you mean get?\n");
}

/* --- writing
 * ------------------------------------------------------------------------------------------------ */

static void pauses_and_resumes_and_journals_it_first(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_set(stage, "default", "mysql");
    expect_run(stage, "resume mysql", 0, "neoset/mysql is not paused\n", NULL);
    struct stat status;
    assert_int_not_equal(stat(stage->journal, &status), 0);
    expect_run(stage, "pause mysql", 0, "neoset/mysql paused\n", NULL);
    expect_run(stage, "get mysql -o json", 0, "\"paused\":true", NULL);
    expect_run(stage, "pause mysql", 0, "neoset/mysql is paused already\n", NULL);
    expect_run(stage, "resume mysql", 0, "neoset/mysql resumed\n", NULL);
    expect_run(stage, "get mysql -o json", 0, "\"paused\":false", NULL);
    expect_journaled(stage, "\"patch\" \"applied\" 1\n\"patch\" \"applied\" 1\n");
    assert_int_equal(stat(stage->journal, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    CLEANUP_FREE char *line = xasprintf("verify --journal %s", stage->journal);
    program_run(&stage->run, "neoset-audit", line);
    assert_int_equal(stage->run.exit_code, 0);
}

static void survives_what_happens_to_a_write(void **state)
{
    static const struct {
        const char *fault;
        int exit_code;
        const char *output, *errors, *journaled, *is;
    } table[] = {
        {"409,verb=patch,resource=neosets,nth=1", 0, "paused", NULL, NULL, "\"paused\":true"},
        {"lost,verb=patch,resource=neosets,nth=1", 0, "paused", NULL, "\"patch\" \"applied\" 1\n",
         "\"paused\":true"},
        {"drop,verb=patch,resource=neosets,nth=1", 0, "paused", NULL, "\"patch\" \"applied\" 2\n",
         "\"paused\":true"},
        {"503,verb=patch,resource=neosets,nth=1", 0, "paused", NULL, "\"patch\" \"applied\" 2\n",
         "\"paused\":true"},
        {"429,verb=patch,resource=neosets,nth=1,retry=1", 0, "paused", NULL, NULL, "\"paused\":true"},
        {"422,verb=patch,resource=neosets,times=0", 2, "", "the server refuses: 422",
         "\"patch\" \"rejected\" 1\n", "\"paused\":false"},
    };
    struct stage *stage = *state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        start_server(stage, table[i].fault, true);
        make_set(stage, "default", "mysql");
        expect_run(stage, "pause mysql", table[i].exit_code, table[i].output, table[i].errors);
        expect_run(stage, "get mysql -o json", 0, table[i].is, NULL);
        if (table[i].journaled)
            expect_journaled(stage, table[i].journaled);
        stage_end(&stage->server);
        CLEANUP_FREE char *command = xasprintf("rm -rf '%s/neoset'", stage->folder);
        assert_int_equal(system(command), 0);
    }
}

static void a_write_without_an_answer_in_time_is_settled_by_the_next(void **state)
{
    struct stage *stage = *state;
    start_server(stage, "late=1500ms,verb=patch,resource=neosets,nth=1", true);
    make_set(stage, "default", "mysql");
    expect_run(stage, "pause mysql --request-timeout 1s", 1, "", "nobody knows yet");
    expect_run(stage, "pause mysql", 0, "neoset/mysql", NULL);
    expect_run(stage, "get mysql -o json", 0, "\"paused\":true", NULL);
    CLEANUP_FREE char *steps = journaled_steps(stage);
    assert_null(strstr(steps, "open"));
}

static void another_neosetctl_is_waited_for(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_set(stage, "default", "mysql");
    CLEANUP_FREE char *folder = xasprintf("%s/neoset", stage->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    CLEANUP_ENV struct env *env = env_sim_make(3);
    struct journal *held = NULL;
    struct journal_options options = {.path = stage->journal, .identity = "other", .version = "1"};
    assert_int_equal(journal_open(env, &options, &held, NULL), 0);
    expect_run(stage, "pause mysql", 1, "", "your journal cannot be used, so nothing is written");
    expect_run(stage, "get mysql -o json", 0, "\"paused\":false", NULL);
    journal_close(held, "done");
    expect_run(stage, "pause mysql", 0, "neoset/mysql paused\n", NULL);
}

static void many_at_once_take_turns(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_set(stage, "default", "mysql");
    enum { MANY = 6 };
    CLEANUP_FREE char *path = program_path("neosetctl");
    pid_t pids[MANY];
    for (int i = 0; i < MANY; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            putenv(stage->state_variable);
            dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
            execl(path, path, i % 2 ? "pause" : "resume", "mysql", "--kubeconfig", stage->kubeconfig,
                  (char *)NULL);
            _exit(127);
        }
    }
    for (int i = 0; i < MANY; i++) {
        int status = 0;
        waitpid(pids[i], &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    struct stat status;
    if (stat(stage->journal, &status) == 0) {
        CLEANUP_FREE char *steps = journaled_steps(stage);
        assert_null(strstr(steps, "open"));
    }
}

/* --- undo
 * ------------------------------------------------------------------------------------------------ */

/* The template in the set is, to the letter, that of the revision called name. */
static void expect_template_of(const struct stage *stage, const char *name)
{
    CLEANUP_FREE char *path = xasprintf(REVISIONS "/%s", name);
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/mysql");
    CLEANUP_JSON cJSON *revision = stage_get(stage, path);
    cJSON *template = json_path(revision, "data", "spec", "template", NULL);
    json_remove(template, "$patch");
    assert_non_null(template);
    assert_true(json_equal(json_path(set, "spec", "template", NULL), template));
}

/* Of the revision with this number; the caller's. */
static char *name_of_revision(const struct stage *stage, int64_t number)
{
    CLEANUP_JSON cJSON *list = stage_get(stage, REVISIONS);
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, json_get(list, "items")) {
        if (json_int64_or(revision, "revision", 0) == number)
            return xstrdup(json_path_str(revision, "metadata", "name", NULL));
    }
    return xstrdup("");
}

static void undo_writes_the_template_of_the_revision_back(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_two_revisions(stage);
    CLEANUP_FREE char *first = name_of_revision(stage, 1);
    CLEANUP_FREE char *second = name_of_revision(stage, 2);
    expect_run(stage, "history mysql", 0, first, NULL);
    /* As if its pods had been there. */
    stage_write(stage, "PATCH", SETS "/mysql/status", "{'status':{'currentRevisionProven':true}}");
    expect_run(stage, "undo mysql --dry-run", 0, "would go back to revision 1", NULL);
    assert_non_null(strstr(stage->run.output, "nothing was written (--dry-run)\n"));
    assert_null(strstr(stage->run.output, "follow it"));
    struct stat status;
    assert_int_not_equal(stat(stage->journal, &status), 0);
    expect_template_of(stage, second);

    expect_run(stage, "undo mysql", 0, "neoset/mysql goes back to revision 1", NULL);
    assert_non_null(strstr(stage->run.output, "the stable revision): image i:2 -> i:1\n"));
    assert_non_null(strstr(stage->run.output, "follow it: neosetctl status mysql -n default -w\n"));
    expect_template_of(stage, first);
    expect_journaled(stage, "\"patch\" \"applied\" 1\n");
    expect_run(stage, "undo mysql", 0,
               "already: nothing was written\nanother one: neosetctl undo mysql -n default "
               "--to-revision NUMBER\n",
               NULL);
    expect_run(stage, "undo mysql --to-revision 1", 0, "has the template of revision 1", NULL);
    assert_null(strstr(stage->run.output, "another one"));
    expect_journaled(stage, "\"patch\" \"applied\" 1\n");

    converge(stage);
    CLEANUP_FREE char *third = name_of_revision(stage, 3);
    assert_string_equal(third, first);

    /* A second undo does not go to what was taken back. */
    expect_run(stage, "history mysql", 0, "not seen stable", NULL);
    expect_run(stage, "undo mysql", 2, "", "neosetctl undo mysql -n default --to-revision 2");
    expect_template_of(stage, first);
    stage_write(stage, "PATCH", SETS "/mysql", "{'spec':{'updateStrategy':{'pause':true}}}");
    expect_run(stage, "undo mysql --to-revision 2", 0, "goes back to revision 2", NULL);
    assert_non_null(strstr(stage->run.output, "revision 2 was not seen stable"));
    assert_non_null(strstr(stage->run.output, "let it go: neosetctl resume mysql -n default\n"));
    expect_template_of(stage, second);
}

static void undo_refuses_and_writes_nothing(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_set(stage, "default", "mysql");
    expect_run(stage, "undo mysql", 2, "", "NeoSet mysql has no earlier revision");
    stage_write(stage, "PATCH", SETS "/mysql", "{'spec':{'replicas':0}}");
    converge(stage);
    expect_run(stage, "undo mysql", 2, "", "NeoSet mysql has no earlier revision");
    expect_run(stage, "undo mysql --to-revision 7", 2, "", "NeoSet mysql has no revision 7: there is only 1");
    expect_run(stage, "undo mysql --to-revision x", 64, "", "--to-revision");
    expect_run(stage, "undo nobody", 1, "", "there is mysql");
    struct stat status;
    assert_int_not_equal(stat(stage->journal, &status), 0);
}

/* As a controller would have left it. */
static void make_revision(const struct stage *stage, int number, const char *image)
{
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/mysql");
    CLEANUP_FREE char *body = xasprintf(
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"ControllerRevision\",\"metadata\":{\"name\":\"mysql-r%d\","
        "\"ownerReferences\":[{\"apiVersion\":\"apps.neo.io/"
        "v1alpha1\",\"kind\":\"NeoSet\",\"name\":\"mysql\","
        "\"uid\":\"%s\",\"controller\":true}]},\"revision\":%d,\"data\":{\"spec\":{\"template\":{\"$patch\":"
        "\"replace\",\"metadata\":{\"labels\":{\"app\":\"x\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
        "\"image\":\"%s\"}]}}}}}",
        number, json_path_str(set, "metadata", "uid", NULL), number, image);
    assert_int_equal(request(stage, "POST", REVISIONS, "application/json", body), 201);
}

/* No PATCH: these have faults. */
static void put_proven(struct stage *stage, const char *revision)
{
    CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/mysql");
    cJSON *names = json_add_array(json_ensure_object(set, "status"), "provenRevisionNames");
    json_append_str(names, revision);
    CLEANUP_FREE char *body = json_print(set);
    assert_int_equal(request(stage, "PUT", SETS "/mysql/status", "application/json", body), 200);
}

static void undo_survives_what_happens_to_a_write(void **state)
{
    static const struct {
        const char *fault;
        int exit_code;
        const char *output, *errors;
        const char *image; /* of the set afterwards */
    } table[] = {
        {"409,verb=patch,resource=neosets,nth=1", 0, "goes back to revision 1", NULL, "i:0"},
        {"lost,verb=patch,resource=neosets,nth=1", 0, "goes back to revision 1", NULL, "i:0"},
        {"drop,verb=patch,resource=neosets,nth=1", 0, "goes back to revision 1", NULL, "i:0"},
        {"403,verb=patch,resource=neosets,times=0", 2, "", "kubectl auth can-i patch", "i:1"},
        {"422,verb=patch,resource=neosets,times=0", 2, "", "the server refuses: 422", "i:1"},
    };
    struct stage *stage = *state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        start_server(stage, table[i].fault, true);
        make_set(stage, "default", "mysql");
        make_revision(stage, 1, "i:0");
        make_revision(stage, 2, "i:1");
        put_proven(stage, "mysql-r1");
        expect_run(stage, "undo mysql", table[i].exit_code, table[i].output, table[i].errors);
        CLEANUP_JSON cJSON *set = stage_get(stage, SETS "/mysql");
        const cJSON *containers = json_path(set, "spec", "template", "spec", "containers", NULL);
        assert_string_equal(json_str(containers->child, "image"), table[i].image);
        CLEANUP_FREE char *steps = journaled_steps(stage);
        assert_null(strstr(steps, "open"));
        stage_end(&stage->server);
        CLEANUP_FREE char *command = xasprintf("rm -rf '%s/neoset'", stage->folder);
        assert_int_equal(system(command), 0);
    }
}

/* --- settling
 * ------------------------------------------------------------------------------------------- */

#define KEY "0123456789abcdef-46"

static void a_word_is_written_on_the_object_with_who_and_why(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_set(stage, "default", "mysql");
    expect_run(stage, "settle neo/mysql --step " KEY " --as absent --reason gone", 0,
               "whether there is such a step was not looked up: --journal", NULL);
    expect_said(stage, KEY " is absent\n");
    expect_run(stage, "settle neo/mysql --step " KEY " --as absent --reason gone", 0, "said already", NULL);
    CLEANUP_JSON cJSON *there = stage_get(stage, SETS "/mysql");
    const char *word = json_path_str(there, "metadata", "annotations", "apps.neo.io/settle", NULL);
    assert_non_null(word);
    assert_true(str_starts_with(word, KEY "=absent; ") && strchr(word, '@') && str_ends_with(word, ": gone"));
    expect_run(stage, "settle neo/mysql --step " KEY " --as absent --reason gone", 0, "said already", NULL);
    expect_journaled(stage, "\"patch\" \"applied\" 1\n");
}

/* A journal with one step that nobody knows the fate of, gate of pod/mysql-3 in prod; its key, the caller's.
 */
static char *make_doubt(const char *path)
{
    CLEANUP_ENV struct env *env = env_sim_make(3);
    struct journal *journal = NULL;
    struct journal_options options = {.path = path, .identity = "host-1", .version = "1"};
    assert_int_equal(journal_open(env, &options, &journal, NULL), 0);
    int64_t rollout = journal_append(journal, &(struct journal_entry){.kind = JOURNAL_BEGIN,
                                                                      .action = "rollout",
                                                                      .object = "NeoSet",
                                                                      .namespace = "prod",
                                                                      .name = "mysql"});
    struct journal_entry intent = {.kind = JOURNAL_INTENT,
                                   .operation = rollout,
                                   .attempt = 1,
                                   .action = "gate",
                                   .object = "Pod",
                                   .namespace = "prod",
                                   .name = "mysql-3",
                                   .detail = "{}"};
    int64_t step = journal_append_intent(journal, &intent, "{}", 2, true);
    char *key = xasprintf("%s-%" PRId64, journal_nonce(journal), step);
    journal_close(journal, "done");
    return key;
}

static void a_key_that_no_open_step_of_the_journal_has_is_refused(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_set(stage, "default", "mysql");
    CLEANUP_FREE char *path = xasprintf("%s/controller.db", stage->folder);
    CLEANUP_FREE char *key = make_doubt(path);
    CLEANUP_FREE char *unknown =
        xasprintf("settle neo/mysql --step " KEY " --as absent --reason gone --journal %s", path);
    CLEANUP_FREE char *next = xasprintf("What is in doubt: `neoset-audit in-doubt --journal %s`\n", path);
    expect_run(stage, unknown, 2, "", next);
    CLEANUP_FREE char *other =
        xasprintf("settle neo/mysql --step %s --as absent --reason it's --journal %s", key, path);
    CLEANUP_FREE char *right = xasprintf(
        "say `neosetctl settle Pod/mysql-3 -n prod --step %s --as absent --reason 'it'\\''s'`\n", key);
    expect_run(stage, other, 2, "", right);
    CLEANUP_JSON cJSON *there = stage_get(stage, SETS "/mysql");
    assert_null(json_path(there, "metadata", "annotations", "apps.neo.io/settle", NULL));
    /* It is found; the pod is not there. */
    CLEANUP_FREE char *known =
        xasprintf("settle pod/mysql-3 -n prod --step %s --as absent --reason gone --journal %s", key, path);
    expect_run(stage, known, 1, "", "Pod mysql-3 in namespace prod");
}

/* What was asked for is not at fault: exit code 2 would say so. */
static void a_journal_that_is_none_is_a_failure_and_no_refusal(void **state)
{
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_set(stage, "default", "mysql");
    CLEANUP_FREE char *settle = xasprintf(
        "settle neo/mysql --step " KEY " --as absent --reason gone --journal %s", stage->kubeconfig);
    expect_run(stage, settle, 1, "", "is not a journal");
    /* Nobody can make a folder there. */
    stage->run.environment[0] = "XDG_STATE_HOME=/sys";
    expect_run(stage, "pause mysql", 1, "", "cannot make the folder /sys/neoset for your journal");
    stage->run.environment[0] = stage->state_variable;
}

static void what_cannot_be_settled_is_refused_with_the_way_out(void **state)
{
    static const struct {
        const char *words;
        int exit_code;
        const char *errors;
    } table[] = {
        {"settle mysql --step " KEY " --as absent --reason x", 64, "say pod/mysql-2"},
        {"settle thing/x --step " KEY " --as absent --reason x", 64, "it is one of pod, neoset"},
        {"settle neo/mysql --step 12 --as absent --reason x", 64, "neosetctl why"},
        {"settle neo/mysql --step " KEY "x --as absent --reason x", 64, "not the key of a step"},
        {"settle neo/mysql --as absent --reason x", 64, "--step"},
        {"settle neo/mysql --step " KEY " --as done --reason x", 64, "applied (it was done) or absent"},
        {"settle neo/mysql --step " KEY " --reason x", 64, "applied (it was done) or absent"},
        {"settle neo/mysql --step " KEY " --as absent", 64, "say how you know"},
        {"settle neo/mysq --step " KEY " --as absent --reason x", 1, "there is mysql"},
        {"settle pod/mysql-2 --step " KEY " --as absent --reason x", 1, "Pod mysql-2 in namespace default"},
        {"pause mysql --step " KEY, 64, "--step is not an option of pause"},
    };
    struct stage *stage = *state;
    start_server(stage, NULL, true);
    make_set(stage, "default", "mysql");
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        expect_run(stage, table[i].words, table[i].exit_code, NULL, table[i].errors);
    struct stat status;
    assert_int_not_equal(stat(stage->journal, &status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        stage_test(shows_what_is_there),
        stage_test(errors_name_the_thing_and_the_way_out),
        stage_test(a_missing_definition_and_missing_permissions_are_told),
        stage_test(a_server_that_is_no_api_server_is_told_from_one),
        stage_test(kubectl_finds_it_as_a_plugin),
        stage_test(pauses_and_resumes_and_journals_it_first),
        stage_test(survives_what_happens_to_a_write),
        stage_test(a_write_without_an_answer_in_time_is_settled_by_the_next),
        stage_test(another_neosetctl_is_waited_for),
        stage_test(undo_writes_the_template_of_the_revision_back),
        stage_test(undo_refuses_and_writes_nothing),
        stage_test(undo_survives_what_happens_to_a_write),
        stage_test(many_at_once_take_turns),
        stage_test(a_word_is_written_on_the_object_with_who_and_why),
        stage_test(a_key_that_no_open_step_of_the_journal_has_is_refused),
        stage_test(a_journal_that_is_none_is_a_failure_and_no_refusal),
        stage_test(what_cannot_be_settled_is_refused_with_the_way_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
