/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the API server is and who we are: kubeconfig files (merged from KUBECONFIG as kubectl does), or the in-cluster
 * service account. Parsing and merging only; tokens and exec plug-ins are used by credential.c. Never contacts a
 * server. */
#pragma once

#include "env/env.h"

struct kube_exec_plugin {
    char **argv; /* NULL-terminated; argv[0] relative with a slash: relative to its kubeconfig's folder */
    char **environment; /* NULL-terminated "NAME=value", or NULL */
    char *api_version;
    bool provide_cluster_info;
};

struct kube_config {
    struct http_server server;
    char *context_name; /* NULL in-cluster */
    char *namespace;    /* of the context or the service account; "default" when neither says */
    char *token;        /* static token, or NULL */
    char *token_file;   /* re-read at most every 60 s and once on a 401; wins over token */
    char *username;     /* basic auth is refused with a sentence; kept for that message */
    char *impersonate_user; /* --as */
    struct kube_exec_plugin *exec; /* NULL: none */
    bool in_cluster;
};

struct kube_config_options {
    const char *kubeconfig; /* --kubeconfig: one file; NULL: KUBECONFIG (a list), ~/.kube/config, in-cluster */
    const char *context;    /* --context */
    const char *impersonate_user; /* --as */
};

int kube_config_load(struct env *env, const struct kube_config_options *options, struct kube_config **ret,
                     struct error **err);
void kube_config_free(struct kube_config *config);
DEFINE_CLEANUP(cleanup_kube_config, struct kube_config, kube_config_free);
#define CLEANUP_KUBE_CONFIG __attribute__((cleanup(cleanup_kube_config)))
