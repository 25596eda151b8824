/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <openssl/evp.h>

struct sha256 {
    EVP_MD *method;
    EVP_MD_CTX *context;
};

struct sha256 *sha256_make(void)
{
    struct sha256 *hash = xcalloc(1, sizeof(*hash));
    hash->method = EVP_MD_fetch(NULL, "SHA256", NULL);
    hash->context = EVP_MD_CTX_new();
    ENSURE(hash->method && hash->context);
    return hash;
}

void sha256_free(struct sha256 *hash)
{
    if (!hash)
        return;
    EVP_MD_CTX_free(hash->context);
    EVP_MD_free(hash->method);
    free(hash);
}

void sha256_begin(struct sha256 *hash)
{
    ENSURE(EVP_DigestInit_ex2(hash->context, hash->method, NULL) == 1);
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length)
{
    ENSURE(EVP_DigestUpdate(hash->context, bytes, length) == 1);
}

void sha256_end(struct sha256 *hash, uint8_t digest[static SHA256_SIZE])
{
    unsigned int size = 0;
    ENSURE(EVP_DigestFinal_ex(hash->context, digest, &size) == 1);
    POST(size == SHA256_SIZE);
}

void sha256_once(const void *bytes, size_t length, uint8_t digest[static SHA256_SIZE])
{
    unsigned int size = 0;
    ENSURE(EVP_Digest(bytes, length, digest, &size, EVP_sha256(), NULL) == 1);
    POST(size == SHA256_SIZE);
}
