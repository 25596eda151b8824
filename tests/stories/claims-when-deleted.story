# The four retention policies when a set is deleted: whenDeleted decides (KEP-1847; K-24 to K-29).
needs claims

Given four sets of one, one for each policy
for deleted in Retain Delete; do
    for scaled in Retain Delete; do
        neoset "${deleted,,}-${scaled,,}" replicas=1 claim=data \
            "persistentVolumeClaimRetentionPolicy={\"whenDeleted\":\"$deleted\",\"whenScaled\":\"$scaled\"}"
    done
done
for set in retain-retain retain-delete delete-retain delete-delete; do wait_until settled "$set" 1; done
When they are deleted
for set in retain-retain retain-delete delete-retain delete-delete; do delete neoset "$set"; done
Then the claims of the two that say so are gone, and only those
wait_until claims_are data-retain-delete-0 data-retain-retain-0
stays 2 claims_are data-retain-delete-0 data-retain-retain-0
