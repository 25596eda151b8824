/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/pem.h"

#include <ctype.h>
#include <openssl/evp.h>

/* text without white space; the caller's. */
static char *without_space(const char *text)
{
    char *dense = xmalloc(strlen(text) + 1);
    size_t length = 0;
    for (const char *at = text; *at; at++)
        if (!isspace((unsigned char)*at))
            dense[length++] = *at;
    dense[length] = '\0';
    return dense;
}

/* OpenSSL takes '=' anywhere and '-' as an end: look first. */
static bool is_base64(const char *dense, size_t length, size_t *ret_padding)
{
    size_t padding = 0;
    while (padding < 2 && padding < length && dense[length - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < length - padding; i++)
        if (!isalnum((unsigned char)dense[i]) && dense[i] != '+' && dense[i] != '/')
            return false;
    *ret_padding = padding;
    return length % 4 == 0;
}

int kube_base64_decode(const char *text, const char *what, char **ret, struct error **err)
{
    PRE(text && what && ret);
    CLEANUP_FREE char *dense = without_space(text);
    size_t length = strlen(dense);
    size_t padding = 0;
    if (length > 2UL * KUBE_PEM_MAX)
        return error_set(err, ERROR_TOO_LARGE, "%s is larger than 1 MiB", what);
    if (!is_base64(dense, length, &padding))
        return error_set(err, ERROR_INVALID, "%s is not valid base64", what);
    CLEANUP_FREE char *bytes = xmalloc(length / 4 * 3 + 1);
    int decoded = EVP_DecodeBlock((unsigned char *)bytes, (const unsigned char *)dense, (int)length);
    ENSURE(decoded >= 0 && (size_t)decoded >= padding);
    size_t size = (size_t)decoded - padding;
    bytes[size] = '\0';
    if (memchr(bytes, '\0', size))
        return error_set(err, ERROR_INVALID, "%s is not text once its base64 is decoded", what);
    *ret = STEAL(bytes);
    return 0;
}

char *kube_base64_encode(const char *text)
{
    size_t length = strlen(text);
    char *encoded = xmalloc((length + 2) / 3 * 4 + 1);
    EVP_EncodeBlock((unsigned char *)encoded, (const unsigned char *)text, (int)length);
    return encoded;
}

int kube_pem_check(const char *text, const char *label, const char *what, struct error **err)
{
    for (const char *at = strstr(text, "-----BEGIN "); at; at = strstr(at + 1, "-----BEGIN ")) {
        const char *end = strstr(at + 11, "-----");
        const char *found = strstr(at, label);
        if (end && found && found + strlen(label) == end)
            return 0;
    }
    return error_set(err, ERROR_INVALID, "%s holds no PEM block '-----BEGIN %s-----'", what, label);
}
