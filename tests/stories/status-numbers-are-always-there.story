# An idle set has all its counters, zeros too; who waits for a number that is missing waits for ever (kubernetes 52653, 76748).

Given a set of none
neoset db replicas=0
wait_until status_is db currentPartition 0
Then every counter is a number
for field in observedGeneration replicas readyReplicas availableReplicas updatedReplicas updatedReadyReplicas \
    updatedAvailableReplicas expectedUpdatedReplicas effectiveMaxUnavailable currentPartition collisionCount; do
    check is number "$(status db "$field | type")"
done
check status_is db 'doneOrdinals | type' array
check status_is db 'leftStableOrdinals | type' array
When there are two
scale db 2
wait_until settled db 2
Then all of them are updated and available
check is "2 2 2 2" "$(get neoset db '.status | "\(.replicas) \(.updatedReplicas) \(.availableReplicas) \(.readyReplicas)"')"
