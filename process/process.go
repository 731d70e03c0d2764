package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
)

// Step is one unit of work in a process. It may run many times, on any replica. It first checks whether its work is already
// done, and it returns instead of waiting. Its name is unique within the process. The name never changes, because users and
// operators see it and it is stored with running operations. Run is called from one goroutine for each operation, and
// concurrently for different operations.
//
// Run returns the modified operation and
//
//   - 0, nil: the step is done and the next one runs;
//   - d, nil: the step must run again: the worker becomes free, and the stage restarts after d;
//   - 0, err: the operation fails, or, if the kind of the error is retryable, the stage's RetryPolicy applies.
//
// Returning both a duration and an error is a programming error and fails the operation. A panic fails it, too. The context ends
// when the replica stops or loses the lease, or when the operation reaches its limit. An attempt that was interrupted this way
// does not count as a failure.
type Step[D any] interface {
	Name() string
	Run(ctx context.Context, operation Operation[D], log logrus.FieldLogger) (Operation[D], time.Duration, error)
}

// RunFunc has the signature of Step.Run.
type RunFunc[D any] func(ctx context.Context, operation Operation[D], log logrus.FieldLogger) (Operation[D], time.Duration, error)

// StepFunc returns a step that calls run. It suits steps that need no type of their own.
func StepFunc[D any](name string, run RunFunc[D]) Step[D] { return stepFunc[D]{name: name, run: run} }

type stepFunc[D any] struct {
	name string
	run  RunFunc[D]
}

func (s stepFunc[D]) Name() string { return s.name }

func (s stepFunc[D]) Run(ctx context.Context, operation Operation[D], log logrus.FieldLogger) (Operation[D], time.Duration, error) {
	return s.run(ctx, operation, log)
}

// Action returns a step that calls do and is done if do returns nil. Users then see the description. If it is empty, they still
// see the previous one. Action suits steps that neither wait nor change the data of the operation.
func Action[D any](name, description string, do func(ctx context.Context, operation Operation[D]) error) Step[D] {
	return StepFunc(name, func(ctx context.Context, operation Operation[D], _ logrus.FieldLogger) (Operation[D], time.Duration, error) {
		if err := do(ctx, operation); err != nil {
			return operation, 0, err
		}

		operation.Description = cmp.Or(description, operation.Description)

		return operation, 0, nil
	})
}

// Final returns a last step whose only work is to set the effect of the operation. Users see the description.
func Final[D any](name, description string, effect func(operation Operation[D]) Effect) Step[D] {
	return StepFunc(name, func(_ context.Context, operation Operation[D], _ logrus.FieldLogger) (Operation[D], time.Duration, error) {
		operation.Effect, operation.Description = effect(operation), description

		return operation, 0, nil
	})
}

// Process defines how operations of a kind run. D is the data that its steps share. D must survive encoding to JSON and back.
type Process[D any] struct {
	// Kind is stored with every operation and never changes.
	Kind string
	// Stages run in order. A run skips finished stages by name, so a new release may add stages while operations are
	// unfinished.
	Stages []Stage[D]
	// Limit is the maximum duration of an operation, counted from its first claim and including all waits. After that the
	// operation fails.
	Limit time.Duration
	// Succeeded is the description of operations that have succeeded. If it is empty, they keep the description that their last
	// step has set. A process whose last step can be skipped, or sets no description, needs it.
	Succeeded string
}

// Stage is a group of steps that finishes as a whole. It is recorded once all its steps have succeeded, and it restarts from
// its first step if one of them has to run again.
type Stage[D any] struct {
	// Name is unique within the process. It is stored once the stage has finished.
	Name string
	// Retry applies to the retryable errors of all steps in the stage.
	Retry RetryPolicy
	Steps []Task[D]
	// RetryFrom names an earlier stage. When an operator retries an operation that ended in this stage, the retry starts there.
	// It defaults to this stage. A stage that waits for the result of a request names the stage that sends the request.
	RetryFrom string
}

// Task adds a step to a stage, with the conditions under which it runs or can be skipped.
type Task[D any] struct {
	Step Step[D]
	// When decides whether the step runs. The zero value means always.
	When Condition[D]
	// Skippable allows operators to skip the step. No later step may depend on the result of a skippable step.
	Skippable bool
	// Notes describe the step to operators. The engine does not use them.
	Notes Notes
}

// Condition decides whether a step runs.
type Condition[D any] struct {
	// Text describes the condition to operators, as a phrase such as "not own_cluster".
	Text string
	// Holds reports whether the step runs. It is evaluated in every run of the stage and must only read the operation. Nil means
	// that the step always runs, or that the step itself checks a condition that depends on the database or on another system.
	Holds func(Operation[D]) bool
	// Off reports that the configuration of the service turns the step off. Holds is then not evaluated.
	Off bool
}

// Met reports whether the step runs in the operation.
func (c Condition[D]) Met(operation Operation[D]) bool {
	return !c.Off && (c.Holds == nil || c.Holds(operation))
}

// Notes describe a step to operators.
type Notes struct {
	// Does says in one short sentence what the step does.
	Does string
	// System is the system that the step calls. It is empty if the step only uses the database.
	System string
	// Creates names the objects that the step creates in the system. It is empty for steps that create nothing.
	Creates string
	// Limit is how long the step waits or retries before it gives up. Zero means the retry window of the stage.
	Limit time.Duration
	// Optional reports that the operation continues after the step has given up.
	Optional bool
}

// Steps returns a task for each step. The steps always run, and operators may not skip them.
func Steps[D any](steps ...Step[D]) []Task[D] {
	tasks := make([]Task[D], 0, len(steps))
	for _, step := range steps {
		tasks = append(tasks, Task[D]{Step: step})
	}

	return tasks
}

// Skippable is like Steps, but operators may skip the steps.
func Skippable[D any](steps ...Step[D]) []Task[D] {
	tasks := Steps(steps...)
	for i := range tasks {
		tasks[i].Skippable = true
	}

	return tasks
}

// endsWith reports whether the step is the last one of the process.
func (p Process[D]) endsWith(step string) bool {
	tasks := p.Stages[len(p.Stages)-1].Steps

	return tasks[len(tasks)-1].Step.Name() == step
}

// StageNames lists the names of the stages in order.
func (p Process[D]) StageNames() []string {
	names := make([]string, 0, len(p.Stages))
	for _, stage := range p.Stages {
		names = append(names, stage.Name)
	}

	return names
}

// isUnnamed reports whether the condition restricts the step but has no text.
func (c Condition[D]) isUnnamed() bool { return (c.Holds != nil || c.Off) && c.Text == "" }

// Validate reports mistakes that would otherwise show only at run time: missing or duplicate names, empty stages, invalid limits.
// NewEngine calls it for every process.
func (p Process[D]) Validate() error {
	if p.Kind == "" {
		return errors.New("the process has no kind")
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

		if err := stage.validate(steps); err != nil {
			return fmt.Errorf("process %q: stage %q: %w", p.Kind, stage.Name, err)
		}
	}

	return nil
}

// validate reports mistakes in the stage. It adds the stage's step names to steps, to detect duplicates across stages.
func (s Stage[D]) validate(steps map[string]bool) error {
	if len(s.Steps) == 0 {
		return errors.New("it has no step")
	}

	if err := s.Retry.validate(); err != nil {
		return err
	}

	for _, task := range s.Steps {
		if task.Step == nil || task.Step.Name() == "" || steps[task.Step.Name()] {
			return errors.New("a step is nil, has no name, or has a name that is used twice")
		}

		if task.When.isUnnamed() {
			return fmt.Errorf("step %q has a condition without a text", task.Step.Name())
		}

		steps[task.Step.Name()] = true
	}

	return nil
}
