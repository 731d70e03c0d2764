package operator

import (
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// textPending tells why a pending operation does not run.
const textPending = "It is accepted and begins at once, or when the operations of the instance before it have ended."

// runtime shows an instance.
func (a *api) runtime(listed instances.Listed) operatorapi.Runtime {
	instance := listed.Instance

	return operatorapi.Runtime{
		InstanceID:       instance.ID,
		RuntimeID:        instance.RuntimeID,
		GlobalAccountID:  instance.GlobalAccountID,
		SubAccountID:     instance.SubAccountID,
		Provider:         instance.Provider,
		Region:           instance.Region,
		SubAccountRegion: instance.PlatformRegion,
		Name:             instance.Name,
		ShootName:        instance.ShootName,
		ServiceClassID:   instance.ServiceID,
		ServicePlanID:    instance.PlanID,
		ServicePlanName:  instance.PlanName,
		DashboardURL:     instance.DashboardURL,

		SubscriptionAccountID: instance.SubscriptionAccountID,
		MaintenanceVersion:    instance.MaintenanceVersion,
		Status: operatorapi.RuntimeStatus{
			State:         stateOf(listed.Operation),
			Suspended:     instance.Suspended,
			ExpiresAt:     moment(instance.ExpiresAt),
			ExpiredAt:     moment(instance.ExpiredAt),
			CreatedAt:     instance.CreatedAt,
			ModifiedAt:    later(instance.UpdatedAt, listed.Operation.UpdatedAt),
			LastOperation: a.operation(listed.Operation),
		},
	}
}

// operation shows an operation without its timeline.
func (a *api) operation(record process.Record) operatorapi.Operation {
	instanceID, bindingID := worksOn(record)
	shown := operatorapi.Operation{
		ID:             record.ID,
		InstanceID:     instanceID,
		BindingID:      bindingID,
		Kind:           record.Kind,
		State:          string(record.State),
		Description:    record.Description,
		PredecessorID:  record.PredecessorID,
		OrderedBy:      record.OrderedBy,
		Stages:         a.Stages[record.Kind],
		FinishedStages: record.FinishedStages,
		SkippedSteps:   record.SkippedSteps,
		Stage:          record.Stage,
		Step:           record.Step,
		StepBegan:      moment(record.StepBegan),
		Skippable:      a.skippable(record),
		WaitingFor:     record.WaitingFor,
		Replica:        record.Lease.Owner,
		CreatedAt:      record.CreatedAt,
		UpdatedAt:      record.UpdatedAt,
		StartedAt:      moment(record.StartedAt),
		FinishedAt:     moment(record.FinishedAt),

		TimelineRemovedAt: moment(record.TimelineRemoved),
	}

	if problem := record.Problem; problem.Message != "" {
		shown.Problem = &operatorapi.Problem{
			Message: problem.Message, Reason: problem.Reason, Component: problem.Component,
		}
	}

	if !record.State.Terminal() {
		shown.NextRun = moment(record.NextRun)
	}

	return shown
}

// worksOn returns the instance that an operation works on, and the binding where it works on one of its bindings.
func worksOn(record process.Record) (instanceID, bindingID string) {
	instanceID, bindingID, is := environment.BindingOf(record.InstanceID)
	if !is {
		instanceID = record.InstanceID
	}

	return instanceID, bindingID
}

// explained shows an operation with its timeline, and with what that tells about the present.
func (a *api) explained(record process.Record, timeline []process.Entry) operatorapi.Operation {
	shown := a.operation(record)
	shown.Timeline = make([]operatorapi.TimelineEntry, 0, len(timeline))

	for _, entry := range timeline {
		shown.Timeline = append(shown.Timeline, operatorapi.TimelineEntry{
			Stage: entry.Stage, Step: entry.Step, Attempt: entry.Attempt, FirstAttempt: entry.FirstAttempt,
			Began: entry.Began, End: entry.End, Outcome: string(entry.Outcome), Message: entry.Message, NextRun: moment(entry.NextRun),
		})
	}

	if record.State.Terminal() {
		return shown
	}

	shown.Attempt = attempt(record, timeline)
	shown.Why = why(record, timeline)
	shown.System = a.system(record.Problem.Component)

	return shown
}

// attempt counts the runs of the present step since it last succeeded, the one that goes on included.
func attempt(record process.Record, timeline []process.Entry) int {
	count := 0

	for _, entry := range timeline {
		if entry.Step != record.Step || entry.Step == "" {
			continue
		}

		count = entry.Attempt
		if entry.Outcome == process.Done || entry.Outcome == process.NotCompleted {
			count = 0
		}
	}

	if !record.StepBegan.IsZero() {
		count++
	}

	return count
}

// why tells what the operation waits for: what its last attempt said, while none goes on.
func why(record process.Record, timeline []process.Entry) string {
	if record.State == process.Pending {
		return textPending
	}

	if len(timeline) == 0 {
		return ""
	}

	last := timeline[len(timeline)-1]
	if last.Outcome == process.Waiting || last.Outcome == process.Retrying {
		return last.Message
	}

	return ""
}

// moment returns nil for the zero time.
func moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}

	return &at
}

func later(one, other time.Time) time.Time {
	if one.After(other) {
		return one
	}

	return other
}
