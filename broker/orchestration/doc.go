// Package orchestration accepts orchestrations and conducts them: it selects their targets and starts upgrades. The conductor's
// process is defined in process/orchestrating.
//
// The conductor writes in transactions that hold the orchestration's lock and check the conductor's lease. The transaction that
// accepts an upgrade also marks its target as in progress. A crash therefore neither loses nor duplicates an upgrade, and two
// replicas together never start more upgrades than the limits of the orchestration allow.
package orchestration
