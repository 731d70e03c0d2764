// Package orchestration accepts orchestrations, and conducts them: it selects their targets and starts upgrades. The process of the
// conductor is in process/orchestrating.
//
// The conductor writes in transactions that hold the lock of the orchestration and check the lease of the conductor. A target becomes in
// progress in the transaction that accepts its upgrade, so a crash neither loses nor doubles an upgrade, and two replicas never start
// more of them than the order allows.
package orchestration
