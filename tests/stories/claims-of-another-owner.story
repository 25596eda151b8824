# A claim that another controller owns is never touched by a retention policy (K-26 and K-29 of the end-to-end tests).
needs claims

Given two pods with claims that go when the set shrinks, one of which belongs to someone else as well
neoset db replicas=2 claim=data 'persistentVolumeClaimRetentionPolicy={"whenScaled":"Delete"}'
wait_until settled db 2
create configmap '{"metadata":{"name":"other"}}'
patch claim data-db-1 "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"other\",\"controller\":true,\"uid\":\"$(get configmap other .metadata.uid)\"}]}}"
When the set shrinks
scale db 1
wait_until pods_are db 0
Then the claim stays with its owner
stays 3 claims_are data-db-0 data-db-1
check is other "$(get claim data-db-1 '[.metadata.ownerReferences[].name] | join(" ")')"
