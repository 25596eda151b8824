# Pods that a person made before there was a set: they are adopted, and since they have no readiness gate they are updated without
# being taken out of service first; the status says so.

Given two pods of nobody
for i in 0 1; do
    create pod "{\"metadata\":{\"name\":\"db-$i\",\"labels\":{\"app\":\"db\"}},\"spec\":$(manifest db | jq -c .spec.template.spec)}"
done
wait_until pod_ready db-0
wait_until pod_ready db-1
uids="$(get pod db-0 .metadata.uid) $(get pod db-1 .metadata.uid)"
When a set of that name and template is made
neoset db replicas=2
Then they are its own
wait_until 120 settled db 2
When the image changes
set_image db app:v2
wait_until completed db
Then each runs it
check images_are db app:v2 app:v2
