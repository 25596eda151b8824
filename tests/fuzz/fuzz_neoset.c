/* SPDX-License-Identifier: Apache-2.0
 *
 * What src/neoset reads from a cluster, under libFuzzer; FUZZ_MODE (set, pod, revision, claim, state,
 * message) chooses which. Whatever an object looks like, a fact is made or refused; nothing else happens. */
#include "modes.h"

#include "neoset/completion.h"
#include "neoset/fact.h"

typedef void fuzz_mode(struct intern *pool, const cJSON *object, const char *text);

static void fuzz_set(struct intern *pool, const cJSON *object, const char *text)
{
    (void)text;
    struct neoset_fact *set = object ? neoset_fact_make(pool, object) : NULL;
    if (set && !set->problem)
        ENSURE(set->spec.replicas >= 0 && set->spec.replicas <= NEOSET_REPLICAS_MAX && set->spec.budget >= 1);
    neoset_fact_free(set);
}

static void fuzz_pod(struct intern *pool, const cJSON *object, const char *text)
{
    (void)text;
    struct pod_fact *pod = object ? pod_fact_make(pool, object) : NULL;
    if (pod) {
        (void)completion_is_old_kubelet(pod);
        in_place_state_free(completion_baselines(pod, false, NULL, 0, "set-abc",
                                                 &(struct image_change){"mysql", "mysql:8.1"}, 1, 1));
    }
    pod_fact_free(pod);
}

static void fuzz_revision(struct intern *pool, const cJSON *object, const char *text)
{
    (void)text;
    revision_fact_free(object ? revision_fact_make(pool, object) : NULL);
}

static void fuzz_claim(struct intern *pool, const cJSON *object, const char *text)
{
    (void)text;
    claim_fact_free(object ? claim_fact_make(pool, object) : NULL);
}

/* What was read prints to what reads the same. */
static void fuzz_state(struct intern *pool, const cJSON *object, const char *text)
{
    (void)object;
    struct in_place_state *state = in_place_state_parse(pool, text);
    if (!state)
        return;
    CLEANUP_FREE char *printed = in_place_state_print(state);
    struct in_place_state *again = in_place_state_parse(pool, printed);
    ENSURE(again && again->container_count == state->container_count && again->at_us == state->at_us);
    CLEANUP_FREE char *twice = in_place_state_print(again);
    ENSURE(strcmp(printed, twice) == 0);
    in_place_state_free(again);
    in_place_state_free(state);
}

static void fuzz_message(struct intern *pool, const cJSON *object, const char *text)
{
    (void)pool;
    (void)object;
    struct gate_message message;
    (void)gate_message_parse(text, &message);
    gate_message_done(&message);
}

static fuzz_mode *mode;

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    static const char *const names[] = {"set", "pod", "revision", "claim", "state", "message"};
    static fuzz_mode *const modes[] = {fuzz_set,   fuzz_pod,   fuzz_revision,
                                       fuzz_claim, fuzz_state, fuzz_message};
    mode = modes[fuzz_mode_of(names, ARRAY_SIZE(names))];
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    CLEANUP_FREE char *text = xmemdup0(bytes, length);
    CLEANUP_JSON cJSON *object = NULL;
    (void)json_parse(text, length, &object, NULL);
    struct intern *pool = intern_make();
    mode(pool, object, text);
    intern_free(pool);
    return 0;
}
