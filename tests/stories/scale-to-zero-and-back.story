# Zero is a value: scaled to 0 all pods go, and back they come, on the same claims.
needs claims

Given two pods with a claim each
neoset db replicas=2 claim=data
wait_until settled db 2
claims=$(list claim 'map(.metadata.uid) | sort | join(" ")')
When there shall be none
scale db 0
wait_until pods_are db ""
check claims_are data-db-0 data-db-1
When there shall be two
scale db 2
wait_until ready_are db 2
Then the claims are the same
check is "$claims" "$(list claim 'map(.metadata.uid) | sort | join(" ")')"
