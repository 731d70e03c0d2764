package explain

import (
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// Explanation is what an operation's record says at a moment.
type Explanation struct {
	// At is the moment.
	At          time.Time `json:"at"`
	OperationID string    `json:"operationID"`
	InstanceID  string    `json:"instanceID"`
	Kind        string    `json:"kind"`
	State       string    `json:"state"`
	// Summary is a sentence: all that most people want to know.
	Summary    string     `json:"summary"`
	AcceptedAt time.Time  `json:"acceptedAt"`
	EndedAt    *time.Time `json:"endedAt,omitempty"`
	// OrderedBy is on whose behalf it was accepted.
	OrderedBy string `json:"orderedBy,omitempty"`
	// Place is where the operation stands; none before it began and after it succeeded.
	Place *Place `json:"place,omitempty"`
	// Wait is set while nothing runs and the operation has not ended.
	Wait *Wait `json:"wait,omitempty"`
	// Problem is why the operation failed, or what holds it up.
	Problem *operatorapi.Problem `json:"problem,omitempty"`
	// System is the outside system whose failure holds the operation up, as the replica that was asked sees it.
	System *operatorapi.System `json:"system,omitempty"`
	// SkippedSteps gave up without failing the operation.
	SkippedSteps []string `json:"skippedSteps,omitempty"`
	// Advice is what one can do, a sentence each.
	Advice   []string                    `json:"advice,omitempty"`
	Timeline []operatorapi.TimelineEntry `json:"timeline,omitempty"`
	// TimelineRemovedAt is when the broker removed the timeline, because the operation had ended long ago.
	TimelineRemovedAt *time.Time `json:"timelineRemovedAt,omitempty"`
}

// Place is a step in its stage.
type Place struct {
	Stage string `json:"stage"`
	// StageNumber counts from 1; 0 when the stage is none of the process as it is today.
	StageNumber int    `json:"stageNumber,omitempty"`
	StageCount  int    `json:"stageCount,omitempty"`
	Step        string `json:"step"`
	Attempt     int    `json:"attempt,omitempty"`
	// Since is when the step was tried for the first time since it last succeeded.
	Since *time.Time `json:"since,omitempty"`
	// Replica carries the operation at this moment.
	Replica string `json:"replica,omitempty"`
}

// Wait tells what the operation waits for.
type Wait struct {
	Why string `json:"why,omitempty"`
	// Until is when it goes on at the latest.
	Until *time.Time `json:"until,omitempty"`
	// Event makes it go on before that.
	Event string `json:"event,omitempty"`
}

// Of explains the operation at the moment.
func Of(operation operatorapi.Operation, now time.Time) Explanation {
	return Explanation{
		At:           now,
		OperationID:  operation.ID,
		InstanceID:   operation.InstanceID,
		Kind:         operation.Kind,
		State:        operation.State,
		Summary:      summary(operation, now),
		AcceptedAt:   operation.CreatedAt,
		OrderedBy:    operation.OrderedBy,
		EndedAt:      operation.FinishedAt,
		Place:        place(operation),
		Wait:         wait(operation),
		Problem:      operation.Problem,
		System:       operation.System,
		SkippedSteps: operation.SkippedSteps,
		Advice:       advice(operation, now),
		Timeline:     operation.Timeline,

		TimelineRemovedAt: operation.TimelineRemovedAt,
	}
}

// Elapsed is how long the operation has taken so far, or took.
func (e Explanation) Elapsed() time.Duration {
	switch {
	case e.AcceptedAt.IsZero():
		return 0
	case e.EndedAt != nil:
		return e.EndedAt.Sub(e.AcceptedAt)
	}

	return max(e.At.Sub(e.AcceptedAt), 0)
}

// Ended reports whether nothing will happen any more.
func (e Explanation) Ended() bool { return process.State(e.State).Terminal() }

func place(operation operatorapi.Operation) *Place {
	if operation.Stage == "" || process.State(operation.State) == process.Succeeded {
		return nil
	}

	return &Place{
		Stage:       operation.Stage,
		StageNumber: slices.Index(operation.Stages, operation.Stage) + 1,
		StageCount:  len(operation.Stages),
		Step:        operation.Step,
		Attempt:     operation.Attempt,
		Since:       since(operation),
		Replica:     operation.Replica,
	}
}

// since finds the beginning of the step's first attempt. The steps before it in its stage may have run in between.
func since(operation operatorapi.Operation) *time.Time {
	first := operation.StepBegan

	for _, entry := range slices.Backward(operation.Timeline) {
		if entry.Step != operation.Step {
			continue
		}

		if outcome := process.Outcome(entry.Outcome); outcome == process.Done || outcome == process.NotCompleted {
			break
		}

		first = &entry.Began

		if entry.Attempt == 1 || entry.FirstAttempt == 1 {
			break
		}
	}

	return first
}

func wait(operation operatorapi.Operation) *Wait {
	if process.State(operation.State).Terminal() || operation.Replica != "" {
		return nil
	}

	why := operation.Why
	if why == "" && process.State(operation.State) == process.Pending {
		why = "another operation of the instance has to end first"
	}

	return &Wait{Why: why, Until: operation.NextRun, Event: operation.WaitingFor}
}
