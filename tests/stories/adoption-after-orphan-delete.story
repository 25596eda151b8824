# The set is deleted with its pods orphaned, and created again: the same pods are its own, nothing restarts (K-3; pingcap's P-3).

Given three pods with a claim each
neoset db
wait_until settled db 3
uids=$(uids db)
When the set is deleted and its pods are left behind
delete neoset db orphan
wait_until gone neoset db
wait_until orphaned_all
check uids_are db "$uids"
When it is created again
neoset db
wait_until ready_are db 3
Then the pods are the same and belong to it
wait_until settled db 3
check uids_are db "$uids"
check restarts_are db 0 0 0
uid=$(get neoset db .metadata.uid)
check is "$uid $uid $uid" "$(pods db 'map(.metadata.ownerReferences[0].uid) | join(" ")')"
When the image changes
set_image db app:v2
Then they are updated in place
wait_until completed db
check uids_are db "$uids"
