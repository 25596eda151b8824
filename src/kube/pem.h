/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 and PEM, as far as kubeconfigs and plug-ins need them. Looks only for what a wrong file would lack:
 * the TLS library is the judge of certificates. No message holds key material. */
#pragma once

#include "base/error.h"

enum { KUBE_PEM_MAX = 1024 * 1024 }; /* bytes of a certificate or key file */

/* Standard base64; white space is skipped, anything else refused. *ret is NUL-terminated and the caller's;
 * bytes that hold a NUL are refused (PEM is text). what names the thing for the message. */
int kube_base64_decode(const char *text, const char *what, char **ret, struct error **err);
/* The caller's. */
char *kube_base64_encode(const char *text);
/* Refuses a text that has no "-----BEGIN ...label-----" line, e.g. label "CERTIFICATE" or "PRIVATE KEY". */
int kube_pem_check(const char *text, const char *label, const char *what, struct error **err);
