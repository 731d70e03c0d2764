package process

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
)

var errPanic = errors.New("a step panicked")

// call runs a step.
func call[D any](ctx context.Context, step Step[D], operation Operation[D], log logrus.FieldLogger,
) (result Operation[D], wait time.Duration, err error) {
	panicked := guard(log, func() { result, wait, err = step.Run(ctx, operation, log) })
	if panicked != nil {
		return operation, 0, panicked
	}

	return result, wait, err
}

// guard does the work of a process. A panic in it is an internal failure of this operation only.
func guard(log logrus.FieldLogger, work func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			log.WithField(logging.Stack, string(debug.Stack())).Errorf("step panicked: %v", value)

			err = failure.Wrap(failure.Internal, errPanic, "internal error")
		}
	}()

	work()

	return nil
}

// misuse finds returns that break the contract of Step. They fail loudly: going on would lose data or hide an error.
func misuse[D any](before, after Operation[D], wait time.Duration, err error) error {
	var fault string

	switch {
	case errors.Is(err, errPanic):
		return err
	case err != nil && wait != 0:
		fault = fmt.Sprintf("a duration (%s) beside an error", wait)
	case wait < 0:
		fault = fmt.Sprintf("a negative duration (%s)", wait)
	case after.ID != before.ID:
		fault = "another operation than the one it was given"
	default:
		return nil
	}

	return failure.Wrap(failure.Internal, errors.Join(fmt.Errorf("the step returned %s", fault), err), "internal error")
}
