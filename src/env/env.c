/* SPDX-License-Identifier: Apache-2.0 */
#include "env/env.h"

void env_free(struct env *env)
{
    if (env)
        env->ops->free(env);
}

void http_server_done(struct http_server *server)
{
    PRE(server);
    free(server->base_url);
    free(server->ca_pem);
    free(server->certificate_pem);
    free(server->key_pem);
    free(server->server_name);
    free(server->proxy_url);
    *server = (struct http_server){0};
}
