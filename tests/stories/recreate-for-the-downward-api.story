# A label that a container reads from the downward API: a patch of the label alone would leave the container with the old one, so the
# pod is made anew (kruise A-2 restarts it).

Given three pods whose environment has one of their labels
neoset db label.tier=a 'template.spec.containers.0.env=[{"name":"TIER","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['"'tier'"']"}}}]'
wait_until settled db 3
uids=$(uids db)
When that label changes
edit db label.tier=b
wait_until completed db
Then the pods are other ones
for uid in $uids; do check not matches "$uid" "$(uids db)"; done
check is "b b b" "$(pods db 'map(.metadata.labels.tier) | join(" ")')"
