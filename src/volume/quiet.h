/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the pods of a set are quiet enough for its owner to be taken from them, judged by the pods and not
 * by the set's status, which says so right after a re-creation when nothing is done yet (volume.md, Converge
 * 5). Pure. */
#pragma once

#include "base/json.h"

struct quiet_wish {
    const cJSON *set;     /* the owner of the pods: a StatefulSet or a NeoSet */
    const cJSON *pods;    /* an array; those of others do not count */
    const char *revision; /* the label that pods must carry; NULL: any */
    int64_t partition;    /* pods below it (counted from the first ordinal) may carry another */
    bool unready_will_do; /* a pod need not be ready */
    int64_t now_us;       /* by the server's clock */
};

/* NULL: quiet. Else a phrase that says what is waited for; the caller's. */
char *quiet_phrase(const struct quiet_wish *wish);
/* Pods that were asked for at that moment of the boot clock are too old a picture to delete their owner by:
 * of one that was born since the collector may not know yet, and takes it for the orphan of an owner that is
 * gone. True a few times at the most, which *times counts: where every answer is slow there is no fresher
 * picture. */
bool quiet_is_outdated(int64_t asked_us, int64_t now_us, int *times);
/* How many of the pods (an array) name uid as an owner. */
int quiet_count_owned(const cJSON *pods, const char *uid);
