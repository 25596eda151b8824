/* SPDX-License-Identifier: Apache-2.0
 *
 * The real neoset-controller among clusters and files that are wrong in some way: it says which thing is
 * wrong and what to do, ends or stays as it should, asks no faster than it backs off, and keeps its memory.
 */
#include "hostile_server.h"
#include "live_program.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#define IS_SANITIZED __has_feature(address_sanitizer)
#else
#define IS_SANITIZED 0
#endif

enum {
    SAYS_TIMEOUT_MS = 30000,
    /* How long a controller that cannot work is watched, and how often it may ask meanwhile: it follows five
     * kinds, each with a back-off that begins at a quarter of a second. */
    WATCHED_MS = 2000,
    REQUESTS_MAX = 80,
    /* An address sanitizer keeps what was freed for a while. */
    NONSENSE_PEAK_KIB = (IS_SANITIZED ? 1024 : 32) * 1024, /* 13 at rest, and the largest object */
    PEAK_MAX_KIB = (IS_SANITIZED ? 1024 : 300) * 1024,
};

/* --- the cluster ---------------------------------------------------------------------------------------- */

/* How one path is answered; the first rule whose part is in the request's line counts. */
struct rule {
    const char *part; /* NULL: the end */
    int status;
    const char *body;
    hostile_serve *serve; /* instead; then the connection is closed */
};

#define EMPTY_LIST                                                                                           \
    "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}"

static const struct rule *rule_of(const struct rule *rules, const char *request)
{
    size_t line = strcspn(request, "\r");
    for (; rules && rules->part; rules++) {
        const char *at = strstr(request, rules->part);
        if (at && (size_t)(at - request) < line)
            return rules;
    }
    return NULL;
}

static bool answer_well(struct hostile_connection *connection)
{
    if (!strstr(hostile_last_request(connection), "watch="))
        return hostile_answer(connection, 200, EMPTY_LIST);
    hostile_send_text(connection, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
    hostile_wait_for_close(connection);
    return false;
}

/* context: the rules. */
static void serve_api(struct hostile_connection *connection, void *context)
{
    while (hostile_read_request(connection)) {
        const struct rule *rule = rule_of(context, hostile_last_request(connection));
        if (rule && rule->serve) {
            rule->serve(connection, NULL);
            return;
        }
        if (rule ? !hostile_answer(connection, rule->status, rule->body) : !answer_well(connection))
            return;
    }
}

/* --- a controller in front of it ------------------------------------------------------------------------ */

struct scene {
    struct hostile_server *server;
    struct live_program controller;
    char folder[64];
    char *kubeconfig;
    char *journal;
};

static void put_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void write_kubeconfig(struct scene *scene, const char *url, const char *cluster_more, const char *user)
{
    CLEANUP_FREE char *text =
        xasprintf("clusters: [{name: c, cluster: {server: '%s'%s}}]\nusers: [{name: u, user: {%s}}]\n"
                  "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
                  url, cluster_more, user);
    put_file(scene->kubeconfig, text);
}

static void begin(struct scene *scene, const struct hostile_options *options, const char *user)
{
    *scene = (struct scene){0};
    snprintf(scene->folder, sizeof(scene->folder), "/tmp/neoset-test-controller.XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    scene->kubeconfig = xasprintf("%s/kubeconfig", scene->folder);
    scene->journal = xasprintf("%s/journal.db", scene->folder);
    if (!options)
        return;
    scene->server = hostile_start(options);
    CLEANUP_FREE char *url = hostile_url(scene->server);
    write_kubeconfig(scene, url, "", user);
}

static void begin_with_rules(struct scene *scene, const struct rule *rules)
{
    begin(scene, &(struct hostile_options){.serve = serve_api, .context = (void *)rules}, "token: t");
}

static void start(struct scene *scene, const char *more)
{
    const char *argv[] = {"neoset-controller",
                          "--kubeconfig",
                          scene->kubeconfig,
                          "--journal",
                          scene->journal,
                          "--listen",
                          "none",
                          more,
                          NULL};
    live_start(&scene->controller, argv);
}

static void assert_says(struct scene *scene, const char *words)
{
    if (!live_says(&scene->controller, words, SAYS_TIMEOUT_MS))
        fail_msg("it does not say \"%s\" but\n%s", words, live_log(&scene->controller));
}

static void assert_stops_well(struct scene *scene)
{
    int code = live_stop(&scene->controller);
    assert_int_equal(code, 0);
}

/* It lives, asks seldom, repeats itself seldom, stays small, and still stops as asked. */
static void assert_waits(struct scene *scene, const char *words)
{
    size_t before = hostile_request_count(scene->server) + hostile_connection_count(scene->server);
    if (!live_goes_on(&scene->controller, WATCHED_MS))
        fail_msg("it ended:\n%s", live_log(&scene->controller));
    size_t asked = hostile_request_count(scene->server) + hostile_connection_count(scene->server) - before;
    if (asked > REQUESTS_MAX)
        fail_msg("it asked %zu times in %d ms", asked, (int)WATCHED_MS);
    assert_in_range(live_count(&scene->controller, words), 1, 12);
    assert_in_range(live_peak_kib(&scene->controller), 1, PEAK_MAX_KIB);
    assert_stops_well(scene);
}

static void end(struct scene *scene)
{
    hostile_stop(scene->server);
    CLEANUP_FREE char *command = xasprintf("rm -rf %s", scene->folder);
    ENSURE(system(command) == 0);
    free(scene->kubeconfig);
    free(scene->journal);
}

/* --- servers that refuse -------------------------------------------------------------------------------- */

#define STATUS_OF(code, reason, message)                                                                     \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"" message               \
    "\",\"reason\":\"" reason "\",\"code\":" #code "}"
#define FORBIDDEN                                                                                            \
    STATUS_OF(403, "Forbidden",                                                                              \
              "pods is forbidden: User \\\"u\\\" cannot list resource \\\"pods\\\" in API group \\\"\\\" "   \
              "at the cluster scope")
#define UNAUTHORIZED STATUS_OF(401, "Unauthorized", "Unauthorized")

static const struct refusal {
    const char *name;
    struct rule rules[2];
    const char *says[3];
    bool with_lease;
} refusals[] = {
    {"an expired token", {{"/", 401, UNAUTHORIZED, NULL}}, {"401", "has expired: log in again"}, false},
    {"an expired token, for the lease",
     {{"leases", 401, UNAUTHORIZED, NULL}},
     {"lease", "has expired"},
     true},
    {"no permission",
     {{"/pods?", 403, FORBIDDEN, NULL}},
     {"no permission to list pods in all namespaces (v1)", "cannot list resource \"pods\""},
     false},
    {"no permission, for the lease",
     {{"leases", 403, STATUS_OF(403, "Forbidden", "leases is forbidden: cannot get"), NULL}},
     {"cannot read the lease", "grant it"},
     true},
    {"no definition",
     {{"/neosets", 404, "404 page not found", NULL}},
     {"the NeoSet definition is not installed: kubectl apply -f deploy/crd.yaml; waiting"},
     false},
    {"a login page", {{"/", 200, "<html>Please log in</html>", NULL}}, {"web page", "kubeconfig"}, false},
    {"an overloaded server", {{"/", 429, STATUS_OF(429, "TooManyRequests", "later"), NULL}}, {"429"}, false},
};

static void a_server_that_refuses_is_named_and_waited_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        print_message("    %s\n", refusals[i].name);
        struct scene scene;
        begin_with_rules(&scene, refusals[i].rules);
        start(&scene, refusals[i].with_lease ? "--log-level=warning" : "--no-lease");
        for (size_t k = 0; k < ARRAY_SIZE(refusals[i].says) && refusals[i].says[k]; k++)
            assert_says(&scene, refusals[i].says[k]);
        assert_waits(&scene, refusals[i].says[0]);
        end(&scene);
    }
}

static void whom_nobody_vouches_for_is_sent_nothing(void **state)
{
    (void)state;
    struct hostile_identity authority, stranger, server;
    hostile_identity_make(&authority, "authority", NULL, NULL, -1, 30);
    hostile_identity_make(&stranger, "stranger", NULL, NULL, -1, 30);
    hostile_identity_make(&server, "server", "IP:127.0.0.1", &stranger, -1, 30);
    struct scene scene;
    begin(&scene, &(struct hostile_options){.serve = serve_api, .identity = &server}, "token: t");
    CLEANUP_FREE char *url = hostile_url(scene.server);
    CLEANUP_FREE char *ca_path = xasprintf("%s/ca.pem", scene.folder);
    CLEANUP_FREE char *more = xasprintf(", certificate-authority: '%s'", ca_path);
    put_file(ca_path, authority.certificate_pem);
    write_kubeconfig(&scene, url, more, "token: t");
    start(&scene, "--no-lease");
    assert_says(&scene, "certificate-authority");
    assert_waits(&scene, "certificate-authority");
    assert_int_equal(hostile_request_count(scene.server), 0);
    end(&scene);
    hostile_identity_done(&authority);
    hostile_identity_done(&stranger);
    hostile_identity_done(&server);
}

static void a_server_that_is_not_there_is_waited_for(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, &(struct hostile_options){.serve = serve_api}, "token: t");
    CLEANUP_FREE char *url = hostile_url(scene.server);
    hostile_stop(scene.server);
    scene.server = NULL;
    write_kubeconfig(&scene, url, "", "token: t");
    start(&scene, "--no-lease");
    assert_says(&scene, "cannot connect to 127.0.0.1:");
    if (!live_goes_on(&scene.controller, WATCHED_MS))
        fail_msg("it ended:\n%s", live_log(&scene.controller));
    assert_in_range(live_count(&scene.controller, "cannot connect"), 1, 12);
    assert_stops_well(&scene);
    end(&scene);
}

/* --- servers that send what cannot be taken ------------------------------------------------------------- */

#define STREAM_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"

static void serve_malformed_line(struct hostile_connection *connection, void *context)
{
    (void)context;
    hostile_send_text(connection, STREAM_HEAD "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\"\n");
    hostile_wait_for_close(connection);
}

static char *long_text(size_t length)
{
    char *text = xmalloc(length + 1);
    memset(text, 'a', length);
    text[length] = '\0';
    return text;
}

static void serve_line_without_end(struct hostile_connection *connection, void *context)
{
    (void)context;
    CLEANUP_FREE char *piece = long_text(1 << 20);
    hostile_send_text(connection, STREAM_HEAD "{\"type\":\"ADDED\",\"object\":{\"kind\":\"");
    hostile_send_forever(connection, piece);
}

static void serve_item_without_end(struct hostile_connection *connection, void *context)
{
    (void)context;
    CLEANUP_FREE char *piece = long_text(1 << 20);
    hostile_send_text(connection, STREAM_HEAD
                      "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{\"kind\":\"");
    hostile_send_forever(connection, piece);
}

/* What is in it counts for nothing: it has no name. */
static void serve_list_without_end(struct hostile_connection *connection, void *context)
{
    (void)context;
    hostile_send_text(connection,
                      STREAM_HEAD "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[");
    CLEANUP_BUF struct buf piece = BUF_INIT(2 << 20);
    for (int i = 0; i < 10000; i++)
        buf_add_text(&piece, "{\"metadata\":{}},");
    hostile_send_forever(connection, buf_text(&piece));
}

static void serve_refusal_without_end(struct hostile_connection *connection, void *context)
{
    (void)context;
    CLEANUP_FREE char *piece = long_text(1 << 20);
    hostile_send_text(connection, "HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\n\r\n");
    hostile_send_forever(connection, piece);
}

static void serve_head_without_end(struct hostile_connection *connection, void *context)
{
    (void)context;
    hostile_send_text(connection, "HTTP/1.1 200 OK\r\n");
    hostile_send_forever(connection,
                         "X-More: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n");
}

static const struct nonsense {
    const char *name;
    struct rule rules[2];
    const char *says;
} nonsenses[] = {
    {"a malformed watch line",
     {{"/pods?watch=", 0, NULL, serve_malformed_line}},
     "cannot watch pods in all namespaces"},
    {"a watch line without end",
     {{"/pods?watch=", 0, NULL, serve_line_without_end}},
     "cannot watch pods in all namespaces: an object is larger than 8 MiB"},
    {"an object without end",
     {{"/pods?limit", 0, NULL, serve_item_without_end}},
     "cannot list pods in all namespaces: an object is larger than 8 MiB"},
    {"a refusal without end",
     {{"/pods?limit", 0, NULL, serve_refusal_without_end}},
     "cannot list pods in all namespaces"},
    {"a head without end",
     {{"/pods?limit", 0, NULL, serve_head_without_end}},
     "cannot list pods in all namespaces"},
};

static void what_cannot_be_taken_is_named_and_asked_for_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(nonsenses); i++) {
        print_message("    %s\n", nonsenses[i].name);
        struct scene scene;
        begin_with_rules(&scene, nonsenses[i].rules);
        start(&scene, "--no-lease");
        assert_says(&scene, nonsenses[i].says);
        assert_in_range(live_peak_kib(&scene.controller), 1, NONSENSE_PEAK_KIB);
        assert_waits(&scene, nonsenses[i].says);
        end(&scene);
    }
}

static void a_list_without_end_costs_no_memory(void **state)
{
    (void)state;
    static const struct rule rules[] = {{"/pods?limit", 0, NULL, serve_list_without_end}, {0}};
    struct scene scene;
    begin_with_rules(&scene, rules);
    start(&scene, "--no-lease");
    assert_true(live_goes_on(&scene.controller, 2 * WATCHED_MS));
    assert_in_range(live_peak_kib(&scene.controller), 1, PEAK_MAX_KIB);
    assert_stops_well(&scene);
    end(&scene);
}

/* A pod that is none of ours, with five megabytes in it. */
static void send_large_pod(struct hostile_connection *connection, const char *before, const char *after)
{
    CLEANUP_FREE char *large = long_text(5 << 20);
    hostile_send_text(connection, before);
    hostile_send_text(
        connection,
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"big-0\",\"namespace\":\"db\","
        "\"uid\":\"u1\",\"resourceVersion\":\"6\",\"annotations\":{\"large\":\"");
    hostile_send_text(connection, large);
    hostile_send_text(connection, "\"}},\"spec\":{\"containers\":[]}}");
    hostile_send_text(connection, after);
}

static void serve_large_item(struct hostile_connection *connection, void *context)
{
    (void)context;
    send_large_pod(connection,
                   STREAM_HEAD "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[",
                   "]}");
}

static void serve_large_event(struct hostile_connection *connection, void *context)
{
    (void)context;
    send_large_pod(connection, STREAM_HEAD "{\"type\":\"ADDED\",\"object\":", "}\n");
    hostile_wait_for_close(connection);
}

static void an_object_of_five_megabytes_is_taken(void **state)
{
    (void)state;
    static const struct rule rules[] = {
        {"/pods?limit", 0, NULL, serve_large_item}, {"/pods?watch=", 0, NULL, serve_large_event}, {0}};
    struct scene scene;
    begin_with_rules(&scene, rules);
    start(&scene, "--no-lease");
    assert_says(&scene, "listed 0 NeoSets and 1 pods");
    assert_waits(&scene, "listed");
    end(&scene);
}

/* --- journals that cannot be used ----------------------------------------------------------------------- */

/* Runs it to its end; code and sentence must be these. */
static void expect_end(struct scene *scene, const char *const *argv, int code, const char *words)
{
    live_start(&scene->controller, argv);
    if (!live_ends(&scene->controller, SAYS_TIMEOUT_MS))
        fail_msg("it does not end:\n%s", live_log(&scene->controller));
    if (!strstr(live_log(&scene->controller), words) || scene->controller.exit_code != code)
        fail_msg("exit code %d, \"%s\" wanted; it says\n%s", scene->controller.exit_code, words,
                 live_log(&scene->controller));
    live_stop(&scene->controller);
}

static void expect_no_start(struct scene *scene, const char *words)
{
    const char *argv[] = {"neoset-controller", "--kubeconfig", scene->kubeconfig, "--journal", scene->journal,
                          "--listen",          "none",         "--no-lease",      NULL};
    expect_end(scene, argv, 1, words);
    assert_int_equal(hostile_request_count(scene->server), 0);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    ENSURE(sqlite3_open(path, &db) == SQLITE_OK);
    ENSURE(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

/* A journal with one run in it. */
static void make_journal(struct scene *scene)
{
    start(scene, "--no-lease");
    assert_says(scene, "listed 0 NeoSets");
    assert_stops_well(scene);
}

static void be_a_directory(struct scene *scene)
{
    assert_int_equal(mkdir(scene->journal, 0700), 0);
}
static void be_a_text(struct scene *scene)
{
    put_file(scene->journal, "I am a letter to my mother.\n");
}
static void be_another_applications(struct scene *scene)
{
    run_sql(scene->journal, "CREATE TABLE letter (text TEXT)");
}
static void be_newer(struct scene *scene)
{
    run_sql(scene->journal, "PRAGMA user_version = 999");
}
static void be_truncated(struct scene *scene)
{
    assert_int_equal(truncate(scene->journal, 8192), 0);
}
static const struct bad_journal {
    const char *name;
    bool is_made;
    void (*spoil)(struct scene *scene);
    const char *says;
} bad_journals[] = {
    {"a directory", false, be_a_directory, "journal.db is a directory: name a file in it, such as"},
    {"no database", false, be_a_text,
     "is not a journal (not even a SQLite file): choose another journal file"},
    {"another application's", false, be_another_applications,
     "is another application's SQLite file: choose another journal file"},
    {"a newer program's", true, be_newer, "newer"},
    {"a file cut short", true, be_truncated, "backup"},
};

static void a_journal_that_cannot_be_used_is_named_and_nothing_is_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad_journals); i++) {
        print_message("    %s\n", bad_journals[i].name);
        struct scene scene;
        begin_with_rules(&scene, NULL);
        if (bad_journals[i].is_made) {
            make_journal(&scene);
            hostile_stop(scene.server);
            scene.server = hostile_start(&(struct hostile_options){.serve = serve_api});
        }
        bad_journals[i].spoil(&scene);
        expect_no_start(&scene, bad_journals[i].says);
        end(&scene);
    }
}

static void a_second_controller_is_told_who_is_the_first(void **state)
{
    (void)state;
    struct scene scene;
    begin_with_rules(&scene, NULL);
    start(&scene, "--no-lease");
    assert_says(&scene, "listed 0 NeoSets");
    struct scene second = scene;
    CLEANUP_FREE char *words = xasprintf("is in use by process %d on ", (int)scene.controller.pid);
    const char *argv[] = {"neoset-controller", "--kubeconfig", scene.kubeconfig, "--journal", scene.journal,
                          "--listen",          "none",         "--no-lease",     NULL};
    expect_end(&second, argv, 1, words);
    assert_stops_well(&scene);
    end(&scene);
}

/* Root may do anything: then it is run as nobody. */
static void a_folder_without_permission_is_named(void **state)
{
    (void)state;
    struct scene scene;
    begin_with_rules(&scene, NULL);
    bool is_root = geteuid() == 0;
    CLEANUP_FREE char *program =
        xasprintf("%s/neoset-controller", getenv("NEOSET_BUILD") ? getenv("NEOSET_BUILD") : "build/gcc");
    const char *as_nobody[] = {"setpriv",     "--reuid=65534", "--regid=65534",  "--clear-groups",
                               program,       "--kubeconfig",  scene.kubeconfig, "--journal",
                               scene.journal, "--listen",      "none",           "--no-lease",
                               NULL};
    assert_int_equal(chmod(scene.folder, is_root ? 0755 : 0500), 0);
    assert_int_equal(chmod(scene.kubeconfig, 0644), 0);
    CLEANUP_FREE char *words = xasprintf("%s/journal.db: cannot make it: Permission denied", scene.folder);
    expect_end(&scene, is_root ? as_nobody : as_nobody + 4, 1, words);
    assert_int_equal(chmod(scene.folder, 0700), 0);
    end(&scene);
}

/* In a mount namespace of its own, where that is allowed: a disk of a few blocks. */
static void a_full_disk_is_named_with_what_to_do(void **state)
{
    (void)state;
    struct scene scene;
    begin_with_rules(&scene, NULL);
    CLEANUP_FREE char *program =
        xasprintf("%s/neoset-controller", getenv("NEOSET_BUILD") ? getenv("NEOSET_BUILD") : "build/gcc");
    CLEANUP_FREE char *script =
        xasprintf("mkdir -p %s/disk && mount -t tmpfs -o size=32k tmpfs %s/disk || exit 77\n"
                  "exec %s --kubeconfig %s --journal %s/disk/journal.db --listen none --no-lease",
                  scene.folder, scene.folder, program, scene.kubeconfig, scene.folder);
    const char *argv[] = {"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, NULL};
    live_start(&scene.controller, argv);
    assert_true(live_ends(&scene.controller, SAYS_TIMEOUT_MS));
    bool may_mount = scene.controller.exit_code == 1 && strstr(live_log(&scene.controller), "neoset") != NULL;
    if (may_mount && !strstr(live_log(&scene.controller), "the disk of the journal is full"))
        fail_msg("it says\n%s", live_log(&scene.controller));
    live_stop(&scene.controller);
    end(&scene);
    if (!may_mount)
        skip();
}

static void an_option_that_does_not_exist_is_wrong_usage(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, NULL, "");
    const char *argv[] = {"neoset-controller", "--jurnal=x", NULL};
    expect_end(&scene, argv, 64, "--jurnal");
    const char *no_kubeconfig[] = {"neoset-controller",
                                   "--kubeconfig",
                                   scene.kubeconfig,
                                   "--listen",
                                   "none",
                                   "--journal",
                                   scene.journal,
                                   NULL};
    expect_end(&scene, no_kubeconfig, 1, scene.kubeconfig);
    end(&scene);
}

/* --- a server that went back in time ---------------------------------------------------------------------
 */

#define LIST_AT(version)                                                                                     \
    "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" version                  \
    "\"},\"items\":[]}"
/* At 9, at 5, and at 5 once more. */
enum { RESTORED_LISTS = 3 };

/* Pods are listed at 9, then, as from a backup that was restored, at 5. context: how often they were listed.
 */
static void serve_a_restored_backup(struct hostile_connection *connection, void *context)
{
    atomic_int *lists = context;
    bool alive = true;
    while (alive && hostile_read_request(connection)) {
        const char *request = hostile_last_request(connection);
        bool is_watch = strstr(request, "watch=") != NULL;
        if (!strstr(request, "/pods?") || (is_watch && *lists >= RESTORED_LISTS))
            alive = answer_well(connection);
        else if (is_watch)
            alive = hostile_answer(connection, 410, STATUS_OF(410, "Expired", "too old resource version"));
        else
            alive = hostile_answer(connection, 200, (*lists)++ == 0 ? LIST_AT("9") : LIST_AT("5"));
    }
}

static void a_server_that_went_back_is_listed_anew_and_that_is_said_once(void **state)
{
    (void)state;
    struct scene scene;
    atomic_int lists = 0;
    begin(&scene, &(struct hostile_options){.serve = serve_a_restored_backup, .context = &lists}, "token: t");
    start(&scene, "--no-lease");
    assert_says(&scene, "the resourceVersions of the pods went back");
    if (!live_goes_on(&scene.controller, WATCHED_MS))
        fail_msg("it ended:\n%s", live_log(&scene.controller));
    assert_int_equal(live_count(&scene.controller, "went back"), 1);
    assert_int_equal(lists, RESTORED_LISTS);
    assert_stops_well(&scene);
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_refuses_is_named_and_waited_for),
        cmocka_unit_test(whom_nobody_vouches_for_is_sent_nothing),
        cmocka_unit_test(a_server_that_is_not_there_is_waited_for),
        cmocka_unit_test(what_cannot_be_taken_is_named_and_asked_for_again),
        cmocka_unit_test(a_list_without_end_costs_no_memory),
        cmocka_unit_test(an_object_of_five_megabytes_is_taken),
        cmocka_unit_test(a_server_that_went_back_is_listed_anew_and_that_is_said_once),
        cmocka_unit_test(a_journal_that_cannot_be_used_is_named_and_nothing_is_asked),
        cmocka_unit_test(a_second_controller_is_told_who_is_the_first),
        cmocka_unit_test(a_folder_without_permission_is_named),
        cmocka_unit_test(a_full_disk_is_named_with_what_to_do),
        cmocka_unit_test(an_option_that_does_not_exist_is_wrong_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
