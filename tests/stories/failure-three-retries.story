# A version that never becomes ready: after its deadline the set is Failed and says why; the pod is made anew three times, then it
# stands still and says what unblocks it. The others keep serving. A tool exists only to explain that state (kubectl-status 169).
# A corrected template ends it.

Given three pods, which have two seconds to become ready
neoset db timeout=2
wait_until settled db 3
others=$(uids db | cut -d ' ' -f 1,2)
from_now
When the image is one that never becomes ready
set_image db app:unready
wait_until 120 phase_is db Failed
Then the message names the pod
check message_says db db-2
check condition_is db Stalled True
And the pod is made anew three times, no more
wait_until 600 message_says db 'three times|3 times|3 retries|three retries'
stays 5 phase_is db Failed
check lived db-2 "^4$"
check is "$others" "$(uids db | cut -d ' ' -f 1,2)"
check always_ready db 2
When the image becomes a good one
set_image db app:v2
Then it completes, and is not called stalled any more
wait_until 120 completed db
check condition_is db Stalled False
