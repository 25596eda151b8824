/* SPDX-License-Identifier: Apache-2.0
 *
 * `status -w`: the same picture again and again until the rollout is over. On a terminal it is redrawn in
 * place; elsewhere each change is a line with its time, so that a log of it can be read. Reads only. */
#pragma once

#include "audit/audit.h"
#include "cmd/neosetctl/server.h"

struct ctl_follow {
    struct ctl_server *server;
    const char *name;
    struct out *out;
    struct sheet_look *look;                          /* its width follows the terminal's */
    struct audit *journal;                            /* NULL: none */
    void (*say)(void *context, const char *sentence); /* the server cannot be reached for now */
    void *context;
};

enum ctl_end {
    CTL_NOT_OVER, /* nobody reads any more */
    CTL_SETTLED,  /* nothing is waited for any more (what a partition holds back is not waited for) */
    CTL_FAILED,   /* the rollout failed */
};
/* 0: it is over, as *ret says. Errors: as ctl_get_set
 * for the first look; -ERROR_NOT_FOUND later: the set is gone; -ERROR_CANCELLED: a signal ended it. What
 * fails in between is told, and tried again. */
int ctl_follow(const struct ctl_follow *follow, enum ctl_end *ret, struct error **err);

/* Is there nothing to wait for any more? */
struct ctl_picture;
bool ctl_is_settled(const struct ctl_picture *picture);
/* Terminal lines that text takes at this width; colours take none. */
size_t ctl_rows_of(const char *text, size_t columns);
