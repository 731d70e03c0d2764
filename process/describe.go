package process

import "time"

// Description describes a process to operators.
type Description struct {
	Kind string
	// Limit is the maximum duration of an operation, including all waits.
	Limit time.Duration
	// Steps are in the order in which they run.
	Steps []StepDescription
}

// StepDescription describes a step to operators. Notes come from the step's Task.
type StepDescription struct {
	Notes

	Stage, Step string
	// Condition is empty for a step that always runs. Off reports that the configuration turns the step off.
	Condition string
	Off       bool
	Skippable bool
	// OwnLimit reports that Notes.Limit counts from the first attempt of the step. Otherwise, Notes.Limit is the retry window of the
	// stage, which counts from the first of consecutive failed attempts.
	OwnLimit bool
	// Retry applies to the retryable errors of the step, unless the step itself decides when it is retried.
	Retry RetryPolicy
	// RetryFrom is the stage from which an operator's retry starts if the operation ended in this step.
	RetryFrom string
}

// Describe returns the description of the process and its steps, for the operator API and the documentation.
func (p Process[D]) Describe() Description {
	described := Description{Kind: p.Kind, Limit: p.Limit}

	for _, stage := range p.Stages {
		from := stage.RetryFrom
		if from == "" {
			from = stage.Name
		}

		for _, task := range stage.Steps {
			notes := task.Notes
			if notes.Limit == 0 {
				notes.Limit = stage.Retry.Window
			}

			described.Steps = append(described.Steps, StepDescription{
				Notes: notes, Stage: stage.Name, Step: task.Step.Name(), Condition: task.When.Text, Off: task.When.Off,
				Skippable: task.Skippable, OwnLimit: task.Notes.Limit != 0, Retry: stage.Retry, RetryFrom: from,
			})
		}
	}

	return described
}

// Stages returns the names of the stages in order.
func (d Description) Stages() []string {
	var names []string

	for _, step := range d.Steps {
		if len(names) == 0 || names[len(names)-1] != step.Stage {
			names = append(names, step.Stage)
		}
	}

	return names
}

// Step returns the description of the step, or a description without a name if the process has no such step.
func (d Description) Step(name string) StepDescription {
	for _, step := range d.Steps {
		if step.Step == name {
			return step
		}
	}

	return StepDescription{}
}

// StepsFor returns, in order, the names of the steps whose conditions are met in the operation.
func (p Process[D]) StepsFor(operation Operation[D]) []string {
	names := []string{}

	for _, stage := range p.Stages {
		for _, task := range stage.Steps {
			if task.When.Met(operation) {
				names = append(names, task.Step.Name())
			}
		}
	}

	return names
}

// Describe returns the descriptions of the processes, in the given order.
func Describe[D any](processes []Process[D]) []Description {
	described := make([]Description, 0, len(processes))
	for _, process := range processes {
		described = append(described, process.Describe())
	}

	return described
}
