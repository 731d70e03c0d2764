// Package orchestrations stores orchestrations and their targets. A target is an instance that an orchestration upgrades.
//
// Store guarantees:
//
//   - An instance is a target of an orchestration at most once.
//   - A target is in progress only if its upgrade exists: the transaction that accepts the upgrade also changes the target.
//   - The end of an upgrade makes the conductor of its orchestration due, in the same transaction.
//   - Methods that depend on the state of an orchestration take a transaction that has locked it. Transactions lock the orchestration
//     first, then the conductor, then instances.
package orchestrations
