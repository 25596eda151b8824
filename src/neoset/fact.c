/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/fact.h"

#include "base/time_text.h"
#include "kube/object.h"
#include "neoset/defaults.h"
#include "neoset/fact_read.h"
#include "neoset/selector.h"
#include "volume/decide.h"

/* --- readers -------------------------------------------------------------------------------------------- */

int64_t fact_read_time(const char *text)
{
    int64_t at_us = 0;
    if (!text || time_parse_rfc3339(text, &at_us, NULL) < 0)
        return 0;
    return at_us;
}

int fact_read_int(const cJSON *object, const char *key, int minimum, int fallback)
{
    int64_t number = 0;
    if (!json_int64(object, key, &number) || number < minimum || number > INT32_MAX)
        return fallback;
    return (int)number;
}

const cJSON *fact_find_item(const cJSON *array, const char *key, const char *value)
{
    const cJSON *item = NULL;
    if (!cJSON_IsArray(array))
        return NULL;
    cJSON_ArrayForEach (item, array) {
        if (str_equal(json_str(item, key), value))
            return item;
    }
    return NULL;
}

uint64_t text_hash64(const char *text)
{
    uint64_t hash = 14695981039346656037U; /* FNV-1a */
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        hash = (hash ^ *at) * 1099511628211U;
    return hash ? hash : 1;
}

/* --- claims --------------------------------------------------------------------------------------------- */

static void read_volume(struct claim_fact *fact, const cJSON *object)
{
    fact->request = xstrdup_or_null(growth_request(object));
    if (fact->request)
        (void)quantity_parse(fact->request, strlen(fact->request), &fact->request_value, NULL);
    fact->class = intern_get(fact->pool, volume_class_of(object));
    fact->phase = intern_get(fact->pool, json_path_str(object, "status", "phase", NULL));
    fact->growth = (uint8_t)growth_of(object, 0);
}

struct claim_fact *claim_fact_make(struct intern *pool, const cJSON *object)
{
    const cJSON *metadata = json_get(object, "metadata");
    const char *name = json_str(metadata, "name");
    if (!name || !*name)
        return NULL;
    struct claim_fact *fact = xcalloc(1, sizeof(*fact));
    fact->pool = pool;
    fact->namespace = intern_get(pool, json_str(metadata, "namespace"));
    fact->name = xstrdup(name);
    fact->uid = xstrdup_or_null(json_str(metadata, "uid"));
    fact->version = xstrdup_or_null(json_str(metadata, "resourceVersion"));
    fact->deleting = json_str(metadata, "deletionTimestamp") != NULL;
    fact->controller_uid = intern_get(pool, kube_object_controller_uid(object));
    const cJSON *owners = json_get(metadata, "ownerReferences");
    fact->set_owner_uid = intern_get(pool, json_str(fact_find_item(owners, "kind", "NeoSet"), "uid"));
    fact->pod_owner_uid = intern_get(pool, json_str(fact_find_item(owners, "kind", "Pod"), "uid"));
    read_volume(fact, object);
    return fact;
}

void claim_fact_free(struct claim_fact *fact)
{
    if (!fact)
        return;
    intern_put(fact->pool, fact->namespace);
    intern_put(fact->pool, fact->controller_uid);
    intern_put(fact->pool, fact->set_owner_uid);
    intern_put(fact->pool, fact->pod_owner_uid);
    intern_put(fact->pool, fact->class);
    intern_put(fact->pool, fact->phase);
    free(fact->name);
    free(fact->uid);
    free(fact->version);
    free(fact->request);
    free(fact);
}

/* --- revisions ------------------------------------------------------------------------------------------ */

static void read_template(struct revision_fact *fact, const cJSON *object)
{
    const cJSON *template = json_path(object, "data", "spec", "template", NULL);
    if (!cJSON_IsObject(template))
        return;
    CLEANUP_JSON cJSON *copy = json_copy(template);
    json_remove(copy, "$patch");
    fact->template_text = json_print(copy);
    defaults_digest_template(copy, fact->template_digest);
    const cJSON *containers = json_path(copy, "spec", "containers", NULL);
    const cJSON *first = cJSON_IsArray(containers) ? containers->child : NULL;
    fact->first_image = xstrdup_or_null(json_str(first, "image"));
    fact->first_container = xstrdup_or_null(json_str(first, "name"));
}

struct revision_fact *revision_fact_make(struct intern *pool, const cJSON *object)
{
    const cJSON *metadata = json_get(object, "metadata");
    const char *name = json_str(metadata, "name");
    if (!name || !*name)
        return NULL;
    struct revision_fact *fact = xcalloc(1, sizeof(*fact));
    fact->pool = pool;
    fact->namespace = intern_get(pool, json_str(metadata, "namespace"));
    fact->name = xstrdup(name);
    fact->uid = xstrdup_or_null(json_str(metadata, "uid"));
    fact->version = xstrdup_or_null(json_str(metadata, "resourceVersion"));
    fact->number = json_int64_or(object, "revision", 0);
    fact->created_us = fact_read_time(json_str(metadata, "creationTimestamp"));
    fact->deleting = json_str(metadata, "deletionTimestamp") != NULL;
    fact->owner_uid = intern_get(pool, kube_object_controller_uid(object));
    if (!fact->owner_uid) {
        CLEANUP_FREE char *labels = labels_print(json_get(metadata, "labels"));
        fact->labels = intern_get(pool, labels);
    }
    read_template(fact, object);
    return fact;
}

void revision_fact_free(struct revision_fact *fact)
{
    if (!fact)
        return;
    intern_put(fact->pool, fact->namespace);
    intern_put(fact->pool, fact->owner_uid);
    intern_put(fact->pool, fact->labels);
    free(fact->name);
    free(fact->uid);
    free(fact->version);
    free(fact->template_text);
    free(fact->first_image);
    free(fact->first_container);
    free(fact);
}

/* --- names and versions --------------------------------------------------------------------------------- */

bool neoset_split_pod_name(const char *pod_name, size_t *ret_set_length, int *ret_ordinal)
{
    const char *dash = strrchr(pod_name, '-');
    if (!dash || dash == pod_name)
        return false;
    const char *digits = dash + 1;
    size_t count = strlen(digits);
    /* Canonical only: "mysql-03" is nobody's third pod. */
    if (count == 0 || count > 10 || strspn(digits, "0123456789") != count || (digits[0] == '0' && count > 1))
        return false;
    long long ordinal = strtoll(digits, NULL, 10);
    if (ordinal > INT32_MAX)
        return false;
    *ret_set_length = (size_t)(dash - pod_name);
    *ret_ordinal = (int)ordinal;
    return true;
}

bool neoset_split_prefetch_name(const char *pod_name, size_t *ret_set_length)
{
    static const char infix[] = NEOSET_PREFETCH_INFIX;
    size_t length = strlen(pod_name), tail = strlen(infix) + NEOSET_PREFETCH_HASH_LENGTH;
    if (length <= tail || strncmp(pod_name + length - tail, infix, strlen(infix)) != 0)
        return false;
    const char *hash = pod_name + length - NEOSET_PREFETCH_HASH_LENGTH;
    if (strspn(hash, NEOSET_PREFETCH_LETTERS) != NEOSET_PREFETCH_HASH_LENGTH)
        return false;
    *ret_set_length = length - tail;
    return true;
}

char *neoset_claim_next_set(const char *claim_name, size_t *position)
{
    size_t length = 0;
    int ordinal = 0;
    if (!neoset_split_pod_name(claim_name, &length, &ordinal))
        return NULL;
    for (size_t at = *position ? *position : 1; at + 1 < length; at++) {
        if (claim_name[at] != '-')
            continue;
        *position = at + 1;
        return xstrndup(claim_name + at + 1, length - at - 1);
    }
    *position = length;
    return NULL;
}
