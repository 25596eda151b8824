# The template changes at any moment of a pod's update: while it is taken out of service, patched, restarted, let back. Each time
# the newest one wins, and no pod hangs in between (kruise 1156, 676, 2177).

Given three pods on app:v1
neoset db maxUnavailable=2
wait_until settled db 3
uids=$(uids db)

When the image changes twelve times, at odd moments
for i in 2 1 2 1 2 1 2 1 2 1 2 1; do
    set_image db "app:v$i"
    pause_for "0.$((RANDOM % 8))$((RANDOM % 9 + 1))"
done
set_image db app:v2

Then the last one is everywhere, in the same pods
wait_until completed db
check images_are db app:v2 app:v2 app:v2
check uids_are db "$uids"
