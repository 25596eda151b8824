# An autoscaler reads and writes the scale subresource: replicas and the selector are there (K-19 of the conformance tests).

Given two pods
neoset db replicas=2
wait_until settled db 2
check is '2 2 app=db' "$(api GET "$(path_of neoset db scale)" | jq -r '"\(.spec.replicas) \(.status.replicas) \(.status.selector)"')"
When the subresource asks for three
patch neoset db '{"spec":{"replicas":3}}' scale
Then there are three
wait_until ready_are db 3
check pods_are db "0 1 2"
