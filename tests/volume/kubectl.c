/* SPDX-License-Identifier: Apache-2.0
 *
 * As much of kubectl, and of an API server, as the resize script asks of them, over a folder: FAKE_STATE,
 * with state.json {sets: {NAME: StatefulSet}, claims, classes, looks}. What would be stored is noted in
 * `writes`, a line each; every request in `calls`; what the script has no business to ask in `unexpected`.
 * FAKE_FAULTS is a list of words: what goes wrong, see is_faulty(). */
#include "env/file.h"
#include "kube/object.h"
#include "volume/quantity.h"

#include <stdio.h>

enum { FILE_MAX = 16 << 20, FOR_EVER = 1000000 };

static const char *namespace;
static cJSON *state;

static char *place(const char *name)
{
    return xasprintf("%s/%s", getenv("FAKE_STATE"), name);
}

static cJSON *read_json(const char *path)
{
    CLEANUP_BUF struct buf text = BUF_INIT(FILE_MAX);
    cJSON *tree = NULL;
    ENSURE(real_read_file(NULL, path, &text, NULL) == 0);
    ENSURE(json_parse(buf_text(&text), text.length, &tree, NULL) == 0);
    return tree;
}

static void add_line(const char *name, const char *line)
{
    CLEANUP_FREE char *path = place(name);
    FILE *file = fopen(path, "ae");
    ENSURE(file && fprintf(file, "%s\n", line) > 0 && fclose(file) == 0);
}

static int64_t count_lines(const char *name)
{
    CLEANUP_FREE char *path = place(name);
    CLEANUP_BUF struct buf text = BUF_INIT(FILE_MAX);
    int64_t count = 0;
    if (real_read_file(NULL, path, &text, NULL) == 0)
        for (size_t i = 0; i < text.length; i++)
            count += text.data[i] == '\n';
    return count;
}

/* "infeasible-late": the third time that claims are listed the driver has said of the first that it cannot
 * be. "no-server-N": request N finds no server. "forbidden": claims may not be written. "quota": 2Gi is too
 * much; "quota-full": every byte is. "lost-NAME": a claim's patch is not done. "born": with the first patch a
 * small claim appears. "flapping": the set's version rises behind every fourth request; "changes": its
 * generation with each look.
 * "no-namespace": there is none; "blind": whether there is one may not be asked.
 * "collector-off": what is deleted stays for a million looks. "not-orphan": a delete that would kill the
 * pods. */
static bool is_faulty(const char *word)
{
    const char *faults = getenv("FAKE_FAULTS");
    size_t length = strlen(word);
    for (const char *at = faults; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == length && memcmp(at, word, length) == 0)
            return true;
    return false;
}

static int refuse(const char *reason, const char *sentence)
{
    fprintf(stderr, "Error from server (%s): %s\n", reason, sentence);
    return 1;
}

static int unexpected(const char *what)
{
    add_line("unexpected", what);
    fprintf(stderr, "not expected: %s\n", what);
    return 3;
}

static void show(const cJSON *tree)
{
    CLEANUP_FREE char *text = json_print(tree);
    puts(text);
}

/* --- sets ----------------------------------------------------------------------------------------------- */

static cJSON *find_set(const char *name)
{
    return json_get(json_get(state, "sets"), name);
}

static void raise_version(cJSON *object)
{
    cJSON *metadata = json_get(object, "metadata");
    CLEANUP_FREE char *next = xasprintf("%s1", json_str(metadata, "resourceVersion"));
    json_set_str(metadata, "resourceVersion", next);
}

static int get_set(const char *name)
{
    cJSON *set = find_set(name);
    if (set && kube_object_is_deleting(set)) {
        int64_t looks = json_int64_or(state, "looks", 0);
        if (looks <= 0) {
            json_remove(json_get(state, "sets"), name);
            return 0;
        }
        json_set_item(state, "looks", json_new_int64(looks - 1));
    }
    if (!set)
        return 0;
    if (is_faulty("changes"))
        json_set_item(json_get(set, "metadata"), "generation",
                      json_new_int64(kube_object_generation(set) + 1));
    show(set);
    if (is_faulty("flapping") && count_lines("calls") % 4 == 1)
        raise_version(set);
    return 0;
}

static void begin_delete(cJSON *set)
{
    cJSON *metadata = json_get(set, "metadata");
    cJSON *finalizers = json_new_array();
    json_append_str(finalizers, "orphan");
    json_set_str(metadata, "deletionTimestamp", "2026-01-01T00:00:00Z");
    json_set_item(metadata, "finalizers", finalizers);
}

static bool is_orphan_delete(const cJSON *body)
{
    static const char *const known[] = {"apiVersion", "dryRun", "kind", "preconditions", "propagationPolicy"};
    const cJSON *preconditions = json_get(body, "preconditions");
    const cJSON *member;
    cJSON_ArrayForEach (member, body) {
        bool is_known = false;
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
            is_known = is_known || str_equal(member->string, known[i]);
        if (!is_known)
            return false;
    }
    return str_equal(json_str(body, "kind"), "DeleteOptions") &&
           str_equal(json_str(body, "propagationPolicy"), "Orphan") && json_str(preconditions, "uid") &&
           json_str(preconditions, "resourceVersion");
}

static int delete_set(const char *path, const char *file)
{
    CLEANUP_FREE char *folder = xasprintf("/apis/apps/v1/namespaces/%s/statefulsets/", namespace);
    CLEANUP_JSON cJSON *body = read_json(file);
    if (!str_starts_with(path, folder) || strpbrk(path, "?%"))
        return unexpected(path);
    if (!is_orphan_delete(body))
        return unexpected("a delete that does not orphan");
    const char *name = path + strlen(folder);
    cJSON *set = find_set(name);
    const cJSON *preconditions = json_get(body, "preconditions");
    if (!set)
        return refuse("NotFound", name);
    if (!str_equal(json_str(preconditions, "uid"), kube_object_uid(set)) ||
        !str_equal(json_str(preconditions, "resourceVersion"), kube_object_version(set)))
        return refuse("Conflict", "the object has been modified");
    CLEANUP_JSON cJSON *answer = json_copy(set);
    begin_delete(answer);
    if (is_faulty("not-orphan"))
        puts("{\"kind\":\"Status\",\"status\":\"Success\"}");
    else
        show(answer);
    if (json_get(body, "dryRun"))
        return 0;
    CLEANUP_FREE char *line = xasprintf("{\"delete\":\"%s\"}", name);
    add_line("writes", line);
    begin_delete(set);
    if (is_faulty("collector-off"))
        json_set_item(state, "looks", json_new_int64(FOR_EVER));
    return 0;
}

/* --- the namespace -------------------------------------------------------------------------------------- */

static int get_namespace(const char *said)
{
    if (is_faulty("blind"))
        return refuse("Forbidden", "User \"nobody\" cannot get resource \"namespaces\"");
    if (!is_faulty("no-namespace"))
        puts(said);
    return 0;
}

/* --- claims --------------------------------------------------------------------------------------------- */

static void answer_late(void)
{
    add_line("lists", "");
    if (!is_faulty("infeasible-late") || count_lines("lists") < 3)
        return;
    cJSON *claim = json_get(state, "claims")->child;
    const char *size = json_path_str(claim, "spec", "resources", "requests", "storage", NULL);
    cJSON *status = json_ensure_object(claim, "status");
    json_set_str(json_ensure_object(status, "allocatedResources"), "storage", size);
    json_set_str(json_ensure_object(status, "allocatedResourceStatuses"), "storage",
                 "ControllerResizeInfeasible");
}

static int list_claims(void)
{
    answer_late();
    CLEANUP_JSON cJSON *list = json_new_object();
    cJSON *items = json_add_array(list, "items");
    const cJSON *claim;
    cJSON_ArrayForEach (claim, json_get(state, "claims")) {
        const char *own = kube_object_namespace(claim);
        if (!own || str_equal(own, namespace))
            json_append_item(items, json_copy(claim));
    }
    show(list);
    return 0;
}

static cJSON *find_claim(const char *name)
{
    cJSON *claim;
    cJSON_ArrayForEach (claim, json_get(state, "claims"))
        if (str_equal(kube_object_name(claim), name))
            return claim;
    return NULL;
}

static struct quantity size_of(const cJSON *object)
{
    struct quantity size = {0};
    CLEANUP_FREE char *text = NULL;
    const cJSON *node = json_path(object, "spec", "resources", "requests", "storage", NULL);
    if (node)
        ENSURE(quantity_read(node, &size, &text, NULL) == 0);
    return size;
}

static bool class_allows(const cJSON *claim)
{
    const char *beta = kube_object_annotation(claim, "volume.beta.kubernetes.io/storage-class");
    const char *name = beta ? beta : json_path_str(claim, "spec", "storageClassName", NULL);
    const cJSON *classes = json_get(state, "classes");
    const cJSON *class;
    if (!name || !*name)
        return false;
    cJSON_ArrayForEach (class, classes)
        if (str_equal(kube_object_name(class), name))
            return json_bool_or(class, "allowVolumeExpansion", false);
    return false;
}

/* The size, the guards, and nothing else. */
static bool says_only_the_size(const cJSON *body)
{
    const cJSON *metadata = json_get(body, "metadata");
    return cJSON_GetArraySize(body) == 2 && cJSON_GetArraySize(metadata) == 2 && json_str(metadata, "uid") &&
           json_str(metadata, "resourceVersion") && cJSON_GetArraySize(json_get(body, "spec")) == 1 &&
           cJSON_GetArraySize(json_path(body, "spec", "resources", NULL)) == 1 &&
           cJSON_GetArraySize(json_path(body, "spec", "resources", "requests", NULL)) == 1;
}

/* In the server's order: preconditions, validation, admission. 0, or it was refused. */
static int check_patch(const cJSON *claim, const cJSON *body, const char *name)
{
    const cJSON *metadata = json_get(body, "metadata");
    if (!claim)
        return refuse("NotFound", name);
    struct quantity old = size_of(claim), new = size_of(body);
    int compared = quantity_compare(&new, &old);
    if (is_faulty("forbidden"))
        return refuse("Forbidden", "User \"nobody\" cannot patch resource \"persistentvolumeclaims\"");
    if (!str_equal(json_str(metadata, "resourceVersion"), kube_object_version(claim)))
        return refuse("Conflict", "the object has been modified");
    if (!str_equal(json_str(metadata, "uid"), kube_object_uid(claim)))
        return refuse("Invalid", "metadata.uid: field is immutable");
    if (compared == 0)
        return 0;
    if (!str_equal(json_path_str(claim, "status", "phase", NULL), "Bound"))
        return refuse("Invalid",
                      "spec is immutable after creation except resources.requests for bound claims");
    if (compared < 0)
        return refuse("Invalid", "field can not be less than previous value");
    if (!class_allows(claim))
        return refuse("Forbidden",
                      "only dynamically provisioned pvc can be resized and the storageclass that "
                      "provisions the pvc must support resize");
    struct quantity limit = {0};
    ENSURE(quantity_parse("2Gi", 3, &limit, NULL) == 0);
    if (is_faulty("quota-full") || (is_faulty("quota") && quantity_compare(&new, &limit) >= 0))
        return refuse("Forbidden", "exceeded quota: q");
    return 0;
}

static void bear_small_claim(void)
{
    cJSON *claims = json_get(state, "claims");
    if (!is_faulty("born") || find_claim("data-db-9"))
        return;
    cJSON *claim = json_copy(claims->child);
    json_set_str(json_get(claim, "metadata"), "name", "data-db-9");
    json_set_str(json_get(claim, "metadata"), "uid", "born");
    json_set_str(json_path(claim, "spec", "resources", "requests", NULL), "storage", "1Gi");
    json_append_item(claims, claim);
}

static int patch_claim(const char *name, const char *text, bool is_dry)
{
    CLEANUP_JSON cJSON *body = NULL;
    CLEANUP_FREE char *lost = xasprintf("lost-%s", name);
    if (json_parse(text, strlen(text), &body, NULL) < 0 || !says_only_the_size(body))
        return unexpected(text);
    cJSON *claim = find_claim(name);
    int r = check_patch(claim, body, name);
    if (r != 0)
        return r;
    if (!is_dry && is_faulty(lost))
        return refuse("ServiceUnavailable", "try again");
    if (!is_dry) {
        const char *size = json_path_str(body, "spec", "resources", "requests", "storage", NULL);
        CLEANUP_FREE char *line = xasprintf("{\"patch\":\"%s\",\"size\":\"%s\"}", name, size);
        add_line("writes", line);
        json_set_str(json_path(claim, "spec", "resources", "requests", NULL), "storage", size);
        raise_version(claim);
        bear_small_claim();
    }
    printf("persistentvolumeclaim/%s\n", name);
    return 0;
}

/* --- the command line -------------------------------------------------------------------------------------
 */

/* "get persistentvolumeclaims -o json": the arguments have these words, where NULL stands for any. */
static bool is_said(int argc, char **argv, const char *const *words, int count)
{
    for (int i = 0; i < count && i < argc; i++)
        if (words[i] && !str_equal(argv[i], words[i]))
            return false;
    return argc == count;
}
#define IS_SAID(...)                                                                                         \
    is_said(argc, argv, (const char *const[]){__VA_ARGS__},                                                  \
            (int)ARRAY_SIZE(((const char *const[]){__VA_ARGS__})))

static int answer(int argc, char **argv, const char *line)
{
    static const char sets[] = "statefulsets.apps/";
    CLEANUP_FREE char *own = xasprintf("namespaces/%s", namespace);
    if (IS_SAID("get", NULL, "--ignore-not-found", "-o", "json") && str_starts_with(argv[1], sets))
        return get_set(argv[1] + strlen(sets));
    if (IS_SAID("get", own, "--ignore-not-found", "-o", "name"))
        return get_namespace(own);
    if (IS_SAID("get", "persistentvolumeclaims", "-o", "json"))
        return list_claims();
    if (IS_SAID("delete", "--raw", NULL, "-f", NULL))
        return delete_set(argv[2], argv[4]);
    if (IS_SAID("patch", "persistentvolumeclaim", NULL, "--type=merge", "-p", NULL,
                "--field-manager=sts-volume-resize", "-o", "name"))
        return patch_claim(argv[2], argv[5], false);
    if (IS_SAID("patch", "persistentvolumeclaim", NULL, "--type=merge", "-p", NULL,
                "--field-manager=sts-volume-resize", "-o", "name", "--dry-run=server"))
        return patch_claim(argv[2], argv[5], true);
    return unexpected(line);
}

/* In a pod: with --request-timeout the real one knows only a server that it is told of. */
static bool is_told_of_server(void)
{
    static const char account[] = "/var/run/secrets/kubernetes.io/serviceaccount";
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *config = getenv("KUBECONFIG");
    if (!host || !config)
        return !host;
    bool is_v6 = strchr(host, ':') != NULL;
    CLEANUP_JSON cJSON *tree = read_json(config);
    CLEANUP_FREE char *server = xasprintf("https://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
                                          getenv("KUBERNETES_SERVICE_PORT"));
    CLEANUP_FREE char *token = xasprintf("%s/token", account);
    CLEANUP_FREE char *authority = xasprintf("%s/ca.crt", account);
    const cJSON *cluster = cJSON_GetArrayItem(json_get(tree, "clusters"), 0);
    const cJSON *user = cJSON_GetArrayItem(json_get(tree, "users"), 0);
    return str_equal(json_path_str(cluster, "cluster", "server", NULL), server) &&
           str_equal(json_path_str(cluster, "cluster", "certificate-authority", NULL), authority) &&
           str_equal(json_path_str(user, "user", "tokenFile", NULL), token);
}

int main(int argc, char **argv)
{
    CLEANUP_BUF struct buf line = BUF_INIT(FILE_MAX);
    for (int i = 1; i < argc; i++)
        buf_addf(&line, "%s%s", i > 1 ? " " : "", argv[i]);
    CLEANUP_FREE char *path = place("state.json");
    CLEANUP_FREE char *away = xasprintf("no-server-%d", (int)count_lines("calls"));
    add_line("calls", buf_text(&line));
    if (is_faulty(away))
        return refuse("ServiceUnavailable", "the server is currently unable to handle the request");
    if (argc < 5 || !str_equal(argv[1], "--namespace") || !str_equal(argv[3], "--request-timeout=30s"))
        return unexpected(buf_text(&line));
    if (!is_told_of_server()) {
        fprintf(stderr, "The connection to the server localhost:8080 was refused\n");
        return 1;
    }
    namespace = argv[2];
    state = read_json(path);
    int r = answer(argc - 4, argv + 4, buf_text(&line));
    CLEANUP_FREE char *text = json_print(state);
    ENSURE(real_write_file(NULL, path, 0600, text, strlen(text), NULL) == 0);
    json_delete(state);
    return r;
}
