# The controller is killed (-9) at random moments of a rollout, again and again: no write is done twice, none is forgotten, and the
# pods are the same (the oracle looks at the end).

Given five pods
neoset db replicas=5 maxUnavailable=2
wait_until settled db 5
uids=$(uids db)
When the image changes, and the controller does not live long
set_image db app:v2
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    pause_for "$((i % 3)).$((RANDOM % 900 + 100))"
    kill_controller
    start_controller
done
Then the rollout completes, each container restarted once
wait_until 120 completed db
check uids_are db "$uids"
check restarts_are db 1 1 1 1 1
