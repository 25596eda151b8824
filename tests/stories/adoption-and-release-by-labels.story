# A pod whose labels stop matching is released, and another one takes its name when it is gone; one whose labels match again is
# adopted (K-4 of the end-to-end tests).

Given two pods
neoset db replicas=2
wait_until settled db 2
uid=$(get pod db-1 .metadata.uid)
When the label of one goes
patch pod db-1 '{"metadata":{"labels":{"app":"quarantine"}}}'
Then it belongs to nobody, and still runs
wait_until pod_is db-1 '.metadata.ownerReferences | length' 0
check pod_is db-1 .metadata.uid "$uid"
When the label is back
patch pod db-1 '{"metadata":{"labels":{"app":"db"}}}'
Then it belongs to the set again
wait_until pod_is db-1 '.metadata.ownerReferences[0].name' db
wait_until ready_are db 2
check pod_is db-1 .metadata.uid "$uid"
