package environment

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/process"
)

// OrchestrationPath is the prefix of the keys that OrchestrationKey returns. The broker rejects new instance IDs with this prefix.
const OrchestrationPath = "/orchestrations/"

// OrchestrationState is the state of an orchestration. States are stored and appear in the operator API, so never rename them.
type OrchestrationState string

// Orchestrations start as OrchestrationPending or OrchestrationPlanned. The states for which Ended returns true are final. If
// operators retry failed targets, the orchestration is OrchestrationRetrying until an upgrade starts.
const (
	OrchestrationPending    OrchestrationState = "pending"
	OrchestrationInProgress OrchestrationState = "in progress"
	OrchestrationRetrying   OrchestrationState = "retrying"
	// OrchestrationPaused means that no more upgrades start until an operator resumes the orchestration. OrchestrationGated means
	// the same, but too many failures have stopped the orchestration.
	OrchestrationPaused OrchestrationState = "paused"
	OrchestrationGated  OrchestrationState = "gated"
	// OrchestrationCanceling means that no more upgrades start. The orchestration ends when the upgrades in progress have ended.
	OrchestrationCanceling OrchestrationState = "canceling"
	OrchestrationCanceled  OrchestrationState = "canceled"
	OrchestrationSucceeded OrchestrationState = "succeeded"
	OrchestrationFailed    OrchestrationState = "failed"
	// OrchestrationPlanned means that the orchestration is a plan: it has targets but no conductor, and starts when a user applies
	// it. OrchestrationExpired means that nobody applied the plan within PlanLifetime.
	OrchestrationPlanned OrchestrationState = "planned"
	OrchestrationExpired OrchestrationState = "expired"
)

// OrchestrationStates lists all states.
func OrchestrationStates() []OrchestrationState {
	return []OrchestrationState{
		OrchestrationPlanned, OrchestrationPending, OrchestrationInProgress, OrchestrationRetrying, OrchestrationPaused, OrchestrationGated,
		OrchestrationCanceling, OrchestrationCanceled, OrchestrationSucceeded, OrchestrationFailed, OrchestrationExpired,
	}
}

// PlanLifetime is how long after its creation a plan can be applied.
const PlanLifetime = 7 * 24 * time.Hour

// Ended reports whether the orchestration has ended.
func (s OrchestrationState) Ended() bool {
	return slices.Contains([]OrchestrationState{OrchestrationCanceled, OrchestrationSucceeded, OrchestrationFailed, OrchestrationExpired}, s)
}

// Orchestration upgrades many instances. Its conductor is an operation of KindOrchestrate.
type Orchestration struct {
	ID string
	// Kind is one of the UpgradeKinds.
	Kind  string
	State OrchestrationState
	// Description is a status text for operators.
	Description string
	Parameters  fleet.Parameters
	// OrderedBy is the name of the user who ordered the orchestration.
	OrderedBy            string
	CreatedAt, UpdatedAt time.Time
	// Undoes is the ID of the orchestration whose upgrades this one rolls back, or empty.
	Undoes string
	// AppliedBy is the name of the user who applied the plan at AppliedAt. Both are zero if the orchestration did not start as a
	// plan, or if the plan has not been applied.
	AppliedBy string
	AppliedAt time.Time
	// Wave is the number of the running wave, from 1. SoakUntil is when the next wave begins, or zero while upgrades of the running
	// wave are unfinished.
	Wave      int
	SoakUntil time.Time
}

// Stopped reports whether the orchestration starts no upgrades until an operator resumes it.
func (s OrchestrationState) Stopped() bool {
	return s == OrchestrationPaused || s == OrchestrationGated
}

// TargetState is the state of a target when the conductor last checked it.
type TargetState string

// Targets start as TargetPending or TargetLeftOut. A target in progress has an operation.
const (
	TargetPending    TargetState = "pending"
	TargetInProgress TargetState = "in progress"
	TargetSucceeded  TargetState = "succeeded"
	TargetFailed     TargetState = "failed"
	TargetCanceled   TargetState = "canceled"
	// TargetLeftOut marks an instance that was selected but cannot be upgraded. Target.Description contains the reason.
	TargetLeftOut TargetState = "left out"
)

// TargetStates lists all states.
func TargetStates() []TargetState {
	return []TargetState{TargetPending, TargetInProgress, TargetSucceeded, TargetFailed, TargetCanceled, TargetLeftOut}
}

// Target is an instance that an orchestration has selected.
type Target struct {
	OrchestrationID, InstanceID string
	// OperationID is the ID of the upgrade, or empty before the target is in progress. If the upgrade is retried, OperationID
	// becomes the ID of the new upgrade.
	OperationID string
	// FormerID is the ID of the earlier upgrade that the upgrade retries, or empty if it is not a retry.
	FormerID string
	State    TargetState
	// Description says why the target was left out, was canceled, or is waiting.
	Description string
	// Provider and Region are the values of the instance when it was selected.
	Provider, Region string
	// NotBefore is the earliest start of the upgrade. NotAfter is the latest start, or zero if there is none; an upgrade that has
	// not started by then waits for the next occurrence of Window.
	NotBefore, NotAfter time.Time
	// Window is the maintenance window of the instance in the form of fleet.Window.String, or empty.
	Window string
	// ChosenAt is the start time that the owner has chosen for the upgrade, or zero if there is none. It is before the deadline.
	// ChosenBy is the user who chose it. An upgrade with a chosen time needs no maintenance window, and later waves do not wait for
	// it.
	ChosenAt time.Time
	ChosenBy string
	// FromVersion and ToVersion are the planned versions before and after the upgrade. ToVersion is empty if the upgrade chooses
	// the version. Both are empty for targets that were left out.
	FromVersion, ToVersion string
	// Wave is the number of the wave to which the target belongs, from 1. It is meaningless for targets that were left out.
	Wave int
	// ShootName is the name of the instance's Shoot. It is set only in lists of failed targets, and is empty if the instance was
	// deleted.
	ShootName string
}

// OrchestrationKey returns the key of an orchestration, which is the process.Record.InstanceID of its conductor.
func OrchestrationKey(orchestrationID string) string { return OrchestrationPath + orchestrationID }

// OrchestrationOf returns the ID in a key that OrchestrationKey returned. It returns false for other keys.
func OrchestrationOf(key string) (orchestrationID string, ok bool) {
	return strings.CutPrefix(key, OrchestrationPath)
}

// NewConductor returns a new operation that conducts the orchestration. If operators retry targets of an orchestration that has
// ended, the orchestration gets a second conductor.
func NewConductor(orchestrationID string, at time.Time) (process.New, error) {
	return newOperation(process.New{ID: uuid.NewString(), Kind: KindOrchestrate, InstanceID: OrchestrationKey(orchestrationID), At: at}, Data{})
}
