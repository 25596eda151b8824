# The claim of a pod that waits for a node vanishes: it is made anew, or the pod waits for ever (K-30 of the end-to-end tests).
needs claims behaviours

Given a pod with a claim that no node takes
neoset db replicas=1 claim=data behaviour=pending
wait_until pods_are db 0
old=$(get claim data-db-0 .metadata.uid)
When the claim is deleted
delete claim data-db-0
Then there is another one
wait_until exists claim data-db-0
wait_until not object_is claim data-db-0 .metadata.uid "$old"
