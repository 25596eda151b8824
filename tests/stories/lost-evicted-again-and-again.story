# A pod that is evicted whenever it runs is not made anew in a hot loop (kubernetes 89067). How long it waits before it makes one
# anew is known to the controller while it lives: one that is started again begins with the shortest wait.
needs behaviours one-life

Given two pods that the node throws out soon after they start
neoset db replicas=2 behaviour=evict podManagementPolicy=Parallel
wait_until lived db-0 "^[2-9]$"
When half a minute goes by
pause_for 30
Then they were made anew a few times, no more
check lived db-0 '^[2-5]$'
