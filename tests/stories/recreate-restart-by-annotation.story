# The annotation of `kubectl rollout restart` means a restart to everyone. It cannot be had in place by a patch (kruise 1826), so
# pods are made anew.

Given three pods
neoset db annotation.note=none
wait_until settled db 3
uids=$(uids db)
When the annotation of a restart is set
edit db 'annotation.kubectl\.kubernetes\.io/restartedAt=2026-11-30T08:00:00Z'
wait_until completed db
Then every pod is another one
for uid in $uids; do check not matches "$uid" "$(uids db)"; done
