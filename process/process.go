package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
)

// Step is one piece of a process. It may run many times, on any replica: it checks whether its work is done, does it, and never
// waits inside. It returns the operation, modified, and
//
//   - 0, nil: done, the next step follows;
//   - d, nil: the worker is freed, the stage begins again after d;
//   - 0, err: the operation fails, unless the error's kind is one that is retried: then the stage's RetryPolicy decides.
//
// A duration beside an error is a programming error and fails the operation.
type Step[D any] interface {
	Name() string
	Run(ctx context.Context, operation Operation[D], log logrus.FieldLogger) (Operation[D], time.Duration, error)
}

// Process is how operations of a kind are carried: stages in order.
type Process[D any] struct {
	Kind   string
	Stages []Stage[D]
	// Limit is how long an operation may take from its first claim; then it fails.
	Limit time.Duration
}

// Stage is a group of steps that is done as a whole: recorded when all have succeeded, begun anew when one has to come back.
type Stage[D any] struct {
	Name  string
	Retry RetryPolicy
	Steps []Task[D]
	// RetryFrom names the stage with which the retry of an operation begins that came to its end in this one. Without it that is
	// this stage itself. A stage that waits for something ordered earlier names the one that orders it.
	RetryFrom string
}

// Task is a step in its place.
type Task[D any] struct {
	Step Step[D]
	// When, if set, says whether the step is run at all.
	When func(Operation[D]) bool
	// Skippable says that an operator may have the step left out: nothing after it needs what it does.
	Skippable bool
}

// Steps lists steps that are always run.
func Steps[D any](steps ...Step[D]) []Task[D] {
	tasks := make([]Task[D], 0, len(steps))
	for _, step := range steps {
		tasks = append(tasks, Task[D]{Step: step})
	}

	return tasks
}

// Skippable lists steps that are run unless an operator has them left out.
func Skippable[D any](steps ...Step[D]) []Task[D] {
	tasks := Steps(steps...)
	for i := range tasks {
		tasks[i].Skippable = true
	}

	return tasks
}

// StageNames lists the stages in order.
func (p Process[D]) StageNames() []string {
	names := make([]string, 0, len(p.Stages))
	for _, stage := range p.Stages {
		names = append(names, stage.Name)
	}

	return names
}

// Validate finds what would only show at run time: missing names, names given twice, empty stages, impossible limits.
func (p Process[D]) Validate() error {
	if p.Kind == "" {
		return errors.New("a process has no kind")
	}

	if p.Limit <= 0 || len(p.Stages) == 0 {
		return fmt.Errorf("process %q needs a limit and at least one stage", p.Kind)
	}

	stages, steps := map[string]bool{}, map[string]bool{}

	for _, stage := range p.Stages {
		if stage.Name == "" || stages[stage.Name] {
			return fmt.Errorf("process %q: stage name %q is empty or used twice", p.Kind, stage.Name)
		}

		if stage.RetryFrom != "" && !stages[stage.RetryFrom] {
			return fmt.Errorf("process %q: stage %q: RetryFrom %q is not an earlier stage", p.Kind, stage.Name, stage.RetryFrom)
		}

		stages[stage.Name] = true

		if len(stage.Steps) == 0 {
			return fmt.Errorf("process %q: stage %q has no step", p.Kind, stage.Name)
		}

		if err := stage.Retry.validate(); err != nil {
			return fmt.Errorf("process %q: stage %q: %w", p.Kind, stage.Name, err)
		}

		for _, task := range stage.Steps {
			if task.Step == nil || task.Step.Name() == "" || steps[task.Step.Name()] {
				return fmt.Errorf("process %q: stage %q: a step is missing, has no name or a name used twice", p.Kind, stage.Name)
			}

			steps[task.Step.Name()] = true
		}
	}

	return nil
}
