package views

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// Stage is a stage of an operation in its timeline.
type Stage struct {
	Name string
	// State is done, current, failed or ahead, and doubles as the stage's CSS class. A stage in which the operation was canceled
	// counts as failed.
	State string
	// Began is the start of the first attempt in the stage, and End is the end of the last one. Both are zero if there are no
	// attempts.
	Began, End time.Time
	Steps      []Step
	// Ahead are the steps that have not run yet.
	Ahead []string
}

// Took returns the time from the start of the first attempt to the end of the last.
func (s Stage) Took() time.Duration { return s.End.Sub(s.Began) }

// Step is a step with its attempts, oldest first.
type Step struct {
	Name    string
	Entries []operatorapi.TimelineEntry
	// Running is when the current attempt began. It is zero if no attempt is running.
	Running time.Time
}

// last returns the newest finished attempt. If the first attempt is still running, it returns an entry without an outcome.
func (s Step) last() operatorapi.TimelineEntry {
	if len(s.Entries) == 0 {
		return operatorapi.TimelineEntry{Step: s.Name, Began: s.Running, End: s.Running}
	}

	return s.Entries[len(s.Entries)-1]
}

// earlier returns the attempts before the newest one, newest first. It omits an attempt if the attempt after it has the same outcome
// and message.
func (s Step) earlier() []operatorapi.TimelineEntry {
	var found []operatorapi.TimelineEntry

	for i := len(s.Entries) - 2; i >= 0; i-- {
		next := s.Entries[i+1]
		if s.Entries[i].Outcome != next.Outcome || s.Entries[i].Message != next.Message {
			found = append(found, s.Entries[i])
		}
	}

	return found
}

// tone returns the CSS class for the step's color.
func (s Step) tone() string {
	if !s.Running.IsZero() {
		return "busy"
	}

	return outcomeTone(s.last().Outcome)
}

// attempts describes the attempts of an entry, such as "attempt 3" or "attempts 3 to 12". It returns an empty string for a single
// attempt.
func attempts(entry operatorapi.TimelineEntry) string {
	first := cmp.Or(entry.FirstAttempt, entry.Attempt)

	switch {
	case entry.Attempt <= 1:
		return ""
	case first != entry.Attempt:
		return fmt.Sprintf("attempts %d to %d", first, entry.Attempt)
	default:
		return "attempt " + strconv.Itoa(entry.Attempt)
	}
}

// outcomeTone returns the CSS class for the color of an outcome.
func outcomeTone(outcome string) string {
	switch process.Outcome(outcome) {
	case process.Done, process.OperationSucceeded:
		return "ok"
	case process.StepFailed, process.OperationFailed:
		return "bad"
	case process.Retrying, process.NotCompleted, process.Skipped, process.SkipRequested, process.CancelRequested, process.OperationCanceled:
		return "warn"
	case process.Waiting:
		return "busy"
	default:
		return "idle"
	}
}

// Stages returns the stages of an operation with its attempts, in the order of the process. Stages from earlier versions of the
// process come last. steps maps each stage to the names of its enabled steps.
func Stages(operation operatorapi.Operation, steps map[string][]string) []Stage {
	names := slices.Clone(operation.Stages)

	for _, entry := range operation.Timeline {
		if entry.Step != "" && !slices.Contains(names, entry.Stage) {
			names = append(names, entry.Stage)
		}
	}

	stages := make([]Stage, 0, len(names))
	for _, name := range names {
		stages = append(stages, stage(operation, name, steps[name]))
	}

	return stages
}

// stage returns the named stage of an operation. The attempts of its steps come from the operation's timeline. steps are the names
// of the enabled steps.
func stage(operation operatorapi.Operation, name string, steps []string) Stage {
	shown := Stage{Name: name, State: stageState(operation, name)}

	for _, entry := range operation.Timeline {
		if entry.Stage != name || entry.Step == "" {
			continue
		}

		if shown.Began.IsZero() {
			shown.Began = entry.Began
		}

		shown.End = entry.End
		step := shown.step(entry.Step)
		step.Entries = append(step.Entries, entry)
	}

	if operation.Stage == name && !operation.StepBegan.IsZero() && unfinished(operation) {
		shown.step(operation.Step).Running = operation.StepBegan
	}

	if shown.State == "done" {
		return shown
	}

	for _, step := range steps {
		if !slices.ContainsFunc(shown.Steps, func(seen Step) bool { return seen.Name == step }) {
			shown.Ahead = append(shown.Ahead, step)
		}
	}

	return shown
}

// step returns the step with the given name, and adds it if it is missing.
func (s *Stage) step(name string) *Step {
	at := slices.IndexFunc(s.Steps, func(step Step) bool { return step.Name == name })
	if at < 0 {
		s.Steps = append(s.Steps, Step{Name: name})
		at = len(s.Steps) - 1
	}

	return &s.Steps[at]
}

// stageState returns the value of Stage.State for the named stage.
func stageState(operation operatorapi.Operation, name string) string {
	switch {
	case slices.Contains(operation.FinishedStages, name), operation.State == operatorapi.OperationStateSucceeded:
		return "done"
	case operation.Stage != name:
		return "ahead"
	case unfinished(operation):
		return "current"
	default:
		return "failed"
	}
}

// events returns the entries of the timeline that concern the whole operation.
func events(operation operatorapi.Operation) []operatorapi.TimelineEntry {
	return slices.DeleteFunc(slices.Clone(operation.Timeline), func(entry operatorapi.TimelineEntry) bool { return entry.Step != "" })
}
