// Package leftovers stores deleted instances whose deletion has steps that were not completed, and the former runtimes of suspended
// instances whose suspension has such steps.
//
// The row is added in the transaction that removes or suspends the instance, and removed in the transaction in which a cleanup
// succeeds. It contains no secrets: the data of the steps is that of the operation which ran them last.
package leftovers
