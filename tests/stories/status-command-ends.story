# Waiting for a rollout ends where there is nothing to wait for: a set at rest, a fence that is reached, a pause (kubernetes 72212,
# 68573; helm 8674).
needs clock

Given three pods at rest
neoset db
wait_until settled db 3
Then the status ends at once
check status_ends db
When the fence holds two of them back
edit db partition=2
set_image db app:v2
wait_until status_is db doneOrdinals '[2]'
Then it ends
check status_ends db
When the set is paused
edit db pause=true
wait_until phase_is db Paused
Then it ends too
check status_ends db
