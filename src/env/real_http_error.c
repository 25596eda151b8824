/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a request failed, in a sentence that names the host and, where we know it, the way out. */
#include "env/real_http.h"

#include <openssl/x509_vfy.h>

struct verdict {
    enum error_code code;
    char *text;
};

/* libcurl's words may hold the server's: one line of printable characters, not too long. */
static char *detail(const struct env_http *http, CURLcode code)
{
    char *text = xstrndup(http->error_text[0] ? http->error_text : curl_easy_strerror(code), 200);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7F)
            *at = ' ';
    return text;
}

static struct verdict timed_out(const struct env_http *http)
{
    const char *host = http->host;
    char *text;
    if (http->sends == 0 && !http->was_added)
        text =
            xasprintf("%s is so slow with the requests before this one that it was not sent in time", host);
    else if (http->sends == 0)
        text = xasprintf(
            "no connection to %s could be had in time; is its address right, and does a firewall or a "
            "proxy stand in between?",
            host);
    else if (http->silent)
        text = xasprintf("%s sent nothing for %.3g s", host, (double)http->idle_timeout_us / 1e6);
    else
        text = xasprintf("%s did not answer within %.3g s", host, (double)http->timeout_us / 1e6);
    return (struct verdict){ERROR_TIMED_OUT, text};
}

static struct verdict stopped(const struct env_http *http)
{
    switch (http->stopped) {
    case ERROR_TIMED_OUT:
        return timed_out(http);
    case ERROR_CANCELLED:
        return (struct verdict){ERROR_CANCELLED,
                                xasprintf("the answer of %s was ended by its reader", http->host)};
    case ERROR_INVALID:
        return (struct verdict){ERROR_INVALID, xasprintf("%s did not answer in HTTP", http->host)};
    case ERROR_TOO_LARGE:
        if (!http->headers_done)
            return (struct verdict){ERROR_TOO_LARGE, xasprintf("%s sent more than %d bytes of headers",
                                                               http->host, HTTP_HEADERS_MAX)};
        return (struct verdict){ERROR_TOO_LARGE, xasprintf("the answer of %s is larger than %zu bytes",
                                                           http->host, http->answer.max)};
    default:
        UNREACHABLE();
    }
}

/* The server's certificate was not accepted. */
static struct verdict untrusted(const struct env_http *http, CURLcode code)
{
    long result = 0;
    curl_easy_getinfo(http->easy, CURLINFO_SSL_VERIFYRESULT, &result);
    CLEANUP_FREE char *words = detail(http, code);
    const char *host = http->host;
    char *text;
    switch (result) {
    case X509_V_OK:
    case X509_V_ERR_UNSPECIFIED: /* libcurl's result when it stops at the name, before it looks at the chain
                                  */
        text = xasprintf(
            "the certificate of %s is for another name; set tls-server-name, or use an address that it "
            "names (%s)",
            host, words);
        break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        text = xasprintf("the certificate of %s has expired; renew it, and check this machine's clock", host);
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        text = xasprintf("the certificate of %s is not valid yet; check the clocks", host);
        break;
    default:
        text = xasprintf(
            "the certificate of %s is not trusted: %s; is the certificate-authority the one that signed "
            "it?",
            host, X509_verify_cert_error_string(result));
    }
    return (struct verdict){ERROR_FORBIDDEN, text};
}

static struct verdict not_connected(const struct env_http *http, CURLcode code)
{
    long number = 0;
    curl_easy_getinfo(http->easy, CURLINFO_OS_ERRNO, &number);
    CLEANUP_FREE char *words = number > 0 ? xstrdup(strerror((int)number)) : detail(http, code);
    return (struct verdict){ERROR_UNREACHABLE,
                            xasprintf("cannot connect to %s: %s; does the server run there, and is "
                                      "the address right?",
                                      http->host, words)};
}

static struct verdict broken(const struct env_http *http, CURLcode code)
{
    CLEANUP_FREE char *words = detail(http, code);
    const char *host = http->host;
    if (http->status >= 200)
        return (struct verdict){ERROR_UNREACHABLE, xasprintf("the answer of %s broke off: %s", host, words)};
    if (http->repeated || code == CURLE_SEND_FAIL_REWIND)
        return (struct verdict){
            ERROR_UNREACHABLE,
            xasprintf("the connection to %s broke before it answered; not sent again", host)};
    if (http->sends > 0)
        return (struct verdict){ERROR_UNREACHABLE, xasprintf("%s did not answer: %s", host, words)};
    return (struct verdict){ERROR_UNREACHABLE, xasprintf("cannot talk to %s: %s", host, words)};
}

static struct verdict judge(const struct env_http *http, CURLcode code)
{
    CLEANUP_FREE char *words = detail(http, code);
    const char *host = http->host;
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return timed_out(http);
    case CURLE_COULDNT_RESOLVE_HOST:
        return (struct verdict){
            ERROR_UNREACHABLE,
            xasprintf("the name of %s is not known; check the server's address and the DNS", host)};
    case CURLE_COULDNT_RESOLVE_PROXY:
        return (struct verdict){ERROR_UNREACHABLE, xasprintf("the proxy on the way to %s is not known; check "
                                                             "proxy-url and the DNS (%s)",
                                                             host, words)};
    case CURLE_COULDNT_CONNECT:
        return not_connected(http, code);
    case CURLE_PEER_FAILED_VERIFICATION:
        return untrusted(http, code);
    case CURLE_SSL_CACERT_BADFILE:
        return (struct verdict){ERROR_INVALID,
                                xasprintf("the certificate-authority given for %s cannot be read as "
                                          "PEM certificates",
                                          host)};
    case CURLE_SSL_CERTPROBLEM:
        return (struct verdict){
            ERROR_INVALID, xasprintf("the client certificate or key for %s cannot be used: %s", host, words)};
    case CURLE_SSL_CONNECT_ERROR:
        return (struct verdict){ERROR_UNREACHABLE,
                                xasprintf("no TLS connection with %s: %s; does it serve https "
                                          "there, or is http:// meant?",
                                          host, words)};
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return (struct verdict){
            ERROR_INVALID,
            xasprintf("%s did not answer in HTTP: %s; is the address right, or is https:// meant?", host,
                      words)};
    default:
        return broken(http, code);
    }
}

char *http_problem(const struct env_http *http, CURLcode code, enum error_code *ret_code)
{
    PRE(code != CURLE_OK);
    struct verdict verdict;
    if (http->setup_problem)
        verdict = (struct verdict){ERROR_INVALID, xstrdup(http->setup_problem)};
    else if (http->stopped != ERROR_NONE)
        verdict = stopped(http);
    else if (http->refused && http->sends == 0)
        verdict = (struct verdict){
            ERROR_CANCELLED, xasprintf("held back at the last moment, nothing was sent to %s", http->host)};
    else
        verdict = judge(http, code);
    *ret_code = verdict.code;
    return verdict.text;
}
