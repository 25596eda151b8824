# Someone else writes to the pods all the time, as an agent does with its labels. Conflicts are no failures: the pod is read
# again, and the set is never Failed (kruise 1351, 2399); nothing else than the update itself is written.

Given three pods on app:v1
neoset db
wait_until settled db 3
from_now
When the image changes, and an agent writes to every pod
set_image db app:v2
for i in 1 2 3 4 5 6 7 8 9 10; do
    for pod in db-0 db-1 db-2; do patch pod "$pod" "{\"metadata\":{\"annotations\":{\"agent\":\"$i\"}}}"; done
    pause_for 0.1
done
wait_until completed db
Then it was never Failed, and each container restarted once
check restarts_are db 1 1 1
check not event_says Failed
check is "" "$(set_events db | jq -r 'select(.object.status.phase == "Failed") | .object.status.message' | head -n 1)"
