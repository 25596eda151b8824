/* SPDX-License-Identifier: Apache-2.0
 *
 * What the API server says to the three dry runs that come before the first write (volume.md, Converge 2):
 * the apply of the manifest with the live claim templates put in, the create of the very set that would be
 * made again, and its orphan delete. Judges by code, reason and causes, not by sentences: 1.36 and 1.37
 * word a refusal differently. Pure. */
#pragma once

#include "kube/client.h"

/* X(name, for people, is refused for good) */
#define PROVE_VERDICTS(X)                                                                                    \
    X(WELL, "the server would take it", false)                                                               \
    X(MOVED, "it changed meanwhile", false) /* read and decide anew */                                       \
    X(LATER, "the server cannot say now", false)                                                             \
    X(UNREADABLE, "the server cannot read the manifest", false) /* once more, not for ever */                \
    X(TAKEN, "the name of the trial is taken", false)                                                        \
    X(OTHER_IMMUTABLE, "the StatefulSet changes an immutable field other than its volume sizes", true)       \
    X(BAD_MANIFEST, "the manifest is not accepted", true)                                                    \
    X(ANOTHER, "somebody made the StatefulSet anew", false)                                                  \
    X(MANAGERS, "fields belong to another field manager", true)                                              \
    X(FORBIDDEN, "you may not", true)                                                                        \
    X(NOT_ORPHANED, "the delete would not leave the pods behind", true)

enum prove_verdict {
#define X(name, text, refused) PROVE_##name,
    PROVE_VERDICTS(X)
#undef X
};

enum prove_verdict prove_apply(const struct kube_answer *answer);
enum prove_verdict prove_create(const struct kube_answer *answer);
/* uid: of the set that is to be deleted. */
enum prove_verdict prove_delete(const struct kube_answer *answer, const char *uid);
bool prove_is_refused(enum prove_verdict verdict);
const char *prove_text(enum prove_verdict verdict);
/* The fields that the answer's causes name, each once: "spec.selector, spec.serviceName"; "" for none. The
 * caller's. */
char *prove_fields(const struct kube_answer *answer);
