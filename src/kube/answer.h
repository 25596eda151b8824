/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server said, decoded: HTTP status and Status body into a kube_answer. Pure: no request, no clock.
 * Only src/kube includes this. */
#pragma once

#include "kube/client.h"

/* A kube_answer and what it owns. */
struct kube_decoded {
    struct kube_answer answer;
    cJSON *tree; /* body */
    char *text;  /* message, when it does not live in the tree */
};

enum kube_decode_mode {
    KUBE_DECODE_READ,   /* a 2xx needs its whole body */
    KUBE_DECODE_WRITE,  /* a 2xx settles it, whatever became of the body; without managedFields */
    KUBE_DECODE_ASK,    /* the same of a dry run: its body is what was asked for, whole */
    KUBE_DECODE_STREAM, /* a 2xx body went elsewhere */
};

/* Fills *ret, which borrows from http and owns the rest until kube_decoded_done. */
void kube_decode(const struct http_answer *http, enum kube_decode_mode mode, struct kube_decoded *ret);
/* An answer that never came: a code and a sentence (copied). */
void kube_decode_none(enum kube_outcome outcome, enum error_code code, const char *sentence,
                      struct kube_decoded *ret);
/* A Status object that stands where an object was expected (a watch's ERROR line); takes it over. */
void kube_decode_status(cJSON *status, struct kube_decoded *ret);
/* Puts note behind the server's words, in message and summary. It must not hold secrets. */
void kube_decoded_add_note(struct kube_decoded *decoded, const char *note);
void kube_decoded_done(struct kube_decoded *decoded);

/* What to say when the body that begins with these bytes is a web page, else NULL. */
const char *kube_stranger_of_body(const char *bytes, size_t length);
/* The first line of text as printable UTF-8 (what is none becomes '?'), at most size - 1 bytes and never half
 * a character. */
void kube_first_line(const char *text, char *line, size_t size);
