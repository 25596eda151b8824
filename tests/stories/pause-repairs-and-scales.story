# Paused, a set still repairs and scales, and its new pods become ready. A paused CloneSet left new pods not ready for ever (kruise
# 892).

Given three pods, paused
neoset db pause=true
wait_until ready_are db 3
When a pod is deleted and one more is asked for
delete pod db-1
scale db 4
Then all four become ready
wait_until ready_are db 4
check pods_are db "0 1 2 3"
check phase_is db Paused
