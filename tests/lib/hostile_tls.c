/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile_server.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

static char *take_text(BIO *bio)
{
    char *bytes;
    long length = BIO_get_mem_data(bio, &bytes);
    char *text = xmemdup0(bytes, (size_t)length);
    BIO_free(bio);
    return text;
}

static void add_extension(X509 *certificate, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    ENSURE(extension && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static X509 *make_certificate(const char *common_name, const char *names, EVP_PKEY *key, int from_days,
                              int to_days)
{
    X509 *certificate = X509_new();
    ENSURE(certificate && X509_set_version(certificate, 2) == 1);
    uint32_t serial;
    ENSURE(RAND_bytes((unsigned char *)&serial, sizeof(serial)) == 1);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), (long)from_days * 86400);
    X509_gmtime_adj(X509_getm_notAfter(certificate), (long)to_days * 86400);
    X509_NAME *name = X509_get_subject_name(certificate);
    ENSURE(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name, -1, -1,
                                      0) == 1);
    ENSURE(X509_set_pubkey(certificate, key) == 1);
    add_extension(certificate, NID_basic_constraints, names ? "CA:FALSE" : "critical,CA:TRUE");
    if (names)
        add_extension(certificate, NID_subject_alt_name, names);
    return certificate;
}

static void sign_certificate(X509 *certificate, EVP_PKEY *own_key, const struct hostile_identity *signer)
{
    if (!signer) {
        ENSURE(X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1);
        ENSURE(X509_sign(certificate, own_key, EVP_sha256()) > 0);
        return;
    }
    BIO *bio = BIO_new_mem_buf(signer->certificate_pem, -1);
    X509 *authority = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    bio = BIO_new_mem_buf(signer->key_pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    ENSURE(authority && key);
    ENSURE(X509_set_issuer_name(certificate, X509_get_subject_name(authority)) == 1);
    ENSURE(X509_sign(certificate, key, EVP_sha256()) > 0);
    X509_free(authority);
    EVP_PKEY_free(key);
}

void hostile_identity_make(struct hostile_identity *ret, const char *common_name, const char *names,
                           const struct hostile_identity *signer, int from_days, int to_days)
{
    PRE(ret && common_name && (names || !signer));
    EVP_PKEY *key = EVP_EC_gen("P-256");
    ENSURE(key);
    X509 *certificate = make_certificate(common_name, names, key, from_days, to_days);
    sign_certificate(certificate, key, signer);
    BIO *bio = BIO_new(BIO_s_mem());
    ENSURE(PEM_write_bio_X509(bio, certificate) == 1);
    ret->certificate_pem = take_text(bio);
    bio = BIO_new(BIO_s_mem());
    ENSURE(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
    ret->key_pem = take_text(bio);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

void hostile_identity_done(struct hostile_identity *identity)
{
    free(identity->certificate_pem);
    free(identity->key_pem);
    *identity = (struct hostile_identity){0};
}
