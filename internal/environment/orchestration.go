package environment

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/fleet"
	"github.com/environment-broker/environment-broker/process"
)

// orchestrationPath begins the key of an orchestration, see OrchestrationKey.
const orchestrationPath = "/orchestrations/"

// OrchestrationState is the state of an orchestration. The states are stored and part of the operator API.
type OrchestrationState string

// Orchestrations start as OrchestrationPending. Canceled, succeeded and failed orchestrations have ended, but targets that failed can be
// retried; the orchestration is then OrchestrationRetrying until an upgrade starts.
const (
	OrchestrationPending    OrchestrationState = "pending"
	OrchestrationInProgress OrchestrationState = "in progress"
	OrchestrationRetrying   OrchestrationState = "retrying"
	// OrchestrationPaused starts no more upgrades until an operator resumes it. OrchestrationGated is the same, after too many failures.
	OrchestrationPaused OrchestrationState = "paused"
	OrchestrationGated  OrchestrationState = "gated"
	// OrchestrationCanceling starts no more upgrades. It ends when those in progress have ended.
	OrchestrationCanceling OrchestrationState = "canceling"
	OrchestrationCanceled  OrchestrationState = "canceled"
	OrchestrationSucceeded OrchestrationState = "succeeded"
	OrchestrationFailed    OrchestrationState = "failed"
	// OrchestrationPlanned is a plan: it has targets but no conductor, and starts when it is applied. OrchestrationExpired is a plan that
	// was not applied within PlanLifetime.
	OrchestrationPlanned OrchestrationState = "planned"
	OrchestrationExpired OrchestrationState = "expired"
)

// PlanLifetime is the time within which a plan can be applied.
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
	// Description is a status for operators.
	Description string
	Parameters  fleet.Parameters
	// OrderedBy is the name of the user who ordered it.
	OrderedBy            string
	CreatedAt, UpdatedAt time.Time
	// Undoes is the ID of the orchestration whose upgrades this one rolls back, or empty.
	Undoes string
	// AppliedBy is the name of the user who applied the plan, at AppliedAt. Both are zero for plans that were not applied, and for
	// orchestrations without a plan.
	AppliedBy string
	AppliedAt time.Time
	// Wave is the wave that runs, from 1. SoakUntil is when the next one begins, or zero while upgrades of this one are unfinished.
	Wave      int
	SoakUntil time.Time
}

// Stopped reports whether the orchestration starts no upgrades until an operator resumes it.
func (s OrchestrationState) Stopped() bool {
	return s == OrchestrationPaused || s == OrchestrationGated
}

// TargetState is the state of a target as its conductor last saw it.
type TargetState string

// Targets start as TargetPending or TargetLeftOut. A target in progress has an operation.
const (
	TargetPending    TargetState = "pending"
	TargetInProgress TargetState = "in progress"
	TargetSucceeded  TargetState = "succeeded"
	TargetFailed     TargetState = "failed"
	TargetCanceled   TargetState = "canceled"
	// TargetLeftOut marks an instance that was selected but cannot be upgraded. Description has the reason.
	TargetLeftOut TargetState = "left out"
)

// Target is an instance of an orchestration.
type Target struct {
	OrchestrationID, InstanceID string
	// OperationID is the ID of the upgrade, which exists once the target is in progress. A retry gets another ID.
	OperationID string
	// FormerID is the ID of the upgrade that a retry repeats, or empty.
	FormerID string
	State    TargetState
	// Description is the reason for which the target was left out or canceled, or waits.
	Description string
	// Provider and Region are those of the instance when it was selected.
	Provider, Region string
	// NotBefore is the earliest start of the upgrade. NotAfter is when it must have started, or else waits for the next occurrence of
	// Window; zero means no end.
	NotBefore, NotAfter time.Time
	// Window is the maintenance window of the instance in the form of fleet.Window.String, or empty.
	Window string
	// ChosenAt is the time before the deadline that the owner has chosen for the upgrade, or zero. ChosenBy is the user who did it. The
	// upgrade then needs no maintenance window, and later waves do not wait for it.
	ChosenAt time.Time
	ChosenBy string
	// FromVersion and ToVersion are the versions before and after the upgrade, as planned. ToVersion is empty if the upgrade chooses the
	// version. Both are empty for targets that were left out.
	FromVersion, ToVersion string
	// Wave is the wave of the target, from 1. That of targets that were left out has no meaning.
	Wave int
	// ShootName is that of the instance. Only lists of failed targets have it, unless the instance was deleted.
	ShootName string
}

// OrchestrationKey returns the process.Record.InstanceID of the conductor of an orchestration.
func OrchestrationKey(orchestrationID string) string { return orchestrationPath + orchestrationID }

// OrchestrationOf returns the ID of the orchestration of a key that OrchestrationKey returned. It returns false for other keys.
func OrchestrationOf(key string) (orchestrationID string, ok bool) {
	return strings.CutPrefix(key, orchestrationPath)
}

// NewConductor returns a new operation that conducts the orchestration. An orchestration that has ended gets another one if operators
// retry its targets.
func NewConductor(orchestrationID string, at time.Time) (process.New, error) {
	return newOperation(process.New{ID: uuid.NewString(), Kind: KindOrchestrate, InstanceID: OrchestrationKey(orchestrationID), At: at}, Data{})
}
