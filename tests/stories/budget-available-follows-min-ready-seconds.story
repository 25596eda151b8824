# availableReplicas follows minReadySeconds: raised it drops, lowered it returns (K-23 of the end-to-end tests).

Given two pods, available
neoset db replicas=2
wait_until settled db 2
wait_until status_is db availableReplicas 2
When they must be ready for an hour
edit db minReadySeconds=3600
Then none is available
wait_until status_is db availableReplicas 0
check status_is db readyReplicas 2
When that is taken back
edit db minReadySeconds=0
Then both are
wait_until status_is db availableReplicas 2
