/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/server.h"
#include "base/time_text.h"
#include "kube/discovery.h"
#include "kube/list.h"
#include "kube/object.h"
#include "volume/keep.h"

enum { NAMES_SHOWN_MAX = 20 };

int ctl_server_open(const struct options *options, struct ctl_server *ret, struct error **err)
{
    *ret = (struct ctl_server){0};
    int r = neosetctl_timeout(options, &ret->timeout_us, err);
    if (r < 0)
        return r;
    const char *namespace = option_text(options, "namespace");
    if (namespace && *namespace == '\0')
        return error_set(err, ERROR_USAGE, "--namespace is empty: -A is for all namespaces");
    ret->all_namespaces = option_flag(options, "all-namespaces");
    if (namespace && ret->all_namespaces)
        return error_set(err, ERROR_USAGE,
                         "--namespace and --all-namespaces contradict each other: give one of them");
    ret->env = env_real_make();
    /* To settle is to say "--as applied": there it is a verdict. */
    bool as_user = !str_equal(option_command_name(options), "settle");
    struct kube_config_options wanted = {.kubeconfig = option_text(options, "kubeconfig"),
                                         .context = option_text(options, "context"),
                                         .impersonate_user = as_user ? option_text(options, "as") : NULL};
    struct kube_config *config = NULL;
    r = kube_config_load(ret->env, &wanted, &config, err);
    if (r < 0)
        return r;
    ret->namespace = xstrdup(namespace ? namespace : config->namespace);
    ret->client = kube_client_make(ret->env, config);
    return 0;
}

void ctl_server_close(struct ctl_server *server)
{
    if (server->client)
        kube_client_free(server->client);
    env_free(server->env);
    free(server->namespace);
    *server = (struct ctl_server){0};
}

/* --- one question
 * ------------------------------------------------------------------------------------------- */

struct question {
    struct env *env;
    const char *what;
    bool is_answered;
    cJSON *answer;
    int result;
    struct error *err;
};

/* A 404 that names no object speaks of the collection: the server does not know the resource at all. */
static bool is_unknown_resource(const struct kube_answer *answer)
{
    const char *name = json_path_str(answer->body, "details", "name", NULL);
    return !answer->stranger && answer->http == 404 && !(name && *name);
}

static void answered(void *context, const struct kube_answer *answer)
{
    struct question *question = context;
    question->is_answered = true;
    if (answer->outcome == KUBE_OK && answer->body) {
        question->answer = json_copy(answer->body);
    } else {
        CLEANUP_FREE char *sentence = kube_answer_sentence(answer, question->what);
        enum error_code code = answer->code != ERROR_NONE ? answer->code : ERROR_FAILED;
        if (is_unknown_resource(answer))
            code = ERROR_UNSUPPORTED;
        question->result = error_set(&question->err, code, "%s", sentence);
    }
    env_stop(question->env);
}

int ctl_get(struct ctl_server *server, const char *path, const char *what, cJSON **ret, struct error **err)
{
    struct question question = {.env = server->env, .what = what};
    kube_get(server->client, path, server->timeout_us, answered, &question);
    while (!question.is_answered)
        env_run(server->env);
    if (question.result < 0) {
        if (err)
            *err = STEAL(question.err);
        error_free(question.err);
        return question.result;
    }
    ENSURE(question.answer);
    *ret = question.answer;
    return 0;
}

/* --- a resource that the server does not know --- */

static void discovered(void *context, enum kube_served served, const char *sentence)
{
    struct question *question = context;
    question->is_answered = true;
    if (served == KUBE_NOT_SERVED)
        question->result = error_set(&question->err, ERROR_UNSUPPORTED, "%s", sentence);
    env_stop(question->env);
}

/* A 404 of the collection is only a hint: whether the definition is missing, the server says itself. Takes
 * own over; it stays the error where the server says otherwise. */
static int explain_unknown(struct ctl_server *server, struct error *own, struct error **err)
{
    struct question question = {.env = server->env};
    struct kube_discovery *discovery =
        kube_discover(server->client, KUBE_NEOSET, server->timeout_us, discovered, &question);
    ENSURE(discovery);
    while (!question.is_answered)
        env_run(server->env);
    struct error *said = question.result < 0 ? question.err : own;
    if (said != own)
        error_free(own);
    if (err)
        *err = said;
    else
        error_free(said);
    return -ERROR_UNSUPPORTED;
}

/* --- a collection --- */

static void listed(void *context, cJSON *items, const struct kube_answer *answer)
{
    struct question *question = context;
    if (!items && answer->outcome != KUBE_OK) {
        answered(question, answer);
        return;
    }
    question->is_answered = true;
    question->answer = items;
    if (!items)
        question->result = error_set(&question->err, ERROR_INVALID,
                                     "%s: the answer is no list, so it is hardly an API server's; check "
                                     "`server` in the kubeconfig",
                                     question->what);
    env_stop(question->env);
}

int ctl_list(struct ctl_server *server, enum kube_resource resource, const char *namespace,
             const char *selector, const char *what, cJSON **ret, struct error **err)
{
    struct question question = {.env = server->env, .what = what};
    kube_list_start(server->client, resource, namespace, selector, server->timeout_us, listed, &question);
    while (!question.is_answered)
        env_run(server->env);
    if (question.result == 0) {
        *ret = question.answer;
        return 0;
    }
    if (question.result == -ERROR_UNSUPPORTED && resource == KUBE_NEOSET)
        return explain_unknown(server, question.err, err);
    if (err)
        *err = question.err;
    else
        error_free(question.err);
    return question.result;
}

/* --- the set
 * ------------------------------------------------------------------------------------------------ */

/* "a, b and 3 more", or in all namespaces "prod/a, test/b". The caller's. */
static char *names_of(const cJSON *items, bool has_namespaces)
{
    struct buf text = BUF_INIT((size_t)64 * 1024);
    int count = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, items) {
        const char *name = kube_object_name(item);
        const char *namespace = kube_object_namespace(item);
        if (!name || count++ >= NAMES_SHOWN_MAX)
            continue;
        buf_addf(&text, "%s%s%s%s", text.length > 0 ? ", " : "", has_namespaces && namespace ? namespace : "",
                 has_namespaces && namespace ? "/" : "", name);
    }
    if (count > NAMES_SHOWN_MAX)
        buf_addf(&text, " and %d more", count - NAMES_SHOWN_MAX);
    return buf_take(&text);
}

/* The manifest of a StatefulSet is kept for a NeoSet of this name, and that is gone. */
static bool is_on_its_way_back(struct ctl_server *server, const char *name)
{
    CLEANUP_JSON cJSON *kept = NULL;
    (void)ctl_list(server, KUBE_REVISION, server->namespace, KEEP_LABEL, "ControllerRevisions", &kept, NULL);
    const cJSON *revision = NULL;
    cJSON_ArrayForEach (revision, kept)
        if (str_equal(kube_object_annotation(revision, KEEP_ADOPTED_BY), name))
            return true;
    return false;
}

/* Looks around: where a wrong name or namespace was given, the right one is usually near. */
static int no_such_set(struct ctl_server *server, const char *name, struct error **err)
{
    CLEANUP_JSON cJSON *here = NULL;
    CLEANUP_JSON cJSON *everywhere = NULL;
    if (is_on_its_way_back(server, name))
        return error_set(err, ERROR_NOT_FOUND,
                         "no NeoSet %s in namespace %s any more: its way back to a StatefulSet is not "
                         "finished: `neosetctl continue -n %s` shows how to go on",
                         name, server->namespace, server->namespace);
    (void)ctl_list(server, KUBE_NEOSET, server->namespace, NULL, "NeoSets", &here, NULL);
    if (here && cJSON_GetArraySize(here) > 0) {
        CLEANUP_FREE char *names = names_of(here, false);
        return error_set(err, ERROR_NOT_FOUND, "no NeoSet %s in namespace %s: there is %s", name,
                         server->namespace, names);
    }
    (void)ctl_list(server, KUBE_NEOSET, NULL, NULL, "NeoSets", &everywhere, NULL);
    if (everywhere && cJSON_GetArraySize(everywhere) > 0) {
        CLEANUP_FREE char *names = names_of(everywhere, true);
        return error_set(err, ERROR_NOT_FOUND,
                         "no NeoSet %s in namespace %s, nor any other; elsewhere there is %s (-n NAMESPACE)",
                         name, server->namespace, names);
    }
    return error_set(err, ERROR_NOT_FOUND,
                     "no NeoSet %s in namespace %s: `neosetctl get -A` lists all that you may see", name,
                     server->namespace);
}

int ctl_get_set(struct ctl_server *server, const char *name, cJSON **ret, struct error **err)
{
    CLEANUP_FREE char *path = kube_path(KUBE_NEOSET, server->namespace, name, NULL);
    CLEANUP_FREE char *what = xasprintf("NeoSet %s in namespace %s", name, server->namespace);
    CLEANUP_ERROR struct error *own = NULL;
    int r = ctl_get(server, path, what, ret, &own);
    if (r == 0)
        return 0;
    if (r == -ERROR_UNSUPPORTED)
        return explain_unknown(server, STEAL(own), err);
    if (r == -ERROR_NOT_FOUND)
        return no_such_set(server, name, err);
    if (err)
        *err = STEAL(own);
    return r;
}
