# OrderedReady does not grow beyond a sick pod, Parallel does (K-15 and K-17 of the conformance tests).
needs behaviours

Given two sets whose first pod never becomes ready
neoset db behaviour=never-ready
neoset web behaviour=never-ready podManagementPolicy=Parallel
Then the one waits at its first pod, the other has them all
wait_until pods_are web "0 1 2"
wait_until pods_are db 0
stays 3 pods_are db 0
When the pod of the first is well
behave db-0 ok
Then the next one comes
wait_until pods_are db "0 1"
