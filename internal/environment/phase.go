package environment

import (
	"slices"

	"github.com/environment-broker/environment-broker/process"
)

// Phase is the position of an instance between its creation and its deletion. Updates do not affect it. Phases
// are computed and never stored, so they may be renamed.
type Phase string

// The phases. A failed one follows an operation that failed or was canceled, and left the work half done.
const (
	// Unknown is the phase of an ID without operations: the instance never existed.
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

// phases are those of an instance while an operation runs, and after it failed or succeeded.
type phases struct {
	running, failed, succeeded Phase
}

// phasesByKind has an entry for each kind of operation that affects the phase.
func phasesByKind() map[string]phases {
	return map[string]phases{
		KindProvision:   {Creating, CreationFailed, Active},
		KindSuspend:     {Suspending, SuspensionFailed, Suspended},
		KindResume:      {Resuming, ResumptionFailed, Active},
		KindDeprovision: {Deleting, DeletionFailed, Deleted},
	}
}

// PhaseOf returns the phase of an instance with the operations, the newest first: the newest operation that
// affects the phase decides. A suspension or resumption that was canceled before it started has no effect.
// Without any operation the phase is Unknown.
func PhaseOf(operations []process.Record) Phase {
	byKind := phasesByKind()

	for _, operation := range operations {
		phases, affects := byKind[operation.Kind]
		revocable := operation.Kind == KindSuspend || operation.Kind == KindResume

		if !affects || revocable && operation.State.Terminal() && operation.StartedAt.IsZero() {
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

// Unfinished returns the operations that have not ended and work on the instance as a whole, in the same order.
func Unfinished(operations []process.Record) []process.Record {
	var unfinished []process.Record

	for _, operation := range operations {
		if slices.Contains(Kinds(), operation.Kind) && !operation.State.Terminal() {
			unfinished = append(unfinished, operation)
		}
	}

	return unfinished
}
