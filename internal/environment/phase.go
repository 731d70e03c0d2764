package environment

import (
	"slices"

	"github.com/environment-broker/environment-broker/process"
)

// Phase describes where an instance is in its life cycle. Updates do not change the phase. Phases are computed and never stored,
// so they can be renamed.
type Phase string

// Phases. A phase whose name ends in Failed means that the operation failed or was canceled, and left its work incomplete.
const (
	// Unknown is the phase of an ID for which no operation exists: the instance never existed.
	Unknown          Phase = "unknown"
	Creating         Phase = "creating"
	CreationFailed   Phase = "creation failed"
	Active           Phase = "active"
	Suspending       Phase = "suspending"
	SuspensionFailed Phase = "suspension failed"
	Suspended        Phase = "suspended"
	Resuming         Phase = "resuming"
	ResumptionFailed Phase = "resumption failed"
	Deleting         Phase = "deleting"
	DeletionFailed   Phase = "deletion failed"
	Deleted          Phase = "deleted"
)

// WithoutRuntime reports whether the runtime is being removed or was removed.
func (p Phase) WithoutRuntime() bool {
	return slices.Contains([]Phase{Suspending, Suspended, Deleting, Deleted}, p)
}

// phases contains the phases of an instance while an operation is running, after it failed, and after it succeeded.
type phases struct {
	running, failed, succeeded Phase
}

// phasesByKind returns the phases for each kind of operation that affects the phase.
func phasesByKind() map[string]phases {
	return map[string]phases{
		KindProvision:   {Creating, CreationFailed, Active},
		KindSuspend:     {Suspending, SuspensionFailed, Suspended},
		KindResume:      {Resuming, ResumptionFailed, Active},
		KindDeprovision: {Deleting, DeletionFailed, Deleted},
	}
}

// PhaseOf returns the phase of the instance with the given operations, newest first. The newest operation that affects the phase
// determines it. A suspension or resumption that ended while it was still pending is ignored. If no operation affects the phase,
// PhaseOf returns Unknown.
func PhaseOf(operations []process.Record) Phase {
	byKind := phasesByKind()

	for _, operation := range operations {
		phases, affects := byKind[operation.Kind]
		revocable := operation.Kind == KindSuspend || operation.Kind == KindResume

		if !affects || revocable && operation.NeverStarted() {
			continue
		}

		switch {
		case !operation.State.Terminal():
			return phases.running
		case operation.State == process.Succeeded:
			return phases.succeeded
		default:
			return phases.failed
		}
	}

	return Unknown
}

// Unfinished returns the given operations that have not ended, in the given order. It omits operations that do not concern the
// instance as a whole, such as those on bindings.
func Unfinished(operations []process.Record) []process.Record {
	var unfinished []process.Record

	for _, operation := range operations {
		if slices.Contains(Kinds(), operation.Kind) && !operation.State.Terminal() {
			unfinished = append(unfinished, operation)
		}
	}

	return unfinished
}
