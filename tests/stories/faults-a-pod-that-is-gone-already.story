# Faults: 404,verb=delete,resource=pods/,nth=1
# A delete is answered 404: the pod that the cache still shows is gone already. One such pod once blocked thousands (kubernetes
# 136812): not found is as good as deleted, and the others are looked after.
needs faults

Given four pods
neoset db replicas=4
wait_until settled db 4
When two fewer are asked for, and the first delete finds nothing
scale db 2
Then there are two
wait_until pods_are db "0 1"
wait_until ready_are db 2
