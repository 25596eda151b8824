/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/decide_parts.h"

#include "base/plant.h"
#include "kube/object.h"

#include <uthash.h>

/* Until 2016 a claim named its class here, and the server still lets it outrank the field. */
#define BETA_CLASS "volume.beta.kubernetes.io/storage-class"

enum { ORDINAL_DIGITS_MAX = 10 };

/* An object by its name. */
struct named {
    const char *name;
    const cJSON *object;
    UT_hash_handle hh;
};

/* One template's claims: which other sets could have made them. */
struct rivals {
    const char **names;
    size_t count;
};

struct survey {
    const struct volume_input *input;
    const char *namespace;
    const char *set;
    const struct claim_target *targets;
    size_t target_count;
    struct rivals *rivals; /* of each target */
    struct named *classes;
    struct named *pods;
    struct claim_survey *found;
};

/* A claim of a list, as far as it has been looked at. A list may hold ten thousand: members are found in one
 * walk, not one by one. Everything is borrowed but text. */
struct candidate {
    const char *name;
    const char *namespace;
    const char *uid;
    const char *version;
    const char *class; /* NULL: it names none */
    const cJSON *owners;
    const cJSON *request_node;
    const cJSON *status;
    bool deleting;
    const char *ordinal; /* "0": the end of name */
    size_t target;
    char *text; /* the request; NULL: it has none */
    struct quantity request;
};

/* --- reading -------------------------------------------------------------------------------------------- */

/* The members of an object by these keys, each NULL when absent. */
static void find_members(const cJSON *object, const char *const *keys, const cJSON **ret, size_t count)
{
    const cJSON *member;
    for (size_t i = 0; i < count; i++)
        ret[i] = NULL;
    if (!cJSON_IsObject(object))
        return;
    cJSON_ArrayForEach (member, object) {
        for (size_t i = 0; i < count; i++)
            if (keys[i][0] == member->string[0] && strcmp(keys[i], member->string) == 0)
                ret[i] = member;
    }
}

static const char *text_of(const cJSON *node)
{
    return cJSON_IsString(node) && *node->valuestring ? node->valuestring : NULL;
}

static void read_metadata(const cJSON *metadata, struct candidate *claim, const cJSON **ret_beta_class)
{
    enum { NAME, NAMESPACE, UID, VERSION, DELETION, ANNOTATIONS, OWNERS, COUNT };
    static const char *const keys[COUNT] = {
        "name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "annotations", "ownerReferences"};
    const cJSON *found[COUNT];
    find_members(metadata, keys, found, COUNT);
    claim->name = text_of(found[NAME]);
    claim->namespace = text_of(found[NAMESPACE]);
    claim->uid = text_of(found[UID]);
    claim->version = text_of(found[VERSION]);
    claim->deleting = text_of(found[DELETION]) != NULL;
    claim->owners = found[OWNERS];
    *ret_beta_class = json_get(found[ANNOTATIONS], BETA_CLASS);
}

static void read_claim(const cJSON *object, struct candidate *ret)
{
    enum { METADATA, SPEC, STATUS, COUNT };
    static const char *const keys[COUNT] = {"metadata", "spec", "status"};
    enum { CLASS, RESOURCES, SPEC_COUNT };
    static const char *const spec_keys[SPEC_COUNT] = {"storageClassName", "resources"};
    const cJSON *found[COUNT], *spec[SPEC_COUNT], *beta_class;
    find_members(object, keys, found, COUNT);
    find_members(found[SPEC], spec_keys, spec, SPEC_COUNT);
    *ret = (struct candidate){.status = found[STATUS],
                              .request_node = json_path(spec[RESOURCES], "requests", "storage", NULL)};
    read_metadata(found[METADATA], ret, &beta_class);
    const cJSON *class = cJSON_IsString(beta_class) ? beta_class : spec[CLASS];
    ret->class = cJSON_IsString(class) ? class->valuestring : NULL;
}

const char *volume_class_of(const cJSON *claim)
{
    struct candidate read;
    read_claim(claim, &read);
    return read.class;
}

/* --- names ---------------------------------------------------------------------------------------------- */

/* The ordinal at the end of a name, behind its dash; NULL: there is none that a StatefulSet would write. */
static const char *ordinal_of(const char *name)
{
    const char *dash = strrchr(name, '-');
    if (!dash)
        return NULL;
    const char *digits = dash + 1;
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || digits[length] != '\0' || length > ORDINAL_DIGITS_MAX ||
        (digits[0] == '0' && length > 1))
        return NULL;
    return strtoll(digits, NULL, 10) <= INT32_MAX ? digits : NULL;
}

/* Of a claim that may be the set's: the length of the template's name in front of "-set-ordinal"; 0: it is
 * not. */
static size_t template_length(const char *name, const char *ordinal, const char *set)
{
    size_t stem = (size_t)(ordinal - name) - 1;
    size_t set_length = strlen(set);
    if (stem < set_length + 2 || name[stem - set_length - 1] != '-' ||
        memcmp(name + stem - set_length, set, set_length) != 0)
        return 0;
    return stem - set_length - 1;
}

/* --- which other set could have made a claim ------------------------------------------------------------ */

static bool has_template(const cJSON *set, const char *name, size_t length)
{
    const cJSON *spec = json_get(set, "spec");
    if (!spec)
        return true;
    const cJSON *template;
    cJSON_ArrayForEach (template, json_get(spec, "volumeClaimTemplates")) {
        const char *own = kube_object_name(template);
        if (own && strlen(own) == length && memcmp(own, name, length) == 0)
            return true;
    }
    return false;
}

/* "data-web" of "db" and "data" of "web-db" both make data-web-db-0: the name in front of the ordinal ends
 * with the other set's name, and what stands before it is a template of that set. */
static struct rivals rivals_of(const struct survey *survey, const char *template)
{
    struct rivals rivals = {0};
    CLEANUP_FREE char *stem = xasprintf("%s-%s", template, survey->set);
    size_t length = strlen(stem);
    const cJSON *other;
    cJSON_ArrayForEach (other, survey->input->others) {
        const char *name = kube_object_name(other);
        const char *namespace = kube_object_namespace(other);
        size_t name_length = name ? strlen(name) : 0;
        if (!name || strcmp(name, survey->set) == 0 ||
            (namespace && !str_equal(namespace, survey->namespace)) || length < name_length + 2 ||
            stem[length - name_length - 1] != '-' || !str_ends_with(stem, name) ||
            !has_template(other, stem, length - name_length - 1))
            continue;
        rivals.names = xreallocarray(rivals.names, rivals.count + 1, sizeof(*rivals.names));
        rivals.names[rivals.count++] = name;
    }
    return rivals;
}

static bool pod_mounts(const struct survey *survey, const char *set, const struct candidate *candidate)
{
    CLEANUP_FREE char *pod_name = xasprintf("%s-%s", set, candidate->ordinal);
    struct named *pod;
    HASH_FIND_STR(survey->pods, pod_name, pod);
    const cJSON *volumes = pod ? json_path(pod->object, "spec", "volumes", NULL) : NULL;
    const cJSON *volume;
    cJSON_ArrayForEach (volume, volumes)
        if (str_equal(json_path_str(volume, "persistentVolumeClaim", "claimName", NULL), candidate->name))
            return true;
    return false;
}

/* An owner reference names the set itself, or its pod (retention policy whenScaled: Delete). */
static bool is_owned_by(const struct candidate *candidate, const char *set)
{
    const cJSON *owner;
    cJSON_ArrayForEach (owner, candidate->owners) {
        const char *kind = json_str(owner, "kind"), *name = json_str(owner, "name");
        if (!name)
            continue;
        if (str_equal(kind, "StatefulSet") && strcmp(name, set) == 0)
            return true;
        size_t length = strlen(set);
        if (str_equal(kind, "Pod") && strncmp(name, set, length) == 0 && name[length] == '-' &&
            strcmp(name + length + 1, candidate->ordinal) == 0)
            return true;
    }
    return false;
}

enum ownership { OURS, THEIRS, UNDECIDED };

/* Owners decide; where there is none, the pod that mounts the claim does. */
static enum ownership whose(const struct survey *survey, const struct candidate *candidate)
{
    const struct rivals *rivals = &survey->rivals[candidate->target];
    if (rivals->count == 0)
        return OURS;
    bool ours = is_owned_by(candidate, survey->set), theirs = false;
    for (size_t i = 0; i < rivals->count; i++)
        theirs = theirs || is_owned_by(candidate, rivals->names[i]);
    if (!ours && !theirs) {
        ours = pod_mounts(survey, survey->set, candidate);
        for (size_t i = 0; i < rivals->count; i++)
            theirs = theirs || pod_mounts(survey, rivals->names[i], candidate);
    }
    return ours == theirs ? UNDECIDED : ours ? OURS : THEIRS;
}

/* --- can it grow ---------------------------------------------------------------------------------------- */

/* Why a claim of this class cannot grow, or NULL; the caller's. */
static char *class_problem(const struct survey *survey, const char *class)
{
    if (!class)
        return xstrdup("names no StorageClass");
    if (!*class)
        return xstrdup("is of no StorageClass (\"\")");
    if (!survey->input->classes)
        return NULL;
    struct named *known;
    HASH_FIND_STR(survey->classes, class, known);
    if (!known)
        return xasprintf("the StorageClass %s does not exist", class);
    if (!json_bool_or(known->object, "allowVolumeExpansion", false))
        return xasprintf("the StorageClass %s does not set allowVolumeExpansion: true", class);
    return NULL;
}

/* Why the server would refuse to raise the request, or NULL; the caller's. */
static char *phase_problem(const struct candidate *claim)
{
    const char *phase = json_str(claim->status, "phase");
    if (str_equal(phase, "Bound"))
        return NULL;
    if (str_equal(phase, "Lost"))
        return xstrdup("is Lost: its volume is gone, restore it or delete the claim");
    return xasprintf("is %s: it has no volume and holds no data, let a pod use it or delete it",
                     phase ? phase : "not bound");
}

/* --- the survey ----------------------------------------------------------------------------------------- */

static struct volume_item *add_claim(const struct survey *survey, struct volume_items *items,
                                     struct candidate *candidate)
{
    const struct volume_template *template = survey->targets[candidate->target].template;
    struct volume_item *item = volume_items_add(items, candidate->name);
    item->template = xstrdup(template->name);
    item->class = xstrdup_or_null(candidate->class);
    item->from = STEAL(candidate->text);
    item->from_size = candidate->request;
    item->to = xstrdup(template->text);
    item->to_size = template->size;
    item->uid = xstrdup_or_null(candidate->uid);
    item->version = xstrdup_or_null(candidate->version);
    return item;
}

static void add_problem(const struct survey *survey, struct volume_items *items, struct candidate *candidate,
                        char *problem)
{
    add_claim(survey, items, candidate)->problem = problem;
}

static char *rivals_text(const struct rivals *rivals)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    buf_add_text(&text, "can belong to StatefulSet ");
    for (size_t i = 0; i < rivals->count; i++)
        buf_addf(&text, "%s%s", i ? ", " : "", rivals->names[i]);
    buf_add_text(&text, ", too: neither an owner nor a pod that mounts it decides");
    return buf_take(&text);
}

static void judge(const struct survey *survey, struct candidate *candidate)
{
    struct claim_survey *found = survey->found;
    enum ownership ownership = whose(survey, candidate);
    bool grows = survey->targets[candidate->target].grows;
    if (ownership == THEIRS || (ownership == UNDECIDED && !grows))
        return;
    if (!grows) {
        if (!candidate->deleting)
            add_claim(survey, &found->lagging, candidate);
    } else if (candidate->deleting) {
        add_claim(survey, &found->terminating, candidate);
    } else if (ownership == UNDECIDED) {
        add_problem(survey, &found->ambiguous, candidate, rivals_text(&survey->rivals[candidate->target]));
    } else {
        char *class = class_problem(survey, candidate->class);
        char *phase = phase_problem(candidate);
        if (class)
            add_problem(survey, &found->not_expandable, candidate, class);
        if (phase)
            add_problem(survey, &found->not_bound, candidate, phase);
        if (!class && !phase)
            add_claim(survey, &found->grow, candidate);
    }
}

/* Which template's claim it is, by its name; false: none of ours. */
static bool find_target(const struct survey *survey, struct candidate *candidate)
{
    size_t length = 0;
    if (candidate->name && (candidate->ordinal = ordinal_of(candidate->name)))
        length = template_length(candidate->name, candidate->ordinal, survey->set);
    for (size_t i = 0; length > 0 && i < survey->target_count; i++) {
        const char *template = survey->targets[i].template->name;
        if (strlen(template) == length && memcmp(template, candidate->name, length) == 0) {
            candidate->target = i;
            return true;
        }
    }
    return false;
}

/* True: the request is below the target. A claim without one asks for nothing. */
static bool is_below(const struct survey *survey, struct candidate *candidate)
{
    const cJSON *node = candidate->request_node;
    const struct volume_template *template = survey->targets[candidate->target].template;
    CLEANUP_ERROR struct error *err = NULL;
    int result =
        !node || cJSON_IsNull(node) ? 0 : quantity_read(node, &candidate->request, &candidate->text, &err);
    if (result == 0 && PLANT("larger-claims-are-led-back"))
        return quantity_compare(&candidate->request, &template->size) != 0;
    if (result == 0)
        return quantity_compare(&candidate->request, &template->size) < 0;
    /* What is too large to be read is at least not too small. */
    if (result != -ERROR_TOO_LARGE)
        add_problem(survey, &survey->found->unreadable, candidate, xstrdup(error_text(err)));
    return false;
}

static void look_at(const struct survey *survey, const cJSON *claim)
{
    struct candidate candidate;
    read_claim(claim, &candidate);
    if (candidate.namespace && !str_equal(candidate.namespace, survey->namespace))
        return;
    if (find_target(survey, &candidate) && is_below(survey, &candidate))
        judge(survey, &candidate);
    free(candidate.text);
}

static struct named *index_names(const cJSON *list)
{
    struct named *table = NULL;
    const cJSON *object;
    cJSON_ArrayForEach (object, list) {
        struct named *entry;
        const char *name = kube_object_name(object);
        if (!name)
            continue;
        HASH_FIND_STR(table, name, entry);
        if (entry)
            continue;
        entry = xmalloc(sizeof(*entry));
        *entry = (struct named){.name = name, .object = object};
        HASH_ADD_KEYPTR(hh, table, entry->name, strlen(entry->name), entry);
    }
    return table;
}

static void free_names(struct named *table)
{
    struct named *entry, *next;
    HASH_ITER (hh, table, entry, next) {
        HASH_DEL(table, entry);
        free(entry);
    }
}

static void begin(struct survey *survey)
{
    bool pods_matter = false;
    survey->rivals = xcalloc(MAX(survey->target_count, (size_t)1), sizeof(*survey->rivals));
    for (size_t i = 0; i < survey->target_count; i++) {
        survey->rivals[i] = rivals_of(survey, survey->targets[i].template->name);
        pods_matter = pods_matter || survey->rivals[i].count > 0;
    }
    survey->classes = index_names(survey->input->classes);
    survey->pods = pods_matter ? index_names(survey->input->pods) : NULL;
}

static void end(struct survey *survey)
{
    for (size_t i = 0; i < survey->target_count; i++)
        free(survey->rivals[i].names);
    free(survey->rivals);
    free_names(survey->classes);
    free_names(survey->pods);
}

bool volume_is_claim_of(const cJSON *claim, const cJSON *set)
{
    const char *name = kube_object_name(claim);
    const char *set_name = kube_object_name(set);
    const char *ordinal = name && set_name ? ordinal_of(name) : NULL;
    size_t length = ordinal ? template_length(name, ordinal, set_name) : 0;
    return length > 0 && has_template(set, name, length);
}

void volume_survey_claims(const struct volume_input *input, const struct claim_target *targets, size_t count,
                          struct claim_survey *ret)
{
    *ret = (struct claim_survey){0};
    struct survey survey = {.input = input,
                            .namespace = kube_object_namespace(input->desired),
                            .set = kube_object_name(input->desired),
                            .targets = targets,
                            .target_count = count,
                            .found = ret};
    PRE(survey.set);
    begin(&survey);
    const cJSON *claim;
    cJSON_ArrayForEach (claim, input->claims)
        look_at(&survey, claim);
    end(&survey);
    struct volume_items *all[] = {&ret->grow,      &ret->unreadable,  &ret->ambiguous, &ret->not_expandable,
                                  &ret->not_bound, &ret->terminating, &ret->lagging};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        volume_items_sort(all[i]);
}

void claim_survey_done(struct claim_survey *survey)
{
    volume_items_done(&survey->grow);
    volume_items_done(&survey->unreadable);
    volume_items_done(&survey->ambiguous);
    volume_items_done(&survey->not_expandable);
    volume_items_done(&survey->not_bound);
    volume_items_done(&survey->terminating);
    volume_items_done(&survey->lagging);
}

bool volume_claims_are_all_below(const struct volume_input *input, const char *template,
                                 const struct quantity *size)
{
    const char *set = kube_object_name(input->desired), *namespace = kube_object_namespace(input->desired);
    size_t seen = 0;
    const cJSON *object;
    cJSON_ArrayForEach (object, input->claims) {
        struct candidate claim;
        read_claim(object, &claim);
        const char *ordinal = claim.name ? ordinal_of(claim.name) : NULL;
        size_t length = ordinal ? template_length(claim.name, ordinal, set) : 0;
        if (length != strlen(template) || memcmp(claim.name, template, length) != 0 || claim.deleting ||
            (claim.namespace && !str_equal(claim.namespace, namespace)))
            continue;
        struct quantity capacity = {0};
        CLEANUP_FREE char *text = NULL;
        (void)quantity_read(json_path(claim.status, "capacity", "storage", NULL), &capacity, &text, NULL);
        if (quantity_compare(&capacity, size) >= 0)
            return false;
        seen++;
    }
    return seen > 0;
}
