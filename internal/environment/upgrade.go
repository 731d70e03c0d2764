package environment

import "time"

// Upgrade describes an upgrade of an instance's Kyma or cluster. Its JSON form is stored with operations.
type Upgrade struct {
	// Version is the version after the upgrade. For Kyma, it can be empty: the operation then chooses the version configured for
	// the account, or else the default version.
	Version string `json:"version,omitempty"`
	// MaintenanceVersion is Instance.MaintenanceVersion after the upgrade of a cluster, or empty if the upgrade does not change the
	// instance's value.
	MaintenanceVersion string `json:"maintenanceVersion,omitempty"`
	// NotAfter is the latest time at which the operation may start: the end of a maintenance window, or a deadline. Zero means no
	// limit.
	NotAfter time.Time `json:"notAfter,omitzero"`
	// RollsBack is the ID of the Kyma upgrade that the operation rolls back, or empty. If it is set, Former describes Kyma as it
	// was before that upgrade, and Version is the Kyma version at that time.
	RollsBack string `json:"rollsBack,omitempty"`
	Former    *Kyma  `json:"former,omitempty"`
	// DryRun means that the operation only describes the upgrade and changes nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// Preempted means that the operation ended early, because the runtime of the instance is being removed or was removed.
	Preempted bool `json:"preempted,omitempty"`
}
