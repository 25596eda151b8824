# The history is cut to its limit, also by a set that fails all the time: a cluster once collected more than 100,000 revisions
# (kubernetes 85690).

Given three pods that keep two old revisions
neoset db revisionHistoryLimit=2
wait_until settled db 3
When the image changes six times, and no rollout ever completes
for i in 1 2 3 4 5 6; do
    set_image db "app:none$i"
    wait_until pod_is db-2 .spec.containers[0].image "app:none$i"
done
Then there are the stable one, the target, and two more
wait_until revisions_are db 4
When a rollout completes
set_image db app:v2
wait_until completed db
Then the limit holds
wait_until revisions_are db 3
