/* SPDX-License-Identifier: Apache-2.0 */
#include "env/address.h"
#include "base/alloc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool env_address_parse(const char *text, struct sockaddr_storage *ret)
{
    const char *colon = strrchr(text, ':');
    if (!colon)
        return false;
    char *end;
    errno = 0;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (errno || *end || end == colon + 1 || port > 65535 || colon[1] < '0' || colon[1] > '9')
        return false;
    CLEANUP_FREE char *host = xstrndup(text, (size_t)(colon - text));
    size_t length = strlen(host);
    *ret = (struct sockaddr_storage){0};
    if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
        host[length - 1] = '\0';
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host + 1, &six->sin6_addr) == 1;
    }
    struct sockaddr_in *four = (struct sockaddr_in *)ret;
    four->sin_family = AF_INET;
    four->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &four->sin_addr) == 1;
}
