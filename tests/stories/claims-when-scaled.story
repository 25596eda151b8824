# The four retention policies when a set shrinks: whenScaled decides, whatever whenDeleted says (KEP-1847; K-24 to K-29).
needs claims

Given four sets of two, one for each policy
for deleted in Retain Delete; do
    for scaled in Retain Delete; do
        neoset "${deleted,,}-${scaled,,}" replicas=2 claim=data podManagementPolicy=Parallel \
            "persistentVolumeClaimRetentionPolicy={\"whenDeleted\":\"$deleted\",\"whenScaled\":\"$scaled\"}"
    done
done
for set in retain-retain retain-delete delete-retain delete-delete; do wait_until settled "$set" 2; done
When each shrinks to one
for set in retain-retain retain-delete delete-retain delete-delete; do scale "$set" 1; done
for set in retain-retain retain-delete delete-retain delete-delete; do wait_until pods_are "$set" 0; done
Then the claims of the two that say so are gone, and only those
wait_until claims_are data-delete-delete-0 data-delete-retain-0 data-delete-retain-1 \
    data-retain-delete-0 data-retain-retain-0 data-retain-retain-1
stays 2 claims_are data-delete-delete-0 data-delete-retain-0 data-delete-retain-1 \
    data-retain-delete-0 data-retain-retain-0 data-retain-retain-1
