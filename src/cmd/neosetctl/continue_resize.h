/* SPDX-License-Identifier: Apache-2.0
 *
 * `continue`, of growing volumes: finds what was begun and not ended - in the cluster, whoever began it, and
 * in the user's own journal - and ends it. There is one way only: forward. */
#pragma once

#include "audit/sheet.h"
#include "cmd/neosetctl/server.h"
#include "volume/goal.h"

/* A StatefulSet whose volumes are half grown. */
struct half_resized {
    char *namespace, *name;
    struct converge_goal goal; /* what the user's journal says: its sizes NULL: nothing */
    char *come_from;
};
struct half_resizes {
    struct half_resized *items;
    size_t count;
};

/* "its volumes are half grown to data=2Gi"; the caller's. */
char *half_resized_text(const struct half_resized *one);

/* In the server's namespace, or in all. */
int half_resizes_find(struct ctl_server *server, struct half_resizes *ret, struct error **err);
void half_resizes_done(struct half_resizes *resizes);

struct half_resizes_end {
    struct ctl_server *server;
    struct out *out;
    const struct sheet_look *look;
    int64_t limit_us; /* of each */
    void (*say)(void *context, const char *sentence);
    void *context;
};
/* Ends them one after the other. What keeps one from being ended is told by say, but for the last such, which
 * is the error. -ERROR_TIMED_OUT, also when it was interrupted: the rest was not begun. */
int half_resizes_end(const struct half_resizes *resizes, const struct half_resizes_end *how,
                     struct error **err);
