/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a claim may grow, asked of the API server by dry runs (volume.md, Converge 3). A 403 has no causes
 * and never says of what it is; two more dry runs tell: the same size, and one byte more. Pure. */
#pragma once

#include "kube/client.h"

enum probe_verdict {
    PROBE_WELL,
    PROBE_REFUSED,    /* 403: ask probe_why() */
    PROBE_MOVED,      /* it changed, or is gone: read and decide anew */
    PROBE_LATER,      /* the server cannot say now */
    PROBE_NOT_BOUND,  /* only a bound claim grows */
    PROBE_BAD_SIZE,   /* the server does not take it */
    PROBE_PERMISSION, /* you may not patch claims */
    PROBE_QUOTA,      /* a quota, a LimitRange: later perhaps */
    PROBE_EITHER,     /* its class, or a quota that is used up to the byte: nobody could read the class */
};

enum probe_verdict probe_judge(const struct kube_answer *answer);
/* same, more: the HTTP status of the dry runs with the size that the claim has, and with one byte more.
 * class_is_known: it was read, and lets volumes grow. */
enum probe_verdict probe_why(int same, int more, bool class_is_known);
/* The phrase behind "claim NAME: ". */
const char *probe_text(enum probe_verdict verdict);
