// Package leftovers stores leftovers. A leftover is a deleted instance for which some steps of the deletion were not completed, or
// the former runtime of a suspended instance for which some steps of the suspension were not completed.
//
// The row is added in the transaction that removes or suspends the instance, and removed in the transaction in which a cleanup
// succeeds. It contains no secrets. A cleanup takes the data for the steps from the operation that ran them last.
package leftovers
