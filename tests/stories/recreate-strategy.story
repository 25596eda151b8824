# type Recreate makes pods anew, one after another, canary first: not all at once, as the strategy of that name in StatefulSet
# 1.37 does (KEP-3541). Claims stay.
needs claims

Given three pods with claims, to be recreated
neoset db type=Recreate claim=data
wait_until settled db 3
uids=$(uids db)
claims=$(list claim 'map(.metadata.uid) | sort | join(" ")')
from_now
When the image changes
set_image db app:v2
wait_until completed db
Then every pod is another one, nothing restarted, two were always ready, and the claims are the same
check images_are db app:v2 app:v2 app:v2
check restarts_are db 0 0 0
check always_ready db 2
check is "$claims" "$(list claim 'map(.metadata.uid) | sort | join(" ")')"
for uid in $uids; do check not matches "$uid" "$(uids db)"; done
