package explain

import (
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// tooLong is how long even a cluster does not take.
const tooLong = time.Hour

// stuck reports whether an error holds the operation up, or its step goes on and on.
func (s situation) stuck() bool {
	begin := since(s.Operation)

	return s.is(process.InProgress) && (s.Problem != nil || begin != nil && s.now.Sub(*begin) >= tooLong)
}

// retried reports whether another operation goes on where this one ended.
func (s situation) retried() bool {
	return slices.ContainsFunc(s.Timeline, func(entry operatorapi.TimelineEntry) bool {
		return process.Outcome(entry.Outcome) == process.Retried
	})
}

// mayBeRetried reports whether it ended so that an operator may have it go on.
func (s situation) mayBeRetried() bool {
	return (s.is(process.Failed) || s.is(process.Canceled)) && !s.retried()
}

// interventions are what operators can do about the operation, and users without their role.
func interventions() []rule {
	return []rule{
		{
			applies: func(s situation) bool { return s.stuck() && s.Skippable },
			advice:  "If what the step does is of no use any more, have it left out: ebctl operation skip {operation} --step {step} --reason WHY",
		},
		{
			applies: func(s situation) bool { return s.stuck() || s.is(process.Pending) },
			advice:  "If it is not wanted any more, end it: ebctl operation cancel {operation} --reason WHY",
		},
		{
			applies: situation.retried,
			advice:  "It was retried: the end of the timeline names the operation that goes on.",
		},
		{
			applies: func(s situation) bool { return s.mayBeRetried() && s.is(process.Failed) },
			advice:  "When the cause is gone, go on from where it failed: ebctl operation retry {operation} --reason WHY",
		},
		{
			applies: func(s situation) bool { return s.mayBeRetried() && s.is(process.Failed) && s.Skippable },
			advice:  "Or go on without the step: ebctl operation retry {operation} --skip {step} --reason WHY",
		},
		{
			applies: func(s situation) bool { return s.mayBeRetried() && s.is(process.Canceled) },
			advice:  "Unless a later operation has taken its place, it can go on: ebctl operation retry {operation} --reason WHY",
		},
		{
			applies: func(s situation) bool {
				return s.mayBeRetried() && s.is(process.Failed) && s.Kind == environment.KindProvision
			},
			advice: "Or remove what there is of it, then create it anew: ebctl instance delete {instance}",
		},
		{
			applies: func(s situation) bool {
				return s.mayBeRetried() && s.is(process.Failed) && s.Kind == environment.KindDeprovision
			},
			advice: "Or delete it again: ebctl instance delete {instance}",
		},
		{
			applies: func(s situation) bool {
				return s.mayBeRetried() && s.is(process.Failed) && s.Kind == environment.KindUpdate
			},
			advice: "The instance is told as it was before. Or ask for something else: ebctl instance update {instance} --parameters JSON",
		},
		{
			applies: func(s situation) bool {
				return s.mayBeRetried() && s.is(process.Failed) && s.Kind == environment.KindSuspend
			},
			advice: "Or suspend it again; until that has succeeded it is neither changed nor resumed: ebctl instance suspend {instance}",
		},
		{
			applies: func(s situation) bool {
				return s.mayBeRetried() && s.is(process.Failed) && s.Kind == environment.KindResume
			},
			advice: "Or resume it again, or remove what there is of it: ebctl instance resume {instance}, ebctl instance suspend {instance}",
		},
	}
}
