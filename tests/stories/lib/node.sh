# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Stories on a real kubelet and containerd: as `real`, but pods are containers. There is no storage and no scheduler.
# shellcheck source-path=SCRIPTDIR
. "$here/lib/real.sh"
SERVER_HAS="audit policies containers clock"
pod_defaults='{"spec": {"nodeName": "node-1"},
    "container": {"readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1}}}'

open_server() {
    node_may_run || exit 77
    start_node "$work/cluster"
    prepare_server
}
close_server() { stop_node; }
