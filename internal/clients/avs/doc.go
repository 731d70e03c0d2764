// Package avs manages evaluations in the availability service (AvS), which monitors clusters.
//
// Each cluster has an internal evaluation. Unless the plan of the instance is trial or free, the cluster also has an external
// evaluation, with which AvS checks the health of the cluster. AvS assigns the IDs and does not recognize repeated requests:
// repeating a creation after a lost response may create a second evaluation. All other calls are idempotent.
package avs
