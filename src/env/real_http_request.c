/* SPDX-License-Identifier: Apache-2.0
 *
 * One request: how libcurl is set up for it, what its callbacks do, and what the owner is told in the end. */
#include "env/real_http.h"

#include <stdio.h>
#include <strings.h>

#define SET(option, value) ENSURE(curl_easy_setopt(http->easy, option, value) == CURLE_OK)

static void touch(struct env_http *http)
{
    http->last_byte_us = real_boot_us();
}

/* The last moment: the connection stands, nothing of the request is written yet. */
static int on_send(void *context, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    (void)remote_ip;
    (void)local_ip;
    (void)remote_port;
    (void)local_port;
    struct env_http *http = context;
    if (http->cancelled)
        return CURL_PREREQFUNC_ABORT;
    if (http->once && http->sends > 0) {
        /* A kept-alive connection died under it and libcurl would repeat it: the first copy may have been
         * executed. */
        http->repeated = true;
        return CURL_PREREQFUNC_ABORT;
    }
    if (http->callbacks.before_send && !http->callbacks.before_send(http->context)) {
        http->refused = true;
        return CURL_PREREQFUNC_ABORT;
    }
    if (http->cancelled)
        return CURL_PREREQFUNC_ABORT;
    http->sends++;
    touch(http);
    http_request_arm(http);
    return CURL_PREREQFUNC_OK;
}

/* There is no seek callback beside it, on purpose: without one libcurl cannot send the body a second time. */
static size_t on_read(char *bytes, size_t size, size_t count, void *context)
{
    struct env_http *http = context;
    if (http->cancelled)
        return CURL_READFUNC_ABORT;
    touch(http);
    size_t length = MIN(size * count, http->body_length - http->body_sent);
    memcpy(bytes, http->body + http->body_sent, length);
    http->body_sent += length;
    return length;
}

static const char *header_value(const char *line, const char *name)
{
    size_t length = strlen(name);
    if (strncasecmp(line, name, length) != 0 || line[length] != ':')
        return NULL;
    line += length + 1;
    return line + strspn(line, " \t");
}

static int64_t parse_retry_after(const char *value)
{
    static const int64_t max_us = 86400LL * 1000000;
    if (value[0] >= '0' && value[0] <= '9') {
        int64_t seconds = 0;
        for (; *value >= '0' && *value <= '9' && seconds < 86400; value++)
            seconds = seconds * 10 + (*value - '0');
        return *value == '\0' || seconds >= 86400 ? MIN(seconds * 1000000, max_us) : -1;
    }
    time_t date = curl_getdate(value, NULL);
    if (date == -1)
        return -1;
    int64_t delay_us = (int64_t)date * 1000000 - real_wall_us();
    return MAX(0, MIN(delay_us, max_us));
}

static void take_status_line(struct env_http *http, const char *line)
{
    const char *space = strchr(line, ' ');
    long status = space ? strtol(space + 1, NULL, 10) : 0;
    http->status = status >= 100 && status <= 599 ? (int)status : 0;
    http->retry_after_us = -1;
    str_replace(&http->audit_id, NULL);
}

/* The header block of the final answer is complete. */
static void begin_body(struct env_http *http)
{
    http->headers_done = true;
    http->streaming = http->callbacks.on_data && http->status >= 200 && http->status < 300;
    if (http->callbacks.on_status)
        http->callbacks.on_status(http->context, http->status);
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
    struct env_http *http = context;
    size_t length = size * count;
    if (http->cancelled)
        return CURL_WRITEFUNC_ERROR;
    touch(http);
    http->header_bytes += length;
    if (http->header_bytes > HTTP_HEADERS_MAX) {
        http->stopped = ERROR_TOO_LARGE;
        return CURL_WRITEFUNC_ERROR;
    }
    if (http->headers_done)
        return length; /* trailers */
    CLEANUP_FREE char *line = xmemdup0(bytes, length);
    line[strcspn(line, "\r\n")] = '\0';
    const char *value;
    if (str_starts_with(line, "HTTP/"))
        take_status_line(http, line);
    else if ((value = header_value(line, "Retry-After")))
        http->retry_after_us = parse_retry_after(value);
    else if ((value = header_value(line, "Audit-Id")) && strlen(value) <= HTTP_AUDIT_ID_MAX)
        str_replace(&http->audit_id, value);
    if (http->status == 0) {
        http->stopped = ERROR_INVALID;
        return CURL_WRITEFUNC_ERROR;
    }
    if (line[0] == '\0' && http->status >= 200)
        begin_body(http);
    return http->cancelled ? CURL_WRITEFUNC_ERROR : length;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct env_http *http = context;
    size_t length = size * count;
    if (http->cancelled)
        return CURL_WRITEFUNC_ERROR;
    touch(http);
    if (http->streaming) {
        bool more = http->callbacks.on_data(http->context, bytes, length);
        if (!more && !http->cancelled)
            http->stopped = ERROR_CANCELLED;
        return more && !http->cancelled ? length : CURL_WRITEFUNC_ERROR;
    }
    size_t room = http->answer.max - http->answer.length;
    ENSURE(buf_add(&http->answer, bytes, MIN(length, room)) == 0);
    if (length <= room)
        return length;
    http->stopped = ERROR_TOO_LARGE;
    return CURL_WRITEFUNC_ERROR;
}

static void on_timer(void *context)
{
    struct env_http *http = context;
    http->timer = NULL;
    int64_t now_us = real_boot_us();
    bool silent =
        http->sends > 0 && http->idle_timeout_us > 0 && now_us >= http->last_byte_us + http->idle_timeout_us;
    bool waited = http->sends == 0 && now_us >= http->send_deadline_us;
    if (!silent && !waited && now_us < http->deadline_us) {
        http_request_arm(http);
        return;
    }
    http->stopped = ERROR_TIMED_OUT;
    http->silent = silent;
    http_request_expire(http);
}

void http_request_arm(struct env_http *http)
{
    int64_t due_us = http->deadline_us;
    if (http->sends == 0)
        due_us = MIN(due_us, http->send_deadline_us);
    else if (http->idle_timeout_us > 0)
        due_us = MIN(due_us, http->last_byte_us + http->idle_timeout_us);
    env_timer_cancel(&http->real->env, &http->timer);
    if (due_us < INT64_MAX)
        http->timer = env_timer_start(&http->real->env, MAX(1, due_us - real_boot_us()), on_timer, http);
}

static void add_header(struct env_http *http, const char *line)
{
    struct curl_slist *longer = curl_slist_append(http->headers, line);
    ENSURE(longer);
    http->headers = longer;
}

static void set_headers(struct env_http *http, const struct http_request *request)
{
    bool typed = false;
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *header = &request->headers[i];
        if (str_has_control_character(header->name) || str_has_control_character(header->value)) {
            str_replace(&http->setup_problem,
                        "a request header holds a control character (is there a line break "
                        "inside a token?)");
            return;
        }
        typed = typed || strcasecmp(header->name, "Content-Type") == 0;
        /* libcurl's spelling of a header without a value is a semicolon. */
        CLEANUP_FREE char *line = header->value[0] ? xasprintf("%s: %s", header->name, header->value)
                                                   : xasprintf("%s;", header->name);
        add_header(http, line);
    }
    add_header(http, "Expect:"); /* never wait for a 100 */
    if (!typed)
        add_header(http, "Content-Type:"); /* not libcurl's idea of one */
}

static void set_method(struct env_http *http, const struct http_request *request)
{
    if (request->body) {
        http->body = xmemdup0(request->body, request->body_length);
        http->body_length = request->body_length;
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
        SET(CURLOPT_READFUNCTION, on_read);
        SET(CURLOPT_READDATA, http);
    }
    bool get = strcmp(request->method, "GET") == 0;
    if (!get || request->body)
        SET(CURLOPT_CUSTOMREQUEST, request->method);
    /* The bound is on the unpacked bytes. A stream is never packed: its lines must come at once. */
    if (get && !http->callbacks.on_data)
        SET(CURLOPT_ACCEPT_ENCODING, "gzip");
}

static void set_blob(struct env_http *http, CURLoption option, const char *pem)
{
    if (!pem)
        return;
    struct curl_blob blob = {.data = (void *)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};
    SET(option, &blob);
}

static void set_tls(struct env_http *http, const struct http_server *server)
{
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (server->ca_pem) {
        set_blob(http, CURLOPT_CAINFO_BLOB, server->ca_pem);
        SET(CURLOPT_CAPATH, NULL); /* else the system's authorities would be trusted too */
    }
    set_blob(http, CURLOPT_SSLCERT_BLOB, server->certificate_pem);
    set_blob(http, CURLOPT_SSLKEY_BLOB, server->key_pem);
    SET(CURLOPT_KEYPASSWD,
        ""); /* else OpenSSL asks for an encrypted key's on the terminal, and all stands still */
    if (server->insecure) {
        SET(CURLOPT_SSL_VERIFYPEER, 0L);
        SET(CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

/* --- the address ---------------------------------------------------------------------------------------- */

/* The name to verify takes the host's place in the URL, the connection still goes to the host, and the Host
 * header still names it. */
static void verify_as(struct http_address *address, CURLU *url, const char *name)
{
    char *host = NULL;
    char *port = NULL;
    ENSURE(curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK);
    ENSURE(curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK);
    if (curl_url_set(url, CURLUPART_HOST, name, 0) == CURLUE_OK) {
        address->host_header = xasprintf("Host: %s", address->host);
        address->route = xasprintf("%s:%s:%s:%s", name, port, host, port);
    } else {
        address->problem = xasprintf("'%.100s' is not a host name (tls-server-name)", name);
    }
    curl_free(host);
    curl_free(port);
}

static char *host_of(CURLU *url)
{
    char *host = NULL;
    char *port = NULL;
    if (curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
        return xstrdup("the server");
    char *text = curl_url_get(url, CURLUPART_PORT, &port, 0) == CURLUE_OK ? xasprintf("%s:%s", host, port)
                                                                          : xstrdup(host);
    curl_free(host);
    curl_free(port);
    return text;
}

/* What a request's path is put behind: without the slash that libcurl ends a URL of a host alone with. */
static char *prefix_of(CURLU *url, const char *base_url)
{
    char *whole = NULL;
    ENSURE(curl_url_get(url, CURLUPART_URL, &whole, 0) == CURLUE_OK);
    char *prefix = xstrdup(whole);
    curl_free(whole);
    size_t length = strlen(prefix);
    if (length > 0 && prefix[length - 1] == '/' && !str_ends_with(base_url, "/"))
        prefix[length - 1] = '\0';
    return prefix;
}

static void read_address(struct http_address *address)
{
    const char *base_url = address->base_url ? address->base_url : "";
    CURLU *url = curl_url();
    ENSURE(url);
    CURLUcode code = curl_url_set(url, CURLUPART_URL, base_url, CURLU_PATH_AS_IS);
    address->host = host_of(url);
    char *scheme = NULL;
    if (code == CURLUE_OK)
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
    address->tls = scheme && strcmp(scheme, "https") == 0;
    if (!address->tls && !(scheme && strcmp(scheme, "http") == 0)) {
        address->problem = xasprintf("the server's address '%.200s' is not a URL like https://host:6443%s%s",
                                     base_url, code ? ": " : "", code ? curl_url_strerror(code) : "");
    } else {
        if (address->server_name && address->tls)
            verify_as(address, url, address->server_name);
        address->prefix = prefix_of(url, base_url);
    }
    curl_free(scheme);
    curl_url_cleanup(url);
}

void http_address_done(struct http_address *address)
{
    char *const texts[] = {address->base_url,    address->server_name, address->host,   address->prefix,
                           address->host_header, address->route,       address->problem};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free(texts[i]);
    *address = (struct http_address){0};
}

/* The same server again and again: its address is read once. */
static const struct http_address *address_of(struct http_address *known, const struct http_server *server)
{
    if (known->host && str_equal(known->base_url, server->base_url) &&
        str_equal(known->server_name, server->server_name))
        return known;
    http_address_done(known);
    known->base_url = xstrdup_or_null(server->base_url);
    known->server_name = xstrdup_or_null(server->server_name);
    read_address(known);
    return known;
}

static void set_url(struct env_http *http, const struct http_request *request)
{
    const struct http_address *address = address_of(&http->real->http->address, request->server);
    str_replace(&http->host, address->host);
    str_replace(&http->setup_problem, address->problem);
    if (address->problem)
        return;
    if (address->route) {
        add_header(http, address->host_header);
        http->connect_to = curl_slist_append(NULL, address->route);
        ENSURE(http->connect_to);
        SET(CURLOPT_CONNECT_TO, http->connect_to);
    }
    /* libcurl learns only from the first answer that a plain server does not multiplex: do not wait for it.
     */
    SET(CURLOPT_HTTP_VERSION, (long)(address->tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    SET(CURLOPT_PIPEWAIT, address->tls ? 1L : 0L);
    http->multiplexes = address->tls;
    CLEANUP_FREE char *url = xasprintf("%s%s", address->prefix, request->path);
    SET(CURLOPT_URL, url);
}

/* --- the request ---------------------------------------------------------------------------------------- */

static void set_callbacks(struct env_http *http)
{
    SET(CURLOPT_PRIVATE, http);
    SET(CURLOPT_ERRORBUFFER, http->error_text);
    SET(CURLOPT_PREREQFUNCTION, on_send);
    SET(CURLOPT_PREREQDATA, http);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, http);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, http);
}

static void set_manners(struct env_http *http, const struct http_server *server)
{
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* never wait in the loop for a thread that resolves a name */
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PATH_AS_IS, 1L);
    /* Not the environment's proxies and exceptions: only what the kubeconfig says. */
    SET(CURLOPT_PROXY, server->proxy_url ? server->proxy_url : "");
    SET(CURLOPT_NOPROXY, "");
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, 30L);
    SET(CURLOPT_TCP_KEEPINTVL, 15L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(HTTP_CONNECT_TIMEOUT_US / 1000));
}

struct env_http *http_request_make(struct real *real, const struct http_request *request,
                                   const struct http_callbacks *callbacks, void *context)
{
    struct env_http *http = xcalloc(1, sizeof(*http));
    int64_t now_us = real_boot_us();
    http->real = real;
    http->callbacks = *callbacks;
    http->context = context;
    http->once = request->once;
    http->retry_after_us = -1;
    http->idle_timeout_us = request->idle_timeout_us;
    http->timeout_us = request->timeout_us;
    http->deadline_us = request->timeout_us > 0 ? now_us + request->timeout_us : INT64_MAX;
    http->send_deadline_us = now_us + HTTP_CONNECT_TIMEOUT_US;
    size_t max = request->answer_max && !callbacks->on_data ? request->answer_max : HTTP_ERROR_BODY_MAX;
    http->answer = BUF_INIT(max);
    http->easy = curl_easy_init();
    ENSURE(http->easy);
    set_manners(http, request->server);
    set_callbacks(http);
    set_headers(http, request);
    set_method(http, request);
    set_tls(http, request->server);
    if (!http->setup_problem)
        set_url(http, request);
    SET(CURLOPT_HTTPHEADER, http->headers);
    return http;
}

void http_request_free(struct env_http *http)
{
    env_timer_cancel(&http->real->env, &http->timer);
    curl_easy_cleanup(http->easy);
    curl_slist_free_all(http->headers);
    curl_slist_free_all(http->connect_to);
    buf_done(&http->answer);
    free(http->host);
    free(http->body);
    free(http->audit_id);
    free(http->setup_problem);
    free(http);
}

static enum http_outcome outcome_of(const struct env_http *http, CURLcode code)
{
    /* A 1xx is no answer, but for a 101 that nobody asked for and that libcurl takes as the last word. */
    if (http->status >= 200 || (http->status >= 100 && code == CURLE_OK))
        return HTTP_ANSWERED;
    return http->sends > 0 ? HTTP_NO_ANSWER : HTTP_NOT_SENT;
}

void http_request_end(struct env_http *http, CURLcode code)
{
    PRE(!http->added && !http->cancelled);
    env_timer_cancel(&http->real->env, &http->timer);
    /* libcurl calls it success when the connection ends inside the headers. */
    if (code == CURLE_OK && http->status >= 200 && !http->headers_done)
        code = CURLE_PARTIAL_FILE;
    struct http_answer answer = {
        .outcome = outcome_of(http, code),
        .body_whole = code == CURLE_OK,
        .body = buf_text(&http->answer),
        .body_length = http->answer.length,
        .retry_after_us = http->retry_after_us,
        .audit_id = http->audit_id,
    };
    answer.status = answer.outcome == HTTP_ANSWERED ? http->status : 0;
    CLEANUP_FREE char *problem = code == CURLE_OK ? NULL : http_problem(http, code, &answer.code);
    answer.problem = problem;
    http->finished = true;
    http->callbacks.on_done(http->context, &answer);
    http_request_free(http);
}
