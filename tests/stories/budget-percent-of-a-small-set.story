# Ten percent of four pods round to none, and a budget of none waits for ever (kruise 369, 196, 1606). At least one is meant, and
# the number that counts is shown.

Given four pods and a budget of 10 %
neoset db replicas=4 maxUnavailable=10%
wait_until settled db 4
check status_is db effectiveMaxUnavailable 1
from_now
When the image changes
set_image db app:v2
Then it completes, one at a time
wait_until completed db
check always_ready db 3

When the budget is 60 %
edit db maxUnavailable=60%
Then it is rounded down to two
wait_until status_is db effectiveMaxUnavailable 2
