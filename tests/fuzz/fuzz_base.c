/* SPDX-License-Identifier: Apache-2.0
 *
 * The parsers of src/base under libFuzzer; FUZZ_MODE (json, yaml, time, duration) chooses which. What is
 * taken must print and come back as it was. */
#include "modes.h"

#include "base/json.h"
#include "base/time_text.h"
#include "base/yaml.h"

/* A tree prints to text that parses to an equal tree and prints the same. */
static void check_round_trip(const cJSON *tree)
{
    CLEANUP_FREE char *text = json_print(tree);
    CLEANUP_JSON cJSON *back = NULL;
    ENSURE(json_parse(text, strlen(text), &back, NULL) == 0);
    CLEANUP_FREE char *again = json_print(back);
    ENSURE(strcmp(text, again) == 0);
    CLEANUP_FREE char *sorted = json_print_sorted(back);
    ENSURE(strlen(sorted) == strlen(text));
}

/* Of a text that is good as a whole a member is read alone, or is not there. */
static void check_part(const char *text, size_t length, bool is_good)
{
    static const char *const path[] = {"a", "b", NULL};
    CLEANUP_JSON cJSON *part = NULL;
    int result = json_parse_part(text, length, path, NULL, &part, NULL);
    ENSURE((result == 0) == (part != NULL));
    ENSURE(!is_good || result == 0 || result == -ERROR_NOT_FOUND);
    if (part)
        check_round_trip(part);
}

static void fuzz_json(const char *text, size_t length)
{
    CLEANUP_JSON cJSON *tree = NULL;
    CLEANUP_ERROR struct error *err = NULL;
    if (json_parse(text, length, &tree, &err) < 0) {
        ENSURE(err && !tree && err->code == ERROR_INVALID);
        check_part(text, length, false);
        return;
    }
    ENSURE(!err && tree);
    check_part(text, length, true);
    check_round_trip(tree);
    CLEANUP_JSON cJSON *copy = json_copy(tree);
    (void)json_equal(tree, copy); /* false where a key is there twice */
    int64_t number;
    (void)json_node_int64(tree, &number);
}

static void fuzz_yaml(const char *text, size_t length)
{
    struct yaml_documents documents;
    CLEANUP_ERROR struct error *err = NULL;
    if (yaml_parse(text, length, "fuzz", &documents, &err) < 0) {
        ENSURE(err && strlen(err->text) > 0);
        return;
    }
    ENSURE(!err && documents.count <= YAML_DOCUMENTS_MAX);
    for (size_t i = 0; i < documents.count; i++) {
        ENSURE(documents.lines[i] >= 1);
        ENSURE(i == 0 || documents.lines[i] >= documents.lines[i - 1]);
        check_round_trip(documents.items[i]);
    }
    yaml_documents_done(&documents);
}

static void fuzz_time(const char *text, size_t length)
{
    CLEANUP_FREE char *copy = xstrndup(text, length);
    int64_t at_us;
    if (time_parse_rfc3339(copy, &at_us, NULL) < 0)
        return;
    char printed[TIME_TEXT_SIZE];
    int64_t back;
    time_format_micros(at_us, printed);
    /* An offset may lead out of the years that have four digits. */
    if (at_us >= -62167219200LL * US_PER_S && at_us < 253402300800LL * US_PER_S)
        ENSURE(time_parse_rfc3339(printed, &back, NULL) == 0 && back == at_us);
}

static void fuzz_duration(const char *text, size_t length)
{
    CLEANUP_FREE char *copy = xstrndup(text, length);
    int64_t us;
    char printed[TIME_TEXT_SIZE];
    if (duration_parse(copy, &us, NULL) == 0) {
        ENSURE(us >= 0);
        duration_format(us, printed);
        ENSURE(strlen(printed) <= 12);
    }
    if (length >= sizeof(us)) {
        memcpy(&us, text, sizeof(us));
        duration_format(us, printed);
        ENSURE(strlen(printed) <= 12);
        time_format_micros(us, printed);
        ENSURE(strlen(printed) == strlen("2026-11-30T07:38:15.123456Z"));
    }
}

typedef void fuzz_mode(const char *text, size_t length);

static fuzz_mode *mode;

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    static const char *const names[] = {"json", "yaml", "time", "duration"};
    static fuzz_mode *const modes[] = {fuzz_json, fuzz_yaml, fuzz_time, fuzz_duration};
    mode = modes[fuzz_mode_of(names, ARRAY_SIZE(names))];
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    mode((const char *)bytes, length);
    return 0;
}
