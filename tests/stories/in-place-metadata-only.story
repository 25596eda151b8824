# A changed label or annotation restarts nothing: pods get it in place, without being taken out of service (kubernetes 122926,
# 133637, 61142).

Given three pods
neoset db label.tier=old label.gone=yes
wait_until settled db 3
uids=$(uids db)
from_now
When a label changes, and one goes
edit db label.tier=new -label.gone
wait_until completed db
Then the pods have it, are the same, never were out of service, and no container restarted
check is "new new new" "$(pods db 'map(.metadata.labels.tier) | join(" ")')"
check is "null null null" "$(pods db 'map(.metadata.labels.gone | tostring) | join(" ")')"
check uids_are db "$uids"
check restarts_are db 0 0 0
check always_ready db 3
