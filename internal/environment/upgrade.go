package environment

import "time"

// Upgrade describes an upgrade of an instance's Kyma or cluster. Its JSON form is stored with operations.
type Upgrade struct {
	// Version is the version after the upgrade. For Kyma, it is empty if the operation chooses the account's version or the default
	// version.
	Version string `json:"version,omitempty"`
	// MaintenanceVersion is Instance.MaintenanceVersion after the upgrade of a cluster. It is empty if the upgrade keeps it.
	MaintenanceVersion string `json:"maintenanceVersion,omitempty"`
	// NotAfter is the latest start of the operation: the end of a maintenance window, or a deadline. Zero means no limit.
	NotAfter time.Time `json:"notAfter,omitzero"`
	// RollsBack is the ID of the Kyma upgrade that the operation rolls back, or empty. Former then describes Kyma before that
	// upgrade, and Version is its version.
	RollsBack string `json:"rollsBack,omitempty"`
	Former    *Kyma  `json:"former,omitempty"`
	// DryRun reports that the operation only describes the upgrade.
	DryRun bool `json:"dryRun,omitempty"`
	// Preempted reports that the operation ended early, because the runtime of the instance is being removed or was removed.
	Preempted bool `json:"preempted,omitempty"`
}
