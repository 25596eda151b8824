# Pods that are pending for ever fill the budget of creations; a template that can be scheduled must win (kruise 1134,
# kubeblocks 7789, 9070).
needs behaviours

Given three pods that no node takes
neoset db behaviour=pending podManagementPolicy=Parallel timeout=3
wait_until pods_are db "0 1 2"
stays 2 ready_are_not db 1

When the template becomes one that a node takes
edit db behaviour=ok image=app:v2

Then all come up
wait_until settled db 3
check images_are db app:v2 app:v2 app:v2
