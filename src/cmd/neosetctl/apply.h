/* SPDX-License-Identifier: Apache-2.0
 *
 * `apply`: server-side apply of the manifests of -f, whatever their kinds. All of them are tried by dry runs
 * first, many at a time, so that one that the server refuses keeps all of them from being written, and what
 * would change nothing is not written at all. Then, in their order, namespaces and definitions before the
 * rest, what differs is applied step by step through the user's journal. A StatefulSet that is refused
 * because its volumes grew is converged on the way. Deletes nothing else. */
#pragma once

#include "audit/sheet.h"
#include "cmd/manifest.h"
#include "cmd/neosetctl/server.h"

struct ctl_apply {
    struct ctl_server *server;
    const struct options *options;
    struct out *out;
    const struct sheet_look *look;
    /* A sentence for people, on stderr. */
    void (*say)(void *context, const char *sentence);
    void *context;
};

/* Errors: -ERROR_INVALID: a manifest cannot be used; -ERROR_REFUSED: the server refused some in the dry run,
 * each was told by say; nothing was written in both. -ERROR_FAILED: stopped on the way, what was done is in
 * the table; the same command goes on. -ERROR_TIMED_OUT likewise. */
int ctl_apply(const struct ctl_apply *wanted, struct error **err);
