# An image without a tag is one with :latest (kruise 418).
needs behaviours

Given three pods on app
neoset db image=app
wait_until settled db 3
When the image becomes another one without a tag
set_image db docker.io/library/other
Then it completes in place
wait_until completed db
check restarts_are db 1 1 1
When the image becomes app again
set_image db app
wait_until completed db
check restarts_are db 2 2 2
