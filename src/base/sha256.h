/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 through OpenSSL, with the context and the method fetched once (two times faster than one-shot calls
 * on rows of a few hundred bytes). Not a MAC, not for passwords. */
#pragma once

#include "base/hex.h" /* how digests are written */

enum { SHA256_SIZE = 32 };

struct sha256; /* reusable context */
struct sha256 *sha256_make(void);
void sha256_free(struct sha256 *hash);
/* begin, any number of add, end: one digest. The context may be used again. */
void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);
void sha256_end(struct sha256 *hash, uint8_t digest[static SHA256_SIZE]);
/* For single use. */
void sha256_once(const void *bytes, size_t length, uint8_t digest[static SHA256_SIZE]);
