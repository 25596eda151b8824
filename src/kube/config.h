/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the API server is and who we are: kubeconfig files (merged from KUBECONFIG as kubectl does), or the
 * in-cluster service account. Finding, merging and checking only; tokens and exec plug-ins are used by
 * credential.c. Never contacts a server, never runs anything. */
#pragma once

#include "env/env.h"

/* A program that prints credentials (client.authentication.k8s.io). */
struct kube_exec_plugin {
    char **argv; /* NULL-terminated; argv[0] with a slash was made relative to its kubeconfig's folder */
    char **environment; /* NULL-terminated "NAME=value", or NULL */
    char *api_version;  /* "client.authentication.k8s.io/v1" or ".../v1beta1" */
    bool provide_cluster_info;
    char *cluster_config; /* JSON of the cluster's extension for plug-ins, or NULL */
    char *install_hint;   /* what to tell a user who does not have it, or NULL */
};

struct kube_config {
    struct http_server server;
    /* The files that server's certificates came from: credential.c reads them again with the token, for they
     * rotate. NULL: given inline, or none. */
    char *ca_file;
    char *certificate_file;
    char *key_file;
    char *context_name;            /* NULL in-cluster */
    char *namespace;               /* of the context or the service account; "default" when neither says */
    char *token;                   /* static token, or NULL */
    char *token_file;              /* re-read at most every 60 s and once on a 401; wins over token */
    char *impersonate_user;        /* --as, or the kubeconfig's `as`; NULL: none */
    char *impersonate_uid;         /* NULL: none */
    char **impersonate_groups;     /* NULL-terminated, or NULL */
    struct kube_exec_plugin *exec; /* NULL: none */
    bool in_cluster;
};

struct kube_config_options {
    const char
        *kubeconfig;     /* --kubeconfig: one file; NULL: KUBECONFIG (a list), ~/.kube/config, in-cluster */
    const char *context; /* --context; NULL: current-context */
    const char *impersonate_user; /* --as; NULL: the kubeconfig's */
};

/* Finds and reads the configuration as kubectl does: of a list of files the first that sets a value, or names
 * an entry, wins; missing files of a list are skipped, a missing --kubeconfig is an error. *ret is the
 * caller's. Errors are sentences that name the file, and what to do. */
int kube_config_load(struct env *env, const struct kube_config_options *options, struct kube_config **ret,
                     struct error **err);
/* The configuration of an API server that wants no credentials, e.g. a test's; base_url without a trailing
 * slash. */
struct kube_config *kube_config_of_url(const char *base_url);
void kube_config_free(struct kube_config *config);
DEFINE_CLEANUP(cleanup_kube_config, struct kube_config, kube_config_free);
#define CLEANUP_KUBE_CONFIG __attribute__((cleanup(cleanup_kube_config)))
