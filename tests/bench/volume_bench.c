/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan to grow the volumes of one StatefulSet costs: a list answer of claims in memory, as a server
 * sends them, to the decision. Prints a line for each size: claims, milliseconds of reading the answer,
 * milliseconds of deciding; medians of ROUNDS. */
#include "base/time_text.h"
#include "kube/object.h"
#include "volume/decide.h"

#include <stdio.h>
#include <time.h>

enum { ROUNDS = 15, EXIT_USAGE = 64, LIST_MAX = 1 << 30 };

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* As kubectl get -o json shows one that a StatefulSet made and an external provisioner bound. */
static void add_claim(struct buf *text, int ordinal)
{
    buf_addf(
        text,
        "{\"metadata\":{\"name\":\"data-db-%d\",\"namespace\":\"ns\",\"uid\":\"0d1c6f5e-8a0b-4c53-9f9b-%"
        "012d\","
        "\"resourceVersion\":\"%d\",\"creationTimestamp\":\"2026-11-30T10:00:00Z\",\"labels\":{\"app\":"
        "\"db\"},"
        "\"annotations\":{\"pv.kubernetes.io/bind-completed\":\"yes\","
        "\"pv.kubernetes.io/bound-by-controller\":\"yes\","
        "\"volume.kubernetes.io/storage-provisioner\":\"loop.neo.test\"},"
        "\"finalizers\":[\"kubernetes.io/pvc-protection\"],\"managedFields\":[{\"manager\":"
        "\"kube-controller-manager\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":"
        "\"2026-11-30T10:00:00Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:"
        "annotations\":{"
        "\".\":{},\"f:pv.kubernetes.io/"
        "bind-completed\":{}},\"f:labels\":{\".\":{},\"f:app\":{}}},\"f:spec\":{"
        "\"f:accessModes\":{},\"f:resources\":{\"f:requests\":{\".\":{},\"f:storage\":{}}},"
        "\"f:storageClassName\":{},\"f:volumeMode\":{},\"f:volumeName\":{}}}}]},\"spec\":{\"accessModes\":["
        "\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}},\"volumeName\":\"pvc-%d\","
        "\"storageClassName\":\"std\",\"volumeMode\":\"Filesystem\"},\"status\":{\"phase\":\"Bound\","
        "\"accessModes\":[\"ReadWriteOnce\"],\"capacity\":{\"storage\":\"1Gi\"}}}",
        ordinal, ordinal, 1000 + ordinal, ordinal);
}

static cJSON *parse(const char *text, size_t length)
{
    cJSON *tree = NULL;
    ENSURE(kube_object_parse(text, length, &tree, NULL) == 0);
    return tree;
}

static cJSON *make_set(const char *size)
{
    CLEANUP_FREE char *text = xasprintf(
        "{\"metadata\":{\"name\":\"db\",\"namespace\":\"ns\"},\"spec\":{\"volumeClaimTemplates\":[{"
        "\"metadata\":{"
        "\"name\":\"data\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"storageClassName\":\"std\","
        "\"resources\":{\"requests\":{\"storage\":\"%s\"}}}}]}}",
        size);
    return parse(text, strlen(text));
}

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static double median_ms(int64_t *times)
{
    qsort(times, ROUNDS, sizeof(*times), by_size);
    return (double)times[ROUNDS / 2] / 1e6;
}

/* As text: 0, 1, 10, 11, 2 */
static int by_text(const void *a, const void *b)
{
    char left[16], right[16];
    snprintf(left, sizeof(left), "%d", *(const int *)a);
    snprintf(right, sizeof(right), "%d", *(const int *)b);
    return strcmp(left, right);
}

/* In the order of names, as a server lists them. */
static void add_list(struct buf *text, int count)
{
    CLEANUP_FREE int *ordinals = xcalloc((size_t)count, sizeof(*ordinals));
    for (int i = 0; i < count; i++)
        ordinals[i] = i;
    qsort(ordinals, (size_t)count, sizeof(*ordinals), by_text);
    buf_add_text(text, "{\"kind\":\"PersistentVolumeClaimList\",\"items\":[");
    for (int i = 0; i < count; i++) {
        buf_add_text(text, i ? "," : "");
        add_claim(text, ordinals[i]);
    }
    buf_add_text(text, "]}");
}

static void measure(int count)
{
    CLEANUP_BUF struct buf text = BUF_INIT(LIST_MAX);
    add_list(&text, count);
    CLEANUP_JSON cJSON *desired = make_set("2Gi");
    CLEANUP_JSON cJSON *live = make_set("1Gi");
    static const char class_text[] = "[{\"metadata\":{\"name\":\"std\"},\"allowVolumeExpansion\":true}]";
    CLEANUP_JSON cJSON *classes = parse(class_text, strlen(class_text));
    int64_t reading[ROUNDS], deciding[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        int64_t begin = now_ns();
        CLEANUP_JSON cJSON *list = parse(text.data, text.length);
        int64_t read = now_ns();
        CLEANUP_VOLUME_DECISION struct volume_decision decision = {0};
        volume_decide(
            &(struct volume_input){
                .desired = desired, .live = live, .claims = json_get(list, "items"), .classes = classes},
            &decision);
        int64_t decided = now_ns();
        ENSURE(decision.outcome == VOLUME_GROW && decision.claims.count == (size_t)count);
        reading[round] = read - begin;
        deciding[round] = decided - read;
    }
    printf("%d %.3f %.3f\n", count, median_ms(reading), median_ms(deciding));
}

int main(int count, char **arguments)
{
    if (count < 2) {
        fprintf(stderr, "usage: volume_bench CLAIMS...\n");
        return EXIT_USAGE;
    }
    for (int i = 1; i < count; i++)
        measure(MAX(1, atoi(arguments[i])));
    return 0;
}
