package environment

import "github.com/environment-broker/environment-broker/process"

// Standing is where an instance is in its life. Updates do not concern it.
type Standing string

// The standings. One that failed was canceled or failed: what was begun is neither done nor undone.
const (
	Unknown          Standing = "unknown"
	Creating         Standing = "creating"
	CreationFailed   Standing = "creation failed"
	Active           Standing = "active"
	Suspending       Standing = "suspending"
	SuspensionFailed Standing = "suspension failed"
	Suspended        Standing = "suspended"
	Resuming         Standing = "resuming"
	ResumptionFailed Standing = "resumption failed"
	Deleting         Standing = "deleting"
	DeletionFailed   Standing = "deletion failed"
	Deleted          Standing = "deleted"
)

// course is what each kind of operation means for an instance, under way, ended badly and succeeded.
type course struct {
	underWay, failed, succeeded Standing
}

func courses() map[string]course {
	return map[string]course{
		KindProvision:   {Creating, CreationFailed, Active},
		KindSuspend:     {Suspending, SuspensionFailed, Suspended},
		KindResume:      {Resuming, ResumptionFailed, Active},
		KindDeprovision: {Deleting, DeletionFailed, Deleted},
	}
}

// StandingOf tells where an instance is, by its operations, the newest first. A suspension or a resumption that was canceled before it
// began has changed nothing.
func StandingOf(operations []process.Record) Standing {
	courses := courses()

	for _, operation := range operations {
		course, counts := courses[operation.Kind]
		revocable := operation.Kind == KindSuspend || operation.Kind == KindResume

		if !counts || revocable && operation.State.Terminal() && operation.StartedAt.IsZero() {
			continue
		}

		switch {
		case !operation.State.Terminal():
			return course.underWay
		case operation.State == process.Succeeded:
			return course.succeeded
		default:
			return course.failed
		}
	}

	return Unknown
}

// Unfinished returns those of an instance's operations that have not ended and concern it as a whole, the newest first.
func Unfinished(operations []process.Record) []process.Record {
	var unfinished []process.Record

	for _, operation := range operations {
		_, lives := courses()[operation.Kind]
		if (lives || operation.Kind == KindUpdate) && !operation.State.Terminal() {
			unfinished = append(unfinished, operation)
		}
	}

	return unfinished
}
