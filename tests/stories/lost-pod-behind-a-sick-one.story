# OrderedReady, pod 1 is sick, and the healthy pod 0 is deleted: it is made anew, nothing waits for pod 1 (K-5 of the end-to-end
# tests; tidb-operator 865 is the deadlock).
needs behaviours

Given three pods, the middle one sick
neoset db behaviour=ok timeout=300
wait_until settled db 3
behave db-1 never-ready
wait_until pod_ready db-1 False
old=$(get pod db-0 .metadata.uid)
When pod 0 is deleted
delete pod db-0
Then it is made anew and becomes ready
wait_until not pod_is db-0 .metadata.uid "$old"
wait_until pod_ready db-0
