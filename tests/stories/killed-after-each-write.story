# The controller ends itself (-9) around its own writes: before they are sent, after they are answered, before the answer is in the
# journal.
needs crash-points

Given three pods
neoset db
wait_until settled db 3
uids=$(uids db)
When the image changes, and the controller dies at each edge of its writes
kill_controller
set_image db app:v2
for edge in intent-commit:advance send:advance answer:gate send:update-in-place answer:update-in-place outcome:update-in-place \
    answer:gate done:advance; do
    start_controller "$edge"
    pause_for 4
    kill_controller
done
start_controller
Then the rollout completes, each container restarted once
wait_until 120 completed db
check uids_are db "$uids"
check restarts_are db 1 1 1
