# A fence at or above the number of pods holds everything: there is a new revision, and no pod moves; the message says that the
# fence is why (kubernetes 70442, 72212; K-9 of the conformance tests).

Given three pods and a fence of three
neoset db partition=3
wait_until settled db 3
first=$(status db currentRevisionName)
When the image changes
set_image db app:v2
wait_until revisions_are db 2
Then no pod moves, and the reason is said
stays 3 images_are db app:v1 app:v1 app:v1
check status_is db currentRevisionName "$first"
check not status_is db updateRevisionName "$first"
check message_says db 'partition 3'
check status_is db expectedUpdatedReplicas 0
