package stepstest

import (
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

// Effect is the type of Operation.Effect in tests. Run calls it after the last step.
type Effect func() error

// Shown returns the visible result of an attempt: the text of its error, or the message of the operation that it returns.
func Shown(after process.Operation[environment.Data], err error) string {
	if err != nil {
		return failure.Of(err).Text
	}

	return after.Message()
}

// Run runs the steps of the stages in order, as the engine does, until one of them waits or fails. After the last step it executes the
// effect.
func Run(t *testing.T, stages []process.Stage[environment.Data], operation process.Operation[environment.Data],
) (process.Operation[environment.Data], time.Duration, error) {
	t.Helper()

	var (
		wait time.Duration
		err  error
	)

	for _, stage := range stages {
		for _, task := range stage.Steps {
			if !task.When.Met(operation) {
				continue
			}

			if operation, wait, err = task.Step.Run(t.Context(), operation, logging.Discard()); err != nil || wait != 0 {
				return operation, wait, err
			}
		}
	}

	if made, is := operation.Effect.(Effect); is {
		err = made()
	}

	return operation, 0, err
}
