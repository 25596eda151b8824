# Ordinals that begin at 5: names, canary and fence go by the index. A later start makes pods at one end and removes them at the
# other (K-31 to K-34, KEP-3335).

Given three pods from ordinal 5
neoset db 'ordinals={"start":5}' partition=2
wait_until settled db 3
check pods_are db "5 6 7"
When the image changes behind a fence of two
set_image db app:v2
Then the highest is updated
wait_until status_is db doneOrdinals '[7]'
check images_are db app:v1 app:v1 app:v2
When the fence goes
edit db partition=0
wait_until completed db
When the start is 6
edit db ordinals.start=6
Then 8 comes and 5 goes
wait_until pods_are db "6 7 8"
wait_until ready_are db 3
check images_are db app:v2 app:v2 app:v2
