# Two tags of one digest: the imageID never changes, so who waits for another one waits for ever (kruise 635, 2297, 1242). Done
# is when the container was started anew under the new spec.
needs behaviours

Given three pods, all tags of whose image have one digest
neoset db behaviour=same-digest
wait_until settled db 3
uids=$(uids db)
id=$(get pod db-0 '.status.containerStatuses[0].imageID')

When the tag changes
set_image db app:v2

Then it completes, each container restarted once, its imageID the old one
wait_until completed db
check uids_are db "$uids"
check restarts_are db 1 1 1
check is "$id" "$(get pod db-0 '.status.containerStatuses[0].imageID')"
