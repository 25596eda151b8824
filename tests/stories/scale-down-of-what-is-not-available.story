# The last pod is ready, but not yet available, and is not wanted any more: its own state never blocks its removal (kubernetes
# 123918; aibrix 2537).

Given two pods that must be ready for five seconds, and a third that is ready and not yet available
neoset db replicas=2 minReadySeconds=5
wait_until settled db 2
scale db 3
wait_until pod_ready db-2
check status_is db availableReplicas 2
When two are wanted
scale db 2
Then the third goes at once
wait_until 4 pods_are db "0 1"
